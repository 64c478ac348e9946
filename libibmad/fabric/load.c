/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Reads a fabric from the format of ibnetdiscover. The file is read once. Each line creates a
 * node or a port, with a claim: the other end of the port in the file. At the end, claims
 * become links.
 */

#include <infiniband/mad_fabric_text.h>

#include "base/export.h"
#include "base/report.h"
#include "fabric/graph.h"
#include "fabric/load_lines.h"

#include <errno.h>
#include <stdlib.h>

/* --- links ------------------------------------------------------------------------ */

static bool claims_back(const struct load *load, const struct mad_fabric_port *port,
			const struct mad_fabric_port *other)
{
	const struct claim *claim = &load->claims[other->index];

	return claim->line && claim->guid == port->node->guid &&
	       claim->type == port->node->type && claim->number == port->number;
}

/*
 * The port of a claim. Of several nodes with one GUID, the first one that claims the same link.
 */
static struct mad_fabric_port *claimed_port(const struct load *load,
					    const struct mad_fabric_port *port)
{
	const struct claim *claim = &load->claims[port->index];
	const struct mad_fabric_node *first = graph_find_node(load->fabric, claim->guid);
	const struct graph_node *node = first ? graph_node_of(first) : NULL;
	struct mad_fabric_port *found = NULL;

	for (unsigned tried = 0; node && tried < MAX_SAME_GUID; node = node->next_guid) {
		struct mad_fabric_port *other;

		if (node->node.guid != claim->guid)
			continue;
		tried++;
		other = graph_port(&node->node, claim->number);
		if (node->node.type != claim->type || !other)
			continue;
		if (claims_back(load, port, other))
			return other;
		if (!found)
			found = other;
	}
	return found;
}

static int link_port(struct load *load, struct mad_fabric_port *port)
{
	struct mad_fabric_port *other = claimed_port(load, port);
	struct mad_fabric_problem problem = {.port = port, .other_port = other};

	if (!other)
		return -EBADMSG;
	port->peer = other;
	if (!claims_back(load, port, other))
		problem.kind = MAD_FABRIC_PROBLEM_PEER;
	else if (other->node == port->node && other->number >= port->number)
		problem.kind = MAD_FABRIC_PROBLEM_LOOP;
	else
		return 0;
	return graph_add_problem(load->fabric, &problem, NULL);
}

/* Sets *wrong to the first line whose claim has no port. */
static int link_ports(struct load *load, unsigned *wrong)
{
	*wrong = 0;
	for (size_t i = 0; i < load->fabric->node_count; i++) {
		struct mad_fabric_node *node = graph_node(load->fabric, i);

		for (unsigned number = 1; number <= node->port_count; number++) {
			struct mad_fabric_port *port = graph_port(node, number);
			unsigned line = load->claims[port->index].line;
			int err = line ? link_port(load, port) : 0;

			if (err && err != -EBADMSG)
				return err;
			if (err && (!*wrong || line < *wrong))
				*wrong = line;
		}
	}
	return *wrong ? -EBADMSG : 0;
}

/* --- what follows from the whole --------------------------------------------------- */

/* The LID of a CA or router is that of its first port with a link. */
static void set_entry_port(struct mad_fabric_node *node)
{
	for (unsigned number = 1; number <= node->port_count; number++) {
		const struct mad_fabric_port *port = graph_port(node, number);

		if (!port->peer)
			continue;
		node->entry_port = (uint8_t)number;
		node->lid = port->lid;
		node->lmc = port->lmc;
		return;
	}
}

static struct mad_fabric_port *find_origin(const struct load *load)
{
	struct mad_fabric_node *node = graph_find_node(load->fabric, load->origin_guid);

	if (!node)
		return NULL;
	if (node->type == IB_NODE_SWITCH)
		return graph_port(node, 0);
	for (unsigned number = 1; number <= node->port_count; number++)
		if (graph_port(node, number)->guid == load->origin_port_guid)
			return graph_port(node, number);
	/* The only port of a node has no line if it has no link. */
	if (node->port_count != 1 || graph_port(node, 1)->guid)
		return NULL;
	graph_port(node, 1)->guid = load->origin_port_guid;
	return graph_port(node, 1);
}

static int note_same_guids(const struct load *load)
{
	for (size_t i = 0; i < load->fabric->node_count; i++) {
		const struct mad_fabric_node *node = graph_node(load->fabric, i);
		const struct mad_fabric_problem twice = {
			.kind = MAD_FABRIC_PROBLEM_GUID,
			.node = node,
			.other_node = graph_find_node(load->fabric, node->guid),
			.guid = node->guid};

		if (twice.other_node != node && graph_add_problem(load->fabric, &twice, NULL))
			return -ENOMEM;
	}
	return 0;
}

static int finish(struct load *load)
{
	int err;

	for (size_t i = 0; i < load->fabric->node_count; i++) {
		struct mad_fabric_node *node = graph_node(load->fabric, i);

		if (node->type != IB_NODE_SWITCH)
			set_entry_port(node);
	}
	if (load->has_origin)
		load->fabric->origin = find_origin(load);
	err = note_same_guids(load);
	return err ? err : graph_finish(load->fabric);
}

static int load_fabric(struct load *load, unsigned *wrong)
{
	int err = load_read_lines(load);

	*wrong = load->line.number;
	if (err)
		return err;
	*wrong = 0;
	if (!load->fabric->node_count)
		return -EBADMSG;
	err = link_ports(load, wrong);
	return err ? err : finish(load);
}

EXPORT int mad_fabric_load(FILE *file, struct mad_fabric **fabric, unsigned *line)
{
	struct load load = {.line.file = file};
	unsigned wrong;
	int err;

	if (fabric)
		*fabric = NULL;
	if (!file || !fabric)
		return failure_of_call(0, -EINVAL);
	load.fabric = graph_create();
	if (!load.fabric)
		return failure_of_call(0, -ENOMEM);
	err = load_fabric(&load, &wrong);
	free(load.claims);
	if (!err) {
		*fabric = load.fabric;
		return 0;
	}
	if (line && err == -EBADMSG)
		*line = wrong;
	mad_fabric_free(load.fabric);
	return failure_of_call(0, err);
}
