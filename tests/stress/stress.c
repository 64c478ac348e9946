/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * stress COUNT
 *
 * So many transactions on a fake device that loses, doubles, delays, reorders, corrupts,
 * truncates, is busy, redirects, and sends its own requests; by blocking calls, by engines that
 * run and one in an event loop, all at once. Each must complete exactly once, with a possible
 * error or its own data. At the end the device is removed, with many transactions in flight.
 *
 * TEST_SEED in the environment sets the seed; with threads, the order also depends on the
 * machine.
 */
#include "faults.h"
#include "jobs.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define BLOCKING_THREADS 4
#define ENGINE_THREADS   2
#define LAST_REQUESTS    2000

static struct ibmad_port *open_port(void)
{
	int classes[] = {IB_SMI_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 3);

	must(port, "the port cannot be opened");
	mad_rpc_set_timeout(port, 40);
	mad_port_set_max_reply(port, LONGEST_ANSWER);
	return port;
}

static void *receive_requests(void *arg)
{
	void *umad;

	while (1) {
		umad = mad_receive_via(NULL, 100, arg);
		if (!umad && errno != ETIMEDOUT && errno != EINTR)
			return NULL;
		mad_free(umad);
	}
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* All kinds of threads, each with its share. */
static void run_all(struct ibmad_port *port, unsigned count)
{
	unsigned blocking = count / 20 / BLOCKING_THREADS, share = count / (ENGINE_THREADS + 1);
	pthread_t threads[BLOCKING_THREADS + ENGINE_THREADS + 1];
	struct share shares[BLOCKING_THREADS + ENGINE_THREADS + 1];
	unsigned first = 0, n = 0;

	share -= blocking * BLOCKING_THREADS / (ENGINE_THREADS + 1);
	for (; n < BLOCKING_THREADS + ENGINE_THREADS; n++) {
		shares[n] =
			(struct share){port, first, n < BLOCKING_THREADS ? blocking : share};
		first += shares[n].count;
		pthread_create(&threads[n], NULL,
			       n < BLOCKING_THREADS ? do_blocking : do_running, &shares[n]);
	}
	shares[n] = (struct share){port, first, count - first};
	pthread_create(&threads[n], NULL, do_event_loop, &shares[n]);
	for (unsigned i = 0; i <= n; i++)
		pthread_join(threads[i], NULL);
}

/* The device is removed with many transactions in flight. */
static void remove_device(struct ibmad_port *port, unsigned first)
{
	struct share share = {port, first, LAST_REQUESTS};
	pthread_t thread;

	faults_lose_everything();
	pthread_create(&thread, NULL, do_running, &share);
	usleep(20000);
	device_remove();
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 100000;
	const char *seed = getenv("TEST_SEED");
	uint64_t value = seed ? strtoull(seed, NULL, 0)
			      : (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
	struct ibmad_port *port;
	pthread_t receiver;
	double start;

	printf("TEST_SEED=%llu\n", (unsigned long long)value);
	fflush(stdout);
	device_setup();
	device_forget_packets();
	faults_start(value);
	jobs_start(count + LAST_REQUESTS, value);
	port = open_port();
	pthread_create(&receiver, NULL, receive_requests, port);

	start = seconds();
	run_all(port, count);
	printf("%u transactions in %.1f s\n", count, seconds() - start);
	jobs_judge(0, count, false);
	remove_device(port, count);
	jobs_judge(count, LAST_REQUESTS, true);

	pthread_join(receiver, NULL);
	mad_rpc_close_port(port);
	faults_report();
	jobs_end();
	must(!device_teardown(), "descriptors are open");
	return 0;
}
