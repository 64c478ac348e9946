/* SPDX-License-Identifier: BSD-2-Clause */

#include "fabric.h"

#include "jobs.h"
#include "virtual.h"

#include <infiniband/mad.h>
#include <endian.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define BUCKETS 4096

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
	[REQUEST] = "a request before the response",
	[NO_FAULT] = "one response",
};

/* A request that was written: the kernel waits for its response, or an event refers to it. */
struct flight {
	struct flight *next; /* in its bucket */
	unsigned users;
	bool held; /* the kernel waits */
	struct device_packet packet;
};

/* A response or a timeout on its way. */
struct delivery {
	struct event event;
	struct delivery *next, *previous; /* of all, for fabric_end() */
	struct flight *flight;
	size_t length; /* of mad; 0: a timeout */
	uint8_t mad[];
};

/* All of it is guarded by the lock of the clock. */
static struct mix mix;
static uint64_t random_state, salt;
static unsigned long counts[FAULTS];
static bool lose_everything;
static struct flight *buckets[BUCKETS];
static struct delivery deliveries = {.next = &deliveries, .previous = &deliveries};

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

/* The node that a packet reaches. */
static uint32_t node_of(const struct device_packet *packet)
{
	const uint8_t *mad = packet->mad;
	uint32_t node = be16toh(packet->header.addr.lid) & ~REDIRECTED;

	if (mad[1] != IB_SMI_DIRECT_CLASS)
		return node;
	node = BY_ROUTE;
	for (unsigned hop = 1; hop <= mad[7] && hop < 4; hop++)
		node |= (uint32_t)mad[IB_SMP_DATA_OFFS + 64 + hop] << 8 * (hop - 1);
	return node;
}

