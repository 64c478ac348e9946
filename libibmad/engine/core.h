/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The core of a port: one lock, the transactions in flight, the link. It carries out what
 * transactions ask for, and finds the transaction of each message. It knows the owners of
 * transactions only by their operations.
 */
#ifndef LIBIBMAD_CORE_H
#define LIBIBMAD_CORE_H

#include "engine/options.h"
#include "engine/pace.h"
#include "engine/transaction.h"

#include <infiniband/mad_async.h>
#include <pthread.h>

struct core;

/* What the owner of a transaction does about it. The lock is held in each call. */
struct owner_ops {
	/* It is DONE, and no event will come any more. */
	void (*completed)(struct core *core, struct transaction *transaction);
	/* It is READY again: the owner calls core_transmit() when it may be sent. */
	void (*again)(struct core *core, struct transaction *transaction);
	/* The owner calls core_timer() at timer.at. */
	void (*timer_changed)(struct core *core, struct transaction *transaction);
	/* Its timer means nothing any more, and it is to leave the owner's queues. */
	void (*withdraw)(struct core *core, struct transaction *transaction);
	/* transaction->news is not 0. NULL: it does not matter. */
	void (*news)(struct core *core, struct transaction *transaction);
};

struct owner {
	const struct owner_ops *ops;
	struct source *source; /* for scheduler.h */
};

/* What the layers above do about the port. The lock is held in each call. */
struct core_hooks {
	/* A message is no response to a transaction. */
	void (*unclaimed)(struct core *core, const uint8_t *umad, int length);
	/* The port has failed; what was in flight is complete. */
	void (*failed)(struct core *core);
	/* Messages were handled. */
	void (*progress)(struct core *core);
	/* transaction->news is not 0. */
	void (*news)(struct core *core, struct transaction *transaction);
};

/*
 * The lock guards all of it but the link and the options. No thread holds the lock while it
 * writes, reads, waits or calls back.
 */
struct core {
	pthread_mutex_t lock;
	const struct core_hooks *hooks;
	struct link link;
	struct options options;
	struct transactions transactions;
	struct pace pace;
	unsigned traced_sizes[FLOW_WINDOWS]; /* of the windows, as the probe told them last */
	int gone;                            /* 0, or the errno of all requests from now on */
	uint64_t dropped;                    /* messages that nobody waits for */
};

void core_init(struct core *core, const struct core_hooks *hooks);
/* Nothing is in flight any more: in a child of fork(), or for the first time. */
void core_reset(struct core *core);
void core_free(struct core *core);

static inline void core_lock(struct core *core)
{
	pthread_mutex_lock(&core->lock);
}

static inline void core_unlock(struct core *core)
{
	pthread_mutex_unlock(&core->lock);
}

/* All below: the lock is held.
 *
 * The time before which no MAD may be sent by a window, if it has room; 0: none.
 */
static inline int64_t core_opens(const struct core *core, unsigned window)
{
	int64_t opens = flow_opens(&core->transactions.flow, window);
	int64_t paced = pace_opens(&core->pace);

	return paced > opens ? paced : opens;
}

/* Windows may have other sizes: tells those who trace. Queue pair i has window i. */
void core_windows_changed(struct core *core);

/* core_transmit() and core_timer() drop it meanwhile. */

/* Sends a transaction that is READY and in no queue. */
void core_transmit(struct core *core, struct transaction *transaction);
/* Its timer is due. */
void core_timer(struct core *core, struct transaction *transaction, int64_t now);
/* It completes with this errno, whatever its state; at once, unless a thread writes it. */
void core_cancel(struct core *core, struct transaction *transaction, int error);
/* Every request completes with this errno, now and from now on. */
void core_fail(struct core *core, int error);

/*
 * A message has come: length bytes of MAD in umad. "allocated": the core may keep umad. Returns
 * whether it did.
 */
bool core_receive(struct core *core, uint8_t *umad, int length, bool allocated);
/* Only the first MAD of a message could be read: its transaction completes with this errno. */
void core_receive_failed(struct core *core, const uint8_t *umad, int error);

#endif
