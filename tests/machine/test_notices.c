/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Notices, subscriptions and memberships: the SA forgets them, does not respond, refuses them,
 * or is on another node.
 */

#include "arrivals.h"
#include "story.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_link.h>
#include <infiniband/mad_notice.h>
#include <infiniband/mad_sa.h>
#include <infiniband/mad_server.h>
#include <infiniband/umad_ext.h>
#include <endian.h>
#include <pthread.h>

#define MS            INT64_C(1000)
#define S             (1000 * MS)
#define GROUPS        100
#define MEMBER        IB_SA_ATTR_MCRECORD
#define INFORM        IB_SA_ATTR_INFORMINFO
#define INFORM_RECORD IB_SA_ATTR_INFORMINFORECORD
#define DENIED        0x0600
#define WITHIN        (15 * S) /* the promise: the SA has a registration again after this time */
#define NEXT_SM       "n5"     /* its scripted SA has one membership and one subscription */
#define NO_SM         0xffff

static struct ibmad_port *port;
static struct mad_async *async;

/* --- the SA and the local port ---------------------------------------------------- */

/* Settings of stories. */
static struct {
	unsigned set, tables;          /* the status of its responses; 0: its own */
	unsigned refused;              /* it refuses groups up to this one */
	unsigned silent, hides;        /* no responses; empty tables */
	unsigned other_inform;         /* a response belongs to another subscription */
	unsigned other_state;          /* its records have another JoinState */
	unsigned mlid, sm_lid, prefix; /* of a group; in the PortInfo; 0: its own */
	unsigned lost;                 /* an attribute of the local port without a response */
	unsigned any, stops;           /* the SA chooses the group; callbacks stop */
	unsigned stop_run;             /* callbacks of notices call mad_async_stop() */
	unsigned lid, attribute;       /* of reports */
	struct mad_notices_options notices;
} set;

/* What the scripted SA has. */
static struct record {
	unsigned exists;
	uint8_t bytes[52];
} next_member, next_inform;

static bool is_mad(const uint8_t *mad, unsigned method, unsigned attribute)
{
	return mad[1] == IB_SA_CLASS && mad[3] == method && mad[17] == attribute;
}

static enum machine_verdict reply_table(struct machine_mad *mad, const struct record *record)
{
	const uint8_t rmpp[] = {1, IB_RMPP_TYPE_DATA, 7, 0, 0, 0, 0, 1, 0, 0, 0};
	size_t size = mad->bytes[17] == MEMBER ? 56 : 64;

	if (set.tables)
		return machine_reply(mad, (uint16_t)set.tables, 0, NULL, 0);
	machine_reply(mad, 0, 24, rmpp, sizeof(rmpp));
	mad->bytes[35] = (uint8_t)(20 + (record->exists ? size : 0));
	mad->bytes[45] = (uint8_t)(size / 8);
	memset(mad->bytes + 56, 0, 200);
	if (record->exists) /* in an InformInfoRecord, the InformInfo begins at 24 */
		memcpy(mad->bytes + 56 + (mad->bytes[17] == MEMBER ? 0 : 24), record->bytes,
		       sizeof(record->bytes));
	return MACHINE_REPLY;
}

static enum machine_verdict respond_next_sm(struct machine_mad *mad)
{
	struct record *record = mad->bytes[17] == MEMBER ? &next_member : &next_inform;
	bool subscribes = mad->bytes[56 + 23];

	if (mad->bytes[3] == IB_MAD_METHOD_GET_TABLE)
		return reply_table(mad, record);
	record->exists =
		mad->bytes[3] == IB_MAD_METHOD_SET && (mad->bytes[17] == MEMBER || subscribes);
	memcpy(record->bytes, mad->bytes + 56, sizeof(record->bytes));
	return machine_reply(mad, 0, 0, NULL, 0);
}

static enum machine_verdict at_host(const struct machine_mad *mad)
{
	uint8_t *smp = mad->bytes + 64, *data = mad->bytes + 56;
	bool direct = mad->bytes[1] == IB_SMI_DIRECT_CLASS;

	if (direct && set.lost == mad->bytes[17])
		return MACHINE_DROP;
	if (direct && mad->bytes[17] == IB_ATTR_PORT_INFO && mad->bytes[3] & IB_MAD_RESPONSE) {
		if (set.sm_lid)
			mad_set_field(smp, 0, IB_PORT_SMLID_F, set.sm_lid % NO_SM);
		smp[9] ^= (uint8_t)set.prefix;
	}
	if (is_mad(mad->bytes, IB_MAD_METHOD_GET_RESPONSE, INFORM))
		data[27] ^= (uint8_t)set.other_inform;
	if (set.other_state && is_mad(mad->bytes, IB_MAD_METHOD_GET_TABLE_RESPONSE, MEMBER))
		data[offsetof(struct umad_sa_mcmember_record, scope_state)] =
			(uint8_t)set.other_state;
	if (is_mad(mad->bytes, IB_MAD_METHOD_GET_RESPONSE, MEMBER))
		data[offsetof(struct umad_sa_mcmember_record, mlid) + 1] ^= (uint8_t)set.mlid;
	return MACHINE_PASS;
}

static enum machine_verdict at_sa(struct machine_mad *mad, void *arg)
{
	static const struct record none;
	const uint8_t *bytes = mad->bytes;
	bool next_sm = !strcmp(mad->node, NEXT_SM), is_set = bytes[3] == IB_MAD_METHOD_SET;

