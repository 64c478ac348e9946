/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * random [COUNT]
 *
 * So many requests (20000) in rounds, each on a fabric of its own with random faults: some
 * threads make blocking calls, some send and receive single MADs, some run engines or have
 * event loops, and one cancels, stops, and changes the limits and the faults. In one round of
 * four the device is removed, or the port closed, in the midst.
 *
 * Each request ends once, in its time, with an error that the faults explain, or with the data
 * of the node that it asked. The statistics add up, nothing is left when the port is closed
 * (machine_stop()), and no thread waits for ever (virtual.h). TEST_SEED=N repeats the run:
 * round i has the seed N + i.
 */

#define OWN_MAIN
#include "async.h"

#include <stdatomic.h>

#define ROUND   500 /* requests */
#define CALLERS 3
#define ENGINES 3
#define NODES   8

struct asked {
	bool is_asked, sa, cancelled;
	unsigned node, calls;
	int error, timeout; /* the latter in milliseconds, of all attempts */
	uint64_t guid, id;
	int64_t from, until;
};

static struct asked requests[ROUND];
static struct mad_async *engines[ENGINES];
static uint64_t guids[NODES + 1];
static atomic_uint taken, wrong_data, at_once;
static atomic_bool calling[ENGINES];
static atomic_bool ending;
static unsigned total = 20000;
static bool corrupts, breaks;
static uint32_t common;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t draw(uint32_t *state, uint32_t below)
{
	return next_random(state, below);
}

static const char *random_rule(uint32_t *state)
{
	static const char *const rules[] = {
		"loss 3%",           "duplicate 5%",       "reorder 20% 3ms",
		"slow 40ms on n1",   "silent on n2",       "busy 40% on n3",
		"slow 300us",        "service 50us on n4", "buffer 2 on n4",
		"redirect n6 on n5", "hop-latency 5us",    "clear",
		"reboot 30ms on n7"};

	return rules[draw(state, sizeof(rules) / sizeof(*rules))];
}

/* --- requests ------------------------------------------------------------------- */

/* The next one; NULL: the round has no more. */
static struct asked *take(void)
{
	struct asked *asked;

	pthread_mutex_lock(&lock);
	asked = taken < ROUND && !ending ? &requests[taken++] : NULL;
	pthread_mutex_unlock(&lock);
	return asked;
}

static ib_rpc_t choose(struct asked *asked, uint32_t *state, ib_portid_t *to)
{
	enum kind kind = (enum kind)draw(state, KINDS);
	ib_rpc_t rpc = rpc_of(kind);

	asked->sa = kind == SA_GET || kind == SA_TABLE;
	asked->node = 1 + draw(state, NODES);
	rpc.timeout = draw(state, 3) ? 0 : 10 + (int)draw(state, 100);
	*to = (ib_portid_t){.lid = asked->sa ? machine_lid("sm") : (int)leaf(asked->node)};
	if (rpc.mgtclass != IB_SMI_CLASS) {
		to->qp = 1;
		to->qkey = IB_DEFAULT_QP1_QKEY;
	}
	if (kind == SMP_GET)
		asked->guid = guids[asked->node];
	asked->from = machine_us();
	asked->is_asked = true;
	return rpc;
}

static void finish(struct asked *asked, int error, const uint8_t *data, size_t size)
{
	asked->calls++;
	asked->error = error;
	asked->until = machine_us();
	if (!error && asked->guid && !corrupts)
		wrong_data += size < IB_SMP_DATA_SIZE || guid_of(data) != asked->guid;
}

static void called(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct asked *asked = arg;
	unsigned number = 0;
	ib_portid_t to;
	ib_rpc_t rpc;

	/* one at a time */
	while (engines[number] != engine)
		number++;
	at_once += atomic_exchange(&calling[number], true);
	if (asked->node == 1)
		machine_pass(100);
	finish(asked, -reply->error, reply->data, reply->data_size);
	/* a callback may submit the next one */
	pthread_mutex_lock(&lock);
	common = common * 1664525 + 1013904223;
	asked = common >> 30 || taken == ROUND || ending ? NULL : &requests[taken++];
	if (asked)
		rpc = choose(asked, &common, &to);
	pthread_mutex_unlock(&lock);
	if (asked && mad_async_submit(engine, &rpc, &to, NULL, 0, called, asked, &asked->id))
		finish(asked, ECANCELED, NULL, 0);
	calling[number] = false;
}

