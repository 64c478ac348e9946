/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Which request is sent next, and when: turns of classes, engines, blocking calls and nodes;
 * limits and the rate; retransmissions, BUSY and silence; and the end of requests wherever they
 * are queued. scenario.h has the language of the rows.
 */

#include "scenario.h"
#include "test.h"

#include <pthread.h>
#include <sys/wait.h>

FIXTURE(scenario_begin, scenario_end);

/* --- turns ---------------------------------------------------------------------- */

SCENARIO(classes_and_engines_take_turns_of_four_requests,
	 "gmps 1; submit a100 a1 a2 a3 a4 a5 a6 a11s a12s a13s a14s a15s a21v a22v a23v"
	 " a24v a25v; sent a100; gmps 100; sent a1 a2 a3 a4 a11s a12s a13s a14s"
	 " a21v a22v a23v a24v a5 a6 a15s a25v",
	 "gmps 1; submit a100 a1 a2 a3 a4 a5 a6 b60 b61; sent a100; gmps 100;"
	 " sent a1 a2 a3 a4 b60 b61 a5 a6",
	 /* one by one, too */
	 "gmps 1; submit a100 a1 a2 a3 a4 a5 b60 b61; sent a100;"
	 " respond a100 a1 a2 a3 a4 b60 b61; done a100 a1 a2 a3 a4 b60 b61;"
	 " sent a1 a2 a3 a4 b60 b61 a5",
	 /* SMPs have a window of their own */
	 "gmps 1; submit a100 a1 a1m a2m; sent a100 a1m a2m");

SCENARIO(a_blocking_call_waits_for_one_turn_of_an_engine,
	 "gmps 1; submit a100 a1 a2 a3 a4 a5 a6; sent a100; unread a100; call x77;"
	 " sent a1 a2 a3 a4 x77 a5");

/* Also if there is room in the window by then. */
SCENARIO(a_new_request_is_sent_after_those_that_are_queued,
	 "rate 10; submit a1 a2 a3; sent a1; wait 250ms; submit a50; sent a2; pass "
	 "100ms;"
	 " sent a3; pass 100ms; sent a50",
	 "gmps 1; submit a1 a2; sent a1; unread a1; receive; sent; submit a3; sent a2;"
	 " respond a2; sent a3");

/* The engine's requests fill the window. */
SCENARIO(a_blocking_call_needs_no_thread_of_the_engine,
	 "gmps 1; late 4ms; dead 1; submit a1*5; sent a1; call x2; sent a1*3 x2 a1; "
	 "done");

/* 64 packets in each mad_async_process(). */
TEST(both_windows_are_sent_in_turn)
{
	char kind[5] = "";

	scenario_run("window 256; limit 1000; submit a1*256 a1m*256 a2*256 a2m*256;"
		     " unread a1*256 a1m*256");
	for (int i = 0; i < 20; i++)
		scenario_run("receive");
	scenario_run("queued 512");
	for (unsigned round = 0; round < 4; round++) {
		scenario.sent_count = 0;
		assert_true(mad_async_process(scenario.engines[0]) >= 0);
		kind[round] =
			device_packet(device_written() - 1)->mad[1] == IB_SMI_CLASS ? 'm' : 'g';
		scenario_run(kind[round] == 'm' ? "among 64 64 a2m" : "among 64 64 a2");
		assert_int_equal(scenario.sent_count, 64);
	}
	assert_true(!strcmp(kind, "mgmg") || !strcmp(kind, "gmgm"));
}

/* --- windows -------------------------------------------------------------------- */

SCENARIO(a_fixed_window_is_never_exceeded,
	 "gmps 3; submit a1 a2 a3 a4 a5 a6; sent a1 a2 a3; queued 3; in-flight 3; completed 0;"
	 " respond a1; sent a4; queued 2; in-flight 3; completed 1; respond a3; sent a5;"
	 " respond a2; sent a6; queued 0; in-flight 3; completed 3; respond a4 a5; sent;"
	 " in-flight 1; respond a6; in-flight 0; completed 6; done a1 a3 a2 a4 a5 a6");

SCENARIO(smps_and_gmps_have_a_window_each,
	 "smps 2; gmps 3; submit a1m a2m a3m a1 a2 a3 a4; sent a1m a2m a1 a2 a3");

