/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * All calls in parallel: threads make every call at random on two engines of one port, while
 * the engines are destroyed or the port is closed. Each submitted request is called back once.
 * Sanitizers check the memory.
 */

#include "event_loop.h"
#include "gate.h"
#include "test.h"

#include <infiniband/umad_ext.h>

#define ENGINES 2
#define CALLERS 6
#define ROUNDS  50
#define CALLS   200 /* in a round */

static struct round {
	struct mad_async *engines[ENGINES];
	atomic_bool ending[ENGINES]; /* no call on this engine begins any more */
	atomic_bool end;             /* no call at all begins any more */
	atomic_bool loops_end;
	_Atomic uint64_t latest_id[ENGINES];
	atomic_uint submitted, called_back, calls;
} round_;

/* --- the device --------------------------------------------------------------------------- */

static int respond_somehow(const struct device_packet *packet, void *arg)
{
	atomic_uint *count = arg;
	unsigned die = (*count)++ * 2654435761u >> 16 & 63;

	if (die < 6)
		return 0; /* the packet is lost */
	device_delay(die < 16 ? die * 100 : 0);
	device_respond(packet, die == 63 ? IB_MAD_STS_BUSY : 0, 0, NULL, 0);
	if (die == 62)
		device_time_out(packet);
	return die == 61 ? -ENOMEM : 0;
}

/* --- the callers ----------------------------------------------------------------------------
 */

struct caller {
	pthread_t thread;
	uint32_t random;
	bool receiver;
};

static unsigned choose(struct caller *caller, unsigned count)
{
	caller->random = caller->random * 1664525 + 1013904223;
	return (caller->random >> 8) % count;
}

static void submit_one(unsigned engine, unsigned number);

/* Callbacks make calls, too. */
static void call_back(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	unsigned engine = async == round_.engines[1], number = (unsigned)(uintptr_t)arg;
	struct mad_async_stats stats;

	round_.called_back++;
	if (reply->error == -ECANCELED)
		return;
	if (number % 5 == 0)
		submit_one(engine, number / 5);
	if (number % 7 == 0)
		mad_async_cancel(async, round_.latest_id[engine]);
	if (number % 11 == 0)
		mad_async_process(async);
	if (number % 13 == 0)
		mad_async_get_stats(async, &stats, sizeof(stats));
}

static void submit_one(unsigned engine, unsigned number)
{
	ib_rpc_t rpc = number & 1 ? get_request() : set_request();
	ib_portid_t to = to_lid(1 + (int)(number % 5));
	uint64_t id;

	if (mad_async_submit(round_.engines[engine], &rpc, &to, NULL, 0, call_back,
			     (void *)(uintptr_t)number, &id))
		return;
	round_.latest_id[engine] = id;
	round_.submitted++;
}

static void ask(unsigned number)
{
	ib_rpc_t rpc = number & 1 ? get_request() : set_request();
	ib_portid_t to = to_lid(1 + (int)(number % 5));
	uint8_t data[IB_MAD_SIZE] = {0};
	struct mad_message message;

	if (number & 2) {
		mad_rpc(port, &rpc, &to, data, data);
	} else {
		mad_rpc_message(port, &rpc, &to, data, 4, &message);
		mad_message_free(&message);
	}
}

static void receive(unsigned number)
{
	_Alignas(8) uint8_t umad[64 + IB_MAD_SIZE];

	if (number & 1)
		mad_free(mad_receive_via(NULL, (int)(number % 3), port));
	else
		mad_receive_via(umad, (int)(number % 3), port);
}

static void set_options(unsigned number)
{
	mad_port_set(port, MAD_PORT_SMP_WINDOW, number % 4 * 8);
	mad_port_set(port, MAD_PORT_GMP_WINDOW, number % 3);
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1 + number % 16);
	mad_port_set(port, MAD_PORT_MAX_RESPONSE, 256 + number % 1000);
}

static void call_port(unsigned kind, unsigned number)
{
	if (kind == 0)
		receive(number);
	else if (kind == 1)
		ask(number);
	else
		set_options(number);
}

static void call_engine(unsigned engine, unsigned kind, unsigned number)
{
	struct mad_async *async = round_.engines[engine];
	struct mad_async_stats stats;

	switch (kind) {
	case 0:
		mad_async_cancel(async, round_.latest_id[engine]);
		return;
	case 1:
		mad_async_wait(async, -1);
		return;
	case 2:
	case 3:
		mad_async_process(async);
		return;
	case 4:
		mad_async_get_stats(async, &stats, sizeof(stats));
		return;
	case 5:
		mad_rpc_portid(port);
		return;
	case 6:
		mad_async_poll_fd(async);
		return;
	case 7:
		mad_async_wait(async, (int)(number % 4));
		return;
	case 8:
		mad_async_stop(async);
		return;
	case 9:
		/* rarely: otherwise other calls would find the engine empty most of the time */
		if (number % 8 == 0)
			mad_async_cancel(async, MAD_ASYNC_ALL);
		return;
	default:
		submit_one(engine, number);
	}
}

static void *call_all(void *arg)
{
	struct caller *caller = arg;

	while (!round_.end) {
		unsigned engine = choose(caller, ENGINES), kind = choose(caller, 20);
		unsigned number = choose(caller, 1u << 16);

		if (kind < 3)
			call_port(kind, number);
		else if (!round_.ending[engine])
			call_engine(engine, kind - 3, number);
		else
			sched_yield();
		round_.calls++;
	}
	return NULL;
}

