/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/flow.h"

#include <errno.h>

void flow_add(struct ibmad_port *port, struct transaction *transaction)
{
	struct queue *ready = &port->ready[transaction_window(transaction)];

	transaction->next = NULL;
	*ready->last = transaction;
	ready->last = &transaction->next;
}

bool flow_can_send(const struct ibmad_port *port)
{
	for (unsigned i = 0; i < PORT_WINDOWS; i++)
		if (port->ready[i].first && window_open(&port->windows[i]))
			return true;
	return false;
}

static struct transaction *pop(struct queue *queue)
{
	struct transaction *first = queue->first;

	queue->first = first->next;
	if (!queue->first)
		queue->last = &queue->first;
	first->next = NULL;
	return first;
}

/* Has its destination count it; false: it waits beside that. */
static bool admit(struct ibmad_port *port, struct transaction *transaction)
{
	struct destination *destination;

	if (transaction->destination)
		return true; /* it has waited there */
	destination = destination_get(&port->destinations,
				      destination_key(transaction_buffer(transaction)));
	if (!destination)
		return true; /* without memory, without limit */
	if (destination->under_way >= port->destination_limit) {
		*destination->last_parked = transaction;
		destination->last_parked = &transaction->next;
		return false;
	}
	destination->under_way++;
	transaction->destination = destination;
	return true;
}

/* The first that waits beside a destination has a place there. */
static void readmit(struct ibmad_port *port, struct destination *destination)
{
	struct transaction *transaction = destination->parked;
	struct queue *ready = &port->ready[transaction_window(transaction)];

	destination->parked = transaction->next;
	if (!destination->parked)
		destination->last_parked = &destination->parked;
	destination->under_way++;
	transaction->destination = destination;
	/* in front of the others: it has waited longer */
	if (!ready->first)
		ready->last = &transaction->next;
	transaction->next = ready->first;
	ready->first = transaction;
}

void flow_leave(struct ibmad_port *port, struct transaction *transaction)
{
	struct destination *destination = transaction->destination;

	if (!destination)
		return;
	transaction->destination = NULL;
	destination->under_way--;
	while (destination->parked && destination->under_way < port->destination_limit)
		readmit(port, destination);
	destination_put(&port->destinations, destination);
}

void flow_send(struct ibmad_port *port)
{
	struct transaction *transaction;

	for (unsigned i = 0; i < PORT_WINDOWS; i++)
		while (port->ready[i].first && window_open(&port->windows[i])) {
			transaction = pop(&port->ready[i]);
			if (!admit(port, transaction))
				continue;
			table_reserve(&port->table, port->table.count + 1);
			transaction_send(port, transaction);
		}
}

static struct transaction *of_timer(struct deadline *timer)
{
	return (struct transaction *)(void *)((char *)timer -
					      offsetof(struct transaction, timer));
}

void flow_expire(struct ibmad_port *port)
{
	int64_t now = clock_us();
	struct deadline *due;

	while ((due = deadlines_due(&port->deadlines, now)))
		transaction_expired(port, of_timer(due), now);
}

/* Takes those out of a list that belong to an engine, or are one, or all. */
static void take_out(struct ibmad_port *port, struct transaction **first,
		     struct transaction ***last, const struct mad_async *engine,
		     const struct transaction *one, int error)
{
	struct transaction **at = first, *transaction;

	while ((transaction = *at)) {
		if ((engine && transaction->owner.engine != engine) ||
		    (one && transaction != one)) {
			at = &transaction->next;
			continue;
		}
		*at = transaction->next;
		transaction->next = NULL;
		transaction_finish(port, transaction, error);
	}
	*last = at;
}

static void cancel(struct ibmad_port *port, const struct mad_async *engine,
		   const struct transaction *one, int error)
{
	struct destination *destination, *next;

	/* these first: each that is taken out of the others makes one of these ready */
	for (unsigned i = 0; i < port->destinations.bucket_count; i++)
		for (destination = port->destinations.buckets[i]; destination;
		     destination = next) {
			next = destination->next;
			take_out(port, &destination->parked, &destination->last_parked, engine,
				 one, error);
			destination_put(&port->destinations, destination);
		}
	for (unsigned i = 0; i < PORT_WINDOWS; i++)
		take_out(port, &port->ready[i].first, &port->ready[i].last, engine, one, error);
}

void flow_cancel(struct ibmad_port *port, struct transaction *transaction, int error)
{
	cancel(port, NULL, transaction, error);
}

void flow_cancel_engine(struct ibmad_port *port, const struct mad_async *engine, int error)
{
	cancel(port, engine, NULL, error);
}

void flow_cancel_all(struct ibmad_port *port, int error)
{
	cancel(port, NULL, NULL, error);
	while (port->deadlines.count)
		transaction_finish(port, of_timer(port->deadlines.heap[1]), error);
}
