/* SPDX-License-Identifier: BSD-2-Clause */

/* A small fabric whose time is set by hand, and agents that send requests to its nodes, to
 * test the wire, subnet management and faults. */
#ifndef FABRIC_SUBNET_FIXTURE_H
#define FABRIC_SUBNET_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "counters.h"
#include "fault_rules.h"
#include "faults.h"
#include "hosts.h"
#include "manager.h"
#include "routes.h"
#include "settings.h"
#include "setup.h"
#include "sma.h"
#include "trace.h"
#include "test.h"

/*
 *	ALPHA 1 -- 1 NEAR 4 -- 4 FAR 1 -- 1 GAMMA
 *	             NEAR 3 -- 3 FAR
 *	BETA 1 -- 2 NEAR       FAR 2 -- 2 BETA
 *
 * NEAR 5, 6 and FAR 5, 6 are not cabled. The manager sits on ALPHA.
 */
enum {
	NEAR,
	FAR,
	ALPHA,
	BETA,
	GAMMA
};

#define VENDOR_CLASS 0x0a /* range 1: neither RMPP nor an OUI */

struct inbox {
	struct agent *agent;
	struct message *first;
	struct message **end;
	unsigned int count; /* messages so far */
};

struct subnet {
	struct fabric fabric;
	struct inbox smps; /* of ALPHA's agents on QP0 and QP1 */
	struct inbox gmps;
	struct inbox heard;     /* of the agent of hear_at() */
	uint8_t mad[MAD_BYTES]; /* the next request */
	uint16_t dlid;
	struct message *response; /* the last response */
	uint32_t tid;
	FILE *out;
	char *text; /* the trace */
	size_t length;
};

static inline void settle(struct fabric *fabric)
{
	while (timers_run(fabric, 1000))
		;
}

/* Advances the time, from one timer to the next. */
static inline void pass(struct fabric *fabric, uint64_t time)
{
	uint64_t until = fabric->now + time;

	for (settle(fabric); timers_next(fabric) <= until; settle(fabric))
		fabric->now = timers_next(fabric);
	fabric->now = until;
	settle(fabric);
}

static inline uint32_t port_of(const struct subnet *subnet, uint32_t node, unsigned int number)
{
	return graph_port(&subnet->fabric.graph, node, number);
}

static inline struct port *state_of(struct subnet *subnet, uint32_t node, unsigned int number)
{
	return &subnet->fabric.ports[port_of(subnet, node, number)];
}

/* The LID of a switch, or of a CA's first port. */
static inline uint16_t lid_of(struct subnet *subnet, uint32_t node)
{
	return state_of(subnet, node, node <= FAR ? 0 : 1)->lid;
}

static inline void drop_response(struct subnet *subnet)
{
	free(subnet->response);
	subnet->response = NULL;
}

static inline void put_into_inbox(struct agent *agent, struct message *message)
{
	struct inbox *inbox = (struct inbox *)agent->owner;

	message->next = NULL;
	*inbox->end = message;
	inbox->end = &message->next;
	inbox->count++;
}

/* The first message of an inbox, to be freed by the caller; NULL: none. */
static inline struct message *take(struct inbox *inbox)
{
	struct message *message = inbox->first;

	if (message) {
		inbox->first = message->next;
		if (!inbox->first)
			inbox->end = &inbox->first;
	}
	return message;
}

static inline void empty(struct inbox *inbox)
{
	while (inbox->first)
		free(take(inbox));
}

/* Registers an agent on a port; method 0: no server. */
static inline void listen_at(struct fabric *fabric, struct inbox *inbox, uint32_t port,
			     uint8_t class, unsigned int method)
{
	struct agent_rules rules = {
		.class = class,
		.class_version = 1,
		.qp = class == CLASS_SMP || class == CLASS_DIRECTED_SMP ? 0 : 1,
		.is_server = method != 0,
	};

	if (method)
		rules.methods[method / 64] = 1ULL << method % 64;
	*inbox = (struct inbox){.end = &inbox->first};
	assert_int_equal(agent_register(fabric, host_at(fabric, port), &rules, &inbox->agent),
			 0);
	inbox->agent->owner = inbox;
	inbox->agent->deliver = put_into_inbox;
}

