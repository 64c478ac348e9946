/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads the attributes and ports of a new node. */

#include "fabric/discovery.h"

#include "fabric/graph.h"

#include <infiniband/mad_fields.h>

#include <errno.h>
#include <string.h>

/*
 * The limit of submitted requests of a node. The engine has not more in flight to a node, so
 * further requests would only need memory.
 */
#define SUBMITTED_MAX 16
/* Timeouts without a response between, after which a node that has responded is given up. */
#define SILENT_MAX    3
#define QDR           4 /* LinkSpeedActive (IBA 14.2.5.6) */

struct visit {
	struct discovery *discovery;
	struct mad_fabric_node *node;
	struct list requests;
	unsigned open;        /* requests that are not complete */
	unsigned next_number; /* of the port to be read next */
	unsigned silent;      /* timeouts since the last response */
	bool responded;
	bool given_up;
	bool failed; /* failure is the index of the node's problem */
	size_t failure;
};

static discovery_fn description_came, switch_came, port_came, mlnx_port_came;

static void ask(struct visit *visit, unsigned attribute, unsigned modifier, discovery_fn *came)
{
	if (visit->given_up)
		return;
	if (request_submit(visit->discovery, &visit->requests, &visit->node->route, attribute,
			   modifier, came, visit))
		visit->open++;
}

/* The ports that are not requested yet. */
static unsigned ports_left(const struct visit *visit)
{
	if (!(visit->discovery->options.read & MAD_FABRIC_READ_PORTS))
		return 0;
	return visit->node->port_count + 1u - visit->next_number;
}

static void ask_more(struct visit *visit)
{
	while (visit->open < SUBMITTED_MAX && ports_left(visit) && !visit->given_up &&
	       !visit->discovery->error)
		ask(visit, IB_ATTR_PORT_INFO, visit->next_number++, port_came);
}

static void fail(struct visit *visit, const struct discovery_request *request, int error,
		 const struct mad_reply *reply)
{
	struct mad_fabric *fabric = visit->discovery->fabric;
	struct mad_fabric_problem problem =
		request_problem(MAD_FABRIC_PROBLEM_NODE, request, error, reply);

	if (visit->failed) {
		graph_count_failures(fabric, visit->failure, 1);
		/* a timeout is more important than an error in a response */
		if (error == -ETIMEDOUT)
			graph_note_timeout(fabric, visit->failure, request->attribute,
					   request->modifier);
		return;
	}
	problem.node = visit->node;
	problem.port =
		graph_port_of_request(visit->node, request->attribute, request->modifier);
	problem.guid = visit->node->guid;
	problem.description =
		visit->node->description; /* the response with the description may come later */
	visit->failed = true;
	if (graph_add_problem(fabric, &problem, &visit->failure))
		discovery_abort(visit->discovery, -ENOMEM);
}

static void give_up(struct visit *visit)
{
	graph_count_failures(visit->discovery->fabric, visit->failure, ports_left(visit));
	for (unsigned number = visit->next_number; ports_left(visit); number++) {
		graph_port(visit->node, number)->error = -ETIMEDOUT;
		visit->next_number++;
	}
	visit->given_up = true;
	requests_give_up(visit->discovery, &visit->requests);
}

/* Each callback begins here. False without data. */
static bool begin(struct visit *visit, const struct discovery_request *request, int error,
		  const struct mad_reply *reply)
{
	visit->open--;
	if (visit->discovery->error) {
		if (discovery_keeps_part(visit->discovery))
			fail(visit, request, visit->discovery->error, reply);
		return false;
	}
	if (!error || (error == -EIO && reply->status) || error == -EBADMSG) {
		visit->responded = true;
		visit->silent = 0;
	}
	if (!error)
		return true;
	if (request_is_refusal(request, reply))
		return false;
	fail(visit, request, error, reply);
	/* a node may not respond to an attribute that it does not have */
	if (request->attribute != IB_ATTR_MLNX_EXT_PORT_INFO && error == -ETIMEDOUT &&
	    !visit->given_up && !visit->discovery->error &&
	    (!visit->responded || ++visit->silent == SILENT_MAX))
		give_up(visit);
	return false;
}

/* After the end of the discovery: the ports that were not requested stay unknown. */
static void leave_ports(struct visit *visit)
{
	int error = visit->discovery->error;
	unsigned left = ports_left(visit);
	const struct discovery_request first = {.attribute = IB_ATTR_PORT_INFO,
						.modifier = (uint8_t)visit->next_number};

	if (!left || !discovery_keeps_part(visit->discovery))
		return;
	fail(visit, &first, error, NULL);
	if (visit->failed && left > 1)
		graph_count_failures(visit->discovery->fabric, visit->failure, left - 1);
	while (ports_left(visit))
		graph_port(visit->node, visit->next_number++)->error = error;
}

