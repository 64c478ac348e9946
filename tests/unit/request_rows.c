/* SPDX-License-Identifier: BSD-2-Clause */

#include "request_rows.h"

#include "fake_device_state.h"
#include "late_responses.h"
#include "mad/layout.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define SUBJECTS      6
#define SENT_MAX      64
#define WORDS         16
#define TID           0x1234
#define LONG          600
#define REQUEST_BYTE  0x11
#define RESPONSE_BYTE 0x77
/* This byte is data in the requests of all classes, and this one in the shortest response. */
#define DATA_BYTE     70
#define RESPONSE_DATA 30

/* A request, and what was seen of it. */
struct subject {
	struct request request;
	struct flow_path node;
	bool made, cancelled, writing;
	uint32_t tid;            /* its own ID */
	uint32_t tids[SENT_MAX]; /* of its transmissions, the refused ones included */
	unsigned sent;           /* transmissions */
	/* of the packet that is being written */
	uint8_t *umad;
	int length, kernel_ms;
	unsigned attempts_left;
	uint8_t *copy;
};

static struct requests all;
static struct subject subjects[SUBJECTS], *subject;
static int64_t began, now;
static const char *behaviour;
static char step[400];

/* What a step did. */
static struct {
	unsigned number;
	enum request_action action;
	int64_t from; /* the time before it */
	bool taken;
	uint8_t *message;
} seen;

/* What flow control was told of the latest response; the linker wraps the call. */
static struct {
	uint32_t rtt_us;
	bool lost;
} told;

void __real_flow_response(struct flow_control *flow, struct flow_account *account,
			  uint32_t rtt_us, bool lost, int64_t at);
void __wrap_flow_response(struct flow_control *flow, struct flow_account *account,
			  uint32_t rtt_us, bool lost, int64_t at);

void __wrap_flow_response(struct flow_control *flow, struct flow_account *account,
			  uint32_t rtt_us, bool lost, int64_t at)
{
	told.rtt_us = rtt_us;
	told.lost = lost;
	__real_flow_response(flow, account, rtt_us, lost, at);
}

/* --- names ---------------------------------------------------------------------- */

struct name {
	const char *text;
	int value;
};

static const struct name actions[] = {
	{"NONE", ACTION_NONE},         {"SET_TIMER", ACTION_SET_TIMER},
	{"QUEUE", ACTION_QUEUE},       {"READDRESS", ACTION_READDRESS},
	{"WRITE", ACTION_WRITE},       {"ASK_PATH", ACTION_ASK_PATH},
	{"COMPLETE", ACTION_COMPLETE}, {NULL, 0},
};

static const struct name phases[] = {
	{"QUEUED", REQUEST_QUEUED},
	{"WRITING", REQUEST_WRITING},
	{"WAITING", REQUEST_WAITING},
	{"PAUSED", REQUEST_PAUSED},
	{"AWAITING_REPORT", REQUEST_AWAITING_REPORT},
	{"ASKING_PATH", REQUEST_ASKING_PATH},
	{"DONE", REQUEST_DONE},
	{NULL, 0},
};

static const struct name errors[] = {
	{"0", 0},
	{"ECANCELED", ECANCELED},
	{"EHOSTUNREACH", EHOSTUNREACH},
	{"EINVAL", EINVAL},
	{"EIO", EIO},
	{"ELOOP", ELOOP},
	{"ENODEV", ENODEV},
	{"ENOMEM", ENOMEM},
	{"EOPNOTSUPP", EOPNOTSUPP},
	{"ETIMEDOUT", ETIMEDOUT},
	{NULL, 0},
};

static const struct name classes[] = {
	{"SMP", IB_SMI_CLASS},
	{"DIRECT", IB_SMI_DIRECT_CLASS},
	{"SA", IB_SA_CLASS},
	{"PERF", IB_PERFORMANCE_CLASS},
	{"CC", IB_CC_CLASS},
	{"VENDOR", 0x0a},
	{NULL, 0},
};

static const struct name methods[] = {
	{"Get", IB_MAD_METHOD_GET},
	{"Set", IB_MAD_METHOD_SET},
	{"GetTable", IB_MAD_METHOD_GET_TABLE},
	{NULL, 0},
};

