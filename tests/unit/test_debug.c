/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The lines of ibdebug 1: one for each request and one for its result, from every call that
 * makes requests, and one for each MAD of the other calls.
 */

#define MANY 1
#include "async_fixture.h"
#include "captured_output.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_sa.h>
#include <infiniband/mad_server.h>
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
	int ret = async_setup();

	warnings = 0;
	umad_set_log_hook(hear, NULL);
	ibdebug = 1;
	return ret;
}

static int teardown(void)
{
	int ret;

	ibdebug = 0;
	umad_set_log_hook(NULL, NULL);
	forget_lines();
	ret = async_teardown();
	async = NULL;
	return ret;
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

/* --- what a line has ------------------------------------------------------------ */

static int refuse(const struct device_packet *packet, void *arg)
{
	(void)arg;
	device_respond(packet, 0x0c, 0, NULL, 0);
	return 0;
}

TEST(a_request_and_its_result_have_a_line_each)
{
	ib_portid_t route = {.drpath = {.cnt = 2, .p = {0, 1, 7}}}, lid = {.lid = 70};
	uint8_t data[IB_SMP_DATA_SIZE];

	device_on_write(echo, NULL);
	smp_query_via(data, &lid, IB_ATTR_NODE_INFO, 0, 0, port);
	EXPECT_LINES("mad_rpc: class 0x01 method 0x01 attribute 0x11 modifier 0x0 to Lid 70, "
		     "ID 0x",
		     "mad_rpc: class 0x01 method 0x81 attribute 0x11 modifier 0x0 from Lid 70, "
		     "ID 0x: status 0x0, N ms, 1 transmission");
	smp_query_via(data, &route, IB_ATTR_PORT_INFO, 3, 0, port);
	EXPECT_LINES("mad_rpc: class 0x81 method 0x01 attribute 0x15 modifier 0x3 to "
		     "DR path slid 65535; dlid 65535; 0,1,7, ID 0x",
		     "mad_rpc: class 0x81 method 0x81 attribute 0x15 modifier 0x3 from "
		     "DR path slid 65535; dlid 65535; 0,1,7, ID 0x: status 0x0, N ms, 1 "
		     "transmission");
	device_on_write(refuse, NULL);
	smp_query_via(data, &lid, IB_ATTR_NODE_INFO, 0, 0, port);
	assert_string_equal(line(1),
			    "mad_rpc: class 0x01 method 0x81 attribute 0x11 modifier "
			    "0x0 from Lid 70, ID 0x: status 0xc, N ms, 1 transmission");
}

TEST(a_request_without_a_response_has_its_error_and_one_line_for_all_transmissions)
{
	ib_portid_t gid = {.lid = 5, .grh_present = 1, .gid = {0xfe, 0x80, [15] = 9}};
	ib_rpc_t rpc = set_request();

	mad_rpc_set_retries(port, 3);
	mad_rpc_set_timeout(port, 3);
	device_on_write(time_out, NULL);
	assert_null(mad_rpc(port, &rpc, &gid, NULL, NULL));
	EXPECT_LINES("mad_rpc: class 0x04 method 0x02 attribute 0x12 modifier 0x0 to "
		     "Lid 5 Gid fe80::9, ID 0x",
		     "mad_rpc: class 0x04 method 0x02 attribute 0x12 modifier 0x0 to "
		     "Lid 5 Gid fe80::9, ID 0x: Connection timed out, N ms, 3 transmissions");
}

TEST(a_request_that_cannot_be_made_says_why)
{
	ib_rpc_t rpc = {.mgtclass = 0x10, .method = IB_MAD_METHOD_GET};
	ib_portid_t to = to_lid(1);
	struct mad_message message;

	mad_rpc_message(port, &rpc, &to, NULL, 0, &message);
	mad_async_submit(async, &rpc, &to, NULL, 0, note, &outcomes[0], NULL);
	EXPECT_LINES("mad_rpc_message: the request cannot be made: Protocol not supported",
		     "mad_async_submit: the request cannot be made: Protocol not supported");
}

TEST(a_request_of_an_engine_has_its_lines)
{
	device_on_write(echo, NULL);
	submit(async, get_request(), 4, &outcomes[0], NULL);
	assert_int_equal(mad_async_wait(async, -1), 1);
	EXPECT_LINES("mad_async_submit: class 0x01 method 0x01 attribute 0x11 modifier 0x0 to "
		     "Lid 4, ID 0x",
		     "mad_async_submit: class 0x01 method 0x81 attribute 0x11 modifier 0x0 "
		     "from Lid 4, ID 0x: status 0x0, N ms, 1 transmission");
	device_on_write(keep_silent, NULL);
	submit(async, get_request(), 4, &outcomes[0], NULL);
	mad_async_cancel(async, MAD_ASYNC_ALL);
	mad_async_wait(async, -1);
	assert_string_equal(line(1), "mad_async_submit: class 0x01 method 0x01 attribute 0x11 "
				     "modifier 0x0 to Lid 4, ID 0x: Operation canceled, N ms, "
				     "1 transmission");
}

TEST(calls_for_single_mads_have_a_line_each)
{
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(3);
	void *umad;

	device_on_write(echo, NULL);
	assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, port), 0);
	umad = mad_receive_via(NULL, 1000, port);
	assert_non_null(umad);
	((uint8_t *)umad_get_mad(umad))[3] = IB_MAD_METHOD_GET;
	assert_int_equal(mad_respond_via(umad, NULL, 0, port), 0);
	mad_free(umad);
	EXPECT_LINES("mad_send_via: class 0x01 method 0x01 attribute 0x11 modifier 0x0 to "
		     "Lid 3, ID 0x",
		     "mad_receive_via: class 0x01 method 0x81 attribute 0x11 modifier 0x0 "
		     "from Lid 3, ID 0x",
		     "mad_respond_via: class 0x01 method 0x81 attribute 0x11 modifier 0x0 to "
		     "Lid 3, ID 0x");
}

