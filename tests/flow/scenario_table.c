/* SPDX-License-Identifier: BSD-2-Clause */

/* The named scenarios and their bounds. */

#include "scenarios.h"

#define RATIO           1.5 /* to the best fixed setting */
#define DROPS           0.5 /* per cent */
/* Attempts of 1 s; usually there are three. */
#define ATTEMPTS(count) .attempts = count, .timeout_ms = 1000, .seed = 1
#define THREE           ATTEMPTS(3)

/* --- nodes that are not alike ---------------------------------------------------- */

#define NEAR(name_, rtt, times, count, each)                                                  \
	{                                                                                     \
		.name = name_, .measure = BESIDE_BEST, .bound = RATIO, .most_dropped = DROPS, \
		.fabric = {THREE,           .layout = NEAR_FAR,                               \
			   .nodes = count,  .rtt_us = rtt,                                    \
			   .far = times,    .jitter = 0.05,                                   \
			   .service_us = 2, .requests = (count) * (each)},                    \
	}

/* --- nodes that are overrun: as a sweep of 1,344 nodes, 9 requests each ----------- */

#define SWEEP(count) \
	ATTEMPTS(count), .nodes = 1344, .rtt_us = 10, .jitter = 0.05, .requests = 9 * 1344

#define OVERRUN(us, places)                                                        \
	{                                                                          \
		.name = "service " #us " buffer " #places, .measure = BESIDE_BEST, \
		.bound = RATIO, .most_dropped = (places) == 1 ? 2 : DROPS,         \
		.fabric = {SWEEP(16), .service_us = us, .buffer = places},         \
	}

/* known_: the dropped MADs that are known, in per cent */
#define BESIDE_KNOWN(name_, known_, ...)                                                      \
	{                                                                                     \
		.name = name_, .measure = BESIDE_BEST, .bound = RATIO, .most_dropped = DROPS, \
		.known_dropped = known_, .fabric = {__VA_ARGS__},                             \
	}
#define BESIDE(name_, ...) BESIDE_KNOWN(name_, 0, __VA_ARGS__)

#define BESIDE_TWICE(name_, ...)                                                          \
	{                                                                                 \
		.name = name_, .measure = BESIDE_BEST, .bound = 2, .most_dropped = DROPS, \
		.fabric = {__VA_ARGS__},                                                  \
	}
/* The living, beside dead nodes. */
#define DEAD(name_, seconds, ...)                                                 \
	{                                                                         \
		.name = name_, .measure = LIVING, .bound = seconds,               \
		.fabric = {THREE, .rtt_us = 100, .jitter = 0.05, .service_us = 5, \
			   __VA_ARGS__},                                          \
	}

/* Growth must fill a limit once to find it, and no queue makes round trips longer before. */
#define PATH(limit)                                                                   \
	BESIDE_KNOWN("path limit " #limit, 1.5, THREE, .nodes = 1344, .rtt_us = 2000, \
		     .jitter = 0.05, .service_us = 1, .path_limit = limit,            \
		     .requests = 9 * 1344)

/* --- recovery: requests without end for some seconds ----------------------------- */

#define ENDLESS(count, seconds)                                    \
	THREE, .work = CHAINS, .open = count, .requests = 2000000, \
	       .until_ms = 1000.0 * (seconds)
/* 50,000 requests a second, by a queue that all nodes share */
#define BOTTLENECK                                                                      \
	ENDLESS(4000, 5), .nodes = 300, .rtt_us = 300, .jitter = 0.05, .service_us = 2, \
			  .shared = EVERY_NODE, .places = 64, .queue_us = 20

#define RECOVERS(name_, ...)                                                                 \
	{                                                                                    \
		.name = name_, .measure = RECOVERY, .bound = 1.25, .fabric = { __VA_ARGS__ } \
	}

#define OUTAGE(at, length)                                          \
	{                                                           \
		.kind = LOSS, .at_ms = at, .ms = length, .share = 1 \
	}
#define BURST(at, length)                                              \
	{                                                              \
		.kind = LOSS, .at_ms = at, .ms = length, .share = 0.25 \
	}
#define TIMES(at, by)                                   \
	{                                               \
		.kind = STEP, .at_ms = at, .factor = by \
	}

