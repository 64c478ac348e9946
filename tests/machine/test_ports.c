/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Ports: how they are opened and closed, their options, pairs of ports; many requests at once
 * that are cancelled and counted; all calls at once while a port is closed.
 */

#include "requests.h"
#include "../heap_in_use.h"

#include <poll.h>
#include <stdatomic.h>

FIXTURE(requests_setup, requests_teardown);

static struct ibmad_port *open_with(int mgmt_class)
{
	return mad_rpc_open_port(NULL, 0, &mgmt_class, 1);
}

/* --- opening -------------------------------------------------------------------- */

TEST(opening_registers_a_client_for_each_class_and_closing_unregisters_it)
{
	static const int classes[] = {
		IB_SMI_CLASS,        IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS,
		IB_BOARD_MGMT_CLASS, IB_CC_CLASS,         VENDOR_1,    VENDOR_2};
	struct ibmad_port *other;
	unsigned before;

	for (int i = 0; i < 8; i++)
		assert_int_equal(mad_rpc_class_agent(port, classes[i]), i);
	assert_true(mad_rpc_portid(port) >= 0);
	assert_int_equal(mad_rpc_class_agent(port, IB_DEVICE_MGMT_CLASS), -1);
	assert_int_equal(mad_rpc_class_agent(port, -1), -1);
	assert_int_equal(mad_rpc_class_agent(port, 256), -1);
	assert_int_equal(mad_rpc_class_agent(NULL, 1), -1);
	assert_int_equal(mad_rpc_portid(NULL), -1);
	other = open_with(IB_SMI_CLASS);
	assert_true(mad_register_server_via(VENDOR_2, 1, NULL, 0x001405, other) >= 0);
	before = machine_calls(MACHINE_IOCTL);
	mad_rpc_close_port(other);
	assert_int_equal(machine_calls(MACHINE_IOCTL) - before, 2);
	assert_int_equal(machine_handles(), 1);
	mad_rpc_close_port(NULL);
}

static void expect_failure(enum mad_failure_kind kind, int error, unsigned mgmt_class,
			   const char *text)
{
	char buffer[MAD_ERROR_TEXT_SIZE];

	assert_int_equal(mad_last_failure()->kind, kind);
	assert_int_equal(mad_last_failure()->error, -error);
	assert_int_equal(mad_last_failure()->mgmt_class, mgmt_class);
	assert_string_equal(mad_failure_text(NULL, buffer, sizeof(buffer)), text);
}

