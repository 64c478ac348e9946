/* SPDX-License-Identifier: BSD-2-Clause */

/* Messages that are responses, and the first state of a core. */

#include "engine_fixture.h"

static struct mad_async *async;
static struct outcome outcome;

static int setup(void **state)
{
	if (port_setup(state))
		return -1;
	memset(&outcome, 0, sizeof(outcome));
	async = mad_async_create(port);
	return async ? 0 : -1;
}

static int teardown(void **state)
{
	mad_async_destroy(async);
	return port_teardown(state);
}

#define CORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* A message with the ID of the only request, with this method and attribute modifier. */
static void receive_bytes(uint8_t mgmt_class, uint8_t method, uint8_t modifier, int length)
{
	uint8_t umad[PACKET_SIZE] = {0}, *mad = umad_get_mad(umad);

	device_copy_mad(device_packet(0), mad);
	mad[1] = mgmt_class;
	mad[3] = method;
	mad[23] = modifier;
	core_lock(&port->core);
	assert_false(core_receive(&port->core, umad, length, false));
	core_unlock(&port->core);
	assert_true(mad_async_process(async) >= 0);
}

static void receive(uint8_t mgmt_class, uint8_t method, uint8_t modifier)
{
	receive_bytes(mgmt_class, method, modifier, IB_MAD_SIZE);
}

static void a_trap_repress_is_the_response_to_a_trap(void **state)
{
	ib_rpc_t rpc = set_request();

	(void)state;
	rpc.method = IB_MAD_METHOD_TRAP;
	submit(async, rpc, 1, &outcome, NULL);
	receive(IB_PERFORMANCE_CLASS, IB_MAD_METHOD_TRAP_REPRESS, 0);
	assert_int_equal(outcome.calls, 1);
}

static void a_request_with_the_id_of_another_is_no_response(void **state)
{
	(void)state;
	submit(async, set_request(), 1, &outcome, NULL);
	receive(IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET, 1);
	assert_int_equal(outcome.calls, 0);
	receive(IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET_RESPONSE, 1);
	assert_int_equal(outcome.calls, 1);
}

static void a_response_has_36_bytes_at_least(void **state)
{
	(void)state;
	submit(async, set_request(), 1, &outcome, NULL);
	receive_bytes(IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET_RESPONSE, 0, 35);
	assert_int_equal(outcome.calls, 0);
	receive_bytes(IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET_RESPONSE, 0, 36);
	assert_int_equal(outcome.calls, 1);
	assert_int_equal(outcome.length, 36);
}

/* The reader frees the buffer of a message that the core has not kept. */
static void only_a_response_is_kept(void **state)
{
	uint8_t umad[PACKET_SIZE] = {0}, *mad = umad_get_mad(umad);
	struct ib_user_mad *header = (struct ib_user_mad *)(void *)umad;

	(void)state;
	mad_rpc_set_retries(port, 1);
	submit(async, set_request(), 1, &outcome, NULL);
	device_copy_mad(device_packet(0), mad);
	core_lock(&port->core);
	assert_false(core_receive(&port->core, umad, IB_MAD_SIZE, true));
	header->status = ETIMEDOUT;
	assert_false(core_receive(&port->core, umad, IB_MAD_SIZE, true));
	core_unlock(&port->core);
	assert_int_equal(mad_async_process(async), 1);
	assert_int_equal(outcome.error, -ETIMEDOUT);
}

/* IBA 16.2.2: bit 0 of the attribute modifier. */
static void a_board_management_send_tells_by_its_modifier_that_it_is_a_response(void **state)
{
	ib_rpc_t rpc = set_request();

	(void)state;
	rpc.mgtclass = IB_BOARD_MGMT_CLASS;
	assert_int_equal(mad_register_client_via(IB_BOARD_MGMT_CLASS, 0, port), 0);
	submit(async, rpc, 1, &outcome, NULL);
	receive(IB_BOARD_MGMT_CLASS, IB_MAD_METHOD_SEND, 0xfe);
	assert_int_equal(outcome.calls, 0);
	receive(IB_BOARD_MGMT_CLASS, IB_MAD_METHOD_SEND, 0x01);
	assert_int_equal(outcome.calls, 1);
}

