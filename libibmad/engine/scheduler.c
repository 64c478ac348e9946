/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/scheduler.h"

#include "mad/probe.h"

#include <stdlib.h>

/* Memory for so many requests or destinations stays allocated after all are complete. */
#define KEPT  1024
/* So many requests are looked at for each that may be sent. */
#define LOOKS 16

/* The requests of one flow that wait for a place at a destination. */
struct lane {
	struct list turn; /* in its destination's lanes */
	struct list queue;
	struct flow *flow;
	bool resumed; /* one more is in a queue of the flow again */
};

static struct transaction *of_queue(struct list *entry)
{
	return list_entry(entry, struct transaction, queue);
}

static struct transaction *of_timer(struct deadline *timer)
{
	return list_entry(timer, struct transaction, timer);
}

static struct lane *of_turn(struct list *entry)
{
	return list_entry(entry, struct lane, turn);
}

/* --- life ----------------------------------------------------------------------- */

void source_init(struct source *source, unsigned turn)
{
	source->turn = turn;
	for (unsigned i = 0; i < FLOWS; i++) {
		list_init(&source->flows[i].turn);
		for (unsigned j = 0; j < QUEUES; j++)
			list_init(&source->flows[i].queues[j]);
		source->flows[i].next = 0;
		source->flows[i].left = turn;
	}
}

void scheduler_reset(struct scheduler *scheduler)
{
	for (unsigned i = 0; i < FLOW_WINDOWS; i++)
		list_init(&scheduler->rings[i]);
	scheduler->deadlines = (struct deadlines){0};
	destinations_init(&scheduler->destinations);
	list_init(&scheduler->spare_lanes);
	scheduler->open = 0;
}

void scheduler_init(struct scheduler *scheduler, struct core *core)
{
	scheduler->core = core;
	scheduler_reset(scheduler);
}

static void free_lanes(struct list *lanes)
{
	struct list *first;

	while ((first = list_pop(lanes)))
		free(of_turn(first));
}

static void free_lanes_of(struct destination *destination, void *arg)
{
	(void)arg;
	free_lanes(&destination->lanes);
}

void scheduler_free(struct scheduler *scheduler)
{
	destinations_visit(&scheduler->destinations, free_lanes_of, NULL);
	free_lanes(&scheduler->spare_lanes);
	destinations_free(&scheduler->destinations);
	deadlines_free(&scheduler->deadlines);
}

int scheduler_reserve(struct scheduler *scheduler)
{
	return deadlines_reserve(&scheduler->deadlines, scheduler->open + 1);
}

/* --- queues --------------------------------------------------------------------- */

static struct flow *flow_of(const struct transaction *transaction)
{
	struct flow *flows = transaction->owner->source->flows;

	if (transaction->account.smp)
		return &flows[FLOW_SMP];
	if (transaction->account.sa)
		return &flows[FLOW_SA];
	return &flows[transaction->transmissions.mgmt_class == IB_PERFORMANCE_CLASS
			      ? FLOW_PERF
			      : FLOW_OTHER];
}

static void enqueue_before(struct list *entry, struct transaction *transaction)
{
	transaction->queued = true;
	list_insert(entry, &transaction->queue);
}

/* Queues it in a list of its flow, which takes its turn from now on. */
static void enqueue(struct scheduler *scheduler, struct flow *flow, struct list *before,
		    struct transaction *transaction)
{
	enqueue_before(before, transaction);
	if (list_is_empty(&flow->turn))
		list_add_last(&scheduler->rings[flow_window_of(&transaction->account)],
			      &flow->turn);
}

static bool is_idle(const struct flow *flow)
{
	for (unsigned i = 0; i < QUEUES; i++)
		if (!list_is_empty(&flow->queues[i]))
			return false;
	return true;
}

static void leave_ring(struct flow *flow)
{
	list_remove(&flow->turn);
	list_init(&flow->turn);
}

static struct lane *find_lane(const struct destination *destination, const struct flow *flow)
{
	list_for_each (entry, &destination->lanes)
		if (of_turn(entry)->flow == flow)
			return of_turn(entry);
	return NULL;
}

static void spare_if_unused(struct scheduler *scheduler, struct lane *lane)
{
	if (!list_is_empty(&lane->queue) || lane->resumed)
		return;
	list_move_last(&scheduler->spare_lanes, &lane->turn);
}

static void unqueue(struct transaction *transaction)
{
	list_remove(&transaction->queue);
	transaction->queued = false;
	transaction->timer = (struct deadline){0};
}

