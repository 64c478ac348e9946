/* SPDX-License-Identifier: BSD-2-Clause */

/* The SA as an agent: receives requests and sends responses; also receives the traps that nodes
 * send to the SM. */
#include <stdlib.h>

#include "sa_agent.h"
#include "manager.h"
#include "sa.h"
#include "sa_subscriptions.h"

#define REPORT_TIMEOUT 1000 /* ms for a subscriber to confirm a Report */

/* The kernel retransmits lost segments of a table only if the response has retries left. opensm
 * also sends its responses with a timeout of 0 and this many retries. */
#define RESPONSE_RETRIES 3

struct sa_agent {
	struct fabric *fabric;
	struct sa *sa;
	struct agent *requests; /* SubnAdm */
	struct agent *traps;    /* subnet management: Trap */
};

static void send_to(struct sa_agent *sa_agent, struct agent *agent, uint16_t lid,
		    const uint8_t *mad, size_t length, uint32_t timeout, uint32_t retries)
{
	struct ib_user_mad_hdr header = {
		.qpn = htobe32(agent->rules.qp),
		.qkey = htobe32(agent->rules.qp ? WELL_KNOWN_QKEY : 0),
		.lid = htobe16(lid),
		.timeout_ms = timeout,
		.retries = retries,
	};

	host_send(sa_agent->fabric, agent, &header, mad, length);
}

static void send_report(void *context, uint16_t lid, const uint8_t mad[MAD_BYTES])
{
	struct sa_agent *sa_agent = context;

	send_to(sa_agent, sa_agent->requests, lid, mad, MAD_BYTES, REPORT_TIMEOUT, 0);
}

static void receive_request(struct agent *agent, struct message *message)
{
	struct sa_agent *sa_agent = agent->owner;
	uint16_t lid = be16toh(message->header.lid);
	uint32_t from = lid_owner(sa_agent->fabric, lid);
	uint8_t *response = NULL;
	size_t length = 0;

	if (!message->header.status && from != NONE)
		response = sa_respond(sa_agent->sa, from, lid, message->data, message->length,
				      &length);
	if (response)
		send_to(sa_agent, agent, lid, response, length, 0, RESPONSE_RETRIES);
	free(response);
	free(message);
}

/* Replies to a trap with TrapRepress, and reports it to its subscribers (IBA 14.3.11, 15.3). */
static void receive_trap(struct agent *agent, struct message *message)
{
	struct sa_agent *sa_agent = agent->owner;

	if (message->length == MAD_BYTES && mad_method(message->data) == METHOD_TRAP) {
		manager_heard(sa_agent->fabric, message->data);
		sa_forward_trap(sa_agent->sa, message->data);
		message->data[3] = METHOD_TRAP_REPRESS;
		send_to(sa_agent, agent, be16toh(message->header.lid), message->data, MAD_BYTES,
			0, 0);
	}
	free(message);
}

static struct agent *serve(struct sa_agent *sa_agent, const struct agent_rules *rules,
			   void (*deliver)(struct agent *agent, struct message *message))
{
	struct host_port *host = host_at(sa_agent->fabric, sa_agent->fabric->sm_port);
	struct agent *agent;

	if (!host || agent_register(sa_agent->fabric, host, rules, &agent))
		return NULL;
	agent->owner = sa_agent;
	agent->deliver = deliver;
	return agent;
}

struct sa_agent *sa_agent_start(struct fabric *fabric)
{
	static const struct agent_rules requests = {
		.class = CLASS_SA,
		.class_version = 2,
		.rmpp_version = 1,
		.is_server = true,
		.qp = 1,
		.methods = {UINT64_MAX & ~(1ULL << METHOD_REPORT), UINT64_MAX},
	};
	static const struct agent_rules traps = {
		.class = CLASS_SMP,
		.class_version = 1,
		.is_server = true,
		.qp = 0,
		.methods = {1ULL << METHOD_TRAP},
	};
	struct sa_agent *sa_agent = calloc(1, sizeof(*sa_agent));

	if (!sa_agent)
		return NULL;
	sa_agent->fabric = fabric;
	sa_agent->sa = sa_new(fabric, send_report, sa_agent);
	if (sa_agent->sa) {
		sa_agent->requests = serve(sa_agent, &requests, receive_request);
		sa_agent->traps = serve(sa_agent, &traps, receive_trap);
	}
	if (!sa_agent->requests || !sa_agent->traps) {
		sa_agent_stop(sa_agent);
		return NULL;
	}
	return sa_agent;
}

void sa_agent_notice(struct sa_agent *sa_agent, uint32_t port, bool in_service)
{
	uint8_t gid[16];

	port_gid(sa_agent->fabric, port, gid);
	sa_gid_event(sa_agent->sa, in_service ? 64 : 65, gid); /* IBA 14.4.9 */
}

void sa_agent_forget(struct sa_agent *sa_agent)
{
	sa_forget(sa_agent->sa);
}

void sa_agent_stop(struct sa_agent *sa_agent)
{
	if (sa_agent->requests)
		agent_unregister(sa_agent->fabric, sa_agent->requests);
	if (sa_agent->traps)
		agent_unregister(sa_agent->fabric, sa_agent->traps);
	if (sa_agent->sa)
		sa_free(sa_agent->sa);
	free(sa_agent);
}
