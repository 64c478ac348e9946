/* SPDX-License-Identifier: BSD-2-Clause */

/* A small subnet with its SA, and requests to the SA, to test the responses. */
#ifndef FABRIC_SA_FIXTURE_H
#define FABRIC_SA_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "routes.h"
#include "sa.h"
#include "sa_groups.h"
#include "sa_match.h"
#include "sa_subscriptions.h"
#include "settings.h"
#include "setup.h"
#include "sma.h"
#include "test.h"

/*
 *	ALPHA 1 --4xEDR-- 1 NEAR 4 --1xEDR-- 4 FAR 1 --4xEDR-- 1 GAMMA (two LIDs)
 *	BETA 1 --4xQDR--- 2
 */
enum {
	NEAR,
	FAR,
	ALPHA,
	BETA,
	GAMMA
};

enum {
	LID_NEAR = 1,
	LID_FAR = 2,
	LID_ALPHA = 3,
	LID_BETA = 4,
	LID_GAMMA = 8
};

struct subnet {
	struct fabric fabric;
	struct sa *sa;
	uint32_t alpha, beta, gamma; /* the end ports */
	uint32_t from;               /* the requester */
	uint8_t mad[MAD_BYTES];      /* the request */
	uint8_t *record;             /* the request's record */
	uint8_t *response;
	size_t length;
	unsigned int reports;
	uint16_t report_lid; /* of the last Report */
	uint8_t report[MAD_BYTES];
};

static inline void note_report(void *context, uint16_t lid, const uint8_t mad[MAD_BYTES])
{
	struct subnet *subnet = (struct subnet *)context;

	subnet->reports++;
	subnet->report_lid = lid;
	memcpy(subnet->report, mad, MAD_BYTES);
}

static inline uint32_t port_of(const struct subnet *subnet, uint32_t node, unsigned int number)
{
	return graph_port(&subnet->fabric.graph, node, number);
}

static inline void join_cable(struct graph *graph, uint32_t a, unsigned int number_a,
			      uint32_t b, unsigned int number_b, unsigned int width,
			      enum link_speed speed)
{
	assert_int_equal(graph_cable(graph, graph_port(graph, a, number_a),
				     graph_port(graph, b, number_b), width, speed),
			 0);
}

static inline struct subnet *set_up(void)
{
	struct subnet *subnet = (struct subnet *)calloc(1, sizeof(*subnet));
	struct graph graph;
	uint32_t node;

	assert_non_null(subnet);
	graph_init(&graph);
	assert_int_equal(graph_add(&graph, NODE_SWITCH, 0x100, "near", 4, &node), 0);
	assert_int_equal(graph_add(&graph, NODE_SWITCH, 0x200, "far", 20, &node), 0);
	assert_int_equal(graph_add(&graph, NODE_CA, 0x1000, "alpha", 1, &node), 0);
	assert_int_equal(graph_add(&graph, NODE_CA, 0x2000, "beta", 2, &node), 0);
	assert_int_equal(graph_add(&graph, NODE_CA, 0x3000, "gamma", 1, &node), 0);
	join_cable(&graph, ALPHA, 1, NEAR, 1, 4, EDR);
	join_cable(&graph, BETA, 1, NEAR, 2, 4, QDR);
	join_cable(&graph, NEAR, 4, FAR, 4, 1, EDR);
	join_cable(&graph, GAMMA, 1, FAR, 1, 4, EDR);
	assert_int_equal(fabric_init(&subnet->fabric, &graph, 7), 0);
	assert_int_equal(routes_init(&subnet->fabric, true), 0);
	subnet->alpha = port_of(subnet, ALPHA, 1);
	subnet->beta = port_of(subnet, BETA, 1);
	subnet->gamma = port_of(subnet, GAMMA, 1);
	set_lid(&subnet->fabric, port_of(subnet, NEAR, 0), LID_NEAR, 0);
	set_lid(&subnet->fabric, port_of(subnet, FAR, 0), LID_FAR, 0);
	set_lid(&subnet->fabric, subnet->alpha, LID_ALPHA, 0);
	set_lid(&subnet->fabric, subnet->beta, LID_BETA, 0);
	set_lid(&subnet->fabric, subnet->gamma, LID_GAMMA, 1);
	for (node = NEAR; node <= FAR; node++)
		subnet->fabric.nodes[node].linear_top = LID_GAMMA + 1;
	subnet->fabric.sm_port = subnet->alpha;
	subnet->from = subnet->alpha;
	subnet->record = subnet->mad + SA_HEADER;
	subnet->sa = sa_new(&subnet->fabric, note_report, subnet);
	assert_non_null(subnet->sa);
	return subnet;
}

