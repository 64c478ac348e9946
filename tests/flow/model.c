/* SPDX-License-Identifier: BSD-2-Clause */

/* The model of a fabric: an event for each arrival of a packet at a queue, a node or a host. */

#include "model.h"

#include "heap.h"

#include <string.h>

#define SECOND (1000 * MS)
#define CHUNK  1024 /* packets that are allocated together */

struct node {
	int64_t rtt, service, phase;
	int64_t busy_until;
	unsigned accepted; /* requests */
	bool dead, dies, shared;
};

struct chunk {
	struct chunk *next;
	struct packet packets[CHUNK];
};

static struct {
	struct fabric fabric;
	const struct model_hooks *hooks;
	struct heap events, reports;
	int64_t now;
	struct node *nodes;
	int64_t *departures; /* the latest buffer + 1 of each node */
	int64_t queue_until; /* the shared queue is busy until then */
	unsigned in_fabric;
	unsigned counts[FATES];
	struct chunk *chunks;
	struct packet *free;
} model;

/* --- packets -------------------------------------------------------------------- */

static void add_chunk(void)
{
	struct chunk *chunk = malloc(sizeof(*chunk));

	if (!chunk)
		abort();
	chunk->next = model.chunks;
	model.chunks = chunk;
	for (unsigned i = 0; i < CHUNK; i++) {
		chunk->packets[i].next = model.free;
		model.free = &chunk->packets[i];
	}
}

struct packet *model_take_packet(void)
{
	struct packet *packet;

	if (!model.free)
		add_chunk();
	packet = model.free;
	model.free = packet->next;
	return packet;
}

void model_free_packet(struct packet *packet)
{
	packet->next = model.free;
	model.free = packet;
}

/* --- trouble -------------------------------------------------------------------- */

static bool is_active(const struct trouble *trouble)
{
	double ms = (double)model.now / MS;

	return ms >= trouble->at_ms &&
	       (trouble->kind == STEP || ms < trouble->at_ms + trouble->ms);
}

/* The product of the factors of all steps so far. */
static double step_factor(void)
{
	double factor = 1;

	for (unsigned i = 0; i < MOST_TROUBLES; i++)
		if (model.fabric.troubles[i].kind == STEP &&
		    is_active(&model.fabric.troubles[i]))
			factor *= model.fabric.troubles[i].factor;
	return factor;
}

/* A quarter that is lost is lost on the way to the node; an outage is for both ways. */
static double loss_now(bool forward)
{
	double arrives = 1 - model.fabric.loss;

	for (unsigned i = 0; i < MOST_TROUBLES; i++) {
		const struct trouble *trouble = &model.fabric.troubles[i];

		if (trouble->kind == LOSS && is_active(trouble) &&
		    (forward || trouble->share >= 1))
			arrives *= 1 - trouble->share;
	}
	return 1 - arrives;
}

static bool deaths_now(void)
{
	for (unsigned i = 0; i < MOST_TROUBLES; i++)
		if (model.fabric.troubles[i].kind == DEATHS &&
		    is_active(&model.fabric.troubles[i]))
			return true;
	return false;
}

bool model_is_dead(unsigned node)
{
	return model.nodes[node].dead || (model.nodes[node].dies && deaths_now());
}

/* --- the path ------------------------------------------------------------------- */

static void end_travel(struct packet *packet, enum fate fate)
{
	model.counts[fate]++;
	model.in_fabric--;
	packet->traveling = false;
	if (fate == ARRIVED)
		model.hooks->arrived(packet);
	else
		model.hooks->lost(packet, fate);
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
	heap_add(&model.events, at, packet->serial, packet);
}

void model_send(struct packet *packet)
{
	const struct fabric *fabric = &model.fabric;

	packet->stretch = 1 + fabric->jitter * (2 * random_unit(&packet->random) - 1);
	packet->traveling = true;
	model.in_fabric++;
	if (fabric->path_limit && model.in_fabric > fabric->path_limit)
		end_travel(packet, DROPPED_BY_QUEUE);
	else if (random_unit(&packet->random) < loss_now(true))
		end_travel(packet, LOST_BY_LINK);
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
		end_travel(packet, DROPPED_BY_QUEUE);
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

	if (node->dead || (node->dies && deaths_now())) {
		end_travel(packet, LOST_TO_DEAD);
		return;
	}
	if (model.fabric.buffer && !has_place(node, &departure)) {
		end_travel(packet, DROPPED_BY_NODE);
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

	end_travel(packet, lost ? LOST_BY_LINK : ARRIVED);
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
		model.hooks->report(event.packet, event.serial);
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
	heap_add(&model.reports, at, packet->serial, packet);
}

unsigned model_count(enum fate fate)
{
	return model.counts[fate];
}

/* --- start and end -------------------------------------------------------------- */

static void make_node(struct node *node, unsigned number)
{
	struct node_facts facts = fabric_node(&model.fabric, number);

	*node = (struct node){
		.rtt = (int64_t)(facts.rtt_us * US),
		.service = (int64_t)(facts.service_us * US),
		.phase = (int64_t)(facts.phase_ms * MS),
		.dead = facts.dead,
		.dies = facts.dies,
		.shared = facts.shared,
	};
}

void model_start(const struct fabric *fabric, const struct model_hooks *hooks)
{
	memset(&model, 0, sizeof(model));
	model.fabric = *fabric;
	model.hooks = hooks;
	model.nodes = calloc(fabric->nodes, sizeof(*model.nodes));
	model.departures =
		calloc((size_t)fabric->nodes * (fabric->buffer + 1), sizeof(*model.departures));
	if (!model.nodes || !model.departures)
		abort();
	for (unsigned i = 0; i < fabric->nodes; i++)
		make_node(&model.nodes[i], i);
}

void model_end(void)
{
	struct chunk *chunk;

	while ((chunk = model.chunks)) {
		model.chunks = chunk->next;
		free(chunk);
	}
	free(model.events.events);
	free(model.reports.events);
	free(model.nodes);
	free(model.departures);
	memset(&model, 0, sizeof(model));
}
