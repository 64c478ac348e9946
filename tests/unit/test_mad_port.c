/* SPDX-License-Identifier: BSD-2-Clause */

/* A port: opening, registering, closing, options. */

#include "engine_fixture.h"
#include "fake.h"
#include "test.h"

#include <infiniband/mad_sa.h>

FIXTURE(port_setup, port_teardown);

static struct ibmad_port *open_with(int mgmt_class)
{
	return mad_rpc_open_port(NULL, 0, &mgmt_class, 1);
}

TEST(opening_registers_a_client_for_each_class)
{
	const struct {
		int mgmt_class, version, rmpp;
	} expected[] = {{IB_SMI_CLASS, 1, 0}, {IB_SMI_DIRECT_CLASS, 1, 0},
			{IB_SA_CLASS, 2, 1},  {IB_PERFORMANCE_CLASS, 1, 0},
			{VENDOR_CLASS, 1, 0}, {IB_CC_CLASS, 2, 0}};
	struct device_agent agent;
	int id;

	for (unsigned i = 0; i < 6; i++) {
		id = mad_rpc_class_agent(port, expected[i].mgmt_class);
		assert_int_equal(id, i);
		agent = device_agent(device_fd(), (unsigned)id);
		assert_true(agent.registered);
		assert_int_equal(agent.mgmt_class, expected[i].mgmt_class);
		assert_int_equal(agent.class_version, expected[i].version);
		assert_int_equal(agent.rmpp_version, expected[i].rmpp);
		assert_int_equal(agent.methods[0] | agent.methods[1], 0);
	}
	assert_int_equal(mad_rpc_portid(port), device_fd());
	assert_int_equal(mad_rpc_class_agent(port, IB_DEVICE_MGMT_CLASS), -1);
	assert_int_equal(mad_rpc_class_agent(port, -1), -1);
	assert_int_equal(mad_rpc_class_agent(port, 256), -1);
	assert_int_equal(mad_rpc_class_agent(NULL, 1), -1);
}

TEST(what_cannot_be_opened_says_why_and_leaves_nothing)
{
	int mgmt_class = IB_SMI_CLASS;
	char name[] = "mlx9_9";

	assert_fails_null(open_with(-1), EINVAL);
	assert_fails_null(open_with(256), EINVAL);
	assert_fails_null(open_with(0x60), EINVAL);
	assert_fails_null(mad_rpc_open_port(NULL, 0, NULL, 1), EINVAL);
	assert_fails_null(mad_rpc_open_port(NULL, 0, &mgmt_class, -1), EINVAL);
	assert_fails_null(mad_rpc_open_port(name, 0, &mgmt_class, 1), ENODEV);
	device_fail(DEVICE_OPEN, 1, EACCES);
	assert_fails_null(open_with(mgmt_class), EACCES);
	device_fail(DEVICE_IOCTL, 2, ENOMEM);
	assert_null(open_with(mgmt_class));
	assert_int_not_equal(errno, 0);
	device_fail_malloc(1);
	assert_fails_null(open_with(mgmt_class), ENOMEM);
	assert_int_equal(device_handles(), 1);
}

TEST(closing_unregisters_what_was_registered)
{
	struct ibmad_port *other = open_with(IB_SMI_CLASS);
	unsigned before;

	assert_non_null(other);
	assert_true(mad_register_server_via(0x33, 1, NULL, 0x001405, other) >= 0);
	before = device_calls(DEVICE_IOCTL);
	mad_rpc_close_port(other);
	assert_int_equal(device_calls(DEVICE_IOCTL) - before, 2);
	assert_int_equal(device_handles(), 1);
	mad_rpc_close_port(NULL);
}

TEST(a_server_has_its_methods_or_all)
{
	long mask[16 / sizeof(long)] = {1 << IB_MAD_METHOD_GET};
	struct device_agent agent;
	int id;

	id = mad_register_server_via(0x33, 1, mask, 0x123456, port);
	assert_true(id >= 0);
	agent = device_agent(device_fd(), (unsigned)id);
	assert_int_equal(agent.oui, 0x123456);
	assert_int_equal(agent.rmpp_version, 1);
	assert_int_equal(agent.methods[0], 1 << IB_MAD_METHOD_GET);
	id = mad_register_server_via(0x0b, 0, NULL, 0, port);
	agent = device_agent(device_fd(), (unsigned)id);
	assert_int_equal(agent.methods[0], UINT64_MAX);
	assert_int_equal(mad_register_server_via(256, 0, NULL, 0, port), -1);
	assert_int_equal(mad_register_server_via(0x0b, 0, NULL, 0, NULL), -1);
	assert_int_equal(mad_register_client_via(-1, 0, port), -1);
	/* no management class: mad_rpc_open_port() has this case */
	assert_fails_minus_1(mad_register_client_via(0, 0, port), EINVAL);
	assert_int_equal(mad_register_client_via(0x50, 0, port), -1);
	assert_int_equal(mad_register_client_via(1, 0, NULL), -1);
	assert_int_equal(mad_register_client_via(IB_BOARD_MGMT_CLASS, 0, port), 0);
	assert_int_equal(mad_rpc_class_agent(port, IB_BOARD_MGMT_CLASS), 8);
}