/* A message with the ID of the only request cannot be received. */
static void fail_to_receive(uint8_t method, uint8_t tid_change)
{
	uint8_t umad[PACKET_SIZE] = {0}, *mad = umad_get_mad(umad);

	device_copy_mad(device_packet(0), mad);
	mad[3] = method;
	mad[15] ^= tid_change;
	core_lock(&port->core);
	core_receive_failed(&port->core, umad, EMSGSIZE);
	core_unlock(&port->core);
	assert_true(mad_async_process(async) >= 0);
}

static void a_message_that_cannot_be_received_ends_the_request_that_it_responds_to(void **state)
{
	uint64_t dropped;

	(void)state;
	submit(async, set_request(), 1, &outcome, NULL);
	dropped = port->core.dropped;
	fail_to_receive(IB_MAD_METHOD_GET_RESPONSE, 1);
	fail_to_receive(IB_MAD_METHOD_GET, 0);
	assert_int_equal(port->core.dropped, dropped + 2);
	assert_int_equal(outcome.calls, 0);
	fail_to_receive(IB_MAD_METHOD_GET_RESPONSE, 0);
	assert_int_equal(outcome.calls, 1);
	assert_int_equal(outcome.error, -EMSGSIZE);
}

static void a_trial_of_either_window_is_one_of_both(void **state)
{
	(void)state;
	for (unsigned i = 0; i < WINDOWS; i++) {
		port->core.windows[i].losses.trial = true;
		port->core.windows[i].latest = INT64_MAX;
		submit(async, get_request(), 1, &outcome, NULL);
		assert_int_equal(port->core.windows[0].hushed, i == 1);
		assert_int_equal(port->core.windows[1].hushed, i == 0);
		port->core.windows[i].losses.trial = false;
		submit(async, get_request(), 1, &outcome, NULL);
		assert_false(port->core.windows[0].hushed || port->core.windows[1].hushed);
	}
}

/* The transaction of the only request. */
static struct transaction *the_transaction(void)
{
	return transaction_of(table_any(&port->core.transactions.outstanding.table));
}

/* A late request that seemed lost in a full queue has a response. */
static void a_response_that_was_late_undoes_the_reduction_of_both_windows(void **state)
{
	struct window *windows = port->core.windows;

	(void)state;
	fix_flow(0);
	submit(async, set_request(), 1, &outcome, NULL);
	the_transaction()->late_period = 5;
	windows[MAD_WINDOW_GMP].losses.blamed = 5;
	windows[MAD_WINDOW_GMP].losses.late_before = 1;
	windows[MAD_WINDOW_GMP].losses.queue = 1;
	for (unsigned i = 0; i < WINDOWS; i++)
		windows[i].size_undone = 40;
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_int_equal(mad_async_process(async), 1);
	for (unsigned i = 0; i < WINDOWS; i++)
		assert_int_equal(windows[i].size, 40);
}

/* The transaction and nine other MADs were late in period 5. */
static const struct losses *begin_to_find(enum mad_window window)
{
	struct losses *losses = &port->core.windows[window].losses;

	the_transaction()->late_period = 5;
	losses->blamed = 5;
	losses->late_before = 10;
	return losses;
}

static void a_request_that_was_late_is_found_once(void **state)
{
	const struct losses *losses;

	(void)state;
	submit(async, set_request(), 1, &outcome, NULL);
	losses = begin_to_find(MAD_WINDOW_GMP);
	port->core.windows[MAD_WINDOW_GMP].size_undone = 40;
	device_respond(device_packet(0), IB_MAD_STS_BUSY, 0, NULL, 0);
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(losses->found_before, 1);
	while (device_written() < 2) {
		sleep_ms(1);
		mad_async_process(async);
	}
	device_respond(device_packet(1), 0, 0, NULL, 0);
	assert_int_equal(mad_async_process(async), 1);
	assert_int_equal(losses->found_before, 1);
	/* one of ten tells nothing: no reduction is undone */
	assert_int_equal(port->core.windows[MAD_WINDOW_GMP].size_undone, 40);
}

static void a_late_request_is_found_in_the_period_in_which_it_was_sent(void **state)
{
	struct window *window = &port->core.windows[MAD_WINDOW_GMP];

	(void)state;
	late_after(QUICK);
	submit(async, set_request(), 1, &outcome, NULL);
	window->losses.blamed = the_transaction()->mark.period;
	window->losses.late_before = 10;
	assert_int_not_equal(window->losses.blamed, 0);
	while (window->in_flight) {
		sleep_ms(1);
		mad_async_process(async);
	}
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_int_equal(mad_async_process(async), 1);
	assert_int_equal(window->losses.found_before, 1);
}