static inline void tear_down(struct subnet *subnet)
{
	free(subnet->response);
	sa_free(subnet->sa);
	fabric_free(&subnet->fabric);
	free(subnet);
}

#define SA_TEST(name) TEST_ON(name, struct subnet *subnet, set_up, tear_down)

/* Begins a request with an empty record and an empty component mask. */
static inline void begin(struct subnet *subnet, unsigned int method, unsigned int attribute)
{
	memset(subnet->mad, 0, MAD_BYTES);
	subnet->mad[0] = 1;
	subnet->mad[1] = CLASS_SA;
	subnet->mad[2] = 2;
	subnet->mad[3] = (uint8_t)method;
	put64(subnet->mad + 8, 0x1234);
	put16(subnet->mad + 16, attribute);
}

static inline void mask(struct subnet *subnet, uint64_t components)
{
	put64(subnet->mad + 48, get64(subnet->mad + 48) | components);
}

static inline void begin_with(struct subnet *subnet, unsigned int method,
			      unsigned int attribute, uint64_t components)
{
	begin(subnet, method, attribute);
	mask(subnet, components);
}

static inline void trust(struct subnet *subnet)
{
	put64(subnet->mad + 36, 1);
}

static inline void put_gid(uint8_t *at, uint64_t guid)
{
	put64(at, DEFAULT_PREFIX);
	put64(at + 8, guid);
}

static inline unsigned int status_of_response(const struct subnet *subnet)
{
	assert_non_null(subnet->response);
	return get16(subnet->response + 4);
}

/* Sends the request. Returns the status of the response, which must exist. */
static inline unsigned int ask(struct subnet *subnet)
{
	free(subnet->response);
	subnet->response =
		sa_respond(subnet->sa, subnet->from, subnet->fabric.ports[subnet->from].lid,
			   subnet->mad, MAD_BYTES, &subnet->length);
	assert_non_null(subnet->response);
	assert_true(get64(subnet->response + 8) == 0x1234);
	return status_of_response(subnet);
}

static inline size_t stride(const struct subnet *subnet)
{
	return get16(subnet->response + 44) * 8UL;
}

/* The number of records in a table. */
static inline size_t record_count(const struct subnet *subnet)
{
	assert_int_equal(status_of_response(subnet), 0);
	assert_int_equal(subnet->response[3], METHOD_GET_TABLE | METHOD_RESPONSE);
	assert_int_equal((subnet->length - SA_HEADER) % stride(subnet), 0);
	return (subnet->length - SA_HEADER) / stride(subnet);
}

/* Sends the request for a table. Returns the number of records. */
static inline size_t records(struct subnet *subnet)
{
	ask(subnet);
	return record_count(subnet);
}

static inline const uint8_t *record_at(const struct subnet *subnet, size_t number)
{
	return subnet->response + SA_HEADER + number * stride(subnet);
}

/* Requests all records of a type. Returns their number. */
static inline size_t ask_for_all(struct subnet *subnet, unsigned int attribute)
{
	begin(subnet, METHOD_GET_TABLE, attribute);
	return records(subnet);
}

#endif
