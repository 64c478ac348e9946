/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A reading of a port's counters as a passive state machine: it says which attribute to ask
 * for, and takes the response. It does no I/O.
 */
#ifndef LIBIBMAD_READING_H
#define LIBIBMAD_READING_H

#include "engine/list.h"
#include "counters/counter_table.h"

#include <pthread.h>

/* What is known of a node. */
struct abilities {
	uint32_t capability_mask;
	uint32_t capability_mask2;
	uint8_t refused; /* attributes that the node does not have: bits by enum counter_source
			  */
};

struct mad_counters_node {
	pthread_mutex_t lock;
	unsigned users; /* the creator, and readings that are not complete */
	bool known;     /* by its ClassPortInfo */
	struct abilities abilities;
	struct mad_async *asker; /* the engine that asks for ClassPortInfo; or NULL */
	uint64_t asked;          /* how often an engine became the asker */
	bool is_submitted;       /* the asker's request */
	struct list waiting;     /* readings of that engine that wait for it */
};

void node_hold(struct mad_counters_node *node);
/* Frees it if nobody holds it. */
void node_release(struct mad_counters_node *node);
/* What is known of the node; locks. False: no ClassPortInfo. NULL is allowed. */
bool node_recall(struct mad_counters_node *node, struct abilities *abilities);
/* Keeps what ClassPortInfo said; locks. NULL is allowed. */
void node_learn(struct mad_counters_node *node, const struct abilities *abilities);
/* Keeps that the node refused an attribute; locks. NULL is allowed. */
void node_note_refusal(struct mad_counters_node *node, enum counter_source source);

/* What a reading needs of struct mad_counters_options. */
struct reading_options {
	uint64_t counters;
	struct mad_counters_node *node;
	int timeout_ms;
	bool basic;
};

struct reading {
	struct reading_options options;
	struct abilities abilities;
	uint8_t asked; /* attributes that were asked for */
	uint8_t port;
	uint32_t requests;
	uint32_t status;  /* of the request that failed; or 0 */
	uint64_t present; /* counters that were read */
	/* Where they go, from the first response on. The reading is small before, because many
	 * readings may be queued. */
	struct mad_counters *counters;
};

/* options may be NULL. */
bool reading_is_valid(const ib_portid_t *dport, unsigned port_number,
		      const struct mad_counters_options *options);
/* options may be NULL. The caller sets counters, to zeros. */
void reading_init(struct reading *reading, unsigned port_number,
		  const struct mad_counters_options *options);

/* Whether the reading begins with ClassPortInfo unless the node is known. */
bool reading_needs_class_port_info(const struct reading *reading);

/* A request, whose data is that of a Get. */
ib_rpc_t reading_request(const struct reading *reading, unsigned attribute, uint8_t *data);

/* A response to a request, or what became of it. */
struct mad_outcome {
	int error;
	unsigned status;
	const uint8_t *data;
	size_t size;
};

/* ClassPortInfo: 0 or an error. What was learned is in reading->abilities. */
int reading_take_class_port_info(struct reading *reading, const struct mad_outcome *outcome);

/*
 * The next attribute to ask for, an enum counter_source. If all were asked for, -1, and *error
 * is the result of the reading.
 */
int reading_next(const struct reading *reading, int *error);
/* Counters that are wanted and that only this attribute, or a later one, has. */
uint64_t reading_wanted(const struct reading *reading, enum counter_source source);
/* The response to reading_next(): 0, or the error with which the reading ends. */
int reading_take(struct reading *reading, enum counter_source source,
		 const struct mad_outcome *outcome);
/* What the counters have beside their numbers when the reading is complete. */
void reading_complete(struct reading *reading);

/* Notes that the node refused an attribute; false: the outcome is not a refusal. */
bool reading_note_refusal(struct reading *reading, enum counter_source source,
			  const struct mad_outcome *outcome);

#endif
