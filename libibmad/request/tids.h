/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Transaction IDs: the transmissions of requests to which a response is expected, by ID.
 *
 * The first transmission of a request has the request's own ID. The kernel refuses an ID that
 * it holds, so a retransmission has the same ID only if the kernel has given the earlier
 * transmission up. Otherwise the retransmission has a new ID.
 */
#ifndef LIBIBMAD_TIDS_H
#define LIBIBMAD_TIDS_H

#include <stdbool.h>
#include <stdint.h>

/* Enough for blocking calls, which allocate no memory. */
#define TIDS_FIRST_BUCKETS 16
#define TIDS_WITHHELD      16

/* A response to the transmission with the request's own ID or to the two latest others counts.
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
	uint16_t count;                      /* so far */
	uint8_t latest;                      /* the slot of the latest one */
	uint8_t mgmt_class;
	bool timed_out; /* the kernel gave up a transmission with the request's own ID */
	bool chosen;    /* the caller chose the ID, and may use it again */
};

/* The transmissions of all requests on a port. */
struct tids {
	struct transmission **buckets; /* NULL: the first ones */
	struct transmission *first_buckets[TIDS_FIRST_BUCKETS];
	unsigned bucket_count; /* a power of two */
	unsigned count;
	uint32_t withheld[TIDS_WITHHELD]; /* late responses may have these IDs */
	unsigned next_withheld;
};

void tids_init(struct tids *tids);
void tids_free(struct tids *tids);
/* Grows for "count" transmissions; without memory, the buckets have longer chains. */
void tids_grow(struct tids *tids, unsigned count);

/* The same, if there are fewer buckets. */
static inline void tids_reserve(struct tids *tids, unsigned count)
{
	if (count > tids->bucket_count)
		tids_grow(tids, count);
}

/* The transmission that a MAD with this ID and class is a response to; NULL: none. */
struct transmission *tids_find(struct tids *tids, uint32_t tid, uint8_t mgmt_class);
/* The first transmission of a bucket; NULL. */
struct transmission *tids_in_bucket(const struct tids *tids, unsigned bucket);

void transmissions_init(struct transmissions *transmissions, uint32_t tid, uint8_t mgmt_class);

/*
 * Gives the next transmission of the MAD its ID, and expects a response from now on. The ID is
 * the request's own, unless the kernel still holds it or a response to another request may
 * have it.
 */
struct transmission *transmission_begin(struct tids *tids, struct transmissions *transmissions,
					uint8_t *mad, int64_t now);

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
 * After a timeout, several transmissions had the request's own ID: a response may be that to
 * any of them, and its round-trip time is not known.
 */
static inline bool transmission_is_certain(struct transmission *transmission)
{
	return !transmission_is_own(transmission) || !transmissions_of(transmission)->timed_out;
}

/* No response to it is expected any more. */
void transmission_forget(struct tids *tids, struct transmission *transmission);
/*
 * The kernel gave it up. If it had the request's own ID, a late response may have that ID: no
 * other request gets the ID while it is withheld.
 */
void transmission_timed_out(struct tids *tids, struct transmission *transmission);
/* The kernel refused it. If it had the request's own ID, the next one has a new ID. */
void transmission_refused(struct tids *tids, struct transmission *transmission);
/*
 * No response is expected any more. If a response with the request's own ID may still come, the
 * ID is withheld from other requests.
 */
void transmissions_give_up(struct tids *tids, struct transmissions *transmissions);
/* The same, and the request is sent again: with a new ID if the kernel holds its own ID. */
void transmissions_renew(struct tids *tids, struct transmissions *transmissions);

#endif
