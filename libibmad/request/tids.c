/* SPDX-License-Identifier: BSD-2-Clause */

#include "request/tids.h"

#include "base/export.h"
#include "mad/layout.h"

#include <infiniband/mad.h>
#include <stdlib.h>

/* --- the table ------------------------------------------------------------------ */

void tids_init(struct tids *tids)
{
	*tids = (struct tids){.bucket_count = TIDS_FIRST_BUCKETS};
}

void tids_free(struct tids *tids)
{
	free(tids->buckets);
	tids_init(tids);
}

/* IDs are consecutive, so the lowest bits spread them evenly. */
static struct transmission **bucket_of(struct tids *tids, uint32_t tid)
{
	struct transmission **buckets = tids->buckets ? tids->buckets : tids->first_buckets;

	return &buckets[tid & (tids->bucket_count - 1)];
}

struct transmission *tids_in_bucket(const struct tids *tids, unsigned bucket)
{
	return tids->buckets ? tids->buckets[bucket] : tids->first_buckets[bucket];
}

void tids_grow(struct tids *tids, unsigned count)
{
	unsigned old_count = tids->bucket_count, new_count = old_count;
	struct transmission **buckets, **first, *transmission, *next;

	while (new_count < count)
		new_count *= 2;
	buckets = calloc(new_count, sizeof(struct transmission *));
	if (!buckets)
		return;
	for (unsigned i = 0; i < old_count; i++)
		for (transmission = tids_in_bucket(tids, i); transmission;
		     transmission = next) {
			next = transmission->next;
			first = &buckets[transmission->tid & (new_count - 1)];
			transmission->next = *first;
			*first = transmission;
		}
	free(tids->buckets);
	tids->buckets = buckets;
	tids->bucket_count = new_count;
}

struct transmission *tids_find(struct tids *tids, uint32_t tid, uint8_t mgmt_class)
{
	struct transmission *transmission = *bucket_of(tids, tid);

	/* requests of different classes may have the same ID */
	while (transmission && (transmission->tid != tid ||
				transmissions_of(transmission)->mgmt_class != mgmt_class))
		transmission = transmission->next;
	return transmission;
}

static void add(struct tids *tids, struct transmission *transmission)
{
	struct transmission **first = bucket_of(tids, transmission->tid);

	transmission->next = *first;
	*first = transmission;
	transmission->expected = true;
	tids->count++;
}

static void take_out(struct tids *tids, struct transmission *transmission)
{
	struct transmission **at;

	for (at = bucket_of(tids, transmission->tid); *at != transmission; at = &(*at)->next)
		;
	*at = transmission->next;
	transmission->expected = false;
	tids->count--;
}

void transmission_forget(struct tids *tids, struct transmission *transmission)
{
	if (transmission->expected)
		take_out(tids, transmission);
}

/* --- the IDs of a request ------------------------------------------------------- */

void transmissions_init(struct transmissions *transmissions, uint32_t tid, uint8_t mgmt_class)
{
	*transmissions = (struct transmissions){.mgmt_class = mgmt_class};
	for (uint8_t i = 0; i < TIDS_LIVE; i++)
		transmissions->live[i].slot = i;
	transmissions->live[0].tid = tid;
}

static void forget_all(struct tids *tids, struct transmissions *transmissions)
{
	if (!transmissions_expect(transmissions))
		return;
	for (unsigned i = 0; i < TIDS_LIVE; i++)
		transmission_forget(tids, &transmissions->live[i]);
}

/* Withholds an ID that the caller chose and that a late response may have. */
static void withhold_own(struct tids *tids, const struct transmissions *transmissions)
{
	if (transmissions->chosen &&
	    (transmissions_hold_own(transmissions) || transmissions->timed_out))
		tids->withheld[tids->next_withheld++ % TIDS_WITHHELD] =
			transmissions->live[0].tid;
}

void transmission_timed_out(struct tids *tids, struct transmission *transmission)
{
	struct transmissions *transmissions = transmissions_of(transmission);

	transmission_forget(tids, transmission);
	if (!transmission_is_own(transmission))
		return;
	transmissions->timed_out = true;
	withhold_own(tids, transmissions);
}

static RARE void renew_own(struct tids *tids, struct transmissions *transmissions)
{
	withhold_own(tids, transmissions);
	transmission_forget(tids, &transmissions->live[0]);
	transmissions->live[0].tid = 0;
	transmissions->timed_out = false;
}

void transmission_refused(struct tids *tids, struct transmission *transmission)
{
	transmission_forget(tids, transmission);
	if (transmission_is_own(transmission))
		renew_own(tids, transmissions_of(transmission));
}

void transmissions_give_up(struct tids *tids, struct transmissions *transmissions)
{
	withhold_own(tids, transmissions);
	forget_all(tids, transmissions);
}

void transmissions_renew(struct tids *tids, struct transmissions *transmissions)
{
	if (transmissions_hold_own(transmissions))
		renew_own(tids, transmissions);
	forget_all(tids, transmissions);
}

/* --- choosing an ID ------------------------------------------------------------- */

/* Whether a response to another request may have the ID. */
static bool is_taken(struct tids *tids, uint32_t tid, uint8_t mgmt_class)
{
	/* next_withheld is 0 in most programs */
	for (unsigned i = 0; i < TIDS_WITHHELD && i < tids->next_withheld; i++)
		if (tids->withheld[i] == tid)
			return true;
	return tids_find(tids, tid, mgmt_class) != NULL;
}

/* After a timeout the ID is withheld from others, not from the request itself. */
static bool own_is_taken(struct tids *tids, const struct transmissions *transmissions)
{
	uint32_t tid = transmissions->live[0].tid;
	uint8_t mgmt_class = transmissions->mgmt_class;

	return transmissions->timed_out ? tids_find(tids, tid, mgmt_class) != NULL
					: is_taken(tids, tid, mgmt_class);
}

/* The caller of another request may have chosen the next ID of the library. */
static uint32_t new_tid(struct tids *tids, uint8_t mgmt_class)
{
	uint32_t tid;

	do
		tid = (uint32_t)mad_trid();
	while (is_taken(tids, tid, mgmt_class));
	return tid;
}

/* Of the slots without the request's own ID, the one whose transmission is the oldest. */
static struct transmission *oldest_other(struct transmissions *transmissions)
{
	struct transmission *oldest = &transmissions->live[1];

	for (unsigned i = 2; i < TIDS_LIVE; i++)
		if (transmissions->live[i].sent < oldest->sent)
			oldest = &transmissions->live[i];
	return oldest;
}

struct transmission *transmission_begin(struct tids *tids, struct transmissions *transmissions,
					uint8_t *mad, int64_t now)
{
	struct transmission *transmission = &transmissions->live[0];

	transmissions->mgmt_class = mad[1];
	if (!transmission->expected) {
		if (transmission->tid && own_is_taken(tids, transmissions))
			renew_own(tids, transmissions);
		if (!transmission->tid)
			transmission->tid = new_tid(tids, mad[1]);
	} else {
		/* the kernel holds the request's own ID */
		transmission = oldest_other(transmissions);
		transmission_forget(tids, transmission);
		transmission->tid = new_tid(tids, mad[1]);
	}
	put32(mad, TID_OFFS, transmission->tid);
	transmission->sent = now;
	transmissions->latest = transmission->slot;
	if (transmissions->count < UINT16_MAX)
		transmissions->count++;
	add(tids, transmission);
	return transmission;
}
