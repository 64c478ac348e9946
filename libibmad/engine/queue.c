/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/queue.h"

#include "mad/layout.h"

#include <stdlib.h>

/* Destinations kept allocated when no request is open. */
#define KEPT          1024
/* rotate_list() skips at most this many requests. */
#define SKIP_MAX      4096
/* How early MADs may be sent, compared with equal intervals. */
#define PACE_BURST_NS 1000000
#define FIRST_BUCKETS 64
/* Unused destinations to keep. */
#define IDLE_MAX      4096

/* One flow's requests that wait for a place at a destination. */
struct lane {
	struct list turn; /* in its destination's lanes */
	struct list requests;
	struct flow *flow;
	unsigned awaited; /* resumed or pausing requests, which go first */
};

static struct request *request_at(struct list *entry)
{
	return list_entry(entry, struct request, queue);
}

static struct lane *lane_at(struct list *entry)
{
	return list_entry(entry, struct lane, turn);
}

/* --- destinations --------------------------------------------------------------- */

static void destinations_init(struct destinations *destinations)
{
	*destinations = (struct destinations){0};
	list_init(&destinations->idle);
}

static void destinations_free(struct destinations *destinations)
{
	struct destination *destination, *next;

	for (unsigned i = 0; i < destinations->bucket_count; i++)
		for (destination = destinations->buckets[i]; destination; destination = next) {
			next = destination->next;
			free(destination);
		}
	free(destinations->buckets);
	destinations_init(destinations);
}

/* One step of 64-bit FNV-1a. */
static uint64_t hash_step(uint64_t start, uint64_t value)
{
	return (start ^ value) * 0x100000001b3;
}

static uint64_t hash_bytes(uint64_t start, const uint8_t *byte, size_t size)
{
	for (; size; size--)
		start = hash_step(start, *byte++);
	return start;
}

/* Adds the packet's GID and directed route to the key. */
static uint64_t route_key(uint64_t key, const struct ib_user_mad *umad, const uint8_t *mad)
{
	key = hash_step(0xcbf29ce484222325, key);
	if (umad->addr.grh_present)
		key = hash_bytes(key, umad->addr.gid, sizeof(umad->addr.gid));
	if (mad[1] == IB_SMI_DIRECT_CLASS)
		key = hash_bytes(key, mad + INITIAL_PATH_OFFS + 1,
				 mad[HOP_COUNT_OFFS] % IB_SUBNET_PATH_HOPS_MAX);
	return key ^ key >> 32;
}

static void grow_buckets(struct destinations *destinations)
{
	unsigned count =
		destinations->bucket_count ? 2 * destinations->bucket_count : FIRST_BUCKETS;
	struct destination **buckets = calloc(count, sizeof(struct destination *));
	struct destination *destination, *next;

	if (!buckets)
		return;
	for (unsigned i = 0; i < destinations->bucket_count; i++)
		for (destination = destinations->buckets[i]; destination; destination = next) {
			next = destination->next;
			destination->next = buckets[destination->key & (count - 1)];
			buckets[destination->key & (count - 1)] = destination;
		}
	free(destinations->buckets);
	destinations->buckets = buckets;
	destinations->bucket_count = count;
}

static struct destination **bucket_of(struct destinations *destinations, uint64_t key)
{
	return &destinations->buckets[key & (destinations->bucket_count - 1)];
}

static void free_destination(struct destinations *destinations, struct destination *destination)
{
	struct destination **at = bucket_of(destinations, destination->key);

	while (*at != destination)
		at = &(*at)->next;
	*at = destination->next;
	destinations->count--;
	free(destination);
}

/* Frees unused destinations until at most "kept" are left. */
static void destinations_shrink(struct destinations *destinations, unsigned kept)
{
	struct list *oldest;

	while (destinations->idle_count > kept && (oldest = list_pop(&destinations->idle))) {
		destinations->idle_count--;
		free_destination(destinations, list_entry(oldest, struct destination, idle));
	}
}

/* A destination without users; NULL on OOM. */
static struct destination *make_destination(struct destinations *destinations, uint64_t key)
{
	struct destination *destination;

