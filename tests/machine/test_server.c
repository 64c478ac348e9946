/* SPDX-License-Identifier: BSD-2-Clause */

/* Servers on an engine, and mad_receive_via() with its responses: requests of other nodes. */

#include "arrivals.h"
#include "captured_output.h"
#include "story.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_server.h>
#include <infiniband/umad.h>
#include <endian.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#define PING_CLASS   IB_VENDOR_OPENIB_PING_CLASS
#define VENDOR_CLASS 0x0a
#define BASE         IB_VENDOR_RANGE2_DATA_OFFS
#define ROOM         IB_VENDOR_RANGE2_DATA_SIZE
#define OTHER_OUI    0x123456
#define HELD_MAX     2100
#define BUSY         IB_MAD_STS_BUSY

static struct ibmad_port *port;
static struct mad_async *async, *other;
static struct mad_server *server;
/* Requests that hold() got, and last callbacks. */
static struct mad_request *held[HELD_MAX];
static atomic_uint count, ends;
static atomic_int end_error;

static void hold(struct mad_server *from, struct mad_request *request, int error, void *arg)
{
	(void)from;
	(void)arg;
	if (!request) {
		assert_true(!error || mad_last_failure()->error == error);
		end_error = error;
		ends++;
		return;
	}
	assert_int_equal(error, 0);
	assert_true(count < HELD_MAX);
	held[count] = request;
	count++;
}

static struct mad_server_options options_of(int mgmt_class)
{
	return (struct mad_server_options){
		.mgmt_class = mgmt_class,
		.oui = mgmt_class >= 0x30 && mgmt_class <= 0x4f ? OTHER_OUI : 0,
		.methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_SET) |
				    MAD_SERVER_METHOD(IB_MAD_METHOD_TRAP),
			    UINT64_C(1) << (100 - 64)},
	};
}

static struct mad_server_options ping_options(void)
{
	return (struct mad_server_options){
		.mgmt_class = PING_CLASS,
		.oui = IB_OPENIB_OUI,
		.rmpp_version = 1,
		.methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_GET) |
			    MAD_SERVER_METHOD(IB_MAD_METHOD_SET) |
			    MAD_SERVER_METHOD(IB_MAD_METHOD_SEND) |
			    MAD_SERVER_METHOD(IB_MAD_METHOD_REPORT)},
	};
}

static struct mad_server *start(struct mad_server_options options, mad_server_fn *callback,
				void *arg)
{
	struct mad_server *started = NULL;

	assert_int_equal(mad_server_start(async, &options, callback, arg, &started), 0);
	assert_non_null(started);
	return started;
}

/* A second server of the class. */
static struct mad_server *start_other(unsigned limit)
{
	struct mad_server_options options = ping_options();

	options.oui = OTHER_OUI;
	options.limit = limit;
	return start(options, hold, NULL);
}

static int begin_on(const char *nodes)
{
	char host[] = "mlx5_0";
	int classes[] = {IB_SMI_CLASS, IB_SA_CLASS, VENDOR_CLASS};

	machine_start("star:8", nodes);
	arrivals_begin();
	count = ends = 0;
	port = mad_rpc_open_port(host, 1, classes, 3);
	async = mad_async_create(port);
	other = mad_async_create(port);
	if (!async)
		return -1;
	server = start(ping_options(), hold, NULL);
	return 0;
}

static int setup(void)
{
	return begin_on(NULL);
}

static int teardown(void)
{
	mad_async_free(other);
	mad_async_free(async);
	other = async = NULL;
	mad_rpc_close_port(port);
	return machine_teardown();
}

FIXTURE(setup, teardown);

/* Processes the engine until all that came is handled. */
static void process(struct mad_async *engine)
{
	machine_pass(1);
	for (unsigned i = 0; i < 60; i++)
		assert_true(mad_async_process(engine) >= 0);
	machine_pass(1);
}

/* Stops the server, whose callback is hold(), and waits for its last callback. */
static void end_server(void)
{
	unsigned before = ends;

	mad_server_stop(server);
	while (ends == before)
		assert_true(mad_async_process(async) >= 0);
}

static void restart(struct mad_server_options options, mad_server_fn *callback, void *arg)
{
	end_server();
	count = 0;
	server = start(options, callback, arg);
}

/* --- requests ------------------------------------------------------------------- */

/* A request; valid until the next one. */
static uint8_t *make(unsigned mgmt_class, unsigned method, uint32_t tid)
{
	static uint8_t mad[MACHINE_MAD];
	const uint8_t start_of[] = {1, (uint8_t)mgmt_class, mgmt_class == IB_SA_CLASS ? 2 : 1,
				    (uint8_t)method};

	memset(mad, 0, sizeof(mad));
	memcpy(mad, start_of, sizeof(start_of));
	tid = htobe32(tid);
	memcpy(mad + 12, &tid, sizeof(tid));
	mad[17] = 0x42;
	mad[23] = 0x17;
	if (mgmt_class >= 0x30 && mgmt_class <= 0x4f) {
		mad[32] = 0x99; /* of an RMPP header */
		mad[36] = 0x99;
		memcpy(mad + 37, (const uint8_t[]){0x00, 0x14, 0x05}, 3);
	}
	mad[255] = 0x77;
	return mad;
}

static uint8_t *ping(uint32_t tid)
{
	return make(PING_CLASS, IB_MAD_METHOD_GET, tid);
}

static uint8_t *ping_other(uint32_t tid)
{
	uint8_t *mad = ping(tid);

	memcpy(mad + 37, (const uint8_t[]){0x12, 0x34, 0x56}, 3);
	return mad;
}

static int respond(struct mad_request *request)
{
	return mad_request_respond(request, 0, "x", 1);
}

static void *run_engine(void *arg)
{
	return (void *)(intptr_t)mad_async_wait(arg, -1);
}

static pthread_t start_thread(void *(*function)(void *), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, function, arg), 0);
	return thread;
}

static int join(pthread_t thread)
{
	void *result;

	assert_int_equal(pthread_join(thread, &result), 0);
	return (int)(intptr_t)result;
}

static void *receive_one(void *arg)
{
	mad_free(mad_receive_via(NULL, 1000, port));
	return arg;
}

/* All counts of a server that are not 0. */
static const char *stats_text(struct mad_server *of)
{
	static char text[200];
	struct mad_server_stats stats;
	char *at = text;

	assert_int_equal(mad_server_get_stats(of, &stats, sizeof(stats)), 0);
	at = put_count(at, "received", stats.received);
	at = put_count(at, "responded", stats.responded);
	at = put_count(at, "dropped", stats.dropped);
	at = put_count(at, "busy", stats.busy);
	at = put_count(at, "duplicates", stats.duplicates);
	at = put_count(at, "failed", stats.failed);
	at = put_count(at, "queued", stats.queued);
	put_count(at, "held", stats.held);
	return text + 1;
}

