/* SPDX-License-Identifier: BSD-2-Clause */

/* Subnet administrator (SA): records of the nodes' tables, one per block (IBA 15.2.5.4 -
 * 15.2.5.12). Requests one block after the other until the node has no more. */
#include "links.h"
#include "sa_match.h"
#include "settings.h"
#include "sma.h"

#define HEAD            8                     /* bytes of a record before its block */
#define GUIDS_PER_BLOCK 8                     /* of GUIDInfo */
#define OF_BLOCK        0x3                   /* components: LID and block */
#define OF_GUID(i)      COMPONENT(4 + (i))    /* components: a GUID of the block */
#define ASSIGNED_GUID   0x0014050000000000ULL /* plus a number: a GUID assigned by the SA */

/* The blocks or ports to request: the one in a component, or all. */
struct range {
	uint32_t first;
	uint32_t last;
};

static struct range range_of(const struct sa_request *request, unsigned int component,
			     uint32_t wanted, uint32_t first, uint32_t last)
{
	if (!(request->mask & COMPONENT(component)))
		return (struct range){first, last};
	if (wanted < first || wanted > last)
		return (struct range){1, 0};
	return (struct range){wanted, wanted};
}

static bool ask(const struct sa_request *request, uint32_t port, unsigned int attribute,
		uint32_t modifier, uint8_t *record)
{
	const struct graph_port *end = cable(request->fabric, port);

	return sma_read(request->fabric, end->node, attribute, modifier, end->number,
			record + HEAD);
}

static const struct graph_node *node_of(const struct sa_request *request, uint32_t port)
{
	return hardware(request->fabric, cable(request->fabric, port)->node);
}

static bool is_switch(const struct sa_request *request, uint32_t port)
{
	return node_of(request, port)->type == NODE_SWITCH;
}

static uint16_t lid_of(const struct sa_request *request, uint32_t port)
{
	return request->fabric->ports[port].lid;
}

/* The ports of a node that may have records: all of a switch, else just the end port. */
static struct range ports_of(const struct sa_request *request, uint32_t port,
			     unsigned int component, unsigned int wanted)
{
	uint8_t number = cable(request->fabric, port)->number;

	if (is_switch(request, port))
		return range_of(request, component, wanted, 0,
				node_of(request, port)->port_count);
	return range_of(request, component, wanted, number, number);
}

static bool visit_guids(struct sa_request *request, uint32_t port)
{
	struct range blocks = range_of(request, 1, request->record[2], 0, 255);
	uint8_t record[HEAD + SMP_DATA] = {0};

	put16(record, lid_of(request, port));
	for (uint32_t block = blocks.first; block <= blocks.last; block++) {
		record[2] = (uint8_t)block;
		if (!ask(request, port, IB_ATTR_GUID_INFO, block, record))
			break;
		if (!sa_offer(request, record))
			return false;
	}
	return true;
}

static void walk_guids(struct sa_request *request)
{
	sa_each_end_port(request, visit_guids);
}

/* Set and Delete (IBA 15.2.5.18): the components select GUIDs of the block. A port's first GUID
 * is its own and cannot be changed. */
static unsigned int check_guids(const struct sa_request *request, uint32_t *port)
{
	const uint8_t *wanted = request->record;

	if ((request->mask & OF_BLOCK) != OF_BLOCK)
		return SA_INSUFFICIENT_COMPONENTS;
	*port = lid_owner(request->fabric, (uint16_t)get16(wanted));
	if (*port == NONE || !sa_in_subnet(request->fabric, *port) ||
	    wanted[2] * GUIDS_PER_BLOCK >= guid_capacity(request->fabric, *port))
		return SA_NO_RECORDS;
	return request->mask & OF_GUID(0) ? SA_INVALID : STATUS_OK;
}

/* Makes a GUID, as opensm does. */
static uint64_t make_guid(struct sa *sa)
{
	uint64_t guid;

	do {
		guid = ASSIGNED_GUID | ++sa->last_alias;
	} while (sa_find_any_guid(sa, guid) != NONE);
	return guid;
}

/*
 * A GUID in use, at this port or another, changes nothing; nor does 0 if the entry has a GUID.
 */
