/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * own-data COUNT
 * own-data after-timeouts
 *
 * Requests NodeInfo and NodeDescription by turns, by four routes, with one ib_rpc_t: the
 * library fills in its transaction ID at the first call. Each response must be that of the node
 * and of the attribute, although late ones of earlier requests come. Prints how many were not,
 * and exits with 1 if there is one.
 *
 * The other form expects a slow node by the third route, of a second, and a silent one by the
 * fourth: after the request to the slow node has timed out, the silent node must not respond.
 */

#include <infiniband/mad.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUTES 4
/* Requests that time out between two that had the same ID once. */
#define OTHERS 16

static const ib_portid_t routes[ROUTES] = {
	{.drpath = {.cnt = 0}},
	{.drpath = {.cnt = 1, .p = {0, 1}}},
	{.drpath = {.cnt = 2, .p = {0, 1, 2}}},
	{.drpath = {.cnt = 2, .p = {0, 1, 3}}},
};
static const unsigned attributes[] = {IB_ATTR_NODE_DESC, IB_ATTR_NODE_INFO};
/* What each node responds. */
static uint8_t expected[ROUTES][2][IB_SMP_DATA_SIZE];

static bool ask(struct ibmad_port *port, ib_rpc_t *rpc, unsigned route, unsigned attribute,
		uint8_t data[IB_SMP_DATA_SIZE])
{
	ib_portid_t to = routes[route];

	rpc->attr.id = attributes[attribute];
	memset(data, 0, IB_SMP_DATA_SIZE);
	return mad_rpc(port, rpc, &to, NULL, data);
}

/* With a new ib_rpc_t each time. NodeInfo has the port that was asked: the routes are fixed. */
static bool learn(struct ibmad_port *port, const ib_rpc_t *request)
{
	for (unsigned i = 0; i < 2 * ROUTES; i++) {
		ib_rpc_t rpc = *request;

		if (!ask(port, &rpc, i / 2, i % 2, expected[i / 2][i % 2]))
			return false;
		for (unsigned j = 0; j < i; j++)
			if (!memcmp(expected[j / 2][j % 2], expected[i / 2][i % 2],
				    IB_SMP_DATA_SIZE))
				return false;
	}
	return true;
}

/* One attempt of so many milliseconds; whether there was a response. */
static bool ask_once(struct ibmad_port *port, ib_rpc_t *rpc, unsigned route, int timeout_ms)
{
	uint8_t data[IB_SMP_DATA_SIZE];

	rpc->timeout = timeout_ms;
	return ask(port, rpc, route, route % 2, data);
}

/* Returns how many requests to the silent node have a response. */
static unsigned ask_after_timeouts(struct ibmad_port *port, ib_rpc_t rpc)
{
	unsigned wrong = 0;

	mad_rpc_set_retries(port, 1);
	for (int round = 0; round < 4; round++) {
		rpc.trid = 0; /* the slow node is asked with the ID that is used again */
		if (ask_once(port, &rpc, 2, 50)) {
			printf("the slow node is not slow\n");
			exit(1);
		}
		for (int i = 0; i < OTHERS; i++)
			wrong += ask_once(port, &rpc, 3, 5);
		wrong += ask_once(port, &rpc, 3, 1500);
	}
	return wrong;
}

int main(int argc, char **argv)
{
	const ib_rpc_t request = {.mgtclass = IB_SMI_DIRECT_CLASS,
				  .method = IB_MAD_METHOD_GET,
				  .dataoffs = IB_SMP_DATA_OFFS,
				  .datasz = IB_SMP_DATA_SIZE};
	unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 1000, good = 0;
	unsigned wrong = 0;
	int classes[] = {IB_SMI_DIRECT_CLASS};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 1);
	ib_rpc_t rpc = request;

	if (port && argc > 1 && !strcmp(argv[1], "after-timeouts")) {
		wrong = ask_after_timeouts(port, request);
		printf("%u responses of a silent node\n", wrong);
		mad_rpc_close_port(port);
		return wrong != 0;
	}
	if (!port || !learn(port, &request)) {
		printf("the nodes do not respond, or not each in its way\n");
		return 1;
	}
	for (unsigned i = 0; i < count; i++) {
		unsigned route = i / 2 % ROUTES, attribute = i % 2;
		uint8_t data[IB_SMP_DATA_SIZE];

		if (!ask(port, &rpc, route, attribute, data))
			continue;
		good++;
		wrong += memcmp(data, expected[route][attribute], sizeof(data)) != 0;
	}
	printf("%u of %u successful requests had the data of another one\n", wrong, good);
	mad_rpc_close_port(port);
	return wrong || good < count - count / 10;
}
