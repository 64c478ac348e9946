/* SPDX-License-Identifier: BSD-2-Clause */

/* A packet's route is computed hop by hop when it is sent; it arrives after the sum of the
 * delays. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "classes.h"
#include "counters.h"
#include "faults.h"
#include "routes.h"
#include "settings.h"
#include "timers.h"
#include "trace.h"
#include "trees.h"
#include "wire.h"

#define MAX_HOPS 64 /* of a directed route; also ends forwarding loops */

/* Offsets in a directed SMP (IBA 14.2.1.2). */
enum {
	HOP_POINTER = 6,
	HOP_COUNT = 7,
	DR_SLID = 32,
	DR_DLID = 34,
	INITIAL_PATH = 128,
	RETURN_PATH = 192
};

struct flight {
	struct timer timer;
	uint32_t port; /* the port by which it arrives */
	struct packet packet;
};

struct walk {
	struct fabric *fabric;
	struct packet packet;
	uint64_t delay;
	unsigned int copies;
	unsigned int hops;    /* multicast: hops so far */
	uint8_t corrupt_byte; /* changed on the way; applied on arrival */
	uint8_t corrupt_bits;
	struct record *record; /* latest record of the capture; NULL: none */
};

static void drop_flight(struct timer *timer)
{
	free(timer);
}

static void arrive(struct fabric *fabric, struct timer *timer)
{
	struct flight flight = *(struct flight *)timer;

	free(timer); /* so that the response reuses this memory while it is in the cache */
	fabric->arrived(fabric, flight.port, &flight.packet);
}

static void deliver(struct walk *walk, uint32_t port)
{
	for (unsigned int copy = 0; copy < walk->copies; copy++) {
		struct flight *flight = malloc(sizeof(*flight));

		if (!flight)
			return;
		flight->timer = (struct timer){.run = arrive, .drop = drop_flight};
		flight->port = port;
		flight->packet = walk->packet;
		flight->packet.mad[walk->corrupt_byte] ^= walk->corrupt_bits;
		if (timer_set(walk->fabric, &flight->timer,
			      timers_moment(walk->fabric) + walk->delay))
			free(flight);
	}
}

static void lose(struct walk *walk, uint32_t port, const char *why, enum counter counter)
{
	capture_note(walk->fabric, walk->record, port, why);
	packet_end(walk->fabric, &walk->packet, port, why);
	if (counter != COUNTER_COUNT)
		counter_add(walk->fabric, port, counter, 1);
}

/* Records a fault that does not drop the packet. */
static void tell(struct walk *walk, uint32_t port, const char *what)
{
	trace_packet(walk->fabric, &walk->packet, port, what);
	capture_note(walk->fabric, walk->record, port, what);
}

/* Captures the packet where it leaves by a port or, without a crossing, where it arrived. The
 * record includes earlier faults. */
static void record(struct walk *walk, uint32_t port, const struct crossing *leaves)
{
	struct fabric *fabric = walk->fabric;
	struct packet seen = walk->packet;
	uint64_t at = timers_moment(fabric) + walk->delay;

	seen.mad[walk->corrupt_byte] ^= walk->corrupt_bits;
	for (unsigned int copy = 0; copy < walk->copies; copy++)
		walk->record = leaves ? capture_leaves(fabric, &seen, port, leaves->lost, at,
						       walk->record)
				      : capture_comes(fabric, &seen, port, at, walk->record);
}

/* Applies a fault of a port's link to the packet. */
static uint32_t cross_faulty(struct walk *walk, uint32_t port, const struct crossing *crossing)
{
	struct fabric *fabric = walk->fabric;
	uint32_t peer = cable(fabric, port)->peer;
	bool duplicated;

	if (crossing->lost) {
		lose(walk, port, "lost", COUNTER_COUNT);
		counter_add(fabric, peer, COUNT_RCV_ERRORS, 1);
		return NONE;
	}
	duplicated = crossing->duplicated && walk->copies == 1;
	if (crossing->corrupted) {
		walk->corrupt_byte = crossing->byte;
		walk->corrupt_bits = crossing->bits;
	}
	if (duplicated)
		walk->copies = 2;
	if (fabric->capture)
		record(walk, peer, NULL);
	if (crossing->corrupted)
		tell(walk, port, "corrupted");
	if (duplicated)
		tell(walk, port, "duplicated");
	if (crossing->reordered)
		tell(walk, port, "held back");
	return peer;
}

/* Moves the packet over the cable of a port. Returns the port at the other end, or NONE if the
 * packet is lost. */
static uint32_t cross(struct walk *walk, uint32_t port)
{
	struct fabric *fabric = walk->fabric;
	uint32_t peer = cable(fabric, port)->peer;
	const struct port *state = &fabric->ports[port];
	uint8_t needed = is_smp(walk->packet.mad) ? PORT_INIT : PORT_ACTIVE;
	struct crossing crossing = {0};
	bool faulty;

	if (peer == NONE || !link_is_up(fabric, port) || state->state < needed) {
		lose(walk, port, "link down", COUNT_XMIT_DISCARDS);
		return NONE;
	}
	faulty = faults_on_link(fabric, port, &crossing);
	if (fabric->capture)
		record(walk, port, &crossing);
	walk->delay += crossing.delay;
	if (faulty)
		return cross_faulty(walk, port, &crossing);
	if (fabric->capture)
		record(walk, peer, NULL);
	return peer;
}