/* --- threads -------------------------------------------------------------------- */

static void *make_calls(void *arg)
{
	uint32_t state = (uint32_t)(uintptr_t)arg;
	uint8_t data[MACHINE_MAD];
	struct mad_message message;
	struct asked *asked;

	while ((asked = take())) {
		ib_portid_t to;
		ib_rpc_t rpc = choose(asked, &state, &to);

		memset(data, 0, sizeof(data));
		if (draw(&state, 2)) {
			bool good = mad_rpc(port, &rpc, &to, data, data) != NULL;

			finish(asked, good ? 0 : errno, data, sizeof(data));
		} else {
			int error = mad_rpc_message(port, &rpc, &to, NULL, 0, &message);

			finish(asked, -error, error ? NULL : message.mad + rpc.dataoffs,
			       error ? 0 : message.length - (size_t)rpc.dataoffs);
			mad_message_free(&message);
		}
		machine_pass(draw(&state, 3) * 100);
	}
	return NULL;
}

static void *receive(void *arg)
{
	uint32_t state = (uint32_t)(uintptr_t)arg;
	void *buffer = mad_alloc();

	while (!ending) {
		ib_portid_t to = {.lid = (int)leaf(1 + draw(&state, NODES))};
		ib_rpc_t rpc = rpc_of(SMP_GET);

		rpc.trid = 0x80000000u | draw(&state, 1 << 24);
		rpc.timeout = 20;
		if (draw(&state, 2))
			mad_send_via(&rpc, &to, NULL, NULL, port);
		if (!mad_receive_via(buffer, (int)draw(&state, 20), port) &&
		    (errno == ENODEV || errno == ECANCELED))
			break;
		machine_pass(1000);
	}
	mad_free(buffer);
	return NULL;
}

static void *submit_all(void *arg)
{
	uint32_t state = (uint32_t)(uintptr_t)arg;
	struct asked *asked;

	while ((asked = take())) {
		unsigned engine = draw(&state, ENGINES);
		ib_portid_t to;
		ib_rpc_t rpc = choose(asked, &state, &to);
		int ret = mad_async_submit(engines[engine], &rpc, &to, NULL, 0, called, asked,
					   &asked->id);

		if (ret)
			finish(asked, -ret, NULL, 0);
		else if (!draw(&state, 8))
			asked->cancelled = !mad_async_cancel(engines[engine], asked->id);
		machine_pass(draw(&state, 4) * 50);
	}
	return NULL;
}

static void *run_engine(void *engine)
{
	struct pollfd fd = {.fd = mad_async_poll_fd(engine), .events = POLLIN};
	int ret;

	do {
		ret = mad_async_wait(engine, engine == engines[0] ? 7 : 0);
		if (engine == engines[1])
			poll(&fd, 1, 5);
		ret = engine == engines[1] ? mad_async_process(engine) : ret;
		machine_pass(200);
	} while (!ending && ret != -ENODEV && ret != -ECANCELED);
	return NULL;
}

/* --- rounds --------------------------------------------------------------------- */

static bool is_possible(const struct asked *asked, int error)
{
	if (error == ECANCELED)
		return asked->cancelled || breaks;
	return !error || error == ETIMEDOUT || error == EIO || error == EHOSTUNREACH ||
	       error == ELOOP || error == EOPNOTSUPP || (error == ENODEV && breaks) ||
	       (error == EBADMSG && corrupts);
}

static void check(void)
{
	uint64_t submitted = 0, completed = 0;

	for (int i = 0; i < ENGINES; i++) {
		struct mad_async_stats stats = stats_of(engines[i]);

		submitted += stats.submitted;
		completed += stats.completed;
		assert_int_equal(stats.in_flight + stats.queued, 0);
		assert_true(stats.sent >= stats.retried);
		assert_true(stats.timed_out <= stats.completed);
	}
	assert_int_equal(submitted, completed);
	assert_int_equal(wrong_data + at_once, 0);
	for (unsigned i = 0; i < taken; i++) {
		if (requests[i].calls != 1 || !is_possible(&requests[i], requests[i].error))
			fail_msg("request %u: %u calls, error %d", i, requests[i].calls,
				 requests[i].error);
		/* three attempts and those for a path; the queue; the pauses of BUSY */
		assert_in_range(requests[i].until - requests[i].from, 0, 30 * SECOND);
	}
}

