/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Threads on one port: each gets its own messages; no thread waits without a reason or for
 * ever.
 */

#include "event_loop.h"
#include "gate.h"
#include "test.h"

#include "port_state.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8
#define ROUNDS  200

static int setup(void)
{
	return port_setup();
}

FIXTURE(setup, port_teardown);

/* --- threads -------------------------------------------------------------------- */

struct asker {
	pthread_t thread;
	ib_rpc_t rpc;
	int lid;
	int rounds;
	int good;  /* rounds with the right response */
	int error; /* of the last other round */
};

/* Sends a request, and checks that the response belongs to it. */
static void *ask(void *arg)
{
	struct asker *asker = arg;
	uint8_t data[IB_MAD_SIZE] = {0};
	ib_portid_t to = to_lid(asker->lid);
	ib_rpc_t rpc;

	for (int i = 0; i < asker->rounds; i++) {
		rpc = asker->rpc;
		data[0] = (uint8_t)asker->lid;
		data[1] = (uint8_t)i;
		if (!mad_rpc(port, &rpc, &to, data, data))
			asker->error = errno;
		else
			asker->good += data[0] == (uint8_t)asker->lid && data[1] == (uint8_t)i;
	}
	return NULL;
}

static void start(struct asker *asker, ib_rpc_t rpc, int lid, int rounds)
{
	*asker = (struct asker){.rpc = rpc, .lid = lid, .rounds = rounds};
	assert_int_equal(pthread_create(&asker->thread, NULL, ask, asker), 0);
}

