/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * One request from its submission to its completion: when it is retransmitted and with which
 * transaction ID, and which message completes it.
 */

#include "requests.h"

#include <inttypes.h>

FIXTURE(requests_setup, requests_teardown);

/* --- rows: a request, a script, and what arrives -------------------------------- */

/*
 * request: a Get of PERF to n1 with 3 attempts of 1000 ms, unless it has the words Set, a class
 * (SMP, SA, CC, VENDOR), attempts=N, timeout=MS; and
 *
 *	warm=MS		before, n1 has responded to another request in this time
 *	rate=N		so many requests may be sent in a second
 *	limit=N		so many requests may be at a node
 *	write=MS	a write takes so long, while another thread reads
 *	fail=N:ERRNO	the N-th write fails with this error
 *	nomem=N		the N-th allocation fails, of those after the first write
 *	files=MS	opening a file of sysfs takes so long
 *	cancel=MS	another thread cancels the request then
 *	remove=MS	the device is removed then
 *
 * trace: the transmissions that arrive at nodes, each as its time in ms, a letter that stands
 * for its transaction ID, and "@node" unless it is n1. end: error and time of the completion.
 * A time may be a range: 10..15.
 */
struct row {
	const char *behaviour, *request, *script, *trace, *end;
};

static const struct row rows[] = {
	/* --- no response --- */
	{"a Get is sent again early twice in its attempts", "", "-",
	 "0a 200b 600c 1000..1040a 1800..1840d 2040..2080a", "ETIMEDOUT 3040..3080"},
	{"a Get of an SMP is sent early, too", "SMP", "- ok", "0a 200b", "0 200"},
	{"a Get of congestion control is sent early, too", "CC", "- ok", "0a 200b", "0 200"},
	{"the SA has more time than others", "SA timeout=3000", "- ok", "0a 1000b", "0 1000"},
	{"a Set is sent once in an attempt", "Set", "-", "0a 1000..1040a 2040..2080a",
	 "ETIMEDOUT 3050..3130"},
	{"a Get of VENDOR may change something, and is sent once in an attempt", "VENDOR", "-",
	 "0a 1000..1040a 2040..2080a", "ETIMEDOUT 3050..3130"},
	{"a Get with one attempt is sent once, and does not wait for the kernel's report",
	 "attempts=1", "-", "0a", "ETIMEDOUT 1000"},
	{"a Set with one attempt waits for the kernel's report", "Set attempts=1", "-", "0a",
	 "ETIMEDOUT 1001..1162"},
	{"an attempt may be shorter than the time after which a response is late",
	 "timeout=50 attempts=2", "-", "0a 50..77a", "ETIMEDOUT 100..127"},
	{"the shortest attempt is a millisecond", "timeout=1 attempts=2", "-", "0a 1..21a",
	 "ETIMEDOUT 2..22"},
	{"a negative timeout is half of the longest", "Set timeout=-1 attempts=1", "-", "0a",
	 "ETIMEDOUT 1073741823..1227133532"},
	{"all attempts take 2^32 milliseconds at most", "Set timeout=-1 attempts=6", "-",
	 "0a 1073741823..1227133532a 2147483646..2454267064a 3221225469..3681400596a",
	 "ETIMEDOUT 4294967295"},
	{"intervals grow ten times up to a fifth of a second, and then double",
	 "warm=4 attempts=6 timeout=60000", "- - - - - ok", "0a 12b 132c 372d 852e 1812f",
	 "0 1812"},
	{"an interval of more than a fifth of a second is doubled", "warm=150 timeout=60000",
	 "- - ok", "0a 450b 1350c", "0 1350"},
	{"a request has few early transmissions, and the attempts that are left",
	 "warm=4 attempts=4 timeout=2000", "-",
	 "0a 12b 132c 372d 852e 2000..2062a 4000..4124a 6000..6186a", "ETIMEDOUT 8000..8250"},
	{"with a fixed limit, a late request is sent again as well", "limit=1 warm=4",
	 "- - - ok", "0a 12b 132c 372d", "0 372"},

	/* --- late responses --- */
	{"a second response is dropped", "", "twice", "0a", "0 0"},
	{"a response to the second transmission counts after the third", "", "- ok+500 -",
	 "0a 200b 600c", "0 700"},
	{"a response at the end of the attempt comes before the kernel's report", "Set",
	 "ok+1015 -", "0a", "0 1015"},
	{"a response to an early transmission counts in the next attempt", "", "- - ok+900 -",
	 "0a 200b 600c 1000..1040a", "0 1500"},
	{"a response to the first attempt completes the request in the second",
	 "Set attempts=2", "ok+1100 -", "0a 1000..1040a", "0 1100"},
	{"of many early transmissions, the latest ones count",
	 "warm=4 attempts=6 timeout=60000", "- - - ok+800 -", "0a 12b 132c 372d 852e",
	 "0 1172"},
	{"of many early transmissions, others are given up", "warm=4 attempts=6 timeout=60000",
	 "- ok+1000 - - - - ok", "0a 12b 132c 372d 852e 1812f 3732g", "0 3732"},
	{"a response with a status is an error", "", "1c", "0a", "EIO 0"},

	{"a response while the next attempt is queued completes the request",
	 "rate=2 timeout=600", "- ok+300", "0a 499..500b", "0 799..800"},
	{"BUSY while the next attempt is queued is followed by a pause in it",
	 "rate=2 timeout=600", "- 1+300 ok", "0a 499..500b 998..1020a", "0 998..1020"},
	{"a redirection while the next attempt is queued is followed in it",
	 "rate=2 timeout=600", "- lid:n2+300 ok", "0a 499..500b 998..1000a@n2", "0 998..1000"},
	{"a request that waits too long to be sent again fails",
	 "rate=1 timeout=100 attempts=2", "-", "0a", "ETIMEDOUT 200..268"},

	/* --- BUSY --- */
	{"each pause after BUSY is twice as long as the one before, and half of it at most is "
	 "added",
	 "", "1 1 1 1 ok", "0a 10..15a 30..45a 70..105a 150..225a", "0 150..225"},
	{"a node that stays BUSY ends the request in time", "attempts=1", "1",
	 "0a 10..15a 30..45a 70..105a 150..225a 310..465a 630..945a", "EIO 630..945"},
	{"BUSY without time for a pause is an error", "attempts=1", "1+990", "0a", "EIO 990"},
	{"a request that may change something is sent again after BUSY, too", "Set attempts=2",
	 "1 1 -", "0a 10..15a 30..45a 1000..1070a", "ETIMEDOUT 2000..2240"},
	{"after BUSY the first interval returns", "warm=4", "- 1 - ok",
	 "0a 12b 22..27c 26..45d", "0 26..45"},
	{"after BUSY no response to another transmission counts", "warm=4", "ok+14 1+1 -",
	 "0a 12b 23..28c 27..48d 60..300e 1000..1070c 2000..2140c", "ETIMEDOUT 3000..3240"},
	{"a pause may end with the attempt", "Set", "1+995 ok", "0a 1005..1010a",
	 "0 1005..1010"},
	{"BUSY while the kernel's report is awaited is followed by a pause", "Set", "1+1015 ok",
	 "0a 1025..1030a", "0 1025..1030"},
	{"BUSY of an earlier attempt is followed by a pause", "warm=4 attempts=6",
	 "- - 1+1100 - - ok", "0a 12b 132c 372d 852e 1000..1040a", "0 1000..1300"},

	/* --- a write that takes long --- */
	{"a response during a write completes the request after it", "write=5", "ok+3", "0a",
	 "0 5"},
	{"BUSY during a write is followed by a pause that begins with the response", "write=5",
	 "1+1 ok", "0a 11..16a", "0 16..21"},
	{"a redirection during a write is followed after it", "write=5", "lid:n2+1 ok",
	 "0a 5a@n2", "0 10"},
	{"a response during the write does not replace a cancel", "write=5 cancel=2", "ok+3",
	 "0a", "ECANCELED 5"},
	{"a cancelled request with a redirection is not sent again", "write=5 cancel=2",
	 "lid:n2", "0a", "ECANCELED 5"},
	{"a report during a write ends the attempt of a Get after it", "write=1100 attempts=2",
	 "-", "0a 1100a", "ETIMEDOUT 2200"},
	{"a report during the write of an early transmission ends nothing",
	 "write=900 attempts=3", "- - ok", "0a 900b 1800..1900a", "0 2700..2800"},
	{"a cancel replaces a report that came during the write", "Set write=1100 cancel=1050",
	 "-", "0a", "ECANCELED 1100"},
	{"without memory, a response during a write is lost", "write=5 nomem=1", "ok+1 ok",
	 "0a 200a", "0 205"},
	{"without memory, a redirection is an error", "nomem=1", "lid:n2+1 ok", "0a",
	 "ENOMEM 1"},

	/* --- a write that fails --- */
	{"a write error of the second transmission leaves the first in flight",
	 "warm=4 fail=2:12", "ok+20", "0a", "0 20"},
	{"without a device, the request completes at once", "warm=4 fail=2:19", "ok+20", "0a",
	 "ENODEV 12"},
	{"a response during a write that fails is that of another request", "write=5 fail=1:5",
	 "ok", "0a", "EIO 5"},
	{"a response to the first transmission outlives a write error of the second",
	 "warm=4 write=20 fail=2:12", "ok+30", "0a 20b", "0 40"},
	{"a response to the first transmission outlives the end of the device",
	 "warm=4 write=20 fail=2:19", "ok+30", "0a 20b", "0 40"},
	{"BUSY for the first transmission outlives a refusal of the second",
	 "warm=4 write=20 fail=2:22", "1+30 - ok", "0a 20b 40..45a", "0 60..65"},
	{"a redirection of the first transmission outlives a refusal of the second",
	 "warm=4 write=20 fail=2:22", "lid:n2+30 - ok", "0a 20b 40a@n2", "0 60"},
	{"a response to a refused transmission is that of another request", "write=5 fail=1:22",
	 "1c ok", "0a 5b", "0 10"},
	{"a redirection of a refused transmission is that of another request",
	 "write=5 fail=1:22", "lid:n2 ok", "0a 5b", "0 10"},
	{"an ID that is refused after the attempt is replaced in the next one",
	 "write=1100 fail=1:22", "- ok", "0a 1100b", "0 2200"},
	{"an ID that is refused in a later attempt is replaced again", "Set fail=2:22", "- ok",
	 "0a 1000..1040b", "0 1000..1040"},
	{"an ID is replaced once in an attempt", "write=5 fail=-1:22", "ok", "0a 5b",
	 "EINVAL 10"},
	{"a cancelled request that the kernel refuses is not sent again",
	 "write=5 fail=1:22 cancel=2", "-", "0a", "ECANCELED 5"},

	/* --- the kernel finds no port with the GID --- */
	{"a destination that is not found is tried again in the next attempt, not early",
	 "fail=1:110", "-", "1000a 2000..2040a", "ETIMEDOUT 3000..3040"},
	{"a Set to a destination that is not found has all its attempts",
	 "Set fail=1:110 attempts=2", "-", "1000a", "ETIMEDOUT 2000..2080"},
	{"a destination that is never found is a timeout", "fail=1:110 attempts=1", "-", "",
	 "ETIMEDOUT 0"},
	{"attempts that pass while a destination is not found are over",
	 "write=2500 fail=1:110 attempts=4", "- ok", "0a 2500a", "0 5000"},

	/* --- redirection --- */
	{"a request to the SA has its redirection at another place", "SA", "lid:n2 ok",
	 "0a 0a@n2", "0 0"},
	{"the status of a redirection is an error of an SMP", "SMP", "lid:n2", "0a", "EIO 0"},
	{"the fifth redirection is not followed", "", "lid:n2", "0a 0a@n2 0a@n2 0a@n2 0a@n2",
	 "ELOOP 0"},
	{"a redirected Get has the rest of its attempt", "attempts=1", "lid:n2+150 -",
	 "0a 150a@n2", "ETIMEDOUT 1000"},
	{"a redirected Set has a whole attempt", "Set attempts=1", "lid:n2+999 -", "0a 999a@n2",
	 "ETIMEDOUT 2000..2161"},
	{"a redirection after the attempt is followed in the next one", "attempts=2 warm=400",
	 "lid:n2+1015 ok", "0a 1015a@n2", "0 1015"},
	{"after a redirection, the first interval returns", "warm=4 attempts=6",
	 "- - lid:n2 - ok", "0a 12b 132c 132d@n2 140..340e@n2", "0 140..340"},
	{"a redirected request expects no response to earlier transmissions", "warm=4",
	 "ok+16 lid:n2 - ok", "0a 12b 12c@n2 20..220d@n2", "0 20..220"},
	{"a redirection after the last attempt is not followed", "write=1020 attempts=1",
	 "lid:n2+1015 ok", "0a", "ETIMEDOUT 1020"},
	{"a redirected request may have to wait for the rate", "rate=1 timeout=3000",
	 "lid:n2 ok", "0a 999..1001a@n2", "0 999..1001"},
	{"a redirected request that waits can be cancelled", "rate=1 timeout=3000 cancel=300",
	 "lid:n2 ok", "0a", "ECANCELED 300"},

	/* --- redirection to a GID --- */
	{"the path to a GID is that of the SA, requested with another ID", "", "gid:n2 ok",
	 "0a 0b@sm 0a@n2", "0 0"},
	{"a Set has a whole attempt for the path, and another one after that", "Set attempts=1",
	 "gid:n2+900 -", "0a 900b@sm 900a@n2", "ETIMEDOUT 1900..2062"},
	{"a path that comes during the write of its request is kept", "write=5", "gid:n2 ok",
	 "0a 5b@sm 10a@n2", "0 15"},
	{"a request can be cancelled while its path is looked up", "files=5 cancel=7", "gid:n2",
	 "0a", "ECANCELED 100..2000"},
	{"an attempt may be over when the SA can be asked", "files=200", "gid:n2 ok",
	 "0a 31800b@sm 31800a@n2", "0 31800"},

	/* --- cancel and removal --- */
	{"a request in flight is cancelled at once", "cancel=300", "-", "0a 200b",
	 "ECANCELED 300"},
	{"a request that pauses is cancelled at once", "cancel=5", "1", "0a", "ECANCELED 5"},
	{"a request that awaits the report is cancelled at once", "Set cancel=1010", "-", "0a",
	 "ECANCELED 1010"},
	{"a device that is removed ends the request", "remove=5", "-", "0a", "ENODEV 5"},
};