static void set_guid(struct sa *sa, uint64_t *guid, uint64_t wanted)
{
	if (!wanted && *guid)
		return;
	if (!wanted)
		wanted = make_guid(sa);
	else if (sa_find_any_guid(sa, wanted) != NONE)
		return;
	*guid = wanted;
}

static unsigned int change_guids(struct sa_request *request, bool remove)
{
	struct port_settings *settings;
	uint32_t port = NONE;
	unsigned int status = check_guids(request, &port);

	if (status)
		return status;
	settings = settings_of(request->fabric, port);
	if (!settings)
		return SA_NO_RESOURCES;
	for (unsigned int i = 1; i < guid_capacity(request->fabric, port); i++) {
		if (!(request->mask & OF_GUID(i)))
			continue;
		if (remove)
			settings->guids[i] = 0;
		else
			set_guid(request->sa, &settings->guids[i],
				 get64(request->record + HEAD + 8UL * i));
	}
	port_changed(request->fabric, port);
	put16(request->record, lid_of(request, port));
	ask(request, port, IB_ATTR_GUID_INFO, 0, request->record);
	return STATUS_OK;
}

static unsigned int set_guids(struct sa_request *request)
{
	return change_guids(request, false);
}

static unsigned int remove_guids(struct sa_request *request)
{
	return change_guids(request, true);
}

static const uint16_t guid_fields[] = {16, 8, 8, 32, 64, 64, 64, 64, 64, 64, 64, 64};

const struct record_type guid_info_record = {
	.attribute = IB_SA_ATTR_GUIDINFORECORD,
	.size = HEAD + 64,
	FIELDS(guid_fields),
	.walk = walk_guids,
	.set = set_guids,
	.remove = remove_guids,
};

static bool visit_pkeys(struct sa_request *request, uint32_t port)
{
	struct range blocks = range_of(request, 1, get16(request->record + 2), 0, 0xffff);
	struct range ports = ports_of(request, port, 2, request->record[4]);
	uint8_t record[HEAD + SMP_DATA] = {0};

	put16(record, lid_of(request, port));
	for (uint32_t number = ports.first; number <= ports.last; number++) {
		for (uint32_t block = blocks.first; block <= blocks.last; block++) {
			uint32_t of_port = is_switch(request, port) ? number << 16 : 0;

			put16(record + 2, block);
			record[4] = (uint8_t)number;
			if (!ask(request, port, IB_ATTR_PKEY_TBL, of_port | block, record))
				break;
			if (!sa_offer(request, record))
				return false;
		}
	}
	return true;
}

static void walk_pkeys(struct sa_request *request)
{
	sa_each_end_port(request, visit_pkeys);
}

static const uint16_t pkey_fields[] = {16, 16, 8, 24, 512};

const struct record_type pkey_record = {
	.attribute = IB_SA_ATTR_PKEYTABLERECORD,
	.size = HEAD + 64,
	FIELDS(pkey_fields),
	.walk = walk_pkeys,
};

/* A switch has a mapping per pair of ports, other nodes just one (IBA 14.2.5.8). */
static bool visit_sl_to_vl(struct sa_request *request, uint32_t port)
{
	uint32_t last_input = is_switch(request, port) ? node_of(request, port)->port_count : 0;
	struct range inputs = range_of(request, 1, request->record[2], 0, last_input);
	struct range outputs = ports_of(request, port, 2, request->record[3]);
	uint8_t record[HEAD + SMP_DATA] = {0};

	put16(record, lid_of(request, port));
	for (uint32_t output = outputs.first; output <= outputs.last; output++) {
		for (uint32_t input = inputs.first; input <= inputs.last; input++) {
			record[2] = (uint8_t)input;
			record[3] = (uint8_t)output;
			if (ask(request, port, IB_ATTR_SLVL_TABLE, input << 8 | output,
				record) &&
			    !sa_offer(request, record))
				return false;
		}
	}
	return true;
}

static void walk_sl_to_vl(struct sa_request *request)
{
	sa_each_end_port(request, visit_sl_to_vl);
}

static const uint16_t sl_to_vl_fields[] = {16, 8, 8, 32, 64};

