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

#include "engine/request.h"

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

/*
 * Where requests are sent to, and what flow control knows of it. A node has a processor for
 * SMPs and one for GMPs, so each is a destination of its own.
 */
struct destination {
	struct flow_path path;
	struct destination *next; /* in its bucket */
	uint64_t key;
	struct list lanes; /* of requests that wait for a place */
	struct list idle;  /* in the list of destinations without users */
	uint32_t served;   /* queue->numbered when a request was last sent to it */
	unsigned users;    /* requests that point here */
};

struct destinations {
	struct destination **buckets;
	unsigned bucket_count; /* 0 or a power of two */
	unsigned count;
	struct list idle; /* destinations without users, the longest unused first */
	unsigned idle_count;
};

/* A limit of MADs per second. */
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

void queue_init(struct queue *queue, struct flow_control *flow);
void queue_free(struct queue *queue);
void source_init(struct source *source, unsigned turn);

/* A new request. Returns true if it is to be sent at once; otherwise it is queued. */
bool queue_submit(struct queue *queue, struct request *request);
/* The request is sent without a turn, whatever the window and its destination permit. */
void queue_bypass(struct queue *queue, struct request *request);
/* Queues a request that is to be sent again, to another destination if it was redirected. */
void queue_again(struct queue *queue, struct request *request);
/*
 * A request pauses after BUSY. Other requests of its flow to the node wait until the pause is
 * over, because they would get the same response; those of other flows do not.
 */
void queue_pause(struct queue *queue, struct request *request);
/* Takes a request out that may be queued or pause. */
void queue_remove(struct queue *queue, struct request *request);
/* After an event of a request, by which its destination may have a place for others. */
void queue_update(struct queue *queue, struct request *request);
/* A request leaves its destination: it is complete, or is sent to another one. */
void queue_leave(struct queue *queue, struct request *request);

/* Whether queue_next() may return a request. */
bool queue_is_ready(const struct queue *queue);
/* When queue_next() may return a request without an event before; NEVER: not at all. */
int64_t queue_opens(const struct queue *queue);
/*
 * Takes out the request that is to be sent next; NULL: none now. It examines *examine requests
 * at most, counts them down, and moves those to lanes whose destinations have no place.
 */
struct request *queue_next(struct queue *queue, unsigned window, unsigned *examine);
/* A packet of the request is about to be written. */
void queue_sent(struct queue *queue, struct request *request, int64_t now);

/* At most "limit" requests are in flight to a destination; 0: adaptive. */
void queue_set_limit(struct queue *queue, unsigned limit);
/* Moves all requests that are queued to a list. */
void queue_drain(struct queue *queue, struct list *drained);
/* Frees memory that remains after many requests. */
void queue_shrink(struct queue *queue);

#endif
