/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Reads or resets a port's counters, as a passive state machine: it selects the next request's
 * attribute and takes the response. No I/O.
 */
#ifndef LIBIBMAD_READING_H
#define LIBIBMAD_READING_H

#include "counters/counter_table.h"

#include <infiniband/mad_errors.h>

#include <stdatomic.h>

/* A node's capabilities. */
struct abilities {
	uint32_t capability_mask;
	uint32_t capability_mask2;
	uint16_t refused; /* attributes the node lacks, by enum counter_source */
};

/* Atomic, no lock: a fork()ed child ends its parent's readings. */
struct mad_counters_node {
	atomic_uint users;               /* creator and readings in progress */
	atomic_bool known;               /* from its ClassPortInfo */
	_Atomic uint64_t capabilities;   /* capability_mask above capability_mask2 */
	_Atomic uint16_t refused;        /* as in struct abilities */
	struct mad_async *_Atomic asker; /* engine whose inquiry this is, or NULL */
	struct inquiry *inquiry;         /* counters.c's; used only by the asker */
};

/* The node may be NULL in these calls. */
void node_hold(struct mad_counters_node *node);
/* Frees the node after the last user. */
void node_release(struct mad_counters_node *node);
/* Returns false if its ClassPortInfo is unknown. */
bool node_recall(struct mad_counters_node *node, struct abilities *abilities);
/* Stores capabilities from ClassPortInfo, and further attributes the node lacks. */
void node_learn(struct mad_counters_node *node, const struct abilities *abilities);

struct reading {
	struct mad_counters_options options;
	bool resets;   /* reset rather than read */
	bool is_known; /* ClassPortInfo was read */
	struct abilities abilities;
	uint16_t asked;               /* attributes requested */
	struct mad_failure failure;   /* of the latest failed request */
	struct mad_counters counters; /* "present": those read or reset */
};

/* options may be NULL. */
bool reading_is_valid(const ib_portid_t *dport, unsigned port_number,
		      const struct mad_counters_options *options);
/* options may be NULL or invalid. */
void reading_init(struct reading *reading, unsigned port_number,
		  const struct mad_counters_options *options, bool resets);

/*
 * Returns the next attribute to request. At the end, SOURCE_NONE, with the reading's result in
 * *error.
 */
enum counter_source reading_next(struct reading *reading, int *error);
/* The request for an attribute, with IB_PC_DATA_SZ bytes of data. */
ib_rpc_t reading_request(const struct reading *reading, enum counter_source source,
			 uint8_t *data);
/*
 * Takes the response, or a nonzero error, with details in the thread's last failure. Returns 0,
 * or the error that ends the reading.
 */
int reading_take(struct reading *reading, enum counter_source source, int error,
		 const uint8_t *data, size_t size);
/* Fills in the remaining members of a complete reading's counters. */
void reading_complete(struct reading *reading);

/* Stores the thread's failure if error is negative. Returns error. */
int counters_fail(int error);
/* As counters_fail(), with the failed request's details if it had this error. */
int reading_fail(const struct reading *reading, int error);

#endif
