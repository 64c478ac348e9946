/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Memberships and a subscription on an engine, and the SA that has them. The test controls the
 * clock (clocked_device.h).
 */
#ifndef TESTS_UNIT_KEEPER_FIXTURE_H
#define TESTS_UNIT_KEEPER_FIXTURE_H

#include "clocked_device.h"
#include "test.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_link.h>
#include <infiniband/mad_notice.h>
#include <infiniband/mad_sa.h>

#define S           (1000 * MS)
#define GROUPS      100
#define RECORD      56 /* bytes of an MCMemberRecord in a table */
#define INFORM      64 /* bytes of an InformInfoRecord in a table */
#define UNSUPPORTED 0x000c
#define INVALID     0x0200
/* The promise: the SA has a registration again after this time. */
#define WITHIN      (15 * S)
#define PREFIX      (UINT64_C(0xfe80) << 48)
#define GUID        UINT64_C(0x1122)

/* The SA and the local port. */
static struct {
	unsigned state, sm_lid;
	uint64_t prefix;
	bool silent;     /* the SA does not respond */
	bool hides;      /* its tables are empty */
	bool lost_state; /* its records have another JoinState */
	uint16_t status; /* of Set(MCMemberRecord) */
	uint16_t tables; /* the status of tables */
	uint16_t mlid;
	bool members[GROUPS];
	bool subscribed;
	uint8_t inform[36];
	uint8_t portgid[16]; /* of the latest Set */
	uint64_t mask;
	unsigned sets, deletes, checks, subscriptions;
	int64_t check_at, set_at; /* when the latest ones came */
	int64_t least_us;         /* the shortest time between two checks */
} sa;

struct told {
	unsigned joined, failed, ends;
	int error, changed;
	unsigned status;
	uint16_t mlid;
	int64_t gap_begin, gap_end, at;
	bool stops;                 /* in the callback */
	struct mad_failure failure; /* of the latest error */
	struct mad_membership *membership;
};

static struct told told[GROUPS];
static struct told told_notices;

/* --- the SA ----------------------------------------------------------------------- */

static inline int64_t never(const struct device_packet *packet)
{
	(void)packet;
	return NO_RESPONSE;
}

static inline void respond_port(const struct device_packet *packet)
{
	uint8_t info[64] = {0};

	mad_set_field(info, 0, IB_PORT_STATE_F, sa.state);
	mad_set_field(info, 0, IB_PORT_LID_F, 5);
	mad_set_field(info, 0, IB_PORT_SMLID_F, sa.sm_lid);
	mad_set_field64(info, 0, IB_PORT_GID_PREFIX_F, sa.prefix);
	device_respond(packet, 0, 64, info, sizeof(info));
}

static inline void respond_node(const struct device_packet *packet)
{
	uint8_t info[64] = {0};

	mad_set_field64(info, 0, IB_NODE_PORT_GUID_F, GUID);
	device_respond(packet, 0, 64, info, sizeof(info));
}

static inline void put_mgid(uint8_t mgid[16], unsigned group)
{
	memset(mgid, 0, 16);
	mgid[0] = 0xff;
	mgid[1] = 0x12;
	mgid[15] = (uint8_t)(group + 1);
}

static inline size_t put_table(uint8_t *at, unsigned attribute)
{
	size_t size = 0;

	if (attribute == IB_SA_ATTR_INFORMINFORECORD && sa.subscribed) {
		memcpy(at + 24, sa.inform, sizeof(sa.inform));
		return INFORM;
	}
	for (unsigned i = 0; i < GROUPS && attribute == IB_SA_ATTR_MCRECORD; i++)
		if (sa.members[i]) {
			put_mgid(at + size, i);
			at[size + offsetof(struct umad_sa_mcmember_record, scope_state)] =
				sa.lost_state ? 0x22 : 0x21;
			size += RECORD;
		}
	return size;
}

static inline void respond_table(const struct device_packet *packet)
{
	static uint8_t mad[IB_SA_DATA_OFFS + GROUPS * RECORD];
	unsigned attribute = packet->mad[17];
	size_t size;

	if (sa.tables) {
		device_respond(packet, sa.tables, 0, NULL, 0);
		return;
	}
	memset(mad, 0, sizeof(mad));
	device_copy_mad(packet, mad);
	mad[3] |= IB_MAD_RESPONSE;
	mad[24] = 1;
	mad[25] = IB_RMPP_TYPE_DATA;
	mad[26] = 7;
	mad[45] = attribute == IB_SA_ATTR_MCRECORD ? RECORD / 8 : INFORM / 8;
	memset(mad + 56, 0, 200);
	size = sa.hides ? 0 : put_table(mad + 56, attribute);
	device_reply(packet, mad, 56 + size);
}

static inline void note_check(void)
{
	if (sa.checks++ && clock_now - sa.check_at < sa.least_us)
		sa.least_us = clock_now - sa.check_at;
	sa.check_at = clock_now;
}

static inline void respond_member(const struct device_packet *packet)
{
	struct umad_sa_mcmember_record record;
	unsigned method = packet->mad[3], group;
	bool *member;

	memcpy(&record, packet->mad + 56, sizeof(record));
	memcpy(sa.portgid, record.portgid, sizeof(sa.portgid));
	if (!record.mgid[15])
		put_mgid(record.mgid, 7); /* the SA chooses a group */
	group = record.mgid[15] - 1U;
	assert_in_range(group, 0, GROUPS - 1);
	member = &sa.members[group];
	if (method == IB_MAD_METHOD_DELETE) {
		device_respond(packet, *member ? 0 : INVALID, 0, NULL, 0);
		*member = false;
		return;
	}
	record.mlid = htobe16(sa.mlid);
	*member = !sa.status;
	device_respond(packet, sa.status, 56, &record, sizeof(record));
}

