/* SPDX-License-Identifier: BSD-2-Clause */

/* Programs with their own RMPP see every segment, and the other side sees no difference. */
#include "bytes.h"
#include "check.h"
#include "mads.h"

#include <string.h>

#define VERSION   24
#define TYPE      25
#define FLAGS     26
#define NUMBER    28
#define PAYLOAD   32
#define TYPE_DATA 1
#define TYPE_ACK  2
#define ACTIVE    1
#define FIRST     2
#define LAST      4
#define CLASS_END (DATA - 36)
#define MORE_MS   3000 /* a timeout of more than 2 s */
#define SEGMENTS  3
#define BYTES     (2 * SEGMENT + 50) /* of data */

static int from, to;
static void *umad;

static uint8_t *mad_bytes(void)
{
	return umad_get_mad(umad);
}

static int own_rmpp_agent(int fd, uint64_t methods)
{
	struct umad_reg_attr attr = {.mgmt_class = CLASS,
				     .mgmt_class_version = 1,
				     .flags = UMAD_USER_RMPP,
				     .method_mask = {methods},
				     .oui = OUI,
				     .rmpp_version = 1};
	uint32_t id;

	expect_equal(umad_register2(fd, &attr, &id), 0);
	return (int)id;
}

static void opened(void)
{
	from = open_port(&here);
	to = open_port(&there);
	umad = new_umad(DATA + SEGMENTS * SEGMENT);
}

/* The number of a segment. Segments may change their order in the network. */
static uint32_t receive_segment(int agent)
{
	uint32_t number;

	expect_equal(receive_mad(to, umad, MAD, agent), MAD);
	expect_equal(mad_bytes()[TYPE], TYPE_DATA);
	number = get32(mad_bytes() + NUMBER);
	expect_equal(mad_bytes()[FLAGS] & (ACTIVE | FIRST | LAST),
		     ACTIVE | (number == 1 ? FIRST : 0) | (number == SEGMENTS ? LAST : 0));
	if (number == 1)
		expect_equal(get32(mad_bytes() + PAYLOAD), BYTES + SEGMENTS * CLASS_END);
	if (number == SEGMENTS)
		expect_equal(get32(mad_bytes() + PAYLOAD), BYTES - 2 * SEGMENT + CLASS_END);
	return number;
}

/* Acknowledges a segment, and sets the end of the sender's window. */
static void acknowledge(int agent, uint32_t number, uint32_t window_end)
{
	make_response(umad);
	memset(mad_bytes() + DATA, 0, SEGMENT);
	mad_bytes()[TYPE] = TYPE_ACK;
	mad_bytes()[FLAGS] = ACTIVE;
	put32(mad_bytes() + NUMBER, number);
	put32(mad_bytes() + PAYLOAD, window_end);
	send_mad(to, agent, umad, MAD, 0, 0);
}

static void a_program_can_receive_segment_by_segment(void)
{
	int sender, receiver;

	opened();
	sender = client(from, 1);
	receiver = own_rmpp_agent(to, 1ULL << METHOD_ANY);
	set_mad(umad, METHOD_ANY, 1);
	set_rmpp(umad);
	set_destination(umad, &there);
	fill(umad, DATA, DATA + BYTES);
	send_mad(from, sender, umad, DATA + BYTES, 20000, 5);

	expect_equal(receive_segment(receiver), 1);
	expect_filled(umad, DATA, MAD);
	acknowledge(receiver, 1, SEGMENTS);
	expect_equal(receive_segment(receiver) + receive_segment(receiver), 2 + 3);
	acknowledge(receiver, 3, SEGMENTS);
}

static void send_message(int sender, int timeout_ms, int retries)
{
	set_mad(umad, METHOD_ANY, 1);
	set_rmpp(umad);
	set_destination(umad, &there);
	fill(umad, DATA, DATA + BYTES);
	send_mad(from, sender, umad, DATA + BYTES, timeout_ms, retries);
}

/* With 1 retry, the retry of each segment is used. The sender waits for 2 s each time. */
static void each_acknowledgement_restarts_the_retries(void)
{
	int sender, receiver;

	opened();
	sender = client(from, 1);
	receiver = own_rmpp_agent(to, 1ULL << METHOD_ANY);
	send_message(sender, MORE_MS, 1);
	for (uint32_t number = 1; number <= SEGMENTS; number++) {
		expect_equal(receive_segment(receiver), number);
		expect_equal(receive_segment(receiver), number); /* again, after the timeout */
		acknowledge(receiver, number, number + 1);
	}
}

/*
 * A sender with a timeout of 1 ms to 2 s has no timer after an acknowledgement that does not
 * end the message.
 */
static void a_short_timeout_ends_with_the_first_acknowledgement(void)
{
	int sender, receiver;

	opened();
	sender = client(from, 1);
	receiver = own_rmpp_agent(to, 1ULL << METHOD_ANY);
	send_message(sender, 400, 1);
	expect_equal(receive_segment(receiver), 1);
	expect_equal(receive_segment(receiver), 1);
	acknowledge(receiver, 1, 2);
	expect_equal(receive_segment(receiver), 2);
	if (umad_poll(to, 3000) == 0)
		not_on_this_kernel("the second segment is sent again");
	expect_equal(umad_poll(from, 0), -ETIMEDOUT); /* the message does not time out */
}