/*
 * The steps of stories (story.h). Requests and their indexes, which begin with 0:
 *
 *	ping N-M	n1 sends requests with these transaction IDs
 *	other N-M	to the second server; "both": in turn
 *	send N, report N	a request with this method
 *	mad BYTES	as for make_mad()
 *	deform N	what came last is read with this length
 *	return N	the same, as a MAD that could not be sent
 *	respond N-M, late N-M	the response is sent; is cancelled
 *	free N-M
 *	handed N	so many requests were handed out; "in-order N": in the order of their
 *IDs sent N		so many responses arrived response BYTES	the last one of them, as
 *for expect_mad()
 *
 * Servers:
 *
 *	limit N		the server starts again with this limit; "again": without an end before
 *	second N	another server of the class with this limit
 *	start N		a server of this class with limit 1
 *	stop		the server
 *	ended N		so many servers have ended
 *	stats TEXT, second-stats TEXT	stats_text()
 *
 * Threads:
 *
 *	process		by the engine; "processed N": a call has called back N times
 *	read		another engine's thread reads, and calls nobody
 *	wakes N		whether a loop is woken
 *	run, ran N	a thread runs the engine, which has called back N times
 *	receive, received	a thread calls mad_receive_via(), which returns
 *	pause		other threads go on
 *	free-engine
 *	fail-write, fail-malloc		the next one
 *	count-mallocs, no-mallocs	memory is not allocated between the two
 */
static bool play_request(const struct step *step, unsigned i)
{
	if (is(step, "ping") || is(step, "both"))
		machine_send("n1", ping(i), 0);
	if (is(step, "other") || is(step, "both"))
		machine_send("n1", ping_other(i), 0);
	else if (is(step, "send"))
		machine_send("n1", make(PING_CLASS, IB_MAD_METHOD_SEND, i), 0);
	else if (is(step, "report"))
		machine_send("n1", make(PING_CLASS, IB_MAD_METHOD_REPORT, i), 0);
	else if (is(step, "respond"))
		assert_int_equal(respond(held[i]), 0);
	else if (is(step, "late"))
		assert_int_equal(respond(held[i]), -ECANCELED);
	else if (is(step, "free"))
		mad_request_free(held[i]);
	else
		return is(step, "ping");
	return true;
}

static void play_thread(const struct step *step)
{
	static pthread_t runner, receiver;
	static unsigned mallocs;
	struct pollfd wake = {.events = POLLIN};

	if (is(step, "process")) {
		process(async);
	} else if (is(step, "processed")) {
		assert_int_equal(mad_async_process(async), step->first);
		machine_pass(1);
	} else if (is(step, "read")) {
		process(other);
	} else if (is(step, "wakes")) {
		wake.fd = mad_async_poll_fd(async);
		assert_int_equal(poll(&wake, 1, 0), step->first);
	} else if (is(step, "run")) {
		runner = start_thread(run_engine, async);
	} else if (is(step, "ran")) {
		assert_int_equal(join(runner), step->first);
	} else if (is(step, "receive")) {
		receiver = start_thread(receive_one, NULL);
	} else if (is(step, "received")) {
		join(receiver);
	} else if (is(step, "pause")) {
		machine_pass(1000);
	} else if (is(step, "free-engine")) {
		mad_async_free(async);
		async = NULL;
	} else if (is(step, "count-mallocs")) {
		mallocs = machine_calls(MACHINE_MALLOC);
	} else if (is(step, "no-mallocs")) {
		assert_int_equal(machine_calls(MACHINE_MALLOC), mallocs);
	} else if (is(step, "fail-write")) {
		machine_fail(MACHINE_WRITE, 1, ENOMEM);
	} else if (is(step, "fail-malloc")) {
		machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	} else {
		fail_msg("unknown step %s", step->word);
	}
}

static void play_step(const struct step *step)
{
	static struct mad_server *second;
	struct mad_server_options options = ping_options();
	uint8_t mad[MACHINE_MAD];
	unsigned i = step->first;

	while (i <= step->last && play_request(step, i))
		i++;
	if (i > step->last)
		return;
	if (is(step, "mad")) {
		make_mad(mad, step->text);
		machine_send("n1", mad, 0);
	} else if (is(step, "deform") || is(step, "return")) {
		machine_pass(1);
		machine_deform(step->first, is(step, "return") ? ETIMEDOUT : 0);
	} else if (is(step, "handed")) {
		assert_int_equal(count, step->first);
	} else if (is(step, "in-order")) {
		assert_int_equal(count, step->first);
		for (i = 0; i < count; i++)
			assert_int_equal(held[i]->tid, held[0]->tid + i);
	} else if (is(step, "sent")) {
		assert_int_equal(arrival_count, step->first);
	} else if (is(step, "response")) {
		expect_mad(last_arrival()->mad, step->text);
	} else if (is(step, "limit")) {
		options.limit = step->first;
		restart(options, hold, NULL);
	} else if (is(step, "again")) {
		server = start(ping_options(), hold, NULL);
	} else if (is(step, "second")) {
		second = start_other(step->first);
	} else if (is(step, "start")) {
		options = options_of((int)step->first);
		options.limit = 1;
		start(options, hold, NULL);
	} else if (is(step, "stop")) {
		mad_server_stop(server);
	} else if (is(step, "ended")) {
		assert_int_equal(ends, step->first);
	} else if (is(step, "stats")) {
		assert_string_equal(stats_text(server), step->text);
	} else if (is(step, "second-stats")) {
		assert_string_equal(stats_text(second), step->text);
	} else {
		play_thread(step);
	}
}