TEST(options_out_of_range_are_refused)
{
	assert_int_equal(mad_port_set(NULL, MAD_PORT_SA_KEY, 1), -EINVAL);
	assert_int_equal(mad_port_set(port, MAD_PORT_SA_KEY, 1), 0);
	assert_int_equal(mad_port_set(port, MAD_PORT_GID_INDEX, 256), -EINVAL);
	assert_int_equal(mad_port_set(NULL, MAD_PORT_GID_INDEX, 1), -EINVAL);
	assert_int_equal(mad_port_set(port, MAD_PORT_MAX_RESPONSE, 255), -EINVAL);
	assert_int_equal(mad_port_set(NULL, MAD_PORT_MAX_RESPONSE, 256), -EINVAL);
}

/* The greatest and the least value of each. */
TEST(options_in_range_are_accepted)
{
	struct mad_async *async = mad_async_create(port);
	struct mad_async_stats stats;
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(3);

	mad_rpc_set_timeout(port, INT32_MAX);
	assert_int_equal(mad_get_timeout(port, 0), INT32_MAX);
	mad_rpc_set_retries(port, 1);
	assert_int_equal(mad_get_retries(port), 1);
	assert_int_equal(mad_port_set(port, MAD_PORT_MAX_RESPONSE, IB_MAD_SIZE), 0);
	assert_int_equal(mad_port_set(port, MAD_PORT_MAX_RESPONSE, SIZE_MAX), 0);
	assert_int_equal(mad_port_set(port, MAD_PORT_GID_INDEX, 0), 0);
	assert_int_equal(mad_port_set(port, MAD_PORT_GID_INDEX, 255), 0);
	to.grh_present = 1;
	assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, port), 0);
	assert_int_equal(device_packet(0)->header.addr.gid_index, 255);
	assert_int_equal(mad_port_set(port, MAD_PORT_RATE, UINT32_MAX), 0);
	assert_int_equal(mad_port_set(port, MAD_PORT_RATE, 0), 0);
	assert_int_equal(mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 0), 0);
	assert_int_equal(mad_port_set(port, MAD_PORT_SMP_WINDOW, 7), 0);
	assert_int_equal(mad_port_set(port, MAD_PORT_GMP_WINDOW, 9), 0);
	stats = stats_of(async);
	assert_int_equal(stats.smp.window, 7);
	assert_int_equal(stats.gmp.window, 9);
	mad_async_free(async);
}

TEST(an_option_that_does_not_exist_is_refused)
{
	uint64_t value = 5;

	assert_int_equal(mad_port_set(port, (enum mad_port_option)0, 1), -EINVAL);
	assert_int_equal(mad_port_set(port, (enum mad_port_option)(MAD_PORT_RATE + 1), 1),
			 -EINVAL);
	assert_int_equal(mad_port_get(port, (enum mad_port_option)0, &value), -EINVAL);
	assert_int_equal(mad_port_get(port, (enum mad_port_option)99, &value), -EINVAL);
	assert_int_equal(mad_port_get(NULL, MAD_PORT_RATE, &value), -EINVAL);
	assert_int_equal(mad_port_get(port, MAD_PORT_RATE, NULL), -EINVAL);
	assert_int_equal(value, 5);
	assert_int_equal(mad_port_set(port, MAD_PORT_RATE, UINT64_C(1) << 32), -EINVAL);
	assert_int_equal(mad_port_set(port, MAD_PORT_SMP_WINDOW, UINT64_MAX), -EINVAL);
	assert_int_equal(mad_port_set(NULL, MAD_PORT_SMP_WINDOW, 1), -EINVAL);
	assert_int_equal(mad_port_set(NULL, MAD_PORT_DESTINATION_LIMIT, 1), -EINVAL);
	assert_int_equal(mad_port_set(NULL, MAD_PORT_RATE, 1), -EINVAL);
}

static uint64_t option(enum mad_port_option number)
{
	uint64_t value = UINT64_MAX;

	assert_int_equal(mad_port_get(port, number, &value), 0);
	return value;
}

