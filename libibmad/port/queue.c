/* SPDX-License-Identifier: BSD-2-Clause */

#include "port/queue.h"

#include "base/export.h"

#include <stdlib.h>

/* The number of destinations that stay allocated when no request is open. */
#define KEPT     1024
/* The maximum number of requests that rotate() skips. */
#define SKIP_MAX 4096

/* The requests of one flow that wait for a place at a destination. */
struct lane {
	struct list turn; /* in its destination's lanes */
	struct list requests;
	struct flow *flow;
	unsigned awaited; /* resumed or pausing requests: they are sent before the others */
};

static struct port_request *request_at(struct list *entry)
{
	return list_entry(entry, struct port_request, entry);
}

static struct lane *lane_at(struct list *entry)
{
	return list_entry(entry, struct lane, turn);
}

/* --- life ----------------------------------------------------------------------- */

void source_init(struct source *source, unsigned turn)
{
	source->turn = turn;
	for (unsigned i = 0; i < FLOWS; i++) {
		for (unsigned j = 0; j < LISTS; j++)
			list_init(&source->flows[i].lists[j]);
		source->flows[i].count = source->flows[i].next = 0;
		source->flows[i].left = turn;
	}
}

void queue_init(struct queue *queue, struct flow_control *flow)
{
	*queue = (struct queue){.flow = flow};
	for (unsigned i = 0; i < FLOW_WINDOWS; i++)
		list_init(&queue->rings[i]);
	destinations_init(&queue->destinations);
	list_init(&queue->spare_lanes);
}

static void free_lanes(struct list *lanes)
{
	struct list *first;

	while ((first = list_pop(lanes)))
		free(lane_at(first));
}

static void free_lanes_of(struct destination *destination, void *arg)
{
	(void)arg;
	free_lanes(&destination->lanes);
}

void queue_free(struct queue *queue)
{
	destinations_visit(&queue->destinations, free_lanes_of, NULL);
	free_lanes(&queue->spare_lanes);
	destinations_free(&queue->destinations);
}

void queue_shrink(struct queue *queue)
{
	destinations_shrink(&queue->destinations, KEPT);
	free_lanes(&queue->spare_lanes);
}

/* --- lists of flows ------------------------------------------------------------- */

static struct flow *flow_of(const struct port_request *request)
{
	struct flow *flows = request->owner->source->flows;

	if (request->request.account.smp)
		return &flows[FLOW_SMP];
	if (request->request.account.sa)
		return &flows[FLOW_SA];
	return &flows[request->request.transmissions.mgmt_class == IB_PERFORMANCE_CLASS
			      ? FLOW_PERF
			      : FLOW_OTHER];
}

static void insert(struct port_request *request, enum queue_place place, struct list *before)
{
	request->place = place;
	list_insert(before, &request->entry);
}

/* Puts a request into a list of its flow, and the flow into the ring of its window. */
static void join_flow(struct queue *queue, enum queue_place place, struct list *before,
		      struct port_request *request)
{
	struct flow *flow = request->flow;

	insert(request, place, before);
	if (!flow->count++)
		list_add_last(&queue->rings[flow_window_of(&request->request.account)],
			      &flow->turn);
}

static struct lane *find_lane(const struct destination *destination, const struct flow *flow)
{
	list_for_each (entry, &destination->lanes)
		if (lane_at(entry)->flow == flow)
			return lane_at(entry);
	return NULL;
}

/* A request was taken out: a lane without requests, to which none returns, is spare. */
static void leave_lane(struct queue *queue, struct port_request *request,
		       enum queue_place place)
{
	struct lane *lane = find_lane(destination_of(request), request->flow);

	/* queue_drain() has taken the lane of a request that pauses */
	if (!lane)
		return;
	if (place != IN_LANE)
		lane->awaited--;
	if (list_is_empty(&lane->requests) && !lane->awaited)
		list_move_last(&queue->spare_lanes, &lane->turn);
}

void queue_take_out(struct queue *queue, struct port_request *request)
{
	enum queue_place place = request->place;
	struct flow *flow = request->flow;

	request->place = NOT_QUEUED;
	if (place != PAUSING)
		list_remove(&request->entry);
	if ((place == IN_FLOW || place == RESUMED) && !--flow->count)
		list_remove(&flow->turn);
	if (place != IN_FLOW)
		leave_lane(queue, request, place);
}

/* --- destinations --------------------------------------------------------------- */

/* Makes a lane of a flow, the first or the last one of the destination; NULL: no memory. */
static struct lane *make_lane(struct queue *queue, struct destination *destination,
			      struct flow *flow, bool first)
{
	struct list *spare = list_pop(&queue->spare_lanes);
	struct lane *lane = spare ? lane_at(spare) : malloc(sizeof(*lane));

