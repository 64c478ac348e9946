/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * One request, from its creation to its completion. A request is in a phase; an event changes
 * the phase and tells what is to be done. The functions do no I/O, take no lock and do not read
 * the clock. phases.c has the table of phases and events.
 *
 * The kernel waits for the response to the first transmission of an attempt as long as the
 * attempt lasts. The next attempt begins after the kernel has reported the timeout, because
 * only then the kernel accepts the same transaction ID again. A response to an earlier attempt
 * completes the request.
 *
 * A Get of a class whose Gets change nothing is retransmitted within an attempt, too, when its
 * response is late: at most as often as there are attempts, and never if there is one attempt.
 *
 * While a thread writes a packet or makes the request for a path, the buffer must not change.
 * If other events come meanwhile, the most important one is kept: a cancel, otherwise a
 * response, otherwise a report. It takes effect when the thread is ready.
 */
#ifndef LIBIBMAD_REQUEST_H
#define LIBIBMAD_REQUEST_H

#include "flow/flow.h"
#include "mad/packet.h"
#include "request/redirect.h"
#include "request/tids.h"

#include <limits.h>
#include <stddef.h>

/* The state that all requests of a port share. */
struct requests {
	struct tids tids;
	struct flow_control flow;
};

enum request_phase {
	REQUEST_QUEUED,          /* is to be sent when the queue permits it, before its end */
	REQUEST_WRITING,         /* a thread writes the packet */
	REQUEST_WAITING,         /* for a response; the timer: the response is late */
	REQUEST_PAUSED,          /* after BUSY, until the timer is due */
	REQUEST_AWAITING_REPORT, /* the attempt is over; the kernel is to report the timeout */
	REQUEST_ASKING_PATH,     /* a thread makes the request for the path of a redirection */
	REQUEST_DONE,            /* complete */
	REQUEST_PHASES
};

enum request_event_kind {
	EVENT_NONE,
	EVENT_SEND,     /* the request may be sent now */
	EVENT_WRITTEN,  /* the write has returned: error is 0, or an errno; ENODEV: no device */
	EVENT_ASKED,    /* the request for a path is made: error is 0, or an errno */
	EVENT_TIMER,    /* the timer is due */
	EVENT_RESPONSE, /* a response to a transmission has come */
	EVENT_REPORT,   /* the kernel gave a transmission up */
	EVENT_CANCEL,   /* the request is to complete with error */
	REQUEST_EVENTS
};

struct request_event {
	enum request_event_kind kind;
	int error;
	int64_t now;
	struct transmission *transmission; /* RESPONSE, REPORT */
	uint8_t *umad;                     /* RESPONSE: the message */
	int length;                        /* RESPONSE: of the MAD, 36 bytes at least */
	bool allocated; /* RESPONSE: the request may keep umad. Result: false if it did */
	/* results for ACTION_WRITE */
	int kernel_ms;          /* how long the kernel is to wait for the response */
	unsigned attempts_left; /* 0: the packet does not begin another attempt */
};

/* The result of an event: what the caller does next. */
enum request_action {
	ACTION_NONE,      /* nothing: another event will come */
	ACTION_SET_TIMER, /* EVENT_TIMER is to come at timer_at */
	ACTION_QUEUE,     /* the request is QUEUED again */
	ACTION_READDRESS, /* the request is QUEUED again, for another destination */
	ACTION_WRITE,     /* write the buffer, then EVENT_WRITTEN */
	ACTION_ASK_PATH,  /* redirect_ask_path(), then EVENT_ASKED */
	ACTION_COMPLETE,  /* the request is DONE */
};

/* An event that came while a thread was writing. */
struct pending_event {
	int64_t at;
	uint8_t *umad; /* RESPONSE: the message, allocated */
	int length;
	uint16_t error;
	uint8_t kind;
	uint8_t slot; /* of the transmission */
};

struct request {
	enum request_phase phase;
	int length; /* of the MAD in the buffer: the request's, then the response's */
	struct pending_event pending;
	struct transmissions transmissions;
	struct flow_account account;
	struct redirect_state *redirect; /* NULL: the request was never redirected */

