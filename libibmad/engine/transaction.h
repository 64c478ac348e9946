/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * One request, from its creation to its completion, as a passive state machine: a function for
 * each event changes the state and returns what is to be done. The functions do no I/O, take no
 * lock and do not read the clock.
 *
 *   READY      the request is to be transmitted as soon as its owner calls transaction_start()
 *   IN_FLIGHT  it was transmitted; its timer says when there is something to do, be it that a
 *              response is late, that a pause after BUSY is over, or that an attempt is over
 *   DONE       it is complete
 *
 * The kernel waits for the response to the first transmission of an attempt as long as the
 * attempt may take. The next attempt begins after the kernel has reported the timeout, because
 * only then it accepts the same transaction ID again. A response to an earlier attempt
 * completes the request.
 *
 * On RoCE the kernel looks for the port of a GID while it writes. If there is none, the write
 * fails with ETIMEDOUT after a second: the attempt has no response, and the next one begins
 * when it is over.
 *
 * A Get of a class whose Gets change nothing is retransmitted within an attempt, too, when its
 * response is late: at most as often as there are attempts, and never if there is one attempt.
 * The interval to the next such retransmission grows.
 *
 * A thread writes a packet while other events come in. Between a SEND or ASK_PATH and the
 * event that reports its result, "writing" is set: the buffer of the request does not change,
 * and the transaction does not complete.
 */
#ifndef LIBIBMAD_TRANSACTION_H
#define LIBIBMAD_TRANSACTION_H

#include "engine/deadline.h"
#include "engine/destination.h"
#include "engine/link.h"
#include "engine/list.h"
#include "engine/redirect.h"
#include "engine/transmission.h"
#include "flow/flow.h"

/* What the transactions of a port share. */
struct transactions {
	struct outstanding outstanding;
	struct flow_control flow;
};

void transactions_init(struct transactions *transactions);

enum transaction_state {
	TRANSACTION_READY,
	TRANSACTION_IN_FLIGHT,
	TRANSACTION_DONE,
};

/* What is to be done after an event. */
enum transaction_action {
	TRANSACTION_NONE,  /* nothing: another event will come */
	TRANSACTION_WAIT,  /* call transaction_timer() at timer.at, unless an event comes first
			    */
	TRANSACTION_AGAIN, /* it is READY again: call transaction_start() when it may be sent */
	TRANSACTION_SEND,  /* write the packet, then call transaction_written() */
	TRANSACTION_ASK_PATH, /* redirect_ask_path(), then call transaction_path_asked() */
	TRANSACTION_COMPLETE, /* it is DONE */
};

/* What others may want to know of an event: bits of transaction.news. */
enum {
	NEWS_TRANSMITTED = 1 << 0, /* a packet is being written */
	NEWS_PLACE = 1 << 1,       /* it may have left its window, or its place at the node */
	NEWS_BUSY = 1 << 2,        /* a response said BUSY */
};

