/* SPDX-License-Identifier: BSD-2-Clause */

/* Notices: decoding, the subscription, the local port, and reports. */

#define MANY 1
#include "async_fixture.h"
#include "test.h"

#include <infiniband/mad_link.h>
#include <infiniband/mad_errors.h>
#include <infiniband/mad_notice.h>
#include <infiniband/umad_ext.h>

/* The behaviour of the SA and the local port. */
static struct {
	unsigned state, lid, sm_lid;
	uint16_t status; /* of Set(InformInfo) */
	bool silent;     /* the SA does not respond */
	uint16_t dead;   /* the LID of an SA that does not respond */
	bool other_s;    /* the response belongs to another subscription */
	bool forgets;    /* it has no record of a subscription */
	unsigned reads, sets, unsubscriptions, checks;
	uint8_t inform[36]; /* the latest */
} fabric;

/* The calls of the callback. */
static struct {
	unsigned traps, ports, subscriptions, ends;
	int error, end_error;
	unsigned status;
	uint64_t gap_us;
	struct mad_notice trap, port;
	struct mad_notices_stats last; /* when they ended */
	bool stop_in_callback, stop_run_in_callback;
	char failure[MAD_ERROR_TEXT_SIZE]; /* of the latest error */
} told;

static struct mad_notices *notices;

static void respond_port_info(const struct device_packet *packet)
{
	uint8_t info[64] = {0};

	fabric.reads++;
	mad_set_field(info, 0, IB_PORT_STATE_F, fabric.state);
	mad_set_field(info, 0, IB_PORT_LID_F, fabric.lid);
	mad_set_field(info, 0, IB_PORT_SMLID_F, fabric.sm_lid);
	mad_set_field64(info, 0, IB_PORT_GID_PREFIX_F, UINT64_C(0xfe80) << 48);
	device_respond(packet, 0, 64, info, sizeof(info));
}

static void respond_set(const struct device_packet *packet)
{
	uint8_t inform[36];

	fabric.sets++;
	memcpy(inform, packet->mad + 56, sizeof(inform));
	memcpy(fabric.inform, inform, sizeof(inform));
	if (!inform[23])
		fabric.unsubscriptions++;
	if (fabric.other_s)
		inform[27] ^= 1;
	if (!fabric.silent && be16toh(packet->header.addr.lid) != fabric.dead)
		device_respond(packet, fabric.status, 56, inform, sizeof(inform));
}

/* InformInfoRecords, of 64 bytes. */
static void respond_table(const struct device_packet *packet)
{
	size_t size = fabric.forgets ? 0 : 64;
	uint8_t mad[IB_MAD_SIZE];

	fabric.checks++;
	if (fabric.silent)
		return;
	device_copy_mad(packet, mad);
	mad[3] = IB_MAD_METHOD_GET_TABLE | IB_MAD_RESPONSE;
	mad[24] = 1;
	mad[25] = IB_RMPP_TYPE_DATA;
	mad[26] = 7;
	mad[45] = 8;
	memset(mad + 56, 0, sizeof(mad) - 56);
	memcpy(mad + 56 + 24, fabric.inform, sizeof(fabric.inform));
	device_reply(packet, mad, 56 + size);
}

static void respond_node_info(const struct device_packet *packet)
{
	uint8_t info[64] = {0};

	mad_set_field64(info, 0, IB_NODE_PORT_GUID_F, 0x11);
	device_respond(packet, 0, 64, info, sizeof(info));
}

static int respond(const struct device_packet *packet, void *arg)
{
	(void)arg;
	if (packet->mad[3] & IB_MAD_RESPONSE)
		return 0;
	if (packet->mad[1] == IB_SMI_DIRECT_CLASS && packet->mad[17] == IB_ATTR_NODE_INFO)
		respond_node_info(packet);
	else if (packet->mad[1] == IB_SMI_DIRECT_CLASS)
		respond_port_info(packet);
	else if (packet->mad[1] == IB_SA_CLASS && packet->mad[3] == IB_MAD_METHOD_GET_TABLE)
		respond_table(packet);
	else if (packet->mad[1] == IB_SA_CLASS)
		respond_set(packet);
	return 0;
}

