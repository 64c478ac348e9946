/* SPDX-License-Identifier: BSD-2-Clause */

/* links and nodes: a line for each cable or node. */

#include "ibfabric.h"

static const char *physical_name(const struct mad_fabric_port *port)
{
	static const char *const names[] = {"",         "Sleep",  "Polling",  "Disabled",
					    "Training", "LinkUp", "Recovery", "Test"};

	return port->info && port->physical_state < 8 ? names[port->physical_state] : "";
}

/* Three cells: width, speed, Gb/s. */
static void add_rate(struct table *table, unsigned width, unsigned speed)
{
	add_if(table, width, "%ux", width);
	add(table, "%s", mad_link_speed_name(speed));
	add_if(table, width && speed, "%g", mad_link_rate_gbps(width, speed));
}

static void add_link(struct table *table, const struct mad_fabric_port *port)
{
	bool is_up = port->state != MAD_PORT_DOWN;

	add_place(table, at_port(port));
	add_if(table, port->gmp_lid, "%u", port->gmp_lid);
	add(table, "%s\t%s", state_name(port), physical_name(port));
	add_rate(table, port->width, port->speed);
	add_rate(table, is_up ? port->width_possible : 0, is_up ? port->speed_possible : 0);
	add_if(table, port->mtu, "%u", port->mtu);
	add_place(table, at_port(port->peer));
	add_if(table, port->peer && port->peer->gmp_lid, "%u",
	       port->peer ? port->peer->gmp_lid : 0);
	add(table, "%s", port->peer_error ? error_text(port->peer_error) : "");
}

int run_links(void)
{
	const struct mad_fabric_port **ports;
	const struct mad_fabric *fabric;
	struct table table;

	table_begin(
		&table, "links",
		"node -guid #port #-lid state -physical width speed #gbps width_possible "
		"speed_possible #-gbps_possible #-mtu peer -peer_guid #peer_port #-peer_lid "
		"-peer_error");
	fabric = discover(NULL);
	ports = sorted_ports(fabric);
	for (size_t i = 0; i < fabric->port_count; i++)
		if ((ports[i]->peer || ports[i]->peer_error || ports[i]->error) &&
		    is_first_end(ports[i]) && is_link_selected(ports[i]))
			add_link(&table, ports[i]);
	return table_print(&table, fabric);
}

static const char *type_name(const struct mad_fabric_node *node)
{
	return node->type == IB_NODE_SWITCH   ? "switch"
	       : node->type == IB_NODE_ROUTER ? "router"
	       : node->type == IB_NODE_CA     ? "host"
					      : "unknown";
}

int run_nodes(void)
{
	const struct mad_fabric_node **nodes;
	const struct mad_fabric *fabric;
	char name[NAME_SIZE];
	struct table table;

	table_begin(&table, "nodes",
		    "node guid type #lid #ports #links -vendor #device #-revision -system_guid "
		    "#hops -description");
	fabric = discover(NULL);
	nodes = sorted_nodes(fabric);
	for (size_t i = 0; i < fabric->node_count; i++) {
		const struct mad_fabric_node *node = nodes[i];
		unsigned links = 0;

		if (!is_selected(at_node(node)))
			continue;
		for (unsigned number = 0; number <= node->port_count; number++) {
			const struct mad_fabric_port *port = mad_fabric_get_port(node, number);

			links += port && port->peer;
		}
		add(&table, "%s\t0x%016" PRIx64 "\t%s", node_name(node, name), node->guid,
		    type_name(node));
		add_if(&table, node->lid, "%u", node->lid);
		add(&table, "%u\t%u\t0x%06x\t%u\t%u", node->port_count, links, node->vendor_id,
		    node->device_id, node->revision);
		add_if(&table, node->system_guid, "0x%016" PRIx64, node->system_guid);
		add(&table, "%d\t%s", node->route.cnt,
		    mad_printable_text(node->description, name, sizeof(name)));
	}
	return table_print(&table, fabric);
}
