/* SPDX-License-Identifier: BSD-2-Clause */

/* Subnet administrator (SA): records of nodes, ports and links (IBA 15.2.5.2 - 15.2.5.14). */
#include "sa_match.h"
#include "sma.h"

static bool is_switch(const struct sa_request *request, uint32_t port)
{
	return hardware(request->fabric, cable(request->fabric, port)->node)->type ==
	       NODE_SWITCH;
}

/* Reads an attribute as a node would return it to that end port. */
static bool ask(const struct sa_request *request, uint32_t port, unsigned int attribute,
		uint32_t modifier, uint8_t *data)
{
	const struct graph_port *end = cable(request->fabric, port);

	return sma_read(request->fabric, end->node, attribute, modifier, end->number, data);
}

static void put_lid(const struct sa_request *request, uint32_t port, uint8_t *record)
{
	put16(record, request->fabric->ports[port].lid);
}

static bool visit_node(struct sa_request *request, uint32_t port)
{
	uint8_t record[4 + SMP_DATA + SMP_DATA] = {0};

	put_lid(request, port, record);
	ask(request, port, IB_ATTR_NODE_INFO, 0, record + 4);
	ask(request, port, IB_ATTR_NODE_DESC, 0, record + 44); /* after 40 bytes of NodeInfo */
	return sa_offer(request, record);
}

static void walk_nodes(struct sa_request *request)
{
	sa_each_end_port(request, visit_node);
}

static const uint16_t node_fields[] = {16, 16, 8, 8, 8, 8, 64, 64, 64, 16, 16, 32, 8, 24, 512};

const struct record_type node_record = {
	.attribute = IB_SA_ATTR_NODERECORD,
	.size = 108,
	FIELDS(node_fields),
	.walk = walk_nodes,
};

/* Components of PortInfoRecord, and the attribute modifier's bit (IBA 15.2.5.3). */
#define PORT_NUMBER         COMPONENT(1)
#define PORT_OPTIONS        COMPONENT(2)
#define CAPABILITIES        COMPONENT(7)
#define ALL_OF_CAPABILITIES (1U << 31)

static bool offer_port(struct sa_request *request, uint32_t end, uint32_t port)
{
	const uint8_t *wanted = request->record;
	unsigned int number = cable(request->fabric, port)->number;
	uint8_t record[4 + SMP_DATA];

	put_lid(request, end, record);
	record[2] = (uint8_t)number;
	record[3] = wanted[3];
	ask(request, end, IB_ATTR_PORT_INFO, number, record + 4);
	if (!request->trusted)
		mad_set_field64(record, 4, IB_PORT_MKEY_F, 0);
	if (request->mask & CAPABILITIES && mad_modifier(request->mad) & ALL_OF_CAPABILITIES) {
		uint32_t bits = get32(wanted + 24);
		uint64_t mask = request->mask;
		bool more = true;

		request->mask &= ~CAPABILITIES;
		if ((get32(record + 24) & bits) == bits)
			more = sa_offer(request, record);
		request->mask = mask;
		return more;
	}
	return sa_offer(request, record);
}

/* The last port of a node that an end port stands for: all ports of a switch, else only the end
 * port itself. */
static uint32_t last_port(const struct sa_request *request, uint32_t end)
{
	if (!is_switch(request, end))
		return end;
	return end + hardware(request->fabric, cable(request->fabric, end)->node)->port_count;
}

/* Whether a request selects all ports, or the one with that number. */
static bool wants_port(const struct sa_request *request, uint64_t component,
		       unsigned int wanted, uint32_t port)
{
	return !(request->mask & component) || cable(request->fabric, port)->number == wanted;
}

static bool visit_ports(struct sa_request *request, uint32_t end)
{
	for (uint32_t port = end; port <= last_port(request, end); port++)
		if (wants_port(request, PORT_NUMBER, request->record[2], port) &&
		    !offer_port(request, end, port))
			return false;
	return true;
}

static void walk_ports(struct sa_request *request)
{
	/* the options select what is in a record; ours always have all of PortInfo */
	request->mask &= ~PORT_OPTIONS;
	sa_each_end_port(request, visit_ports);
}

static const uint16_t port_fields[] = {
	16, 8,  8,  64, 64, 16, 16, 32, 16, 16, 8, 8,  8, 8,  4,  4, 4, 4, 2,
	3,  3,  4,  4,  4,  4,  4,  4,  8,  8,  8, 4,  4, 3,  5,  4, 1, 1, 1,
	1,  16, 16, 16, 8,  3,  5,  3,  5,  4,  4, 16, 8, 24, 16, 4, 4, 3, 5,
};

const struct record_type port_info_record = {
	.attribute = IB_SA_ATTR_PORTINFORECORD,
	.size = 68,
	FIELDS(port_fields),
	.walk = walk_ports,
};

static bool visit_switch(struct sa_request *request, uint32_t port)
{
	uint8_t record[4 + SMP_DATA] = {0};

	put_lid(request, port, record);
	if (!ask(request, port, IB_ATTR_SWITCH_INFO, 0, record + 4))
		return true;
	return sa_offer(request, record);
}

static void walk_switches(struct sa_request *request)
{
	sa_each_end_port(request, visit_switch);
}

static const uint16_t switch_fields[] = {16, 16, 16, 16, 16, 16, 8, 8, 8, 5,
					 1,  2,  16, 16, 1,  1,  1, 1, 1, 3};

const struct record_type switch_info_record = {
	.attribute = IB_SA_ATTR_SWITCHINFORECORD,
	.size = 24,
	FIELDS(switch_fields),
	.walk = walk_switches,
};

static bool visit_manager(struct sa_request *request, uint32_t port)
{
	uint8_t record[4 + SMP_DATA] = {0};

	if (port != request->fabric->sm_port)
		return true;
	put_lid(request, port, record);
	ask(request, port, IB_ATTR_SMINFO, 0, record + 4);
	return sa_offer(request, record);
}

static void walk_managers(struct sa_request *request)
{
	sa_each_end_port(request, visit_manager);
}

static const uint16_t manager_fields[] = {16, 16, 64, 64, 32, 4, 4};

const struct record_type sm_info_record = {
	.attribute = IB_SA_ATTR_SMINFORECORD,
	.size = 25,
	FIELDS(manager_fields),
	.walk = walk_managers,
};

/* Each link has two records, one per end. */
static bool visit_links(struct sa_request *request, uint32_t end)
{
	struct fabric *fabric = request->fabric;

	for (uint32_t port = end; port <= last_port(request, end); port++) {
		uint32_t peer = cable(fabric, port)->peer;
		uint8_t record[8] = {0};

		if (!wants_port(request, COMPONENT(1), request->record[2], port) ||
		    peer == NONE || !link_is_up(fabric, port) || !link_is_up(fabric, peer) ||
		    !sa_in_subnet(fabric, end_port(fabric, peer)))
			continue;
		put_lid(request, end, record);
		record[2] = cable(fabric, port)->number;
		record[3] = cable(fabric, peer)->number;
		put_lid(request, end_port(fabric, peer), record + 4);
		if (!sa_offer(request, record))
			return false;
	}
	return true;
}

static void walk_links(struct sa_request *request)
{
	sa_each_end_port(request, visit_links);
}

static const uint16_t link_fields[] = {16, 8, 8, 16};

const struct record_type link_record = {
	.attribute = IB_SA_ATTR_LINKRECORD,
	.size = 8,
	FIELDS(link_fields),
	.walk = walk_links,
};
