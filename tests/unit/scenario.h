/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Scenarios: lists of events on a port and of what is expected after them, as text. The clock
 * is that of clocked_device.h: a scenario of hours takes no time. Nothing responds by itself.
 *
 *	"window 1; submit a1 a2 b1; sent a1; respond a1; done a1; sent a2"
 *
 * A step is a verb and its arguments. A request's name is its engine (a, b or c, or x for a
 * blocking call), the LID of its node, and its kind, if that is not a PerfMgt Set:
 *
 *	g	a PerfMgt Get, which is sent again when its response is late
 *	m	an SMP Get, likewise
 *	s	a Get of the SA
 *	v	a request of a vendor class
 *
 * What follows a dot tells requests apart: a1.x and a1.y. If two requests have one name, the
 * first one without a response is meant. a1*3 is a1 a1 a1. A time is 5ms or 100us.
 *
 * Settings, which hold from then on:
 *
 *	window N, smps N, gmps N	the window of both, SMPs, GMPs; 0: adaptive
 *	limit N		of each destination; 0: adaptive
 *	rate N		MADs a second; 0: no limit
 *	attempts N, timeout TIME	of later requests
 *	late TIME	after this time a response is late; after twice that time, a Get is
 *			sent again to a node that has never responded
 *	dead LID	the node that does not respond during "call" and "finish"
 *
 * Events. After each one of them but "unread", "unread-busy" and "wait", all engines process:
 *
 *	submit REQUEST ...
 *	respond REQUEST ..., busy REQUEST ...	responses, the latter with status BUSY
 *	unread REQUEST ..., unread-busy REQUEST ...	responses that are not read yet
 *	report REQUEST ...	the kernel reports a timeout
 *	cancel REQUEST ...
 *	call REQUEST	a blocking call; until it returns, nodes respond at once
 *	receive		mad_receive_via() reads what came, and sends nothing
 *	pass TIME	the clock moves, and the engines process every 100 microseconds
 *	wait TIME	the clock moves, and nothing processes
 *	finish		nodes respond until all requests are complete
 *	refuse, starve	the next write fails with EINVAL; the next allocation fails
 *	remove		the device is removed
 *	end ENGINE	the engine is destroyed
 *
 * Expectations:
 *
 *	sent REQUEST ...	the packets since the last "sent", in this order; or none
 *	among N M REQUEST	of the first N packets since the last "sent", M are this
 *				request's or those of others with its name
 *	done REQUEST ...	the callbacks since the last "done" or "failed", in this
 *				order, all without an error
 *	failed ERRNO REQUEST ...	likewise, all with this errno
 *	all ERRNO	every request was called back once; those in none of the lists
 *			before with this errno (0: none)
 *	queued N, in-flight N, completed N, retried N	the statistics of all engines
 *	wakes TIME	timeout_ms_of() of engine a, rounded up to milliseconds
 *	silent YES	whether the window of SMPs is silent: yes or no
 */
#ifndef TESTS_UNIT_SCENARIO_H
#define TESTS_UNIT_SCENARIO_H

#include "port_state.h"
#include "clocked_device.h"
#include "test.h"

#include <ctype.h>

#define ENGINES      3
#define REQUESTS_MAX 4096

struct scenario_request {
	char name[12];
	uint64_t id;
	struct outcome outcome;
	const struct device_packet *packet; /* the latest one; NULL: none was written */
	bool unread;                        /* its response is not read yet */
};

static struct {
	const char *text, *step; /* the row, and the step that is carried out */
	struct mad_async *engines[ENGINES];
	struct scenario_request requests[REQUESTS_MAX];
	unsigned count;
	/* request numbers: packets and callbacks that were not expected yet */
	unsigned sent[REQUESTS_MAX], called[REQUESTS_MAX];
	unsigned sent_count, called_count;
	bool calling; /* nodes respond at once */
	int dead;     /* but not the one with this LID */
	bool in_child;
	unsigned depth; /* of scenario_run(): 2 in a call of the library, which does not return
			 */
	const char *history; /* NULL, or the steps before */
} scenario;

/* --- failures ------------------------------------------------------------------- */

static inline void __attribute__((noreturn, format(printf, 1, 2)))
scenario_fail(const char *format, ...)
{
	char seen[512];
	va_list args;

	va_start(args, format);
	vsnprintf(seen, sizeof(seen), format, args);
	va_end(args);
	print_error("%s\n\"%s\"\nat \"%.*s\": %s\n", scenario.history ? scenario.history : "",
		    scenario.text, (int)strcspn(scenario.step, ";"), scenario.step, seen);
	if (scenario.in_child || scenario.depth > 1)
		_exit(1);
	fail();
	abort();
}

