/* SPDX-License-Identifier: BSD-2-Clause */

/* The lines of ibdebug 1: for each request and its result, and for each MAD of other calls. */

#include "async.h"

#include <infiniband/mad_sa.h>
#include <infiniband/umad_ext.h>

#define LINES 16

static char *lines[LINES];
static unsigned line_count;

/* The hook calls the library, too: no lock is held. */
static void hear(enum umad_log_level level, const char *text, void *user)
{
	struct mad_async_stats stats;

	(void)user;
	assert_true(line_count < LINES);
	if (level == UMAD_LOG_INFO)
		lines[line_count++] = strdup(text);
	if (async)
		mad_async_get_stats(async, &stats, sizeof(stats));
}

static void forget_lines(void)
{
	while (line_count)
		free(lines[--line_count]);
}

static int setup(void)
{
	int ret = open_engine("star:8");

	umad_set_log_hook(hear, NULL);
	ibdebug = 1;
	return ret;
}

static int teardown(void)
{
	ibdebug = 0;
	umad_set_log_hook(NULL, NULL);
	forget_lines();
	return close_engine();
}

FIXTURE(setup, teardown);

/* Without its ID, which differs in each run, and with N for its ms. */
static void expect_line(char *line, const char *expected)
{
	char *id = strstr(line, "ID 0x"), *ms = strstr(line, " ms, "), *number = ms;

	if (ms) {
		while (number[-1] != ' ')
			number--;
		*number = 'N';
		memmove(number + 1, ms, strlen(ms) + 1);
	}
	if (id)
		memmove(id + 5, id + 13, strlen(id + 13) + 1);
	assert_string_equal(line, expected);
}

/* Two lines are those of one request, with one ID. */
static void expect_lines(unsigned count, const char *const expected[])
{
	char id[2][9] = {"", ""};

	assert_int_equal(line_count, count);
	for (unsigned i = 0; i < count; i++) {
		const char *found = strstr(lines[i], "ID 0x");

		snprintf(id[i % 2], 9, "%s", found ? found + 5 : "");
		expect_line(lines[i], expected[i]);
	}
	if (count == 2)
		assert_string_equal(id[0], id[1]);
	forget_lines();
}

#define EXPECT_LINES(...)                                                          \
	expect_lines(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *), \
		     (const char *const[]){__VA_ARGS__})

#define GET  "class 0x01 method 0x01 attribute 0x11 modifier 0x0"
#define GOT  "class 0x01 method 0x81 attribute 0x11 modifier 0x0"
#define ONCE ": status 0x0, N ms, 1 transmission"
#define SET  "class 0x04 method 0x02 attribute 0x12 modifier 0x0"

static enum machine_verdict drop_first(struct machine_mad *mad, void *arg)
{
	(void)arg;
	return mad->at_host || mad->count ? MACHINE_PASS : MACHINE_DROP;
}

TEST(a_request_and_its_result_have_a_line_each)
{
	ib_portid_t route = {.drpath = {.cnt = 2, .p = {0, 1, 7}}}, lid = {.lid = 16};
	ib_portid_t gid = {.lid = 12, .qp = 1, .grh_present = 1, .gid = {0xfe, 0x80, [15] = 9}};
	ib_rpc_t rpc = rpc_of(PMA_SET);
	uint8_t data[IB_SMP_DATA_SIZE];

	smp_query_via(data, &lid, IB_ATTR_NODE_INFO, 0, 0, port);
	EXPECT_LINES("mad_rpc: " GET " to Lid 16, ID 0x",
		     "mad_rpc: " GOT " from Lid 16, ID 0x" ONCE);
	smp_query_via(data, &route, 0x7fff, 1, 0, port);
	EXPECT_LINES("mad_rpc: class 0x81 method 0x01 attribute 0x7fff modifier 0x1 to "
		     "DR path slid 65535; dlid 65535; 0,1,7, ID 0x",
		     "mad_rpc: class 0x81 method 0x81 attribute 0x7fff modifier 0x1 from "
		     "DR path slid 65535; dlid 65535; 0,1,7, ID 0x: status 0xc, N ms, 1 "
		     "transmission");
	/* the response to a retransmission, which has another ID */
	machine_on_arrival(drop_first, NULL);
	lid.lid = (int)leaf(5);
	smp_query_via(data, &lid, IB_ATTR_NODE_INFO, 0, 0, port);
	machine_on_arrival(NULL, NULL);
	EXPECT_LINES("mad_rpc: " GET " to Lid 15, ID 0x",
		     "mad_rpc: " GOT " from Lid 15, ID 0x: status 0x0, N ms, 2 transmissions");
	/* one line for all transmissions */
	machine_rule("silent on n2");
	mad_rpc_set_retries(port, 3);
	mad_rpc_set_timeout(port, 3);
	assert_null(mad_rpc(port, &rpc, &gid, NULL, NULL));
	EXPECT_LINES("mad_rpc: " SET " to Lid 12 Gid fe80::9, ID 0x",
		     "mad_rpc: " SET " to Lid 12 Gid fe80::9, ID 0x: Connection timed out, "
		     "N ms, 3 transmissions");
}

