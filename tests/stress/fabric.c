/* SPDX-License-Identifier: BSD-2-Clause */

#include "fabric.h"

#include "machine.h"

#include <infiniband/mad.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

static const char *const names[FAULTS] = {
	[LOSE] = "lost",
	[TIME_OUT] = "reported as timed out",
	[DOUBLE] = "two responses",
	[DELAY] = "delayed",
	[LATE] = "late",
	[CORRUPT] = "corrupted",
	[TRUNCATE] = "truncated",
	[BUSY] = "busy",
	[REFUSE] = "refused",
	[REDIRECT] = "redirected",
	[NO_FAULT] = "one response",
};

/* The hook, which alone uses them, runs with the machine's lock. */
static struct mix mix;
static uint64_t random_state, salt;
static unsigned long counts[FAULTS];
static bool lose_everything;

static unsigned choose(unsigned count)
{
	return draw(&random_state, count);
}

/* --- what responses say --------------------------------------------------------- */

struct stamp stamp_of(uint32_t node, unsigned mgmt_class, unsigned method, unsigned attribute,
		      uint32_t modifier, uint64_t ticket)
{
	return (struct stamp){
		.node = node,
		.mgmt_class = (uint8_t)mgmt_class,
		.method = (uint8_t)method,
		.attribute = (uint16_t)attribute,
		.modifier = modifier,
		.end = 0xa5a5a5a5,
		.ticket = ticket,
		.end_too = UINT64_C(0x5a5a5a5a5a5a5a5a),
	};
}

size_t data_offset(unsigned mgmt_class)
{
	if (mgmt_class == IB_SA_CLASS)
		return IB_SA_DATA_OFFS;
	if (mad_is_vendor_range1((int)mgmt_class))
		return IB_VENDOR_RANGE1_DATA_OFFS;
	if (mad_is_vendor_range2((int)mgmt_class))
		return IB_VENDOR_RANGE2_DATA_OFFS;
	return IB_SMP_DATA_OFFS;
}

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

uint32_t partner_of(uint32_t node)
{
	return ((node - 1) ^ 1) + 1;
}

bool may_redirect(unsigned mgmt_class)
{
	return mgmt_class == IB_PERFORMANCE_CLASS || mgmt_class == IB_SA_CLASS;
}

/* The request as a response; a long one continues with the last byte. */
static size_t make_response(const struct machine_mad *request, uint32_t node,
			    uint8_t mad[MACHINE_MAD + LONGEST_ANSWER])
{
	size_t length = MACHINE_MAD, offset = data_offset(request->bytes[1]);
	struct stamp stamp;
	uint64_t ticket;

	memcpy(mad, request->bytes, MACHINE_MAD);
	if (mad[3] == IB_MAD_METHOD_GET_TABLE && choose(2)) {
		length += choose(LONGEST_ANSWER);
		memset(mad + MACHINE_MAD, mad[MACHINE_MAD - 1], length - MACHINE_MAD);
	}
	memcpy(&ticket, mad + offset, sizeof(ticket));
	stamp = stamp_of(node, mad[1], mad[3], get16(mad + 16),
			 (uint32_t)get16(mad + 20) << 16 | get16(mad + 22), ticket);
	memcpy(mad + offset, &stamp, sizeof(stamp));
	mad[3] = mad[3] == IB_MAD_METHOD_SET ? IB_MAD_METHOD_GET_RESPONSE
					     : mad[3] | IB_MAD_RESPONSE;
	if (mad[1] == IB_SMI_DIRECT_CLASS)
		mad[4] |= 0x80; /* the direction */
	return length;
}

/*
 * Any bit of the header; in the TID, a bit that makes the TID unknown; not the one that makes a
 * redirection, because then another node would be right.
 */
static void corrupt(uint8_t *mad)
{
	unsigned byte = choose(24);

	if (byte >= 8 && byte < 16)
		mad[12] ^= 0x80;
	else
		mad[byte] ^= (uint8_t)(byte == 5 ? IB_MAD_STS_BUSY : 1 << choose(8));
}

static void redirect(uint32_t node, uint8_t *mad)
{
	uint8_t *info = mad + data_offset(mad[1]);

	mad[5] = IB_MAD_STS_REDIRECT;
	memset(info, 0, 72);
	mad_set_field(info, 0, IB_CPI_REDIRECT_LID_F, FIRST_LID - 1 + partner_of(node));
}

/* Whether so many of 1,000 nodes have a fault, and this one is among them. */
static bool is_among(uint32_t node, unsigned kind, unsigned nodes)
{
	uint64_t state = (salt ^ (node * UINT64_C(0x9e3779b97f4a7c15) + kind)) | 1;

	next_random(&state);
	return draw(&state, 1000) < nodes;
}

static int64_t response_us(uint32_t node, enum fault fault)
{
	int64_t us = mix.round_trip_us / 2 + choose(mix.round_trip_us);

	if (is_among(node, 1, mix.slow))
		us += mix.slow_us;
	if (fault == DELAY)
		us += choose(3000);
	if (fault == LATE)
		us += mix.late_us / 2 + choose(mix.late_us / 2 + 1);
	return us;
}

static void respond(const struct machine_mad *request, uint32_t node, enum fault fault)
{
	uint8_t mad[MACHINE_MAD + LONGEST_ANSWER];
	size_t length = make_response(request, node, mad);

	if (fault == CORRUPT)
		corrupt(mad);
	else if (fault == BUSY || fault == REFUSE)
		mad[5] = fault == BUSY ? IB_MAD_STS_BUSY : 0x1c;
	else if (fault == REDIRECT && may_redirect(mad[1]))
		redirect(node, mad);
	else if (fault == TRUNCATE)
		length = 1 + choose(MACHINE_MAD - 1);
	machine_deliver(request, mad, length,
			choose(1000) < mix.instant ? 0 : response_us(node, fault));
	if (fault == DOUBLE)
		machine_deliver(request, mad, length,
				response_us(node, choose(2) ? LATE : DELAY));
}

static enum fault choose_fault(uint32_t node)
{
	unsigned number = choose(1000);

	/* of two nodes, one is neither dead nor busy */
	if (lose_everything || (node % 4 == 0 && is_among(node, 2, mix.dead)))
		return LOSE;
	if (node % 4 == 2 && is_among(node, 3, mix.busy) && choose(4))
		return BUSY;
	for (unsigned fault = 0; fault < NO_FAULT; fault++) {
		if (number < mix.rates[fault])
			return fault;
		number -= mix.rates[fault];
	}
	return NO_FAULT;
}

static enum machine_verdict answer(struct machine_mad *mad, void *arg)
{
	unsigned node;
	enum fault fault;

	(void)arg;
	if (mad->at_host || sscanf(mad->node, "n%u", &node) != 1)
		return MACHINE_PASS;
	fault = choose_fault(node);
	counts[fault]++;
	if (fault == TIME_OUT)
		machine_deliver(mad, NULL, 0, 0);
	else if (fault != LOSE)
		respond(mad, node, fault);
	return MACHINE_DROP;
}

/* --- begin and end -------------------------------------------------------------- */

void fabric_begin(uint64_t seed, const struct mix *wanted)
{
	machine_on_arrival(NULL, NULL);
	mix = *wanted;
	random_state = seed | 1;
	salt = next_random(&random_state);
	lose_everything = false;
	machine_on_arrival(answer, NULL);
}

void fabric_lose_everything(void)
{
	lose_everything = true;
}

void fabric_report(void)
{
	for (unsigned fault = 0; fault < FAULTS; fault++)
		printf("%9lu packets %s\n", counts[fault], names[fault]);
}
