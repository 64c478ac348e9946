/* SPDX-License-Identifier: BSD-2-Clause */

/* A node and its agents. */
#include <stdlib.h>

#include "classes.h"
#include "counters.h"
#include "faults.h"
#include "gmp_agents.h"
#include "node.h"
#include "pma.h"
#include "rmpp.h"
#include "settings.h"
#include "sma.h"
#include "timers.h"
#include "trace.h"
#include "traps.h"
#include "wire.h"
#include "workload.h"

#define CLASS_PERFORMANCE 0x04
#define CLASS_BASEBOARD   0x05
#define CLASS_CONGESTION  0x21

struct work { /* a request whose response is delayed */
	struct timer timer;
	uint32_t port;
	enum reaction reaction;
	uint32_t redirect_to;
	struct packet packet;
};

static bool is_vendor_class(unsigned int class)
{
	return (class >= 0x09 && class <= 0x0f) || (class >= 0x30 && class <= 0x4f);
}

/* Agents in the adapter: they respond whatever programs run on the host. */
static bool is_for_hardware(const uint8_t *mad)
{
	unsigned int method = mad_method(mad);

	if (is_smp(mad))
		return (method == METHOD_GET || method == METHOD_SET) &&
		       mad_attribute(mad) != IB_ATTR_SMINFO;
	return mad_class_of(mad) == CLASS_PERFORMANCE || mad_class_of(mad) == CLASS_CONGESTION;
}

/*
 * Whether the RMPP header is in use; if so, nobody responds unless a program serves the class.
 */
static bool is_rmpp(const uint8_t *mad)
{
	return class_has_rmpp(mad[1]) && mad[RMPP_FLAGS] & RMPP_ACTIVE;
}

/* A real kernel receives all packets, and passes the adapter those for its agents. */
static bool is_of_kernel(const struct fabric *fabric, uint32_t port)
{
	return fabric->ports[end_port(fabric, port)].of_kernel;
}

static bool to_programs(struct fabric *fabric, uint32_t port, const struct packet *packet)
{
	return fabric->to_programs && fabric->to_programs(fabric, port, packet);
}

/* For MADs that no program serves: a host's kernel, or an agent of other nodes, responds to Get
 * and Set. */
static bool respond_to_unserved(struct query *query)
{
	unsigned int method = mad_method(query->mad);

	if ((method != METHOD_GET && method != METHOD_SET) || is_rmpp(query->mad))
		return false;
	if (is_vendor_class(mad_class_of(query->mad)))
		return vendor_respond(query);
	if (hardware(query->fabric, query->node)->type == NODE_SWITCH)
		return false;
	respond(query->mad, STATUS_BAD_ATTRIBUTE);
	return true;
}

static bool agents_respond(struct query *query)
{
	if (is_smp(query->mad))
		return sma_respond(query);
	switch (mad_class_of(query->mad)) {
	case CLASS_PERFORMANCE:
		return pma_respond(query);
	case CLASS_CONGESTION:
		return congestion_respond(query);
	case CLASS_BASEBOARD:
		return baseboard_respond(query);
	default:
		return respond_to_unserved(query);
	}
}

bool node_respond(struct fabric *fabric, uint32_t port, uint8_t mad[MAD_BYTES])
{
	struct query query = {.fabric = fabric,
			      .node = cable(fabric, port)->node,
			      .in_port = cable(fabric, port)->number,
			      .mad = mad};

	if (mad_method(mad) != METHOD_TRAP_REPRESS)
		return agents_respond(&query);
	trap_repress(fabric, port, mad);
	return false;
}

/* For any method: a GetTable becomes a GetTableResp. */
static void turn_round(uint8_t *mad, unsigned int status)
{
	unsigned int method = mad_method(mad);

	respond(mad, status);
	if (method != METHOD_SET)
		mad[3] = (uint8_t)(method | METHOD_RESPONSE);
}

/*
 * Redirects the requester: a response with ClassPortInfo instead of the attribute (IBA 13.5.2).
 */
static void redirect(const struct fabric *fabric, uint8_t *mad, uint32_t to)
{
	int data = mad_class_of(mad) == CLASS_SA ? 56 : 64;
	uint8_t gid[16];

	memset(mad + data, 0, (size_t)(MAD_BYTES - data));
	mad_set_field(mad, data, IB_CPI_BASEVER_F, 1);
	mad_set_field(mad, data, IB_CPI_CLASSVER_F, mad_version(mad));
	port_gid(fabric, to, gid);
	mad_set_array(mad, data, IB_CPI_REDIRECT_GID_F, gid);
	mad_set_field(mad, data, IB_CPI_REDIRECT_LID_F, fabric->ports[to].lid);
	mad_set_field(mad, data, IB_CPI_REDIRECT_PKEY_F, DEFAULT_PKEY);
	mad_set_field(mad, data, IB_CPI_REDIRECT_QP_F, 1);
	mad_set_field(mad, data, IB_CPI_REDIRECT_QKEY_F, WELL_KNOWN_QKEY);
	turn_round(mad, STATUS_REDIRECT);
}

