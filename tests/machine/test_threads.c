/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Threads on one port. The thread that polls for all is the leader, the others follow: each
 * gets its own messages at once, the lead is handed over in time, and no thread is left waiting
 * when its engine, port or device ends. A thread runs until it waits before time goes on.
 */

#include "async.h"

#include <infiniband/mad_sa.h>
#include <infiniband/umad_ext.h>
#include <sys/eventfd.h>

#define VENDOR 0x0a
#define MANY   200

enum call {
	ASK,     /* mad_rpc() */
	RECEIVE, /* mad_receive_via() */
	RUN,     /* mad_async_wait() */
	CALLS
};

struct caller {
	enum call call;
	unsigned node; /* ASK: 1 to 8 */
	ib_rpc_t rpc;
	struct mad_async *engine; /* RUN */
	void *buffer;             /* RECEIVE */
	pthread_t thread;
	bool ended;
	int result, error;
	int64_t at;
};

static struct outcome outcomes[MANY];

static int set_up(bool high)
{
	memset(outcomes, 0, sizeof(outcomes));
	if (open_engine_on("star:8", high))
		return -1;
	mad_rpc_set_timeout(port, 60000);
	mad_rpc_set_retries(port, 1);
	/* flow control stands aside */
	mad_port_set(port, MAD_PORT_SMP_WINDOW, 1000);
	mad_port_set(port, MAD_PORT_GMP_WINDOW, 1000);
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1000);
	return mad_register_server_via(VENDOR, 0, NULL, 0, port) < 0 ? -1 : 0;
}

static int setup(void)
{
	return set_up(false);
}

FIXTURE(setup, close_engine);

static int call(struct caller *caller)
{
	void *umad;

	switch (caller->call) {
	case ASK:
		return !ask(caller->rpc, leaf(caller->node));
	case RECEIVE:
		umad = mad_receive_via(caller->buffer, -1, port);
		if (umad && umad != caller->buffer)
			mad_free(umad);
		return umad != NULL;
	default:
		return mad_async_wait(caller->engine, -1);
	}
}

static void *make_call(void *arg)
{
	struct caller *caller = arg;

	caller->result = call(caller);
	caller->error = errno;
	caller->at = machine_us();
	caller->ended = true;
	pthread_testcancel();
	return NULL;
}

/* All threads run until they wait. */
static void settle(void)
{
	machine_pass(1);
}

static void begin(struct caller *caller)
{
	caller->ended = false;
	caller->engine = async;
	if (!caller->rpc.mgtclass)
		caller->rpc = rpc_of(SMP_SET);
	caller->thread = start(make_call, caller);
	settle();
}

static struct caller asker(unsigned node)
{
	return (struct caller){.call = ASK, .node = node};
}

/* The calls of a receiver, and of a thread that runs the engine. */
static const struct caller receives = {.call = RECEIVE}, runs = {.call = RUN};

static void end(struct caller *caller, int result)
{
	join(caller->thread);
	assert_int_equal(caller->result, result);
}

static void fail_with(struct caller *caller, int error)
{
	end(caller, 0);
	assert_int_equal(caller->error, error);
}

/* A request to the program's server. */
static void send_request(int64_t after)
{
	uint8_t mad[MACHINE_MAD] = {1, VENDOR, 1, IB_MAD_METHOD_GET};

	machine_send("n1", mad, after);
}

static void end_receiver(struct caller *receiver)
{
	assert_false(receiver->ended);
	send_request(0);
	end(receiver, 1);
}

static void submit_some(unsigned count)
{
	memset(outcomes, 0, sizeof(outcomes));
	for (unsigned i = 0; i < count; i++)
		submit(SMP_SET, leaf(1 + i % 8), &outcomes[i]);
}

static void expect_all(unsigned count, int error)
{
	for (unsigned i = 0; i < count; i++)
		expect_outcome(&outcomes[i], error);
}

static void slow_nodes(const char *times)
{
	for (int i = 0; i < 8 && times[i]; i++)
		machine_rule("slow %dms on n%d", 10 * (times[i] - '0'), i + 1);
}

/* What flow control knows of nodes that have responded: it does not look at their requests. */
static void learn_nodes(void)
{
	for (unsigned i = 1; i <= 8; i++)
		submit(SMP_SET, leaf(i), &outcomes[i]);
	mad_async_wait(async, -1);
	memset(outcomes, 0, sizeof(outcomes));
}

static unsigned polls(void)
{
	return machine_calls(MACHINE_POLL);
}

/* --- who reads ------------------------------------------------------------------ */

static const struct order_row {
	const char *behaviour, *times;
} order_rows[] = {
	{"the_lead_is_handed_over_with_each_response", "12345678"},
	{"the_leader_may_be_the_last_one", "87654321"},
	{"responses_may_overtake_each_other", "51827364"},
	{"the_leader_s_response_may_come_first_and_others_at_once", "12222222"},
};

/* Each call ends when its response comes, with or without a receiver that leads. */
static void end_in_order(const struct order_row *row)
{
	static const enum kind kinds[] = {SMP_GET, PMA_GET, SMP_SET, PMA_SET};

	slow_nodes(row->times);
	for (unsigned beside = 0; beside < 2; beside++) {
		struct caller callers[8], receiver = receives;
		int64_t begun;

		if (beside)
			begin(&receiver);
		for (unsigned i = 0; i < 8; i++) {
			callers[i] = asker(i + 1);
			callers[i].rpc = rpc_of(kinds[i % 4]);
			callers[i].rpc.trid = i < 2 ? 0x55 + beside : 0;
			begin(&callers[i]);
		}
		begun = machine_us() - 8;
		for (unsigned i = 0; i < 8; i++) {
			int64_t due = begun + i + (row->times[i] - '0') * 10 * MS;

			end(&callers[i], 1);
			assert_in_range(callers[i].at, due, due + 10);
		}
		if (beside)
			end_receiver(&receiver);
	}
}

