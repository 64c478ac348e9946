/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Scenarios: events on a port and what is expected after them, as text. Nodes respond when the
 * text says so, and time passes when it says so.
 *
 *	"gmps 1; submit a1 a2 b1; sent a1; respond a1; done a1; sent a2"
 *
 * A request's name is its engine (a, b or c, or x for a blocking call), the number of its leaf,
 * and its kind, if that is not a PerfMgt Set: g (a PerfMgt Get), m (an SMP Get), s (a Get of
 * the SA's class), v (a vendor class). What follows a dot tells requests apart. Of two requests
 * with one name the first one without a response is meant; a1*3 is a1 a1 a1.
 *
 *	smps N, gmps N, limit N, rate N, attempts N	settings; "window N" is both windows
 *	dead N		the leaf that does not respond during "call" and "finish"
 *	submit, cancel, respond, busy NAME ...	the latter: with status BUSY
 *	unread, unread-busy NAME ...	the response is queued, and no engine processes
 *	call NAME	a blocking call; until it returns, nodes respond at once
 *	receive		mad_receive_via() reads, and sends nothing
 *	pass TIME, wait TIME	5ms or 100us; the engines process every 100 us, or not at all
 *	learn		round trips of 500 us: a response is late after 1500 us
 *	finish		nodes respond until all requests are complete
 *	refuse, starve	the next write fails with EINVAL; the next allocation fails
 *	remove, end E	the device; the engine
 *
 *	sent NAME ...	the packets since the last "sent", in this order
 *	among N M NAME	of the first N packets since the last "sent", M have this name
 *	done, failed NAME ...	the callbacks since the last of them, without and with an error
 *	all ERROR	each request was called back once, since the last "done" with this error
 *	queued, in-flight, completed, retried N	statistics of all engines
 *	wakes N		the loop of engine a is woken after so many milliseconds, rounded up
 */
#ifndef TESTS_MACHINE_SCENARIO_H
#define TESTS_MACHINE_SCENARIO_H

#include "async.h"

#define ENGINES      3
#define LEAVES       110
#define REQUESTS_MAX 9000
#define VENDOR       0x0a

struct request {
	char name[12], node[8];
	uint64_t id;
	struct outcome outcome;
	bool was_sent, unread;
	uint8_t mad[MACHINE_MAD]; /* the latest one */
};

static struct {
	const char *text, *step;
	struct mad_async *engines[ENGINES];
	struct request requests[REQUESTS_MAX];
	unsigned count, sent[REQUESTS_MAX], sent_count, called[REQUESTS_MAX], called_count;
	bool calling, in_child;
	unsigned dead;
} play;

/* The names of requests, or "none". */
static inline const char *names_of(const unsigned *numbers, unsigned count)
{
	static char names[1024];
	size_t length = (size_t)snprintf(names, sizeof(names), "%s", count ? "" : "none");

	for (unsigned i = 0; i < count && length < sizeof(names) - 16; i++)
		length +=
			(size_t)sprintf(names + length, "%s ", play.requests[numbers[i]].name);
	return names;
}

static inline void __attribute__((noreturn, format(printf, 1, 2)))
fail_step(const char *format, ...)
{
	char seen[1100];
	va_list args;

	va_start(args, format);
	vsnprintf(seen, sizeof(seen), format, args);
	va_end(args);
	print_error("\"%s\"\nat \"%.*s\": %s\n", play.text, (int)strcspn(play.step, ";"),
		    play.step, seen);
	if (play.in_child)
		_exit(1);
	fail();
	abort();
}

/* The next word of a step, with *times for "word*times"; NULL: there is none. */
static inline const char *next_word(const char **at, unsigned *times)
{
	static char word[32];
	size_t length;
	char *star;

	*at += strspn(*at, " ");
	length = strcspn(*at, " ;");
	snprintf(word, sizeof(word), "%.*s", (int)length, *at);
	*at += length;
	star = strchr(word, '*');
	*times = star ? (unsigned)atoi(star + 1) : 1;
	if (star)
		*star = '\0';
	return length ? word : NULL;
}

static inline struct request *find_request(const char *name)
{
	for (unsigned i = 0; i < play.count; i++)
		if (!play.requests[i].outcome.calls && !play.requests[i].unread &&
		    !strcmp(play.requests[i].name, name))
			return &play.requests[i];
	fail_step("no request %s is open", name);
}

/* The attribute modifier is the number of the request. */
static inline struct request *new_request(const char *name, ib_rpc_t *rpc, ib_portid_t *to)
{
	struct request *request = &play.requests[play.count];
	char kind = name[1 + strspn(name + 1, "0123456789")];

	if (play.count == REQUESTS_MAX)
		fail_step("too many requests");
	*request = (struct request){.id = 0};
	snprintf(request->name, sizeof(request->name), "%s", name);
	*rpc = rpc_of(kind == 'm' ? SMP_GET : kind == 's' ? SA_GET : PMA_SET);
	if (kind == 'g')
		rpc->method = IB_MAD_METHOD_GET;
	if (kind == 'v')
		rpc->mgtclass = VENDOR;
	rpc->attr.mod = play.count++;
	*to = (ib_portid_t){.lid = (int)leaf((unsigned)atoi(name + 1)), .qp = kind != 'm'};
	to->qkey = to->qp ? IB_DEFAULT_QP1_QKEY : 0;
	return request;
}

static inline void note_call(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct request *request = arg;

	note(engine, reply, &request->outcome);
	play.called[play.called_count++] = (unsigned)(request - play.requests);
}

static inline void submit_name(const char *name)
{
	ib_portid_t to;
	ib_rpc_t rpc;
	struct request *request = new_request(name, &rpc, &to);
	int ret = mad_async_submit(play.engines[name[0] - 'a'], &rpc, &to, NULL, 0, note_call,
				   request, &request->id);

	if (ret)
		fail_step("mad_async_submit() returned %d", ret);
}

static inline void call_name(const char *name)
{
	uint8_t data[MACHINE_MAD] = {0};
	ib_portid_t to;
	ib_rpc_t rpc;
	struct request *request = new_request(name, &rpc, &to);

	play.calling = true;
	if (!mad_rpc(port, &rpc, &to, data, data))
		fail_step("mad_rpc() failed: %s", strerror(errno));
	play.calling = false;
	request->outcome.calls++;
}

static inline enum machine_verdict hold_request(struct machine_mad *mad, void *arg)
{
	uint32_t number = 0;

	(void)arg;
	if (mad->at_host)
		return MACHINE_PASS;
	for (int i = 20; i < 24; i++)
		number = number << 8 | mad->bytes[i];
	if (number >= play.count || play.sent_count == REQUESTS_MAX)
		abort();
	memcpy(play.requests[number].mad, mad->bytes, MACHINE_MAD);
	snprintf(play.requests[number].node, 8, "%s", mad->node);
	play.requests[number].was_sent = true;
	play.sent[play.sent_count++] = number;
	return play.calling && mad->dlid != leaf(play.dead) ? machine_reply(mad, 0, 0, NULL, 0)
							    : MACHINE_DROP;
}

static inline void respond_to(struct request *request, uint16_t status)
{
	uint8_t bytes[MACHINE_MAD];
	struct machine_mad mad = {.bytes = bytes};

	if (!request->was_sent)
		fail_step("%s was not sent", request->name);
	memcpy(bytes, request->mad, MACHINE_MAD);
	machine_reply(&mad, status, 0, NULL, 0);
	machine_send(request->node, bytes, 0);
}

/* In two rounds: what the last engine's requests permit is sent, too. */
static inline void process_all(void)
{
	machine_pass(0);
	for (unsigned i = 0; i < 2 * ENGINES; i++) {
		struct mad_async *engine = play.engines[i % ENGINES];
		int ret = engine ? mad_async_process(engine) : 0;

		if (ret < 0 && ret != -ENODEV)
			fail_step("mad_async_process() returned %d", ret);
		machine_pass(0);
	}
}

/* A step with the names of requests. */
static inline bool request_step(const char *verb, const char *at)
{
	static const char *const verbs[] = {"submit", "cancel", "respond",
					    "busy",   "unread", "unread-busy"};
	struct request *request;
	const char *name;
	unsigned times, i = 0;
	int ret = 0;

	while (i < 6 && strcmp(verb, verbs[i]) != 0)
		i++;
	while (i < 6 && (name = next_word(&at, &times)))
		for (; times; times--) {
			if (i == 0) {
				submit_name(name);
				machine_pass(0);
				continue;
			}
			request = find_request(name);
			request->unread = i >= 4;
			if (i >= 2)
				respond_to(request, i % 2 ? IB_MAD_STS_BUSY : 0);
			else
				ret = mad_async_cancel(play.engines[name[0] - 'a'],
						       request->id);
			if (ret)
				fail_step("mad_async_cancel() returned %d", ret);
			if (!request->unread)
				process_all();
		}
	machine_pass(0);
	return i < 6;
}

static inline bool setting(const char *verb, unsigned number)
{
	bool both = !strcmp(verb, "window");

	if (both || !strcmp(verb, "smps"))
		mad_port_set(port, MAD_PORT_SMP_WINDOW, number);
	if (both || !strcmp(verb, "gmps"))
		mad_port_set(port, MAD_PORT_GMP_WINDOW, number);
	else if (!strcmp(verb, "limit"))
		mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, number);
	else if (!strcmp(verb, "rate"))
		mad_port_set(port, MAD_PORT_RATE, number);
	else if (!strcmp(verb, "attempts"))
		mad_rpc_set_retries(port, (int)number);
	else if (!strcmp(verb, "dead"))
		play.dead = number;
	else if (strcmp(verb, "smps") != 0)
		return false;
	machine_pass(0);
	return true;
}