SCENARIO(a_window_that_is_raised_sends_at_once_and_in_order,
	 "smps 2; submit a1m a2m a3m a4m a5m a6m; sent a1m a2m; smps 5; sent a3m a4m a5m;"
	 " queued 1");

SCENARIO(a_window_that_is_lowered_holds_what_is_queued,
	 "gmps 5; submit a1 a2 a3 a4 a5 a6 a7; sent a1 a2 a3 a4 a5; gmps 2;"
	 " respond a1 a2 a3; sent; respond a4; sent a6");

SCENARIO(a_dead_node_holds_up_itself_alone,
	 "gmps 4; limit 2; submit a1*6 a2 a3 a4 a5; sent a1 a1 a2 a3; respond a2 a3;"
	 " sent a4 a5; respond a4 a5; sent; done a2 a3 a4 a5; queued 4");

/* --- the rate ------------------------------------------------------------------- */

SCENARIO(an_engine_wakes_up_when_the_rate_permits_it,
	 "smps 1; rate 1; wakes -1ms; submit a1m; sent a1m; wakes 60000ms;"
	 /* not for a window that is full */
	 " submit a2m; wakes 60000ms; submit a3; wakes 999ms; sent");

SCENARIO(only_what_is_sent_counts_for_the_rate,
	 "rate 10; submit a1 a2 a3m; sent a1; respond a1; pass 98ms; sent; pass 2ms;"
	 " sent a3m; pass 98ms; sent; pass 2ms; sent a2",
	 /* what was not used is lost but for a burst of a millisecond */
	 "rate 5000; submit a1*10; sent a1*6; wait 1000ms; submit b1*10; sent a1*4 b1*2;"
	 " pass 1ms; sent b1*5",
	 "rate 1; submit a1 a2; rate 0; sent a1 a2");

/* The packets that the engine sends at this rate in so many microseconds. */
static unsigned packets_in(unsigned rate, int64_t us)
{
	const int64_t end = clock_now + us;
	const unsigned before = scenario.sent_count;

	mad_port_set(port, MAD_PORT_RATE, rate);
	for (; clock_now < end; clock_now += 50)
		assert_int_equal(mad_async_process(scenario.engines[0]), 0);
	return scenario.sent_count - before;
}

/* A burst is what a millisecond allows. */
TEST(no_more_are_sent_than_the_rate_and_a_burst)
{
	const unsigned rates[] = {1, 7, 999, 1000, 1001, 30000, 123456, 300000};

	scenario_run("window 4000; limit 4000; rate 1; submit a1 a2*4000; sent a1");
	for (unsigned i = 0; i < 8; i++) {
		/* as long as 500 packets take, and the millisecond of a burst */
		int64_t us = rates[i] < 500 ? 1000000 : INT64_C(500000000) / rates[i];
		unsigned least = (unsigned)(rates[i] * us / 1000000);
		unsigned most = (unsigned)(rates[i] * (us + 1000) / 1000000);

		assert_in_range(packets_in(rates[i], us), least - least / 100, most + 1);
	}
	/* a blocking call may have to wait, too */
	scenario_run("rate 0; finish; rate 1; submit b3; call x4; sent b3 x4");
}

/* --- limits of nodes ------------------------------------------------------------ */

SCENARIO(a_destination_has_a_limit,
	 "limit 3; submit a1.1 a1.2 a1.3 a1.4 a1.5 a1.6; sent a1.1 a1.2 a1.3; queued 3;"
	 " in-flight 3; respond a1.1; sent a1.4; respond a1.3 a1.2 a1.4; sent a1.5 a1.6;"
	 " respond a1.5 a1.6; done a1.1 a1.3 a1.2 a1.4 a1.5 a1.6; in-flight 0");

SCENARIO(an_unknown_destination_has_one_request_until_it_has_responded_to_some,
	 "window 0; limit 0; submit a1*20; sent a1; respond a1; sent a1; respond a1; sent a1 "
	 "a1");

SCENARIO(a_limit_that_is_raised_sends_at_once_and_in_order,
	 "limit 1; submit a1.1 a1.2 a1.3 a1.4; sent a1.1; limit 3; sent a1.2 a1.3; queued 1",
	 "limit 1; submit a1*10; sent a1; limit 4; sent a1*3; respond a1; sent a1; limit 1;"
	 " respond a1*3; sent; respond a1; sent a1");

SCENARIO(a_limit_that_is_lowered_holds_what_is_queued,
	 "limit 5; submit a1*7; sent a1*5; limit 2; respond a1*3; sent; respond a1; sent a1");