TEST_ROWS(end_in_order, order_rows);

TEST(the_leader_polls_once_for_as_long_as_it_takes)
{
	struct caller receiver = receives, call = asker(1);

	begin(&receiver);
	machine_pass(3600 * SECOND);
	assert_int_equal(polls(), 1);
	/* another thread's timer wakes it only when it is due */
	machine_rule("slow 1s");
	begin(&call);
	machine_pass(SECOND / 2);
	assert_in_range(polls(), 1, 3);
	end(&call, 1);
	end_receiver(&receiver);
}

/* What a thread waits for is read, and no more. */
TEST(nothing_is_read_without_need)
{
	struct caller call = asker(1);

	submit(SMP_SET, leaf(2), &outcomes[0]);
	machine_rule("slow 10ms on n2");
	submit(SMP_SET, leaf(2), &outcomes[1]);
	settle();
	begin(&call);
	end(&call, 1);
	assert_in_range(machine_calls(MACHINE_READ), 1, 2);
	assert_int_equal(mad_async_wait(async, -1), 2);
	machine_rule("silent on n1");
	mad_rpc_set_timeout(port, 20);
	begin(&call);
	assert_in_range(machine_calls(MACHINE_READ), 2, 4);
	fail_with(&call, ETIMEDOUT);
}

/* A leader that has read 64 messages of others looks at its own request. */
TEST(a_leader_reads_a_part_of_a_queue_at_a_time)
{
	struct caller call = asker(1);
	unsigned before;

	slow_nodes("1");
	begin(&call);
	for (int i = 0; i < 128; i++)
		send_request(5 * MS);
	before = polls();
	end(&call, 1);
	assert_in_range(polls() - before, 2, 3);
	assert_in_range(machine_calls(MACHINE_READ), 129, 133);
}

/* However many messages others receive. */
TEST(a_flood_of_requests_ends_no_deadline)
{
	struct caller call = asker(1);

	machine_rule("silent on n1");
	mad_rpc_set_timeout(port, 30);
	mad_rpc_set_retries(port, 2);
	for (int i = 0; i < 10000; i++)
		send_request(i * 10);
	begin(&call);
	fail_with(&call, ETIMEDOUT);
	assert_in_range(machine_us(), 60 * MS, 90 * MS);
}

TEST(each_message_wakes_a_receiver)
{
	struct caller receivers[4];

	for (int at_once = 0; at_once < 2; at_once++) {
		for (int i = 0; i < 4; i++) {
			receivers[i] = receives;
			begin(&receivers[i]);
		}
		for (int i = 0; i < 4; i++) {
			int ended = 0;

			send_request(0);
			if (at_once)
				continue;
			settle();
			for (int j = 0; j < 4; j++)
				ended += receivers[j].ended;
			assert_int_equal(ended, i + 1);
		}
		for (int i = 0; i < 4; i++)
			end(&receivers[i], 1);
	}
}

static enum machine_verdict respond_at_length(struct machine_mad *mad, void *arg)
{
	static uint8_t bytes[1000];

	(void)arg;
	if (mad->at_host || mad->bytes[1] != IB_SA_CLASS)
		return MACHINE_PASS;
	memcpy(bytes, mad->bytes, MACHINE_MAD);
	bytes[3] |= IB_MAD_RESPONSE;
	machine_deliver(mad, bytes, sizeof(bytes), 20 * MS);
	return MACHINE_DROP;
}

/* The thread that is woken first has too small a buffer. */
TEST(a_long_message_is_for_another_receiver)
{
	struct caller call = asker(1), large = receives, small = receives;
	ib_portid_t sa = {.lid = machine_lid("sm"), .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
	ib_rpc_t rpc = rpc_of(SA_TABLE);

	machine_rule("slow 90ms on n1");
	machine_on_arrival(respond_at_length, NULL);
	rpc.trid = 9;
	rpc.timeout = 1000;
	small.buffer = mad_alloc();
	begin(&call);
	assert_int_equal(mad_send_via(&rpc, &sa, NULL, NULL, port), 0);
	begin(&small);
	begin(&large);
	end(&large, 1);
	send_request(0);
	join(small.thread);
	assert_true(small.result || small.error == EMSGSIZE);
	mad_free(small.buffer);
	end(&call, 1);
}

/* --- waking the leader ---------------------------------------------------------- */

static void cancel_all(void)
{
	mad_async_cancel(async, MAD_ASYNC_ALL);
}

static void free_engine(void)
{
	mad_async_free(async);
	async = NULL;
}

static void close_port(void)
{
	mad_rpc_close_port(port);
	port = NULL;
}

static void remove_device(void)
{
	machine_rule("remove on host");
}

TEST(the_end_of_the_last_request_wakes_the_leader)
{
	for (int destroys = 0; destroys < 2; destroys++) {
		struct caller runner = runs;
		int64_t begun = machine_us();
		unsigned before = polls();

		machine_rule("silent on n1");
		submit(SMP_SET, leaf(1), &outcomes[destroys]);
		begin(&runner);
		if (destroys)
			free_engine();
		else
			cancel_all();
		end(&runner, 1);
		expect_outcome(&outcomes[destroys], -ECANCELED);
		assert_in_range(machine_us() - begun, 0, 10);
		assert_int_equal(polls() - before, 1);
	}
}

TEST(an_earlier_timer_of_another_thread_s_request_wakes_the_leader)
{
	struct caller runner = runs;
	ib_rpc_t rpc = rpc_of(SMP_GET);

	learn_nodes();
	machine_rule("silent on n1");
	submit(SMP_SET, leaf(1), &outcomes[0]);
	begin(&runner);
	rpc.timeout = 20;
	submit_with(async, rpc, leaf(1), note, &outcomes[1]);
	machine_pass(40 * MS);
	assert_int_equal(outcomes[1].error, -ETIMEDOUT);
	assert_in_range(outcomes[1].at, 20 * MS, 30 * MS);
	cancel_all();
	end(&runner, 2);
	assert_in_range(polls(), 2, 10);
}

static void *submit_to_n1(void *engine)
{
	static struct outcome outcome;
	ib_rpc_t rpc = rpc_of(SMP_SET);

	rpc.timeout = 200;
	submit_with(engine, rpc, leaf(1), note, &outcome);
	return NULL;
}

/* A thread whose write of a request takes 50 ms. */
static pthread_t begin_slow_write(struct mad_async *engine)
{
	pthread_t submitter;

	machine_slow_call(MACHINE_WRITE, 50 * MS);
	submitter = start(submit_to_n1, engine);
	settle();
	machine_slow_call(MACHINE_WRITE, 0);
	return submitter;
}

/*
 * A thread waits, because its request is queued after a request of another engine, which has no
 * timer yet: it is being written. No thread runs the other engine.
 */
TEST(the_timer_of_a_request_wakes_the_thread_of_the_next_request)
{
	static const enum call calls[] = {ASK, RUN};

	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1);
	for (int i = 0; i < 2; i++) {
		struct mad_async *first = mad_async_create(port);
		struct caller behind = {.call = calls[i], .node = 1};
		int64_t begun = machine_us();
		pthread_t submitter;

		machine_rule("silent on n1");
		submitter = begin_slow_write(first);
		if (calls[i] == RUN)
			submit(SMP_SET, leaf(1), &outcomes[0]);
		begin(&behind);
		machine_pass(100 * MS);
		machine_rule("clear");
		join(submitter);
		end(&behind, 1);
		assert_in_range(behind.at - begun, 200 * MS, 300 * MS);
		mad_async_free(first);
	}
}

