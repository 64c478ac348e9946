/* SPDX-License-Identifier: BSD-2-Clause */

/* State and internal functions of struct fabric_counters. */
#ifndef LIBIBMAD_FABRIC_COUNTERS_H
#define LIBIBMAD_FABRIC_COUNTERS_H

#include "counters/reading.h"
#include "counters/tracker.h"

#include <infiniband/mad_fabric_counters.h>

/* A port's readings. */
struct port_record {
	uint64_t time_us; /* of the latest reading */
	uint32_t reading; /* number of the latest reading */
	int16_t error;
	uint16_t status;
	uint16_t events;
	bool has_counters; /* "packed" is used */
	uint8_t packed[];  /* union tracked_port */
};

/* A port's latest reading and tracker, unpacked. */
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
	const struct mad_fabric_node *in_fabric; /* NULL: not in the latest fabric */
	uint64_t seen_us;           /* last update with a fabric that has the node */
	struct abilities abilities; /* from ClassPortInfo, if known */
	bool known;
	bool is_forgotten;             /* by a call; dropped by the next update */
	uint8_t port_count;            /* highest port number */
	struct port_record *records[]; /* by port number; NULL: none */
};

struct node_place {
	uint64_t guid;
	size_t place;
};

struct fabric_reading;

struct fabric_counters {
	struct mad_fabric_counters shown; /* must be first; its "latest" is the summary */
	struct mad_fabric_counters_settings settings;
	struct counted_node **nodes; /* in result order */
	struct node_place *by_guid;  /* sorted */
	size_t node_count;
	struct fabric_reading *reading; /* in progress; or NULL */
	struct mad_async *engine;       /* the reading's */
	uint64_t id;                    /* for mad_async_cancel() */
	uint32_t readings;              /* number of the latest reading */
	bool is_freed;                  /* free when the reading is complete */
	struct mad_fabric_counters_summary summary;
	/* current result and its position */
	size_t node;
	unsigned number;
	struct mad_fabric_counters_port port;
	union tracked_port tracked;
};

static inline struct fabric_counters *fabric_counters_of(struct mad_fabric_counters *shown)
{
	return (struct fabric_counters *)(void *)shown;
}

/* Stores a port's result. counters may be NULL. Returns 0 or -ENOMEM. */
int record_store(struct fabric_counters *counters, struct counted_node *node, unsigned number,
		 int error, const struct mad_counters *reading);

void fabric_counters_destroy(struct fabric_counters *counters);

#endif