static const struct name events[] = {
	{"send", EVENT_SEND},         {"written", EVENT_WRITTEN},
	{"asked", EVENT_ASKED},       {"timer", EVENT_TIMER},
	{"response", EVENT_RESPONSE}, {"report", EVENT_REPORT},
	{"cancel", EVENT_CANCEL},     {NULL, 0},
};

static const char *name_of(const struct name *names, int value)
{
	while (names->text && names->value != value)
		names++;
	return names->text ? names->text : "?";
}

/* --- failures ------------------------------------------------------------------- */

static _Noreturn void fail_step(const char *expected, const char *value)
{
	print_error("%s\n  step %u: %s\n  expected: %s\n  seen:     %s\n",
		    behaviour ? behaviour : "(no row)", seen.number, step, expected, value);
	fail();
	abort(); /* fail() does not return */
}

static void expect_number(const char *word, int64_t expected, int64_t value)
{
	char text[100];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	if (value != expected)
		fail_step(word, text);
}

static void expect(bool holds, const char *expected, const char *otherwise)
{
	if (!holds)
		fail_step(expected, otherwise);
}

/* --- words ---------------------------------------------------------------------- */

static bool find(const struct name *names, const char *text, int *value)
{
	for (; names->text; names++)
		if (!strcmp(names->text, text)) {
			*value = names->value;
			return true;
		}
	return false;
}

static int value_of(const struct name *names, const char *text)
{
	int value = 0;

	if (!find(names, text, &value))
		fail_step("a word of request_rows.h", text);
	return value;
}

static int64_t number_of(const char *text, int base)
{
	char *end;
	long long number = strtoll(text, &end, base);

	if (end == text || *end)
		fail_step("a number", text);
	return number;
}

/* A time or a range: [*from, *to). */
static void read_time(const char *text, int64_t *from, int64_t *to)
{
	char *end_of;
	bool range;
	int64_t unit = 1;

	*from = *to = strtoll(text, &end_of, 10);
	range = !strncmp(end_of, "..", 2);
	if (range)
		*to = strtoll(end_of + 2, &end_of, 10);
	if (!strcmp(end_of, "s"))
		unit = 1000000;
	else if (!strcmp(end_of, "ms"))
		unit = 1000;
	else
		expect(!strcmp(end_of, "us"), "a time", text);
	*from *= unit;
	*to = range ? *to * unit : *from + 1;
}

static int64_t time_of(const char *text)
{
	int64_t from, to;

	read_time(text, &from, &to);
	return from;
}

static void expect_time(const char *word, const char *text, int64_t value)
{
	char was[100];
	int64_t from, to;

	read_time(text, &from, &to);
	snprintf(was, sizeof(was), "%lld us", (long long)value);
	if (value < from || value >= to)
		fail_step(word, was);
}

/* The text behind "name=" in a word, or NULL. */
static const char *behind(const char *word, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(word, name, length) && word[length] == '=' ? word + length + 1 : NULL;
}

/* The same in one of several words. */
static const char *argument(char **words, const char *name)
{
	for (; *words; words++)
		if (behind(*words, name))
			return behind(*words, name);
	return NULL;
}

static bool has_word(char **words, const char *word)
{
	while (*words && strcmp(*words, word))
		words++;
	return *words != NULL;
}

static int64_t argument_number(char **words, const char *name, int64_t otherwise)
{
	const char *text = argument(words, name);

	return text ? number_of(text, 0) : otherwise;
}

/* --- the requests --------------------------------------------------------------- */

static int data_offset(int mgmt_class)
{
	return mgmt_class == IB_SA_CLASS ? IB_SA_DATA_OFFS : IB_PC_DATA_OFFS;
}

static void end(struct subject *of)
{
	struct flow_path node;

	if (of->made && of->request.phase != REQUEST_DONE) {
		transmissions_forget(&all.tids, &of->request.transmissions);
		flow_ended(&all.flow, &of->request.account);
	}
	if (of->made) {
		/* memory is freed once */
		request_fini(&of->request);
		request_fini(&of->request);
	}
	free(of->copy);
	node = of->node;
	memset(of, 0, sizeof(*of));
	of->node = node;
}