/* --- event loops
 * ------------------------------------------------------------------------------ */

static void *loop(void *arg)
{
	struct loop *loop = arg;

	/* stopped from outside: the engine is not the only source of events */
	while (!round_.loops_end) {
		poll(&loop->fd, 1, 5);
		mad_async_process(loop->async);
	}
	return NULL;
}

/* --- rounds
 * ------------------------------------------------------------------------------------ */

static void wait_for_calls(unsigned count)
{
	while (round_.calls < count)
		sleep_ms(1);
}

static void begin(struct loop *loops, struct caller *callers, unsigned number)
{
	memset(&round_, 0, sizeof(round_));
	for (int i = 0; i < ENGINES; i++) {
		round_.engines[i] = mad_async_create(port);
		assert_non_null(round_.engines[i]);
		loop_init(&loops[i], round_.engines[i]);
		assert_int_equal(pthread_create(&loops[i].thread, NULL, loop, &loops[i]), 0);
	}
	for (unsigned i = 0; i < CALLERS; i++) {
		callers[i].random = number * 1000 + i;
		assert_int_equal(
			pthread_create(&callers[i].thread, NULL, call_all, &callers[i]), 0);
	}
}

static void end(struct loop *loops, struct caller *callers, bool by_closing)
{
	round_.loops_end = true;
	for (int i = 0; i < ENGINES; i++)
		loop_join(&loops[i]);
	wait_for_calls(CALLS);
	if (by_closing) {
		round_.end = true;
		mad_rpc_close_port(port);
	}
	for (int i = 0; i < ENGINES && !by_closing; i++) {
		round_.ending[i] = true;
		mad_async_free(round_.engines[i]);
		wait_for_calls(round_.calls + CALLS / 10);
	}
	round_.end = true;
	for (int i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
	for (int i = 0; i < ENGINES && by_closing; i++)
		mad_async_free(round_.engines[i]);
	assert_int_equal(round_.called_back, round_.submitted);
}

static int quiet_setup(void)
{
	static atomic_uint count;

	if (port_setup())
		return -1;
	device_forget_packets();
	device_on_write(respond_somehow, &count);
	mad_rpc_set_timeout(port, 5);
	mad_rpc_set_retries(port, 2);
	set_late_after(QUICK);
	return 0;
}

FIXTURE(quiet_setup, port_teardown);

static void do_rounds(bool by_closing)
{
	struct caller callers[CALLERS];
	struct loop loops[ENGINES];

	for (unsigned i = 0; i < ROUNDS; i++) {
		begin(loops, callers, i);
		wait_for_calls(CALLS / 2);
		end(loops, callers, by_closing);
		if (by_closing) {
			assert_int_equal(device_teardown(), 0);
			assert_int_equal(quiet_setup(), 0);
		}
	}
}

TEST(engines_are_destroyed_while_others_are_in_their_calls)
{
	do_rounds(false);
}

TEST(a_port_is_closed_while_others_are_in_its_calls)
{
	do_rounds(true);
}

/* --- a call that is held up ----------------------------------------------------- */

static sem_t in_callback, leave_callback, in_read, leave_read;
static atomic_bool hold_reader, destroyed;

/* Blocking calls log their failures, which are expected. */
static void hold_up_or_ignore(enum umad_log_level level, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	if (hold_reader && strstr(text, "receives")) {
		hold_reader = false;
		sem_post(&in_read);
		wait_for(&leave_read);
	}
}

static void stay_in_callback(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	note(async, reply, arg);
	sem_post(&in_callback);
	wait_for(&leave_callback);
}

static void *process(void *arg)
{
	mad_async_process(arg);
	return NULL;
}

static void *destroy(void *arg)
{
	mad_async_free(arg);
	destroyed = true;
	return NULL;
}

/* One thread calls back while another thread reads and keeps the engine for longer. */
PORT_TEST(an_engine_lives_until_the_last_call_has_returned)
{
	struct mad_async *async = mad_async_create(port);
	pthread_t caller, reader, destroyer;
	struct outcome outcome = {0};

	hold_reader = destroyed = false;
	sem_init(&in_callback, 0, 0);
	sem_init(&leave_callback, 0, 0);
	sem_init(&in_read, 0, 0);
	sem_init(&leave_read, 0, 0);
	umad_debug(UMAD_LOG_DEBUG);
	submit_with(async, set_request(), 1, stay_in_callback, &outcome);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_int_equal(pthread_create(&caller, NULL, process, async), 0);
	wait_for(&in_callback);
	hold_reader = true;
	device_queue(device_fd(), &device_packet(0)->header, device_packet(0)->mad,
		     IB_MAD_SIZE);
	assert_int_equal(pthread_create(&reader, NULL, process, async), 0);
	wait_for(&in_read);
	assert_int_equal(pthread_create(&destroyer, NULL, destroy, async), 0);
	sem_post(&leave_callback);
	assert_int_equal(pthread_join(caller, NULL), 0);
	sleep_ms(50);
	assert_false(destroyed);
	sem_post(&leave_read);
	assert_int_equal(pthread_join(reader, NULL), 0);
	assert_int_equal(pthread_join(destroyer, NULL), 0);
	umad_debug(0);
	sem_destroy(&in_callback);
	sem_destroy(&leave_callback);
	sem_destroy(&in_read);
	sem_destroy(&leave_read);
}

static int set_hook(void)
{
	umad_set_log_hook(hold_up_or_ignore, NULL);
	return 0;
}

GROUP(set_hook, NULL);