	if (!lane)
		return NULL;
	*lane = (struct lane){.flow = flow};
	list_init(&lane->requests);
	list_insert(first ? destination->lanes.next : &destination->lanes, &lane->turn);
	return lane;
}

/* The first request of a lane returns to its flow. The lane must have a request. */
static void resume(struct queue *queue, struct lane *lane)
{
	struct port_request *request = request_at(lane->requests.next);
	bool quick = flow_is_quick(queue->flow, &request->request.account);

	list_remove(&request->entry);
	lane->awaited++;
	join_flow(queue, RESUMED, &lane->flow->lists[quick ? LIST_QUICK : LIST_RESUMED],
		  request);
}

void queue_release(struct queue *queue, struct destination *destination)
{
	if (!flow_has_place(queue->flow, &destination->path))
		return;
	list_for_each (entry, &destination->lanes)
		if (!lane_at(entry)->awaited && !list_is_empty(&lane_at(entry)->requests))
			resume(queue, lane_at(entry));
}

static void release(struct destination *destination, void *queue)
{
	queue_release(queue, destination);
}

void queue_set_limit(struct queue *queue, unsigned limit)
{
	queue->flow->path_limit = limit;
	destinations_visit(&queue->destinations, release, queue);
}

/*
 * Puts a request into its lane if it waits or is fresh: a fresh one last, another one first. A
 * fresh request that need not wait joins a lane that exists. Without memory, there is no limit.
 */
static NOINLINE bool join_lane(struct queue *queue, struct port_request *request, bool fresh,
			       bool waits)
{
	struct destination *destination = destination_of(request);
	struct lane *lane = find_lane(destination, request->flow);

	if (waits || (fresh && lane)) {
		if (!lane)
			lane = make_lane(queue, destination, request->flow, !fresh);
		if (lane) {
			insert(request, IN_LANE, fresh ? &lane->requests : lane->requests.next);
			queue_release(queue, destination);
			return true;
		}
	}
	/* the flow has had its turn at the destination */
	if (lane)
		list_move_last(&destination->lanes, &lane->turn);
	return false;
}

/*
 * Whether the destination of a request has a place for it; otherwise the request is in its
 * lane. A fresh request waits, too, if a later request was sent to the destination.
 */
static INLINE bool take_place(struct queue *queue, struct port_request *request, bool fresh)
{
	struct destination *destination = destination_of(request);
	bool waits;

	if (!destination)
		destination = destination_get(&queue->destinations,
					      destination_key(request_buffer(&request->request),
							      request_mad(&request->request)));
	if (!destination)
		return true;
	request->request.account.path = &destination->path;
	waits = !flow_has_place(queue->flow, &destination->path) ||
		(fresh && (int32_t)(destination->served - request->number) >= 0);
	/* a flow that returns to the only lane of its destination has no turn to end */
	if (!waits && (fresh ? list_is_empty(&destination->lanes)
			     : destination->lanes.next == destination->lanes.prev))
		return true;
	return !join_lane(queue, request, fresh, waits);
}

/* --- the next request ----------------------------------------------------------- */

int64_t queue_opens(const struct queue *queue)
{
	int64_t first = NEVER, at;

	for (unsigned i = 0; i < FLOW_WINDOWS; i++) {
		if (list_is_empty(&queue->rings[i]) || !flow_has_room(queue->flow, i))
			continue;
		at = queue_opens_at(queue, i);
		if (at < first)
			first = at;
	}
	return first;
}

/* The list that has its turn after another one. */
static unsigned after(unsigned list)
{
	return list + 1 < TURNS ? list + 1 : 0;
}

/*
 * Rotates a list of requests, because the first ones may all be to dead nodes: the list then
 * begins 38.2 % further on. Steps of the golden ratio reach all parts of the list soon.
 */
static void rotate(struct list *requests, unsigned count)
{
	unsigned steps = (unsigned)(count * UINT64_C(382) / 1000);
	struct list *first = requests->next;

	if (steps > SKIP_MAX)
		steps = SKIP_MAX;
	while (steps--)
		first = first->next == requests ? requests->next : first->next;
	list_remove(requests);
	list_insert(first, requests);
}

/*
 * The list whose first request is next. One list must not be empty. In a silence, requests that
 * were never sent come first: their nodes may respond.
 */
static enum flow_list choose(const struct flow *flow, bool silent)
{
	if (!silent && !list_is_empty(&flow->lists[LIST_AGAIN]))
		return LIST_AGAIN;
	for (unsigned list = flow->next; list < TURNS; list++)
		if (!list_is_empty(&flow->lists[list]))
			return (enum flow_list)list;
	for (unsigned list = 0; list < flow->next; list++)
		if (!list_is_empty(&flow->lists[list]))
			return (enum flow_list)list;
	return LIST_AGAIN;
}

