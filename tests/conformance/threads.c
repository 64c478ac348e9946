/* SPDX-License-Identifier: BSD-2-Clause */

/* Eight threads share one port; each of their requests has one response. */
#include "check.h"
#include "mads.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define THREADS  8
#define REQUESTS 10000 /* of all threads, at most */
#define AT_ONCE  16    /* requests of each thread in flight */
#define TIMEOUT  2000
#define RETRIES  9

static int port, agent;
static uint32_t requests;               /* of all threads */
static atomic_uint responses[REQUESTS]; /* by transaction ID */
static atomic_uint responded;

/* Receives a response for any of the threads. */
static void receive_one(void *umad)
{
	int length = MAD;
	uint32_t tid;
	int id = umad_recv(port, umad, &length, 0);

	if (id == -EWOULDBLOCK) /* each response wakes all threads that wait: do not wait */
		id = umad_recv(port, umad, &length, 100);
	if (id == -ETIMEDOUT)
		return;
	expect_equal(id, agent);
	expect_equal(umad_status(umad), 0);
	expect_equal(length, MAD);
	expect_equal(method_of(umad), METHOD_ANY | RESPONSE);
	tid = tid_of(umad);
	expect(tid < requests);
	expect_filled(umad, DATA + tid % SEGMENT, MAD);
	atomic_fetch_add(&responses[tid], 1);
	atomic_fetch_add(&responded, 1);
}

static bool is_answered(uint32_t tid)
{
	return atomic_load(&responses[tid]) > 0;
}

static void *work(void *first)
{
	uint32_t begin = (uint32_t)(uintptr_t)first, end = begin + requests / THREADS;
	uint32_t oldest = begin;
	void *request = new_umad(MAD), *reply = new_umad(MAD);

	for (uint32_t tid = begin; tid < end; tid++) {
		memset(umad_get_mad(request), 0, MAD);
		set_mad(request, METHOD_ANY, tid);
		set_destination(request, &there);
		fill(request, DATA + tid % SEGMENT, MAD);
		send_mad(port, agent, request, MAD, TIMEOUT, RETRIES);
		while (tid - oldest >= AT_ONCE)
			if (is_answered(oldest))
				oldest++;
			else
				receive_one(reply);
	}
	for (; oldest < end; oldest++)
		while (!is_answered(oldest))
			receive_one(reply);
	free(request);
	free(reply);
	return NULL;
}

static void requests_of_eight_threads_have_one_response_each(void)
{
	pthread_t threads[THREADS];
	int64_t started;
	int child;

	requests = environment_is_brief() ? REQUESTS / 10 : REQUESTS;
	child = start_responder();
	port = open_port(&here);
	agent = client(port, 0);
	started = now_ms();
	for (uintptr_t i = 0; i < THREADS; i++)
		expect_equal(pthread_create(&threads[i], NULL, work,
					    (void *)(i * (requests / THREADS))),
			     0);
	for (unsigned i = 0; i < THREADS; i++)
		expect_equal(pthread_join(threads[i], NULL), 0);
	note("%u transactions in %lld ms", requests, (long long)(now_ms() - started));
	expect_equal(atomic_load(&responded), requests);
	for (uint32_t tid = 0; tid < requests; tid++)
		expect_equal(atomic_load(&responses[tid]), 1);
	expect_equal(kill(child, SIGKILL), 0);
}

static void *register_and_unregister(void *unused)
{
	for (unsigned i = 0; i < 50; i++) {
		int id = umad_register(port, CLASS, 1, 0, NULL);

		expect(id >= 0);
		expect_equal(umad_unregister(port, id), 0);
	}
	return unused;
}

static void agents_come_and_go_in_eight_threads(void)
{
	pthread_t threads[THREADS];

	port = open_port(&here);
	for (unsigned i = 0; i < THREADS; i++)
		expect_equal(pthread_create(&threads[i], NULL, register_and_unregister, NULL),
			     0);
	for (unsigned i = 0; i < THREADS; i++)
		expect_equal(pthread_join(threads[i], NULL), 0);
	expect_equal(client(port, 0), 0); /* all methods and agent numbers are free */
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(requests_of_eight_threads_have_one_response_each),
		CHECK(agents_come_and_go_in_eight_threads),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
