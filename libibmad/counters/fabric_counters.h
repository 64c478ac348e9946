/* SPDX-License-Identifier: BSD-2-Clause */

/* The state of a struct fabric_counters, and the functions of its parts. */
#ifndef LIBIBMAD_FABRIC_COUNTERS_H
#define LIBIBMAD_FABRIC_COUNTERS_H

#include "counters/reading.h"
#include "counters/tracker.h"

#include <infiniband/mad_fabric_counters.h>

/* The readings of a port. */
struct port_record {
	uint64_t time_us; /* of the latest reading */
	uint32_t reading; /* its number */
	int16_t error;
	uint16_t status;
	uint16_t events;
	bool has_counters; /* "packed" is in use */
	uint8_t packed[];  /* a union tracked_port */
};

/* The latest reading of a port and its tracker, for a reader, and to be packed. */
union tracked_port {
	struct {
		struct mad_counters latest;
		struct mad_counters_tracker tracker;
	};
	uint64_t words[(sizeof(struct mad_counters) + sizeof(struct mad_counters_tracker)) /
		       sizeof(uint64_t)];
};

struct counted_node {
	uint64_t guid;
	const struct mad_fabric_node *in_fabric; /* NULL: the latest fabric does not have it */
	uint64_t seen_us; /* when the object was last told of a fabric with the node */
	struct abilities abilities; /* from ClassPortInfo, if it is known */
	bool known;
	bool is_forgotten;             /* by a call: the next update drops it */
	uint8_t port_count;            /* the highest number of a port */
	struct port_record *records[]; /* by port number; NULL: none */
};

/* Where fabric_counters:nodes has a node. */
struct node_place {
	uint64_t guid;
	size_t place;
};

struct fabric_reading;

struct fabric_counters {
	struct mad_fabric_counters shown; /* first; its "latest" is the summary */
	struct mad_fabric_counters_settings settings;
	struct counted_node **nodes; /* in the order of the results */
	struct node_place *by_guid;  /* sorted */
	size_t node_count;
	struct fabric_reading *reading; /* not complete; or NULL */
	struct mad_async *engine;       /* of the reading */
	uint64_t id;                    /* for mad_async_cancel() */
	uint32_t readings;              /* the number of the latest reading */
	bool is_freed;                  /* when the reading is complete */
	struct mad_fabric_counters_summary summary;
	/* the latest result, and its place */
	size_t node;
	unsigned number;
	struct mad_fabric_counters_port port;
	union tracked_port tracked;
};

static inline struct fabric_counters *fabric_counters_of(struct mad_fabric_counters *shown)
{
	return (struct fabric_counters *)(void *)shown;
}

/* Stores the result of a port. counters may be NULL. 0 or -ENOMEM. */
int record_store(struct fabric_counters *counters, struct counted_node *node, unsigned number,
		 int error, const struct mad_counters *reading);

/* Frees the object. */
void fabric_counters_destroy(struct fabric_counters *counters);

#endif
