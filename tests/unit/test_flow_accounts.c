/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The arithmetic of flow control: where a request counts as in flight, when its response is
 * late, how many may be in flight to a destination, and how a window is judged. Only the calls
 * of flow.h and a clock of the test; tests/flow judges the law of the windows.
 */

#include "flow/flow.h"
#include "test.h"

/*
 * A story has actions and expectations, in order. Times are microseconds, or with "ms" or "s".
 *
 *	exchange(N,T)	N requests one after the other, each with a response after T
 *	exchange(N,T,U)	the same, in turns after T and after U
 *	serve(N,T,K)	the same by a node that handles K at once in the time T
 *	wait(T)
 *	send(N)		N requests;
 *	fill(N)		as many as the window permits, which are N
 *	respond(N,T)	the oldest N of them have responses, which took T
 *	latest(T)	the latest of them has a response, which took T
 *	late(N)		the responses of the oldest N are late
 *	again(N)	the oldest N are sent again
 *	end(N)		the oldest N end without a response
 *	round(N)	N times: as many as the window permits, with responses after 2 ms
 *	lose(N)		the same once; of N of them, the first transmission was lost
 *	hold(N)		rounds until the window grows, which takes N to 2 N
 *	fix(N)		the limit of each destination; 0: adaptive
 *	reset()		no silence, and a new sample
 *
 *	limit=N		so many may be in flight to the destination; or a range: 2..16
 *	place=N		0 or 1: whether one more may be
 *	late=T		when a response is late
 *	soon=N		0 or 1: the oldest request is looked at before that
 *	quick=N		0 or 1: the destination counts as quick
 *	size=N		the size of the window
 *	flight=N	so many are in flight
 *	silent=N	0 or 1: whether the window waits for a silence to end
 *
 * Requests go to a node; after "other." to another node, after "sa." to the SA, after "none."
 * to no known destination, after "smp." to none as SMPs.
 */
struct row {
	const char *behaviour, *story;
};