TEST(each_call_names_itself)
{
	ib_portid_t to = {.lid = (int)leaf(4)}, sm = {.lid = (int)machine_lid("sm")};
	const struct mad_sa_query query = {
		.method = IB_MAD_METHOD_GET, .attribute = CLASS_PORT_INFO, .sa = &sm};
	ib_rpc_t rpc = rpc_of(SMP_GET);
	uint8_t data[IB_SMP_DATA_SIZE];
	struct mad_message message;
	struct outcome outcome = {0};

	mad_rpc_rmpp(port, &rpc, &to, NULL, data);
	EXPECT_LINES("mad_rpc_rmpp: " GET " to Lid 14, ID 0x",
		     "mad_rpc_rmpp: " GOT " from Lid 14, ID 0x" ONCE);
	mad_rpc_message(port, &rpc, &to, NULL, 0, &message);
	mad_message_free(&message);
	EXPECT_LINES("mad_rpc_message: " GET " to Lid 14, ID 0x",
		     "mad_rpc_message: " GOT " from Lid 14, ID 0x" ONCE);
	mad_sa_request(port, &query, NULL);
	EXPECT_LINES(
		"mad_sa_submit: class 0x03 method 0x01 attribute 0x1 modifier 0x0 to Lid 2, "
		"ID 0x",
		"mad_sa_submit: class 0x03 method 0x81 attribute 0x1 modifier 0x0 from Lid "
		"2, ID 0x" ONCE);
	for (int cancelled = 0; cancelled < 2; cancelled++) {
		submit(SMP_GET, leaf(4), &outcome);
		if (cancelled)
			mad_async_cancel(async, MAD_ASYNC_ALL);
		assert_int_equal(mad_async_wait(async, -1), 1);
		EXPECT_LINES("mad_async_submit: " GET " to Lid 14, ID 0x",
			     cancelled ? "mad_async_submit: " GET " to Lid 14, ID 0x: "
					 "Operation canceled, N ms, 1 transmission"
				       : "mad_async_submit: " GOT " from Lid 14, ID 0x" ONCE);
	}
}

TEST(other_calls_have_a_line_each)
{
	ib_rpc_t rpc = rpc_of(SMP_GET), unknown = {.mgtclass = 0x10, .method = 1};
	ib_portid_t to = {.lid = (int)leaf(3)};
	struct ibmad_port *other;
	struct mad_message message;
	char expected[2][100];
	ib_dr_path_t path;
	void *umad;

	assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, port), 0);
	umad = mad_receive_via(NULL, 1000, port);
	assert_non_null(umad);
	((uint8_t *)umad_get_mad(umad))[3] = IB_MAD_METHOD_GET;
	assert_int_equal(mad_respond_via(umad, NULL, 0, port), 0);
	mad_free(umad);
	EXPECT_LINES("mad_send_via: " GET " to Lid 13, ID 0x",
		     "mad_receive_via: " GOT " from Lid 13, ID 0x",
		     "mad_respond_via: " GOT " to Lid 13, ID 0x");
	mad_rpc_message(port, &unknown, &to, NULL, 0, &message);
	mad_async_submit(async, &unknown, &to, NULL, 0, note, NULL, NULL);
	EXPECT_LINES("mad_rpc_message: the request cannot be made: Protocol not supported",
		     "mad_async_submit: the request cannot be made: Protocol not supported");
	other = mad_rpc_open_port(NULL, 0, (int[]){IB_SMI_CLASS}, 1);
	snprintf(expected[0], 100,
		 "mad_register_client_via: class 0x01 is agent 0 on handle %d",
		 mad_rpc_portid(other));
	snprintf(expected[1], 100, "mad_rpc_open_port: (any) port 0 is open, handle %d",
		 mad_rpc_portid(other));
	EXPECT_LINES(expected[0], expected[1]);
	mad_rpc_close_port(other);
	str2drpath(&path, (char[]){"0,1, 5"}, 0, 0);
	str2drpath(&path, (char[]){"0,x"}, 0, 0);
	EXPECT_LINES("str2drpath: \"0,1, 5\" has 2 hops", "str2drpath: \"0,x\" is no route");
}
