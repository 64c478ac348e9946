/* SPDX-License-Identifier: BSD-2-Clause */

/* The messages from and to an HCA of a real kernel: packets, commands, events. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frame.h"
#include "kernel_device.h"
#include "links.h"
#include "node.h"
#include "sma.h"
#include "traps.h"
#include "wire.h"
#include "workload.h"

#define READ_BYTES       32768
#define SMP_DATA_AT      64
#define NODE_DESCRIPTION 64 /* bytes */
#define REREGISTER       51 /* the byte of PortInfo with ClientReregister, which is its bit 7 */

/* Offsets in a directed SMP (IBA 14.2.1.2). */
enum {
	HOP_POINTER = 6,
	HOP_COUNT = 7,
	DR_SLID = 32,
	DR_DLID = 34
};

/* --- to the kernel ---------------------------------------------------------------- */

int kernel_tell(const struct kernel_device *device, enum sim_hca_kind kind, uint32_t port,
		uint32_t id, const void *payload, size_t length)
{
	uint8_t bytes[sizeof(struct sim_hca_message) + 1024];
	struct sim_hca_message message = {
		.kind = kind, .port = port, .id = id, .length = (uint32_t)length};

	memcpy(bytes, &message, sizeof(message));
	if (length)
		memcpy(bytes + sizeof(message), payload, length);
	length += sizeof(message);
	return write(device->connection->fd, bytes, length) == (ssize_t)length ? 0 : -errno;
}

/*
 * The kernel's SMI changes the hop pointer when it sends a directed SMP and when it receives
 * one (IBA 14.2.2). The fabric's wire already does that for all nodes, so this undoes the
 * change in both directions. The LID-routed part of a path leaves the pointer alone.
 */
static void undo_hop(uint8_t *mad, bool arrives)
{
	bool back = (get16(mad + 4) & 0x8000) != 0;
	bool second_end = back != arrives; /* this is the end of the path that DrDLID is for */
	unsigned int lid = get16(mad + (second_end ? DR_DLID : DR_SLID));

	if (mad_class_of(mad) != CLASS_DIRECTED_SMP || lid != PERMISSIVE_LID || !mad[HOP_COUNT])
		return;
	if (back)
		mad[HOP_POINTER]++;
	else
		mad[HOP_POINTER]--;
}

bool kernel_receives(struct host_port *host, const struct packet *packet)
{
	const struct kernel_device *device = host->kernel;
	const struct fabric *fabric = &device->server->fabric;
	struct frame_address address = {
		.slid = packet->slid,
		.dlid = packet->dlid,
		.pkey = packet->pkey,
		.sl = packet->sl,
		.vl = is_smp(packet->mad) ? 15 : 0,
		.source_qp = packet->source_qp,
		.qp = packet->qp,
		.qkey = packet->qkey,
		.grh = packet->grh,
		.traffic_class = packet->traffic_class,
		.hop_limit = packet->hop_limit,
		.flow_label = packet->flow_label,
	};
	uint8_t frame[FRAME_BYTES];
	uint8_t mad[MAD_BYTES];

	if (!device->connection || !device->created)
		return true; /* as if the host was booting: nobody receives it */
	if (host->port == fabric->sm_port && is_smp(packet->mad) &&
	    mad_attribute(packet->mad) == IB_ATTR_SMINFO)
		return false; /* the built-in subnet manager's */
	memcpy(address.sgid, packet->sgid, sizeof(address.sgid));
	memcpy(address.dgid, packet->dgid, sizeof(address.dgid));
	memcpy(mad, packet->mad, MAD_BYTES);
	undo_hop(mad, true);
	kernel_tell(device, SIM_HCA_PACKET, cable(fabric, host->port)->number, 0, frame,
		    frame_put(frame, &address, mad));
	return true;
}

