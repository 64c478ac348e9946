/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Which request is sent next. A port's requests come from sources: each engine is one, and all
 * blocking calls are one. A source has four flows: for SMPs, for the SA, for PerfMgt and for
 * other classes. (A flow is a queue; flow control is in flow/.) The flows of a window take
 * turns, so that a request does not wait for all requests of other flows that were queued
 * before it. In its turn, a flow of an engine sends several requests, and a flow of the
 * blocking calls sends one: a thread that waits for a single response costs far more processor
 * time than a request of an engine.
 *
 * A destination may have no place for a request: as many requests are in flight to it as its
 * limit permits. Then the request waits in a lane: the requests of one flow to one destination.
 * So does a new request if a later one was sent to its destination. When the destination has a
 * place, the first request of each lane is resumed: it returns to its flow. The lanes of a
 * destination take turns.
 *
 * Within a flow, retransmissions come first. Then three lists take turns: new requests, resumed
 * requests, and resumed requests to quick destinations. So many requests to a slow node do not
 * delay a request to another node for long.
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
	LIST_RESUMED,       /* requests that were resumed */
	LIST_QUICK,         /* requests that were resumed, to quick destinations */
	TURNS,              /* the number of lists that take turns: those above */
	LIST_AGAIN = TURNS, /* retransmissions: they come first */
	LISTS
};

struct flow {
	struct list turn; /* in the ring of its window, unless all lists are empty */
	struct list lists[LISTS];
	unsigned count; /* requests in all lists */
	unsigned next;  /* the list that has the next turn */
	unsigned left;  /* requests that the flow may still send in this turn */
};

struct source {
	struct flow flows[FLOWS];
	unsigned turn; /* the number of requests that a flow sends in a turn */
};

/* Where a request is queued. */
enum queue_place {
	NOT_QUEUED,
	IN_FLOW,
	RESUMED, /* in its flow, and its lane waits for it */
	IN_LANE,
	PAUSING, /* in no list, and its lane waits for it */
} __attribute__((packed));

/* The public call that made a request, for messages. */
enum public_call {
	CALL_RPC,
	CALL_RPC_RMPP,
	CALL_RPC_MESSAGE,
	CALL_ASYNC_SUBMIT,
	CALL_SA_SUBMIT,
	PUBLIC_CALLS
} __attribute__((packed));

extern __attribute__((visibility("hidden"))) const char *const public_call_names[PUBLIC_CALLS];

/* Who made a request: a thread that waits, or an engine. */
struct owner {
	struct source *source;
	const struct owner_ops *ops; /* port.h */
};

/* A request on a port. */
struct port_request {
	struct owner *owner;
	struct flow *flow; /* set when it is submitted */
	enum queue_place place;
	enum public_call call;
	uint32_t number;    /* queue->numbered when it was submitted */
	struct list entry;  /* in a list of the queue; when complete, in one of the owner */
	struct timer timer; /* of an engine's request */
	struct request request;
};

static inline struct port_request *port_request_of(struct request *request)
{
	return list_entry(request, struct port_request, request);
}

/* The destination, which has the path of the account; NULL: not known. */
static inline struct destination *destination_of(const struct port_request *request)
{
	struct flow_path *path = request->request.account.path;

	return path ? list_entry(path, struct destination, path) : NULL;
}

/* A limit of MADs per second. MADs may be sent this much earlier than at equal intervals. */
#define PACE_BURST_NS 1000000

struct pace {
	unsigned rate;   /* 0: no limit */
	int64_t next_ns; /* when the next MAD would be due at equal intervals */
};

struct queue {
	struct flow_control *flow;
	struct pace pace;
	struct list rings[FLOW_WINDOWS]; /* the flows of a window that have requests */
	unsigned turn;                   /* the window whose requests are sent first */
	struct destinations destinations;
	struct list spare_lanes; /* not in use */
	uint32_t numbered;       /* counts the requests that were submitted */
};

