/* SPDX-License-Identifier: BSD-2-Clause */

/* Checks a topology and rules without running a fabric. */
#include <stdio.h>

#include "capture.h"
#include "check.h"
#include "fault_rules.h"
#include "printable.h"
#include "program.h"
#include "rules.h"
#include "topology.h"

static void print_summary(const struct fabric *fabric, const struct options *options,
			  const struct rules *rules)
{
	unsigned int nodes[NODE_ROUTER + 1] = {0};
	unsigned int ends = 0;

	for (uint32_t node = 0; node < fabric->graph.node_count; node++)
		nodes[hardware(fabric, node)->type]++;
	for (uint32_t port = 0; port < fabric->graph.port_count; port++)
		ends += cable(fabric, port)->peer != NONE;
	printf("%s: %u CAs, %u switches, %u routers, %u cables; %u rules\n", options->topology,
	       nodes[NODE_CA], nodes[NODE_SWITCH], nodes[NODE_ROUTER], ends / 2, rules->count);
}

/* Checks the nodes and the port of --at and --capture-at. Returns 0 or a negative errno, with
 * the reason on stderr. */
static int check_places(const struct fabric *fabric, const struct options *options)
{
	char why[256];
	uint32_t port;
	int error = options->at ? view_check_nodes(fabric, options->at, why) : 0;

	if (error) {
		make_printable(why);
		fprintf(stderr, "umad-sim: %s\n", why);
		return error;
	}
	if (!options->server.capture_at)
		return 0;
	error = capture_port(fabric, options->server.capture_at, &port, why);
	if (error) {
		make_printable(why);
		fprintf(stderr, "umad-sim: %s\n", why);
	}
	return error;
}

int check(const struct options *options)
{
	struct server_options quiet = options->server;
	struct topology_error wrong = {0};
	struct rules rules = {.all = true};
	struct server server;
	struct graph graph;
	char why[256];
	int error, rules_error;

	quiet.trace = quiet.capture = quiet.capture_at = quiet.stats = NULL;
	graph_init(&graph);
	if (topology_load(&graph, options->topology, &wrong)) {
		fprintf(stderr, "umad-sim: %s\n", wrong.text);
		graph_free(&graph);
		return STATUS_FAILED;
	}
	error = server_prepare(&server, &graph, &quiet, why);
	if (error) {
		fprintf(stderr, "umad-sim: %s\n", why);
	} else {
		fault_hold(&server.fabric);
		error = check_places(&server.fabric, options);
		rules_error = rules_apply(&server.fabric, options, &rules);
		error = error ? error : rules_error;
	}
	if (!error)
		print_summary(&server.fabric, options, &rules);
	server_free(&server);
	return error ? STATUS_FAILED : 0;
}