static void tell(struct mad_notices *from, const struct mad_notice *notice, void *arg)
{
	char line[MAD_NOTICE_TEXT_SIZE];

	(void)arg;
	if (told.stop_run_in_callback)
		mad_async_stop(async);
	mad_notice_text(notice, line, sizeof(line));
	assert_true(strlen(line) > 0);
	if (notice->error) {
		assert_int_equal(mad_last_failure()->error, notice->error);
		mad_failure_text(NULL, told.failure, sizeof(told.failure));
	}
	switch (notice->kind) {
	case MAD_NOTICE_TRAP:
		told.traps++;
		told.trap = *notice;
		break;
	case MAD_NOTICE_PORT:
		told.ports++;
		told.port = *notice;
		break;
	case MAD_NOTICE_SUBSCRIPTION:
		told.subscriptions++;
		told.error = notice->error;
		told.status = notice->status;
		told.gap_us = notice->gap_end_us - notice->gap_begin_us;
		break;
	case MAD_NOTICE_END:
		told.ends++;
		told.end_error = notice->error;
		assert_int_equal(mad_notices_get_stats(from, &told.last, sizeof(told.last)), 0);
		notices = NULL;
		return;
	}
	if (told.stop_in_callback)
		mad_notices_stop(from);
}

static int setup(void)
{
	if (async_setup())
		return -1;
	memset(&fabric, 0, sizeof(fabric));
	memset(&told, 0, sizeof(told));
	fabric.state = MAD_PORT_ACTIVE;
	fabric.lid = 5;
	fabric.sm_lid = 1;
	notices = NULL;
	device_on_write(respond, NULL);
	return 0;
}

FIXTURE(setup, async_teardown);

static void start(struct mad_notices_options options)
{
	assert_int_equal(mad_notices_start(async, &options, tell, NULL, &notices), 0);
}

static const struct mad_notices_options usual;

/* Intervals that expire at once. */
static struct mad_notices_options quick(void)
{
	return (struct mad_notices_options){.poll_ms = 1, .check_ms = 86400000};
}

/* Processes until a count is reached; fails after a long time. */
#define PROCESS_UNTIL(condition)                                    \
	do {                                                        \
		int64_t end = now_ms() + LONG_MS;                   \
		while (!(condition)) {                              \
			assert_true(now_ms() < end);                \
			assert_true(mad_async_process(async) >= 0); \
		}                                                   \
	} while (0)

static void subscribe(struct mad_notices_options options)
{
	start(options);
	PROCESS_UNTIL(told.subscriptions == 1);
}

static void stop(int error)
{
	mad_notices_stop(notices);
	PROCESS_UNTIL(told.ends);
	assert_int_equal(told.end_error, error);
}

/* The agent that receives reports, or -1. */
static int report_agent(void)
{
	for (int id = 0; id < 32; id++) {
		struct device_agent agent = device_agent(device_fd(), (unsigned)id);

		if (agent.registered && agent.mgmt_class == IB_SA_CLASS && agent.methods[0])
			return id;
	}
	return -1;
}

static void report_of(uint32_t tid, uint16_t attribute, const uint8_t *notice, size_t length)
{
	struct ib_user_mad header = {.agent_id = (uint32_t)report_agent()};
	uint8_t mad[256] = {1, IB_SA_CLASS, 2, IB_MAD_METHOD_REPORT};

	tid = htobe32(tid);
	memcpy(mad + 12, &tid, sizeof(tid));
	mad[16] = (uint8_t)(attribute >> 8);
	mad[17] = (uint8_t)attribute;
	memcpy(mad + 56, notice, 80);
	header.addr.lid = htobe16(1);
	header.addr.qpn = htobe32(1);
	device_queue(device_fd(), &header, mad, length);
}

/* A link state change at a switch. */
static void send_report(uint32_t tid, uint8_t lid)
{
	uint8_t notice[80] = {0x81, 0, 0, 2, 0, 128, 0, lid, 0, 0, 0, lid};

	report_of(tid, 2, notice, IB_MAD_SIZE);
}

static unsigned confirmations(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < device_written(); i++)
		count += device_packet(i)->mad[3] == IB_MAD_METHOD_REPORT_RESPONSE;
	return count;
}

static struct mad_notices_stats notices_stats(void)
{
	struct mad_notices_stats stats;

	assert_int_equal(mad_notices_get_stats(notices, &stats, sizeof(stats)), 0);
	return stats;
}

/* --- decoding of notices ---------------------------------------------------------- */