static void make(char **words)
{
	int mgmt_class = IB_PERFORMANCE_CLASS, method = IB_MAD_METHOD_GET;
	const char *text = argument(words, "tid");
	ib_portid_t dport = {.lid = 1};
	union {
		ib_rpc_t rpc;
		ib_rpc_cc_t cc; /* of its class */
	} call = {.cc = {.attr.id = 1, .trid = TID}};
	ib_rpc_t *rpc = &call.rpc;
	struct request_settings settings = {
		.agent = 3,
		.rmpp = has_word(words, "long"),
		.timeout_ms = (int)argument_number(words, "timeout", 1000),
		.attempts = (int)argument_number(words, "attempts", 3),
	};
	uint8_t data[LONG];

	for (unsigned i = 0; words[i]; i++)
		find(methods, words[i], &method);
	if (argument(words, "class"))
		mgmt_class = value_of(classes, argument(words, "class"));
	if (text)
		rpc->trid = !strcmp(text, "next") ? (uint32_t)mad_trid() + 1
						  : (uint64_t)number_of(text, 16);
	rpc->mgtclass = mgmt_class;
	rpc->method = method;
	rpc->dataoffs = data_offset(mgmt_class);
	memset(data, REQUEST_BYTE, sizeof(data));
	end(subject);
	subject->made = true;
	subject->tid = (uint32_t)rpc->trid;
	expect_number("a request", 0,
		      request_make(&subject->request, &settings, rpc, rpc->trid, &dport, NULL,
				   data, settings.rmpp ? (size_t)(LONG - rpc->dataoffs) : 64));
	subject->request.transmissions.chosen = has_word(words, "chosen");
	subject->request.account.path = &subject->node;
}

/* --- events --------------------------------------------------------------------- */

/* A transmission of the request with that ID to which a response is expected. */
static struct transmission *expected_transmission(uint32_t tid)
{
	struct transmission *found =
		tids_find(&all.tids, tid, subject->request.transmissions.mgmt_class);

	return found && request_of(found) == &subject->request ? found : NULL;
}

static void begin_write(const struct request_event *event)
{
	const uint8_t *mad = request_mad(&subject->request);
	struct transmission *found = tids_find(&all.tids, get32(mad, TID_OFFS), mad[1]);
	size_t size;

	expect(found && request_of(found) == &subject->request,
	       "a response to the packet is expected", "it is not");
	subject->umad = request_buffer(&subject->request);
	subject->length = subject->request.length;
	subject->kernel_ms = event->kernel_ms;
	subject->attempts_left = event->attempts_left;
	subject->writing = true;
	size = umad_size() + (size_t)subject->length;
	free(subject->copy);
	subject->copy = malloc(size);
	memcpy(subject->copy, subject->umad, size);
	subject->tids[subject->sent++ % SENT_MAX] = found->tid;
}

/* Nobody changes a packet while it is written. */
static void check_packets(void)
{
	for (const struct subject *of = subjects; of < subjects + SUBJECTS; of++)
		if (of->writing)
			expect(!memcmp(of->copy, of->umad, umad_size() + (size_t)of->length),
			       "the packet as it was", "another one");
}

static void handle(struct request_event *event)
{
	struct request *request = &subject->request;

	event->now = now;
	seen.action = request_handle(&all, request, event);
	if (event->kind == EVENT_WRITTEN)
		subject->writing = false;
	check_packets();
	if (seen.action == ACTION_WRITE)
		begin_write(event);
	/* as the queue does */
	if (seen.action == ACTION_READDRESS) {
		flow_ended(&all.flow, &request->account);
		request->account.path = NULL;
	}
}

enum request_action row_event(enum request_event_kind kind, int error)
{
	struct request_event event = {.kind = kind, .error = error};

	subject = &subjects[0];
	if (kind == EVENT_TIMER && subject->request.timer_at > now)
		now = subject->request.timer_at;
	handle(&event);
	return seen.action;
}

static void due(struct request_event *event)
{
	if (subject->request.timer_at > now)
		now = subject->request.timer_at;
	handle(event);
}

static void until_late(void)
{
	struct request_event event;
	int64_t at;

	do {
		at = now;
		event = (struct request_event){.kind = EVENT_TIMER};
		due(&event);
		expect(subject->request.phase != REQUEST_WAITING ||
			       subject->request.timer_at > at,
		       "a later timer", "the same");
	} while (subject->request.phase == REQUEST_WAITING);
}

