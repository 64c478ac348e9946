/* SPDX-License-Identifier: BSD-2-Clause */

/* From node to node: the NodeInfo of the node at the other end of a link. */

#include "fabric/discovery.h"

#include "fabric/graph.h"

#include <infiniband/mad_fields.h>

#include <errno.h>

/* The limit of ports of a fabric: PORTS_MAX, and PORTS_OF_NODES for each node. */
#define PORTS_MAX      65536
#define PORTS_OF_NODES 16

/* A NodeInfo in host order. */
struct node_info {
	uint64_t guid, system_guid, port_guid;
	uint32_t vendor_id, revision;
	uint16_t device_id;
	uint8_t type, port_count, local_port;
};

static discovery_fn first_came, neighbour_came;

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

static void note(struct discovery *discovery, struct mad_fabric_problem problem)
{
	if (graph_add_problem(discovery->fabric, &problem, NULL))
		discovery_abort(discovery, -ENOMEM);
}

static void note_ports(struct discovery *discovery, enum mad_fabric_problem_kind kind,
		       const struct mad_fabric_port *port, const struct mad_fabric_port *other)
{
	note(discovery,
	     (struct mad_fabric_problem){.kind = kind, .port = port, .other_port = other});
}

/* Another node than this one seems to have its NodeGUID. */
static void note_guid(struct discovery *discovery, struct mad_fabric_node *node,
		      const struct mad_fabric_port *port, const struct mad_fabric_port *other)
{
	graph_share_guid(node);
	note(discovery, (struct mad_fabric_problem){.kind = MAD_FABRIC_PROBLEM_GUID,
						    .port = port,
						    .other_port = other,
						    .other_node = node,
						    .guid = node->guid});
}