static const char *text_of(const uint8_t *raw)
{
	static char line[MAD_NOTICE_TEXT_SIZE];
	struct mad_notice notice;

	assert_int_equal(mad_notice_decode(raw, 80, &notice, sizeof(notice)), 0);
	return mad_notice_text(&notice, line, sizeof(line));
}

TEST(each_trap_has_its_details)
{
	static const struct {
		uint8_t raw[80];
		const char *text;
	} rows[] = {
		{{0x84, [3] = 1, [5] = 144, [13] = 5, [16] = 0x02, 0x51, 0x48, 0x68},
		 "trap 144: LID 5: capability mask 0x02514868"},
		{{0x84, [3] = 1, [5] = 144, [13] = 5, [15] = 1, 0x02, 0x51, 0x48,
		  0x68, [21] = 1},
		 "trap 144: LID 5: capability mask 0x02514868, new node description"},
		{{0x83, [3] = 4, [5] = 64, [16] = 0xfe, 0x80, [31] = 1},
		 "trap 64: GID fe80::1 in service"},
		{{0x83, [3] = 4, [5] = 67, [16] = 0xfe, 0x80, [31] = 1},
		 "trap 67: GID fe80::1 multicast group deleted"},
		{{0x83, [3] = 4, [5] = 128, [11] = 7},
		 "trap 128: LID 7: the state of a link has changed"},
		{{0x83, [3] = 4, [5] = 130, [13] = 8, 3},
		 "trap 130: LID 8 port 3: excessive buffer overruns"},
		{{0x83, [3] = 4, [5] = 145, [13] = 8, 3, [23] = 0x11},
		 "trap 145: LID 8: system image GUID 0x0000000000000011"},
		{{0x83, [3] = 4, 1, [13] = 9, [16] = 1, [19] = 0x15, [31] = 0x42, [33] = 0x82,
		  1, 4},
		 "trap 256: LID 9: bad M_Key 0x0000000000000042 in a request of method 0x01, "
		 "attribute 0x0015, modifier 0x00000000, return path 1,4"},
		{{0x83, [3] = 4, 1, 1, [13] = 9, [15] = 10, [19] = 0x7f,
		  0x30, [23] = 0x12, [27] = 0x34, [43] = 1, [59] = 2},
		 "trap 257: bad P_Key 0x007f, LID 9 QP 0x12 GID ::1 to LID 10 QP 0x34 GID ::2, "
		 "SL 3"},
		{{0x83, [3] = 4, 1, 3, [13] = 9, [15] = 10, [17] = 0x7f,
		  0x30, [21] = 0x12, [25] = 0x34, [41] = 1, [57] = 2, [59] = 20, 6},
		 "trap 259: switch LID 20 port 6: bad P_Key 0x007f, LID 9 QP 0x12 GID ::1 to "
		 "LID 10 QP 0x34 GID ::2, SL 3"},
	};
	/* more hops than the path has entries */
	const uint8_t long_path[80] = {0x83, [3] = 4, 1, [33] = 0xff};
	struct mad_notice notice;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_string_equal(text_of(rows[i].raw), rows[i].text);
	assert_int_equal(mad_notice_decode(long_path, 80, &notice, sizeof(notice)), 0);
	assert_int_equal(notice.path_length, 30);
}

TEST(an_unknown_trap_has_what_all_have)
{
	uint8_t raw[80] = {0x84, 0, 0, 2, 0x12, 0x34, 0, 7, 0x80, 9};
	struct mad_notice notice;
	char small[8];

	assert_int_equal(mad_notice_decode(raw, 80, &notice, sizeof(notice)), 0);
	assert_int_equal(notice.trap, 0x1234);
	assert_int_equal(notice.details, 0);
	assert_int_equal(notice.issuer_lid, 7);
	assert_int_equal(notice.toggle, 1);
	assert_int_equal(notice.count, 9);
	assert_string_equal(text_of(raw), "trap 4660: type 4 of producer 2 from LID 7");
	raw[0] = 0x02;
	raw[5] = 144; /* a vendor's notice, with any number */
	assert_int_equal(mad_notice_decode(raw, 80, &notice, sizeof(notice)), 0);
	assert_int_equal(notice.details, 0);
	assert_string_equal(text_of(raw),
			    "trap of vendor 0x000002, device 0x1290: type 2 from LID 7");
	assert_ptr_equal(mad_notice_text(&notice, small, sizeof(small)), small);
	assert_string_equal(small, "trap of");
	assert_int_equal(mad_notice_decode(raw, 64, &notice, sizeof(notice)), 0);
	assert_int_equal(mad_notice_decode(raw, 63, &notice, sizeof(notice)), -EBADMSG);
	assert_int_equal(mad_notice_decode(NULL, 80, &notice, sizeof(notice)), -EINVAL);
	assert_int_equal(mad_notice_decode(raw, 80, NULL, sizeof(notice)), -EINVAL);
}

