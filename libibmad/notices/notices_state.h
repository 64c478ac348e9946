/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The state of the notices of an engine. The thread that processes the engine uses it without a
 * lock. The public calls, from any thread, use only the atomic members, and with the lock the
 * timer, the server and the server's last counts.
 */
#ifndef LIBIBMAD_NOTICES_STATE_H
#define LIBIBMAD_NOTICES_STATE_H

#include "calls/engine.h"

#include <infiniband/mad_notice.h>
#include <infiniband/mad_sa_records.h>
#include <infiniband/mad_server.h>

#define FILTERS_MAX 16
#define RECENT      16384 /* reports that are stored */

/* InformInfo, the attribute that subscribes to notices (IBA 13.4.8.3). */
struct inform_info {
	struct mad_sa_inform_info wire;
	uint64_t components; /* the component mask */
};

/* A report that was handed out. */
struct recent_report {
	int64_t at;
	uint64_t tid;
	uint64_t digest; /* of the notice and the sender */
};

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
	bool reading; /* the PortInfo is requested */
	int64_t poll_at;

	unsigned setting; /* Sets of InformInfo in flight */
	bool undoing;     /* these Sets end the subscriptions */
	bool subscribed;  /* the SA may have a subscription */
	bool changed;     /* the port has changed while a subscription was in flight */
	int set_error;    /* the first error of the present round */
	unsigned set_status;
	unsigned set_sm;   /* the LID of the SM in the present round */
	unsigned retry_ms; /* 0: the latest round had no error */
	int64_t renew_at;
	bool told; /* the callback has this state of the subscription: */
	int told_error;
	unsigned told_status;
	unsigned told_sm;

	unsigned filter_count;
	struct inform_info filters[FILTERS_MAX];
	uint64_t ids[FILTERS_MAX]; /* of requests in flight; 0: none */
	uint64_t read_id;
	struct recent_report recent[RECENT]; /* by the transaction ID */
};

/* Calls the program back. */
static inline void notices_tell(struct mad_notices *notices, const struct mad_notice *notice)
{
	notices->callback(notices, notice, notices->arg);
}

/* Sets the time at which the timer is due; 0: at once. */
static inline void notices_set_timer(struct mad_notices *notices, int64_t at)
{
	int cancel_state = engine_reenter(notices->engine);

	engine_timer_set(notices->engine, &notices->timer, at);
	engine_leave(notices->engine, cancel_state);
}

/* --- subscription.c --------------------------------------------------------------- */

/* 0, or -EINVAL: the filter has a value that InformInfo cannot have. */
int inform_info_init(struct inform_info *info, const struct mad_notice_filter *filter);
/* Begins a round, which subscribes or ends the subscription. */
void subscription_start_round(struct mad_notices *notices, bool subscribe);
/* The requests in flight complete with -ECANCELED. */
void subscription_cancel(struct mad_notices *notices);
/* Calls the program back with the state of the subscription, if the state has changed. */
void subscription_tell(struct mad_notices *notices, int error, unsigned status, unsigned sm);

/* --- local_port.c ----------------------------------------------------------------- */

/* Whether a subscription is possible: the port is active, and has an SM and a LID. */
bool local_port_is_usable(const struct mad_notices *notices);
/* Submits a Get of the PortInfo. */
void local_port_read(struct mad_notices *notices, int64_t now);

/* --- reports.c -------------------------------------------------------------------- */

/* The callback of the server: hands out the report, and confirms it. */
void report_came(struct mad_server *server, struct mad_request *request, void *arg);

#endif