static void end_turn(struct list *ring, struct flow *flow, unsigned requests)
{
	flow->left = requests;
	if (flow->count)
		list_move_last(ring, &flow->turn);
}

/* Takes out the next request of a flow; NULL if it was put into a lane. */
static struct port_request *next_of(struct queue *queue, unsigned window, struct flow *flow)
{
	enum flow_list list = choose(flow, queue->flow->windows[window].silent);
	struct port_request *request;

	if (list == LIST_FRESH && flow_take_skip(queue->flow, window))
		rotate(&flow->lists[list], flow->count);
	request = request_at(flow->lists[list].next);
	queue_take_out(queue, request);
	if (!request->request.account.at_node &&
	    !take_place(queue, request, list == LIST_FRESH))
		return NULL;
	if (list != LIST_AGAIN)
		flow->next = after(list);
	if (!--flow->left)
		end_turn(&queue->rings[window], flow, request->owner->source->turn);
	return request;
}

struct port_request *queue_next(struct queue *queue, unsigned window, unsigned *looks)
{
	struct list *ring = &queue->rings[window];
	struct port_request *request = NULL;

	for (; !request && *looks && queue_is_window_ready(queue, window); --*looks)
		request = next_of(queue, window, list_entry(ring->next, struct flow, turn));
	return request;
}

bool queue_submit(struct queue *queue, struct port_request *request)
{
	request->flow = flow_of(request);
	request->number = ++queue->numbered;
	if (request->request.account.smp ? queue_is_free(queue, MAD_WINDOW_SMP)
					 : queue_is_free(queue, MAD_WINDOW_GMP))
		return take_place(queue, request, true);
	join_flow(queue, IN_FLOW, &request->flow->lists[LIST_FRESH], request);
	return false;
}

void queue_bypass(struct queue *queue, struct port_request *request)
{
	request->flow = flow_of(request);
	request->number = ++queue->numbered;
}

/* Without memory, the other requests of the flow do not wait. */
void queue_pause(struct queue *queue, struct port_request *request)
{
	struct destination *destination = destination_of(request);
	struct lane *lane;

	if (!destination)
		return;
	lane = find_lane(destination, request->flow);
	if (!lane)
		lane = make_lane(queue, destination, request->flow, true);
	if (!lane)
		return;
	lane->awaited++;
	request->place = PAUSING;
}

void queue_again(struct queue *queue, struct port_request *request, bool readdressed)
{
	struct list *lists = request->flow->lists;

	if (request->place == PAUSING) {
		join_flow(queue, RESUMED, &lists[LIST_AGAIN], request);
	} else if (readdressed) {
		queue_leave(queue, request);
		request->number = ++queue->numbered;
		join_flow(queue, IN_FLOW, lists[LIST_FRESH].next, request);
	} else {
		join_flow(queue, IN_FLOW, &lists[LIST_AGAIN], request);
	}
}

/* The interval is rounded up: the rate is never exceeded. */
void queue_count(struct queue *queue, int64_t now)
{
	struct pace *pace = &queue->pace;

	if (pace->next_ns < now * 1000)
		pace->next_ns = now * 1000;
	pace->next_ns += (1000000000 + INT64_C(1) * pace->rate - 1) / pace->rate;
}

/* --- the end -------------------------------------------------------------------- */

struct drain {
	struct queue *queue;
	struct list *drained;
};

static void drain_list(struct list *requests, struct list *drained)
{
	struct list *first;

	while ((first = list_first(requests))) {
		list_move_last(drained, first);
		request_at(first)->place = NOT_QUEUED;
	}
}

static void drain_lanes(struct destination *destination, void *arg)
{
	const struct drain *drain = arg;
	struct list *first;

	while ((first = list_first(&destination->lanes))) {
		drain_list(&lane_at(first)->requests, drain->drained);
		list_move_last(&drain->queue->spare_lanes, first);
	}
}

void queue_drain(struct queue *queue, struct list *drained)
{
	struct drain drain = {.queue = queue, .drained = drained};
	struct list *first;

	list_init(drained);
	destinations_visit(&queue->destinations, drain_lanes, &drain);
	for (unsigned i = 0; i < FLOW_WINDOWS; i++)
		while ((first = list_pop(&queue->rings[i]))) {
			struct flow *flow = list_entry(first, struct flow, turn);

			flow->count = 0;
			for (unsigned j = 0; j < LISTS; j++)
				drain_list(&flow->lists[j], drained);
		}
}