/* The names of requests, for a message. */
static inline const char *scenario_names(const unsigned *numbers, unsigned count)
{
	static char names[512];
	size_t length = 0;

	names[0] = '\0';
	for (unsigned i = 0; i < count && length < sizeof(names) - 16; i++)
		length += (size_t)sprintf(names + length, " %s",
					  scenario.requests[numbers[i]].name);
	return count ? names : " none";
}

/* --- words ---------------------------------------------------------------------- */

/* The next word of a step, with *times for "word*times"; NULL: the step has no more. */
static inline const char *scenario_word(const char **at, unsigned *times)
{
	static char word[32];
	size_t length;
	char *star;

	*at += strspn(*at, " ");
	length = strcspn(*at, " ;");
	if (!length)
		return NULL;
	if (length >= sizeof(word))
		scenario_fail("a word is too long");
	memcpy(word, *at, length);
	word[length] = '\0';
	*at += length;
	star = strchr(word, '*');
	*times = star ? (unsigned)atoi(star + 1) : 1;
	if (star)
		*star = '\0';
	return word;
}

static inline const char *scenario_only_word(const char *at)
{
	unsigned times;
	const char *word = scenario_word(&at, &times);

	if (!word)
		scenario_fail("a word is missing");
	return word;
}

static inline unsigned scenario_number(const char *at)
{
	return (unsigned)atoi(scenario_only_word(at));
}

static inline int64_t scenario_time(const char *at)
{
	char *unit;
	int64_t time = strtoll(scenario_only_word(at), &unit, 10);

	if (strcmp(unit, "ms") != 0 && strcmp(unit, "us") != 0)
		scenario_fail("a time has no unit");
	return *unit == 'm' ? time * MS : time;
}