/* Each callback ends here: the visit may be freed. */
static void end(struct visit *visit)
{
	if (visit->discovery->error)
		leave_ports(visit);
	else
		ask_more(visit);
	if (!visit->open)
		free(visit);
}

/* False without memory, which ends the discovery. */
static bool store(struct visit *visit, const uint8_t **image, const struct mad_reply *reply)
{
	*image = graph_store(visit->discovery->fabric, reply->data);
	if (!*image)
		discovery_abort(visit->discovery, -ENOMEM);
	return *image;
}

static void description_came(struct discovery *discovery, struct discovery_request *request,
			     int error, const struct mad_reply *reply)
{
	struct visit *visit = request->subject;

	(void)discovery;
	if (begin(visit, request, error, reply))
		memcpy(visit->node->description, reply->data, IB_SMP_DATA_SIZE);
	end(visit);
}

static void switch_came(struct discovery *discovery, struct discovery_request *request,
			int error, const struct mad_reply *reply)
{
	struct visit *visit = request->subject;
	struct mad_fabric_node *node = visit->node;

	(void)discovery;
	if (begin(visit, request, error, reply) && store(visit, &node->switch_info, reply))
		node->enhanced_port0 = mad_read_field(reply->data, 0, IB_SW_ENHANCED_PORT0_F);
	end(visit);
}

static void read_port(struct mad_fabric_port *port, const uint8_t *info)
{
	port->state = (uint8_t)mad_read_field(info, 0, IB_PORT_STATE_F);
	port->physical_state = (uint8_t)mad_read_field(info, 0, IB_PORT_PHYS_STATE_F);
	port->mtu = (uint16_t)mad_link_mtu(
		(uint32_t)mad_read_field(info, 0, IB_PORT_NEIGHBOR_MTU_F));
	/* the ports of a switch have those of its port 0 (IBA 14.2.5.6) */
	if (port->node->type == IB_NODE_SWITCH && port->number)
		return;
	port->lid = (uint16_t)mad_read_field(info, 0, IB_PORT_LID_F);
	port->lmc = (uint8_t)mad_read_field(info, 0, IB_PORT_LMC_F);
	port->sm_lid = (uint16_t)mad_read_field(info, 0, IB_PORT_SMLID_F);
	port->capability_mask = (uint32_t)mad_read_field(info, 0, IB_PORT_CAPMASK_F);
}

/* FDR10 is QDR in PortInfo. The extended speeds are valid if port 0 of a switch says so. */
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

static void use_port(struct visit *visit, struct mad_fabric_port *port,
		     const struct mad_reply *reply)
{
	struct discovery *discovery = visit->discovery;

	if (!store(visit, &port->info, reply))
		return;
	read_port(port, reply->data);
	if (port == graph_lid_port(visit->node)) {
		visit->node->lid = port->lid;
		visit->node->lmc = port->lmc;
	}
	if (port->physical_state != MAD_PHYSICAL_LINK_UP)
		return;
	if (discovery->options.read & MAD_FABRIC_READ_MLNX_EXT_PORTS && may_be_fdr10(port))
		ask(visit, IB_ATTR_MLNX_EXT_PORT_INFO, port->number, mlnx_port_came);
	if (port->number)
		neighbours_follow(discovery, port);
}

static void port_came(struct discovery *discovery, struct discovery_request *request, int error,
		      const struct mad_reply *reply)
{
	struct visit *visit = request->subject;
	struct mad_fabric_port *port = graph_port(visit->node, request->modifier);

	if (discovery->error)
		port->error = discovery->error;
	else
		port->error = error == -ECANCELED ? -ETIMEDOUT : error;
	if (begin(visit, request, error, reply))
		use_port(visit, port, reply);
	end(visit);
}

static void mlnx_port_came(struct discovery *discovery, struct discovery_request *request,
			   int error, const struct mad_reply *reply)
{
	struct visit *visit = request->subject;
	struct mad_fabric_port *port = graph_port(visit->node, request->modifier);

	(void)discovery;
	if (begin(visit, request, error, reply))
		store(visit, &port->mlnx_ext_info, reply);
	end(visit);
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
	visit->next_number = node->type == IB_NODE_SWITCH ? 0 : 1;
	list_init(&visit->requests);
	if (read & MAD_FABRIC_READ_DESCRIPTIONS)
		ask(visit, IB_ATTR_NODE_DESC, 0, description_came);
	if (read & MAD_FABRIC_READ_SWITCHES && node->type == IB_NODE_SWITCH)
		ask(visit, IB_ATTR_SWITCH_INFO, 0, switch_came);
	if (!(read & MAD_FABRIC_READ_PORTS))
		for (unsigned number = 1; number <= node->port_count; number++)
			neighbours_follow(discovery, graph_port(node, number));
	end(visit);
}
