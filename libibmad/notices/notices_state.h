/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The state of the notices of an engine: a registration at the SA (sa/keeper.h), and a server
 * for Reports. The thread that processes the engine uses it without a lock. The public calls,
 * from any thread, use only the atomic members, and with the lock the server and the server's
 * last counts.
 */
#ifndef LIBIBMAD_NOTICES_STATE_H
#define LIBIBMAD_NOTICES_STATE_H

#include "sa/keeper.h"

#include <infiniband/mad_errors.h>
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
	atomic_ullong reports, confirmed, duplicates, malformed;
};

struct mad_notices {
	struct registration subscription;
	struct mad_async *engine;
	struct mad_server *server;           /* NULL: it has ended */
	struct mad_server_stats last_server; /* its counts when it ended */
	bool ended;                          /* the subscription has ended: */
	struct mad_failure end;              /* its failure, or zeros */
	unsigned end_status;
	mad_notice_fn *callback;
	void *arg;
	struct counts counts;
	struct inform_info filters[FILTERS_MAX];
	struct registration_slot slots[FILTERS_MAX];
	struct recent_report recent[RECENT]; /* by the transaction ID */
};

static inline struct mad_notices *notices_of(struct registration *registration)
{
	return list_entry(registration, struct mad_notices, subscription);
}

/* Calls the program back. */
static inline void notices_tell(struct mad_notices *notices, const struct mad_notice *notice)
{
	notices->callback(notices, notice, notices->arg);
}

/* --- notices.c -------------------------------------------------------------------- */

/* In the last callback of the server. */
void notices_server_ended(struct mad_notices *notices);

/* --- subscription.c --------------------------------------------------------------- */

/* 0, or -EINVAL: the filter has a value that InformInfo cannot have. */
int inform_info_init(struct inform_info *info, const struct mad_notice_filter *filter);
/* The requests of the subscription, for struct registration_ops. */
void subscription_fill(struct registration *registration, unsigned index, bool registers,
		       struct registration_request *request);
int subscription_take(struct registration *registration, unsigned index, const void *data,
		      size_t size);
bool subscription_is_record(struct registration *registration, unsigned index,
			    const void *record);

/* --- reports.c -------------------------------------------------------------------- */

/* The callback of the server: hands out the report, and confirms it. */
void report_came(struct mad_server *server, struct mad_request *request, int error, void *arg);

#endif