static inline int scenario_errno(const char *name)
{
	const struct {
		const char *name;
		int number;
	} errors[] = {{"0", 0},
		      {"ECANCELED", ECANCELED},
		      {"ENODEV", ENODEV},
		      {"ETIMEDOUT", ETIMEDOUT}};

	for (unsigned i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (!strcmp(errors[i].name, name))
			return errors[i].number;
	scenario_fail("no errno has this name");
}

/* The first request of that name without a response. */
static inline struct scenario_request *scenario_find(const char *name)
{
	for (unsigned i = 0; i < scenario.count; i++)
		if (!scenario.requests[i].outcome.calls && !scenario.requests[i].unread &&
		    !strcmp(scenario.requests[i].name, name))
			return &scenario.requests[i];
	scenario_fail("no request %s is open", name);
}

/* --- requests ------------------------------------------------------------------- */

/* The attribute modifier is the number of the request. */
static inline ib_rpc_t scenario_rpc(const char *name, unsigned number)
{
	ib_rpc_t rpc = set_request();
	size_t digits = 1 + strspn(name + 1, "0123456789");

	switch (name[digits]) {
	case 'g':
		rpc = counters_request();
		break;
	case 'm':
		rpc = get_request();
		break;
	case 's':
		rpc = path_request();
		break;
	case 'v':
		rpc.mgtclass = VENDOR_CLASS;
		break;
	default:
		break;
	}
	rpc.attr.mod = number;
	return rpc;
}

static inline void scenario_called(struct mad_async *engine, const struct mad_reply *reply,
				   void *arg)
{
	struct scenario_request *request = arg;

	note(engine, reply, &request->outcome);
	scenario.called[scenario.called_count++] = (unsigned)(request - scenario.requests);
}

static inline struct scenario_request *scenario_new(const char *name)
{
	struct scenario_request *request = &scenario.requests[scenario.count];

	if (++scenario.count > REQUESTS_MAX || strlen(name) >= sizeof(request->name))
		scenario_fail("there are too many requests, or a name is too long");
	*request = (struct scenario_request){.id = 0};
	strcpy(request->name, name);
	return request;
}

static inline void scenario_submit(const char *name)
{
	struct scenario_request *request = scenario_new(name);
	ib_rpc_t rpc = scenario_rpc(name, scenario.count - 1);
	ib_portid_t to = to_lid(atoi(name + 1));
	int ret = mad_async_submit(scenario.engines[name[0] - 'a'], &rpc, &to, NULL, 0,
				   scenario_called, request, &request->id);

	/* a random scenario may "starve" any submission */
	if (ret == -ENOMEM && scenario.history)
		scenario.count--;
	else if (ret)
		scenario_fail("mad_async_submit() returned %d", ret);
}

static inline void scenario_call(const char *name)
{
	struct scenario_request *request = scenario_new(name);
	ib_rpc_t rpc = scenario_rpc(name, scenario.count - 1);
	ib_portid_t to = to_lid(atoi(name + 1));
	uint8_t data[IB_SA_DATA_SIZE] = {0};

	scenario.calling = true;
	if (!mad_rpc(port, &rpc, &to, data, data))
		scenario_fail("mad_rpc() failed: %s", strerror(errno));
	scenario.calling = false;
	request->outcome.calls++;
}

/* --- the device ----------------------------------------------------------------- */

/* A hook for device_on_write(). */
static inline int scenario_written(const struct device_packet *packet, void *arg)
{
	unsigned number = (unsigned)packet->mad[20] << 24 | (unsigned)packet->mad[21] << 16 |
			  (unsigned)packet->mad[22] << 8 | packet->mad[23];

	(void)arg;
	if (number >= scenario.count || scenario.sent_count == REQUESTS_MAX)
		scenario_fail("a packet is no request's");
	scenario.requests[number].packet = packet;
	scenario.sent[scenario.sent_count++] = number;
	if (scenario.calling && lid_of_packet(packet) != scenario.dead)
		device_respond(packet, 0, 0, NULL, 0);
	return 0;
}

/* In two rounds: what the last engine's requests permit is sent, too. */
static inline void scenario_process(void)
{
	for (unsigned i = 0; i < 2 * ENGINES; i++) {
		struct mad_async *engine = scenario.engines[i % ENGINES];
		int ret = engine ? mad_async_process(engine) : 0;

		if (ret < 0 && ret != -ENODEV)
			scenario_fail("mad_async_process() returned %d", ret);
	}
}

/* Whether a step is for each of its requests; then it is carried out. */
static inline bool scenario_request_step(const char *verb, const char *at)
{
	enum {
		SUBMIT,
		CANCEL,
		REPORT,
		RESPOND,
		BUSY,
		UNREAD,
		UNREAD_BUSY,
		STEPS
	};
	const char *const verbs[STEPS] = {"submit", "cancel", "report",     "respond",
					  "busy",   "unread", "unread-busy"};
	struct scenario_request *request;
	const char *name;
	unsigned times, i;
	int ret;

	for (i = 0; i < STEPS && strcmp(verb, verbs[i]) != 0; i++)
		;
	while (i < STEPS && (name = scenario_word(&at, &times)))
		for (; times; times--) {
			if (i == SUBMIT) {
				scenario_submit(name);
				continue;
			}
			request = scenario_find(name);
			if (i != CANCEL && !request->packet)
				scenario_fail("%s was not sent", name);
			request->unread = i >= UNREAD;
			if (i >= RESPOND)
				device_respond(request->packet,
					       i == BUSY || i == UNREAD_BUSY ? IB_MAD_STS_BUSY
									     : 0,
					       0, NULL, 0);
			else if (i == REPORT)
				device_time_out(request->packet);
			else if ((ret = mad_async_cancel(scenario.engines[name[0] - 'a'],
							 request->id)) != 0)
				scenario_fail("mad_async_cancel() returned %d", ret);
			/* the next one of that name is meant from now on */
			if (!request->unread)
				scenario_process();
		}
	return i < STEPS;
}

static inline bool scenario_setting(const char *verb, const char *at)
{
	if (!strcmp(verb, "window") || !strcmp(verb, "smps"))
		mad_port_set(port, MAD_PORT_SMP_WINDOW, scenario_number(at));
	if (!strcmp(verb, "window") || !strcmp(verb, "gmps"))
		mad_port_set(port, MAD_PORT_GMP_WINDOW, scenario_number(at));
	else if (!strcmp(verb, "limit"))
		mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, scenario_number(at));
	else if (!strcmp(verb, "rate"))
		mad_port_set(port, MAD_PORT_RATE, scenario_number(at));
	else if (!strcmp(verb, "attempts"))
		mad_rpc_set_retries(port, (int)scenario_number(at));
	else if (!strcmp(verb, "timeout"))
		mad_rpc_set_timeout(port, (int)(scenario_time(at) / MS));
	else if (!strcmp(verb, "late"))
		set_late_after((uint32_t)scenario_time(at));
	else if (!strcmp(verb, "dead"))
		scenario.dead = (int)scenario_number(at);
	else
		return !strcmp(verb, "smps");
	return true;
}

