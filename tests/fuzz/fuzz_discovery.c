/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A fabric with wrong responses: the input decides what each node responds, and whether it
 * responds. Discovery ends, and the result is consistent. A second discovery, which uses the
 * first result, does the same. An input is a list of responses.
 */
#include "fuzz_machine.h"

#include <infiniband/mad_fabric.h>

#define NODES_MAX 64

static struct input input;

/* Few GUIDs and port numbers, so that discovery meets nodes again. */
static void lie_node(uint8_t data[64])
{
	uint64_t guid = take(&input, 1) % 16;
	unsigned shape = (unsigned)take(&input, 1);

	mad_set_field(data, 0, IB_NODE_TYPE_F, shape & 15 ? 1 + (shape & 1) : shape >> 4);
	mad_set_field(data, 0, IB_NODE_NPORTS_F, shape >> 4 == 15 ? 255 : shape >> 4);
	mad_set_field64(data, 0, IB_NODE_GUID_F, guid);
	mad_set_field64(data, 0, IB_NODE_PORT_GUID_F, take(&input, 1));
	mad_set_field(data, 0, IB_NODE_LOCAL_PORT_F, (uint32_t)take(&input, 1) % 20);
}

static void lie_port(uint8_t data[64])
{
	take_bytes(&input, data + 16, 24);
	if (take(&input, 1) & 3)
		mad_set_field(data, 0, IB_PORT_PHYS_STATE_F, MAD_PHYSICAL_LINK_UP);
}

/* Each request arrives: all switches of this fabric have a cable to each other. */
static enum machine_verdict respond(struct machine_mad *mad, void *arg)
{
	unsigned attribute = (unsigned)mad->bytes[16] << 8 | mad->bytes[17];
	unsigned how = (unsigned)take(&input, 1);
	uint8_t data[64] = {0};

	(void)arg;
	if (mad->bytes[3] & IB_MAD_RESPONSE)
		return MACHINE_PASS;
	if (how == 255)
		return MACHINE_DROP;
	if (attribute == IB_ATTR_NODE_INFO)
		lie_node(data);
	else if (attribute == IB_ATTR_PORT_INFO)
		lie_port(data);
	else
		take_bytes(&input, data, 4);
	return machine_reply(mad, how == 254 ? 0x1c : 0, 64, data, sizeof(data));
}

static void check_port(const struct mad_fabric *fabric, const struct mad_fabric_port *port)
{
	check(mad_fabric_get_port(port->node, port->number) == port);
	check(!port->peer || port->peer->peer == port);
	check(!port->info || !port->error);
	check(port->width <= 12 && port->speed <= MAD_SPEED_XDR && port->rate_gbps >= 0);
	check(mad_fabric_find_guid(fabric, port->node->guid) == port->node);
}

static void check_problem(const struct mad_fabric_problem *problem)
{
	char text[MAD_FABRIC_PROBLEM_TEXT_SIZE];
	bool behind = problem->kind == MAD_FABRIC_PROBLEM_BEHIND;

	check(!problem->error == (problem->kind > MAD_FABRIC_PROBLEM_NODE));
	check(!problem->port || problem->port->node == problem->node);
	check(!problem->other_port || problem->other_port->node == problem->other_node);
	check(!behind || problem->port->peer_error == problem->error);
	check(problem->kind != MAD_FABRIC_PROBLEM_NODE || problem->guid == problem->node->guid);
	check(strlen(problem->description) <= IB_SMP_DATA_SIZE);
	check(!problem->error || problem->count > 0);
	mad_fabric_problem_text(problem, text, sizeof(text));
	check(*text && strlen(text) < sizeof(text) - 1);
}

static void check_fabric(const struct mad_fabric *fabric)
{
	const struct mad_fabric_port *port = NULL;
	size_t ports = 0;

	while ((port = mad_fabric_next_port(fabric, port))) {
		check(port->index == ports++);
		check_port(fabric, port);
	}
	check(ports == fabric->port_count);
	check(fabric->node_count <= NODES_MAX);
	for (size_t i = 0; i < fabric->node_count; i++) {
		const struct mad_fabric_node *node = mad_fabric_get_node(fabric, i);

		check(node->index == i && node->route.cnt < IB_SUBNET_PATH_HOPS_MAX);
	}
	for (unsigned lid = 0; lid < 0x10000; lid += 7)
		if (mad_fabric_find_lid(fabric, lid))
			check(mad_fabric_find_lid(fabric, lid)->lid <= lid);
	for (size_t i = 0; i < fabric->problem_count; i++)
		check_problem(mad_fabric_get_problem(fabric, i));
	check(mad_fabric_compare(fabric, fabric, NULL, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mad_fabric_options options = {.max_nodes = NODES_MAX};
	struct mad_fabric *fabric, *second = NULL;
	int error;

	input = (struct input){data, size};
	options.read = (unsigned)take(&input, 1) % 16;
	begin("dragonfly:1,15,1", "host-1", respond);
	mad_rpc_set_timeout(port, 1);
	error = mad_fabric_discover(port, &options, &fabric);
	check(error <= 0 && !error == (fabric != NULL));
	if (fabric) {
		check_fabric(fabric);
		options.previous = fabric;
		error = mad_fabric_discover(port, &options, &second);
		check(error <= 0 && !error == (second != NULL));
	}
	if (second)
		check_fabric(second);
	check(!second || mad_fabric_compare(fabric, second, NULL, NULL) >= 0);
	mad_fabric_free(second);
	mad_fabric_free(fabric);
	end();
	return 0;
}