static const struct {
	const char *name;
	int mgmt_class;
} classes[] = {
	{"SMP", IB_SMI_CLASS}, {"SA", IB_SA_CLASS}, {"CC", IB_CC_CLASS}, {"VENDOR", VENDOR_1}};

static bool has_word(const char *text, const char *word)
{
	const char *found = strstr(text, word);
	char end = found ? found[strlen(word)] : 0;

	return found && (found == text || found[-1] == ' ') && (!end || end == ' ');
}

/* The number behind "name=". */
static int number(const char *text, const char *name, int otherwise)
{
	const char *found = strstr(text, name);

	return found ? (int)strtol(found + strlen(name), NULL, 0) : otherwise;
}

struct running {
	const struct row *row;
	struct mad_async *async;
	struct outcome outcome;
	ib_rpc_t rpc;
	int64_t began;
};

static void *run_request(void *arg)
{
	struct running *running = arg;
	ib_portid_t to = to_node("n1");
	uint8_t data[64] = {0x5a};

	mad_async_submit(running->async, &running->rpc, &to, data, sizeof(data), note,
			 &running->outcome, NULL);
	mad_async_wait(running->async, -1);
	return NULL;
}

static void *receive(void *arg)
{
	mad_free(mad_receive_via(NULL, -1, arg));
	return NULL;
}

