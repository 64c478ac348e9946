/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Discovers the fabric again and again, and prints the nodes and links that came (+), went (-)
 * or changed (*).
 *
 *   fabric-diff [SECONDS]      after so many seconds each, 5 by default
 *
 * Exits with 1 when this node does not respond.
 */

#include <infiniband/mad_fabric.h>

#include <ctype.h>

static const char *const words[] = {
	[MAD_FABRIC_NODE_ADDED] = "+ node",   [MAD_FABRIC_NODE_REMOVED] = "- node",
	[MAD_FABRIC_NODE_CHANGED] = "* node", [MAD_FABRIC_LINK_ADDED] = "+ link",
	[MAD_FABRIC_LINK_REMOVED] = "- link", [MAD_FABRIC_LINK_CHANGED] = "* link",
	[MAD_FABRIC_PORT_CHANGED] = "* port",
};

static void print_node(const struct mad_fabric_node *node)
{
	putchar(' ');
	for (const char *at = node->description; *at; at++)
		putchar(isprint((unsigned char)*at) ? *at : '?');
	printf(" 0x%016" PRIx64, node->guid);
}

static void print_port(const struct mad_fabric_port *port)
{
	print_node(port->node);
	printf(" port %u", port->number);
}

/* What a change of a link or port may be. */
static void print_state(const struct mad_fabric_port *port)
{
	printf(" state %u/%u, %ux %s, MTU %u", port->state, port->physical_state, port->width,
	       mad_link_speed_name(port->speed), port->mtu);
}

static int print_change(const struct mad_fabric_difference *difference, void *arg)
{
	const struct mad_fabric_port *before = difference->before_port;
	const struct mad_fabric_port *after = difference->after_port;
	const struct mad_fabric_port *port = after ? after : before;

	(void)arg;
	fputs(words[difference->change], stdout);
	if (!port) {
		print_node(difference->after_node ? difference->after_node
						  : difference->before_node);
	} else {
		print_port(port);
		if (port->peer) {
			fputs(" to", stdout);
			print_port(port->peer);
		}
	}
	if (before && after) {
		fputs(": was", stdout);
		print_state(before);
		fputs(", is", stdout);
		print_state(after);
	}
	putchar('\n');
	return 0;
}

/* Without the fabric if this node does not respond. */
static struct mad_fabric *discover(struct ibmad_port *port)
{
	struct mad_fabric *fabric;
	int ret = mad_fabric_discover(port, NULL, &fabric);

	if (ret == 0)
		return fabric;
	fprintf(stderr, "fabric-diff: %s\n", strerror(-ret));
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 5;
	int classes[] = {IB_SMI_DIRECT_CLASS};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 1);
	struct mad_fabric *before = port ? discover(port) : NULL, *after;

	if (!before)
		return 1;
	setlinebuf(stdout);
	printf("%zu nodes\n", mad_fabric_node_count(before));
	while (usleep((useconds_t)(seconds * 1e6)) == 0 && (after = discover(port))) {
		mad_fabric_compare(before, after, print_change, NULL);
		mad_fabric_free(before);
		before = after;
	}
	mad_fabric_free(before);
	mad_rpc_close_port(port);
	return 1;
}