void kernel_know(const struct fabric *fabric, uint32_t port, struct known_port *known)
{
	const struct port *state = &fabric->ports[port];
	struct port_settings defaults;
	const struct port_settings *settings = settings_read(fabric, port, &defaults);

	known->lid = state->lid;
	known->lmc = state->lmc;
	known->sm_lid = state->sm_lid;
	known->sm_sl = state->sm_sl;
	known->active = state->state == PORT_ACTIVE && link_is_up(fabric, port);
	known->gid_prefix = gid_prefix(fabric, port);
	memcpy(known->guids, settings->guids, sizeof(known->guids));
	for (unsigned int i = 0; i < PKEY_COUNT; i++)
		known->pkeys[i] = pkey_at(fabric, port, i);
}

/* Reports a port's changes to the kernel, in the order in which drivers do. */
static void report(struct kernel_device *device, uint32_t number, bool reregister)
{
	const struct fabric *fabric = &device->server->fabric;
	struct known_port *known = &device->known[number];
	struct known_port before = *known;
	bool changed[SIM_HCA_PORT_ERROR + 1] = {false};

	kernel_know(fabric, hardware(fabric, device->node)->first_port + number, known);
	changed[SIM_HCA_LID_CHANGE] = known->lid != before.lid || known->lmc != before.lmc;
	changed[SIM_HCA_SM_CHANGE] =
		known->sm_lid != before.sm_lid || known->sm_sl != before.sm_sl;
	changed[SIM_HCA_REREGISTER] = reregister;
	changed[SIM_HCA_PKEY_CHANGE] =
		memcmp(known->pkeys, before.pkeys, sizeof(before.pkeys)) != 0;
	changed[SIM_HCA_GID_CHANGE] =
		known->gid_prefix != before.gid_prefix ||
		memcmp(known->guids, before.guids, sizeof(before.guids)) != 0;
	changed[SIM_HCA_PORT_ACTIVE] = known->active && !before.active;
	changed[SIM_HCA_PORT_ERROR] = !known->active && before.active;
	for (uint32_t event = 0; event <= SIM_HCA_PORT_ERROR; event++)
		if (changed[event])
			kernel_tell(device, SIM_HCA_EVENT, number, event, NULL, 0);
}

void kernel_devices_port_changed(struct server *server, uint32_t port)
{
	const struct graph_port *end = cable(&server->fabric, port);

	for (struct kernel_device *device = server->kernel_devices; device;
	     device = device->next)
		if (device->node == end->node && device->created && !device->performing)
			report(device, end->number, false);
}

/* --- from the kernel ---------------------------------------------------------------- */

static void send_packet(struct kernel_device *device, uint32_t number, const uint8_t *frame,
			size_t length)
{
	struct fabric *fabric = &device->server->fabric;
	uint32_t port = hardware(fabric, device->node)->first_port + number;
	const struct port *state = &fabric->ports[port];
	struct frame_address address;
	struct packet packet = {.from = port};
	struct workload *workload;

	if (!frame_parse(frame, length, &address, packet.mad))
		return;
	undo_hop(packet.mad, false);
	packet.source_qp = address.source_qp;
	packet.qp = address.qp;
	packet.qkey = address.qkey;
	packet.dlid = address.dlid;
	packet.slid = (uint16_t)(state->lid | (address.slid & ((1U << state->lmc) - 1)));
	packet.sl = address.sl;
	packet.pkey = address.pkey;
	packet.grh = address.grh;
	packet.traffic_class = address.traffic_class;
	packet.hop_limit = address.hop_limit;
	packet.flow_label = address.flow_label;
	memcpy(packet.sgid, address.sgid, sizeof(packet.sgid));
	memcpy(packet.dgid, address.dgid, sizeof(packet.dgid));
	workload = mad_is_response(packet.mad) ? NULL : workload_of(fabric, device->node);
	if (workload)
		workload->sent++;
	wire_send(fabric, &packet);
}

/* Whether a request sets PortInfo:ClientReregister of the port. */
static bool asks_to_reregister(const uint8_t *mad)
{
	return is_smp(mad) && mad_method(mad) == METHOD_SET &&
	       mad_attribute(mad) == IB_ATTR_PORT_INFO && mad[SMP_DATA_AT + REREGISTER] & 0x80;
}