static void join(pthread_t thread)
{
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* One request of a thread that waits, after the request was sent. */
static void start_waiting(struct asker *asker, ib_rpc_t rpc, int lid)
{
	unsigned written = device_written();

	start(asker, rpc, lid, 1);
	assert_true(device_wait_written(written + 1, LONG_MS));
}

static void expect_good(struct asker *asker)
{
	join(asker->thread);
	assert_int_equal(asker->error, 0);
	assert_int_equal(asker->good, asker->rounds);
}

static void expect_error(struct asker *asker, int error)
{
	join(asker->thread);
	assert_int_equal(asker->good, 0);
	assert_int_equal(asker->error, error);
}

/* A thread that waits for requests; it leads if it came first. */
struct receiver {
	pthread_t thread;
	int timeout;
	int error;
	int received;
};

static void *receive(void *arg)
{
	struct receiver *receiver = arg;
	void *umad;

	while ((umad = mad_receive_via(NULL, receiver->timeout, port))) {
		receiver->received++;
		mad_free(umad);
	}
	receiver->error = errno;
	return NULL;
}

static void start_receiving(struct receiver *receiver, int timeout)
{
	unsigned polls = device_calls(DEVICE_POLL);

	*receiver = (struct receiver){.timeout = timeout};
	assert_int_equal(pthread_create(&receiver->thread, NULL, receive, receiver), 0);
	wait_for_poll(polls);
}

/* Waits until so many calls are in progress. */
static void wait_for_users(unsigned count)
{
	do
		sleep_ms(1);
	while (calls_in_progress(port) < count);
}

/* --- blocking calls ------------------------------------------------------------- */

/* Some at once, some later, so that they overtake each other. */
static int echo_sometime(const struct device_packet *packet, void *arg)
{
	static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
	atomic_uint *count = arg;

	pthread_mutex_lock(&one_at_a_time);
	device_delay((*count)++ * 7919 % 1500);
	device_respond(packet, 0, 0, NULL, 0);
	pthread_mutex_unlock(&one_at_a_time);
	return 0;
}

TEST(responses_may_overtake_each_other)
{
	struct asker askers[THREADS];
	atomic_uint count = 0;

	device_on_write(echo_sometime, &count);
	for (int i = 0; i < THREADS; i++)
		start(&askers[i], i & 1 ? set_request() : get_request(), i + 1, ROUNDS);
	for (int i = 0; i < THREADS; i++)
		expect_good(&askers[i]);
}

TEST(responses_may_come_in_reverse)
{
	struct asker askers[THREADS];

	for (int i = 0; i < THREADS; i++)
		start_waiting(&askers[i], set_request(), i + 1);
	for (unsigned i = THREADS; i-- > 0;)
		device_respond(device_packet(i), 0, 0, NULL, 0);
	for (int i = 0; i < THREADS; i++)
		expect_good(&askers[i]);
}

/* The thread that reads for the others returns when it has its own response. */
TEST(who_leads_leaves_the_lead_to_another_one)
{
	struct asker askers[THREADS];

	for (int i = 0; i < THREADS; i++)
		start_waiting(&askers[i], set_request(), i + 1);
	for (unsigned i = 0; i < THREADS; i++) {
		device_respond(device_packet(i), 0, 0, NULL, 0);
		expect_good(&askers[i]);
	}
}

TEST(who_leads_may_time_out)
{
	ib_rpc_t rpc = set_request();
	struct asker leader, follower;

	mad_rpc_set_retries(port, 1);
	rpc.timeout = 60;
	start_waiting(&leader, rpc, 1);
	start_waiting(&follower, set_request(), 2);
	expect_error(&leader, ETIMEDOUT);
	device_respond(device_packet(1), 0, 0, NULL, 0);
	expect_good(&follower);
}

TEST(who_follows_times_out_by_himself)
{
	ib_rpc_t rpc = set_request();
	struct asker leader, follower;
	int64_t begin = now_ms();

	mad_rpc_set_retries(port, 1);
	start_waiting(&leader, set_request(), 1);
	rpc.timeout = 60;
	start_waiting(&follower, rpc, 2);
	expect_error(&follower, ETIMEDOUT);
	assert_true(now_ms() - begin >= 60);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	expect_good(&leader);
}

/* Two threads may have chosen the same ID; with two classes this is no error. */
TEST(the_same_id_in_two_classes_is_two_requests)
{
	ib_rpc_t get = get_request(), set = set_request(); /* both are sent once */
	struct asker smp, gmp;

	get.trid = set.trid = 0x55;
	for (int order = 0; order < 2; order++) {
		unsigned first = device_written();

		start_waiting(&smp, order ? get : set, 1);
		start_waiting(&gmp, order ? set : get, 2);
		device_respond(device_packet(first), 0, 0, NULL, 0);
		expect_good(&smp);
		device_respond(device_packet(first + 1), 0, 0, NULL, 0);
		expect_good(&gmp);
	}
}

static void *flood(void *arg)
{
	struct ib_user_mad header = {.agent_id = 0};
	uint8_t mad[IB_MAD_SIZE] = {1, IB_SMI_CLASS, 1, IB_MAD_METHOD_GET};
	atomic_bool *end = arg;
	unsigned queued;

	/* there is always another message to read, and never too many */
	for (queued = device_calls(DEVICE_READ); !*end;)
		if (queued < device_calls(DEVICE_READ) + 100) {
			device_queue(device_fd(), &header, mad, sizeof(mad));
			queued++;
		} else {
			sched_yield();
		}
	return NULL;
}

/* However many messages others receive. */
TEST(a_flood_of_requests_ends_no_deadline)
{
	atomic_bool end = false;
	ib_rpc_t rpc = set_request();
	struct asker asker;
	pthread_t thread;

	mad_rpc_set_retries(port, 2);
	rpc.timeout = 30;
	pthread_create(&thread, NULL, flood, &end);
	start(&asker, rpc, 1, 1);
	expect_error(&asker, ETIMEDOUT);
	end = true;
	join(thread);
}

/* --- no lock -------------------------------------------------------------------- */

static int held_up_lid; /* requests to this LID block in write() */

static int gate_setup(void)
{
	held_up_lid = 99;
	gate_init();
	return setup();
}

#define GATE_TEST(name) TEST_WITH(name, gate_setup, gate_teardown)

static int hold_up(const struct device_packet *packet, void *arg)
{
	(void)arg;
	if (be16toh(packet->header.addr.lid) == held_up_lid)
		wait_at_gate();
	device_respond(packet, 0, 0, NULL, 0);
	return 0;
}

GATE_TEST(while_one_thread_writes_others_go_on)
{
	struct asker slow, quick;

	device_on_write(hold_up, NULL);
	start(&slow, set_request(), held_up_lid, 1);
	wait_for(&gate.entered);
	start(&quick, set_request(), 1, ROUNDS);
	expect_good(&quick);
	sem_post(&gate.leave);
	expect_good(&slow);
}

GATE_TEST(while_one_thread_calls_back_others_go_on)
{
	struct mad_async *async = mad_async_create(port);
	struct outcome outcomes[3] = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);
	struct asker asker;
	pthread_t runner;

	device_on_write(echo, NULL);
	mad_async_submit(async, &rpc, &to, NULL, 0, call_back_at_gate, &outcomes[0], NULL);
	runner = start_running(async);
	wait_for(&gate.entered);
	start(&asker, get_request(), 1, ROUNDS);
	expect_good(&asker);
	submit(async, get_request(), 2, &outcomes[1], NULL);
	/* this thread reads the device, and leaves the callbacks to the other */
	assert_int_equal(mad_async_process(async), 0);
	assert_true(timeout_ms_of(async) != 0);
	submit(async, get_request(), 3, &outcomes[2], NULL);
	sem_post(&gate.leave);
	assert_int_equal(joined_count(runner), 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(outcomes[i].calls, 1);
	mad_async_free(async);
}

/* --- responses that arrive before write() returns ------------------------------- */

/* Responds, and returns to the writer only after another thread has read the response. */
static int respond_before_return(const struct device_packet *packet, void *arg)
{
	unsigned reads = device_calls(DEVICE_READ);
	device_write_fn *response = (device_write_fn *)arg;

	response(packet, NULL);
	while (device_calls(DEVICE_READ) < reads + 2)
		sleep_ms(1);
	sleep_ms(5); /* the other thread handles it */
	return 0;
}

/* Writes requests while another thread reads. */
static void read_aside(struct receiver *receiver, device_write_fn *response)
{
	start_receiving(receiver, -1);
	device_on_write(respond_before_return, (void *)response);
}

static void stop_receiving(struct receiver *receiver)
{
	struct ib_user_mad header = {.agent_id = 0};
	uint8_t mad[IB_MAD_SIZE] = {1, IB_SMI_CLASS, 1, IB_MAD_METHOD_GET};

	receiver->timeout = 0;
	device_queue(device_fd(), &header, mad, sizeof(mad));
	join(receiver->thread);
	assert_int_equal(receiver->error, EAGAIN);
}

TEST(a_response_may_come_before_the_request_is_written)
{
	struct receiver receiver;
	struct asker asker;

	read_aside(&receiver, echo);
	start(&asker, get_request(), 1, 3);
	expect_good(&asker);
	start(&asker, set_request(), 1, 3);
	expect_good(&asker);
	stop_receiving(&receiver);
}

struct canceller {
	pthread_t thread;
	struct mad_async *async;
	struct outcome outcome;
	uint64_t id;
};

static void *submit_slowly(void *arg)
{
	struct canceller *canceller = arg;
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(held_up_lid);

	if (mad_async_submit(canceller->async, &rpc, &to, NULL, 0, note, &canceller->outcome,
			     &canceller->id))
		canceller->outcome.calls = -1;
	return NULL;
}

GATE_TEST(an_engine_s_end_waits_for_what_is_being_written)
{
	struct canceller canceller = {.async = mad_async_create(port)};
	pthread_t runner;

	device_on_write(hold_up, NULL);
	pthread_create(&canceller.thread, NULL, submit_slowly, &canceller);
	wait_for(&gate.entered);
	runner = start_running(canceller.async);
	sleep_ms(20);
	assert_int_equal(mad_async_cancel(canceller.async, canceller.id), 0);
	assert_int_equal(canceller.outcome.calls, 0); /* its buffer is in use */
	sem_post(&gate.leave);
	assert_int_equal(joined_count(runner), 1);
	join(canceller.thread);
	assert_int_equal(canceller.outcome.calls, 1);
	assert_int_equal(canceller.outcome.error, -ECANCELED);

	pthread_create(&canceller.thread, NULL, submit_slowly, &canceller);
	wait_for(&gate.entered);
	sem_post(&gate.leave);
	mad_async_free(canceller.async);
	join(canceller.thread);
	assert_int_equal(canceller.outcome.calls, 2);
}

/* --- closing a port ------------------------------------------------------------- */

struct crowd {
	struct asker askers[THREADS];
	struct receiver receivers[2];
	struct mad_async *async;
	struct outcome outcomes[THREADS];
	pthread_t runner;
};

static void gather(struct crowd *crowd, bool receiver_leads)
{
	memset(crowd, 0, sizeof(*crowd));
	if (receiver_leads)
		start_receiving(&crowd->receivers[0], -1);
	for (int i = 0; i < THREADS; i++)
		start_waiting(&crowd->askers[i], i & 1 ? set_request() : get_request(), i + 1);
	crowd->async = mad_async_create(port);
	for (int i = 0; i < THREADS; i++)
		submit(crowd->async, i & 1 ? set_request() : get_request(), i + 1,
		       &crowd->outcomes[i], NULL);
	crowd->runner = start_running(crowd->async);
	if (!receiver_leads)
		pthread_create(&crowd->receivers[0].thread, NULL, receive,
			       memset(&crowd->receivers[0], 0xff, sizeof(struct receiver)));
	crowd->receivers[1].timeout = LONG_MS;
	pthread_create(&crowd->receivers[1].thread, NULL, receive, &crowd->receivers[1]);
	wait_for_users(THREADS + 3);
}

static void expect_crowd(struct crowd *crowd, int error)
{
	for (int i = 0; i < THREADS; i++)
		expect_error(&crowd->askers[i], error);
	for (int i = 0; i < 2; i++) {
		join(crowd->receivers[i].thread);
		assert_int_equal(crowd->receivers[i].error, error);
	}
	assert_int_equal(joined_count(crowd->runner), THREADS);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(crowd->outcomes[i].calls, 1);
		assert_int_equal(crowd->outcomes[i].error, -error);
	}
	mad_async_free(crowd->async);
}