static const struct story stories[] = {
	{"queued_and_held_requests_are_counted_apart",
	 "ping 1-2; process; ping 3-5; read; stats received 5 queued 3 held 2;"
	 "process; stats received 5 held 5; free 0-4; stats received 5"},
	{"requests_get_responses_in_any_order",
	 "ping 1-3; process; respond 1; respond 2; respond 0; process; sent 3;"
	 "stats received 3 responded 3"},
	{"requests_beyond_the_limit_get_busy_if_they_have_responses",
	 "limit 10; ping 1-30; process; handed 10; sent 20; stats received 10 busy 20 held 10;"
	 "response 0:01320181 5:01 17:42 23:17 36:99001405 255:77;"
	 "free 0; ping 50; process; handed 11;"
	 "fail-write; ping 60; send 61; report 62; process; sent 20;"
	 "stats received 11 dropped 2 busy 20 failed 1 held 10; free 1-10"},
	{"a_server_keeps_64_mib_of_requests_together",
	 "ping 1; deform 67108608; process; ping 2; process; handed 2; ping 3; process;"
	 "ping 4; deform 5000; process; handed 2; sent 2; free 1; ping 5; deform 257; process;"
	 "handed 2; free 0; ping 6; deform 257; process; handed 3; free 2;"
	 "stats received 3 busy 3"},
	{"busy_leaves_the_data_of_a_class_without_rmpp",
	 "start 0x0a; mad 0:010a0102 15:01 24:99 35:99 39:99 255:77;"
	 "mad 0:010a0102 15:02 24:99 35:99 39:99 255:77; process; handed 1;"
	 "response 0:010a0181 5:01 24:99 35:99 39:99 255:77; free 0"},
	/* 2 segments of 216 bytes, each with 4 bytes of header */
	{"a_request_that_lost_segments_is_dropped",
	 "mad 0:01320101 15:01 24:010107 31:01 35:dc 37:001405; deform 256; process;"
	 "mad 0:01320101 15:02 24:010107 31:01 35:dc 37:001405; deform 200; process;"
	 "stats received 1 dropped 1 held 1; free 0"},
	{"what_the_kernel_returns_is_no_request_and_no_response_that_failed",
	 "ping 1; return 23; process; ping 1; return 256; process; stats dropped 2"},
	/* methods 100, and 36, 99 and 101 */
	{"a_server_gets_the_methods_for_which_it_is_registered",
	 "start 0x0a; mad 0:010a0164 15:01; mad 0:010a0124 15:02; mad 0:010a0163 15:03;"
	 "mad 0:010a0165 15:04; process; handed 1; free 0"},
	/* IBA 16.2.2: bit 0 of the attribute modifier */
	{"a_response_of_the_board_management_class_is_no_request",
	 "start 0x05; mad 0:01050102 15:01 23:17; mad 0:01050102 15:01 23:16; process;"
	 "handed 1; free 0"},
	{"a_run_lasts_until_the_last_server_has_ended",
	 "start 0x0a; run; pause; ping 1; pause; stop; pause; ended 1;"
	 "mad 0:010a0102 15:01; pause; handed 2; free-engine; ran 3; ended 2; free 0-1"},
	/* a thread in mad_receive_via() may lead */
	{"a_thread_that_runs_the_engine_sends_busy_while_another_reads",
	 "limit 1; receive; pause; run; pause; ping 1-2; pause; handed 1; sent 1;"
	 "response 0:01320181 5:01 17:42 23:17 36:99001405 255:77; stop; ran 2; received;"
	 "free 0"},
	/* another engine's thread that reads sends no BUSY for this engine's server */
	{"a_loop_is_woken_for_requests_busy_and_the_end",
	 "limit 1; wakes 0; process; wakes 0;"
	 "ping 1; read; wakes 1; processed 1; process; wakes 0;"
	 "ping 2; read; wakes 1; processed 0; process; wakes 0; sent 1;"
	 "stop; wakes 1; processed 1; ended 2; free 0"},
	{"a_storm_takes_a_bounded_amount_of_memory",
	 "ping 1-1024; read; stats received 1024 queued 1024;"
	 "ping 5000-5199; read; stats received 1024 dropped 136 queued 1024;"
	 "ping 9000-9099; pause; count-mallocs; read; no-mallocs;"
	 "processed 64; handed 64; sent 64; process; in-order 1024;"
	 "stats received 1024 dropped 236 busy 64 held 1024;"
	 "ping 12000-12065; read; process;" /* 64 more may wait for a BUSY */
	 "stats received 1024 dropped 238 busy 128 held 1024; free 0-1023"},
	{"a_call_refuses_64_requests_of_two_servers",
	 "limit 1; second 1; both 1-51; read; processed 2; sent 64; processed 0; sent 100;"
	 "stats received 1 busy 50 held 1; free 0-1"},
	/* the kernel may give the new server the agent of the old one */
	{"a_stop_drops_what_is_queued_and_keeps_what_is_held",
	 "ping 1-3; process; free 2; ping 4; read; stats received 4 queued 1 held 2;"
	 "stop; again; ended 0; process; ended 1; handed 3; ping 5; process; handed 4; late 0; "
	 "free 0;"
	 "respond 3; process; sent 1; stats received 1 responded 1; free-engine; free 1"},
	/* when it is stopped, three of its requests are queued, and two have no BUSY yet */
	{"a_stop_leaves_the_requests_of_other_servers",
	 "second 0; limit 3; ping 1-5; read; other 101-1126; read; ping 6; read; stop; process;"
	 "handed 1024; sent 2; second-stats received 1024 busy 2 held 1024; free 0-1023"},
	{"messages_shorter_than_their_headers_and_without_memory_are_dropped",
	 "ping 1; deform 20; process; ping 1; deform 30; process; ping 1; deform 35; process;"
	 "fail-malloc; ping 5; process; handed 0; stats dropped 4"},
};

TEST_ROWS(play_story, stories);

/* --- what requests and responses say -------------------------------------------- */

TEST(a_request_is_handed_out_and_its_response_goes_back)
{
	uint8_t *mad = ping(0x89abcdef);

	mad[8] = 0x55; /* the upper half of the TID */
	machine_send("n4", mad, 0);
	play("process; handed 1; sent 0");
	assert_ptr_equal(held[0]->server, server);
	assert_memory_equal(held[0]->mad, mad, MACHINE_MAD);
	assert_int_equal(held[0]->mgmt_class, PING_CLASS);
	assert_int_equal(held[0]->method, IB_MAD_METHOD_GET);
	assert_int_equal(held[0]->attribute, 0x42);
	assert_int_equal(held[0]->modifier, 0x17);
	assert_true(held[0]->tid == UINT64_C(0x5500000089abcdef));
	assert_int_equal(held[0]->from.lid, machine_lid("n4"));
	assert_int_equal(held[0]->from.grh_present, 0);
	assert_int_equal(held[0]->length, IB_MAD_SIZE);
	assert_int_equal(held[0]->data_size, ROOM);
	assert_ptr_equal(held[0]->data, held[0]->mad + BASE);
	assert_int_equal(mad_request_respond(held[0], 0x1234, "hello", 5), 0);
	play("process; sent 1; stats received 1 responded 1;"
	     "response 0:01320181 4:1234 17:42 23:17 36:99001405 40:68656c6c6f");
	assert_string_equal(arrivals[0].node, "n4");
	assert_memory_equal(arrivals[0].mad + 8, mad + 8, 8);
}

static uint8_t big[2 * ROOM];

static const struct response_row {
	const char *behaviour;
	unsigned status, status_after;
	const void *data;
	size_t size;
	int error;
	unsigned rmpp; /* flags of the response */
	int last;      /* its last byte */
} responses[] = {
	{"without_data_the_request_s_own_go_back", 4, 4, NULL, 0, 0, 0, 0x77},
	{"with_empty_data_the_response_has_zeros", 0, 0, "", 0, 0, 0, 0},
	{"a_status_has_sixteen_bits", 0xffff, 0xffff, NULL, 0, 0, 0, 0x77},
	{"a_longer_status_is_refused", 0x10000, 0, NULL, 0, -EINVAL, 0, 0},
	{"data_that_fit_into_a_mad_need_no_rmpp", 0, 0, big, ROOM, 0, 0, 0x33},
	{"longer_data_are_sent_by_rmpp", 0, 0, big, ROOM + 1, 0, IB_RMPP_FLAG_ACTIVE, 0x33},
	{"data_without_a_pointer_are_refused", 0, 0, NULL, 1, -EINVAL, 0, 0},
	{"more_than_two_gigabytes_are_refused", 0, 0, big,
	 INT32_MAX - 2 * (64 + IB_MAD_SIZE) + 1UL, -EMSGSIZE, 0, 0},
	{"more_than_all_memory_is_refused", 0, 0, big, SIZE_MAX, -EMSGSIZE, 0, 0},
};

static void try_response(const struct response_row *row)
{
	const uint8_t no_rmpp[12] = {0};
	unsigned before;

	memset(big, 0x33, sizeof(big));
	play("ping 7; process");
	before = machine_calls(MACHINE_MALLOC);
	assert_int_equal(mad_request_respond(held[0], row->status, row->data, row->size),
			 row->error);
	if (!row->rmpp)
		assert_int_equal(machine_calls(MACHINE_MALLOC), before);
	machine_pass(1);
	if (row->error) {
		play("sent 0; stats received 1 held 1; free 0");
		return;
	}
	play("sent 1");
	assert_int_equal(arrivals[0].mad[4] << 8 | arrivals[0].mad[5], row->status_after);
	assert_int_equal(arrivals[0].mad[255], row->last);
	assert_int_equal(arrivals[0].mad[26] & 1, row->rmpp);
	if (!row->rmpp)
		assert_memory_equal(arrivals[0].mad + 24, no_rmpp, sizeof(no_rmpp));
}

TEST_ROWS(try_response, responses);

