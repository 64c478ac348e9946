/* SPDX-License-Identifier: BSD-2-Clause */

/* The named scenarios and their bounds. */

#include "judge.h"

/* Attempts of 1 s */
#define ATTEMPTS(count) .attempts = count, .timeout_ms = 1000, .seed = 1
#define NODES_(attempts_, count, rtt, service, all)                                \
	ATTEMPTS(attempts_), .nodes = count, .rtt_us = rtt, .service_us = service, \
			     .jitter = 0.05, .requests = all
#define NODES(count, rtt, service, all) NODES_(3, count, rtt, service, all)
/* A sweep: 9 requests to each of 1,344 nodes. */
#define SWEEP(attempts, service, ...)                                      \
	{                                                                  \
		NODES_(attempts, 1344, 10, service, 9 * 1344), __VA_ARGS__ \
	}

#define ROW(name_, measure_, bound_, ...)                                                  \
	{                                                                                  \
		.name = name_, .measure = measure_, .bound = bound_, .fabric = __VA_ARGS__ \
	}

/* Beside the best fixed setting: bounds of the ratio and of the dropped MADs, in per cent. */
#define BESIDE_(name, drops, known_, ratio, ...)                          \
	{                                                                 \
		name, beside_best, ratio, drops, .known_dropped = known_, \
						 .fabric = __VA_ARGS__    \
	}
#define BESIDE(name, ...)       BESIDE_(name, 0.5, 0, 1.5, __VA_ARGS__)
#define BESIDE_TWICE(name, ...) BESIDE_(name, 0.5, 0, 2, __VA_ARGS__)

#define NEAR(name, rtt, times) \
	BESIDE(name, {NODES(1000, rtt, 2, 20000), .layout = NEAR_FAR, .far = times})
