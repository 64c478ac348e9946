/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * One request, from its first event to its last. A request is in a phase; request_handle()
 * takes an event and changes the phase, and the phase tells what is to be done next. No
 * function does I/O, takes a lock or reads the clock. request.c has the table of phases and
 * events.
 *
 * The kernel waits for the response to the first transmission of an attempt as long as the
 * attempt lasts. The next attempt begins after the kernel has reported the timeout, because
 * only then it accepts the same transaction ID again. A response to an earlier attempt
 * completes the request.
 *
 * A Get of a class whose Gets change nothing is also retransmitted within an attempt when its
 * response is late: at most as often as there are attempts, and never if there is one attempt.
 *
 * While a thread writes a packet or makes the request for a path, the buffer must not change.
 * Of the events that come meanwhile the most important one is kept: a cancel, otherwise a
 * response, otherwise a report. It takes effect when the thread is ready.
 */
#ifndef LIBIBMAD_REQUEST_H
#define LIBIBMAD_REQUEST_H

#include "base/list.h"
#include "engine/pool.h"
#include "engine/redirect.h"
#include "engine/tids.h"
#include "engine/timers.h"
#include "flow/flow.h"
#include "mad/packet.h"

#include <infiniband/mad_async.h>
#include <stddef.h>

/* What all requests of a port share. */
struct requests {
	struct tids tids;
	struct flow_control flow;
};

enum request_phase {
	REQUEST_QUEUED,  /* is to be sent when the queue permits it; the timer: its time is over
			  */
	REQUEST_WRITING, /* write the packet, then EVENT_WRITTEN */
	REQUEST_WAITING, /* for a response; the timer: the response is late */
	REQUEST_PAUSED,  /* after BUSY, until the timer is due */
	REQUEST_AWAITING_REPORT, /* the attempt is over; the kernel is to report the timeout */
	REQUEST_ASKING_PATH,     /* redirect_ask_path(), then EVENT_ASKED */
	REQUEST_DONE,
	REQUEST_PHASES
} __attribute__((packed));

enum request_event_kind {
	EVENT_NONE,
	EVENT_SEND,     /* the request may be sent now; it is in no queue */
	EVENT_WRITTEN,  /* the write has returned: error is 0, or an errno; ENODEV: no device */
	EVENT_ASKED,    /* the request for a path is made: error is 0, or an errno */
	EVENT_TIMER,    /* the timer is due */
	EVENT_RESPONSE, /* a response to a transmission has come */
	EVENT_REPORT,   /* the kernel gave a transmission up */
	EVENT_CANCEL,   /* the request is to complete with error */
	REQUEST_EVENTS
} __attribute__((packed));

struct request_event {
	enum request_event_kind kind;
	int error;
	int64_t now;
	struct transmission *transmission; /* RESPONSE, REPORT */
	uint8_t *umad;                     /* RESPONSE: the message */
	int length;                        /* RESPONSE: of the MAD, 36 bytes at least */
	bool allocated; /* RESPONSE: the request may keep umad. Result: false if it did */
	/* results for REQUEST_WRITING */
	int kernel_ms;          /* how long the kernel is to wait for the response */
	unsigned attempts_left; /* 0: the packet does not begin another attempt */
};

/* An event that came while a thread was writing. */
struct pending_event {
	int64_t at;
	uint8_t *umad; /* RESPONSE: the message, allocated */
	int length;
	uint16_t error;
	enum request_event_kind kind;
	uint8_t slot; /* of the transmission */
};

/* Where a request is queued: see queue.h. */
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

struct request {
	struct pool_entry entry; /* first; of an engine's request */
	enum request_phase phase;
	enum queue_place place;
	enum public_call call;
	bool rmpp;       /* the agent has RMPP */
	uint32_t number; /* queue->numbered when it was submitted */

	/* whose it is, and its place in the queue */
	struct source *source;  /* an engine's, or that of the blocking calls */
	mad_async_fn *callback; /* of an engine's; NULL: it was called back */
	void *arg;
	struct flow *flow;  /* the flow of the source */
	struct list queue;  /* in a list of the queue; when complete, in the engine's */
	struct timer timer; /* the time of the phase; NEVER: it has none */

	struct pending_event pending;
	struct transmissions transmissions;
	struct flow_account account;
	struct redirect_state *redirect; /* NULL: the request was never redirected */

