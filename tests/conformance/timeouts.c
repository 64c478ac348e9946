/* SPDX-License-Identifier: BSD-2-Clause */

/* Requests without a response, or with a late one. */
#include "check.h"
#include "mads.h"

#include <string.h>
#include <unistd.h>

#define HEADER_ONLY  24   /* bytes of the MAD in a timeout report */
#define UNSERVED     0x08 /* no program here serves this class */
#define UNSUPPORTED  0x000c
#define LENGTH_NOTED 12345

static int from, to, requester_agent, responder_agent;
static void *umad;

static void opened(void)
{
	from = open_port(&here);
	to = open_port(&there);
	requester_agent = client(from, 1);
	responder_agent = server(to, METHOD_ANY, 1);
	umad = new_umad(4 * MAD);
	set_destination(umad, &there);
}

static void ask(uint32_t tid, int timeout_ms, int retries)
{
	set_mad(umad, METHOD_ANY, tid);
	set_destination(umad, &there);
	send_mad(from, requester_agent, umad, MAD, timeout_ms, retries);
}

static void expect_nothing(int fd)
{
	int length = MAD;

	expect_equal(umad_recv(fd, umad, &length, 0), -EWOULDBLOCK);
}

static void receive_timeout(uint32_t tid)
{
	expect_equal(receive_mad(from, umad, MAD, requester_agent), HEADER_ONLY);
	expect_equal(umad_status(umad), ETIMEDOUT);
	expect_equal(tid_of(umad), tid);
}

/* A virtual machine may miss some ticks of its clock: one of ten must be right. */
static void expect_late(void (*wait)(void), const char *what, int64_t earliest)
{
	int64_t started, took;
	int tries = 0;

	do {
		started = now_ms();
		wait();
		took = now_ms() - started;
		note("%s: back after %lld ms", what, (long long)took);
	} while (++tries < 10 && took < earliest);
	expect(took >= earliest);
}

static void wait_once(void)
{
	ask(1, 100, 0);
	receive_timeout(1);
}

static void wait_with_retries(void)
{
	ask(2, 50, 3);
	receive_timeout(2);
}

static void a_request_comes_back_when_its_time_is_over(void)
{
	opened();
	expect_late(wait_once, "100 ms", 100);
	expect_late(wait_with_retries, "50 ms, 3 retries", 200);
}

static void it_comes_back_as_it_was_with_24_bytes_of_mad(void)
{
	struct ib_user_mad *header;

	opened();
	header = umad;
	header->length = LENGTH_NOTED;
	ask(3, 50, 1);
	memset(umad, 0, umad_size() + MAD);
	expect_equal(umad_poll(from, 30000), 0);
	expect_errno(read(from, umad, umad_size() + HEADER_ONLY - 1), EINVAL);
	expect_equal(read(from, umad, umad_size() + HEADER_ONLY), umad_size() + HEADER_ONLY);
	expect_equal(header->status, ETIMEDOUT);
	expect_equal(header->length, LENGTH_NOTED);
	expect_equal(header->timeout_ms, 50);
	expect_equal(header->retries, 1);
	expect_equal(be32toh(header->addr.qpn), 1);
	expect_equal(be32toh(header->addr.qkey), 0x80010000);
	expect_equal(method_of(umad), METHOD_ANY);
	expect_equal(tid_of(umad), 3);
}

static void retries_send_it_again(void)
{
	opened();
	ask(4, 50, 2);
	for (int i = 0; i < 3; i++) {
		expect_equal(receive_mad(to, umad, MAD, responder_agent), MAD);
		expect_equal(tid_of(umad), 4);
	}
	receive_timeout(4);
	expect_nothing(to);
}

/* The response came too late: tries again. */
static void a_request_with_a_response_is_not_retransmitted(void)
{
	int64_t started;

	opened();
	for (uint32_t tid = 20; tid < 40; tid++) {
		started = now_ms();
		ask(tid, 100, 3);
		expect_equal(receive_mad(to, umad, MAD, responder_agent), MAD);
		make_response(umad);
		send_mad(to, responder_agent, umad, MAD, 0, 0);
		expect_equal(receive_mad(from, umad, MAD, requester_agent), MAD);
		if (now_ms() - started < 100)
			break;
		while (umad_poll(to, 300) == 0) /* the retransmissions */
			receive_mad(to, umad, MAD, responder_agent);
	}
	pause_ms(150);
	expect_nothing(to);
	expect_nothing(from);
}

static void without_a_timeout_no_response_is_expected(void)
{
	opened();
	ask(6, 0, 0);
	expect_equal(receive_mad(to, umad, MAD, responder_agent), MAD);
	make_response(umad);
	send_mad(to, responder_agent, umad, MAD, 0, 0);
	/* a request with a response completes */
	ask(7, 20000, 0);
	expect_equal(receive_mad(to, umad, MAD, responder_agent), MAD);
	make_response(umad);
	send_mad(to, responder_agent, umad, MAD, 0, 0);
	expect_equal(receive_mad(from, umad, MAD, requester_agent), MAD);
	expect_equal(tid_of(umad), 7);
	expect_nothing(from);
}

static void a_negative_one_waits_for_ever(void)
{
	opened();
	ask(8, -1, 0);
	expect_equal(receive_mad(to, umad, MAD, responder_agent), MAD);
	expect_equal(umad_poll(from, 300), -ETIMEDOUT);
	make_response(umad);
	send_mad(to, responder_agent, umad, MAD, 0, 0);
	expect_equal(receive_mad(from, umad, MAD, requester_agent), MAD);
	expect_equal(tid_of(umad), 8);
}