TEST(a_port_that_is_closed_lets_everybody_go)
{
	struct crowd crowd;

	for (int i = 0; i < 2; i++) {
		gather(&crowd, i);
		mad_rpc_close_port(port);
		expect_crowd(&crowd, ECANCELED);
		assert_int_equal(device_teardown(), 0);
		assert_int_equal(setup(), 0);
	}
}

TEST(a_device_that_goes_lets_everybody_go)
{
	struct crowd crowd;

	for (int i = 0; i < 2; i++) {
		gather(&crowd, i);
		device_remove();
		expect_crowd(&crowd, ENODEV);
		assert_int_equal(port_teardown(), 0);
		assert_int_equal(setup(), 0);
	}
}

/* --- engines and threads -------------------------------------------------------- */

#define REQUESTS 500

struct submitter {
	pthread_t thread;
	struct mad_async *async;
	struct outcome *outcomes;
	int failures;
};

static void *submit_all(void *arg)
{
	struct submitter *submitter = arg;

	for (int i = 0; i < REQUESTS; i++) {
		ib_rpc_t rpc = i & 1 ? set_request() : get_request();
		ib_portid_t to = to_lid(1 + i % 50);
		uint8_t data[4] = {(uint8_t)(1 + i % 50)};

		submitter->failures +=
			mad_async_submit(submitter->async, &rpc, &to, data, sizeof(data), note,
					 &submitter->outcomes[i], NULL) != 0;
	}
	return NULL;
}