TEST(a_request_that_cannot_be_responded_to_stays_the_program_s)
{
	struct mad_server_options options = ping_options();

	play("ping 1; process; fail-write");
	assert_int_equal(mad_request_respond(NULL, 0, big, 1), -EINVAL);
	assert_int_equal(mad_request_respond(held[0], 0, big, 8), -ENOMEM);
	play("fail-malloc");
	assert_int_equal(mad_request_respond(held[0], 0, big, ROOM + 1), -ENOMEM);
	assert_int_equal(mad_request_respond(held[0], 0, big, ROOM + 1), 0);
	play("stats received 1 responded 1 failed 1; send 2; process");
	assert_int_equal(mad_request_respond(held[1], 0, big, 1), -EINVAL);
	play("free 1");
	mad_request_free(NULL);
	options.rmpp_version = 0;
	restart(options, hold, NULL);
	play("ping 2; process");
	assert_int_equal(mad_request_respond(held[0], 0, big, ROOM + 1), -EMSGSIZE);
	assert_int_equal(mad_request_respond(held[0], 0, big, ROOM), 0);
}

TEST(a_table_of_one_segment_is_sent_again_if_it_is_lost)
{
	const uint8_t methods[] = {IB_MAD_METHOD_GET, IB_MAD_METHOD_GET_TABLE,
				   IB_MAD_METHOD_GET_TRACE_TABLE, IB_MAD_METHOD_GETMULTI};
	struct mad_server_options options = ping_options();

	options.mgmt_class = IB_SA_CLASS;
	options.oui = 0;
	for (unsigned i = 1; i < 4; i++)
		options.methods[0] |= MAD_SERVER_METHOD(methods[i]);
	server = start(options, hold, NULL);
	for (unsigned i = 0; i < 4; i++) {
		machine_send("n2", make(IB_SA_CLASS, methods[i], i + 1), 0);
		process(async);
		arrival_count = 0;
		assert_int_equal(respond(held[i]), 0);
		for (unsigned s = 0; s < 200; s++) { /* n2 does not acknowledge it */
			machine_pass(1000000);
			process(async);
		}
		assert_int_equal(arrivals[0].mad[26] & 1, i > 0);
		assert_int_equal(arrival_count > 1, i > 0);
	}
	play("stats received 4 responded 4 failed 3");
}

/* --- long messages, from a program on n1 ---------------------------------------- */

static struct {
	int fd, agent;
} client;

static int setup_client(void)
{
	uint8_t oui[3] = {0x00, 0x14, 0x05};

	if (begin_on("host,n1"))
		return -1;
	client.fd = umad_open_port("mlx5_1", 1);
	client.agent = umad_register_oui(client.fd, PING_CLASS, 1, oui, NULL);
	return client.agent < 0 ? -1 : 0;
}

static int teardown_client(void)
{
	umad_close_port(client.fd);
	return teardown();
}

/* Without a timeout, the kernel of the client lets it send the same request again. */
static void send_by_client(size_t length, bool grh, int timeout_ms)
{
	uint8_t *umad = umad_alloc(1, umad_size() + length), *mad = umad_get_mad(umad);

	memcpy(mad, ping(7), MACHINE_MAD);
	mad[24] = 1;
	mad[26] = length > IB_MAD_SIZE ? IB_RMPP_FLAG_ACTIVE : 0;
	mad[length - 1] = 0x77;
	umad_set_addr(umad, machine_lid("host"), 1, 4, (int)IB_DEFAULT_QP1_QKEY);
	if (grh)
		umad_set_grh(umad,
			     &(ib_mad_addr_t){.gid = {0xfe, 0x80, [15] = 0}, .hop_limit = 9});
	assert_int_equal(umad_send(client.fd, client.agent, umad, (int)length, timeout_ms,
				   timeout_ms ? 5 : 0),
			 0);
	umad_free(umad);
}

TEST_WITH(long_messages_come_whole_or_are_counted, setup_client, teardown_client)
{
	static uint8_t data[100000];
	size_t room = umad_size() + BASE + sizeof(data);
	uint8_t *umad = calloc(1, room), *mad = umad_get_mad(umad);
	const ib_mad_addr_t *from = umad_get_mad_addr(umad);
	int length = (int)room;

	memset(data, 0x33, sizeof(data));
	machine_rule("loss 5%%");
	send_by_client(5000, true, 60000);
	while (!count)
		mad_async_wait(async, 100);
	assert_true(held[0]->length >= 5000);
	assert_int_equal(held[0]->data_size, held[0]->length - BASE);
	assert_int_equal(held[0]->mad[4999], 0x77);
	assert_int_equal(held[0]->from.sl, 4);
	assert_int_equal(held[0]->from.grh_present, 1);
	assert_int_equal(held[0]->from.gid[0], 0xfe);
	assert_int_equal(mad_request_respond(held[0], 0, data, sizeof(data)), 0);
	assert_true(umad_recv(client.fd, umad, &length, 60000) >= 0);
	assert_true(length >= (int)(BASE + sizeof(data)));
	assert_int_equal(umad_status(umad), 0);
	assert_memory_equal(mad + BASE, data, sizeof(data));
	assert_int_equal(from->grh_present, 1); /* the response has one, too */
	assert_int_equal(from->sl, 4);
	free(umad);
	play("process; stats received 1 responded 1");
	/* the client does not wait for the next one */
	machine_rule("clear");
	send_by_client(IB_MAD_SIZE, false, 60000);
	process(async);
	umad_unregister(client.fd, client.agent);
	assert_int_equal(mad_request_respond(held[1], 0, data, 1000), 0);
	play("stats received 2 responded 2");
	for (unsigned s = 0; s < 600; s++) {
		machine_pass(1000000);
		process(async);
	}
	play("stats received 2 responded 2 failed 1");
}

TEST_WITH(a_request_by_another_route_is_another_one, setup_client, teardown_client)
{
	uint8_t info[IB_SMP_DATA_SIZE] = {0};
	ib_portid_t to = {.lid = machine_lid("n1")};

	for (unsigned i = 0; i < 4; i++)
		send_by_client(IB_MAD_SIZE, i % 2, 0);
	play("process; stats received 2 duplicates 2 held 2");
	/* from another GID */
	assert_non_null(smp_query_via(info, &to, IB_ATTR_PORT_INFO, 0, 0, port));
	mad_set_field64(info, 0, IB_PORT_GID_PREFIX_F, UINT64_C(0xfec0) << 48);
	mad_set_field(info, 0, IB_PORT_PHYS_STATE_F, 0); /* no change */
	assert_non_null(smp_set_via(info, &to, IB_ATTR_PORT_INFO, 0, 0, port));
	send_by_client(IB_MAD_SIZE, true, 0);
	play("process; stats received 3 duplicates 2 held 3; free 0-2");
}

/* --- messages of odd lengths ----------------------------------------------------- */

TEST(short_messages_get_a_whole_response)
{
	const uint8_t zeros[IB_MAD_SIZE - 41] = {0};

	play("limit 2; ping 1; deform 36; process; ping 2; deform 40; process;"
	     "ping 3; deform 36; process; handed 2; sent 1");
	assert_int_equal(arrivals[0].mad[5], BUSY);
	assert_int_equal(held[0]->length, 36);
	for (unsigned i = 0; i < 2; i++) {
		assert_null(held[i]->data);
		assert_int_equal(held[i]->data_size, 0);
		assert_int_equal(mad_request_respond(held[i], 0, i ? "x" : NULL, i), 0);
	}
	play("process; sent 3");
	for (unsigned i = 0; i < 3; i++)
		assert_memory_equal(arrivals[i].mad + 41, zeros, sizeof(zeros));
	play("ping 4; deform 41; process");
	assert_ptr_equal(held[2]->data, held[2]->mad + BASE);
	assert_int_equal(held[2]->data_size, 1);
	play("free 2");
}