TEST(options_are_read_back_as_they_were_set)
{
	assert_true(option(MAD_PORT_SA_KEY) == 0);
	assert_true(option(MAD_PORT_GID_INDEX) == 0);
	assert_true(option(MAD_PORT_MAX_RESPONSE) == 64 << 20);
	assert_true(option(MAD_PORT_RATE) == 0);
	for (int i = MAD_PORT_SA_KEY; i <= MAD_PORT_RATE; i++)
		if (i != MAD_PORT_MAX_RESPONSE)
			assert_int_equal(
				mad_port_set(port, (enum mad_port_option)i, 10 + (uint64_t)i),
				0);
	assert_int_equal(mad_port_set(port, MAD_PORT_MAX_RESPONSE, 12345), 0);
	for (int i = MAD_PORT_SA_KEY; i <= MAD_PORT_RATE; i++)
		assert_true(option((enum mad_port_option)i) ==
			    (i == MAD_PORT_MAX_RESPONSE ? 12345 : 10 + (uint64_t)i));
}

/* A response longer than this is an error of its request. */
TEST(a_port_has_a_longest_response)
{
	struct mad_async *async = mad_async_create(port);
	struct outcome outcomes[2] = {0};

	assert_int_equal(mad_port_set(port, MAD_PORT_MAX_RESPONSE, 1000), 0);
	for (unsigned i = 0; i < 2; i++) {
		submit(async, table_request(), 3, &outcomes[i], NULL);
		respond_long(device_packet(i), 1000 + i, 0x77);
		assert_int_equal(mad_async_wait(async, -1), 1);
	}
	assert_int_equal(outcomes[0].error, 0);
	assert_int_equal(outcomes[0].length, 1000);
	assert_int_equal(outcomes[1].error, -EMSGSIZE);
	mad_async_free(async);
}

TEST(a_port_keeps_its_keys)
{
	const uint64_t key = UINT64_C(0x123456789abcdef0);

	assert_int_equal(smp_mkey_get(port), 0);
	smp_mkey_set(port, key);
	assert_int_equal(mad_port_set(port, MAD_PORT_SA_KEY, key + 1), 0);
	assert_true(smp_mkey_get(port) == key);
	assert_true(option(MAD_PORT_SA_KEY) == key + 1);
	smp_mkey_set(NULL, key);
	assert_int_equal(smp_mkey_get(NULL), 0);
}

/* The calls of rdma-core, which have no result. */
TEST(a_port_keeps_its_timeout_and_retries)
{
	mad_rpc_set_timeout(port, 321);
	mad_rpc_set_retries(port, 5);
	assert_int_equal(mad_get_timeout(port, 0), 321);
	assert_int_equal(mad_get_retries(port), 5);
	mad_rpc_set_timeout(NULL, 1);
	mad_rpc_set_retries(NULL, 1);
	assert_int_equal(mad_get_timeout(port, 0), 321);
	assert_int_equal(mad_get_retries(port), 5);
	assert_int_equal(mad_get_timeout(NULL, 0), MAD_DEF_TIMEOUT_MS);
	assert_int_equal(mad_get_retries(NULL), MAD_DEF_RETRIES);
	mad_rpc_set_retries(port, -1); /* as if none were set */
	assert_int_equal(mad_get_retries(port), MAD_DEF_RETRIES);
	assert_int_equal(madrpc_set_retries(-1), MAD_DEF_RETRIES);
	assert_int_equal(mad_rpc_portid(NULL), -1);
}

TEST(a_call_s_time_wins_over_the_port_s_and_that_over_the_process_s)
{
	mad_rpc_set_timeout(port, 0);
	assert_int_equal(mad_get_timeout(port, 0), MAD_DEF_TIMEOUT_MS);
	assert_int_equal(madrpc_set_timeout(777), 0);
	assert_int_equal(mad_get_timeout(port, 0), 777);
	assert_int_equal(mad_get_timeout(NULL, 0), 777);
	mad_rpc_set_timeout(port, 55);
	assert_int_equal(mad_get_timeout(port, 0), 55);
	assert_int_equal(mad_get_timeout(port, 5), 5);
	madrpc_set_timeout(MAD_DEF_TIMEOUT_MS);

	assert_int_equal(mad_get_retries(port), MAD_DEF_RETRIES);
	assert_int_equal(madrpc_set_retries(9), 9);
	assert_int_equal(mad_get_retries(port), 9);
	mad_rpc_set_retries(port, 2);
	assert_int_equal(mad_get_retries(port), 2);
	assert_int_equal(madrpc_set_retries(1), 1);
	assert_int_equal(madrpc_set_retries(0), 1);
	madrpc_set_retries(MAD_DEF_RETRIES);
}

TEST(the_m_key_is_that_of_the_port_and_0_without_a_port)
{
	assert_int_equal(smp_mkey_get(port), 0);
	smp_mkey_set(port, 0x1122334455667788);
	assert_int_equal(smp_mkey_get(port), 0x1122334455667788);
	assert_int_equal(smp_mkey_get(NULL), 0);
}

