/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shows mad.h: blocking requests, addresses as text, and the printers of attributes.
 *
 * Prints an attribute of a node's subnet management agent.
 *
 *   smp-query node                NodeInfo and NodeDescription of this node
 *   smp-query switch 7            SwitchInfo of the node that has LID 7
 *   smp-query port 0,1,3 2        PortInfo of port 2 of the node at the end of this directed
 *                                 route: by port 1 of this node and port 3 of the next node
 *
 * Exits with 0; with 1 if no response came; with 2 if the arguments are wrong.
 */

#include "program.h"

#include <infiniband/mad_errors.h>

#include <stdbool.h>

#define TEXT_SIZE 4096

static void usage(void)
{
	fprintf(stderr, "usage: smp-query node|switch|port [LID|ROUTE [PORT]]\n");
	exit(2);
}

/* "7" is a LID, "0,1,3" a directed route; "0" is the route without hops, to this node. */
static bool read_destination(ib_portid_t *to, char *text)
{
	memset(to, 0, sizeof(*to));
	if (strchr(text, ',') || !strcmp(text, "0"))
		return str2drpath(&to->drpath, text, 0, 0) >= 0;
	to->lid = read_number(text, 1, UINT16_MAX);
	return IB_LID_VALID(to->lid);
}

/* Gets an attribute and prints it with one of the library's printers. */
static bool show(struct ibmad_port *port, ib_portid_t *to, unsigned attribute, unsigned number,
		 ib_mad_dump_fn *print)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {0};
	char text[TEXT_SIZE];

	if (!smp_query_via(data, to, attribute, number, 0, port)) {
		fprintf(stderr, "%s: %s\n", portid2str(to),
			mad_failure_text(NULL, text, sizeof(text)));
		return false;
	}
	print(text, sizeof(text), data, sizeof(data));
	printf("%s%s", text, attribute == IB_ATTR_NODE_DESC ? "\n" : "");
	return true;
}

int main(int argc, char **argv)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS};
	int number = argc > 3 ? read_number(argv[3], 0, UINT8_MAX) : 0;
	char here[] = "0";
	struct ibmad_port *port;
	ib_portid_t to;
	bool done = false;

	if (argc < 2 || argc > 4 || number < 0 ||
	    !read_destination(&to, argc > 2 ? argv[2] : here))
		usage();
	port = mad_rpc_open_port(NULL, 0, classes, 2);
	if (!port) {
		perror("mad_rpc_open_port");
		return 1;
	}
	if (!strcmp(argv[1], "node"))
		done = show(port, &to, IB_ATTR_NODE_INFO, 0, mad_dump_nodeinfo) &&
		       show(port, &to, IB_ATTR_NODE_DESC, 0, mad_dump_nodedesc);
	else if (!strcmp(argv[1], "switch"))
		done = show(port, &to, IB_ATTR_SWITCH_INFO, 0, mad_dump_switchinfo);
	else if (!strcmp(argv[1], "port"))
		done = show(port, &to, IB_ATTR_PORT_INFO, (unsigned)number, mad_dump_portinfo);
	else
		usage();
	mad_rpc_close_port(port);
	return finish(!done);
}