static inline void respond_inform(const struct device_packet *packet)
{
	bool subscribe = packet->mad[56 + 23];
	uint16_t status = !subscribe && !sa.subscribed ? INVALID : 0;

	memcpy(sa.inform, packet->mad + 56, sizeof(sa.inform));
	sa.subscribed = subscribe;
	device_respond(packet, status, 0, NULL, 0);
}

static inline void count_request(const struct device_packet *packet)
{
	unsigned method = packet->mad[3];
	uint64_t mask;

	if (method == IB_MAD_METHOD_GET_TABLE) {
		note_check();
	} else if (method == IB_MAD_METHOD_DELETE) {
		sa.deletes++;
	} else if (packet->mad[17] == IB_SA_ATTR_MCRECORD) {
		memcpy(&mask, packet->mad + 48, sizeof(mask));
		sa.mask = be64toh(mask);
		sa.sets++;
		sa.set_at = clock_now;
	} else {
		sa.subscriptions++;
	}
}

static inline int respond(const struct device_packet *packet, void *arg)
{
	unsigned attribute = packet->mad[17], method = packet->mad[3];

	if (packet->mad[1] == IB_SMI_DIRECT_CLASS) {
		if (attribute == IB_ATTR_NODE_INFO)
			respond_node(packet);
		else
			respond_port(packet);
		return 0;
	}
	count_request(packet);
	if (sa.silent || be16toh(packet->header.addr.lid) != sa.sm_lid)
		return note_packet(packet, arg);
	if (method == IB_MAD_METHOD_GET_TABLE)
		respond_table(packet);
	else if (attribute == IB_SA_ATTR_MCRECORD)
		respond_member(packet);
	else
		respond_inform(packet);
	return 0;
}

/* As an SM that is restarted. */
static inline void forget(void)
{
	memset(sa.members, 0, sizeof(sa.members));
	sa.subscribed = false;
}

/* --- the program ------------------------------------------------------------------ */

static inline void tell(struct mad_membership *membership,
			const struct mad_membership_state *state, void *arg)
{
	struct told *here = arg;

	assert_ptr_equal(membership, here->membership);
	assert_int_equal(here->ends, 0);
	if (state->error) {
		here->failure = *mad_last_failure();
		assert_int_equal(here->failure.error, state->error);
	}
	here->error = state->error;
	here->status = state->status;
	here->changed = state->changed;
	here->at = clock_now;
	switch (state->kind) {
	case MAD_MEMBERSHIP_JOINED:
		assert_int_equal(state->error, 0);
		here->joined++;
		here->gap_begin = (int64_t)state->gap_begin_us;
		here->gap_end = (int64_t)state->gap_end_us;
		here->mlid = be16toh(state->record->mlid);
		break;
	case MAD_MEMBERSHIP_FAILED:
		here->failed++;
		assert_true(state->error < 0);
		assert_true(!state->record == !here->joined);
		break;
	case MAD_MEMBERSHIP_END:
		here->ends++;
		return;
	}
	if (here->stops)
		mad_membership_stop(membership);
}

static inline void tell_notice(struct mad_notices *notices, const struct mad_notice *notice,
			       void *arg)
{
	struct told *here = arg;

	(void)notices;
	here->error = notice->error;
	assert_true(!notice->error || mad_last_failure()->error == notice->error);
	here->status = notice->status;
	if (notice->kind == MAD_NOTICE_END)
		here->ends++;
	if (notice->kind != MAD_NOTICE_SUBSCRIPTION)
		return;
	here->at = clock_now;
	here->joined += !notice->error;
	here->failed += notice->error != 0;
	here->gap_begin = (int64_t)notice->gap_begin_us;
	here->gap_end = (int64_t)notice->gap_end_us;
}

static inline int keeper_setup(void)
{
	memset(&sa, 0, sizeof(sa));
	memset(told, 0, sizeof(told));
	memset(&told_notices, 0, sizeof(told_notices));
	sa.state = MAD_PORT_ACTIVE;
	sa.sm_lid = 1;
	sa.prefix = PREFIX;
	sa.mlid = 0xc001;
	sa.least_us = INT64_MAX;
	if (clocked_setup())
		return -1;
	nodes.node_us = never;
	device_on_write(respond, NULL);
	return 0;
}

/* No packet of the end is checked. */
static inline int keeper_teardown(void)
{
	device_on_write(keep_silent, NULL);
	return clocked_teardown();
}

static inline int begin(unsigned group)
{
	struct umad_sa_mcmember_record member = {.qkey = htobe32(0xb1b)};
	const struct mad_membership_options options = {
		.member = &member,
		.component_mask = UMAD_SA_MCM_COMP_MASK_QKEY,
		.join_state = 1,
	};

	put_mgid(member.mgid, group);
	return mad_membership_start(async, &options, tell, &told[group],
				    &told[group].membership);
}

static inline void join(unsigned group)
{
	assert_int_equal(begin(group), 0);
	pass(async, 2 * S);
	assert_int_equal(told[group].joined, 1);
	assert_true(sa.members[group]);
}

static inline struct mad_notices *subscribe(void)
{
	struct mad_notices *notices;

	assert_int_equal(mad_notices_start(async, NULL, tell_notice, &told_notices, &notices),
			 0);
	pass(async, 2 * S);
	assert_int_equal(told_notices.joined, 1);
	assert_true(sa.subscribed);
	return notices;
}

static inline void leave(unsigned group)
{
	mad_membership_stop(told[group].membership);
	pass(async, 4 * S);
	assert_int_equal(told[group].ends, 1);
}

#endif
