/* SPDX-License-Identifier: BSD-2-Clause */

/* Limits of requests in flight: turns of SMPs and GMPs, and redirections. */

#define MANY 200
#include "async_fixture.h"
#include "mad/probe.h"
#include "test.h"

FIXTURE(async_setup, async_teardown);

#define NODE_A  1
#define NODE_B  2
#define LIMIT_B 4

static uint64_t ids[MANY];

/* The request n has the data n + 1, for any LID. */
static void submit_to(ib_rpc_t rpc, int lid, int n)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {(uint8_t)(n + 1)};
	ib_portid_t to = to_lid(lid);

	assert_int_equal(mad_async_submit(async, &rpc, &to, data, sizeof(data), note,
					  &outcomes[n], &ids[n]),
			 0);
}

static int lid_of(const struct device_packet *packet)
{
	return be16toh(packet->header.addr.lid);
}

/* --- SMPs and GMPs -------------------------------------------------------------- */

struct turns {
	unsigned smps; /* sent since the last GMP */
	unsigned longest;
	unsigned gmps;
};

/* Responds at once, and counts in arg. */
static int count_turns(const struct device_packet *packet, void *arg)
{
	struct turns *turns = arg;

	if (packet->mad[1] == IB_SMI_CLASS) {
		turns->smps++;
	} else {
		turns->smps = 0;
		turns->gmps++;
	}
	if (turns->smps > turns->longest)
		turns->longest = turns->smps;
	device_respond(packet, 0, 0, NULL, 0);
	return 0;
}

/* There are always more queued SMPs than one call sends. */
static void expect_turns(void)
{
	const int smps = 5000, gmps = 2000;
	ib_rpc_t smp = get_request(), gmp = set_request();
	ib_portid_t to = to_lid(0);
	struct turns turns = {0};

	device_forget_packets();
	device_on_write(count_turns, &turns);
	for (int i = 0; i < smps + gmps; i++) {
		to.lid = 1 + i;
		assert_int_equal(mad_async_submit(async, i < smps ? &smp : &gmp, &to, NULL, 0,
						  note, outcomes, NULL),
				 0);
	}
	turns.longest = 0;
	while (turns.gmps < (unsigned)gmps)
		assert_true(mad_async_process(async) >= 0);
	print_message("%u SMPs between two GMPs\n", turns.longest);
	assert_in_range(turns.longest, 0, 200);
	mad_async_wait(async, -1);
}

TEST(queued_smps_do_not_hold_gmps_up)
{
	expect_turns();
	/* each call reads as many responses as it sends requests */
	mad_port_set(port, MAD_PORT_SMP_WINDOW, 128);
	expect_turns();
	mad_port_set(port, MAD_PORT_SMP_WINDOW, 64);
	expect_turns();
}

/* --- redirections --------------------------------------------------------------- */

static struct {
	unsigned in_flight, most, to_b;
} b;

static void redirect_to_b(const struct device_packet *packet)
{
	uint8_t info[72] = {0};

	mad_set_field(info, 0, IB_CPI_REDIRECT_LID_F, NODE_B);
	mad_set_field(info, 0, IB_CPI_REDIRECT_QP_F, 1);
	device_respond(packet, IB_MAD_STS_REDIRECT, IB_PC_DATA_OFFS, info, sizeof(info));
}

/* All nodes redirect to node B; the test responds for B. */
static int redirect_all(const struct device_packet *packet, void *arg)
{
	(void)arg;
	if (lid_of(packet) != NODE_B) {
		redirect_to_b(packet);
		return 0;
	}
	b.to_b++;
	if (++b.in_flight > b.most)
		b.most = b.in_flight;
	return 0;
}

static void submit_redirected(int count)
{
	memset(&b, 0, sizeof(b));
	device_on_write(redirect_all, NULL);
	assert_int_equal(mad_port_set(port, MAD_PORT_GMP_WINDOW, 1000), 0);
	assert_int_equal(mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, LIMIT_B), 0);
	for (int i = 0; i < count; i++)
		submit_to(set_request(), i % 2 ? 100 + i : NODE_A, i);
}

/* Processes redirections until each request is in flight to B or queued for it. */
static void redirect_and_park(int count)
{
	submit_redirected(count);
	for (int i = 0; i < count; i++)
		assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(b.in_flight, LIMIT_B);
	assert_int_equal(device_written(), count + LIMIT_B);
}

TEST(a_redirect_s_target_is_a_destination)
{
	int completed = 0;

	redirect_and_park(MANY);
	for (unsigned n = 0; completed < MANY; n++) {
		if (lid_of(device_packet(n)) != NODE_B)
			continue;
		b.in_flight--;
		device_respond(device_packet(n), 0, 0, NULL, 0);
		completed += mad_async_process(async);
		stats_of(async);
	}
	assert_int_equal(b.most, LIMIT_B);
	assert_int_equal(b.to_b, MANY);
	expect_all(MANY, 0);
	assert_int_equal(device_written(), 2 * MANY);
}

/* The limit of the first destination does not hold back a redirected request. */
TEST(a_redirected_request_is_no_longer_in_flight_to_the_first_node)
{
	redirect_and_park(LIMIT_B);
	for (int i = 0; i < LIMIT_B; i++)
		submit_to(set_request(), NODE_A, LIMIT_B + i);
	assert_int_equal(device_written(), 3 * LIMIT_B);
}

TEST(a_redirected_request_may_be_cancelled_while_it_is_queued)
{
	redirect_and_park(20);
	/* in flight to B, and queued for it */
	for (int i = 0; i < 20; i += 2)
		assert_int_equal(mad_async_cancel(async, ids[i]), 0);
	assert_int_equal(stats_of(async).in_flight, 20);
	for (unsigned n = 0; stats_of(async).completed < 20; n++) {
		assert_true(mad_async_process(async) >= 0);
		if (n < device_written() && lid_of(device_packet(n)) == NODE_B)
			device_respond(device_packet(n), 0, 0, NULL, 0);
	}
	for (int i = 0; i < 20; i++) {
		assert_int_equal(outcomes[i].calls, 1);
		assert_int_equal(outcomes[i].error, i % 2 ? 0 : -ECANCELED);
	}
}

TEST(an_engine_may_end_while_redirected_requests_are_queued)
{
	redirect_and_park(50);
	mad_async_free(async);
	async = NULL;
	expect_all(50, -ECANCELED);
	assert_int_equal(device_written(), 50 + LIMIT_B);
}

TEST(a_device_may_go_while_redirected_requests_are_queued)
{
	redirect_and_park(50);
	device_remove();
	assert_int_equal(mad_async_wait(async, -1), 50);
	expect_all(50, -ENODEV);
	assert_int_equal(stats_of(async).in_flight, 0);
}

TEST(a_port_may_be_closed_while_redirected_requests_are_queued)
{
	struct ibmad_port *first = port, *second;
	struct mad_async *first_engine = async;
	int classes[] = {IB_PERFORMANCE_CLASS};

	second = port = mad_rpc_open_port(NULL, 0, classes, 1);
	assert_non_null(port);
	mad_rpc_set_timeout(port, LONG_MS);
	set_late_after(LONG_MS * 1000);
	async = mad_async_create(port);
	redirect_and_park(50);
	mad_rpc_close_port(second);
	assert_int_equal(mad_async_wait(async, -1), 50);
	expect_all(50, -ECANCELED);
	mad_async_free(async);
	port = first;
	async = first_engine;
}
