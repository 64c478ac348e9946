/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/transmission.h"

#include "mad/layout.h"

#include <infiniband/mad.h>

#define ALL_SLOTS ((1u << LIVE_TRANSMISSIONS) - 1)
/* A transmission's time has so many bits of the clock's microseconds. */
#define TIME_MASK 0x3fffffffu

void outstanding_init(struct outstanding *outstanding)
{
	table_init(&outstanding->table);
}

void transmissions_init(struct transmissions *transmissions, uint32_t tid, uint8_t mgmt_class)
{
	for (unsigned i = 0; i < LIVE_TRANSMISSIONS; i++)
		transmissions->live[i].slot = i & 3;
	transmissions->live[0].tid = tid;
	transmissions->mgmt_class = mgmt_class;
}

void transmission_forget(struct outstanding *outstanding, struct transmission *transmission)
{
	struct transmissions *transmissions = transmissions_of(transmission);
	unsigned others = ~(1u << transmission->slot) & ALL_SLOTS;

	if ((transmissions->expected & others) == transmissions->expected)
		return;
	transmissions->expected = transmissions->expected & others & ALL_SLOTS;
	table_remove(&outstanding->table, transmission);
}

void transmissions_forget(struct outstanding *outstanding, struct transmissions *transmissions)
{
	for (unsigned i = 0; transmissions->expected && i < LIVE_TRANSMISSIONS; i++)
		transmission_forget(outstanding, &transmissions->live[i]);
}

/* Whether a response with the request's own ID may come. */
static bool own_may_come(const struct transmissions *transmissions)
{
	return transmissions_hold_own(transmissions) || transmissions->timed_out;
}

static void withhold_own(struct outstanding *outstanding,
			 const struct transmissions *transmissions)
{
	if (own_may_come(transmissions) && transmissions->chosen)
		outstanding->withheld[outstanding->next_withheld++ % WITHHELD_TIDS] =
			transmissions->live[0].tid;
}

void transmission_timed_out(struct outstanding *outstanding, struct transmission *transmission)
{
	struct transmissions *transmissions = transmissions_of(transmission);

	transmission_forget(outstanding, transmission);
	if (!transmission_is_own(transmission))
		return;
	transmissions->timed_out = true;
	withhold_own(outstanding, transmissions);
}

static void renew_own(struct outstanding *outstanding, struct transmissions *transmissions)
{
	withhold_own(outstanding, transmissions);
	transmission_forget(outstanding, &transmissions->live[0]);
	transmissions->live[0].tid = 0;
	transmissions->timed_out = false;
}

void transmission_refused(struct outstanding *outstanding, struct transmission *transmission)
{
	transmission_forget(outstanding, transmission);
	if (transmission_is_own(transmission))
		renew_own(outstanding, transmissions_of(transmission));
}

void transmissions_give_up(struct outstanding *outstanding, struct transmissions *transmissions)
{
	withhold_own(outstanding, transmissions);
	transmissions_forget(outstanding, transmissions);
}

void transmissions_renew(struct outstanding *outstanding, struct transmissions *transmissions)
{
	if (transmissions_hold_own(transmissions))
		renew_own(outstanding, transmissions);
	transmissions_forget(outstanding, transmissions);
}

struct transmission *transmission_find(struct outstanding *outstanding, uint32_t tid,
				       uint8_t mgmt_class)
{
	struct transmission *transmission = table_find(&outstanding->table, tid);

	while (transmission && transmissions_of(transmission)->mgmt_class != mgmt_class)
		transmission = table_find_next(transmission);
	return transmission;
}

/* Whether a response to another request has, or may have, that ID. */
static bool is_taken(struct outstanding *outstanding, uint32_t tid, uint8_t mgmt_class)
{
	/* usually none is withheld */
	for (unsigned i = 0; i < WITHHELD_TIDS && i < outstanding->next_withheld; i++)
		if (outstanding->withheld[i] == tid)
			return true;
	return transmission_find(outstanding, tid, mgmt_class);
}

/* After a timeout the ID is withheld from others, not from the request itself. */
static bool own_is_taken(struct outstanding *outstanding,
			 const struct transmissions *transmissions)
{
	uint32_t tid = transmissions->live[0].tid;
	uint8_t mgmt_class = transmissions->mgmt_class;

	return transmissions->timed_out
		       ? transmission_find(outstanding, tid, mgmt_class) != NULL
		       : is_taken(outstanding, tid, mgmt_class);
}

/* The caller of another request may have chosen the ID that comes next. */
static uint32_t new_tid(struct outstanding *outstanding, uint8_t mgmt_class)
{
	uint32_t tid;

	do
		tid = (uint32_t)mad_trid();
	while (is_taken(outstanding, tid, mgmt_class));
	return tid;
}

/* The request's own ID unless the kernel holds it; of the others, the oldest is replaced. */
static struct transmission *free_slot(struct transmissions *transmissions)
{
	unsigned others = LIVE_TRANSMISSIONS - 1;

	if (!transmissions_hold_own(transmissions))
		return &transmissions->live[0];
	return &transmissions->live[1 + transmissions->count % others];
}

struct transmission *transmission_begin(struct outstanding *outstanding,
					struct transmissions *transmissions, uint8_t *mad,
					int64_t now)
{
	struct transmission *transmission = free_slot(transmissions);
	uint32_t tid;

	transmissions->mgmt_class = mad[1];
	transmission_forget(outstanding, transmission);
	if (transmission_is_own(transmission) && transmission->tid &&
	    own_is_taken(outstanding, transmissions))
		renew_own(outstanding, transmissions);
	tid = transmission_is_own(transmission) ? transmission->tid : 0;
	if (!tid)
		tid = new_tid(outstanding, mad[1]);
	put32(mad, TID_OFFS, tid);
	transmission->sent = (uint32_t)now & TIME_MASK;
	transmissions->expected =
		(transmissions->expected | 1u << transmission->slot) & ALL_SLOTS;
	if (transmissions->count < UINT16_MAX)
		transmissions->count++;
	table_add(&outstanding->table, transmission, tid);
	return transmission;
}

bool transmission_measure(struct transmission *transmission, int64_t now)
{
	struct transmissions *transmissions = transmissions_of(transmission);

	transmissions->rtt_us = ((uint32_t)now - transmission->sent) & TIME_MASK;
	/* after a timeout, several transmissions had this ID: it may be a response to any of
	 * them */
	return !transmission_is_own(transmission) || !transmissions->timed_out;
}
