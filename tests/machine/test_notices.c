/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Notices, subscriptions and memberships: the SA forgets them, does not respond, refuses them,
 * or is on another node.
 */

#include "arrivals.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_link.h>
#include <infiniband/mad_notice.h>
#include <infiniband/mad_sa.h>
#include <infiniband/umad_ext.h>
#include <endian.h>
#include <pthread.h>

#define MS          INT64_C(1000)
#define S           (1000 * MS)
#define GROUPS      100
#define UNSUPPORTED 0x000c
#define INVALID     0x0200
#define DENIED      0x0600
#define WITHIN      (15 * S) /* the promise: the SA has a registration again after this time */
#define NEXT_SM     "n5"     /* its scripted SA has one membership and one subscription */
#define NONE        0xffff   /* of an SM */
#define RECORD      56       /* bytes of an MCMemberRecord in a table */

static struct ibmad_port *port;
static struct mad_async *async;

/* --- the SA and the local port ---------------------------------------------------- */

static struct {
	uint16_t set, tables;    /* the status of its responses; 0: its own */
	unsigned refused;        /* it refuses groups up to this one */
	bool silent, hides;      /* no responses; empty tables */
	bool other_s;            /* a response belongs to another subscription */
	bool lost_state;         /* its records have another JoinState */
	uint16_t mlid;           /* of a group; 0: its own */
	uint16_t sm_lid;         /* in the PortInfo; 0: its own */
	uint64_t prefix;         /* in the PortInfo; 0: its own */
	unsigned lost;           /* an attribute of the local port without a response */
	bool joined, subscribed; /* at the next SM */
	uint8_t member[52], inform[36];
} sa;

static bool is(const struct machine_mad *mad, unsigned method, unsigned attribute)
{
	return mad->bytes[1] == IB_SA_CLASS && mad->bytes[3] == method &&
	       mad->bytes[17] == attribute;
}

static enum machine_verdict reply_table(struct machine_mad *mad, const void *data,
					size_t offset, size_t size, size_t record)
{
	const uint8_t rmpp[] = {1, IB_RMPP_TYPE_DATA, 7, 0, 0, 0, 0, 1, 0, 0, 0};

	if (sa.tables)
		return machine_reply(mad, sa.tables, 0, NULL, 0);
	machine_reply(mad, 0, 24, rmpp, sizeof(rmpp));
	mad->bytes[35] = (uint8_t)(20 + (size ? record : 0));
	mad->bytes[45] = (uint8_t)(record / 8);
	memset(mad->bytes + 56, 0, 200);
	if (size)
		memcpy(mad->bytes + 56 + offset, data, size);
	return MACHINE_REPLY;
}

static enum machine_verdict respond_next_sm(struct machine_mad *mad)
{
	uint8_t *data = mad->bytes + 56;

	if (is(mad, IB_MAD_METHOD_GET_TABLE, IB_SA_ATTR_MCRECORD))
		return reply_table(mad, sa.member, 0, sa.joined ? 52 : 0, RECORD);
	if (is(mad, IB_MAD_METHOD_GET_TABLE, IB_SA_ATTR_INFORMINFORECORD))
		return reply_table(mad, sa.inform, 24, sa.subscribed ? 36 : 0, 64);
	if (is(mad, IB_MAD_METHOD_SET, IB_SA_ATTR_INFORMINFO)) {
		sa.subscribed = data[23];
		memcpy(sa.inform, data, sizeof(sa.inform));
	} else {
		sa.joined = mad->bytes[3] == IB_MAD_METHOD_SET;
		memcpy(sa.member, data, sizeof(sa.member));
	}
	return machine_reply(mad, 0, 0, NULL, 0);
}

static enum machine_verdict at_host(const struct machine_mad *mad)
{
	bool port_info = mad->bytes[1] == IB_SMI_DIRECT_CLASS &&
			 mad->bytes[17] == IB_ATTR_PORT_INFO && mad->bytes[3] & IB_MAD_RESPONSE;
	uint8_t *data = mad->bytes + 64;

	if (mad->bytes[1] == IB_SMI_DIRECT_CLASS && sa.lost == mad->bytes[17])
		return MACHINE_DROP;
	if (port_info && sa.sm_lid)
		mad_set_field(data, 0, IB_PORT_SMLID_F, sa.sm_lid == NONE ? 0 : sa.sm_lid);
	if (port_info && sa.prefix)
		mad_set_field64(data, 0, IB_PORT_GID_PREFIX_F, sa.prefix);
	data = mad->bytes + 56;
	if (sa.other_s && is(mad, IB_MAD_METHOD_GET_RESPONSE, IB_SA_ATTR_INFORMINFO))
		data[27] ^= 1;
	if (sa.lost_state && is(mad, IB_MAD_METHOD_GET_TABLE_RESPONSE, IB_SA_ATTR_MCRECORD))
		data[offsetof(struct umad_sa_mcmember_record, scope_state)] = 0x22;
	if (sa.mlid && is(mad, IB_MAD_METHOD_GET_RESPONSE, IB_SA_ATTR_MCRECORD))
		memcpy(data + offsetof(struct umad_sa_mcmember_record, mlid), &sa.mlid, 2);
	return MACHINE_PASS;
}

static enum machine_verdict at_sa(struct machine_mad *mad, void *arg)
{
	bool set = mad->bytes[3] == IB_MAD_METHOD_SET;

	(void)arg;
	if (mad->at_host)
		return at_host(mad);
	if (mad->bytes[1] != IB_SA_CLASS || mad->bytes[3] & IB_MAD_RESPONSE)
		return MACHINE_PASS;
	if (sa.silent || !strcmp(mad->node, NEXT_SM) != !!sa.sm_lid)
		return MACHINE_DROP;
	if (mad->bytes[3] == IB_MAD_METHOD_GET_TABLE && mad->bytes[25] == IB_RMPP_TYPE_ACK)
		return MACHINE_PASS;
	if (mad->bytes[3] == IB_MAD_METHOD_GET_TABLE && (sa.tables || sa.hides))
		return reply_table(mad, NULL, 0, 0,
				   mad->bytes[17] == IB_SA_ATTR_MCRECORD ? RECORD : 64);
	if (set && sa.set)
		return machine_reply(mad, sa.set, 0, NULL, 0);
	if (set && mad->bytes[17] == IB_SA_ATTR_MCRECORD && sa.refused &&
	    mad->bytes[56 + 15] <= sa.refused)
		return machine_reply(mad, DENIED, 0, NULL, 0);
	return strcmp(mad->node, NEXT_SM) != 0 ? MACHINE_PASS : respond_next_sm(mad);
}