static inline void join_cable(struct graph *graph, uint32_t a, unsigned int number_a,
			      uint32_t b, unsigned int number_b)
{
	assert_int_equal(graph_cable(graph, graph_port(graph, a, number_a),
				     graph_port(graph, b, number_b), 4, EDR),
			 0);
}

/* Makes all parts of a fabric; computed: the routes are the default ones. */
static inline void start_fabric(struct fabric *fabric, struct graph *graph, uint64_t seed,
				bool computed)
{
	assert_int_equal(fabric_init(fabric, graph, seed), 0);
	assert_int_equal(timers_init(fabric), 0);
	assert_int_equal(faults_init(fabric), 0);
	assert_int_equal(hosts_init(fabric), 0);
	assert_int_equal(routes_init(fabric, computed), 0);
}

static inline void stop_fabric(struct fabric *fabric)
{
	hosts_free(fabric);
	faults_free(fabric);
	timers_free(fabric);
	capture_free(fabric);
	trace_free(fabric);
	fabric_free(fabric);
}

static inline struct subnet *new_subnet(bool bare, uint64_t seed)
{
	struct subnet *subnet = (struct subnet *)calloc(1, sizeof(*subnet));
	struct graph graph;
	uint32_t node;

	assert_non_null(subnet);
	graph_init(&graph);
	assert_int_equal(graph_add(&graph, NODE_SWITCH, 0x100, "near", 6, &node), 0);
	assert_int_equal(graph_add(&graph, NODE_SWITCH, 0x200, "far", 6, &node), 0);
	assert_int_equal(graph_add(&graph, NODE_CA, 0x1000, "alpha", 1, &node), 0);
	assert_int_equal(graph_add(&graph, NODE_CA, 0x2000, "beta", 2, &node), 0);
	assert_int_equal(graph_add(&graph, NODE_CA, 0x3000, "gamma", 1, &node), 0);
	join_cable(&graph, ALPHA, 1, NEAR, 1);
	join_cable(&graph, BETA, 1, NEAR, 2);
	join_cable(&graph, BETA, 2, FAR, 2);
	join_cable(&graph, NEAR, 3, FAR, 3);
	join_cable(&graph, NEAR, 4, FAR, 4);
	join_cable(&graph, GAMMA, 1, FAR, 1);
	start_fabric(&subnet->fabric, &graph, seed, !bare);
	if (!bare)
		assert_int_equal(bring_up(&subnet->fabric, port_of(subnet, ALPHA, 1)), 0);
	listen_at(&subnet->fabric, &subnet->smps, port_of(subnet, ALPHA, 1), CLASS_SMP, 0);
	listen_at(&subnet->fabric, &subnet->gmps, port_of(subnet, ALPHA, 1), VENDOR_CLASS, 0);
	return subnet;
}

static inline void free_subnet(struct subnet *subnet)
{
	stop_fabric(&subnet->fabric);
	empty(&subnet->smps);
	empty(&subnet->gmps);
	empty(&subnet->heard);
	drop_response(subnet);
	if (subnet->out)
		fclose(subnet->out);
	free(subnet->text);
	free(subnet);
}

static inline struct subnet *set_up(void)
{
	return new_subnet(false, 7);
}

static inline struct subnet *set_up_bare(void)
{
	return new_subnet(true, 7);
}

static inline void tear_down(struct subnet *subnet)
{
	free_subnet(subnet);
}

#define SUBNET_TEST(name) TEST_ON(name, struct subnet *subnet, set_up, tear_down)
#define BARE_TEST(name)   TEST_ON(name, struct subnet *subnet, set_up_bare, tear_down)

/* Registers an agent on a port, whose messages are in subnet->heard; method 0: no server. */
static inline void hear_at(struct subnet *subnet, uint32_t port, uint8_t class,
			   unsigned int method)
{
	listen_at(&subnet->fabric, &subnet->heard, port, class, method);
}

static inline void start_trace(struct subnet *subnet)
{
	subnet->out = open_memstream(&subnet->text, &subnet->length);
	assert_non_null(subnet->out);
	assert_int_equal(trace_to(&subnet->fabric, subnet->out), 0);
}

/* Whether the trace has the text, such as "link down at near/4". */
static inline bool traced(const struct subnet *subnet, const char *what)
{
	return subnet->text && strstr(subnet->text, what) != NULL;
}

