/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/tids.h"

#include "mad/layout.h"

#include <infiniband/mad.h>
#include <stdlib.h>

/* --- the table ------------------------------------------------------------------ */

void tids_init(struct tids *tids)
{
	*tids = (struct tids){.bucket_count = TIDS_FIRST_BUCKETS};
	tids->buckets = tids->first_buckets;
}

static void free_buckets(struct tids *tids)
{
	if (tids->buckets != tids->first_buckets)
		free(tids->buckets);
}

void tids_free(struct tids *tids)
{
	free_buckets(tids);
	tids_init(tids);
}

/* TIDs are consecutive, so the lowest bits spread them evenly. */
static struct transmission **bucket_of(const struct tids *tids, uint32_t tid)
{
	return &tids->buckets[tid & (tids->bucket_count - 1)];
}

void tids_reserve(struct tids *tids, unsigned count)
{
	unsigned old_count = tids->bucket_count, new_count = old_count;
	struct transmission **buckets, **first, *transmission, *next;

	if (count <= old_count)
		return;
	while (new_count < count)
		new_count *= 2;
	buckets = calloc(new_count, sizeof(struct transmission *));
	if (!buckets)
		return;
	for (unsigned i = 0; i < old_count; i++)
		for (transmission = tids->buckets[i]; transmission; transmission = next) {
			next = transmission->next;
			first = &buckets[transmission->tid & (new_count - 1)];
			transmission->next = *first;
			*first = transmission;
		}
	free_buckets(tids);
	tids->buckets = buckets;
	tids->bucket_count = new_count;
}

struct transmission *tids_find(const struct tids *tids, uint32_t tid, uint8_t mgmt_class)
{
	struct transmission *transmission = *bucket_of(tids, tid);

	/* requests of different classes may share a TID */
	while (transmission && (transmission->tid != tid ||
				transmissions_of(transmission)->mgmt_class != mgmt_class))
		transmission = transmission->next;
	return transmission;
}

/* Whether a response to an earlier request with a caller-chosen TID may still have this TID. */
static bool rests(const struct tids *tids, uint32_t tid, bool chosen, int64_t now)
{
	const struct resting_tid *resting = &tids->resting[tid % TIDS_RESTS];

	/* for the library's own consecutive TIDs, only an exact match counts */
	return resting->until > now / 1000000 && (chosen || resting->tid == tid);
}

void tids_rest(struct tids *tids, uint32_t tid, int64_t now)
{
	tids->resting[tid % TIDS_RESTS] = (struct resting_tid){
		.tid = tid, .until = (uint32_t)(now / 1000000) + TIDS_REST_S};
}

/* --- the IDs of a request ------------------------------------------------------- */

void transmissions_init(struct transmissions *transmissions, uint32_t tid, uint8_t mgmt_class)
{
	for (uint8_t i = 0; i < TIDS_LIVE; i++)
		transmissions->live[i].slot = i;
	transmissions->live[0].tid = tid;
	transmissions->mgmt_class = mgmt_class;
}

void transmission_forget(struct tids *tids, struct transmission *transmission)
{
	struct transmission **at = bucket_of(tids, transmission->tid);

	if (!transmission->expected)
		return;
	while (*at != transmission)
		at = &(*at)->next;
	*at = transmission->next;
	transmission->expected = false;
	tids->count--;
}

void transmissions_forget(struct tids *tids, struct transmissions *transmissions)
{
	if (!transmissions_expect(transmissions))
		return;
	for (unsigned i = 0; i < TIDS_LIVE; i++)
		transmission_forget(tids, &transmissions->live[i]);
}

void transmission_timed_out(struct tids *tids, struct transmission *transmission)
{
	transmission_forget(tids, transmission);
	if (transmission_is_own(transmission))
		transmissions_of(transmission)->timed_out = true;
}

static void renew_own(struct tids *tids, struct transmissions *transmissions)
{
	transmission_forget(tids, &transmissions->live[0]);
	transmissions->live[0].tid = 0;
	transmissions->timed_out = false;
	transmissions->chosen = false;
}

void transmission_refused(struct tids *tids, struct transmission *transmission)
{
	transmission_forget(tids, transmission);
	if (transmission_is_own(transmission))
		renew_own(tids, transmissions_of(transmission));
}

void transmissions_change_own(struct tids *tids, struct transmissions *transmissions)
{
	if (!transmissions_hold_own(transmissions))
		renew_own(tids, transmissions);
}

void transmissions_renew(struct tids *tids, struct transmissions *transmissions)
{
	if (transmissions_hold_own(transmissions))
		renew_own(tids, transmissions);
	transmissions_forget(tids, transmissions);
}

/* --- choosing an ID ------------------------------------------------------------- */

/* The library's next TID not used by a caller. */
static uint32_t new_tid(struct tids *tids, uint8_t mgmt_class, int64_t now)
{
	uint32_t tid;

	do
		tid = (uint32_t)mad_trid();
	while (tids_find(tids, tid, mgmt_class) || rests(tids, tid, false, now));
	return tid;
}

/* The slot (not the own TID's) with the oldest transmission. */
static struct transmission *oldest_other(struct transmissions *transmissions)
{
	struct transmission *oldest = &transmissions->live[1];

	for (unsigned i = 2; i < TIDS_LIVE; i++)
		if (transmissions->live[i].sent < oldest->sent)
			oldest = &transmissions->live[i];
	return oldest;
}

/* Gives a transmission a new TID, in the request's own slot unless the kernel holds its TID. */
static struct transmission *renumber(struct tids *tids, struct transmissions *transmissions,
				     int64_t now)
{
	struct transmission *transmission = &transmissions->live[0];

	if (!transmission->expected) {
		if (transmission->tid)
			renew_own(tids, transmissions);
	} else {
		transmission = oldest_other(transmissions);
		transmission_forget(tids, transmission);
	}
	transmission->tid = new_tid(tids, transmissions->mgmt_class, now);
	return transmission;
}

/* Whether the next transmission may use the request's own TID. */
static bool may_use_own(const struct tids *tids, const struct transmissions *transmissions,
			int64_t now)
{
	const struct transmission *own = &transmissions->live[0];

	if (own->expected || !own->tid || tids_find(tids, own->tid, transmissions->mgmt_class))
		return false;
	/* a TID rests from its first packet on, but not for its own request */
	return transmissions->count || !rests(tids, own->tid, transmissions->chosen, now);
}

struct transmission *transmission_begin(struct tids *tids, struct transmissions *transmissions,
					uint8_t *mad, int64_t now)
{
	struct transmission *transmission = &transmissions->live[0], **first;

	transmissions->mgmt_class = mad[1];
	if (!may_use_own(tids, transmissions, now))
		transmission = renumber(tids, transmissions, now);
	else if (transmissions->chosen)
		tids_rest(tids, transmission->tid, now);
	put32(mad, TID_OFFS, transmission->tid);
	transmission->sent = now;
	transmissions->latest = transmission->slot;
	if (transmissions->count < UINT16_MAX)
		transmissions->count++;
	first = bucket_of(tids, transmission->tid);
	transmission->next = *first;
	*first = transmission;
	transmission->expected = true;
	tids->count++;
	return transmission;
}