static void expect_responses(const struct outcome *outcomes, int count)
{
	for (int i = 0; i < count; i++) {
		assert_int_equal(outcomes[i].calls, 1);
		assert_int_equal(outcomes[i].error, 0);
		assert_int_equal(outcomes[i].lid_byte, 1 + i % REQUESTS % 50);
	}
}

static void start_submitting(struct submitter *submitters, struct mad_async *async,
			     struct outcome *outcomes)
{
	for (int i = 0; i < THREADS; i++) {
		submitters[i] =
			(struct submitter){.async = async, .outcomes = outcomes + i * REQUESTS};
		assert_int_equal(
			pthread_create(&submitters[i].thread, NULL, submit_all, &submitters[i]),
			0);
	}
}

static void stop_submitting(struct submitter *submitters)
{
	for (int i = 0; i < THREADS; i++) {
		join(submitters[i].thread);
		assert_int_equal(submitters[i].failures, 0);
	}
}

/* Many threads submit, one has an event loop, some make blocking calls. */
TEST(an_event_loop_goes_with_any_number_of_threads)
{
	struct outcome *outcomes = calloc(THREADS * REQUESTS, sizeof(*outcomes));
	struct mad_async *async = mad_async_create(port);
	struct submitter submitters[THREADS];
	struct asker askers[2];
	struct pollfd fds[] = {{.fd = mad_rpc_portid(port), .events = POLLIN},
			       {.fd = mad_async_poll_fd(async), .events = POLLIN}};
	atomic_uint count = 0;
	int completed = 0;

	device_on_write(echo_sometime, &count);
	start_submitting(submitters, async, outcomes);
	for (int i = 0; i < 2; i++)
		start(&askers[i], i ? set_request() : get_request(), i + 1, ROUNDS);
	while (completed < THREADS * REQUESTS) {
		poll(fds, 2, timeout_ms_of(async));
		completed += mad_async_process(async);
	}
	stop_submitting(submitters);
	for (int i = 0; i < 2; i++)
		expect_good(&askers[i]);
	expect_responses(outcomes, THREADS * REQUESTS);
	assert_int_equal(stats_of(async).completed, THREADS * REQUESTS);
	mad_async_free(async);
	free(outcomes);
}

