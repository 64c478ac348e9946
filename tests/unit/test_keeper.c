/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Registrations: memberships and subscriptions last although the SA forgets them. The test
 * controls the clock, and is the SA.
 */

#define MANY 1
#include "clocked_device.h"
#include "test.h"

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
	bool stops; /* in the callback */
	struct mad_membership *membership;
};

static struct told told[GROUPS];
static struct told told_notices;

/* --- the SA ----------------------------------------------------------------------- */

static int64_t never(const struct device_packet *packet)
{
	(void)packet;
	return NO_RESPONSE;
}

static void respond_port(const struct device_packet *packet)
{
	uint8_t info[64] = {0};

	mad_set_field(info, 0, IB_PORT_STATE_F, sa.state);
	mad_set_field(info, 0, IB_PORT_LID_F, 5);
	mad_set_field(info, 0, IB_PORT_SMLID_F, sa.sm_lid);
	mad_set_field64(info, 0, IB_PORT_GID_PREFIX_F, sa.prefix);
	device_respond(packet, 0, 64, info, sizeof(info));
}

static void respond_node(const struct device_packet *packet)
{
	uint8_t info[64] = {0};

	mad_set_field64(info, 0, IB_NODE_PORT_GUID_F, GUID);
	device_respond(packet, 0, 64, info, sizeof(info));
}

static void put_mgid(uint8_t mgid[16], unsigned group)
{
	memset(mgid, 0, 16);
	mgid[0] = 0xff;
	mgid[1] = 0x12;
	mgid[15] = (uint8_t)(group + 1);
}

static size_t put_table(uint8_t *at, unsigned attribute)
{
	size_t size = 0;

	if (attribute == IB_SA_ATTR_INFORMINFORECORD && sa.subscribed) {
		memcpy(at + 24, sa.inform, sizeof(sa.inform));
		return INFORM;
	}
	for (unsigned i = 0; i < GROUPS && attribute == IB_SA_ATTR_MCRECORD; i++)
		if (sa.members[i]) {
			put_mgid(at + size, i);
			size += RECORD;
		}
	return size;
}

static void respond_table(const struct device_packet *packet)
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

static void note_check(void)
{
	if (sa.checks++ && clock_now - sa.check_at < sa.least_us)
		sa.least_us = clock_now - sa.check_at;
	sa.check_at = clock_now;
}

static void respond_member(const struct device_packet *packet)
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

static void respond_inform(const struct device_packet *packet)
{
	bool subscribe = packet->mad[56 + 23];
	uint16_t status = !subscribe && !sa.subscribed ? INVALID : 0;

	memcpy(sa.inform, packet->mad + 56, sizeof(sa.inform));
	sa.subscribed = subscribe;
	device_respond(packet, status, 0, NULL, 0);
}

static void count_request(const struct device_packet *packet)
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

static int respond(const struct device_packet *packet, void *arg)
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
static void forget(void)
{
	memset(sa.members, 0, sizeof(sa.members));
	sa.subscribed = false;
}

/* --- the program ------------------------------------------------------------------ */

