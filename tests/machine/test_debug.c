/* SPDX-License-Identifier: BSD-2-Clause */

/* The lines of ibdebug 1: for each request and its result, and for each MAD of other calls. */

#include "captured_output.h"
#include "async.h"

#include <infiniband/mad_sa.h>
#include <infiniband/umad_ext.h>

#define LINES 4096

static char *lines[LINES];
static unsigned line_count, warnings;

/* The hook calls the library, too: no lock is held. */
static void hear(enum umad_log_level level, const char *text, void *user)
{
	struct mad_async_stats stats;

	(void)user;
	assert_true(line_count < LINES);
	if (level == UMAD_LOG_INFO)
		lines[line_count++] = strdup(text);
	warnings += level == UMAD_LOG_WARNING;
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

	warnings = 0;
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

/* The line with its ID, which differs in each run, and its ms as N. */
static const char *line(unsigned number)
{
	static char text[700];
	char *at, *ms;

	assert_true(number < line_count);
	snprintf(text, sizeof(text), "%s", lines[number]);
	at = strstr(text, "ID 0x");
	if (at)
		memmove(at + 5, at + 13, strlen(at + 13) + 1);
	ms = strstr(text, " ms, ");
	if (ms) {
		for (at = ms; at[-1] != ' '; at--)
			;
		*at = 'N';
		memmove(at + 1, ms, strlen(ms) + 1);
	}
	return text;
}

static void expect_lines(unsigned count, const char *const expected[])
{
	for (unsigned i = 0; i < count; i++)
		assert_string_equal(line(i), expected[i]);
	assert_int_equal(line_count, count);
	forget_lines();
}

#define EXPECT_LINES(...)                                                          \
	expect_lines(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *), \
		     (const char *const[]){__VA_ARGS__})

TEST(a_request_and_its_result_have_a_line_each)
{
	ib_portid_t route = {.drpath = {.cnt = 2, .p = {0, 1, 7}}}, lid = {.lid = 16};
	ib_portid_t gid = {.lid = 12, .qp = 1, .grh_present = 1, .gid = {0xfe, 0x80, [15] = 9}};
	ib_rpc_t rpc = rpc_of(PMA_SET);
	uint8_t data[IB_SMP_DATA_SIZE];

	smp_query_via(data, &lid, IB_ATTR_NODE_INFO, 0, 0, port);
	EXPECT_LINES("mad_rpc: class 0x01 method 0x01 attribute 0x11 modifier 0x0 to Lid 16, "
		     "ID 0x",
		     "mad_rpc: class 0x01 method 0x81 attribute 0x11 modifier 0x0 from Lid 16, "
		     "ID 0x: status 0x0, N ms, 1 transmission");
	smp_query_via(data, &route, IB_ATTR_PORT_INFO, 1, 0, port);
	EXPECT_LINES("mad_rpc: class 0x81 method 0x01 attribute 0x15 modifier 0x1 to "
		     "DR path slid 65535; dlid 65535; 0,1,7, ID 0x",
		     "mad_rpc: class 0x81 method 0x81 attribute 0x15 modifier 0x1 from "
		     "DR path slid 65535; dlid 65535; 0,1,7, ID 0x: status 0x0, N ms, 1 "
		     "transmission");
	smp_query_via(data, &lid, 0x7fff, 0, 0, port);
	assert_string_equal(line(1),
			    "mad_rpc: class 0x01 method 0x81 attribute 0x7fff modifier "
			    "0x0 from Lid 16, ID 0x: status 0xc, N ms, 1 transmission");
	forget_lines();
	/* one line for all transmissions */
	machine_rule("silent on n2");
	mad_rpc_set_retries(port, 3);
	mad_rpc_set_timeout(port, 3);
	assert_null(mad_rpc(port, &rpc, &gid, NULL, NULL));
	EXPECT_LINES("mad_rpc: class 0x04 method 0x02 attribute 0x12 modifier 0x0 to "
		     "Lid 12 Gid fe80::9, ID 0x",
		     "mad_rpc: class 0x04 method 0x02 attribute 0x12 modifier 0x0 to "
		     "Lid 12 Gid fe80::9, ID 0x: Connection timed out, N ms, 3 transmissions");
}