static inline void finish(void)
{
	play.calling = true;
	for (unsigned i = 0; i < play.count; i++)
		if (play.requests[i].was_sent && !play.requests[i].outcome.calls)
			respond_to(&play.requests[i], 0);
	for (int ms = 0; ms < 120000; ms += 100) {
		process_all();
		machine_pass(100 * MS);
	}
	play.calling = false;
	play.sent_count = 0;
}

static inline void pass_time(int64_t us)
{
	for (; us > 0; us -= 100) {
		process_all();
		machine_pass(100);
	}
}

static inline void learn(void)
{
	submit_name("c110m");
	submit_name("c110g");
	pass_time(500);
	respond_to(&play.requests[play.count - 2], 0);
	respond_to(&play.requests[play.count - 1], 0);
	process_all();
	play.sent_count = play.called_count = 0;
}

static inline bool event(const char *verb, const char *at)
{
	char *unit;
	int64_t us = strtoll(at, &unit, 10) * (*unit == 'm' ? MS : 1);

	if (!strcmp(verb, "pass")) {
		pass_time(us);
	} else if (!strcmp(verb, "wait")) {
		machine_pass(us);
		return true;
	} else if (!strcmp(verb, "learn")) {
		learn();
	} else if (!strcmp(verb, "receive")) {
		if (mad_receive_via(NULL, 0, port) || errno != EAGAIN)
			fail_step("a message, or errno %d", errno);
		return true;
	} else if (!strcmp(verb, "starve")) {
		machine_fail(MACHINE_MALLOC, 1, ENOMEM);
		return true;
	} else if (!strcmp(verb, "call")) {
		unsigned times;

		call_name(next_word(&at, &times));
	} else if (!strcmp(verb, "finish")) {
		finish();
	} else if (!strcmp(verb, "refuse")) {
		machine_fail(MACHINE_WRITE, 1, EINVAL);
	} else if (!strcmp(verb, "remove")) {
		machine_rule("remove on host");
	} else if (!strcmp(verb, "end")) {
		mad_async_free(play.engines[*at - 'a']);
		play.engines[*at - 'a'] = NULL;
	} else {
		return false;
	}
	process_all();
	return true;
}

