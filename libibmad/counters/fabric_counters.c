/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Counters of a fabric's ports: the nodes known across several fabrics, and their ports'
 * records. fabric_reading.c reads them.
 */

#include "counters/fabric_counters.h"

#include "base/export.h"
#include "base/report.h"
#include "base/reserved.h"
#include "engine/timers.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

#define DEFAULT_KEEP_S (24 * 60 * 60)

/* --- the object ------------------------------------------------------------------- */

EXPORT struct mad_fabric_counters *mad_fabric_counters_create(
	const struct mad_fabric_counters_settings *settings)
{
	struct fabric_counters *counters;

	if (settings && (!is_reserved(settings->reserved) ||
			 settings->flags & ~(unsigned)MAD_COUNTERS_FROM_DEVICE)) {
		failure_refuse_call(MAD_FAILURE_OTHER, 0, EINVAL);
		return NULL;
	}
	counters = calloc(1, sizeof(*counters));
	if (!counters) {
		failure_refuse_call(MAD_FAILURE_OTHER, 0, ENOMEM);
		return NULL;
	}
	if (settings)
		counters->settings = *settings;
	if (!counters->settings.keep_s)
		counters->settings.keep_s = DEFAULT_KEEP_S;
	counters->shown.latest = &counters->summary;
	return &counters->shown;
}

static void free_records(struct counted_node *node)
{
	for (unsigned i = 0; i <= node->port_count; i++) {
		free(node->records[i]);
		node->records[i] = NULL;
	}
}

static void free_node(struct counted_node *node)
{
	free_records(node);
	free(node);
}

void fabric_counters_destroy(struct fabric_counters *counters)
{
	for (size_t i = 0; i < counters->node_count; i++)
		free_node(counters->nodes[i]);
	free(counters->nodes);
	free(counters->by_guid);
	free(counters);
}

EXPORT void mad_fabric_counters_free(struct mad_fabric_counters *shown)
{
	struct fabric_counters *counters = fabric_counters_of(shown);

	if (!counters)
		return;
	if (counters->reading) {
		counters->is_freed = true;
		mad_async_cancel(counters->engine, counters->id);
		return;
	}
	fabric_counters_destroy(counters);
}

/* --- nodes ------------------------------------------------------------------------ */

static int compare_guids(const void *one, const void *other)
{
	const struct node_place *a = one, *b = other;

	return (a->guid > b->guid) - (a->guid < b->guid);
}

/* Returns NULL for unknown nodes. */
static struct counted_node **find_node(const struct fabric_counters *counters, uint64_t guid)
{
	const struct node_place wanted = {.guid = guid}, *found = NULL;

	if (counters->node_count)
		found = bsearch(&wanted, counters->by_guid, counters->node_count,
				sizeof(wanted), compare_guids);
	return found ? &counters->nodes[found->place] : NULL;
}

/*
 * Reserves memory for a fabric's nodes and ports, and appends new nodes. On OOM, returns false
 * with only the capacity changed.
 */
static bool add_nodes(struct fabric_counters *counters, const struct mad_fabric *fabric)
{
	size_t count = counters->node_count,
	       most = count + (fabric ? fabric->node_count : 0) + 1;
	const struct mad_fabric_node *in_fabric;
	struct counted_node **nodes =
		realloc(counters->nodes, most * sizeof(struct counted_node *));
	struct node_place *by_guid;

	if (!nodes)
		return false;
	counters->nodes = nodes;
	by_guid = realloc(counters->by_guid, most * sizeof(*by_guid));
	if (!by_guid)
		return false;
	counters->by_guid = by_guid;
	for (size_t i = 0; (in_fabric = mad_fabric_get_node(fabric, i)); i++) {
		struct counted_node **former = find_node(counters, in_fabric->guid), *node;
		unsigned ports = in_fabric->port_count + 1U;
		unsigned ports_before = former ? (*former)->port_count + 1U : 0;

		/* another node of the fabric may share the GUID */
		if (ports <= ports_before ||
		    mad_fabric_find_guid(fabric, in_fabric->guid) != in_fabric)
			continue;
		node = realloc(former ? *former : NULL,
			       sizeof(*node) + ports * sizeof(struct port_record *));
		if (!node) {
			while (count > counters->node_count)
				free(counters->nodes[--count]);
			return false;
		}
		if (!former)
			*node = (struct counted_node){.guid = in_fabric->guid};
		node->port_count = (uint8_t)(ports - 1);
		for (unsigned number = ports_before; number < ports; number++)
			node->records[number] = NULL;
		if (former)
			*former = node;
		else
			counters->nodes[count++] = node;
	}
	counters->node_count = count;
	return true;
}