struct looper {
	pthread_t thread;
	struct mad_async *async;
	atomic_int *completed;
	bool runs;
};

static void *process_all(void *arg)
{
	struct looper *looper = arg;

	while (*looper->completed < THREADS * REQUESTS) {
		int ret = looper->runs ? mad_async_wait(looper->async, -1)
				       : mad_async_process(looper->async);

		*looper->completed += ret;
		sched_yield();
	}
	return NULL;
}

TEST(any_number_of_threads_may_process_and_run_an_engine)
{
	struct outcome *outcomes = calloc(THREADS * REQUESTS, sizeof(*outcomes));
	struct mad_async *async = mad_async_create(port);
	struct submitter submitters[THREADS];
	struct looper loopers[4];
	atomic_int completed = 0;

	device_on_write(echo, NULL);
	start_submitting(submitters, async, outcomes);
	for (int i = 0; i < 4; i++) {
		loopers[i] =
			(struct looper){.async = async, .completed = &completed, .runs = i & 1};
		pthread_create(&loopers[i].thread, NULL, process_all, &loopers[i]);
	}
	for (int i = 0; i < 4; i++)
		join(loopers[i].thread);
	stop_submitting(submitters);
	assert_int_equal(completed, THREADS * REQUESTS);
	expect_responses(outcomes, THREADS * REQUESTS);
	mad_async_free(async);
	free(outcomes);
}

static atomic_int inside;

static void be_alone(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct outcome *outcome = arg;

	if (inside++)
		outcome->status = 1;
	sched_yield();
	if (!reply->error && !async)
		outcome->status = 2;
	inside--;
	outcome->calls++;
}

TEST(callbacks_of_an_engine_come_one_at_a_time)
{
	struct mad_async *async = mad_async_create(port);
	struct outcome outcome = {0};
	struct looper loopers[4];
	atomic_int completed = 0;

	device_on_write(echo, NULL);
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1000);
	for (int i = 0; i < 4; i++) {
		loopers[i] =
			(struct looper){.async = async, .completed = &completed, .runs = i & 1};
		pthread_create(&loopers[i].thread, NULL, process_all, &loopers[i]);
	}
	for (int i = 0; i < THREADS * REQUESTS; i++)
		submit_with(async, get_request(), 1, be_alone, &outcome);
	for (int i = 0; i < 4; i++)
		join(loopers[i].thread);
	assert_int_equal(outcome.calls, THREADS * REQUESTS);
	assert_int_equal(outcome.status, 0);
	mad_async_free(async);
}

