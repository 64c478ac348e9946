/* SPDX-License-Identifier: BSD-2-Clause */

/* Messages of many MADs: the kernel segments and reassembles them (IBA 13.6). */
#include "bytes.h"
#include "check.h"
#include "mads.h"

#include <string.h>
#include <unistd.h>

#define LARGEST   (1 << 20) /* bytes of data; some messages have 1 more */
#define ROOM      (DATA + LARGEST + 1)
#define CLASS_END (DATA - 36) /* bytes of the class's header behind the RMPP header */
#define FLAGS     26
#define NUMBER    28
#define PAYLOAD   32
#define SINGLE    0x07 /* active, first, last */
#define FIRST     0x03

static int from, to, requester_agent, responder_agent;
static void *umad;

static void opened(void)
{
	from = open_port(&here);
	to = open_port(&there);
	requester_agent = client(from, 1);
	responder_agent = server(to, METHOD_ANY, 1);
	umad = new_umad(ROOM);
}

static uint32_t number_at(size_t offset)
{
	return get32((uint8_t *)umad_get_mad(umad) + offset);
}

static void ask(uint32_t tid, size_t data)
{
	memset(umad_get_mad(umad), 0, MAD);
	set_mad(umad, METHOD_ANY, tid);
	set_rmpp(umad);
	set_destination(umad, &there);
	fill(umad, DATA, DATA + data);
	send_mad(from, requester_agent, umad, DATA + data, 20000, 0);
}

static void expect_message(size_t data, int length)
{
	size_t segments = data ? (data + SEGMENT - 1) / SEGMENT : 1;

	expect_equal(umad_status(umad), 0);
	expect_equal(length, (DATA + data));
	expect_filled(umad, DATA, DATA + data);
	expect_equal(((uint8_t *)umad_get_mad(umad))[FLAGS] & SINGLE,
		     segments == 1 ? SINGLE : FIRST);
	expect_equal(number_at(NUMBER), 1);
	expect_equal(number_at(PAYLOAD), (data + segments * CLASS_END));
}

/* The message is sent, and the response has the same data. */
static void send_to_and_fro(size_t data)
{
	static uint32_t tid;

	ask(++tid, data);
	memset(umad, 0, umad_size() + DATA + data);
	expect_message(data, receive_mad(to, umad, ROOM, responder_agent));
	make_response(umad);
	send_mad(to, responder_agent, umad, DATA + data, 0, 0);
	memset(umad, 0, umad_size() + DATA + data);
	expect_message(data, receive_mad(from, umad, ROOM, requester_agent));
	expect_equal(tid_of(umad), tid);
}

/* The lengths at the end of each of these segments, and one byte less and more. */
static void around(size_t first, size_t last)
{
	for (size_t segments = first; segments <= last; segments++) {
		send_to_and_fro(segments * SEGMENT - 1);
		send_to_and_fro(segments * SEGMENT);
		send_to_and_fro(segments * SEGMENT + 1);
	}
}

static void messages_of_0_to_300_bytes(void)
{
	size_t step = environment_is_brief() ? 50 : 1;

	opened();
	for (size_t data = 0; data <= 300; data += step)
		send_to_and_fro(data);
}

static void messages_of_1_to_50_segments(void)
{
	opened();
	around(1, environment_is_long() ? 50 : environment_is_brief() ? 3 : 10);
}

/* A receiver's window is 64 segments, in this simulator and in Linux. */
static void messages_of_51_to_100_segments(void)
{
	opened();
	if (environment_is_long())
		around(51, 100);
	else if (environment_is_brief())
		around(64, 64);
	else
		around(63, 65);
}

static void messages_of_101_to_150_segments(void)
{
	opened();
	if (environment_is_long())
		around(101, 150);
	else
		around(129, 129);
}

static void messages_of_151_to_200_segments(void)
{
	opened();
	if (environment_is_long())
		around(151, 200);
	else
		around(193, 193);
}

static void messages_of_a_megabyte(void)
{
	opened();
	if (environment_is_brief()) {
		send_to_and_fro(LARGEST / 8);
		return;
	}
	send_to_and_fro(LARGEST);
	if (!environment_is_long())
		return;
	send_to_and_fro(LARGEST + 1);
	send_to_and_fro(LARGEST - 1);
}