SCENARIO(a_limit_may_be_lowered_before_it_was_of_use,
	 "gmps 2; limit 1; submit a1.1 a1.2 a1.3 a1.4 a2; sent a1.1 a2; limit 15; sent;"
	 " limit 1; gmps 100; sent; respond a2; sent; respond a1.1; sent a1.2; respond a1.2;"
	 " sent a1.3; respond a1.3; sent a1.4; respond a1.4; all 0");

/* --- turns at a node ------------------------------------------------------------ */

SCENARIO(engines_and_classes_take_turns_at_a_node,
	 "limit 1; submit a1*3 b1*3; sent a1; respond a1 a1 b1 a1 b1;"
	 " sent a1 b1 a1 b1 b1",
	 "limit 1; submit a1*3 a1v*2; sent a1; respond a1 a1 a1v a1; sent a1 a1v a1 a1v");

SCENARIO(requests_that_waited_for_their_node_and_others_alternate,
	 "limit 1; gmps 2; submit a1*5 a2 a3 a4 a5; sent a1 a2; limit 100; sent;"
	 " gmps 100; sent a3 a1 a4 a1 a5 a1 a1");

#define LEARN "submit a2 a3 a4 a5 a6 a7 a8 a9;"
#define QUEUE                                                                              \
	"sent a2 a3 a4 a5 a6 a7 a8 a9 a1; submit a9*4 a8*4 a7*4 a6*4 a5*4 a4*4 a3*4 a2*4 " \
	"a1*6;"                                                                            \
	"sent a9 a8 a7 a6 a5 a4 a3 a2 a1;"

/* Many requests wait for each node; all places become free at once. */
SCENARIO(a_quick_node_does_not_wait_for_each_of_the_others,
	 LEARN "pass 900us; submit a1; pass 100us; respond a2 a3 a4 a5 a6 a7 a8 a9 a1;"
	       "limit 1; " QUEUE "limit 100; among 12 5 a1",
	 /* half as long as the others: it waits for them */
	 LEARN "pass 500us; submit a1; pass 500us; respond a2 a3 a4 a5 a6 a7 a8 a9 a1;"
	       "limit 1; " QUEUE "limit 100; among 12 2 a1",
	 /* not known */
	 LEARN "pass 1000us; respond a2 a3 a4 a5 a6 a7 a8 a9; submit a1; cancel a1;"
	       "limit 1; " QUEUE "limit 100; among 12 2 a1");

SCENARIO(a_slow_node_delays_others_by_one_request_at_a_time,
	 "limit 1; gmps 2; submit a1*20 a2 a3 a4 a5 a6; sent a1 a2;"
	 " respond a2 a3 a4 a5; sent a3 a4 a5 a6");

SCENARIO(a_limit_may_fall_and_rise_again,
	 /* it holds for those that are not sent yet */
	 "limit 1; gmps 2; submit a1.1 a1.2 a1.3 a1.4 a1.5 a2 a3 a4 a5; sent a1.1 a2;"
	 " limit 100; limit 3; sent; gmps 100; sent a3 a1.2 a4 a1.3 a5;"
	 " respond a1.1; sent a1.4; respond a1.3; sent a1.5",
	 "limit 1; gmps 2; submit a1*21 a2 a3 a4 a5 a6; sent a1 a2;"
	 " limit 40; limit 2; limit 0; limit 20; limit 15; limit 0; limit 10; limit 30;"
	 " limit 0; finish; all 0");

SCENARIO(a_request_waits_for_one_to_its_node_that_was_resumed,
	 "limit 1; gmps 2; submit a1.1 a1.2 a2; limit 2; submit a1.3; sent a1.1 a2;"
	 " respond a2; sent a1.2; respond a1.2; sent a1.3");

SCENARIO(a_late_request_keeps_its_place_at_the_node_if_the_limit_is_fixed,
	 /* adaptive: the next one is sent, and the first one is not complete */
	 "limit 0; late 4ms; submit a1 a1; sent a1; pass 3ms; sent; pass 2ms; sent a1;"
	 " queued 0; retried 0; done",
	 "limit 1; late 4ms; submit a1.1 a1.2; sent a1.1; pass 50ms; sent; queued 1;"
	 " cancel a1.1; sent a1.2",
	 "limit 1; late 4ms; attempts 2; submit a1g.1 a1g.2; sent a1g.1; pass 50ms;"
	 " sent a1g.1; queued 1; cancel a1g.1; sent a1g.2");