static void tell(struct mad_membership *membership, const struct mad_membership_state *state,
		 void *arg)
{
	struct told *here = arg;

	assert_ptr_equal(membership, here->membership);
	assert_int_equal(here->ends, 0);
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

static void tell_notice(struct mad_notices *notices, const struct mad_notice *notice, void *arg)
{
	struct told *here = arg;

	(void)notices;
	here->error = notice->error;
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

static int setup(void)
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
static int teardown(void)
{
	device_on_write(keep_silent, NULL);
	return clocked_teardown();
}

FIXTURE(setup, teardown);

static int begin(unsigned group)
{
	struct umad_sa_mcmember_record member = {.qkey = htobe32(0xb1b)};

	put_mgid(member.mgid, group);
	return mad_membership_start(async, &member, UMAD_SA_MCM_COMP_MASK_QKEY, 1, tell,
				    &told[group], &told[group].membership);
}

static void join(unsigned group)
{
	assert_int_equal(begin(group), 0);
	pass(async, 2 * S);
	assert_int_equal(told[group].joined, 1);
	assert_true(sa.members[group]);
}

static struct mad_notices *subscribe(void)
{
	struct mad_notices *notices;

	assert_int_equal(mad_notices_start(async, NULL, tell_notice, &told_notices, &notices),
			 0);
	pass(async, 2 * S);
	assert_int_equal(told_notices.joined, 1);
	assert_true(sa.subscribed);
	return notices;
}

static void leave(unsigned group)
{
	mad_membership_stop(told[group].membership);
	pass(async, 4 * S);
	assert_int_equal(told[group].ends, 1);
}

/* --- joining and leaving ---------------------------------------------------------- */

TEST(a_membership_has_the_gid_of_the_port_and_the_components_of_the_program)
{
	const uint8_t gid[16] = {0xfe, 0x80, [14] = 0x11, [15] = 0x22};

	join(3);
	assert_int_equal(told[3].mlid, 0xc001);
	assert_int_equal(told[3].gap_end, 0);
	assert_memory_equal(sa.portgid, gid, sizeof(gid));
	assert_int_equal(sa.mask, UMAD_SA_MCM_COMP_MASK_MGID | UMAD_SA_MCM_COMP_MASK_PORT_GID |
					  UMAD_SA_MCM_COMP_MASK_JOIN_STATE |
					  UMAD_SA_MCM_COMP_MASK_QKEY);
	leave(3);
	assert_int_equal(told[3].error, 0);
	assert_int_equal(told[3].status, 0);
	assert_int_equal(sa.deletes, 1);
	assert_false(sa.members[3]);
}

TEST(a_group_that_the_sa_chooses_is_the_group_from_then_on)
{
	struct umad_sa_mcmember_record member = {.qkey = 0};

	assert_int_equal(
		mad_membership_start(async, &member, 0, 1, tell, &told[0], &told[0].membership),
		0);
	pass(async, S);
	assert_int_equal(told[0].joined, 1);
	assert_true(sa.members[7]);
	pass(async, 60 * S);
	assert_int_equal(sa.sets, 1);
	forget();
	pass(async, WITHIN);
	assert_true(sa.members[7]);
}

TEST(a_membership_that_was_never_granted_ends_without_a_request)
{
	assert_int_equal(begin(0), 0);
	leave(0);
	assert_int_equal(told[0].error, 0);
	assert_int_equal(sa.deletes, 0);
}

TEST(a_group_that_the_sa_has_forgotten_is_left_without_an_error)
{
	struct mad_notices *notices = subscribe();

	join(0);
	forget();
	mad_notices_stop(notices);
	leave(0);
	assert_int_equal(told[0].error, 0);
	assert_int_equal(told[0].status, INVALID);
	assert_int_equal(told_notices.ends, 1);
	assert_int_equal(told_notices.error, 0);
	assert_int_equal(told_notices.status, INVALID);
}

TEST(an_sa_that_does_not_respond_is_told_at_the_end)
{
	join(0);
	sa.silent = true;
	leave(0);
	assert_int_equal(told[0].error, -ETIMEDOUT);
}

TEST(without_a_link_the_group_cannot_be_left)
{
	join(0);
	sa.state = MAD_PORT_DOWN;
	pass(async, 2 * S);
	leave(0);
	assert_int_equal(told[0].error, -ENETDOWN);
	assert_int_equal(sa.deletes, 0);
}

TEST(a_callback_may_end_its_membership)
{
	told[0].stops = true;
	assert_int_equal(begin(0), 0);
	pass(async, 2 * S);
	assert_int_equal(told[0].joined, 1);
	assert_int_equal(told[0].ends, 1);
	assert_int_equal(sa.deletes, 1);
	assert_int_equal(mad_async_run(async), 0); /* nothing is left */
}

TEST(the_engine_ends_memberships)
{
	join(0);
	assert_int_equal(begin(1), 0); /* not processed any more */
	mad_async_destroy(async);
	async = NULL;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(told[i].ends, 1);
		assert_int_equal(told[i].error, -ECANCELED);
	}
	assert_int_equal(sa.deletes, 0);
}

TEST(a_device_that_is_gone_ends_memberships)
{
	join(0);
	sa.silent = true;
	pass(async, 4 * S);
	device_remove();
	while (mad_async_process(async) >= 0)
		;
	assert_int_equal(told[0].ends, 1);
	assert_int_equal(told[0].error, -ENODEV);
}

static int run_child(void)
{
	EXPECT(mad_async_run(async) >= 0);
	EXPECT(told[0].ends == 1);
	EXPECT(told[0].error == -ECANCELED);
	EXPECT(told_notices.ends == 1);
	EXPECT(told_notices.error == -ECANCELED);
	EXPECT(begin(1) == -ECANCELED);
	return 0;
}

TEST(a_child_has_no_registrations)
{
	subscribe();
	join(0);
	run_in_child(run_child);
	assert_int_equal(told[0].ends, 0);
	forget();
	pass(async, WITHIN);
	assert_true(sa.members[0] && sa.subscribed);
}

TEST(wrong_arguments_are_refused)
{
	struct umad_sa_mcmember_record member = {.qkey = 0};
	struct mad_membership *membership;

	assert_int_equal(mad_membership_start(NULL, &member, 0, 1, tell, NULL, &membership),
			 -EINVAL);
	assert_int_equal(mad_membership_start(async, NULL, 0, 1, tell, NULL, &membership),
			 -EINVAL);
	assert_int_equal(mad_membership_start(async, &member, 0, 0, tell, NULL, &membership),
			 -EINVAL);
	assert_int_equal(mad_membership_start(async, &member, 0, 16, tell, NULL, &membership),
			 -EINVAL);
	assert_int_equal(mad_membership_start(async, &member, 0, 1, NULL, NULL, &membership),
			 -EINVAL);
	assert_int_equal(mad_membership_start(async, &member, 0, 1, tell, NULL, NULL), -EINVAL);
	mad_membership_stop(NULL);
}

TEST(without_the_classes_there_is_no_membership)
{
	const int classes[] = {IB_SA_CLASS, IB_SMI_DIRECT_CLASS};

	for (unsigned i = 0; i < 2; i++) {
		int class = classes[i];
		struct ibmad_port *other = mad_rpc_open_port(NULL, 0, &class, 1);
		struct mad_async *engine = mad_async_create(other), *own = async;

		async = engine;
		assert_int_equal(begin(0), -EPROTONOSUPPORT);
		async = own;
		assert_null(told[0].membership);
		mad_async_destroy(engine);
		mad_rpc_close_port(other);
	}
}

TEST(each_lack_of_memory_is_survived)
{
	for (unsigned n = 1; n < 3; n++) {
		device_fail_malloc(n);
		assert_int_equal(begin(0), -ENOMEM);
		device_fail_malloc(0);
	}
	for (unsigned n = 1; n < 12; n++) {
		memset(told, 0, sizeof(told));
		device_fail_malloc(n);
		if (begin(0)) {
			device_fail_malloc(0);
			continue;
		}
		pass(async, 20 * S);
		device_fail_malloc(0);
		pass(async, WITHIN);
		assert_true(sa.members[0]);
		leave(0);
	}
}

/* --- what the SA forgets ---------------------------------------------------------- */

TEST(a_hundred_memberships_share_one_check)
{
	for (unsigned i = 0; i < GROUPS; i++)
		assert_int_equal(begin(i), 0);
	pass(async, 60 * S);
	assert_int_equal(sa.sets, GROUPS);
	assert_in_range(sa.checks, 11, 12);
	for (unsigned i = 0; i < GROUPS; i++)
		assert_int_equal(told[i].joined, 1);
	printf("%u memberships: %u checks in 60 s\n", GROUPS, sa.checks);
	forget();
	pass(async, WITHIN);
	assert_int_equal(sa.sets, 2 * GROUPS);
	for (unsigned i = 0; i < GROUPS; i++)
		assert_int_equal(told[i].joined, 2);
}

TEST(one_membership_that_is_missing_is_joined_again)
{
	join(0);
	join(1);
	pass(async, 7 * S);
	sa.members[1] = false;
	pass(async, WITHIN);
	assert_int_equal(told[0].joined, 1);
	assert_int_equal(told[1].joined, 2);
	assert_int_equal(sa.sets, 3);
}

TEST(another_mlid_is_told)
{
	join(0);
	assert_int_equal(told[0].changed, 0);
	forget();
	pass(async, WITHIN);
	assert_int_equal(told[0].joined, 2);
	assert_int_equal(told[0].changed, 0);
	pass(async, WITHIN);
	forget();
	sa.mlid = 0xc005;
	pass(async, WITHIN);
	assert_int_equal(told[0].joined, 3);
	assert_int_equal(told[0].changed, 1);
	assert_int_equal(told[0].mlid, 0xc005);
}

static void expect_renewed(const struct told *here, unsigned before, int64_t forgot,
			   int64_t ready)
{
	assert_true(here->joined > before);
	assert_int_equal(here->error, 0);
	assert_true(here->at <= ready + WITHIN);
	assert_true(here->gap_begin > 0);
	assert_true(here->gap_begin <= forgot);
	assert_true(here->gap_end >= here->gap_begin);
}

/*
 * SMs are restarted at random times, are away for random times, and have the same LID or
 * another one. Each time the SA has all registrations again within the promised time, and the
 * program knows the gap.
 */
TEST(whatever_happens_to_the_sm_the_sa_has_all_registrations_again)
{
	unsigned seed = test_seed();
	int64_t worst = 0, forgot, ready, renewed;
	unsigned joined, subscribed;

	join(0);
	join(1);
	subscribe();
	for (unsigned i = 0; i < 300; i++) {
		pass(async, rand_r(&seed) % 40000 * MS);
		joined = told[0].joined;
		subscribed = told_notices.joined;
		forgot = clock_now;
		sa.silent = true;
		pass(async, rand_r(&seed) % 3 ? 0 : rand_r(&seed) % 30000 * MS);
		forget();
		sa.silent = false;
		sa.sm_lid = rand_r(&seed) % 2 ? 1 : 2;
		ready = clock_now;
		pass(async, WITHIN);
		assert_true(sa.members[0] && sa.members[1] && sa.subscribed);
		expect_renewed(&told[0], joined, forgot, ready);
		expect_renewed(&told_notices, subscribed, forgot, ready);
		renewed = told[0].at > told_notices.at ? told[0].at : told_notices.at;
		if (renewed - ready > worst)
			worst = renewed - ready;
	}
	printf("300 restarts: renewed within %.1f s\n", (double)worst / 1e6);
	assert_true(sa.least_us >= S - MS);
}

TEST(an_sa_that_does_not_respond_is_told_and_so_is_its_return)
{
	join(0);
	pass(async, 10 * S);
	sa.silent = true;
	pass(async, 30 * S);
	assert_int_equal(told[0].failed, 1);
	assert_int_equal(told[0].error, -ETIMEDOUT);
	sa.silent = false;
	pass(async, WITHIN);
	assert_int_equal(told[0].joined, 2); /* the SA has not forgotten it */
	assert_int_equal(sa.sets, 1);
	assert_true(told[0].gap_end - told[0].gap_begin >= 30 * S);
}

TEST(an_sa_that_is_busy_tells_nothing)
{
	join(0);
	sa.tables = IB_MAD_STS_BUSY;
	pass(async, 60 * S);
	sa.tables = 0;
	pass(async, WITHIN);
	assert_int_equal(told[0].joined, 1);
	assert_int_equal(told[0].failed, 0);
	assert_int_equal(sa.sets, 1);
}

TEST(a_port_that_was_down_or_has_another_prefix_joins_again)
{
	const uint8_t gid[16] = {0xfe, 0xc0, [14] = 0x11, [15] = 0x22};

	join(0);
	sa.state = MAD_PORT_DOWN;
	pass(async, 3 * S);
	assert_int_equal(told[0].failed, 1);
	assert_int_equal(told[0].error, -ENETDOWN);
	sa.state = MAD_PORT_ACTIVE;
	pass(async, 3 * S);
	assert_int_equal(told[0].joined, 2);
	assert_true(told[0].gap_end > told[0].gap_begin);
	sa.prefix = UINT64_C(0xfec0) << 48;
	pass(async, 3 * S);
	assert_int_equal(told[0].joined, 3);
	assert_memory_equal(sa.portgid, gid, sizeof(gid));
}

/* --- errors of the SA ------------------------------------------------------------- */

TEST(a_refusal_is_told_once_and_the_join_is_tried_again)
{
	sa.status = 0x600;
	assert_int_equal(begin(0), 0);
	pass(async, 31 * S); /* at 0, 1, 3, 7, 15, 23 and 31 s */
	assert_in_range(sa.sets, 6, 7);
	assert_int_equal(told[0].failed, 1);
	assert_int_equal(told[0].error, -EIO);
	assert_int_equal(told[0].status, 0x600);
	sa.status = 0;
	pass(async, WITHIN);
	assert_int_equal(told[0].joined, 1);
	assert_int_equal(told[0].gap_end, 0);
}

TEST(retries_of_many_memberships_are_one_a_second)
{
	sa.status = 0x600;
	for (unsigned i = 0; i < GROUPS; i++)
		assert_int_equal(begin(i), 0);
	pass(async, 2 * S);
	assert_in_range(sa.sets, GROUPS, GROUPS + 2);
	pass(async, 50 * S);
	assert_in_range(sa.sets, GROUPS + 40, GROUPS + 52);
}

TEST(a_group_that_the_new_sm_does_not_have_is_joined_when_it_exists)
{
	join(0);
	forget();
	sa.status = 0x600;
	pass(async, WITHIN);
	assert_int_equal(told[0].failed, 1);
	assert_int_equal(told[0].status, 0x600);
	pass(async, 60 * S);
	assert_int_equal(told[0].failed, 1);
	sa.status = 0;
	pass(async, WITHIN);
	assert_int_equal(told[0].joined, 2);
	assert_true(told[0].gap_end - told[0].gap_begin >= 75 * S);
}

/* The SA has what it has forgotten again, although it does not tell. */
static void expect_blind_renewal(unsigned most_told)
{
	unsigned sets = sa.sets, joined = told[0].joined;

	assert_true(joined <= most_told);
	pass(async, 100 * S);
	assert_in_range(sa.sets, sets + 5, sets + 10);
	assert_int_equal(told[0].joined, joined); /* it is not known whether it was forgotten */
	forget();
	pass(async, WITHIN);
	assert_true(sa.members[0]);
}

TEST(without_tables_a_membership_is_renewed_every_ten_seconds)
{
	sa.tables = UNSUPPORTED;
	join(0);
	pass(async, 20 * S);
	expect_blind_renewal(1);
	assert_int_equal(told[0].failed, 0);
}

TEST(an_sa_that_lists_no_members_is_not_believed)
{
	sa.hides = true;
	join(0);
	pass(async, 60 * S);
	expect_blind_renewal(4);
	assert_int_equal(told[0].failed, 0);
}
