/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The limits of an operation of many requests on an engine: a time, a struct mad_cancel, and
 * the state of the local port. All calls come from the thread that processes the engine, except
 * limits_begin().
 */
#ifndef LIBIBMAD_OPERATION_LIMITS_H
#define LIBIBMAD_OPERATION_LIMITS_H

#include "base/reserved.h"
#include "engine/async.h"

#include <infiniband/mad_async.h>

/* Whether the options of a call may have it. */
static inline bool is_cancel(const struct mad_cancel *cancel)
{
	return !cancel || is_reserved(cancel->reserved);
}

static inline bool cancel_is_set(const struct mad_cancel *cancel)
{
	return cancel && __atomic_load_n(&cancel->is_set, __ATOMIC_SEQ_CST);
}

struct limits {
	struct engine_timer timer;
	struct mad_async *engine;
	const struct mad_cancel *cancel; /* NULL: none */
	int64_t end;                     /* the time limit; NEVER: none */
	int64_t look_at;                 /* when the local port is read next; NEVER: not */
	bool is_local;                   /* so far no request has needed a link */
	uint64_t m_key;                  /* of this SMP */
	uint64_t look_id;                /* of its request */
	bool looking;                    /* the request is not complete */
	bool ended;                      /* limits_end() waits for the request */
	int error;                       /* of the limit that was reached; 0: none */
	/*
	 * Called when a limit is reached, and again at each later tick: -ETIME, -ECANCELED or
	 * -ENETDOWN.
	 */
	void (*reached)(struct limits *limits, int error);
	/* Called every 50 ms while no limit is reached; or NULL. */
	void (*tick)(struct limits *limits);
	/* Called after limits_end() has returned false. */
	void (*finished)(struct limits *limits);
};

/*
 * Begins to look at the limits. time_limit_ms is 0, or the number of milliseconds from now on.
 * The local port is read if IB_SMI_DIRECT_CLASS is registered. The lock is held.
 */
void limits_begin(struct limits *limits, struct mad_async *engine, unsigned time_limit_ms,
		  const struct mad_cancel *cancel, uint64_t m_key);

/*
 * Ends it. If it returns false, the request for the local port's state is not complete:
 * finished is called later.
 */
bool limits_end(struct limits *limits);

/*
 * The error with which a request ends the operation, because further requests would fail: the
 * device is gone, the engine is freed, or the kernel does not send while the link is down.
 * Otherwise 0.
 */
int limits_ends_all(int error);

#endif
