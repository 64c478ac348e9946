/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Vendor specific agents (IBA 16.5). In range 1 a node has registers, 4 bytes per attribute and
 * modifier. In range 2 it responds to a ping with its name, as a host with a ping server does,
 * and echoes other requests.
 */
#include "gmp_agents.h"

#define RANGE1_DATA   IB_VENDOR_RANGE1_DATA_OFFS
#define RANGE2_DATA   IB_VENDOR_RANGE2_DATA_OFFS
#define OUI_AT        37
#define REGISTER_SIZE 4
#define DOMAIN        ".fabric"

static const struct class_info class_info = {.version = 1};

static unsigned int respond_to_register(struct query *query)
{
	struct gmp_place place = {.node = query->node,
				  .class = (uint8_t)mad_class_of(query->mad),
				  .attribute = (uint16_t)mad_attribute(query->mad),
				  .modifier = mad_modifier(query->mad)};
	uint8_t *data = query->mad + RANGE1_DATA;

	if (mad_method(query->mad) == METHOD_SET &&
	    gmp_keep(query->fabric, &place, data, REGISTER_SIZE))
		return STATUS_BUSY;
	memset(data, 0, IB_VENDOR_RANGE1_DATA_SIZE);
	(void)gmp_recall(query->fabric, &place, data, REGISTER_SIZE);
	return STATUS_OK;
}

static bool is_ping(const struct query *query)
{
	const uint8_t *mad = query->mad;

	return mad_class_of(mad) == IB_VENDOR_OPENIB_PING_CLASS &&
	       (get32(mad + OUI_AT - 1) & 0xffffff) == IB_OPENIB_OUI &&
	       mad_method(mad) == METHOD_GET && mad_attribute(mad) == 0;
}

static void respond_to_ping(struct query *query)
{
	const struct graph_node *node = hardware(query->fabric, query->node);
	size_t length = strnlen(node->name, MAX_NAME);
	uint8_t *data = query->mad + RANGE2_DATA;

	memset(data, 0, IB_VENDOR_RANGE2_DATA_SIZE);
	memcpy(data, node->name, length);
	memcpy(data + length, DOMAIN, sizeof(DOMAIN));
}

bool vendor_respond(struct query *query)
{
	unsigned int method = mad_method(query->mad);
	bool range1 = mad_is_vendor_range1((int)mad_class_of(query->mad));

	if (mad_is_response(query->mad))
		return false;
	if (query->mad[0] != 1)
		respond(query->mad, STATUS_BAD_VERSION);
	else if (method != METHOD_GET && method != METHOD_SET)
		respond(query->mad, STATUS_BAD_METHOD);
	else if (mad_attribute(query->mad) == CLASS_PORT_INFO)
		class_port_info(query, &class_info, range1 ? RANGE1_DATA : RANGE2_DATA);
	else if (range1)
		respond(query->mad, respond_to_register(query));
	else {
		if (is_ping(query))
			respond_to_ping(query);
		respond(query->mad, STATUS_OK);
	}
	return true;
}