/* Which transmission, counted from 1; the latest one is the default. */
static struct transmission *addressee(char **words)
{
	int64_t n = argument_number(words, "to", subject->sent);
	struct transmission *found;

	if (n < 1 || n > subject->sent)
		fail_step("a transmission", "it was not sent");
	found = expected_transmission(subject->tids[n - 1]);
	expect(found, "a transmission with a response to come", "none is expected");
	return found;
}

static void put_redirection(uint8_t *mad, int64_t lid, int64_t gid)
{
	uint8_t *info = mad + data_offset(mad[1]), gids[16] = {(uint8_t)gid};

	memset(info, 0, 64);
	mad_set_field(info, 0, IB_CPI_REDIRECT_LID_F, (uint32_t)lid);
	mad_set_array(info, 0, IB_CPI_REDIRECT_GID_F, gids);
}

static void respond(char **words)
{
	struct transmission *to = addressee(words);
	int64_t length = argument_number(words, "bytes", IB_MAD_SIZE);
	size_t size = umad_size() + (size_t)length;
	uint8_t bytes[64 + 2 * LONG], *mad = umad_get_mad(bytes);
	uint16_t status = 0;
	struct request_event event = {
		.kind = EVENT_RESPONSE,
		.transmission = to,
		.length = (int)length,
		.umad = bytes,
		.allocated = has_word(words, "allocated"),
	};

	if (words[1] && !strcmp(words[1], "BUSY"))
		status = IB_MAD_STS_BUSY;
	else if (words[1] && !strcmp(words[1], "REDIRECT"))
		status = IB_MAD_STS_REDIRECT;
	else if (words[1] && !strncmp(words[1], "0x", 2))
		status = (uint16_t)number_of(words[1], 16);
	memset(bytes, RESPONSE_BYTE, sizeof(bytes));
	mad[1] = subject->request.transmissions.mgmt_class;
	mad[3] = IB_MAD_METHOD_GET_RESPONSE;
	put16(mad, STATUS_OFFS, status);
	put32(mad, TID_OFFS, to->tid);
	if (argument(words, "lid") || argument(words, "gid"))
		put_redirection(mad, argument_number(words, "lid", 0),
				argument_number(words, "gid", 0));
	if (argument(words, "path"))
		mad_set_field(mad + IB_SA_DATA_OFFS, 0, IB_SA_PR_DLID_F,
			      (uint32_t)argument_number(words, "path", 0));
	if (event.allocated) {
		event.umad = __real_malloc(size);
		memcpy(event.umad, bytes, size);
	}
	seen.message = event.umad;
	handle(&event);
	seen.taken = has_word(words, "allocated") && !event.allocated;
	if (event.allocated)
		free(event.umad);
}

/* The port does this after ASK_PATH. */
static void ask_path(void)
{
	const struct path_source source = {
		.sa = {.lid = 9, .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY},
		.agent = 4,
		.sa_key = 0x5a,
	};

	redirect_ask_path(subject->request.redirect, subject->request.packet, &source);
}

static void run_request_event(char **words)
{
	struct request_event event = {
		.kind = (enum request_event_kind)value_of(events, words[0]),
	};

	if (words[1] && event.kind != EVENT_RESPONSE && event.kind != EVENT_REPORT)
		event.error = value_of(errors, words[1]);
	switch (event.kind) {
	case EVENT_TIMER:
		due(&event);
		return;
	case EVENT_RESPONSE:
		respond(words);
		return;
	case EVENT_REPORT:
		event.transmission = addressee(words);
		break;
	case EVENT_ASKED:
		if (!event.error)
			ask_path();
		break;
	case EVENT_CANCEL:
		subject->cancelled |= subject->request.phase != REQUEST_DONE;
		break;
	default:
		break;
	}
	handle(&event);
}

static void run_event(char **words)
{
	int64_t from, to;

	if (strlen(words[0]) == 1)
		subject = &subjects[*words++[0] - 'A'];
	if (!strcmp(words[0], "shortage")) {
		device_fail_malloc(1);
		words++;
	}
	seen.action = ACTION_NONE;
	seen.from = now;
	seen.taken = false;
	if (!strcmp(words[0], "make")) {
		make(words);
	} else if (!strcmp(words[0], "law")) {
		set_late_after((uint32_t)time_of(words[1]));
	} else if (!strcmp(words[0], "limit")) {
		all.flow.path_limit = (unsigned)number_of(words[1], 10);
	} else if (words[0][0] == '+' || words[0][0] == '@') {
		read_time(words[0] + 1, &from, &to);
		now = from + (words[0][0] == '+' ? now : began);
	} else if (!strcmp(words[0], "late")) {
		until_late();
	} else {
		run_request_event(words);
	}
	device_fail_malloc(0);
}

