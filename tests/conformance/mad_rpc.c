/* SPDX-License-Identifier: BSD-2-Clause */

/* Blocking requests of libibmad, from one process to a server in another process. */
#include "bytes.h"
#include "check.h"
#include "mads.h"
#include "rpc.h"

#include <infiniband/mad_async.h>
#include <pthread.h>

#define PATIENCE 5000 /* ms for a request that has a response */
#define THREADS  8

static struct ibmad_port *port;
static ib_portid_t to;
static int child;

static void opened(void)
{
	port = open_mad_port(&here);
	to = address_of(&there);
}

static void what_is_asked_comes_back(void)
{
	uint8_t data[SEGMENT], reply[SEGMENT];
	ib_rpc_t rpc;

	child = start_server();
	opened();
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	for (int method = METHOD_GET; method <= METHOD_SET; method++) {
		rpc = request_of(method, ECHO, PATIENCE);
		memset(reply, 0, sizeof(reply));
		expect(mad_rpc(port, &rpc, &to, data, reply) == reply);
		expect_bytes(reply, data, sizeof(data));
		expect_equal(rpc.rstatus, 0);
		expect(rpc.trid != 0);
	}
	stop_server(child);
}

static void a_server_sees_who_asks(void)
{
	uint8_t data[SEGMENT] = {0};
	ib_rpc_t rpc = request_of(METHOD_GET, SENDER, PATIENCE);

	child = start_server();
	opened();
	expect(mad_rpc(port, &rpc, &to, data, data));
	expect_equal(get32(data), here.lid);
	expect_equal(get32(data + 4), 1);
	expect_equal(get32(data + 8), here.ethernet);
	if (here.ethernet)
		expect_bytes(data + 16, here.gid, 16);
	stop_server(child);
}

static void a_status_is_an_error(void)
{
	uint8_t data[SEGMENT] = {0};
	ib_rpc_t rpc = request_of(METHOD_GET, REFUSE, PATIENCE);

	child = start_server();
	opened();
	expect(!mad_rpc(port, &rpc, &to, data, data));
	expect_equal(errno, EIO);
	expect_equal(rpc.rstatus, REFUSED);
	stop_server(child);
}

static int64_t ask_in_vain_for(int timeout_ms)
{
	uint8_t data[SEGMENT] = {0};
	ib_rpc_t rpc = request_of(METHOD_GET, IGNORE, timeout_ms);
	int64_t started = now_ms();

	expect(!mad_rpc(port, &rpc, &to, data, data));
	expect_equal(errno, ETIMEDOUT);
	return now_ms() - started;
}

/* The kernel of a busy virtual machine may report a timeout early: one of ten must be right. */
static void a_request_without_a_response_has_all_its_attempts(void)
{
	uint8_t data[SEGMENT] = {0};
	ib_rpc_t rpc = request_of(METHOD_GET, COUNT, PATIENCE);
	uint32_t tries = 0;
	int64_t took;

	child = start_server();
	opened();
	mad_rpc_set_retries(port, 3);
	do {
		took = ask_in_vain_for(100);
		note("3 attempts of 100 ms: %lld ms", (long long)took);
	} while (++tries < 10 && took < 3 * 100);
	expect(took >= 3 * 100);
	expect(mad_rpc(port, &rpc, &to, data, data));
	expect_equal(get32(data), 3 * tries + 1);
	stop_server(child);
}

/* Both attempts have one transaction ID: a late response to the first completes the request. */
static void a_response_to_an_earlier_attempt_completes_the_request(void)
{
	uint8_t data[SEGMENT], reply[SEGMENT];

	child = start_server();
	opened();
	mad_rpc_set_retries(port, 2);
	for (int method = METHOD_GET; method <= METHOD_SET; method++) {
		ib_rpc_t rpc = request_of(method, TWICE, 500);

		memset(data, method, sizeof(data));
		expect(mad_rpc(port, &rpc, &to, data, reply) == reply);
		expect_bytes(reply, data, sizeof(data));
	}
	stop_server(child);
}

static void *ask_again_and_again(void *thread)
{
	uint8_t data[SEGMENT], reply[SEGMENT];
	ib_portid_t address = to;

	for (unsigned i = 0; i < 20; i++) {
		ib_rpc_t rpc = request_of(METHOD_GET, ECHO, PATIENCE);

		memset(data, (int)((uintptr_t)thread * 20 + i) & 0xff, sizeof(data));
		expect(mad_rpc(port, &rpc, &address, data, reply) == reply);
		expect_bytes(reply, data, sizeof(data));
	}
	return NULL;
}

