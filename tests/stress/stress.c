/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * stress COUNT
 *
 * So many requests on the machine of the unit tests, in virtual time, in rounds. The seed draws
 * the mix of a round: one thread or many, with blocking calls, engines that run and one in an
 * event loop; transaction IDs of the library, of an ib_rpc_t that is used again and of the
 * caller; a fabric that loses, doubles, delays, reorders, corrupts, truncates, is busy and
 * redirects, with dead and slow nodes.
 *
 * Each request must complete exactly once, with a possible error or the data of what it asked:
 * this node, class, attribute and modifier, and this request, not an earlier one. In the last
 * round the device is removed, with many requests in flight.
 *
 * TEST_SEED in the environment sets the seed of the first round; the others have the numbers
 * after it. So a round is repeated with its own seed and COUNT 20000. With threads, the order
 * also depends on the machine.
 */
#include "fabric.h"
#include "jobs.h"
#include "machine.h"

#include <infiniband/umad_ext.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define STAR          "star:200"
#define ROUND         20000
#define LAST_REQUESTS 2000
#define MOST_BLOCKING 6
#define MOST_ENGINES  3

static uint64_t random_state;

static unsigned choose(unsigned count)
{
	return draw(&random_state, count);
}

/* Half of the rounds have no faults of this kind. */
static unsigned sometimes(unsigned most)
{
	return choose(2) ? choose(most + 1) : 0;
}

/* --- the mix -------------------------------------------------------------------- */

static struct mix draw_fabric(void)
{
	struct mix mix = {
		.instant = sometimes(500),
		.round_trip_us = 10 + choose(1000),
		.late_us = choose(2) ? 50000 : 1000 + choose(3000000),
		.dead = sometimes(400),
		.slow = sometimes(100),
		.busy = sometimes(200),
		.slow_us = choose(2000000),
	};

	mix.rates[LOSE] = sometimes(30);
	mix.rates[TIME_OUT] = sometimes(10);
	mix.rates[DOUBLE] = sometimes(50);
	mix.rates[DELAY] = sometimes(300);
	mix.rates[LATE] = choose(4) ? choose(50) : 0;
	mix.rates[CORRUPT] = sometimes(20);
	mix.rates[TRUNCATE] = sometimes(20);
	mix.rates[BUSY] = sometimes(20);
	mix.rates[REFUSE] = sometimes(30);
	mix.rates[REDIRECT] = sometimes(20);
	return mix;
}

static struct job_mix draw_jobs(void)
{
	struct job_mix mix = {
		.nodes = 2 + choose(choose(2) ? 8 : MOST_NODES - 2),
		.attributes = 1 + choose(6),
		.reused = choose(2) ? 100 : choose(101),
		.sent = sometimes(20),
		.doubled = sometimes(10),
		.timeout_ms = choose(2) ? 5 + choose(60) : 100 + choose(1000),
	};

	mix.chosen = choose(101 - mix.reused);
	return mix;
}

/* --- rounds --------------------------------------------------------------------- */

static struct ibmad_port *open_port(struct job_mix *mix)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS,
			 IB_VENDOR_RANGE1_START_CLASS};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 5);

	must(port, "the port cannot be opened");
	mix->has_vendor2 = mad_register_client_via(IB_VENDOR_OPENIB_PING_CLASS, 0, port) >= 0;
	mad_rpc_set_timeout(port, (int)mix->timeout_ms);
	mad_rpc_set_retries(port, 1 + (int)choose(4));
	mad_port_set(port, MAD_PORT_MAX_RESPONSE, LONGEST_ANSWER);
	return port;
}

static pthread_t start(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	must(!pthread_create(&thread, NULL, run, arg), "no thread");
	return thread;
}

static void join(pthread_t thread)
{
	pthread_join(thread, NULL);
}

/* All kinds of threads, each with its share. */
static void run_threads(struct ibmad_port *port, unsigned count, unsigned blocking,
			unsigned engines)
{
	pthread_t threads[MOST_BLOCKING + MOST_ENGINES];
	struct share shares[MOST_BLOCKING + MOST_ENGINES];
	unsigned first = 1, all = blocking + engines;

	for (unsigned n = 0; n < all; n++) {
		shares[n] =
			(struct share){port, first, count / all, next_random(&random_state)};
		if (n == all - 1)
			shares[n].count = count + 1 - first;
		first += shares[n].count;
		threads[n] = start(n < blocking  ? do_blocking
				   : n < all - 1 ? do_running
						 : do_event_loop,
				   &shares[n]);
	}
	for (unsigned n = 0; n < all; n++)
		join(threads[n]);
}

static void run_round(unsigned count, uint64_t seed)
{
	struct mix fabric;
	struct job_mix mix;
	struct ibmad_port *port;
	pthread_t receiver;

	random_state = (seed * UINT64_C(0x9e3779b97f4a7c15)) | 1;
	fabric = draw_fabric();
	mix = draw_jobs();
	port = open_port(&mix);
	fabric_begin(next_random(&random_state), &fabric);
	jobs_begin(count, seed, &mix);
	receiver = start(do_receiving, port);
	if (choose(2))
		run_threads(port, count, 1, 0);
	else
		run_threads(port, count, 1 + choose(MOST_BLOCKING), choose(MOST_ENGINES + 1));
	jobs_stop_receiving();
	join(receiver);
	mad_rpc_close_port(port);
	jobs_end(false);
}

/* The device is removed with many requests in flight. */
static void remove_device(void)
{
	struct mix fabric = {.round_trip_us = 1000000};
	struct job_mix mix = {.nodes = MOST_NODES, .attributes = 4, .timeout_ms = 1000};
	struct ibmad_port *port = open_port(&mix);
	struct share share = {port, 1, LAST_REQUESTS, 1};
	pthread_t receiver, runner;

	fabric_begin(1, &fabric);
	jobs_begin(LAST_REQUESTS, 1, &mix);
	receiver = start(do_receiving, port);
	fabric_lose_everything();
	runner = start(do_running, &share);
	machine_pass(20000);
	machine_rule("remove on host");
	join(runner);
	join(receiver);
	mad_rpc_close_port(port);
	jobs_end(true);
}

/* Requests that fail are reported, which is too much to read. */
static void ignore_message(enum umad_log_level level, const char *text, void *user)
{
	(void)level;
	(void)text;
	(void)user;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 0) : 100000;
	const char *seed = getenv("TEST_SEED");
	uint64_t value = seed ? strtoull(seed, NULL, 0)
			      : (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
	double start = seconds();
	unsigned long wrong;
	int64_t virtual;

	printf("TEST_SEED=%llu\n", (unsigned long long)value);
	fflush(stdout);
	umad_set_log_hook(ignore_message, NULL);
	machine_start(STAR, NULL);
	for (unsigned long done = 0; done < count; done += ROUND)
		run_round(count - done < ROUND ? (unsigned)(count - done) : ROUND,
			  value + done / ROUND);
	remove_device();
	virtual = machine_us();
	machine_stop();
	printf("%lu requests in %.1f s, and %.0f s of virtual time\n", count, seconds() - start,
	       (double)virtual / 1e6);
	wrong = jobs_report(count / 10);
	fabric_report();
	return wrong ? 1 : 0;
}
