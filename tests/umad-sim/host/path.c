/* SPDX-License-Identifier: BSD-2-Clause */

/* The path limit: counts a host's requests in flight and drops those beyond the limit. */
#include "faults.h"
#include "hosts.h"
#include "trace.h"
#include "workload.h"

/* Counts the request as in flight; false if the limit is reached. */
static bool enter(struct fabric *fabric, struct send *send, struct workload *workload)
{
	uint32_t limit =
		faults_path_limit(fabric, cable(fabric, send->agent->host->port)->node);

	if (limit == NO_LIMIT || !send->expects_reply || send->in_flight)
		return true;
	if (workload->in_flight >= limit)
		return false;
	workload->in_flight++;
	send->in_flight = true;
	return true;
}

void path_send(struct fabric *fabric, struct send *send)
{
	uint32_t port = send->agent->host->port;
	struct workload *workload = NULL;

	if (!mad_is_response(send->packet.mad))
		workload = workload_of(fabric, cable(fabric, port)->node);
	if (workload)
		workload->sent++;
	if (!workload || enter(fabric, send, workload)) {
		wire_send(fabric, &send->packet);
		return;
	}
	workload->sent_in_vain++;
	send->packet.number = trace_number(fabric);
	trace_packet(fabric, &send->packet, port, "dropped: path limit");
}

void path_leave(struct fabric *fabric, struct send *send)
{
	if (!send->in_flight)
		return;
	send->in_flight = false;
	fabric->nodes[cable(fabric, send->agent->host->port)->node].workload->in_flight--;
}

/* The TID identifies the request, whether that or its response was lost: its upper half is
 * unique to the agent. Lost RMPP segments do not count, because they are retransmitted. */
void path_lost(struct fabric *fabric, const struct packet *packet)
{
	const uint8_t *mad = packet->mad;
	struct send *send;

	if (class_has_rmpp(mad[1]) && mad[RMPP_FLAGS] & RMPP_ACTIVE)
		return;
	send = send_find(fabric, NULL, get64(mad + 8), mad[1]);
	if (send)
		path_leave(fabric, send);
}