static unsigned sets(unsigned attribute)
{
	unsigned found = 0;

	for (unsigned i = 0; i < arrival_count; i++)
		found += arrivals[i].mad[1] == IB_SA_CLASS &&
			 arrivals[i].mad[3] == IB_MAD_METHOD_SET &&
			 arrivals[i].mad[17] == attribute;
	return found;
}

/* The tables that were requested of the SA, ACKs left out. */
static unsigned checks(void)
{
	unsigned found = 0;

	for (unsigned i = 0; i < arrival_count; i++)
		found += arrivals[i].mad[1] == IB_SA_CLASS &&
			 arrivals[i].mad[3] == IB_MAD_METHOD_GET_TABLE &&
			 arrivals[i].mad[25] != IB_RMPP_TYPE_ACK;
	return found;
}

/* The latest of these MADs that arrived. */
static const struct arrival *last_of(unsigned method, unsigned attribute)
{
	unsigned i = arrival_count;

	while (i && (arrivals[i - 1].mad[1] != IB_SA_CLASS ||
		     arrivals[i - 1].mad[3] != method || arrivals[i - 1].mad[17] != attribute))
		i--;
	assert_true(i > 0);
	return &arrivals[i - 1];
}

/* --- the program ------------------------------------------------------------------ */

static struct told {
	int64_t gap_begin, gap_end, at;
	struct mad_membership *membership;
	unsigned joined, failed, ends;
	int error, changed;
	unsigned status;
	struct mad_failure failure; /* of the latest error */
	uint16_t mlid;
	bool stops; /* in the callback */
} told[GROUPS], subscription;

/* The clock of the machine, as gaps have it. */
static int64_t clock_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * S + time.tv_nsec / 1000;
}

static void note_error(struct told *here, int error, unsigned status)
{
	if (error) {
		here->failure = *mad_last_failure();
		assert_int_equal(here->failure.error, error);
	}
	here->error = error;
	here->status = status;
	here->at = clock_now();
}

static void tell_member(struct mad_membership *membership,
			const struct mad_membership_state *state, void *arg)
{
	struct told *here = arg;

	assert_ptr_equal(membership, here->membership);
	assert_int_equal(here->ends, 0);
	note_error(here, state->error, state->status);
	here->changed = state->changed;
	if (state->kind == MAD_MEMBERSHIP_END) {
		here->ends++;
		return;
	}
	if (state->kind == MAD_MEMBERSHIP_FAILED) {
		here->failed++;
		assert_true(state->error < 0);
		assert_true(!state->record == !here->joined);
	} else {
		assert_int_equal(state->error, 0);
		here->joined++;
		here->gap_begin = (int64_t)state->gap_begin_us;
		here->gap_end = (int64_t)state->gap_end_us;
		here->mlid = be16toh(state->record->mlid);
	}
	if (here->stops)
		mad_membership_stop(membership);
}

static struct mad_notices *notices;
static struct {
	unsigned traps, ports;
	struct mad_notice trap, port;
	struct mad_notices_stats last; /* when they ended */
	bool stop_run;                 /* in the callback */
} heard;

static void tell_notice(struct mad_notices *from, const struct mad_notice *notice, void *arg)
{
	struct told *here = &subscription;
	char line[MAD_NOTICE_TEXT_SIZE];

	(void)arg;
	assert_true(strlen(mad_notice_text(notice, line, sizeof(line))) > 0);
	if (heard.stop_run)
		mad_async_stop(async);
	if (notice->kind == MAD_NOTICE_TRAP) {
		heard.traps++;
		heard.trap = *notice;
		return;
	}
	if (notice->kind == MAD_NOTICE_PORT) {
		heard.ports++;
		heard.port = *notice;
		return;
	}
	note_error(here, notice->error, notice->status);
	if (notice->kind == MAD_NOTICE_SUBSCRIPTION && !notice->error)
		assert_non_null(strstr(line, "accepted"));
	if (notice->kind == MAD_NOTICE_END) {
		here->ends++;
		assert_int_equal(mad_notices_get_stats(from, &heard.last, sizeof(heard.last)),
				 0);
		notices = NULL;
		return;
	}
	here->joined += !notice->error;
	here->failed += notice->error != 0;
	here->gap_begin = (int64_t)notice->gap_begin_us;
	here->gap_end = (int64_t)notice->gap_end_us;
	if (here->stops)
		mad_notices_stop(from);
}

static int setup(void)
{
	int classes[] = {IB_SA_CLASS, IB_SMI_DIRECT_CLASS, IB_SMI_CLASS};

	memset(&sa, 0, sizeof(sa));
	memset(told, 0, sizeof(told));
	memset(&subscription, 0, sizeof(subscription));
	memset(&heard, 0, sizeof(heard));
	notices = NULL;
	machine_setup();
	machine_rule("slow 20us");
	arrivals_begin();
	handle_mads(at_sa, NULL);
	port = mad_rpc_open_port(NULL, 0, classes, 3);
	async = mad_async_create(port);
	return async ? 0 : -1;
}

static int teardown(void)
{
	mad_async_free(async);
	mad_rpc_close_port(port);
	return machine_teardown();
}

FIXTURE(setup, teardown);

/* The program processes the engine for this time. */
static void pass(int64_t us)
{
	int64_t end = machine_us() + us;

	while (machine_us() < end) {
		mad_async_wait(async, (int)((end - machine_us() + 999) / 1000));
		if (machine_us() < end)
			machine_pass(end - machine_us()); /* nothing is left */
	}
}

static void put_mgid(uint8_t mgid[16], unsigned group)
{
	memset(mgid, 0, 16);
	mgid[0] = 0xff;
	mgid[1] = 0x12;
	mgid[15] = (uint8_t)(group + 1);
}

#define TO_CREATE                                                                             \
	(UMAD_SA_MCM_COMP_MASK_QKEY | UMAD_SA_MCM_COMP_MASK_PKEY | UMAD_SA_MCM_COMP_MASK_SL | \
	 UMAD_SA_MCM_COMP_MASK_FLOW_LABEL | UMAD_SA_MCM_COMP_MASK_TCLASS)

static int begin(unsigned group)
{
	struct umad_sa_mcmember_record member = {.qkey = htobe32(0xb1b),
						 .pkey = htobe16(0xffff)};
	const struct mad_membership_options options = {
		.member = &member, .component_mask = TO_CREATE, .join_state = 1};

	put_mgid(member.mgid, group);
	return mad_membership_start(async, &options, tell_member, &told[group],
				    &told[group].membership);
}