static inline void rule(struct subnet *subnet, const char *text)
{
	struct rule_error error;

	if (fault_apply(&subnet->fabric, text, &error))
		fail_msg("%s: %s", text, error.text);
}

static inline void apply_rules(struct subnet *subnet, const char *const *texts)
{
	while (*texts)
		rule(subnet, *texts++);
}

#define rules(subnet, ...) apply_rules(subnet, (const char *const[]){__VA_ARGS__, NULL})

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* --- requests ------------------------------------------------------------------- */

static inline void begin(struct subnet *subnet, uint8_t class, unsigned int method,
			 unsigned int attribute, uint32_t modifier)
{
	uint8_t *mad = subnet->mad;

	memset(mad, 0, MAD_BYTES);
	mad[0] = 1;
	mad[1] = class;
	mad[2] = 1;
	mad[3] = (uint8_t)method;
	put32(mad + 12, ++subnet->tid);
	put16(mad + 16, attribute);
	put32(mad + 20, modifier);
}

/* Makes the request one with a directed route of `count` hops. */
static inline void direct(struct subnet *subnet, const uint8_t *path, unsigned int count)
{
	subnet->mad[1] = CLASS_DIRECTED_SMP;
	subnet->mad[7] = (uint8_t)count;
	put16(subnet->mad + 32, PERMISSIVE_LID);
	put16(subnet->mad + 34, PERMISSIVE_LID);
	memcpy(subnet->mad + 129, path, count);
	subnet->dlid = PERMISSIVE_LID;
}

/* An agent sends subnet->mad to subnet->dlid. */
static inline int send_by(struct subnet *subnet, struct inbox *inbox, uint32_t timeout)
{
	struct ib_user_mad_hdr header = {
		.timeout_ms = timeout,
		.qpn = htobe32(is_smp(subnet->mad) ? 0 : 1),
		.qkey = htobe32(is_smp(subnet->mad) ? 0 : WELL_KNOWN_QKEY),
		.lid = htobe16(subnet->dlid),
	};

	return host_send(&subnet->fabric, inbox->agent, &header, subnet->mad, MAD_BYTES);
}

/* ALPHA sends the request. Returns whether the response arrives without advancing the time. */
static inline bool asked(struct subnet *subnet)
{
	struct inbox *inbox = is_smp(subnet->mad) ? &subnet->smps : &subnet->gmps;

	drop_response(subnet);
	empty(inbox);
	assert_int_equal(send_by(subnet, inbox, UINT32_MAX), 0);
	settle(&subnet->fabric);
	subnet->response = take(inbox);
	return subnet->response != NULL;
}

static inline unsigned int status_of_response(const struct subnet *subnet)
{
	assert_non_null(subnet->response);
	return get16(subnet->response->data + 4) & 0x7fff;
}

/* Sends the request to a node. Returns the status of the response; 0xffff: there is none. */
static inline unsigned int status_of(struct subnet *subnet, uint32_t node)
{
	subnet->dlid = lid_of(subnet, node);
	return asked(subnet) ? status_of_response(subnet) : 0xffff;
}

/* The same for a Get by LID. */
static inline unsigned int get(struct subnet *subnet, uint32_t node, unsigned int attribute,
			       uint32_t modifier)
{
	begin(subnet, CLASS_SMP, METHOD_GET, attribute, modifier);
	return status_of(subnet, node);
}

#define PATH(...) ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})

/* Sends a Get of NodeInfo along a path. Returns whether there is a response. */
static inline bool ask_along(struct subnet *subnet, const uint8_t *path, unsigned int count)
{
	begin(subnet, CLASS_DIRECTED_SMP, METHOD_GET, IB_ATTR_NODE_INFO, 0);
	direct(subnet, path, count);
	return asked(subnet);
}

static inline uint8_t *data_of_response(const struct subnet *subnet)
{
	assert_non_null(subnet->response);
	return subnet->response->data + SMP_DATA;
}

#define FIELD(name) mad_get_field(data_of_response(subnet), 0, name)

/* ALPHA sends to a LID a vendor MAD that gets no response. */
static inline void send_note(struct subnet *subnet, uint16_t dlid)
{
	begin(subnet, VENDOR_CLASS, METHOD_SEND, 0x10, 0);
	subnet->dlid = dlid;
	assert_int_equal(send_by(subnet, &subnet->gmps, 0), 0);
}

#endif
