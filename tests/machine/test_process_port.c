/* SPDX-License-Identifier: BSD-2-Clause */

/* The calls without a port argument, which use the port of the process. */

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#include "captured_output.h"
#include "requests.h"

#include <stdatomic.h>
#include <sys/wait.h>

/* The port of the process is open until the process ends. */
GROUP(machine_setup, NULL);

static uint8_t buf[256];
static ib_portid_t to;

static int setup(void)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS};

	memset(buf, 0, sizeof(buf));
	to = to_node("n1");
	madrpc_init(NULL, 0, classes, 4);
	use_script("ok");
	return 0;
}

FIXTURE(setup, NULL);

/* --- the port ------------------------------------------------------------------- */

PLAIN_TEST(without_init_nothing_works)
{
	ib_rpc_t rpc = {.mgtclass = IB_SMI_CLASS};

	assert_int_equal(madrpc_portid(), -1);
	assert_int_equal(mad_class_agent(IB_SMI_CLASS), -1);
	assert_int_equal(mad_agent_class(0), 0);
	assert_fails_minus_1(mad_register_client(IB_SMI_CLASS, 0), EINVAL);
	assert_fails_null(smp_query(buf, &to, 0x11, 0, 0), EINVAL);
	assert_fails_null(madrpc(&rpc, &to, buf, buf), EINVAL);
	assert_fails_minus_1(mad_send(&rpc, &to, NULL, buf), EINVAL);
	assert_fails_null(mad_receive(NULL, 0), EINVAL);
}

TEST(init_opens_a_port_with_its_agents_and_later_another_one)
{
	static const int agents[32] = {IB_SMI_CLASS,         IB_SMI_DIRECT_CLASS, IB_SA_CLASS,
				       IB_PERFORMANCE_CLASS, IB_CC_CLASS,         VENDOR_2};

	assert_true(madrpc_portid() >= 0);
	assert_int_equal(mad_class_agent(IB_CC_CLASS), -1);
	assert_int_equal(mad_class_agent(-1), -1);
	assert_int_equal(mad_class_agent(256), -1);
	assert_int_equal(mad_register_client(IB_CC_CLASS, 0), 0);
	assert_int_equal(mad_class_agent(IB_CC_CLASS), 4);
	assert_int_equal(mad_register_server(VENDOR_2, 0, NULL, 0x123456), 5);
	for (int i = 0; i < 32; i++)
		assert_int_equal(mad_agent_class(i), agents[i]);
	assert_int_equal(mad_agent_class(32), -1);
	assert_int_equal(mad_agent_class(-1), -1);
	madrpc_init((char[]){"mlx5_0"}, 1, (int[]){IB_SA_CLASS}, 1);
	assert_int_equal(machine_handles(), 1);
	assert_int_equal(mad_class_agent(IB_SA_CLASS), 0);
	assert_int_equal(mad_class_agent(IB_SMI_CLASS), -1);
}

/* --- every call ------------------------------------------------------------------ */

TEST(requests_of_each_class_go_by_it)
{
	/* class, method and attribute of each request */
	static const uint8_t expected[][3] = {
		{0x01, 1, 0x15}, {0x01, 2, 0x15}, {0x01, 1, 0x14},  {0x01, 2, 0x14},
		{0x04, 1, 0x12}, {0x04, 2, 0x12}, {VENDOR_1, 1, 0}, {0x03, 1, 0x11},
		{0x03, 1, 0x11}, {0x03, 1, 0x35}, {0x04, 2, 0x12},  {0x03, 1, 0x11}};
	ib_vendor_call_t vendor = {.method = IB_MAD_METHOD_GET, .mgmt_class = VENDOR_1};
	ib_sa_call_t call = {.method = IB_MAD_METHOD_GET, .attrid = IB_SA_ATTR_NODERECORD};
	ib_rpc_t set = set_request();
	ib_rpc_t node = make_rpc(IB_SA_CLASS, IB_MAD_METHOD_GET, IB_SA_ATTR_NODERECORD);
	ib_rmpp_hdr_t rmpp = {0};
	ibmad_gid_t gid = {1};

	assert_ptr_equal(smp_query(buf, &to, IB_ATTR_PORT_INFO, 3, 0), buf);
	assert_ptr_equal(smp_set(buf, &to, IB_ATTR_PORT_INFO, 3, 0), buf);
	assert_ptr_equal(safe_smp_query(buf, &to, IB_ATTR_GUID_INFO, 3, 0), buf);
	assert_ptr_equal(safe_smp_set(buf, &to, IB_ATTR_GUID_INFO, 3, 0), buf);
	assert_ptr_equal(port_performance_query(buf, &to, 0xff, 0), buf);
	assert_ptr_equal(port_performance_reset(buf, &to, 2, 0xf, 0), buf);
	assert_null(ib_vendor_call(buf, &to, &vendor));
	assert_int_equal(mad_register_client(VENDOR_1, 0), 0);
	assert_ptr_equal(ib_vendor_call(buf, &to, &vendor), buf);
	assert_ptr_equal(sa_call(buf, &to, &call, 0), buf);
	assert_ptr_equal(safe_sa_call(buf, &to, &call, 0), buf);
	assert_int_equal(ib_path_query(gid, gid, &to, buf), 0);
	assert_ptr_equal(madrpc(&set, &to, buf, buf), buf);
	assert_ptr_equal(madrpc_rmpp(&node, &to, &rmpp, buf), buf);
	assert_int_equal(arrived, sizeof(expected) / sizeof(*expected));
	for (unsigned i = 0; i < arrived; i++) {
		assert_int_equal(arrivals[i].bytes[1], expected[i][0]);
		assert_int_equal(arrivals[i].bytes[3], expected[i][1]);
		assert_int_equal(arrivals[i].bytes[17], expected[i][2]);
		assert_int_equal(arrivals[i].bytes[23], i < 4 ? 3 : 0);
	}
	assert_int_equal(arrivals[4].bytes[65], 0xff);
	assert_memory_equal(arrivals[5].bytes + 65, "\x02\x00\x0f", 3);
}