static void join(unsigned group)
{
	assert_int_equal(begin(group), 0);
	pass(2 * S);
	assert_int_equal(told[group].joined, 1);
}

static void leave(unsigned group)
{
	mad_membership_stop(told[group].membership);
	pass(4 * S);
	assert_int_equal(told[group].ends, 1);
}

static void subscribe(struct mad_notices_options options)
{
	assert_int_equal(mad_notices_start(async, &options, tell_notice, NULL, &notices), 0);
	pass(2 * S);
}

static const struct mad_notices_options usual;

static void stop_notices(int error)
{
	mad_notices_stop(notices);
	pass(20 * S);
	assert_int_equal(subscription.ends, 1);
	assert_int_equal(subscription.error, error);
}

static struct mad_notices_stats notices_stats(void)
{
	struct mad_notices_stats stats;

	assert_int_equal(mad_notices_get_stats(notices, &stats, sizeof(stats)), 0);
	return stats;
}

/* How many records of the port the SA has. */
static size_t records(unsigned attribute)
{
	uint8_t record[52] = {0};
	size_t at = attribute == IB_SA_ATTR_MCRECORD ? 16 : 0, found;
	struct mad_sa_query query = {.attribute = attribute,
				     .component_mask = at ? UMAD_SA_MCM_COMP_MASK_PORT_GID
							  : MAD_SA_INFORM_RECORD_SUBSCRIBER_GID,
				     .record = record,
				     .record_size = sizeof(record)};
	struct mad_sa_table *table;

	record[at] = 0xfe;
	record[at + 1] = 0x80;
	mad_set_field64(record + at, 0, IB_GID_GUID_F, machine_guid("host"));
	assert_int_equal(mad_sa_request(port, &query, &table), 0);
	found = table->count;
	mad_sa_table_free(table);
	return found;
}

/* --- decoding of notices ---------------------------------------------------------- */

static const struct trap_row {
	const char *behaviour; /* the text, too */
	uint8_t raw[80];
} traps[] = {
	{"trap 144: LID 5: capability mask 0x02514868",
	 {0x84, [3] = 1, [5] = 144, [13] = 5, [16] = 0x02, 0x51, 0x48, 0x68}},
	{"trap 144: LID 5: capability mask 0x02514868, new node description",
	 {0x84, [3] = 1, [5] = 144, [13] = 5, [15] = 1, 0x02, 0x51, 0x48, 0x68, [21] = 1}},
	{"trap 64: GID fe80::1 in service",
	 {0x83, [3] = 4, [5] = 64, [16] = 0xfe, 0x80, [31] = 1}},
	{"trap 67: GID fe80::1 multicast group deleted",
	 {0x83, [3] = 4, [5] = 67, [16] = 0xfe, 0x80, [31] = 1}},
	{"trap 128: LID 7: the state of a link has changed",
	 {0x83, [3] = 4, [5] = 128, [11] = 7}},
	{"trap 130: LID 8 port 3: excessive buffer overruns",
	 {0x83, [3] = 4, [5] = 130, [13] = 8, 3}},
	{"trap 145: LID 8: system image GUID 0x0000000000000011",
	 {0x83, [3] = 4, [5] = 145, [13] = 8, 3, [23] = 0x11}},
	{"trap 256: LID 9: bad M_Key 0x0000000000000042 in a request of method 0x01, "
	 "attribute 0x0015, modifier 0x00000000, return path 1,4",
	 {0x83, [3] = 4, 1, [13] = 9, [16] = 1, [19] = 0x15, [31] = 0x42, [33] = 0x82, 1, 4}},
	{"trap 257: bad P_Key 0x007f, LID 9 QP 0x12 GID ::1 to LID 10 QP 0x34 GID ::2, SL 3",
	 {0x83, [3] = 4, 1, 1, [13] = 9, [15] = 10, [19] = 0x7f,
	  0x30, [23] = 0x12, [27] = 0x34, [43] = 1, [59] = 2}},
	{"trap 259: switch LID 20 port 6: bad P_Key 0x007f, LID 9 QP 0x12 GID ::1 to "
	 "LID 10 QP 0x34 GID ::2, SL 3",
	 {0x83, [3] = 4, 1, 3, [13] = 9, [15] = 10, [17] = 0x7f,
	  0x30, [21] = 0x12, [25] = 0x34, [41] = 1, [57] = 2, [59] = 20, 6}},
	{"trap 4660: type 4 of producer 2 from LID 7",
	 {0x84, 0, 0, 2, 0x12, 0x34, 0, 7, 0x80, 9}},
	{"trap of vendor 0x000002, device 0x1290: type 2 from LID 7",
	 {0x02, 0, 0, 2, 0x12, 144, 0, 7}},
};

static void decode_one(const struct trap_row *row)
{
	struct mad_notice notice;
	char line[MAD_NOTICE_TEXT_SIZE];

	assert_int_equal(mad_notice_decode(row->raw, 80, &notice, sizeof(notice)), 0);
	assert_string_equal(mad_notice_text(&notice, line, sizeof(line)), row->behaviour);
	assert_ptr_equal(mad_notice_text(&notice, line, 8), line);
	assert_string_equal(line, strncmp(row->behaviour, "trap of", 7)
					  ? memcpy((char[8]){0}, row->behaviour, 7)
					  : "trap of");
}

TEST_ROWS(decode_one, traps);

/* A program may be compiled with an older or a newer structure. */
TEST(a_decoded_notice_has_what_all_have_and_the_program_s_size)
{
	uint8_t raw[80] = {0x84, 0, 0, 2, 0x12, 0x34, 0, 7, 0x80, 9};
	struct {
		struct mad_notice notice;
		char newer[8];
	} larger;

	memset(&larger, 0x55, sizeof(larger));
	assert_int_equal(mad_notice_decode(raw, 80, &larger.notice,
					   offsetof(struct mad_notice, issuer_lid)),
			 0);
	assert_int_equal(larger.notice.trap, 0x1234);
	assert_int_equal(larger.notice.issuer_lid, 0x55555555);
	assert_int_equal(mad_notice_decode(raw, 80, &larger.notice, sizeof(larger)), 0);
	assert_int_equal(larger.newer[0] | larger.newer[7], 0);
	assert_int_equal(larger.notice.details, 0);
	assert_int_equal(larger.notice.issuer_lid, 7);
	assert_int_equal(larger.notice.toggle, 1);
	assert_int_equal(larger.notice.count, 9);
	raw[4] = 1;
	raw[5] = 0;
	raw[33] = 0xff; /* more hops than the path has entries */
	assert_int_equal(mad_notice_decode(raw, 80, &larger.notice, sizeof(larger)), 0);
	assert_int_equal(larger.notice.path_length, 30);
	assert_int_equal(mad_notice_decode(raw, 64, &larger.notice, sizeof(larger)), 0);
	assert_int_equal(mad_notice_decode(raw, 63, &larger.notice, sizeof(larger)), -EBADMSG);
	assert_int_equal(mad_notice_decode(NULL, 80, &larger.notice, 8), -EINVAL);
	assert_int_equal(mad_notice_decode(raw, 80, NULL, 8), -EINVAL);
}

