/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A port on the fake device, whose nodes respond by a clock that the test moves. A test of
 * seconds takes no time, and a slow machine changes nothing. The program is linked with
 * --wrap=clock_us and --wrap=sys_poll_both. node_us() is the response time of a node; the
 * kernel reports the timeout of a request without a response. One thread only, unless the clock
 * is the machine's (clock_is_real).
 */
#ifndef TESTS_UNIT_CLOCKED_DEVICE_H
#define TESTS_UNIT_CLOCKED_DEVICE_H

#include "port_state.h"
#include "engine_fixture.h"

#include "base/list.h"

#define NO_RESPONSE INT64_MAX
/* A time after all events. */
#define FOREVER     INT64_MAX
#define ROUND_TRIP  100 /* round trip of a fast node, in microseconds */
/* The interval at which timers are checked. */
#define TICK        100
#define MS          INT64_C(1000)

int64_t __wrap_clock_us(void);
int64_t __real_clock_us(void);
int __wrap_sys_poll_both(int fd, int other, int timeout_ms, int *other_revents);
int __real_sys_poll_both(int fd, int other, int timeout_ms, int *other_revents);

static int64_t clock_now;
static bool clock_is_real;

int64_t __wrap_clock_us(void)
{
	return clock_is_real ? __real_clock_us() : clock_now;
}

/* --- packets -------------------------------------------------------------------- */

/* A packet that was written, and its response or timeout. */
struct sent {
	struct list responses, reports;
	const struct device_packet *packet;
	int64_t at;       /* when it was written, */
	int64_t response; /* when its response arrives, */
	int64_t report;   /* and when the kernel reports a timeout instead */
};

static struct {
	struct sent *sent;
	unsigned count, room;
	unsigned awaited;               /* packets whose response is still to come */
	unsigned most;                  /* and the most that there were */
	struct list responses, reports; /* to come, by their time */
	bool silent;
	/* The time until the node responds, in microseconds, or NO_RESPONSE. */
	int64_t (*node_us)(const struct device_packet *packet);
	/* The status of its response; NULL: 0. */
	uint16_t (*node_status)(const struct device_packet *packet);
} nodes;

static inline int lid_of_packet(const struct device_packet *packet)
{
	return be16toh(packet->header.addr.lid);
}

static inline int64_t all_quick(const struct device_packet *packet)
{
	(void)packet;
	return ROUND_TRIP;
}

static inline struct sent *of_responses(struct list *entry)
{
	return list_entry(entry, struct sent, responses);
}

static inline struct sent *of_reports(struct list *entry)
{
	return list_entry(entry, struct sent, reports);
}

static inline void await_response(struct sent *sent)
{
	struct list *before = nodes.responses.prev;

	while (before != &nodes.responses && of_responses(before)->response > sent->response)
		before = before->prev;
	list_insert(before->next, &sent->responses);
	if (++nodes.awaited > nodes.most)
		nodes.most = nodes.awaited;
}

static inline void await_report(struct sent *sent)
{
	struct list *before = nodes.reports.prev;

	while (before != &nodes.reports && of_reports(before)->report > sent->report)
		before = before->prev;
	list_insert(before->next, &sent->reports);
}

/* A hook for device_on_write(). */
static inline int note_packet(const struct device_packet *packet, void *arg)
{
	struct sent *sent = &nodes.sent[nodes.count++];
	int64_t us = nodes.silent ? NO_RESPONSE : nodes.node_us(packet);

	(void)arg;
	assert_in_range(nodes.count, 1, nodes.room);
	*sent = (struct sent){
		.packet = packet,
		.at = clock_now,
		.response = us == NO_RESPONSE ? NO_RESPONSE : clock_now + us,
		.report = clock_now + packet->header.timeout_ms * MS,
	};
	list_init(&sent->reports);
	if (us != NO_RESPONSE)
		await_response(sent);
	if (packet->header.timeout_ms)
		await_report(sent);
	return 0;
}

/* --- the clock ------------------------------------------------------------------ */

/* The time of the next event of the device. */
static inline int64_t next_event(void)
{
	struct list *response = list_first(&nodes.responses);
	struct list *report = list_first(&nodes.reports);
	int64_t at = response ? of_responses(response)->response : FOREVER;

	if (report && of_reports(report)->report < at)
		at = of_reports(report)->report;
	return at;
}

