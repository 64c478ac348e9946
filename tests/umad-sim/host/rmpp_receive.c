/* SPDX-License-Identifier: BSD-2-Clause */

/* RMPP, the receiver: reassembles segments and acknowledges them, one window at a time (IBA
 * 13.6.3.3). */
#include <stdlib.h>
#include <string.h>

#include "hosts.h"
#include "protocol.h"

#define WINDOW      64                    /* segments that the sender may have in flight */
#define MOST_BYTES  (2 * LONGEST_MESSAGE) /* per owner; messages beyond it are aborted */
#define LEAST_BYTES ((size_t)32 * 1024)   /* a message counts as this at least */
#define PATIENCE    (40 * SECOND)         /* timeout for the next segment */
#define REMEMBERED  (10 * SECOND)         /* re-ACK retransmitted segments this long */

enum {
	STOP_NO_RESOURCES = 1,
	ABORT_TOO_LONG = 118, /* "total time too long" (IBA 13.6.2.2) */
	ABORT_BAD_TYPE = 121,
	ABORT_BAD_VERSION = 123
};

struct reassembly {
	struct timer timer;
	struct reassembly *next;
	struct agent *agent;
	struct packet packet; /* the first segment */
	uint64_t tid;
	uint16_t slid;
	uint8_t class;
	uint8_t method;
	bool complete;
	uint32_t received;   /* segments received without a gap */
	uint32_t window_end; /* as in the last ACK */
	uint32_t last;       /* number of the last segment; 0: not known yet */
	size_t last_pad;     /* padding of the last segment, in bytes */
	uint64_t ahead;      /* bit mask of segments received beyond the gap */
	uint8_t *data;       /* header and data of all segments */
	size_t room;
};

static size_t data_room(const struct reassembly *reassembly)
{
	return MAD_BYTES - class_data_offset(reassembly->class);
}

static void release(const struct agent *agent, size_t bytes)
{
	if (agent->reassembled)
		*agent->reassembled -= bytes;
}

static void forget(struct fabric *fabric, struct reassembly *reassembly)
{
	struct reassembly **link = &reassembly->agent->reassemblies;

	while (*link && *link != reassembly)
		link = &(*link)->next;
	if (*link)
		*link = reassembly->next;
	timer_cancel(fabric, &reassembly->timer);
	release(reassembly->agent, LEAST_BYTES + reassembly->room);
	free(reassembly->data);
	free(reassembly);
}

static void forget_complete(struct fabric *fabric, struct agent *agent)
{
	struct reassembly *reassembly = agent->reassemblies, *next;

	for (; reassembly; reassembly = next) {
		next = reassembly->next;
		if (reassembly->complete)
			forget(fabric, reassembly);
	}
}

/* Charges bytes to the agent's owner, freeing completed reassemblies if necessary; false if
 * that would exceed MOST_BYTES. */
static bool reserve(struct fabric *fabric, struct agent *agent, size_t bytes)
{
	if (!agent->reassembled)
		return true;
	if (*agent->reassembled + bytes > MOST_BYTES)
		forget_complete(fabric, agent);
	if (*agent->reassembled + bytes > MOST_BYTES)
		return false;
	*agent->reassembled += bytes;
	return true;
}

void rmpp_forget(struct fabric *fabric, struct agent *agent)
{
	while (agent->reassemblies)
		forget(fabric, agent->reassemblies);
}

/* Sends an ACK, STOP or ABORT: the segment's header with the method's response bit flipped. */
static void control(struct fabric *fabric, const struct agent *agent,
		    const struct packet *packet, uint8_t type, uint8_t status, uint32_t segment,
		    uint32_t window_end)
{
	struct packet response = *packet;
	uint8_t *mad = response.mad;

	memset(mad + class_data_offset(mad[1]), 0, MAD_BYTES - class_data_offset(mad[1]));
	mad[3] ^= METHOD_RESPONSE;
	mad[RMPP_VERSION] = 1;
	mad[RMPP_TYPE] = type;
	mad[RMPP_FLAGS] = RMPP_ACTIVE;
	mad[RMPP_STATUS] = status;
	put32(mad + RMPP_SEGMENT, segment);
	put32(mad + RMPP_PAYLOAD, window_end);
	wire_reply(fabric, agent->host->port, &response);
}

static void stop_sender(struct fabric *fabric, const struct agent *agent,
			const struct packet *packet)
{
	control(fabric, agent, packet, RMPP_STOP, STOP_NO_RESOURCES, 0, 0);
}

static void expire(struct fabric *fabric, struct timer *timer)
{
	struct reassembly *reassembly = (struct reassembly *)timer;

	if (!reassembly->complete)
		control(fabric, reassembly->agent, &reassembly->packet, RMPP_ABORT,
			ABORT_TOO_LONG, 0, 0);
	forget(fabric, reassembly);
}

static struct reassembly *find(struct agent *agent, const struct packet *packet)
{
	struct reassembly *reassembly = agent->reassemblies;

	while (reassembly &&
	       (reassembly->tid != get64(packet->mad + 8) || reassembly->slid != packet->slid ||
		reassembly->class != packet->mad[1] || reassembly->method != packet->mad[3]))
		reassembly = reassembly->next;
	return reassembly;
}

static struct reassembly *start(struct fabric *fabric, struct agent *agent,
				const struct packet *packet)
{
	struct reassembly *reassembly;

	if (!reserve(fabric, agent, LEAST_BYTES))
		return NULL;
	reassembly = calloc(1, sizeof(*reassembly));
	if (!reassembly) {
		release(agent, LEAST_BYTES);
		return NULL;
	}
	reassembly->timer.run = expire;
	reassembly->agent = agent;
	reassembly->packet = *packet;
	reassembly->tid = get64(packet->mad + 8);
	reassembly->slid = packet->slid;
	reassembly->class = packet->mad[1];
	reassembly->method = packet->mad[3];
	reassembly->window_end = 1;
	reassembly->next = agent->reassemblies;
	agent->reassemblies = reassembly;
	timer_set(fabric, &reassembly->timer, fabric->now + PATIENCE);
	return reassembly;
}