static void expect_time(const struct row *row, const char **text, int64_t us, int64_t began)
{
	long from = strtol(*text, (char **)(uintptr_t)text, 10), to = from;
	int64_t ms = (us - began) / 1000;

	if (!strncmp(*text, "..", 2))
		to = strtol(*text + 2, (char **)(uintptr_t)text, 10);
	if (ms < from || ms > to)
		fail_msg("%s: at %" PRId64 " ms, not %ld to %ld", row->behaviour, ms, from, to);
}

static void expect_trace(const struct row *row, int64_t began)
{
	const char *text = row->trace;
	uint32_t tids['z' + 1] = {0}, tid;
	unsigned i = 0;

	for (; *text; i++, text += strspn(text, " ")) {
		if (i == arrived)
			fail_msg("%s: only %u arrived", row->behaviour, i);
		expect_time(row, &text, arrivals[i].mad.us, began);
		tid = tid_of(&arrivals[i]);
		for (char other = 'a'; other <= 'z'; other++)
			if (tids[(int)other] && (tids[(int)other] == tid) != (other == *text))
				fail_msg("%s: the ID of number %u", row->behaviour, i);
		tids[(int)*text++] = tid;
		assert_true(arrivals[i].mad.node[1] == (*text == '@' ? text[2] : '1'));
		text += strcspn(text, " ");
	}
	assert_int_equal(i, arrived);
}

static int error_of(const char **end)
{
	static const struct {
		const char *name;
		int error;
	} errors[] = {{"0", 0},           {"ECANCELED", ECANCELED}, {"EINVAL", EINVAL},
		      {"EIO", EIO},       {"ELOOP", ELOOP},         {"ENODEV", ENODEV},
		      {"ENOMEM", ENOMEM}, {"ETIMEDOUT", ETIMEDOUT}};
	size_t length = strcspn(*end, " ");

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strlen(errors[i].name) == length &&
		    !strncmp(*end, errors[i].name, length)) {
			*end += length + 1;
			return -errors[i].error;
		}
	fail_msg("no error: %s", *end);
	return 0;
}

static ib_rpc_t perf_get(void)
{
	return make_rpc(IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET, 0x12);
}

static void warm_up(int ms)
{
	static char words[16];

	snprintf(words, sizeof(words), "ok+%d", ms);
	use_script(words);
	assert_int_equal(ask(perf_get(), "n1"), 0);
}

static void prepare(struct running *running)
{
	const char *request = running->row->request;
	const char *fail = strstr(request, "fail=");
	int mgmt_class = IB_PERFORMANCE_CLASS;

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (has_word(request, classes[i].name))
			mgmt_class = classes[i].mgmt_class;
	running->rpc = make_rpc(
		mgmt_class, has_word(request, "Set") ? IB_MAD_METHOD_SET : IB_MAD_METHOD_GET,
		0x12);
	running->rpc.timeout = number(request, "timeout=", 0);
	mad_rpc_set_retries(port, number(request, "attempts=", 3));
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, (uint64_t)number(request, "limit=", 0));
	mad_port_set(port, MAD_PORT_RATE, (uint64_t)number(request, "rate=", 0));
	if (strstr(request, "warm="))
		warm_up(number(request, "warm=", 0));
	machine_slow_call(MACHINE_WRITE, number(request, "write=", 0) * INT64_C(1000));
	machine_slow_call(MACHINE_FILES, number(request, "files=", 0) * INT64_C(1000));
	if (fail)
		machine_fail(MACHINE_WRITE, (unsigned)number(fail, "fail=", 0),
			     (int)strtol(strchr(fail, ':') + 1, NULL, 10));
}