/* Another response has the ID of the request first. */
static int answer_twice(const struct device_packet *packet, void *arg)
{
	uint8_t mad[IB_MAD_SIZE];

	(void)arg;
	device_copy_mad(packet, mad);
	mad[3] = IB_MAD_METHOD_GET_RESPONSE;
	mad[17] ^= 1;
	device_reply(packet, mad, sizeof(mad));
	mad[17] ^= 1;
	device_reply(packet, mad, sizeof(mad));
	return 0;
}

TEST(a_hook_that_hears_of_another_response_may_call_the_library)
{
	ib_portid_t to = to_lid(70);
	uint8_t data[IB_SMP_DATA_SIZE];

	device_on_write(answer_twice, NULL);
	assert_non_null(smp_query_via(data, &to, IB_ATTR_NODE_INFO, 0, 0, port));
	assert_int_equal(warnings, 1);
}

TEST(a_port_that_is_opened_has_lines)
{
	int classes[] = {IB_SMI_CLASS};
	struct ibmad_port *other = mad_rpc_open_port(NULL, 0, classes, 1);
	char expected[100];

	assert_non_null(other);
	snprintf(expected, sizeof(expected),
		 "mad_register_client_via: class 0x01 is agent 0 on handle %d",
		 mad_rpc_portid(other));
	assert_string_equal(line(0), expected);
	snprintf(expected, sizeof(expected),
		 "mad_rpc_open_port: (any) port 0 is open, handle %d", mad_rpc_portid(other));
	assert_string_equal(line(1), expected);
	assert_int_equal(line_count, 2);
	mad_rpc_close_port(other);
}

TEST(a_route_that_is_parsed_has_a_line)
{
	ib_dr_path_t path;

	str2drpath(&path, (char[]){"0,1, 5"}, 0, 0);
	str2drpath(&path, (char[]){"0,x"}, 0, 0);
	EXPECT_LINES("str2drpath: \"0,1, 5\" has 2 hops", "str2drpath: \"0,x\" is no route");
}