static inline void scenario_receive(void)
{
	void *message = mad_receive_via(NULL, 0, port);

	if (message || errno != EAGAIN)
		scenario_fail("mad_receive_via() returned a message, or errno %d", errno);
}

/* Nodes respond to what was sent; two minutes are enough for everything. */
static inline void scenario_finish(void)
{
	scenario.calling = true;
	for (unsigned i = 0; i < scenario.count; i++)
		if (scenario.requests[i].packet && !scenario.requests[i].outcome.calls)
			device_respond(scenario.requests[i].packet, 0, 0, NULL, 0);
	for (int64_t end = clock_now + 120000 * MS; clock_now < end; clock_now += 10 * MS)
		scenario_process();
	scenario.calling = false;
	scenario.sent_count = 0;
}

static inline bool scenario_event(const char *verb, const char *at)
{
	int64_t until;

	if (!strcmp(verb, "wait")) {
		clock_now += scenario_time(at);
		return true;
	}
	if (!strcmp(verb, "pass")) {
		for (until = clock_now + scenario_time(at); clock_now < until; clock_now += 100)
			scenario_process();
	} else if (!strcmp(verb, "call")) {
		scenario_call(scenario_only_word(at));
	} else if (!strcmp(verb, "receive")) {
		scenario_receive();
		return true;
	} else if (!strcmp(verb, "finish")) {
		scenario_finish();
	} else if (!strcmp(verb, "refuse")) {
		device_fail(DEVICE_WRITE, 1, EINVAL);
	} else if (!strcmp(verb, "starve")) {
		device_fail_malloc(1);
		return true;
	} else if (!strcmp(verb, "remove")) {
		device_remove();
	} else if (!strcmp(verb, "end")) {
		mad_async_free(scenario.engines[*scenario_only_word(at) - 'a']);
		scenario.engines[*scenario_only_word(at) - 'a'] = NULL;
	} else {
		return false;
	}
	scenario_process();
	return true;
}

/* --- expectations --------------------------------------------------------------- */

/* The numbers of requests, which become none, are those of these names. */
static inline void scenario_expect_names(const char *at, const unsigned *numbers,
					 unsigned *count)
{
	const char *name;
	unsigned times, i = 0;

	while ((name = scenario_word(&at, &times)))
		for (; times; times--, i++)
			if (i >= *count ||
			    strcmp(scenario.requests[numbers[i]].name, name) != 0)
				scenario_fail("seen:%s", scenario_names(numbers, *count));
	if (i != *count)
		scenario_fail("seen:%s", scenario_names(numbers, *count));
	*count = 0;
}

static inline void scenario_expect_among(const char *at)
{
	unsigned times, packets, wanted, count = 0;

	packets = (unsigned)atoi(scenario_word(&at, &times));
	wanted = (unsigned)atoi(scenario_word(&at, &times));
	for (unsigned i = 0; i < packets && i < scenario.sent_count; i++)
		count += !strcmp(scenario.requests[scenario.sent[i]].name,
				 scenario_only_word(at));
	if (scenario.sent_count < packets || count != wanted)
		scenario_fail("seen: %u of%s", count,
			      scenario_names(scenario.sent, scenario.sent_count));
}

static inline void scenario_expect_calls(const char *at, int error)
{
	const struct outcome *outcome;

	for (unsigned i = 0; i < scenario.called_count; i++) {
		outcome = &scenario.requests[scenario.called[i]].outcome;
		if (outcome->error != -error || outcome->calls != 1)
			scenario_fail("%s: error %d, %d calls",
				      scenario.requests[scenario.called[i]].name,
				      outcome->error, outcome->calls);
	}
	scenario_expect_names(at, scenario.called, &scenario.called_count);
}

static inline void scenario_expect_all(int error)
{
	for (unsigned i = 0; i < scenario.count; i++)
		if (scenario.requests[i].outcome.calls != 1 &&
		    scenario.requests[i].name[0] != 'x')
			scenario_fail("%s: %d calls", scenario.requests[i].name,
				      scenario.requests[i].outcome.calls);
	for (unsigned i = 0; i < scenario.called_count; i++)
		if (scenario.requests[scenario.called[i]].outcome.error != -error)
			scenario_fail("%s: error %d",
				      scenario.requests[scenario.called[i]].name,
				      scenario.requests[scenario.called[i]].outcome.error);
	scenario.called_count = 0;
}

static inline void scenario_expect_number(const char *at, uint64_t seen)
{
	if (scenario_number(at) != seen)
		scenario_fail("seen: %llu", (unsigned long long)seen);
}