static void a_late_or_duplicate_response_is_dropped(void)
{
	opened();
	ask(9, 50, 0);
	receive_timeout(9);
	expect_equal(receive_mad(to, umad, MAD, responder_agent), MAD);
	make_response(umad);
	send_mad(to, responder_agent, umad, MAD, 0, 0);

	ask(10, 20000, 0);
	expect_equal(receive_mad(to, umad, MAD, responder_agent), MAD);
	make_response(umad);
	send_mad(to, responder_agent, umad, MAD, 0, 0);
	/* the kernel accepts no second response before it has sent the first */
	while (umad_send(to, responder_agent, umad, MAD, 0, 0)) {
		expect_equal(errno, EINVAL);
		pause_ms(1);
	}
	expect_equal(receive_mad(from, umad, MAD, requester_agent), MAD);
	expect_equal(tid_of(umad), 10);
	ask(11, 100, 0);
	receive_timeout(11); /* the second copy would have arrived before */
	expect_nothing(from);
}

static void nothing_comes_back_to_an_agent_that_has_gone(void)
{
	opened();
	ask(12, 50, 0);
	expect_equal(umad_unregister(from, requester_agent), 0);
	requester_agent = client(from, 0);
	ask(13, 100, 0);
	receive_timeout(13);
	expect_nothing(from);
}

static void the_other_kernel_responds_to_a_get_that_no_program_serves(void)
{
	int agent, length;

	opened();
	agent = umad_register(from, UNSERVED, 1, 0, NULL);
	expect(agent >= 0);
	for (uint8_t method = METHOD_GET; method <= METHOD_SET; method++) {
		set_mad_of(umad, UNSERVED, method, method);
		set_destination(umad, &there);
		send_mad(from, agent, umad, MAD, 20000, 0);
		length = receive_mad(from, umad, MAD, agent);
		expect_equal(length, MAD);
		expect_equal(method_of(umad), METHOD_GET | RESPONSE);
		expect_equal(status_of(umad), UNSUPPORTED);
	}
	set_mad_of(umad, UNSERVED, METHOD_ANY, 9);
	set_destination(umad, &there);
	send_mad(from, agent, umad, MAD, 100, 0);
	expect_equal(receive_mad(from, umad, MAD, agent), HEADER_ONLY);
	expect_equal(umad_status(umad), ETIMEDOUT);
}

static void a_message_that_nobody_serves_comes_back(void)
{
	opened();
	set_mad(umad, METHOD_SEND, 14);
	set_rmpp(umad);
	set_destination(umad, &there);
	send_mad(from, requester_agent, umad, 3 * MAD, 100, 0);
	receive_timeout(14);
}

static void wait_for_a_message(void)
{
	set_mad(umad, METHOD_ANY, 15);
	set_rmpp(umad);
	set_destination(umad, &there);
	send_mad(from, requester_agent, umad, 3 * MAD, 150, 5);
	receive_mad(to, umad, 4 * MAD, responder_agent);
	receive_timeout(15);
}

static void a_message_that_has_arrived_is_not_sent_again(void)
{
	opened();
	expect_late(wait_for_a_message, "a message of 150 ms with 5 retries, acknowledged",
		    150);
	expect_nothing(to);
}

#define REQUESTS 20 /* more than some kernels allow in flight */

/* The timeout of a request that the kernel holds back begins when the kernel sends it. */
static void each_of_20_sa_requests_times_out(void)
{
	int64_t started, first = 0;
	uint32_t seen = 0;

	opened();
	wait_once(); /* the kernel now knows the neighbour */
	requester_agent = sa_client(from);
	sa_server(to);
	started = now_ms();
	for (uint32_t tid = 0; tid < REQUESTS; tid++) {
		set_sa_get(umad, tid);
		set_destination(umad, &there);
		send_mad(from, requester_agent, umad, MAD, 300, 0);
	}
	for (int i = 0; i < REQUESTS; i++) {
		expect_equal(receive_mad(from, umad, MAD, requester_agent), HEADER_ONLY);
		expect_equal(umad_status(umad), ETIMEDOUT);
		expect(tid_of(umad) < REQUESTS && !(seen & 1U << tid_of(umad)));
		seen |= 1U << tid_of(umad);
		if (i == 0)
			first = now_ms() - started;
	}
	note("300 ms, %d requests: the first is back after %lld ms, the last after %lld ms",
	     REQUESTS, (long long)first, (long long)(now_ms() - started));
	expect_nothing(from);
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(a_request_comes_back_when_its_time_is_over),
		CHECK(it_comes_back_as_it_was_with_24_bytes_of_mad),
		CHECK(retries_send_it_again),
		CHECK(a_request_with_a_response_is_not_retransmitted),
		CHECK(without_a_timeout_no_response_is_expected),
		CHECK(a_negative_one_waits_for_ever),
		CHECK(a_late_or_duplicate_response_is_dropped),
		CHECK(nothing_comes_back_to_an_agent_that_has_gone),
		CHECK(the_other_kernel_responds_to_a_get_that_no_program_serves),
		CHECK(a_message_that_nobody_serves_comes_back),
		CHECK(a_message_that_has_arrived_is_not_sent_again),
		CHECK(each_of_20_sa_requests_times_out),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
