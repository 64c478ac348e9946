/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A fabric behind the fake device: nodes that respond to SMPs by directed routes, as a test
 * sets them. Node 0 is the port's own node, entered by its port 1. A request whose route ends
 * nowhere times out at once.
 */
#ifndef TESTS_UNIT_FAKE_FABRIC_H
#define TESTS_UNIT_FAKE_FABRIC_H

#include "fake_device.h"

#include <infiniband/mad_fabric.h>
#include <infiniband/mad_fields.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifndef FAKE_NODES
#define FAKE_NODES 80
#endif

struct fake_end {
	int node; /* -1: no cable */
	unsigned port;
};

struct fake_node {
	uint64_t guid, port_guid;  /* the second one of port 1; port n has n - 1 more */
	uint64_t switch_port_guid; /* 0: guid */
	unsigned type, ports;
	unsigned lid, lmc;
	char description[65];
	bool enhanced_port0;
	bool dead;          /* it responds to nothing */
	uint64_t m_key;     /* it responds to no other M_Key; 0: to all */
	int responses;      /* the number of further responses; negative: unlimited */
	int refused_port;   /* PortInfo of this port has status 0x1c; negative: of none */
	bool no_mlnx;       /* ExtendedPortInfo is not supported */
	bool port0_is_down; /* PortInfo of a switch's port 0 has no link */
	bool drops_mlnx;    /* it does not respond to ExtendedPortInfo */
	bool may_be_fdr10;  /* its ports have no extended speed */
	int dead_from_port; /* PortInfo of this and higher ports: no response; 0: none */
	uint16_t node_info_status; /* of its NodeInfo */
	unsigned wrong_local_port; /* the LocalPortNum in NodeInfo; 0: the true one */
	struct fake_end links[256];
	/* numbers of requests */
	unsigned node_infos, descriptions, switch_infos, mlnx_infos, port_infos[256];
};

static struct {
	struct fake_node nodes[FAKE_NODES];
	int count;
	unsigned asked;
	bool liar; /* each NodeInfo of a node other than 0 has a new GUID */
	uint64_t lies;
} fake;

static inline int fake_add(unsigned type, unsigned ports)
{
	struct fake_node *node = &fake.nodes[fake.count];

	assert_true(fake.count < FAKE_NODES);
	*node = (struct fake_node){.guid = 0x1000u + (unsigned)fake.count * 0x100u,
				   .port_guid = 0x1001u + (unsigned)fake.count * 0x100u,
				   .type = type,
				   .ports = ports,
				   .lid = (unsigned)fake.count + 1,
				   .responses = -1,
				   .refused_port = -1};
	snprintf(node->description, sizeof(node->description), "node-%d", fake.count);
	for (unsigned i = 0; i < 256; i++)
		node->links[i].node = -1;
	return fake.count++;
}

static inline void fake_cable(int one, unsigned port, int other, unsigned other_port)
{
	fake.nodes[one].links[port] = (struct fake_end){other, other_port};
	fake.nodes[other].links[other_port] = (struct fake_end){one, port};
}

/* The end of a request's route; node -1: nowhere. */
static inline struct fake_end fake_walk(const uint8_t *mad)
{
	struct fake_end at = {0, 1};

	for (unsigned hop = 1; hop <= mad[7] && hop < 64; hop++) {
		const struct fake_node *node = &fake.nodes[at.node];

		if (node->dead || (hop > 1 && node->type != IB_NODE_SWITCH))
			return (struct fake_end){-1, 0};
		at = node->links[mad[128 + hop]];
		if (at.node < 0)
			return at;
	}
	return at;
}

static inline void fake_node_info(const struct fake_node *node, struct fake_end at,
				  uint8_t info[64])
{
	uint64_t guid = node->guid;

	if (fake.liar && at.node)
		guid = UINT64_C(0xbad00000) + ++fake.lies;
	mad_set_field(info, 0, IB_NODE_TYPE_F, node->type);
	mad_set_field(info, 0, IB_NODE_NPORTS_F, node->ports);
	mad_set_field64(info, 0, IB_NODE_SYSTEM_GUID_F, node->guid | 0xff);
	mad_set_field64(info, 0, IB_NODE_GUID_F, guid);
	mad_set_field64(info, 0, IB_NODE_PORT_GUID_F,
			node->type != IB_NODE_SWITCH ? node->port_guid + at.port - 1
			: node->switch_port_guid     ? node->switch_port_guid
						     : node->guid);
	mad_set_field(info, 0, IB_NODE_DEVID_F, 0xd1);
	mad_set_field(info, 0, IB_NODE_VENDORID_F, 0x2c9);
	mad_set_field(info, 0, IB_NODE_REVISION_F, 7);
	mad_set_field(info, 0, IB_NODE_LOCAL_PORT_F,
		      node->wrong_local_port ? node->wrong_local_port : at.port);
}