static void each_of_eight_threads_gets_its_own_responses(void)
{
	pthread_t threads[THREADS];

	child = start_server();
	opened();
	for (uintptr_t i = 0; i < THREADS; i++)
		expect_equal(pthread_create(&threads[i], NULL, ask_again_and_again, (void *)i),
			     0);
	for (unsigned i = 0; i < THREADS; i++)
		expect_equal(pthread_join(threads[i], NULL), 0);
	stop_server(child);
}

static void a_long_request_is_received_whole(void)
{
	static const size_t sizes[] = {SEGMENT, SEGMENT + 1, 10000, 100000};
	struct mad_message message;
	uint8_t *payload = allocate(100000);

	child = start_server();
	opened();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		ib_rpc_t rpc = request_of(METHOD_GET, LENGTH, PATIENCE);

		expect_equal(mad_rpc_message(port, &rpc, &to, payload, sizes[i], &message), 0);
		expect_equal(message.length, MAD);
		expect_equal(get32(message.mad + DATA), sizes[i]);
		mad_message_free(&message);
	}
	free(payload);
	stop_server(child);
}

/* A server that uses libibumad and sends whole messages back. */
static void echo_messages(void *ready)
{
	int fd = open_port(&there), id = server(fd, METHOD_GET, 1);
	void *umad = new_umad(200000);

	expect_equal(write(*(int *)ready, "", 1), 1);
	for (;;) {
		int length = receive_mad(fd, umad, 200000, id);

		make_response(umad);
		if (length > MAD)
			set_rmpp(umad);
		send_mad(fd, id, umad, (size_t)length, 0, 0);
	}
}

static void a_long_response_comes_whole(void)
{
	static const size_t sizes[] = {1, SEGMENT, SEGMENT + 1, 5 * SEGMENT, 100000};
	struct mad_message message;
	uint8_t *payload = allocate(100000);
	int ready[2];
	char byte;

	expect_equal(pipe(ready), 0);
	child = start_child(echo_messages, &ready[1]);
	expect_equal(read(ready[0], &byte, 1), 1);
	opened();
	for (size_t i = 0; i < 100000; i++)
		payload[i] = (uint8_t)(i * 13 + i / 256);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		ib_rpc_t rpc = request_of(METHOD_GET, ECHO, PATIENCE);

		expect_equal(mad_rpc_message(port, &rpc, &to, payload, sizes[i], &message), 0);
		expect(message.length >= DATA + sizes[i]);
		expect_bytes(message.mad + DATA, payload, sizes[i]);
		mad_message_free(&message);
	}
	free(payload);
	stop_server(child);
}

static void *ask_in_vain(void *result)
{
	uint8_t data[SEGMENT] = {0};
	ib_rpc_t rpc = request_of(METHOD_ANY, IGNORE, 60000);
	ib_portid_t address = address_of(&here);

	*(int *)result = mad_rpc(port, &rpc, &address, data, data) ? 0 : errno;
	return NULL;
}

static void who_waits_on_a_device_that_goes_is_told(void)
{
	pthread_t threads[3];
	int errors[3] = {0};

	port = open_mad_port(&there);
	for (unsigned i = 0; i < 3; i++)
		expect_equal(pthread_create(&threads[i], NULL, ask_in_vain, &errors[i]), 0);
	pause_ms(100);
	if (!environment_asked("remove", there.ca_name))
		cannot("no device can be removed");
	for (unsigned i = 0; i < 3; i++) {
		expect_equal(pthread_join(threads[i], NULL), 0);
		expect_equal(errors[i], ENODEV);
	}
	mad_rpc_close_port(port);
	expect(environment_asked("add", there.ca_name));
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(what_is_asked_comes_back),
		CHECK(a_server_sees_who_asks),
		CHECK(a_status_is_an_error),
		CHECK(a_request_without_a_response_has_all_its_attempts),
		CHECK(a_response_to_an_earlier_attempt_completes_the_request),
		CHECK(each_of_eight_threads_gets_its_own_responses),
		CHECK(a_long_request_is_received_whole),
		CHECK(a_long_response_comes_whole),
		CHECK(who_waits_on_a_device_that_goes_is_told),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