/* --- expectations --------------------------------------------------------------- */

static void expect_phase(char **words)
{
	static const enum request_phase after[] = {
		[ACTION_SET_TIMER] = REQUEST_WAITING,    [ACTION_QUEUE] = REQUEST_QUEUED,
		[ACTION_READDRESS] = REQUEST_QUEUED,     [ACTION_WRITE] = REQUEST_WRITING,
		[ACTION_ASK_PATH] = REQUEST_ASKING_PATH, [ACTION_COMPLETE] = REQUEST_DONE,
	};
	int phase = (int)after[seen.action];
	bool named = false;

	for (; *words; words++)
		named = named || find(phases, *words, &phase);
	if (named || seen.action != ACTION_NONE)
		expect(subject->request.phase == (enum request_phase)phase,
		       name_of(phases, phase), name_of(phases, (int)subject->request.phase));
}

/* What must hold for each request that is complete. */
static void expect_complete(const char *error)
{
	struct request *request = &subject->request;

	expect(request->error == (error ? value_of(errors, error) : 0), error ? error : "0",
	       name_of(errors, request->error));
	expect(request->error || request_has_response(request), "a response", "none");
	expect(!request->status || (request_has_response(request) && request->error == EIO),
	       "EIO with a status", "another error");
	expect(!transmissions_expect(&request->transmissions), "no response is expected",
	       "one is");
	expect(!request->account.in_window && !request->account.at_node, "it is not in flight",
	       "it is");
}

static bool is_listed(const char *list, unsigned n)
{
	char *end_of;

	for (; *list >= '0' && *list <= '9'; list = *end_of ? end_of + 1 : end_of)
		if ((unsigned)strtol(list, &end_of, 10) == n)
			return true;
	return false;
}

static void expect_transmissions(const char *word, const char *list)
{
	for (unsigned i = 0; i < subject->sent; i++) {
		bool listed = false;

		/* several may have had one ID */
		for (unsigned j = 0; j < subject->sent; j++)
			listed |=
				subject->tids[j] == subject->tids[i] && is_listed(list, j + 1);
		if (listed != (expected_transmission(subject->tids[i]) != NULL)) {
			char text[60];

			snprintf(text, sizeof(text), "%s response to %u is expected",
				 listed ? "no" : "a", i + 1);
			fail_step(word, text);
		}
	}
}

static uint32_t latest_tid(void)
{
	return subject->sent ? subject->tids[subject->sent - 1] : 0;
}

/* No transmission before, of any request, has the ID of the latest one. */
static bool is_new(void)
{
	for (const struct subject *of = subjects; of < subjects + SUBJECTS; of++) {
		if (of->made && of->tid == latest_tid())
			return false;
		for (unsigned i = 0; i < of->sent; i++)
			if (of->tids[i] == latest_tid() && (of != subject || i + 1 < of->sent))
				return false;
	}
	return true;
}

static void expect_holds(const char *what)
{
	struct request *request = &subject->request;
	bool response = !strcmp(what, "response");

	if (response)
		expect_number(what, RESPONSE_BYTE, request_mad(request)[RESPONSE_DATA]);
	else
		expect_number(what, REQUEST_BYTE, request_mad(request)[DATA_BYTE]);
	expect(request_has_response(request) == response, what, "the other");
	/* zeros follow a short response */
	if (response && !request_is_large(request))
		for (int i = request->length; i < IB_MAD_SIZE; i++)
			expect_number("zeros behind it", 0, request_mad(request)[i]);
}

static int64_t report_lid(void)
{
	ib_portid_t portid = {.lid = 1};

	redirect_report(subject->request.redirect, &portid);
	return portid.lid;
}