/* --- subscriptions and reports ---------------------------------------------------- */

TEST(traps_of_the_fabric_are_reported_while_the_subscription_lasts)
{
	assert_int_equal(mad_notices_start(async, NULL, tell_notice, NULL, &notices), 0);
	pass(2 * S);
	assert_int_equal(subscription.joined, 1);
	assert_int_equal(subscription.gap_end, 0);
	assert_int_equal(sets(IB_SA_ATTR_INFORMINFO), 1);
	expect_mad(last_of(IB_MAD_METHOD_SET, IB_SA_ATTR_INFORMINFO)->mad,
		   "0:01030202 17:03 54:15f2 72:ffff 78:0101ffffffff 86:0112 89:ffffff");
	assert_int_equal(records(IB_SA_ATTR_INFORMINFORECORD), 1);
	machine_rule("link down on n3");
	pass(2 * S);
	assert_true(heard.traps > 0);
	assert_int_equal(heard.trap.generic, 1);
	assert_int_equal(notices_stats().reports, heard.traps);
	assert_int_equal(notices_stats().confirmed, heard.traps);
	assert_int_equal(count_arrivals(IB_SA_CLASS, IB_MAD_METHOD_REPORT_RESPONSE),
			 heard.traps);
	assert_int_equal(notices_stats().subscriptions, 1);
	stop_notices(0);
	assert_int_equal(sets(IB_SA_ATTR_INFORMINFO), 2);
	assert_int_equal(records(IB_SA_ATTR_INFORMINFORECORD), 0);
	mad_notices_stop(NULL);
}

TEST(filters_say_which_notices_are_wanted)
{
	struct mad_notice_filter filters[] = {
		{.by = MAD_NOTICE_BY_TRAP | MAD_NOTICE_BY_LIDS,
		 .trap = 128,
		 .lid_begin = 3,
		 .lid_end = 9},
		{.vendor = 1,
		 .by = MAD_NOTICE_BY_PRODUCER | MAD_NOTICE_BY_GID | MAD_NOTICE_BY_TYPE,
		 .producer = 0x2c9,
		 .type = 4,
		 .gid = {[15] = 7}},
	};
	const struct mad_notice_filter wrong[] = {
		{.by = MAD_NOTICE_BY_LIDS, .lid_begin = 3, .lid_end = 2},
		{.by = MAD_NOTICE_BY_LIDS, .lid_begin = 0, .lid_end = 2},
		{.by = MAD_NOTICE_BY_LIDS, .lid_begin = 1, .lid_end = 0x10000},
		{.by = MAD_NOTICE_BY_TYPE, .type = 0x10000},
		{.by = MAD_NOTICE_BY_TRAP, .trap = 0x10000},
		{.by = MAD_NOTICE_BY_PRODUCER, .producer = 0x1000000},
		{.by = 0x100},
		{.reserved = {[3] = 1}},
	};
	const struct mad_notices_options wrong_options[] = {
		{.filters = filters, .filter_count = 17},
		{.filter_count = 1},
		{.reserved = {[0] = 1}},
		{.check_ms = UINT32_MAX},
		{.poll_ms = UINT32_MAX},
	};
	struct mad_notices *none;
	const struct arrival *set;

	subscribe((struct mad_notices_options){.filters = filters, .filter_count = 2});
	set = last_of(IB_MAD_METHOD_SET, IB_SA_ATTR_INFORMINFO);
	expect_mad(set[-1].mad, "0:01030202 17:03 54:15f6 72:00030009 78:0101ffff0080"
				" 86:0112 89:ffffff");
	expect_mad(set->mad,
		   "0:01030202 17:03 54:15f3 71:07 72:ffff 79:01 80:0004ffff 86:0112 90:02c9");
	assert_int_equal(records(IB_SA_ATTR_INFORMINFORECORD), 2);
	stop_notices(0);
	assert_int_equal(records(IB_SA_ATTR_INFORMINFORECORD), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		filters[0] = wrong[i];
		assert_int_equal(
			mad_notices_start(async,
					  &(struct mad_notices_options){.filters = filters,
									.filter_count = 1},
					  tell_notice, NULL, &none),
			-EINVAL);
	}
	for (size_t i = 0; i < sizeof(wrong_options) / sizeof(*wrong_options); i++)
		assert_int_equal(
			mad_notices_start(async, &wrong_options[i], tell_notice, NULL, &none),
			-EINVAL);
	assert_int_equal(mad_notices_start(async, NULL, NULL, NULL, &none), -EINVAL);
	assert_int_equal(mad_notices_start(NULL, NULL, tell_notice, NULL, &none), -EINVAL);
	assert_int_equal(mad_notices_start(async, NULL, tell_notice, NULL, NULL), -EINVAL);
	assert_int_equal(mad_notices_get_stats(NULL, NULL, 0), -EINVAL);
}

TEST(a_refused_subscription_is_told_once_and_tried_again)
{
	char text[MAD_ERROR_TEXT_SIZE];

	sa.set = 0x700;
	subscribe(usual);
	assert_int_equal(subscription.error, -EIO);
	assert_int_equal(subscription.status, 0x700);
	assert_string_equal(mad_failure_text(&subscription.failure, text, sizeof(text)),
			    "SA: request denied");
	pass(4 * S); /* at 0, 1 and 3 s */
	assert_int_equal(sets(IB_SA_ATTR_INFORMINFO), 3);
	assert_int_equal(notices_stats().failures, 3);
	assert_int_equal(subscription.failed, 1);
	sa.set = 0;
	sa.other_s = true; /* a response to another subscription is an error */
	pass(4 * S);
	assert_int_equal(subscription.error, -EBADMSG);
	sa.other_s = false;
	pass(WITHIN);
	assert_int_equal(subscription.joined, 1);
}

static void report(uint32_t tid, unsigned attribute, uint8_t lid)
{
	uint8_t mad[MACHINE_MAD] = {1, IB_SA_CLASS, 2, IB_MAD_METHOD_REPORT};
	const uint8_t notice[] = {0x81, 0, 0, 2, 0, 128, 0, lid, 0, 0, 0, lid};

	tid = htobe32(tid);
	memcpy(mad + 12, &tid, sizeof(tid));
	mad[17] = (uint8_t)attribute;
	memcpy(mad + 56, notice, sizeof(notice));
	machine_send("sm", mad, 0);
}

