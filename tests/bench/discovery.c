/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * discovery [MILLISECONDS]: discovers the fabric, and prints its memory for each node and for
 * each port. MILLISECONDS is the timeout of an attempt.
 *
 * The program counts only the memory in use at the end, without the engine. All of the memory
 * is divided by the number of nodes, and then by the number of ports.
 */
#include "../heap_in_use.h"

#include <infiniband/mad_fabric.h>

#include <errno.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct mad_fabric_options options = {.timeout_ms = argc > 1 ? atoi(argv[1]) : 0};
	int classes[] = {IB_SMI_DIRECT_CLASS}, error;
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 1);
	size_t before = heap_in_use(), nodes, ports, bytes;
	struct mad_fabric *fabric;

	error = port ? mad_fabric_discover(port, &options, &fabric) : -errno;
	if (error) {
		fprintf(stderr, "discovery: %s\n", strerror(-error));
		return 1;
	}
	bytes = heap_in_use() - before;
	nodes = fabric->node_count;
	ports = fabric->port_count;
	printf("%zu nodes, %zu ports, %zu failures, ", nodes, ports, fabric->problem_count);
	if (bytes)
		printf("%zu KiB: %zu bytes a node, %zu a port\n", bytes / 1024, bytes / nodes,
		       bytes / ports);
	else
		puts("memory not known");
	mad_fabric_free(fabric);
	mad_rpc_close_port(port);
	return 0;
}