/* A node is odd. behind leads to it, or is NULL. */
static void note_node(struct discovery *discovery, enum mad_fabric_problem_kind kind,
		      const struct mad_fabric_node *node, const struct mad_fabric_port *behind)
{
	note(discovery,
	     (struct mad_fabric_problem){.kind = kind, .node = node, .other_port = behind});
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

static bool is_known_type(unsigned type)
{
	return type == IB_NODE_CA || type == IB_NODE_SWITCH || type == IB_NODE_ROUTER;
}

/*
 * Sets the GUID of a port. A port keeps its first GUID. behind leads to the port, or is NULL.
 */
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

/* Adds a new node. NULL if it cannot be added. */
static struct mad_fabric_node *add_node(struct discovery *discovery,
					const struct node_info *info, const uint8_t *data,
					const ib_dr_path_t *route,
					struct mad_fabric_port *behind)
{
	struct mad_fabric *fabric = discovery->fabric;
	struct mad_fabric_node *node;

	if (!has_room(discovery, info)) {
		if (!discovery->too_many)
			note_ports(discovery, MAD_FABRIC_PROBLEM_TOO_MANY, behind, NULL);
		discovery->too_many = true;
		return NULL;
	}
	node = graph_add_node(fabric, info->guid, info->type, info->port_count);
	if (node)
		node->node_info = graph_store(fabric, data);
	if (!node || !node->node_info) {
		discovery_abort(discovery, -ENOMEM);
		return NULL;
	}
	node->system_guid = info->system_guid;
	node->vendor_id = info->vendor_id;
	node->revision = info->revision;
	node->device_id = info->device_id;
	node->entry_port = info->local_port;
	node->route = *route;
	discovery->progress.switches += info->type == IB_NODE_SWITCH;
	if (!is_known_type(info->type))
		note_node(discovery, MAD_FABRIC_PROBLEM_NODE_TYPE, node, behind);
	if (!info->port_count)
		note_node(discovery, MAD_FABRIC_PROBLEM_PORT_COUNT, node, behind);
	return node;
}

/* Whether a NodeInfo can be that of a known node. */
static bool is_same(const struct mad_fabric_node *node, const struct node_info *info)
{
	return node->type == info->type && node->port_count == info->port_count &&
	       node->system_guid == info->system_guid && node->vendor_id == info->vendor_id &&
	       node->device_id == info->device_id && node->revision == info->revision;
}

/* --- links -------------------------------------------------------------------------- */

/* Links a port with the port that responded behind it. False if another link contradicts. */
static bool link_ports(struct discovery *discovery, struct mad_fabric_port *port,
		       struct mad_fabric_port *other)
{
	if (port->peer == other)
		return true; /* both ends were asked at once */
	if (other->peer && other->peer != port) {
		/* a port has one cable */
		note_guid(discovery, graph_node(discovery->fabric, other->node->index), port,
			  other->peer);
		return false;
	}
	if (port->peer) {
		note_ports(discovery, MAD_FABRIC_PROBLEM_PEER, port, other);
		return false;
	}
	graph_link(port, other);
	discovery->progress.links++;
	if (port->node == other->node)
		note_ports(discovery, MAD_FABRIC_PROBLEM_LOOP, port, other);
	return true;
}

static ib_dr_path_t route_behind(const struct mad_fabric_port *port)
{
	ib_dr_path_t route = port->node->route;

	route.p[++route.cnt] = port->number;
	return route;
}

/* --- the previous discovery ------------------------------------------------------- */

/* A node of options:previous. The nodes that did not respond then have numbers, too. */
struct previous_node {
	uint64_t guid; /* 0: not known */
	const char *description;
	size_t number;
};

/* The nodes of a fabric have the first numbers, those that did not respond the next ones. */
static struct previous_node previous_node(const struct mad_fabric_node *node)
{
	return (struct previous_node){node->guid, node->description, node->index};
}

/* The node that was behind a port. */
static struct previous_node find_previous(const struct mad_fabric *previous,
					  const struct mad_fabric_port *port)
{
	const struct mad_fabric_node *node = graph_find_node(previous, port->node->guid);
	const struct mad_fabric_port *same = mad_fabric_get_port(node, port->number);
	const struct mad_fabric_problem *problem;
	size_t index;

	if (!same)
		return (struct previous_node){0};
	if (same->peer)
		return previous_node(same->peer->node);
	problem = graph_problem_behind(previous, same, &index);
	if (!problem)
		return (struct previous_node){0};
	node = graph_find_node(previous, problem->guid); /* it may have responded elsewhere */
	if (node)
		return previous_node(node);
	return (struct previous_node){problem->guid, problem->description,
				      previous->node_count + index};
}

/* The entry of a node in previous_failures; NULL without memory. */
static size_t *failure_of(struct discovery *discovery, const struct previous_node *node)
{
	const struct mad_fabric *previous = discovery->options.previous;

	if (!discovery->previous_failures)
		discovery->previous_failures =
			calloc(previous->node_count + previous->problem_count, sizeof(size_t));
	return discovery->previous_failures ? &discovery->previous_failures[node->number]
					    : NULL;
}

/*
 * Adds the problem of a NodeInfo that timed out behind problem->port. If options:previous
 * has the node, the node has one problem for all ports that lead to it. 0 or -ENOMEM.
 */
static int add_timeout(struct discovery *discovery, struct mad_fabric_problem *problem)
{
	struct previous_node previous = {0};
	size_t *known, index;
	int err;

	if (discovery->options.previous)
		previous = find_previous(discovery->options.previous, problem->port);
	if (!previous.guid)
		return graph_add_problem(discovery->fabric, problem, NULL);
	known = failure_of(discovery, &previous);
	if (!known)
		return -ENOMEM;
	if (*known)
		return graph_add_failure_behind(discovery->fabric, *known - 1, problem->port);
	problem->guid = previous.guid;
	problem->description = graph_store_text(discovery->fabric, previous.description);
	if (!problem->description)
		return -ENOMEM;
	err = graph_add_problem(discovery->fabric, problem, &index);
	*known = err ? 0 : index + 1;
	return err;
}

/* --- responses -------------------------------------------------------------------- */

static void fail(struct discovery *discovery, struct discovery_request *request, int error,
		 const struct mad_reply *reply)
{
	struct mad_fabric_problem problem =
		request_problem(MAD_FABRIC_PROBLEM_BEHIND, request, error, reply);
	int err;

	problem.port = request->subject;
	if (error == -ETIMEDOUT)
		err = add_timeout(discovery, &problem);
	else
		err = graph_add_problem(discovery->fabric, &problem, NULL);
	if (err)
		discovery_abort(discovery, err);
}

/* After the end of the discovery: the node behind a port stays unknown. */
static void leave(struct discovery *discovery, const struct mad_fabric_port *port)
{
	const struct mad_fabric_problem problem = {.kind = MAD_FABRIC_PROBLEM_BEHIND,
						   .port = port,
						   .attribute = IB_ATTR_NODE_INFO,
						   .count = 1,
						   .error = discovery->error};

	if (!discovery_keeps_part(discovery) || port->peer)
		return;
	if (graph_add_problem(discovery->fabric, &problem, NULL))
		discovery_abort(discovery, -ENOMEM);
}

static void neighbour_came(struct discovery *discovery, struct discovery_request *request,
			   int error, const struct mad_reply *reply)
{
	struct mad_fabric_port *port = request->subject, *other;
	ib_dr_path_t route = route_behind(port);
	struct mad_fabric_node *node;
	struct node_info info;
	bool is_new;

	if (discovery->error) {
		leave(discovery, port);
		return;
	}
	if (error) {
		fail(discovery, request, error, reply);
		return;
	}
	info = read_node_info(reply->data);
	node = graph_find_node(discovery->fabric, info.guid);
	is_new = !node;
	if (is_new)
		node = add_node(discovery, &info, reply->data, &route, port);
	if (!node)
		return;
	other = graph_port(node, info.local_port);
	if (!is_same(node, &info)) {
		note_guid(discovery, node, port, mad_fabric_get_port(node, node->entry_port));
	} else if (!other || !info.local_port) {
		/* no cable leads to port 0 */
		note_node(discovery, MAD_FABRIC_PROBLEM_PORT_COUNT, node, port);
	} else if (link_ports(discovery, port, other) || is_new) {
		/* after a contradiction, the GUID may be that of another node */
		set_port_guid(discovery, node, &info, port);
	}
	/* after the link, so that no NodeInfo is sent from the other end */
	if (is_new)
		visit_node(discovery, node);
}

/* CAs and routers forward only SMPs of their own programs (IBA 14.2.2). */
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
		note_ports(discovery, MAD_FABRIC_PROBLEM_ROUTE_TOO_LONG, port, NULL);
		return;
	}
	route = route_behind(port);
	if (!request_submit(discovery, NULL, &route, IB_ATTR_NODE_INFO, 0, neighbour_came,
			    port))
		leave(discovery, port);
}