/* --- options ---------------------------------------------------------------------- */

/* The result of a start; the server is stopped again. */
static int try(struct mad_server_options options)
{
	struct mad_server *started = NULL;
	int ret = mad_server_start(async, &options, hold, NULL, &started);

	assert_int_equal(!started, ret != 0);
	mad_server_stop(started);
	return ret;
}

static const struct class_row {
	const char *behaviour;
	int mgmt_class;
	size_t offset;     /* of the data, by default */
	unsigned least[2]; /* without and with RMPP; 0: not with RMPP */
} classes[] = {
	{"class_sa", IB_SA_CLASS, 56, {24, 36}},
	{"class_0x30", 0x30, 40, {40, 40}},
	{"class_0x4f", 0x4f, 40, {40, 40}},
	{"class_0x09", 0x09, 24, {24, 0}},
	{"class_0x0f", 0x0f, 24, {24, 0}},
	{"class_device_management", IB_DEVICE_MGMT_CLASS, 64, {24, 36}},
	{"class_0x10", 0x10, 64, {24, 36}},
	{"class_0x11", 0x11, 64, {24, 0}},
	{"class_0x12", 0x12, 64, {24, 36}},
	{"class_0x13", 0x13, 64, {24, 0}},
	{"class_0x08", 0x08, 64, {24, 0}},
	{"class_smi", IB_SMI_CLASS, 64, {24, 0}},
};

static void try_class(const struct class_row *row)
{
	bool smi = row->mgmt_class == IB_SMI_CLASS;
	struct mad_server_options options = options_of(row->mgmt_class);
	uint8_t *mad;

	for (unsigned rmpp = 0; rmpp <= 2; rmpp++)
		for (unsigned offset = 0; offset <= 200; offset++) {
			unsigned least = rmpp < 2 ? row->least[rmpp] : 0;
			bool may = least && (!offset || (offset >= least && offset <= 192));

			options.rmpp_version = rmpp;
			options.data_offset = offset;
			assert_int_equal(try(options), may ? 0 : -EINVAL);
		}
	options.rmpp_version = 0;
	for (unsigned own = 0; own <= 1; own++) {
		size_t offset = own ? 100 : row->offset;

		options.data_offset = own ? 100 : 0;
		restart(options, hold, NULL);
		mad = make((unsigned)row->mgmt_class, IB_MAD_METHOD_TRAP, 1);
		if (options.oui)
			memcpy(mad + 37, (const uint8_t[]){0x12, 0x34, 0x56}, 3);
		machine_send("n1", mad, 0);
		play("process; handed 1");
		assert_int_equal(held[0]->from.qkey, smi ? 0 : IB_DEFAULT_QP1_QKEY);
		assert_int_equal(held[0]->from.qp, !smi);
		assert_int_equal(held[0]->data - held[0]->mad, offset);
		assert_int_equal(held[0]->data_size + offset, IB_MAD_SIZE);
		assert_int_equal(mad_request_respond(held[0], 0, "0123456789", 10), 0);
		machine_pass(1);
		assert_int_equal(last_arrival()->mad[3], IB_MAD_METHOD_TRAP_REPRESS);
		assert_int_equal(last_arrival()->qp, !smi);
		assert_memory_equal(last_arrival()->mad + offset, "0123456789", 11);
	}
}

TEST_ROWS(try_class, classes);

TEST(options_out_of_range_fail_with_einval)
{
	const struct mad_server_options good = options_of(VENDOR_CLASS);
	struct mad_server_options options;
	struct mad_server *none;

#define REFUSED(change)                                  \
	do {                                             \
		options = good;                          \
		change;                                  \
		assert_int_equal(try(options), -EINVAL); \
	} while (0)
	REFUSED(options.limit = 65537);
	REFUSED(options.methods[0] = options.methods[1] = 0);
	for (unsigned i = 0; i < 4; i++)
		REFUSED(options.reserved[i] = 1);
	REFUSED(options.oui = OTHER_OUI); /* of vendor range 2 alone */
	REFUSED(options = options_of(0x33); options.oui = 0x1000000);
	REFUSED(options = options_of(0x33); options.oui = 0);
	REFUSED(options = options_of(0));
	REFUSED(options = options_of(0x50));
	REFUSED(options = options_of(256));
	REFUSED(options = options_of(-1));
	options = good;
	options.limit = 65536;
	options.methods[0] = 0; /* those from 64 on are enough */
	assert_int_equal(try(options), 0);
	options.limit = 1;
	assert_int_equal(try(options), 0);
	options = options_of(0x33);
	options.oui = 0xffffff;
	assert_int_equal(try(options), 0);
	assert_int_equal(mad_server_start(NULL, &good, hold, NULL, &none), -EINVAL);
	assert_int_equal(mad_server_start(async, NULL, hold, NULL, &none), -EINVAL);
	assert_int_equal(mad_server_start(async, &good, NULL, NULL, &none), -EINVAL);
	assert_int_equal(mad_server_start(async, &good, hold, NULL, NULL), -EINVAL);
}

TEST(a_server_that_is_not_started_says_why)
{
	const struct {
		int of_kernel, of_call;
	} errors[] = {{EINVAL, -EADDRINUSE},
		      {EPIPE, -ENODEV},
		      {ENOMEM, -ENOMEM},
		      {EPROTONOSUPPORT, -EPROTONOSUPPORT}};
	struct mad_server_options options = ping_options();
	char text[MAD_ERROR_TEXT_SIZE];

	for (unsigned i = 0; i < 4; i++) {
		machine_fail(MACHINE_IOCTL, 1, errors[i].of_kernel);
		assert_int_equal(try(options_of(VENDOR_CLASS)), errors[i].of_call);
		machine_fail(MACHINE_IOCTL, 1, errors[i].of_kernel);
		assert_int_equal(try(options_of(0x33)), errors[i].of_call);
	}
	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	assert_int_equal(try(options_of(VENDOR_CLASS)), -ENOMEM);
	assert_int_equal(try(options_of(VENDOR_CLASS)), 0);
	assert_int_equal(try(options), -EADDRINUSE);
	assert_string_equal(
		mad_failure_text(NULL, text, sizeof(text)),
		"vendor class 0x32: the class cannot be registered: another agent on "
		"the port has it");
	options.reserved[3] = 1;
	assert_int_equal(try(options), -EINVAL);
	assert_string_equal(mad_failure_text(NULL, text, sizeof(text)), "an argument is wrong");
	machine_rule("remove on host");
	while (mad_async_process(async) >= 0)
		;
	assert_int_equal(try(options_of(VENDOR_CLASS)), -ENODEV);
}

/* A program that was compiled with another version knows fewer or more members. */
TEST(statistics_have_the_size_that_the_caller_knows)
{
	struct {
		struct mad_server_stats stats;
		uint8_t more[8], behind;
	} buffer;

	play("ping 1; process");
	memset(&buffer, 0x99, sizeof(buffer));
	mad_server_get_stats(server, &buffer.stats,
			     offsetof(struct mad_server_stats, responded));
	assert_int_equal(buffer.stats.received, 1);
	assert_true(buffer.stats.responded == UINT64_C(0x9999999999999999));
	mad_server_get_stats(server, &buffer.stats, sizeof(buffer.stats) + 8);
	assert_int_equal(buffer.stats.held, 1);
	assert_int_equal(buffer.more[0] | buffer.more[7], 0);
	assert_int_equal(buffer.behind, 0x99);
	assert_int_equal(mad_server_get_stats(NULL, &buffer.stats, 8), -EINVAL);
	assert_int_equal(mad_server_get_stats(server, NULL, 8), -EINVAL);
	play("free 0");
}

