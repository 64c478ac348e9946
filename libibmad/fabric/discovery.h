/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Discovery. A response leads to further requests, and the engine sends as many at once as flow
 * control permits. The discovery is complete when no request is in flight.
 *
 * discovery.c: the calls, the requests on the engine, and the end.
 *
 * neighbours.c: NodeInfo of the first node, and of the node behind each port with a link. Each
 * new node is visited.
 *
 * visit.c: the attributes and ports of a new node. The neighbours follow each port with a link.
 */
#ifndef LIBIBMAD_DISCOVERY_H
#define LIBIBMAD_DISCOVERY_H

#include "base/list.h"
#include "engine/async.h"
#include "fabric/graph.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_fabric.h>

#include <stdint.h>

struct discovery {
	struct engine_operation operation;
	struct mad_async *async;
	struct mad_fabric_options options; /* the defaults filled in */
	ib_portid_t base;                  /* where the discovery begins */
	mad_fabric_fn *done;
	void *arg;
	struct mad_fabric *fabric;
	struct mad_fabric_progress progress;
	int64_t next_progress_us;
	bool has_news;  /* the program was not told the latest numbers */
	int error;      /* the discovery ends with this error; its requests are cancelled */
	bool too_many;  /* the problem has been noted */
	bool no_memory; /* the fabric is not complete in itself */
	struct mad_failure failure; /* of the first node's NodeInfo */
	struct limits limits;
	/* by the number of a previous_node: the index of its problem plus 1, or 0 */
	size_t *previous_failures;
	struct list requests; /* that are not complete */
};

/* A Get of an attribute. */
struct discovery_request {
	struct list entry; /* of discovery:requests */
	struct list group; /* among the requests that may be given up together */
	struct discovery *discovery;
	/* Called once for each request that was submitted. */
	void (*came)(struct discovery_request *request);
	void *subject; /* of came: a struct visit, or a port */
	uint64_t id;   /* for mad_async_cancel() */
	uint16_t attribute;
	uint8_t modifier;
	bool given_up;
	/* for came */
	const struct mad_reply *reply; /* its data is 64 bytes if error is 0 */
	int error;                     /* of the reply, or -EBADMSG if it is too short */
	unsigned status; /* of the response, if error is -EIO; 0: it could not be sent */
};

/* --- discovery.c ------------------------------------------------------------------ */

/*
 * Submits a Get of an attribute to the end of a route; came is called for it. The request is in
 * the group, unless that is NULL, until then. False if it cannot be submitted: then the
 * discovery ends.
 */
bool discovery_submit(struct discovery *discovery, struct list *group,
		      const ib_dr_path_t *route, unsigned attribute, unsigned modifier,
		      void (*came)(struct discovery_request *request), void *subject);

/* Adds a problem, and sets *index, unless it is NULL. Without memory the discovery ends. */
void discovery_note(struct discovery *discovery, const struct mad_fabric_problem *problem,
		    size_t *index);

/* A copy of an attribute in the graph; NULL without memory, which ends the discovery. */
const uint8_t *discovery_store(struct discovery *discovery, const uint8_t *attribute);

/* Ends a discovery with an error: cancels its requests. */
void discovery_abort(struct discovery *discovery, int error);

/* Whether the part of the fabric that is known is to be handed over after an error. */
static inline bool discovery_keeps_part(const struct discovery *discovery)
{
	return discovery->options.partial && !discovery->no_memory;
}

/* --- visit.c ---------------------------------------------------------------------- */

/*
 * Reads a node: description, SwitchInfo, PortInfo of each port. Follows each port with a
 * link. A node that does not respond is given up.
 */
void visit_node(struct discovery *discovery, struct mad_fabric_node *node);

/* --- neighbours.c ----------------------------------------------------------------- */

/* Submits NodeInfo of the first node. If it cannot be submitted, the discovery has an error. */
void neighbours_begin(struct discovery *discovery);

/* Submits NodeInfo of the node behind a port, unless it is known or no route leads there. */
void neighbours_follow(struct discovery *discovery, struct mad_fabric_port *port);

#endif
