/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Which request is sent next, and when: turns of classes, engines, blocking calls and nodes;
 * limits and the rate; BUSY; the end of requests wherever they are queued. And what is read:
 * a response that is queued when its time is over came in time.
 *
 * Much of it is told as text: events on a port, and what is expected after them. Nodes respond
 * when the text says so, and time passes when it says so.
 *
 *	"gmps 1; submit a1 a2 b1; sent a1; respond a1; done a1; sent a2"
 *
 * A request's name is its engine (a, b or c, or x for a blocking call), the number of its leaf,
 * and its kind, if that is not a PerfMgt Set: g (a PerfMgt Get), m (an SMP Get), s (a Get of
 * the SA's class), v (a vendor class). What follows a dot tells requests apart. Of two requests
 * with one name the first one without a response is meant; a1*3 is a1 a1 a1.
 *
 *	smps N, gmps N, limit N, rate N, attempts N	settings; "window N" is both windows
 *	submit NAME ...	until a blocking call returns, all leaves but 99 respond at once
 *	starve		the next step's first allocation fails
 *	cancel, respond, busy NAME ...	the latter: with status BUSY
 *	unread, unread-busy NAME ...	the response is queued, and no engine processes
 *	receive		mad_receive_via() reads, and sends nothing
 *	pass TIME, wait TIME	5ms or 100us; the engines process every 100 us, or not at all
 *	finish		nodes respond until all requests are complete
 *	remove, end E	the device; the engine
 *
 *	sent NAME ...	the packets since the last "sent", in this order
 *	among N M NAME	of the first N packets since the last "sent", M have this name
 *	done, failed NAME ...	the callbacks since the last of them, without and with an error
 *	all ERROR	each request was called back once, since the last "done" with this error
 *	queued, in-flight, retried N	statistics of engine a
 *	wakes N		the loop of engine a is woken after so many milliseconds, rounded up
 */

#include "../heap_in_use.h"
#include "async.h"

#include <sys/resource.h>

#define ENGINES      3
#define LEAVES       110
#define DEAD         99
#define REQUESTS_MAX 9000
#define VENDOR       0x0a

struct request {
	char name[32], node[8];
	uint64_t id;
	struct outcome outcome;
	bool was_sent, has_response;
	uint8_t mad[MACHINE_MAD]; /* the latest one */
};

struct list {
	unsigned numbers[REQUESTS_MAX], count;
};

static struct {
	const char *text, *step;
	char verb[32];
	struct mad_async *engines[ENGINES];
	struct request requests[REQUESTS_MAX];
	unsigned count;
	struct list sent, called;
	bool calling, in_child;
} play;

static struct outcome outcomes[2000];

static void expect(bool holds, const char *seen, int number)
{
	if (holds)
		return;
	print_error("\"%s\"\nat \"%.*s\": %s (%d)\n", play.text, (int)strcspn(play.step, ";"),
		    play.step, seen, number);
	if (play.in_child)
		_exit(1);
	fail();
}

/* The next word of a step, *times for "word*times"; NULL: there is none. */
static const char *next_word(const char **at, unsigned *times)
{
	static char word[32];
	int length = 0;

	*times = 1;
	if (sscanf(*at, " %31[^ ;*]%n*%u%n", word, &length, times, &length) < 1)
		return NULL;
	*at += length;
	return word;
}

static struct request *find_request(const char *name)
{
	for (unsigned i = 0; i < play.count; i++)
		if (!play.requests[i].outcome.calls && !play.requests[i].has_response &&
		    !strcmp(play.requests[i].name, name))
			return &play.requests[i];
	expect(false, name, 0);
	abort();
}

static void note_call(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct request *request = arg;

	note(engine, reply, &request->outcome);
	play.called.numbers[play.called.count++] = (unsigned)(request - play.requests);
}

/* The attribute modifier is the number of the request. */
static struct request *submit_name(const char *name)
{
	struct request *request = &play.requests[play.count];
	char kind = name[1 + strspn(name + 1, "0123456789")];
	ib_portid_t to = {.lid = (int)leaf((unsigned)atoi(name + 1))};
	ib_rpc_t rpc = rpc_of(kind == 'm' ? SMP_GET : kind == 's' ? SA_GET : PMA_SET);
	uint8_t data[MACHINE_MAD] = {0};
	int ret;

	expect(play.count < REQUESTS_MAX, "too many requests", REQUESTS_MAX);
	*request = (struct request){.id = 0};
	snprintf(request->name, sizeof(request->name), "%s", name);
	rpc.attr.mod = play.count++;
	if (kind == 'g')
		rpc.method = IB_MAD_METHOD_GET;
	if (kind == 'v')
		rpc.mgtclass = VENDOR;
	if (kind != 'm') {
		to.qp = 1;
		to.qkey = IB_DEFAULT_QP1_QKEY;
	}
	if (*name == 'x') {
		play.calling = true;
		ret = mad_rpc(port, &rpc, &to, data, data) ? 0 : -errno;
		play.calling = false;
		request->outcome.calls++;
	} else {
		ret = mad_async_submit(play.engines[*name - 'a'], &rpc, &to, NULL, 0, note_call,
				       request, &request->id);
	}
	expect(!ret, "the call returned", ret);
	return request;
}

static enum machine_verdict hold_request(struct machine_mad *mad, void *arg)
{
	unsigned number = (unsigned)(mad->bytes[22] << 8 | mad->bytes[23]);
	struct request *request = &play.requests[number];

	(void)arg;
	if (mad->at_host)
		return MACHINE_PASS;
	if (number >= play.count || play.sent.count == REQUESTS_MAX)
		abort();
	memcpy(request->mad, mad->bytes, MACHINE_MAD);
	snprintf(request->node, sizeof(request->node), "%s", mad->node);
	request->was_sent = true;
	play.sent.numbers[play.sent.count++] = number;
	return play.calling && mad->dlid != leaf(DEAD) ? machine_reply(mad, 0, 0, NULL, 0)
						       : MACHINE_DROP;
}

static void respond_to(const struct request *request, uint16_t status)
{
	uint8_t bytes[MACHINE_MAD];
	struct machine_mad mad = {.bytes = bytes};

	expect(request->was_sent, "it was not sent", 0);
	memcpy(bytes, request->mad, MACHINE_MAD);
	machine_reply(&mad, status, 0, NULL, 0);
	machine_send(request->node, bytes, 0);
}

/* In two rounds: what the last engine's requests permit is sent, too. */
static void process_all(void)
{
	machine_pass(0);
	for (unsigned i = 0; i < 2 * ENGINES; i++) {
		struct mad_async *engine = play.engines[i % ENGINES];
		int ret = engine ? mad_async_process(engine) : 0;

		expect(ret >= 0 || ret == -ENODEV, "mad_async_process()", ret);
		machine_pass(0);
	}
}

static bool is(const char *verb)
{
	return !strcmp(play.verb, verb);
}

/* A step with the names of requests. */
static bool handle_requests(const char *at)
{
	bool submits = is("submit"), cancels = is("cancel");
	bool busy = strstr(play.verb, "busy"), unread = !strncmp(play.verb, "unread", 6);
	struct request *request;
	unsigned times;

	if (!submits && !cancels && !busy && !unread && !is("respond"))
		return false;
	for (const char *name; (name = next_word(&at, &times));)
		for (; times; times--) {
			request = submits ? submit_name(name) : find_request(name);
			if (cancels)
				mad_async_cancel(play.engines[*name - 'a'], request->id);
			else if (!submits)
				respond_to(request, busy ? IB_MAD_STS_BUSY : 0);
			request->has_response = !submits && !cancels && !busy;
			machine_pass(0);
			if (!unread && (!submits || *name == 'x'))
				process_all();
		}
	return true;
}

static bool change_setting(int64_t number)
{
	static const struct {
		const char *verb;
		enum mad_port_option option;
	} settings[] = {{"window", MAD_PORT_SMP_WINDOW},       {"window", MAD_PORT_GMP_WINDOW},
			{"smps", MAD_PORT_SMP_WINDOW},         {"gmps", MAD_PORT_GMP_WINDOW},
			{"limit", MAD_PORT_DESTINATION_LIMIT}, {"rate", MAD_PORT_RATE}};
	bool found = is("attempts");

	if (found)
		mad_rpc_set_retries(port, (int)number);
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
		if (is(settings[i].verb)) {
			mad_port_set(port, settings[i].option, (uint64_t)number);
			found = true;
		}
	machine_pass(0);
	return found;
}

static bool make_event(const char *at, int64_t us)
{
	if (is("wait")) {
		machine_pass(us);
		return true;
	} else if (is("receive")) {
		expect(!mad_receive_via(NULL, 0, port) && errno == EAGAIN, "a message", errno);
		return true;
	} else if (is("pass")) {
		for (; us > 0; us -= 100) {
			process_all();
			machine_pass(100);
		}
	} else if (is("remove")) {
		machine_rule("remove on host");
	} else if (is("end")) {
		mad_async_free(play.engines[*at - 'a']);
		play.engines[*at - 'a'] = NULL;
	} else if (is("finish")) {
		play.calling = true;
		for (unsigned i = 0; i < play.count; i++)
			if (play.requests[i].was_sent && !play.requests[i].outcome.calls)
				respond_to(&play.requests[i], 0);
		for (int i = 0; i < 1200; i++) {
			process_all();
			machine_pass(100 * MS);
		}
		play.calling = false;
		play.sent.count = 0;
	} else {
		return false;
	}
	process_all();
	return true;
}

/* The names of the requests in a list, which becomes empty. */
static void expect_names(const char *at, struct list *list)
{
	static char seen[1024];
	const char *name;
	unsigned times, i = 0;
	bool good = true;

	strcpy(seen, "seen:");
	for (unsigned j = 0; j < list->count && strlen(seen) < sizeof(seen) - 34; j++)
		sprintf(strchr(seen, 0), " %s", play.requests[list->numbers[j]].name);
	while (good && (name = next_word(&at, &times)))
		for (; good && times; times--, i++)
			good = i < list->count &&
			       !strcmp(play.requests[list->numbers[i]].name, name);
	expect(good && i == list->count, seen, (int)list->count);
	list->count = 0;
}

/* "N M NAME" */
static void expect_among(const char *at)
{
	unsigned packets, wanted, seen = 0;
	char name[32];

	sscanf(at, "%u %u %31[^; ]", &packets, &wanted, name);
	for (unsigned i = 0; i < packets && i < play.sent.count; i++)
		seen += !strcmp(play.requests[play.sent.numbers[i]].name, name);
	expect(play.sent.count >= packets && seen == wanted, "seen", (int)seen);
}

static void expect_calls(int error)
{
	for (unsigned i = 0; i < play.called.count; i++) {
		const struct request *request = &play.requests[play.called.numbers[i]];

		expect(request->outcome.calls == 1 && request->outcome.error == error,
		       request->name, request->outcome.error);
	}
}

static void check(const char *at, int64_t number)
{
	int64_t begun = machine_us();

	if (is("sent")) {
		expect_names(at, &play.sent);
	} else if (is("among")) {
		expect_among(at);
	} else if (is("done") || is("failed")) {
		expect_calls(is("done") ? 0 : -ECANCELED);
		expect_names(at, &play.called);
	} else if (is("all")) {
		expect_calls(*at == '0' ? 0 : at[1] == 'N' ? -ENODEV : -ECANCELED);
		play.called.count = 0;
		for (unsigned i = 0; i < play.count; i++)
			expect(play.requests[i].outcome.calls == 1, play.requests[i].name, 0);
	} else if (is("wakes")) {
		expect(loop_is_awake(async, 3600000), "it is not woken", 0);
		begun -= machine_us();
		expect((999 - begun) / 1000 == number, "us", (int)-begun);
	} else {
		struct mad_async_stats stats = stats_of(async);
		uint64_t seen = is("queued")      ? stats.queued
				: is("in-flight") ? stats.in_flight
				: is("retried")   ? stats.retried
						  : UINT64_MAX;

		expect(seen == (uint64_t)number, "seen", (int)seen);
	}
}

/* Carries out the steps of a text, which goes on after the one before. */
static void run_text(const char *text)
{
	unsigned times;

	play.text = text;
	for (const char *at = text; *at; at += strspn(at, "; ")) {
		char *unit;
		int64_t number;

		play.step = at;
		snprintf(play.verb, sizeof(play.verb), "%s", next_word(&at, &times));
		at += strspn(at, " ");
		number = strtoll(at, &unit, 10);
		if (is("starve")) {
			machine_fail(MACHINE_MALLOC, 1, ENOMEM);
		} else {
			if (!handle_requests(at) && !change_setting(number) &&
			    !make_event(at, number * (*unit == 'm' ? MS : 1)))
				check(at, number);
			machine_fail(MACHINE_MALLOC, 0, 0);
		}
		at += strcspn(at, ";");
	}
}

static int setup(void)
{
	memset(&play, 0, sizeof(play));
	memset(outcomes, 0, sizeof(outcomes));
	if (open_engine("star:110") || mad_register_client_via(VENDOR, 0, port))
		return -1;
	mad_rpc_set_timeout(port, 60000);
	run_text("attempts 3; window 100; limit 100");
	machine_on_arrival(hold_request, NULL);
	play.engines[0] = async;
	for (int i = 1; i < ENGINES; i++)
		play.engines[i] = mad_async_create(port);
	return 0;
}

static int teardown(void)
{
	for (int i = 1; i < ENGINES; i++)
		mad_async_free(play.engines[i]);
	async = play.engines[0];
	return close_engine();
}

FIXTURE(setup, teardown);

/* Each row on a port of its own: SCENARIO(a_sentence, "a row", "another one"); is a test. */
#define SCENARIO(name, ...)                                                       \
	PLAIN_TEST(name)                                                          \
	{                                                                         \
		static const char *const rows[] = {__VA_ARGS__};                  \
                                                                                  \
		for (size_t row = 0; row < sizeof(rows) / sizeof(*rows); row++) { \
			assert_int_equal(setup(), 0);                             \
			run_text(rows[row]);                                      \
			teardown();                                               \
		}                                                                 \
	}                                                                         \
	struct request

/* Round trips of 500 us: a response is late after 1500 us. */
#define KNOWN                                               \
	"submit c110m c110g; pass 500us; sent c110m c110g;" \
	" respond c110m c110g; done c110m c110g; "

/* --- turns ---------------------------------------------------------------------- */

SCENARIO(classes_and_engines_take_turns_of_four_requests,
	 "gmps 1; submit a100 a1 a2 a3 a4 a5 a6 a11s a12s a13s a14s a15s a21v a22v a23v"
	 " a24v a25v; sent a100; gmps 100; sent a1 a2 a3 a4 a11s a12s a13s a14s"
	 " a21v a22v a23v a24v a5 a6 a15s a25v",
	 "gmps 1; submit a100 a1 a2 a3 a4 a5 a6 b60 b61; sent a100; gmps 100;"
	 " sent a1 a2 a3 a4 b60 b61 a5 a6",
	 /* a blocking call waits for one turn of an engine */
	 "gmps 1; submit a100 a1 a2 a3 a4 a5 a6; sent a100; unread a100; submit x77;"
	 " sent a1 a2 a3 a4 x77 a5",
	 /* and needs no thread of the engine, whose requests fill the window */
	 KNOWN "gmps 1; submit a99*5; sent a99; submit x2; sent a99*3 x2 a99; done");

/* Also if there is room in the window by then. */
SCENARIO(a_new_request_is_sent_after_those_that_are_queued,
	 "rate 10; submit a1 a2 a3; sent a1; wait 250ms; submit a50; sent a2; pass 100ms;"
	 " sent a3; pass 100ms; sent a50",
	 "gmps 1; submit a1 a2; sent a1; unread a1; submit a3; receive; sent a2; respond a2;"
	 " sent a3");

/* --- windows and the rate ------------------------------------------------------- */

SCENARIO(a_fixed_window_is_never_exceeded,
	 "gmps 3; submit a1 a2 a3 a4 a5 a6; sent a1 a2 a3; queued 3; in-flight 3;"
	 " respond a1; sent a4; queued 2; in-flight 3; respond a3; sent a5; respond a2;"
	 " sent a6; respond a4 a5; sent; in-flight 1; done a1 a3 a2 a4 a5",
	 "smps 2; gmps 3; submit a1m a2m a3m a1 a2 a3 a4; sent a1m a2m a1 a2 a3",
	 /* if it is raised, at once and in order */
	 "smps 2; submit a1m a2m a3m a4m a5m a6m; sent a1m a2m; smps 5; sent a3m a4m a5m;"
	 " queued 1",
	 "gmps 5; submit a1 a2 a3 a4 a5 a6 a7; sent a1 a2 a3 a4 a5; gmps 2;"
	 " respond a1 a2 a3; sent; respond a4; sent a6");

SCENARIO(an_engine_wakes_up_when_the_rate_permits_it,
	 "smps 1; rate 20; submit a1m a3; sent a1m; wakes 49; pass 1ms; sent a3",
	 /* not for a window that is full, but when the response is late */
	 "smps 1; rate 20; submit a1m a2m; sent a1m; wakes 100");

SCENARIO(only_what_is_sent_counts_for_the_rate,
	 "rate 10; submit a1 a2 a3m; sent a1; respond a1; pass 98ms; sent; pass 2ms;"
	 " sent a3m; pass 98ms; sent; pass 2ms; sent a2",
	 /* what was not used is lost but for a burst of a millisecond */
	 "rate 5000; submit a1*10; sent a1*6; wait 1000ms; submit b1*10; sent a1*4 b1*2;"
	 " pass 1ms; sent b1*5",
	 "rate 1; submit a1 a2; rate 0; sent a1 a2");

/* --- limits of nodes, and turns at a node --------------------------------------- */

SCENARIO(a_destination_has_a_limit,
	 "limit 3; submit a1.1 a1.2 a1.3 a1.4 a1.5 a1.6; sent a1.1 a1.2 a1.3; queued 3;"
	 " in-flight 3; respond a1.1; sent a1.4; respond a1.3 a1.2 a1.4; sent a1.5 a1.6",
	 /* one request until it has responded to some */
	 "window 0; limit 0; submit a1*20; sent a1; respond a1; sent a1; respond a1;"
	 " sent a1 a1",
	 /* it holds up itself alone */
	 "limit 1; gmps 2; submit a1*20 a2 a3 a4 a5 a6; sent a1 a2;"
	 " respond a2 a3 a4 a5; sent a3 a4 a5 a6");

SCENARIO(a_limit_that_changes_keeps_the_order,
	 "limit 1; submit a1*10; sent a1; limit 4; sent a1*3; respond a1; sent a1; limit 1;"
	 " respond a1*3; sent; respond a1; sent a1",
	 /* before it was of use */
	 "gmps 2; limit 1; submit a1.1 a1.2 a1.3 a1.4 a2; sent a1.1 a2; limit 15; sent;"
	 " limit 1; gmps 100; sent; respond a2; sent; respond a1.1; sent a1.2; respond a1.2;"
	 " sent a1.3; respond a1.3; sent a1.4; respond a1.4; all 0",
	 /* it holds for those that are not sent yet */
	 "limit 1; gmps 2; submit a1.1 a1.2 a1.3 a1.4 a1.5 a2 a3 a4 a5; sent a1.1 a2;"
	 " limit 100; limit 3; sent; gmps 100; sent a3 a1.2 a4 a1.3 a5;"
	 " respond a1.1; sent a1.4; respond a1.3; sent a1.5");

SCENARIO(engines_and_classes_take_turns_at_a_node,
	 "limit 1; submit a1*3 b1*3; sent a1; respond a1 a1 b1 a1 b1; sent a1 b1 a1 b1 b1",
	 "limit 1; submit a1*3 a1v*2; sent a1; respond a1 a1 a1v a1; sent a1 a1v a1 a1v",
	 /* those that waited and others alternate */
	 "limit 1; gmps 2; submit a1*5 a2 a3 a4 a5; sent a1 a2; limit 100; sent;"
	 " gmps 100; sent a3 a1 a4 a1 a5 a1 a1");

#define QUEUE                                                                               \
	"respond a2 a3 a4 a5 a6 a7 a8 a9 a1; limit 1; sent a2 a3 a4 a5 a6 a7 a8 a9 a1;"     \
	"submit a9*4 a8*4 a7*4 a6*4 a5*4 a4*4 a3*4 a2*4 a1*6; sent a9 a8 a7 a6 a5 a4 a3 a2" \
	" a1; limit 100;"

/* Many requests wait for each node; all places become free at once. */
SCENARIO(a_quick_node_does_not_wait_for_each_of_the_others,
	 "submit a2 a3 a4 a5 a6 a7 a8 a9; pass 900us; submit a1; pass 100us;" QUEUE
	 "among 12 5 a1",
	 /* half as long as the others: it waits for them */
	 "submit a2 a3 a4 a5 a6 a7 a8 a9; pass 500us; submit a1; pass 500us;" QUEUE
	 "among 12 2 a1");

SCENARIO(without_memory_to_queue_a_request_no_limit_holds,
	 "limit 1; submit a1; starve; submit a1; sent a1 a1; submit a1; sent;"
	 " respond a1; sent; respond a1; sent a1; respond a1; done a1*3");

/* --- retransmissions ------------------------------------------------------------ */

SCENARIO(a_late_request_keeps_its_place_at_the_node_if_the_limit_is_fixed,
	 /* adaptive: the next one is sent, and the first one is not complete */
	 KNOWN "limit 0; submit a1 a1; sent a1; pass 1ms; sent; pass 2ms; sent a1;"
	       " queued 0; retried 0; done",
	 KNOWN "limit 1; submit a1.1 a1.2; sent a1.1; pass 50ms; sent; queued 1;"
	       " cancel a1.1; sent a1.2",
	 KNOWN "limit 1; attempts 2; submit a1g.1 a1g.2; sent a1g.1; pass 4ms;"
	       " sent a1g.1; queued 1; cancel a1g.1; sent a1g.2");

SCENARIO(retransmissions_come_first,
	 KNOWN "submit a1m; pass 500us; respond a1m; done a1m; sent a1m; smps 1;"
	       " submit a1m a2m a3m; sent a1m; pass 2ms; sent a1m; retried 1",
	 /* they wait for the window */
	 KNOWN "smps 2; submit a1m; pass 1ms; submit a2m; sent a1m a2m; smps 1; pass 2500us;"
	       " sent a1m; pass 2ms; sent a2m",
	 /* in a silence those that were never sent do: one of their nodes may respond */
	 KNOWN "submit a1m a2m a3m a4m; pass 500us; respond a1m a2m a3m a4m;"
	       " sent a1m a2m a3m a4m; smps 4; submit a1m a2m a3m a4m a5m a6m a7m a8m a9m;"
	       " sent a1m a2m a3m a4m; wait 5ms; pass 28ms;"
	       " among 5 0 a1m; among 5 0 a2m; among 5 0 a3m; among 5 0 a4m; among 14 2 a5m");

SCENARIO(a_response_ends_what_is_queued_to_be_sent_again,
	 KNOWN "rate 1; submit a1m; sent a1m; pass 20ms; respond a1m; done a1m;"
	       " rate 0; pass 100ms; sent",
	 /* after BUSY it pauses */
	 KNOWN "rate 1; submit a1m; sent a1m; pass 20ms; busy a1m; done; rate 0; sent;"
	       " pass 20ms; sent a1m");

/* The pause lasts 10 to 15 ms. */
SCENARIO(after_busy_a_request_gives_up_its_place,
	 /* requests of other flows are sent, those of its own wait */
	 "limit 1; submit a1.1 a1.2 a1v b1; sent a1.1; busy a1.1; sent a1v; respond a1v;"
	 " sent b1; respond b1; pass 9ms; sent; pass 10ms; sent a1.1; respond a1.1; sent a1.2",
	 /* also new ones, and although there are places */
	 "limit 10; submit a1.1; sent a1.1; busy a1.1; submit a1.2 b1 a1v a2;"
	 " sent b1 a1v a2; pass 20ms; sent a1.1 a1.2",
	 /* two of one flow */
	 "limit 10; submit a1.1 a1.2 a1.3; sent a1.1 a1.2 a1.3; busy a1.1 a1.2;"
	 " submit a1.4; respond a1.3; sent; pass 20ms; queued 0",
	 /* the blocking call reads BUSY while it is queued for the node */
	 "limit 1; submit a1v; sent a1v; unread-busy a1v; submit x1; sent x1",
	 /* it has one place afterwards */
	 "limit 2; submit a1.1; sent a1.1; busy a1.1; pass 20ms; sent a1.1;"
	 " submit a1.2 a1.3; sent a1.2; respond a1.1; sent a1.3",
	 /* if there is no place, it is the next one */
	 "limit 1; submit a1.1; sent a1.1; busy a1.1; submit b1.1 b1.2 a1.2; sent b1.1;"
	 " pass 20ms; sent; respond b1.1; sent a1.1; respond a1.1; sent b1.2;"
	 " respond b1.2; sent a1.2",
	 /* whatever ends the pause */
	 "limit 10; submit a1.1; sent a1.1; busy a1.1; submit a1.2; sent; cancel a1.1;"
	 " sent a1.2; failed a1.1",
	 "limit 10; submit a1.1; sent a1.1; busy a1.1; submit a1.2 b1; sent b1; end a;"
	 " failed a1.1 a1.2; submit b1; sent b1",
	 /* without memory the others do not wait */
	 "limit 10; submit a1.1; sent a1.1; starve; busy a1.1; submit a1.2; sent a1.2;"
	 " pass 20ms; sent a1.1");

/* --- the end of requests -------------------------------------------------------- */

/* In flight, resumed, not looked at yet, and waiting for a node. */
#define EVERYWHERE "limit 1; gmps 2; submit a1*21 a2 a3 a4 a5 a6 a7; limit 10;"

SCENARIO(a_device_that_goes_completes_what_is_queued_anywhere, EVERYWHERE "remove; all ENODEV",
	 /* what pauses after BUSY, and what waits for that */
	 "limit 1; submit a1 a1 a1v b1; busy a1; remove; all ENODEV",
	 "limit 10; submit a1; busy a1; submit a1 a1v; remove; all ENODEV",
	 /* what is to be sent again, or no rate permits */
	 KNOWN "rate 1; submit a1m a2 a3; pass 20ms; remove; all ENODEV");

SCENARIO(an_engine_that_ends_leaves_another_one_s_requests_queued,
	 /* and makes way for them */
	 "gmps 1; submit a1 b2; sent a1; end a; failed a1; sent b2",
	 EVERYWHERE "submit b1 b30; done; end a; failed a1*21 a2 a3 a4 a5 a6 a7;"
		    "finish; all 0");

TEST(after_the_device_has_gone_nothing_is_written)
{
	unsigned writes;

	run_text("submit a1; sent a1");
	machine_rule("remove on host");
	/* before the removal is known, a write fails */
	run_text("submit a2; pass 1ms; all ENODEV");
	writes = machine_calls(MACHINE_WRITE);
	assert_int_equal(ask(rpc_of(SMP_SET), leaf(1)), -ENODEV);
	assert_int_equal(mad_async_get(async, &(ib_portid_t){.lid = 11}, MAD_NODE_INFO, 0, note,
				       outcomes, NULL),
			 -ENODEV);
	assert_int_equal(machine_calls(MACHINE_WRITE), writes);
}

static const char *child_text;

static int run_child_text(void)
{
	play.in_child = true;
	process_all();
	run_text(child_text);
	return 0;
}

static void expect_child(const char *text)
{
	child_text = text;
	run_in_child(run_child_text);
}

TEST(what_is_queued_in_the_parent_is_not_queued_in_a_child)
{
	run_text(EVERYWHERE "sent a1 a2; limit 0; smps 1; submit a9m; sent a9m");
	/* the sizes of windows and limits are its parent's; nothing is in flight */
	expect_child("sent; all ECANCELED; limit 10; gmps 4; submit a1*3 a2*2 a1m a2m;"
		     " sent a1*3 a2 a1m; finish; all 0");
	run_text("finish; all 0; limit 10; submit a1 a1; sent a1 a1; busy a1; submit a1;"
		 " queued 1");
	/* nor does a pause hold up requests */
	expect_child("all ECANCELED; sent; submit a1 b1; sent a1 b1; finish; all 0");
	run_text("sent; finish; all 0");
}

/* --- several at once ------------------------------------------------------------ */

/* A burst is what a millisecond allows. */
TEST(no_more_are_sent_than_the_rate_and_a_burst)
{
	static const unsigned rates[] = {1, 7, 999, 1001, 123456, 300000};

	run_text("window 4000; limit 4000; rate 1; submit a1 a2*4000; sent a1");
	for (unsigned i = 0; i < 6; i++) {
		/* as long as 500 packets take, and the millisecond of a burst */
		int64_t us = rates[i] < 500 ? SECOND : 500 * SECOND / rates[i];
		unsigned least = (unsigned)(rates[i] * us / SECOND);
		unsigned most = (unsigned)(rates[i] * (us + 1000) / SECOND);
		unsigned before = play.sent.count;

		mad_port_set(port, MAD_PORT_RATE, rates[i]);
		for (int64_t end = machine_us() + us; machine_us() < end; machine_pass(50))
			assert_int_equal(mad_async_process(async), 0);
		assert_in_range(play.sent.count - before, least - least / 100, most + 1);
	}
	/* a blocking call may have to wait, too */
	run_text("rate 0; finish; rate 1; submit b3 x4; sent b3 x4");
}

static struct turns {
	unsigned smps, longest, gmps; /* SMPs since the last GMP */
} turns;

static enum machine_verdict count_turns(struct machine_mad *mad, void *arg)
{
	bool smp = mad->bytes[1] == IB_SMI_CLASS;

	(void)arg;
	if (mad->at_host)
		return MACHINE_PASS;
	turns.smps = smp ? turns.smps + 1 : 0;
	turns.gmps += !smp;
	turns.longest = turns.smps > turns.longest ? turns.smps : turns.longest;
	return machine_reply(mad, 0, 0, NULL, 0);
}

/* There are always more queued SMPs than one call sends. */
TEST(queued_smps_do_not_hold_gmps_up)
{
	static const unsigned windows[] = {0, 128, 64};

	machine_on_arrival(count_turns, NULL);
	for (int i = 0; i < 3; i++) {
		mad_port_set(port, MAD_PORT_SMP_WINDOW, windows[i]);
		for (unsigned j = 0; j < 7000; j++)
			submit(j < 5000 ? SMP_GET : PMA_SET, leaf(1 + j % LEAVES), outcomes);
		turns = (struct turns){0};
		for (; turns.gmps < 1900; machine_pass(0))
			assert_true(mad_async_process(async) >= 0);
		assert_in_range(turns.longest, 1, 200);
		mad_async_wait(async, -1);
	}
}

static void *process_once(void *engine)
{
	mad_async_process(engine);
	return NULL;
}

TEST(the_device_may_go_while_a_request_is_written_again)
{
	pthread_t thread;

	run_text(KNOWN "submit a1m a2m; sent a1m a2m; wait 20ms");
	machine_slow_call(MACHINE_WRITE, 5 * MS);
	thread = start(process_once, async);
	machine_pass(MS);
	machine_rule("remove on host");
	assert_fails_null(mad_receive_via(NULL, 0, port), ENODEV);
	machine_slow_call(MACHINE_WRITE, 0);
	join(thread);
	run_text("pass 1ms; all ENODEV");
}

static unsigned at_n2, most_at_n2;

static enum machine_verdict count_at_n2(struct machine_mad *mad, void *arg)
{
	(void)arg;
	if (!strcmp(mad->node, "n2") && ++at_n2 > most_at_n2)
		most_at_n2 = at_n2;
	if (mad->at_host && mad->slid == leaf(2))
		at_n2--;
	return MACHINE_PASS;
}

/* Its limit holds; that of the first destination does not hold back a redirected request. */
TEST(a_redirect_s_target_is_a_destination)
{
	uint64_t ids[60];

	for (unsigned i = 1; i <= LEAVES; i++)
		if (i != 2)
			machine_rule("redirect n2 on n%u", i);
	machine_rule("slow 10ms on n2");
	machine_on_arrival(count_at_n2, NULL);
	run_text("window 1000; limit 4");
	for (int cancels = 0; cancels < 2; cancels++) {
		at_n2 = most_at_n2 = 0;
		memset(outcomes, 0, sizeof(outcomes));
		for (unsigned i = 0; i < 60; i++)
			ids[i] = submit(PMA_SET, leaf(i % 2 ? 10 + i : 1), &outcomes[i]);
		process_all();
		process_all();
		machine_pass(5 * MS);
		process_all();
		assert_int_equal(at_n2, 4);
		for (unsigned i = 0; cancels && i < 60; i += 2)
			assert_int_equal(mad_async_cancel(async, ids[i]), 0);
		assert_int_equal(mad_async_wait(async, -1), 60);
		assert_int_equal(most_at_n2, 4);
		for (int i = 0; i < 60; i++)
			expect_outcome(&outcomes[i], i % 2 || !cancels ? 0 : -ECANCELED);
	}
}

/* --- unread messages ------------------------------------------------------------ */

enum how {
	WAIT,
	LOOP,
	PROCESS,
	CALL /* a blocking call reads for all */
};

static const struct unread_row {
	const char *behaviour;
	enum kind kind;
	int timeout, attempts;
	enum how how;
	bool slow;   /* a callback is, and not the thread before */
	bool beside; /* another thread leads, and does not run */
} unread_rows[] = {
	{"a_wait_reads_all_before_it_judges_timers", PMA_GET, 1000, 3, WAIT, false, false},
	{"a_loop_reads_all_before_it_judges_timers", PMA_GET, 1000, 3, LOOP, false, false},
	{"process_reads_all_before_it_judges_timers", PMA_GET, 1000, 3, PROCESS, false, false},
	{"a_call_reads_all_before_it_judges_timers", PMA_GET, 1000, 3, CALL, false, false},
	{"no_set_times_out_in_a_slow_callback", PMA_SET, 100, 1, LOOP, true, false},
	{"no_get_is_sent_again_in_a_slow_callback", SMP_GET, 1000, 3, WAIT, true, false},
	{"a_call_after_a_slow_callback_ends_no_request", SMP_GET, 100, 1, CALL, true, false},
	{"process_reads_all_beside_an_idle_leader", PMA_GET, 1000, 3, PROCESS, false, true},
	{"a_wait_reads_all_beside_an_idle_leader", PMA_GET, 1000, 3, WAIT, false, true},
	{"a_call_reads_all_beside_an_idle_leader", PMA_GET, 1000, 3, CALL, false, true},
};

static void note_slowly(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	machine_pass(300 * MS);
	note(engine, reply, arg);
}

static void *receive_one(void *arg)
{
	mad_free(mad_receive_via(NULL, -1, port));
	return arg;
}

static void send_to_server(void)
{
	uint8_t mad[MACHINE_MAD] = {1, 0x0b, 1, IB_MAD_METHOD_GET};

	machine_send("n1", mad, 0);
}

static void read_late(const struct unread_row *row)
{
	enum {
		UNREAD = 1000
	};
	pthread_t leader = 0;
	unsigned sent;

	run_text(KNOWN "window 2000; limit 2000");
	machine_on_arrival(NULL, NULL);
	mad_register_server_via(0x0b, 0, NULL, 0, port);
	mad_rpc_set_timeout(port, row->timeout);
	mad_rpc_set_retries(port, row->attempts);
	if (row->beside) {
		machine_slow_call(MACHINE_POLL, 700 * MS);
		leader = start(receive_one, NULL);
		send_to_server();
		machine_pass(1);
		machine_slow_call(MACHINE_POLL, 0);
	}
	sent = machine_requests(NULL) + (row->how == CALL);
	for (unsigned i = 0; i < UNREAD; i++)
		submit_with(async, rpc_of(row->kind), leaf(1 + i % LEAVES),
			    row->slow && !i ? note_slowly : note, &outcomes[i]);
	machine_pass(row->slow ? 0 : 500 * MS);
	if (row->how == CALL && row->slow)
		assert_in_range(mad_async_process(async), 1, UNREAD);
	if (row->how == CALL)
		assert_int_equal(ask(rpc_of(SMP_GET), leaf(1)), 0);
	while (stats_of(async).completed < UNREAD) {
		if (row->how == WAIT)
			mad_async_wait(async, -1);
		if (row->how == LOOP)
			assert_true(loop_is_awake(async, 1000));
		assert_true(mad_async_process(async) >= 0);
	}
	for (unsigned i = 0; i < UNREAD; i++) {
		expect_outcome(&outcomes[i], 0);
		assert_int_equal(outcomes[i].transmissions, 1);
	}
	assert_int_equal(stats_of(async).retried, 0);
	assert_int_equal(machine_requests(NULL) - sent, UNREAD);
	if (leader)
		join(leader);
}

TEST_ROWS(read_late, unread_rows);

/*
 * The kernel queues 200,001 messages at most: a response that came before the timer was due is
 * among so many that are read later.
 */
TEST(timers_are_judged_though_messages_never_stop)
{
	unsigned reads = machine_calls(MACHINE_READ);

	mad_register_server_via(0x0b, 0, NULL, 0, port);
	run_text(KNOWN "submit a1g; sent a1g; wait 10ms");
	while (play.sent.count == 0 && machine_calls(MACHINE_READ) < reads + 202000) {
		for (int i = 0; i < 200; i++)
			send_to_server();
		machine_pass(50);
		for (int i = 0; i < 3; i++)
			assert_int_equal(mad_async_process(async), 0);
	}
	run_text("sent a1g");
	assert_in_range(machine_calls(MACHINE_READ) - reads, 200000, 201500);
}

/* --- messages for which there is no memory -------------------------------------- */

#define PART (1 << 20)

static size_t long_size;

/* The response to a GetTable is long; others come at once. */
static enum machine_verdict respond_at_length(struct machine_mad *mad, void *arg)
{
	static uint8_t bytes[3 * PART];

	(void)arg;
	if (mad->at_host)
		return MACHINE_PASS;
	if (mad->bytes[3] != IB_MAD_METHOD_GET_TABLE)
		return machine_reply(mad, 0, 0, NULL, 0);
	memcpy(bytes, mad->bytes, MACHINE_MAD);
	bytes[3] |= IB_MAD_RESPONSE;
	machine_deliver(mad, bytes, long_size, 0);
	return MACHINE_DROP;
}

static int drain_setup(void)
{
	if (setup())
		return -1;
	long_size = 5000;
	machine_on_arrival(respond_at_length, NULL);
	return mad_port_set(port, MAD_PORT_MAX_RESPONSE, 1000);
}

#define DRAIN_TEST(name) TEST_WITH(name, drain_setup, teardown)

static int ask_at_length(void)
{
	ib_portid_t to = {.lid = (int)leaf(1)};
	ib_rpc_t rpc = rpc_of(SA_TABLE);
	struct mad_message message;
	int ret = mad_rpc_message(port, &rpc, &to, NULL, 0, &message);

	mad_message_free(&message);
	return ret;
}

static void *expect_port_to_live(void *arg)
{
	assert_int_equal(ask(rpc_of(SMP_SET), leaf(2)), 0);
	return arg;
}

/* Ranges that a drain has left behind. */
static unsigned ranges_left(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned count = 0;

	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "umad-drain") != NULL;
	fclose(maps);
	return count;
}