	int64_t timer_at;
	int64_t attempt_end; /* valid if in_attempt */
	int64_t first_sent;  /* when the first packet was sent; valid if there was one */
	union {
		uint32_t ends_ms; /* from first_sent to the end of all attempts; 0: not known */
		uint32_t elapsed_ms; /* DONE: from first_sent to the completion */
	};
	uint32_t rtt_us; /* of the latest response; UINT32_MAX: this or longer */
	int timeout_ms;
	uint32_t interval_us;   /* before the latest retransmission; BUSY, redirection: 0 */
	uint16_t attempts_left; /* the present one included */
	uint16_t copies_left;   /* retransmissions that may still be sent within attempts */
	uint8_t pauses;         /* after BUSY */
	bool in_attempt;
	bool next_attempt;   /* the next transmission begins another attempt */
	bool repeatable;     /* a Get that changes nothing */
	bool rmpp;           /* the agent has RMPP */
	uint8_t header_size; /* of the umad header */

	uint16_t error;    /* DONE: 0 or an errno */
	uint16_t status;   /* of the response */
	uint16_t dataoffs; /* where the response's data begins */
	uint8_t *umad;     /* the umad buffer: packet, or allocated if it is longer */
	_Alignas(8) uint8_t packet[PACKET_SIZE];
};

/* The umad buffer: of the request, then of the response. */
static inline uint8_t *request_buffer(const struct request *request)
{
	return request->umad;
}

/* The MAD in the umad buffer. */
static inline uint8_t *request_mad(const struct request *request)
{
	return request_buffer(request) + request->header_size;
}

/* Whether the umad buffer was allocated. */
static inline bool request_is_large(const struct request *request)
{
	return request->umad != request->packet;
}