/* --- several servers ---------------------------------------------------------------- */

TEST(servers_and_a_client_of_one_class_get_their_own_messages)
{
	struct mad_server *second = start_other(0), *third;
	ib_rpc_t rpc = {.mgtclass = VENDOR_CLASS,
			.method = IB_MAD_METHOD_SET,
			.datasz = 64,
			.dataoffs = IB_VENDOR_RANGE1_DATA_OFFS};
	ib_portid_t to = {.lid = machine_lid("host"), .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
	int own = mad_rpc_class_agent(port, VENDOR_CLASS);

	third = start(options_of(VENDOR_CLASS), hold, NULL);
	assert_int_equal(mad_rpc_class_agent(port, VENDOR_CLASS), own);
	play("ping 1; other 1");
	machine_send("n1", make(VENDOR_CLASS, IB_MAD_METHOD_SET, 1), 0);
	play("process; handed 3");
	assert_ptr_equal(held[0]->server, server);
	assert_ptr_equal(held[1]->server, second);
	assert_ptr_equal(held[2]->server, third);
	play("respond 0-2");
	assert_fails_null(mad_receive_via(NULL, 0, port), EAGAIN);
	/* the client asks its own server */
	assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, port), 0);
	play("process; handed 4; respond 3");
	mad_free(mad_receive_via(NULL, 1000, port));
}

/* The loop would read and poll without end. */
TEST(a_wait_for_the_requests_of_others_sleeps)
{
	unsigned before = machine_calls(MACHINE_READ) + machine_calls(MACHINE_POLL);

	assert_int_equal(mad_async_wait(async, 50), -ETIMEDOUT);
	assert_in_range(machine_calls(MACHINE_READ) + machine_calls(MACHINE_POLL) - before, 1,
			10);
}

/* --- limits --------------------------------------------------------------------------- */

/* The sender, the method, the TID, the attribute and its modifier make a request. */
TEST(a_request_that_comes_again_is_handed_out_once)
{
	const unsigned different[] = {8, 11, 12, 16, 17, 20, 23}, same[] = {4, 24, 41, 64};
	uint8_t *mad;

	play("ping 7-8; ping 7; process; ping 7; process;"
	     "stats received 2 duplicates 2 held 2");
	machine_send("n2", ping(7), 0);
	machine_send("n1", make(PING_CLASS, IB_MAD_METHOD_SET, 7), 0);
	for (unsigned i = 0; i < 7; i++) {
		mad = ping(7);
		mad[different[i]] ^= 0x55;
		machine_send("n1", mad, 0);
	}
	play("process; handed 11");
	for (unsigned i = 0; i < 4; i++) {
		mad = ping(7);
		mad[same[i]] ^= 0x54;
		machine_send("n1", mad, 0);
	}
	/* then the response is lost */
	play("process; stats received 11 duplicates 6 held 11;"
	     "respond 0; ping 7; process; handed 12; free 1-11");
}

/* --- event loops and threads ---------------------------------------------------------- */

/* The gate at which a callback waits. */
static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool entered, open;
} gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false};

static void set_gate(bool *member)
{
	pthread_mutex_lock(&gate.mutex);
	*member = true;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.mutex);
}

static void wait_gate(bool *member)
{
	pthread_mutex_lock(&gate.mutex);
	while (!*member)
		pthread_cond_wait(&gate.changed, &gate.mutex);
	*member = false;
	pthread_mutex_unlock(&gate.mutex);
}

static void hold_at_gate(struct mad_server *from, struct mad_request *request, int error,
			 void *arg)
{
	hold(from, request, error, arg);
	if (request) {
		set_gate(&gate.entered);
		wait_gate(&gate.open);
	}
}

/* A thread runs the engine, and its callback for a request waits at the gate. */
static pthread_t run_to_gate(void)
{
	pthread_t runner;

	restart(ping_options(), hold_at_gate, NULL);
	runner = start_thread(run_engine, async);
	play("ping 1");
	wait_gate(&gate.entered);
	return runner;
}

static void *ask(void *arg)
{
	uint8_t info[IB_SMP_DATA_SIZE];
	ib_portid_t to = {.lid = machine_lid("n1")};

	return smp_query_via(info, &to, IB_ATTR_NODE_INFO, 0, 0, port) ? NULL : arg;
}

TEST(a_stop_and_others_calls_do_not_wait_for_a_callback)
{
	pthread_t runner = run_to_gate();

	assert_int_equal(join(start_thread(ask, port)), 0);
	play("stop");
	machine_pass(1000);
	play("ended 1");
	set_gate(&gate.open);
	assert_int_equal(join(runner), 2);
	play("ended 2; free 0");
}

static void *stop_it(void *arg)
{
	mad_server_stop(arg);
	return NULL;
}

static void *destroy(void *arg)
{
	mad_async_free(arg);
	return NULL;
}

/* Threads stop the server, respond, destroy and run the engine in any order. */
TEST(an_engine_may_be_destroyed_while_a_server_is_stopped)
{
	for (unsigned i = 0; i < 20; i++) {
		pthread_t runner = run_to_gate();
		pthread_t stopper = start_thread(stop_it, server);
		pthread_t destroyer = start_thread(destroy, async);

		machine_pass(i % 3);
		set_gate(&gate.open);
		if (respond(held[0]))
			mad_request_free(held[0]);
		join(runner);
		join(stopper);
		join(destroyer);
		async = mad_async_create(port);
		server = start(ping_options(), hold, NULL);
	}
}

#define RESPONDERS 4

static void *respond_some(void *arg)
{
	for (unsigned i = (unsigned)(uintptr_t)arg; i < 1000; i += RESPONDERS) {
		while (count <= i)
			machine_pass(100);
		if (i % 3 == 0)
			mad_request_free(held[i]);
		else if (respond(held[i]))
			return (void *)1;
	}
	return NULL;
}

TEST(any_thread_may_respond_to_requests_and_free_them)
{
	pthread_t responders[RESPONDERS], runner = start_thread(run_engine, async);

	for (uintptr_t i = 0; i < RESPONDERS; i++)
		responders[i] = start_thread(respond_some, (void *)i);
	for (uint32_t i = 0; i < 1000; i++)
		machine_send("n1", ping(i + 1), i * INT64_C(10));
	for (unsigned i = 0; i < RESPONDERS; i++)
		assert_int_equal(join(responders[i]), 0);
	machine_pass(1);
	play("sent 666; stats received 1000 responded 666; stop");
	assert_int_equal(join(runner), 1001);
}

/* --- the end ---------------------------------------------------------------------------- */

TEST(the_first_agent_of_a_port_may_be_a_server_s)
{
	teardown();
	machine_setup();
	port = mad_rpc_open_port(NULL, 0, NULL, 0);
	async = mad_async_create(port);
	server = start(ping_options(), hold, NULL);
	play("limit 1; ping 1; process; respond 0");
}