/* It is read into a megabyte of memory, which is mapped as often as the message needs. */
DRAIN_TEST(a_long_message_is_read_away_with_little_memory)
{
	static const struct {
		size_t size;
		unsigned calls; /* for the whole range, and its parts */
	} rows[] = {{5000, 2}, {2 * PART - 1, 3}, {2 * PART, 3}, {2 * PART + 1, 4}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		unsigned before = machine_calls(MACHINE_MMAP);

		long_size = rows[i].size - (i ? umad_size() : 0);
		assert_int_equal(ask_at_length(), -EMSGSIZE);
		assert_int_equal(machine_calls(MACHINE_MMAP) - before, rows[i].calls);
		/* without one of the parts, it is tried again later */
		for (unsigned n = 1; n <= rows[i].calls; n++) {
			machine_fail(MACHINE_MMAP, n, ENOMEM);
			assert_int_equal(ask_at_length(), -EMSGSIZE);
			expect_port_to_live(NULL);
		}
		assert_int_equal(ranges_left(), 0);
	}
}

/* The file cannot have its size, or there is none; and it may have number 0. */
DRAIN_TEST(a_long_message_is_read_away_with_any_file)
{
	static const int limits[] = {RLIMIT_FSIZE, RLIMIT_NOFILE};
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
	int copy, ret;
	unsigned calls;

	for (int i = 0; i < 2; i++) {
		struct rlimit limit, none = {0};

		assert_int_equal(getrlimit((__rlimit_resource_t)limits[i], &limit), 0);
		none.rlim_max = limit.rlim_max;
		assert_int_equal(setrlimit((__rlimit_resource_t)limits[i], &none), 0);
		ret = ask_at_length();
		setrlimit((__rlimit_resource_t)limits[i], &limit);
		assert_int_equal(ret, -EMSGSIZE);
		expect_port_to_live(NULL);
	}
	signal(SIGXFSZ, handler);
	copy = free_descriptor_0();
	calls = machine_calls(MACHINE_MMAP);
	ret = ask_at_length();
	take_descriptor_0(copy);
	assert_int_equal(ret, -EMSGSIZE);
	/* the whole range, and a part */
	assert_int_equal(machine_calls(MACHINE_MMAP) - calls, 2);
	assert_int_equal(ranges_left(), 0);
}