TEST(what_cannot_be_opened_says_why_and_leaves_nothing)
{
	int classes[300] = {IB_SMI_CLASS, 0x99};
	char name[] = "no\nsuch";

	assert_fails_null(mad_rpc_open_port(name, 3, classes, 1), ENODEV);
	expect_failure(MAD_FAILURE_OPEN, ENODEV, 0,
		       "the port cannot be opened: No such device");
	assert_fails_null(mad_rpc_open_port(NULL, 0, NULL, 1), EINVAL);
	expect_failure(MAD_FAILURE_OPEN, EINVAL, 0,
		       "the port cannot be opened: Invalid argument");
	assert_fails_null(mad_rpc_open_port(NULL, 0, classes, -1), EINVAL);
	assert_fails_null(mad_rpc_open_port(NULL, 0, classes, 2), EINVAL);
	assert_fails_null(mad_rpc_open_port(NULL, 0, classes, 256), EINVAL);
	machine_fail(MACHINE_OPEN, 1, EACCES);
	assert_fails_null(open_with(IB_SMI_CLASS), EACCES);
	expect_failure(MAD_FAILURE_OPEN, EACCES, 0,
		       "the port cannot be opened: Permission denied");
	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	assert_fails_null(open_with(IB_SMI_CLASS), ENOMEM);
	expect_failure(MAD_FAILURE_OPEN, ENOMEM, 0,
		       "the port cannot be opened: Cannot allocate memory");
	assert_fails_null(mad_rpc_open_port2(name, 3, classes, 1, 0), ENODEV);
	expect_failure(MAD_FAILURE_OPEN, ENODEV, 0,
		       "the port cannot be opened: No such device");
	assert_fails_null(mad_rpc_open_port2(NULL, 0, NULL, 3, 0), EINVAL);
	expect_failure(MAD_FAILURE_OPEN, EINVAL, 0,
		       "the port cannot be opened: Invalid argument");
	assert_fails_null(mad_rpc_open_port2(NULL, 0, classes, -1, 0), EINVAL);
	assert_fails_null(mad_rpc_open_port2(NULL, 256, classes, 1, 0), ENODEV);
	mad_rpc_close_port2(NULL);
	assert_int_equal(mad_port_open(NULL, 0, NULL), -EINVAL);
	assert_int_equal(machine_handles(), 1);
	assert_string_equal(heard,
			    "mad_rpc_open_port: cannot open no?such port 3\n"
			    "mad_rpc_open_port: cannot register class 153 on (any) port 0\n"
			    "mad_rpc_open_port: 256 classes are too many\n"
			    "mad_rpc_open_port: cannot open (any) port 0\n"
			    "mad_rpc_open_port2: cannot open no?such port 3\n"
			    "mad_rpc_open_port2: cannot open (any) port 256\n");
	heard[0] = '\0';
	remove(machine_path("/sys/class/infiniband_mad/abi_version"));
	name[2] = '_';
	assert_null(mad_rpc_open_port(name, 0, classes, 1));
	assert_null(mad_rpc_open_port2(name, 0, classes, 1, 0));
	assert_string_equal(heard, "/sys/class/infiniband_mad/abi_version cannot be read "
				   "(No such file or directory): is ib_umad loaded?\n"
				   "mad_rpc_open_port: cannot open no_such port 0\n"
				   "/sys/class/infiniband_mad/abi_version cannot be read "
				   "(No such file or directory): is ib_umad loaded?\n"
				   "mad_rpc_open_port2: cannot open no_such port 0\n");
}

TEST(a_class_that_cannot_be_registered_is_named)
{
	struct ibmad_port *other;
	uint8_t info[IB_PC_DATA_SZ] = {0};
	ib_portid_t to = to_node("n1");

	machine_fail(MACHINE_IOCTL, 2, EPERM); /* the first one enables the P_Key index */
	assert_fails_null(open_with(IB_PERFORMANCE_CLASS), EPERM);
	expect_failure(MAD_FAILURE_REGISTER, EPERM, IB_PERFORMANCE_CLASS,
		       "performance management: the class cannot be registered: Operation not "
		       "permitted");
	assert_fails_null(open_with(0x60), EINVAL);
	assert_fails_null(open_with(-1), EINVAL);
	assert_fails_null(open_with(256), EINVAL);
	assert_fails_minus_1(mad_register_client_via(0x60, 0, port), EINVAL);
	expect_failure(MAD_FAILURE_REGISTER, EINVAL, 0x60,
		       "class 0x60: the class cannot be registered: Invalid argument");
	assert_fails_minus_1(mad_register_client_via(0, 0, port), EINVAL);
	assert_int_equal(mad_register_client_via(0x50, 0, port), -1);
	assert_int_equal(mad_register_client_via(-1, 0, port), -1);
	assert_int_equal(mad_register_client_via(1, 0, NULL), -1);
	assert_int_equal(mad_register_server_via(256, 0, NULL, 0, port), -1);
	machine_fail(MACHINE_IOCTL, 1, ENOMEM);
	assert_int_equal(mad_register_server_via(IB_SMI_CLASS, 0, NULL, 0, port), -1);
	expect_failure(MAD_FAILURE_REGISTER, ENOMEM, IB_SMI_CLASS,
		       "SMP: the class cannot be registered: Cannot allocate memory");
	assert_int_equal(mad_register_server_via(IB_SMI_CLASS, 0, NULL, 0, NULL), -1);
	assert_int_equal(machine_handles(), 1);
	/* mad_port_open() registers the others */
	machine_fail(MACHINE_IOCTL, 2, EPERM);
	heard[0] = '\0';
	assert_int_equal(mad_port_open(NULL, 0, &other), 0);
	assert_string_equal(heard,
			    "mad_port_open: cannot register class 0x01 on (any) port 0\n");
	assert_int_equal(mad_rpc_class_agent(other, IB_SMI_CLASS), -1);
	assert_non_null(pma_query_via(info, &to, 1, 0, 0x12, other));
	assert_null(smp_query_via(info, &to, 0x11, 0, 0, other));
	mad_rpc_close_port(other);
	machine_fail(MACHINE_OPEN, 1, EACCES);
	assert_int_equal(mad_port_open(NULL, 0, &other), -EACCES);
	assert_null(other);
}