static const struct row rows[] = {
	/* --- accounts --- */
	{"a late request without copies leaves its place",
	 "send(1) place=0 flight=1 late(1) place=1 flight=0"},
	{"with a fixed limit, a late request keeps its place until it ends",
	 "fix(1) send(1) late(1) place=0 again(1) flight=1 late(1) place=0 end(1) place=1"},
	{"a reset ends a silence, and requests in flight still end",
	 "round(1) size=32 send(40) late(40) send(2) smp.send(2) silent=1 reset() silent=0 "
	 "flight=2 end(42) flight=0 smp.flight=2 smp.end(2) smp.flight=0 size=32"},

	/* --- the limit of a destination --- */
	{"the limit grows by a half after two responses for each place",
	 "limit=1 exchange(1,2ms) limit=1 exchange(1,2ms) limit=2 exchange(3,2ms) limit=2 "
	 "exchange(1,2ms) limit=3 exchange(6,2ms) limit=5 exchange(10,2ms) limit=8 "
	 "exchange(16,2ms) limit=12 exchange(24,2ms) limit=16 exchange(1000,2ms) limit=16"},
	{"the limit does not grow when round trips do",
	 "serve(1000,2ms,4) limit=4..12 serve(10000,2ms,4) limit=4..12"},
	{"a limit returns though the round trip does not, if little or much longer",
	 "exchange(1000,2ms) exchange(5000,100ms) limit=16 exchange(5000,110ms) limit=16"},
	{"a response of an unknown time is no evidence", "exchange(1000,0) limit=1 late=100ms"},
	{"a fixed limit is the limit of all, and may be very large",
	 "exchange(100,2ms) fix(5) limit=5 fix(70000) limit=70000 fix(0) limit=16"},
	{"the limit stays for 64 judgements while half a request waits",
	 "exchange(22,2ms) limit=8 exchange(1000,2160) limit=8 exchange(200,2160) limit=16"},
	{"the limit stays for a while after it was lowered",
	 "exchange(1000,2ms) exchange(2000,2200) limit=16 exchange(50,2300) limit=14 "
	 "exchange(1000,2200) limit=14"},

	/* --- when a response is late --- */
	{"at first a response has long",
	 "late=100ms sa.late=500ms none.late=100ms quick=0 none.quick=0"},
	{"after one response it has three times the round trip",
	 "exchange(1,20ms) late=60ms none.late=60ms exchange(1,20ms) late=60ms none.late=60ms"},
	{"a longer round trip raises the usual one by 15 %, a shorter one lowers it by 5 %",
	 "none.exchange(1,1s) none.exchange(1,2s) none.late=3450003 none.exchange(1,1s) "
	 "none.late=3277503"},
	{"it has a millisecond at least, and the SA fifty; the SA is known for itself alone",
	 "sa.exchange(1,200ms) sa.late=600ms late=100ms exchange(100,10) late=1ms "
	 "none.late=1ms "
	 "sa.exchange(100,10) sa.late=50ms"},
	{"a node that is slower than others has its time, which is not theirs",
	 "exchange(100,1ms) other.exchange(1,50ms) other.late=150ms late=2ms..6ms"},
	{"a node that is quicker has their time, and counts as quick below a quarter of it",
	 "other.exchange(1,2ms) exchange(100,20ms) other.late=45ms..75ms other.quick=1 quick=0 "
	 "none.quick=0 other.exchange(30,10ms) other.quick=0"},
	{"a node that varies has more time",
	 "exchange(100,20ms) late=45ms..75ms exchange(100,30ms,10ms) late=55ms..120ms "
	 "exchange(100,20ms) late=45ms..75ms"},
	{"the longest times do not overflow",
	 "exchange(100,4294967295) late=100s exchange(99,4294967295,1) late=50s..100s "
	 "exchange(500,1) late=1ms"},
	{"the time may become shorter while none is known and others are in flight",
	 "send(1) soon=0 none.send(1) soon=1 wait(2ms) latest(2ms) soon=0 none.send(1) soon=0"},

	/* --- windows --- */
	{"a window grows by a quarter and 32, and doubles at most",
	 "size=16 round(1) size=32 round(1) size=64 round(1) size=113 round(1) size=174"},
	/* more responses at once than the kernel posts receives would be lost */
	{"a window grows to 512, and the other one not with it",
	 "smp.round(200) smp.size=512 size=16"},
	{"a growth is not taken back before its responses take long",
	 "round(1) fill(32) wait(2ms) respond(27,2ms) size=32 wait(4ms) respond(1,6ms) size=16 "
	 "respond(1,6ms) size=64"},
	/* nodes respond at the same rate, however large the window is */
	{"a growth without a gain is repeated after 12 round trips, each time",
	 "round(1) fill(32) wait(4ms) respond(32,4ms) size=16 hold(48ms) fill(32) wait(4ms) "
	 "respond(32,4ms) size=16 hold(48ms)"},
	{"a window is not cut for a fiftieth of its MADs",
	 "round(4) size=174 lose(3) size=250 lose(12) size=2..173"},
	{"losses count after a time without a full window",
	 "exchange(100,2ms) size=16 lose(8) lose(8) size=2..8"},
	{"a cut leaves half of its sample in flight", "round(4) size=174 lose(174) size=5"},
	/* 10 of 37 would be lost if the share were that before the cut, 4 of 15 */
	{"after a cut the result of each MAD is awaited",
	 "lose(4) size=6 exchange(36,2ms) size=6 exchange(1,2ms) size=9"},

	/* --- silence --- */
	{"a silence begins when no later MAD has a response, and a response ends it",
	 "exchange(1,2ms) send(1) wait(1ms) send(12) wait(1ms) send(1) wait(2ms) "
	 "respond(1,4ms) "
	 "late(12) silent=1 respond(1,3ms) silent=0"},
	{"a silence ends a cut",
	 "exchange(1,2ms) lose(4) size=6 send(12) late(12) silent=1 respond(1,1) size=9"},
	{"a silence does not begin if a later MAD has a response",
	 "exchange(1,2ms) send(1) wait(1ms) send(12) wait(1ms) send(1) wait(2ms) latest(2ms) "
	 "respond(1,4ms) late(12) silent=0"},
	{"unknown nodes do not begin a silence soon after a response",
	 "none.exchange(1,2ms) send(12) wait(1ms) late(12) silent=0"},
	{"unknown nodes begin a silence long after a response",
	 "none.exchange(1,2ms) wait(200ms) send(12) wait(1ms) late(12) silent=1"},
};

static struct flow_control flow;
static struct flow_path node, other, sa;
static int64_t now;
/* Requests that were sent, from the oldest on. */
static struct flow_account sent[4096];
static unsigned oldest, newest;