/* --- the first node ----------------------------------------------------------------- */

static void first_came(struct discovery *discovery, struct discovery_request *request,
		       int error, const struct mad_reply *reply)
{
	struct mad_fabric_node *node;
	struct node_info info;

	if (error && !discovery->error)
		discovery->failure = (struct mad_failure){
			.mgmt_class = IB_SMI_DIRECT_CLASS,
			.method = IB_MAD_METHOD_GET,
			.attribute = request->attribute,
			.status = error == -EIO ? reply->status : 0,
			.transmissions = error == -EBADMSG ? 0 : reply->transmissions,
			.elapsed_ms = reply->elapsed_ms,
		};
	if (error)
		discovery_abort(discovery, error);
	if (discovery->error)
		return;
	info = read_node_info(reply->data);
	node = add_node(discovery, &info, reply->data, &discovery->base.drpath, NULL);
	if (!node)
		return;
	graph_set_origin(discovery->fabric, graph_port(node, info.local_port));
	if (info.port_count && !discovery->fabric->origin)
		note_node(discovery, MAD_FABRIC_PROBLEM_PORT_COUNT, node, NULL);
	set_port_guid(discovery, node, &info, NULL);
	visit_node(discovery, node);
}

void neighbours_begin(struct discovery *discovery)
{
	request_submit(discovery, NULL, &discovery->base.drpath, IB_ATTR_NODE_INFO, 0,
		       first_came, NULL);
}