static unsigned confirmations(void)
{
	return count_arrivals(IB_SA_CLASS, IB_MAD_METHOD_REPORT_RESPONSE);
}

TEST(a_report_is_handed_out_once_and_confirmed_each_time)
{
	subscribe(usual);
	machine_fail(MACHINE_WRITE, 1, ENOMEM);
	report(77, 2, 6);
	pass(S / 10);
	assert_int_equal(heard.traps, 1);
	assert_int_equal(heard.trap.trap, 128);
	assert_int_equal(heard.trap.lid, 6);
	assert_int_equal(heard.trap.issuer_lid, 6);
	assert_int_equal(confirmations(), 0);
	report(77, 2, 6);
	pass(S / 10);
	assert_int_equal(confirmations(), 1);
	assert_int_equal(last_arrival()->mad[15], 77);
	assert_int_equal(last_arrival()->mad[5], 0);
	report(78, 2, 6);
	report(77, 2, 7); /* another notice */
	pass(S / 10);
	assert_int_equal(heard.traps, 3);
	report(77, 2, 7);
	report(78, 2, 6);
	pass(S / 10);
	assert_int_equal(heard.traps, 3);
	assert_int_equal(confirmations(), 5);
	report(3, 9, 6); /* no Notice */
	pass(S / 10);
	assert_int_equal(last_arrival()->mad[5], UNSUPPORTED);
	report(4, 2, 6);
	machine_pass(1);
	machine_deform(135, 0); /* short */
	pass(S / 10);
	assert_int_equal(heard.traps, 3);
	pass(12 * S);
	report(78, 2, 6); /* much later, it is another report */
	pass(S / 10);
	assert_int_equal(heard.traps, 4);
	stop_notices(0);
	assert_int_equal(heard.last.reports, 4);
	assert_int_equal(heard.last.duplicates, 3);
	assert_int_equal(heard.last.malformed, 2);
}

TEST(what_is_not_kept_in_a_storm_is_not_confirmed)
{
	struct mad_async *other = mad_async_create(port);

	subscribe((struct mad_notices_options){.limit = 100});
	for (unsigned i = 0; i < 3000; i++)
		report(1000 + i, 2, (uint8_t)i);
	machine_pass(100);
	for (unsigned i = 0; i < 100; i++)
		mad_async_process(other);
	mad_async_free(other);
	pass(S);
	assert_int_equal(heard.traps, 100);
	assert_int_equal(confirmations(), 100);
	assert_int_equal(notices_stats().dropped, 2900);
}

TEST(the_next_sm_is_asked_although_the_one_before_does_not_respond)
{
	sa.silent = true;
	subscribe((struct mad_notices_options){.poll_ms = 10});
	machine_rule("link down on sm");
	sa.silent = false;
	sa.sm_lid = machine_lid(NEXT_SM);
	pass(S / 2);
	assert_int_equal(subscription.joined, 1);
	assert_int_equal(subscription.failed, 0); /* no timeout before */
	assert_int_equal(heard.ports, 1);
	assert_int_equal(heard.port.before.sm_lid, machine_lid("sm"));
	assert_int_equal(heard.port.after.sm_lid, machine_lid(NEXT_SM));
	assert_true(sa.subscribed);
	sa.sm_lid = NONE;
	pass(2 * S);
	assert_int_equal(subscription.error, -ENETDOWN);
}

TEST(a_link_that_was_down_is_told_and_the_subscription_renewed)
{
	subscribe(usual);
	machine_rule("link down on host");
	pass(3 * S);
	assert_int_equal(subscription.failed, 1);
	assert_int_equal(subscription.error, -ENETDOWN);
	assert_int_equal(heard.port.after.state, MAD_PORT_DOWN);
	machine_rule("link up on host");
	pass(WITHIN);
	assert_int_equal(subscription.joined, 2);
	assert_true(subscription.gap_end > subscription.gap_begin);
	assert_int_equal(heard.port.after.state, MAD_PORT_ACTIVE);
}

TEST(a_callback_may_stop_notices_and_the_run)
{
	subscription.stops = true;
	assert_int_equal(mad_notices_start(async, NULL, tell_notice, NULL, &notices), 0);
	assert_true(mad_async_wait(async, -1) >= 2);
	assert_int_equal(subscription.ends, 1);
	memset(&subscription, 0, sizeof(subscription));
	subscribe(usual); /* another subscription receives the reports now */
	heard.stop_run = true;
	for (unsigned i = 0; i < 3; i++)
		report(77 + i, 2, 6);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(mad_async_wait(async, -1), -EINTR);
		assert_int_equal(heard.traps, i);
	}
	mad_notices_stop(notices); /* a timer */
	mad_async_stop(async);
	assert_int_equal(mad_async_wait(async, -1), -EINTR);
	assert_int_equal(subscription.ends, 0);
	assert_int_equal(mad_async_wait(async, -1), -EINTR);
	assert_int_equal(subscription.ends, 1);
}

TEST(a_stop_ends_what_is_in_flight)
{
	sa.silent = true;
	subscribe(usual);
	assert_int_equal(sets(IB_SA_ATTR_INFORMINFO), 2); /* retransmitted */
	sa.silent = false;
	stop_notices(0);
	assert_int_equal(subscription.joined, 0);
	assert_int_equal(heard.last.failures, 1);
}

static void *destroy_later(void *arg)
{
	mad_async_free(arg);
	return NULL;
}

/* The thread that frees the engine waits for the call, or comes first or last. */
TEST(a_destroyed_engine_ends_notices_as_soon_as_they_are_started)
{
	struct mad_notices *started;
	pthread_t destroyer;

	for (unsigned i = 0; i < 100; i++) {
		struct mad_async *engine = mad_async_create(port);

		assert_int_equal(mad_notices_start(engine, NULL, tell_notice, NULL, &started),
				 0);
		assert_int_equal(pthread_create(&destroyer, NULL, destroy_later, engine), 0);
		pthread_join(destroyer, NULL);
	}
	assert_int_equal(subscription.ends, 100);
	assert_int_equal(subscription.error, -ECANCELED);
}

static void hear_log(enum umad_log_level level, const char *text, void *user)
{
	(void)level;
	snprintf(user, 128, "%s", text);
}