/* A program compiled with an older or a newer structure. */
TEST(a_decoded_notice_has_the_size_of_the_program_s_structure)
{
	const uint8_t raw[80] = {0x80 | 4, [3] = 2, [5] = 128, [11] = 9, [79] = 0x77};
	struct {
		struct mad_notice notice;
		char newer[8];
	} larger;
	struct mad_notice smaller;

	memset(&larger, 0x55, sizeof(larger));
	memset(&smaller, 0x55, sizeof(smaller));
	assert_int_equal(mad_notice_decode(raw, 80, &larger.notice, sizeof(larger)), 0);
	assert_int_equal(larger.notice.lid, 9);
	for (size_t i = 0; i < sizeof(larger.newer); i++)
		assert_int_equal(larger.newer[i], 0);
	assert_int_equal(
		mad_notice_decode(raw, 80, &smaller, offsetof(struct mad_notice, issuer_lid)),
		0);
	assert_int_equal(smaller.trap, 128);
	assert_int_equal(smaller.issuer_lid, 0x55555555);
}

/* --- the subscription ------------------------------------------------------------- */

TEST(a_subscription_asks_for_all_notices)
{
	const uint8_t expected[36] = {
		[16] = 0xff, [17] = 0xff, [22] = 1,    [23] = 1, [24] = 0xff,
		[25] = 0xff, [26] = 0xff, [27] = 0xff, [30] = 1, [31] = 18,
		[33] = 0xff, [34] = 0xff, [35] = 0xff};

	assert_int_equal(mad_notices_start(async, NULL, tell, NULL, &notices), 0);
	PROCESS_UNTIL(told.subscriptions == 1);
	assert_int_equal(told.error, 0);
	assert_int_equal(fabric.sets, 1);
	assert_memory_equal(fabric.inform, expected, sizeof(expected));
	assert_int_equal(notices_stats().subscriptions, 1);
	stop(0);
	assert_int_equal(fabric.unsubscriptions, 1);
	assert_int_equal(fabric.inform[23], 0);
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
	struct mad_notices_options options = {.filters = filters, .filter_count = 2};
	const uint8_t second[36] = {
		[15] = 7,    [16] = 0xff, [17] = 0xff, [23] = 1, [25] = 4,   [26] = 0xff,
		[27] = 0xff, [30] = 1,    [31] = 18,   [34] = 2, [35] = 0xc9};

	subscribe(options);
	assert_int_equal(fabric.sets, 2);
	assert_memory_equal(fabric.inform, second, sizeof(second));
	stop(0);
	assert_int_equal(fabric.unsubscriptions, 2);

	options.filter_count = 17;
	assert_int_equal(mad_notices_start(async, &options, tell, NULL, &notices), -EINVAL);
	options.filter_count = 1;
	filters[0].lid_end = 2;
	assert_int_equal(mad_notices_start(async, &options, tell, NULL, &notices), -EINVAL);
	filters[0].by = 0x100;
	assert_int_equal(mad_notices_start(async, &options, tell, NULL, &notices), -EINVAL);
	filters[0] = (struct mad_notice_filter){.reserved = {[3] = 1}};
	assert_int_equal(mad_notices_start(async, &options, tell, NULL, &notices), -EINVAL);
	options = (struct mad_notices_options){.reserved = {1}};
	assert_int_equal(mad_notices_start(async, &options, tell, NULL, &notices), -EINVAL);
	assert_int_equal(mad_notices_start(async, NULL, NULL, NULL, &notices), -EINVAL);
	assert_int_equal(mad_notices_start(NULL, NULL, tell, NULL, &notices), -EINVAL);
}

