/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A fabric whose nodes have counters, on the fake device: a switch, and hosts at its ports. The
 * test changes nodes, LIDs and counters; counted_fabric() is what a discovery would find then.
 * The program is linked with --wrap=clock_us: clock_skip moves the clock.
 */
#ifndef TESTS_UNIT_COUNTED_FABRIC_H
#define TESTS_UNIT_COUNTED_FABRIC_H

#include "late_responses.h"
#include "mad_fixture.h"

#include "fabric/graph.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_fabric_counters.h>
#include <infiniband/mad_fields.h>

#define NODES     8
#define PORTS     8 /* the highest number of a port, and one more */
#define COUNTS    3 /* counters that count */
#define FIRST_LID 10

int64_t __wrap_clock_us(void);
int64_t __real_clock_us(void);

static int64_t clock_skip;

int64_t __wrap_clock_us(void)
{
	return __real_clock_us() + clock_skip;
}

/* The counters that the nodes have; the others are 0. */
static const enum mad_counter counted[COUNTS] = {
	MAD_COUNTER_XMIT_BYTES,
	MAD_COUNTER_RCV_BYTES,
	MAD_COUNTER_SYMBOL_ERRORS,
};

struct counted_device {
	uint64_t guid;
	unsigned type, ports, lid;
	unsigned capabilities;
	bool absent;         /* a discovery does not find it */
	bool dead;           /* it responds to nothing */
	bool lacks_extended; /* although ClassPortInfo promises PortCountersExtended */
	bool is_short;       /* its NodeInfo is shorter than a MAD */
	uint16_t status;     /* of the responses with counters */
	unsigned silent;     /* bits of port numbers whose counters have no response */
	uint64_t counts[PORTS][COUNTS];
	bool is_reset[PORTS]; /* for the test */
	unsigned extended, requests[PORTS], class_port_infos, node_infos;
};

static struct {
	struct counted_device nodes[NODES]; /* 0: the switch */
	int count;
	unsigned state; /* of the local port */
	uint64_t m_key; /* of the latest NodeInfo */
	unsigned local; /* requests for PortInfo of the local port */
	bool hold;      /* no node responds */
	void (*on_counters)(void);
} net;

static inline struct counted_device *device_at(unsigned lid)
{
	for (int i = 0; i < net.count; i++)
		if (net.nodes[i].lid == lid)
			return &net.nodes[i];
	return NULL;
}

static inline void put_counts(const struct counted_device *node, unsigned port, bool extended,
			      uint8_t *data)
{
	const uint64_t *counts = node->counts[port];

	mad_set_field(data, 0, IB_PC_PORT_SELECT_F, port);
	if (extended) {
		mad_set_field64(data, 0, IB_PC_EXT_XMT_BYTES_F, counts[0] / 4);
		mad_set_field64(data, 0, IB_PC_EXT_RCV_BYTES_F, counts[1] / 4);
		return;
	}
	mad_set_field(data, 0, IB_PC_XMT_BYTES_F, (uint32_t)(counts[0] / 4));
	mad_set_field(data, 0, IB_PC_RCV_BYTES_F, (uint32_t)(counts[1] / 4));
	mad_set_field(data, 0, IB_PC_ERR_SYM_F, (uint32_t)counts[2]);
}

static inline void respond_with_counters(struct counted_device *node,
					 const struct device_packet *packet)
{
	unsigned attribute = packet->mad[17], port = packet->mad[65];
	uint8_t data[IB_PC_DATA_SZ] = {0};

	if (attribute == CLASS_PORT_INFO) {
		node->class_port_infos++;
		mad_set_field(data, 0, IB_CPI_CAPMASK_F, node->capabilities);
	} else {
		assert_true(port < PORTS);
		node->requests[port]++;
		node->extended += attribute == IB_GSI_PORT_COUNTERS_EXT;
		if (node->lacks_extended && attribute == IB_GSI_PORT_COUNTERS_EXT) {
			device_respond(packet, 0x000c, IB_PC_DATA_OFFS, data, sizeof(data));
			return;
		}
		if (node->silent >> port & 1)
			return;
		put_counts(node, port, attribute == IB_GSI_PORT_COUNTERS_EXT, data);
	}
	device_respond(packet, node->status, IB_PC_DATA_OFFS, data, sizeof(data));
	if (net.on_counters)
		net.on_counters();
}