/* The numbers of requests, which become none, are those of these names. */
static inline void expect_names(const char *at, const unsigned *numbers, unsigned *count)
{
	const char *name;
	unsigned times, i = 0;

	while ((name = next_word(&at, &times)))
		for (; times; times--, i++)
			if (i >= *count || strcmp(play.requests[numbers[i]].name, name) != 0)
				fail_step("seen: %s", names_of(numbers, *count));
	if (i != *count)
		fail_step("seen: %s", names_of(numbers, *count));
	*count = 0;
}

static inline void expect_among(const char *at)
{
	unsigned times, packets, wanted, seen = 0;
	const char *name;

	packets = (unsigned)atoi(next_word(&at, &times));
	wanted = (unsigned)atoi(next_word(&at, &times));
	name = next_word(&at, &times);
	for (unsigned i = 0; i < packets && i < play.sent_count; i++)
		seen += !strcmp(play.requests[play.sent[i]].name, name);
	if (play.sent_count < packets || seen != wanted)
		fail_step("seen: %u of %s", seen, names_of(play.sent, play.sent_count));
}

static inline void expect_errors(bool none, int error)
{
	for (unsigned i = 0; i < play.called_count; i++) {
		const struct request *request = &play.requests[play.called[i]];

		if (request->outcome.calls != 1 ||
		    (none ? request->outcome.error != 0 : request->outcome.error != error))
			fail_step("%s: error %d", request->name, request->outcome.error);
	}
}