/* --- handing over the lead ------------------------------------------------------ */

static void note_slowly(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	machine_pass(50 * MS);
	note(engine, reply, arg);
}

/* Meanwhile others wait, and do not know that no thread polls. */
TEST(a_leader_that_calls_back_leaves_its_place)
{
	for (int follows = 0; follows < 2; follows++) {
		struct caller runner = runs, call = asker(2), leader = asker(3);
		int64_t begun = machine_us();

		slow_nodes("241");
		if (follows)
			begin(&leader);
		submit_with(async, rpc_of(SMP_SET), leaf(1), note_slowly, &outcomes[0]);
		begin(&runner);
		begin(&call);
		end(&call, 1);
		assert_in_range(call.at - begun, 40 * MS, 40 * MS + 10);
		end(&runner, 1);
		assert_in_range(runner.at - begun, 70 * MS, 70 * MS + 10);
		if (follows)
			end(&leader, 1);
	}
}

/* The leader's next request is sent after the response to the first one, which takes long. */
TEST(a_leader_that_sends_leaves_its_place)
{
	struct caller runner = runs, call = asker(2);

	slow_nodes("24");
	mad_port_set(port, MAD_PORT_GMP_WINDOW, 1);
	submit(PMA_SET, leaf(1), &outcomes[0]);
	submit(PMA_SET, leaf(1), &outcomes[1]);
	begin(&runner);
	begin(&call);
	machine_slow_call(MACHINE_WRITE, 100 * MS);
	end(&call, 1);
	assert_in_range(call.at, 40 * MS, 40 * MS + 10);
	end(&runner, 2);
	machine_slow_call(MACHINE_WRITE, 0);
}

TEST(a_call_that_sends_its_next_attempt_leaves_its_place)
{
	mad_rpc_set_retries(port, 2);
	for (unsigned beside = 0; beside < 2; beside++) {
		struct caller receiver = receives, first = asker(1), second = asker(2);
		int64_t begun = machine_us();

		slow_nodes("04");
		machine_rule("silent on n1");
		first.rpc = second.rpc = rpc_of(SMP_SET);
		first.rpc.timeout = 20;
		if (beside)
			begin(&receiver);
		begin(&first);
		begin(&second);
		machine_slow_call(MACHINE_WRITE, 60 * MS);
		machine_rule("clear");
		slow_nodes("14");
		end(&second, 1);
		assert_in_range(second.at - begun, 40 * MS, 40 * MS + 10);
		end(&first, 1);
		assert_int_equal(machine_requests("n1"), 2 + 2 * beside);
		machine_slow_call(MACHINE_WRITE, 0);
		if (beside)
			end_receiver(&receiver);
	}
}

/* The response to one thread's request lets another thread's request be sent. */
TEST(a_receiver_that_leads_lets_others_send)
{
	struct caller receiver = receives, call = asker(2);

	slow_nodes("11");
	mad_port_set(port, MAD_PORT_SMP_WINDOW, 1);
	begin(&receiver);
	submit(SMP_SET, leaf(1), &outcomes[0]);
	begin(&call);
	assert_int_equal(machine_requests("n2"), 0);
	/* meanwhile it leaves its place, and the call waits for the end of the write */
	machine_slow_call(MACHINE_WRITE, 30 * MS);
	end(&call, 1);
	assert_in_range(call.at, 40 * MS, 40 * MS + 10);
	machine_slow_call(MACHINE_WRITE, 0);
	end_receiver(&receiver);
	assert_int_equal(mad_async_wait(async, -1), 1);
}

/* A run that calls back sends nothing: another thread does, as soon as the window opens. */
TEST(a_queued_call_does_not_wait_for_a_callback)
{
	struct caller receiver = receives, calls[] = {asker(1), asker(2)}, runner = runs;

	slow_nodes("311");
	mad_port_set(port, MAD_PORT_SMP_WINDOW, 1);
	begin(&receiver);
	begin(&calls[0]);
	begin(&calls[1]);
	submit_with(async, rpc_of(PMA_SET), leaf(3), note_slowly, &outcomes[0]);
	/* this engine's next ones are sent after its callback */
	submit(SMP_SET, leaf(4), &outcomes[1]);
	begin(&runner);
	end(&calls[1], 1);
	assert_in_range(calls[1].at, 40 * MS, 40 * MS + 10);
	end(&runner, 2);
	end(&calls[0], 1);
	end_receiver(&receiver);
}