static bool is_to_be_kept(const struct fabric_counters *counters,
			  const struct counted_node *node, uint64_t now)
{
	if (node->in_fabric || node->is_forgotten)
		return node->in_fabric;
	return counters->settings.keep_s == UINT_MAX ||
	       now - node->seen_us <= counters->settings.keep_s * UINT64_C(1000000);
}

EXPORT int mad_fabric_counters_set_fabric(struct mad_fabric_counters *shown,
					  const struct mad_fabric *fabric)
{
	struct fabric_counters *counters = fabric_counters_of(shown);
	uint64_t now = (uint64_t)clock_us();
	size_t kept = 0;

	if (!counters || counters->reading)
		return counters_fail(counters ? -EBUSY : -EINVAL);
	if (!add_nodes(counters, fabric))
		return counters_fail(-ENOMEM);
	for (size_t i = 0; i < counters->node_count; i++) {
		struct counted_node *node = counters->nodes[i];
		bool was_there = node->in_fabric;

		node->in_fabric = mad_fabric_find_guid(fabric, node->guid);
		/* its firmware may have changed */
		node->known = false;
		if (node->in_fabric && !was_there)
			node->is_forgotten = false;
		/* absence starts with the fabric that lacks the node */
		if (node->in_fabric || was_there)
			node->seen_us = now;
		if (!is_to_be_kept(counters, node, now)) {
			free_node(node);
			continue;
		}
		counters->by_guid[kept] =
			(struct node_place){.guid = node->guid, .place = kept};
		counters->nodes[kept++] = node;
	}
	counters->node_count = kept;
	if (kept)
		qsort(counters->by_guid, kept, sizeof(*counters->by_guid), compare_guids);
	return 0;
}

EXPORT int mad_fabric_counters_forget(struct mad_fabric_counters *shown, uint64_t guid)
{
	struct fabric_counters *counters = fabric_counters_of(shown);
	struct counted_node **found, *node;

	if (!counters || counters->reading)
		return counters_fail(counters ? -EBUSY : -EINVAL);
	found = find_node(counters, guid);
	if (!found || (*found)->is_forgotten)
		return counters_fail(-ENOENT);
	node = *found;
	free_records(node);
	node->known = false;
	/* removing it from the arrays would be O(nodes) */
	node->is_forgotten = !node->in_fabric;
	return 0;
}

/* --- records ---------------------------------------------------------------------- */

/*
 * A tracker and its latest reading take 3.7 kB, mostly zeros. A record keeps only words that
 * differ from the expected value: 0, or in a history the previous counter's word. Each is
 * stored as two numbers: expected words before it, and the difference. The last word is always
 * stored. Numbers use 7 bits per byte, lowest first; bit 8 marks all but the last byte.
 */
#define WORDS         (sizeof(union tracked_port) / sizeof(uint64_t))
#define FIRST_HISTORY (offsetof(union tracked_port, tracker.counters) / sizeof(uint64_t))
#define HISTORY_WORDS (sizeof(struct history) / sizeof(uint64_t))
/* two numbers per word: one below 2^14, one of 64 bits */
#define PACKED_MAX    (WORDS * (2 + 10))
static_assert(WORDS * sizeof(uint64_t) == sizeof(struct mad_counters) +
						  sizeof(struct mad_counters_tracker) &&
		      WORDS == FIRST_HISTORY + MAD_COUNTER_COUNT * HISTORY_WORDS,
	      "a part of a tracker is no word");

static uint64_t expected_word(const union tracked_port *port, size_t word)
{
	return word < FIRST_HISTORY + HISTORY_WORDS ? 0 : port->words[word - HISTORY_WORDS];
}

static uint8_t *put_number(uint8_t *at, uint64_t number)
{
	for (; number > 0x7f; number >>= 7)
		*at++ = (uint8_t)(number | 0x80);
	*at++ = (uint8_t)number;
	return at;
}

static uint64_t get_number(const uint8_t **at)
{
	uint64_t number = 0;

	for (unsigned shift = 0;; shift += 7) {
		number |= (uint64_t)(**at & 0x7f) << shift;
		if (!(*(*at)++ & 0x80))
			return number;
	}
}

/*
 * Replaces numbers that are mostly equal by their difference (sign -1), or restores them (1).
 */
static void relate_numbers(union tracked_port *port, uint64_t sign)
{
	struct mad_counters_tracker *tracker = &port->tracker;

	port->latest.time_us += sign * tracker->totals.total.time_us;
	port->latest.present += sign * tracker->known;
	tracker->totals.total.present += sign * tracker->known;
	tracker->seen += sign * tracker->known;
	tracker->rates += sign * tracker->known;
	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++) {
		struct history *history = &tracker->counters[i];

		*counter_in(&port->latest, i) += sign * history->latest;
		history->highest += sign * history->latest;
	}
}

