/* SPDX-License-Identifier: BSD-2-Clause */

/* Sends, repeats and represses traps. */
#include <stdlib.h>

#include "classes.h"
#include "faults.h"
#include "timers.h"
#include "traps.h"
#include "wire.h"

#define NOTICE   64 /* offset of an SMP's data, here a Notice */
#define INTERVAL SECOND

/* Types of a Notice (IBA 13.4.8.2). */
enum {
	URGENT = 1,
	SECURITY = 2,
	INFORMATIONAL = 4
};

struct trap {
	struct timer timer;
	struct trap *next;
	struct packet packet;
	bool repressed;
};

static void forget(struct fabric *fabric, struct trap *trap)
{
	struct trap **link = &fabric->traps;

	while (*link && *link != trap)
		link = &(*link)->next;
	if (*link)
		*link = trap->next;
	free(trap);
}

static void drop(struct timer *timer)
{
	free(timer);
}

static void send_again(struct fabric *fabric, struct timer *timer)
{
	struct trap *trap = (struct trap *)timer;
	uint32_t port = trap->packet.from;

	trap->packet.dlid = fabric->ports[port].sm_lid;
	trap->packet.slid = fabric->ports[port].lid;
	if (trap->repressed || !trap->packet.dlid || !trap->packet.slid) {
		forget(fabric, trap); /* repressed, or no manager receives it */
		return;
	}
	if (!faults_silent(fabric, cable(fabric, port)->node))
		wire_send(fabric, &trap->packet);
	if (timer_set(fabric, timer, fabric->now + INTERVAL))
		forget(fabric, trap);
}

/* Returns the trap with that number that no manager has repressed yet. */
static struct trap *find(const struct fabric *fabric, uint32_t port, unsigned int number)
{
	struct trap *trap = fabric->traps;

	while (trap &&
	       (trap->packet.from != port || trap->repressed ||
		mad_get_field(trap->packet.mad, NOTICE, IB_NOTICE_TRAP_NUMBER_F) != number))
		trap = trap->next;
	return trap;
}

static void begin_transaction(struct fabric *fabric, struct trap *trap)
{
	put64(trap->packet.mad + 8, ++fabric->trap_count);
}

/* Creates a trap from an end port; the caller fills in its details, then raises it. NULL if no
 * trap is due, or on OOM. */
static struct trap *make(struct fabric *fabric, uint32_t port, unsigned int type,
			 unsigned int number)
{
	struct trap *trap;
	uint8_t *mad;

	if (!fabric->events || find(fabric, port, number))
		return NULL; /* the same trap is being sent already */
	trap = calloc(1, sizeof(*trap));
	if (!trap)
		return NULL;
	mad = trap->packet.mad;
	mad[0] = 1;
	mad[1] = CLASS_SMP;
	mad[2] = 1;
	mad[3] = METHOD_TRAP;
	begin_transaction(fabric, trap);
	put16(mad + 16, IB_SA_ATTR_NOTICE);
	mad_set_field(mad, NOTICE, IB_NOTICE_IS_GENERIC_F, 1);
	mad_set_field(mad, NOTICE, IB_NOTICE_TYPE_F, type);
	mad_set_field(mad, NOTICE, IB_NOTICE_PRODUCER_F,
		      hardware(fabric, cable(fabric, port)->node)->type);
	mad_set_field(mad, NOTICE, IB_NOTICE_TRAP_NUMBER_F, number);
	mad_set_field(mad, NOTICE, IB_NOTICE_ISSUER_LID_F, fabric->ports[port].lid);
	trap->packet.from = port;
	trap->timer.run = send_again;
	trap->timer.drop = drop;
	return trap;
}

#define DESCRIPTION_CHANGE 1 /* in trap 144 */

static void raise_trap(struct fabric *fabric, struct trap *trap)
{
	trap->next = fabric->traps;
	fabric->traps = trap;
	if (timer_set(fabric, &trap->timer, fabric->now))
		forget(fabric, trap);
}

void trap_link_state(struct fabric *fabric, uint32_t node)
{
	uint32_t port = hardware(fabric, node)->first_port;
	struct trap *trap = find(fabric, port, 128);

	if (trap) {
		/* a TrapRepress on its way is for the changes before this one */
		begin_transaction(fabric, trap);
		return;
	}
	trap = make(fabric, port, URGENT, 128);
	if (!trap)
		return;
	mad_set_field(trap->packet.mad, NOTICE, IB_NOTICE_DATA_LID_F, fabric->ports[port].lid);
	raise_trap(fabric, trap);
}

/* Trap 144, for the changes of IBA 14.2.5.1 other than the CapabilityMask. */
static void trap_local_change(struct fabric *fabric, uint32_t port, uint8_t other_changes)
{
	struct trap *earlier = find(fabric, port, 144);
	struct trap *trap;

	if (earlier)
		earlier->repressed = true; /* its details are outdated */
	trap = make(fabric, port, INFORMATIONAL, 144);
	if (!trap)
		return;
	mad_set_field(trap->packet.mad, NOTICE, IB_NOTICE_DATA_144_LID_F,
		      fabric->ports[port].lid);
	mad_set_field(trap->packet.mad, NOTICE, IB_NOTICE_DATA_144_CAPMASK_F,
		      fabric->ports[port].capability_mask);
	if (other_changes) {
		uint8_t *details = trap->packet.mad + NOTICE + 10;

		details[5] |= 1; /* OtherLocalChanges */
		details[11] |= other_changes;
	}
	raise_trap(fabric, trap);
}

void trap_capability(struct fabric *fabric, uint32_t port)
{
	trap_local_change(fabric, port, 0);
}

void trap_description(struct fabric *fabric, uint32_t port)
{
	trap_local_change(fabric, port, DESCRIPTION_CHANGE);
}

void trap_mkey(struct fabric *fabric, uint32_t port, const uint8_t mad[MAD_BYTES])
{
	struct trap *trap = make(fabric, port, SECURITY, 256);
	uint8_t *details;

	if (!trap)
		return;
	details = trap->packet.mad + NOTICE + 10; /* after the common part of a Notice */
	put16(details + 2, fabric->ports[port].lid);
	put16(details + 4, mad_class_of(mad) == CLASS_DIRECTED_SMP ? get16(mad + 32) : 0);
	details[6] = (uint8_t)mad_method(mad);
	put16(details + 8, mad_attribute(mad));
	put32(details + 10, mad_modifier(mad));
	put64(details + 14, get64(mad + 24));
	raise_trap(fabric, trap);
}

void trap_repress(struct fabric *fabric, uint32_t port, const uint8_t mad[MAD_BYTES])
{
	for (struct trap *trap = fabric->traps; trap; trap = trap->next)
		if (trap->packet.from == port &&
		    memcmp(trap->packet.mad + 8, mad + 8, 8) == 0) /* the TID */
			trap->repressed = true;
}
