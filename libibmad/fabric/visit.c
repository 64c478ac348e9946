/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads a new node's attributes and ports. */

#include "fabric/discovery.h"

#include <infiniband/mad_fields.h>

#include <errno.h>
#include <string.h>

/*
 * Requests submitted per node. The engine won't have more in flight to one node, so more would
 * just take memory.
 */
#define SUBMITTED_MAX 16
/* Consecutive timeouts after which a node that has responded is given up. */
#define SILENT_MAX    3
#define QDR           4 /* LinkSpeedActive (IBA 14.2.5.6) */

struct visit {
	struct discovery *discovery;
	struct mad_fabric_node *node;
	struct list requests;
	unsigned open;        /* not completed */
	unsigned next_number; /* next port to read */
	unsigned silent;      /* timeouts since the last response */
	bool responded;
	bool given_up;
	bool failed; /* failure is the index of the node's problem */
	size_t failure;
};

static void attribute_came(struct discovery_request *request);

static bool submit_get(struct visit *visit, unsigned attribute, unsigned modifier)
{
	if (visit->given_up ||
	    !discovery_submit(visit->discovery, &visit->requests, &visit->node->route,
			      attribute, modifier, attribute_came, visit))
		return false;
	visit->open++;
	return true;
}

/* Ports whose PortInfo was not requested yet. */
static unsigned ports_left(const struct visit *visit)
{
	if (!(visit->discovery->options.read & MAD_FABRIC_READ_PORTS))
		return 0;
	return visit->node->port_count + 1u - visit->next_number;
}

/* --- failures ------------------------------------------------------------------------- */

/* The port that a request is about; NULL: the node itself. */
static struct mad_fabric_port *port_of_request(const struct mad_fabric_node *node,
					       unsigned attribute, unsigned modifier)
{
	return attribute == IB_ATTR_PORT_INFO || attribute == IB_ATTR_MLNX_EXT_PORT_INFO
		       ? graph_port(node, modifier)
		       : NULL;
}

/* All failures of a node are one problem, in which timeouts have priority. */
static void note_failures(struct visit *visit, unsigned attribute, unsigned modifier, int error,
			  unsigned status, unsigned count)
{
	const struct mad_fabric_problem failure = {
		.kind = MAD_FABRIC_PROBLEM_NODE,
		.error = error,
		.node = visit->node,
		.port = port_of_request(visit->node, attribute, modifier),
		.guid = visit->node->guid,
		/* the description's response may come later */
		.description = visit->node->description,
		.attribute = attribute,
		.modifier = modifier,
		.status = status,
		.count = count,
	};
	struct mad_fabric_problem *problem;

	if (!visit->failed) {
		visit->failed = true;
		discovery_note(visit->discovery, &failure, &visit->failure);
		return;
	}
	problem = graph_problem(visit->discovery->fabric, visit->failure);
	count += problem->count;
	if (error == -ETIMEDOUT && problem->error != -ETIMEDOUT)
		*problem = failure;
	problem->count = count;
}

/* Ports left unrequested count as failures. */
static void leave_ports(struct visit *visit, int error)
{
	if (ports_left(visit))
		note_failures(visit, IB_ATTR_PORT_INFO, visit->next_number, error, 0,
			      ports_left(visit));
	while (ports_left(visit))
		graph_port(visit->node, visit->next_number++)->error = error;
}

static void give_up(struct visit *visit)
{
	leave_ports(visit, -ETIMEDOUT);
	visit->given_up = true;
	list_for_each (entry, &visit->requests) {
		struct discovery_request *request =
			list_entry(entry, struct discovery_request, group);

		request->given_up = true;
		mad_async_cancel(visit->discovery->async, request->id);
	}
}

static void request_failed(struct visit *visit, const struct discovery_request *request)
{
	bool is_optional = request->attribute == IB_ATTR_MLNX_EXT_PORT_INFO;

	/* a node may refuse an attribute it lacks, or not respond */
	if (is_optional && request->status)
		return;
	note_failures(visit, request->attribute, request->modifier, request->error,
		      request->status, 1);
	if (!is_optional && request->error == -ETIMEDOUT && !visit->given_up &&
	    !visit->discovery->error && (!visit->responded || ++visit->silent == SILENT_MAX))
		give_up(visit);
}

/* --- responses ------------------------------------------------------------------------ */

static void read_port_info(struct mad_fabric_port *port, const uint8_t *info)
{
	port->state = (uint8_t)mad_read_field(info, 0, IB_PORT_STATE_F);
	port->physical_state = (uint8_t)mad_read_field(info, 0, IB_PORT_PHYS_STATE_F);
	port->mtu = (uint16_t)mad_link_mtu(
		(uint32_t)mad_read_field(info, 0, IB_PORT_NEIGHBOR_MTU_F));
	/* a switch's ports use port 0's (IBA 14.2.5.6) */
	if (port->node->type == IB_NODE_SWITCH && port->number)
		return;
	port->lid = (uint16_t)mad_read_field(info, 0, IB_PORT_LID_F);
	port->lmc = (uint8_t)mad_read_field(info, 0, IB_PORT_LMC_F);
	port->sm_lid = (uint16_t)mad_read_field(info, 0, IB_PORT_SMLID_F);
	port->capability_mask = (uint32_t)mad_read_field(info, 0, IB_PORT_CAPMASK_F);
}