/* Of what reads, calls, engines and loops do: the message is lost alone, at its end. */
DRAIN_TEST(all_pause_while_there_is_no_memory)
{
	pthread_t threads[3];
	unsigned calls;

	ask_at_length(); /* the destination is known */
	for (int round = 0; round < 4; round++) {
		int64_t begun = machine_us();

		machine_fail(MACHINE_MMAP, MACHINE_ALL, ENOMEM);
		calls = machine_calls(MACHINE_READ) + machine_calls(MACHINE_POLL);
		if (round % 2)
			assert_int_equal(ask_at_length(), -EMSGSIZE);
		else
			submit(SA_TABLE, leaf(1), &outcomes[0]);
		if (round == 1) {
			ib_rpc_t rpc = rpc_of(SMP_SET);

			/* a call's time ends nevertheless */
			rpc.timeout = 50;
			mad_rpc_set_retries(port, 1);
			assert_int_equal(ask(rpc, leaf(3)), -ETIMEDOUT);
			assert_in_range(machine_us() - begun, 50 * MS, 100 * MS);
		}
		for (int i = 0; i < 3; i++)
			threads[i] = start(expect_port_to_live, NULL);
		submit(SMP_SET, leaf(2), &outcomes[1]);
		while (machine_us() - begun < 200 * MS)
			if (round % 2) {
				mad_async_wait(async, 20);
			} else {
				mad_async_process(async);
				machine_pass(MS);
			}
		/* each 10 ms, however many wait */
		calls = machine_calls(MACHINE_READ) + machine_calls(MACHINE_POLL) - calls;
		assert_in_range(calls, 20, 150);
		assert_int_equal(outcomes[1].calls, 0);
		machine_fail(MACHINE_MMAP, 0, 0);
		for (int i = 0; i < 3; i++)
			join(threads[i]);
		assert_true(mad_async_wait(async, -1) >= 0);
		assert_int_equal(outcomes[0].error, round % 2 ? 0 : -EMSGSIZE);
		assert_int_equal(outcomes[1].error, 0);
		assert_in_range(machine_us() - begun, 200 * MS, 260 * MS);
		/* the outcome of the message is known; the late response is dropped */
		assert_int_equal(stats_of(async).dropped, round >= 1);
		memset(outcomes, 0, sizeof(outcomes));
	}
}