static void send_vendor_request(uint8_t mgmt_class, uint8_t method)
{
	uint8_t mad[MACHINE_MAD] = {1, mgmt_class, 1, method};

	mad[37] = 0x12;
	mad[38] = 0x34;
	mad[39] = 0x56;
	machine_send("n2", mad, 0);
}

static bool is_received(uint8_t mgmt_class, uint8_t method)
{
	void *umad;

	send_vendor_request(mgmt_class, method);
	umad = mad_receive_via(NULL, 1, port);
	mad_free(umad);
	return umad;
}

TEST(a_server_has_its_methods_or_all)
{
	long mask[16 / sizeof(long)] = {1 << IB_MAD_METHOD_GET};

	assert_int_equal(mad_register_server_via(VENDOR_2, 1, mask, 0x123456, port), 8);
	assert_true(is_received(VENDOR_2, IB_MAD_METHOD_GET));
	assert_false(is_received(VENDOR_2, IB_MAD_METHOD_SET));
	assert_int_equal(mad_register_server_via(VENDOR_1, 0, NULL, 0, port), 9);
	assert_true(is_received(VENDOR_1, IB_MAD_METHOD_GET));
	assert_true(is_received(VENDOR_1, IB_MAD_METHOD_SET));
	assert_true(is_received(VENDOR_1, 0x7f));
}

TEST(an_older_kernel_will_do)
{
	mad_rpc_close_port(port);
	machine_old_kernel();
	port = open_with(IB_SMI_CLASS);
	assert_non_null(port);
	assert_int_equal(umad_size(), 56);
	assert_int_equal(ask(get_request(), "n3"), 0);
	mad_rpc_close_port(port);
	machine_stop();
	machine_start("star:8", NULL);
	port = open_with(IB_SMI_CLASS);
	assert_int_equal(umad_size(), 64);
}

TEST(with_ibdebug_opening_tells_more)
{
	int class = IB_SMI_CLASS;

	setenv("LIBIBMAD_DEBUG_LEVEL", "1", 1);
	mad_rpc_close_port(open_with(class));
	mad_rpc_close_port2(mad_rpc_open_port2(NULL, 0, &class, 1, 0));
	unsetenv("LIBIBMAD_DEBUG_LEVEL");
	assert_int_equal(ibdebug, 1);
	ibdebug = 0;
	assert_non_null(strstr(heard, "class 0x01 is agent 0 on handle"));
	assert_non_null(strstr(heard, "(any) port 0 is open, handle"));
	assert_non_null(
		strstr(heard, "mad_rpc_open_port2: SMI mlx5_0 port 1, GSI mlx5_0 port 1"));
}

/* --- pairs ---------------------------------------------------------------------- */

