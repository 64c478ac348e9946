/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * discover [PORT]: discovers the fabric, and prints a line for each node, each end of a link,
 * each failure and each oddity.
 */
#include <infiniband/mad_fabric.h>

#include <stdio.h>

static const char *name(const struct mad_fabric_node *node)
{
	static const char letters[] = "?HSR";
	static char names[2][32];
	static int turn;

	turn = !turn;
	snprintf(names[turn], sizeof(names[turn]), "%c-%016" PRIx64,
		 letters[node->type > IB_NODE_ROUTER ? 0 : node->type], node->guid);
	return names[turn];
}

static void print_node(const struct mad_fabric_node *node)
{
	printf("node %s %u \"%s\"\n", name(node), node->port_count, node->description);
	for (unsigned number = 0; number <= node->port_count; number++) {
		const struct mad_fabric_port *port = mad_fabric_port(node, number);

		if (port && port->peer)
			printf("link %s %u %s %u %ux%s\n", name(node), number,
			       name(port->peer->node), port->peer->number, port->width,
			       mad_link_speed_name(port->speed));
		if (port && port->lid && (!number || port->peer))
			printf("lid %s %u lmc %u\n", name(node), port->lid, port->lmc);
	}
}

int main(int argc, char **argv)
{
	int classes[] = {IB_SMI_DIRECT_CLASS}, error;
	struct ibmad_port *port =
		mad_rpc_open_port(NULL, argc > 1 ? atoi(argv[1]) : 0, classes, 1);
	struct mad_fabric *fabric;

	if (!port) {
		perror("mad_rpc_open_port");
		return 1;
	}
	error = mad_fabric_discover(port, NULL, &fabric);
	if (error) {
		fprintf(stderr, "mad_fabric_discover: %s\n", strerror(-error));
		return 1;
	}
	for (size_t i = 0; i < mad_fabric_node_count(fabric); i++)
		print_node(mad_fabric_node(fabric, i));
	for (size_t i = 0; i < mad_fabric_failure_count(fabric); i++) {
		const struct mad_fabric_failure *failure = mad_fabric_failure(fabric, i);

		printf("failure %s \"%s\": %s\n", failure->behind ? "behind" : "of",
		       failure->behind ? failure->behind->node->description
				       : failure->node->description,
		       strerror(-failure->error));
	}
	for (size_t i = 0; i < mad_fabric_oddity_count(fabric); i++)
		printf("odd: %s\n", mad_fabric_oddity_text(mad_fabric_oddity(fabric, i)->kind));
	mad_fabric_free(fabric);
	mad_rpc_close_port(port);
	return 0;
}