	int64_t attempt_end; /* of the present attempt; 0: the next packet begins one */
	int64_t first_sent;  /* when the first packet was sent; valid if there was one */
	uint32_t ends_ms;    /* from first_sent to the end of all attempts; 0: not known */
	uint32_t elapsed_ms; /* DONE: from first_sent to the completion */
	uint32_t rtt_us;     /* of the latest response; UINT32_MAX: this or longer */
	int timeout_ms;
	uint32_t interval_us; /* before the latest retransmission; BUSY, redirection: 0 */
	int length;           /* of the MAD in the buffer: the request's, then the response's */
	uint16_t attempts_left; /* the present one included */
	uint16_t copies_left;   /* retransmissions that may still be sent within attempts */
	uint8_t pauses;         /* after BUSY */
	bool next_attempt;      /* the next transmission begins another attempt */
	bool repeatable;        /* a Get that changes nothing */
	uint8_t header_size;    /* of the umad header */

	uint16_t error;    /* DONE: 0 or an errno */
	uint16_t status;   /* of the response */
	uint16_t dataoffs; /* where the response's data begins */
	uint8_t *umad;     /* the umad buffer: packet, or allocated if it is longer */
	_Alignas(8) uint8_t packet[PACKET_SIZE];
};

/* The MAD in the umad buffer. */
static inline uint8_t *request_mad(const struct request *request)
{
	return request->umad + request->header_size;
}

/* Whether the umad buffer was allocated. */
static inline bool request_is_large(const struct request *request)
{
	return request->umad != request->packet;
}

static inline struct request *request_of(struct transmission *transmission)
{
	return list_entry(transmissions_of(transmission), struct request, transmissions);
}

/* Whether the buffer has the response. A failure without a response has no status. */
static inline bool request_has_response(const struct request *request)
{
	return request->phase == REQUEST_DONE && (!request->error || request->status);
}

/* Whether the request is complete, or is cancelled as soon as a thread has written it. */
static inline bool request_is_ended(const struct request *request)
{
	return request->phase == REQUEST_DONE || request->pending.kind == EVENT_CANCEL;
}

/* The settings of one request. */
struct request_settings {
	int agent; /* of the class; -1: none is registered */
	bool rmpp; /* the agent has RMPP */
	unsigned gid_index;
	int timeout_ms; /* of an attempt, if the ib_rpc_t has none */
	int attempts;
	bool by_rmpp; /* RMPP carries even a request of one MAD */
};

/*
 * The value of by_rmpp for calls that rdma-core does not have: SubnAdmGetMulti is an RMPP
 * transfer in both directions (IBA 15.4.7), and an SA refuses a request without RMPP.
 */
bool request_is_by_rmpp(const ib_rpc_t *rpc);

void requests_init(struct requests *requests);

/* The members before "pending", for request_make(). */
static inline void request_init(struct request *request, struct source *source,
				enum public_call call)
{
	request->source = source;
	request->call = call;
	request->place = NOT_QUEUED;
	request->timer = (struct timer){0};
}

/*
 * Makes a request that is QUEUED, with this transaction ID, and size bytes of payload at
 * rpc->dataoffs; rmpp may be NULL. The members before "pending" keep their values. Returns 0,
 * -EINVAL, -EPROTONOSUPPORT, -EMSGSIZE or -ENOMEM. After an error nothing is to be freed.
 */
int request_make(struct request *request, const struct request_settings *settings,
		 const ib_rpc_t *rpc, uint64_t trid, const ib_portid_t *dport,
		 const ib_rmpp_hdr_t *rmpp, const void *payload, size_t size);
/*
 * The same with the transaction ID of the rpc, which gets one if it has none. An ID that the
 * library made is for one request: if an earlier call stored it in the rpc, the request has a
 * new one.
 */
int request_make_with_id(struct request *request, const struct request_settings *settings,
			 ib_rpc_t *rpc, const ib_portid_t *dport, const ib_rmpp_hdr_t *rmpp,
			 const void *payload, size_t size);
/* Frees what belongs to the request. */
void request_fini(struct request *request);

/*
 * Handles an event. Returns whether the request has a new phase or a new timer; an event that
 * does not concern the phase changes nothing.
 */
bool request_handle(struct requests *all, struct request *request, struct request_event *event);

enum response_match {
	RESPONSE_MATCHES,
	RESPONSE_OF_NEAR_LID, /* from another LID, which may be of the same port with a larger
				 LMC */
	RESPONSE_OF_ANOTHER,
};

/*
 * Whether a response with the ID and the class of a request is the response to it: "length"
 * bytes of MAD in a umad buffer. The LIDs of a port differ in the lowest "lmc" bits.
 */
enum response_match response_match(const struct request *request, const uint8_t *umad,
				   int length, unsigned lmc);

#endif