#define PORT_OF(ca) "/sys/class/infiniband/" ca "/ports/1/"

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(machine_path(path), "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* A second device with the same port GUID; the first one does not support its SMI side. */
TEST(a_planarized_device_is_opened_as_a_pair)
{
	int classes[] = {IB_SMI_CLASS, IB_SA_CLASS, IB_SMI_DIRECT_CLASS};
	struct ibmad_ports_pair *pair;
	char gid[64] = "";
	unsigned failed = 0;
	FILE *file;

	pair = mad_rpc_open_port2(NULL, 0, classes, 3, 0);
	assert_non_null(pair);
	assert_ptr_equal(pair->smi.port, pair->gsi.port);
	assert_string_equal(pair->gsi.ca_name, "mlx5_0");
	mad_rpc_close_port2(pair);
	machine_fail(MACHINE_OPEN, 1, EACCES);
	assert_fails_null(mad_rpc_open_port2(NULL, 0, classes, 3, 0), EACCES);

	mad_rpc_close_port(port);
	machine_stop();
	machine_start("star:8", "host,n8");
	port = NULL;
	file = fopen(machine_path(PORT_OF("mlx5_0") "gids/0"), "r");
	assert_non_null(fgets(gid, sizeof(gid), file));
	fclose(file);
	write_file(PORT_OF("mlx5_1") "gids/0", gid);
	write_file(PORT_OF("mlx5_1") "cap_mask", "0x2651ec48\n"); /* no SM */
	pair = mad_rpc_open_port2(NULL, 0, classes, 3, 0);
	assert_non_null(pair);
	assert_string_equal(pair->smi.ca_name, "mlx5_0");
	assert_string_equal(pair->gsi.ca_name, "mlx5_1");
	assert_int_equal(mad_rpc_class_agent(pair->smi.port, IB_SMI_CLASS), 0);
	assert_int_equal(mad_rpc_class_agent(pair->smi.port, IB_SA_CLASS), -1);
	assert_int_equal(mad_rpc_class_agent(pair->gsi.port, IB_SA_CLASS), 0);
	assert_int_equal(mad_rpc_class_agent(pair->gsi.port, IB_SMI_CLASS), -1);
	mad_rpc_close_port2(pair);
	assert_int_equal(machine_handles(), 0);
	for (unsigned n = 1; n <= 2; n++) {
		machine_fail(MACHINE_OPEN, n, EBUSY);
		assert_fails_null(mad_rpc_open_port2(NULL, 0, classes, 3, 0), EBUSY);
		assert_int_equal(machine_handles(), 0);
	}
	/* whichever allocation fails, and whichever port it is for */
	for (unsigned n = 1;; n++, failed++) {
		machine_fail(MACHINE_MALLOC, n, ENOMEM);
		pair = mad_rpc_open_port2(NULL, 0, classes, 3, 0);
		machine_fail(MACHINE_MALLOC, 0, 0);
		if (pair)
			break;
		assert_int_equal(mad_last_failure()->kind, MAD_FAILURE_OPEN);
		assert_int_equal(mad_last_failure()->error, -errno);
		assert_int_equal(machine_handles(), 0);
	}
	assert_true(failed >= 3);
	mad_rpc_close_port2(pair);
}

/* A RoCE port is in no pair. rdma-core finds it by its number only. */
TEST(a_port_of_another_link_layer_is_opened_for_gmps)
{
	int classes[] = {IB_PERFORMANCE_CLASS};
	struct ibmad_ports_pair *pair;

	write_file(PORT_OF("mlx5_0") "link_layer", "Ethernet\n");
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
}

/* --- options -------------------------------------------------------------------- */

static const struct {
	enum mad_port_option option;
	uint64_t first, least, most;
} options[] = {
	{MAD_PORT_SA_KEY, 0, 0, UINT64_MAX},
	{MAD_PORT_GID_INDEX, 0, 0, 255},
	{MAD_PORT_MAX_RESPONSE, 64 << 20, 256, SIZE_MAX},
	{MAD_PORT_SMP_WINDOW, 0, 0, 7},
	{MAD_PORT_GMP_WINDOW, 0, 0, 9},
	{MAD_PORT_DESTINATION_LIMIT, 0, 0, 100},
	{MAD_PORT_RATE, 0, 0, UINT32_MAX},
};

TEST(options_have_a_range_and_are_read_back_as_they_were_set)
{
	struct mad_async *async = mad_async_create(port);
	uint64_t value;

	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		enum mad_port_option option = options[i].option;

		value = 5;
		assert_int_equal(mad_port_get(port, option, &value), 0);
		assert_true(value == options[i].first);
		assert_int_equal(mad_port_set(port, option, options[i].least), 0);
		assert_int_equal(mad_port_set(port, option, options[i].most), 0);
		assert_int_equal(mad_port_get(port, option, &value), 0);
		assert_true(value == options[i].most);
		assert_int_equal(mad_port_set(NULL, option, options[i].most), -EINVAL);
	}
	assert_int_equal(stats_of(async).smp.window, 7);
	assert_int_equal(stats_of(async).gmp.window, 9);
	assert_int_equal(mad_port_set(port, MAD_PORT_GID_INDEX, 256), -EINVAL);
	assert_int_equal(mad_port_set(port, MAD_PORT_MAX_RESPONSE, 255), -EINVAL);
	assert_int_equal(mad_port_set(port, MAD_PORT_RATE, UINT64_C(1) << 32), -EINVAL);
	assert_int_equal(mad_port_set(port, MAD_PORT_SMP_WINDOW, UINT64_MAX), -EINVAL);
	assert_int_equal(mad_port_set(port, (enum mad_port_option)0, 1), -EINVAL);
	assert_int_equal(mad_port_set(port, (enum mad_port_option)99, 1), -EINVAL);
	value = 5;
	assert_int_equal(mad_port_get(port, (enum mad_port_option)0, &value), -EINVAL);
	assert_int_equal(mad_port_get(port, (enum mad_port_option)99, &value), -EINVAL);
	assert_int_equal(mad_port_get(NULL, MAD_PORT_RATE, &value), -EINVAL);
	assert_int_equal(mad_port_get(port, MAD_PORT_RATE, NULL), -EINVAL);
	assert_int_equal(value, 5);
	mad_async_free(async);
}