TEST(without_a_class_there_are_no_notices_and_no_memberships)
{
	static const struct {
		int class;
		const char *message;
	} ports[] = {
		{IB_SA_CLASS, "mad_notices_start: class 0x81 is not registered on the port"},
		{IB_SMI_DIRECT_CLASS,
		 "mad_notices_start: class 0x03 is not registered on the port"},
	};
	struct mad_async *own = async;
	struct mad_notices *none;

	for (size_t i = 0; i < 2; i++) {
		int class = ports[i].class;
		struct ibmad_port *other = mad_rpc_open_port(NULL, 0, &class, 1);
		char line[128] = "";

		async = mad_async_create(other);
		ibdebug = 1;
		umad_set_log_hook(hear_log, line);
		assert_int_equal(mad_notices_start(async, NULL, tell_notice, NULL, &none),
				 -EPROTONOSUPPORT);
		umad_set_log_hook(NULL, NULL);
		ibdebug = 0;
		assert_non_null(strstr(line, ports[i].message));
		assert_int_equal(begin(0), -EPROTONOSUPPORT);
		assert_null(told[0].membership);
		mad_async_free(async);
		mad_rpc_close_port(other);
	}
	async = own;
	subscribe(usual);
	assert_int_equal(mad_notices_start(async, NULL, tell_notice, NULL, &none), -EADDRINUSE);
	assert_null(none);
}

/* --- memberships ---------------------------------------------------------------------- */

TEST(a_membership_has_the_gid_of_the_port_and_the_components_of_the_program)
{
	const struct arrival *set;

	join(3);
	set = last_of(IB_MAD_METHOD_SET, IB_SA_ATTR_MCRECORD);
	expect_mad(set->mad, "0:01030202 17:38 53:0130c7 56:ff12 71:04 72:fe80000000000000"
			     "0000000000001001 88:00000b1b 96:ffff 104:01");
	assert_int_equal(told[3].mlid >> 12, 0xc);
	assert_int_equal(told[3].gap_end, 0);
	assert_int_equal(records(IB_SA_ATTR_MCRECORD), 1);
	leave(3);
	assert_int_equal(told[3].error, 0);
	assert_int_equal(told[3].status, 0);
	assert_int_equal(records(IB_SA_ATTR_MCRECORD), 0);
	/* one that was never granted ends without a request */
	assert_int_equal(begin(0), 0);
	leave(0);
	assert_int_equal(told[0].error, 0);
	assert_int_equal(count_arrivals(IB_SA_CLASS, IB_MAD_METHOD_DELETE), 1);
}

TEST(a_group_that_the_sa_chooses_is_the_group_from_then_on)
{
	struct umad_sa_mcmember_record member = {.pkey = htobe16(0xffff)};
	const struct mad_membership_options any = {
		.member = &member, .component_mask = TO_CREATE, .join_state = 1};
	const uint8_t *mad;

	assert_int_equal(
		mad_membership_start(async, &any, tell_member, &told[0], &told[0].membership),
		0);
	pass(60 * S);
	assert_int_equal(told[0].joined, 1);
	assert_int_equal(sets(IB_SA_ATTR_MCRECORD), 1);
	machine_rule("forget");
	pass(WITHIN);
	assert_int_equal(told[0].joined, 2);
	mad = last_of(IB_MAD_METHOD_SET, IB_SA_ATTR_MCRECORD)->mad;
	assert_int_equal(mad[56], 0xff);
	assert_int_equal(mad[58] << 8 | mad[59], 0xa01b); /* the SA's signature */
	assert_int_equal(records(IB_SA_ATTR_MCRECORD), 1);
}

TEST(a_hundred_memberships_share_one_check)
{
	for (unsigned i = 0; i < GROUPS; i++)
		assert_int_equal(begin(i), 0);
	pass(60 * S);
	assert_int_equal(sets(IB_SA_ATTR_MCRECORD), GROUPS);
	assert_in_range(checks(), 11, 12);
	for (unsigned i = 0; i < GROUPS; i++)
		assert_int_equal(told[i].joined, 1);
	machine_rule("forget");
	pass(WITHIN);
	assert_int_equal(sets(IB_SA_ATTR_MCRECORD), 2 * GROUPS);
	for (unsigned i = 0; i < GROUPS; i++)
		assert_int_equal(told[i].joined, 2);
}

TEST(a_program_chooses_the_interval_of_checks)
{
	subscribe((struct mad_notices_options){.check_ms = 7000, .poll_ms = 3600000});
	pass(70 * S);
	assert_in_range(checks(), 9, 11);
	stop_notices(0);
	subscription.ends = 0;
	arrival_count = 0;
	subscribe((struct mad_notices_options){.check_ms = 60000});
	pass(600 * S);
	assert_in_range(checks(), 9, 10);
	join(0); /* its interval is shorter */
	pass(600 * S);
	assert_in_range(checks(), 110, 130);
	stop_notices(0);
	leave(0);
	arrival_count = 0;
	pass(600 * S); /* nothing is registered */
	assert_int_equal(arrival_count, 0);
}

TEST(what_is_missing_at_the_sa_is_joined_again_and_the_rest_is_not)
{
	struct umad_sa_mcmember_record member = {.scope_state = 0};
	struct mad_sa_query query = {0};

	join(0);
	join(1);
	assert_int_equal(told[0].changed, 0);
	put_mgid(member.mgid, 1);
	mad_sa_member_query(&query, IB_MAD_METHOD_DELETE, &member, 1);
	assert_int_equal(mad_sa_request(port, &query, NULL), 0);
	sa.mlid = htobe16(0xc055);
	pass(WITHIN);
	assert_int_equal(told[0].joined, 1);
	assert_int_equal(told[1].joined, 2);
	assert_int_equal(told[1].changed, 1); /* another MLID */
	assert_int_equal(told[1].mlid, 0xc055);
	assert_int_equal(sets(IB_SA_ATTR_MCRECORD), 3);
	machine_rule("forget");
	pass(WITHIN);
	assert_int_equal(told[1].joined, 3);
	assert_int_equal(told[1].changed, 0);
	leave(1);
	arrival_count = 0;
	sa.lost_state = true; /* its JoinState is missing */
	pass(WITHIN);
	assert_true(sets(IB_SA_ATTR_MCRECORD) > 0);
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

	join(0);
	subscribe(usual);
	for (unsigned i = 0; i < 300; i++) {
		unsigned joined, subscribed;
		int64_t forgot, ready;

		arrival_count = 0;
		pass(rand_r(&seed) % 40000 * MS);
		joined = told[0].joined;
		subscribed = subscription.joined;
		forgot = clock_now();
		sa.silent = true;
		pass(rand_r(&seed) % 3 ? 0 : rand_r(&seed) % 30000 * MS);
		machine_rule("forget");
		sa.joined = sa.subscribed = sa.silent = false;
		sa.sm_lid = rand_r(&seed) % 2 ? machine_lid(NEXT_SM) : 0;
		ready = clock_now();
		pass(WITHIN);
		if (sa.sm_lid)
			assert_true(sa.joined && sa.subscribed);
		else
			assert_int_equal(records(IB_SA_ATTR_MCRECORD) +
						 records(IB_SA_ATTR_INFORMINFORECORD),
					 2);
		expect_renewed(&told[0], joined, forgot, ready);
		expect_renewed(&subscription, subscribed, forgot, ready);
	}
}

