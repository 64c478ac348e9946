/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * TID table: transmissions that await a response, by TID.
 *
 * A request's first transmission has the request's own TID. The kernel rejects a TID that it
 * holds, so a retransmission reuses it only once the kernel has given up on the earlier one;
 * otherwise it has a new TID.
 *
 * No TID is reused while a response to its earlier request may still arrive. The library's TIDs
 * are consecutive, so they differ. One chosen by a caller rests after each packet; a request
 * whose chosen TID is resting is sent with one of the library's.
 */
#ifndef LIBIBMAD_TIDS_H
#define LIBIBMAD_TIDS_H

#include "mad/layout.h"

#include <stdbool.h>
#include <stdint.h>

/* Enough for blocking calls, which allocate no memory. */
#define TIDS_FIRST_BUCKETS 16
/* How long a caller-chosen TID rests after each packet; no response takes longer. */
#define TIDS_REST_S        300
/*
 * Resting TIDs are stored by their lowest bits (a power of two): callers' TIDs that share those
 * bits are used one at a time, and the others count as resting.
 */
#define TIDS_RESTS         1024

/* Transmissions per request that may still get a response: the own TID's and two others. */
#define TIDS_LIVE 3

/* A transmission that may still get a response. */
struct transmission {
	struct transmission *next; /* in its bucket */
	int64_t sent;              /* in microseconds */
	uint32_t tid;              /* lower half; 0: not chosen yet */
	uint8_t slot;              /* index in its request; 0 has the own TID */
	bool expected;             /* may get a response */
};

struct transmissions {
	struct transmission live[TIDS_LIVE]; /* the first has the request's own TID */
	uint16_t count;                      /* transmissions so far */
	uint8_t latest;                      /* slot of the latest transmission */
	uint8_t mgmt_class;
	bool timed_out;  /* the kernel gave up on a transmission with the own TID */
	bool chosen;     /* the caller chose the own TID */
	bool renumbered; /* the kernel rejected a TID; the packet to write has a new one */
	uint8_t method;  /* the request's; the buffer may later hold the response's */
};

/* A caller-chosen TID, and the end of its rest in seconds. */
struct resting_tid {
	uint32_t tid, until;
};

/* All transmissions on a port. */
struct tids {
	struct transmission **buckets; /* first_buckets, or allocated */
	struct transmission *first_buckets[TIDS_FIRST_BUCKETS];
	unsigned bucket_count; /* a power of two */
	unsigned count;
	struct resting_tid resting[TIDS_RESTS]; /* by the lowest bits of the TID */
};

void tids_init(struct tids *tids);
void tids_free(struct tids *tids);
/* Makes room for "count" transmissions. On OOM the chains become longer. */
void tids_reserve(struct tids *tids, unsigned count);

static inline bool transmission_is_own(const struct transmission *transmission)
{
	return transmission->slot == 0;
}

static inline struct transmissions *transmissions_of(struct transmission *transmission)
{
	return (struct transmissions *)(void *)(transmission - transmission->slot);
}

/* Whether the kernel may still hold the request's own TID. */
static inline bool transmissions_hold_own(const struct transmissions *transmissions)
{
	return transmissions->live[0].expected;
}

/* Whether any transmission may still get a response. */
static inline bool transmissions_expect(const struct transmissions *transmissions)
{
	return transmissions->live[0].expected || transmissions->live[1].expected ||
	       transmissions->live[2].expected;
}

/*
 * Whether a response must belong to this transmission: after a timeout, several have had the
 * own TID.
 */
static inline bool transmission_is_certain(struct transmission *transmission)
{
	return !transmission_is_own(transmission) || !transmissions_of(transmission)->timed_out;
}

/* Finds the transmission that a MAD with this TID and class responds to; NULL: none. */
struct transmission *tids_find(const struct tids *tids, uint32_t tid, uint8_t mgmt_class);

/* The structure must be zeroed. */
void transmissions_init(struct transmissions *transmissions, uint32_t tid, uint8_t mgmt_class);

/* Call when a packet with a caller-chosen TID is sent. */
void tids_rest(struct tids *tids, uint32_t tid, int64_t now);

/*
 * Picks the next transmission's TID and starts accepting responses. Uses the request's own TID,
 * unless the kernel still holds it or another request's response may have it.
 */
struct transmission *transmission_begin(struct tids *tids, struct transmissions *transmissions,
					uint8_t *mad, int64_t now);

/* Stops accepting responses to the transmission. */
void transmission_forget(struct tids *tids, struct transmission *transmission);

/* The kernel reported the transmission's timeout. */
void transmission_timed_out(struct tids *tids, struct transmission *transmission);
/* The kernel rejected the packet. If it had the own TID, the request is given a new one. */
void transmission_refused(struct tids *tids, struct transmission *transmission);
/* Forces a new TID for the next transmission. */
void transmissions_change_own(struct tids *tids, struct transmissions *transmissions);
/* Stops accepting responses to any transmission. */
void transmissions_forget(struct tids *tids, struct transmissions *transmissions);
/*
 * As transmissions_forget(), before a retransmission: picks a new TID if the kernel holds the
 * own one.
 */
void transmissions_renew(struct tids *tids, struct transmissions *transmissions);

#endif