/* A response may be read by another thread before the write of its request returns. */
TEST(while_one_thread_writes_others_go_on)
{
	struct caller receiver = receives, slow = asker(1), quick = asker(2), runner = runs;
	pthread_t submitter;

	for (int beside = 0; beside < 2; beside++) {
		if (beside)
			begin(&receiver);
		machine_slow_call(MACHINE_WRITE, 50 * MS);
		begin(&slow);
		machine_slow_call(MACHINE_WRITE, 0);
		begin(&quick);
		assert_true(quick.ended);
		assert_false(slow.ended);
		end(&quick, 1);
		end(&slow, 1);
	}
	/* an engine's end waits for what is being written: its buffer is in use */
	submitter = begin_slow_write(async);
	cancel_all();
	begin(&runner);
	assert_false(runner.ended);
	end(&runner, 1);
	join(submitter);
	submitter = begin_slow_write(async);
	free_engine();
	join(submitter);
	end_receiver(&receiver);
}

/* --- waiting for another thread ------------------------------------------------- */

static void *destroy(void *arg)
{
	free_engine();
	return arg;
}

/* Its callbacks come one at a time; waits end with their time, or the engine. */
TEST(a_thread_waits_while_another_one_calls_back)
{
	for (int destroys = 0; destroys < 2; destroys++) {
		struct caller runner = runs, waiter = runs;
		pthread_t destroyer;

		memset(outcomes, 0, sizeof(outcomes));
		submit_with(async, rpc_of(SMP_SET), leaf(1), note_slowly, &outcomes[0]);
		submit(SMP_SET, leaf(2), &outcomes[1]);
		begin(&runner);
		assert_int_equal(mad_async_wait(async, 0), -ETIMEDOUT);
		assert_int_equal(mad_async_wait(async, 20), -ETIMEDOUT);
		assert_int_equal(mad_async_process(async), 0);
		begin(&waiter);
		assert_false(waiter.ended);
		assert_int_equal(outcomes[1].calls, 0);
		if (destroys) {
			destroyer = start(destroy, NULL);
			settle();
			assert_true(waiter.ended);
			assert_false(runner.ended);
			join(destroyer);
		}
		join(waiter.thread);
		join(runner.thread);
		assert_int_equal(waiter.result + runner.result, 2);
		assert_int_equal(outcomes[1].calls, 1);
	}
}

/* --- cancelling threads --------------------------------------------------------- */

TEST(a_thread_is_cancelled_after_its_call)
{
	for (int i = 0; i < 2 * CALLS; i++) {
		struct caller caller = {.call = (enum call)(i / 2), .node = 1};
		struct caller leader = asker(2);

		slow_nodes("24");
		if (i % 2)
			begin(&leader);
		if (caller.call == RUN)
			submit(SMP_SET, leaf(1), &outcomes[0]);
		if (caller.call == RECEIVE)
			send_request(20 * MS);
		begin(&caller);
		assert_int_equal(pthread_cancel(caller.thread), 0);
		settle();
		assert_false(caller.ended);
		assert_true(join(caller.thread) == (int)(intptr_t)PTHREAD_CANCELED);
		assert_true(caller.ended);
		assert_int_equal(caller.result, 1);
		if (i % 2)
			end(&leader, 1);
	}
}

/* A hook that is a cancellation point; read, write and poll are, too. */
static void log_cancellably(enum umad_log_level level, const char *text, void *arg)
{
	(void)level, (void)text, (void)arg;
	pthread_testcancel();
}

static void note_cancellably(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	note(engine, reply, arg);
	pthread_testcancel();
}

static void note_table(struct mad_async *engine, const struct mad_sa_response *response,
		       void *arg)
{
	(void)engine, (void)arg;
	mad_sa_table_free(response->table);
}

enum any_call {
	RPC,
	MESSAGE,
	SEND,
	RESPOND,
	SUBMIT_AND_WAIT,
	RECEIVE_MESSAGE,
	OPEN,
	OPEN_PAIR,
	SA_REQUEST,
	SA_SUBMIT,
	ANY_CALLS
};

static void make_any_call(enum any_call call, ib_rpc_t rpc)
{
	_Alignas(8) uint8_t umad[512] = {0};
	uint8_t request[] = {1, VENDOR, 1, IB_MAD_METHOD_GET}, data[MACHINE_MAD] = {0};
	ib_portid_t to = {.lid = (int)leaf(1)};
	const struct mad_sa_query query = {.attribute = IB_SA_ATTR_NODERECORD};
	struct ibmad_port *opened = NULL;
	struct mad_message message;
	struct mad_async *engine;

	switch (call) {
	case RPC:
		mad_rpc(port, &rpc, &to, data, data);
		break;
	case MESSAGE:
		if (!mad_rpc_message(port, &rpc, &to, NULL, 0, &message))
			mad_message_free(&message);
		break;
	case SEND:
		rpc.trid = 5;
		mad_send_via(&rpc, &to, NULL, data, port);
		break;
	case RESPOND:
		memcpy(umad_get_mad(umad), request, sizeof(request));
		mad_respond_via(umad, &to, 0, port);
		break;
	case RECEIVE_MESSAGE:
		send_request(0);
		mad_free(mad_receive_via(NULL, -1, port));
		break;
	case OPEN:
		mad_port_open(NULL, 0, &opened);
		mad_rpc_close_port(opened);
		break;
	case OPEN_PAIR:
		mad_rpc_close_port2(mad_rpc_open_port2(NULL, 0, &rpc.mgtclass, 1, 0));
		break;
	case SA_REQUEST:
	case SA_SUBMIT: /* the class is not registered */
		opened = mad_rpc_open_port(NULL, 0, NULL, 0);
		engine = mad_async_create(opened);
		if (call == SA_REQUEST)
			mad_sa_request(opened, &query, NULL);
		else
			mad_sa_submit(engine, &query, note_table, NULL, NULL);
		mad_async_free(engine);
		mad_rpc_close_port(opened);
		break;
	default:
		mad_async_submit(async, &rpc, &to, NULL, 0, note_cancellably, outcomes, NULL);
		mad_async_wait(async, -1);
	}
}