/* It does not spin, nor sleep for ever. */
DRAIN_TEST(an_event_loop_looks_each_10_ms_while_there_is_no_memory)
{
	unsigned looks = 0;
	int64_t begun;

	ask_at_length();
	assert_false(loop_is_awake(async, 0));
	machine_fail(MACHINE_MMAP, MACHINE_ALL, ENOMEM);
	submit(SA_TABLE, leaf(1), &outcomes[0]);
	for (begun = machine_us(); machine_us() - begun < 200 * MS; looks++)
		if (loop_is_awake(async, 200))
			assert_true(mad_async_process(async) >= 0);
	assert_in_range(looks, 19, 40);
	assert_int_equal(outcomes[0].error, -EMSGSIZE);
	machine_fail(MACHINE_MMAP, 0, 0);
	submit(SMP_SET, leaf(2), &outcomes[1]);
	while (!outcomes[1].calls) {
		assert_true(loop_is_awake(async, 100));
		assert_true(mad_async_process(async) >= 0);
	}
	assert_int_equal(outcomes[1].error, 0);
}

/* A signal, another process that reads first, and a device that is gone. */
DRAIN_TEST(reading_away_may_be_interrupted)
{
	static const int errors[] = {EINTR, EAGAIN, EIO};

	for (int i = 0; i < 3; i++) {
		expect_port_to_live(NULL);
		machine_fail(MACHINE_READ, 2, errors[i]);
		assert_int_equal(ask_at_length(), -EMSGSIZE);
	}
	assert_int_equal(ask(rpc_of(SMP_GET), leaf(2)), -ENODEV);
}