static const struct destination {
	const char *name;
	struct flow_path *path;
	bool sa, smp;
} destinations[] = {{"node", .path = &node},
		    {"other", .path = &other},
		    {"sa", .path = &sa, .sa = true},
		    {"none", .path = NULL},
		    {"smp", .smp = true}};

static int setup(void)
{
	memset(&flow, 0xff, sizeof(flow));
	flow_init(&flow);
	flow_path_init(&node);
	flow_path_init(&other);
	flow_path_init(&sa);
	now = 1000000000;
	oldest = newest = 0;
	return 0;
}

FIXTURE(setup, NULL);

static struct flow_account account_to(const struct destination *to)
{
	return (struct flow_account){.path = to->path, .sa = to->sa, .smp = to->smp};
}

static int64_t limit_of(const struct flow_path *known)
{
	struct flow_path path = *known;

	for (path.in_flight = 0; flow_has_place(&flow, &path);)
		path.in_flight++;
	return path.in_flight;
}

static int64_t value_of(const char *word, const struct destination *to)
{
	struct flow_account account = account_to(to);
	enum mad_window window = flow_window_of(&account);

	if (!strcmp(word, "limit"))
		return limit_of(to->path);
	if (!strcmp(word, "place"))
		return flow_has_place(&flow, to->path);
	if (!strcmp(word, "late"))
		return flow_late_after(&flow, &account);
	if (!strcmp(word, "soon"))
		return flow_look_at(&flow, &sent[oldest], now) <
		       sent[oldest].sent + flow_late_after(&flow, &sent[oldest]);
	if (!strcmp(word, "quick"))
		return flow_is_quick(&flow, &account);
	if (!strcmp(word, "size"))
		return flow.windows[window].size;
	if (!strcmp(word, "flight"))
		return flow.windows[window].in_flight;
	assert_string_equal(word, "silent");
	return flow_opens(&flow, window) != 0;
}

static void send_to(const struct destination *to)
{
	sent[newest] = account_to(to);
	flow_sent(&flow, &sent[newest++], now);
}

static void respond(struct flow_account *account, int64_t rtt_us, bool lost)
{
	flow_response(&flow, account, (uint32_t)rtt_us, lost, now);
	flow_ended(&flow, account);
}

static void exchange(const struct destination *to, int64_t rtt_us)
{
	struct flow_account account = account_to(to);

	flow_sent(&flow, &account, now);
	now += rtt_us;
	respond(&account, rtt_us, false);
}

static int64_t fill_window(const struct destination *to)
{
	unsigned before = newest;

	while (value_of("flight", to) < value_of("size", to))
		send_to(to);
	return newest - before;
}

static void go_round(const struct destination *to, int64_t lost)
{
	oldest = newest = 0;
	fill_window(to);
	for (now += 2000; oldest < newest; oldest++)
		respond(&sent[oldest], 2000, oldest < lost);
}

/* Rounds until the window grows. */
static void hold(const struct destination *to, int64_t us)
{
	int64_t size = value_of("size", to), begin = now;

	while (value_of("size", to) == size)
		go_round(to, 0);
	assert_in_range(now - begin, us, 2 * us);
}

/* The i-th time of an action that is repeated; false: it is another one. */
static bool repeat(const char *word, int64_t i, const struct destination *to, int64_t t,
		   int64_t u)
{
	if (!strcmp(word, "exchange"))
		exchange(to, i % 2 && u ? u : t);
	else if (!strcmp(word, "serve"))
		exchange(to, limit_of(to->path) <= u ? t : t * limit_of(to->path) / u);
	else if (!strcmp(word, "send"))
		send_to(to);
	else if (!strcmp(word, "respond"))
		respond(&sent[oldest++], t, false);
	else if (!strcmp(word, "late"))
		flow_late(&flow, &sent[oldest + i], now);
	else if (!strcmp(word, "again"))
		flow_sent(&flow, &sent[oldest + i], now);
	else if (!strcmp(word, "end"))
		flow_ended(&flow, &sent[oldest++]);
	else if (!strcmp(word, "round"))
		go_round(to, 0);
	else
		return false;
	return true;
}