static struct {
	enum any_call call;
	ib_rpc_t rpc;
	bool returned;
} cancelled;

static void *be_cancelled(void *arg)
{
	pthread_cancel(pthread_self());
	make_any_call(cancelled.call, cancelled.rpc);
	cancelled.returned = true;
	pthread_testcancel();
	return arg;
}

static enum machine_verdict answer_with_status(struct machine_mad *mad, void *arg)
{
	(void)arg;
	return mad->at_host ? MACHINE_PASS : machine_reply(mad, 0x1c, 0, NULL, 0);
}

TEST(a_cancelled_thread_returns_from_each_call)
{
	int state;

	madrpc_show_errors(1);
	umad_set_log_hook(log_cancellably, NULL);
	/* succeeds, fails in write(), has a status, is of no registered class */
	for (unsigned i = 0; i < 8 * ANY_CALLS; i++) {
		cancelled.call = i / 8;
		cancelled.rpc = rpc_of(SMP_GET);
		cancelled.returned = false;
		machine_fail(MACHINE_WRITE, i % 4 == 1, ENOMEM);
		machine_on_arrival(i % 4 == 2 ? answer_with_status : NULL, NULL);
		if (i % 4 == 3)
			cancelled.rpc.mgtclass = 0x2f;
		ibdebug = i / 4 % 2;
		assert_true(join(start(be_cancelled, NULL)) == (int)(intptr_t)PTHREAD_CANCELED);
		assert_true(cancelled.returned);
	}
	machine_fail(MACHINE_WRITE, 0, 0);
	ibdebug = 0;
	madrpc_show_errors(0);
	umad_set_log_hook(NULL, NULL);
	/* a call disables cancellation for its duration only, and never enables it */
	for (int i = 0; i < 4; i++) {
		int disabled = i & 1 ? PTHREAD_CANCEL_ENABLE : PTHREAD_CANCEL_DISABLE;

		pthread_setcancelstate(disabled, &state);
		make_any_call(i & 2 ? RPC : SUBMIT_AND_WAIT, rpc_of(SMP_GET));
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
		assert_int_equal(state, disabled);
	}
}

/* --- signals and stops ---------------------------------------------------------- */

static void be_interrupted(int number)
{
	(void)number;
}

TEST(a_signal_ends_the_receiver_that_leads_alone)
{
	struct sigaction action = {.sa_handler = be_interrupted}, before;
	struct caller leader = receives, follower = receives, call = asker(1), runner = runs;

	sigaction(SIGUSR1, &action, &before);
	slow_nodes("11");
	machine_fail(MACHINE_POLL, 1, EINTR);
	begin(&leader);
	fail_with(&leader, EINTR);
	begin(&leader);
	begin(&follower);
	machine_fail(MACHINE_POLL, 1, EINTR);
	begin(&call);
	submit(SMP_SET, leaf(2), &outcomes[0]);
	begin(&runner);
	pthread_kill(follower.thread, SIGUSR1);
	pthread_kill(call.thread, SIGUSR1);
	pthread_kill(runner.thread, SIGUSR1);
	end(&call, 1);
	end(&runner, 1);
	assert_false(follower.ended);
	if (leader.ended)
		fail_with(&leader, EINTR);
	send_request(0);
	send_request(0);
	end(&follower, 1);
	if (leader.error != EINTR)
		end(&leader, 1);
	sigaction(SIGUSR1, &before, NULL);
}

TEST(a_wait_ends_with_the_last_request_or_its_time)
{
	static const int timeouts[] = {-1, 0, 5000};
	unsigned before;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(mad_async_wait(async, timeouts[i]), 0);
		submit_some(8);
		settle();
		assert_int_equal(mad_async_wait(async, timeouts[i]), 8);
		expect_all(8, 0);
	}
	machine_rule("slow 100ms");
	machine_rule("slow 10ms on n1");
	submit_some(8);
	before = polls();
	assert_int_equal(mad_async_wait(async, 0), -ETIMEDOUT);
	assert_int_equal(polls(), before);
	assert_int_equal(mad_async_wait(async, 30), -ETIMEDOUT);
	assert_in_range(machine_us(), 30 * MS, 31 * MS);
	expect_all(1, 0);
	assert_int_equal(outcomes[1].calls, 0);
	assert_int_equal(mad_async_wait(async, 1000), 7);
	assert_in_range(machine_us(), 100 * MS, 101 * MS);
}

static void stop_in_callback(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	note(engine, reply, arg);
	mad_async_stop(engine);
}

static void cancel_in_callback(struct mad_async *engine, const struct mad_reply *reply,
			       void *arg)
{
	note(engine, reply, arg);
	assert_int_equal(mad_async_cancel(engine, MAD_ASYNC_ALL), 0);
}

