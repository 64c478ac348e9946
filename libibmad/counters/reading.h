/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A reading of the counters of a port, or their reset, as a passive state machine: it selects
 * the attribute of the next request, and takes the response. It does no I/O.
 */
#ifndef LIBIBMAD_READING_H
#define LIBIBMAD_READING_H

#include "counters/counter_table.h"

#include <infiniband/mad_errors.h>

#include <stdatomic.h>

/* The capabilities of a node. */
struct abilities {
	uint32_t capability_mask;
	uint32_t capability_mask2;
	uint16_t refused; /* attributes that the node lacks; bits by enum counter_source */
};

/* No lock: a child of fork() ends the readings of its parent. */
struct mad_counters_node {
	atomic_uint users;               /* the creator, and readings that are not complete */
	atomic_bool known;               /* by its ClassPortInfo */
	_Atomic uint64_t capabilities;   /* capability_mask, and below it capability_mask2 */
	_Atomic uint16_t refused;        /* as in struct abilities */
	struct mad_async *_Atomic asker; /* the engine whose inquiry this is; or NULL */
	struct inquiry *inquiry;         /* of counters.c; for the asker alone */
};

/* The node may be NULL in these functions. */
void node_hold(struct mad_counters_node *node);
/* Releases the node, and frees it if it has no other user. */
void node_release(struct mad_counters_node *node);
/* Reads the capabilities of the node. False without its ClassPortInfo. */
bool node_recall(struct mad_counters_node *node, struct abilities *abilities);
/* Stores the capabilities from ClassPortInfo, and more attributes that the node lacks. */
void node_learn(struct mad_counters_node *node, const struct abilities *abilities);

struct reading {
	struct mad_counters_options options;
	bool resets;   /* resets the counters instead */
	bool is_known; /* the node, by its ClassPortInfo */
	struct abilities abilities;
	uint16_t asked;               /* attributes that were requested */
	struct mad_failure failure;   /* of the latest request that failed */
	struct mad_counters counters; /* "present" has those that were read or reset */
};

/* options may be NULL. */
bool reading_is_valid(const ib_portid_t *dport, unsigned port_number,
		      const struct mad_counters_options *options);
/* options may be NULL, and need not be valid. */
void reading_init(struct reading *reading, unsigned port_number,
		  const struct mad_counters_options *options, bool resets);

/*
 * The attribute of the next request. If none is left, SOURCE_NONE, and *error is the result of
 * the reading.
 */
enum counter_source reading_next(struct reading *reading, int *error);
/* The request for an attribute, with its data of IB_PC_DATA_SZ bytes. */
ib_rpc_t reading_request(const struct reading *reading, enum counter_source source,
			 uint8_t *data);
/*
 * Takes the response to the request. Without one, error is not 0, and the thread's last failure
 * has the details. Returns 0, or the error with which the reading ends.
 */
int reading_take(struct reading *reading, enum counter_source source, int error,
		 const uint8_t *data, size_t size);
/* Sets the other members of the counters when the reading is complete. */
void reading_complete(struct reading *reading);

/* Stores the error as the failure of the thread, unless it is 0 or more. Returns it. */
int counters_fail(int error);
/* The same, or the failure of the request that had this error. */
int reading_fail(const struct reading *reading, int error);

#endif
