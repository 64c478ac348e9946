/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Transaction IDs: the transmissions of requests to which a response is expected, by ID.
 *
 * The first transmission of a request has the request's own ID. The kernel refuses an ID that
 * it holds, so a retransmission has the same ID only if the kernel has given the earlier
 * transmission up. Otherwise the retransmission has a new ID.
 *
 * No two requests have the same ID while a response to the first one may still come, however
 * the first one ended. The IDs of the library are consecutive, so they differ. An ID that a
 * caller chose by hand rests after each packet with it, and a request whose caller chose an ID
 * that rests is sent with one of the library's.
 */
#ifndef LIBIBMAD_TIDS_H
#define LIBIBMAD_TIDS_H

#include "mad/layout.h"

#include <stdbool.h>
#include <stdint.h>

/* Enough buckets for blocking calls, which allocate no memory. */
#define TIDS_FIRST_BUCKETS 16
/* How long an ID that a caller chose rests after a packet with it: no response takes longer. */
#define TIDS_REST_S        300
/*
 * The IDs that rest are remembered by their lowest bits, a power of two: of the IDs that
 * callers choose and that have these bits, one is used at a time. The others count as resting.
 */
#define TIDS_RESTS         1024

/*
 * The transmissions of a request to which a response is accepted: one with the request's own ID
 * and two others.
 */
#define TIDS_LIVE 3

/* One transmission of a request, while a response to it is accepted. */
struct transmission {
	struct transmission *next; /* in its bucket */
	int64_t sent;              /* when, in microseconds */
	uint32_t tid;              /* the ID's lower half; 0: not chosen yet */
	uint8_t slot;              /* its index in its request; 0 has the request's own ID */
	bool expected;             /* a response to it is accepted */
};

/* The transmissions of one request. */
struct transmissions {
	struct transmission live[TIDS_LIVE]; /* the first has the request's own ID */
	uint16_t count;                      /* transmissions so far */
	uint8_t latest;                      /* the slot of the latest transmission */
	uint8_t mgmt_class;
	bool timed_out;  /* the kernel gave up a transmission with the request's own ID */
	bool chosen;     /* the caller chose the request's own ID by hand */
	bool renumbered; /* the kernel refused an ID; the packet to write has a new one */
	uint8_t method;  /* of the request; its buffer has that of the response, later */
};

/* An ID that a caller chose, and when its rest ends, in seconds. */
struct resting_tid {
	uint32_t tid, until;
};

/* The transmissions of all requests on a port. */
struct tids {
	struct transmission **buckets; /* first_buckets, or allocated */
	struct transmission *first_buckets[TIDS_FIRST_BUCKETS];
	unsigned bucket_count; /* a power of two */
	unsigned count;
	struct resting_tid resting[TIDS_RESTS]; /* by the lowest bits of an ID */
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

/* Whether the kernel may still hold the request's own ID. */
static inline bool transmissions_hold_own(const struct transmissions *transmissions)
{
	return transmissions->live[0].expected;
}

/* Whether a response to any transmission is expected. */
static inline bool transmissions_expect(const struct transmissions *transmissions)
{
	return transmissions->live[0].expected || transmissions->live[1].expected ||
	       transmissions->live[2].expected;
}

/*
 * Whether a response belongs to this transmission for certain. After a timeout, several
 * transmissions had the request's own ID: a response may belong to any of them.
 */
static inline bool transmission_is_certain(struct transmission *transmission)
{
	return !transmission_is_own(transmission) || !transmissions_of(transmission)->timed_out;
}

/* The transmission that a MAD with this ID and class is a response to; NULL: none. */
struct transmission *tids_find(const struct tids *tids, uint32_t tid, uint8_t mgmt_class);

/* The structure is zero. */
void transmissions_init(struct transmissions *transmissions, uint32_t tid, uint8_t mgmt_class);

/* A packet with an ID that a caller chose is sent now: the ID rests. */
void tids_rest(struct tids *tids, uint32_t tid, int64_t now);

/*
 * Gives the next transmission of the MAD its ID, and expects a response from now on. The ID is
 * the request's own, unless the kernel still holds it or a response to another request may
 * have it.
 */
struct transmission *transmission_begin(struct tids *tids, struct transmissions *transmissions,
					uint8_t *mad, int64_t now);

/* No response to the transmission is expected any more. */
void transmission_forget(struct tids *tids, struct transmission *transmission);

/* The kernel has reported the timeout of the transmission. */
void transmission_timed_out(struct tids *tids, struct transmission *transmission);
/* The kernel refused the packet. If it had the request's own ID, the request gets a new ID. */
void transmission_refused(struct tids *tids, struct transmission *transmission);
/* The next transmission has a new ID. */
void transmissions_change_own(struct tids *tids, struct transmissions *transmissions);
/* No response to any transmission is expected any more. */
void transmissions_forget(struct tids *tids, struct transmissions *transmissions);
/* The same before a retransmission, which has a new ID if the kernel holds the own ID. */
void transmissions_renew(struct tids *tids, struct transmissions *transmissions);

#endif
