/* SPDX-License-Identifier: BSD-2-Clause */

/* RMPP, the sender: sends segments as far as the receiver's window allows (IBA 13.6.3.2). */
#include <stdlib.h>
#include <string.h>

#include "hosts.h"

#define PATIENCE 2000 /* ms to wait for an ACK */

static void send_segment(struct fabric *fabric, struct send *send, uint32_t number)
{
	uint8_t *mad = send->packet.mad;
	size_t offset = class_data_offset(send->data[1]);
	size_t room = MAD_BYTES - offset;
	size_t start = offset + (number - 1) * room;
	size_t bytes = send->length > start ? send->length - start : 0;
	size_t pad = send->segments * room + offset - send->length;
	uint8_t flags = RMPP_ACTIVE;
	size_t payload = 0;

	if (bytes > room)
		bytes = room;
	memcpy(mad, send->data, offset);
	memcpy(mad + offset, send->data + start, bytes);
	memset(mad + offset + bytes, 0, room - bytes);
	if (number == 1) {
		flags |= RMPP_FIRST;
		payload = (size_t)send->segments * (MAD_BYTES - RMPP_HEADER) - pad;
	}
	if (number == send->segments) {
		flags |= RMPP_LAST;
		payload = MAD_BYTES - RMPP_HEADER - pad;
	}
	mad[RMPP_FLAGS] = (uint8_t)((mad[RMPP_FLAGS] & 0xf8) | flags);
	mad[RMPP_STATUS] = 0;
	put32(mad + RMPP_SEGMENT, number);
	put32(mad + RMPP_PAYLOAD, (uint32_t)payload);
	wire_send(fabric, &send->packet);
}

void rmpp_send_window(struct fabric *fabric, struct send *send)
{
	uint32_t timeout = send->header.timeout_ms;

	send_start_timer(fabric, send, timeout && timeout < PATIENCE ? timeout : PATIENCE);
	while (send->sent < send->segments && send->sent < send->window_end)
		send_segment(fabric, send, ++send->sent);
}

static void acknowledge(struct fabric *fabric, struct send *send, uint32_t segment,
			uint32_t window_end)
{
	if (segment > send->segments || segment > send->window_end || window_end < segment ||
	    window_end < send->window_end || segment < send->acknowledged)
		return; /* old or invalid */
	if (segment > send->acknowledged)
		send->retries = send->header.retries;
	send->acknowledged = segment;
	send->window_end = window_end;
	if (send->sent < segment)
		send->sent = segment;
	if (segment < send->segments) {
		rmpp_send_window(fabric, send);
	} else if (send->expects_reply) {
		send->retries = 0; /* delivered: only the response is outstanding */
		send_start_timer(fabric, send, send->header.timeout_ms);
	} else {
		send_finish(fabric, send);
	}
}

void rmpp_receive_control(struct fabric *fabric, struct agent *agent,
			  const struct packet *packet)
{
	const uint8_t *mad = packet->mad;
	struct send *send = rmpp_find(fabric, agent, packet);

	if (!send || send->acknowledged >= send->segments)
		return;
	if (mad[RMPP_TYPE] == RMPP_ACK)
		acknowledge(fabric, send, get32(mad + RMPP_SEGMENT), get32(mad + RMPP_PAYLOAD));
	else if (mad[RMPP_TYPE] == RMPP_STOP || mad[RMPP_TYPE] == RMPP_ABORT)
		send_finish(fabric, send); /* like the kernel, does not inform the sender */
}