TEST(a_refusal_is_told_once_and_tried_again)
{
	fabric.status = 0x700;
	subscribe(quick());
	assert_int_equal(told.error, -EIO);
	assert_int_equal(told.status, 0x700);
	assert_string_equal(told.failure, "SA: request denied");
	PROCESS_UNTIL(fabric.sets == 2); /* a second later */
	PROCESS_UNTIL(notices_stats().failures == 2);
	assert_int_equal(told.subscriptions, 1);
	fabric.status = 0;
	PROCESS_UNTIL(told.subscriptions == 2);
	assert_int_equal(told.error, 0);
}

TEST(a_response_to_another_subscription_is_an_error)
{
	fabric.other_s = true;
	subscribe(quick());
	assert_int_equal(told.error, -EBADMSG);
}

TEST(another_sm_is_asked_and_the_change_is_told)
{
	subscribe(quick());
	fabric.sm_lid = 2;
	PROCESS_UNTIL(told.subscriptions == 2);
	assert_int_equal(told.ports, 1);
	assert_int_equal(told.port.before.sm_lid, 1);
	assert_int_equal(told.port.after.sm_lid, 2);
	assert_int_equal(fabric.sets, 2);
	fabric.state = MAD_PORT_DOWN;
	PROCESS_UNTIL(told.subscriptions == 3);
	assert_int_equal(told.error, -ENETDOWN);
	assert_int_equal(told.ports, 2);
	assert_int_equal(told.port.after.state, MAD_PORT_DOWN);
	fabric.state = MAD_PORT_ACTIVE;
	PROCESS_UNTIL(told.subscriptions == 4);
	assert_int_equal(told.error, 0);
	assert_int_equal(fabric.sets, 3);
}

TEST(the_next_sm_is_asked_although_the_one_before_does_not_respond)
{
	fabric.dead = 1;
	start(quick());
	PROCESS_UNTIL(fabric.sets == 1);
	fabric.sm_lid = 2;
	PROCESS_UNTIL(told.subscriptions == 1);
	assert_int_equal(told.error, 0); /* no timeout before */
	assert_int_equal(notices_stats().failures, 0);
	assert_int_equal(notices_stats().subscriptions, 1);
}

TEST(a_subscription_that_the_sa_has_is_checked_and_not_renewed)
{
	struct mad_notices_options options = quick();

	options.check_ms = 1;
	start(options);
	PROCESS_UNTIL(fabric.checks >= 20);
	assert_int_equal(fabric.sets, 1);
	assert_int_equal(told.subscriptions, 1);
	assert_int_equal(told.gap_us, 0);
}

TEST(a_subscription_that_the_sa_has_forgotten_is_renewed_and_the_gap_is_told)
{
	struct mad_notices_options options = quick();

	options.check_ms = 1;
	start(options);
	PROCESS_UNTIL(fabric.checks >= 2);
	assert_int_equal(told.subscriptions, 1);
	fabric.forgets = true;
	PROCESS_UNTIL(fabric.sets == 2);
	fabric.forgets = false;
	PROCESS_UNTIL(told.subscriptions == 2);
	assert_int_equal(told.error, 0);
	assert_true(told.gap_us > 0);
	assert_true(told.gap_us < LONG_MS * 1000);
}

TEST(nothing_is_asked_without_an_sm)
{
	fabric.sm_lid = 0;
	start(quick());
	PROCESS_UNTIL(fabric.reads >= 5);
	assert_int_equal(fabric.sets, 0);
	assert_int_equal(told.error, -ENETDOWN);
	stop(0);
}

/* --- reports ---------------------------------------------------------------------- */

TEST(a_report_is_handed_out_and_confirmed)
{
	const struct device_packet *packet;

	subscribe(usual);
	send_report(77, 6);
	PROCESS_UNTIL(told.traps == 1);
	assert_int_equal(told.trap.trap, 128);
	assert_int_equal(told.trap.lid, 6);
	assert_int_equal(told.trap.issuer_lid, 6);
	assert_int_equal(confirmations(), 1);
	packet = device_packet(device_written() - 1);
	assert_int_equal(packet->mad[15], 77);
	assert_int_equal(packet->mad[4] << 8 | packet->mad[5], 0);
	assert_int_equal(be16toh(packet->header.addr.lid), 1);
}