TEST(without_a_hook_the_lines_go_to_stderr_and_level_0_has_none)
{
	ib_portid_t to = to_lid(2);
	uint8_t data[IB_SMP_DATA_SIZE];
	char expected[64];
	const char *said;

	device_on_write(echo, NULL);
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

/* --- all calls, at random ------------------------------------------------------- */

static unsigned random_state;

static unsigned choose(unsigned count)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % count;
}

static int respond_at_random(const struct device_packet *packet, void *arg)
{
	(void)arg;
	switch (choose(8)) {
	case 0:
		device_time_out(packet);
		break;
	case 1:
		device_respond(packet, 0x0c, 0, NULL, 0);
		break;
	case 2:
		device_respond(packet, IB_MAD_STS_BUSY, 0, NULL, 0);
		break;
	default:
		device_respond(packet, 0, 0, NULL, 0);
	}
	return 0;
}

static void sa_done(struct mad_async *engine, const struct mad_sa_response *response, void *arg)
{
	(void)engine;
	mad_sa_table_free(response->table);
	(*(unsigned *)arg)++;
}

static void called(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	(void)engine;
	(void)reply;
	(*(unsigned *)arg)++;
}

/* Makes a request by some call. */
static void make_request(unsigned *called_back)
{
	ib_portid_t to = to_lid(1 + (int)choose(9));
	const struct mad_sa_query query = {
		.method = IB_MAD_METHOD_GET, .attribute = IB_SA_ATTR_PATHRECORD, .sa = &to};
	ib_rpc_t rpc = choose(2) ? get_request() : set_request();
	uint8_t data[IB_MAD_SIZE] = {0};
	struct mad_message message;
	ib_sa_call_t sa = {.method = IB_MAD_METHOD_GET, .attrid = IB_SA_ATTR_PATHRECORD};

	switch (choose(9)) {
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
		smp_query_via(data, &to, IB_ATTR_PORT_INFO, choose(5), 0, port);
		break;
	case 4:
		pma_query_via(data, &to, 1, 0, IB_GSI_PORT_COUNTERS, port);
		break;
	case 5:
		sa_rpc_call(port, data, &to, &sa, 0);
		break;
	case 6:
		mad_sa_request(port, &query, NULL);
		break;
	case 7:
		mad_sa_submit(async, &query, sa_done, called_back, NULL);
		break;
	default:
		submit_with(async, rpc, to.lid, called, called_back);
	}
	if (choose(4) == 0)
		mad_async_wait(async, -1);
}

/* What a line says, and how often the ID has a line of each kind. */
struct parsed {
	char call[40];
	unsigned id, sent, results;
};

TEST(each_request_of_any_call_has_a_line_and_a_result)
{
	static struct parsed parsed[LINES];
	const char *seed = getenv("TEST_SEED");
	unsigned count = 0, called_back = 0, id;
	char call[40], *at;

	random_state = seed ? (unsigned)strtoul(seed, NULL, 0) : (unsigned)now_us();
	print_message("TEST_SEED=%u\n", random_state);
	mad_rpc_set_retries(port, 2);
	mad_rpc_set_timeout(port, 5);
	device_on_write(respond_at_random, NULL);
	for (unsigned i = 0; i < 300; i++)
		make_request(&called_back);
	mad_async_wait(async, -1);

	for (unsigned i = 0; i < line_count; i++) {
		at = strstr(lines[i], "ID 0x");
		assert_non_null(at);
		id = (unsigned)strtoul(at + 5, &at, 16);
		assert_int_equal(sscanf(lines[i], "%39[a-z_]", call), 1);
		if (!*at) {
			assert_non_null(strstr(lines[i], " to Lid "));
			parsed[count] = (struct parsed){.id = id, .sent = 1};
			strcpy(parsed[count++].call, call);
			continue;
		}
		for (unsigned k = count; k--;)
			if (parsed[k].id == id) {
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