/* The time of a call wins over that of the port, and that over that of the process. */
TEST(a_port_keeps_its_key_timeout_and_retries)
{
	smp_mkey_set(port, 0x123456789abcdef0);
	smp_mkey_set(NULL, 1);
	assert_true(smp_mkey_get(port) == 0x123456789abcdef0);
	assert_int_equal(smp_mkey_get(NULL), 0);
	assert_int_equal(mad_get_timeout(port, 0), MAD_DEF_TIMEOUT_MS);
	assert_int_equal(mad_get_retries(port), MAD_DEF_RETRIES);
	assert_int_equal(madrpc_set_timeout(777), 0);
	assert_int_equal(mad_get_timeout(port, 0), 777);
	assert_int_equal(mad_get_timeout(NULL, 0), 777);
	mad_rpc_set_timeout(port, INT32_MAX);
	mad_rpc_set_timeout(NULL, 1);
	assert_int_equal(mad_get_timeout(port, 0), INT32_MAX);
	assert_int_equal(mad_get_timeout(port, 5), 5);
	madrpc_set_timeout(MAD_DEF_TIMEOUT_MS);

	assert_int_equal(madrpc_set_retries(9), 9);
	assert_int_equal(mad_get_retries(port), 9);
	assert_int_equal(mad_get_retries(NULL), 9);
	mad_rpc_set_retries(port, 2);
	mad_rpc_set_retries(NULL, 1);
	assert_int_equal(mad_get_retries(port), 2);
	assert_int_equal(madrpc_set_retries(1), 1);
	assert_int_equal(madrpc_set_retries(0), 1);
	assert_int_equal(madrpc_set_retries(-1), 1);
	madrpc_set_retries(MAD_DEF_RETRIES);
	mad_rpc_set_retries(port, -1); /* as if none were set */
	assert_int_equal(mad_get_retries(port), MAD_DEF_RETRIES);
}

TEST(a_request_with_a_grh_has_the_gid_of_the_port_s_index)
{
	struct mad_async *async = mad_async_create(port);
	const struct ib_user_mad *written = machine_written();
	struct outcome result = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_node("n1");

	to.grh_present = 1;
	to.gid[0] = 0xfe;
	to.gid[1] = 0x80;
	mad_set_field64(to.gid, 0, IB_GID_GUID_F, machine_guid("n1"));
	mad_port_set(port, MAD_PORT_GID_INDEX, 3);
	assert_null(mad_rpc(port, &rpc, &to, NULL, NULL));
	assert_int_equal(written->addr.gid_index, 3);
	mad_port_set(port, MAD_PORT_GID_INDEX, 4);
	assert_int_equal(mad_async_submit(async, &rpc, &to, NULL, 0, note, &result, NULL), 0);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(written->addr.gid_index, 4);
	mad_port_set(port, MAD_PORT_GID_INDEX, 255);
	assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, port), 0);
	assert_int_equal(written->addr.gid_index, 255);
	assert_int_equal(written->agent_id, mad_rpc_class_agent(port, IB_PERFORMANCE_CLASS));
	machine_pass(1);
	assert_int_equal(arrived, 3);
	for (int i = 0; i < 3; i++) {
		assert_true(arrivals[i].mad.grh);
		assert_memory_equal(arrivals[i].dgid, to.gid, 16);
		assert_true(mad_get_field64(arrivals[i].sgid, 0, IB_GID_GUID_F) ==
			    machine_guid("host"));
	}
	mad_async_free(async);
}

