/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A transaction: a request, its sendings, and its answer. The blocking calls wait for it,
 * the asynchronous engine calls back; all else they share is here.
 *
 * The first transmission of an attempt has the request's own ID, and the kernel waits for the
 * response as long as the attempt may take. The kernel refuses an ID that it holds. So the next
 * attempt begins after the kernel has reported the timeout, and has the same ID: a response to
 * an earlier attempt completes the request.
 *
 * A Get of a class whose Gets change nothing is retransmitted within an attempt, too, when its
 * response is late; the interval doubles each time. Such a retransmission needs a new ID. A
 * response with the request's own ID, or with one of the two latest other IDs, completes it.
 *
 * What a thread writes it writes without the lock: as long as "sending" is set, the buffer
 * that the request is in stays as it is, and the transaction where it is.
 */
#ifndef LIBIBMAD_TRANSACTION_H
#define LIBIBMAD_TRANSACTION_H

#include "engine/port.h"

#define LIVE_ATTEMPTS 3
#define ALL_ATTEMPTS  ((1u << LIVE_ATTEMPTS) - 1)

enum transaction_state {
	TRANSACTION_NEW,       /* not sent yet */
	TRANSACTION_UNDER_WAY, /* sent, or to be sent again */
	TRANSACTION_DONE,
};

struct transaction {
	struct attempt attempts[LIVE_ATTEMPTS]; /* the first has the request's own ID */
	struct deadline timer;                  /* when there is something to do */
	struct transaction *next;
	struct destination *destination; /* NULL: none counts it */
	union {
		struct waiter *waiter;
		struct mad_async *engine;
	} owner;
	struct detour *detour; /* where it was redirected to */
	uint8_t *heap;         /* a umad buffer in place of packet: of a long request, or
				  answer */
	int64_t end;           /* of this attempt; 0: the next transmission begins it */
	uint32_t interval;     /* from one sending to the next, in microseconds */
	int timeout_ms;
	int length;    /* of the MAD in the buffer: the request's, then the answer's */
	int error;     /* 0 or an errno, when it is done */
	uint32_t rtt;  /* microseconds */
	uint16_t left; /* attempts, this one included */
	uint16_t sendings;
	uint16_t status; /* the answer's */
	uint8_t state;
	bool asynchronous : 1; /* owner.engine, not owner.waiter */
	bool repeatable : 1;
	bool counted : 1;   /* by its window */
	bool sending : 1;   /* a thread is about to write it, without the lock */
	bool answered : 1;  /* the buffer holds the answer */
	bool recalled : 1;  /* to be sent again for an answer: BUSY, or a redirection */
	bool overdue : 1;   /* since it was last sent for anything else, an answer was */
	bool redirects : 1; /* heap holds an answer that does, till the request is written */
	bool retried : 1;   /* its next transmission is a new attempt */
	bool overtaken : 1; /* the answer came before the long request was written */
	bool overtime : 1;  /* the attempt is over; the kernel's report of that may come yet */
	bool late : 1;      /* the kernel reported a timeout of the request's own ID */
	uint8_t expected : LIVE_ATTEMPTS; /* bit i: a response to attempts[i] is expected */
	uint16_t dataoffs;                /* where the answer's data begins */
	union {
		_Alignas(8) uint8_t packet[PACKET_SIZE];
		uint8_t *written; /* overtaken: the request's buffer */
	};
};

/* The umad buffer of what it is now. */
static inline uint8_t *transaction_buffer(struct transaction *transaction)
{
	return transaction->heap ? transaction->heap : transaction->packet;
}

/* The MAD in it. */
static inline uint8_t *transaction_mad(struct transaction *transaction)
{
	return umad_get_mad(transaction_buffer(transaction));
}

/*
 * Writes the request, with size bytes of payload at rpc->dataoffs; rmpp may be NULL. rpc
 * gets a transaction id if it has none. 0, -EINVAL, -EMSGSIZE, -ENOMEM.
 */
int transaction_init(struct transaction *transaction, struct ibmad_port *port, ib_rpc_t *rpc,
		     ib_portid_t *dport, ib_rmpp_hdr_t *rmpp, const void *payload, size_t size);
/* Frees what belongs to it. */
void transaction_fini(struct transaction *transaction);

/* All below: the port is locked. */

/* Sends it; the lock is dropped meanwhile. */
void transaction_send(struct ibmad_port *port, struct transaction *transaction);
/* Its timer is due. */
void transaction_expired(struct ibmad_port *port, struct transaction *transaction, int64_t now);
/* It comes to an end, whatever its state. */
void transaction_finish(struct ibmad_port *port, struct transaction *transaction, int error);

/* The window that it goes through. */
enum mad_window transaction_window(const struct transaction *transaction);

/* For answer.c: what an answer changes. */

/* Its window counts it no more. */
void transaction_uncount(struct ibmad_port *port, struct transaction *transaction);
void transaction_set_timer(struct ibmad_port *port, struct transaction *transaction,
			   int64_t at);
/* Its timer is due now, and another thread may have to see to it. */
void transaction_hasten(struct ibmad_port *port, struct transaction *transaction);
/* Follows an answer that redirects, or gives the path for that. */
void transaction_follow(struct ibmad_port *port, struct transaction *transaction,
			const uint8_t *mad, int length);
/* When the last of its attempts is over. */
static inline int64_t transaction_end(const struct transaction *transaction)
{
	return transaction->end +
	       (transaction->left - 1) * (transaction->timeout_ms * INT64_C(1000));
}
/* How long its kind of answer takes. */
struct rtt *transaction_rtt(struct ibmad_port *port, struct transaction *transaction);

static inline struct transaction *transaction_of(struct attempt *attempt)
{
	return (struct transaction *)(void *)(attempt - attempt->slot);
}

#endif
