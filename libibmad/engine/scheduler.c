/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/scheduler.h"

#define DESTINATION_LIMIT 16
/* Memory for so many requests stays allocated after they are complete. */
#define KEPT              1024

static struct transaction *of_queue(struct list *entry)
{
	return list_entry(entry, struct transaction, queue);
}

static struct transaction *of_timer(struct deadline *timer)
{
	return list_entry(timer, struct transaction, timer);
}

void scheduler_reset(struct scheduler *scheduler)
{
	for (unsigned i = 0; i < WINDOWS; i++)
		list_init(&scheduler->ready[i]);
	list_init(&scheduler->again);
	scheduler->deadlines = (struct deadlines){0};
	scheduler->destinations = (struct destinations){0};
	scheduler->open = 0;
}

void scheduler_init(struct scheduler *scheduler, struct core *core)
{
	scheduler->core = core;
	scheduler->destination_limit = DESTINATION_LIMIT;
	scheduler_reset(scheduler);
}

void scheduler_free(struct scheduler *scheduler)
{
	destinations_free(&scheduler->destinations);
	deadlines_free(&scheduler->deadlines);
}

int scheduler_reserve(struct scheduler *scheduler)
{
	return deadlines_reserve(&scheduler->deadlines, scheduler->open + 1);
}

/* --- queues --------------------------------------------------------------------- */

static void enqueue_before(struct list *entry, struct transaction *transaction)
{
	transaction->queued = true;
	list_insert(entry, &transaction->queue);
}

static void enqueue_last(struct list *queue, struct transaction *transaction)
{
	enqueue_before(queue, transaction);
}

static void enqueue_first(struct list *queue, struct transaction *transaction)
{
	enqueue_before(queue->next, transaction);
}

static void dequeue(struct transaction *transaction)
{
	transaction->queued = false;
	list_remove(&transaction->queue);
	transaction->timer = (struct deadline){0};
}

static struct list *ready_of(struct scheduler *scheduler, struct transaction *transaction)
{
	return &scheduler->ready[core_window(transaction)];
}

void scheduler_add(struct scheduler *scheduler, struct transaction *transaction)
{
	enqueue_last(ready_of(scheduler, transaction), transaction);
}

/* --- destinations --------------------------------------------------------------- */

/* Counts it at its destination; false: it is queued there now. */
static bool admit(struct scheduler *scheduler, struct transaction *transaction)
{
	struct destination *destination;

	if (transaction->admitted)
		return true;
	destination = destination_get(&scheduler->destinations,
				      destination_key(transaction_buffer(transaction)));
	if (!destination)
		return true; /* without memory there is no limit */
	transaction->destination = destination;
	if (destination->in_flight >= scheduler->destination_limit) {
		enqueue_last(&destination->queue, transaction);
		return false;
	}
	destination->in_flight++;
	transaction->admitted = true;
	return true;
}

/* Makes requests ready that are queued for a destination, as far as its limit allows. */
static void readmit(struct destination *destination, void *arg)
{
	struct scheduler *scheduler = arg;
	struct transaction *transaction;
	struct list *first, *others[WINDOWS];

	for (unsigned i = 0; i < WINDOWS; i++)
		others[i] = scheduler->ready[i].next;
	while (destination->in_flight < scheduler->destination_limit &&
	       (first = list_first(&destination->queue))) {
		transaction = of_queue(first);
		dequeue(transaction);
		destination->in_flight++;
		transaction->admitted = true;
		/* they have waited longer than the others */
		enqueue_before(others[core_window(transaction)], transaction);
	}
}

/* Those that could not be sent yet are queued for their destinations again; the latest first.
 */
static void unadmit(struct scheduler *scheduler, struct list *queue)
{
	struct transaction *transaction;
	struct destination *destination;
	struct list *entry, *previous;

	for (entry = queue->prev; entry != queue; entry = previous) {
		previous = entry->prev;
		transaction = of_queue(entry);
		destination = transaction->destination;
		if (!transaction->admitted ||
		    destination->in_flight <= scheduler->destination_limit)
			continue;
		dequeue(transaction);
		transaction->admitted = false;
		destination->in_flight--;
		enqueue_first(&destination->queue, transaction);
	}
}

