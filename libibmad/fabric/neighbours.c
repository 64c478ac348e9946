/* SPDX-License-Identifier: BSD-2-Clause */

/* Neighbours: NodeInfo from the other end of each link. */

#include "fabric/discovery.h"

#include <infiniband/mad_fields.h>

#include <errno.h>
#include <string.h>

/* Limit of a fabric's ports: PORTS_MAX plus PORTS_OF_NODES per node. */
#define PORTS_MAX      65536
#define PORTS_OF_NODES 16

/* NodeInfo in host order. */
struct node_info {
	uint64_t guid, system_guid, port_guid;
	uint32_t vendor_id, revision;
	uint16_t device_id;
	uint8_t type, port_count, local_port;
};

static struct node_info read_node_info(const uint8_t *info)
{
	return (struct node_info){
		.guid = mad_read_field(info, 0, IB_NODE_GUID_F),
		.system_guid = mad_read_field(info, 0, IB_NODE_SYSTEM_GUID_F),
		.port_guid = mad_read_field(info, 0, IB_NODE_PORT_GUID_F),
		.vendor_id = (uint32_t)mad_read_field(info, 0, IB_NODE_VENDORID_F),
		.revision = (uint32_t)mad_read_field(info, 0, IB_NODE_REVISION_F),
		.device_id = (uint16_t)mad_read_field(info, 0, IB_NODE_DEVID_F),
		.type = (uint8_t)mad_read_field(info, 0, IB_NODE_TYPE_F),
		.port_count = (uint8_t)mad_read_field(info, 0, IB_NODE_NPORTS_F),
		.local_port = (uint8_t)mad_read_field(info, 0, IB_NODE_LOCAL_PORT_F),
	};
}

/* Notes something odd about a node or port. other: the second place, or leads to the node. */
static void note_oddity(struct discovery *discovery, enum mad_fabric_problem_kind kind,
			const struct mad_fabric_node *node, const struct mad_fabric_port *port,
			const struct mad_fabric_port *other)
{
	const struct mad_fabric_problem problem = {
		.kind = kind, .node = node, .port = port, .other_port = other};

	discovery_note(discovery, &problem, NULL);
}

/* Another node seems to have this one's NodeGUID. */
static void note_guid(struct discovery *discovery, const struct mad_fabric_node *node,
		      const struct mad_fabric_port *port, const struct mad_fabric_port *other)
{
	const struct mad_fabric_problem problem = {.kind = MAD_FABRIC_PROBLEM_GUID,
						   .port = port,
						   .other_port = other,
						   .other_node = node,
						   .guid = node->guid};

	graph_node_of(node)->shares_guid = true;
	discovery_note(discovery, &problem, NULL);
}

/* --- nodes -------------------------------------------------------------------------- */

static bool has_room(const struct discovery *discovery, const struct node_info *info)
{
	size_t nodes = discovery->options.max_nodes;
	size_t ports = discovery->fabric->port_count + info->port_count + 1;

	return discovery->fabric->node_count < nodes &&
	       (nodes > SIZE_MAX / 2 / PORTS_OF_NODES ||
		ports <= PORTS_MAX + nodes * PORTS_OF_NODES);
}

/* Sets a port's GUID; the first one stays. behind leads to the port, or is NULL. */
static void set_port_guid(struct discovery *discovery, struct mad_fabric_node *node,
			  const struct node_info *info, const struct mad_fabric_port *behind)
{
	struct mad_fabric_port *port = graph_port(node, info->local_port);

	if (port && port->guid && port->guid != info->port_guid) {
		note_guid(discovery, node, behind, port);
		return;
	}
	if (node->type == IB_NODE_SWITCH)
		for (unsigned number = 0; number <= node->port_count; number++)
			graph_port(node, number)->guid = info->port_guid;
	else if (port)
		port->guid = info->port_guid;
}

static ib_dr_path_t route_behind(const struct mad_fabric_port *port)
{
	ib_dr_path_t route = port->node->route;

	route.p[++route.cnt] = port->number;
	return route;
}