static inline struct mad_async_stats scenario_stats(void)
{
	struct mad_async_stats sum = {0}, one;

	for (unsigned i = 0; i < ENGINES; i++) {
		if (!scenario.engines[i])
			continue;
		one = stats_of(scenario.engines[i]);
		sum.queued += one.queued;
		sum.in_flight += one.in_flight;
		sum.completed += one.completed;
		sum.retried += one.retried;
		sum.smp = one.smp;
	}
	return sum;
}

static inline bool scenario_expectation(const char *verb, const char *at)
{
	unsigned times;
	int64_t ms;

	if (!strcmp(verb, "sent")) {
		scenario_expect_names(at, scenario.sent, &scenario.sent_count);
	} else if (!strcmp(verb, "among")) {
		scenario_expect_among(at);
	} else if (!strcmp(verb, "done")) {
		scenario_expect_calls(at, 0);
	} else if (!strcmp(verb, "failed")) {
		int error = scenario_errno(scenario_word(&at, &times));

		scenario_expect_calls(at, error);
	} else if (!strcmp(verb, "all")) {
		scenario_expect_all(scenario_errno(scenario_only_word(at)));
	} else if (!strcmp(verb, "queued")) {
		scenario_expect_number(at, scenario_stats().queued);
	} else if (!strcmp(verb, "in-flight")) {
		scenario_expect_number(at, scenario_stats().in_flight);
	} else if (!strcmp(verb, "completed")) {
		scenario_expect_number(at, scenario_stats().completed);
	} else if (!strcmp(verb, "retried")) {
		scenario_expect_number(at, scenario_stats().retried);
	} else if (!strcmp(verb, "wakes")) {
		ms = timeout_ms_of(scenario.engines[0]);
		if (scenario_time(at) != ms * MS)
			scenario_fail("seen: %d ms", (int)ms);
	} else if (!strcmp(verb, "silent")) {
		if (scenario_stats().smp.silent != !strcmp(scenario_only_word(at), "yes"))
			scenario_fail("seen: the opposite");
	} else {
		return false;
	}
	return true;
}

/* --- rows ----------------------------------------------------------------------- */

/* Carries out the steps of a text, which goes on after the one before. */
static inline void scenario_run(const char *text)
{
	const char *at = text, *word;
	unsigned times;
	char verb[16];

	scenario.text = text;
	scenario.depth++;
	for (; *at; at += strspn(at, "; ")) {
		scenario.step = at;
		word = scenario_word(&at, &times);
		if (!word || strlen(word) >= sizeof(verb))
			scenario_fail("no verb");
		strcpy(verb, word);
		if (!scenario_setting(verb, at) && !scenario_request_step(verb, at) &&
		    !scenario_event(verb, at) && !scenario_expectation(verb, at))
			scenario_fail("no verb");
		if (strcmp(verb, "starve") != 0)
			device_fail_malloc(0);
		at += strcspn(at, ";");
	}
	scenario.depth--;
}

static inline int scenario_begin(void)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS,
			 VENDOR_CLASS};

	memset(&scenario, 0, sizeof(scenario));
	clock_is_real = false;
	clock_now = 1000000 * MS;
	list_init(&nodes.responses);
	list_init(&nodes.reports);
	if (device_setup())
		return -1;
	port = mad_rpc_open_port(NULL, 0, classes, 5);
	if (!port)
		return -1;
	device_on_write(scenario_written, NULL);
	mad_rpc_set_timeout(port, LONG_MS);
	mad_rpc_set_retries(port, 3);
	set_late_after(LONG_MS * 1000);
	fix_flow(100);
	for (unsigned i = 0; i < ENGINES; i++)
		scenario.engines[i] = mad_async_create(port);
	return 0;
}

static inline int scenario_end(void)
{
	device_fail_malloc(0);
	for (unsigned i = 0; i < ENGINES; i++)
		mad_async_free(scenario.engines[i]);
	mad_rpc_close_port(port);
	return device_teardown();
}

/* Each row on a port of its own. */
static inline void scenario_run_rows(const char *const *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(scenario_begin(), 0);
		scenario_run(rows[i]);
		assert_int_equal(scenario_end(), 0);
	}
}

/* SCENARIO(a_sentence, "a row", "another one"); is a test. */
#define SCENARIO(name, ...)                                              \
	PLAIN_TEST(name)                                                 \
	{                                                                \
		const char *const rows[] = {__VA_ARGS__};                \
                                                                         \
		scenario_run_rows(rows, sizeof(rows) / sizeof(rows[0])); \
	}                                                                \
	struct scenario_request

#endif
