/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * protect M_KEY LEVEL
 *
 * Gives each port of the fabric that has a LID this M_Key and protection level (IBA 14.2.4), as
 * a subnet manager does, and prints their number.
 */
#include <infiniband/mad_fabric.h>

#include <err.h>
#include <stdlib.h>
#include <string.h>

static unsigned protect(struct ibmad_port *port, const struct mad_fabric_node *node,
			unsigned number, uint64_t m_key, unsigned level)
{
	const struct mad_fabric_port *end = mad_fabric_get_port(node, number);
	ib_portid_t to = {.drpath = node->route};
	uint8_t info[IB_SMP_DATA_SIZE];

	/* the route to a CA leads to one of its ports, and only that port can be set */
	if (!end || !end->info || !end->lid ||
	    (node->type != IB_NODE_SWITCH && number != node->entry_port))
		return 0;
	memcpy(info, end->info, sizeof(info));
	mad_set_field64(info, 0, IB_PORT_MKEY_F, m_key);
	mad_set_field(info, 0, IB_PORT_MKEY_PROT_BITS_F, level);
	mad_set_field(info, 0, IB_PORT_STATE_F, 0);
	mad_set_field(info, 0, IB_PORT_PHYS_STATE_F, 0);
	if (!smp_set_via(info, &to, IB_ATTR_PORT_INFO, number, 0, port))
		errx(1, "%s port %u", node->description, number);
	return 1;
}

int main(int argc, char **argv)
{
	int classes[] = {IB_SMI_DIRECT_CLASS}, error;
	struct ibmad_port *port;
	struct mad_fabric *fabric;
	unsigned count = 0, level;
	uint64_t m_key;

	if (argc != 3)
		errx(1, "usage: protect M_KEY LEVEL");
	m_key = strtoull(argv[1], NULL, 0);
	level = (unsigned)atoi(argv[2]);
	port = mad_rpc_open_port(NULL, 0, classes, 1);
	if (!port)
		err(1, "open");
	error = mad_fabric_discover(port, NULL, &fabric);
	if (error)
		errx(1, "discover: %s", strerror(-error));
	for (size_t i = 0; i < fabric->node_count; i++) {
		const struct mad_fabric_node *node = mad_fabric_get_node(fabric, i);

		for (unsigned number = 0; number <= node->port_count; number++)
			count += protect(port, node, number, m_key, level);
	}
	printf("%u ports\n", count);
	mad_fabric_free(fabric);
	mad_rpc_close_port(port);
	return 0;
}
