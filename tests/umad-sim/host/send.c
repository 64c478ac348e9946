/* SPDX-License-Identifier: BSD-2-Clause */

/* Sends of agents: in flight until a response or acknowledgement arrives, or until they time
 * out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hosts.h"
#include "settings.h"

#define TICK       (4 * MILLISECOND) /* granularity of the kernel's timeouts */
#define FOR_EVER   UINT32_MAX
#define GIVEN_BACK 24 /* bytes of the MAD that come back on a timeout: the header */

static struct send **chain(const struct fabric *fabric, uint64_t tid)
{
	size_t count = sizeof(fabric->hosts->table) / sizeof(struct send *);

	return &fabric->hosts->table[(tid ^ tid >> 32 ^ tid >> 14) % count];
}

static bool is_of(const struct send *send, const struct agent *agent)
{
	return agent ? send->agent == agent : !mad_is_response(send->packet.mad);
}

struct send *send_find(const struct fabric *fabric, const struct agent *agent, uint64_t tid,
		       uint8_t class)
{
	struct send *send = *chain(fabric, tid);

	while (send &&
	       (send->tid != tid || !is_of(send, agent) || send->packet.mad[1] != class))
		send = send->next;
	return send;
}

/* A port with several LIDs sends its ACKs from the first one. */
static bool same_port(const struct fabric *fabric, uint16_t a, uint16_t b)
{
	return a == b ||
	       (lid_owner(fabric, a) != NONE && lid_owner(fabric, a) == lid_owner(fabric, b));
}

/* Two clients of a server may use the same TID, so the destination must match, too. */
static struct send *find_rmpp(const struct fabric *fabric, const struct agent *agent,
			      const uint8_t *mad, uint16_t lid, bool response)
{
	uint64_t tid = get64(mad + 8);
	struct send *send = *chain(fabric, tid);

	while (send &&
	       (send->tid != tid || send->agent != agent || send->segments == 0 ||
		send->packet.mad[1] != mad[1] || !same_port(fabric, send->packet.dlid, lid) ||
		mad_is_response(send->packet.mad) != response))
		send = send->next;
	return send;
}

struct send *rmpp_find(const struct fabric *fabric, const struct agent *agent,
		       const struct packet *packet)
{
	return find_rmpp(fabric, agent, packet->mad, packet->slid,
			 !mad_is_response(packet->mad));
}

void send_finish(struct fabric *fabric, struct send *send)
{
	struct send **link = chain(fabric, send->tid);

	while (*link != send)
		link = &(*link)->next;
	*link = send->next;
	timer_cancel(fabric, &send->timer);
	path_leave(fabric, send);
	if (send->agent->complete && !mad_is_response(send->packet.mad))
		send->agent->complete(send->agent, send->tid, send->packet.mad[1]);
	free(send->data);
	free(send);
}

/*
 * How late the kernel reports a timeout, as measured (docs/kernel-contract.md), without the
 * rounding to a tick. The delay grows with the timeout, so a program that polls for exactly the
 * timeout returns before the report.
 */
static uint64_t lateness(uint64_t milliseconds)
{
	return TICK + milliseconds * MILLISECOND / 128 * 3;
}

void send_start_timer(struct fabric *fabric, struct send *send, uint64_t milliseconds)
{
	uint64_t at = fabric->now + milliseconds * MILLISECOND + lateness(milliseconds);

	at = (at / TICK + 1) * TICK;
	if (milliseconds == FOR_EVER || timer_set(fabric, &send->timer, at))
		timer_cancel(fabric, &send->timer);
}

/* The program gets back its own header and the MAD's header. */
static void give_up(struct fabric *fabric, struct send *send)
{
	struct agent *agent = send->agent;
	struct message *message = malloc(sizeof(*message) + GIVEN_BACK);

	if (message) {
		message->next = NULL;
		message->header = send->header;
		message->header.status = ETIMEDOUT;
		message->length = GIVEN_BACK;
		memcpy(message->data, send->packet.mad, GIVEN_BACK);
	}
	send_finish(fabric, send);
	if (message)
		agent->deliver(agent, message);
}