static void run_row(const void *arg)
{
	struct running running = {.row = arg};
	const char *request = running.row->request, *end = running.row->end;
	bool reads = strstr(request, "write=") != NULL;
	int cancel = number(request, "cancel=", -1), removal = number(request, "remove=", -1);
	int nomem = number(request, "nomem=", -1);
	pthread_t runner, reader;

	prepare(&running);
	running.async = mad_async_create(port);
	use_script(running.row->script);
	if (reads)
		assert_int_equal(pthread_create(&reader, NULL, receive, port), 0);
	machine_pass(1000);
	running.began = machine_us();
	assert_int_equal(pthread_create(&runner, NULL, run_request, &running), 0);
	if (nomem >= 0) {
		machine_pass(1);
		machine_fail(MACHINE_MALLOC, (unsigned)nomem, ENOMEM);
	}
	if (cancel >= 0) {
		machine_pass(cancel * INT64_C(1000) + 500);
		assert_int_equal(mad_async_cancel(running.async, MAD_ASYNC_ALL), 0);
	}
	if (removal >= 0) {
		machine_pass(removal * INT64_C(1000) + 500);
		machine_rule("remove on host");
	}
	pthread_join(runner, NULL);
	machine_fail(MACHINE_MALLOC, 0, 0);
	assert_int_equal(stats_of(running.async).in_flight, 0);
	mad_async_free(running.async);
	mad_rpc_close_port(port);
	port = NULL;
	if (reads)
		pthread_join(reader, NULL);
	assert_int_equal(running.outcome.calls, 1);
	expect_trace(running.row, running.began);
	assert_int_equal(running.outcome.error, error_of(&end));
	expect_time(running.row, &end, running.outcome.at, running.began);
}

TEST_ROWS(run_row, rows);

/* --- transaction IDs ------------------------------------------------------------ */

static uint32_t ask_with(uint64_t trid)
{
	ib_rpc_t rpc = set_request();
	unsigned before = arrived;

	rpc.trid = trid;
	assert_int_equal(ask(rpc, "n1"), 0);
	return tid_of(&arrivals[before % ARRIVALS_MAX]);
}

TEST(an_id_that_a_caller_chose_is_used_once_in_five_minutes)
{
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_node("n1");

	rpc.trid = 0x9abcdef012345678;
	assert_null(mad_rpc(port, &rpc, &to, NULL, NULL));
	assert_true(rpc.trid == 0x9abcdef012345678);
	assert_int_equal(tid_of(&arrivals[0]), 0x12345678);
	assert_int_not_equal(ask_with(0x12345678), 0x12345678);
	machine_pass(298 * 1000000);
	assert_int_not_equal(ask_with(0x12345678), 0x12345678);
	/* others with the same lowest bits count as resting */
	assert_int_not_equal(ask_with(0x12345678 + 0x400), 0x12345678 + 0x400);
	machine_pass(4 * 1000000);
	assert_int_equal(ask_with(0x12345678), 0x12345678);
}

TEST(an_id_rests_from_its_latest_transmission_on)
{
	ib_rpc_t rpc = set_request();

	rpc.trid = 77;
	rpc.timeout = 200000;
	use_script("- ok");
	assert_int_equal(ask(rpc, "n1"), 0);
	assert_int_equal(tid_of(&arrivals[1]), 77);
	machine_pass(200 * 1000000);
	assert_int_not_equal(ask_with(77), 77);
	/* also if the request was sent by mad_send_via(), or had no response */
	rpc.trid = 78;
	assert_int_equal(mad_send_via(&rpc, &(ib_portid_t){.lid = 11}, NULL, NULL, port), 0);
	machine_pass(1000);
	assert_int_not_equal(ask_with(78), 78);
	use_script("-");
	rpc.trid = 79;
	rpc.timeout = 10;
	assert_int_equal(ask(rpc, "n1"), ETIMEDOUT);
	use_script("ok");
	assert_int_not_equal(ask_with(79), 79);
}

/* The library's IDs are not to be used up, which would make late responses ambiguous. */
TEST(ids_that_callers_choose_cost_few_of_the_library_s)
{
	uint32_t before = (uint32_t)mad_trid();

	for (unsigned i = 0; i < 3000; i++) {
		ask_with(before + (1u << 31) + i);
		assert_int_not_equal(ask_with(0), 0);
	}
	assert_in_range((uint32_t)mad_trid() - before, 1, 6001);
}

TEST(a_request_has_an_id_of_its_own_although_its_rpc_was_used_before)
{
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_node("n1");
	uint64_t first = 0;

	for (unsigned i = 0; i < 50; i++) {
		mad_rpc(port, &rpc, &to, NULL, NULL);
		first = i ? first : rpc.trid;
		assert_true(rpc.trid == first && first != 0);
		for (unsigned j = 0; j < i; j++)
			assert_int_not_equal(tid_of(&arrivals[i]), tid_of(&arrivals[j]));
	}
}

static void *ask_with_id_5(void *node)
{
	ib_rpc_t rpc = set_request();

	rpc.trid = 5;
	return ask(rpc, node) ? node : NULL;
}

TEST(threads_with_the_same_id_each_get_their_own_response)
{
	static char nodes[3][4] = {"n1", "n2", "n3"};
	pthread_t threads[3];
	void *failed;

	use_script("ok+30 ok+20 ok+10");
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, ask_with_id_5, nodes[i]);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	assert_int_equal(arrived, 3);
}