TEST(addresses_are_resolved_by_it)
{
	ib_portid_t found = {0}, sm = {0};
	uint64_t guid = machine_guid("n5");
	char name[32];
	int portnum;

	machine_on_arrival(NULL, NULL);
	assert_int_equal(ib_resolve_smlid(&sm, 0), 0);
	assert_int_equal(sm.lid, machine_lid("sm"));
	assert_int_equal(ib_resolve_self(&found, &portnum, NULL), 0);
	assert_int_equal(found.lid, machine_lid("host"));
	assert_int_equal(ib_resolve_guid(&found, &guid, &sm, 0), 0);
	assert_int_equal(found.lid, machine_lid("n5"));
	snprintf(name, sizeof(name), "0x%llx", (unsigned long long)guid);
	found.lid = 0;
	assert_int_equal(ib_resolve_portid_str(&found, name, IB_DEST_GUID, &sm), 0);
	assert_int_equal(found.lid, machine_lid("n5"));
}

TEST(messages_of_others_go_by_it)
{
	uint8_t mad[MACHINE_MAD] = {1, VENDOR_2, 1, 1, [37] = 0x12, 0x34, 0x56};
	ib_rpc_t rpc = get_request();
	void *umad;

	assert_int_equal(mad_send(&rpc, &to, NULL, buf), 0);
	machine_pass(1000);
	assert_int_equal(arrived, 1);
	mad_free(mad_receive(NULL, 0)); /* the response */
	assert_true(mad_register_server(VENDOR_2, 0, NULL, 0x123456) >= 0);
	machine_send("n3", mad, 500000);
	umad = mad_receive(NULL, 1000);
	assert_non_null(umad);
	assert_int_equal(mad_respond(umad, NULL, 0), 0);
	machine_pass(1000);
	assert_string_equal(arrivals[1].mad.node, "n3");
	assert_int_equal(arrivals[1].bytes[3], IB_MAD_METHOD_GET_RESPONSE);
	mad_free(umad);
}

/* --- saving a response ---------------------------------------------------------- */

TEST(the_next_response_is_saved_once)
{
	uint8_t saved[300];

	memset(saved, 0x55, sizeof(saved));
	buf[0] = 0xaa;
	madrpc_save_mad(saved, 66);
	assert_non_null(smp_query(buf, &to, 0x11, 0, 0));
	assert_memory_equal(saved, ((uint8_t[]){1, IB_SMI_CLASS, 1, 0x81}), 4);
	assert_int_equal(saved[64], 0xaa);
	assert_int_equal(saved[66], 0x55);
	assert_non_null(smp_query(buf, &to, 0x12, 0, 0));
	assert_int_equal(saved[17], 0x11);
	madrpc_save_mad(saved, 300); /* no more than there is */
	assert_non_null(smp_query(buf, &to, 0x11, 0, 0));
	assert_int_equal(saved[255], 0);
	for (int i = 0; i < 3; i++) {
		madrpc_save_mad(i ? saved + 256 : NULL, i == 2 ? -1 : i ? 0 : 10);
		assert_non_null(smp_query(buf, &to, 0x11, 0, 0));
	}
	assert_int_equal(saved[256], 0x55);
	use_script("1c");
	madrpc_save_mad(saved, 24);
	assert_null(smp_query(buf, &to, 0x77, 0, 0));
	assert_int_equal(saved[5], 0x1c);
}

