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
/* Adds buckets for "count" transmissions. Without memory, the chains become longer. */
void tids_grow(struct tids *tids, unsigned count);

/* The same, if there are fewer buckets. */
static inline void tids_reserve(struct tids *tids, unsigned count)
{
	if (count > tids->bucket_count)
		tids_grow(tids, count);
}

/* IDs are consecutive, so the lowest bits spread them evenly. */
static inline struct transmission **tids_bucket(const struct tids *tids, uint32_t tid)
{
	return &tids->buckets[tid & (tids->bucket_count - 1)];
}

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
static inline struct transmission *tids_find(const struct tids *tids, uint32_t tid,
					     uint8_t mgmt_class)
{
	struct transmission *transmission = *tids_bucket(tids, tid);

	/* requests of different classes may have the same ID */
	while (transmission && (transmission->tid != tid ||
				transmissions_of(transmission)->mgmt_class != mgmt_class))
		transmission = transmission->next;
	return transmission;
}

/* The structure is zero. */
static inline void transmissions_init(struct transmissions *transmissions, uint32_t tid,
				      uint8_t mgmt_class)
{
	for (uint8_t i = 0; i < TIDS_LIVE; i++)
		transmissions->live[i].slot = i;
	transmissions->live[0].tid = tid;
	transmissions->mgmt_class = mgmt_class;
}

/* Whether a response to an earlier request, whose caller chose its ID, may have this ID. */
static inline bool tids_rests(const struct tids *tids, uint32_t tid, bool chosen, int64_t now)
{
	const struct resting_tid *resting = &tids->resting[tid % TIDS_RESTS];

	/* the IDs of the library are consecutive: only the ID itself counts */
	return resting->until > now / 1000000 && (chosen || resting->tid == tid);
}

/* A packet with an ID that a caller chose is sent now. */
static inline void tids_rest(struct tids *tids, uint32_t tid, int64_t now)
{
	tids->resting[tid % TIDS_RESTS] = (struct resting_tid){
		.tid = tid, .until = (uint32_t)(now / 1000000) + TIDS_REST_S};
}

/* Whether the next transmission may have the request's own ID. */
static inline bool transmissions_may_use_own(const struct tids *tids,
					     const struct transmissions *transmissions,
					     int64_t now)
{
	const struct transmission *own = &transmissions->live[0];

	if (own->expected || !own->tid || tids_find(tids, own->tid, transmissions->mgmt_class))
		return false;
	/* the ID rests from the first packet on: for others, not for this request */
	return transmissions->count || !tids_rests(tids, own->tid, transmissions->chosen, now);
}

/* A transmission with a new ID: of the request's own slot, unless the kernel holds the own ID.
 */
struct transmission *transmission_renumber(struct tids *tids,
					   struct transmissions *transmissions, int64_t now);

/*
 * Gives the next transmission of the MAD its ID, and expects a response from now on. The ID is
 * the request's own, unless the kernel still holds it or a response to another request may
 * have it.
 */
static inline struct transmission *transmission_begin(struct tids *tids,
						      struct transmissions *transmissions,
						      uint8_t *mad, int64_t now)
{
	struct transmission *transmission = &transmissions->live[0], **first;

	transmissions->mgmt_class = mad[1];
	if (!transmissions_may_use_own(tids, transmissions, now))
		transmission = transmission_renumber(tids, transmissions, now);
	else if (transmissions->chosen)
		tids_rest(tids, transmission->tid, now);
	put32(mad, TID_OFFS, transmission->tid);
	transmission->sent = now;
	transmissions->latest = transmission->slot;
	if (transmissions->count < UINT16_MAX)
		transmissions->count++;
	first = tids_bucket(tids, transmission->tid);
	transmission->next = *first;
	*first = transmission;
	transmission->expected = true;
	tids->count++;
	return transmission;
}

/* No response to the transmission is expected any more. */
static inline void transmission_forget(struct tids *tids, struct transmission *transmission)
{
	struct transmission **at = tids_bucket(tids, transmission->tid);

	if (!transmission->expected)
		return;
	while (*at != transmission)
		at = &(*at)->next;
	*at = transmission->next;
	transmission->expected = false;
	tids->count--;
}

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