/* Stops its server at the first request; the last callback starts another server. */
static void stop_and_start(struct mad_server *from, struct mad_request *request, int error,
			   void *arg)
{
	assert_int_equal(error, 0);
	mad_server_stop(from);
	mad_server_stop(from);
	if (request) {
		++*(int *)arg;
		assert_int_equal(respond(request), -ECANCELED);
		mad_request_free(request);
	} else {
		assert_int_equal(mad_async_wait(async, 0), -EDEADLK);
		server = start(ping_options(), hold, NULL);
	}
}

TEST(callbacks_may_stop_and_start_servers)
{
	int requests = 0;

	restart(ping_options(), stop_and_start, &requests);
	play("ping 1-3; process; ping 1; process; handed 1; respond 0");
	assert_int_equal(requests, 1);
}

static void start_at_the_end(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct mad_server_options options = options_of(0x33);
	struct mad_server *none = server;

	assert_int_equal(reply->error, -ECANCELED);
	*(int *)arg = mad_server_start(engine, &options, hold, NULL, &none);
	assert_null(none);
}

TEST(requests_outlive_the_engine_and_the_port)
{
	struct mad_server_options options = ping_options();
	ib_portid_t to = {.lid = machine_lid("n2")};
	struct mad_async *first = async;
	int ret = 0;

	play("ping 1-3; process");
	async = other;
	other = NULL;
	server = start_other(0);
	assert_int_equal(
		mad_async_get(first, &to, MAD_NODE_INFO, 0, start_at_the_end, &ret, NULL), 0);
	mad_async_free(first); /* ends its own servers */
	assert_int_equal(ret, -ECANCELED);
	assert_int_equal(end_error, -ECANCELED);
	assert_int_equal(respond(held[0]), -ECANCELED);
	play("ended 1; other 1; process; respond 3; other 2; process");
	/* the port is closed before the engine is freed */
	mad_rpc_close_port(port);
	port = NULL;
	assert_int_equal(respond(held[4]), -ECANCELED);
	assert_int_equal(mad_async_process(async), 1);
	assert_int_equal(mad_async_process(async), -ECANCELED);
	options.oui = 1;
	assert_int_equal(try(options), -ECANCELED);
	assert_int_equal(mad_async_wait(async, -1), 0);
	mad_async_free(async);
	async = NULL;
	assert_int_equal(held[1]->tid, 2);
	play("ended 2; free 0-2; free 4");
}

TEST(a_device_that_is_gone_ends_servers)
{
	play("start 0x33; second 0; limit 4; ping 1-3; process");
	machine_fail(MACHINE_WRITE, 1, EIO);
	assert_int_equal(respond(held[0]), -EIO);
	/* two are queued, and two get BUSY */
	play("respond 1; ping 4-7; read;"
	     "stats received 5 responded 1 failed 1 queued 2 held 2");
	machine_rule("remove on host");
	assert_int_equal(respond(held[2]), -ENODEV);
	while (mad_async_process(other) >= 0)
		;
	play("stats received 5 responded 1 dropped 2 failed 2 held 2");
	assert_int_equal(mad_async_process(async), 3); /* the last callbacks */
	assert_int_equal(end_error, -ENODEV);
	assert_int_equal(mad_async_process(async), -ENODEV);
	assert_int_equal(mad_async_wait(async, -1), 0);
	play("handed 3; free 0; free 2");
}

/* --- children of fork(2) ------------------------------------------------------------------ */

static int end_all(void)
{
	mad_async_free(other);
	mad_async_free(async);
	mad_rpc_close_port(port);
	return 0;
}

static int use_child(void)
{
	struct mad_server *none = server;
	unsigned calls = machine_calls(MACHINE_IOCTL);

	EXPECT(!strcmp(stats_text(server), "received 3 held 1"));
	EXPECT(respond(held[0]) == -ECANCELED);
	mad_request_free(held[0]);
	EXPECT(mad_server_start(
		       async, &(struct mad_server_options){.mgmt_class = 0x0a, .methods = {2}},
		       hold, NULL, &none) == -ECANCELED);
	EXPECT(!none);
	mad_server_stop(server);
	EXPECT(mad_async_wait(async, -1) == 1); /* the last callback */
	EXPECT(ends == 1 && end_error == -ECANCELED);
	EXPECT(mad_async_wait(async, -1) == 0);
	end_all();
	EXPECT(machine_calls(MACHINE_IOCTL) == calls); /* the agents are the parent's */
	return 0;
}

TEST(a_child_has_no_servers_and_the_parent_keeps_its_own)
{
	play("ping 1; process; ping 2-3; read");
	run_in_child(use_child);
	play("process; handed 3; respond 0-2");
}

static int free_child(void)
{
	EXPECT(respond(held[0]) == -ECANCELED);
	mad_server_stop(server);
	mad_request_free(held[0]);
	return end_all();
}

static void *use_port(void *arg)
{
	struct mad_server_stats stats;

	while (!*(atomic_bool *)arg)
		mad_server_get_stats(server, &stats, sizeof(stats));
	return NULL;
}

/* The thread that calls back, or is changing the server, is not in the child. */
TEST(a_child_does_not_wait_for_a_thread_of_the_parent)
{
	atomic_bool end = false;
	pthread_t runner = run_to_gate(), user = start_thread(use_port, &end);

	for (unsigned i = 0; i < 50; i++)
		run_in_child(free_child);
	end = true;
	join(user);
	set_gate(&gate.open);
	play("stop");
	join(runner);
	server = NULL;
	run_in_child(free_child);
	play("free 0");
}

/* --- mad_receive_via(), mad_respond_via(), mad_send_via() --------------------------------- */

/* The port registers a server of VENDOR_CLASS, instead of an engine. */
static int setup_receiver(void)
{
	int classes_of_port[] = {IB_SMI_CLASS, IB_PERFORMANCE_CLASS};
	long mask[16 / sizeof(long)] = {0};

	machine_setup();
	arrivals_begin();
	port = mad_rpc_open_port(NULL, 0, classes_of_port, 2);
	async = mad_async_create(port);
	mask[0] = 1 << IB_MAD_METHOD_GET | 1 << IB_MAD_METHOD_SET | 1 << IB_MAD_METHOD_SEND |
		  1 << IB_MAD_METHOD_TRAP | 1 << IB_MAD_METHOD_GET_TABLE;
	return mad_register_server_via(VENDOR_CLASS, 0, mask, 0, port) < 0 ? -1 : 0;
}

static uint32_t tid_of(void *umad)
{
	uint32_t tid;

	assert_non_null(umad);
	memcpy(&tid, (uint8_t *)umad_get_mad(umad) + 12, sizeof(tid));
	return be32toh(tid);
}

static void come_to_port(uint32_t tid)
{
	machine_send("n3", make(VENDOR_CLASS, IB_MAD_METHOD_GET, tid), 0);
}

TEST_WITH(requests_are_kept_in_their_order_while_others_read, setup_receiver, teardown)
{
	uint8_t info[IB_SMP_DATA_SIZE];
	ib_portid_t to = {.lid = machine_lid("n1")};
	void *umad;

	for (uint32_t tid = 1; tid <= 2000; tid++)
		come_to_port(tid);
	assert_non_null(smp_query_via(info, &to, IB_ATTR_NODE_INFO, 0, 0, port));
	for (unsigned i = 0; i < 2000; i++)
		assert_int_equal(mad_async_process(async), 0);
	for (uint32_t tid = 1; tid <= 2000; tid++) {
		umad = mad_receive_via(NULL, 0, port);
		assert_int_equal(tid_of(umad), tid);
		mad_free(umad);
	}
	assert_fails_null(mad_receive_via(NULL, 0, port), EAGAIN);
}