TEST(a_request_with_a_grh_has_the_port_s_gid_index)
{
	struct mad_async *async = mad_async_create(port);
	struct outcome outcome = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(3);

	to.grh_present = 1;
	assert_int_equal(mad_port_set(port, MAD_PORT_GID_INDEX, 3), 0);
	device_on_write(echo, NULL);
	assert_null(mad_rpc(port, &rpc, &to, NULL, NULL));
	assert_int_equal(mad_async_submit(async, &rpc, &to, NULL, 0, note, &outcome, NULL), 0);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, port), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(device_packet(i)->header.addr.grh_present, 1);
		assert_int_equal(device_packet(i)->header.addr.gid_index, 3);
	}
	mad_async_free(async);
}

TEST(an_older_kernel_will_do)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {0x21};
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(3);
	struct mad_async *async;
	struct outcome outcome = {0};

	mad_rpc_close_port(port);
	device_teardown();
	device_setup();
	device_old_kernel();
	port = open_with(IB_SMI_CLASS);
	assert_non_null(port);
	assert_int_equal(umad_size(), 56);
	device_on_write(echo, NULL);
	assert_ptr_equal(mad_rpc(port, &rpc, &to, data, data), data);
	assert_int_equal(data[0], 0x21);
	async = mad_async_create(port);
	submit(async, get_request(), 3, &outcome, NULL);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(outcome.error, 0);
	assert_int_equal(outcome.lid_byte, 3);
	mad_async_free(async);
}

/* A second device with the same port GUID; the first one does not support its SMI side. */
TEST(a_planarized_device_is_opened_as_a_pair)
{
	int classes[] = {IB_SMI_CLASS, IB_SA_CLASS, IB_SMI_DIRECT_CLASS};
	struct ibmad_ports_pair *pair;

	pair = mad_rpc_open_port2(NULL, 0, classes, 3, 0);
	assert_non_null(pair);
	assert_ptr_equal(pair->smi.port, pair->gsi.port);
	assert_string_equal(pair->gsi.ca_name, "mlx5_0");
	mad_rpc_close_port2(pair);

	fake_ca("mlx5_9");
	fake_port("mlx5_9", 1, 0x00a00b11);
	fake_file("/sys/class/infiniband/mlx5_9/ports/1/cap_mask", "0x2651ec48\n"); /* no SM */
	fake_umad(1, "mlx5_9", 1);
	pair = mad_rpc_open_port2(NULL, 0, classes, 3, 0);
	assert_non_null(pair);
	assert_ptr_not_equal(pair->smi.port, pair->gsi.port);
	assert_string_equal(pair->smi.ca_name, "mlx5_0");
	assert_string_equal(pair->gsi.ca_name, "mlx5_9");
	assert_int_equal(mad_rpc_class_agent(pair->smi.port, IB_SMI_CLASS), 0);
	assert_int_equal(mad_rpc_class_agent(pair->smi.port, IB_SA_CLASS), -1);
	assert_int_equal(mad_rpc_class_agent(pair->gsi.port, IB_SA_CLASS), 0);
	assert_int_equal(mad_rpc_class_agent(pair->gsi.port, IB_SMI_CLASS), -1);
	mad_rpc_close_port2(pair);
	assert_int_equal(device_handles(), 1);

	device_fail(DEVICE_OPEN, 2, EBUSY);
	assert_fails_null(mad_rpc_open_port2(NULL, 0, classes, 3, 0), EBUSY);
	assert_int_equal(device_handles(), 1);
	assert_fails_null(mad_rpc_open_port2(NULL, 256, classes, 3, 0), ENODEV);
	assert_fails_null(mad_rpc_open_port2(NULL, 0, NULL, 3, 0), EINVAL);
	mad_rpc_close_port2(NULL);
}

/* A RoCE port is in no pair. rdma-core finds it by its number only. */
TEST(a_port_of_another_link_layer_is_opened_for_gmps)
{
	int classes[] = {IB_PERFORMANCE_CLASS};
	struct ibmad_ports_pair *pair;

	fake_file("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
	for (int portnum = 0; portnum <= 1; portnum++) {
		pair = mad_rpc_open_port2(NULL, portnum, classes, 1, 0);
		assert_non_null(pair);
		assert_string_equal(pair->gsi.ca_name, "mlx5_0");
		assert_ptr_equal(pair->smi.port, pair->gsi.port);
		assert_int_equal(mad_rpc_class_agent(pair->gsi.port, IB_PERFORMANCE_CLASS), 0);
		mad_rpc_close_port2(pair);
		assert_fails_null(mad_rpc_open_port2(NULL, portnum, classes, 1, 1), ENODEV);
	}
	assert_fails_null(mad_rpc_open_port2(NULL, 2, classes, 1, 0), ENODEV);
	assert_int_equal(device_handles(), 1);
}