/* --- cancelling and counting many ----------------------------------------------- */

#define MANY  100000
#define FEW   1000
#define SLACK (256 << 10)

static struct outcome outcome; /* of all requests */
static uint64_t ids[MANY];

static void submit_many(struct mad_async *async, int count)
{
	char node[8];

	for (int i = 0; i < count; i++) {
		snprintf(node, sizeof(node), "n%d", 1 + i % 8);
		submit(async, set_request(), node, &outcome, &ids[i]);
	}
}

/* If cancelling took time for each queued request, this test would exceed the time limit. */
TEST(many_requests_are_cancelled_in_any_order)
{
	static const enum mad_port_option limits[] = {MAD_PORT_GMP_WINDOW,
						      MAD_PORT_DESTINATION_LIMIT};
	static const unsigned steps[] = {1, 77773};
	struct mad_async *async = mad_async_create(port);

	use_script("-");
	for (int i = 0; i < 4; i++) {
		mad_port_set(port, MAD_PORT_GMP_WINDOW, 0);
		mad_port_set(port, limits[i / 2], 1);
		submit_many(async, MANY);
		for (unsigned j = 0; j < MANY; j++)
			assert_int_equal(
				mad_async_cancel(
					async,
					ids[(MANY - 1 - j) * (uint64_t)steps[i % 2] % MANY]),
				0);
		outcome.calls = 0;
		assert_int_equal(mad_async_wait(async, -1), MANY);
		assert_int_equal(outcome.calls, MANY);
		assert_int_equal(outcome.error, -ECANCELED);
	}
	machine_pass(1);
	assert_in_range(arrived, 4, 32);
	mad_async_free(async);
}

TEST(memory_goes_back_after_a_burst)
{
	struct mad_async *async = mad_async_create(port);
	size_t before = heap_in_use(), most;

	if (!before)
		print_message("no heap_in_use(): memory is not checked\n");
	for (int cancel = 0; cancel < 2; cancel++) {
		use_script(cancel ? "-" : "ok");
		mad_port_set(port, MAD_PORT_GMP_WINDOW, 1000);
		submit_many(async, MANY / 2);
		most = heap_in_use();
		for (int i = 0; cancel && i < MANY / 2; i++)
			assert_int_equal(mad_async_cancel(async, ids[i]), 0);
		assert_int_equal(mad_async_wait(async, -1), MANY / 2);
		if (!before)
			continue;
		machine_pass(10000000); /* the kernel's memory, too */
		assert_true(most - before > MANY / 2 * IB_MAD_SIZE);
		assert_in_range(heap_in_use(), 0, before + SLACK);
	}
	assert_int_equal(stats_of(async).completed, MANY);
	for (int i = 0; i < 100000; i++) /* at once, however many there were */
		assert_int_equal(stats_of(async).in_flight, 0);
	mad_async_free(async);
}

/* Freed memory is allocated again: a new request is at the address of an older one. */
TEST(an_id_is_not_a_later_request_s)
{
	struct mad_async *async = mad_async_create(port);
	uint64_t first[FEW];

	use_script("-");
	submit_many(async, FEW);
	memcpy(first, ids, sizeof(first));
	for (int i = 0; i < FEW; i++) {
		assert_int_equal(mad_async_cancel(async, first[i]), 0);
		assert_int_equal(mad_async_cancel(async, first[i]), -ENOENT);
	}
	assert_int_equal(mad_async_wait(async, -1), FEW);
	submit_many(async, FEW);
	for (int i = 0; i < FEW; i++) {
		assert_int_equal(mad_async_cancel(async, first[i]), -ENOENT);
		for (int j = 0; j < FEW; j++)
			assert_true(first[i] != ids[j]);
	}
	assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
	assert_int_equal(mad_async_wait(async, -1), FEW);
	mad_async_free(async);
}