static const struct graph_node *node_of(const struct walk *walk, uint32_t port)
{
	return hardware(walk->fabric, cable(walk->fabric, port)->node);
}

static bool accepts(const struct fabric *fabric, uint32_t port, uint16_t dlid)
{
	const struct port *state = &fabric->ports[end_port(fabric, port)];

	return dlid == PERMISSIVE_LID ||
	       (state->lid && dlid >= state->lid && dlid < state->lid + (1U << state->lmc));
}

static void flood(const struct walk *walk, uint32_t at, uint32_t *left);

/* A copy of the packet leaves its sender, or a switch, by a port. */
static void flood_by(const struct walk *walk, uint32_t port, uint32_t *left)
{
	struct walk copy = *walk;
	uint32_t at;

	if (cable(walk->fabric, port)->number == 0) {
		deliver(&copy, port);
		return;
	}
	if (*left == 0 || copy.hops++ == MAX_HOPS) {
		lose(&copy, port, "went in circles", COUNT_XMIT_DISCARDS);
		return;
	}
	--*left;
	at = cross(&copy, port);
	if (at != NONE && node_of(&copy, at)->type == NODE_SWITCH)
		flood(&copy, at, left);
	else if (at != NONE)
		deliver(&copy, at);
}

/* A switch forwards by all ports of the group except the one where the packet arrived (IBA
 * 18.2.4.3). */
static void flood(const struct walk *walk, uint32_t at, uint32_t *left)
{
	struct fabric *fabric = walk->fabric;
	uint32_t node = cable(fabric, at)->node;
	const struct graph_node *hw = hardware(fabric, node);
	bool member = false;

	for (unsigned int number = 0; number <= hw->port_count; number++) {
		if (!route_multicast_has(fabric, node, walk->packet.dlid, number))
			continue;
		member = true;
		if (hw->first_port + number != at)
			flood_by(walk, hw->first_port + number, left);
	}
	if (!member) {
		struct walk copy = *walk;

		lose(&copy, at, "no route", COUNT_RCV_SWITCH_RELAY_ERRORS);
	}
}

/* Delivers a packet to the group of a multicast LID. In a tree, a packet crosses each link
 * once; MAX_HOPS limits the hops because tables that were set need not form a tree. */
static void walk_to_group(const struct walk *walk, uint32_t at)
{
	uint32_t left = walk->fabric->graph.port_count;

	trees_settle(walk->fabric);
	if (node_of(walk, at)->type == NODE_SWITCH)
		flood(walk, at, &left);
	else
		flood_by(walk, at, &left);
}

/* Delivers a packet by LID. `at` is where it is: the end port that sends it, or the port of a
 * switch at which it arrived. */
static void walk_by_lid(struct walk *walk, uint32_t at)
{
	struct fabric *fabric = walk->fabric;
	uint16_t dlid = walk->packet.dlid;
	uint32_t from = at;

	if (is_multicast(dlid)) {
		walk_to_group(walk, at);
		return;
	}
	if (accepts(fabric, at, dlid)) {
		deliver(walk, at);
		return;
	}
	for (unsigned int hop = 0; hop < MAX_HOPS; hop++) {
		const struct graph_node *node = node_of(walk, at);
		uint32_t out = at;

		if (node->type == NODE_SWITCH) {
			uint8_t number = route_port(fabric, cable(fabric, at)->node, dlid);

			if (number == 0 || number > node->port_count) {
				lose(walk, at, "no route", COUNT_RCV_SWITCH_RELAY_ERRORS);
				return;
			}
			out = node->first_port + number;
		} else if (at != from) {
			lose(walk, at, "not its LID", COUNTER_COUNT);
			return;
		}
		at = cross(walk, out);
		if (at == NONE)
			return;
		if (accepts(fabric, at, dlid)) {
			deliver(walk, at);
			return;
		}
	}
	lose(walk, at, "went in circles", COUNT_XMIT_DISCARDS);
}

/* The port by which the next entry of a path leaves the current node; NONE if there is no such
 * port. */
static uint32_t path_port(const struct walk *walk, uint32_t at, uint8_t number)
{
	const struct graph_node *node = node_of(walk, at);

	if (number == 0 || number > node->port_count)
		return NONE;
	if (node->type != NODE_SWITCH && number != cable(walk->fabric, at)->number)
		return NONE; /* a CA does not forward */
	return node->first_port + number;
}

/* A directed request (IBA 14.2.2.1, 14.2.2.2): the hop pointer is incremented, and the return
 * path is recorded. */