/* Takes it out of its queue. The flow leaves the ring, and the lane ends, if nothing is left.
 */
static void dequeue(struct scheduler *scheduler, struct transaction *transaction)
{
	struct flow *flow = flow_of(transaction);
	struct lane *lane = NULL;

	unqueue(transaction);
	if (transaction->parked || transaction->resumed)
		lane = find_lane(transaction->destination, flow);
	if (lane && transaction->resumed)
		lane->resumed = false;
	if (!transaction->parked && is_idle(flow))
		leave_ring(flow);
	transaction->parked = transaction->resumed = false;
	if (lane)
		spare_if_unused(scheduler, lane);
}

/* --- destinations --------------------------------------------------------------- */

static struct flow_control *control(const struct scheduler *scheduler)
{
	return &scheduler->core->transactions.flow;
}

static bool has_place(const struct scheduler *scheduler, const struct destination *destination)
{
	return flow_has_place(control(scheduler), &destination->path);
}

/* The lane of the flow, which is made if there is none, the first or the last one; NULL without
 * memory. */
static struct lane *get_lane(struct scheduler *scheduler, struct destination *destination,
			     struct flow *flow, bool first)
{
	struct lane *lane = find_lane(destination, flow);
	struct list *spare;

	if (lane)
		return lane;
	spare = list_pop(&scheduler->spare_lanes);
	lane = spare ? of_turn(spare) : malloc(sizeof(*lane));
	if (!lane)
		return NULL;
	*lane = (struct lane){.flow = flow};
	list_init(&lane->queue);
	list_insert(first ? destination->lanes.next : &destination->lanes, &lane->turn);
	return lane;
}

/* Queues it for its destination, first or last of its flow; false without memory. */
static bool park(struct scheduler *scheduler, struct transaction *transaction, bool first)
{
	struct lane *lane =
		get_lane(scheduler, transaction->destination, flow_of(transaction), first);

	if (!lane)
		return false;
	transaction->parked = true;
	enqueue_before(first ? lane->queue.next : &lane->queue, transaction);
	return true;
}

/* The flow has had its turn at the destination. */
static void end_lane_turn(struct destination *destination, const struct flow *flow)
{
	struct lane *lane = find_lane(destination, flow);

	if (lane)
		list_move_last(&destination->lanes, &lane->turn);
}

/* Whether a node responds far more quickly than others. */
static bool is_quick(const struct scheduler *scheduler, const struct transaction *transaction)
{
	return flow_is_quick(control(scheduler), &transaction->account);
}

/* The lane holds a request: an empty one does not stay. */
static void resume(struct scheduler *scheduler, struct lane *lane)
{
	struct transaction *transaction = of_queue(lane->queue.next);
	struct flow *flow = lane->flow;

	unqueue(transaction);
	transaction->parked = false;
	transaction->resumed = lane->resumed = true;
	enqueue(scheduler, flow,
		&flow->queues[is_quick(scheduler, transaction) ? QUEUE_QUICK : QUEUE_RESUMED],
		transaction);
}

/* If there is a place at a destination, resumes a request of each lane. */
static void release(struct destination *destination, void *arg)
{
	struct scheduler *scheduler = arg;

	if (!has_place(scheduler, destination))
		return;
	list_for_each (entry, &destination->lanes)
		if (!of_turn(entry)->resumed)
			resume(scheduler, of_turn(entry));
}

/* Whether its destination has had its turn since it was queued. */
static bool was_overtaken(const struct transaction *transaction)
{
	return (int32_t)(transaction->destination->served - transaction->queue_number) >= 0;
}

/*
 * Whether a request may be sent as far as its destination is concerned. Otherwise it is queued
 * there. Without memory, no limit holds.
 */
static bool take_place(struct scheduler *scheduler, struct transaction *transaction, bool fresh)
{
	struct destination *destination = transaction->destination;
	bool behind;

	if (!destination)
		destination = transaction->destination =
			destination_get(&scheduler->destinations,
					destination_key(transaction_buffer(transaction)));
	if (!destination)
		return true;
	transaction->account.path = &destination->path;
	behind = fresh &&
		 (was_overtaken(transaction) || find_lane(destination, flow_of(transaction)));
	if ((behind || !has_place(scheduler, destination)) &&
	    park(scheduler, transaction, !fresh)) {
		release(destination, scheduler);
		return false;
	}
	end_lane_turn(destination, flow_of(transaction));
	return true;
}