DRAIN_TEST(a_message_that_there_is_no_memory_for_is_lost_alone)
{
	unsigned calls;

	mad_port_set(port, MAD_PORT_MAX_RESPONSE, 5000);
	assert_int_equal(ask_at_length(), 0);
	calls = machine_calls(MACHINE_MALLOC);
	assert_int_equal(ask_at_length(), 0);
	calls = machine_calls(MACHINE_MALLOC) - calls;
	for (unsigned n = 1; n <= calls; n++) {
		machine_fail(MACHINE_MALLOC, n, ENOMEM);
		assert_int_equal(ask_at_length(), -ENOMEM);
		machine_fail(MACHINE_MALLOC, 0, 0);
		expect_port_to_live(NULL);
	}
}

static enum machine_verdict drop_table(struct machine_mad *mad, void *arg)
{
	if (!mad->at_host && mad->bytes[3] == IB_MAD_METHOD_GET_TABLE)
		respond_at_length(mad, arg);
	return MACHINE_PASS;
}

DRAIN_TEST(a_message_that_nobody_waits_for_is_dropped_once)
{
	machine_on_arrival(drop_table, NULL);
	assert_int_equal(mad_async_cancel(async, submit(SA_TABLE, leaf(1), &outcomes[0])), 0);
	machine_fail(MACHINE_MMAP, 1, ENOMEM);
	expect_port_to_live(NULL);
	expect_port_to_live(NULL);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(stats_of(async).dropped, 1);
}