TEST(a_request_that_cannot_be_made_says_why)
{
	ib_rpc_t rpc = {.mgtclass = 0x10, .method = IB_MAD_METHOD_GET};
	ib_portid_t to = {.lid = 1};
	struct mad_message message;

	mad_rpc_message(port, &rpc, &to, NULL, 0, &message);
	mad_async_submit(async, &rpc, &to, NULL, 0, note, NULL, NULL);
	EXPECT_LINES("mad_rpc_message: the request cannot be made: Protocol not supported",
		     "mad_async_submit: the request cannot be made: Protocol not supported");
}

TEST(a_request_of_an_engine_has_its_lines)
{
	struct outcome outcome = {0};

	submit(SMP_GET, leaf(4), &outcome);
	assert_int_equal(mad_async_wait(async, -1), 1);
	EXPECT_LINES("mad_async_submit: class 0x01 method 0x01 attribute 0x11 modifier 0x0 to "
		     "Lid 14, ID 0x",
		     "mad_async_submit: class 0x01 method 0x81 attribute 0x11 modifier 0x0 "
		     "from Lid 14, ID 0x: status 0x0, N ms, 1 transmission");
	submit(SMP_GET, leaf(4), &outcome);
	mad_async_cancel(async, MAD_ASYNC_ALL);
	mad_async_wait(async, -1);
	assert_string_equal(line(1), "mad_async_submit: class 0x01 method 0x01 attribute 0x11 "
				     "modifier 0x0 to Lid 14, ID 0x: Operation canceled, N ms, "
				     "1 transmission");
}

TEST(calls_for_single_mads_have_a_line_each)
{
	ib_rpc_t rpc = rpc_of(SMP_GET);
	ib_portid_t to = {.lid = (int)leaf(3)};
	void *umad;

	assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, port), 0);
	umad = mad_receive_via(NULL, 1000, port);
	assert_non_null(umad);
	((uint8_t *)umad_get_mad(umad))[3] = IB_MAD_METHOD_GET;
	assert_int_equal(mad_respond_via(umad, NULL, 0, port), 0);
	mad_free(umad);
	EXPECT_LINES("mad_send_via: class 0x01 method 0x01 attribute 0x11 modifier 0x0 to "
		     "Lid 13, ID 0x",
		     "mad_receive_via: class 0x01 method 0x81 attribute 0x11 modifier 0x0 "
		     "from Lid 13, ID 0x",
		     "mad_respond_via: class 0x01 method 0x81 attribute 0x11 modifier 0x0 to "
		     "Lid 13, ID 0x");
}

/* Another response has the ID of the request first. */
static enum machine_verdict answer_twice(struct machine_mad *mad, void *arg)
{
	uint8_t other[MACHINE_MAD];

	(void)arg;
	if (mad->at_host || mad->count)
		return MACHINE_PASS;
	memcpy(other, mad->bytes, MACHINE_MAD);
	other[3] = IB_MAD_METHOD_GET_RESPONSE;
	other[17] ^= 1;
	machine_send(mad->node, other, 0);
	return MACHINE_PASS;
}

TEST(a_hook_that_hears_of_another_response_may_call_the_library)
{
	ib_portid_t to = {.lid = (int)leaf(7)};
	uint8_t data[IB_SMP_DATA_SIZE];

	machine_rule("slow 1ms");
	machine_on_arrival(answer_twice, NULL);
	assert_non_null(smp_query_via(data, &to, IB_ATTR_NODE_INFO, 0, 0, port));
	assert_int_equal(warnings, 1);
}

