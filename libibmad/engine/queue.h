/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Decides which request is sent next. Requests come from sources: each engine is one, all
 * blocking calls together are one. A source has four flows: SMPs, SA, PerfMgt, other classes.
 * (A flow is a queue; flow control is in flow/.) The flows of a window take turns, so that no
 * request waits for everything queued before it in other flows. Per turn, an engine's flow
 * sends several requests and the blocking calls' flow one: a thread per response costs far more
 * CPU than an engine's request.
 *
 * A destination is full when its limit of requests is in flight. Further requests wait in
 * lanes, one for each flow to that destination; so do new requests if a later one was already
 * sent there. When a place is free, each lane's first request is resumed, i.e. returns to its
 * flow. Lanes take turns.
 *
 * Within a flow, retransmissions come first; then new requests, resumed ones, and resumed ones
 * to quick destinations take turns. So many requests to a slow node don't delay others for
 * long.
 *
 * Nothing here sends: queue_next() returns the request to send.
 */
#ifndef LIBIBMAD_QUEUE_H
#define LIBIBMAD_QUEUE_H

#include "engine/request.h"

enum flow_kind {
	FLOW_SMP,
	FLOW_SA,
	FLOW_PERF,
	FLOW_OTHER,
	FLOWS
};

enum flow_list {
	LIST_FRESH, /* requests not examined yet */
	LIST_RESUMED,
	LIST_QUICK,         /* resumed requests to quick destinations */
	TURNS,              /* number of lists above, which take turns */
	LIST_AGAIN = TURNS, /* retransmissions: always first */
	LISTS
};

struct flow {
	struct list turn; /* in its window's ring, unless all lists are empty */
	struct list lists[LISTS];
	unsigned count; /* in all lists */
	unsigned next;  /* list whose turn is next */
	unsigned left;  /* requests left in this turn */
};

struct source {
	struct flow flows[FLOWS];
	unsigned turn; /* requests per turn of a flow */
};

/*
 * A destination and its flow-control state. A node has separate processors for SMPs and GMPs,
 * hence separate destinations.
 */
struct destination {
	struct flow_path path;
	struct destination *next; /* in its bucket */
	uint64_t key;
	struct list lanes; /* requests waiting for a place */
	struct list idle;  /* in the list of unused destinations */
	uint32_t served;   /* queue->numbered when a request was last sent here */
	unsigned users;    /* requests that point here */
};

struct destinations {
	struct destination **buckets;
	unsigned bucket_count; /* 0 or a power of two */
	unsigned count;
	struct list idle; /* unused destinations, longest unused first */
	unsigned idle_count;
};

/* Limit in MADs per second. */
struct pace {
	unsigned rate;   /* 0: no limit */
	int64_t next_ns; /* due time of the next MAD at equal intervals */
};

struct queue {
	struct flow_control *flow;
	struct pace pace;
	struct list rings[FLOW_WINDOWS]; /* flows with requests, by window */
	unsigned turn;                   /* the window served first */
	struct destinations destinations;
	struct list spare_lanes;
	uint32_t numbered; /* counts submitted requests */
};

void queue_init(struct queue *queue, struct flow_control *flow);
void queue_free(struct queue *queue);
void source_init(struct source *source, unsigned turn);

/* Returns true if the new request is to be sent at once; otherwise it is queued. */
bool queue_submit(struct queue *queue, struct request *request);
/* Sends without a turn, regardless of window and destination limit. */
void queue_bypass(struct queue *queue, struct request *request);
/* Queues a retransmission, possibly to another destination after a redirection. */
void queue_again(struct queue *queue, struct request *request);
/*
 * Pauses a request after BUSY. Its flow's other requests to the node wait as well, since they
 * would also get BUSY; other flows don't.
 */
void queue_pause(struct queue *queue, struct request *request);
/* Removes a request, which may be queued or pausing. */
void queue_remove(struct queue *queue, struct request *request);
/* Call after a request's event: its destination may have a place for others now. */
void queue_update(struct queue *queue, struct request *request);
/* Call when a request leaves its destination: it completed or was redirected. */
void queue_leave(struct queue *queue, struct request *request);

bool queue_is_ready(const struct queue *queue);
/*
 * Earliest time at which queue_next() may return a request without a further event; NEVER:
 * none.
 */
int64_t queue_opens(const struct queue *queue);
/*
 * Removes and returns the next request to send; NULL: none now. Examines at most *examine
 * requests, decrementing it, and moves those whose destination is full to lanes.
 */
struct request *queue_next(struct queue *queue, unsigned window, unsigned *examine);
/* Call just before writing a packet. */
void queue_sent(struct queue *queue, struct request *request, int64_t now);

/* Maximum requests in flight per destination; 0: adaptive. */
void queue_set_limit(struct queue *queue, unsigned limit);
/* Moves all queued requests to a list. */
void queue_drain(struct queue *queue, struct list *drained);
/* Frees memory left over from a burst of requests. */
void queue_shrink(struct queue *queue);

#endif