/* Returns NULL on failure. */
static struct mad_fabric_node *add_node(struct discovery *discovery,
					const struct node_info *info, const uint8_t *data,
					const struct mad_fabric_port *behind)
{
	struct mad_fabric_node *node;

	if (!has_room(discovery, info)) {
		if (!discovery->too_many)
			note_oddity(discovery, MAD_FABRIC_PROBLEM_TOO_MANY, NULL, behind, NULL);
		discovery->too_many = true;
		return NULL;
	}
	node = graph_add_node(discovery->fabric, info->guid, info->type, info->port_count);
	if (!node) {
		discovery_abort(discovery, -ENOMEM);
		return NULL;
	}
	node->node_info = discovery_store(discovery, data);
	if (!node->node_info)
		return NULL;
	node->system_guid = info->system_guid;
	node->vendor_id = info->vendor_id;
	node->revision = info->revision;
	node->device_id = info->device_id;
	node->entry_port = info->local_port;
	node->route = behind ? route_behind(behind) : discovery->base.drpath;
	discovery->progress.switches += info->type == IB_NODE_SWITCH;
	if (info->type != IB_NODE_CA && info->type != IB_NODE_SWITCH &&
	    info->type != IB_NODE_ROUTER)
		note_oddity(discovery, MAD_FABRIC_PROBLEM_NODE_TYPE, node, NULL, behind);
	if (!info->port_count)
		note_oddity(discovery, MAD_FABRIC_PROBLEM_PORT_COUNT, node, NULL, behind);
	return node;
}

/* Whether a NodeInfo may be a known node's. */
static bool is_same_node(const struct mad_fabric_node *node, const struct node_info *info)
{
	return node->type == info->type && node->port_count == info->port_count &&
	       node->system_guid == info->system_guid && node->vendor_id == info->vendor_id &&
	       node->device_id == info->device_id && node->revision == info->revision;
}

/* --- links -------------------------------------------------------------------------- */

/* Links a port with the one that responded behind it. False on contradiction. */
static bool link_ports(struct discovery *discovery, struct mad_fabric_port *port,
		       struct mad_fabric_port *other)
{
	if (port->peer == other)
		return true; /* both ends were requested at once */
	if (other->peer && other->peer != port) {
		/* a port has only one cable */
		note_guid(discovery, other->node, port, other->peer);
		return false;
	}
	if (port->peer) {
		note_oddity(discovery, MAD_FABRIC_PROBLEM_PEER, NULL, port, other);
		return false;
	}
	port->peer = other;
	other->peer = port;
	discovery->progress.links++;
	if (port->node == other->node)
		note_oddity(discovery, MAD_FABRIC_PROBLEM_LOOP, NULL, port, other);
	return true;
}

/* --- the previous discovery ------------------------------------------------------- */

/* A node of options:previous, which may not have responded then. */
struct previous_node {
	uint64_t guid; /* 0: unknown */
	const char *description;
	size_t number;
};

/* Finds the node that was behind a port. */
static struct previous_node find_previous(const struct mad_fabric *previous,
					  const struct mad_fabric_port *port)
{
	const struct mad_fabric_node *node = graph_find_node(previous, port->node->guid);
	const struct mad_fabric_port *same = mad_fabric_get_port(node, port->number);
	const struct mad_fabric_problem *problem = NULL;
	size_t index;

	if (!same)
		return (struct previous_node){0};
	node = same->peer ? same->peer->node : NULL;
	if (!node) {
		problem = graph_problem_behind(previous, same, &index);
		if (!problem)
			return (struct previous_node){0};
		/* it may have responded elsewhere */
		node = graph_find_node(previous, problem->guid);
	}
	/* numbers: the fabric's nodes, then those that did not respond */
	if (node)
		return (struct previous_node){node->guid, node->description, node->index};
	return (struct previous_node){problem->guid, problem->description,
				      previous->node_count + index};
}

/*
 * Adds a problem for a NodeInfo that timed out behind problem->port. A node known from
 * options:previous has one problem for all ports leading to it. Returns 0 or -ENOMEM.
 */
static int add_timeout(struct discovery *discovery, struct mad_fabric_problem *problem)
{
	const struct mad_fabric *fabric = discovery->options.previous;
	struct previous_node previous = {0};
	size_t *known, index;
	int err;

	if (fabric)
		previous = find_previous(fabric, problem->port);
	if (!previous.guid)
		return graph_add_problem(discovery->fabric, problem, NULL);
	if (!discovery->previous_failures)
		discovery->previous_failures =
			calloc(fabric->node_count + fabric->problem_count, sizeof(size_t));
	if (!discovery->previous_failures)
		return -ENOMEM;
	known = &discovery->previous_failures[previous.number];
	if (*known)
		return graph_add_failure_behind(discovery->fabric, *known - 1, problem->port);
	problem->guid = previous.guid;
	problem->description = graph_copy(discovery->fabric, previous.description,
					  strlen(previous.description) + 1);
	if (!problem->description)
		return -ENOMEM;
	err = graph_add_problem(discovery->fabric, problem, &index);
	*known = err ? 0 : index + 1;
	return err;
}