SCENARIO(without_memory_to_queue_a_request_no_limit_holds,
	 "limit 1; submit a1; starve; submit a2 a2; sent a1 a2 a2",
	 "limit 1; submit a1; starve; submit a1; sent a1 a1; submit a1; sent;"
	 " respond a1; sent; respond a1; sent a1; respond a1; done a1*3");

/* --- retransmissions ------------------------------------------------------------ */

SCENARIO(retransmissions_come_first,
	 "submit a1m; respond a1m; sent a1m; smps 1; late 4ms; submit a1m a2m a3m;"
	 " sent a1m; pass 5ms; sent a1m; retried 1",
	 /* they wait for the window */
	 "smps 2; late 4ms; submit a1m; pass 1ms; submit a2m; sent a1m a2m; smps 1; "
	 "pass 9ms; sent a1m;"
	 " pass 4ms; sent a2m",
	 /* and for a place at the node, if they have given theirs up */
	 "limit 0; submit a1.1; sent a1.1; respond a1.1; late 4ms; attempts 2; timeout 50ms;"
	 " submit a1.1; timeout 60000ms;"
	 " submit a1.2; sent a1.1; pass 5ms; sent a1.2; late 60000ms; pass 60ms;"
	 " report a1.1; pass 20ms; sent; retried 0; respond a1.2; sent a1.1; retried 1");

/* One of their nodes may respond. */
SCENARIO(in_a_silence_requests_that_were_never_sent_come_first,
	 "submit a1m a2m a3m a4m; respond a1m a2m a3m a4m; sent a1m a2m a3m a4m; smps 4;"
	 " late 4ms; submit a1m a2m a3m a4m a5m a6m a7m a8m a9m; silent no;"
	 " sent a1m a2m a3m a4m; wait 5ms; pass 30ms; silent yes;"
	 " sent a8m a7m a6m a9m a5m a1m a2m a4m a3m a8m a7m a6m a9m a5m");

SCENARIO(a_response_ends_what_is_queued_to_be_sent_again,
	 "rate 1; late 4ms; submit a1m; sent a1m; pass 20ms; respond a1m; done a1m;"
	 " rate 0; pass 100ms; sent",
	 /* after BUSY it pauses */
	 "rate 1; late 4ms; submit a1m; sent a1m; pass 20ms; late 60000ms; busy a1m; "
	 "done; rate 0; sent;"
	 " pass 20ms; sent a1m");

SCENARIO(a_packet_that_is_refused_leaves_the_window,
	 "gmps 1; refuse; submit a1 a2; sent a1; respond a1; sent a2; done a1");

/* --- BUSY ----------------------------------------------------------------------- */

/* The pause lasts 10 to 15 ms. */
SCENARIO(after_busy_a_request_gives_up_its_place,
	 "limit 1; submit a1; sent a1; busy a1; pass 9ms; sent; pass 10ms; sent a1",
	 /* requests of other flows are sent, those of its own wait */
	 "limit 1; submit a1.1 a1.2 a1v b1; sent a1.1; busy a1.1; sent a1v; respond a1v;"
	 " sent b1; respond b1; sent; pass 20ms; sent a1.1; respond a1.1; sent a1.2",
	 /* also new ones, and although there are places */
	 "limit 10; submit a1.1; sent a1.1; busy a1.1; submit a1.2 b1 a1v a2;"
	 " sent b1 a1v a2; pass 20ms; sent a1.1 a1.2",
	 "limit 10; submit a1.1 a1.2 a1.3; sent a1.1 a1.2 a1.3; busy a1.1 a1.2;"
	 " submit a1.4; respond a1.3; sent; pass 20ms; queued 0",
	 "limit 10; submit a1.1; sent a1.1; busy a1.1; call x1; sent x1",
	 "limit 0; submit a1v a1; sent a1v; busy a1v; sent a1; respond a1; pass 20ms; sent a1v;"
	 " respond a1v; done a1 a1v",
	 /* the blocking call reads BUSY while it is queued for the node */
	 "limit 1; submit a1v; sent a1v; unread-busy a1v; call x1; sent x1",
	 /* it has one place afterwards */
	 "limit 2; submit a1.1; sent a1.1; busy a1.1; pass 20ms; sent a1.1;"
	 " submit a1.2 a1.3; sent a1.2; respond a1.1; sent a1.3",
	 /* if there is no place, it is the next one */
	 "limit 1; submit a1.1; sent a1.1; busy a1.1; submit b1.1 b1.2 a1.2; sent b1.1;"
	 " pass 20ms; sent; respond b1.1; sent a1.1; respond a1.1; sent b1.2;"
	 " respond b1.2; sent a1.2",
	 /* whatever ends the pause */
	 "limit 10; submit a1.1; sent a1.1; busy a1.1; submit a1.2; sent; cancel a1.1;"
	 " sent a1.2; failed ECANCELED a1.1",
	 "limit 10; submit a1.1; sent a1.1; busy a1.1; submit a1.2 b1; sent b1; end a;"
	 " failed ECANCELED a1.1 a1.2; submit b1; sent b1");