static inline struct request *request_of(struct transmission *transmission)
{
	return (struct request *)(void *)((char *)transmissions_of(transmission) -
					  offsetof(struct request, transmissions));
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
static inline bool request_is_by_rmpp(const ib_rpc_t *rpc)
{
	return (rpc->mgtclass & 0xff) == IB_SA_CLASS && rpc->method == IB_MAD_METHOD_GETMULTI;
}

void requests_init(struct requests *requests);

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

/* Frees what belongs to the request. */
void request_free(struct request *request);

/* The same, without a call for most requests, which have nothing to free. */
static inline void request_fini(struct request *request)
{
	if (request->pending.umad || request->redirect || request_is_large(request))
		request_free(request);
}

/* For the handlers: the request is complete, with 0 or an errno. */
enum request_action request_finish(struct requests *all, struct request *request, int error,
				   int64_t now);
/* Forgets the pending event. */
void request_drop_pending(struct request *request);

/* Allocates the buffer of a request that RMPP carries. 0, -EMSGSIZE or -ENOMEM. */
int request_allocate(struct request *request, bool rmpp, size_t size);

/* Sets what depends on the class and on the settings. */
static INLINE void request_set_attempts(struct request *request,
					const struct request_settings *settings, int mgmt_class,
					int method, int timeout_ms, bool large)
{
	int attempts = settings->attempts < UINT16_MAX ? settings->attempts : UINT16_MAX;

	request->timeout_ms = timeout_ms ? timeout_ms : settings->timeout_ms;
	if (request->timeout_ms < 0)
		request->timeout_ms = INT_MAX / 2;
	request->attempts_left = (uint16_t)attempts;
	request->timer_at = INT64_MAX;
	request->account.smp = is_smp_class(mgmt_class);
	request->account.sa = mgmt_class == IB_SA_CLASS;
	/* the Gets of these classes change nothing: a retransmission does no harm */
	request->repeatable = !large && method == IB_MAD_METHOD_GET &&
			      (request->account.smp || request->account.sa ||
			       mgmt_class == IB_PERFORMANCE_CLASS || mgmt_class == IB_CC_CLASS);
	if (request->repeatable && attempts > 1)
		request->copies_left = (uint16_t)attempts;
}

/*
 * Makes a request that is QUEUED, with this transaction ID, and size bytes of payload at
 * rpc->dataoffs; rmpp may be NULL. Returns 0, -EINVAL, -EPROTONOSUPPORT, -EMSGSIZE or -ENOMEM.
 * After an error nothing is to be freed. It is inlined, because it mainly stores its arguments.
 */
static INLINE int request_make(struct request *request, const struct request_settings *settings,
			       const ib_rpc_t *rpc, uint64_t trid, const ib_portid_t *dport,
			       const ib_rmpp_hdr_t *rmpp, const void *payload, size_t size)
{
	size_t header_size = umad_size();
	int mgmt_class = rpc->mgtclass & 0xff, ret;
	struct ib_user_mad *header;
	uint8_t *umad = request->packet, *mad;
	bool large = false;

	/* zeros: the bytes of the packet that are used, a header and a MAD */
	memset(request, 0, offsetof(struct request, packet) + header_size + IB_MAD_SIZE);
	request->umad = umad;
	if (!dport || rpc->dataoffs < 0 || rpc->dataoffs > IB_MAD_SIZE)
		return -EINVAL;
	if (settings->agent < 0)
		return -EPROTONOSUPPORT;
	if (!payload)
		size = 0;
	request->header_size = (uint8_t)header_size;
	request->dataoffs = (uint16_t)rpc->dataoffs;
	request->length = IB_MAD_SIZE;
	request->rmpp = settings->rmpp;
	if (settings->by_rmpp || size > (size_t)(IB_MAD_SIZE - rpc->dataoffs)) {
		ret = request_allocate(request, settings->rmpp, size);
		if (ret)
			return ret;
		umad = request->umad;
		large = true;
	}
	mad = umad + header_size;
	ret = packet_build(umad, mad, rpc, mgmt_class, trid, dport, rmpp);
	if (ret) {
		request_fini(request);
		return ret;
	}
	header = (struct ib_user_mad *)(void *)umad;
	header->agent_id = (uint32_t)settings->agent;
	if (header->addr.grh_present)
		header->addr.gid_index = (uint8_t)settings->gid_index;
	transmissions_init(&request->transmissions, (uint32_t)trid, (uint8_t)mgmt_class);
	request->transmissions.method = (uint8_t)rpc->method;
	request_set_attempts(request, settings, mgmt_class, (uint8_t)rpc->method, rpc->timeout,
			     large);
	if (size)
		memcpy(mad + rpc->dataoffs, payload, size);
	if (large)
		rmpp_mark(mad);
	return 0;
}

/*
 * The same with the transaction ID of the rpc, which gets one if it has none. An ID that the
 * library made is for one request: if an earlier call stored it in the rpc, the request has a
 * new one.
 */
static INLINE int request_init(struct request *request, const struct request_settings *settings,
			       ib_rpc_t *rpc, const ib_portid_t *dport,
			       const ib_rmpp_hdr_t *rmpp, const void *payload, size_t size)
{
	bool chosen = rpc->trid && !trid_is_ours((uint32_t)rpc->trid);
	uint64_t trid = chosen ? rpc->trid : mad_trid();
	int ret;

	if (!rpc->trid)
		rpc->trid = trid;
	ret = request_make(request, settings, rpc, trid, dport, rmpp, payload, size);
	request->transmissions.chosen = chosen;
	return ret;
}

/* A function that handles an event in a phase. */
typedef enum request_action request_handler(struct requests *all, struct request *request,
					    struct request_event *event);

/* An event without a function changes nothing in that phase. */
extern __attribute__((visibility("hidden")))
request_handler *const request_handlers[REQUEST_PHASES][REQUEST_EVENTS];

/* EVENT_SEND in QUEUED, for the thread that takes the request out of its queue. */
request_handler request_send;
/* EVENT_WRITTEN in WRITING, if there was an error or another event meanwhile. */
request_handler request_written_otherwise;

/* EVENT_WRITTEN in WRITING, for the thread that writes. */
static inline enum request_action request_written(struct requests *all, struct request *request,
						  struct request_event *event)
{
	if (event->error || request->pending.kind != EVENT_NONE)
		return request_written_otherwise(all, request, event);
	request->transmissions.renumbered = false;
	request->phase = REQUEST_WAITING;
	return ACTION_SET_TIMER;
}

/* Handles an event. At EVENT_SEND and EVENT_WRITTEN, the request is in no queue. */
static INLINE enum request_action request_handle(struct requests *all, struct request *request,
						 struct request_event *event)
{
	request_handler *handle = request_handlers[request->phase][event->kind];

	return handle ? handle(all, request, event) : ACTION_NONE;
}

#endif