static inline void fake_port_info(const struct fake_node *node, struct fake_end at,
				  unsigned number, uint8_t info[64])
{
	bool up;

	/* of a CA, port 0 stands for the port that receives the request */
	if (!number && node->type != IB_NODE_SWITCH)
		number = at.port;
	up = node->links[number].node >= 0 || (!number && !node->port0_is_down);
	mad_set_field(info, 0, IB_PORT_LOCAL_PORT_F,
		      node->type == IB_NODE_SWITCH && node == fake.nodes ? 0 : at.port);
	mad_set_field(info, 0, IB_PORT_STATE_F, up ? MAD_PORT_ACTIVE : MAD_PORT_DOWN);
	mad_set_field(info, 0, IB_PORT_PHYS_STATE_F,
		      up ? MAD_PHYSICAL_LINK_UP : MAD_PHYSICAL_POLLING);
	mad_set_field(info, 0, IB_PORT_LINK_WIDTH_ACTIVE_F, MAD_WIDTH_4X);
	mad_set_field(info, 0, IB_PORT_LINK_WIDTH_SUPPORTED_F, MAD_WIDTH_1X | MAD_WIDTH_4X);
	mad_set_field(info, 0, IB_PORT_LINK_SPEED_ACTIVE_F, 4);
	mad_set_field(info, 0, IB_PORT_LINK_SPEED_SUPPORTED_F, 7);
	mad_set_field(info, 0, IB_PORT_LINK_SPEED_EXT_ACTIVE_F, node->may_be_fdr10 ? 0 : 2);
	mad_set_field(info, 0, IB_PORT_LINK_SPEED_EXT_SUPPORTED_F, 3);
	mad_set_field(info, 0, IB_PORT_NEIGHBOR_MTU_F, 5);
	mad_set_field(info, 0, IB_PORT_LID_F, node->lid);
	mad_set_field(info, 0, IB_PORT_LMC_F, node->lmc);
	mad_set_field(info, 0, IB_PORT_SMLID_F, 1);
	/* the capabilities of a switch are in port 0 */
	if (node->type != IB_NODE_SWITCH || !number)
		mad_set_field(info, 0, IB_PORT_CAPMASK_F, MAD_PORT_CAP_EXTENDED_SPEEDS);
}

static inline int fake_response(const struct device_packet *packet, void *arg)
{
	struct fake_end at = fake_walk(packet->mad);
	struct fake_node *node = at.node < 0 ? NULL : &fake.nodes[at.node];
	unsigned attribute = (unsigned)packet->mad[16] << 8 | packet->mad[17];
	unsigned number = packet->mad[23];
	uint8_t data[64] = {0};
	uint16_t status = 0;

	(void)arg;
	fake.asked++;
	if (node && node->m_key && node->m_key != mad_read_field(packet->mad, 0, IB_MAD_MKEY_F))
		return 0;
	if (!node || node->dead || !node->responses) {
		if (node && attribute == IB_ATTR_PORT_INFO)
			node->port_infos[number]++;
		return 0;
	}
	if ((attribute == IB_ATTR_MLNX_EXT_PORT_INFO && node->drops_mlnx) ||
	    (attribute == IB_ATTR_PORT_INFO && node->dead_from_port &&
	     (int)number >= node->dead_from_port)) {
		node->mlnx_infos += attribute == IB_ATTR_MLNX_EXT_PORT_INFO;
		return 0;
	}
	node->responses -= node->responses > 0;
	switch (attribute) {
	case IB_ATTR_NODE_INFO:
		node->node_infos++;
		status = node->node_info_status;
		fake_node_info(node, at, data);
		break;
	case IB_ATTR_NODE_DESC:
		node->descriptions++;
		memcpy(data, node->description, 64);
		break;
	case IB_ATTR_SWITCH_INFO:
		node->switch_infos++;
		mad_set_field(data, 0, IB_SW_ENHANCED_PORT0_F, node->enhanced_port0);
		break;
	case IB_ATTR_PORT_INFO:
		node->port_infos[number]++;
		if ((int)number == node->refused_port)
			status = 0x1c;
		fake_port_info(node, at, number, data);
		break;
	case IB_ATTR_MLNX_EXT_PORT_INFO:
		node->mlnx_infos++;
		if (node->no_mlnx)
			status = 0x0c;
		mad_set_field(data, 0, IB_MLNX_EXT_PORT_LINK_SPEED_ACTIVE_F, 1);
		break;
	default:
		status = 0x0c;
	}
	device_respond(packet, status, 64, data, sizeof(data));
	return 0;
}

#endif
