/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * stress COUNT
 *
 * So many requests on the machine of the unit tests, in virtual time, in rounds. The seed draws
 * the mix of a round: one thread or many, with blocking calls, engines that run and one in an
 * event loop; transaction IDs of the library, of an ib_rpc_t that is used again and of the
 * caller; a fabric that loses, doubles, delays, reorders, corrupts, truncates, is busy and
 * redirects, with dead and slow nodes. Meanwhile limits change, waits are stopped, and system
 * calls are slow or interrupted; sometimes the port's handle is no descriptor.
 *
 * Each request must complete exactly once, with a possible error or the data of what it asked:
 * this node, class, attribute and modifier, and this request, not an earlier one. In the last
 * two rounds the device is removed, and the port closed, with many requests in flight.
 *
 * TEST_SEED in the environment sets the seed of the first round; the others have the numbers
 * after it. So a round is repeated with its own seed and COUNT 20000. With threads, the order
 * also depends on the machine.
 */
#include "fabric.h"
#include "jobs.h"
#include "machine.h"

#include <infiniband/umad_ext.h>
#include <stdatomic.h>
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

static int64_t virtual_us; /* of all rounds */

static void end_machine(void)
{
	virtual_us += machine_us();
	machine_stop();
}

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

static atomic_bool is_disturbed;

/* Until the round ends: half of the time nothing is limited or slow. */
static void *disturb(void *port)
{
	uint64_t state = 1;

	while (is_disturbed) {
		bool limits = draw(&state, 2), slows = draw(&state, 2);

		mad_port_set(port, MAD_PORT_SMP_WINDOW, limits * draw(&state, 40));
		mad_port_set(port, MAD_PORT_GMP_WINDOW, limits * draw(&state, 40));
		mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, limits * draw(&state, 8));
		mad_port_set(port, MAD_PORT_RATE, limits * draw(&state, 2) * 50000);
		machine_slow_call(MACHINE_WRITE, slows * draw(&state, 100));
		machine_slow_call(MACHINE_POLL, slows * draw(&state, 2000));
		machine_fail(MACHINE_POLL, 1, EINTR);
		machine_pass(draw(&state, 30000));
	}
	machine_slow_call(MACHINE_WRITE, 0);
	machine_slow_call(MACHINE_POLL, 0);
	machine_fail(MACHINE_POLL, 0, 0);
	return NULL;
}

static void run_round(unsigned count, uint64_t seed)
{
	struct mix fabric;
	struct job_mix mix;
	struct ibmad_port *port;
	pthread_t receiver, disturber;

	random_state = (seed * UINT64_C(0x9e3779b97f4a7c15)) | 1;
	machine_start(STAR, NULL);
	if (!choose(8))
		machine_high_handles();
	fabric = draw_fabric();
	mix = draw_jobs();
	port = open_port(&mix);
	fabric_begin(next_random(&random_state), &fabric);
	jobs_begin(count, seed, &mix);
	receiver = start(do_receiving, port);
	is_disturbed = true;
	disturber = start(disturb, port);
	if (choose(2))
		run_threads(port, count, 1, 0);
	else
		run_threads(port, count, 1 + choose(MOST_BLOCKING), choose(MOST_ENGINES + 1));
	is_disturbed = false;
	join(disturber);
	jobs_stop_receiving();
	join(receiver);
	mad_rpc_close_port(port);
	jobs_end(false);
	end_machine();
}

/* The device is removed, or the port closed, with many requests in flight. */
static void end_port(bool closes)
{
	struct mix fabric = {.round_trip_us = 1000000};
	struct job_mix mix = {.nodes = MOST_NODES, .attributes = 4, .timeout_ms = 1000};
	struct ibmad_port *port;
	struct share share = {.first = 1, .count = LAST_REQUESTS, .seed = 1};
	pthread_t receiver, runner;

	machine_start(STAR, NULL);
	share.port = port = open_port(&mix);
	fabric_begin(1, &fabric);
	jobs_begin(LAST_REQUESTS, 1, &mix);
	receiver = start(do_receiving, port);
	fabric_lose_everything();
	runner = start(do_running, &share);
	machine_pass(20000);
	if (closes)
		mad_rpc_close_port(port);
	else
		machine_rule("remove on host");
	join(runner);
	join(receiver);
	if (!closes)
		mad_rpc_close_port(port);
	jobs_end(true);
	end_machine();
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
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 0) : 40000;
	const char *seed = getenv("TEST_SEED");
	uint64_t value = seed ? strtoull(seed, NULL, 0)
			      : (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
	double start = seconds();
	unsigned long wrong;

	printf("TEST_SEED=%llu\n", (unsigned long long)value);
	fflush(stdout);
	umad_set_log_hook(ignore_message, NULL);
	for (unsigned long done = 0; done < count; done += ROUND)
		run_round(count - done < ROUND ? (unsigned)(count - done) : ROUND,
			  value + done / ROUND);
	end_port(false);
	end_port(true);
	printf("%lu requests in %.1f s, and %.0f s of virtual time\n", count, seconds() - start,
	       (double)virtual_us / 1e6);
	wrong = jobs_report(count / 10);
	fabric_report();
	return wrong ? 1 : 0;
}