struct transaction {
	struct transmissions transmissions;
	union {
		struct deadline timer; /* IN_FLIGHT */
		struct list queue;     /* READY and DONE: for the owner */
	};
	struct owner *owner;             /* for core.h */
	struct destination *destination; /* NULL: not known */
	struct flow_account account;
	struct detour *detour; /* NULL: it was never redirected */
	uint8_t *heap; /* a umad buffer in place of packet, for a long request or response */
	int64_t end;   /* of this attempt; 0: the next transmission begins the attempt */
	uint32_t interval;     /* before the latest retransmission, in microseconds; 0: none */
	uint32_t queue_number; /* for scheduler.h: when it was queued */
	uint32_t elapsed_ms;   /* from its first transmission to its completion, see "timed" */
	int timeout_ms;
	int length;        /* of the MAD in the buffer: the request's, then the response's */
	uint16_t error;    /* DONE: 0 or an errno */
	uint16_t left;     /* attempts, this one included */
	uint16_t status;   /* the response's */
	uint16_t dataoffs; /* where the response's data begins */
	uint16_t early;    /* retransmissions before the end of an attempt, */
	uint16_t early_most : 12; /* of which there are so many at most */
	uint16_t pauses : 4;      /* after responses with status BUSY, as far as it goes */
	uint8_t news;
	uint8_t header_size; /* of the buffer's umad header */
	uint8_t state : 2;
	bool repeatable : 1; /* a Get that changes nothing */
	bool fresh : 1;      /* nothing was sent to its destination yet */
	bool writing : 1;    /* a thread writes the packet */
	bool responded : 1;  /* the buffer has the response */
	bool recalled : 1;   /* to be sent again because of a response: BUSY or a redirection */
	bool late : 1;       /* no response came in time for its latest transmission */
	bool redirects : 1;  /* heap has a response that redirects, until the packet is written
			      */
	bool new_attempt : 1; /* its next transmission begins a new attempt */
	bool overtaken : 1;   /* the response came before the long request was written */
	bool overtime : 1; /* the attempt is over; the kernel's report of that may come yet */
	bool refused : 1;  /* the kernel refused its ID; it has a new one */
	bool queued : 1;   /* for scheduler.h */
	bool parked : 1;   /* for scheduler.h */
	bool resumed : 1;  /* for scheduler.h */
	bool timed : 1;    /* elapsed_ms is how long it took; before, when that began */
	union {
		_Alignas(8) uint8_t packet[PACKET_SIZE];
		uint8_t *written; /* overtaken: the request's buffer */
	};
};

/* Its umad buffer: of the request, then of the response. */
static inline uint8_t *transaction_buffer(struct transaction *transaction)
{
	return transaction->heap ? transaction->heap : transaction->packet;
}

/* The MAD in it. */
static inline uint8_t *transaction_mad(struct transaction *transaction)
{
	return transaction_buffer(transaction) + transaction->header_size;
}

/* What TRANSACTION_SEND is to write. */
struct packet {
	struct transmission *transmission;
	uint8_t *umad;
	int length;
	int kernel_ms;          /* how long the kernel is to wait for the response */
	unsigned attempts_left; /* 0: it does not begin a new attempt */
};

/*
 * A transaction whose buffer has a request, of one MAD or more. The caller has set header_size,
 * length, dataoffs and heap. The other members before the packet are 0.
 */
void transaction_init(struct transaction *transaction, int timeout_ms, int attempts);
/* Frees what belongs to it. */
void transaction_fini(struct transaction *transaction);

/*
 * The events. SEND fills in *packet.
 *
 * It is READY, and may be transmitted now. It is in no queue.
 */
enum transaction_action transaction_start(struct transactions *all,
					  struct transaction *transaction,
					  struct packet *packet, int64_t now);
/* The packet was written: 0, or an errno; ENODEV: the device is gone. */
enum transaction_action transaction_written(struct transactions *all,
					    struct transaction *transaction,
					    struct packet *packet, int error, int64_t now);
/* The packet is the request for a path: 0, or an errno. */
enum transaction_action transaction_path_asked(struct transactions *all,
					       struct transaction *transaction,
					       struct packet *packet, int error, int64_t now);
/* The timer is due. */
enum transaction_action transaction_timer(struct transactions *all,
					  struct transaction *transaction, int64_t now);
/*
 * A response to one of its transmissions has come, and it is in no queue: length bytes of MAD,
 * 36 at least, in umad. If *taken is true, umad was allocated, and the transaction may keep it;
 * *taken becomes whether it did.
 */
enum transaction_action transaction_response(struct transactions *all,
					     struct transaction *transaction,
					     struct transmission *transmission, uint8_t *umad,
					     int length, bool *taken, int64_t now);
/* The kernel gave one of its transmissions up. */
enum transaction_action transaction_kernel_timeout(struct transactions *all,
						   struct transaction *transaction,
						   struct transmission *transmission,
						   int64_t now);
/* It is to complete with this errno, whatever its state. It may be in a queue. */
enum transaction_action transaction_cancel(struct transactions *all,
					   struct transaction *transaction, int error);

static inline struct transaction *transaction_of(struct transmission *transmission)
{
	return list_entry(transmissions_of(transmission), struct transaction, transmissions);
}

#endif