/* Moves the clock, with all events of the device up to that time. */
static inline void move_clock(int64_t to)
{
	struct list *first;
	struct sent *sent;

	if (to > clock_now)
		clock_now = to;
	while ((first = list_first(&nodes.responses)) &&
	       of_responses(first)->response <= clock_now) {
		sent = of_responses(first);
		list_remove(first);
		nodes.awaited--;
		if (nodes.silent)
			continue;
		list_remove(&sent->reports);
		device_respond(sent->packet,
			       nodes.node_status ? nodes.node_status(sent->packet) : 0, 0, NULL,
			       0);
	}
	while ((first = list_first(&nodes.reports)) && of_reports(first)->report <= clock_now) {
		sent = of_reports(first);
		list_remove(first);
		device_time_out(sent->packet);
	}
}

/* A wait takes no time, and moves the clock. */
int __wrap_sys_poll_both(int fd, int other, int timeout_ms, int *other_revents)
{
	int64_t end = timeout_ms < 0 ? FOREVER : clock_now + timeout_ms * MS, next;
	int ret;

	if (clock_is_real)
		return __real_sys_poll_both(fd, other, timeout_ms, other_revents);
	while (!(ret = __real_sys_poll_both(fd, other, 0, other_revents)) && clock_now < end) {
		next = next_event();
		if (next > end)
			next = end;
		assert_true(next != FOREVER); /* the wait would never end */
		move_clock(next);
	}
	return ret;
}

/*
 * The engine processes, and the clock moves to the next event, but not beyond "until". False:
 * there is no event before that time.
 */
static inline bool step(struct mad_async *engine, int64_t until)
{
	int64_t next;
	int ms;

	assert_true(mad_async_process(engine) >= 0);
	ms = timeout_ms_of(engine);
	if (ms == 0)
		return true;
	next = next_event();
	if (ms > 0 && clock_now + (ms - 1) * MS + TICK < next)
		next = clock_now + (ms - 1) * MS + TICK;
	if (next >= until) {
		if (until != FOREVER)
			move_clock(until);
		assert_true(mad_async_process(engine) >= 0);
		return false;
	}
	move_clock(next);
	return true;
}

/* Moves the clock by so many microseconds. */
static inline void pass(struct mad_async *engine, int64_t us)
{
	int64_t until = clock_now + us;

	while (clock_now < until && step(engine, until))
		;
}

static inline bool is_finished(struct mad_async *engine)
{
	struct mad_async_stats stats = stats_of(engine);

	return stats.submitted == stats.completed;
}

/* Runs until no request is open. */
static inline void finish_all(struct mad_async *engine)
{
	while (!is_finished(engine) && step(engine, FOREVER))
		;
	assert_true(is_finished(engine));
}

/* --- requests ------------------------------------------------------------------- */

/* A Get by QP1 without side effects. */
static inline ib_rpc_t counters_request(void)
{
	ib_rpc_t rpc = set_request();

	rpc.method = IB_MAD_METHOD_GET;
	return rpc;
}

static inline ib_rpc_t path_request(void)
{
	ib_rpc_t rpc = table_request();

	rpc.method = IB_MAD_METHOD_GET;
	rpc.attr.id = IB_SA_ATTR_PATHRECORD;
	return rpc;
}

static inline void submit_to(struct mad_async *engine, ib_rpc_t rpc, int lid,
			     struct outcome *outcome)
{
	ib_portid_t to = to_lid(lid);

	assert_int_equal(mad_async_submit(engine, &rpc, &to, NULL, 0, note, outcome, NULL), 0);
}

/* --- set-up and tear-down ------------------------------------------------------- */

/* An engine with the default flow control. */
static struct mad_async *async;

#define ATTEMPT_MS   1000
#define MOST_PACKETS 100000

static inline int clocked_setup(void)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS};

	clock_is_real = false;
	clock_now = 1000000;
	memset(&nodes, 0, sizeof(nodes));
	nodes.node_us = all_quick;
	nodes.room = MOST_PACKETS;
	nodes.sent = __real_calloc(nodes.room, sizeof(*nodes.sent));
	list_init(&nodes.responses);
	list_init(&nodes.reports);
	if (device_setup())
		return -1;
	device_on_write(note_packet, NULL);
	port = mad_rpc_open_port(NULL, 0, classes, 4);
	if (!port)
		return -1;
	mad_rpc_set_timeout(port, ATTEMPT_MS);
	mad_rpc_set_retries(port, 3);
	async = mad_async_create(port);
	return async ? 0 : -1;
}

static inline int clocked_teardown(void)
{
	/* a failed test may have left the clock at any time */
	nodes.silent = true;
	mad_async_free(async);
	mad_rpc_close_port(port);
	free(nodes.sent);
	return device_teardown();
}

#endif