TEST_WITH(each_method_has_its_response_at_the_sender, setup_receiver, teardown)
{
	const struct {
		uint8_t method, response;
	} methods[] = {{IB_MAD_METHOD_GET, IB_MAD_METHOD_GET_RESPONSE},
		       {IB_MAD_METHOD_SET, IB_MAD_METHOD_GET_RESPONSE},
		       {IB_MAD_METHOD_SEND, IB_MAD_METHOD_SEND},
		       {IB_MAD_METHOD_TRAP, IB_MAD_METHOD_TRAP_REPRESS},
		       {IB_MAD_METHOD_GET_TABLE, IB_MAD_METHOD_GET_TABLE_RESPONSE}};
	ib_portid_t elsewhere = {.lid = machine_lid("n7"), .qp = 1, .sl = 2};
	void *umad;

	for (unsigned i = 0; i < 5; i++) {
		machine_send("n3", make(VENDOR_CLASS, methods[i].method, 7), 0);
		umad = mad_receive_via(NULL, 1000, port);
		assert_int_equal(tid_of(umad), 7);
		assert_int_equal(mad_respond_via(umad, i ? NULL : &elsewhere, 0x1c, port), 0);
		machine_pass(1);
		assert_int_equal(last_arrival()->mad[3], methods[i].response);
		assert_int_equal(last_arrival()->mad[5], 0x1c);
		assert_int_equal(last_arrival()->mad[255], 0x77);
		assert_string_equal(last_arrival()->node, i ? "n3" : "n7");
		mad_free(umad);
	}
	assert_int_equal(arrivals[0].sl, 2);
}

TEST_WITH(a_buffer_of_the_program_holds_one_mad, setup_receiver, teardown)
{
	uint8_t *own = mad_alloc(), *umad, *mad = umad_get_mad(own);
	int64_t before;

	come_to_port(7);
	machine_pass(1);
	machine_deform(5000, 0);
	assert_fails_null(mad_receive_via(own, 0, port), EMSGSIZE);
	umad = mad_receive_via(NULL, 0, port);
	assert_int_equal(((uint8_t *)umad_get_mad(umad))[255], 0x77);
	assert_int_equal(((uint8_t *)umad_get_mad(umad))[4999], 0);
	mad_free(umad);
	/* a short message leaves nothing of an older one */
	memset(mad, 0x99, IB_MAD_SIZE);
	come_to_port(8);
	machine_deform(60, 0);
	assert_ptr_equal(mad_receive_via(own, 1000, port), own);
	assert_int_equal(tid_of(own), 8);
	for (int i = 60; i < IB_MAD_SIZE; i++)
		assert_int_equal(mad[i], 0);
	come_to_port(9);
	machine_pass(1);
	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	assert_int_equal(mad_async_process(async), 0); /* dropped */
	come_to_port(10);
	machine_pass(1);
	assert_int_equal(mad_async_process(async), 0);
	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	assert_fails_null(mad_receive_via(NULL, 0, port), ENOMEM);
	umad = mad_receive_via(NULL, 0, port); /* it is still queued */
	assert_int_equal(tid_of(umad), 10);
	mad_free(umad);
	mad_free(own);
	before = machine_us();
	assert_fails_null(mad_receive_via(NULL, 50, port), ETIMEDOUT);
	assert_int_equal(machine_us() - before, 50000);
	assert_fails_null(mad_receive_via(NULL, 0, NULL), EINVAL);
	machine_fail(MACHINE_POLL, 1, EINTR); /* a signal */
	assert_fails_null(mad_receive_via(NULL, -1, port), EINTR);
}

TEST_WITH(requests_that_cannot_be_sent_or_have_no_response_are_rejected, setup_receiver,
	  teardown)
{
	ib_rpc_t rpc = {.mgtclass = VENDOR_CLASS, .method = IB_MAD_METHOD_GET};
	ib_portid_t to = {.lid = machine_lid("n3")};
	void *umad = mad_alloc();
	uint8_t *mad = umad_get_mad(umad);

	mad[1] = IB_DEVICE_MGMT_CLASS;
	assert_fails_minus_1(mad_respond_via(umad, NULL, 0, port), EINVAL);
	assert_fails_minus_1(mad_respond_via(NULL, NULL, 0, port), EINVAL);
	assert_fails_minus_1(mad_respond_via(umad, NULL, 0, NULL), EINVAL);
	mad[1] = VENDOR_CLASS;
	machine_fail(MACHINE_WRITE, 1, ENOMEM);
	assert_fails_minus_1(mad_respond_via(umad, NULL, 0, port), ENOMEM);
	mad_free(umad);
	assert_int_equal(mad_send_via(NULL, &to, NULL, NULL, port), -1);
	assert_int_equal(mad_send_via(&rpc, NULL, NULL, NULL, port), -1);
	assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, NULL), -1);
	rpc.mgtclass = IB_DEVICE_MGMT_CLASS;
	assert_fails_minus_1(mad_send_via(&rpc, &to, NULL, NULL, port), EINVAL);
	assert_int_equal(arrival_count, 0);
}

TEST_WITH(a_request_sent_without_waiting_has_its_response_or_times_out, setup_receiver,
	  teardown)
{
	ib_rpc_t rpc = {.mgtclass = IB_PERFORMANCE_CLASS,
			.method = IB_MAD_METHOD_GET,
			.attr.id = CLASS_PORT_INFO,
			.dataoffs = IB_PC_DATA_OFFS,
			.datasz = IB_PC_DATA_SZ};
	ib_portid_t to = {.lid = machine_lid("n3"), .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
	uint8_t *umad, *mad;

	machine_rule("duplicate 100%%"); /* once is enough */
	for (unsigned i = 0; i < 1000; i++, rpc.trid = 0)
		assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, port), 0);
	for (unsigned i = 0; i < 1000; i++) {
		umad = mad_receive_via(NULL, 1000, port);
		assert_non_null(umad);
		mad = umad_get_mad(umad);
		assert_int_equal(mad[3], IB_MAD_METHOD_GET_RESPONSE);
		mad_free(umad);
	}
	assert_null(mad_receive_via(NULL, 0, port));
	machine_rule("clear");
	machine_rule("silent on n3");
	mad_rpc_set_timeout(port, 321);
	for (unsigned i = 0; i < 2; i++, rpc.trid = 0) { /* nothing is retransmitted */
		int64_t before = machine_us();

		arrival_count = 0;
		rpc.timeout = i ? 654 : 0;
		assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, port), 0);
		umad = mad_receive_via(NULL, 10000, port);
		assert_non_null(umad);
		assert_int_equal(umad_status(umad), ETIMEDOUT);
		assert_in_range(machine_us() - before, i ? 654000 : 321000,
				i ? 690000 : 345000);
		assert_int_equal(arrival_count, 1);
		mad_free(umad);
	}
}

TEST_WITH(a_response_is_shown_with_ibdebug_2, setup_receiver, teardown)
{
	void *umad = mad_alloc();
	uint8_t *mad = umad_get_mad(umad);

	mad[1] = VENDOR_CLASS;
	mad[3] = IB_MAD_METHOD_GET;
	mad[252] = 0xab;
	for (ibdebug = 1; ibdebug <= 2; ibdebug++) {
		capture_output(stderr);
		mad_respond_via(umad, NULL, 0, port);
		assert_int_equal(strstr(captured_output(), "respond\n") != NULL, ibdebug == 2);
	}
	assert_non_null(strstr(captured.text, "ab00"));
	ibdebug = 0;
	mad_free(umad);
}
