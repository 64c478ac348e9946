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

static void expect_failure(int error, unsigned mgmt_class, const char *text)
{
	char buffer[MAD_ERROR_TEXT_SIZE];

	assert_int_equal(mad_last_failure()->kind,
			 mgmt_class ? MAD_FAILURE_REGISTER : MAD_FAILURE_OPEN);
	assert_int_equal(mad_last_failure()->error, -error);
	assert_int_equal(mad_last_failure()->mgmt_class, mgmt_class);
	assert_string_equal(mad_failure_text(NULL, buffer, sizeof(buffer)), text);
}

TEST(what_cannot_be_opened_says_why_and_leaves_nothing)
{
	char no_such[] = "no\nsuch", text[128];
	int classes[256] = {IB_SMI_CLASS};
	const struct {
		char *ca;
		int port, *classes, count, error;
		enum machine_call failing;
	} rows[] =
		{
			{no_such, 3, classes, 1, ENODEV, MACHINE_CALLS},
			{NULL, 256, classes, 1, ENODEV, MACHINE_CALLS},
			{NULL, 1, classes, 1, EACCES, MACHINE_OPEN},
			{NULL, 1, classes, 1, ENOMEM, MACHINE_MALLOC},
			{NULL, 0, NULL, 1, EINVAL, MACHINE_CALLS},
			{NULL, 0, classes, -1, EINVAL, MACHINE_CALLS},
			{NULL, 0, classes, 256, EINVAL, MACHINE_CALLS},
		},
	  *row = rows;

	for (int i = 0; i < 14; i++, row += i % 2 == 0) {
		if (row->failing < MACHINE_CALLS)
			machine_fail(row->failing, 1, row->error);
		errno = 0;
		assert_null(i % 2 ? (void *)mad_rpc_open_port2(row->ca, row->port, row->classes,
							       row->count, 0)
				  : mad_rpc_open_port(row->ca, row->port, row->classes,
						      row->count));
		assert_int_equal(errno, row->error);
		snprintf(text, sizeof(text), "the port cannot be opened: %s",
			 strerror(row->error));
		expect_failure(row->error, 0, text);
		assert_int_equal(machine_handles(), 1);
	}
	mad_rpc_close_port2(NULL);
	assert_int_equal(mad_port_open(NULL, 0, NULL), -EINVAL);
	assert_string_equal(heard, "mad_rpc_open_port: cannot open no?such port 3\n"
				   "mad_rpc_open_port2: cannot open no?such port 3\n"
				   "mad_rpc_open_port: cannot open (any) port 256\n"
				   "mad_rpc_open_port2: cannot open (any) port 256\n"
				   "mad_rpc_open_port: cannot open (any) port 1\n"
				   "mad_rpc_open_port2: cannot open mlx5_0 port 1\n"
				   "mad_rpc_open_port2: cannot open (any) port 1\n"
				   "mad_rpc_open_port: 256 classes are too many\n"
				   "mad_rpc_open_port2: 256 classes are too many\n");
	heard[0] = '\0';
	remove(machine_path("/sys/class/infiniband_mad/abi_version"));
	assert_null(mad_rpc_open_port2(no_such, 0, classes, 1, 0));
	assert_string_equal(heard, "/sys/class/infiniband_mad/abi_version cannot be read "
				   "(No such file or directory): is ib_umad loaded?\n"
				   "mad_rpc_open_port2: cannot open no?such port 0\n");
}

