/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A request's state machine. request_handle() takes an event and changes the phase; the phase
 * says what to do next. No I/O, locks or clock here. request.c has the table of phases and
 * events.
 *
 * The kernel waits for the response to an attempt's first transmission until the attempt ends.
 * The next attempt begins after the kernel has reported the timeout, because only then does it
 * accept the same TID again. A response to an earlier attempt also completes the request.
 *
 * Gets without side effects are also retransmitted within an attempt when the response is late:
 * at most as often as there are attempts, never with a single attempt.
 *
 * While a thread writes a packet or builds the path request, the buffer must not change. Of the
 * events that arrive meanwhile, the most important is kept (cancel, then response, then report)
 * and handled when the thread is done.
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

/* Shared by all requests of a port. */
struct requests {
	struct tids tids;
	struct flow_control flow;
};

enum request_phase {
	REQUEST_QUEUED,          /* until the queue sends it; timer: end of all attempts */
	REQUEST_WRITING,         /* write the packet, then EVENT_WRITTEN */
	REQUEST_WAITING,         /* for a response; timer: the response is late */
	REQUEST_PAUSED,          /* after BUSY, until the timer expires */
	REQUEST_AWAITING_REPORT, /* attempt over; waits for the kernel's timeout report */
	REQUEST_ASKING_PATH,     /* redirect_ask_path(), then EVENT_ASKED */
	REQUEST_DONE,
	REQUEST_PHASES
} __attribute__((packed));

enum request_event_kind {
	EVENT_NONE,
	EVENT_SEND,    /* may be sent now; in no queue */
	EVENT_WRITTEN, /* write done: error is 0 or an errno; ENODEV: device gone */
	EVENT_ASKED,   /* path request built: error is 0 or an errno */
	EVENT_TIMER,
	EVENT_RESPONSE, /* a response to a transmission */
	EVENT_REPORT,   /* the kernel gave up on a transmission */
	EVENT_CANCEL,   /* complete with error */
	REQUEST_EVENTS
} __attribute__((packed));

struct request_event {
	enum request_event_kind kind;
	int error;
	int64_t now;
	struct transmission *transmission; /* RESPONSE, REPORT */
	uint8_t *umad;                     /* RESPONSE: the message */
	int length;                        /* RESPONSE: MAD length, at least 36 bytes */
	bool allocated; /* RESPONSE: the request may keep umad; set to false if it did */
	/* results for REQUEST_WRITING */
	int kernel_ms;          /* how long the kernel must wait for the response */
	unsigned attempts_left; /* 0: the packet does not begin another attempt */
};

/* An event that arrived while a thread was writing. */
struct pending_event {
	int64_t at;
	uint8_t *umad; /* RESPONSE: the message, allocated */
	int length;
	uint16_t error;
	enum request_event_kind kind;
	uint8_t slot; /* of the transmission */
};

/* Where a request is queued (queue.h). */
enum queue_place {
	NOT_QUEUED,
	IN_FLOW,
	RESUMED, /* in its flow, awaited by its lane */
	IN_LANE,
	PAUSING, /* in no list, awaited by its lane */
} __attribute__((packed));

/* The public call behind a request, for messages. */
enum public_call {
	CALL_RPC,
	CALL_RPC_RMPP,
	CALL_RPC_MESSAGE,
	CALL_ASYNC_SUBMIT,
	CALL_SA_SUBMIT,
	PUBLIC_CALLS
} __attribute__((packed));

struct request {
	struct pool_entry entry; /* first; used by engines' requests */
	enum request_phase phase;
	enum queue_place place;
	enum public_call call;
	bool rmpp;       /* the agent uses RMPP */
	uint32_t number; /* queue->numbered at submission */

	/* owner and place in the queue */
	struct source *source;  /* an engine's or the blocking calls' */
	mad_async_fn *callback; /* engines only; NULL once called back */
	void *arg;
	struct flow *flow;
	struct list queue;  /* in one of the queue's lists; once complete, in the engine's */
	struct timer timer; /* of the phase; NEVER: none */

	struct pending_event pending;
	struct transmissions transmissions;
	struct flow_account account;
	struct redirect_state *redirect; /* NULL: never redirected */