void scheduler_leave(struct scheduler *scheduler, struct transaction *transaction)
{
	struct destination *destination = transaction->destination;

	if (!destination)
		return;
	transaction->destination = NULL;
	if (transaction->admitted) {
		transaction->admitted = false;
		destination->in_flight--;
		readmit(destination, scheduler);
	}
	destination_put(&scheduler->destinations, destination);
}

void scheduler_set_limit(struct scheduler *scheduler, unsigned limit)
{
	scheduler->destination_limit = limit;
	for (unsigned i = 0; i < WINDOWS; i++)
		unadmit(scheduler, &scheduler->ready[i]);
	destinations_visit(&scheduler->destinations, readmit, scheduler);
}

/* --- transmission --------------------------------------------------------------- */

bool scheduler_can_send(const struct scheduler *scheduler)
{
	for (unsigned i = 0; i < WINDOWS; i++)
		if (!list_is_empty(&scheduler->ready[i]) &&
		    window_open(&scheduler->core->windows[i]))
			return true;
	return !list_is_empty(&scheduler->again);
}

/* Sends what its window allows; returns how many more it may look at. */
static unsigned send_ready(struct scheduler *scheduler, unsigned kind, unsigned most)
{
	struct core *core = scheduler->core;
	struct table *table = &core->transactions.outstanding.table;
	struct transaction *transaction;
	struct list *first;

	while (most && window_open(&core->windows[kind]) &&
	       (first = list_first(&scheduler->ready[kind]))) {
		transaction = of_queue(first);
		dequeue(transaction);
		most--;
		if (!admit(scheduler, transaction))
			continue;
		table_reserve(table, table->count + 1);
		core_transmit(core, transaction);
	}
	return most;
}

void scheduler_send(struct scheduler *scheduler, unsigned most)
{
	struct core *core = scheduler->core;
	unsigned turn = scheduler->turn;
	struct transaction *transaction;
	struct list *first;

	/* the window does not hold retransmissions back */
	for (; most && (first = list_first(&scheduler->again)); most--) {
		transaction = of_queue(first);
		dequeue(transaction);
		core_transmit(core, transaction);
	}
	for (unsigned i = 0; i < WINDOWS && most; i++) {
		most = send_ready(scheduler, (turn + i) % WINDOWS, most);
		/* the other kind should not wait until this one is all sent */
		if (!most)
			scheduler->turn = (turn + i + 1) % WINDOWS;
	}
}

void scheduler_again(struct scheduler *scheduler, struct transaction *transaction)
{
	scheduler_withdraw(scheduler, transaction);
	if (transaction->fresh) {
		/* it was redirected to another destination */
		scheduler_leave(scheduler, transaction);
		enqueue_first(ready_of(scheduler, transaction), transaction);
	} else {
		enqueue_last(&scheduler->again, transaction);
	}
}

/* --- timers --------------------------------------------------------------------- */

void scheduler_set_timer(struct scheduler *scheduler, struct transaction *transaction)
{
	deadline_set(&scheduler->deadlines, &transaction->timer, transaction->timer.at);
}

int64_t scheduler_next(const struct scheduler *scheduler)
{
	return deadlines_next(&scheduler->deadlines);
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
		dequeue(transaction);
	} else {
		deadline_clear(&scheduler->deadlines, &transaction->timer);
		transaction->timer = (struct deadline){0};
	}
}

static void cancel_queue(struct scheduler *scheduler, struct list *queue, int error)
{
	struct list *first;

	while ((first = list_first(queue)))
		core_cancel(scheduler->core, of_queue(first), error);
}

static void cancel_destination(struct destination *destination, void *arg)
{
	struct scheduler *scheduler = arg;

	destination->in_flight++; /* it stays until here */
	cancel_queue(scheduler, &destination->queue, scheduler->core->gone);
	destination->in_flight--;
	destination_put(&scheduler->destinations, destination);
}

void scheduler_fail(struct scheduler *scheduler)
{
	int error = scheduler->core->gone;

	/* these first: each of the others that completes may make one of these ready */
	destinations_visit(&scheduler->destinations, cancel_destination, scheduler);
	for (unsigned i = 0; i < WINDOWS; i++)
		cancel_queue(scheduler, &scheduler->ready[i], error);
	cancel_queue(scheduler, &scheduler->again, error);
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
}
