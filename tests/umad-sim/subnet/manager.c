/* SPDX-License-Identifier: BSD-2-Clause */

/* Configures a subnet, and recomputes routes as links change. */
#include <errno.h>
#include <stdlib.h>

#include "faults.h"
#include "link.h"
#include "mad_header.h"
#include "manager.h"
#include "routes.h"
#include "trees.h"

#define NOTICE     64 /* offset of an SMP's data, here a Notice */
#define LINK_STATE 128

struct manager {
	struct timer timer; /* the next sweep */
};

static bool is_end_port(const struct fabric *fabric, uint32_t port)
{
	const struct graph_port *end = cable(fabric, port);
	const struct graph_node *node = hardware(fabric, end->node);

	return node->type == NODE_SWITCH ? end->number == 0
					 : end->number != 0 && end->peer != NONE;
}

/* Whether 2^lmc LIDs from this one on are free. */
static bool is_free(const struct fabric *fabric, uint32_t lid, uint8_t lmc)
{
	if (lid == 0 || lid + (1U << lmc) > LID_COUNT || lid & ((1U << lmc) - 1))
		return false;
	for (uint32_t i = lid; i < lid + (1U << lmc); i++)
		if (fabric->lids[i] != NONE)
			return false;
	return true;
}

static void take_lids_of_the_file(struct fabric *fabric)
{
	for (uint32_t port = 0; port < fabric->graph.port_count; port++) {
		const struct graph_port *end = cable(fabric, port);

		if (end->lid && is_end_port(fabric, port) &&
		    is_free(fabric, end->lid, end->lmc))
			set_lid(fabric, port, end->lid, end->lmc);
	}
}

static uint32_t assign_lids(struct fabric *fabric, bool switches, uint32_t *next)
{
	uint32_t without = 0;

	for (uint32_t port = 0; port < fabric->graph.port_count; port++) {
		bool of_switch =
			hardware(fabric, cable(fabric, port)->node)->type == NODE_SWITCH;

		if (of_switch != switches || !is_end_port(fabric, port) ||
		    fabric->ports[port].lid)
			continue;
		while (*next < LID_COUNT && fabric->lids[*next] != NONE)
			++*next;
		if (*next < LID_COUNT)
			set_lid(fabric, port, (uint16_t)*next, 0);
		else
			without++;
	}
	return without;
}

/* Whether a port's node has a LID: without one, its links carry SMPs only. */
static bool is_addressed(const struct fabric *fabric, uint32_t port)
{
	return fabric->ports[end_port(fabric, port)].lid != 0;
}

static void activate(struct fabric *fabric, uint32_t port)
{
	struct port *state = &fabric->ports[port];
	uint32_t peer = cable(fabric, port)->peer;

	state->sm_lid = is_end_port(fabric, port) ? fabric->ports[fabric->sm_port].lid : 0;
	if (peer != NONE && state->state == PORT_INIT && is_addressed(fabric, port) &&
	    is_addressed(fabric, peer))
		state->state = PORT_ACTIVE;
}

static uint16_t highest_lid(const struct fabric *fabric)
{
	uint32_t lid = LID_COUNT - 1;

	while (lid && fabric->lids[lid] == NONE)
		lid--;
	return (uint16_t)lid;
}

uint32_t bring_up(struct fabric *fabric, uint32_t sm_port)
{
	uint32_t next = 1;
	uint32_t without;
	uint16_t top;

	fabric->sm_port = sm_port;
	fabric->ports[sm_port].capability_mask |= 0x2; /* IsSM */
	take_lids_of_the_file(fabric);
	if (!fabric->ports[sm_port].lid) {
		while (next < LID_COUNT && fabric->lids[next] != NONE)
			next++;
		if (next < LID_COUNT)
			set_lid(fabric, sm_port, (uint16_t)next, 0);
	}
	without = assign_lids(fabric, true, &next);
	without += assign_lids(fabric, false, &next);
	top = highest_lid(fabric);
	for (uint32_t node = 0; node < fabric->graph.node_count; node++)
		fabric->nodes[node].linear_top = top;
	for (uint32_t port = 0; port < fabric->graph.port_count; port++)
		activate(fabric, port);
	return without;
}

void manager_sweep(struct fabric *fabric)
{
	const struct graph *graph = &fabric->graph;
	bool changed = false;

	for (uint32_t port = 0; port < graph->port_count; port++) {
		uint32_t peer = cable(fabric, port)->peer;

		if (peer != NONE)
			changed |= routes_set_link(fabric, port,
						   link_is_up(fabric, port) &&
							   link_is_up(fabric, peer));
	}
	for (uint32_t node = 0; node < graph->node_count; node++) {
		bool silent;

		if (hardware(fabric, node)->type != NODE_SWITCH)
			continue;
		silent = faults_silent(fabric, node);
		changed |= routes_set_avoided(fabric, node, silent);
		if (!silent)
			fabric->nodes[node].state_change = false;
	}
	if (!changed)
		return;
	routes_forget(fabric);
	trees_expire(fabric);
}

static void sweep(struct fabric *fabric, struct timer *timer)
{
	if (faults_reroute(fabric) != NO_REROUTES)
		manager_sweep(fabric);
	timer_set(fabric, timer, fabric->now + SWEEP_INTERVAL);
}

int manager_start(struct fabric *fabric)
{
	fabric->manager = calloc(1, sizeof(*fabric->manager));
	if (!fabric->manager)
		return -ENOMEM;
	fabric->manager->timer.run = sweep;
	if (faults_reroute(fabric) != NO_REROUTES)
		manager_sweep(fabric);
	return timer_set(fabric, &fabric->manager->timer, fabric->now + SWEEP_INTERVAL);
}

void manager_stop(struct fabric *fabric)
{
	if (!fabric->manager)
		return;
	timer_cancel(fabric, &fabric->manager->timer);
	free(fabric->manager);
	fabric->manager = NULL;
}

void manager_heard(struct fabric *fabric, const uint8_t mad[MAD_BYTES])
{
	uint64_t delay = faults_reroute(fabric);

	if (!fabric->manager || delay == NO_REROUTES || get16(mad + NOTICE + 4) != LINK_STATE)
		return;
	if (fabric->now + delay < fabric->manager->timer.at)
		timer_set(fabric, &fabric->manager->timer, fabric->now + delay);
}