	(void)arg;
	if (mad->at_host)
		return at_host(mad);
	if (bytes[1] != IB_SA_CLASS || bytes[3] & IB_MAD_RESPONSE)
		return MACHINE_PASS;
	if (set.silent || next_sm != (set.sm_lid != 0))
		return MACHINE_DROP;
	if (bytes[3] == IB_MAD_METHOD_GET_TABLE && bytes[25] == IB_RMPP_TYPE_ACK)
		return MACHINE_PASS;
	if (bytes[3] == IB_MAD_METHOD_GET_TABLE && (set.tables || set.hides))
		return reply_table(mad, &none);
	if (is_set && set.set)
		return machine_reply(mad, (uint16_t)set.set, 0, NULL, 0);
	if (is_set && bytes[17] == MEMBER && set.refused && bytes[56 + 15] <= set.refused)
		return machine_reply(mad, DENIED, 0, NULL, 0);
	return next_sm ? respond_next_sm(mad) : MACHINE_PASS;
}

static const struct arrival *latest;

/* The requests that arrived, ACKs left out; attribute 0: any. The last of them is "latest". */
static unsigned requests(unsigned method, unsigned attribute)
{
	unsigned found = 0;

	for (unsigned i = 0; i < arrival_count; i++) {
		const uint8_t *mad = arrivals[i].mad;

		if (!is_mad(mad, method, attribute ? attribute : mad[17]) ||
		    mad[25] == IB_RMPP_TYPE_ACK)
			continue;
		latest = &arrivals[i];
		found++;
	}
	return found;
}

/* --- the program ------------------------------------------------------------------ */

static struct told {
	unsigned joined, failed, ends, status;
	int error; /* the latest one, and its text */
	char why[MAD_ERROR_TEXT_SIZE];
	int64_t gap_begin, gap_end, at;
	struct mad_membership *membership;
	unsigned changed; /* to this MLID */
} told[GROUPS], subscription;

/* The clock of the machine, as gaps have it. */
static int64_t clock_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * S + time.tv_nsec / 1000;
}

static void note_result(struct told *here, int error, unsigned status, uint64_t gap_begin,
			uint64_t gap_end, bool end)
{
	assert_int_equal(here->ends, 0);
	if (error) {
		assert_int_equal(mad_last_failure()->error, error);
		mad_failure_text(NULL, here->why, sizeof(here->why));
	}
	here->error = error;
	here->status = status;
	here->at = clock_now();
	here->ends += end;
	here->failed += !end && error;
	here->joined += !end && !error;
	here->gap_begin = (int64_t)gap_begin;
	here->gap_end = (int64_t)gap_end;
}

static void tell_member(struct mad_membership *membership,
			const struct mad_membership_state *state, void *arg)
{
	struct told *here = arg;
	bool end = state->kind == MAD_MEMBERSHIP_END;

	assert_ptr_equal(membership, here->membership);
	note_result(here, state->error, state->status, state->gap_begin_us, state->gap_end_us,
		    end);
	if (!end)
		assert_int_equal(state->kind == MAD_MEMBERSHIP_FAILED, state->error < 0);
	assert_true(!state->record == !here->joined);
	if (end && state->error == -ETIMEDOUT)
		assert_int_equal(mad_last_failure()->method, IB_MAD_METHOD_DELETE);
	here->changed = state->changed ? be16toh(state->record->mlid) : 0;
	if (set.stops && !end)
		mad_membership_stop(membership);
}

static struct mad_notices *notices;
static struct {
	char trap[MAD_NOTICE_TEXT_SIZE]; /* the latest one */
	char port[MAD_NOTICE_TEXT_SIZE]; /* its latest change */
	struct mad_notices_stats last;   /* when they ended */
} heard;

static void tell_notice(struct mad_notices *from, const struct mad_notice *notice, void *arg)
{
	bool end = notice->kind == MAD_NOTICE_END;
	char line[MAD_NOTICE_TEXT_SIZE];

	(void)arg;
	mad_notice_text(notice, line, sizeof(line));
	if (set.stop_run)
		mad_async_stop(async);
	if (notice->kind == MAD_NOTICE_TRAP) {
		strcpy(heard.trap, line);
		return;
	}
	if (notice->kind == MAD_NOTICE_PORT) {
		strcpy(heard.port, line);
		return;
	}
	note_result(&subscription, notice->error, notice->status, notice->gap_begin_us,
		    notice->gap_end_us, end);
	if (end) {
		mad_notices_get_stats(from, &heard.last, sizeof(heard.last));
		notices = NULL;
	} else if (!notice->error) {
		assert_non_null(strstr(line, "accepted"));
	}
	if (set.stops && !end)
		mad_notices_stop(from);
}