TEST(a_report_that_is_repeated_is_confirmed_and_not_handed_out)
{
	start(usual);
	send_report(77, 6);
	send_report(77, 6);
	send_report(78, 6);
	PROCESS_UNTIL(told.traps == 2);
	send_report(77, 7); /* another notice */
	PROCESS_UNTIL(told.traps == 3);
	send_report(77, 7);
	send_report(78, 6);
	PROCESS_UNTIL(notices_stats().duplicates == 3);
	assert_int_equal(told.traps, 3);
	/* the second one arrived before the callback got the first one */
	assert_true(confirmations() >= 5);
	stop(0);
	assert_int_equal(told.last.reports, 3);
	assert_int_equal(told.last.duplicates, 3);
}

TEST(a_confirmation_that_cannot_be_sent_is_sent_for_the_repeated_report)
{
	subscribe(usual);
	send_report(77, 6);
	device_fail(DEVICE_WRITE, 1, ENOMEM);
	PROCESS_UNTIL(told.traps == 1);
	assert_int_equal(confirmations(), 0);
	send_report(77, 6);
	PROCESS_UNTIL(notices_stats().confirmed == 1);
	assert_int_equal(told.traps, 1);
}

TEST(malformed_reports_are_counted)
{
	static const uint8_t notice[80] = {0x81};

	subscribe(usual);
	report_of(1, 2, notice, 100); /* short */
	report_of(2, 9, notice, 256); /* no Notice */
	report_of(3, 2, notice, 135);
	PROCESS_UNTIL(notices_stats().malformed == 3);
	assert_int_equal(told.traps, 0);
	assert_int_equal(confirmations(), 1);
	assert_int_equal(device_packet(device_written() - 1)->mad[5], 0x0c);
}

TEST(what_is_not_kept_in_a_storm_is_not_confirmed)
{
	struct mad_async *other = mad_async_create(port);
	struct mad_notices_stats stats;

	subscribe((struct mad_notices_options){.limit = 100});
	for (unsigned i = 0; i < 3000; i++)
		send_report(1000 + i, (uint8_t)i);
	for (unsigned i = 0; i < 100; i++)
		mad_async_process(other);
	mad_async_free(other);
	PROCESS_UNTIL(told.traps == 100);
	stats = notices_stats();
	printf("3000 reports at once: %u handed out and confirmed, %u dropped\n",
	       (unsigned)stats.reports, (unsigned)stats.dropped);
	assert_int_equal(confirmations(), 100);
	assert_int_equal(stats.dropped, 2900);
}

/* --- the end ---------------------------------------------------------------------- */

TEST(a_stop_ends_what_is_in_flight)
{
	fabric.silent = true;
	start(quick());
	PROCESS_UNTIL(fabric.sets == 1);
	fabric.silent = false;
	stop(0);
	assert_int_equal(told.subscriptions, 0);
}

TEST(an_sa_that_does_not_respond_delays_the_end_by_a_request)
{
	mad_rpc_set_timeout(port, 20);
	mad_rpc_set_retries(port, 3);
	subscribe(quick());
	fabric.silent = true;
	stop(-ETIMEDOUT);
	assert_memory_equal(told.failure, "no response to ", 15);
	assert_true(fabric.unsubscriptions >= 1);
	assert_true(fabric.unsubscriptions <= 6);
}

TEST(a_callback_may_stop_them)
{
	told.stop_in_callback = true;
	assert_int_equal(mad_notices_start(async, NULL, tell, NULL, &notices), 0);
	assert_true(mad_async_wait(async, -1) >= 2);
	assert_int_equal(told.ends, 1);
	assert_int_equal(told.end_error, 0);
	/* Another subscription receives the reports now */
	assert_int_equal(mad_notices_start(async, NULL, tell, NULL, &notices), 0);
}

static unsigned calls(void)
{
	return told.traps + told.ports + told.subscriptions + told.ends;
}

TEST(after_a_stop_of_the_run_they_do_not_call_back)
{
	subscribe(quick());
	told.stop_run_in_callback = true;
	for (unsigned i = 0; i < 3; i++)
		send_report(77 + i, 6);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(mad_async_wait(async, -1), -EINTR);
		assert_int_equal(calls(), 2 + i);
	}
	mad_notices_stop(notices); /* a timer */
	mad_async_stop(async);
	assert_int_equal(mad_async_wait(async, -1), -EINTR);
	assert_int_equal(told.ends, 0);
	assert_int_equal(mad_async_wait(async, -1), -EINTR);
	assert_int_equal(told.ends, 1);
}

