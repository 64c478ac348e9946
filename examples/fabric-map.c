/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shows mad_fabric.h, and many readings of counters at once on an engine.
 *
 * Prints the fabric as a graph of Graphviz, the switches in levels above the hosts:
 *
 *   fabric-map | dot -T svg > fabric.svg
 *
 * A link is red if one of its ports counted errors, orange if it is slower or narrower than
 * both ports support, grey if it is not Active. Switches that no host leads to are at the top.
 * Exits with 0; with 1 if something is not known, which it says; with 2 if an argument is
 * wrong.
 *
 *   -k M_KEY           the M_Key of the fabric
 *   -l SECONDS         ends the discovery after this time; the map has the part that is known
 */

#include "program.h"

#include <infiniband/mad_counters.h>
#include <infiniband/mad_errors.h>
#include <infiniband/mad_fabric.h>

#include <ctype.h>
#include <err.h>
#include <limits.h>

#define TABLE "<table border=\"0\" cellborder=\"1\" cellspacing=\"0\">"

static uint64_t *errors; /* by the index of the port */
static unsigned *levels; /* by the index of the node: 0 is a host, UINT_MAX is not known */
static unsigned top_level, unknown_count;

static void counters_read(struct mad_async *async, int error,
			  const struct mad_counters *counters, void *arg)
{
	(void)async;
	unknown_count += error != 0;
	for (unsigned i = 0; i < MAD_COUNTER_COUNT && !error; i++)
		if (MAD_COUNTERS_ERRORS & MAD_COUNTER_BIT(i))
			*(uint64_t *)arg += mad_counters_value(counters, i, NULL);
}

/* Of all ports that have a link. Counts those that could not be read. */
static void read_errors(struct ibmad_port *ibmad_port, const struct mad_fabric *fabric)
{
	const struct mad_counters_options options = {.counters = MAD_COUNTERS_ERRORS,
						     .basic = true};
	struct mad_async *async = mad_async_create(ibmad_port);
	const struct mad_fabric_port *port = NULL;

	while (async && (port = mad_fabric_next_port(fabric, port))) {
		ib_portid_t to = {.lid = port->gmp_lid};

		if (!port->peer)
			continue;
		if (!to.lid || mad_counters_submit(async, &to, port->number, &options,
						   counters_read, &errors[port->index], NULL))
			unknown_count++;
	}
	if (!async || mad_async_wait(async, -1) < 0)
		warn("counters");
	mad_async_free(async);
}

/* The level of a switch is one above the lowest of its neighbours. */
static void find_levels(const struct mad_fabric *fabric)
{
	const struct mad_fabric_port *port;
	unsigned above;
	bool found = true;

	for (size_t i = 0; i < fabric->node_count; i++)
		levels[i] =
			mad_fabric_get_node(fabric, i)->type == IB_NODE_SWITCH ? UINT_MAX : 0;
	for (unsigned level = 0; found; level++) {
		found = false;
		for (port = NULL; (port = mad_fabric_next_port(fabric, port));)
			if (port->peer && levels[port->peer->node->index] == level &&
			    levels[port->node->index] == UINT_MAX) {
				levels[port->node->index] = top_level = level + 1;
				found = true;
			}
	}
	/* no host leads to these */
	above = top_level + 1;
	for (size_t i = 0; i < fabric->node_count; i++)
		if (levels[i] == UINT_MAX)
			levels[i] = top_level = above;
}

/* A row of the ports that lead to higher levels, or of those that lead to lower levels. */
static void print_ports(const struct mad_fabric_node *node, bool up)
{
	unsigned level = levels[node->index], printed = 0;

	for (unsigned number = 0; number <= node->port_count; number++) {
		const struct mad_fabric_port *port = mad_fabric_get_port(node, number);

		if (!port || !port->peer || levels[port->peer->node->index] == level ||
		    (levels[port->peer->node->index] > level) != up)
			continue;
		if (!printed++)
			printf("<tr><td border=\"0\">" TABLE "<tr>");
		printf("<td port=\"p%u\">%u</td>", number, number);
	}
	if (printed)
		printf("</tr></table></td></tr>");
}

