/* SPDX-License-Identifier: BSD-2-Clause */

/* The state of a discovery, and the functions of its parts. */
#ifndef LIBIBMAD_DISCOVERY_H
#define LIBIBMAD_DISCOVERY_H

#include "base/list.h"
#include "engine/async.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_fabric.h>

#include <stdint.h>

struct discovery;
struct discovery_request;

/* Called once for each request that was submitted. data is 64 bytes if error is 0. */
typedef void discovery_fn(struct discovery *discovery, struct discovery_request *request,
			  int error, const struct mad_reply *reply);

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
	struct list free;     /* to be used again */
};

struct discovery_request {
	struct list entry; /* of discovery:requests, or free */
	struct list group; /* among the requests that may be given up together */
	struct discovery *discovery;
	discovery_fn *came;
	void *subject; /* of came: a struct visit, or a port */
	uint64_t id;   /* for mad_async_cancel() */
	uint16_t attribute;
	uint8_t modifier;
	bool given_up;
};

/* --- requests.c ------------------------------------------------------------------- */

/*
 * Submits a Get of an attribute to the end of a route; came is called for it. The request is in
 * the group, unless that is NULL, until then. False if it cannot be submitted: then the
 * discovery ends.
 */
bool request_submit(struct discovery *discovery, struct list *group, const ib_dr_path_t *route,
		    unsigned attribute, unsigned modifier, discovery_fn *came, void *subject);

/* Whether the part of the fabric that is known is to be handed over after an error. */
static inline bool discovery_keeps_part(const struct discovery *discovery)
{
	return discovery->options.partial && !discovery->no_memory;
}

/* Cancels the requests of a group, which are called back with -ECANCELED. */
void requests_give_up(struct discovery *discovery, struct list *group);

/* Whether a node refused an attribute that not all nodes have, which is no failure. */
bool request_is_refusal(const struct discovery_request *request, const struct mad_reply *reply);

/* Calls options:progress with the present numbers. */
void requests_tell_progress(struct discovery *discovery);
/* The same, if they are new, and unless it was called less than 100 ms ago. */
void requests_tell_news(struct discovery *discovery);

/* The problem of a request that failed. */
struct mad_fabric_problem request_problem(enum mad_fabric_problem_kind kind,
					  const struct discovery_request *request, int error,
					  const struct mad_reply *reply);

/* Ends a discovery with an error: cancels its requests. */
void discovery_abort(struct discovery *discovery, int error);
/* Cancels all requests. */
void requests_cancel(struct discovery *discovery);

void requests_free(struct discovery *discovery);

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

/* --- discovery.c ------------------------------------------------------------------ */

/* Called after the last request. Hands over the result, and frees the discovery. */
void discovery_complete(struct discovery *discovery);

#endif