TEST(a_response_to_mad_send_via_is_not_that_of_mad_rpc_with_the_same_rpc)
{
	static const uint64_t trids[] = {0, 77, UINT64_C(5) << 32};
	ib_portid_t to = to_node("n1");
	uint8_t data[IB_MAD_SIZE] = {1};
	ib_rpc_t rpc;
	uint8_t *umad;

	for (unsigned i = 0; i < 3; i++) {
		rpc = set_request();
		rpc.trid = trids[i];
		use_script("ok ok+1");
		assert_int_equal(mad_send_via(&rpc, &to, NULL, data, port), 0);
		data[0] = 2;
		assert_non_null(mad_rpc(port, &rpc, &to, data, data));
		assert_int_equal(data[0], 2);
		umad = mad_receive_via(NULL, 0, port);
		assert_non_null(umad);
		assert_int_equal(((uint8_t *)umad_get_mad(umad))[IB_PC_DATA_OFFS], 1);
		mad_free(umad);
		data[0] = 1;
	}
}

/* Asks n1, with an engine. */
static struct outcome ask_async(struct mad_async *async, ib_rpc_t rpc)
{
	struct outcome outcome = {0};

	submit(async, rpc, "n1", &outcome, NULL);
	mad_async_wait(async, -1);
	return outcome;
}

/* --- round trips ---------------------------------------------------------------- */

TEST(a_round_trip_may_take_weeks)
{
	struct mad_async *async = mad_async_create(port);
	struct outcome outcome;
	ib_rpc_t rpc = set_request();

	rpc.timeout = -1;
	use_script("ok+4294000 ok+5000000");
	assert_int_equal(ask_async(async, rpc).rtt_us, 4294000000);
	outcome = ask_async(async, rpc);
	assert_int_equal(outcome.rtt_us, UINT32_MAX);
	assert_int_equal(outcome.elapsed_ms, 5000000);
	mad_async_free(async);
}

/* It may be the response to either transmission. */
TEST(the_round_trip_of_an_id_that_was_sent_twice_is_not_known)
{
	struct mad_async *async = mad_async_create(port);

	use_script("- ok+1");
	assert_int_equal(ask_async(async, set_request()).transmissions, 2);
	assert_int_equal(stats_of(async).gmp.rtt_smoothed_us, 0);
	ask_async(async, set_request());
	assert_in_range(stats_of(async).gmp.rtt_smoothed_us, 1, 1100);
	mad_async_free(async);
}

/* The time for pauses begins again after each other response. */
TEST(a_node_may_be_busy_again_later)
{
	mad_rpc_set_retries(port, 1);
	for (int i = 0; i < 3; i++) {
		use_script("1 ok");
		assert_int_equal(ask(set_request(), "n1"), 0);
		machine_pass(10 * 1000000);
	}
}

TEST(the_kernel_waits_until_the_attempt_ends)
{
	const struct ib_user_mad *written = machine_written();

	use_script("lid:n2+150 ok");
	assert_int_equal(ask(perf_get(), "n1"), 0);
	assert_int_equal(written->timeout_ms, MAD_DEF_TIMEOUT_MS - 150);
	assert_int_equal(written->retries, 0);
	assert_int_equal(ask(perf_get(), "n1"), 0);
	assert_int_equal(written->timeout_ms, MAD_DEF_TIMEOUT_MS);
}

/* Four intervals, or a tenth of a second. */
TEST(the_kernel_waits_longer_than_an_interval_for_an_early_transmission)
{
	const struct ib_user_mad *written = machine_written();

	use_script("- ok");
	assert_int_equal(ask(perf_get(), "n1"), 0);
	assert_int_equal(written->timeout_ms, 801);
	use_script("ok - ok");
	assert_int_equal(ask(perf_get(), "n2") + ask(perf_get(), "n2"), 0);
	assert_int_equal(written->timeout_ms, 100);
}

TEST(pauses_after_busy_stop_growing)
{
	ib_rpc_t rpc = set_request();

	rpc.timeout = -1;
	use_script("1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 ok");
	assert_int_equal(ask(rpc, "n1"), 0);
	for (int i = 13; i < 17; i++)
		assert_in_range(arrivals[i + 1].mad.us - arrivals[i].mad.us, 40960000,
				61440000);
}

/* The request has a response, at last from another node. */
TEST(a_redirection_is_no_loss)
{
	struct mad_async *async = mad_async_create(port);
	static struct outcome outcomes[600];
	uint32_t window = stats_of(async).gmp.window;

	machine_on_arrival(NULL, NULL);
	machine_rule("redirect n8 on n1");
	for (int i = 0; i < 600; i++)
		submit(async, perf_get(), "n1", &outcomes[i], NULL);
	mad_async_wait(async, -1);
	for (int i = 0; i < 600; i++)
		assert_int_equal(outcomes[i].transmissions, 2);
	assert_int_equal(stats_of(async).gmp.queue_losses, 0);
	assert_int_equal(stats_of(async).gmp.link_losses, 0);
	assert_true(stats_of(async).gmp.window >= window);
	mad_async_free(async);
}

/* --- long requests -------------------------------------------------------------- */

static int ask_long(struct mad_message *message)
{
	static uint8_t payload[1000];
	ib_rpc_t rpc = make_rpc(IB_SA_CLASS, IB_MAD_METHOD_GETMULTI, IB_SA_ATTR_MULTIPATH);
	ib_portid_t sa = to_node("sm");

	use_script("pass");
	return mad_rpc_message(port, &rpc, &sa, payload, sizeof(payload), message);
}

TEST(a_long_request_is_retransmitted_whole_but_not_redirected)
{
	struct mad_message message;

	assert_int_equal(ask_long(&message), -EIO); /* the SA has refused the payload */
	assert_in_range(message.status, 0x100, 0x700);
	machine_fail(MACHINE_WRITE, 1, EINVAL);
	assert_int_equal(ask_long(&message), -EIO);
	/* the SA's kernel drops a second message with the same ID */
	machine_rule("busy 100%% on sm");
	machine_rule("after 500ms clear");
	assert_int_equal(ask_long(&message), -EIO);
	assert_in_range(message.status, 0x100, 0x700);
	assert_in_range(mad_last_failure()->transmissions, 3, 10);
	machine_rule("silent on sm");
	machine_rule("after 1500ms clear");
	assert_int_equal(ask_long(&message), -EIO);
	assert_in_range(message.status, 0x100, 0x700);
	machine_rule("redirect n1 on sm");
	assert_int_equal(ask_long(&message), -EOPNOTSUPP);
}

/* --- redirection ---------------------------------------------------------------- */