TEST(engines_of_several_threads_share_a_port)
{
	struct outcome *outcomes = calloc(THREADS * REQUESTS, sizeof(*outcomes));
	struct mad_async *engines[THREADS];
	pthread_t runners[THREADS];

	device_on_write(echo, NULL);
	for (int i = 0; i < THREADS; i++) {
		engines[i] = mad_async_create(port);
		for (int j = 0; j < REQUESTS; j++)
			submit(engines[i], j & 1 ? set_request() : get_request(), 1 + j % 50,
			       &outcomes[i * REQUESTS + j], NULL);
	}
	for (int i = 0; i < THREADS; i++)
		runners[i] = start_running(engines[i]);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(joined_count(runners[i]), REQUESTS);
	expect_responses(outcomes, THREADS * REQUESTS);
	for (int i = 0; i < THREADS; i++)
		mad_async_free(engines[i]);
	free(outcomes);
}

/* The runner is in a callback when the window opens, because another thread reads. */
GATE_TEST(what_becomes_possible_during_a_callback_is_done_after_it)
{
	struct mad_async *async = mad_async_create(port);
	struct outcome outcomes[3] = {0};
	struct receiver leader;
	pthread_t runner;

	mad_port_set(port, MAD_PORT_GMP_WINDOW, 1);
	start_receiving(&leader, -1);
	submit_with(async, set_request(), 1, call_back_at_gate, &outcomes[0]);
	submit(async, set_request(), 2, &outcomes[1], NULL);
	submit(async, set_request(), 3, &outcomes[2], NULL);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	runner = start_running(async);
	wait_for(&gate.entered);
	assert_true(device_wait_written(2, LONG_MS));
	device_respond(device_packet(1), 0, 0, NULL, 0);
	while (stats_of(async).in_flight != 1 || device_calls(DEVICE_READ) < 2)
		sleep_ms(1);
	sleep_ms(20);
	device_on_write(echo, NULL);
	sem_post(&gate.leave);
	assert_int_equal(joined_count(runner), 3);
	stop_receiving(&leader);
	mad_async_free(async);
}

TEST(an_event_loop_is_told_what_other_threads_do)
{
	struct mad_async *async = mad_async_create(port);
	struct pollfd wake = {.fd = mad_async_poll_fd(async), .events = POLLIN};
	struct outcome outcomes[3] = {0};
	struct receiver receiver;
	uint64_t id;

	start_receiving(&receiver, -1);
	assert_int_equal(timeout_ms_of(async), -1);
	/* a timer that is due before the time that the loop got */
	set_late_after(QUICK);
	submit(async, get_request(), 1, &outcomes[0], NULL);
	assert_int_equal(poll(&wake, 1, LONG_MS), 1);
	while (device_written() < 2) {
		assert_int_equal(mad_async_process(async), 0);
		sleep_ms(1);
	}
	/* a response that another thread reads */
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_int_equal(poll(&wake, 1, LONG_MS), 1);
	assert_int_equal(mad_async_process(async), 1);
	/* a request that is cancelled */
	submit(async, set_request(), 1, &outcomes[1], &id);
	mad_async_process(async);
	timeout_ms_of(async);
	assert_int_equal(mad_async_cancel(async, id), 0);
	assert_int_equal(poll(&wake, 1, 0), 1);
	assert_int_equal(mad_async_process(async), 1);
	stop_receiving(&receiver);
	mad_async_free(async);
}

TEST(an_engine_may_end_while_another_thread_runs_it)
{
	struct outcome outcomes[THREADS];
	struct mad_async *async;
	pthread_t runner;

	for (int round = 0; round < 3; round++) {
		memset(outcomes, 0, sizeof(outcomes));
		async = mad_async_create(port);
		for (int i = 0; i < THREADS; i++)
			submit(async, set_request(), 1, &outcomes[i], NULL);
		runner = start_running(async);
		wait_for_users(1);
		mad_async_free(async);
		assert_int_equal(joined_count(runner), THREADS);
		for (int i = 0; i < THREADS; i++) {
			assert_int_equal(outcomes[i].calls, 1);
			assert_int_equal(outcomes[i].error, -ECANCELED);
		}
	}
}

