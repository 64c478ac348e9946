/* SPDX-License-Identifier: BSD-2-Clause */

/* A request, its response, and the headers of both. */
#include "check.h"
#include "mads.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/select.h>

static int from, to;                         /* descriptors of the two ports */
static int requester_agent, responder_agent; /* agents on the two descriptors */
static void *umad;

static void opened(void)
{
	from = open_port(&here);
	to = open_port(&there);
	requester_agent = client(from, 0);
	responder_agent = server(to, METHOD_ANY, 0);
	umad = new_umad(MAD);
}

static void ask(uint32_t tid)
{
	set_mad(umad, METHOD_ANY, tid);
	set_destination(umad, &there);
	send_mad(from, requester_agent, umad, MAD, 20000, 0);
}

static void receive_request(void)
{
	expect_equal(receive_mad(to, umad, MAD, responder_agent), MAD);
	expect_equal(umad_status(umad), 0);
	expect_equal(method_of(umad), METHOD_ANY);
}

static void respond(void)
{
	make_response(umad);
	send_mad(to, responder_agent, umad, MAD, 0, 0);
}

static void receive_response(uint32_t tid)
{
	expect_equal(receive_mad(from, umad, MAD, requester_agent), MAD);
	expect_equal(umad_status(umad), 0);
	expect_equal(method_of(umad), METHOD_ANY | RESPONSE);
	expect_equal(tid_of(umad), tid);
}

/* Checks the header that read() returns with a MAD from a port. */
static void expect_header(const struct port *sender)
{
	const struct ib_user_mad *header = umad;

	expect_equal(header->status, 0);
	expect_equal(header->timeout_ms, 0);
	expect_equal(header->retries, 0);
	expect_equal(header->length, umad_size() + MAD);
	expect_equal(be32toh(header->addr.qpn), 1);
	expect_equal(header->addr.qkey, 0);
	expect_equal(be16toh(header->addr.lid), sender->lid);
	expect_equal(header->addr.grh_present, sender->ethernet);
	if (header->addr.grh_present)
		expect_bytes(header->addr.gid, sender->gid, 16);
	expect_equal(umad_get_pkey(umad), 0);
}

static void a_request_and_its_response_arrive(void)
{
	opened();
	fill(umad, DATA, MAD);
	ask(7);
	memset(umad, 0, umad_size() + MAD);
	receive_request();
	expect_equal(tid_of(umad), 7);
	expect_header(&here);
	expect_filled(umad, DATA, MAD);
	respond();
	memset(umad, 0, umad_size() + MAD);
	receive_response(7);
	expect_header(&there);
	expect_filled(umad, DATA, MAD);
}

static void the_upper_half_of_a_transaction_id_is_the_agents(void)
{
	uint32_t first, second;

	opened();
	ask(1);
	receive_request();
	first = tid_high_of(umad);
	respond();
	receive_response(1);
	expect_equal(tid_high_of(umad), first);

	requester_agent = client(from, 0);
	ask(1);
	receive_request();
	second = tid_high_of(umad);
	expect(first != second);
	respond();
	receive_response(1); /* and the second agent receives the response */
}

static void a_grh_comes_with_its_sender(void)
{
	const struct ib_user_mad *header;

	opened();
	header = umad;
	set_mad(umad, METHOD_ANY, 3);
	set_grh(umad, &there);
	send_mad(from, requester_agent, umad, MAD, 20000, 0);
	receive_request();
	expect_equal(header->addr.grh_present, 1);
	expect_bytes(header->addr.gid, here.gid, 16);
	expect_equal(header->addr.gid_index, 0);
	if (!there.ethernet) /* of a response, not of this packet */
		expect_equal(header->addr.hop_limit, 255);
	respond();
	receive_response(3);
	expect_bytes(header->addr.gid, there.gid, 16);
}