static void run_round(uint32_t seed)
{
	uint32_t state = seed * 2654435761u + 1;
	pthread_t threads[2 * CALLERS + ENGINES + 1];
	unsigned count = 0, fate;

	memset(requests, 0, sizeof(requests));
	taken = 0;
	ending = breaks = false;
	common = state;
	machine_start("star:8", NULL);
	if (draw(&state, 8) == 0)
		machine_high_handles();
	assert_int_equal(mad_port_open(NULL, 0, &port), 0);
	for (unsigned i = 1; i <= NODES; i++) {
		char name[8];

		snprintf(name, sizeof(name), "n%u", i);
		guids[i] = machine_guid(name);
	}
	mad_rpc_set_timeout(port, 20 + (int)draw(&state, 100));
	corrupts = draw(&state, 4) == 0;
	if (corrupts)
		machine_rule("corrupt 2%%");
	fate = draw(&state, 8);
	breaks = fate < 2;
	for (int i = 0; i < ENGINES; i++)
		engines[i] = mad_async_create(port);
	for (unsigned i = 0; i < CALLERS; i++) {
		threads[count++] = start(make_calls, (void *)(uintptr_t)(seed + i));
		threads[count++] = start(submit_all, (void *)(uintptr_t)(seed + 100 + i));
	}
	for (int i = 0; i < ENGINES; i++)
		threads[count++] = start(run_engine, engines[i]);
	threads[count++] = start(receive, (void *)(uintptr_t)(seed + 200));
	while (taken < ROUND && !(breaks && taken > ROUND / 2)) {
		machine_rule("%s", random_rule(&state));
		mad_port_set(port, MAD_PORT_SMP_WINDOW, draw(&state, 5));
		mad_port_set(port, MAD_PORT_GMP_WINDOW, draw(&state, 5));
		mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, draw(&state, 4));
		mad_port_set(port, MAD_PORT_RATE, draw(&state, 3) * 4000);
		if (draw(&state, 4) == 0)
			machine_slow_call(MACHINE_WRITE, draw(&state, 3) * 300);
		if (draw(&state, 4) == 0)
			machine_slow_call(MACHINE_POLL, draw(&state, 3) * 2000);
		if (draw(&state, 4) == 0)
			machine_fail(MACHINE_POLL, 1, EINTR);
		mad_async_stop(engines[draw(&state, ENGINES)]);
		machine_pass(draw(&state, 30) * MS);
	}
	if (breaks)
		ending = true;
	if (fate == 0)
		machine_rule("remove on host");
	if (fate == 1)
		mad_rpc_close_port(port);
	machine_slow_call(MACHINE_WRITE, 0);
	machine_slow_call(MACHINE_POLL, 0);
	/* the calls and the submissions; then the engines */
	for (int i = 0; i < 2 * CALLERS; i++)
		join(threads[i]);
	for (int i = 0; i < ENGINES; i++)
		for (int ret = -EINTR; ret == -EINTR || ret == -ETIMEDOUT;)
			ret = mad_async_wait(engines[i], 60000);
	ending = true;
	for (unsigned i = 2 * CALLERS; i < count; i++)
		join(threads[i]);
	check();
	for (int i = 0; i < ENGINES; i++)
		mad_async_free(engines[i]);
	if (fate != 1)
		mad_rpc_close_port(port);
	machine_stop();
}

PLAIN_TEST(each_request_ends_once_and_in_time_whatever_happens)
{
	uint32_t seed = test_seed();
	unsigned done = 0;

	for (uint32_t round = 0; done < total; round++) {
		run_round(seed + round);
		done += taken;
	}
}

int main(int argc, char **argv)
{
	if (argc > 1)
		total = (unsigned)strtoul(argv[1], NULL, 0);
	return run_all_tests();
}