static void a_request_with_a_response_to_a_retransmission_was_lost_and_not_late(void **state)
{
	const struct losses *losses;

	(void)state;
	late_after(QUICK);
	for (unsigned own = 0; own < 2; own++) {
		unsigned first = device_written();

		submit(async, get_request(), 1, &outcome, NULL);
		while (device_written() < first + 2) {
			sleep_ms(1);
			mad_async_process(async);
		}
		losses = begin_to_find(MAD_WINDOW_SMP);
		device_respond(device_packet(own ? first : first + 1), 0, 0, NULL, 0);
		assert_int_equal(mad_async_process(async), 1);
		assert_int_equal(losses->found_before, own);
		assert_int_equal(losses->responses, own + 1);
		assert_int_equal(losses->lost, 1);
	}
}

static void what_is_complete_cannot_be_cancelled(void **state)
{
	struct transaction *transaction;
	int cancel_state;

	(void)state;
	submit(async, set_request(), 1, &outcome, NULL);
	transaction = the_transaction();
	cancel_state = port_enter(port);
	core_cancel(&port->core, transaction, EIO);
	core_cancel(&port->core, transaction, ECANCELED);
	port_leave(port, cancel_state);
	assert_int_equal(mad_async_process(async), 1);
	assert_int_equal(outcome.error, -EIO);
}

static void what_is_to_be_sent_when_the_port_has_failed_completes_with_its_errno(void **state)
{
	struct window *window = &port->core.windows[MAD_WINDOW_GMP];
	int cancel_state;

	(void)state;
	window->opens = INT64_MAX;
	submit(async, set_request(), 1, &outcome, NULL);
	cancel_state = port_enter(port);
	window->opens = 0;
	port->core.gone = ENODEV;
	scheduler_send(&port->scheduler, 1);
	port->core.gone = 0;
	port_leave(port, cancel_state);
	assert_int_equal(mad_async_process(async), 1);
	assert_int_equal(outcome.error, -ENODEV);
	assert_int_equal(device_written(), 0);
}

static void what_links_lose_counts_for_both_windows(void **state)
{
	struct core *core = &port->core;
	unsigned expected;

	(void)state;
	for (unsigned i = 0; i < WINDOWS; i++) {
		core->windows[i].losses.responses = 1000;
		core->windows[i].losses.lost = 100;
		core->windows[1 - i].losses.lost = 0;
		submit(async, i ? get_request() : set_request(), 1, &outcome, NULL);
		device_respond(device_packet(i), 0, 0, NULL, 0);
		assert_int_equal(mad_async_process(async), 1);
		expected = losses_in_a_row(&core->windows[i].losses);
		assert_true(expected > 1);
		assert_int_equal(core->windows[0].losses_in_a_row, expected);
		assert_int_equal(core->windows[1].losses_in_a_row, expected);
		assert_int_equal(core->transactions.losses_in_a_row, expected);
		core->transactions.losses_in_a_row = 1;
		core->windows[0].losses_in_a_row = core->windows[1].losses_in_a_row = 1;
	}
}

static void only_what_is_sent_counts_for_the_rate(void **state)
{
	int64_t next;

	(void)state;
	port->core.pace = (struct pace){.rate = 1000};
	submit(async, set_request(), 1, &outcome, NULL);
	next = port->core.pace.next_ns;
	assert_true(next > 0);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_int_equal(mad_async_process(async), 1);
	assert_true(port->core.pace.next_ns == next);
}

/* It may be the response to either transmission. */
static void the_time_of_a_request_that_was_sent_twice_with_one_id_is_not_known(void **state)
{
	const struct window *window = &port->core.windows[MAD_WINDOW_GMP];

	(void)state;
	mad_rpc_set_retries(port, 2);
	submit(async, set_request(), 1, &outcome, NULL);
	device_time_out(device_packet(0));
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(device_written(), 2);
	assert_memory_equal(device_packet(0)->mad + 8, device_packet(1)->mad + 8, 8);
	device_respond(device_packet(1), 0, 0, NULL, 0);
	assert_int_equal(mad_async_process(async), 1);
	assert_int_equal(outcome.error, 0);
	assert_int_equal(window_shortest_rtt(window), 0);
}

