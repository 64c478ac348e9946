/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Registrations: what the SA stores for the local port until the program ends them, i.e.
 * multicast memberships and notice subscriptions. An engine's keeper notices when the SA has
 * forgotten them, and registers again:
 *
 * - It reads the local PortInfo (no fabric traffic), and registers again if SM or LID changed
 *   or the link was down.
 * - It requests the SA's records of the port, one table at a time, independent of the number of
 *   registrations.
 *
 * No lock is needed in the processing thread. Other threads, with the lock, only touch
 * registrations just added, the timer and the atomic members.
 */
#ifndef LIBIBMAD_KEEPER_H
#define LIBIBMAD_KEEPER_H

#include "engine/async.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_notice.h>
#include <infiniband/mad_sa.h>
#include <stdatomic.h>

/* Default intervals. */
#define KEEPER_POLL_US  INT64_C(1000000)
#define KEEPER_CHECK_US INT64_C(5000000)

#define REGISTRATION_REQUESTS 16

struct sa_keeper;
struct registration;

enum registration_kind {
	MEMBERSHIP,
	SUBSCRIPTION,
	REGISTRATION_KINDS
};

/* What the program sees of a registration. */
struct registration_result {
	int error;
	unsigned status;
	int64_t gap_begin, gap_end; /* the SA may not have had it in between; or 0 */
};

struct registration_ops {
	enum registration_kind kind;
	bool needs_gid; /* the requests include the port's GID */
	/*
	 * Fills request "index", which registers or deregisters: sets *rpc's method, attribute,
	 * component mask and datasz. Returns the data.
	 */
	const void *(*fill)(struct registration *registration, unsigned index, bool registers,
			    ib_rpc_t *rpc);
	/* Handles the response to a registering request. Returns 0 or a negative errno. */
	int (*take)(struct registration *registration, unsigned index, const void *data,
		    size_t size);
	/* Whether an SA record matches request "index". */
	bool (*is_record)(struct registration *registration, unsigned index,
			  const void *record);
	void (*tell)(struct registration *registration,
		     const struct registration_result *result);
	/* The local port changed; NULL: not needed. */
	void (*port_changed)(struct registration *registration,
			     const struct mad_notice_port *before,
			     const struct mad_notice_port *after);
	/* The registration has ended and is in no list: frees it. */
	void (*end)(struct registration *registration, int error, unsigned status);
};

enum registration_phase {
	REGISTRATION_NEW,     /* nothing sent: the SA does not have it */
	REGISTRATION_SENDING, /* registering requests are in flight */
	REGISTRATION_SENT,    /* completed: the SA may have it */
	REGISTRATION_ENDING,  /* deregistering requests are in flight */
	REGISTRATION_ENDED,   /* completed */
};

struct registration {
	struct list all; /* in one of the keeper's lists */
	struct sa_keeper *keeper;

	/* set before registration_add() */
	struct mad_async *engine;
	const struct registration_ops *ops;
	unsigned count;            /* requests per round */
	int64_t poll_us, check_us; /* upper bound for the keeper's intervals */

	atomic_bool stopping;
	atomic_ullong accepted, failures; /* rounds */

	enum registration_phase phase;
	struct registration_slot {
		struct registration *registration;
		uint64_t id; /* in flight; 0: none */
	} slots[REGISTRATION_REQUESTS];
	unsigned in_flight;         /* requests of this round */
	struct mad_failure failure; /* first one of the present or latest round */
	int64_t round_begin;

	/*
	 * Next round; NEVER: when a check finds that the SA has forgotten it. NEVER during a
	 * round, unless the port has changed since it began.
	 */
	int64_t renew_at;
	unsigned retry_ms; /* latest interval after failed rounds; 0: none failed */
	bool blind;        /* renewed only because the SA's records don't show it */
	bool in_check;     /* the requested table tells whether the SA has it */
	unsigned missed;   /* checks that missed it since one found it */
	int64_t certain;   /* when the SA last certainly had it; 0: never */

	int told_error; /* state known to the program; 1: none */
	unsigned told_status;
};

/*
 * Creates the engine's keeper if needed. Hold the lock. Returns 0, -ENOMEM, -ENODEV,
 * -ECANCELED, or -EPROTONOSUPPORT (reported for the public call). Stores the failure.
 */
int keeper_make_unlocking(struct mad_async *engine, const char *call);
/* Adds a registration to its engine's keeper. Hold the lock. */
void registration_add(struct registration *registration);
/* Ends a registration, even before it is added. Any thread may call it. */
void registration_stop(struct registration *registration);
/* Needs a known GUID. */
void keeper_gid(const struct sa_keeper *keeper, uint8_t gid[16]);

#endif