	int64_t attempt_end; /* end of the present attempt; 0: the next packet begins one */
	int64_t first_sent;  /* time of the first packet, if any */
	uint32_t ends_ms;    /* from first_sent to the end of all attempts; 0: unknown */
	uint32_t elapsed_ms; /* DONE: from first_sent to the completion */
	uint32_t rtt_us;     /* of the latest response; saturates at UINT32_MAX */
	int timeout_ms;
	uint32_t interval_us; /* before the latest retransmission; BUSY, redirection: 0 */
	int length; /* of the MAD in the buffer: the request's, later the response's */
	uint16_t attempts_left; /* including the present one */
	uint16_t copies_left;   /* retransmissions left within attempts */
	uint8_t pauses;         /* after BUSY */
	bool next_attempt;      /* the next transmission begins an attempt */
	bool repeatable;        /* a Get without side effects */
	uint8_t header_size;    /* of the umad header */

	uint16_t error;    /* DONE: 0 or an errno */
	uint16_t status;   /* of the response */
	uint16_t dataoffs; /* offset of the response's data */
	uint8_t *umad;     /* umad buffer: packet, or allocated if longer */
	_Alignas(8) uint8_t packet[PACKET_SIZE];
};

static inline uint8_t *request_mad(const struct request *request)
{
	return request->umad + request->header_size;
}

static inline bool request_is_large(const struct request *request)
{
	return request->umad != request->packet;
}

static inline struct request *request_of(struct transmission *transmission)
{
	return list_entry(transmissions_of(transmission), struct request, transmissions);
}

/* Whether the buffer holds the response. Failures without a response have no status. */
static inline bool request_has_response(const struct request *request)
{
	return request->phase == REQUEST_DONE && (!request->error || request->status);
}

/* Whether the request is complete, or cancelled but still being written. */
static inline bool request_is_ended(const struct request *request)
{
	return request->phase == REQUEST_DONE || request->pending.kind == EVENT_CANCEL;
}

struct request_settings {
	int agent; /* the class's; -1: not registered */
	bool rmpp; /* the agent uses RMPP */
	unsigned gid_index;
	int timeout_ms; /* per attempt, if the ib_rpc_t has none */
	int attempts;
	bool by_rmpp; /* use RMPP even for single-MAD requests */
};

/*
 * by_rmpp for calls that rdma-core lacks: SubnAdmGetMulti is RMPP in both directions (IBA
 * 15.4.7), and SAs reject it otherwise.
 */
bool request_is_by_rmpp(const ib_rpc_t *rpc);

void requests_init(struct requests *requests);

/* For request_make(): sets the members before "pending". */
static inline void request_init(struct request *request, struct source *source,
				enum public_call call)
{
	request->source = source;
	request->call = call;
	request->place = NOT_QUEUED;
	request->timer = (struct timer){0};
}

/*
 * Makes a QUEUED request with this TID and size bytes of payload at rpc->dataoffs; rmpp may be
 * NULL. Keeps the members before "pending". Returns 0, -EINVAL, -EPROTONOSUPPORT, -EMSGSIZE or
 * -ENOMEM; nothing to free on error.
 */
int request_make(struct request *request, const struct request_settings *settings,
		 const ib_rpc_t *rpc, uint64_t trid, const ib_portid_t *dport,
		 const ib_rmpp_hdr_t *rmpp, const void *payload, size_t size);
/*
 * As request_make(), with the rpc's TID; stores one if it has none. A library-made TID left in
 * the rpc by an earlier call is replaced: those are single-use.
 */
int request_make_with_id(struct request *request, const struct request_settings *settings,
			 ib_rpc_t *rpc, const ib_portid_t *dport, const ib_rmpp_hdr_t *rmpp,
			 const void *payload, size_t size);
/* Frees what the request owns. */
void request_fini(struct request *request);

/* Returns whether phase or timer changed. Events that don't apply to the phase are ignored. */
bool request_handle(struct requests *all, struct request *request, struct request_event *event);

enum response_match {
	RESPONSE_MATCHES,
	RESPONSE_OF_NEAR_LID, /* another LID, maybe of the same port with a larger LMC */
	RESPONSE_OF_ANOTHER,
};

/*
 * Checks a response (length bytes of MAD in umad) with a request's TID and class. A port's LIDs
 * differ in the lowest "lmc" bits.
 */
enum response_match response_match(const struct request *request, const uint8_t *umad,
				   int length, unsigned lmc);

#endif