TEST(an_sa_that_does_not_respond_is_told_and_so_is_its_return)
{
	char text[MAD_ERROR_TEXT_SIZE];

	join(0);
	pass(10 * S);
	machine_rule("silent on sm");
	pass(30 * S);
	assert_int_equal(told[0].failed, 1);
	assert_int_equal(told[0].error, -ETIMEDOUT);
	assert_true(told[0].failure.transmissions > 0);
	machine_rule("clear");
	pass(WITHIN);
	assert_int_equal(told[0].joined, 2); /* the SA has not forgotten it */
	assert_int_equal(sets(IB_SA_ATTR_MCRECORD), 1);
	assert_true(told[0].gap_end - told[0].gap_begin >= 30 * S);
	/* an SA that is busy tells nothing */
	sa.tables = IB_MAD_STS_BUSY;
	pass(60 * S);
	sa.tables = 0;
	pass(WITHIN);
	assert_int_equal(told[0].joined, 2);
	assert_int_equal(told[0].failed, 1);
	assert_int_equal(sets(IB_SA_ATTR_MCRECORD), 1);
	/* an error that is of no request has no request in its text */
	machine_rule("link down on host");
	pass(3 * S);
	assert_int_equal(told[0].error, -ENETDOWN);
	assert_int_equal(told[0].failure.transmissions, 0);
	assert_int_equal(told[0].failure.method, 0);
	mad_failure_text(&told[0].failure, text, sizeof(text));
	assert_string_equal(text, "the local port is not active, or has no SM");
	machine_rule("link up on host");
	pass(WITHIN);
	assert_int_equal(told[0].joined, 3);
	sa.prefix = UINT64_C(0xfec0) << 48; /* the GID of the port is another one */
	pass(3 * S);
	assert_int_equal(last_of(IB_MAD_METHOD_SET, IB_SA_ATTR_MCRECORD)->mad[73], 0xc0);
}

/* --- errors of the SA ------------------------------------------------------------- */

TEST(refused_joins_are_told_once_and_tried_again_at_a_pace)
{
	sa.set = DENIED;
	assert_int_equal(begin(0), 0);
	pass(32 * S); /* at 0, 1, 3, 7, 15, 23 and 31 s */
	assert_int_equal(sets(IB_SA_ATTR_MCRECORD), 7);
	assert_int_equal(told[0].failed, 1);
	assert_int_equal(told[0].error, -EIO);
	assert_int_equal(told[0].status, DENIED);
	arrival_count = 0;
	for (unsigned i = 1; i < GROUPS; i++)
		assert_int_equal(begin(i), 0);
	pass(2 * S);
	assert_in_range(sets(IB_SA_ATTR_MCRECORD), GROUPS - 1, GROUPS + 2);
	pass(50 * S); /* retries of all are one a second */
	assert_in_range(sets(IB_SA_ATTR_MCRECORD), GROUPS + 39, GROUPS + 52);
	sa.set = 0;
	sa.refused = 30; /* each of many that are refused has its turn */
	pass(120 * S);
	assert_int_equal(told[29].joined, 0);
	for (unsigned i = 30; i < GROUPS; i++) {
		assert_int_equal(told[i].joined, 1);
		assert_int_equal(told[i].gap_end, 0);
	}
	/* a group that the new SM refuses is joined when it may be */
	machine_rule("forget");
	sa.refused = 40;
	pass(WITHIN);
	assert_int_equal(told[35].failed, 2);
	pass(60 * S);
	assert_int_equal(told[35].failed, 2);
	sa.refused = 0;
	pass(60 * S);
	assert_int_equal(told[35].joined, 2);
	assert_true(told[35].gap_end - told[35].gap_begin >= 60 * S);
}

/* An SA without tables, and one that lists no members, which is not believed. */
TEST(without_tables_memberships_are_renewed_every_ten_seconds)
{
	for (unsigned hides = 0; hides <= 1; hides++) {
		unsigned joined;

		sa.tables = hides ? 0 : UNSUPPORTED;
		sa.hides = hides;
		join(hides);
		pass(60 * S);
		joined = told[hides].joined;
		assert_true(joined <= (hides ? 4 : 1));
		arrival_count = 0;
		pass(100 * S);
		assert_in_range(sets(IB_SA_ATTR_MCRECORD), 9, 11);
		assert_int_equal(told[hides].joined, joined); /* was it forgotten? */
		assert_int_equal(told[hides].failed, 0);
		machine_rule("forget");
		pass(WITHIN);
		sa.hides = false;
		sa.tables = 0;
		assert_int_equal(records(IB_SA_ATTR_MCRECORD), 1);
		leave(hides);
	}
	sa.hides = true;
	for (unsigned i = 10; i < 50; i++)
		assert_int_equal(begin(i), 0);
	pass(120 * S);
	machine_rule("forget");
	pass(60 * S);
	sa.hides = false;
	assert_int_equal(records(IB_SA_ATTR_MCRECORD), 40); /* each has its turn */
}

TEST(a_local_port_that_cannot_be_read_is_told)
{
	static const unsigned attributes[] = {IB_ATTR_PORT_INFO, IB_ATTR_NODE_INFO};

	for (unsigned i = 0; i < 2; i++) {
		sa.lost = attributes[i];
		assert_int_equal(begin(i), 0);
		pass(WITHIN);
		assert_int_equal(told[i].joined, 0);
		assert_int_equal(told[i].failed, 1);
		assert_int_equal(told[i].error, -ETIMEDOUT);
		sa.lost = 0;
		pass(WITHIN);
		assert_int_equal(told[i].joined, 1);
		leave(i);
	}
}

/* --- the end -------------------------------------------------------------------------- */

