/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A reading of the ports of a fabric on an engine. The ports of a node are read one after the
 * other by a struct walk, and several nodes at once: the queue of the engine has a request of
 * each. The reading is complete when the last walk has ended.
 *
 * After an error that concerns all requests, the walks go on without requests, so that each
 * wanted port that was not read has the error.
 */
#ifndef LIBIBMAD_FABRIC_READING_H
#define LIBIBMAD_FABRIC_READING_H

#include "base/list.h"
#include "engine/async.h"
#include "counters/fabric_counters.h"

/* A node whose ports are being read. */
struct walk {
	struct list entry; /* in the reading's walks, or free */
	struct fabric_reading *reading;
	struct counted_node *node;
	struct mad_counters_node *memory; /* ClassPortInfo; NULL: it is not needed */
	uint64_t id;                      /* of the reading, or of the request for NodeInfo */
	unsigned number;                  /* of the port that is read, or was read last */
	unsigned silent;                  /* ports without a response in succession */
	int error;                        /* the ports that are left are not requested; or 0 */
	unsigned status;                  /* the MAD status, if the error is -EIO of NodeInfo */
	bool responds;                    /* the node has responded */
	bool is_changed;                  /* ClassPortInfo is to be read again */
};

struct fabric_reading {
	struct engine_operation operation;
	struct fabric_counters *counters;
	struct mad_async *async;
	struct mad_fabric_counters_options options;
	mad_fabric_counters_fn *done;
	void *arg;
	int error;   /* the reading ends with this error; its requests are cancelled */
	size_t next; /* the next node */
	unsigned active;
	struct list walks; /* that have a request */
	struct list free;  /* walks to be used again */
	struct limits limits;
};

/* --- fabric_reading.c ------------------------------------------------------------- */

/* Ends the reading with an error: cancels its requests. */
void reading_end(struct fabric_reading *reading, int error);

/* Called when a walk has ended: begins the next ones, or completes the reading. */
void reading_proceed(struct fabric_reading *reading);

/* --- node_walk.c ------------------------------------------------------------------ */

/* Begins to read a node. False: it has no port to request. */
bool walk_begin(struct fabric_reading *reading, struct counted_node *node);

#endif
