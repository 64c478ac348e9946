/* SPDX-License-Identifier: BSD-2-Clause */

/* Which ports have a kernel, and which of its agents receives a packet. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hosts.h"
#include "node.h"
#include "settings.h"
#include "trace.h"

/* The kernel reports this hop limit for a response, not the packet's. */
#define RESPONSE_HOP_LIMIT 255

struct host_port *host_at(struct fabric *fabric, uint32_t port)
{
	struct host_port **host = &fabric->hosts->by_port[port];

	if (!*host) {
		*host = calloc(1, sizeof(**host));
		if (*host) {
			(*host)->port = port;
			(*host)->present = !fabric->nodes[cable(fabric, port)->node].removed;
		}
	}
	return *host;
}

/* The index of the packet's P_Key in the port's table. */
static uint16_t pkey_index(const struct fabric *fabric, uint32_t port, uint16_t pkey)
{
	for (uint16_t i = 0; pkey_at(fabric, port, i); i++)
		if ((pkey_at(fabric, port, i) & 0x7fff) == (pkey & 0x7fff))
			return i;
	return 0;
}

struct message *message_from(const struct fabric *fabric, const struct agent *agent,
			     const struct packet *packet, const uint8_t *data, size_t length)
{
	struct message *message = malloc(sizeof(*message) + length);
	uint32_t port = agent->host->port;

	if (!message)
		return NULL;
	message->next = NULL;
	message->length = length;
	message->header = (struct ib_user_mad_hdr){
		.id = agent->id,
		.length = (uint32_t)length,
		.qpn = htobe32(packet->source_qp),
		.lid = htobe16(packet->slid),
		.sl = packet->sl,
		.path_bits = (uint8_t)((packet->dlid ^ fabric->ports[port].lid) &
				       ((1U << fabric->ports[port].lmc) - 1)),
		.pkey_index = pkey_index(fabric, port, packet->pkey),
	};
	if (packet->grh) {
		message->header.grh_present = 1;
		message->header.hop_limit = RESPONSE_HOP_LIMIT;
		message->header.traffic_class = packet->traffic_class;
		message->header.flow_label = htobe32(packet->flow_label);
		memcpy(message->header.gid, packet->sgid, sizeof(message->header.gid));
	}
	memcpy(message->data, data, length);
	return message;
}

/* The program does RMPP itself, so the kernel cannot match RMPP responses to requests. */
static bool is_programs_rmpp(const struct agent *agent, const uint8_t *mad)
{
	return (!agent->rules.rmpp_version || agent->rules.user_rmpp) &&
	       class_has_rmpp(mad[1]) && mad[RMPP_FLAGS] & RMPP_ACTIVE;
}

/* A response must match an outstanding request; late and duplicate responses are dropped. */
static bool finish_request(struct fabric *fabric, struct agent *agent,
			   const struct message *message)
{
	struct send *send;

	if (!mad_is_response(message->data))
		return true;
	send = send_find(fabric, agent, get64(message->data + 8), message->data[1]);
	if (!send)
		return is_programs_rmpp(agent, message->data);
	if (!send->expects_reply || send->acknowledged < send->segments)
		return false;
	send_finish(fabric, send);
	return true;
}

static bool receive(struct fabric *fabric, uint32_t port, const struct packet *packet)
{
	struct host_port *host = fabric->hosts->by_port[end_port(fabric, port)];
	struct agent *agent = host && host->present ? agent_for(host, packet->mad) : NULL;
	bool reassembled = agent && agent->rules.rmpp_version && !agent->rules.user_rmpp &&
			   class_has_rmpp(packet->mad[1]) &&
			   packet->mad[RMPP_FLAGS] & RMPP_ACTIVE;
	struct message *message;

	if (!agent && host && host->present && host->to_kernel)
		return host->to_kernel(host, packet);
	if (!agent)
		return false;
	if (agent->rules.rmpp_version && !agent->rules.user_rmpp)
		message = rmpp_receive(fabric, agent, packet);
	else
		message = message_from(fabric, agent, packet, packet->mad, MAD_BYTES);
	if (!message)
		return true;
	if (reassembled && !mad_is_response(packet->mad) &&
	    node_turns_away(fabric, port, packet)) {
		free(message);
		return true;
	}
	if (finish_request(fabric, agent, message)) {
		agent->deliver(agent, message);
	} else {
		trace_packet(fabric, packet, port, "nobody waits");
		free(message);
	}
	return true;
}

int hosts_init(struct fabric *fabric)
{
	fabric->hosts = calloc(1, sizeof(*fabric->hosts));
	if (!fabric->hosts)
		return -ENOMEM;
	fabric->hosts->by_port =
		calloc(fabric->graph.port_count + 1UL, sizeof(*fabric->hosts->by_port));
	if (!fabric->hosts->by_port)
		return -ENOMEM;
	fabric->to_programs = receive;
	fabric->lost = path_lost;
	return 0;
}

void hosts_free(struct fabric *fabric)
{
	struct hosts *hosts = fabric->hosts;

	if (!hosts)
		return;
	fabric->to_programs = NULL;
	fabric->lost = NULL;
	for (uint32_t port = 0; hosts->by_port && port < fabric->graph.port_count; port++) {
		struct host_port *host = hosts->by_port[port];

		while (host && host->agents)
			agent_unregister(fabric, host->agents);
		free(host);
	}
	free(hosts->by_port);
	free(hosts);
	fabric->hosts = NULL;
}
