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
static void receive(uint8_t mgmt_class, uint8_t method, uint8_t modifier)
{
	uint8_t umad[PACKET_SIZE] = {0}, *mad = umad_get_mad(umad);

	device_copy_mad(device_packet(0), mad);
	mad[1] = mgmt_class;
	mad[3] = method;
	mad[23] = modifier;
	core_lock(&port->core);
	assert_false(core_receive(&port->core, umad, IB_MAD_SIZE, false));
	core_unlock(&port->core);
	assert_true(mad_async_process(async) >= 0);
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

/* What was late, and was taken to be lost in a full queue, has a response. */
static void a_response_that_was_late_undoes_the_reduction_of_both_windows(void **state)
{
	struct window *windows = port->core.windows;
	struct transmission *transmission;

	(void)state;
	fix_flow(0);
	submit(async, set_request(), 1, &outcome, NULL);
	transmission = table_any(&port->core.transactions.outstanding.table);
	((struct transaction *)(void *)transmissions_of(transmission))->late_period = 5;
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

	(void)state;
	core_init(&area.core, &hooks);
	memset(rest, 0x5a, sizeof(after));
	memcpy(after, rest, sizeof(after));
	core_reset(&area.core);
	assert_memory_equal(rest, after, sizeof(after));
	core_free(&area.core);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(a_trap_repress_is_the_response_to_a_trap),
		CORE_TEST(a_request_with_the_id_of_another_is_no_response),
		CORE_TEST(a_board_management_send_tells_by_its_modifier_that_it_is_a_response),
		CORE_TEST(
			a_message_that_cannot_be_received_ends_the_request_that_it_responds_to),
		CORE_TEST(a_trial_of_either_window_is_one_of_both),
		CORE_TEST(a_response_that_was_late_undoes_the_reduction_of_both_windows),
		CORE_TEST(the_first_size_of_a_window_is_no_change),
		CORE_TEST(a_core_that_begins_anew_resets_its_windows_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