	if (destinations->count >= destinations->bucket_count)
		grow_buckets(destinations);
	destinations_shrink(destinations, IDLE_MAX);
	destination = destinations->bucket_count ? calloc(1, sizeof(*destination)) : NULL;
	if (!destination)
		return NULL;
	destination->key = key;
	flow_path_init(&destination->path);
	list_init(&destination->lanes);
	list_add_last(&destinations->idle, &destination->idle);
	destinations->idle_count++;
	destination->next = *bucket_of(destinations, key);
	*bucket_of(destinations, key) = destination;
	destinations->count++;
	return destination;
}

/* visit may free the destination passed to it, but not add any. */
static void destinations_visit(struct destinations *destinations,
			       void (*visit)(struct destination *destination, void *arg),
			       void *arg)
{
	struct destination *destination, *next;

	for (unsigned i = 0; i < destinations->bucket_count; i++)
		for (destination = destinations->buckets[i]; destination; destination = next) {
			next = destination->next;
			visit(destination, arg);
		}
}

/*
 * Key from the packet's address and whether it is an SMP: the LID, or a hash. Hash collisions
 * just share a destination, which is rare and harmless.
 */
static uint64_t destination_key(const struct request *request)
{
	const struct ib_user_mad *header =
		(const struct ib_user_mad *)(const void *)request->umad;
	const uint8_t *mad = request_mad(request);
	uint64_t key = be16toh(header->addr.lid) | (uint64_t)is_smp_class(mad[1]) << 16;

	if (header->addr.grh_present || mad[1] == IB_SMI_DIRECT_CLASS)
		key = route_key(key, header, mad);
	return key;
}

/* Takes a reference on the request's destination, creating it if needed. NULL on OOM. */
static struct destination *get_destination(struct destinations *destinations,
					   const struct request *request)
{
	uint64_t key = destination_key(request);
	struct destination *destination =
		destinations->bucket_count ? *bucket_of(destinations, key) : NULL;

	while (destination && destination->key != key)
		destination = destination->next;
	if (!destination && !(destination = make_destination(destinations, key)))
		return NULL;
	if (!destination->users++) {
		destination->path.busy_since = 0;
		list_remove(&destination->idle);
		destinations->idle_count--;
	}
	return destination;
}

/* Drops a reference. The destination is kept until IDLE_MAX others are idle. */
static void put_destination(struct destinations *destinations, struct destination *destination)
{
	if (--destination->users)
		return;
	list_add_last(&destinations->idle, &destination->idle);
	destinations->idle_count++;
}

/* The destination whose path the request's account has; NULL: unknown. */
static struct destination *destination_of(const struct request *request)
{
	struct flow_path *path = request->account.path;

	return path ? list_entry(path, struct destination, path) : NULL;
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

static struct flow *flow_of(const struct request *request)
{
	struct flow *flows = request->source->flows;

	if (request->account.smp)
		return &flows[FLOW_SMP];
	if (request->account.sa)
		return &flows[FLOW_SA];
	return &flows[request->transmissions.mgmt_class == IB_PERFORMANCE_CLASS ? FLOW_PERF
										: FLOW_OTHER];
}

static void insert_before(struct request *request, enum queue_place place, struct list *before)
{
	request->place = place;
	list_insert(before, &request->queue);
}

/* Adds a request to a list of its flow, and the flow to its window's ring. */
static void join_flow(struct queue *queue, enum queue_place place, struct list *before,
		      struct request *request)
{
	struct flow *flow = request->flow;

