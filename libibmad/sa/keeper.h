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
 * the lock, only the list "joining", the timer and the atomic members.
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

enum registration_kind {
	MEMBERSHIP,
	SUBSCRIPTION,
	REGISTRATION_KINDS
};

/* A request that registers, or ends a registration. */
struct registration_request {
	uint8_t method;
	uint16_t attribute;
	uint64_t mask;
	const void *data;
	size_t size;
};

/* The state of a registration, for the program. */
struct registration_result {
	int error;
	unsigned status;
	int64_t gap_begin, gap_end; /* the SA may not have had it between these times; or 0 */
};

struct registration;

/* The functions of a kind. */
struct registration_ops {
	enum registration_kind kind;
	bool needs_gid; /* the requests have the GID of the port */
	/* The request "index"; it registers, or ends the registration. */
	void (*fill)(struct registration *registration, unsigned index, bool registers,
		     struct registration_request *request);
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

/* The argument of the callback of a request. */
struct registration_slot {
	struct registration *registration;
	uint64_t id; /* of the request in flight; 0: none */
};

struct registration {
	struct list all; /* in "joining" or "registrations" of the keeper */
	const struct registration_ops *ops;
	struct sa_keeper *keeper;
	struct registration_slot *slots;
	unsigned slot_count; /* requests of a round */
	int64_t poll_us, check_us;
	atomic_bool stopping;
	atomic_ullong accepted, failures; /* rounds */

	unsigned setting; /* requests of the present round in flight */
	bool undoing;     /* these requests end the registration */
	bool sent;        /* the SA may have it */
	bool changed;     /* the port has changed while requests were in flight */
	bool quiet;       /* nothing is known against the registration that is renewed */
	unsigned missed;  /* so many checks have not found it since one found it */
	struct mad_failure failure; /* the first one of the present or the latest round */
	int64_t round_begin, round_end;
	unsigned retry_ms; /* 0: the latest round had no error */
	int64_t renew_at;  /* NEVER: when a check finds that the SA has forgotten it */
	int64_t certain;   /* the latest time when the SA had it for certain; 0: never */

	bool told; /* the program knows this state: */
	int told_error;
	unsigned told_status;
};

struct sa_keeper {
	struct engine_timer timer;
	struct mad_async *engine;
	struct list joining;
	struct list registrations;
	int64_t poll_us, check_us; /* the shortest of the registrations */
	int64_t paced_at;          /* before this time, no other retry begins */

	struct mad_notice_port port;
	uint64_t guid;                   /* the PortGUID; 0: not known */
	bool known;                      /* the port was read */
	struct mad_failure read_failure; /* of the latest reading of the port or its PortGUID */
	bool reading;                    /* its PortInfo or NodeInfo is requested */
	bool wants_guid;
	int64_t poll_at;

	bool checking; /* a table is requested */
	bool stale;    /* the port has changed since: the table tells nothing */
	enum registration_kind check_kind;
	uint64_t check_id;
	struct mad_failure check_failure; /* of the latest check */
	int64_t check_begin, check_at;
};

/* --- keeper.c --------------------------------------------------------------------- */

/*
 * Makes the keeper of an engine, if there is none; the lock is held. 0, -ENOMEM, -ENODEV,
 * -ECANCELED, or -EPROTONOSUPPORT: *missing is a class that is not registered on the port.
 */
int keeper_make(struct mad_async *engine, int *missing);
/* Adds a registration whose ops, slots, counts and intervals are set; the lock is held. */
void keeper_add(struct mad_async *engine, struct registration *registration);
/* Ends a registration. Any thread may call it. */
void keeper_stop(struct registration *registration);
/* The timer is due at this time, or earlier if it was set so; 0: at once. */
void keeper_set_timer(struct sa_keeper *keeper, int64_t at);
/* The GID of the port, whose GUID is known. */
void keeper_gid(const struct sa_keeper *keeper, uint8_t gid[16]);

/* --- registration.c --------------------------------------------------------------- */

/* Begins a round, which registers or ends the registration. */
void registration_start_round(struct registration *registration, bool registers);
/* The requests in flight complete with -ECANCELED. */
void registration_cancel(struct registration *registration);
/* A round must begin at once. */
void registration_renew(struct registration *registration);
/* A failure that is not that of one request. */
struct mad_failure registration_error(int error);
/* The SA's status, for the program; 0 if the failure is another one. */
unsigned registration_status(const struct mad_failure *failure);
/*
 * Tells the program the state of the registration, if it has changed, or always. The error of
 * the failure is 0 if the SA has the registration.
 */
void registration_tell(struct registration *registration, const struct mad_failure *failure,
		       bool always);

/* --- own_port.c ------------------------------------------------------------------- */

/* Whether a registration is possible: the port is active, and has an SM and a LID. */
bool own_port_is_usable(const struct sa_keeper *keeper);
/* Submits a Get of the PortInfo, or of the NodeInfo. */
void own_port_read(struct sa_keeper *keeper, int64_t now);

/* --- record_check.c --------------------------------------------------------------- */

/* Submits a GetTable of the SA's records, if there is a registration to check. */
void record_check_start(struct sa_keeper *keeper, int64_t now);
/* The port has changed: the table that is requested tells nothing. */
void record_check_cancel(struct sa_keeper *keeper);

#endif
