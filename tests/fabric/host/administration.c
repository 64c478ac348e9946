/* SPDX-License-Identifier: BSD-2-Clause */

/* The SA as an agent: it receives requests and sends responses. It also receives the traps
 * that nodes send to the subnet manager. */
#include <stdlib.h>

#include "administration.h"
#include "manager.h"
#include "sa.h"
#include "sa_subscriptions.h"

#define REPORT_TIMEOUT 1000 /* ms; a subscriber confirms its Report within this time */

/* Lost segments of a table are retransmitted only if the SA's host has retries left. opensm
 * sends its responses with a timeout of 0 and this number of retries. */
#define RESPONSE_RETRIES 3

struct administration {
	struct fabric *fabric;
	struct sa *sa;
	struct agent *requests; /* SubnAdm */
	struct agent *traps;    /* subnet management: Trap */
};

static void send_to(struct administration *administration, struct agent *agent, uint16_t lid,
		    const uint8_t *mad, size_t length, uint32_t timeout, uint32_t retries)
{
	struct ib_user_mad_hdr header = {
		.qpn = htobe32(agent->rules.qp),
		.qkey = htobe32(agent->rules.qp ? WELL_KNOWN_QKEY : 0),
		.lid = htobe16(lid),
		.timeout_ms = timeout,
		.retries = retries,
	};

	host_send(administration->fabric, agent, &header, mad, length);
}

static void send_report(void *context, uint16_t lid, const uint8_t mad[MAD_BYTES])
{
	struct administration *administration = context;

	send_to(administration, administration->requests, lid, mad, MAD_BYTES, REPORT_TIMEOUT,
		0);
}

static void receive_request(struct agent *agent, struct message *message)
{
	struct administration *administration = agent->owner;
	uint16_t lid = be16toh(message->header.lid);
	uint32_t from = lid_owner(administration->fabric, lid);
	uint8_t *answer = NULL;
	size_t length = 0;

	if (!message->header.status && from != NONE)
		answer = sa_answer(administration->sa, from, lid, message->data,
				   message->length, &length);
	if (answer)
		send_to(administration, agent, lid, answer, length, 0, RESPONSE_RETRIES);
	free(answer);
	free(message);
}

/* Represses a trap, and reports it to those who subscribed to it (IBA 14.3.11, 15.3). */
static void receive_trap(struct agent *agent, struct message *message)
{
	struct administration *administration = agent->owner;

	if (message->length == MAD_BYTES && mad_method(message->data) == METHOD_TRAP) {
		manager_heard(administration->fabric, message->data);
		sa_forward_trap(administration->sa, message->data);
		message->data[3] = METHOD_TRAP_REPRESS;
		send_to(administration, agent, be16toh(message->header.lid), message->data,
			MAD_BYTES, 0, 0);
	}
	free(message);
}

static struct agent *serve(struct administration *administration,
			   const struct agent_rules *rules,
			   void (*deliver)(struct agent *agent, struct message *message))
{
	struct host_port *host =
		host_at(administration->fabric, administration->fabric->sm_port);
	struct agent *agent;

	if (!host || agent_register(administration->fabric, host, rules, &agent))
		return NULL;
	agent->owner = administration;
	agent->deliver = deliver;
	return agent;
}

struct administration *administration_start(struct fabric *fabric)
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
	struct administration *administration = calloc(1, sizeof(*administration));

	if (!administration)
		return NULL;
	administration->fabric = fabric;
	administration->sa = sa_new(fabric, send_report, administration);
	if (administration->sa) {
		administration->requests = serve(administration, &requests, receive_request);
		administration->traps = serve(administration, &traps, receive_trap);
	}
	if (!administration->requests || !administration->traps) {
		administration_stop(administration);
		return NULL;
	}
	return administration;
}

void administration_notice(struct administration *administration, uint32_t port,
			   bool in_service)
{
	uint8_t gid[16];

	port_gid(administration->fabric, port, gid);
	sa_gid_event(administration->sa, in_service ? 64 : 65, gid); /* IBA 14.4.9 */
}

void administration_stop(struct administration *administration)
{
	if (administration->requests)
		agent_unregister(administration->fabric, administration->requests);
	if (administration->traps)
		agent_unregister(administration->fabric, administration->traps);
	if (administration->sa)
		sa_free(administration->sa);
	free(administration);
}