	insert_before(request, place, before);
	if (!flow->count++)
		list_add_last(&queue->rings[flow_window_of(&request->account)], &flow->turn);
}

static struct lane *find_lane(const struct destination *destination, const struct flow *flow)
{
	list_for_each (entry, &destination->lanes)
		if (lane_at(entry)->flow == flow)
			return lane_at(entry);
	return NULL;
}

/* A request was removed: an empty lane that awaits none is spare. */
static void leave_lane(struct queue *queue, struct request *request, enum queue_place place)
{
	struct lane *lane = find_lane(destination_of(request), request->flow);

	/* queue_drain() has taken a pausing request's lane */
	if (!lane)
		return;
	if (place != IN_LANE)
		lane->awaited--;
	if (list_is_empty(&lane->requests) && !lane->awaited)
		list_move_last(&queue->spare_lanes, &lane->turn);
}

void queue_remove(struct queue *queue, struct request *request)
{
	enum queue_place place = request->place;
	struct flow *flow = request->flow;

	if (place == NOT_QUEUED)
		return;
	request->place = NOT_QUEUED;
	if (place != PAUSING)
		list_remove(&request->queue);
	if ((place == IN_FLOW || place == RESUMED) && !--flow->count)
		list_remove(&flow->turn);
	if (place != IN_FLOW)
		leave_lane(queue, request, place);
}

/* --- lanes ---------------------------------------------------------------------- */

/* Adds a flow's lane at either end of the destination's lanes; NULL on OOM. */
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

/* Returns the lane's first request to its flow. The lane must not be empty. */
static void resume_first(struct queue *queue, struct lane *lane)
{
	struct request *request = request_at(lane->requests.next);
	bool quick = flow_is_quick(queue->flow, &request->account);

	list_remove(&request->queue);
	lane->awaited++;
	join_flow(queue, RESUMED, &lane->flow->lists[quick ? LIST_QUICK : LIST_RESUMED],
		  request);
}

/* If the destination has a place, resumes each lane's first request. */
static void release_lanes(struct queue *queue, struct destination *destination)
{
	if (!flow_has_place(queue->flow, &destination->path))
		return;
	list_for_each (entry, &destination->lanes)
		if (!lane_at(entry)->awaited && !list_is_empty(&lane_at(entry)->requests))
			resume_first(queue, lane_at(entry));
}

static void release_destination(struct destination *destination, void *queue)
{
	release_lanes(queue, destination);
}

void queue_update(struct queue *queue, struct request *request)
{
	struct destination *destination = destination_of(request);

	if (destination && !list_is_empty(&destination->lanes))
		release_lanes(queue, destination);
}

void queue_leave(struct queue *queue, struct request *request)
{
	struct destination *destination = destination_of(request);

	if (!destination)
		return;
	queue_update(queue, request);
	request->account.path = NULL;
	put_destination(&queue->destinations, destination);
}

void queue_set_limit(struct queue *queue, unsigned limit)
{
	queue->flow->path_limit = limit;
	destinations_visit(&queue->destinations, release_destination, queue);
}

/*
 * Puts a request into its lane if it must wait or is fresh: fresh ones last, others first. A
 * fresh request that need not wait only joins an existing lane. On OOM, there is no limit.
 */
static bool join_lane(struct queue *queue, struct request *request, bool fresh, bool waits)
{
	struct destination *destination = destination_of(request);
	struct lane *lane = find_lane(destination, request->flow);

	if (waits || (fresh && lane)) {
		if (!lane)
			lane = make_lane(queue, destination, request->flow, !fresh);
		if (lane) {
			insert_before(request, IN_LANE,
				      fresh ? &lane->requests : lane->requests.next);
			release_lanes(queue, destination);
			return true;
		}
	}
	/* the flow has had its turn at the destination */
	if (lane)
		list_move_last(&destination->lanes, &lane->turn);
	return false;
}

/*
 * Whether the request's destination has a place; if not, the request is now in its lane. A
 * fresh request also waits if a later one was already sent to the destination.
 */
static bool take_place(struct queue *queue, struct request *request, bool fresh)
{
	struct destination *destination = destination_of(request);
	bool waits;

	if (!destination)
		destination = get_destination(&queue->destinations, request);
	if (!destination)
		return true;
	request->account.path = &destination->path;
	waits = !flow_has_place(queue->flow, &destination->path) ||
		(fresh && (int32_t)(destination->served - request->number) >= 0);
	/* returning to the destination's only lane ends no turn */
	if (!waits && (fresh ? list_is_empty(&destination->lanes)
			     : destination->lanes.next == destination->lanes.prev))
		return true;
	return !join_lane(queue, request, fresh, waits);
}

/* --- the next request ----------------------------------------------------------- */

/* Earliest time at which a window with room may send; 0: any. */
static int64_t window_opens(const struct queue *queue, unsigned window)
{
	int64_t at = flow_opens(queue->flow, window), paced;

	if (!queue->pace.rate)
		return at;
	paced = (queue->pace.next_ns - PACE_BURST_NS + 999) / 1000;
	return paced > at ? paced : at;
}

/* Whether the window has room and may send now. */
static bool window_is_open(const struct queue *queue, unsigned window)
{
	int64_t at;

	if (!flow_has_room(queue->flow, window))
		return false;
	at = window_opens(queue, window);
	return !at || at <= clock_us();
}

static bool window_is_ready(const struct queue *queue, unsigned window)
{
	return !list_is_empty(&queue->rings[window]) && window_is_open(queue, window);
}

bool queue_is_ready(const struct queue *queue)
{
	return window_is_ready(queue, MAD_WINDOW_SMP) || window_is_ready(queue, MAD_WINDOW_GMP);
}

int64_t queue_opens(const struct queue *queue)
{
	int64_t first = NEVER, at;

	for (unsigned i = 0; i < FLOW_WINDOWS; i++) {
		if (list_is_empty(&queue->rings[i]) || !flow_has_room(queue->flow, i))
			continue;
		at = window_opens(queue, i);
		if (at < first)
			first = at;
	}
	return first;
}

/* The list whose turn comes next. */
static unsigned list_after(unsigned list)
{
	return list + 1 < TURNS ? list + 1 : 0;
}

/*
 * The first requests may all be to dead nodes: starts the list 38.2 % further on. Golden-ratio
 * steps soon reach all parts of the list.
 */
static void rotate_list(struct list *requests, unsigned count)
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
 * Picks the next list; at least one must not be empty. In a silence, requests never sent before
 * come first: their nodes may respond.
 */
static enum flow_list choose_list(const struct flow *flow, bool silent)
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

/* Removes and returns the flow's next request; NULL if it went into a lane. */
static struct request *next_of(struct queue *queue, unsigned window, struct flow *flow)
{
	enum flow_list list = choose_list(flow, queue->flow->windows[window].silent);
	struct request *request;