/* The numbers of the ports above and below the name, in Graphviz' language for tables. */
static void print_node(const struct mad_fabric_node *node)
{
	bool is_switch = node->type == IB_NODE_SWITCH;

	printf("\t\t\"%016" PRIx64 "\" [label=<" TABLE, node->guid);
	print_ports(node, true);
	printf("<tr><td border=\"%d\">", is_switch);
	for (const char *at = node->description; *at; at++)
		if (strchr("<>&", *at))
			printf("&#%d;", *at);
		else
			putchar(isprint((unsigned char)*at) ? *at : '?');
	printf("</td></tr>");
	print_ports(node, false);
	printf("</table>>]\n");
}

static const char *colour(const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *peer = port->peer;

	if (errors[port->index] || errors[peer->index])
		return "red";
	if (port->speed < port->speed_possible || port->width < port->width_possible)
		return "orange";
	return port->state == MAD_PORT_ACTIVE && peer->state == MAD_PORT_ACTIVE ? "black"
										: "grey";
}

/* From port to port. The numbers of ports to the same level are at the ends of the link. */
static void print_link(const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *peer = port->peer;
	uint64_t count = errors[port->index] + errors[peer->index];

	if (levels[port->node->index] > levels[peer->node->index])
		printf("\t\"%016" PRIx64 "\":p%u:s -- \"%016" PRIx64 "\":p%u:n [",
		       port->node->guid, port->number, peer->node->guid, peer->number);
	else
		printf("\t\"%016" PRIx64 "\" -- \"%016" PRIx64
		       "\" [taillabel=%u, headlabel=%u, ",
		       port->node->guid, peer->node->guid, port->number, peer->number);
	printf("color=%s", colour(port));
	if (count)
		printf(", label=\" %" PRIu64 " errors\"", count);
	printf(", tooltip=\"%ux %s, %g Gb/s\"]\n", port->width,
	       mad_link_speed_name(port->speed), port->rate_gbps);
}

static bool is_first_end(const struct mad_fabric_port *port)
{
	unsigned level = levels[port->node->index], peers = levels[port->peer->node->index];

	/* a port may be cabled to itself */
	return level > peers || (level == peers && port->index <= port->peer->index);
}

static void print_graph(const struct mad_fabric *fabric)
{
	const struct mad_fabric_port *port = NULL;

	printf("graph fabric {\n\tnode [shape=plain]\n\tedge [fontsize=10]\n\tranksep=1\n");
	for (unsigned level = top_level + 1; level-- > 0;) {
		printf("\tsubgraph {\n\t\trank=same\n");
		for (size_t i = 0; i < fabric->node_count; i++)
			if (levels[i] == level)
				print_node(mad_fabric_get_node(fabric, i));
		printf("\t}\n");
	}
	while ((port = mad_fabric_next_port(fabric, port)))
		if (port->peer && is_first_end(port))
			print_link(port);
	printf("}\n");
}

int main(int argc, char **argv)
{
	int option;
	bool valid = true, failed;
	struct mad_fabric_options options = {.partial = true};
	struct mad_fabric *fabric = NULL;
	struct ibmad_port *port;
	char text[MAD_FABRIC_PROBLEM_TEXT_SIZE];

	while ((option = getopt(argc, argv, "k:l:")) != -1)
		valid &= option == 'k'   ? read_m_key(optarg, &options.m_key)
			 : option == 'l' ? (options.time_limit_ms = read_ms(optarg)) != 0
					 : false;
	if (!valid || optind < argc)
		errx(2, "usage: fabric-map [-k M_KEY] [-l SECONDS]");
	failed = mad_port_open(NULL, 0, &port) || mad_fabric_discover(port, &options, &fabric);
	if (failed)
		warnx("%s", mad_failure_text(NULL, text, sizeof(text)));
	if (!fabric)
		return 1;
	errors = calloc(fabric->port_count, sizeof(*errors));
	levels = calloc(fabric->node_count, sizeof(*levels));
	if (!errors || !levels)
		return 1;
	read_errors(port, fabric);
	if (unknown_count)
		warnx("the errors of %u ports are not known", unknown_count);
	for (size_t i = 0; i < fabric->problem_count; i++, unknown_count++)
		warnx("%s", mad_fabric_problem_text(mad_fabric_get_problem(fabric, i), text,
						    sizeof(text)));
	find_levels(fabric);
	print_graph(fabric);
	free(errors);
	free(levels);
	mad_fabric_free(fabric);
	mad_rpc_close_port(port);
	return finish(failed || unknown_count);
}