/* --- messages that are kept ----------------------------------------------------- */

static unsigned receive_all(int timeout)
{
	unsigned received = 0;
	void *buffer = mad_alloc();

	while (mad_receive_via(buffer, timeout, port))
		received++;
	mad_free(buffer);
	return received;
}

/* As many are kept as a queue of the kernel has, and more: 64 MiB. */
TEST(the_latest_messages_are_dropped_if_nobody_receives)
{
	const unsigned kept = (64u << 20) / ((unsigned)umad_size() + IB_MAD_SIZE);

	machine_on_arrival(NULL, NULL);
	mad_register_server_via(0x0b, 0, NULL, 0, port);
	for (unsigned i = 0; i < kept + 200; i++) {
		send_to_server();
		if (i % 50 == 0 || i >= kept)
			process_all();
	}
	assert_int_equal(receive_all(0), kept);
	assert_int_equal(stats_of(async).dropped, 200);
	/* some are left when the port is closed */
	send_to_server();
	send_to_server();
	expect_port_to_live(NULL);
}

static void send_with_id(uint32_t id)
{
	ib_portid_t to = {.lid = (int)leaf(1)};
	ib_rpc_t rpc = rpc_of(SMP_GET);

	rpc.trid = id;
	rpc.timeout = 1000;
	assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, port), 0);
}

