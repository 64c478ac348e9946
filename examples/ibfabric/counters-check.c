/* SPDX-License-Identifier: BSD-2-Clause */

/* check: counters that rise, or are above their thresholds; one finding a link and cause. */

#include "ibfabric.h"

/* A port with at least one counter that is a fault. */
struct bad_port {
	const struct mad_fabric_port *port;
	uint64_t total[THRESHOLD_COUNT], rise[THRESHOLD_COUNT];
	bool is_bad[THRESHOLD_COUNT], is_stuck[THRESHOLD_COUNT];
	unsigned groups; /* bits of enum group */
};

static const enum kind kinds[GROUP_COUNT] = {
	[GROUP_DOWNED] = KIND_FLAPPING,   [GROUP_PHYSICAL] = KIND_LINK_ERRORS,
	[GROUP_DISCARDS] = KIND_DISCARDS, [GROUP_REMOTE] = KIND_REMOTE_ERRORS,
	[GROUP_ROUTING] = KIND_ROUTING,   [GROUP_PARTITION] = KIND_PARTITION,
	[GROUP_BUFFERS] = KIND_BUFFERS,   [GROUP_MADS] = KIND_DROPPED_MADS,
};

static struct bad_port *bad_ports;
static uint32_t *bad_of_port; /* by the index of a port; 0: none, otherwise from 1 on */
static size_t bad_count;

static void judge(const struct mad_fabric_counters_port *each)
{
	struct bad_port bad = {.port = each->port};

	for (unsigned i = 0; i < THRESHOLD_COUNT; i++) {
		const struct threshold *limit = &thresholds[i];

		bad.total[i] = mad_counters_value(each->reading, limit->counter, NULL);
		if (each->totals)
			bad.rise[i] =
				mad_counters_value(&each->totals->total, limit->counter, NULL);
		bad.is_stuck[i] =
			(each->reading->at_maximum & MAD_COUNTER_BIT(limit->counter)) != 0;
		bad.is_bad[i] = bad.total[i] > limit->total || bad.rise[i] > limit->rise;
		if (bad.is_bad[i])
			bad.groups |= 1U << limit->group;
	}
	if (!bad.groups)
		return;
	bad_ports = reallocarray(bad_ports, bad_count + 1, sizeof(*bad_ports));
	if (!bad_ports)
		die("out of memory");
	bad_ports[bad_count++] = bad;
	bad_of_port[each->port->index] = (uint32_t)bad_count;
}

/* "leaf-1/3 symbol_errors +50 (78 since the last clear), ..." */
static void describe(FILE *text, const struct bad_port *bad, unsigned groups, bool *has_text)
{
	char place[PLACE_SIZE];
	bool has_place = false;

	for (unsigned i = 0; bad && i < THRESHOLD_COUNT; i++) {
		if (!bad->is_bad[i] || !(groups & 1U << thresholds[i].group))
			continue;
		fputs(*has_text ? ", " : "", text);
		if (!has_place)
			fprintf(text, "at %s ", short_place(bad->port, place));
		*has_text = has_place = true;
		fputs(mad_counters_info(thresholds[i].counter)->name, text);
		if (bad->rise[i])
			fprintf(text, " +%" PRIu64, bad->rise[i]);
		fprintf(text, bad->rise[i] ? " (%" PRIu64 "%s)" : " %" PRIu64 "%s",
			bad->total[i], bad->is_stuck[i] ? ", at its maximum" : "");
	}
}

static void report(const struct bad_port *bad, const struct bad_port *peer)
{
	unsigned groups = bad->groups | (peer ? peer->groups : 0);

	/* packets that wait for a link are discarded when it goes down */
	for (unsigned group = 0; group < GROUP_COUNT; group++) {
		unsigned together = 1U << group;
		struct place other = bad->port->peer ? at_port(bad->port->peer) : nowhere;
		bool has_text = false;
		FILE *text;
		char *memory;
		size_t size;

		if (!(groups & together))
			continue;
		if (group == GROUP_DOWNED)
			together |= 1U << GROUP_PHYSICAL | 1U << GROUP_DISCARDS;
		groups &= ~together;
		text = open_memstream(&memory, &size);
		if (!text)
			die("out of memory");
		describe(text, bad, together, &has_text);
		describe(text, peer, together, &has_text);
		if (fclose(text))
			die("out of memory");
		found(kinds[group], at_port(bad->port), other, "%s", memory);
		free(memory);
	}
}

static struct bad_port *find_bad(const struct mad_fabric_port *port)
{
	uint32_t bad = bad_of_port[port->index];

	return bad ? &bad_ports[bad - 1] : NULL;
}

/* Whether the link went down between the readings; thresholds[0] is link_downed. */
static bool went_down(const struct mad_fabric_port *port)
{
	const struct bad_port *bad = find_bad(port), *peer = find_bad(port->peer);

	return (bad && bad->is_bad[0] && bad->rise[0]) ||
	       (peer && peer->is_bad[0] && peer->rise[0]);
}

/* If all links of a node went down, and they are several, they are one finding. A node that
 * restarts has its counters at 0: the other ends count. */
static void check_restart(const struct mad_fabric_node *node)
{
	const unsigned groups =
		1U << GROUP_DOWNED | 1U << GROUP_PHYSICAL | 1U << GROUP_DISCARDS;
	const struct mad_fabric_port *port;
	unsigned links = 0;

	for (unsigned i = 0; i <= node->port_count; i++) {
		port = mad_fabric_get_port(node, i);
		if (port && port->peer && !went_down(port))
			return;
		links += port && port->peer;
	}
	if (links < 2)
		return;
	found(KIND_RESTARTED, at_node(node), nowhere, "all its %u links went down", links);
	for (unsigned i = 0; i <= node->port_count; i++) {
		port = mad_fabric_get_port(node, i);
		if (port && find_bad(port))
			find_bad(port)->groups &= ~groups;
		if (port && port->peer && find_bad(port->peer))
			find_bad(port->peer)->groups &= ~groups;
	}
}

void check_counters(struct mad_fabric_counters *counters, const struct mad_fabric *fabric)
{
	const struct mad_fabric_counters_port *each = NULL;

	bad_of_port = allocate(fabric->port_count, sizeof(*bad_of_port));
	while ((each = mad_fabric_counters_next(counters, each)))
		if (each->port && each->reading)
			judge(each);
	for (size_t i = 0; bad_count && i < fabric->node_count; i++)
		check_restart(mad_fabric_get_node(fabric, i));
	for (size_t i = 0; i < bad_count; i++) {
		const struct mad_fabric_port *port = bad_ports[i].port, *peer = port->peer;
		size_t other = peer ? bad_of_port[peer->index] : 0;

		/* a link whose two ends are bad is reported at the first end */
		if (other && peer != port && !is_first_end(port))
			continue;
		report(&bad_ports[i], other && peer != port ? &bad_ports[other - 1] : NULL);
	}
	free(bad_of_port);
	free(bad_ports);
}