#define OVERRUN(us, places) \
	BESIDE("service " #us " buffer " #places, SWEEP(16, us, .buffer = places))
/* Growth must fill a limit once to find it, and no queue makes round trips longer before. */
#define PATH(limit)                                  \
	BESIDE_("path limit " #limit, 0.5, 1.5, 1.5, \
		{NODES(1344, 2000, 1, 9 * 1344), .path_limit = limit})

/* Requests without end for 5 s */
#define ENDLESS(count, rtt, service, open_) \
	NODES(count, rtt, service, 2000000), .work = CHAINS, .open = open_, .until_ms = 5000
#define RECOVERS(name, ...) ROW(name, recovery, 1.25, {__VA_ARGS__})
/* 50,000 requests a second, by a queue that all nodes share */
#define BOTTLENECK(name, ...)                                                          \
	RECOVERS(name, ENDLESS(300, 300, 2, 4000), .shared = EVERY_NODE, .places = 64, \
		 .queue_us = 20, .troubles = {__VA_ARGS__})
#define LOST_(at, length, part)                                        \
	{                                                              \
		.kind = LOSS, .at_ms = at, .ms = length, .share = part \
	}
#define TIMES(by)                                        \
	{                                                \
		.kind = STEP, .at_ms = 500, .factor = by \
	}

/* The living, beside dead nodes: their seconds */
#define DEAD(name, seconds, count, ...) \
	ROW(name, living, seconds, {NODES(count, 100, 5, count), __VA_ARGS__})
#define BEHIND_QUEUE(part, of, us) .shared = part, .places = of, .queue_us = us
#define SA_AT_200_US                                                                  \
	{                                                                             \
		ATTEMPTS(3), .nodes = 1, .rtt_us = 10, .service_us = 200, .kind = SA, \
			     .requests = 2000                                         \
	}

const struct scenario scenarios[] = {
	/* nodes that are not alike */
	NEAR("one near, 999 at 0.3 ms", 5, 60),
	NEAR("one near, 999 at 1.5 ms", 5, 300),
	/* Each growth takes at least a round trip of 13 ms; the best window is there at once.
	 */
	{"one at 1.3 ms, 299 at 13 ms", beside_best, 1.5, 0.5, .known = 1.7,
	 .fabric = {NODES(300, 1300, 2, 6000), .layout = NEAR_FAR, .far = 10}},
	BESIDE("4.5 % dead, 300 at 85 us", {NODES(300, 85, 2, 300), .dead_share = 0.045}),
	/* a request that is lost twice takes 0.2 s: 7 of 12 seeds have none, the others 2.4
	   to 5.2 */
	{"stop 51 ms, 2.3 % dead", beside_best, 1.5, 0.5, .known = 5.5,
	 .fabric = {NODES(1000, 100, 5, 13000), .dead_share = 0.023, .stop_ms = 51}},
	/*
	 * Requests to the half without a queue make a growth pay that fills the queue of the
	 * other half: 0 to 3.6 % are dropped, as the requests happen to be mixed.
	 */
	BESIDE_("half behind a queue of 32", 0.5, 5, 1.5,
		{NODES(1000, 100, 5, 20000), BEHIND_QUEUE(FIRST_HALF, 32, 20)}),
	BESIDE("every other behind a queue of 32",
	       {NODES(1000, 100, 5, 20000), BEHIND_QUEUE(INTERLEAVED, 32, 20)}),
	/* Growth must fill the queue to find it, before the outage and after it. */
	BESIDE_("a queue, and an outage of 100 ms", 0.5, 4, 1.5,
		{NODES(500, 2000, 5, 15000), BEHIND_QUEUE(EVERY_NODE, 128, 20),
		 .troubles = {LOST_(250, 100, 1)}}),
	BESIDE("stop 51 ms, far and near", {NODES(1000, 1000, 50, 13000), .layout = VARIED,
					    .dead_share = 0.023, .stop_ms = 51}),
	BESIDE("stop 200 ms, a request each", {NODES(1000, 100, 5, 1000), .stop_ms = 200}),
	BESIDE("stop 200 ms, 13 requests each", {NODES(1000, 100, 5, 13000), .stop_ms = 200}),
	BESIDE("loss 30 %", {NODES(1000, 100, 5, 13000), .loss = 0.3}),
	/* nodes and paths that are overrun */
	OVERRUN(5, 1),
	OVERRUN(20, 1),
	OVERRUN(100, 1),
	OVERRUN(100, 16),
	PATH(16),
	PATH(64),
	PATH(512),
	BESIDE("loss 1 %, service 20 buffer 4", SWEEP(16, 20, .buffer = 4, .loss = 0.01)),
	BESIDE("loss 5 %, service 20 buffer 4", SWEEP(16, 20, .buffer = 4, .loss = 0.05)),
	BESIDE("20 dead, 1 attempt", SWEEP(1, 1, .dead_share = 0.015)),
	BESIDE("50 nodes at 5 ms",
	       SWEEP(3, 1, .layout = NEAR_FAR, .near_share = 0.963, .far = 500)),
	BESIDE("SA at 200 us", SA_AT_200_US),
	BESIDE("switches at 1 ms", SWEEP(3, 5, .slow_share = 0.0015, .slow = 200)),
	BESIDE("bursts of 200",
	       {NODES(500, 300, 10, 10000), .work = BURSTS, .open = 200, .every_ms = 20}),
	BESIDE("one by one", {NODES(500, 300, 10, 2000), .work = CHAINS, .open = 1}),
	/* recovery */
	BOTTLENECK("after 25 % lost and an outage", LOST_(500, 12, 0.25), LOST_(512, 100, 1)),
	BOTTLENECK("after an outage of 1 s", LOST_(500, 1000, 1)),
	BOTTLENECK("after 25 % lost for 300 ms", LOST_(500, 300, 0.25)),
	BOTTLENECK("after 30 % of the nodes died",
		   {.kind = DEATHS, .at_ms = 500, .ms = 1000, .share = 0.3}),
	BOTTLENECK("after round trips x10", TIMES(10)),
	BOTTLENECK("after round trips x0.1", TIMES(0.1)),
	RECOVERS("from 50 us to 20 ms", ENDLESS(250, 50, 2, 4000), .troubles = {TIMES(400)}),
	RECOVERS("one destination, to 2 ms", ENDLESS(1, 100, 20, 64), .troubles = {TIMES(20)}),
	ROW("a window that is seldom used", idle, 1.1, {NODES(1000, 300, 5, 30000)}),
	/* nodes that do not respond, late or with BUSY */
	DEAD("500 dead, then 128", 0.2, 628, .dead_first = 500),
	DEAD("5,000 dead, then 128", 3, 5128, .dead_first = 5000),
	DEAD("half dead, then 80 % dead", 0.4, 1256, .dead_first = 628, .dead_share = 0.8),
	DEAD("80 % of 628 dead", 0.1, 628, .dead_share = 0.8),
	DEAD("98 % of 5,000 dead", 3, 5000, .dead_share = 0.98),
	BESIDE_TWICE("two at 30 ms, one at 100 ms",
		     {NODES(208, 50, 2, 2080), .delay_ms = {30, 30, 100}}),
	BESIDE_TWICE("a hop of 500 us", {NODES(208, 3500, 2, 208), .layout = HOPS}),
	BESIDE_TWICE("a BUSY node, 20 requests each",
		     {NODES(200, 50, 2, 4000), .busy_first = 1}),
	ROW("a BUSY node, 200 requests each", whole_time, 3.5,
	    {NODES(20, 50, 2, 4000), .busy_first = 1}),
	ROW("50 % of 1,000 dead", whole_time, 3.5,
	    {NODES(1000, 100, 5, 1000), .dead_share = 0.5}),
	ROW("none of 2,000 responds", probing, 60,
	    {ATTEMPTS(3), .nodes = 2000, .rtt_us = 100, .service_us = 5, .dead_share = 1,
	     .requests = 2000}),
	ROW("1,000 requests, an unplugged port", probing, 10,
	    {.attempts = 3,
	     .timeout_ms = 150,
	     .seed = 1,
	     .nodes = 1000,
	     .rtt_us = 100,
	     .service_us = 5,
	     .dead_share = 1,
	     .requests = 1000}),
	/* the rest */
	ROW("random attempts", ends, 0, {.seed = 1, .requests = 1000}),
	ROW("eight hosts behind a queue", hosts, 1.5,
	    {NODES(500, 300, 2, 10000), BEHIND_QUEUE(EVERY_NODE, 64, 10), .hosts = 8}),
};

const unsigned scenario_count = sizeof(scenarios) / sizeof(*scenarios);
