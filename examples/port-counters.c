/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shows mad_counters.h: the counters of a port as numbers, and how they are reset.
 *
 * Prints a port's counters that are not 0, with their units.
 *
 *   port-counters             the port of this node
 *   port-counters 7 3         port 3 of the node that has LID 7; 255: all of its ports together
 *   port-counters -r 7 3      sets the counters to 0 after the reading
 *
 * Exits with 0; with 1 if no response came; with 2 if the arguments are wrong.
 */

#include "program.h"

#include <infiniband/mad_counters.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void print(const struct mad_counters *counters)
{
	const struct mad_counter_info *info;
	bool counted = false;

	for (unsigned i = 0; (info = mad_counters_info(i)); i++) {
		uint64_t value = mad_counters_value(counters, i, NULL);

		counted |= value != 0;
		if (value)
			printf("%-32s %" PRIu64 " %s%s\n", info->name, value, info->unit,
			       counters->at_maximum & MAD_COUNTER_BIT(i) ? " or more" : "");
	}
	if (counters->present && !counted)
		printf("all counters are 0\n");
}

int main(int argc, char **argv)
{
	struct mad_counters_options all = {.counters = MAD_COUNTERS_ALL};
	bool reset = argc > 1 && !strcmp(argv[1], "-r");
	struct mad_counters counters;
	struct ibmad_port *port;
	ib_portid_t node = {0};
	int number = 0, error;

	argc -= reset;
	argv += reset;
	if (argc == 3) {
		node.lid = read_number(argv[1], 0, UINT16_MAX);
		number = read_number(argv[2], 0, UINT16_MAX);
	}
	if ((argc != 1 && argc != 3) || node.lid < 0 || number < 0) {
		fprintf(stderr, "usage: port-counters [-r] [LID PORT]\n");
		return 2;
	}
	if (mad_port_open(NULL, 0, &port) < 0) {
		perror("mad_port_open");
		return 1;
	}
	if (argc == 1 && ib_resolve_self_via(&node, &number, NULL, port) < 0) {
		perror("this port's LID");
		return 1;
	}
	error = mad_counters_read(port, &node, (unsigned)number, &all, &counters,
				  sizeof(counters));
	printf("LID %d port %d%s%s\n", node.lid, number, error ? ": " : "",
	       error ? strerror(-error) : "");
	print(&counters);
	if (!error && reset) {
		error = mad_counters_reset(port, &node, (unsigned)number, &all);
		printf("reset: %s\n", strerror(-error));
	}
	mad_rpc_close_port(port);
	return finish(error == -EINVAL ? 2 : error != 0);
}