TEST(an_end_that_the_sa_has_not_confirmed_has_an_error)
{
	join(0);
	join(1);
	join(2);
	subscribe(usual);
	machine_rule("forget"); /* what it has forgotten is left without an error */
	mad_membership_stop(told[0].membership);
	stop_notices(0);
	assert_int_equal(told[0].ends, 1);
	assert_int_equal(told[0].error, 0);
	assert_int_equal(told[0].status, INVALID);
	assert_int_equal(subscription.status, INVALID);
	machine_rule("silent on sm");
	memset(&subscription, 0, sizeof(subscription));
	subscribe(usual);
	mad_membership_stop(told[1].membership);
	stop_notices(-ETIMEDOUT);
	assert_int_equal(told[1].ends, 1);
	assert_int_equal(told[1].error, -ETIMEDOUT);
	assert_int_equal(told[1].failure.method, IB_MAD_METHOD_DELETE);
	assert_true(told[1].failure.transmissions > 0);
	machine_rule("link down on host");
	pass(2 * S);
	arrival_count = 0;
	leave(2);
	assert_int_equal(told[2].error, -ENETDOWN);
	assert_int_equal(count_arrivals(IB_SA_CLASS, IB_MAD_METHOD_DELETE), 0);
}

TEST(a_membership_leaves_at_the_new_sm_if_the_sm_changes_meanwhile)
{
	join(0);
	sa.joined = true;
	sa.silent = true;
	mad_membership_stop(told[0].membership);
	pass(S / 4);
	sa.sm_lid = machine_lid(NEXT_SM);
	sa.silent = false;
	pass(20 * S);
	assert_int_equal(told[0].ends, 1);
	assert_int_equal(told[0].joined, 1); /* it tells only its end */
	assert_int_equal(told[0].error, 0);
	assert_false(sa.joined);
}

TEST(a_callback_may_end_its_membership)
{
	told[0].stops = true;
	assert_int_equal(begin(0), 0);
	pass(2 * S);
	assert_int_equal(told[0].joined, 1);
	assert_int_equal(told[0].ends, 1);
	assert_int_equal(records(IB_SA_ATTR_MCRECORD), 0);
	assert_int_equal(mad_async_wait(async, -1), 0); /* nothing is left */
	/* it is not lost when the keeper sets its timer */
	machine_rule("link down on host");
	told[1].stops = true;
	assert_int_equal(begin(1), 0);
	pass(S / 10);
	assert_int_equal(told[1].failed, 1);
	assert_int_equal(told[1].ends, 1);
}

TEST(the_end_of_the_engine_ends_all_and_leaves_nothing)
{
	join(0);
	subscribe(usual);
	assert_int_equal(begin(1), 0); /* not processed any more */
	mad_async_free(async);
	async = NULL;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(told[i].ends, 1);
		assert_int_equal(told[i].error, -ECANCELED);
	}
	assert_int_equal(subscription.ends, 1);
	assert_int_equal(subscription.error, -ECANCELED);
	assert_int_equal(records(IB_SA_ATTR_MCRECORD), 1);
}

/* Whenever the device goes, mad_async_wait() returns after the last callbacks. */
TEST(a_device_that_is_gone_ends_all)
{
	for (unsigned ms = 0; ms < 12; ms = 2 * ms + 1) {
		machine_rule("slow 1ms");
		memset(told, 0, sizeof(told));
		memset(&subscription, 0, sizeof(subscription));
		assert_int_equal(begin(0), 0);
		assert_int_equal(mad_notices_start(async, NULL, tell_notice, NULL, &notices),
				 0);
		machine_rule("after %ums remove on host", ms);
		mad_async_wait(async, -1);
		assert_int_equal(told[0].ends, 1);
		assert_int_equal(told[0].error, -ENODEV);
		assert_int_equal(subscription.ends, 1);
		assert_int_equal(subscription.error, -ENODEV);
		assert_int_equal(mad_async_process(async), -ENODEV);
		assert_int_equal(begin(1), -ENODEV);
		teardown();
		setup();
	}
}

static int run_child(void)
{
	EXPECT(mad_async_wait(async, -1) >= 0);
	EXPECT(told[0].ends == 1 && told[0].error == -ECANCELED);
	EXPECT(subscription.ends == 1 && subscription.error == -ECANCELED);
	EXPECT(begin(1) == -ECANCELED);
	return 0;
}

TEST(a_child_has_no_registrations)
{
	subscribe(usual);
	join(0);
	run_in_child(run_child);
	assert_int_equal(told[0].ends, 0);
	machine_rule("forget");
	pass(WITHIN);
	assert_int_equal(told[0].joined, 2);
	assert_int_equal(subscription.joined, 2);
}

TEST(wrong_arguments_of_a_membership_are_refused)
{
	struct umad_sa_mcmember_record member = {.qkey = 0};
	const struct mad_membership_options right = {.member = &member, .join_state = 1};
	const struct mad_membership_options wrong[] = {
		{.member = NULL, .join_state = 1},
		{.member = &member, .join_state = 0},
		{.member = &member, .join_state = 16},
		{.member = &member, .join_state = 1, .reserved = {1}},
		{.member = &member, .join_state = 1, .reserved = {[3] = 1}},
	};
	struct mad_membership *none;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(
			mad_membership_start(async, &wrong[i], tell_member, NULL, &none),
			-EINVAL);
	assert_int_equal(mad_last_failure()->error, -EINVAL);
	assert_int_equal(mad_membership_start(async, NULL, tell_member, NULL, &none), -EINVAL);
	assert_int_equal(mad_membership_start(NULL, &right, tell_member, NULL, &none), -EINVAL);
	assert_int_equal(mad_membership_start(async, &right, NULL, NULL, &none), -EINVAL);
	assert_int_equal(mad_membership_start(async, &right, tell_member, NULL, NULL), -EINVAL);
	mad_membership_stop(NULL);
}

TEST(each_lack_of_memory_is_survived)
{
	for (unsigned n = 1; n < 14; n++) {
		int failed, refused;

		mad_async_free(async);
		async = mad_async_create(port);
		memset(told, 0, sizeof(told));
		memset(&subscription, 0, sizeof(subscription));
		machine_fail(MACHINE_MALLOC, n, ENOMEM);
		failed = begin(0);
		refused = mad_notices_start(async, NULL, tell_notice, NULL, &notices);
		assert_true(!failed || failed == -ENOMEM);
		assert_true(!refused || refused == -ENOMEM);
		pass(20 * S);
		machine_fail(MACHINE_MALLOC, 0, 0);
		pass(WITHIN);
		assert_int_equal(records(IB_SA_ATTR_MCRECORD), !failed);
		assert_int_equal(records(IB_SA_ATTR_INFORMINFORECORD), !refused);
		if (!failed)
			leave(0);
		if (!refused)
			stop_notices(0);
	}
}
