/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Registrations: what the SA stores for the local port until the program ends it: memberships
 * in multicast groups, and subscriptions to notices. The keeper of an engine makes them last.
 * It notices that the SA has forgotten them, and registers again:
 *
 *   - It reads the PortInfo of the local port, which causes no traffic on the fabric. It
 *     registers again if the SM or the LID has changed, or if the link was down.
 *   - It requests the SA's records of the local port, one table at a time. The number of these
 *     requests does not depend on the number of registrations.
 *
 * The thread that processes the engine uses all this without a lock. Other threads use, with
 * the lock, only registrations that have just been added, the timer and the atomic members.
 */
#ifndef LIBIBMAD_KEEPER_H
#define LIBIBMAD_KEEPER_H

#include "engine/async.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_notice.h>
#include <infiniband/mad_sa.h>
#include <stdatomic.h>

/* The default intervals. */
#define KEEPER_POLL_US  INT64_C(1000000)
#define KEEPER_CHECK_US INT64_C(5000000)

/* The maximum number of requests of a registration. */
#define REGISTRATION_REQUESTS 16

struct sa_keeper;
struct registration;

enum registration_kind {
	MEMBERSHIP,
	SUBSCRIPTION,
	REGISTRATION_KINDS
};

/* The state of a registration, for the program. */
struct registration_result {
	int error;
	unsigned status;
	int64_t gap_begin, gap_end; /* the SA may not have had it between these times; or 0 */
};

/* The functions of a kind. */
struct registration_ops {
	enum registration_kind kind;
	bool needs_gid; /* the requests have the GID of the port */
	/*
	 * The request "index", which registers, or ends the registration: sets the method, the
	 * attribute, the component mask and datasz of *rpc. Returns the data.
	 */
	const void *(*fill)(struct registration *registration, unsigned index, bool registers,
			    ib_rpc_t *rpc);
	/* Takes the response to a request that has registered: 0 or a negative errno. */
	int (*take)(struct registration *registration, unsigned index, const void *data,
		    size_t size);
	/* Whether a record of the SA is that of the request "index". */
	bool (*is_record)(struct registration *registration, unsigned index,
			  const void *record);
	void (*tell)(struct registration *registration,
		     const struct registration_result *result);
	/* The local port has changed; NULL: the registration does not need to know. */
	void (*port_changed)(struct registration *registration,
			     const struct mad_notice_port *before,
			     const struct mad_notice_port *after);
	/* The registration has ended, and is in no list: frees it. */
	void (*end)(struct registration *registration, int error, unsigned status);
};

enum registration_phase {
	REGISTRATION_NEW,     /* no request has been sent: the SA does not have it */
	REGISTRATION_SENDING, /* requests that register it are in flight */
	REGISTRATION_SENT,    /* they are complete: the SA may have it */
	REGISTRATION_ENDING,  /* requests that end it are in flight */
	REGISTRATION_ENDED,   /* they are complete */
};

struct registration {
	struct list all; /* in a list of the keeper */
	struct sa_keeper *keeper;

	/* set before registration_add() */
	struct mad_async *engine;
	const struct registration_ops *ops;
	unsigned count;            /* requests of a round */
	int64_t poll_us, check_us; /* of the keeper, at most */

	atomic_bool stopping;             /* it is to end */
	atomic_ullong accepted, failures; /* rounds */

	enum registration_phase phase;
	struct registration_slot {
		struct registration *registration;
		uint64_t id; /* of the request in flight; 0: none */
	} slots[REGISTRATION_REQUESTS];
	unsigned in_flight;         /* requests of the present round */
	struct mad_failure failure; /* the first one of the present or the latest round */
	int64_t round_begin;

	/*
	 * When the next round begins; NEVER: when a check finds that the SA has forgotten it.
	 * During a round it is NEVER, unless the port has changed since the round began.
	 */
	int64_t renew_at;
	unsigned retry_ms; /* the latest interval between rounds that failed; 0: none failed */
	bool blind;        /* it is renewed only because the SA's records do not have it */
	bool in_check;     /* the table that is requested tells whether the SA has it */
	unsigned missed;   /* checks that have not found it since one found it */
	int64_t certain;   /* the latest time when the SA had it for certain; 0: never */

	int told_error; /* the state that the program knows; 1: none */
	unsigned told_status;
};

/*
 * Makes the keeper of an engine, if there is none; the lock is held. 0, -ENOMEM, -ENODEV,
 * -ECANCELED, or -EPROTONOSUPPORT, which is reported for the public call. Stores the failure.
 */
int keeper_make_unlocking(struct mad_async *engine, const char *call);
/* Adds a registration to the keeper of its engine; the lock is held. */
void registration_add(struct registration *registration);
/* Ends a registration, which need not be added yet. Any thread may call it. */
void registration_stop(struct registration *registration);
/* The GID of the port, whose GUID is known. */
void keeper_gid(const struct sa_keeper *keeper, uint8_t gid[16]);

#endif