static void act(const char *word, const struct destination *to, int64_t n, int64_t t, int64_t u)
{
	int64_t i = 0;

	while (i < n && repeat(word, i, to, t, u))
		i++;
	if (i)
		return;
	if (!strcmp(word, "wait"))
		now += n;
	else if (!strcmp(word, "fill"))
		assert_int_equal(fill_window(to), n);
	else if (!strcmp(word, "latest"))
		respond(&sent[--newest], n, false);
	else if (!strcmp(word, "lose"))
		go_round(to, n);
	else if (!strcmp(word, "hold"))
		hold(to, n);
	else if (!strcmp(word, "fix"))
		flow.path_limit = (unsigned)n;
	else if (!strcmp(word, "reset"))
		flow_reset(&flow);
	else
		fail_msg("no word: %s", word);
}

/* The number behind a text, if it is there; 0 otherwise. */
static int64_t number_behind(const char *before, char **text)
{
	int64_t value;

	if (strncmp(*text, before, strlen(before)))
		return 0;
	value = strtoll(*text + strlen(before), text, 10);
	if (!strncmp(*text, "ms", 2))
		value *= 1000;
	else if (**text == 's')
		value *= 1000000;
	*text += strspn(*text, "ms");
	return value;
}

static void tell(const struct row *row)
{
	char *text = (char *)(uintptr_t)row->story, word[16], name[16];

	for (; *text; text += strspn(text, ") ")) {
		const struct destination *to = destinations;
		int64_t n, t, u;

		if (sscanf(text, "%15[a-z].%15[a-z]", name, word) == 1)
			strcpy(word, name);
		else
			while (strcmp(to->name, name))
				to++;
		text += strcspn(text, "(=");
		if (*text == '(') {
			n = number_behind("(", &text);
			t = number_behind(",", &text);
			u = number_behind(",", &text);
			act(word, to, n, t, u);
		} else {
			n = number_behind("=", &text);
			t = number_behind("..", &text);
			u = value_of(word, to);
			if (u < n || u > (t ? t : n))
				fail_msg("%s is %lld before %s", word, (long long)u, text);
		}
	}
}

TEST_ROWS(tell, rows);

/* Those that are not judged may be lost, too. */
TEST(what_links_lose_is_forgotten_by_a_quarter_at_most)
{
	const uint32_t *share = &flow.windows[MAD_WINDOW_GMP].link_share;
	uint32_t before;

	while (!*share)
		go_round(destinations, value_of("size", destinations) / 4);
	for (int i = 0; i < 20; i++) {
		before = *share;
		go_round(destinations, 0);
		assert_in_range(*share, before * 3 / 4, before);
	}
	assert_in_range(*share, FLOW_ONE / 100, FLOW_ONE / 10);
}

#define REQUESTS 100

static void random_event(struct flow_account *account)
{
	unsigned event = (unsigned)random() % 6;

	if (event < 2)
		flow_sent(&flow, account, now);
	else if (event == 2)
		flow_late(&flow, account, now);
	else if (event == 3) /* to any transmission */
		flow_response(&flow, account, (uint32_t)(random() % 3 * 1000),
			      random() % 10 == 0, now);
	else
		flow_ended(&flow, account);
	if (event < 5)
		return;
	*account = account_to(&destinations[random() % 5]);
	account->may_copy = random() % 2;
}

static void expect_counts(const struct flow_account accounts[REQUESTS])
{
	unsigned in_window[FLOW_WINDOWS] = {0}, at_node = 0;

	for (int i = 0; i < REQUESTS; i++) {
		in_window[flow_window_of(&accounts[i])] += accounts[i].in_window;
		at_node += accounts[i].at_node;
	}
	for (int i = 0; i < FLOW_WINDOWS; i++)
		assert_int_equal(flow.windows[i].in_flight, in_window[i]);
	assert_int_equal(node.in_flight + other.in_flight + sa.in_flight, at_node);
}

TEST(each_request_counts_once_and_leaves_once_in_any_order_of_events)
{
	struct flow_account accounts[REQUESTS] = {{0}};

	srandom(test_seed());
	for (int step = 0; step < 50000; step++) {
		now += random() % (random() % 100 ? 100 : 100000);
		if (random() % 1000 == 0)
			flow_fix_window(&flow, (enum mad_window)(random() % FLOW_WINDOWS),
					(unsigned)random() % 3 * 10);
		if (random() % 1000 == 0)
			flow.path_limit = (unsigned)random() % 3 * 10;
		random_event(&accounts[random() % REQUESTS]);
		if (step % 16 == 0)
			expect_counts(accounts);
	}
	for (int i = 0; i < REQUESTS; i++)
		flow_ended(&flow, &accounts[i]);
	expect_counts((const struct flow_account[REQUESTS]){{0}});
}