	if (list == LIST_FRESH && flow_take_skip(queue->flow, window))
		rotate_list(&flow->lists[list], flow->count);
	request = request_at(flow->lists[list].next);
	queue_remove(queue, request);
	if (!request->account.at_node && !take_place(queue, request, list == LIST_FRESH))
		return NULL;
	if (list != LIST_AGAIN)
		flow->next = list_after(list);
	if (!--flow->left)
		end_turn(&queue->rings[window], flow, request->source->turn);
	return request;
}

struct request *queue_next(struct queue *queue, unsigned window, unsigned *examine)
{
	struct list *ring = &queue->rings[window];
	struct request *request = NULL;

	for (; !request && *examine && window_is_ready(queue, window); --*examine)
		request = next_of(queue, window, list_entry(ring->next, struct flow, turn));
	return request;
}

bool queue_submit(struct queue *queue, struct request *request)
{
	unsigned window = flow_window_of(&request->account);

	request->flow = flow_of(request);
	request->number = ++queue->numbered;
	if (list_is_empty(&queue->rings[window]) && window_is_open(queue, window))
		return take_place(queue, request, true);
	join_flow(queue, IN_FLOW, &request->flow->lists[LIST_FRESH], request);
	return false;
}

void queue_bypass(struct queue *queue, struct request *request)
{
	request->flow = flow_of(request);
	request->number = ++queue->numbered;
}

/* On OOM, the flow's other requests don't wait. */
void queue_pause(struct queue *queue, struct request *request)
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

void queue_again(struct queue *queue, struct request *request)
{
	const struct destination *destination = destination_of(request);
	struct list *lists = request->flow->lists;

	if (request->place == PAUSING) {
		join_flow(queue, RESUMED, &lists[LIST_AGAIN], request);
	} else if (destination && !request->account.at_node &&
		   destination->key != destination_key(request)) {
		/* it was redirected */
		queue_leave(queue, request);
		request->number = ++queue->numbered;
		join_flow(queue, IN_FLOW, lists[LIST_FRESH].next, request);
	} else {
		join_flow(queue, IN_FLOW, &lists[LIST_AGAIN], request);
	}
}

void queue_sent(struct queue *queue, struct request *request, int64_t now)
{
	struct destination *destination = destination_of(request);
	struct pace *pace = &queue->pace;

	if (destination)
		destination->served = queue->numbered;
	if (!pace->rate)
		return;
	if (pace->next_ns < now * 1000)
		pace->next_ns = now * 1000;
	/* round up: never exceed the rate */
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