static void perform_mad(struct kernel_device *device, uint32_t port,
			const struct sim_hca_command *command, struct sim_hca_reply *reply,
			bool *reregister)
{
	struct fabric *fabric = &device->server->fabric;
	const struct port_settings *settings = fabric->ports[port].settings;

	memcpy(reply->data, command->data, MAD_BYTES);
	if (command->flags & SIM_HCA_IGNORE_MKEY && is_smp(reply->data) && settings)
		put64(reply->data + 24, settings->mkey);
	reply->responds = node_respond(fabric, port, reply->data);
	*reregister = reply->responds && asks_to_reregister(command->data) &&
		      (get16(reply->data + 4) & 0x7fff) == STATUS_OK;
}

static void set_capabilities(struct fabric *fabric, uint32_t port, uint32_t set, uint32_t clear)
{
	uint32_t *mask = &fabric->ports[port].capability_mask;
	uint32_t before = *mask;

	if (fabric->sm_port == port)
		clear &= ~(uint32_t)IS_SM; /* the built-in subnet manager's */
	*mask = (*mask | set) & ~clear;
	if (*mask == before)
		return;
	port_changed(fabric, port);
	trap_capability(fabric, port);
}

static uint32_t set_description(struct fabric *fabric, uint32_t port,
				const uint8_t text[NODE_DESCRIPTION])
{
	struct node *node = &fabric->nodes[cable(fabric, port)->node];
	char *description = strndup((const char *)text, NODE_DESCRIPTION);

	if (!description)
		return ENOMEM;
	free(node->description);
	node->description = description;
	trap_description(fabric, port);
	return 0;
}

static void perform(struct kernel_device *device, const struct sim_hca_message *message,
		    const struct sim_hca_command *command)
{
	struct fabric *fabric = &device->server->fabric;
	uint32_t port = hardware(fabric, device->node)->first_port + message->port;
	struct sim_hca_reply reply = {0};
	bool reregister = false;

	device->performing = true;
	switch (command->operation) {
	case SIM_HCA_MAD:
		perform_mad(device, port, command, &reply, &reregister);
		break;
	case SIM_HCA_CAPABILITIES:
		set_capabilities(fabric, port, command->set, command->clear);
		break;
	case SIM_HCA_DESCRIPTION:
		reply.status = set_description(fabric, port, command->data);
		break;
	default:
		reply.status = EOPNOTSUPP;
	}
	device->performing = false;
	kernel_tell(device, SIM_HCA_REPLY, message->port, message->id, &reply, sizeof(reply));
	if (device->created)
		report(device, message->port, reregister);
}

static void created(struct kernel_device *device, uint32_t error)
{
	const struct graph_node *hw = hardware(&device->server->fabric, device->node);

	device->error = -(int)error;
	device->created = !error;
	for (uint32_t number = 1; !error && number <= hw->port_count; number++)
		report(device, number, false); /* changes while the kernel registered it */
}

static void handle(struct kernel_device *device, const struct sim_hca_message *message,
		   const uint8_t *payload)
{
	struct sim_hca_command command;

	switch (message->kind) {
	case SIM_HCA_CREATED:
		created(device, message->id);
		break;
	case SIM_HCA_PACKET:
		send_packet(device, message->port, payload, message->length);
		break;
	case SIM_HCA_COMMAND:
		memcpy(&command, payload, sizeof(command));
		perform(device, message, &command);
		break;
	}
}

/* Reads only once: a host that never stops sending commands must not starve the server's other
 * events. */
bool kernel_device_read(struct connection *connection)
{
	static uint8_t bytes[READ_BYTES];
	ssize_t length = read(connection->fd, bytes, sizeof(bytes));
	size_t done = 0;

	server_tell_time(connection->server);
	while (length > 0 && done < (size_t)length) {
		struct sim_hca_message message;

		memcpy(&message, bytes + done, sizeof(message));
		handle(connection->kernel, &message, bytes + done + sizeof(message));
		done += sizeof(message) + message.length;
	}
	if (length > 0 || (length < 0 && (errno == EAGAIN || errno == EINTR)))
		return true;
	connection->kernel->connection = NULL;
	connection->kernel->created = false;
	return false;
}
