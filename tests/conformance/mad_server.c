/* SPDX-License-Identifier: BSD-2-Clause */

/* libibmad's server side: which requests it receives, and how it responds. */
#include "check.h"
#include "mads.h"
#include "rpc.h"

#define PATIENCE 5000

static struct ibmad_port *serving;
static int fd, requester_agent;
static void *umad;

static void opened(int rmpp_version, long *methods)
{
	fd = open_port(&here);
	requester_agent = client(fd, 1);
	umad = new_umad(100000);
	serving = mad_rpc_open_port(there.ca_name, there.portnum, NULL, 0);
	expect(serving);
	expect(mad_register_server_via(CLASS, (uint8_t)rmpp_version, methods, OUI, serving) >=
	       0);
}

static void ask(uint8_t method, uint32_t tid, int timeout_ms)
{
	set_mad(umad, method, tid);
	set_destination(umad, &there);
	send_mad(fd, requester_agent, umad, MAD, timeout_ms, 0);
}

static void without_a_mask_all_methods_come(void)
{
	static const uint8_t methods[] = {METHOD_GET, METHOD_SET, METHOD_SEND, METHOD_ANY,
					  0x7f};
	void *request;

	opened(0, NULL);
	for (uint32_t i = 0; i < sizeof(methods); i++) {
		ask(methods[i], i, 0);
		request = mad_receive_via(NULL, PATIENCE, serving);
		expect(request);
		expect_equal(method_of(request), methods[i]);
		expect_equal(tid_of(request), i);
		mad_free(request);
	}
}

static void with_a_mask_only_its_methods_come(void)
{
	long methods[16 / sizeof(long)] = {1L << METHOD_SET};
	void *request;

	opened(0, methods);
	ask(METHOD_ANY, 1, 0);
	ask(METHOD_SET, 2, 0);
	request = mad_receive_via(NULL, PATIENCE, serving);
	expect(request);
	expect_equal(tid_of(request), 2);
	mad_free(request);
	expect(!mad_receive_via(NULL, 0, serving));
	expect_equal(errno, EAGAIN);
}

static void a_response_has_the_requests_header_and_the_servers_data(void)
{
	const struct ib_user_mad *header;
	void *request;

	opened(0, NULL);
	header = umad;
	ask(METHOD_SET, 3, 20000);
	request = mad_receive_via(NULL, PATIENCE, serving);
	expect(request);
	fill(request, DATA, MAD);
	expect_equal(mad_respond_via(request, NULL, 0x0100, serving), 0);
	mad_free(request);
	expect_equal(receive_mad(fd, umad, MAD, requester_agent), MAD);
	expect_equal(umad_status(umad), 0);
	expect_equal(method_of(umad), METHOD_GET | RESPONSE);
	expect_equal(status_of(umad), 0x0100);
	expect_equal(tid_of(umad), 3);
	expect_filled(umad, DATA, MAD);
	expect_equal(header->addr.grh_present, there.ethernet);
	if (there.ethernet)
		expect_bytes(header->addr.gid, there.gid, 16);
}

static void the_response_to_a_grh_has_a_grh(void)
{
	const struct ib_user_mad *header;
	void *request;

	opened(0, NULL);
	header = umad;
	set_mad(umad, METHOD_GET, 4);
	set_grh(umad, &there);
	send_mad(fd, requester_agent, umad, MAD, 20000, 0);
	request = mad_receive_via(NULL, PATIENCE, serving);
	expect(request);
	expect_equal(mad_respond_via(request, NULL, 0, serving), 0);
	mad_free(request);
	expect_equal(receive_mad(fd, umad, MAD, requester_agent), MAD);
	expect_equal(header->addr.grh_present, 1);
	expect_bytes(header->addr.gid, there.gid, 16);
}

static void a_message_comes_whole(void)
{
	void *request, *one = mad_alloc();

	opened(1, NULL);
	set_mad(umad, METHOD_SEND, 5);
	set_rmpp(umad);
	set_destination(umad, &there);
	fill(umad, DATA, 50000);
	send_mad(fd, requester_agent, umad, 50000, 0, 0);
	expect(!mad_receive_via(one, PATIENCE, serving)); /* too small: the message stays */
	expect_equal(errno, EMSGSIZE);
	request = mad_receive_via(NULL, PATIENCE, serving);
	expect(request);
	expect_equal(((struct ib_user_mad *)request)->length, umad_size() + 50000);
	expect_filled(request, DATA, 50000);
	mad_free(request);
	mad_free(one);
}

static void time_runs_out_without_requests(void)
{
	int64_t started = now_ms();

	opened(0, NULL);
	expect(!mad_receive_via(NULL, 100, serving));
	expect_equal(errno, ETIMEDOUT);
	expect(now_ms() - started >= 100);
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(without_a_mask_all_methods_come),
		CHECK(with_a_mask_only_its_methods_come),
		CHECK(a_response_has_the_requests_header_and_the_servers_data),
		CHECK(the_response_to_a_grh_has_a_grh),
		CHECK(a_message_comes_whole),
		CHECK(time_runs_out_without_requests),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
