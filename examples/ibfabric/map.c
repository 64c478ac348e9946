/* SPDX-License-Identifier: BSD-2-Clause */

/* map: a drawing for Graphviz, the switches in levels above the hosts. */

#include "ibfabric.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>

#define TABLE "<table border=\"0\" cellborder=\"1\" cellspacing=\"0\">"

static unsigned *levels; /* by the index of the node: 0 is a host */
static unsigned top_level;
static FILE *out;

static unsigned level_of(const struct mad_fabric_port *port)
{
	return levels[port->node->index];
}

/* The level of a switch is one above the lowest of its neighbours. */
static void find_levels(const struct mad_fabric *fabric)
{
	const struct mad_fabric_port *port;

	levels = allocate(fabric->node_count, sizeof(*levels));
	for (size_t i = 0; i < fabric->node_count; i++)
		if (mad_fabric_get_node(fabric, i)->type == IB_NODE_SWITCH)
			levels[i] = UINT_MAX;
	for (unsigned level = 0; level <= top_level; level++)
		for (port = NULL; (port = mad_fabric_next_port(fabric, port));)
			if (port->peer && level_of(port->peer) == level &&
			    level_of(port) == UINT_MAX)
				levels[port->node->index] = top_level = level + 1;
	/* no host leads to these */
	top_level++;
	for (size_t i = 0; i < fabric->node_count; i++)
		if (levels[i] == UINT_MAX)
			levels[i] = top_level;
}

/* A row of the ports that lead to higher levels, or of those that lead to lower levels. */
static void print_ports(const struct mad_fabric_node *node, bool up)
{
	unsigned printed = 0;

	for (unsigned number = 0; number <= node->port_count; number++) {
		const struct mad_fabric_port *port = mad_fabric_get_port(node, number);

		if (!port || !port->peer || !is_link_selected(port) ||
		    (up ? level_of(port->peer) <= level_of(port)
			: level_of(port->peer) >= level_of(port)))
			continue;
		fprintf(out, "%s<td port=\"p%u\">%u</td>",
			printed++ ? "" : "<tr><td border=\"0\">" TABLE "<tr>", number, number);
	}
	if (printed)
		fputs("</tr></table></td></tr>", out);
}

static bool is_drawn(const struct mad_fabric_node *node)
{
	bool has_link = false;

	for (unsigned number = 0; number <= node->port_count && !has_link; number++) {
		const struct mad_fabric_port *port = mad_fabric_get_port(node, number);

		has_link = port && is_link_selected(port);
	}
	return has_link || is_selected(at_node(node));
}

static void print_node(const struct mad_fabric_node *node)
{
	char name[NAME_SIZE];

	fprintf(out, "\t\t\"%016" PRIx64 "\" [label=<" TABLE, node->guid);
	print_ports(node, true);
	fprintf(out, "<tr><td border=\"%d\">", node->type == IB_NODE_SWITCH);
	for (const char *at = node_name(node, name); *at; at++)
		fprintf(out, strchr("<>&\"", *at) ? "&#%d;" : "%c", *at);
	fputs("</td></tr>", out);
	print_ports(node, false);
	fputs("</table>>]\n", out);
}

/* From port to port. The numbers of ports to the same level are at the ends of the link. */
static void print_link(const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *peer = port->peer;
	char *faults = describe_faults(port, UINT64_MAX);
	bool is_slow = port->speed < port->speed_possible || port->width < port->width_possible;
	bool is_active = port->state == MAD_PORT_ACTIVE && peer->state == MAD_PORT_ACTIVE;

	/* from the higher level to the lower one */
	if (level_of(port) < level_of(peer)) {
		port = peer;
		peer = port->peer;
	}
	if (level_of(port) > level_of(peer))
		fprintf(out, "\t\"%016" PRIx64 "\":p%u:s -- \"%016" PRIx64 "\":p%u:n [",
			port->node->guid, port->number, peer->node->guid, peer->number);
	else
		fprintf(out,
			"\t\"%016" PRIx64 "\" -- \"%016" PRIx64
			"\" [taillabel=%u, headlabel=%u, ",
			port->node->guid, peer->node->guid, port->number, peer->number);
	fprintf(out, "color=%s, tooltip=\"%ux %s, %g Gb/s%s",
		*faults     ? "red"
		: is_slow   ? "orange"
		: is_active ? "black"
			    : "grey",
		port->width, mad_link_speed_name(port->speed), port->rate_gbps,
		*faults ? "; " : "");
	for (const char *at = faults; *at; at++)
		fprintf(out, strchr("\"\\", *at) ? "\\%c" : "%c", *at);
	fputs("\"]\n", out);
	free(faults);
}

int run_map(void)
{
	const struct mad_fabric *fabric = discover(NULL);
	const struct mad_fabric_port *port = NULL;
	int status = 0;

	judge_counters(fabric);
	find_levels(fabric);
	if (settings.svg)
		signal(SIGPIPE, SIG_IGN); /* the exit status of dot tells more */
	/* a command without arguments of others */
	out = settings.svg ? popen("dot -T svg", "w") : stdout; // NOLINT(cert-env33-c)
	if (!out)
		die("dot: %s", strerror(errno));
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
		if (port->peer && is_link_selected(port) && is_first_end(port))
			print_link(port);
	fputs("}\n", out);
	if (settings.svg)
		status = pclose(out);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		die("map --svg: dot not found; install Graphviz");
	if (status)
		die("map --svg: dot failed");
	print_failures(stderr, "ibfabric: not known: ");
	return failure_count() ? EXIT_FAILED : EXIT_CLEAN;
}
