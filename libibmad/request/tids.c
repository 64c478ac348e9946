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

/* --- the IDs of a request ------------------------------------------------------- */

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

static RARE void renew_own(struct tids *tids, struct transmissions *transmissions)
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

/* The next ID of the library that no caller uses. */
static uint32_t new_tid(struct tids *tids, uint8_t mgmt_class, int64_t now)
{
	uint32_t tid;

	do
		tid = (uint32_t)mad_trid();
	while (tids_find(tids, tid, mgmt_class) || tids_rests(tids, tid, false, now));
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

struct transmission *transmission_renumber(struct tids *tids,
					   struct transmissions *transmissions, int64_t now)
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
