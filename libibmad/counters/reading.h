/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A reading of the counters of a port as a passive state machine: it selects the attribute of
 * the next request, and reads the response. It does no I/O.
 */
#ifndef LIBIBMAD_READING_H
#define LIBIBMAD_READING_H

#include "base/list.h"
#include "counters/counter_table.h"

#include <infiniband/mad_errors.h>

#include <pthread.h>

/* The capabilities of a node. */
struct abilities {
	uint32_t capability_mask;
	uint32_t capability_mask2;
	uint16_t refused; /* attributes that the node lacks; bits by enum counter_source */
};

struct mad_counters_node {
	pthread_mutex_t lock;
	unsigned users; /* the creator, and readings that are not complete */
	bool known;     /* by its ClassPortInfo */
	struct abilities abilities;
	struct mad_async *asker; /* the engine that asks for ClassPortInfo; or NULL */
	struct list waiting;     /* readings of that engine that wait for it */
};

void node_hold(struct mad_counters_node *node);
/* Releases the node, and frees it if it has no other user. */
void node_release(struct mad_counters_node *node);
/*
 * Reads the capabilities of the node, with its lock. False without a ClassPortInfo. node may be
 * NULL.
 */
bool node_recall(struct mad_counters_node *node, struct abilities *abilities);
/* Stores the capabilities from ClassPortInfo, with the lock. node may be NULL. */
void node_learn(struct mad_counters_node *node, const struct abilities *abilities);
/* Stores that the node does not have an attribute, with the lock. node may be NULL. */
void node_note_refusal(struct mad_counters_node *node, enum counter_source source);

/* The options of a reading. */
struct reading_options {
	uint64_t counters;
	struct mad_counters_node *node;
	int timeout_ms;
	bool basic;
	struct mad_counters_details *details_to;
	size_t details_size;
};

struct reading {
	struct reading_options options;
	struct abilities abilities;
	uint16_t asked; /* attributes that were requested */
	uint8_t port;
	unsigned groups; /* of details that are wanted */
	uint32_t requests;
	uint32_t status;                      /* of the request that failed; or 0 */
	struct mad_failure failure;           /* of the latest request that failed */
	uint64_t present;                     /* counters that were read */
	struct mad_counters_details *details; /* NULL: none are wanted */
	/*
	 * The result, from the first response on. It is not a part of the reading, because many
	 * readings may be queued.
	 */
	struct mad_counters *counters;
};

/* options may be NULL. */
bool reading_is_valid(const ib_portid_t *dport, unsigned port_number,
		      const struct mad_counters_options *options);
/* options may be NULL. The caller sets counters, and details if it has groups, to zeros. */
void reading_init(struct reading *reading, unsigned port_number,
		  const struct mad_counters_options *options);

/* Whether the reading begins with ClassPortInfo unless the node is known. */
bool reading_needs_class_port_info(const struct reading *reading);

/* A request, whose data is that of a Get. */
ib_rpc_t reading_request(const struct reading *reading, unsigned attribute, uint8_t *data);

/* The response to a request, or its error. */
struct mad_outcome {
	struct mad_failure failure; /* its error is 0 with a response */
	const uint8_t *data;
	size_t size;
};

/* Reads ClassPortInfo into reading->abilities. Returns 0 or an error. */
int reading_take_class_port_info(struct reading *reading, const struct mad_outcome *outcome);

/*
 * The attribute of the next request, an enum counter_source. If none is left, -1, and *error is
 * the result of the reading.
 */
int reading_next(const struct reading *reading, int *error);
/* The requested counters that only this attribute, or a later one, has. */
uint64_t reading_wanted(const struct reading *reading, enum counter_source source);
/*
 * Reads the response to reading_next(). Returns 0, or the error with which the reading
 * completes.
 */
int reading_take(struct reading *reading, enum counter_source source,
		 const struct mad_outcome *outcome);
/* Sets the other members of the counters when the reading is complete, and the details. */
void reading_complete(struct reading *reading);

/* Stores the error as the failure of the thread, unless it is 0 or more. Returns it. */
int counters_fail(int error);
/* The same, or the failure of the request that had this error. */
int reading_fail(const struct reading *reading, int error);

/* Stores that the node does not have an attribute. False: the outcome has another meaning. */
bool reading_note_refusal(struct reading *reading, enum counter_source source,
			  const struct mad_outcome *outcome);

#endif