/* --- the lock ------------------------------------------------------------------- */

static void *set_safely(void *arg)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {0};
	ib_portid_t there = {.lid = 11};

	return safe_smp_set(data, &there, 0x11, 0, 0) ? NULL : arg;
}

TEST(a_lock_keeps_safe_calls_out)
{
	pthread_t thread;
	void *failed;

	madrpc_lock();
	/* calls that are not safe do not use the lock */
	assert_non_null(smp_set(buf, &to, 0x11, 0, 0));
	assert_int_equal(pthread_create(&thread, NULL, set_safely, &to), 0);
	machine_pass(20000);
	assert_int_equal(arrived, 1);
	madrpc_unlock();
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	assert_int_equal(arrived, 2);
	madrpc_unlock(); /* which is not locked */
	assert_null(set_safely(&to));
	madrpc_lock();
	madrpc_unlock();
}

static bool ended, locks;

/* A cancellation is pending: the first cancellation point ends the thread. */
static void *call_cancelled(void *arg)
{
	pthread_cancel(pthread_self());
	if (locks)
		madrpc_lock();
	else
		set_safely(arg);
	ended = true;
	pthread_testcancel();
	return NULL;
}

static void cancel_thread(void)
{
	pthread_t thread;
	void *result;

	ended = false;
	assert_int_equal(pthread_create(&thread, NULL, call_cancelled, NULL), 0);
	machine_pass(50000); /* the thread waits for the lock */
	madrpc_unlock();
	pthread_join(thread, &result);
	assert_true(ended && result == PTHREAD_CANCELED);
	madrpc_unlock();
	assert_null(set_safely(&to));
}

static void test_cancellation(enum umad_log_level level, const char *line, void *arg)
{
	(void)level, (void)line, (void)arg;
	pthread_testcancel();
}

/* While it waits for the lock, in a call, and in a log hook that is a cancellation point. */
TEST(a_cancelled_thread_leaves_the_lock_usable)
{
	locks = false;
	madrpc_lock();
	cancel_thread();
	umad_set_log_hook(test_cancellation, NULL);
	machine_fail(MACHINE_WRITE, 1, ENOMEM); /* the failure is reported to the hook */
	cancel_thread();
	umad_set_log_hook(NULL, NULL);
	locks = true;
	cancel_thread();
}

/* --- children ------------------------------------------------------------------- */

/* In a child; returns how the child has ended. */
static int run_in_child(void (*function)(void))
{
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	if (!child) {
		alarm(60);
		function();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void call_safely(void)
{
	if (set_safely(&to))
		_exit(1);
}

static atomic_bool saved;

static void *save_always(void *arg)
{
	while (!saved)
		madrpc_save_mad(arg, sizeof(buf));
	madrpc_save_mad(NULL, 0);
	return NULL;
}

static void save_response(void)
{
	uint8_t mad[256] = {0};

	madrpc_save_mad(mad, sizeof(mad));
	if (!smp_query(buf, &to, IB_ATTR_NODE_INFO, 0, 0) || mad[1] != IB_SMI_CLASS)
		_exit(1);
}

TEST(a_child_saves_a_response_while_another_thread_does)
{
	static uint8_t mad[sizeof(buf)];
	pthread_t thread;

	saved = false;
	assert_int_equal(pthread_create(&thread, NULL, save_always, mad), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(run_in_child(save_response), 0);
	saved = true;
	pthread_join(thread, NULL);
}

static void fail_init(void)
{
	madrpc_init((char[]){"nodev"}, 1, (int[]){IB_SMI_CLASS}, 1);
}

static void init_without_classes(void)
{
	madrpc_init(NULL, 1, NULL, 1);
}

/* The last test: a child removes the files of sysfs when it ends. */
TEST(a_child_does_not_wait_for_a_lock_and_ends_with_an_init_that_fails)
{
	const char *said;

	madrpc_lock();
	assert_int_equal(run_in_child(call_safely), 0);
	madrpc_unlock();
	capture_output(stderr);
	assert_int_equal(run_in_child(fail_init), 255);
	assert_int_equal(run_in_child(init_without_classes), 255);
	said = captured_output();
	assert_non_null(strstr(said, "madrpc_init: cannot open nodev port 1"));
	assert_non_null(strstr(said, "madrpc_init: cannot open (any) port 1"));
}
