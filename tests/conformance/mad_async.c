/* SPDX-License-Identifier: BSD-2-Clause */

/* Many requests of libibmad in flight at once. */
#include "check.h"
#include "rpc.h"

#include <infiniband/mad_async.h>
#include <poll.h>

#define PATIENCE 5000
#define REQUESTS 500

static struct ibmad_port *port;
static struct mad_async *async;
static ib_portid_t to;
static unsigned called[REQUESTS];
static int errors[REQUESTS];

static void opened(void)
{
	port = open_mad_port(&here);
	to = address_of(&there);
	async = mad_async_create(port);
	expect(async);
}

static void closed(void)
{
	mad_async_free(async);
	mad_rpc_close_port(port);
}

/* The first bytes have the request's number; the response must have it, too. */
static void came(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	uint32_t number = (uint32_t)(uintptr_t)arg;

	expect(engine == async);
	called[number]++;
	errors[number] = reply->error;
	if (!reply->error) {
		expect_equal(reply->length, MAD);
		expect_equal(reply->data_size, SEGMENT);
		expect_bytes(reply->data, &number, sizeof(number));
	}
}

static void submit_method(int method, uint32_t number, unsigned attribute, int timeout_ms,
			  uint64_t *id)
{
	ib_rpc_t rpc = request_of(method, attribute, timeout_ms);
	uint8_t data[SEGMENT] = {0};

	memcpy(data, &number, sizeof(number));
	expect_equal(mad_async_submit(async, &rpc, &to, data, sizeof(data), came,
				      (void *)(uintptr_t)number, id),
		     0);
}

static void submit(uint32_t number, unsigned attribute, int timeout_ms, uint64_t *id)
{
	submit_method(METHOD_GET, number, attribute, timeout_ms, id);
}

static void hundreds_of_requests_are_each_called_back_once(void)
{
	struct mad_async_stats stats;
	unsigned requests = environment_is_brief() ? REQUESTS / 5 : REQUESTS;
	int child = start_server();

	opened();
	for (uint32_t i = 0; i < requests; i++)
		submit(i, ECHO, PATIENCE, NULL);
	expect_equal(mad_async_wait(async, -1), requests);
	for (uint32_t i = 0; i < requests; i++) {
		expect_equal(called[i], 1);
		expect_equal(errors[i], 0);
	}
	expect_equal(mad_async_get_stats(async, &stats, sizeof(stats)), 0);
	expect_equal(stats.completed, requests);
	expect_equal(stats.in_flight, 0);
	note("round trip %u us on average, window %u", stats.rtt_mean_us, stats.gmp.window);
	closed();
	stop_server(child);
}

static void requests_without_a_response_time_out_beside_the_rest(void)
{
	int child = start_server();

	opened();
	mad_rpc_set_retries(port, 2);
	submit(0, IGNORE, 100, NULL);
	for (uint32_t i = 1; i < 20; i++)
		submit(i, ECHO, PATIENCE, NULL);
	submit(20, REFUSE, PATIENCE, NULL);
	expect_equal(mad_async_wait(async, -1), 21);
	expect_equal(errors[0], -ETIMEDOUT);
	for (uint32_t i = 1; i < 20; i++)
		expect_equal(errors[i], 0);
	expect_equal(errors[20], -EIO);
	closed();
	stop_server(child);
}

static void a_cancelled_request_is_called_back_at_once(void)
{
	uint64_t id;
	int64_t started = now_ms();
	int child = start_server();

	opened();
	submit(0, IGNORE, 60000, &id);
	expect_equal(mad_async_process(async), 0);
	expect_equal(mad_async_cancel(async, id), 0);
	expect_equal(mad_async_wait(async, -1), 1);
	expect_equal(errors[0], -ECANCELED);
	expect_equal(mad_async_cancel(async, id), -ENOENT);
	expect(now_ms() - started < 60000);
	closed();
	stop_server(child);
}

static void an_event_loop_of_ones_own_does_as_well(void)
{
	int child = start_server();
	unsigned completed = 0;

	opened();
	for (uint32_t i = 0; i < 50; i++)
		submit(i, ECHO, PATIENCE, NULL);
	while (completed < 50) {
		struct pollfd pollfd = {.fd = mad_async_poll_fd(async), .events = POLLIN};

		expect(poll(&pollfd, 1, -1) >= 0);
		completed += (unsigned)mad_async_process(async);
	}
	for (uint32_t i = 0; i < 50; i++)
		expect_equal(called[i], 1);
	closed();
	stop_server(child);
}

static void with_its_device_all_requests_end(void)
{
	port = open_mad_port(&there);
	to = address_of(&here);
	async = mad_async_create(port);
	expect(async);
	for (uint32_t i = 0; i < 10; i++)
		submit_method(METHOD_ANY, i, IGNORE, 60000, NULL);
	expect_equal(mad_async_process(async), 0);
	if (!environment_asked("remove", there.ca_name))
		cannot("no device can be removed");
	expect_equal(mad_async_wait(async, -1), 10);
	for (uint32_t i = 0; i < 10; i++)
		expect_equal(errors[i], -ENODEV);
	closed();
	expect(environment_asked("add", there.ca_name));
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(hundreds_of_requests_are_each_called_back_once),
		CHECK(requests_without_a_response_time_out_beside_the_rest),
		CHECK(a_cancelled_request_is_called_back_at_once),
		CHECK(an_event_loop_of_ones_own_does_as_well),
		CHECK(with_its_device_all_requests_end),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
