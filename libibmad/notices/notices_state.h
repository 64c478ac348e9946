/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The state of the notices of an engine. The thread that processes the engine uses it without a
 * lock. The public calls, from any thread, use only the atomic members, and with the lock the
 * timer, the server and the server's last counts.
 */
#ifndef LIBIBMAD_NOTICES_STATE_H
#define LIBIBMAD_NOTICES_STATE_H

#include "calls/engine.h"
#include "notices/inform_info.h"
#include "notices/recent_reports.h"

#include <infiniband/mad_notice.h>
#include <infiniband/mad_server.h>

#define FILTERS_MAX 16

struct counts {
	atomic_ullong reports, confirmed, duplicates, malformed, subscriptions, failures;
};

struct mad_notices {
	struct engine_timer timer;
	struct mad_async *engine;
	struct mad_server *server;           /* NULL: it was stopped */
	struct mad_server_stats last_server; /* its counts when it was stopped */
	mad_notice_fn *callback;
	void *arg;
	int64_t renew_us, poll_us;
	atomic_bool stopping;
	struct counts counts;

	struct mad_notice_port port;
	bool known;   /* the port was read */
	bool reading; /* it is being read */
	int64_t poll_at;

	unsigned setting; /* subscriptions, or their ends, in flight */
	bool undoing;     /* these are their ends */
	bool subscribed;  /* the SA may have a subscription */
	bool changed;     /* the port has changed while a subscription was in flight */
	int set_error;    /* the first error of the present round */
	unsigned set_status;
	unsigned set_sm;   /* the LID of the SM that the round went to */
	unsigned retry_ms; /* 0: the latest round had no error */
	int64_t renew_at;
	bool told; /* the callback was told the state of the subscription: */
	int told_error;
	unsigned told_status;
	unsigned told_sm;

	unsigned filter_count;
	struct inform_info filters[FILTERS_MAX];
	uint64_t ids[FILTERS_MAX]; /* of requests in flight; 0: none */
	uint64_t read_id;
	struct recent_reports recent;
};

/* Calls the program back. */
void notices_tell(struct mad_notices *notices, const struct mad_notice *notice);
/* Sets the time at which the timer is due; 0: at once. */
void notices_set_timer(struct mad_notices *notices, int64_t at);

#endif