/* The request as a response; a long one continues with the last byte. */
static size_t make_response(const struct device_packet *packet, uint8_t mad[2 * LONGEST_ANSWER])
{
	bool table = packet->mad[3] == IB_MAD_METHOD_GET_TABLE;
	size_t length = packet->length, offset = data_offset(packet->mad[1]);
	struct stamp stamp;
	uint64_t ticket;

	device_copy_mad(packet, mad);
	if (length > IB_MAD_SIZE)
		memcpy(mad + IB_MAD_SIZE, packet->mad + IB_MAD_SIZE, length - IB_MAD_SIZE);
	if (table && length == IB_MAD_SIZE && choose(2)) {
		length += choose(LONGEST_ANSWER);
		memset(mad + IB_MAD_SIZE, mad[IB_MAD_SIZE - 1], length - IB_MAD_SIZE);
	}
	memcpy(&ticket, mad + offset, sizeof(ticket));
	stamp = stamp_of(node_of(packet), mad[1], mad[3], get16(mad + 16),
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

/* To the node's other LID. */
static void redirect(const struct device_packet *packet, uint8_t *mad)
{
	uint8_t *info = mad + data_offset(mad[1]);

	mad[5] = IB_MAD_STS_REDIRECT;
	memset(info, 0, 72);
	mad_set_field(info, 0, IB_CPI_REDIRECT_LID_F, node_of(packet) | REDIRECTED);
}

/* --- what the kernel waits for -------------------------------------------------- */

static struct flight **bucket_of(const struct device_packet *packet)
{
	uint32_t tid;

	memcpy(&tid, packet->mad + 12, sizeof(tid));
	return &buckets[be32toh(tid) % BUCKETS];
}

static struct flight **find_held(const struct device_packet *packet)
{
	struct flight **at = bucket_of(packet);

	while (*at &&
	       ((*at)->packet.header.agent_id != packet->header.agent_id ||
		(*at)->packet.fd != packet->fd || (*at)->packet.mad[1] != packet->mad[1] ||
		memcmp((*at)->packet.mad + 12, packet->mad + 12, 4) != 0))
		at = &(*at)->next;
	return at;
}

static void drop(struct flight *flight)
{
	if (!--flight->users)
		free(flight);
}

/* The kernel does not wait any more for what has this ID; whether it did. */
static bool release(const struct device_packet *packet)
{
	struct flight **at = find_held(packet), *flight = *at;

	if (!flight)
		return false;
	*at = flight->next;
	flight->held = false;
	drop(flight);
	return true;
}

static struct flight *make_flight(const struct device_packet *packet)
{
	size_t size = offsetof(struct flight, packet) + sizeof(*packet) + packet->length;
	struct flight *flight = calloc(1, size);

	must(flight, "no memory");
	memcpy(&flight->packet, packet, sizeof(*packet) + packet->length);
	flight->users = 1;
	if (packet->header.timeout_ms) {
		struct flight **first = bucket_of(packet);

		flight->held = true;
		flight->users++;
		flight->next = *first;
		*first = flight;
	}
	return flight;
}

/* --- events --------------------------------------------------------------------- */

static void reply(const struct device_packet *packet, const uint8_t *mad, size_t length)
{
	if (release(packet) || !mix.drops_late)
		device_reply(packet, mad, length);
}

static void arrive(struct event *event)
{
	struct delivery *delivery = (struct delivery *)(void *)event;
	const struct device_packet *packet = &delivery->flight->packet;

	if (delivery->length)
		reply(packet, delivery->mad, delivery->length);
	else if (delivery->flight->held && release(packet))
		device_time_out(packet);
	drop(delivery->flight);
	delivery->next->previous = delivery->previous;
	delivery->previous->next = delivery->next;
	free(delivery);
}

static void deliver(struct flight *flight, const uint8_t *mad, size_t length, int64_t us)
{
	struct delivery *delivery = malloc(sizeof(*delivery) + length);

	must(delivery, "no memory");
	*delivery = (struct delivery){.event.happen = arrive,
				      .next = &deliveries,
				      .previous = deliveries.previous,
				      .flight = flight,
				      .length = length};
	deliveries.previous->next = delivery;
	deliveries.previous = delivery;
	flight->users++;
	if (length)
		memcpy(delivery->mad, mad, length);
	virtual_at(&delivery->event, virtual_now() + us);
}

/* A node sends a request of its own. */
static void ask(const struct device_packet *packet)
{
	uint8_t mad[IB_MAD_SIZE];

	device_copy_mad(packet, mad);
	mad[3] = IB_MAD_METHOD_GET;
	if (choose(2))
		mad[12] ^= 0x40;
	device_reply(packet, mad, sizeof(mad));
	virtual_look();
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

static void respond(struct flight *flight, uint32_t node, enum fault fault)
{
	const struct device_packet *packet = &flight->packet;
	uint8_t mad[2 * LONGEST_ANSWER];
	size_t length = make_response(packet, mad);
	bool may_redirect = mad[1] == IB_PERFORMANCE_CLASS || mad[1] == IB_SA_CLASS;

	if (fault == CORRUPT)
		corrupt(mad);
	else if (fault == BUSY || fault == REFUSE)
		mad[5] = fault == BUSY ? IB_MAD_STS_BUSY : 0x1c;
	else if (fault == REDIRECT && may_redirect)
		redirect(packet, mad);
	else if (fault == TRUNCATE)
		length = 1 + choose(IB_MAD_SIZE - 1);
	else if (fault == REQUEST)
		ask(packet);
	if (choose(1000) < mix.instant) {
		reply(packet, mad, length);
		virtual_look();
	} else {
		deliver(flight, mad, length, response_us(node, fault));
	}
	if (fault == DOUBLE)
		deliver(flight, mad, length, response_us(node, choose(2) ? LATE : DELAY));
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

static int take_packet(const struct device_packet *packet, void *arg)
{
	uint32_t node = node_of(packet);
	struct flight *flight;
	enum fault fault;

	(void)arg;
	if (packet->mad[3] & IB_MAD_RESPONSE)
		return 0;
	virtual_lock();
	if (packet->header.timeout_ms && *find_held(packet)) {
		virtual_unlock();
		return -EINVAL;
	}
	fault = choose_fault(node);
	counts[fault]++;
	flight = make_flight(packet);
	if (packet->header.timeout_ms)
		deliver(flight, NULL, 0,
			fault == TIME_OUT ? 0 : packet->header.timeout_ms * INT64_C(1000));
	if (fault != LOSE && fault != TIME_OUT)
		respond(flight, node, fault);
	drop(flight);
	virtual_unlock();
	return 0;
}

/* --- begin and end -------------------------------------------------------------- */

void fabric_begin(uint64_t seed, const struct mix *wanted)
{
	mix = *wanted;
	random_state = seed | 1;
	salt = next_random(&random_state);
	lose_everything = false;
	device_on_write(take_packet, NULL);
}

void fabric_end(void)
{
	virtual_lock();
	lose_everything = true;
	virtual_unlock();
	device_on_write(NULL, NULL);
	virtual_lock();
	virtual_forget();
	while (deliveries.next != &deliveries) {
		struct delivery *first = deliveries.next;

		if (first->flight->held)
			release(&first->flight->packet);
		drop(first->flight);
		deliveries.next = first->next;
		free(first);
	}
	deliveries.previous = &deliveries;
	virtual_unlock();
}

void fabric_lose_everything(void)
{
	virtual_lock();
	lose_everything = true;
	virtual_unlock();
}

void fabric_report(void)
{
	for (unsigned fault = 0; fault < FAULTS; fault++)
		printf("%9lu packets %s\n", counts[fault], names[fault]);
}