static void walk_out(struct walk *walk, uint32_t at)
{
	uint8_t *mad = walk->packet.mad;
	uint8_t count = mad[HOP_COUNT];

	if (count >= MAX_HOPS || mad[HOP_POINTER] != 0) {
		lose(walk, at, "bad hop pointer", COUNTER_COUNT);
		return;
	}
	walk->packet.dlid = PERMISSIVE_LID; /* on the path */
	while (mad[HOP_POINTER] < count) {
		uint32_t out = path_port(walk, at, mad[INITIAL_PATH + ++mad[HOP_POINTER]]);

		if (out == NONE) {
			lose(walk, at, "no such port", COUNTER_COUNT);
			return;
		}
		at = cross(walk, out);
		if (at == NONE)
			return;
		if (node_of(walk, at)->type != NODE_SWITCH && mad[HOP_POINTER] < count) {
			lose(walk, at, "no switch", COUNTER_COUNT);
			return;
		}
		mad[RETURN_PATH + mad[HOP_POINTER]] = cable(walk->fabric, at)->number;
	}
	mad[HOP_POINTER] = (uint8_t)(count + 1);
	walk->packet.dlid = (uint16_t)get16(mad + DR_DLID);
	if (walk->packet.dlid == PERMISSIVE_LID) {
		deliver(walk, at);
		return;
	}
	walk->packet.slid = walk->fabric->ports[end_port(walk->fabric, at)].lid;
	walk_by_lid(walk, at);
}

/* A directed response (IBA 14.2.2.3, 14.2.2.4): the hop pointer is decremented along the return
 * path. A node's response to itself takes no path: the kernel leaves its pointer at 1. */
static void walk_back(struct walk *walk, uint32_t at)
{
	uint8_t *mad = walk->packet.mad;
	uint8_t count = mad[HOP_COUNT];

	if (count >= MAX_HOPS || mad[HOP_POINTER] != count + 1) {
		lose(walk, at, "bad hop pointer", COUNTER_COUNT);
		return;
	}
	walk->packet.dlid = PERMISSIVE_LID; /* on the path */
	while ((count > 0 || get16(mad + DR_SLID) != PERMISSIVE_LID) &&
	       --mad[HOP_POINTER] > 0) {
		uint32_t out = path_port(walk, at, mad[RETURN_PATH + mad[HOP_POINTER]]);

		if (out == NONE) {
			lose(walk, at, "no such port", COUNTER_COUNT);
			return;
		}
		at = cross(walk, out);
		if (at == NONE)
			return;
	}
	walk->packet.dlid = (uint16_t)get16(mad + DR_SLID);
	if (walk->packet.dlid == PERMISSIVE_LID)
		deliver(walk, at);
	else
		walk_by_lid(walk, at);
}

/* A directed SMP may be routed by LID before its path (the source LID is not the permissive
 * LID) and after it. This is the part before; the node with that LID continues on the path. */
static uint32_t first_part(struct walk *walk, uint32_t at, uint16_t lid)
{
	uint32_t hops[MAX_HOPS];
	int count;

	if (lid == PERMISSIVE_LID || accepts(walk->fabric, at, lid))
		return at;
	count = route_trace(walk->fabric, at, lid, hops, MAX_HOPS);
	if (count < 0) {
		lose(walk, at, "no route", COUNT_RCV_SWITCH_RELAY_ERRORS);
		return NONE;
	}
	for (int i = 0; i < count && at != NONE; i++)
		at = cross(walk, hops[i]);
	return at;
}

static void walk_directed(struct walk *walk)
{
	const uint8_t *mad = walk->packet.mad;
	bool back = (get16(mad + 4) & 0x8000) != 0;
	uint16_t lid = (uint16_t)get16(mad + (back ? DR_DLID : DR_SLID));
	uint32_t at = first_part(walk, walk->packet.from,
				 lid == PERMISSIVE_LID ? lid : walk->packet.dlid);

	if (at == NONE)
		return;
	if (back)
		walk_back(walk, at);
	else
		walk_out(walk, at);
}

void wire_send(struct fabric *fabric, const struct packet *packet)
{
	struct walk walk = {.fabric = fabric, .packet = *packet, .copies = 1};

	walk.packet.number = trace_number(fabric);
	trace_packet(fabric, &walk.packet, packet->from, "sent");
	if (mad_class_of(packet->mad) == CLASS_DIRECTED_SMP)
		walk_directed(&walk);
	else
		walk_by_lid(&walk, packet->from);
}

void port_gid(const struct fabric *fabric, uint32_t port, uint8_t gid[16])
{
	put64(gid, gid_prefix(fabric, port));
	put64(gid + 8, cable(fabric, port)->guid);
}

void wire_reply(struct fabric *fabric, uint32_t port, const struct packet *request)
{
	struct packet reply = *request;

	reply.from = end_port(fabric, port);
	reply.slid = fabric->ports[reply.from].lid;
	reply.dlid = request->slid;
	reply.source_qp = request->qp;
	reply.qp = request->source_qp;
	memcpy(reply.sgid, request->dgid, sizeof(reply.sgid));
	memcpy(reply.dgid, request->sgid, sizeof(reply.dgid));
	wire_send(fabric, &reply);
}

void packet_end(struct fabric *fabric, const struct packet *packet, uint32_t port,
		const char *why)
{
	trace_packet(fabric, packet, port, why);
	capture_note_arrived(fabric, packet, port, why);
	if (fabric->lost)
		fabric->lost(fabric, packet);
}