/* Whether its retransmission would wait at that time. */
static bool is_held_back(struct transaction *transaction, int64_t now)
{
	int cancel_state = port_enter(port);
	bool held_back;

	core_timer(&port->core, transaction, now);
	held_back = transaction->held_back;
	port_leave(port, cancel_state);
	return held_back;
}

static void a_retransmission_waits_until_its_window_opens(void **state)
{
	struct transaction *transaction;

	(void)state;
	submit(async, get_request(), 1, &outcome, NULL);
	transaction = the_transaction();
	port->core.windows[MAD_WINDOW_SMP].opens = 1000;
	assert_true(is_held_back(transaction, 999));
	assert_false(is_held_back(transaction, 1000));
	/* unless a later request has a response */
	port->core.windows[MAD_WINDOW_SMP].newest = INT64_MAX;
	assert_false(is_held_back(transaction, 999));
}

static void a_retransmission_waits_if_the_node_is_silent_for_longer_than_links_lose(
	void **state)
{
	struct transaction *transaction;

	(void)state;
	submit(async, get_request(), 1, &outcome, NULL);
	transaction = the_transaction();
	for (unsigned in_a_row = 1; in_a_row < 4; in_a_row++) {
		port->core.transactions.losses_in_a_row = in_a_row;
		transaction->destination->silence = (uint8_t)(in_a_row + 1);
		assert_false(is_held_back(transaction, 1000));
		transaction->destination->silence = (uint8_t)(in_a_row + 2);
		assert_true(is_held_back(transaction, 1000));
	}
}

static void the_first_size_of_a_window_is_no_change(void **state)
{
	static const struct core_hooks hooks;
	static struct core core;

	(void)state;
	core_init(&core, &hooks);
	for (unsigned i = 0; i < WINDOWS; i++)
		assert_int_equal(core.traced_sizes[i], core.windows[i].size);
	core_free(&core);
}

static void a_core_that_begins_anew_resets_its_windows_alone(void **state)
{
	static const struct core_hooks hooks;
	static struct {
		struct core core;
		uint8_t behind[sizeof(struct window)];
	} area;
	static uint8_t after[sizeof(area) - offsetof(struct core, traced_sizes)];
	uint8_t *rest = (uint8_t *)area.core.traced_sizes;
	struct transmission lost = {0};

	(void)state;
	core_init(&area.core, &hooks);
	table_add(&area.core.transactions.outstanding.table, &lost, 1);
	memset(rest, 0x5a, sizeof(after));
	memcpy(after, rest, sizeof(after));
	core_reset(&area.core);
	assert_null(table_any(&area.core.transactions.outstanding.table));
	assert_memory_equal(rest, after, sizeof(after));
	core_free(&area.core);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(a_trap_repress_is_the_response_to_a_trap),
		CORE_TEST(a_request_with_the_id_of_another_is_no_response),
		CORE_TEST(a_response_has_36_bytes_at_least),
		CORE_TEST(only_a_response_is_kept),
		CORE_TEST(a_board_management_send_tells_by_its_modifier_that_it_is_a_response),
		CORE_TEST(
			a_message_that_cannot_be_received_ends_the_request_that_it_responds_to),
		CORE_TEST(a_trial_of_either_window_is_one_of_both),
		CORE_TEST(a_response_that_was_late_undoes_the_reduction_of_both_windows),
		CORE_TEST(a_request_that_was_late_is_found_once),
		CORE_TEST(a_late_request_is_found_in_the_period_in_which_it_was_sent),
		CORE_TEST(a_request_with_a_response_to_a_retransmission_was_lost_and_not_late),
		CORE_TEST(what_is_complete_cannot_be_cancelled),
		CORE_TEST(what_is_to_be_sent_when_the_port_has_failed_completes_with_its_errno),
		CORE_TEST(what_links_lose_counts_for_both_windows),
		CORE_TEST(only_what_is_sent_counts_for_the_rate),
		CORE_TEST(the_time_of_a_request_that_was_sent_twice_with_one_id_is_not_known),
		CORE_TEST(a_retransmission_waits_until_its_window_opens),
		CORE_TEST(
			a_retransmission_waits_if_the_node_is_silent_for_longer_than_links_lose),
		CORE_TEST(the_first_size_of_a_window_is_no_change),
		CORE_TEST(a_core_that_begins_anew_resets_its_windows_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
