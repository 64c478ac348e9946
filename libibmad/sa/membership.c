/* SPDX-License-Identifier: BSD-2-Clause */

/* Persistent multicast memberships (IBA 15.2.5.17) as SA registrations. */

#include "base/export.h"
#include "base/report.h"
#include "base/reserved.h"
#include "sa/keeper.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_SIZE offsetof(struct umad_sa_mcmember_record, pad)
#define GROUP_AND_MEMBER                                               \
	(UMAD_SA_MCM_COMP_MASK_MGID | UMAD_SA_MCM_COMP_MASK_PORT_GID | \
	 UMAD_SA_MCM_COMP_MASK_JOIN_STATE)

struct mad_membership {
	struct registration registration;
	mad_membership_fn *callback;
	void *arg;
	uint64_t mask;
	struct umad_sa_mcmember_record request;
	struct umad_sa_mcmember_record granted; /* in the latest response */
	struct umad_sa_mcmember_record told;    /* known to the program */
	bool has_told;
};

static struct mad_membership *membership_of(struct registration *registration)
{
	return list_entry(registration, struct mad_membership, registration);
}

/* --- the requests ----------------------------------------------------------------- */

static const void *membership_fill(struct registration *registration, unsigned index,
				   bool registers, ib_rpc_t *rpc)
{
	struct mad_membership *membership = membership_of(registration);

	(void)index;
	/* a membership ends under the GID it began with */
	if (registers)
		keeper_gid(registration->keeper, membership->request.portgid);
	rpc->method = registers ? IB_MAD_METHOD_SET : IB_MAD_METHOD_DELETE;
	rpc->attr.id = IB_SA_ATTR_MCRECORD;
	rpc->mask = registers ? membership->mask : GROUP_AND_MEMBER;
	rpc->datasz = RECORD_SIZE;
	return &membership->request;
}

static int membership_take(struct registration *registration, unsigned index, const void *data,
			   size_t size)
{
	struct mad_membership *membership = membership_of(registration);
	const struct umad_sa_mcmember_record *ours = &membership->request;

	(void)index;
	if (size < RECORD_SIZE)
		return -EBADMSG;
	/* the SA chose the group: use that one from now on */
	if (bytes_are_zero(ours->mgid, sizeof(ours->mgid)))
		memcpy(membership->request.mgid, data, sizeof(ours->mgid));
	if (memcmp(ours->mgid, data, sizeof(ours->mgid)) != 0)
		return -EBADMSG;
	memcpy(&membership->granted, data, RECORD_SIZE);
	return 0;
}

/*
 * A record has all JoinStates of the port in the group, including the membership's. Without the
 * SM_Key, an SA may show 0 (IBA 15.4.1.2).
 */
static bool membership_is_record(struct registration *registration, unsigned index,
				 const void *record)
{
	const struct mad_membership *membership = membership_of(registration);
	const struct umad_sa_mcmember_record *theirs = record;
	unsigned wanted = membership->request.scope_state & 0xfU;
	unsigned shown = theirs->scope_state & 0xfU;

	(void)index;
	return !memcmp(membership->request.mgid, theirs->mgid, sizeof(theirs->mgid)) &&
	       (!shown || (shown & wanted) == wanted);
}

/* --- callbacks -------------------------------------------------------------------- */

static void membership_tell(struct registration *registration,
			    const struct registration_result *result)
{
	struct mad_membership *membership = membership_of(registration);
	struct mad_membership_state state = {
		.kind = result->error ? MAD_MEMBERSHIP_FAILED : MAD_MEMBERSHIP_JOINED,
		.error = result->error,
		.status = result->status,
		.record = membership->has_told || !result->error ? &membership->granted : NULL,
		.gap_begin_us = (uint64_t)result->gap_begin,
		.gap_end_us = (uint64_t)result->gap_end,
	};

	if (!result->error) {
		state.changed = membership->has_told &&
				memcmp(&membership->granted, &membership->told, RECORD_SIZE);
		membership->told = membership->granted;
		membership->has_told = true;
	}
	membership->callback(membership, &state, membership->arg);
}

static void membership_end(struct registration *registration, int error, unsigned status)
{
	struct mad_membership *membership = membership_of(registration);
	const struct mad_membership_state state = {
		.kind = MAD_MEMBERSHIP_END,
		.error = error,
		.status = status,
		.record = membership->has_told ? &membership->granted : NULL,
	};

	membership->callback(membership, &state, membership->arg);
	free(membership);
}

static const struct registration_ops membership_ops = {
	.kind = MEMBERSHIP,
	.needs_gid = true,
	.fill = membership_fill,
	.take = membership_take,
	.is_record = membership_is_record,
	.tell = membership_tell,
	.end = membership_end,
};

/* --- calls ------------------------------------------------------------------------ */

/* Stores the failure and returns the error. */
static int refuse_membership(int error)
{
	const struct mad_failure failure = {
		.error = error,
		.mgmt_class = IB_SA_CLASS,
		.method = IB_MAD_METHOD_SET,
		.attribute = IB_SA_ATTR_MCRECORD,
	};

	failure_store(&failure);
	return error;
}

static bool are_valid(const struct mad_membership_options *options)
{
	return options && options->member && options->join_state &&
	       options->join_state <= 0xf && is_reserved(options->reserved);
}

EXPORT int mad_membership_start(struct mad_async *async,
				const struct mad_membership_options *options,
				mad_membership_fn *callback, void *arg,
				struct mad_membership **membership)
{
	struct mad_membership *started;
	int ret;

	if (!async || !callback || !membership || !are_valid(options))
		return refuse_membership(-EINVAL);
	started = calloc(1, sizeof(*started));
	if (!started)
		return refuse_membership(-ENOMEM);
	started->registration.ops = &membership_ops;
	started->registration.engine = async;
	started->registration.count = 1;
	started->registration.poll_us = KEEPER_POLL_US;
	started->registration.check_us = KEEPER_CHECK_US;
	started->callback = callback;
	started->arg = arg;
	started->mask = options->component_mask | GROUP_AND_MEMBER;
	memcpy(&started->request, options->member, RECORD_SIZE);
	umad_sa_mcm_set_join_state(&started->request, (uint8_t)options->join_state);
	*membership = started; /* before the first callback */
	ret = engine_enter(async);
	if (!ret) {
		ret = keeper_make_unlocking(async, "mad_membership_start");
		if (!ret)
			registration_add(&started->registration);
		engine_leave(async);
	}
	if (!ret)
		return 0;
	*membership = NULL;
	free(started);
	return refuse_membership(ret);
}

EXPORT void mad_membership_stop(struct mad_membership *membership)
{
	if (membership)
		registration_stop(&membership->registration);
}