static void expect_counts(struct mad_async *async, unsigned queued, unsigned in_flight,
			  unsigned completed)
{
	struct mad_async_stats stats = stats_of(async);

	assert_int_equal(stats.queued, queued);
	assert_int_equal(stats.in_flight, in_flight);
	assert_int_equal(stats.completed, completed);
}

TEST(each_state_of_a_request_is_counted)
{
	struct mad_async *async = mad_async_create(port);

	use_script("- ok -");
	mad_port_set(port, MAD_PORT_GMP_WINDOW, 3);
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1);
	for (int i = 0; i < 3; i++) /* one is in flight, two are queued for the node */
		submit(async, set_request(), "n1", &outcome, &ids[i]);
	expect_counts(async, 2, 1, 0);
	for (int i = 3; i < 7; i++) /* two are in flight, two are queued for the window */
		submit(async, set_request(), (const char[][4]){"n2", "n3", "n4", "n5"}[i - 3],
		       &outcome, &ids[i]);
	expect_counts(async, 4, 3, 0);
	machine_pass(1); /* the response is not read yet */
	expect_counts(async, 4, 3, 0);
	/* cancelled: for the node, for the window, in flight; not called back yet */
	assert_int_equal(mad_async_cancel(async, ids[1]), 0);
	assert_int_equal(mad_async_cancel(async, ids[5]), 0);
	assert_int_equal(mad_async_cancel(async, ids[4]), 0);
	expect_counts(async, 4, 3, 0);
	/* now the unread response is handled, and the queued requests are sent */
	assert_int_equal(mad_async_process(async), 4);
	expect_counts(async, 1, 2, 4);
	assert_int_equal(mad_async_cancel(async, ids[0]), 0);
	assert_int_equal(mad_async_process(async), 1);
	expect_counts(async, 0, 2, 5);
	mad_rpc_set_retries(port, 1);
	assert_int_equal(mad_async_wait(async, -1), 2);
	assert_int_equal(outcome.error, -ETIMEDOUT);
	expect_counts(async, 0, 0, 7);
	/* with another ID after the second error */
	for (unsigned i = 0; i < 2; i++) {
		use_script("ok");
		machine_fail(MACHINE_WRITE, 1, i ? EINVAL : ENOMEM);
		submit(async, set_request(), "n1", &outcome, NULL);
		expect_counts(async, 0, 1, 7 + i);
		assert_int_equal(mad_async_wait(async, -1), 1);
		assert_int_equal(outcome.error, i ? 0 : -ENOMEM);
		expect_counts(async, 0, 0, 8 + i);
	}
	assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
	mad_async_free(async);
}

/* --- all calls at once ---------------------------------------------------------- */

#define ENGINES 2
#define CALLERS 5

static struct {
	struct mad_async *engines[ENGINES];
	atomic_bool ending[ENGINES]; /* no call on this engine begins any more */
	atomic_bool end;             /* no call at all begins any more */
	_Atomic uint64_t latest[ENGINES];
	atomic_uint submitted, called_back;
} all;

static void submit_one(unsigned engine, unsigned number);

/* Callbacks make calls, too. */
static void call_back(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	unsigned engine = async == all.engines[1], number = (unsigned)(uintptr_t)arg;

	all.called_back++;
	if (reply->error == -ECANCELED)
		return;
	if (number % 5 == 0)
		submit_one(engine, number / 5 + 1);
	if (number % 7 == 0)
		mad_async_cancel(async, all.latest[engine]);
	if (number % 11 == 0)
		mad_async_process(async);
}

static void submit_one(unsigned engine, unsigned number)
{
	ib_rpc_t rpc = number & 1 ? get_request() : set_request();
	ib_portid_t to = {.lid = (int)(11 + number % 8)};
	uint64_t id;

	if (mad_async_submit(all.engines[engine], &rpc, &to, NULL, 0, call_back,
			     (void *)(uintptr_t)number, &id))
		return;
	all.latest[engine] = id;
	all.submitted++;
}