static void a_port_reaches_itself(void)
{
	int local;

	opened();
	local = server(from, METHOD_ANY, 0);
	set_mad(umad, METHOD_ANY, 4);
	set_destination(umad, &here);
	send_mad(from, requester_agent, umad, MAD, 20000, 0);
	expect_equal(receive_mad(from, umad, MAD, local), MAD);
	make_response(umad);
	send_mad(from, local, umad, MAD, 0, 0);
	receive_response(4);
}

/* MADs have the Q_Key of the sending queue pair, whatever the program writes. */
static void the_q_key_of_a_program_is_not_sent(void)
{
	opened();
	set_mad(umad, METHOD_ANY, 6);
	set_destination(umad, &there);
	umad_get_mad_addr(umad)->qkey = htobe32(7);
	send_mad(from, requester_agent, umad, MAD, 20000, 0);
	receive_request();
	make_response(umad);
	umad_get_mad_addr(umad)->qkey = 0;
	send_mad(to, responder_agent, umad, MAD, 0, 0);
	receive_response(6);
}

static void a_short_mad_is_filled_up_with_zeros(void)
{
	static const uint8_t zeros[MAD];

	opened();
	set_mad(umad, METHOD_ANY, 5);
	set_destination(umad, &there);
	fill(umad, DATA, MAD);
	send_mad(from, requester_agent, umad, DATA + 2, 20000, 0);
	receive_request();
	expect_filled(umad, DATA, DATA + 2);
	expect_bytes((uint8_t *)umad_get_mad(umad) + DATA + 2, zeros, MAD - DATA - 2);
}

static void a_method_that_no_one_asked_for_does_not_come(void)
{
	int length = MAD;

	opened();
	set_mad(umad, METHOD_SEND, 6);
	set_destination(umad, &there);
	send_mad(from, requester_agent, umad, MAD, 0, 0);
	ask(7); /* MADs stay in order: the first one would be here by now */
	receive_request();
	expect_equal(tid_of(umad), 7);
	expect_equal(umad_recv(to, umad, &length, 0), -EWOULDBLOCK);
}

static void each_of_two_programs_gets_its_own_responses(void)
{
	int other_fd, other_agent, first_fd, first_agent;

	opened();
	first_fd = from;
	first_agent = requester_agent;
	other_fd = open_port(&here);
	other_agent = client(other_fd, 0);
	ask(9);
	from = other_fd;
	requester_agent = other_agent;
	ask(9); /* the same TID on another descriptor is another transaction */
	for (int i = 0; i < 2; i++) {
		receive_request();
		respond();
	}
	receive_response(9);
	from = first_fd;
	requester_agent = first_agent;
	receive_response(9);
}

static void a_transaction_in_flight_is_not_begun_again(void)
{
	opened();
	ask(11);
	expect_equal(umad_send(from, requester_agent, umad, MAD, 20000, 0), -EIO);
	expect_equal(errno, EINVAL);
	expect_equal(umad_send(from, requester_agent, umad, MAD, 0, 0), -EIO);
	expect_equal(errno, EINVAL);
	receive_request();
	respond();
	receive_response(11);
	ask(11);
	receive_request();
	respond();
	receive_response(11);
}

static void another_agents_transaction_may_have_the_same_id(void)
{
	int first;

	opened();
	first = requester_agent;
	ask(12);
	requester_agent = client(from, 0);
	ask(12);
	receive_request();
	respond();
	receive_request();
	respond();
	requester_agent = first;
	receive_response(12);
	requester_agent = first + 1;
	receive_response(12);
}

/*
 * MADs may change their order in the network, but completed ones are read in order of
 * completion.
 */
static void what_is_over_first_is_read_first(void)
{
	opened();
	for (uint32_t tid = 0; tid < 3; tid++) {
		set_mad(umad, METHOD_SEND, tid); /* no program receives it */
		set_destination(umad, &there);
		send_mad(from, requester_agent, umad, MAD, 150 - (int)tid * 50, 0);
	}
	for (uint32_t tid = 3; tid-- > 0;) {
		receive_mad(from, umad, MAD, requester_agent);
		expect_equal(umad_status(umad), ETIMEDOUT);
		expect_equal(tid_of(umad), tid);
	}
}