/* --- fork -------------------------------------------------------------------- */

#ifndef NO_CHILDREN

static int child_that_asks(void)
{
	struct asker askers[THREADS];
	int good = 0;

	device_on_write(echo, NULL);
	for (int i = 0; i < THREADS; i++)
		start(&askers[i], i & 1 ? set_request() : get_request(), i + 1, 20);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(askers[i].thread, NULL);
		good += askers[i].good;
	}
	mad_rpc_close_port(port);
	return good == THREADS * 20 ? 0 : __LINE__;
}

TEST(a_child_may_begin_with_many_threads)
{
	for (int i = 0; i < 10; i++)
		run_in_child(child_that_asks);
}

#endif

/* --- who sends, and who leads ---------------------------------------------------- */

static void *make_smp(void *arg)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {0};
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid((int)(intptr_t)arg);

	mad_rpc(port, &rpc, &to, data, data);
	return NULL;
}

/* A run that calls back sends nothing: another thread does. */
GATE_TEST(a_queued_call_does_not_wait_for_the_callback_of_a_run)
{
	struct mad_async *engine = mad_async_create(port);
	struct outcome outcome = {0};
	pthread_t receiver, callers[2], runner;

	mad_port_set(port, MAD_PORT_SMP_WINDOW, 1);
	receiver = start_receiver();
	for (intptr_t i = 0; i < 2; i++) {
		pthread_create(&callers[i], NULL, make_smp, (void *)(i + 1));
		sleep_ms(50);
	}
	assert_int_equal(device_written(), 1);
	submit_with(engine, set_request(), 3, call_back_at_gate, &outcome);
	runner = start_running(engine);
	sleep_ms(50);
	device_respond(device_packet(1), 0, 0, NULL, 0);
	wait_for(&gate.entered);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_true(device_wait_written(3, LONG_MS / 3));
	sem_post(&gate.leave);
	device_respond(device_packet(2), 0, 0, NULL, 0);
	assert_int_equal(joined_count(runner), 1);
	for (int i = 0; i < 2; i++)
		pthread_join(callers[i], NULL);
	device_remove();
	pthread_join(receiver, NULL);
	mad_async_free(engine);
}

#ifndef NO_CHILDREN

static struct {
	pid_t pid;
	int status;
	pthread_t caller;
	struct outcome outcome;
} child;

static void *make_gmp(void *arg)
{
	uint8_t data[IB_PC_DATA_SZ] = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(7);

	(void)arg;
	mad_rpc(port, &rpc, &to, data, data);
	return NULL;
}

/* The call of the thread that leads ends first. */
static void *respond_in_child(void *arg)
{
	(void)arg;
	sleep_ms(200);
	device_respond(device_packet(2), 0, 0, NULL, 0);
	pthread_join(child.caller, NULL);
	sleep_ms(50);
	device_respond(device_packet(1), 0, 0, NULL, 0);
	return NULL;
}

static void fork_in_callback(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	pthread_t thread;

	(void)reply;
	(void)arg;
	child.pid = fork();
	if (child.pid) {
		waitpid(child.pid, &child.status, 0);
		return;
	}
	alarm(LONG_MS / 3000);
	submit(async, set_request(), 2, &child.outcome, NULL);
	pthread_create(&child.caller, NULL, make_gmp, NULL);
	device_wait_written(3, LONG_MS);
	pthread_create(&thread, NULL, respond_in_child, NULL);
}

/* After the callback that forked, the run of the child waits as one of several threads. */
PORT_TEST(a_run_in_a_child_leads_after_another_thread)
{
	struct mad_async *engine = mad_async_create(port);
	int ret;

	submit_with(engine, set_request(), 1, fork_in_callback, NULL);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	ret = mad_async_wait(engine, -1);
	if (!child.pid)
		end_without_leak_check(ret != 2 || child.outcome.calls != 1 ||
				       child.outcome.error);
	assert_true(WIFSIGNALED(child.status));
	assert_int_equal(WTERMSIG(child.status), SIGKILL);
	mad_async_free(engine);
}

#endif