TEST(callbacks_stop_and_cancel_their_engine)
{
	struct mad_async *other = mad_async_create(port);

	/* after a stop no callback begins */
	for (int i = 0; i < 3; i++)
		submit_with(async, rpc_of(SMP_SET), leaf(1), stop_in_callback, &outcomes[i]);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(mad_async_wait(async, -1), -EINTR);
		expect_all(i, 0);
		assert_int_equal(outcomes[i].calls, 0);
	}
	assert_int_equal(mad_async_wait(async, -1), 0);
	/* another engine's requests are not cancelled */
	slow_nodes("11111111");
	submit_some(40);
	submit_with(other, rpc_of(SMP_SET), leaf(1), note, &outcomes[50]);
	submit_with(async, rpc_of(SMP_SET), machine_lid("sm"), cancel_in_callback,
		    &outcomes[51]);
	assert_int_equal(mad_async_wait(async, -1), 41);
	expect_all(40, -ECANCELED);
	assert_int_equal(mad_async_wait(other, -1), 1);
	expect_outcome(&outcomes[50], 0);
	expect_outcome(&outcomes[51], 0);
	mad_async_free(other);
}

TEST(a_stop_before_a_run_ends_that_run_alone)
{
	submit_some(8);
	mad_async_stop(async);
	mad_async_stop(async);
	assert_int_equal(mad_async_wait(async, -1), -EINTR);
	assert_int_equal(outcomes[0].calls, 0);
	mad_async_stop(async);
	settle();
	assert_int_equal(mad_async_process(async), 8); /* an event loop goes on */
	assert_int_equal(mad_async_wait(async, 5000), -EINTR);
	assert_int_equal(mad_async_wait(async, 5000), 0);
	/* nor does it keep an engine from being destroyed, nor stop one at its address */
	mad_async_stop(async);
	mad_async_free(async);
	async = mad_async_create(port);
	assert_int_equal(mad_async_wait(async, -1), 0);
}

static void stop_runs(bool high)
{
	struct caller call = asker(1), runners[4];
	unsigned before;

	assert_int_equal(set_up(high), 0);
	learn_nodes();
	machine_rule("slow 10s");
	for (int calls = 0; calls < 2; calls++) {
		int64_t begun;

		if (calls)
			begin(&call);
		submit(SMP_SET, leaf(2), &outcomes[calls]);
		for (int i = 0; i < 4; i++) {
			runners[i] = runs;
			begin(&runners[i]);
		}
		begun = machine_us();
		mad_async_stop(async);
		for (int i = 0; i < 4; i++) {
			end(&runners[i], -EINTR);
			assert_in_range(runners[i].at - begun, 0, 100 * MS);
		}
	}
	/* the thread that polls is left alone */
	settle();
	before = polls();
	machine_pass(90 * MS);
	assert_in_range(polls() - before, 0, 1);
	end(&call, 1);
	assert_int_equal(mad_async_wait(async, -1), 2);
	close_engine();
}

/* Those that poll, and those that sleep while another thread polls or a call does. */
PLAIN_TEST(a_stop_ends_the_runs_of_all_threads)
{
	stop_runs(false);
	stop_runs(true);
}

/* The port has it when a thread first leads. */
PLAIN_TEST(the_descriptor_of_a_port_may_have_number_0)
{
	struct caller runner = runs, call = asker(2);
	int copy;

	machine_start("star:8", NULL);
	machine_fail(MACHINE_EVENTFD, 1, EMFILE);
	assert_int_equal(mad_port_open(NULL, 0, &port), 0);
	async = mad_async_create(port);
	slow_nodes("9");
	copy = free_descriptor_0();
	for (int i = 0; i < 2; i++) {
		submit(SMP_SET, leaf(1), &outcomes[i]);
		begin(&runner);
		assert_true(fcntl(0, F_GETFD) >= 0);
		begin(&call);
		end(&call, 1);
		if (i)
			cancel_all();
		else
			mad_async_stop(async);
		end(&runner, i ? 2 : -EINTR);
		assert_in_range(machine_us(), 0, 100);
	}
	free_engine();
	close_port();
	take_descriptor_0(copy);
	machine_stop();
}

/* A stop cannot write then. */
TEST(a_stop_leaves_errno_alone_though_the_descriptor_is_full)
{
	unsigned full = 0;

	/* handles are eventfds, too */
	for (int fd = 0; fd < 64; fd++)
		if (fd != mad_rpc_portid(port) && is_eventfd(fd))
			full += !eventfd_write(fd, UINT64_MAX - 1);
	assert_int_equal(full, 1);
	errno = EXDEV;
	mad_async_stop(async);
	assert_int_equal(errno, EXDEV);
	assert_int_equal(mad_async_wait(async, -1), -EINTR);
}

static volatile sig_atomic_t signals;

static void stop_by_signal(int number)
{
	(void)number;
	signals++;
	mad_async_stop(async);
}

/* In the thread that moves a packet, in the midst of a call. */
static enum machine_verdict raise_signal(struct machine_mad *mad, void *arg)
{
	(void)mad;
	(void)arg;
	raise(SIGUSR1);
	return MACHINE_PASS;
}

TEST(a_signal_handler_may_stop_a_run)
{
	struct sigaction action = {.sa_handler = stop_by_signal}, before;
	int stopped = 0, ret;

	signals = 0;
	sigaction(SIGUSR1, &action, &before);
	machine_on_arrival(raise_signal, NULL);
	for (int i = 0; i < 20; i++) {
		if (i == 10)
			machine_rule("slow 5ms");
		submit_some(8);
		while ((ret = mad_async_wait(async, -1)) == -EINTR)
			stopped++;
		assert_in_range(ret, 0, 8);
		expect_all(8, 0);
	}
	machine_on_arrival(NULL, NULL);
	assert_in_range(signals, 320, 640);
	assert_in_range(stopped, 20, 640);
	sigaction(SIGUSR1, &before, NULL);
}

/* --- the end of a port ---------------------------------------------------------- */

