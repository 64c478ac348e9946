/* SPDX-License-Identifier: BSD-2-Clause */

/* map: a drawing for Graphviz, the switches in levels above the hosts. */

#include "ibfabric.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define TABLE "<table border=\"0\" cellborder=\"1\" cellspacing=\"0\">"

static uint64_t *errors; /* by the index of the port */
static unsigned *levels; /* by the index of the node: 0 is a host, UINT_MAX is not known */
static unsigned top_level;
static FILE *out;

static void read_errors(const struct mad_fabric *fabric)
{
	struct mad_fabric_counters *counters = read_counters(fabric, MAD_COUNTERS_ERRORS, true);
	const struct mad_fabric_counters_port *each = NULL;

	while ((each = mad_fabric_counters_next(counters, each)))
		for (unsigned i = 0; i < THRESHOLD_COUNT && each->port && each->reading; i++) {
			uint64_t value =
				mad_counters_value(each->reading, thresholds[i].counter, NULL);

			if (value > thresholds[i].total)
				errors[each->port->index] += value;
		}
	mad_fabric_counters_free(counters);
}

/* The level of a switch is one above the lowest of its neighbours. */
static void find_levels(const struct mad_fabric *fabric)
{
	const struct mad_fabric_port *port;
	bool has_more = true;

	for (size_t i = 0; i < fabric->node_count; i++)
		if (mad_fabric_get_node(fabric, i)->type == IB_NODE_SWITCH)
			levels[i] = UINT_MAX;
	for (unsigned level = 0; has_more; level++) {
		has_more = false;
		for (port = NULL; (port = mad_fabric_next_port(fabric, port));)
			if (port->peer && levels[port->peer->node->index] == level &&
			    levels[port->node->index] == UINT_MAX) {
				levels[port->node->index] = top_level = level + 1;
				has_more = true;
			}
	}
	/* no host leads to these */
	top_level++;
	for (size_t i = 0; i < fabric->node_count; i++)
		if (levels[i] == UINT_MAX)
			levels[i] = top_level;
}

static bool is_drawn(const struct mad_fabric_node *node)
{
	for (unsigned i = 0; i <= node->port_count; i++) {
		const struct mad_fabric_port *port = mad_fabric_get_port(node, i);

		if (port && is_link_selected(port))
			return true;
	}
	return is_node_selected(node);
}

static bool is_link_drawn(const struct mad_fabric_port *port)
{
	return port->peer && is_link_selected(port);
}

/* A row of the ports that lead to higher levels, or of those that lead to lower levels. */
static void print_ports(const struct mad_fabric_node *node, bool up)
{
	unsigned level = levels[node->index], printed = 0;

	for (unsigned number = 0; number <= node->port_count; number++) {
		const struct mad_fabric_port *port = mad_fabric_get_port(node, number);

		if (!port || !is_link_drawn(port) || levels[port->peer->node->index] == level ||
		    (levels[port->peer->node->index] > level) != up)
			continue;
		if (!printed++)
			fputs("<tr><td border=\"0\">" TABLE "<tr>", out);
		fprintf(out, "<td port=\"p%u\">%u</td>", number, number);
	}
	if (printed)
		fputs("</tr></table></td></tr>", out);
}

static void print_node(const struct mad_fabric_node *node)
{
	char name[NAME_SIZE];

	fprintf(out, "\t\t\"%016" PRIx64 "\" [label=<" TABLE, node->guid);
	print_ports(node, true);
	fprintf(out, "<tr><td border=\"%d\">", node->type == IB_NODE_SWITCH);
	for (const char *at = node_name(node, name); *at; at++)
		if (strchr("<>&\"", *at))
			fprintf(out, "&#%d;", *at);
		else
			fputc(*at, out);
	fputs("</td></tr>", out);
	print_ports(node, false);
	fputs("</table>>]\n", out);
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

	/* from the higher level to the lower one */
	if (levels[port->node->index] < levels[peer->node->index]) {
		peer = port;
		port = port->peer;
	}
	if (levels[port->node->index] > levels[peer->node->index])
		fprintf(out, "\t\"%016" PRIx64 "\":p%u:s -- \"%016" PRIx64 "\":p%u:n [",
			port->node->guid, port->number, peer->node->guid, peer->number);
	else
		fprintf(out,
			"\t\"%016" PRIx64 "\" -- \"%016" PRIx64
			"\" [taillabel=%u, headlabel=%u, ",
			port->node->guid, peer->node->guid, port->number, peer->number);
	fprintf(out, "color=%s", colour(port));
	if (count)
		fprintf(out, ", label=\" %" PRIu64 " errors\"", count);
	fprintf(out, ", tooltip=\"%ux %s, %g Gb/s\"]\n", port->width,
		mad_link_speed_name(port->speed), port->rate_gbps);
}

static void print_graph(const struct mad_fabric *fabric)
{
	const struct mad_fabric_port *port = NULL;

	fputs("graph fabric {\n\tnode [shape=plain]\n\tedge [fontsize=10]\n\tranksep=1\n", out);
	print_failures(out, "\t// not known: ");
	for (unsigned level = top_level + 1; level-- > 0;) {
		fputs("\tsubgraph {\n\t\trank=same\n", out);
		for (size_t i = 0; i < fabric->node_count; i++)
			if (levels[i] == level && is_drawn(mad_fabric_get_node(fabric, i)))
				print_node(mad_fabric_get_node(fabric, i));
		fputs("\t}\n", out);
	}
	while ((port = mad_fabric_next_port(fabric, port)))
		if (is_link_drawn(port) && is_first_end(port))
			print_link(port);
	fputs("}\n", out);
}

/* Starts dot, whose input becomes the output of this program. */
static pid_t start_dot(void)
{
	int ends[2];
	pid_t child;

	if (pipe(ends))
		die("pipe: %s", strerror(errno));
	child = fork();
	if (child < 0)
		die("fork: %s", strerror(errno));
	if (!child) {
		dup2(ends[0], STDIN_FILENO);
		close(ends[0]);
		close(ends[1]);
		execlp("dot", "dot", "-T", "svg", (char *)NULL);
		_exit(127);
	}
	close(ends[0]);
	signal(SIGPIPE, SIG_IGN); /* its exit status tells more */
	out = fdopen(ends[1], "w");
	if (!out)
		die("out of memory");
	return child;
}

int run_map(void)
{
	const struct mad_fabric *fabric = discover(NULL);
	pid_t child = 0;
	int status = 0;

	check_selection(fabric, NULL);
	errors = allocate(fabric->port_count, sizeof(*errors));
	levels = allocate(fabric->node_count, sizeof(*levels));
	read_errors(fabric);
	find_levels(fabric);
	out = stdout;
	if (settings.svg)
		child = start_dot();
	print_graph(fabric);
	if (settings.svg) {
		fclose(out);
		waitpid(child, &status, 0);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		die("map --svg: Graphviz is not installed (the program dot)");
	if (status)
		die("map --svg: dot failed");
	print_failures(stderr, "ibfabric: not known: ");
	free(errors);
	free(levels);
	return failure_count() ? EXIT_FAILED : EXIT_CLEAN;
}
