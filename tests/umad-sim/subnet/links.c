/* SPDX-License-Identifier: BSD-2-Clause */

/* The states of a link's two ends. */
#include <stdlib.h>

#include "counters.h"
#include "faults.h"
#include "gmp_agents.h"
#include "link.h"
#include "links.h"
#include "routes.h"
#include "settings.h"
#include "timers.h"
#include "traps.h"

void port_changed(struct fabric *fabric, uint32_t port)
{
	if (fabric->port_changed)
		fabric->port_changed(fabric, port);
}

static void set_states(struct fabric *fabric, uint32_t port, enum port_state state,
		       enum port_phys_state phys_state)
{
	struct port *end = &fabric->ports[port];
	uint32_t node = cable(fabric, port)->node;
	bool was_active;
	bool was_down;

	if (end->state == state && end->phys_state == phys_state)
		return;
	counters_settle(fabric, port);
	if (end->state >= PORT_INIT && state == PORT_DOWN)
		counter_add(fabric, port, COUNT_LINK_DOWNED, 1);
	was_active = end->state == PORT_ACTIVE;
	was_down = end->state == PORT_DOWN;
	end->state = (uint8_t)state;
	end->phys_state = (uint8_t)phys_state;
	if (fabric->service_changed && end_port(fabric, port) == port &&
	    was_active != (state == PORT_ACTIVE))
		fabric->service_changed(fabric, port, state == PORT_ACTIVE);
	/* a port that is Active again went through Init, which the switch reports */
	if (hardware(fabric, node)->type == NODE_SWITCH && (state <= PORT_INIT || was_down)) {
		fabric->nodes[node].state_change = true;
		trap_link_state(fabric, node);
	}
	port_changed(fabric, port);
}

static bool is_off(const struct fabric *fabric, uint32_t port)
{
	const struct port *end = &fabric->ports[port];

	return end->phys_state == PHYS_DISABLED || end->cut || end->powered_off;
}

/* Without another subnet manager, the built-in one activates links after training. */
static enum port_state state_after_training(const struct fabric *fabric)
{
	return fabric->sm_port == NONE ? PORT_INIT : PORT_ACTIVE;
}

/* --- training ------------------------------------------------------------------- */

/* The speeds that are enabled at a port: a bit for each enum link_speed. */
static unsigned int speeds_enabled(const struct port_settings *settings)
{
	static const uint8_t bits[] = {[SDR] = 1, [DDR] = 2, [QDR] = 4};
	unsigned int speeds = 0;

	for (enum link_speed speed = SDR; speed <= QDR; speed++)
		if (settings->speed_enabled & bits[speed])
			speeds |= 1U << speed;
	if (settings->fdr10_enabled)
		speeds |= 1U << FDR10;
	for (enum link_speed speed = FDR; speed <= NDR; speed++)
		if (settings->speed_ext_enabled != NO_EXTENDED_SPEEDS &&
		    settings->speed_ext_enabled & speed_ext_bit(speed))
			speeds |= 1U << speed;
	if (settings->speed_ext2_enabled & speed_ext2_bit(XDR))
		speeds |= 1U << XDR;
	return speeds;
}

struct training {
	unsigned int width;
	enum link_speed speed;
};

/* The best values that are enabled at both ends and that the cable and the rules permit; false
 * if there are none. */
static bool negotiate(const struct fabric *fabric, uint32_t port, struct training *training)
{
	const struct graph_port *end = cable(fabric, port);
	unsigned int width = faults_width(fabric, port);
	unsigned int speed = faults_speed(fabric, port);
	struct port_settings defaults[2];
	const struct port_settings *near = settings_read(fabric, port, &defaults[0]);
	const struct port_settings *far = settings_read(fabric, end->peer, &defaults[1]);
	unsigned int speeds = speeds_enabled(near) & speeds_enabled(far);

	if (speed > end->speed)
		speed = end->speed;
	speeds &= (2U << speed) - 1;
	training->width = widest(near->width_enabled & far->width_enabled,
				 width < end->width ? width : end->width);
	for (speed = 0; speeds >> speed > 1; speed++)
		;
	training->speed = (enum link_speed)speed;
	return training->width && speeds;
}

static void store(struct port *end, unsigned int width, unsigned int speed)
{
	end->width = width & 15;
	end->speed = speed & 15;
}

static void set_training(struct fabric *fabric, uint32_t port, const struct training *training)
{
	struct port *end = &fabric->ports[port];

	if (end->width == training->width && end->speed == training->speed)
		return;
	if (fabric->now) /* before, nothing was counted */
		counters_settle_lanes(fabric, port);
	store(end, training->width, training->speed);
	port_changed(fabric, port);
}

static bool train(struct fabric *fabric, uint32_t port)
{
	struct training training;

	if (!negotiate(fabric, port, &training))
		return false;
	set_training(fabric, port, &training);
	set_training(fabric, cable(fabric, port)->peer, &training);
	return true;
}

void link_start(struct fabric *fabric, uint32_t port)
{
	const struct graph_port *end = cable(fabric, port);

	store(&fabric->ports[port], end->width, end->speed);
	if (end->most_width)
		train(fabric, port);
}