static const struct crowd_row {
	const char *behaviour;
	void (*end)(void);
	int error;
	enum call leader;
	bool high;
} crowd_rows[] = {
	{"closing_the_port_wakes_a_leader_that_runs", close_port, ECANCELED, RUN, false},
	{"closing_the_port_wakes_a_leader_that_calls", close_port, ECANCELED, ASK, false},
	{"closing_the_port_wakes_a_leader_that_receives", close_port, ECANCELED, RECEIVE,
	 false},
	{"a_removal_wakes_a_leader_that_runs", remove_device, ENODEV, RUN, false},
	{"a_removal_wakes_a_leader_that_calls", remove_device, ENODEV, ASK, false},
	{"a_removal_wakes_a_leader_that_receives", remove_device, ENODEV, RECEIVE, false},
	{"a_handle_that_is_closed_lets_everybody_go", close_port, ECANCELED, ASK, true},
	{"a_handle_that_goes_lets_everybody_go", remove_device, ENODEV, RECEIVE, true},
};

/* And all the others. */
static void end_crowd(const struct crowd_row *row)
{
	struct caller callers[3 * CALLS];
	int64_t begun;
	unsigned before;

	close_engine();
	assert_int_equal(set_up(row->high), 0);
	silence();
	submit_some(8);
	for (unsigned i = 0; i < 3 * CALLS; i++) {
		callers[i] =
			(struct caller){.call = (row->leader + i) % CALLS, .node = 1 + i % 8};
		callers[i].rpc = rpc_of(i & 1 ? SMP_SET : SMP_GET);
		begin(&callers[i]);
	}
	begun = machine_us();
	before = polls();
	row->end();
	for (int i = 0; i < 3 * CALLS; i++) {
		join(callers[i].thread);
		assert_in_range(callers[i].at - begun, 0, row->high ? 100 * MS : 0);
		if (callers[i].call == RUN)
			continue;
		assert_int_equal(callers[i].result, 0);
		assert_int_equal(callers[i].error, row->error);
	}
	expect_all(8, -row->error);
	assert_in_range(polls() - before, 0, row->high ? 10 : 1);
}

TEST_ROWS(end_crowd, crowd_rows);

/* A request that is being written ends after that; who waits for it does not poll meanwhile. */
TEST(a_run_ends_with_what_is_being_written_to_a_device_that_is_gone)
{
	for (int cancels = 0; cancels < 2; cancels++) {
		struct caller runner = runs;
		pthread_t submitter;
		unsigned before;

		close_engine();
		assert_int_equal(setup(), 0);
		submitter = begin_slow_write(async);
		if (cancels)
			cancel_all();
		begin(&runner);
		before = polls();
		remove_device();
		end(&runner, 1);
		assert_in_range(machine_us(), 50 * MS, 51 * MS);
		assert_in_range(polls() - before, 0, 1);
		join(submitter);
	}
}

/* Memory is freed after the burst, and the response to the call is still expected. */
TEST(a_burst_leaves_a_call_alone)
{
	struct caller call = asker(1);
	uint64_t id = 0;

	slow_nodes("9");
	mad_port_set(port, MAD_PORT_SMP_WINDOW, 4000);
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 4000);
	begin(&call);
	for (unsigned i = 0; i < 3000; i++)
		id = submit(SMP_SET, leaf(2), &outcomes[i % MANY]);
	assert_int_equal(mad_async_wait(async, -1), 3000);
	assert_int_equal(mad_async_cancel(async, id), -ENOENT);
	assert_false(call.ended);
	end(&call, 1);
}

/* --- fork ----------------------------------------------------------------------- */

/* ThreadSanitizer supports no threads in a child. */
#ifndef __SANITIZE_THREAD__

static int child_that_has_lost_the_port(void)
{
	uint8_t data[MACHINE_MAD] = {0}, umad[1024] = {0};
	ib_portid_t to = {.lid = (int)leaf(1)};
	struct mad_async_stats stats;
	ib_rpc_t rpc = rpc_of(SMP_SET);

	mad_async_stop(async); /* not the parent's */
	EXPECT(mad_async_submit(async, &rpc, &to, data, 1, note, NULL, NULL) == -ECANCELED);
	EXPECT(mad_async_process(async) == -ECANCELED);
	EXPECT(mad_async_wait(async, 0) == -ECANCELED);
	EXPECT(mad_async_wait(async, -1) == -ECANCELED);
	EXPECT(mad_async_cancel(async, 1) == -ECANCELED);
	EXPECT(mad_async_cancel(async, MAD_ASYNC_ALL) == -ECANCELED);
	EXPECT(mad_async_get_stats(async, &stats, sizeof(stats)) == -ECANCELED);
	EXPECT(mad_async_poll_fd(async) == -ECANCELED);
	EXPECT(mad_port_set(port, MAD_PORT_SMP_WINDOW, 1) == -ECANCELED);
	EXPECT(mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1) == -ECANCELED);
	EXPECT(mad_port_set(port, MAD_PORT_RATE, 1) == -ECANCELED);
	EXPECT(!mad_rpc(port, &rpc, &to, data, data) && errno == ECANCELED);
	EXPECT(mad_send_via(&rpc, &to, NULL, data, port) == -1 && errno == ECANCELED);
	EXPECT(!mad_receive_via(umad, 0, port) && errno == ECANCELED);
	EXPECT(!mad_async_create(port) && errno == ECANCELED);
	mad_async_free(async);
	mad_rpc_close_port(port);
	return 0;
}

/* Whatever the thread of the parent does in a call; the parent goes on. */
TEST(while_threads_are_in_calls_the_port_is_lost_in_a_child)
{
	enum {
		CALLING_BACK = CALLS,
		WRITING,
		WHERE
	};

	for (int i = 0; i < WHERE; i++) {
		struct caller caller = {.call = i < CALLS ? (enum call)i : RUN, .node = 1};

		slow_nodes("1");
		if (i == WRITING) {
			caller.call = ASK;
			machine_slow_call(MACHINE_WRITE, 10 * MS);
		} else if (i == CALLING_BACK) {
			machine_rule("slow 0us");
			submit_with(async, rpc_of(SMP_SET), leaf(1), note_slowly, &outcomes[0]);
		} else if (i == RUN) {
			submit(SMP_SET, leaf(1), &outcomes[0]);
		}
		begin(&caller);
		machine_slow_call(MACHINE_WRITE, 0);
		run_in_child(child_that_has_lost_the_port);
		if (i == RECEIVE)
			send_request(0);
		end(&caller, 1);
	}
}

