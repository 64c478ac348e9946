/* SPDX-License-Identifier: BSD-2-Clause */

/* The model of a fabric: an event for each arrival of a packet at a queue, a node or a host. */

#include "model.h"

#include <stdlib.h>
#include <string.h>

struct node {
	int64_t rtt, service, phase;
	int64_t busy_until;
	unsigned accepted; /* requests */
	bool dead, dies, shared;
};

struct event {
	int64_t at;
	uint32_t order;
	uint32_t serial; /* of the packet when the event was added */
	struct packet *packet;
};

/* Ordered by time. Events of one time are in the order of their addition. */
struct heap {
	struct event *events;
	unsigned count, room;
	uint32_t order;
};

static struct {
	struct fabric fabric;
	struct heap events, reports;
	int64_t now;
	struct node *nodes;
	int64_t *departures; /* the latest buffer + 1 of each node */
	int64_t queue_until; /* the shared queue is busy until then */
	unsigned in_fabric;
	struct packet *all, *free;
} model;

/* --- events --------------------------------------------------------------------- */

static int64_t heap_next(const struct heap *heap)
{
	return heap->count ? heap->events[0].at : NO_TIME;
}

static bool is_before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : (int32_t)(a->order - b->order) < 0;
}

static void heap_add(struct heap *heap, int64_t at, struct packet *packet)
{
	struct event event = {at, heap->order++, packet->serial, packet};
	unsigned place = heap->count++, parent;

	if (place == heap->room) {
		heap->room = heap->room ? 2 * heap->room : 1024;
		heap->events = realloc(heap->events, heap->room * sizeof(*heap->events));
		if (!heap->events)
			abort();
	}
	for (; place && is_before(&event, &heap->events[parent = (place - 1) / 2]);
	     place = parent)
		heap->events[place] = heap->events[parent];
	heap->events[place] = event;
}

/* Removes the first event. There is one. */
static struct event heap_remove(struct heap *heap)
{
	struct event first = heap->events[0], last = heap->events[--heap->count];
	unsigned place = 0, child;

	while ((child = 2 * place + 1) < heap->count) {
		if (child + 1 < heap->count &&
		    is_before(&heap->events[child + 1], &heap->events[child]))
			child++;
		if (!is_before(&heap->events[child], &last))
			break;
		heap->events[place] = heap->events[child];
		place = child;
	}
	heap->events[place] = last;
	return first;
}

/* --- packets -------------------------------------------------------------------- */

struct packet *model_take_packet(void)
{
	struct packet *packet = model.free;

	if (packet) {
		model.free = packet->next;
		return packet;
	}
	packet = calloc(1, sizeof(*packet));
	if (!packet)
		abort();
	packet->next_of_all = model.all;
	model.all = packet;
	return packet;
}

void model_free_packet(struct packet *packet)
{
	packet->next = model.free;
	model.free = packet;
}

/* --- trouble -------------------------------------------------------------------- */

static bool is_active(const struct trouble *trouble, enum trouble_kind kind)
{
	double ms = (double)model.now / MS;

	return trouble->kind == kind && ms >= trouble->at_ms &&
	       (kind == STEP || ms < trouble->at_ms + trouble->ms);
}

/* The product of the factors of all steps so far. */
static double step_factor(void)
{
	double factor = 1;

	for (unsigned i = 0; i < MOST_TROUBLES; i++)
		if (is_active(&model.fabric.troubles[i], STEP))
			factor *= model.fabric.troubles[i].factor;
	return factor;
}

/* A quarter that is lost is lost on the way to the node; an outage is for both ways. */
static double loss_now(bool forward)
{
	double arrives = 1 - model.fabric.loss;

	for (unsigned i = 0; i < MOST_TROUBLES; i++) {
		const struct trouble *trouble = &model.fabric.troubles[i];

		if (is_active(trouble, LOSS) && (forward || trouble->share >= 1))
			arrives *= 1 - trouble->share;
	}
	return 1 - arrives;
}

static bool is_dead(const struct node *node)
{
	bool dead = node->dead;

	for (unsigned i = 0; i < MOST_TROUBLES; i++)
		dead |= node->dies && is_active(&model.fabric.troubles[i], DEATHS);
	return dead;
}

/* --- the path ------------------------------------------------------------------- */

static void end_travel(struct packet *packet, enum fate fate)
{
	model.in_fabric--;
	packet->traveling = false;
	device_end_travel(packet, fate);
}

/* The part of the packet's round trip that a leg takes. */
static int64_t leg(const struct packet *packet, double share)
{
	double rtt = (double)model.nodes[packet->node].rtt;

	return (int64_t)(rtt * share * packet->stretch * step_factor());
}

static void go(struct packet *packet, enum stage stage, int64_t at)
{
	packet->stage = stage;
	heap_add(&model.events, at, packet);
}

