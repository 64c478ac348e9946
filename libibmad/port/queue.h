/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Which request is sent next. A port's requests come from sources: each engine is one, and the
 * blocking calls are one. A source has a flow for SMPs, for the SA, for PerfMgt and for other
 * classes. The flows of a window take turns, so that a request does not wait for all those of
 * others that were queued before. In its turn, an engine sends some requests, and the blocking
 * calls send one: a thread that waits for a single response costs far more processor time than
 * a request of an engine.
 *
 * Within a flow, retransmissions come first. A request whose destination has no place for it
 * waits there, in a lane of its flow, and the lanes of a destination take turns. When there is
 * a place, the request is resumed: it waits in its flow again. A request whose destination has
 * had its turn since the request was queued waits there, too. Requests that are resumed, those
 * of them whose node is far quicker than others, and those that were not looked at yet take
 * turns: many requests to a slow node delay no request to another node for long.
 *
 * The functions send nothing: queue_next() returns the request that its caller sends.
 */
#ifndef LIBIBMAD_QUEUE_H
#define LIBIBMAD_QUEUE_H

#include "base/list.h"
#include "port/destinations.h"
#include "port/timers.h"
#include "request/request.h"

#include <infiniband/mad_async.h>

/* The flows of a source. */
enum flow_kind {
	FLOW_SMP,
	FLOW_SA,
	FLOW_PERF,
	FLOW_OTHER,
	FLOWS
};

/* The lists of a flow. */
enum flow_list {
	LIST_FRESH,         /* requests that were not looked at yet */
	LIST_RESUMED,       /* their destination has a place for them */
	LIST_QUICK,         /* the same, and the destination is quick */
	TURNS,              /* the lists above take turns */
	LIST_AGAIN = TURNS, /* requests to be sent again: they come first */
	LISTS
};

struct flow {
	struct list turn; /* in the ring of its window, if a request is in a list below */
	struct list lists[LISTS];
	unsigned next; /* of the lists that take turns */
	unsigned left; /* requests that the flow may still send in this turn */
};

struct source {
	struct flow flows[FLOWS];
	unsigned turn; /* the requests that a flow sends in a turn */
};

/* Where a request is queued. */
enum queue_place {
	NOT_QUEUED,
	IN_FLOW,
	RESUMED, /* IN_FLOW, and its lane waits for it */
	IN_LANE,
	PAUSING, /* in no list, and its lane waits for it */
};

/* Who made a request: a thread that waits, or an engine. */
struct owner {
	struct source *source;
	const struct owner_ops *ops; /* port.h */
};

/* A request on a port. */
struct port_request {
	struct owner *owner;
	enum queue_place place;
	uint32_t number;                 /* counts the requests that were queued */
	struct list entry;               /* in a list here, or in the owner's when complete */
	struct timer timer;              /* of an engine's request */
	struct destination *destination; /* NULL: not known */
	struct request request;
};

/* No more than "rate" MADs a second. They may come in bursts of a millisecond. */
#define PACE_BURST_NS 1000000

struct pace {
	unsigned rate;   /* 0: no limit */
	int64_t next_ns; /* when the next MAD would be due if all came at equal intervals */
};

struct queue {
	struct flow_control *flow;
	struct pace pace;
	struct list rings[FLOW_WINDOWS]; /* of flows in whose turn a request is sent */
	unsigned turn;                   /* the window whose requests are sent first */
	struct destinations destinations;
	struct list spare_lanes; /* not in use */
	uint32_t numbered;       /* counts the requests that were queued */
};

/* A request of an owner; request_init() makes its request. */
static inline void port_request_init(struct port_request *request, struct owner *owner)
{
	request->owner = owner;
	request->place = NOT_QUEUED;
	request->timer = (struct timer){0};
	request->destination = NULL;
}

void queue_init(struct queue *queue, struct flow_control *flow);
void queue_free(struct queue *queue);
void source_init(struct source *source, unsigned turn);

/* A new request: whether it is to be sent at once; otherwise it is queued. */
bool queue_submit(struct queue *queue, struct port_request *request);
/* A request is to be sent again; to another destination if "readdressed". */
void queue_again(struct queue *queue, struct port_request *request, bool readdressed);
/*
 * A request pauses after BUSY. Other requests of its flow to the node wait until the pause is
 * over, because they would get the same response; those of other flows do not.
 */
void queue_pause(struct queue *queue, struct port_request *request);
/* Takes a request out, which is queued or pauses. */
void queue_take_out(struct queue *queue, struct port_request *request);
/* A request is complete, or has another destination from now on. */
void queue_leave(struct queue *queue, struct port_request *request);
/* If there is a place at a destination, requests that wait there may be sent. */
void queue_release(struct queue *queue, struct destination *destination);

/* Takes a request out, if it is queued or pauses. */
static inline void queue_remove(struct queue *queue, struct port_request *request)
{
	if (request->place != NOT_QUEUED)
		queue_take_out(queue, request);
}

/* After an event of a request: another one may have a place at the destination. */
static inline void queue_update(struct queue *queue, struct port_request *request)
{
	struct destination *destination = request->destination;

	if (destination && !list_is_empty(&destination->lanes))
		queue_release(queue, destination);
}

/* The time before which no MAD may be sent by a window, if it has room; 0: none. */
static inline int64_t queue_opens_at(const struct queue *queue, unsigned window)
{
	int64_t at = flow_opens(queue->flow, window), paced;

	if (!queue->pace.rate)
		return at;
	paced = (queue->pace.next_ns - PACE_BURST_NS + 999) / 1000;
	return paced > at ? paced : at;
}

/* Whether a window has room, and its time has come. */
static inline bool queue_is_open(const struct queue *queue, unsigned window)
{
	int64_t at;

	if (!flow_has_room(queue->flow, window))
		return false;
	at = queue_opens_at(queue, window);
	return !at || at <= clock_us();
}

/* Whether queue_next() may return a request of the window. */
static inline bool queue_is_window_ready(const struct queue *queue, unsigned window)
{
	return !list_is_empty(&queue->rings[window]) && queue_is_open(queue, window);
}

/* Whether queue_next() may return a request. */
static inline bool queue_is_ready(const struct queue *queue)
{
	for (unsigned i = 0; i < FLOW_WINDOWS; i++)
		if (queue_is_window_ready(queue, i))
			return true;
	return false;
}

/* When it may return one without any event before; NEVER: not at all. */
int64_t queue_opens(const struct queue *queue);
/*
 * The request of a window that is to be sent next, which leaves the queue; NULL: none now. It
 * also moves requests to their destinations, at most as often as *looks, which it counts down.
 */
struct port_request *queue_next(struct queue *queue, unsigned window, unsigned *looks);
/* A packet of the request is written. */
void queue_sent(struct queue *queue, struct port_request *request, int64_t now);

/* At most "limit" requests are in flight to a destination; 0: adaptive. */
void queue_set_limit(struct queue *queue, unsigned limit);
/* Moves all requests that are queued to a list. */
void queue_drain(struct queue *queue, struct list *drained);
/* Frees memory after many requests. */
void queue_shrink(struct queue *queue);

#endif
