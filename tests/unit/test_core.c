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

/* The transaction of the only request. */
static struct transaction *the_transaction(void)
{
	return transaction_of(table_any(&port->core.transactions.outstanding.table));
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
	int cancel_state;

	(void)state;
	mad_port_set_window(port, MAD_WINDOW_GMP, 1);
	submit(async, set_request(), 1, &outcome, NULL);
	submit(async, set_request(), 2, &outcome, NULL);
	assert_int_equal(device_written(), 1);
	cancel_state = port_enter(port);
	flow_fix_window(&port->core.transactions.flow, MAD_WINDOW_GMP, 2);
	port->core.gone = ENODEV;
	scheduler_send(&port->scheduler, 1);
	port->core.gone = 0;
	port_leave(port, cancel_state);
	assert_int_equal(mad_async_process(async), 1);
	assert_int_equal(outcome.error, -ENODEV);
	assert_int_equal(device_written(), 1);
}

static void only_what_is_sent_counts_for_the_rate(void **state)
{
	int64_t opens;

	(void)state;
	mad_port_set_rate(port, 1);
	submit(async, set_request(), 1, &outcome, NULL);
	opens = core_opens(&port->core, MAD_WINDOW_GMP);
	assert_true(opens > 0);
	assert_true(core_opens(&port->core, MAD_WINDOW_SMP) == opens);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_int_equal(mad_async_process(async), 1);
	assert_true(core_opens(&port->core, MAD_WINDOW_GMP) == opens);
}

/* It may be the response to either transmission. */
static void the_time_of_a_request_that_was_sent_twice_with_one_id_is_not_known(void **state)
{
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
	assert_int_equal(stats_of(async).gmp.rtt_smoothed_us, 0);
}

static void the_first_size_of_a_window_is_no_change(void **state)
{
	static const struct core_hooks hooks;
	static struct core core;

	(void)state;
	core_init(&core, &hooks);
	for (unsigned i = 0; i < FLOW_WINDOWS; i++)
		assert_int_equal(core.traced_sizes[i], core.transactions.flow.windows[i].size);
	core_free(&core);
}

static void a_core_that_begins_anew_has_nothing_in_flight_and_is_as_before(void **state)
{
	static const struct core_hooks hooks;
	static struct {
		struct core core;
		uint8_t behind[sizeof(struct flow_control)];
	} area;
	static uint8_t after[sizeof(area) - offsetof(struct core, traced_sizes)];
	uint8_t *rest = (uint8_t *)area.core.traced_sizes;
	struct transmission lost = {0};
	struct flow_account account = {.smp = true};
	const struct flow_window *window = &area.core.transactions.flow.windows[MAD_WINDOW_SMP];

	(void)state;
	core_init(&area.core, &hooks);
	table_add(&area.core.transactions.outstanding.table, &lost, 1);
	flow_fix_window(&area.core.transactions.flow, MAD_WINDOW_SMP, 7);
	flow_sent(&area.core.transactions.flow, &account, 1);
	memset(rest, 0x5a, sizeof(after));
	memcpy(after, rest, sizeof(after));
	core_reset(&area.core);
	assert_null(table_any(&area.core.transactions.outstanding.table));
	assert_int_equal(window->in_flight, 0);
	assert_int_equal(window->size, 7);
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
		CORE_TEST(what_is_complete_cannot_be_cancelled),
		CORE_TEST(what_is_to_be_sent_when_the_port_has_failed_completes_with_its_errno),
		CORE_TEST(only_what_is_sent_counts_for_the_rate),
		CORE_TEST(the_time_of_a_request_that_was_sent_twice_with_one_id_is_not_known),
		CORE_TEST(the_first_size_of_a_window_is_no_change),
		CORE_TEST(a_core_that_begins_anew_has_nothing_in_flight_and_is_as_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