/* As tests/flow/compare has them in real time. */
#define REAL                                                                   \
	THREE, .nodes = 375, .rtt_us = 10000, .jitter = 0.01, .service_us = 1, \
	       .requests = 9 * 375

const struct scenario scenarios[] = {
	NEAR("one near, 999 at 0.3 ms", 5, 60, 1000, 20),
	NEAR("one near, 999 at 0.6 ms", 5, 120, 1000, 20),
	NEAR("one near, 999 at 1.5 ms", 5, 300, 1000, 20),
	/* Each growth takes at least a round trip of 13 ms; the best window is there at once.
	 */
	{.name = "one at 1.3 ms, 299 at 13 ms",
	 .measure = BESIDE_BEST,
	 .bound = RATIO,
	 .most_dropped = DROPS,
	 .known = 1.7,
	 .fabric = {THREE, .layout = NEAR_FAR, .nodes = 300, .rtt_us = 1300, .far = 10,
		    .jitter = 0.05, .service_us = 2, .requests = 6000}},
	BESIDE("4.5 % dead, 300 at 85 us", THREE, .nodes = 300, .rtt_us = 85, .jitter = 0.05,
	       .service_us = 2, .dead_share = 0.045, .requests = 300),
	BESIDE("stop 51 ms, 2.3 % dead", THREE, .nodes = 1000, .rtt_us = 100, .jitter = 0.05,
	       .service_us = 5, .dead_share = 0.023, .stop_ms = 51, .requests = 13000),
	/*
	 * Requests to the half without a queue make a growth pay that fills the queue of the
	 * other half: 0 to 3.6 % are dropped, as the requests happen to be mixed.
	 */
	BESIDE_KNOWN("half behind a queue of 32", 5, THREE, .nodes = 1000, .rtt_us = 100,
		     .jitter = 0.05, .service_us = 5, .shared = FIRST_HALF, .places = 32,
		     .queue_us = 20, .requests = 20000),
	BESIDE("every other behind a queue of 32", THREE, .nodes = 1000, .rtt_us = 100,
	       .jitter = 0.05, .service_us = 5, .shared = INTERLEAVED, .places = 32,
	       .queue_us = 20, .requests = 20000),
	/* Growth must fill the queue to find it, before the outage and after it. */
	BESIDE_KNOWN("a queue, and an outage of 100 ms", 4, THREE, .nodes = 500, .rtt_us = 2000,
		     .jitter = 0.05, .service_us = 5, .shared = EVERY_NODE, .places = 128,
		     .queue_us = 20, .requests = 15000, .troubles = {OUTAGE(250, 100)}),
	BESIDE("stop 51 ms, far and near", THREE, .nodes = 1000, .layout = VARIED,
	       .rtt_us = 1000, .jitter = 0.05, .service_us = 50, .dead_share = 0.023,
	       .stop_ms = 51, .requests = 13000),
	BESIDE("stop 200 ms, a request each", THREE, .nodes = 1000, .rtt_us = 100,
	       .jitter = 0.05, .service_us = 5, .stop_ms = 200, .requests = 1000),
	BESIDE("stop 200 ms, 13 requests each", THREE, .nodes = 1000, .rtt_us = 100,
	       .jitter = 0.05, .service_us = 5, .stop_ms = 200, .requests = 13000),
	BESIDE("loss 30 %", THREE, .nodes = 1000, .rtt_us = 100, .jitter = 0.05,
	       .service_us = 5, .loss = 0.3, .requests = 13000),
	BESIDE("no limits", SWEEP(3), .service_us = 1),
	OVERRUN(5, 1),
	OVERRUN(5, 2),
	OVERRUN(5, 4),
	OVERRUN(5, 16),
	OVERRUN(20, 1),
	OVERRUN(20, 2),
	OVERRUN(20, 4),
	OVERRUN(20, 16),
	OVERRUN(100, 1),
	OVERRUN(100, 2),
	OVERRUN(100, 4),
	OVERRUN(100, 16),
	PATH(16),
	PATH(64),
	PATH(512),
	BESIDE("loss 1 %, 16 attempts", SWEEP(3), .service_us = 1, .loss = 0.01),
	BESIDE("loss 5 %, 16 attempts", SWEEP(16), .service_us = 1, .loss = 0.05),
	BESIDE("loss 1 %, service 20 buffer 4", SWEEP(16), .service_us = 20, .buffer = 4,
	       .loss = 0.01),
	BESIDE("loss 5 %, service 20 buffer 4", SWEEP(16), .service_us = 20, .buffer = 4,
	       .loss = 0.05),
	BESIDE("20 dead, 1 attempt", SWEEP(1), .service_us = 1, .dead_share = 0.015),
	BESIDE("50 nodes at 5 ms", SWEEP(3), .service_us = 1, .layout = NEAR_FAR,
	       .near_share = 0.963, .far = 500),
	BESIDE("SA at 200 us", THREE, .nodes = 1, .rtt_us = 10, .service_us = 200, .kind = SA,
	       .requests = 2000),
	BESIDE("switches at 1 ms", SWEEP(3), .service_us = 5, .slow_share = 0.0015,
	       .slow = 200),
	BESIDE("bursts of 200", THREE, .nodes = 500, .rtt_us = 300, .jitter = 0.05,
	       .service_us = 10, .work = BURSTS, .open = 200, .every_ms = 20,
	       .requests = 10000),
	BESIDE("one by one", THREE, .nodes = 500, .rtt_us = 300, .jitter = 0.05,
	       .service_us = 10, .work = CHAINS, .open = 1, .requests = 2000),
	RECOVERS("after 25 % lost and an outage", BOTTLENECK,
		 .troubles = {BURST(500, 12), OUTAGE(512, 100)}),
	RECOVERS("after an outage of 100 ms", BOTTLENECK, .troubles = {OUTAGE(500, 100)}),
	RECOVERS("after an outage of 1 s", BOTTLENECK, .troubles = {OUTAGE(500, 1000)}),
	RECOVERS("after 25 % lost for 300 ms", BOTTLENECK, .troubles = {BURST(500, 300)}),
	RECOVERS("after 30 % of the nodes died", BOTTLENECK,
		 .troubles = {{.kind = DEATHS, .at_ms = 500, .ms = 1000, .share = 0.3}}),
	RECOVERS("after round trips x10", BOTTLENECK, .troubles = {TIMES(500, 10)}),
	RECOVERS("after round trips x0.1", BOTTLENECK, .troubles = {TIMES(500, 0.1)}),
	RECOVERS("from 50 us to 20 ms", ENDLESS(4000, 5), .nodes = 250, .rtt_us = 50,
		 .jitter = 0.05, .service_us = 2, .troubles = {TIMES(500, 400)}),
	RECOVERS("one destination, to 2 ms", ENDLESS(64, 5), .nodes = 1, .rtt_us = 100,
		 .jitter = 0.05, .service_us = 20, .troubles = {TIMES(500, 20)}),
	{.name = "a window that is seldom used",
	 .measure = IDLE,
	 .bound = 1.1,
	 .fabric = {THREE, .nodes = 1000, .rtt_us = 300, .jitter = 0.05, .service_us = 5,
		    .requests = 30000}},
	DEAD("500 dead, then 128", 0.2, .nodes = 628, .requests = 628, .dead_first = 500),
	DEAD("5,000 dead, then 128", 3, .nodes = 5128, .requests = 5128, .dead_first = 5000),
	DEAD("half dead, then 80 % dead", 0.4, .nodes = 1256, .requests = 1256,
	     .dead_first = 628, .dead_share = 0.8),
	DEAD("80 % of 628 dead", 0.1, .nodes = 628, .requests = 628, .dead_share = 0.8),
	DEAD("98 % of 5,000 dead", 3, .nodes = 5000, .requests = 5000, .dead_share = 0.98),
	BESIDE_TWICE("two at 30 ms, one at 100 ms", THREE, .nodes = 208, .rtt_us = 50,
		     .jitter = 0.05, .service_us = 2, .delay_ms = {30, 30, 100},
		     .requests = 2080),
	BESIDE_TWICE("a hop of 500 us", THREE, .layout = HOPS, .nodes = 208, .rtt_us = 3500,
		     .jitter = 0.05, .service_us = 2, .requests = 208),
	BESIDE_TWICE("a BUSY node, 20 requests each", THREE, .nodes = 200, .rtt_us = 50,
		     .jitter = 0.05, .service_us = 2, .busy_first = 1, .requests = 4000),
	{.name = "a BUSY node, 200 requests each",
	 .measure = WHOLE_TIME,
	 .bound = 3.5,
	 .fabric = {THREE, .nodes = 20, .rtt_us = 50, .jitter = 0.05, .service_us = 2,
		    .busy_first = 1, .requests = 4000}},
	{.name = "a BUSY node, 20 requests each: its end",
	 .measure = WHOLE_TIME,
	 .bound = 3.5,
	 .fabric = {THREE, .nodes = 200, .rtt_us = 50, .jitter = 0.05, .service_us = 2,
		    .busy_first = 1, .requests = 4000}},
	{.name = "10 % of 1,000 dead",
	 .measure = WHOLE_TIME,
	 .bound = 3.5,
	 .fabric = {THREE, .nodes = 1000, .rtt_us = 100, .jitter = 0.05, .service_us = 5,
		    .dead_share = 0.1, .requests = 1000}},
	{.name = "50 % of 1,000 dead",
	 .measure = WHOLE_TIME,
	 .bound = 5,
	 .fabric = {THREE, .nodes = 1000, .rtt_us = 100, .jitter = 0.05, .service_us = 5,
		    .dead_share = 0.5, .requests = 1000}},
	{.name = "none of 2,000 responds",
	 .measure = PROBING,
	 .bound = 60,
	 .fabric = {THREE, .nodes = 2000, .rtt_us = 100, .service_us = 5, .dead_share = 1,
		    .requests = 2000}},
	{.name = "1,000 requests, an unplugged port",
	 .measure = PROBING,
	 .bound = 10,
	 .fabric = {.attempts = 3,
		    .timeout_ms = 150,
		    .seed = 1,
		    .nodes = 1000,
		    .rtt_us = 100,
		    .service_us = 5,
		    .dead_share = 1,
		    .requests = 1000}},
	{.name = "random attempts", .measure = ENDS, .fabric = {.seed = 1, .requests = 1000}},
	{.name = "eight hosts behind a queue",
	 .measure = HOSTS,
	 .bound = 1.5,
	 .fabric = {THREE, .nodes = 500, .rtt_us = 300, .jitter = 0.05, .service_us = 2,
		    .shared = EVERY_NODE, .places = 64, .queue_us = 10, .requests = 10000,
		    .hosts = 8}},
	{.name = "a destination limit of 1",
	 .measure = ONE_EACH,
	 .bound = 0,
	 .fabric = {THREE, .nodes = 300, .rtt_us = 100, .jitter = 0.4, .service_us = 20,
		    .slow_share = 0.05, .slow = 5000, .dead_share = 0.05, .loss = 0.01,
		    .requests = 3000}},
	{.name = "blocking calls",
	 .measure = CALLS,
	 .bound = 1.1,
	 .fabric = {THREE, .nodes = 300, .rtt_us = 100, .jitter = 0.05, .service_us = 20,
		    .work = BLOCKING, .requests = 600}},
	{.name = "real: slow 10 ms", .measure = SECONDS, .fabric = {REAL}},
	{.name = "real: slow 10 ms, path limit 64",
	 .measure = SECONDS,
	 .fabric = {REAL, .path_limit = 64}},
	{.name = "real: slow 10 ms, loss 5 %",
	 .measure = SECONDS,
	 .fabric = {REAL, .loss = 0.05}},
	{.name = "real: SA at 200 us",
	 .measure = SECONDS,
	 .fabric = {THREE, .nodes = 1, .rtt_us = 10, .service_us = 200, .kind = SA,
		    .requests = 2000}},
	{.name = "a million requests",
	 .measure = PROCESSOR,
	 .bound = 1.5,
	 .fabric = {THREE, .nodes = 2000, .rtt_us = 300, .jitter = 0.05, .service_us = 2,
		    .requests = 1000000}},
};

const unsigned scenario_count = sizeof(scenarios) / sizeof(*scenarios);