/* A request with a GRH goes through a router again. */
TEST(a_redirected_request_is_the_same_at_another_address)
{
	struct mad_message message = {0};

	for (unsigned i = 0; i < 4; i++) {
		bool set = i & 1, grh = i & 2;
		ib_portid_t to = to_node("n1");
		ib_rpc_t rpc = set ? set_request() : perf_get();

		to.pkey_idx = set;
		to.grh_present = grh;
		to.gid[0] = 0xfe;
		use_script("lid:n2 ok");
		if (set)
			mad_rpc(port, &rpc, &to, NULL, NULL);
		else
			assert_int_equal(mad_rpc_message(port, &rpc, &to, NULL, 0, &message),
					 0);
		mad_message_free(&message);
		memset(&message, 0, sizeof(message));
		assert_int_equal(arrivals[1].mad.dlid, machine_lid("n2"));
		assert_int_equal(arrivals[1].mad.sl, 6);
		assert_int_equal(umad_get_pkey((void *)(uintptr_t)machine_written()), set);
		assert_memory_equal(arrivals[0].bytes, arrivals[1].bytes, MACHINE_MAD);
		assert_int_equal(to.lid, machine_lid("n2"));
		assert_int_equal(to.qp, 1);
		assert_int_equal(to.qkey, IB_DEFAULT_QP1_QKEY);
		assert_int_equal(to.sl, 6);
		assert_int_equal(to.grh_present, grh);
		assert_int_equal(arrivals[1].mad.grh, grh);
		if (grh) {
			assert_true(mad_get_field64(to.gid, 0, IB_GID_GUID_F) ==
				    machine_guid("n2"));
			assert_memory_equal(to.gid, arrivals[1].dgid, 16);
		}
	}
}

/* It is too short to name a port: no GID has a path. */
TEST(a_short_redirection_leads_nowhere)
{
	use_script("lid:n2");
	machine_read_result((ssize_t)umad_size() + 36);
	assert_int_equal(ask(set_request(), "n1"), EHOSTUNREACH);
	assert_int_equal(machine_requests("sm"), 1);
	assert_int_equal(arrived, 2);
}

TEST(the_path_to_a_gid_is_requested_from_the_sa)
{
	ib_portid_t to = to_node("n1");
	ib_rpc_t rpc = set_request();
	uint8_t *path = arrivals[1].bytes;
	ibmad_gid_t gid = {0xfe, 0x80};

	mad_set_field64(gid, 0, IB_GID_GUID_F, machine_guid("n2"));
	use_script("gid:n2 ok");
	mad_rpc(port, &rpc, &to, NULL, NULL);
	assert_int_equal(arrived, 3);
	assert_int_equal(path[1], IB_SA_CLASS);
	assert_int_equal(path[17], IB_SA_ATTR_PATHRECORD);
	/* DGID, SGID and one path, and no other component */
	assert_int_equal(mad_get_field64(path, 0, IB_SA_COMPMASK_F), 0x100c);
	assert_memory_equal(path + IB_SA_DATA_OFFS + 8, gid, 16);
	assert_int_equal(mad_get_field(path + IB_SA_DATA_OFFS, 0, IB_SA_PR_NPATH_F), 1);
	mad_set_field64(gid, 0, IB_GID_GUID_F, machine_guid("host"));
	assert_memory_equal(path + IB_SA_DATA_OFFS + 24, gid, 16);
	mad_set_field64(gid, 0, IB_GID_GUID_F, machine_guid("n2"));
	assert_memory_equal(arrivals[0].bytes, arrivals[2].bytes, MACHINE_MAD);
	assert_true(arrivals[2].mad.grh);
	assert_memory_equal(arrivals[2].dgid, gid, 16);
	assert_int_equal(arrivals[2].mad.qkey, IB_DEFAULT_QP1_QKEY);
	assert_int_equal(to.lid, machine_lid("n2"));
	assert_int_equal(to.grh_present, 1);
	assert_memory_equal(to.gid, gid, 16);
}

/* The SA's responses to the request for a path, and what a redirected request ends with. */
static struct path_plan {
	unsigned silent, busy; /* so many times */
	unsigned status, lid;
	int error;
} path_plan;

static enum machine_verdict plan_path(struct machine_mad *mad, void *arg)
{
	uint8_t lid[2] = {(uint8_t)(path_plan.lid >> 8), (uint8_t)path_plan.lid};

	if (mad->at_host || strcmp(mad->node, "sm"))
		return play(mad, arg);
	if (path_plan.silent && path_plan.silent--)
		return MACHINE_DROP;
	if (path_plan.busy && path_plan.busy--)
		return machine_reply(mad, IB_MAD_STS_BUSY, 0, NULL, 0);
	return machine_reply(mad, (uint16_t)path_plan.status, IB_SA_DATA_OFFS + 40, lid, 2);
}

TEST(without_a_path_a_redirected_request_fails)
{
	static const struct path_plan plans[] = {
		{1, 0, 0, 12, 0},
		{0, 1, 0, 12, 0},
		{0, 0, 0x300, 12, EHOSTUNREACH},
		{0, 0, 0, 0, EHOSTUNREACH},
		{0, 0, 0, 0xc000, EHOSTUNREACH},
		{0, 0, 0, 0xfffe, EHOSTUNREACH},
		{0, 0, 0, 0xffff, EHOSTUNREACH},
		{100, 0, 0, 12, ETIMEDOUT},
	};

	mad_rpc_set_timeout(port, 100);
	for (size_t i = 0; i < sizeof(plans) / sizeof(*plans); i++) {
		path_plan = plans[i];
		use_script("gid:n2 ok");
		machine_on_arrival(plan_path, NULL);
		assert_int_equal(ask(perf_get(), "n1"), plans[i].error);
	}
}

static enum machine_verdict change_lid(struct machine_mad *mad, void *lid)
{
	if (!mad->at_host)
		return play(mad, NULL);
	if (!strcmp(arrivals[arrived - 1].mad.node, "n1"))
		mad_set_field(mad->bytes + 64, 0, IB_CPI_REDIRECT_LID_F, *(uint32_t *)lid);
	return MACHINE_PASS;
}

/* Neither to a group of ports nor to the port that a permissive LID reaches. LID 0: to the GID.
 */