static void an_unread_response_outlives_its_agent(void)
{
	opened();
	ask(13);
	receive_request();
	respond();
	expect_equal(umad_poll(from, 20000), 0);
	expect_equal(umad_unregister(from, requester_agent), 0);
	receive_response(13);
}

static void what_is_too_small_a_buffer_takes_nothing_away(void)
{
	size_t whole;

	opened();
	whole = umad_size() + MAD;
	expect_errno(read(from, umad, whole), EAGAIN);
	expect_errno(read(from, umad, umad_size() - 1), EINVAL);
	ask(14);
	receive_request();
	respond();
	expect_equal(umad_poll(from, 20000), 0);
	expect_errno(read(from, umad, umad_size() - 1), EINVAL);
	expect_errno(read(from, umad, whole - 1), EINVAL);
	receive_response(14);
}

static void poll_select_and_epoll_tell_of_a_response(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct timeval soon = {.tv_sec = 20};
	struct pollfd pollfd;
	int epoll = epoll_create1(0);
	fd_set readable;

	opened();
	pollfd = (struct pollfd){.fd = from, .events = POLLIN | POLLOUT};
	expect_equal(poll(&pollfd, 1, 0), 1);
	expect_equal(pollfd.revents, POLLOUT);
	expect_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, from, &event), 0);
	expect_equal(epoll_wait(epoll, &event, 1, 0), 0);
	ask(15);
	receive_request();
	respond();
	expect_equal(epoll_wait(epoll, &event, 1, 20000), 1);
	expect_equal(poll(&pollfd, 1, 0), 1);
	expect_equal(pollfd.revents, POLLIN | POLLOUT);
	FD_ZERO(&readable);
	FD_SET(from, &readable);
	expect_equal(select(from + 1, &readable, NULL, NULL, &soon), 1);
}

static void send_in_child(void *unused)
{
	(void)unused;
	ask(16);
}

static void a_child_and_a_copy_have_the_same_device(void)
{
	int copy;

	opened();
	copy = dup(from);
	expect_equal(umad_close_port(from), 0);
	from = copy;
	expect_child(start_child(send_in_child, NULL));
	receive_request();
	respond();
	receive_response(16);
}

static void respond_later(void *unused)
{
	(void)unused;
	receive_request();
	pause_ms(100);
	respond();
}

static void a_read_that_may_block_waits_for_a_response(void)
{
	int child;

	opened();
	child = start_child(respond_later, NULL);
	ask(17);
	expect_equal(fcntl(from, F_SETFL, 0), 0);
	expect_equal(read(from, umad, umad_size() + MAD), umad_size() + MAD);
	expect_equal(tid_of(umad), 17);
	expect_child(child);
}

#define REQUESTS 20 /* more than some kernels allow in flight */

/* Collects responses until none arrives for a while. */
static int receive_requests(void *requests[REQUESTS])
{
	int count = 0;

	while (count < REQUESTS && umad_poll(to, 500) == 0) {
		requests[count] = new_umad(MAD);
		receive_mad(to, requests[count++], MAD, responder_agent);
	}
	return count;
}

static void each_of_20_sa_requests_has_its_response(void)
{
	void *requests[REQUESTS];
	uint32_t seen = 0;
	int count, i;

	opened();
	requester_agent = sa_client(from);
	responder_agent = sa_server(to);
	for (uint32_t tid = 0; tid < REQUESTS; tid++) {
		set_sa_get(umad, tid);
		set_destination(umad, &there);
		send_mad(from, requester_agent, umad, MAD, 100000, 0);
	}
	count = receive_requests(requests);
	if (!count)
		cannot("requests to an SA reach no agent of this port");
	note("%d of %d requests are in flight at once", count, REQUESTS);
	for (i = 0; i < count; i++) {
		make_response(requests[i]);
		send_mad(to, responder_agent, requests[i], MAD, 0, 0);
	}
	for (; i < REQUESTS; i++) { /* the other responses follow */
		receive_mad(to, umad, MAD, responder_agent);
		respond();
	}
	for (i = 0; i < REQUESTS; i++) {
		receive_mad(from, umad, MAD, requester_agent);
		expect_equal(umad_status(umad), 0);
		expect(tid_of(umad) < REQUESTS && !(seen & 1U << tid_of(umad)));
		seen |= 1U << tid_of(umad);
	}
}