static void call_port(unsigned kind, unsigned number)
{
	ib_rpc_t rpc = number & 1 ? get_request() : set_request();
	ib_portid_t to = {.lid = (int)(11 + number % 8), .qp = 1};
	uint8_t data[IB_MAD_SIZE] = {0};
	struct mad_message message;

	if (kind == 0) {
		mad_free(mad_receive_via(NULL, (int)(number % 3), port));
	} else if (kind == 1) {
		mad_rpc(port, &rpc, &to, data, data);
	} else if (kind == 2) {
		mad_rpc_message(port, &rpc, &to, data, 4, &message);
		mad_message_free(&message);
	} else {
		mad_port_set(port, MAD_PORT_SMP_WINDOW, number % 4 * 8);
		mad_port_set(port, MAD_PORT_GMP_WINDOW, number % 3);
		mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1 + number % 16);
	}
}

static void call_engine(unsigned engine, unsigned kind, unsigned number)
{
	struct mad_async *async = all.engines[engine];

	if (kind == 4)
		mad_async_cancel(async, all.latest[engine]);
	else if (kind == 5)
		mad_async_wait(async, (int)(number % 4));
	else if (kind == 6)
		mad_async_process(async);
	else if (kind == 7)
		stats_of(async);
	else if (kind == 8)
		mad_async_poll_fd(async);
	else if (kind == 9)
		mad_async_stop(async);
	else if (kind == 10 && number % 8 == 0)
		mad_async_cancel(async, MAD_ASYNC_ALL);
	else
		submit_one(engine, number);
}

static void *call_all(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	while (!all.end) {
		unsigned engine = (unsigned)rand_r(&seed) % ENGINES;
		unsigned kind = (unsigned)rand_r(&seed) % 16, number = (unsigned)rand_r(&seed);

		if (kind < 4)
			call_port(kind, number);
		else if (!all.ending[engine])
			call_engine(engine, kind, number);
		machine_pass(rand_r(&seed) % 300);
	}
	return NULL;
}

static void *serve(void *arg)
{
	struct mad_async *async = arg;
	struct pollfd pollfd = {.fd = mad_async_poll_fd(async), .events = POLLIN};

	while (!all.ending[0] && !all.end) {
		poll(&pollfd, 1, 5);
		mad_async_process(async);
	}
	return NULL;
}

static void call_all_at_once(unsigned seed, bool by_closing)
{
	pthread_t callers[CALLERS], server;

	memset(&all, 0, sizeof(all));
	machine_rule("loss 3%%");
	machine_rule("duplicate 3%%");
	machine_rule("slow 200us");
	machine_rule("busy 10%% on n3");
	mad_rpc_set_timeout(port, 5);
	mad_rpc_set_retries(port, 2);
	for (int i = 0; i < ENGINES; i++)
		all.engines[i] = mad_async_create(port);
	for (unsigned i = 0; i < CALLERS; i++)
		pthread_create(&callers[i], NULL, call_all, (void *)(uintptr_t)(seed + i));
	pthread_create(&server, NULL, serve, all.engines[0]);
	machine_pass(20000);
	if (by_closing) {
		/* calls that begin afterwards would use a port that is freed */
		all.end = true;
		mad_rpc_close_port(port);
		port = NULL;
	}
	for (int i = 0; i < ENGINES && !by_closing; i++) {
		all.ending[i] = true;
		if (i == 0)
			pthread_join(server, NULL);
		mad_async_free(all.engines[i]);
		machine_pass(5000);
	}
	all.end = true;
	for (int i = 0; i < CALLERS; i++)
		pthread_join(callers[i], NULL);
	if (by_closing)
		pthread_join(server, NULL);
	for (int i = 0; i < ENGINES && by_closing; i++)
		mad_async_free(all.engines[i]);
	assert_int_equal(all.called_back, all.submitted);
}

TEST(engines_are_freed_while_others_are_in_their_calls)
{
	unsigned seed = test_seed();

	machine_on_arrival(NULL, NULL);
	for (unsigned i = 0; i < 20; i++)
		call_all_at_once(seed + 100 * i, false);
}

TEST(a_port_is_closed_while_others_are_in_its_calls)
{
	unsigned seed = test_seed();

	for (unsigned i = 0; i < 20; i++) {
		machine_on_arrival(NULL, NULL);
		call_all_at_once(seed + 100 * i, true);
		requests_teardown();
		requests_setup();
	}
}
