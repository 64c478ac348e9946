/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Discovery: each response leads to further requests, and the engine sends as many at once as
 * flow control permits. It is complete when nothing is in flight.
 *
 * discovery.c: calls, requests on the engine, completion.
 *
 * neighbours.c: NodeInfo of the first node and behind each port with a link. Each new node is
 * visited.
 *
 * visit.c: a new node's attributes and ports, then the neighbours behind ports with a link.
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
	struct mad_fabric_options options; /* defaults filled in */
	ib_portid_t base;                  /* where it begins */
	mad_fabric_fn *done;
	void *arg;
	struct mad_fabric *fabric;
	struct mad_fabric_progress progress;
	int64_t next_progress_us;
	bool has_news;              /* not all progress has been reported */
	int error;                  /* why it ends; its requests are cancelled */
	bool too_many;              /* the problem was noted */
	bool no_memory;             /* the fabric may be inconsistent */
	struct mad_failure failure; /* of the first node's NodeInfo */
	struct limits limits;
	/* by previous_node number: index of its problem plus 1, or 0 */
	size_t *previous_failures;
	struct list requests; /* not completed */
};

struct discovery_request {
	struct list entry; /* in discovery:requests */
	struct list group; /* requests that may be given up together */
	struct discovery *discovery;
	/* Called once per submitted request. */
	void (*came)(struct discovery_request *request);
	void *subject; /* came's: a struct visit or a port */
	uint64_t id;   /* for mad_async_cancel() */
	uint16_t attribute;
	uint8_t modifier;
	bool given_up;
	/* for came */
	const struct mad_reply *reply; /* 64 bytes of data if error is 0 */
	int error;                     /* the reply's, or -EBADMSG if too short */
	unsigned status;               /* the response's, if error is -EIO; 0: not sent */
};

/* --- discovery.c ------------------------------------------------------------------ */

/*
 * Submits a Get to the end of a route; came is called with the result. Until then, the request
 * is in the group, unless NULL. On failure, returns false and ends the discovery.
 */
bool discovery_submit(struct discovery *discovery, struct list *group,
		      const ib_dr_path_t *route, unsigned attribute, unsigned modifier,
		      void (*came)(struct discovery_request *request), void *subject);

/* Adds a problem; sets *index unless NULL. On OOM the discovery ends. */
void discovery_note(struct discovery *discovery, const struct mad_fabric_problem *problem,
		    size_t *index);

/* Copies an attribute into the graph. On OOM, returns NULL and ends the discovery. */
const uint8_t *discovery_store(struct discovery *discovery, const uint8_t *attribute);

/* Ends the discovery with an error and cancels its requests. */
void discovery_abort(struct discovery *discovery, int error);

/* Whether to return the known part of the fabric after an error. */
static inline bool discovery_keeps_part(const struct discovery *discovery)
{
	return discovery->options.partial && !discovery->no_memory;
}

/* --- visit.c ---------------------------------------------------------------------- */

/*
 * Reads a node: description, SwitchInfo, each port's PortInfo; follows ports with a link. A
 * node that does not respond is given up.
 */
void visit_node(struct discovery *discovery, struct mad_fabric_node *node);

/* --- neighbours.c ----------------------------------------------------------------- */

/* Submits the first node's NodeInfo. On failure, the discovery has an error. */
void neighbours_begin(struct discovery *discovery);

/* Submits NodeInfo behind a port, unless it is known or no route leads there. */
void neighbours_follow(struct discovery *discovery, struct mad_fabric_port *port);

#endif