/* FDR10 looks like QDR in PortInfo. Extended speeds are valid if a switch's port 0 says so. */
static bool may_be_fdr10(const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *port0 = mad_fabric_get_port(port->node, 0);
	const struct mad_fabric_port *capable = port0 ? port0 : port;

	if (!port->number || mad_read_field(port->info, 0, IB_PORT_LINK_SPEED_ACTIVE_F) != QDR)
		return false;
	if (capable->info && !(capable->capability_mask & MAD_PORT_CAP_EXTENDED_SPEEDS))
		return true;
	return !mad_read_field(port->info, 0, IB_PORT_LINK_SPEED_EXT_ACTIVE_F) &&
	       !mad_read_field(port->info, 0, IB_PORT_LINK_SPEED_EXT_ACTIVE_2_F);
}

static void port_info_came(struct visit *visit, struct mad_fabric_port *port,
			   const uint8_t *info)
{
	struct discovery *discovery = visit->discovery;

	if (!port)
		return;
	port->info = discovery_store(discovery, info);
	if (!port->info)
		return;
	read_port_info(port, info);
	if (port == graph_lid_port(visit->node)) {
		visit->node->lid = port->lid;
		visit->node->lmc = port->lmc;
	}
	if (port->physical_state != MAD_PHYSICAL_LINK_UP)
		return;
	if (discovery->options.read & MAD_FABRIC_READ_MLNX_EXT_PORTS && may_be_fdr10(port))
		submit_get(visit, IB_ATTR_MLNX_EXT_PORT_INFO, port->number);
	if (port->number)
		neighbours_follow(discovery, port);
}

static void use_response(struct visit *visit, unsigned attribute, struct mad_fabric_port *port,
			 const uint8_t *data)
{
	struct mad_fabric_node *node = visit->node;

	switch (attribute) {
	case IB_ATTR_NODE_DESC:
		memcpy(node->description, data, IB_SMP_DATA_SIZE);
		break;
	case IB_ATTR_SWITCH_INFO:
		node->switch_info = discovery_store(visit->discovery, data);
		if (node->switch_info)
			node->enhanced_port0 = mad_read_field(data, 0, IB_SW_ENHANCED_PORT0_F);
		break;
	case IB_ATTR_PORT_INFO:
		port_info_came(visit, port, data);
		break;
	case IB_ATTR_MLNX_EXT_PORT_INFO:
		if (port)
			port->mlnx_ext_info = discovery_store(visit->discovery, data);
		break;
	default:
		break;
	}
}

/*
 * Submits more requests, or gives up the remaining ports if the discovery has ended. May free
 * the visit.
 */
static void visit_continue(struct visit *visit)
{
	const struct discovery *discovery = visit->discovery;

	while (visit->open < SUBMITTED_MAX && ports_left(visit) && !discovery->error)
		if (submit_get(visit, IB_ATTR_PORT_INFO, visit->next_number))
			visit->next_number++;
	if (discovery->error && discovery_keeps_part(discovery))
		leave_ports(visit, discovery->error);
	if (!visit->open)
		free(visit);
}

static void attribute_came(struct discovery_request *request)
{
	struct visit *visit = request->subject;
	const struct discovery *discovery = visit->discovery;
	struct mad_fabric_port *port =
		port_of_request(visit->node, request->attribute, request->modifier);

	visit->open--;
	if (port && request->attribute == IB_ATTR_PORT_INFO) {
		/* requests are cancelled when the node is given up after a timeout */
		port->error = request->error == -ECANCELED ? -ETIMEDOUT : request->error;
		if (discovery->error)
			port->error = discovery->error;
	}
	if (!request->error || request->status || request->error == -EBADMSG) {
		visit->responded = true;
		visit->silent = 0;
	}
	if (!discovery->error && request->error)
		request_failed(visit, request);
	else if (!discovery->error)
		use_response(visit, request->attribute, port, request->reply->data);
	else if (discovery_keeps_part(discovery))
		note_failures(visit, request->attribute, request->modifier, discovery->error, 0,
			      1);
	visit_continue(visit);
}

void visit_node(struct discovery *discovery, struct mad_fabric_node *node)
{
	unsigned read = discovery->options.read;
	struct visit *visit = calloc(1, sizeof(*visit));

	if (!visit) {
		discovery_abort(discovery, -ENOMEM);
		return;
	}
	visit->discovery = discovery;
	visit->node = node;
	visit->next_number = graph_first_number(node);
	list_init(&visit->requests);
	if (read & MAD_FABRIC_READ_DESCRIPTIONS)
		submit_get(visit, IB_ATTR_NODE_DESC, 0);
	if (read & MAD_FABRIC_READ_SWITCHES && node->type == IB_NODE_SWITCH)
		submit_get(visit, IB_ATTR_SWITCH_INFO, 0);
	if (!(read & MAD_FABRIC_READ_PORTS))
		for (unsigned number = 1; number <= node->port_count; number++)
			neighbours_follow(discovery, graph_port(node, number));
	visit_continue(visit);
}
