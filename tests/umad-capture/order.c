/* SPDX-License-Identifier: BSD-2-Clause */

#include "order.h"

#include <errno.h>
#include <stdlib.h>

/* The capacity is a power of two. */
static struct ordered_packet *place(const struct order *order, size_t number)
{
	return &order->queue[(order->first + number) & (order->room - 1)];
}

static int grow(struct order *order)
{
	size_t room = order->room ? 2 * order->room : 256;
	struct ordered_packet *queue = malloc(room * sizeof(*queue));

	if (!queue)
		return -ENOMEM;
	for (size_t i = 0; i < order->count; i++)
		queue[i] = *place(order, i);
	free(order->queue);
	order->queue = queue;
	order->first = 0;
	order->room = room;
	return 0;
}

int order_put(struct order *order, struct packet_record *record, int64_t now)
{
	int64_t time = (int64_t)((uint64_t)record->seconds * 1000000000U + record->nanoseconds);
	size_t at = order->count;

	if (order->count == order->room && grow(order))
		return -ENOMEM;
	for (; at && time < place(order, at - 1)->time; at--)
		*place(order, at) = *place(order, at - 1);
	*place(order, at) = (struct ordered_packet){record, time, now};
	order->count++;
	order->bytes += record->size;
	return 0;
}

struct packet_record *order_take(struct order *order, int64_t until)
{
	struct packet_record *first;

	if (!order->count || place(order, 0)->arrived > until)
		return NULL;
	first = place(order, 0)->record;
	order->bytes -= first->size;
	order->first++;
	order->count--;
	return first;
}

void order_free(struct order *order)
{
	while (order->count)
		free(order_take(order, INT64_MAX));
	free(order->queue);
	*order = (struct order){0};
}