/* Sets the states of both ends when a link comes up or goes down. */
static void settle(struct fabric *fabric, uint32_t port)
{
	uint32_t ends[2] = {port, cable(fabric, port)->peer};
	bool up = ends[1] != NONE && !is_off(fabric, ends[0]) && !is_off(fabric, ends[1]);

	if (up && !(link_is_up(fabric, ends[0]) && link_is_up(fabric, ends[1])))
		up = train(fabric, port);
	for (unsigned int i = 0; i < 2 && ends[i] != NONE; i++) {
		const struct port *end = &fabric->ports[ends[i]];

		if (up)
			set_states(fabric, ends[i], state_after_training(fabric), PHYS_LINK_UP);
		else if (end->phys_state == PHYS_DISABLED)
			set_states(fabric, ends[i], PORT_DOWN, PHYS_DISABLED);
		else
			set_states(fabric, ends[i], PORT_DOWN, PHYS_POLLING);
	}
}

void link_disable(struct fabric *fabric, uint32_t port)
{
	set_states(fabric, port, PORT_DOWN, PHYS_DISABLED);
	settle(fabric, port);
}

void link_train(struct fabric *fabric, uint32_t port)
{
	uint32_t peer = cable(fabric, port)->peer;

	set_states(fabric, port, PORT_DOWN, PHYS_POLLING);
	if (peer != NONE && !is_off(fabric, peer))
		set_states(fabric, peer, PORT_DOWN, PHYS_POLLING);
	settle(fabric, port);
}

void link_follow(struct fabric *fabric, uint32_t port)
{
	uint32_t peer = cable(fabric, port)->peer;
	const struct port *end = &fabric->ports[port];
	struct training training;
	bool possible;

	if (peer == NONE || is_off(fabric, port) || is_off(fabric, peer))
		return;
	possible = negotiate(fabric, port, &training);
	if (possible == link_is_up(fabric, port) &&
	    (!possible || (training.width == end->width && training.speed == end->speed)))
		return;
	if (possible && link_is_up(fabric, port) && fabric->now == 0)
		train(fabric, port);
	else
		link_train(fabric, port);
}

void link_set_state(struct fabric *fabric, uint32_t port, enum port_state state)
{
	set_states(fabric, port, state, (enum port_phys_state)fabric->ports[port].phys_state);
}

void link_cut(struct fabric *fabric, uint32_t port, bool cut)
{
	uint32_t peer = cable(fabric, port)->peer;

	if (peer == NONE || (fabric->ports[port].cut == cut && fabric->ports[peer].cut == cut))
		return;
	fabric->ports[port].cut = cut;
	fabric->ports[peer].cut = cut;
	settle(fabric, port);
}

struct reboot {
	struct timer timer;
	uint32_t node;
};

static void set_power(struct fabric *fabric, uint32_t node, bool off)
{
	const struct graph_node *hw = hardware(fabric, node);

	for (uint32_t number = 1; number <= hw->port_count; number++) {
		fabric->ports[hw->first_port + number].powered_off = off;
		if (cable(fabric, hw->first_port + number)->peer != NONE)
			settle(fabric, hw->first_port + number);
	}
}

static void come_back(struct fabric *fabric, struct timer *timer)
{
	struct reboot *reboot = (struct reboot *)timer;

	/* unless another reboot lasts longer */
	if (fabric->now >= fabric->nodes[reboot->node].power_at)
		set_power(fabric, reboot->node, false);
	free(reboot);
}

static void forget(struct timer *timer)
{
	free(timer);
}

void node_reboot(struct fabric *fabric, uint32_t node, uint64_t duration)
{
	const struct graph_node *hw = hardware(fabric, node);
	struct reboot *reboot = calloc(1, sizeof(*reboot));

	if (!reboot)
		return;
	reboot->timer.run = come_back;
	reboot->timer.drop = forget;
	reboot->node = node;
	if (fabric->nodes[node].power_at < fabric->now + duration)
		fabric->nodes[node].power_at = fabric->now + duration;
	set_power(fabric, node, true);
	gmp_forget(fabric, node);
	for (uint32_t number = 0; number <= hw->port_count; number++) {
		uint32_t port = hw->first_port + number;

		settings_free(fabric->ports[port].settings);
		fabric->ports[port].settings = NULL;
		counters_restart(fabric, port);
		if (fabric->sm_port == NONE) {
			set_lid(fabric, port, 0, 0);
			fabric->ports[port].sm_lid = 0;
		}
	}
	if (fabric->sm_port == NONE) {
		switch_tables_free(fabric->nodes[node].tables);
		fabric->nodes[node].tables = NULL;
		fabric->nodes[node].linear_top = 0;
	}
	if (timer_set(fabric, &reboot->timer, fabric->now + duration))
		come_back(fabric, &reboot->timer);
}

void links_restore(struct fabric *fabric)
{
	for (uint32_t port = 0; port < fabric->graph.port_count; port++)
		if (fabric->ports[port].cut)
			link_cut(fabric, port, false);
	for (uint32_t node = 0; node < fabric->graph.node_count; node++) {
		if (fabric->nodes[node].power_at <= fabric->now)
			continue;
		fabric->nodes[node].power_at = fabric->now;
		set_power(fabric, node, false);
	}
}