/* Grows the buffer to hold the header and all segments up to this one. */
static bool make_room(struct fabric *fabric, struct reassembly *reassembly, uint32_t segment)
{
	size_t needed = class_data_offset(reassembly->class) + segment * data_room(reassembly);
	size_t room = reassembly->room ? reassembly->room : 2UL * MAD_BYTES;
	uint8_t *data;

	if (needed <= reassembly->room)
		return true;
	if (needed > LONGEST_MESSAGE)
		return false;
	while (room < needed)
		room *= 2;
	if (room > LONGEST_MESSAGE)
		room = LONGEST_MESSAGE;
	if (!reserve(fabric, reassembly->agent, room - reassembly->room))
		return false;
	data = realloc(reassembly->data, room);
	if (!data) {
		release(reassembly->agent, room - reassembly->room);
		return false;
	}
	reassembly->data = data;
	reassembly->room = room;
	return true;
}

static bool is_missing(const struct reassembly *reassembly, uint32_t segment)
{
	return segment > reassembly->received && segment <= reassembly->received + WINDOW &&
	       (!reassembly->last || segment <= reassembly->last);
}

/* Copies a missing segment into the buffer, which is large enough. */
static void keep(struct reassembly *reassembly, const uint8_t *mad)
{
	uint32_t segment = get32(mad + RMPP_SEGMENT);
	size_t offset = class_data_offset(reassembly->class);
	size_t room = data_room(reassembly);
	uint32_t payload = get32(mad + RMPP_PAYLOAD);

	if (segment == 1)
		memcpy(reassembly->data, mad, offset);
	memcpy(reassembly->data + offset + (segment - 1) * room, mad + offset, room);
	if (mad[RMPP_FLAGS] & RMPP_LAST) {
		size_t header = offset - RMPP_HEADER;

		reassembly->last = segment;
		reassembly->last_pad = payload >= header && payload - header <= room
					       ? room - (payload - header)
					       : 0;
	}
	reassembly->ahead |= 1ULL << (segment - reassembly->received - 1);
	while (reassembly->ahead & 1) {
		reassembly->ahead >>= 1;
		reassembly->received++;
	}
}

static void acknowledge(struct fabric *fabric, const struct reassembly *reassembly,
			const struct packet *packet)
{
	control(fabric, reassembly->agent, packet, RMPP_ACK, 0, reassembly->received,
		reassembly->window_end);
}

static struct message *finish(struct fabric *fabric, struct reassembly *reassembly)
{
	size_t length = class_data_offset(reassembly->class) +
			reassembly->received * data_room(reassembly) - reassembly->last_pad;
	struct message *message = message_from(fabric, reassembly->agent, &reassembly->packet,
					       reassembly->data, length);

	reassembly->complete = true;
	release(reassembly->agent, reassembly->room);
	free(reassembly->data);
	reassembly->data = NULL;
	reassembly->room = 0;
	timer_set(fabric, &reassembly->timer, fabric->now + REMEMBERED);
	return message;
}

static struct message *receive_segment(struct fabric *fabric, struct agent *agent,
				       const struct packet *packet)
{
	uint32_t segment = get32(packet->mad + RMPP_SEGMENT);
	struct reassembly *reassembly = find(agent, packet);

	if (!reassembly)
		reassembly = start(fabric, agent, packet);
	if (!reassembly) {
		stop_sender(fabric, agent, packet);
		return NULL;
	}
	if (reassembly->complete || segment <= reassembly->received) {
		acknowledge(fabric, reassembly, packet); /* our first ACK was lost */
		return NULL;
	}
	if (!is_missing(reassembly, segment))
		return NULL;
	if (!make_room(fabric, reassembly, segment)) {
		stop_sender(fabric, agent, packet);
		forget(fabric, reassembly);
		return NULL;
	}
	keep(reassembly, packet->mad);
	timer_set(fabric, &reassembly->timer, fabric->now + PATIENCE);
	if (reassembly->received == reassembly->last) {
		if (reassembly->window_end < reassembly->received)
			reassembly->window_end = reassembly->received;
		acknowledge(fabric, reassembly, packet);
		return finish(fabric, reassembly);
	}
	if (reassembly->received >= reassembly->window_end) {
		reassembly->window_end = reassembly->received + WINDOW;
		acknowledge(fabric, reassembly, packet);
	}
	return NULL;
}

struct message *rmpp_receive(struct fabric *fabric, struct agent *agent,
			     const struct packet *packet)
{
	const uint8_t *mad = packet->mad;

	if (!class_has_rmpp(mad[1]) || !(mad[RMPP_FLAGS] & RMPP_ACTIVE))
		return message_from(fabric, agent, packet, mad, MAD_BYTES);
	if (mad[RMPP_TYPE] == RMPP_DATA && mad[RMPP_VERSION] != 1) {
		control(fabric, agent, packet, RMPP_ABORT, ABORT_BAD_VERSION, 0, 0);
		return NULL;
	}
	if (mad[RMPP_TYPE] == RMPP_DATA)
		return receive_segment(fabric, agent, packet);
	if (mad[RMPP_TYPE] >= RMPP_ACK && mad[RMPP_TYPE] <= RMPP_ABORT)
		rmpp_receive_control(fabric, agent, packet);
	else
		control(fabric, agent, packet, RMPP_ABORT, ABORT_BAD_TYPE, 0, 0);
	return NULL;
}