/* The node behind the port stays unknown. */
static void note_failure_behind(struct discovery *discovery, const struct mad_fabric_port *port,
				int error, unsigned status)
{
	struct mad_fabric_problem problem = {.kind = MAD_FABRIC_PROBLEM_BEHIND,
					     .port = port,
					     .attribute = IB_ATTR_NODE_INFO,
					     .count = 1,
					     .error = error,
					     .status = status};
	int err = error == -ETIMEDOUT ? add_timeout(discovery, &problem)
				      : graph_add_problem(discovery->fabric, &problem, NULL);

	if (err)
		discovery_abort(discovery, err);
}

/* The discovery has ended. */
static void leave_port(struct discovery *discovery, const struct mad_fabric_port *port)
{
	if (discovery_keeps_part(discovery) && !port->peer)
		note_failure_behind(discovery, port, discovery->error, 0);
}

/* --- NodeInfo ----------------------------------------------------------------------- */

static void first_node_failed(struct discovery *discovery,
			      const struct discovery_request *request)
{
	if (!discovery->error)
		discovery->failure = (struct mad_failure){
			.mgmt_class = IB_SMI_DIRECT_CLASS,
			.method = IB_MAD_METHOD_GET,
			.attribute = request->attribute,
			.status = request->status,
			.transmissions =
				request->error == -EBADMSG ? 0 : request->reply->transmissions,
			.elapsed_ms = request->reply->elapsed_ms,
		};
	discovery_abort(discovery, request->error);
}

/* A node responded behind a port. */
static void neighbour_came(struct discovery *discovery, struct mad_fabric_port *port,
			   struct mad_fabric_node *node, const struct node_info *info,
			   bool is_new)
{
	struct mad_fabric_port *other = graph_port(node, info->local_port);

	if (!is_same_node(node, info)) {
		note_guid(discovery, node, port, mad_fabric_get_port(node, node->entry_port));
	} else if (!other || !info->local_port) {
		/* port 0 has no cable */
		note_oddity(discovery, MAD_FABRIC_PROBLEM_PORT_COUNT, node, NULL, port);
	} else if (link_ports(discovery, port, other) || is_new) {
		/* after a contradiction, the GUID may be another node's */
		set_port_guid(discovery, node, info, port);
	}
}

static void node_info_came(struct discovery_request *request)
{
	struct discovery *discovery = request->discovery;
	struct mad_fabric_port *behind = request->subject; /* NULL: the first node */
	struct mad_fabric_node *node;
	struct node_info info;
	bool is_new;

	if (request->error && !behind) {
		first_node_failed(discovery, request);
		return;
	}
	if (discovery->error) {
		if (behind)
			leave_port(discovery, behind);
		return;
	}
	if (request->error) {
		note_failure_behind(discovery, behind, request->error, request->status);
		return;
	}
	info = read_node_info(request->reply->data);
	node = graph_find_node(discovery->fabric, info.guid);
	is_new = !node;
	if (is_new)
		node = add_node(discovery, &info, request->reply->data, behind);
	if (!node)
		return;
	if (behind) {
		neighbour_came(discovery, behind, node, &info, is_new);
	} else {
		discovery->fabric->origin = mad_fabric_get_port(node, info.local_port);
		if (info.port_count && !discovery->fabric->origin)
			note_oddity(discovery, MAD_FABRIC_PROBLEM_PORT_COUNT, node, NULL, NULL);
		set_port_guid(discovery, node, &info, NULL);
	}
	/* after linking, so that the other end sends no NodeInfo */
	if (is_new)
		visit_node(discovery, node);
}

/* CAs and routers only forward their own programs' SMPs (IBA 14.2.2). */
static bool leads_on(const struct discovery *discovery, const struct mad_fabric_port *port)
{
	if (port->node->type == IB_NODE_SWITCH)
		return true;
	return port == discovery->fabric->origin && !port->node->route.cnt &&
	       discovery->base.lid == 0;
}

void neighbours_follow(struct discovery *discovery, struct mad_fabric_port *port)
{
	int hops = port->node->route.cnt - discovery->base.drpath.cnt;
	ib_dr_path_t route;

	if (port->peer || !leads_on(discovery, port) ||
	    (discovery->options.max_hops && (unsigned)hops >= discovery->options.max_hops))
		return;
	if (port->node->route.cnt + 1 >= IB_SUBNET_PATH_HOPS_MAX) {
		note_oddity(discovery, MAD_FABRIC_PROBLEM_ROUTE_TOO_LONG, NULL, port, NULL);
		return;
	}
	route = route_behind(port);
	if (!discovery_submit(discovery, NULL, &route, IB_ATTR_NODE_INFO, 0, node_info_came,
			      port))
		leave_port(discovery, port);
}

void neighbours_begin(struct discovery *discovery)
{
	discovery_submit(discovery, NULL, &discovery->base.drpath, IB_ATTR_NODE_INFO, 0,
			 node_info_came, NULL);
}