/* Of the packet. */
static bool expect_of_packet(const char *word)
{
	const char *text;

	if (!strcmp(word, "own"))
		expect_number(word, subject->tid, latest_tid());
	else if (!strcmp(word, "new"))
		expect(is_new(), word, "an ID that was there before");
	else if ((text = behind(word, "tid")))
		expect_number(word, subject->tids[number_of(text, 10) - 1], latest_tid());
	else if ((text = behind(word, "ms")))
		expect_number(word, number_of(text, 10), subject->kernel_ms);
	else if ((text = behind(word, "lid")))
		expect_number(word, number_of(text, 10),
			      be16toh(umad_get_mad_addr(subject->umad)->lid));
	else if (!behind(word, "left")) /* it was checked */
		return false;
	return true;
}

static bool expect_of_flow(const char *word)
{
	const struct flow_account *account = &subject->request.account;
	const char *text;

	if ((text = behind(word, "window")))
		expect_number(word, number_of(text, 10),
			      all.flow.windows[flow_window_of(account)].in_flight);
	else if ((text = behind(word, "node")))
		expect_number(word, number_of(text, 10), subject->node.in_flight);
	else if (!strcmp(word, "told=0"))
		expect_number(word, 0, told.rtt_us);
	else if ((text = behind(word, "told")))
		expect_time(word, text, told.rtt_us);
	else if ((text = behind(word, "lost")))
		expect_number(word, number_of(text, 10), told.lost);
	else if ((text = behind(word, "copies")))
		expect_number(word, number_of(text, 10), account->copies);
	else if ((text = behind(word, "law")))
		expect_time(word, text, flow_late_after(&all.flow, account));
	else
		return false;
	return true;
}

static bool expect_of_request(const char *word)
{
	struct request *request = &subject->request;
	const char *text;

	if ((text = behind(word, "expects")))
		expect_transmissions(word, text);
	else if ((text = behind(word, "sent")))
		expect_number(word, number_of(text, 10), request->transmissions.count);
	else if ((text = behind(word, "holds")))
		expect_holds(text);
	else if ((text = behind(word, "bytes")))
		expect_number(word, number_of(text, 10), request->length);
	else if ((text = behind(word, "status")))
		expect_number(word, number_of(text, 16), request->status);
	else if ((text = behind(word, "rtt")))
		expect_time(word, text, request->rtt_us);
	else if ((text = behind(word, "elapsed")))
		expect_time(word, text, 1000 * (int64_t)request->elapsed_ms);
	else if ((text = behind(word, "class")))
		expect_number(word, value_of(classes, text), request_mad(request)[1]);
	else if ((text = behind(word, "dport")))
		expect_number(word, number_of(text, 10), report_lid());
	else if (!strcmp(word, "ended"))
		expect(request_is_ended(request), word, "it is not");
	else if (!strcmp(word, "taken"))
		expect(seen.taken && request_buffer(request) == seen.message, word,
		       "another buffer");
	else
		return false;
	return true;
}

static void expect_when(const char *word)
{
	bool timer = seen.action == ACTION_SET_TIMER;
	int64_t at = timer ? subject->request.timer_at : now;

	if (word[0] == '@')
		at -= began;
	else
		at -= timer ? now : seen.from;
	expect_time(word, word + 1, at);
}

static void check_expectations(char **words)
{
	int phase, error;
	char **word = words;

	expect(words[0], "an expectation", "there is none");
	expect(seen.action == (enum request_action)value_of(actions, words[0]), words[0],
	       name_of(actions, (int)seen.action));
	expect_phase(words);
	word++;
	if (seen.action == ACTION_COMPLETE)
		expect_complete(*word && find(errors, *word, &error) ? *word++ : NULL);
	if (seen.action == ACTION_WRITE)
		expect_number("left", argument_number(words, "left", 0),
			      subject->attempts_left);
	for (; *word; word++) {
		if ((*word)[0] == '+' || (*word)[0] == '@')
			expect_when(*word);
		else if (!find(phases, *word, &phase) && !expect_of_packet(*word) &&
			 !expect_of_flow(*word) && !expect_of_request(*word))
			fail_step("a word of request_rows.h", *word);
	}
}