const struct record_type sl_to_vl_record = {
	.attribute = IB_SA_ATTR_SL2VLTABLERECORD,
	.size = HEAD + 8,
	FIELDS(sl_to_vl_fields),
	.walk = walk_sl_to_vl,
};

static bool visit_vl_arbitration(struct sa_request *request, uint32_t port)
{
	struct range ports = ports_of(request, port, 1, request->record[2]);
	struct range blocks = range_of(request, 2, request->record[3], 1, 255);
	uint8_t record[HEAD + SMP_DATA] = {0};

	put16(record, lid_of(request, port));
	for (uint32_t number = ports.first; number <= ports.last; number++) {
		for (uint32_t block = blocks.first; block <= blocks.last; block++) {
			record[2] = (uint8_t)number;
			record[3] = (uint8_t)block;
			if (!ask(request, port, IB_ATTR_VL_ARBITRATION, block << 16 | number,
				 record))
				break;
			if (!sa_offer(request, record))
				return false;
		}
	}
	return true;
}

static void walk_vl_arbitration(struct sa_request *request)
{
	sa_each_end_port(request, visit_vl_arbitration);
}

static const uint16_t vl_arbitration_fields[] = {16, 8, 8, 32, 512};

const struct record_type vl_arbitration_record = {
	.attribute = IB_SA_ATTR_VLARBTABLERECORD,
	.size = HEAD + 64,
	FIELDS(vl_arbitration_fields),
	.walk = walk_vl_arbitration,
};

/* The last block of a forwarding table has LinearFDBTop (IBA 14.2.5.4). */
static bool visit_linear(struct sa_request *request, uint32_t port)
{
	uint32_t top = request->fabric->nodes[cable(request->fabric, port)->node].linear_top;
	struct range blocks = range_of(request, 1, get16(request->record + 2), 0, top / 64);
	uint8_t record[HEAD + SMP_DATA] = {0};

	put16(record, lid_of(request, port));
	for (uint32_t block = blocks.first; block <= blocks.last; block++) {
		put16(record + 2, block);
		if (!ask(request, port, IB_ATTR_LINEARFORWTBL, block, record))
			break;
		if (!sa_offer(request, record))
			return false;
	}
	return true;
}

static void walk_linear(struct sa_request *request)
{
	sa_each_end_port(request, visit_linear);
}

static const uint16_t linear_fields[] = {16, 16, 32, 512};

const struct record_type linear_record = {
	.attribute = IB_SA_ATTR_LFTRECORD,
	.size = HEAD + 64,
	FIELDS(linear_fields),
	.walk = walk_linear,
};

static bool is_blank(const uint8_t block[64])
{
	for (unsigned int i = 0; i < 64; i++)
		if (block[i])
			return false;
	return true;
}

#define MULTICAST_BLOCK 3 /* a component */

/* Position: 4 bits, reserved: 3, block: 9. Empty blocks are returned only if named. */
static bool visit_multicast(struct sa_request *request, uint32_t port)
{
	uint32_t wanted = get16(request->record + 2);
	struct range blocks = range_of(request, MULTICAST_BLOCK, wanted & 0x1ff, 0, 0x1ff);
	struct range positions =
		range_of(request, 1, wanted >> 12, 0, node_of(request, port)->port_count / 16U);
	bool named = (request->mask & COMPONENT(MULTICAST_BLOCK)) != 0;
	uint8_t record[HEAD + SMP_DATA] = {0};

	put16(record, lid_of(request, port));
	for (uint32_t block = blocks.first; block <= blocks.last; block++) {
		for (uint32_t position = positions.first; position <= positions.last;
		     position++) {
			put16(record + 2, position << 12 | block);
			if (!ask(request, port, IB_ATTR_MULTICASTFORWTBL,
				 position << 28 | block, record))
				return true;
			if ((named || !is_blank(record + HEAD)) && !sa_offer(request, record))
				return false;
		}
	}
	return true;
}

static void walk_multicast(struct sa_request *request)
{
	sa_each_end_port(request, visit_multicast);
}

static const uint16_t multicast_fields[] = {16, 4, 3, 9, 32, 512};

const struct record_type multicast_record = {
	.attribute = IB_SA_ATTR_MFTRECORD,
	.size = HEAD + 64,
	FIELDS(multicast_fields),
	.walk = walk_multicast,
};