static int child_with_threads(void)
{
	struct caller call = asker(1), runner = runs;

	/* the engine is the child's, too: its threads are woken by cancelling and stops */
	EXPECT(mad_async_wait(async, 0) == 0);
	machine_rule("slow 1s");
	for (int i = 0; i < 3; i++) {
		submit(SMP_SET, leaf(1), &outcomes[0]);
		if (i == 2)
			begin(&call);
		begin(&runner);
		EXPECT(!runner.ended);
		if (i)
			mad_async_stop(async);
		else
			cancel_all();
		EXPECT(join(runner.thread) == 0 && runner.result == (i ? -EINTR : 1));
	}
	EXPECT(join(call.thread) == 0 && call.result == 1);
	free_engine();
	close_port();
	return 0;
}

TEST(a_child_may_begin_with_many_threads)
{
	run_in_child(child_with_threads);
	assert_int_equal(mad_async_wait(async, -1), 0);
}

static pid_t forked;

static void fork_in_callback(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	note(engine, reply, arg);
	forked = fork();
	if (forked)
		return;
	submit(SMP_SET, leaf(3), &outcomes[2]);
	mad_async_free(engine); /* a callback cannot */
}

/* The thread that forks is in a call itself; the child goes on in that call. */
TEST(a_callback_may_fork)
{
	struct caller call = asker(4);
	int count, status;

	slow_nodes("12");
	submit_with(async, rpc_of(SMP_SET), leaf(1), fork_in_callback, &outcomes[0]);
	submit(SMP_SET, leaf(2), &outcomes[1]);
	machine_pass(15 * MS);
	count = mad_async_process(async);
	if (!forked) {
		/* as one of several threads */
		slow_nodes("1221");
		begin(&call);
		count += mad_async_wait(async, -1);
		pthread_join(call.thread, NULL);
		if (__gcov_dump)
			__gcov_dump();
		_exit(count != 3 || outcomes[0].calls != 1 || outcomes[1].error != -ECANCELED ||
		      outcomes[2].calls != 1 || outcomes[2].error || call.result != 1);
	}
	assert_int_equal(waitpid(forked, &status, 0), forked);
	assert_int_equal(status, 0);
	assert_int_equal(count, 1);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(outcomes[1].error, 0);
}

static void fork_only(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	note(engine, reply, arg);
	forked = fork();
}

/* Without a call in the callback, too. */
TEST(a_child_that_returns_from_a_callback_does_not_wait_for_the_parent_s_requests)
{
	int count, status;

	slow_nodes("12");
	submit_with(async, rpc_of(SMP_SET), leaf(1), fork_only, &outcomes[0]);
	submit(SMP_SET, leaf(2), &outcomes[1]);
	count = mad_async_wait(async, -1);
	if (!forked) {
		if (__gcov_dump)
			__gcov_dump();
		_exit(count != 2 || outcomes[0].calls != 1 || outcomes[1].error != -ECANCELED);
	}
	assert_int_equal(waitpid(forked, &status, 0), forked);
	assert_int_equal(status, 0);
	assert_int_equal(count, 2);
	expect_outcome(&outcomes[1], 0);
}

/* Also while the thread is writing: the request that it writes ends after the write. */
static void fork_in_hook(const struct umad_packet_info *packet, void *arg)
{
	struct mad_async_stats stats;

	(void)arg;
	if (packet->direction != UMAD_PACKET_SENT)
		return;
	umad_set_packet_hook(NULL, NULL);
	forked = fork();
	if (!forked)
		mad_async_get_stats(async, &stats, sizeof(stats));
}

TEST(a_hook_may_fork)
{
	int status;

	mad_port_set(port, MAD_PORT_SMP_WINDOW, 1);
	submit(SMP_SET, leaf(1), &outcomes[0]);
	submit(SMP_SET, leaf(2), &outcomes[1]);
	umad_set_packet_hook(fork_in_hook, NULL);
	assert_int_equal(mad_async_wait(async, -1), 2);
	if (!forked) {
		submit(SMP_SET, leaf(3), &outcomes[2]);
		submit(SMP_SET, leaf(4), &outcomes[3]);
		mad_async_wait(async, 1000);
		if (__gcov_dump)
			__gcov_dump();
		_exit(outcomes[0].error || outcomes[1].error != -ECANCELED ||
		      !outcomes[2].calls || outcomes[2].error || !outcomes[3].calls ||
		      outcomes[3].error);
	}
	expect_outcome(&outcomes[1], 0);
	assert_int_equal(waitpid(forked, &status, 0), forked);
	assert_int_equal(status, 0);
}

static int child_beside_a_call(void)
{
	EXPECT(ask(rpc_of(SMP_SET), leaf(3)) == -ECANCELED);
	return 0;
}

static void fork_beside_a_call(struct mad_async *engine, const struct mad_reply *reply,
			       void *arg)
{
	note(engine, reply, arg);
	run_in_child(child_beside_a_call);
}

TEST(a_callback_may_not_fork_a_port_that_others_use)
{
	struct caller receiver = receives;

	begin(&receiver);
	submit_with(async, rpc_of(SMP_SET), leaf(1), fork_beside_a_call, &outcomes[0]);
	while (!outcomes[0].calls) {
		settle();
		mad_async_process(async);
	}
	end_receiver(&receiver);
}

#endif