/* What holds after each step. */
static void check_invariants(void)
{
	const struct request *request = &subject->request;

	expect(request_is_ended(request) ==
		       (request->phase == REQUEST_DONE || subject->cancelled),
	       "it is ended when it is DONE or cancelled", "it is not so");
	expect(!subject->writing || request->phase == REQUEST_WRITING, "WRITING",
	       name_of(phases, (int)request->phase));
	expect(!subject->writing || (subject->umad == request_buffer(&subject->request) &&
				     subject->length == request->length),
	       "the request's buffer", "another one");
}

/* --- lines ---------------------------------------------------------------------- */

/* Cuts a text into words; the last one is NULL. */
static void split(char *text, char **words)
{
	char *rest = NULL;
	unsigned count = 0;

	for (char *word = strtok_r(text, " ", &rest); word && count < WORDS;
	     word = strtok_r(NULL, " ", &rest))
		words[count++] = word;
	words[count] = NULL;
}

static void run_step(const char *text, size_t length)
{
	char copy[sizeof(step)], *expectations, *words[WORDS + 1];

	assert_true(length < sizeof(step));
	seen.number++;
	memcpy(step, text, length);
	step[length] = 0;
	memcpy(copy, step, sizeof(copy));
	expectations = strchr(copy, '>');
	if (expectations)
		*expectations++ = 0;
	subject = &subjects[0];
	split(copy, words);
	run_event(words);
	if (!subject->made)
		return;
	check_invariants();
	if (expectations) {
		split(expectations, words);
		check_expectations(words);
	} else {
		/* time passes, or a request is made */
		expect(seen.action == ACTION_NONE, "NONE", name_of(actions, (int)seen.action));
	}
}

/* The steps that a word beginning with "$" stands for. */
static const struct {
	const char *word, *line;
} lines[] = {
	{"sent", "send > WRITE; written > SET_TIMER"},
	/* the node says BUSY, and the pause passes */
	{"busy", "$sent; response BUSY > SET_TIMER PAUSED; timer > QUEUE"},
	{"redirected", "$sent; response REDIRECT lid=77 > READDRESS"},
	/* a response names a GID alone */
	{"ask", "$sent; response REDIRECT gid=5 > READDRESS; send > ASK_PATH expects=0"},
	/* a request whose ID the caller chose is given up */
	{"chosen", "make chosen tid=next; $sent; cancel ECANCELED > COMPLETE ECANCELED"},
	/* another request with the same ID gets the ID, or a new one */
	{"another-own", "B make; B send > WRITE own; B written EIO > COMPLETE EIO"},
	{"another-new", "B make; B send > WRITE new; B written EIO > COMPLETE EIO"},
	/* another node responds after a millisecond */
	{"exchange",
	 "B make; B send > WRITE; B written > SET_TIMER; +1ms; B response > COMPLETE"},
};

static void run_named(unsigned count, const char *word, size_t length)
{
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (strlen(lines[i].word) == length && !strncmp(lines[i].word, word, length)) {
			while (count--)
				run_line(lines[i].line);
			return;
		}
	fail_step("a word of request_rows.c", word);
}

void run_line(const char *line)
{
	unsigned count;
	size_t length;

	for (; *line; line += length + (line[length] == ';')) {
		line += strspn(line, " ");
		length = strcspn(line, ";");
		count = (unsigned)strcspn(line, "$;");
		if (line[count] == '$')
			run_named(count ? (unsigned)strtoul(line, NULL, 10) : 1,
				  line + count + 1, length - count - 1);
		else if (length)
			run_step(line, length);
	}
}

int rows_setup(void)
{
	char *words[] = {NULL};

	set_late_after(0);
	requests_init(&all);
	for (unsigned i = 0; i < SUBJECTS; i++)
		flow_path_init(&subjects[i].node);
	behaviour = NULL;
	memset(&seen, 0, sizeof(seen));
	memset(&told, 0, sizeof(told));
	now = began = INT64_C(5000000000);
	subject = &subjects[0];
	make(words);
	return 0;
}

int rows_teardown(void)
{
	device_fail_malloc(0);
	for (unsigned i = 0; i < SUBJECTS; i++)
		end(&subjects[i]);
	tids_free(&all.tids);
	return 0;
}

void run_row(const struct request_row *row)
{
	behaviour = row->behaviour;
	run_line(row->line);
}

struct request *row_request(char name)
{
	return &subjects[name - 'A'].request;
}

struct requests *row_requests(void)
{
	return &all;
}

int64_t *row_now(void)
{
	return &now;
}