TEST(opening_a_port_and_parsing_a_route_have_lines)
{
	int classes[] = {IB_SMI_CLASS};
	struct ibmad_port *other = mad_rpc_open_port(NULL, 0, classes, 1);
	char expected[2][100];
	ib_dr_path_t path;

	assert_non_null(other);
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

TEST(without_a_hook_the_lines_go_to_stderr_and_level_0_has_none)
{
	ib_portid_t to = {.lid = (int)leaf(2)};
	uint8_t data[IB_SMP_DATA_SIZE];
	char expected[64];
	const char *said;

	umad_set_log_hook(NULL, NULL);
	snprintf(expected, sizeof(expected), "ibwarn: [%d] mad_rpc: class 0x01 ", getpid());
	for (ibdebug = 1; ibdebug >= 0; ibdebug--) {
		capture_output(stderr);
		smp_query_via(data, &to, IB_ATTR_NODE_INFO, 0, 0, port);
		said = captured_output();
		if (ibdebug)
			assert_ptr_equal(strstr(said, expected), said);
		else
			assert_string_equal(said, "");
	}
}

static void sa_done(struct mad_async *engine, const struct mad_sa_response *response, void *arg)
{
	(void)engine, (void)arg;
	mad_sa_table_free(response->table);
}

/* Makes a request by some call. */
static void make_request(uint32_t *state, struct outcome *outcome)
{
	ib_portid_t to = {.lid = (int)leaf(1 + next_random(state, 8))}, gmp = to;
	ib_portid_t sm = {.lid = (int)machine_lid("sm"), .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
	const struct mad_sa_query query = {
		.method = IB_MAD_METHOD_GET, .attribute = CLASS_PORT_INFO, .sa = &sm};
	ib_sa_call_t sa = {.method = IB_MAD_METHOD_GET, .attrid = IB_SA_ATTR_PATHRECORD};
	ib_rpc_t rpc = rpc_of(next_random(state, 2) ? SMP_GET : SMP_SET);
	uint8_t data[MACHINE_MAD] = {0};
	struct mad_message message;

	switch (next_random(state, 9)) {
	case 0:
		mad_rpc(port, &rpc, &to, data, data);
		break;
	case 1:
		mad_rpc_rmpp(port, &rpc, &to, NULL, data);
		break;
	case 2:
		mad_rpc_message(port, &rpc, &to, data, 4, &message);
		mad_message_free(&message);
		break;
	case 3:
		smp_query_via(data, &to, IB_ATTR_PORT_INFO, next_random(state, 5), 0, port);
		break;
	case 4:
		pma_query_via(data, &gmp, 1, 0, IB_GSI_PORT_COUNTERS, port);
		break;
	case 5:
		sa_rpc_call(port, data, &sm, &sa, 0);
		break;
	case 6:
		mad_sa_request(port, &query, NULL);
		break;
	case 7:
		mad_sa_submit(async, &query, sa_done, NULL, NULL);
		break;
	default:
		submit_with(async, rpc, (unsigned)to.lid, note, outcome);
	}
	if (next_random(state, 4) == 0)
		mad_async_wait(async, -1);
}

TEST(each_request_of_any_call_has_a_line_and_a_result)
{
	static struct {
		char call[40];
		unsigned id, results;
	} parsed[LINES];
	uint32_t state = test_seed();
	struct outcome outcome = {0};
	unsigned count = 0, id;
	char call[40], *at;

	machine_rule("busy 30%% on n1");
	machine_rule("silent on n2");
	machine_rule("loss 2%%");
	mad_rpc_set_retries(port, 2);
	mad_rpc_set_timeout(port, 5);
	for (unsigned i = 0; i < 300; i++)
		make_request(&state, &outcome);
	mad_async_wait(async, -1);
	for (unsigned i = 0; i < line_count; i++) {
		at = strstr(lines[i], "ID 0x");
		assert_non_null(at);
		id = (unsigned)strtoul(at + 5, &at, 16);
		assert_int_equal(sscanf(lines[i], "%39[a-z_]", call), 1);
		if (!*at) {
			assert_non_null(strstr(lines[i], " to Lid "));
			parsed[count].id = id;
			parsed[count].results = 0;
			strcpy(parsed[count++].call, call);
			continue;
		}
		/* a retransmission has another ID while the kernel holds the first one */
		for (unsigned k = count; k--;)
			if (parsed[k].id == id ||
			    (!parsed[k].results && strstr(at, "transmissions") &&
			     id - parsed[k].id < 8 && !strcmp(parsed[k].call, call))) {
				parsed[k].results++;
				assert_string_equal(parsed[k].call, call);
				break;
			}
	}
	assert_int_equal(count, 300);
	for (unsigned k = 0; k < count; k++)
		if (parsed[k].results != 1)
			fail_msg("ID 0x%x of %s: %u results", parsed[k].id, parsed[k].call,
				 parsed[k].results);
}