static void time_out(struct fabric *fabric, struct timer *timer)
{
	struct send *send = (struct send *)timer;

	if (send->retries == 0) {
		give_up(fabric, send);
		return;
	}
	send->retries--;
	if (send->acknowledged < send->segments) {
		send->sent = send->acknowledged;
		rmpp_send_window(fabric, send);
		return;
	}
	send_start_timer(fabric, send, send->header.timeout_ms);
	path_send(fabric, send);
}

static void address(const struct fabric *fabric, const struct agent *agent,
		    const struct ib_user_mad_hdr *header, struct packet *packet)
{
	uint32_t port = agent->host->port;
	const struct port *state = &fabric->ports[port];

	packet->from = port;
	packet->source_qp = agent->rules.qp;
	packet->qp = be32toh(header->qpn) & 0xffffff;
	/* ib_mad uses the queue pair's Q_Key and ignores the program's */
	packet->qkey = agent->rules.qp ? WELL_KNOWN_QKEY : 0;
	packet->dlid = be16toh(header->lid);
	packet->slid = (uint16_t)(state->lid | (header->path_bits & ((1U << state->lmc) - 1)));
	packet->sl = header->sl & 15;
	packet->pkey = pkey_at(fabric, port, header->pkey_index);
	if (!header->grh_present)
		return;
	packet->grh = true;
	packet->hop_limit = header->hop_limit;
	packet->traffic_class = header->traffic_class;
	packet->flow_label = be32toh(header->flow_label);
	port_gid(fabric, port, packet->sgid);
	memcpy(packet->dgid, header->gid, sizeof(packet->dgid));
}

static bool kernel_does_rmpp(const struct agent *agent, const uint8_t *mad)
{
	return agent->rules.rmpp_version && !agent->rules.user_rmpp && class_has_rmpp(mad[1]) &&
	       mad[RMPP_FLAGS] & RMPP_ACTIVE;
}

/* Keeps the whole message; each segment is built when it is sent. */
static int prepare_rmpp(struct send *send, const uint8_t *mad, size_t length)
{
	size_t offset = class_data_offset(mad[1]);
	size_t room = MAD_BYTES - offset;
	size_t segments = length > offset ? (length - offset + room - 1) / room : 1;

	send->data = malloc(length);
	if (!send->data)
		return -ENOMEM;
	memcpy(send->data, mad, length);
	/* the kernel writes the RMPP header; it only looks at the program's active flag */
	memset(send->data + RMPP_VERSION, 0, RMPP_HEADER - RMPP_VERSION);
	send->data[RMPP_VERSION] = 1;
	send->data[RMPP_TYPE] = RMPP_DATA;
	send->length = length;
	send->segments = (uint32_t)segments;
	send->window_end = 1;
	return 0;
}

int host_send(struct fabric *fabric, struct agent *agent, const struct ib_user_mad_hdr *header,
	      const uint8_t *mad, size_t length)
{
	bool rmpp = length >= RMPP_HEADER && kernel_does_rmpp(agent, mad);
	struct send *send;

	if (length < RMPP_HEADER || length < class_data_offset(mad[1]) ||
	    (length > MAD_BYTES && !rmpp))
		return -EINVAL;
	send = calloc(1, sizeof(*send));
	if (!send)
		return -ENOMEM;
	send->agent = agent;
	send->timer.run = time_out;
	send->header = *header;
	send->retries = header->retries;
	send->expects_reply = header->timeout_ms != 0;
	memcpy(send->packet.mad, mad, length < MAD_BYTES ? length : MAD_BYTES);
	address(fabric, agent, header, &send->packet);
	if (!mad_is_response(mad))
		put32(send->packet.mad + 8, agent->tid_high);
	send->tid = get64(send->packet.mad + 8);
	if (rmpp && mad_is_response(mad) &&
	    find_rmpp(fabric, agent, send->packet.mad, send->packet.dlid, true)) {
		free(send);
		return -EINVAL;
	}
	if (rmpp && prepare_rmpp(send, mad, length)) {
		free(send);
		return -ENOMEM;
	}
	send->next = *chain(fabric, send->tid);
	*chain(fabric, send->tid) = send;
	if (rmpp) {
		memcpy(send->data + 8, send->packet.mad + 8, 8);
		rmpp_send_window(fabric, send);
		return 0;
	}
	if (send->expects_reply)
		send_start_timer(fabric, send, header->timeout_ms);
	path_send(fabric, send);
	if (!send->expects_reply)
		send_finish(fabric, send);
	return 0;
}