TEST(the_engine_ends_them)
{
	subscribe(quick());
	send_report(5, 5);
	mad_async_free(async);
	async = NULL;
	assert_int_equal(told.ends, 1);
	assert_int_equal(told.end_error, -ECANCELED);
}

static void *destroy_when_there_is_a_server(void *arg)
{
	while (report_agent() < 0)
		sched_yield();
	mad_async_free(arg);
	return NULL;
}

/* Uses the port's lock all the time, so that other threads often wait for it. */
static void *use_port(void *arg)
{
	struct mad_async_stats stats;

	while (!*(atomic_bool *)arg) {
		mad_async_get_stats(async, &stats, sizeof(stats));
		sched_yield();
	}
	return NULL;
}

TEST(a_destroyed_engine_ends_them_as_soon_as_they_are_started)
{
	struct mad_notices *started;
	pthread_t destroyer, users[2];
	atomic_bool end = false;
	unsigned starts = 0;

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&users[i], NULL, use_port, &end), 0);
	for (unsigned i = 0; i < 200; i++) {
		struct mad_async *engine = mad_async_create(port);

		assert_int_equal(pthread_create(&destroyer, NULL,
						destroy_when_there_is_a_server, engine),
				 0);
		starts += !mad_notices_start(engine, NULL, tell, NULL, &started);
		pthread_join(destroyer, NULL);
	}
	end = true;
	for (unsigned i = 0; i < 2; i++)
		pthread_join(users[i], NULL);
	assert_int_equal(starts, 200);
	assert_int_equal(told.ends, 200);
	assert_int_equal(told.end_error, -ECANCELED);
}

TEST(a_device_that_is_gone_ends_them)
{
	int ret;

	subscribe(quick());
	device_remove();
	do
		ret = mad_async_process(async);
	while (ret >= 0);
	assert_int_equal(ret, -ENODEV);
	assert_int_equal(told.ends, 1);
	assert_int_equal(told.end_error, -ENODEV);
}

TEST(there_is_one_subscriber_on_a_port)
{
	struct mad_notices *none;

	start(quick());
	assert_int_equal(mad_notices_start(async, NULL, tell, NULL, &none), -EADDRINUSE);
	assert_null(none);
	assert_int_equal(mad_notices_get_stats(NULL, NULL, 0), -EINVAL);
}

static void hear(enum umad_log_level level, const char *text, void *heard)
{
	(void)level;
	snprintf(heard, 128, "%s", text);
}

TEST(without_the_classes_they_cannot_be_started)
{
	static const struct {
		int class;
		const char *message;
	} ports[] = {
		{IB_SA_CLASS, "mad_notices_start: class 0x81 is not registered on the port"},
		{IB_SMI_DIRECT_CLASS,
		 "mad_notices_start: class 0x03 is not registered on the port"},
	};

	for (size_t i = 0; i < sizeof(ports) / sizeof(*ports); i++) {
		int class = ports[i].class;
		struct ibmad_port *other = mad_rpc_open_port(NULL, 0, &class, 1);
		struct mad_async *engine = mad_async_create(other);
		char heard[128] = "";

		ibdebug = 1;
		umad_set_log_hook(hear, heard);
		assert_int_equal(mad_notices_start(engine, NULL, tell, NULL, &notices),
				 -EPROTONOSUPPORT);
		umad_set_log_hook(NULL, NULL);
		ibdebug = 0;
		assert_non_null(strstr(heard, ports[i].message));
		mad_async_free(engine);
		mad_rpc_close_port(other);
	}
}

TEST(each_lack_of_memory_is_survived)
{
	device_fail_malloc(1);
	assert_int_equal(mad_notices_start(async, NULL, tell, NULL, &notices), -ENOMEM);
	device_fail_malloc(2);
	assert_int_equal(mad_notices_start(async, NULL, tell, NULL, &notices), -ENOMEM);
	device_fail_malloc(0);
	for (unsigned n = 1; n < 12; n++) {
		memset(&told, 0, sizeof(told));
		start(quick());
		device_fail_malloc(n);
		for (unsigned i = 0; i < 20; i++)
			mad_async_process(async);
		device_fail_malloc(0);
		mad_notices_stop(notices);
		PROCESS_UNTIL(told.ends);
	}
}
