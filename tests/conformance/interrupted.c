/* SPDX-License-Identifier: BSD-2-Clause */

/* Calls that wait, in threads that are cancelled and programs with signal handlers. */
#include "check.h"
#include "mads.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define TIMEOUT  2000
#define RETRIES  9
#define INTERVAL 50000 /* us between two signals */

static int port, agent;

/* Returns the child that responds, and opens a handle on which read() waits. */
static int open_blocking(void)
{
	int child = start_responder();

	port = open_port(&here);
	agent = client(port, 0);
	expect_equal(fcntl(port, F_SETFL, fcntl(port, F_GETFL) & ~O_NONBLOCK), 0);
	return child;
}

static void send_request(uint32_t tid)
{
	void *request = new_umad(MAD);

	set_mad(request, METHOD_ANY, tid);
	set_destination(request, &there);
	send_mad(port, agent, request, MAD, TIMEOUT, RETRIES);
	free(request);
}

/* Returns the transaction ID of the message that read() takes. */
static uint32_t read_one(void)
{
	void *umad = new_umad(MAD);
	uint32_t tid;

	expect_equal(read(port, umad, umad_size() + MAD), umad_size() + MAD);
	tid = tid_of(umad);
	free(umad);
	return tid;
}

static volatile sig_atomic_t signals;
static volatile uint32_t read_in_handler;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

/* Sends two requests, and reads the response to one of them. */
static void exchange(int number)
{
	(void)number;
	if (signals++)
		return;
	send_request(1);
	send_request(2);
	read_in_handler = read_one();
}

/* Signals come until the check has ended: one may come before the call waits. */
static void start_signals(void (*handler)(int), int flags)
{
	const struct itimerval often = {{0, INTERVAL}, {0, INTERVAL}};
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	expect_equal(sigaction(SIGALRM, &action, NULL), 0);
	expect_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
}

static void a_signal_ends_a_read(void)
{
	uint8_t umad[512];
	int child = open_blocking();

	start_signals(count_signal, 0);
	expect_errno(read(port, umad, sizeof(umad)), EINTR);
	expect(signals > 0);
	expect_equal(kill(child, SIGKILL), 0);
}

static void a_signal_handler_may_read(void)
{
	int child = open_blocking();
	uint32_t tid;

	start_signals(exchange, SA_RESTART);
	tid = read_one();
	expect_equal(tid + read_in_handler, 3);
	expect_equal(kill(child, SIGKILL), 0);
}

static void *read_for_ever(void *unused)
{
	read_one();
	return unused;
}

static void a_cancelled_reader_leaves_the_handle(void)
{
	int child = open_blocking();
	pthread_t thread;
	void *result;

	expect_equal(pthread_create(&thread, NULL, read_for_ever, NULL), 0);
	pause_ms(100);
	expect_equal(pthread_cancel(thread), 0);
	expect_equal(pthread_join(thread, &result), 0);
	expect(result == PTHREAD_CANCELED);
	send_request(7);
	expect_equal(read_one(), 7);
	expect_equal(kill(child, SIGKILL), 0);
}

static void a_signal_ends_the_wait_for_an_issm_device(void)
{
	int first;

	needs_issm();
	first = open_device(&here, "issm", O_RDWR);
	expect(first >= 0);
	start_signals(count_signal, 0);
	expect_errno(open_device(&here, "issm", O_RDWR), EINTR);
	expect(signals > 0);
	expect_equal(close(first), 0);
}

static void *wait_for_issm(void *unused)
{
	open_device(&here, "issm", O_RDWR);
	return unused;
}

static void a_cancelled_thread_does_not_get_the_issm_device(void)
{
	pthread_t thread;
	int first, second;
	void *result;

	needs_issm();
	first = open_device(&here, "issm", O_RDWR);
	expect(first >= 0);
	expect_equal(pthread_create(&thread, NULL, wait_for_issm, NULL), 0);
	pause_ms(100);
	expect_equal(pthread_cancel(thread), 0);
	expect_equal(pthread_join(thread, &result), 0);
	expect(result == PTHREAD_CANCELED);
	expect_equal(close(first), 0);
	second = open_device(&here, "issm", O_RDWR | O_NONBLOCK);
	expect(second >= 0);
	expect_equal(close(second), 0);
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(a_signal_ends_a_read),
		CHECK(a_signal_handler_may_read),
		CHECK(a_cancelled_reader_leaves_the_handle),
		CHECK(a_signal_ends_the_wait_for_an_issm_device),
		CHECK(a_cancelled_thread_does_not_get_the_issm_device),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