/* Initializes all except request->request, which request_init() does. */
static inline void port_request_init(struct port_request *request, struct owner *owner,
				     enum public_call call)
{
	request->owner = owner;
	request->call = call;
	request->place = NOT_QUEUED;
	request->timer = (struct timer){0};
}

void queue_init(struct queue *queue, struct flow_control *flow);
void queue_free(struct queue *queue);
void source_init(struct source *source, unsigned turn);

/* A new request. Returns true if it is to be sent at once; otherwise it is queued. */
bool queue_submit(struct queue *queue, struct port_request *request);
/* The request is sent without a turn, whatever the window and its destination permit. */
void queue_bypass(struct queue *queue, struct port_request *request);
/* Queues a request that is to be sent again; "readdressed": to another destination. */
void queue_again(struct queue *queue, struct port_request *request, bool readdressed);
/*
 * A request pauses after BUSY. Other requests of its flow to the node wait until the pause is
 * over, because they would get the same response; those of other flows do not.
 */
void queue_pause(struct queue *queue, struct port_request *request);
/* Takes a request out that is queued or pauses. */
void queue_take_out(struct queue *queue, struct port_request *request);
/* If the destination has a place, resumes the first request of each lane. */
void queue_release(struct queue *queue, struct destination *destination);

/* The same for a request that may be in no list. */
static inline void queue_remove(struct queue *queue, struct port_request *request)
{
	if (request->place != NOT_QUEUED)
		queue_take_out(queue, request);
}

/* queue_release() after an event of a request, by which its destination may have a place. */
static inline void queue_update(struct queue *queue, struct port_request *request)
{
	struct destination *destination = destination_of(request);

	if (destination && !list_is_empty(&destination->lanes))
		queue_release(queue, destination);
}

/* A request leaves its destination: it is complete, or is sent to another one. */
static inline void queue_leave(struct queue *queue, struct port_request *request)
{
	struct destination *destination = destination_of(request);

	if (!destination)
		return;
	queue_update(queue, request);
	request->request.account.path = NULL;
	destination_put(&queue->destinations, destination);
}

/* The time before which a window with room may send no MAD; 0: none. */
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

/* Whether a new request of the window may be sent at once. */
static inline bool queue_is_free(const struct queue *queue, unsigned window)
{
	return list_is_empty(&queue->rings[window]) && queue_is_open(queue, window);
}

/* Whether queue_next() may return a request of the window. */
static inline bool queue_is_window_ready(const struct queue *queue, unsigned window)
{
	return !list_is_empty(&queue->rings[window]) && queue_is_open(queue, window);
}

/* Whether queue_next() may return a request. */
static inline bool queue_is_ready(const struct queue *queue)
{
	return queue_is_window_ready(queue, MAD_WINDOW_SMP) ||
	       queue_is_window_ready(queue, MAD_WINDOW_GMP);
}

/* When queue_next() may return a request without an event before; NEVER: not at all. */
int64_t queue_opens(const struct queue *queue);
/*
 * Takes out the request of a window that is to be sent next; NULL: none now. It looks at *looks
 * requests at most, counts them down, and moves those to lanes whose destinations have no
 * place.
 */
struct port_request *queue_next(struct queue *queue, unsigned window, unsigned *looks);
/* Counts a packet for the limit of MADs per second. */
void queue_count(struct queue *queue, int64_t now);

/* A packet of the request is about to be written. */
static inline void queue_sent(struct queue *queue, struct port_request *request, int64_t now)
{
	struct destination *destination = destination_of(request);

	if (destination)
		destination->served = queue->numbered;
	if (queue->pace.rate)
		queue_count(queue, now);
}

/* At most "limit" requests are in flight to a destination; 0: adaptive. */
void queue_set_limit(struct queue *queue, unsigned limit);
/* Moves all requests that are queued to a list. */
void queue_drain(struct queue *queue, struct list *drained);
/* Frees memory that remains after many requests. */
void queue_shrink(struct queue *queue);

#endif