static inline void respond_with_local_port(const struct device_packet *packet)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {0};

	net.local++;
	mad_set_field(data, 0, IB_PORT_LOCAL_PORT_F, 1);
	mad_set_field(data, 0, IB_PORT_STATE_F, net.state);
	mad_set_field(data, 0, IB_PORT_PHYS_STATE_F,
		      net.state == MAD_PORT_DOWN ? MAD_PHYSICAL_POLLING : MAD_PHYSICAL_LINK_UP);
	device_respond(packet, 0, IB_SMP_DATA_OFFS, data, sizeof(data));
}

static inline int respond_as_fabric(const struct device_packet *packet, void *arg)
{
	struct counted_device *node = device_at(be16toh(packet->header.addr.lid));
	uint8_t data[IB_SMP_DATA_SIZE] = {0};

	(void)arg;
	if (packet->mad[1] == IB_SMI_DIRECT_CLASS) {
		respond_with_local_port(packet);
		return 0;
	}
	if (!node || node->dead || net.hold)
		return 0;
	if (packet->mad[1] == IB_SMI_CLASS) {
		node->node_infos++;
		net.m_key = mad_read_field(packet->mad, 0, IB_MAD_MKEY_F);
		if (node->is_short) {
			uint8_t mad[IB_MAD_SIZE];

			device_copy_mad(packet, mad);
			mad[3] |= IB_MAD_RESPONSE;
			device_reply(packet, mad, IB_SMP_DATA_OFFS + IB_SMP_DATA_SIZE - 1);
			return 0;
		}
		mad_set_field64(data, 0, IB_NODE_GUID_F, node->guid);
		device_respond(packet, 0, IB_SMP_DATA_OFFS, data, sizeof(data));
		return 0;
	}
	respond_with_counters(node, packet);
	return 0;
}

static inline struct counted_device *add_device(unsigned type, unsigned ports)
{
	struct counted_device *node = &net.nodes[net.count];

	assert_true(net.count < NODES);
	*node = (struct counted_device){.guid = 0x100u + (unsigned)net.count,
					.type = type,
					.ports = ports,
					.lid = FIRST_LID + (unsigned)net.count,
					.capabilities = MAD_PMA_EXTENDED_WIDTH};
	net.count++;
	return node;
}

/* A switch, and hosts with one port at its ports from 1 on. */
static inline int setup_fabric(void)
{
	clock_skip = 0;
	memset(&net, 0, sizeof(net));
	net.state = MAD_PORT_ACTIVE;
	if (fixture_setup())
		return -1;
	set_late_after(60000000);
	device_on_write(respond_as_fabric, NULL);
	add_device(IB_NODE_SWITCH, 5);
	for (int i = 0; i < 3; i++)
		add_device(IB_NODE_CA, 1);
	return 0;
}

/* The host n is at port n of the switch. A host without a link has no LID for requests. */
static inline struct mad_fabric *counted_fabric(void)
{
	struct mad_fabric *fabric = graph_create();
	struct mad_fabric_node *added[NODES] = {NULL};

	assert_non_null(fabric);
	for (int i = 0; i < net.count; i++) {
		const struct counted_device *node = &net.nodes[i];

		if (node->absent)
			continue;
		added[i] = graph_add_node(fabric, node->guid, node->type, node->ports);
		assert_non_null(added[i]);
		added[i]->entry_port = 1;
		added[i]->lid = (uint16_t)node->lid;
		for (unsigned n = node->type == IB_NODE_SWITCH ? 0 : 1; n <= node->ports; n++) {
			struct mad_fabric_port *port = graph_port(added[i], n);

			port->state = MAD_PORT_ACTIVE;
			port->lid = node->type == IB_NODE_SWITCH && n ? 0 : (uint16_t)node->lid;
		}
		if (i && added[0])
			graph_link(graph_port(added[i], 1), graph_port(added[0], (unsigned)i));
	}
	for (unsigned n = 1; added[0] && n <= net.nodes[0].ports; n++)
		if (!graph_port(added[0], n)->peer)
			graph_port(added[0], n)->state = MAD_PORT_DOWN;
	assert_int_equal(graph_finish(fabric), 0);
	return fabric;
}

#endif