void model_send(struct packet *packet)
{
	const struct fabric *fabric = &model.fabric;

	packet->stretch = 1 + fabric->jitter * (2 * random_unit(&packet->random) - 1);
	packet->traveling = true;
	model.in_fabric++;
	if (fabric->path_limit && model.in_fabric > fabric->path_limit)
		end_travel(packet, DROPPED);
	else if (random_unit(&packet->random) < loss_now(true))
		end_travel(packet, LOST);
	else if (model.nodes[packet->node].shared)
		go(packet, TO_QUEUE, model.now + leg(packet, 0.25));
	else
		go(packet, TO_NODE, model.now + leg(packet, 0.5));
}

static void reach_queue(struct packet *packet)
{
	int64_t service = (int64_t)(model.fabric.queue_us * US), start = model.queue_until;

	if (start < model.now)
		start = model.now;
	if ((start - model.now + service - 1) / service >= model.fabric.places) {
		end_travel(packet, DROPPED);
		return;
	}
	model.queue_until = start + service;
	go(packet, TO_NODE, model.queue_until + leg(packet, 0.25));
}

/* Whether one more request fits: the departure of the oldest that might wait is over. */
static bool has_place(const struct node *node, int64_t **departure)
{
	unsigned room = model.fabric.buffer + 1;

	*departure = &model.departures[(size_t)(node - model.nodes) * room];
	*departure += node->accepted % room;
	return node->accepted < room || **departure <= model.now;
}

/* When the service ends that may begin at a time. The node stops once a second. */
static int64_t serve(const struct node *node, int64_t start)
{
	int64_t stop = (int64_t)(model.fabric.stop_ms * MS), since, end;

	if (!stop)
		return start + node->service;
	since = (start + SECOND - node->phase) % SECOND;
	if (since < stop) {
		start += stop - since;
		since = stop;
	}
	end = start + node->service;
	return since + node->service > SECOND ? end + stop : end;
}

static void reach_node(struct packet *packet)
{
	struct node *node = &model.nodes[packet->node];
	int64_t *departure = NULL;

	if (is_dead(node)) {
		end_travel(packet, LOST_TO_DEAD);
		return;
	}
	if (model.fabric.buffer && !has_place(node, &departure)) {
		end_travel(packet, DROPPED);
		return;
	}
	node->accepted++;
	node->busy_until =
		serve(node, node->busy_until > model.now ? node->busy_until : model.now);
	if (departure)
		*departure = node->busy_until;
	go(packet, TO_HOST, node->busy_until + leg(packet, 0.5));
}

static void reach_host(struct packet *packet)
{
	bool lost = random_unit(&packet->random) < loss_now(false);

	end_travel(packet, lost ? LOST : ARRIVED);
}

/* --- the clock ------------------------------------------------------------------ */

int64_t model_now(void)
{
	return model.now;
}

int64_t model_next(void)
{
	int64_t event = heap_next(&model.events), report = heap_next(&model.reports);

	return event < report ? event : report;
}

static void handle_next(void)
{
	struct event event;

	if (heap_next(&model.reports) < heap_next(&model.events)) {
		event = heap_remove(&model.reports);
		device_report(event.packet, event.serial);
		return;
	}
	event = heap_remove(&model.events);
	switch (event.packet->stage) {
	case TO_QUEUE:
		reach_queue(event.packet);
		break;
	case TO_NODE:
		reach_node(event.packet);
		break;
	case TO_HOST:
		reach_host(event.packet);
		break;
	}
}

void model_advance(int64_t to)
{
	int64_t next;

	while ((next = model_next()) <= to) {
		if (next > model.now)
			model.now = next;
		handle_next();
	}
	if (to > model.now)
		model.now = to;
}

void model_report_at(struct packet *packet, int64_t at)
{
	heap_add(&model.reports, at, packet);
}

/* --- start and end -------------------------------------------------------------- */

void model_start(const struct fabric *fabric)
{
	memset(&model, 0, sizeof(model));
	model.fabric = *fabric;
	model.nodes = calloc(fabric->nodes, sizeof(*model.nodes));
	model.departures =
		calloc((size_t)fabric->nodes * (fabric->buffer + 1), sizeof(*model.departures));
	if (!model.nodes || !model.departures)
		abort();
	for (unsigned i = 0; i < fabric->nodes; i++) {
		struct node_facts facts = fabric_node(fabric, i);

		model.nodes[i] = (struct node){
			.rtt = (int64_t)(facts.rtt_us * US),
			.service = (int64_t)(facts.service_us * US),
			.phase = (int64_t)(facts.phase_ms * MS),
			.dead = facts.dead,
			.dies = facts.dies,
			.shared = facts.shared,
		};
	}
}

void model_end(void)
{
	struct packet *packet;

	while ((packet = model.all)) {
		model.all = packet->next_of_all;
		free(packet);
	}
	free(model.events.events);
	free(model.reports.events);
	free(model.nodes);
	free(model.departures);
	memset(&model, 0, sizeof(model));
}