TEST(a_class_that_cannot_be_registered_is_named)
{
	static const int not_registered[] = {-1, 0, 0x50, 256};
	struct ibmad_port *other;
	uint8_t info[IB_PC_DATA_SZ] = {0};
	int classes[] = {IB_SMI_CLASS, 0x99};
	ib_portid_t to = to_node("n1");

	machine_fail(MACHINE_IOCTL, 2, EPERM); /* the first one enables the P_Key index */
	assert_fails_null(open_with(IB_PERFORMANCE_CLASS), EPERM);
	expect_failure(EPERM, IB_PERFORMANCE_CLASS,
		       "performance management: the class cannot be registered: Operation not "
		       "permitted");
	assert_fails_null(mad_rpc_open_port(NULL, 0, classes, 2), EINVAL);
	expect_failure(EINVAL, 0x99,
		       "class 0x99: the class cannot be registered: Invalid argument");
	for (int i = 0; i < 4; i++)
		assert_int_equal(mad_register_client_via(not_registered[i], 0, port), -1);
	assert_int_equal(mad_register_server_via(256, 0, NULL, 0, port), -1);
	assert_int_equal(mad_register_client_via(1, 0, NULL), -1);
	assert_int_equal(mad_register_server_via(1, 0, NULL, 0, NULL), -1);
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

static bool is_received(uint8_t mgmt_class, uint8_t method)
{
	uint8_t mad[MACHINE_MAD] = {1, mgmt_class, 1, method, [37] = 0x12, 0x34, 0x56};
	void *umad;

	machine_send("n2", mad, 0);
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
	assert_true(is_received(VENDOR_1, 0x7f));
}

TEST(an_older_kernel_will_do)
{
	mad_rpc_close_port(port);
	machine_old_kernel();
	port = open_with(IB_SMI_CLASS);
	assert_int_equal(umad_size(), 56);
	assert_int_equal(ask(get_request(), "n3"), 0);
	requests_teardown();
	requests_setup();
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

static void expect_pair(struct ibmad_ports_pair *pair, const char *smi, const char *gsi)
{
	bool apart = strcmp(smi, gsi) != 0;

	assert_non_null(pair);
	assert_string_equal(pair->smi.ca_name, smi);
	assert_string_equal(pair->gsi.ca_name, gsi);
	assert_int_equal(pair->smi.port != pair->gsi.port, apart);
	assert_int_equal(mad_rpc_class_agent(pair->smi.port, IB_SMI_CLASS), 0);
	assert_int_equal(mad_rpc_class_agent(pair->smi.port, IB_SA_CLASS), apart ? -1 : 1);
	assert_int_equal(mad_rpc_class_agent(pair->gsi.port, IB_SA_CLASS), !apart);
	assert_int_equal(mad_rpc_class_agent(pair->gsi.port, IB_SMI_CLASS), apart ? -1 : 0);
	mad_rpc_close_port2(pair);
}

/* A second device with the same port GUID; the first one does not support its SMI side. */
TEST(a_planarized_device_is_opened_as_a_pair)
{
	int classes[] = {IB_SMI_CLASS, IB_SA_CLASS, IB_SMI_DIRECT_CLASS};
	struct ibmad_ports_pair *pair = NULL;
	char gid[64] = "";
	FILE *file;

	expect_pair(mad_rpc_open_port2(NULL, 0, classes, 3, 0), "mlx5_0", "mlx5_0");
	mad_rpc_close_port(port);
	machine_stop();
	machine_start("star:8", "host,n8");
	port = NULL;
	file = fopen(machine_path(PORT_OF("mlx5_0") "gids/0"), "r");
	assert_non_null(fgets(gid, sizeof(gid), file));
	fclose(file);
	write_file(PORT_OF("mlx5_1") "gids/0", gid);
	write_file(PORT_OF("mlx5_1") "cap_mask", "0x2651ec48\n"); /* no SM */
	expect_pair(mad_rpc_open_port2(NULL, 0, classes, 3, 0), "mlx5_0", "mlx5_1");
	for (unsigned n = 1; n <= 2; n++) {
		machine_fail(MACHINE_OPEN, n, EBUSY);
		assert_fails_null(mad_rpc_open_port2(NULL, 0, classes, 3, 0), EBUSY);
		assert_int_equal(machine_handles(), 0);
	}
	/* whichever allocation fails, and whichever port it is for */
	for (unsigned n = 1; !pair; n++) {
		machine_fail(MACHINE_MALLOC, n, ENOMEM);
		pair = mad_rpc_open_port2(NULL, 0, classes, 3, 0);
		machine_fail(MACHINE_MALLOC, 0, 0);
		assert_true(pair ? n > 3 : mad_last_failure()->error == -errno);
		assert_int_equal(machine_handles(), pair ? 2 : 0);
	}
	mad_rpc_close_port2(pair);
}

/* A RoCE port is in no pair. rdma-core finds it by its number only. */
TEST(a_port_of_another_link_layer_is_opened_for_gmps)
{
	int classes[] = {IB_SMI_CLASS, IB_SA_CLASS};

	write_file(PORT_OF("mlx5_0") "link_layer", "Ethernet\n");
	for (int portnum = 0; portnum <= 1; portnum++) {
		expect_pair(mad_rpc_open_port2(NULL, portnum, classes, 2, 0), "mlx5_0",
			    "mlx5_0");
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
	static const struct {
		enum mad_port_option option;
		uint64_t value;
	} refused[] = {{MAD_PORT_GID_INDEX, 256},          {MAD_PORT_MAX_RESPONSE, 255},
		       {MAD_PORT_RATE, UINT64_C(1) << 32}, {MAD_PORT_SMP_WINDOW, UINT64_MAX},
		       {(enum mad_port_option)0, 1},       {(enum mad_port_option)99, 1}};
	struct mad_async *async = mad_async_create(port);
	uint64_t value = 5;

	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		enum mad_port_option option = options[i].option;

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
	value = 5;
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		assert_int_equal(mad_port_set(port, refused[i].option, refused[i].value),
				 -EINVAL);
		if (i >= 4)
			assert_int_equal(mad_port_get(port, refused[i].option, &value),
					 -EINVAL);
	}
	assert_int_equal(mad_port_get(NULL, MAD_PORT_RATE, &value), -EINVAL);
	assert_int_equal(mad_port_get(port, MAD_PORT_RATE, NULL), -EINVAL);
	assert_int_equal(value, 5);
	mad_async_free(async);
}

static void expect_time_and_retries(int of_port, int of_process, int retries, int its_retries)
{
	assert_int_equal(mad_get_timeout(port, 0), of_port);
	assert_int_equal(mad_get_timeout(port, 5), 5);
	assert_int_equal(mad_get_timeout(NULL, 0), of_process);
	assert_int_equal(mad_get_retries(port), retries);
	assert_int_equal(mad_get_retries(NULL), its_retries);
}

/* The time of a call wins over that of the port, and that over that of the process. */
TEST(a_port_keeps_its_key_timeout_and_retries)
{
	smp_mkey_set(port, 0x123456789abcdef0);
	smp_mkey_set(NULL, 1);
	assert_true(smp_mkey_get(port) == 0x123456789abcdef0);
	assert_int_equal(smp_mkey_get(NULL), 0);
	expect_time_and_retries(MAD_DEF_TIMEOUT_MS, MAD_DEF_TIMEOUT_MS, MAD_DEF_RETRIES,
				MAD_DEF_RETRIES);
	assert_int_equal(madrpc_set_timeout(777), 0);
	assert_int_equal(madrpc_set_retries(9), 9);
	expect_time_and_retries(777, 777, 9, 9);
	mad_rpc_set_timeout(port, INT32_MAX);
	mad_rpc_set_timeout(NULL, 1);
	mad_rpc_set_retries(port, 2);
	mad_rpc_set_retries(NULL, 1);
	expect_time_and_retries(INT32_MAX, 777, 2, 9);
	for (int retries = 1; retries >= -1; retries--)
		assert_int_equal(madrpc_set_retries(retries), 1);
	madrpc_set_timeout(MAD_DEF_TIMEOUT_MS);
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
	for (unsigned i = 0; i < 3; i++) {
		mad_port_set(port, MAD_PORT_GID_INDEX, 253 + i);
		if (i == 0)
			mad_rpc(port, &rpc, &to, NULL, NULL);
		else if (i == 1)
			mad_async_submit(async, &rpc, &to, NULL, 0, note, &result, NULL);
		else
			mad_send_via(&rpc, &to, NULL, NULL, port);
		mad_async_wait(async, -1);
		machine_pass(1);
		assert_int_equal(arrived, i + 1);
		assert_int_equal(written->addr.gid_index, 253 + i);
		assert_true(arrivals[i].mad.grh);
		assert_memory_equal(arrivals[i].dgid, to.gid, 16);
		assert_true(mad_get_field64(arrivals[i].sgid, 0, IB_GID_GUID_F) ==
			    machine_guid("host"));
	}
	assert_int_equal(written->agent_id, mad_rpc_class_agent(port, IB_PERFORMANCE_CLASS));
	mad_async_free(async);
}

/* --- cancelling and counting many ----------------------------------------------- */

#define MANY  100000
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
	struct mad_async *async = mad_async_create(port);

	use_script("-");
	for (int i = 0; i < 4; i++) {
		uint64_t step = i % 2 ? 77773 : 1;

		mad_port_set(port, MAD_PORT_GMP_WINDOW, 0);
		mad_port_set(port, limits[i / 2], 1);
		submit_many(async, MANY);
		for (unsigned j = 0; j < MANY; j++) {
			uint64_t id = ids[(MANY - 1 - j) * step % MANY];

			assert_int_equal(mad_async_cancel(async, id), 0);
			assert_int_equal(mad_async_cancel(async, id), -ENOENT);
		}
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
	size_t before = heap_in_use();

	for (int cancel = 0; cancel < 2; cancel++) {
		use_script(cancel ? "-" : "ok");
		mad_port_set(port, MAD_PORT_GMP_WINDOW, 1000);
		submit_many(async, MANY / 2);
		/* 0 where the allocator does not report its memory */
		assert_true(!before || heap_in_use() - before > MANY / 2 * IB_MAD_SIZE);
		if (cancel)
			assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
		assert_int_equal(mad_async_wait(async, -1), MANY / 2);
		machine_pass(10000000); /* the kernel's memory, too */
		assert_in_range(heap_in_use(), 0, before + SLACK);
	}
	assert_int_equal(stats_of(async).completed, MANY);
	for (int i = 0; i < 100000; i++) /* at once, however many there were */
		assert_int_equal(stats_of(async).in_flight, 0);
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

/* --- calls while an engine or the port ends ------------------------------------- */

#define CALLERS 5

static struct mad_async *engine;
static bool port_ends;     /* rather than the engine */
static atomic_bool ending; /* no call begins any more */
static _Atomic uint64_t latest;
static atomic_uint submitted, called_back;

/* Callbacks make calls, too. */
static void call_back(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	(void)arg;
	called_back++;
	if (reply->error != -ECANCELED && called_back % 7 == 0)
		mad_async_cancel(async, latest);
}

static void call_one(unsigned kind)
{
	ib_rpc_t rpc = kind & 1 ? get_request() : set_request();
	ib_portid_t to = {.lid = (int)(11 + kind % 8)};
	uint8_t data[IB_MAD_SIZE] = {0};
	uint64_t id;

	if (kind < 8 && !mad_async_submit(engine, &rpc, &to, NULL, 0, call_back, NULL, &id)) {
		latest = id;
		submitted++;
	} else if (kind == 8) {
		mad_async_cancel(engine, latest);
	} else if (kind == 9) {
		mad_async_wait(engine, 3);
	} else if (kind == 10) {
		mad_async_process(engine);
	} else if (kind == 11) {
		stats_of(engine);
	} else if (kind == 12) {
		mad_async_stop(engine);
	} else if (port_ends) {
		mad_rpc(port, &rpc, &to, data, data);
		if (!ending)
			mad_free(mad_receive_via(NULL, 2, port));
	}
}

static void *call_all(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	while (!ending) {
		call_one((unsigned)rand_r(&seed) % 16);
		machine_pass(rand_r(&seed) % 300);
	}
	return NULL;
}

TEST(an_engine_or_a_port_ends_while_others_are_in_their_calls)
{
	unsigned seed = test_seed();
	pthread_t callers[CALLERS];

	for (unsigned round = 0; round < 40; round++) {
		port_ends = round % 2;
		ending = false;
		submitted = called_back = 0;
		machine_on_arrival(NULL, NULL);
		machine_rule("loss 3%%");
		machine_rule("slow 200us");
		mad_rpc_set_timeout(port, 5);
		engine = mad_async_create(port);
		for (unsigned i = 0; i < CALLERS; i++)
			pthread_create(&callers[i], NULL, call_all,
				       (void *)(uintptr_t)(seed + 100 * round + i));
		machine_pass(10000);
		ending = true;
		if (port_ends)
			mad_rpc_close_port(port);
		else
			mad_async_free(engine);
		for (int i = 0; i < CALLERS; i++)
			pthread_join(callers[i], NULL);
		if (port_ends)
			mad_async_free(engine);
		else
			mad_rpc_close_port(port);
		assert_int_equal(called_back, submitted);
		port = NULL;
		requests_teardown();
		requests_setup();
	}
}