static void react(struct fabric *fabric, uint32_t port, enum reaction reaction,
		  uint32_t redirect_to, struct packet *packet)
{
	struct query query = {.fabric = fabric,
			      .node = cable(fabric, port)->node,
			      .in_port = cable(fabric, port)->number,
			      .mad = packet->mad};

	if (reaction == REACT_BUSY) {
		trace_packet(fabric, packet, port, "busy");
		turn_round(packet->mad, STATUS_BUSY);
	} else if (reaction == REACT_REDIRECT) {
		trace_packet(fabric, packet, port, "redirected");
		redirect(fabric, packet->mad, redirect_to);
	} else if ((!is_for_hardware(packet->mad) || is_of_kernel(fabric, port)) &&
		   to_programs(fabric, port, packet)) {
		return;
	} else if (!agents_respond(&query)) {
		packet_end(fabric, packet, port, "no response");
		return;
	}
	wire_reply(fabric, port, packet);
}

static void work_done(struct fabric *fabric, struct timer *timer)
{
	struct work *work = (struct work *)timer;

	react(fabric, work->port, work->reaction, work->redirect_to, &work->packet);
	free(work);
}

static void drop_work(struct timer *timer)
{
	free(timer);
}

static void react_later(struct fabric *fabric, uint32_t port, const struct treatment *treatment,
			const struct packet *packet)
{
	struct work *work = malloc(sizeof(*work));

	if (!work)
		return;
	work->timer = (struct timer){.run = work_done, .drop = drop_work};
	work->port = port;
	work->reaction = treatment->reaction;
	work->redirect_to = treatment->redirect_to;
	work->packet = *packet;
	if (timer_set(fabric, &work->timer, timers_moment(fabric) + treatment->delay))
		free(work);
}

/* Passes a response or RMPP control packet to the program that waits for it. */
static bool pass_on(struct fabric *fabric, uint32_t port, const struct packet *packet)
{
	if (mad_method(packet->mad) == METHOD_TRAP_REPRESS && is_smp(packet->mad) &&
	    !is_of_kernel(fabric, port)) {
		trap_repress(fabric, end_port(fabric, port), packet->mad);
		return true;
	}
	if (!mad_is_response(packet->mad) &&
	    !(is_rmpp(packet->mad) && packet->mad[RMPP_TYPE] != RMPP_DATA))
		return false;
	if (!to_programs(fabric, port, packet))
		trace_packet(fabric, packet, port, "nobody waits");
	return true;
}

/* The management queue pairs, and the Q_Key of QP1 (IBA 3.5.3.3, 10.2.5). */
static bool has_right_qp(struct fabric *fabric, uint32_t port, const struct packet *packet)
{
	struct port_settings *settings;

	if (is_smp(packet->mad))
		return packet->qp == 0;
	if (packet->qp == 1 && packet->qkey == WELL_KNOWN_QKEY)
		return true;
	settings = packet->qp == 1 ? settings_of(fabric, end_port(fabric, port)) : NULL;
	if (settings && settings->qkey_violations != 0xffff)
		settings->qkey_violations++;
	return false;
}

/*
 * Whether a processor of the node accepts the request; if so, adds the processing time to the
 * treatment's delay. VL15 has no flow control: requests that do not fit in the buffer are
 * dropped (IBA 18.2.5).
 */
static bool take_turn(struct fabric *fabric, uint32_t port, const struct packet *packet,
		      struct treatment *treatment)
{
	bool smp = is_smp(packet->mad);
	struct processor *processor = processor_of(fabric, cable(fabric, port)->node, smp);
	uint64_t delay;

	if (processor)
		processor->received++;
	if (treatment->reaction == REACT_IGNORE) {
		packet_end(fabric, packet, port, "ignored");
		return false;
	}
	if (!processor)
		return true; /* on OOM for a queue: no processing time */
	if (!processor_take(processor, timers_moment(fabric), treatment->service,
			    treatment->buffer, &delay)) {
		packet_end(fabric, packet, port, "dropped: buffer full");
		counter_add(fabric, port, smp ? COUNT_VL15_DROPPED : COUNT_QP1_DROPPED, 1);
		return false;
	}
	treatment->delay += delay;
	return true;
}

bool node_turns_away(struct fabric *fabric, uint32_t port, const struct packet *packet)
{
	struct packet response = *packet;
	struct treatment treatment;

	faults_on_node(fabric, cable(fabric, port)->node, false, &treatment);
	if (treatment.reaction != REACT_BUSY && treatment.reaction != REACT_REDIRECT)
		return false;
	memset(response.mad + RMPP_VERSION, 0, RMPP_HEADER - RMPP_VERSION);
	react(fabric, port, treatment.reaction, treatment.redirect_to, &response);
	return true;
}

void node_receive(struct fabric *fabric, uint32_t port, struct packet *packet)
{
	struct treatment treatment;

	/* QP0 and QP1 are not attached to multicast groups (IBA 10.5) */
	if (is_multicast(packet->dlid)) {
		packet_end(fabric, packet, port, "in no group");
		return;
	}
	if (!has_right_qp(fabric, port, packet)) {
		packet_end(fabric, packet, port, "wrong QP or Q_Key");
		return;
	}
	trace_packet(fabric, packet, port, "received");
	if (pass_on(fabric, port, packet))
		return;
	faults_on_node(fabric, cable(fabric, port)->node, is_smp(packet->mad), &treatment);
	/* the response is to the message, not to each segment: node_turns_away() */
	if (is_rmpp(packet->mad) && treatment.reaction != REACT_IGNORE)
		treatment.reaction = REACT_ANSWER;
	if (!take_turn(fabric, port, packet, &treatment))
		return;
	if (treatment.delay) {
		react_later(fabric, port, &treatment, packet);
		return;
	}
	react(fabric, port, treatment.reaction, treatment.redirect_to, packet);
}