/* Returns the size. Modifies the port. */
static size_t pack_port(union tracked_port *port, uint8_t bytes[PACKED_MAX])
{
	uint8_t *at = bytes;
	size_t as_expected = 0;

	relate_numbers(port, (uint64_t)-1);
	for (size_t i = 0; i < WORDS; i++) {
		uint64_t difference = port->words[i] - expected_word(port, i);

		if (!difference && i < WORDS - 1) {
			as_expected++;
			continue;
		}
		at = put_number(at, as_expected);
		/* the sign goes into the lowest bit */
		at = put_number(at, difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0));
		as_expected = 0;
	}
	return (size_t)(at - bytes);
}

static void unpack_port(union tracked_port *port, const uint8_t *at)
{
	for (size_t i = 0; i < WORDS; i++) {
		uint64_t as_expected = get_number(&at), number = get_number(&at);

		for (; as_expected; as_expected--, i++)
			port->words[i] = expected_word(port, i);
		port->words[i] =
			expected_word(port, i) + (number >> 1 ^ (number & 1 ? UINT64_MAX : 0));
	}
	relate_numbers(port, 1);
}

int record_store(struct fabric_counters *counters, struct counted_node *node, unsigned number,
		 int error, const struct mad_counters *reading)
{
	struct port_record *record = node->records[number], *larger;
	union tracked_port *port = &counters->tracked;
	uint8_t packed[PACKED_MAX];
	int events = -EINVAL;
	size_t size;

	if (!record) {
		record = node->records[number] = calloc(1, sizeof(*record));
		if (!record)
			return -ENOMEM;
	}
	record->events = 0;
	if (reading && reading->present) {
		if (record->has_counters)
			unpack_port(port, record->packed);
		else
			tracker_init(&port->tracker,
				     counters->settings.flags & MAD_COUNTERS_FROM_DEVICE);
		events = tracker_add(&port->tracker, reading);
	}
	if (events >= 0) {
		port->latest = *reading;
		port->latest.requests = port->latest.status = port->latest.odd = 0;
		size = pack_port(port, packed);
		larger = realloc(record, sizeof(*record) + size);
		if (larger) {
			record = node->records[number] = larger;
			record->has_counters = true;
			record->events = (uint16_t)events;
			memcpy(record->packed, packed, size);
		} else {
			error = -ENOMEM;
		}
	}
	record->time_us = (uint64_t)clock_us();
	record->reading = counters->readings;
	record->error = (int16_t)error;
	record->status = reading && error == -EIO ? (uint16_t)reading->status : 0;
	return error == -ENOMEM ? error : 0;
}

/* --- results ---------------------------------------------------------------------- */

static bool has_port(const struct counted_node *node, unsigned number)
{
	return node->records[number] ||
	       (node->in_fabric && mad_fabric_get_port(node->in_fabric, number));
}

/* Makes the port the current result. */
static const struct mad_fabric_counters_port *show_port(struct fabric_counters *counters,
							const struct counted_node *node,
							unsigned number)
{
	const struct port_record *record = node->records[number];
	struct mad_fabric_counters_port *port = &counters->port;

	counters->number = number;
	*port = (struct mad_fabric_counters_port){
		.guid = node->guid,
		.number = (uint8_t)number,
		.port = node->in_fabric ? mad_fabric_get_port(node->in_fabric, number) : NULL,
	};
	if (!record)
		return port;
	port->time_us = record->time_us;
	port->error = record->error;
	port->status = record->status;
	port->events = record->events;
	port->is_latest = record->reading == counters->readings;
	if (!record->has_counters)
		return port;
	unpack_port(&counters->tracked, record->packed);
	port->reading = &counters->tracked.latest;
	port->totals = &counters->tracked.tracker.totals;
	port->tracker = &counters->tracked.tracker;
	return port;
}

EXPORT const struct mad_fabric_counters_port *mad_fabric_counters_next(
	struct mad_fabric_counters *shown, const struct mad_fabric_counters_port *previous)
{
	struct fabric_counters *counters = fabric_counters_of(shown);
	unsigned number = 0;

	if (!counters)
		return NULL;
	if (previous)
		number = counters->number + 1;
	else
		counters->node = 0;
	for (; counters->node < counters->node_count; counters->node++, number = 0) {
		const struct counted_node *node = counters->nodes[counters->node];

		for (; number <= node->port_count; number++)
			if (has_port(node, number))
				return show_port(counters, node, number);
	}
	return NULL;
}

EXPORT const struct mad_fabric_counters_port *mad_fabric_counters_find(
	struct mad_fabric_counters *shown, uint64_t guid, unsigned number)
{
	struct fabric_counters *counters = fabric_counters_of(shown);
	struct counted_node **node = counters ? find_node(counters, guid) : NULL;

	if (!node || number > (*node)->port_count || !has_port(*node, number))
		return NULL;
	counters->node = (size_t)(node - counters->nodes);
	return show_port(counters, *node, number);
}