void scheduler_leave(struct scheduler *scheduler, struct transaction *transaction)
{
	struct destination *destination = transaction->destination;

	if (!destination)
		return;
	/* it may have been the one of its lane that was resumed */
	flow_ended(control(scheduler), &transaction->account);
	transaction->account.path = NULL;
	transaction->destination = NULL;
	release(destination, scheduler);
	destination_put(&scheduler->destinations, destination);
}

void scheduler_news(struct scheduler *scheduler, struct transaction *transaction)
{
	if (transaction->destination && transaction->news & (NEWS_PLACE | NEWS_TRANSMITTED))
		release(transaction->destination, scheduler);
}

void scheduler_set_limit(struct scheduler *scheduler, unsigned limit)
{
	control(scheduler)->path_limit = limit;
	destinations_visit(&scheduler->destinations, release, scheduler);
}

/* --- transmission --------------------------------------------------------------- */

static bool is_open(const struct scheduler *scheduler, unsigned window)
{
	int64_t opens;

	if (!flow_has_room(control(scheduler), window))
		return false;
	opens = core_opens(scheduler->core, window);
	return !opens || opens <= clock_us();
}

bool scheduler_can_send(const struct scheduler *scheduler)
{
	for (unsigned i = 0; i < FLOW_WINDOWS; i++)
		if (!list_is_empty(&scheduler->rings[i]) && is_open(scheduler, i))
			return true;
	return false;
}

int64_t scheduler_opens(const struct scheduler *scheduler)
{
	int64_t first = NEVER, opens;

	for (unsigned i = 0; i < FLOW_WINDOWS; i++) {
		if (list_is_empty(&scheduler->rings[i]) ||
		    !flow_has_room(control(scheduler), i))
			continue;
		opens = core_opens(scheduler->core, i);
		if (opens < first)
			first = opens;
	}
	return first;
}

static void transmit(struct scheduler *scheduler, struct transaction *transaction)
{
	struct table *table = &scheduler->core->transactions.outstanding.table;

	if (transaction->destination)
		transaction->destination->served = scheduler->queued;
	table_reserve(table, table->count + 1);
	core_transmit(scheduler->core, transaction);
}

/*
 * The queue whose first request is next; one of them is not empty. In a silence, requests that
 * were never sent come first: one of their nodes may respond.
 */
static enum flow_queue choose(const struct flow *flow, bool silent)
{
	bool again = !list_is_empty(&flow->queues[QUEUE_AGAIN]);

	if (again && !silent)
		return QUEUE_AGAIN;
	for (unsigned i = 0; i < TURNS; i++)
		if (!list_is_empty(&flow->queues[(flow->next + i) % TURNS]))
			return (enum flow_queue)((flow->next + i) % TURNS);
	return QUEUE_AGAIN;
}

static void end_turn(struct list *ring, struct flow *flow, unsigned requests)
{
	flow->left = requests;
	if (!list_is_empty(&flow->turn))
		list_move_last(ring, &flow->turn);
}

/* Sends a request of a flow, unless it is queued for its destination: whether it did. */
static bool send_one(struct scheduler *scheduler, unsigned window, struct flow *flow)
{
	bool silent = control(scheduler)->windows[window].silent;
	enum flow_queue queue = choose(flow, silent);
	struct transaction *transaction = of_queue(flow->queues[queue].next);

	dequeue(scheduler, transaction);
	if (!transaction->account.at_node &&
	    !take_place(scheduler, transaction, queue == QUEUE_FRESH))
		return false;
	if (queue != QUEUE_AGAIN)
		flow->next = (queue + 1) % TURNS;
	if (!--flow->left)
		end_turn(&scheduler->rings[window], flow, transaction->owner->source->turn);
	transmit(scheduler, transaction);
	return true;
}

/* Sends what a window allows; returns how many more requests may be sent. */
static unsigned send_ring(struct scheduler *scheduler, unsigned window, unsigned most)
{
	struct list *first;
	unsigned looks = LOOKS * most;

	while (most && looks-- && (first = list_first(&scheduler->rings[window])) &&
	       is_open(scheduler, window))
		most -= send_one(scheduler, window, list_entry(first, struct flow, turn));
	return most;
}

void scheduler_send(struct scheduler *scheduler, unsigned most)
{
	unsigned turn = scheduler->turn;

	for (unsigned i = 0; i < FLOW_WINDOWS && most; i++) {
		most = send_ring(scheduler, (turn + i) % FLOW_WINDOWS, most);
		/* the other kind should not wait until this one is all sent */
		if (!most)
			scheduler->turn = (turn + i + 1) % FLOW_WINDOWS;
	}
}