/* The timeout of the message is longer than receive_mad() waits. */
static void a_message_without_retries_times_out_before_its_timeout(void)
{
	int sender, receiver;

	opened();
	sender = client(from, 1);
	receiver = own_rmpp_agent(to, 1ULL << METHOD_ANY);
	send_message(sender, 100000, 0);
	expect_equal(receive_segment(receiver), 1);
	receive_mad(from, umad, MAD, sender);
	expect_equal(umad_status(umad), ETIMEDOUT);
}

/* A response of several segments is being sent until it is acknowledged. */
static void a_response_that_is_being_sent_is_not_begun_again(void)
{
	int sender, error;

	opened();
	sender = server(from, METHOD_ANY, 1);
	set_mad(umad, METHOD_ANY | RESPONSE, 1);
	set_rmpp(umad);
	set_destination(umad, &there);
	fill(umad, DATA, DATA + BYTES);
	send_mad(from, sender, umad, DATA + BYTES, 0, 5);
	error = umad_send(from, sender, umad, DATA + BYTES, 0, 5);
	if (error) {
		expect_equal(error, -EIO);
		expect_equal(errno, EINVAL);
		return;
	}
	cannot("the device accepts a second response, and drops it");
}

static void send_segment(int agent, uint32_t number)
{
	size_t start = (number - 1) * SEGMENT;
	size_t bytes = number == SEGMENTS ? BYTES - start : SEGMENT;
	uint8_t *whole = allocate(umad_size() + DATA + BYTES);

	fill(whole, DATA, DATA + BYTES);
	memset(mad_bytes(), 0, MAD);
	set_mad(umad, METHOD_ANY, 2);
	set_destination(umad, &there);
	memcpy(mad_bytes() + DATA, (uint8_t *)umad_get_mad(whole) + DATA + start, bytes);
	mad_bytes()[VERSION] = 1;
	mad_bytes()[TYPE] = TYPE_DATA;
	mad_bytes()[FLAGS] =
		(uint8_t)(ACTIVE | (number == 1 ? FIRST : 0) | (number == SEGMENTS ? LAST : 0));
	put32(mad_bytes() + NUMBER, number);
	if (number == 1)
		put32(mad_bytes() + PAYLOAD, BYTES + SEGMENTS * CLASS_END);
	if (number == SEGMENTS)
		put32(mad_bytes() + PAYLOAD, (uint32_t)(bytes + CLASS_END));
	send_mad(from, agent, umad, MAD, 0, 0);
	free(whole);
}

static void receive_acknowledgement(int agent, uint32_t number)
{
	expect_equal(receive_mad(from, umad, MAD, agent), MAD);
	expect_equal(umad_status(umad), 0);
	expect_equal(mad_bytes()[TYPE], TYPE_ACK);
	expect_equal(get32(mad_bytes() + NUMBER), number);
	expect(get32(mad_bytes() + PAYLOAD) >= number);
}

static void a_program_can_send_segment_by_segment(void)
{
	int sender, receiver;

	opened();
	sender = own_rmpp_agent(from, 0);
	receiver = server(to, METHOD_ANY, 1);
	send_segment(sender, 1);
	receive_acknowledgement(sender, 1);
	send_segment(sender, 2);
	send_segment(sender, 3);
	expect_equal(receive_mad(to, umad, DATA + BYTES, receiver), DATA + BYTES);
	expect_filled(umad, DATA, DATA + BYTES);
	receive_acknowledgement(sender, SEGMENTS);
}

/* They are equal in all fields that the kernel compares. */
static void segments_of_one_transaction_are_no_duplicates(void)
{
	int sender;

	opened();
	sender = own_rmpp_agent(from, 0);
	for (uint32_t number = 1; number <= SEGMENTS; number++)
		send_segment(sender, number);
}

static void longer_than_a_mad_is_too_long_for_it(void)
{
	int sender;

	opened();
	sender = own_rmpp_agent(from, 0);
	set_mad(umad, METHOD_ANY, 3);
	set_rmpp(umad);
	set_destination(umad, &there);
	expect_equal(umad_send(from, sender, umad, MAD + 1, 0, 0), -EIO);
	expect_equal(errno, EINVAL);
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(a_program_can_receive_segment_by_segment),
		CHECK(each_acknowledgement_restarts_the_retries),
		CHECK(a_short_timeout_ends_with_the_first_acknowledgement),
		CHECK(a_message_without_retries_times_out_before_its_timeout),
		CHECK(a_response_that_is_being_sent_is_not_begun_again),
		CHECK(a_program_can_send_segment_by_segment),
		CHECK(segments_of_one_transaction_are_no_duplicates),
		CHECK(longer_than_a_mad_is_too_long_for_it),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