static inline bool expectation(const char *verb, const char *at, int number)
{
	struct mad_async_stats sum = {0};
	int64_t begun = machine_us();
	struct pollfd fd;

	for (int i = 0; i < ENGINES; i++)
		if (play.engines[i]) {
			struct mad_async_stats one = stats_of(play.engines[i]);

			sum.queued += one.queued;
			sum.in_flight += one.in_flight;
			sum.completed += one.completed;
			sum.retried += one.retried;
		}
	if (!strcmp(verb, "sent")) {
		expect_names(at, play.sent, &play.sent_count);
	} else if (!strcmp(verb, "among")) {
		expect_among(at);
	} else if (!strcmp(verb, "done") || !strcmp(verb, "failed")) {
		expect_errors(*verb == 'd', -ECANCELED);
		expect_names(at, play.called, &play.called_count);
	} else if (!strcmp(verb, "all")) {
		expect_errors(false, *at == '0' ? 0 : at[1] == 'N' ? -ENODEV : -ECANCELED);
		play.called_count = 0;
		for (unsigned i = 0; i < play.count; i++)
			if (play.requests[i].outcome.calls != 1)
				fail_step("%s: no call", play.requests[i].name);
	} else if (!strcmp(verb, "wakes")) {
		fd = (struct pollfd){.fd = mad_async_poll_fd(play.engines[0]),
				     .events = POLLIN};
		poll(&fd, 1, 3600000);
		if ((machine_us() - begun + 999) / 1000 != number)
			fail_step("after %d us", (int)(machine_us() - begun));
	} else {
		uint64_t seen = !strcmp(verb, "queued")      ? sum.queued
				: !strcmp(verb, "in-flight") ? sum.in_flight
				: !strcmp(verb, "completed") ? sum.completed
				: !strcmp(verb, "retried")   ? sum.retried
							     : UINT64_MAX;

		if (seen != (uint64_t)number)
			fail_step("seen: %d", (int)seen);
	}
	return true;
}

/* Carries out the steps of a text, which goes on after the one before. */
static inline void run_scenario(const char *text)
{
	const char *at = text, *verb;
	char word[16];
	unsigned times;

	play.text = text;
	for (; *at; at += strspn(at, "; ")) {
		play.step = at;
		verb = next_word(&at, &times);
		snprintf(word, sizeof(word), "%s", verb ? verb : "");
		at += strspn(at, " ");
		if (!setting(word, (unsigned)atoi(at)) && !request_step(word, at) &&
		    !event(word, at))
			expectation(word, at, atoi(at));
		if (strcmp(word, "starve") != 0)
			machine_fail(MACHINE_MALLOC, 0, 0);
		at += strcspn(at, ";");
	}
}

static inline int scenario_setup(void)
{
	memset(&play, 0, sizeof(play));
	machine_start("star:110", NULL);
	if (mad_port_open(NULL, 0, &port) || mad_register_client_via(VENDOR, 0, port))
		return -1;
	mad_rpc_set_timeout(port, 60000);
	mad_rpc_set_retries(port, 3);
	run_scenario("window 100; limit 100");
	machine_on_arrival(hold_request, NULL);
	for (int i = 0; i < ENGINES; i++)
		play.engines[i] = mad_async_create(port);
	return 0;
}

static inline int scenario_teardown(void)
{
	for (int i = 0; i < ENGINES; i++)
		mad_async_free(play.engines[i]);
	mad_rpc_close_port(port);
	machine_stop();
	return 0;
}

/* Each row on a port of its own: SCENARIO(a_sentence, "a row", "another one"); is a test. */
#define SCENARIO(name, ...)                                                       \
	PLAIN_TEST(name)                                                          \
	{                                                                         \
		static const char *const rows[] = {__VA_ARGS__};                  \
                                                                                  \
		for (size_t row = 0; row < sizeof(rows) / sizeof(*rows); row++) { \
			assert_int_equal(scenario_setup(), 0);                    \
			run_scenario(rows[row]);                                  \
			scenario_teardown();                                      \
		}                                                                 \
	}                                                                         \
	struct request

#endif