/* Responses to mad_send_via() are known by their IDs; those of long ago are forgotten. */
TEST(a_response_is_kept_if_it_is_expected)
{
	machine_on_arrival(NULL, NULL);
	machine_rule("slow 10ms");
	/* without memory for the IDs none is */
	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	send_with_id(1);
	assert_int_equal(receive_all(100), 0);
	assert_int_equal(stats_of(async).dropped, 1);
	for (unsigned i = 0; i < 300; i++)
		send_with_id(10 + i);
	assert_int_equal(receive_all(100), 300);
	/* alike in their lower 16 bits */
	for (unsigned i = 0; i < 9; i++)
		send_with_id(500 + 0x10000 * i);
	assert_int_equal(receive_all(100), 8);
	assert_int_equal(stats_of(async).dropped, 2);
	/* so is the kernel's report, which has a header alone */
	machine_rule("silent on n1");
	send_with_id(7);
	assert_int_equal(receive_all(2000), 1);
}

/* --- many destinations ---------------------------------------------------------- */

/* What is known of the longest unused ones is forgotten. */
TEST(destinations_of_long_ago_are_forgotten)
{
	size_t before = 0;

	machine_on_arrival(NULL, NULL);
	mad_rpc_set_timeout(port, 1);
	run_text("attempts 1; window 20000");
	for (unsigned round = 0; round < 6; round++) {
		for (unsigned i = 5000 * round; i < 5000 * (round + 1); i++) {
			ib_portid_t to = {.lid = (int)(1000 + i * 7919 % 48000)};

			/* however its table grows */
			if (i % 500 < 3)
				machine_fail(MACHINE_MALLOC, 1 + i % 500, ENOMEM);
			mad_async_get(async, &to, MAD_NODE_INFO, 0, note, &outcomes[0], NULL);
			machine_fail(MACHINE_MALLOC, 0, 0);
		}
		assert_in_range(mad_async_wait(async, -1), 4970, 5000);
		machine_pass(SECOND);
		if (!round)
			before = heap_in_use();
	}
	assert_in_range(heap_in_use(), 0, before + 50000);
}