static void what_does_not_fit_stays_and_says_how_long_it_is(void)
{
	size_t data = 5 * SEGMENT + 7;
	int length = MAD;

	opened();
	ask(1, data);
	expect_equal(umad_poll(to, 20000), 0);
	memset(umad, 0, umad_size() + MAD);
	expect_errno(read(to, umad, umad_size() + MAD - 1), EINVAL);
	expect_equal(umad_recv(to, umad, &length, 20000), -ENOSPC);
	expect_equal(length, (DATA + data));
	expect_filled(umad, DATA, MAD); /* the kernel returns the first segment */
	expect_equal(tid_of(umad), 1);
	length = (int)(DATA + data - 1);
	expect_equal(umad_recv(to, umad, &length, 20000), -ENOSPC);
	expect_equal(length, (DATA + data));
	expect_message(data, receive_mad(to, umad, DATA + data, responder_agent));
	length = MAD;
	expect_equal(umad_recv(to, umad, &length, 0), -EWOULDBLOCK);
}

static void a_message_of_one_segment_is_as_short_as_it_is(void)
{
	opened();
	ask(1, 3);
	expect_equal(umad_poll(to, 20000), 0);
	expect_errno(read(to, umad, umad_size() + DATA + 2), EINVAL);
	expect_equal(read(to, umad, umad_size() + DATA + 3), umad_size() + DATA + 3);
	expect_message(3, DATA + 3);
}

static void a_response_may_be_longer_than_its_request(void)
{
	size_t data = 10 * SEGMENT;

	opened();
	set_mad(umad, METHOD_ANY, 1);
	set_destination(umad, &there);
	send_mad(from, requester_agent, umad, MAD, 20000, 0);
	expect_equal(receive_mad(to, umad, MAD, responder_agent), MAD);
	make_response(umad);
	set_rmpp(umad);
	fill(umad, DATA, DATA + data);
	send_mad(to, responder_agent, umad, DATA + data, 0, 0);
	expect_message(data, receive_mad(from, umad, ROOM, requester_agent));
}

#define SA_DATA      56
#define SA_END       (SA_DATA - 36) /* bytes of its header behind the RMPP header */
#define SA_SEGMENT   (MAD - SA_DATA)
#define SA_GET_TABLE 0x12

/* Of each segment, the part of the class's header behind the RMPP header counts, too. */
static void the_payload_of_the_sa_has_20_bytes_more_for_each_segment(void)
{
	long methods[16 / sizeof(long)] = {1L << SA_GET_TABLE};
	size_t data = 3 * SA_SEGMENT + 8;

	opened();
	requester_agent = umad_register(from, 3, 2, 1, NULL);
	responder_agent = umad_register(to, 3, 2, 1, methods);
	expect(requester_agent >= 0 && responder_agent >= 0);
	set_mad_of(umad, 3, SA_GET_TABLE, 1);
	((uint8_t *)umad_get_mad(umad))[2] = 2; /* the class's version */
	set_destination(umad, &there);
	send_mad(from, requester_agent, umad, MAD, 20000, 0);
	expect_equal(receive_mad(to, umad, MAD, responder_agent), MAD);
	make_response(umad);
	set_rmpp(umad);
	fill(umad, SA_DATA, SA_DATA + data);
	send_mad(to, responder_agent, umad, SA_DATA + data, 0, 0);
	memset(umad, 0, umad_size() + SA_DATA + data);
	expect_equal(receive_mad(from, umad, ROOM, requester_agent), SA_DATA + data);
	expect_filled(umad, SA_DATA, SA_DATA + data);
	expect_equal(number_at(PAYLOAD), data + 4 * SA_END);
}

static void many_messages_at_once_do_not_mix(void)
{
	static const size_t data[] = {4000, 12345, 100, 30000, SEGMENT, 7777, 1, 20000};
	size_t count = sizeof(data) / sizeof(data[0]);
	uint32_t seen = 0;

	opened();
	for (uint32_t tid = 0; tid < count; tid++)
		ask(tid, data[tid]);
	for (size_t i = 0; i < count; i++) {
		int length = receive_mad(to, umad, ROOM, responder_agent);
		uint32_t tid = tid_of(umad);

		expect(tid < count && !(seen & 1U << tid));
		seen |= 1U << tid;
		expect_message(data[tid], length);
	}
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(messages_of_0_to_300_bytes),
		CHECK(messages_of_1_to_50_segments),
		CHECK(messages_of_51_to_100_segments),
		CHECK(messages_of_101_to_150_segments),
		CHECK(messages_of_151_to_200_segments),
		CHECK(messages_of_a_megabyte),
		CHECK(what_does_not_fit_stays_and_says_how_long_it_is),
		CHECK(a_message_of_one_segment_is_as_short_as_it_is),
		CHECK(a_response_may_be_longer_than_its_request),
		CHECK(the_payload_of_the_sa_has_20_bytes_more_for_each_segment),
		CHECK(many_messages_at_once_do_not_mix),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