TEST(a_redirection_to_a_lid_that_is_not_unicast_is_not_followed)
{
	uint32_t lids[] = {0, 0xc000, 0xfffe, 0xffff};

	for (int i = 0; i < 4; i++) {
		use_script("lid:n2 ok");
		machine_on_arrival(change_lid, &lids[i]);
		assert_int_equal(ask(perf_get(), "n1"), i ? EHOSTUNREACH : 0);
		assert_int_equal(arrived, i ? 1 : 3);
	}
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(machine_path(path), "w");

	fputs(text, file);
	fclose(file);
}

#define SM_LID_FILE "/sys/class/infiniband/mlx5_0/ports/1/sm_lid"

TEST(without_an_sa_or_a_local_port_there_is_no_path)
{
	static const int errors[] = {EMFILE, ENFILE, ENOMEM, EIO};
	int only_perf[] = {IB_PERFORMANCE_CLASS};
	ib_rpc_t rpc = set_request();

	for (int i = 0; i < 4; i++) {
		use_script("gid:n2 ok");
		machine_fail(MACHINE_FILES, 1, errors[i]);
		assert_int_equal(ask(rpc, "n1"), i < 3 ? errors[i] : EHOSTUNREACH);
	}
	use_script("gid:n2");
	write_file(SM_LID_FILE, "0x0\n");
	assert_int_equal(ask(rpc, "n1"), EHOSTUNREACH);
	write_file(SM_LID_FILE, "0x2\n");
	mad_rpc_close_port(port);
	port = mad_rpc_open_port(NULL, 0, only_perf, 1);
	use_script("gid:n2");
	assert_int_equal(ask(rpc, "n1"), EHOSTUNREACH); /* no agent of the SA's class */
	assert_int_equal(machine_requests("sm"), 0);
}

static void *close_port(void *arg)
{
	mad_rpc_close_port(arg);
	return NULL;
}

TEST(a_request_for_a_path_ends_with_its_port)
{
	struct mad_async *async = mad_async_create(port);
	struct outcome outcome = {0};
	pthread_t closer;

	use_script("gid:n2");
	machine_slow_call(MACHINE_FILES, 10000);
	submit(async, set_request(), "n1", &outcome, NULL);
	assert_int_equal(pthread_create(&closer, NULL, close_port, port), 0);
	mad_async_wait(async, -1);
	pthread_join(closer, NULL);
	assert_int_equal(outcome.calls, 1);
	assert_int_equal(outcome.error, -ECANCELED);
	mad_async_free(async);
	port = NULL;
}

TEST(a_redirected_request_is_sent_before_those_that_wait)
{
	struct mad_async *async = mad_async_create(port);
	struct outcome outcomes[3] = {{0}};

	mad_port_set(port, MAD_PORT_GMP_WINDOW, 1);
	use_script("lid:n2 ok");
	for (int i = 0; i < 3; i++)
		submit(async, set_request(), i ? "n3" : "n1", &outcomes[i], NULL);
	mad_async_wait(async, -1);
	assert_string_equal(arrivals[1].mad.node, "n2");
	assert_int_equal(arrived, 4);
	mad_async_free(async);
}

/* --- which message is the response ---------------------------------------------- */

/* What a row changes in the first response: bytes of the MAD from there on, or its address. */
enum changed {
	METHOD = 3,
	HOP_COUNT = 7,
	ATTRIBUTE = 16,
	MODIFIER = 20,
	OUI = 36,
	PATH = 129,
	LID = 256,
	GID,
	PREFIX,
	OTHER_PREFIX,
	NO_GRH
};

struct match_row {
	const char *behaviour;
	int mgmt_class, method;
	enum changed changed;
	unsigned value;
	bool accepted;
};

static const struct match_row match_rows[] = {
	{"a Get is answered by GetResp", IB_SMI_CLASS, 0x01, METHOD, 0x81, true},
	{"a Get is not answered by another response", IB_SMI_CLASS, 0x01, METHOD, 0x92, false},
	{"a Set may be answered with the response bit", IB_SMI_CLASS, 0x02, METHOD, 0x82, true},
	{"a Set is not answered by a table", IB_SMI_CLASS, 0x02, METHOD, 0x92, false},
	{"a GetTable is answered by its response", IB_SA_CLASS, 0x12, METHOD, 0x92, true},
	{"a GetTable is not answered by GetResp", IB_SA_CLASS, 0x12, METHOD, 0x81, false},
	{"a GetTraceTable is answered by a table", IB_SA_CLASS, 0x13, METHOD, 0x92, true},
	{"a GetTraceTable may have its own response", IB_SA_CLASS, 0x13, METHOD, 0x93, true},
	{"a GetMulti is answered by its response", IB_SA_CLASS, 0x14, METHOD, 0x94, true},
	{"a GetMulti is answered by PathRecords", IB_SA_CLASS, 0x14, ATTRIBUTE, 0x35, true},
	{"a GetMulti is not answered by other records", IB_SA_CLASS, 0x14, ATTRIBUTE, 0x33,
	 false},
	{"a GetTraceTable is answered by TraceRecords", IB_SA_CLASS, 0x13, ATTRIBUTE, 0x39,
	 true},
	{"a Delete is answered by its response", IB_SA_CLASS, 0x15, METHOD, 0x95, true},
	{"a Trap is answered by TrapRepress", IB_PERFORMANCE_CLASS, 0x05, METHOD, 0x07, true},
	{"a Get is not answered by TrapRepress", IB_PERFORMANCE_CLASS, 0x01, METHOD, 0x07,
	 false},
	{"a vendor's methods are its own", VENDOR_1, 0x20, METHOD, 0xd1, true},

	{"an SMP of another attribute is no answer", IB_SMI_CLASS, 0x01, ATTRIBUTE, 0x15,
	 false},
	{"a record of another attribute is no answer", IB_SA_CLASS, 0x12, ATTRIBUTE, 0x35,
	 false},
	{"a vendor's other attribute is no answer", VENDOR_1, 0x01, ATTRIBUTE, 0x15, false},

	{"another modifier is no answer", IB_SMI_CLASS, 0x01, MODIFIER, 7, false},
	{"a vendor may change the modifier", VENDOR_1, 0x01, MODIFIER, 7, true},
	{"an application may change the modifier", 0x10, 0x01, MODIFIER, 7, true},
	{"a BMMAD has its response bit in the modifier", IB_BOARD_MGMT_CLASS, 0x03, MODIFIER, 5,
	 true},
	{"a BMMAD of another modifier is no answer", IB_BOARD_MGMT_CLASS, 0x03, MODIFIER, 7,
	 false},

	{"another OUI is no answer", VENDOR_2, 0x01, OUI, 0x123457, false},

	{"a route with another port is no answer", IB_SMI_DIRECT_CLASS, 0x01, PATH, 9, false},
	{"a shorter route is no answer", IB_SMI_DIRECT_CLASS, 0x01, HOP_COUNT, 1, false},
	{"a longer route is no answer", IB_SMI_DIRECT_CLASS, 0x01, HOP_COUNT, 3, false},
	{"a directed route has no LID", IB_SMI_DIRECT_CLASS, 0x01, LID, 77, true},

	/* LMC 1; n1 has LID 11 */
	{"an SMP of another LID is no answer", IB_SMI_CLASS, 0x01, LID, 12, false},
	{"a GMP of another LID is no answer", IB_PERFORMANCE_CLASS, 0x01, LID, 13, false},
	{"a GMP of a LID far away is no answer", IB_PERFORMANCE_CLASS, 0x01, LID, 4000, false},
	{"a port may answer from its other LID", IB_PERFORMANCE_CLASS, 0x01, LID, 10, true},

	{"with a GRH, the GID counts, not the LID", IB_SA_CLASS, 0x01, GID, 0, true},
	{"another GID is no answer", IB_SA_CLASS, 0x01, GID, 1, false},
	{"a port may answer with the prefix of its subnet", IB_SA_CLASS, 0x01, PREFIX, 0x12,
	 true},
	{"a GID of another subnet is no answer", IB_SA_CLASS, 0x01, OTHER_PREFIX, 0x12, false},
	{"without a GRH in the response, the LID counts", IB_SA_CLASS, 0x01, NO_GRH, 11, true},
	{"another LID without a GRH is no answer", IB_SA_CLASS, 0x01, NO_GRH, 12, false},
};