/* --- while a packet is written -------------------------------------------------- */

static int cancel_after_busy(const struct device_packet *packet, void *arg)
{
	scenario_written(packet, arg);
	if (scenario.sent_count == 2)
		scenario_run("busy a1m; cancel a1m");
	return 0;
}

/* While the retransmission is being written, BUSY comes for the first packet. */
TEST(a_request_that_is_cancelled_while_it_is_written_has_no_timer)
{
	device_on_write(cancel_after_busy, NULL);
	scenario_run("late 4ms; submit a1m; pass 20ms; sent a1m a1m; failed ECANCELED a1m;"
		     " wakes -1ms; pass 100ms; sent");
}

static int finish_a_burst(const struct device_packet *packet, void *arg)
{
	scenario.calling = false;
	scenario_written(packet, arg);
	if (scenario.requests[0].packet != packet)
		return 0;
	scenario_run("submit a1*3000; respond a1*3000; all 0");
	device_respond(packet, 0, 0, NULL, 0);
	return 0;
}

/* Memory is freed after the burst, and the response to the blocking call is still expected. */
TEST(a_burst_leaves_a_blocking_call_alone)
{
	device_on_write(finish_a_burst, NULL);
	scenario_run("window 4000; limit 4000; call x2");
}

/* --- blocking calls ------------------------------------------------------------- */

#define THREADS 8
#define CALLS   50

static void *call_one_node(void *arg)
{
	uint8_t data[IB_PC_DATA_SZ] = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);
	intptr_t count = 0;

	(void)arg;
	for (int i = 0; i < CALLS; i++)
		count += mad_rpc(port, &rpc, &to, data, data) != NULL;
	return (void *)count;
}

/* A call that gets a place at its destination is woken. */
TEST(blocking_calls_to_one_node_take_turns)
{
	pthread_t threads[THREADS];
	void *count;

	clock_is_real = true;
	device_on_write(echo, NULL);
	for (int adapting = 0; adapting < 2; adapting++) {
		fix_flow(adapting ? 0 : 1);
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, call_one_node, NULL),
					 0);
		for (int i = 0; i < THREADS; i++) {
			assert_int_equal(pthread_join(threads[i], &count), 0);
			assert_int_equal((intptr_t)count, CALLS);
		}
	}
}

/* --- the end of requests -------------------------------------------------------- */

/* In flight, resumed, not looked at yet, and waiting for a node. */
#define EVERYWHERE "limit 1; gmps 2; submit a1*21 a2 a3 a4 a5 a6 a7; limit 10;"

SCENARIO(a_device_that_goes_completes_what_is_queued_anywhere, EVERYWHERE "remove; all ENODEV",
	 "smps 1; submit a1m a2m a3m; remove; all ENODEV",
	 /* what pauses after BUSY, and what waits for that */
	 "limit 1; submit a1 a1 a1v b1; busy a1; remove; all ENODEV",
	 "limit 10; submit a1; busy a1; submit a1 a1v; remove; all ENODEV",
	 "submit a1; busy a1; remove; all ENODEV",
	 /* what is to be sent again, or no rate permits */
	 "rate 1; late 4ms; submit a1m a2 a3; pass 20ms; remove; all ENODEV",
	 "limit 1; submit a1*3; rate 1; busy a1; pass 20ms; remove; all ENODEV");

SCENARIO(an_engine_that_ends_leaves_another_one_s_requests_queued,
	 EVERYWHERE "submit b1 b30; done; end a; failed ECANCELED a1*21 a2 a3 a4 a5 a6 a7;"
		    "finish; all 0");