void scheduler_submit(struct scheduler *scheduler, struct transaction *transaction)
{
	enum mad_window window = flow_window_of(&transaction->account);
	struct flow *flow = flow_of(transaction);

	probe_request_submitted(transaction, transaction_buffer(transaction),
				transaction_mad(transaction), transaction->timeout_ms,
				transaction->left);
	transaction->queue_number = ++scheduler->queued;
	if (!list_is_empty(&scheduler->rings[window]) || !is_open(scheduler, window)) {
		enqueue(scheduler, flow, &flow->queues[QUEUE_FRESH], transaction);
		return;
	}
	if (take_place(scheduler, transaction, true))
		transmit(scheduler, transaction);
}

void scheduler_again(struct scheduler *scheduler, struct transaction *transaction)
{
	struct flow *flow = flow_of(transaction);

	scheduler_withdraw(scheduler, transaction);
	if (transaction->fresh) {
		/* it was redirected to another destination */
		scheduler_leave(scheduler, transaction);
		transaction->queue_number = ++scheduler->queued;
		enqueue(scheduler, flow, flow->queues[QUEUE_FRESH].next, transaction);
	} else {
		enqueue(scheduler, flow, &flow->queues[QUEUE_AGAIN], transaction);
	}
}

/* --- timers --------------------------------------------------------------------- */

void scheduler_set_timer(struct scheduler *scheduler, struct transaction *transaction)
{
	deadline_set(&scheduler->deadlines, &transaction->timer, transaction->timer.at);
}

int64_t scheduler_next(const struct scheduler *scheduler)
{
	int64_t next = deadlines_next(&scheduler->deadlines);
	int64_t opens = scheduler_opens(scheduler);

	return opens < next ? opens : next;
}

void scheduler_expire(struct scheduler *scheduler, int64_t now, unsigned most)
{
	struct deadline *due;

	while (most-- && (due = deadlines_due(&scheduler->deadlines, now)))
		core_timer(scheduler->core, of_timer(due), now);
}

/* --- the end -------------------------------------------------------------------- */

void scheduler_withdraw(struct scheduler *scheduler, struct transaction *transaction)
{
	if (transaction->queued) {
		dequeue(scheduler, transaction);
	} else {
		deadline_clear(&scheduler->deadlines, &transaction->timer);
		transaction->timer = (struct deadline){0};
	}
}

static void cancel_queue(struct scheduler *scheduler, struct list *queue)
{
	core_cancel(scheduler->core, of_queue(list_first(queue)), scheduler->core->gone);
}

/* A lane in which a request waits; NULL. */
static struct lane *waiting_lane(const struct destination *destination)
{
	list_for_each (entry, &destination->lanes)
		if (!list_is_empty(&of_turn(entry)->queue))
			return of_turn(entry);
	return NULL;
}

static void cancel_destination(struct destination *destination, void *arg)
{
	struct lane *lane;

	while ((lane = waiting_lane(destination)))
		cancel_queue(arg, &lane->queue);
}

static void cancel_ring(struct scheduler *scheduler, struct list *ring)
{
	struct list *first;
	struct flow *flow;

	while ((first = list_first(ring))) {
		flow = list_entry(first, struct flow, turn);
		cancel_queue(scheduler, &flow->queues[choose(flow, false)]);
	}
}

void scheduler_fail(struct scheduler *scheduler)
{
	int error = scheduler->core->gone;

	/* these first: each of the others that completes may resume one of these */
	destinations_visit(&scheduler->destinations, cancel_destination, scheduler);
	for (unsigned i = 0; i < FLOW_WINDOWS; i++)
		cancel_ring(scheduler, &scheduler->rings[i]);
	while (scheduler->deadlines.count)
		core_cancel(scheduler->core, of_timer(scheduler->deadlines.heap[1]), error);
}

void scheduler_shrink(struct scheduler *scheduler)
{
	struct table *table = &scheduler->core->transactions.outstanding.table;

	if (scheduler->open)
		return;
	if (scheduler->deadlines.room > KEPT)
		deadlines_free(&scheduler->deadlines);
	if (table->bucket_count > KEPT && !table->count)
		table_free(table);
	destinations_shrink(&scheduler->destinations, KEPT);
	free_lanes(&scheduler->spare_lanes);
}