static int setup(void)
{
	int classes[] = {IB_SA_CLASS, IB_SMI_DIRECT_CLASS, IB_SMI_CLASS};

	memset(&set, 0, sizeof(set));
	set.lid = 6;
	set.attribute = IB_SA_ATTR_NOTICE;
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

static int begin(unsigned group)
{
	struct umad_sa_mcmember_record member = {
		.mgid = {0xff, 0x12, [15] = (uint8_t)(group + 1)},
		.qkey = htobe32(0xb1b),
		.pkey = htobe16(0xffff),
	};
	const struct mad_membership_options options = {
		.member = &member,
		.component_mask = UMAD_SA_MCM_COMP_MASK_QKEY | UMAD_SA_MCM_COMP_MASK_PKEY |
				  UMAD_SA_MCM_COMP_MASK_SL | UMAD_SA_MCM_COMP_MASK_FLOW_LABEL |
				  UMAD_SA_MCM_COMP_MASK_TCLASS,
		.join_state = 1};

	if (set.any)
		memset(member.mgid, 0, sizeof(member.mgid));
	return mad_membership_start(async, &options, tell_member, &told[group],
				    &told[group].membership);
}

static void start_notices(void)
{
	memset(&subscription, 0, sizeof(subscription));
	assert_int_equal(mad_notices_start(async, &set.notices, tell_notice, NULL, &notices),
			 0);
}

/* How many records of the port the SA has; at the next SM, too. */
static unsigned records(unsigned attribute)
{
	struct umad_sa_mcmember_record host = {.portgid = {0xfe, 0x80}};
	struct mad_sa_query query = {
		.attribute = attribute,
		.component_mask = attribute == MEMBER ? UMAD_SA_MCM_COMP_MASK_PORT_GID : 0,
		.record = &host,
		.record_size = offsetof(struct umad_sa_mcmember_record, pad)};
	struct mad_sa_table *table;
	unsigned found;

	if (set.sm_lid)
		return (attribute == MEMBER ? next_member : next_inform).exists;
	mad_set_field64(host.portgid, 0, IB_GID_GUID_F, machine_guid("host"));
	assert_int_equal(mad_sa_request(port, &query, &table), 0);
	found = (unsigned)table->count;
	mad_sa_table_free(table);
	return found;
}

/* --- decoding of notices ---------------------------------------------------------- */

static const struct trap_row {
	const char *behaviour; /* the text, too */
	uint8_t raw[80];
} traps[] = {
	{"trap 67: GID fe80::1 multicast group deleted",
	 {0x83, [3] = 4, [5] = 67, [16] = 0xfe, 0x80, [31] = 1}},
	{"trap 130: LID 8 port 3: excessive buffer overruns",
	 {0x83, [3] = 4, [5] = 130, [13] = 8, 3}},
	{"trap 144: LID 5: capability mask 0x02514868",
	 {0x84, [3] = 1, [5] = 144, [13] = 5, [16] = 0x02, 0x51, 0x48, 0x68}},
	{"trap 144: LID 5: capability mask 0x02514868, new node description",
	 {0x84, [3] = 1, [5] = 144, [13] = 5, [15] = 1, 0x02, 0x51, 0x48, 0x68, [21] = 1}},
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
	mad_notice_decode(raw, 80, &larger.notice, offsetof(struct mad_notice, issuer_lid));
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
	assert_int_equal(mad_notice_decode(raw, 64, &larger.notice, sizeof(larger)), 0);
	assert_int_equal(larger.notice.path_length, 30);
	assert_int_equal(mad_notice_decode(raw, 63, &larger.notice, sizeof(larger)), -EBADMSG);
	assert_int_equal(mad_notice_decode(NULL, 80, &larger.notice, 8), -EINVAL);
	assert_int_equal(mad_notice_decode(raw, 80, NULL, 8), -EINVAL);
}

/* --- stories ---------------------------------------------------------------------- */

/*
 * The steps (story.h):
 *
 *	WORD N	of the first rows of "words": changes a setting
 *	WORD N, WORD N-M	of the other ones: how many there are
 *	recount		MADs are counted from here on
 *	join N, leave N		memberships begin and end; N-M: several
 *	subscribe, unsubscribe
 *	rule TEXT	as of umad-sim(1)
 *	delete N	the SA deletes a membership
 *	pass SECONDS	the program processes the engine for this time
 *	told N TEXT	what the program was told of a membership (told_text())
 *	heard TEXT	what it was told of the subscription
 *	report N	the SA reports a trap with this transaction ID
 *	read		another engine's thread reads, and calls nobody
 *	pause, deform N	what came before the pause is read with this length
 *	fail-write	the next one
 *	trap TEXT, port TEXT	the latest notice of the fabric, of the local port
 *	stats TEXT	stats_text()
 *	mad BYTES	the last MAD of the latest count, as for expect_mad()
 *	nothing		no MAD was sent
 *	wait, interrupted	a call of mad_async_wait() lasts until the end; is stopped
 *	stop-run-now	mad_async_stop()
 */
static const struct {
	const char *word;
	unsigned *setting;
	unsigned method, attribute; /* of MADs; method 0: of records of the SA */
} words[] = {
	{"set", &set.set, 0, 0},
	{"tables", &set.tables, 0, 0},
	{"refused", &set.refused, 0, 0},
	{"silent", &set.silent, 0, 0},
	{"hides", &set.hides, 0, 0},
	{"other-inform", &set.other_inform, 0, 0},
	{"other-state", &set.other_state, 0, 0},
	{"other-mlid", &set.mlid, 0, 0},
	{"other-prefix", &set.prefix, 0, 0},
	{"sm", &set.sm_lid, 0, 0},
	{"lost", &set.lost, 0, 0},
	{"any", &set.any, 0, 0},
	{"stops", &set.stops, 0, 0},
	{"check-ms", &set.notices.check_ms, 0, 0},
	{"limit", &set.notices.limit, 0, 0},
	{"stop-run", &set.stop_run, 0, 0},
	{"lid", &set.lid, 0, 0},
	{"attribute", &set.attribute, 0, 0},
	{"poll-ms", &set.notices.poll_ms, 0, 0},
	{"next-has", &next_member.exists, 0, 0},
	{"joins", NULL, IB_MAD_METHOD_SET, MEMBER},
	{"leaves", NULL, IB_MAD_METHOD_DELETE, MEMBER},
	{"informs", NULL, IB_MAD_METHOD_SET, INFORM},
	{"checks", NULL, IB_MAD_METHOD_GET_TABLE, 0},
	{"confirmed", NULL, IB_MAD_METHOD_REPORT_RESPONSE, 0},
	{"members", NULL, 0, MEMBER},
	{"subscriptions", NULL, 0, INFORM_RECORD},
};

static const char *told_text(const struct told *here)
{
	static char text[100 + MAD_ERROR_TEXT_SIZE];
	char *at = text + sprintf(text, "joined %u", here->joined);

	at += here->failed ? sprintf(at, " failed %u", here->failed) : 0;
	at += here->changed ? sprintf(at, " changed to 0x%x", here->changed) : 0;
	at += here->ends ? sprintf(at, " ended") : 0;
	at += here->status ? sprintf(at, " 0x%x", here->status) : 0;
	if (here->error)
		sprintf(at, ": %s", here->why);
	return text;
}

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

/* All counts of the notices that are not 0, also when they have ended. */
static const char *stats_text(void)
{
	static char text[200];
	struct mad_notices_stats stats = heard.last;
	char *at = text;

	if (notices)
		assert_int_equal(mad_notices_get_stats(notices, &stats, sizeof(stats)), 0);
	at = put_count(at, "reports", stats.reports);
	at = put_count(at, "confirmed", stats.confirmed);
	at = put_count(at, "duplicates", stats.duplicates);
	at = put_count(at, "dropped", stats.dropped);
	at = put_count(at, "malformed", stats.malformed);
	at = put_count(at, "subscriptions", stats.subscriptions);
	put_count(at, "failures", stats.failures);
	return text + 1;
}

/* A Report of trap 128 at a LID. */
static void report(uint32_t tid)
{
	uint8_t mad[MACHINE_MAD] = {1, IB_SA_CLASS, 2, IB_MAD_METHOD_REPORT},
		lid = (uint8_t)set.lid;
	const uint8_t notice[] = {0x81, 0, 0, 2, 0, 128, 0, lid, 0, 0, 0, lid};

	tid = htobe32(tid);
	memcpy(mad + 12, &tid, sizeof(tid));
	mad[17] = (uint8_t)set.attribute;
	memcpy(mad + 56, notice, sizeof(notice));
	machine_send("sm", mad, 0);
}

/* Another engine's thread reads what came. */
static void read_by_another(void)
{
	struct mad_async *other = mad_async_create(port);

	machine_pass(100);
	for (unsigned i = 0; i < 100; i++)
		mad_async_process(other);
	mad_async_free(other);
}

static void delete_member(unsigned group)
{
	struct umad_sa_mcmember_record member = {
		.mgid = {0xff, 0x12, [15] = (uint8_t)(group + 1)}};
	struct mad_sa_query query = {0};

	mad_sa_member_query(&query, IB_MAD_METHOD_DELETE, &member, 1);
	assert_int_equal(mad_sa_request(port, &query, NULL), 0);
}

static void play_word(const struct step *step)
{
	size_t i = 0;

	while (!is(step, words[i].word))
		if (++i == sizeof(words) / sizeof(*words))
			fail_msg("unknown step %s", step->word);
	if (words[i].setting)
		*words[i].setting = step->first;
	else if (words[i].method)
		assert_in_range(requests(words[i].method, words[i].attribute), step->first,
				step->last);
	else
		assert_int_equal(records(words[i].attribute), step->first);
}

static bool play_membership(const struct step *step, unsigned group)
{
	if (is(step, "join"))
		assert_int_equal(begin(group), 0);
	else if (is(step, "leave"))
		mad_membership_stop(told[group].membership);
	else if (is(step, "report"))
		report(group);
	else if (is(step, "told"))
		assert_string_equal(told_text(&told[group]), step->rest);
	else
		return false;
	return true;
}

static void play_step(const struct step *step)
{
	unsigned group = step->first;

	while (group <= step->last && play_membership(step, group))
		group++;
	if (group > step->last)
		return;
	if (is(step, "pass"))
		pass((int64_t)(strtod(step->text, NULL) * S));
	else if (is(step, "heard"))
		assert_string_equal(told_text(&subscription), step->text);
	else if (is(step, "subscribe"))
		start_notices();
	else if (is(step, "unsubscribe"))
		mad_notices_stop(notices);
	else if (is(step, "rule"))
		machine_rule("%s", step->text);
	else if (is(step, "recount"))
		arrival_count = 0;
	else if (is(step, "delete"))
		delete_member(step->first);
	else if (is(step, "port"))
		assert_string_equal(heard.port, step->text);
	else if (is(step, "trap"))
		assert_string_equal(heard.trap, step->text);
	else if (is(step, "mad"))
		expect_mad(latest->mad, step->text);
	else if (is(step, "stats"))
		assert_string_equal(stats_text(), step->text);
	else if (is(step, "read"))
		read_by_another();
	else if (is(step, "pause"))
		machine_pass(1);
	else if (is(step, "deform"))
		machine_deform(step->first, 0);
	else if (is(step, "fail-write"))
		machine_fail(MACHINE_WRITE, 1, ENOMEM);
	else if (is(step, "stop-run-now"))
		mad_async_stop(async);
	else if (is(step, "interrupted"))
		assert_int_equal(mad_async_wait(async, -1), -EINTR);
	else if (is(step, "wait"))
		assert_true(mad_async_wait(async, -1) >= 2);
	else if (is(step, "nothing"))
		assert_int_equal(arrival_count, 0);
	else
		play_word(step);
}

static const struct story stories[] = {
	{"a_membership_has_the_gid_of_the_port_and_the_components_of_the_program",
	 "join 3; pass 2; told 3 joined 1; members 1; joins 1;"
	 "mad 0:01030202 17:38 53:0130c7 56:ff12 71:04 72:fe80000000000000 "
	 "80:0000000000001001 88:00000b1b 96:ffff 104:01;"
	 "leave 3; pass 4; told 3 joined 1 ended; members 0"},
	{"a_membership_that_was_never_granted_ends_without_a_request",
	 "join 0; leave 0; pass 4; told 0 joined 0 ended; leaves 0"},
	{"a_group_that_the_sa_chooses_is_the_group_from_then_on",
	 "any 1; join 0; pass 60; joins 1; rule forget; pass 15; told 0 joined 2; members 1; "
	 "joins 2;"
	 "mad 0:01030202 17:38 53:0130c7 56:ff12a01bfe80 71:01 72:fe80000000000000 "
	 "80:0000000000001001 88:00000b1b 96:ffff 104:01"},
	{"a_hundred_memberships_share_one_check",
	 "join 0-99; pass 60; checks 11-12; rule forget; pass 15; joins 200;"
	 "told 0-99 joined 2"},
	{"what_is_missing_at_the_sa_is_joined_again_and_the_rest_is_not",
	 "join 0-1; pass 4; told 1 joined 1; delete 1; other-mlid 0x55; pass 15; joins 3;"
	 "told 0 joined 1; told 1 joined 2 changed to 0xc057;"
	 "rule forget; pass 15; told 1 joined 3"},
	{"a_record_without_the_join_state_is_missing",
	 "join 0; pass 2; recount; other-state 0x22; pass 15; joins 1-99"},
	{"an_sa_that_does_not_respond_is_told_and_so_is_its_return",
	 "join 0; pass 12; rule silent on sm; pass 30;"
	 "told 0 joined 1 failed 1: no response to 3 transmissions in 3.0 s;"
	 "rule clear; pass 15; told 0 joined 2 failed 1; joins 1"},
	{"an_sa_that_is_busy_tells_nothing",
	 "join 0; pass 2; tables 1; pass 60; tables 0; pass 15; told 0 joined 1; joins 1"},
	{"a_local_port_that_was_down_is_told_and_all_is_registered_again",
	 "join 0; subscribe; pass 2; rule link down on host; pass 3;"
	 "told 0 joined 1 failed 1: the local port is not active, or has no SM;"
	 "heard joined 1 failed 1: the local port is not active, or has no SM;"
	 "port local port: state Active to Down, physical state 5 to 2, speed 4 to 1;"
	 "rule link up on host; pass 15; told 0 joined 2 failed 1; heard joined 2 failed 1;"
	 "port local port: state Down to Active, physical state 2 to 5, speed 1 to 4"},
	{"a_port_with_another_gid_is_registered_again",
	 "join 0; pass 2; other-prefix 0x40; pass 3; joins 2-3;"
	 "mad 0:01030202 17:38 53:0130c7 56:ff12 71:01 72:fec0000000000000 "
	 "80:0000000000001001 88:00000b1b 96:ffff 104:01"},
	{"a_local_port_that_cannot_be_read_is_told",
	 "lost 0x15; join 0; pass 15;"
	 "told 0 joined 0 failed 1: no response to 6 transmissions in 3.0 s;"
	 "lost 0; pass 15; told 0 joined 1 failed 1; leave 0; pass 4;"
	 "lost 0x11; join 1; pass 15;"
	 "told 1 joined 0 failed 1: no response to 6 transmissions in 3.0 s;"
	 "lost 0; pass 15; told 1 joined 1 failed 1"},
	{"a_refused_join_is_told_once_and_tried_again_after_1_2_4_and_8_seconds",
	 "set 0x600; join 0; pass 32; joins 7;"
	 "told 0 joined 0 failed 1 0x600: SA: insufficient components"},
	{"many_refused_joins_are_tried_again_at_a_pace_and_in_turn",
	 "set 0x600; join 0-99; pass 5; recount; pass 50; joins 49-51;"
	 "set 0; refused 30; pass 120;"
	 "told 29 joined 0 failed 1 0x600: SA: insufficient components;"
	 "told 30-99 joined 1 failed 1"},
	{"a_group_that_the_new_sm_refuses_is_joined_when_it_may_be",
	 "join 0; pass 2; rule forget; refused 1; pass 75;"
	 "told 0 joined 1 failed 1 0x600: SA: insufficient components;"
	 "refused 0; pass 60; told 0 joined 2 failed 1"},
	{"without_tables_memberships_are_renewed_every_ten_seconds",
	 "tables 0xc; join 0; pass 62; recount; pass 100; joins 9-11; told 0 joined 1;"
	 "rule forget; pass 15; tables 0; members 1"},
	{"an_sa_that_lists_no_members_is_not_believed",
	 "hides 1; join 0; pass 62; recount; pass 100; joins 9-11; told 0 joined 4;"
	 "rule forget; pass 15; hides 0; members 1"},
	{"each_of_many_renewed_memberships_has_its_turn",
	 "hides 1; join 0-39; pass 120; rule forget; pass 60; hides 0; members 40"},
	{"what_the_sa_has_forgotten_is_left_without_an_error",
	 "join 0; subscribe; pass 2; rule forget; leave 0; unsubscribe; pass 20;"
	 "told 0 joined 1 ended 0x200; heard joined 1 ended 0x200"},
	{"an_end_that_the_sa_has_not_confirmed_has_an_error",
	 "join 0-1; pass 4; rule silent on sm; subscribe; pass 2; leave 0; unsubscribe; pass "
	 "20;"
	 "told 0 joined 1 ended: no response to 3 transmissions in 3.0 s;"
	 "heard joined 0 ended: no response to 3 transmissions in 3.0 s;"
	 "rule link down on host; pass 2; recount; leave 1; pass 4; leaves 0;"
	 "told 1 joined 1 failed 2 ended: the local port is not active, or has no SM"},
	{"a_membership_leaves_at_the_new_sm_if_the_sm_changes_meanwhile",
	 "join 0; pass 2; silent 1; next-has 1; leave 0; pass 0.25; sm 15; silent 0; pass 20;"
	 "told 0 joined 1 ended; members 0"},
	{"a_callback_may_end_its_membership",
	 "stops 1; join 0; pass 2; told 0 joined 1 ended; members 0;"
	 "rule link down on host; join 1; pass 0.1; told 1 joined 0 failed 1 ended"},
	{"a_refused_subscription_is_told_once_and_tried_again",
	 "set 0x700; subscribe; pass 6; informs 3;"
	 "heard joined 0 failed 1 0x700: SA: request denied; set 0; other-inform 1; pass 4; "
	 "heard joined 0 failed 2: the response is malformed;"
	 "other-inform 0; pass 15; heard joined 1 failed 2"},
	{"a_stop_ends_what_is_in_flight", "silent 1; subscribe; pass 2; silent 0; unsubscribe; "
					  "pass 20; heard joined 0 ended 0x200"},
	/* the LID of the next SM is 15; the program is told of no timeout before */
	{"the_next_sm_is_asked_although_the_one_before_does_not_respond",
	 "silent 1; poll-ms 10; subscribe; pass 2; informs 2; rule link down on sm;"
	 "silent 0; sm 15; pass 0.5; heard joined 1; port local port: SM LID 2 to 15;"
	 "subscriptions 1; sm 0xffff; pass 2;"
	 "heard joined 1 failed 1: the local port is not active, or has no SM"},
	{"a_program_chooses_the_interval_of_checks",
	 "check-ms 7000; poll-ms 3600000; subscribe; pass 72; checks 9-11;"
	 "unsubscribe; pass 20;"
	 "check-ms 60000; poll-ms 0; subscribe; recount; pass 602; checks 9-10;"
	 "join 0; pass 602; checks 110-130"},
	{"traps_of_the_fabric_are_reported_while_the_subscription_lasts",
	 "subscribe; pass 2; heard joined 1; subscriptions 1; informs 1;"
	 "mad 0:01030202 17:03 54:15f2 72:ffff 78:0101ffffffff 86:0112 89:ffffff;"
	 "rule link down on n3; pass 2; trap trap 128: LID 3: the state of a link has changed; "
	 "confirmed 2;"
	 "stats reports 2 confirmed 2 subscriptions 1;"
	 "unsubscribe; pass 4; heard joined 1 ended; informs 2; subscriptions 0"},
	{"a_report_is_handed_out_once_and_confirmed_each_time",
	 "subscribe; pass 2; fail-write; report 77; pass 0.1; confirmed 0;"
	 "trap trap 128: LID 6: the state of a link has changed; report 77; pass 0.1;"
	 "confirmed 1; mad 0:01030286 17:02 56:810000020080000600000006;"
	 "stats reports 1 confirmed 1 duplicates 1 subscriptions 1;"
	 "report 78; lid 7; report 77; pass 0.1; report 77; lid 6; report 78; pass 0.1;"
	 "stats reports 3 confirmed 5 duplicates 3 subscriptions 1"},
	{"what_is_no_notice_is_not_passed_on",
	 "subscribe; pass 2; attribute 9; report 3; pass 0.1; confirmed 1;"
	 "mad 0:01030286 5:0c 17:09 56:810000020080000600000006;"
	 "attribute 2; report 4; pause; deform 135; pass 0.1; confirmed 1;"
	 "stats confirmed 1 malformed 2 subscriptions 1"},
	{"a_report_that_comes_again_after_ten_seconds_is_another_one",
	 "subscribe; pass 2; report 78; pass 12; report 78; pass 0.1; unsubscribe; pass 4;"
	 "stats reports 2 confirmed 2 subscriptions 1"},
	{"reports_beyond_the_limit_are_not_confirmed",
	 "limit 100; subscribe; pass 2; report 1000-1149; read; pass 1; confirmed 100;"
	 "stats reports 100 confirmed 100 dropped 50 subscriptions 1"},
	{"a_callback_may_stop_notices", "stops 1; subscribe; wait; heard joined 1 ended"},
	/* the timer is another callback */
	{"a_callback_may_stop_the_run",
	 "subscribe; pass 2; stop-run 1; report 77-79;"
	 "interrupted; stats reports 1 confirmed 1 subscriptions 1;"
	 "interrupted; stats reports 2 confirmed 2 subscriptions 1;"
	 "interrupted; stats reports 3 confirmed 3 subscriptions 1; unsubscribe; stop-run-now;"
	 "interrupted; heard joined 1; interrupted; heard joined 1 ended"},
	{"without_registrations_nothing_is_sent_and_a_run_ends",
	 "join 0; subscribe; pass 2; leave 0; unsubscribe; wait; told 0 joined 1 ended;"
	 "heard joined 1 ended; recount; pass 600; nothing"},
};

TEST_ROWS(play_story, stories);

/* --- subscriptions ---------------------------------------------------------------- */

TEST(filters_say_which_notices_are_wanted)
{
	const struct mad_notice_filter filters[] = {
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

	set.notices = (struct mad_notices_options){.filters = filters, .filter_count = 2};
	play("subscribe; pass 2; heard joined 1; subscriptions 2; informs 2");
	expect_mad(latest[-1].mad, "0:01030202 17:03 54:15f6 72:00030009 78:0101ffff0080 "
				   "86:0112 89:ffffff");
	expect_mad(latest->mad,
		   "0:01030202 17:03 54:15f3 71:07 72:ffff 79:01 80:0004ffff 86:0112 90:02c9");
	play("unsubscribe; pass 4; subscriptions 0");
}

static void *wait_long(void *arg)
{
	mad_async_wait(arg, -1);
	return NULL;
}

/* It would sleep until the keeper's next look at the local port, up to a second. */
TEST(a_thread_that_waits_joins_at_once_for_another_thread)
{
	pthread_t thread;

	assert_int_equal(begin(0), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_long, async), 0);
	machine_pass(300000);
	assert_int_equal(begin(1), 0);
	machine_pass(20000);
	assert_int_equal(told[1].joined, 1);
	mad_async_stop(async);
	pthread_join(thread, NULL);
	play("leave 0; leave 1; pass 4");
}

static void *destroy_later(void *arg)
{
	mad_async_free(arg);
	return NULL;
}

/* The thread that frees the engine waits for the call, or comes first or last. */
TEST(a_destroyed_engine_ends_notices_as_soon_as_they_are_started)
{
	struct mad_async *first = async;
	pthread_t destroyer;

	for (unsigned i = 0; i < 100; i++) {
		async = mad_async_create(port);
		play("subscribe");
		assert_int_equal(pthread_create(&destroyer, NULL, destroy_later, async), 0);
		pthread_join(destroyer, NULL);
		play("heard joined 0 ended: cancelled");
	}
	async = first;
}

/* --- the end, and errors ---------------------------------------------------------------- */

static int run_child(void)
{
	EXPECT(mad_async_wait(async, -1) >= 0);
	EXPECT(told[0].ends == 1 && told[0].error == -ECANCELED);
	EXPECT(subscription.ends == 1 && subscription.error == -ECANCELED);
	EXPECT(begin(1) == -ECANCELED);
	return 0;
}

TEST(a_child_has_no_registrations_and_a_freed_engine_leaves_them_at_the_sa)
{
	play("subscribe; join 0; pass 2");
	run_in_child(run_child);
	play("rule forget; pass 15; told 0 joined 2; heard joined 2; join 1");
	mad_async_free(async);
	async = NULL;
	play("told 0 joined 2 ended: cancelled; told 1 joined 0 ended: cancelled;"
	     "heard joined 2 ended: cancelled; members 1");
}

/* Whenever the device goes, mad_async_wait() returns after the last callbacks. */
TEST(a_device_that_is_gone_ends_all)
{
	for (unsigned ms = 0; ms < 12; ms = 2 * ms + 1) {
		play("rule slow 1ms; join 0; subscribe");
		machine_rule("after %ums remove on host", ms);
		mad_async_wait(async, -1);
		assert_true(told[0].ends && told[0].error == -ENODEV);
		assert_true(subscription.ends && subscription.error == -ENODEV);
		assert_int_equal(mad_async_process(async), -ENODEV);
		assert_int_equal(begin(1), -ENODEV);
		teardown();
		setup();
	}
}

static void expect_renewed(const struct told *here, unsigned before, int64_t forgot,
			   int64_t ready)
{
	assert_true(here->joined > before);
	assert_int_equal(here->error, 0);
	assert_true(here->at <= ready + WITHIN);
	assert_in_range(here->gap_begin, 1, forgot);
	assert_in_range(here->gap_end, ready, here->at);
}

/*
 * SMs are restarted at random times, are away for random times, and have the same LID or
 * another one. Each time the SA has all registrations again within the promised time, and the
 * program knows the gap.
 */
TEST(whatever_happens_to_the_sm_the_sa_has_all_registrations_again)
{
	unsigned seed = test_seed();

	play("join 0; subscribe; pass 2; told 0 joined 1; heard joined 1");
	assert_int_equal(told[0].gap_end + subscription.gap_end, 0);
	for (unsigned i = 0; i < 300; i++) {
		unsigned joined, subscribed;
		int64_t forgot, ready;

		arrival_count = 0;
		pass(rand_r(&seed) % 40000 * MS);
		joined = told[0].joined;
		subscribed = subscription.joined;
		forgot = clock_now();
		set.silent = 1;
		pass(rand_r(&seed) % 3 ? 0 : rand_r(&seed) % 30000 * MS);
		machine_rule("forget");
		next_member.exists = next_inform.exists = set.silent = 0;
		set.sm_lid = rand_r(&seed) % 2 ? machine_lid(NEXT_SM) : 0;
		ready = clock_now();
		pass(WITHIN);
		play("members 1; subscriptions 1");
		expect_renewed(&told[0], joined, forgot, ready);
		expect_renewed(&subscription, subscribed, forgot, ready);
	}
}

/* Of a server of another class: the last callback is counted. */
static struct mad_server *other_server;
static unsigned other_ends;

static void end_other(struct mad_server *server, struct mad_request *request, int error,
		      void *arg)
{
	(void)server, (void)request, (void)error, (void)arg;
	other_ends++;
}

static void *stop_other(void *arg)
{
	mad_server_stop(other_server);
	return arg;
}

/* The end of a membership: another thread stops the server, which takes longer. */
static void stop_elsewhere(struct mad_membership *membership,
			   const struct mad_membership_state *state, void *thread)
{
	(void)membership;
	if (state->kind != MAD_MEMBERSHIP_END)
		return;
	machine_slow_call(MACHINE_IOCTL, 10 * MS);
	assert_int_equal(pthread_create(thread, NULL, stop_other, NULL), 0);
	machine_pass(MS);
}

TEST(a_server_that_is_stopped_while_its_engine_is_freed_ends)
{
	const struct mad_server_options options = {
		.mgmt_class = 0x0a, .methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_GET)}};
	const struct umad_sa_mcmember_record member = {.mgid = {0xff, 0x12, [15] = 1}};
	const struct mad_membership_options group = {.member = &member, .join_state = 1};
	struct mad_membership *membership;
	pthread_t thread;

	assert_int_equal(mad_server_start(async, &options, end_other, NULL, &other_server), 0);
	assert_int_equal(
		mad_membership_start(async, &group, stop_elsewhere, &thread, &membership), 0);
	other_ends = 0;
	mad_async_free(async);
	async = NULL;
	assert_int_equal(other_ends, 1);
	machine_slow_call(MACHINE_IOCTL, 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void hear_log(enum umad_log_level level, const char *text, void *user)
{
	(void)level;
	snprintf(user, 128, "%s", text);
}

TEST(without_a_class_there_are_no_notices_and_no_memberships)
{
	int classes[] = {IB_SA_CLASS, IB_SMI_DIRECT_CLASS};
	struct mad_async *own = async;
	struct mad_notices *none;
	char line[128] = "";

	for (unsigned i = 0; i < 2; i++) {
		struct ibmad_port *other = mad_rpc_open_port(NULL, 0, &classes[i], 1);

		async = mad_async_create(other);
		ibdebug = 1;
		umad_set_log_hook(hear_log, line);
		assert_int_equal(mad_notices_start(async, NULL, tell_notice, NULL, &none),
				 -EPROTONOSUPPORT);
		umad_set_log_hook(NULL, NULL);
		ibdebug = 0;
		assert_non_null(strstr(line, i ? "class 0x03 is not registered on the port"
					       : "class 0x81 is not registered on the port"));
		assert_int_equal(begin(0), -EPROTONOSUPPORT);
		assert_null(told[0].membership);
		mad_async_free(async);
		mad_rpc_close_port(other);
	}
	async = own;
	play("subscribe");
	assert_int_equal(mad_notices_start(async, NULL, tell_notice, NULL, &none), -EADDRINUSE);
	assert_null(none);
}

TEST(wrong_arguments_are_refused)
{
	struct umad_sa_mcmember_record member = {.qkey = 0};
	const struct mad_membership_options good = {.member = &member, .join_state = 1};
	const struct mad_membership_options memberships[] = {
		{.member = NULL, .join_state = 1},
		{.member = &member, .join_state = 0},
		{.member = &member, .join_state = 16},
		{.member = &member, .join_state = 1, .reserved = {[3] = 1}},
	};
	const struct mad_notice_filter filters[] =
		{
			{.by = MAD_NOTICE_BY_LIDS, .lid_begin = 3, .lid_end = 2},
			{.by = MAD_NOTICE_BY_LIDS, .lid_begin = 0, .lid_end = 2},
			{.by = MAD_NOTICE_BY_LIDS, .lid_begin = 1, .lid_end = 0x10000},
			{.by = MAD_NOTICE_BY_TYPE, .type = 0x10000},
			{.by = MAD_NOTICE_BY_TRAP, .trap = 0x10000},
			{.by = MAD_NOTICE_BY_PRODUCER, .producer = 0x1000000},
			{.by = 0x100},
			{.reserved = {[3] = 1}},
		},
				       seventeen[17] = {{.vendor = 0}};
	const struct mad_notices_options subscriptions[] = {
		{.filters = seventeen, .filter_count = 17},
		{.filter_count = 1},
		{.reserved = {[0] = 1}},
		{.check_ms = UINT32_MAX},
		{.poll_ms = UINT32_MAX},
	};
	struct mad_membership *none;
	struct mad_notices *silence;

#define REFUSED(call) assert_int_equal(call, -EINVAL)
	for (size_t i = 0; i < 4; i++)
		REFUSED(mad_membership_start(async, &memberships[i], tell_member, NULL, &none));
	assert_int_equal(mad_last_failure()->error, -EINVAL);
	REFUSED(mad_membership_start(async, NULL, tell_member, NULL, &none));
	REFUSED(mad_membership_start(NULL, &good, tell_member, NULL, &none));
	REFUSED(mad_membership_start(async, &good, NULL, NULL, &none));
	REFUSED(mad_membership_start(async, &good, tell_member, NULL, NULL));
	mad_membership_stop(NULL);
	mad_notices_stop(NULL);
	for (size_t i = 0; i < 8; i++) {
		const struct mad_notices_options options = {&filters[i], .filter_count = 1};

		REFUSED(mad_notices_start(async, &options, tell_notice, NULL, &silence));
	}
	for (size_t i = 0; i < 5; i++)
		REFUSED(mad_notices_start(async, &subscriptions[i], tell_notice, NULL,
					  &silence));
	REFUSED(mad_notices_start(async, NULL, NULL, NULL, &silence));
	REFUSED(mad_notices_start(NULL, NULL, tell_notice, NULL, &silence));
	REFUSED(mad_notices_start(async, NULL, tell_notice, NULL, NULL));
	REFUSED(mad_notices_get_stats(NULL, NULL, 0));
}

TEST(each_lack_of_memory_is_survived)
{
	for (unsigned n = 1; n < 40; n++) {
		int failed, refused;

		teardown();
		setup();
		machine_fail(MACHINE_MALLOC, n, ENOMEM);
		failed = begin(0);
		refused = mad_notices_start(async, NULL, tell_notice, NULL, &notices);
		assert_true(!failed || failed == -ENOMEM);
		assert_true(!refused || refused == -ENOMEM);
		pass(20 * S);
		machine_fail(MACHINE_MALLOC, 0, 0);
		pass(WITHIN);
		assert_int_equal(records(MEMBER), !failed);
		assert_int_equal(records(INFORM_RECORD), !refused);
	}
}