static const struct match_row *match;
static unsigned responses;

static enum machine_verdict change_first(struct machine_mad *mad, void *arg)
{
	unsigned value = match->value;

	if (!mad->at_host)
		return play(mad, arg);
	if (responses++)
		return MACHINE_PASS;
	if (match->changed < LID) {
		unsigned bytes = match->changed == ATTRIBUTE                           ? 2
				 : match->changed == MODIFIER || match->changed == OUI ? 4
										       : 1;

		for (uint8_t *at = mad->bytes + match->changed; bytes--; at++)
			*at = (uint8_t)(value >> 8 * bytes);
		return MACHINE_PASS;
	}
	mad->grh &= match->changed != NO_GRH;
	mad->slid = match->changed == LID || match->changed == NO_GRH ? (uint16_t)value : 77;
	if (match->changed == GID)
		mad->sgid[15] ^= (uint8_t)value;
	else if (match->changed == PREFIX || match->changed == OTHER_PREFIX)
		mad->sgid[0] = (uint8_t)value;
	return MACHINE_PASS;
}

#define LMC_FILE "/sys/class/infiniband/mlx5_0/ports/1/lid_mask_count"

static void take_the_right_one(const void *arg)
{
	struct mad_async *async = mad_async_create(port);
	ib_portid_t to = to_node("n1");
	uint8_t data[IB_MAD_SIZE];
	ib_rpc_t rpc;

	match = arg;
	if (match->changed == LID && match->accepted)
		write_file(LMC_FILE, "1\n");
	responses = 0;
	to.grh_present = match->changed >= GID;
	mad_set_field64(to.gid, 0, IB_GID_GUID_F, machine_guid("n1"));
	to.gid[0] = match->changed == OTHER_PREFIX ? 0x20 : 0xfe;
	to.gid[1] = match->changed == OTHER_PREFIX ? 0x01 : 0x80;
	if (match->mgmt_class == IB_SMI_DIRECT_CLASS)
		to = (ib_portid_t){.drpath = {.cnt = 2, .p = {0, 1, 2}}};
	mad_register_client_via(0x10, 0, port);
	rpc = make_rpc(match->mgmt_class, match->method, 0x11);
	rpc.attr.mod = 4;
	rpc.oui = 0x123456;
	rpc.datasz = 1;
	mad_rpc_set_timeout(port, 100);
	machine_on_arrival(change_first, NULL);
	assert_non_null(mad_rpc(port, &rpc, &to, NULL, data));
	assert_int_equal(arrived, match->accepted ? 1 : 2);
	assert_int_equal(stats_of(async).mismatched, !match->accepted);
	mad_async_free(async);
}

TEST_ROWS(take_the_right_one, match_rows);

/* What cannot be compared drops no response. */
TEST(a_port_may_respond_from_its_other_lid_when_the_lmc_cannot_be_read)
{
	static const struct match_row other_lid = {NULL, IB_PERFORMANCE_CLASS, 1, LID, 10,
						   true};

	machine_fail(MACHINE_FILES, 1, EIO);
	take_the_right_one(&other_lid);
}

static struct {
	unsigned byte;
	uint8_t bits;
} flip;

static enum machine_verdict flip_first(struct machine_mad *mad, void *arg)
{
	if (!mad->at_host)
		return play(mad, arg);
	if (!responses++)
		mad->bytes[flip.byte] ^= flip.bits;
	return MACHINE_PASS;
}

/* Class, method, transaction ID, attribute and modifier tell what a message responds to. */
static bool is_matched(unsigned byte)
{
	return byte == 1 || byte == 3 || (byte >= 8 && byte <= 23 && byte != 18 && byte != 19);
}

TEST(every_bit_of_a_header_is_judged)
{
	mad_rpc_set_timeout(port, 100);
	for (flip.byte = 0; flip.byte < 36; flip.byte++)
		for (unsigned bit = 0; bit < 8; bit++) {
			flip.bits = (uint8_t)(1 << bit);
			responses = 0;
			use_script("ok");
			machine_on_arrival(flip_first, NULL);
			if (flip.byte == 5 && bit < 2)
				continue; /* BUSY, a redirection */
			assert_int_equal(ask(set_request(), "n1"),
					 flip.byte == 4 || flip.byte == 5 ? EIO : 0);
			if (arrived != (is_matched(flip.byte) ? 2 : 1))
				fail_msg("byte %u bit %u: %u", flip.byte, bit, arrived);
		}
}