/* Classes other than those of the SA and of SMPs have no limit. */
static void each_of_300_requests_of_a_vendor_is_in_flight(void)
{
	static bool arrived[300];
	uint32_t tid;

	opened();
	for (tid = 0; tid < 300; tid++)
		ask(tid);
	for (int i = 0; i < 300; i++) {
		receive_request();
		tid = tid_of(umad);
		expect(tid < 300 && !arrived[tid]);
		arrived[tid] = true;
	}
}

#define PERF_MGT      0x04
#define PORT_COUNTERS 0x12
#define NO_ATTRIBUTE  0x77 /* an attribute that the class does not have */
#define ATTRIBUTE_END 17   /* the lower byte of the attribute's ID */

static void ask_for_attribute(uint8_t attribute, int timeout_ms)
{
	static uint32_t tid;

	set_mad_of(umad, PERF_MGT, METHOD_GET, ++tid);
	((uint8_t *)umad_get_mad(umad))[ATTRIBUTE_END] = attribute;
	set_destination(umad, &there);
	send_mad(from, requester_agent, umad, MAD, timeout_ms, 0);
}

/* A device may have an own agent for this class. */
static void a_request_of_performance_management_reaches_its_agent(void)
{
	long methods[16 / sizeof(long)] = {1L << METHOD_GET};
	int status, length = MAD;

	opened();
	requester_agent = umad_register(from, PERF_MGT, 1, 0, NULL);
	responder_agent = umad_register(to, PERF_MGT, 1, 0, methods);
	expect(requester_agent >= 0 && responder_agent >= 0);
	ask_for_attribute(PORT_COUNTERS, 1000);
	receive_mad(from, umad, MAD, requester_agent);
	status = umad_status(umad);
	if (umad_recv(to, umad, &length, 0) == responder_agent) {
		expect_equal(method_of(umad), METHOD_GET);
		return;
	}
	if (status == 0)
		cannot("the device itself responds to this class");
	expect_equal(status, ETIMEDOUT);
	ask_for_attribute(NO_ATTRIBUTE, 1000);
	expect_equal(receive_mad(to, umad, MAD, responder_agent), MAD);
	if (((uint8_t *)umad_get_mad(umad))[ATTRIBUTE_END] == PORT_COUNTERS)
		return; /* the response was only late */
	not_on_this_kernel("a Get of PortCounters reaches no agent and has no response");
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(a_request_and_its_response_arrive),
		CHECK(the_upper_half_of_a_transaction_id_is_the_agents),
		CHECK(a_grh_comes_with_its_sender),
		CHECK(a_port_reaches_itself),
		CHECK(the_q_key_of_a_program_is_not_sent),
		CHECK(a_short_mad_is_filled_up_with_zeros),
		CHECK(a_method_that_no_one_asked_for_does_not_come),
		CHECK(each_of_two_programs_gets_its_own_responses),
		CHECK(a_transaction_in_flight_is_not_begun_again),
		CHECK(another_agents_transaction_may_have_the_same_id),
		CHECK(what_is_over_first_is_read_first),
		CHECK(an_unread_response_outlives_its_agent),
		CHECK(what_is_too_small_a_buffer_takes_nothing_away),
		CHECK(poll_select_and_epoll_tell_of_a_response),
		CHECK(a_child_and_a_copy_have_the_same_device),
		CHECK(a_read_that_may_block_waits_for_a_response),
		CHECK(each_of_20_sa_requests_has_its_response),
		CHECK(each_of_300_requests_of_a_vendor_is_in_flight),
		CHECK(a_request_of_performance_management_reaches_its_agent),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