TEST(after_the_device_has_gone_nothing_is_written)
{
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);
	uint8_t data[IB_PC_DATA_SZ] = {0};

	scenario_run("submit a1; sent a1; remove; all ENODEV");
	assert_fails_null(mad_rpc(port, &rpc, &to, data, data), ENODEV);
	assert_int_equal(
		mad_async_submit(scenario.engines[0], &rpc, &to, NULL, 0, note, NULL, NULL),
		-ENODEV);
	assert_int_equal(device_calls(DEVICE_WRITE), 1);
}

#ifndef NO_CHILDREN

static void expect_child(const char *text)
{
	int status = -1;
	pid_t child = fork();

	if (!child) {
		scenario.in_child = true;
		scenario_process();
		scenario_run(text);
		end_child();
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

TEST(what_is_queued_anywhere_is_not_queued_in_a_child)
{
	scenario_run(EVERYWHERE "sent a1 a2; limit 0; smps 1; submit a9m; sent a9m");
	/* the sizes of windows and limits are its parent's; nothing is in flight */
	expect_child("sent; all ECANCELED; limit 10; gmps 4; submit a1*3 a2*2 a1m a2m;"
		     " sent a1*3 a2 a1m; finish; all 0");
	scenario_run("finish; all 0");
}

TEST(what_pauses_in_the_parent_pauses_no_request_in_a_child)
{
	scenario_run("limit 10; submit a1 a1; sent a1 a1; busy a1; submit a1; queued 1");
	expect_child("all ECANCELED; sent; submit a1 b1; sent a1 b1; finish; all 0");
	scenario_run("sent; finish; all 0");
}

#endif

/* --- at random ------------------------------------------------------------------ */

#define STEPS 400

static const char *random_open_request(void)
{
	const struct scenario_request *request;

	for (int tries = 0; scenario.count && tries < 10; tries++) {
		request = &scenario.requests[(unsigned)random() % scenario.count];
		if (!request->outcome.calls && !request->unread && request->packet &&
		    request == scenario_find(request->name))
			return request->name;
	}
	return NULL;
}

/* A step that is possible now. */
static void random_step(char *step, size_t size)
{
	const char *const events[] = {"respond", "respond", "respond", "unread",
				      "busy",    "report",  "cancel"};
	const char *const settings[] = {"window", "smps", "gmps", "limit"};
	const char *const others[] = {"refuse", "starve", "receive", "call x1", "call x2g"};
	const char *const kinds[] = {"", "", "g", "m", "s", "v"};
	unsigned what = (unsigned)random() % 20;
	const char *name = what > 10 ? random_open_request() : NULL;

	if (name)
		snprintf(step, size, "%s %s", events[random() % 7], name);
	else if (what == 0)
		snprintf(step, size, "%s %ld", settings[random() % 4], random() % 8);
	else if (what == 1)
		snprintf(step, size, "rate %ld", random() % 2 ? 0 : 100 + random() % 2000);
	else if (what == 2)
		snprintf(step, size, "%s", others[random() % 5]);
	else if (what < 5)
		snprintf(step, size, "pass %ldms", random() % 30);
	else
		snprintf(step, size, "submit %c%ld%s*%ld", (int)('a' + random() % 3),
			 1 + random() % 4, kinds[random() % 6], 1 + random() % 3);
}

/* TEST_SEED is the seed. A failure prints all steps. */
TEST(whatever_happens_every_request_completes_once)
{
	static char row[32 * STEPS];
	unsigned length = 0;

	srandom(test_seed());
	scenario_run("timeout 100ms; late 4ms; window 4; limit 2");
	scenario.history = row;
	for (int i = 0; i < STEPS; i++) {
		char *step = row + length;

		random_step(step, 30);
		scenario_run(step);
		scenario.sent_count = 0;
		length += (unsigned)strlen(step);
		row[length++] = ';';
	}
	if (random() % 2)
		scenario_run("end b");
	if (random() % 4 == 0)
		scenario_run("remove");
	scenario_run("rate 0; late 60000ms; window 100; limit 100; finish");
	for (unsigned i = 0; i < scenario.count; i++)
		if (scenario.requests[i].outcome.calls != 1)
			scenario_fail("%s: %d calls", scenario.requests[i].name,
				      scenario.requests[i].outcome.calls);
}
