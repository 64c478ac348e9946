/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The transmissions of requests, and their transaction IDs.
 *
 * The first transmission of a request has the request's own ID. The kernel refuses an ID that
 * it holds, so a retransmission has the same ID only if the kernel has given the earlier
 * transmission up. Otherwise the retransmission has a new ID.
 */
#ifndef LIBIBMAD_TRANSMISSION_H
#define LIBIBMAD_TRANSMISSION_H

#include "engine/table.h"

#include <stdbool.h>

/* A response to the transmission with the request's own ID or to the two latest others counts.
 */
#define LIVE_TRANSMISSIONS 3
#define WITHHELD_TIDS      16

/* The transmissions of all requests on a port. */
struct outstanding {
	struct table table;
	uint32_t withheld[WITHHELD_TIDS]; /* late responses may have these IDs */
	unsigned next_withheld;
};

/* The transmissions of one request. */
struct transmissions {
	struct transmission live[LIVE_TRANSMISSIONS]; /* the first has the request's own ID */
	uint32_t rtt_us;                              /* of the latest response */
	uint16_t count;                               /* so far */
	uint8_t mgmt_class;
	uint8_t expected : LIVE_TRANSMISSIONS; /* bit i: a response to live[i] is expected */
	bool timed_out : 1; /* the kernel gave up a transmission with the request's own ID */
	bool chosen : 1;    /* the caller chose the ID, and may use it again */
};

void outstanding_init(struct outstanding *outstanding);
void transmissions_init(struct transmissions *transmissions, uint32_t tid, uint8_t mgmt_class);

/*
 * Gives the next transmission of the MAD its ID, and expects a response from now on. The ID is
 * the request's own, unless the kernel still holds it or a response to another request may
 * have it.
 */
struct transmission *transmission_begin(struct outstanding *outstanding,
					struct transmissions *transmissions, uint8_t *mad,
					int64_t now);

/* Whether it has the request's own ID. */
static inline bool transmission_is_own(const struct transmission *transmission)
{
	return transmission->slot == 0;
}

/* Whether the kernel may still hold the request's own ID. */
static inline bool transmissions_hold_own(const struct transmissions *transmissions)
{
	return transmissions->expected & 1;
}

static inline struct transmissions *transmissions_of(struct transmission *transmission)
{
	return (struct transmissions *)(void *)(transmission - transmission->slot);
}

/* The transmission that a MAD with this ID and class is a response to; NULL: none. */
struct transmission *transmission_find(struct outstanding *outstanding, uint32_t tid,
				       uint8_t mgmt_class);

/* A response to it has come: whether its round-trip time is known, which is rtt_us then. */
bool transmission_measure(struct transmission *transmission, int64_t now);

/* No response to it is expected any more. */
void transmission_forget(struct outstanding *outstanding, struct transmission *transmission);
void transmissions_forget(struct outstanding *outstanding, struct transmissions *transmissions);
/*
 * The kernel gave it up. If it had the request's own ID, a late response may have that ID: no
 * other request gets it for some time.
 */
void transmission_timed_out(struct outstanding *outstanding, struct transmission *transmission);
/* The kernel refused it. If it had the request's own ID, the next one has a new ID. */
void transmission_refused(struct outstanding *outstanding, struct transmission *transmission);
/*
 * No response is expected any more. If a response with the request's own ID may still come, no
 * other request gets that ID for some time.
 */
void transmissions_give_up(struct outstanding *outstanding,
			   struct transmissions *transmissions);
/* The same, and the request is sent again: with a new ID if the kernel holds its own ID. */
void transmissions_renew(struct outstanding *outstanding, struct transmissions *transmissions);

#endif
