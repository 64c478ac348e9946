/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The calls without a port argument. The process's port can be opened again, but not closed:
 * all tests share one device, and look at the packets since their start.
 */

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#include "fake.h"
#include "mad_fixture.h"
#include "test.h"

#include <infiniband/umad_ext.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

/* The port of the process is open until the process ends. */
static int teardown(void)
{
	fake_teardown();
	return 0;
}

GROUP(device_setup, teardown);

static uint8_t buf[256];
static ib_portid_t to;
static unsigned first;

static int setup(void)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS};

	memset(&fixture, 0, sizeof(fixture));
	memset(buf, 0, sizeof(buf));
	to = (ib_portid_t){.lid = 7};
	device_on_write(respond_to_request, NULL);
	madrpc_init(NULL, 0, classes, 4);
	first = device_written();
	errno = 0;
	return 0;
}

FIXTURE(setup, NULL);

static unsigned written(void)
{
	return device_written() - first;
}

/* --- the port ------------------------------------------------------------------- */

PLAIN_TEST(without_init_nothing_works)
{
	ib_sa_call_t call = {0};
	ib_rpc_t rpc = {.mgtclass = IB_SMI_CLASS};

	assert_int_equal(madrpc_portid(), -1);
	assert_int_equal(mad_class_agent(IB_SMI_CLASS), -1);
	assert_int_equal(mad_agent_class(0), 0);
	assert_fails_minus_1(mad_register_client(IB_SMI_CLASS, 0), EINVAL);
	assert_fails_null(smp_query(buf, &to, 0x11, 0, 0), EINVAL);
	assert_fails_null(sa_call(buf, &to, &call, 0), EINVAL);
	assert_fails_null(madrpc(&rpc, &to, buf, buf), EINVAL);
	assert_int_equal(mad_send(&rpc, &to, NULL, buf), -1);
	assert_null(mad_receive(NULL, 0));
}

TEST(init_opens_a_port_with_its_agents)
{
	assert_int_equal(madrpc_portid(), device_fd());
	assert_int_equal(mad_class_agent(IB_SMI_CLASS), 0);
	assert_int_equal(mad_class_agent(IB_PERFORMANCE_CLASS), 3);
	assert_int_equal(mad_class_agent(IB_CC_CLASS), -1);
	assert_int_equal(mad_class_agent(-1), -1);
	assert_int_equal(mad_class_agent(256), -1);
	assert_int_equal(mad_register_client(IB_CC_CLASS, 0), 0);
	assert_int_equal(mad_class_agent(IB_CC_CLASS), 4);
	assert_int_equal(device_agent(madrpc_portid(), 4).class_version, 2);
}

TEST(an_agent_has_a_class)
{
	assert_int_equal(mad_agent_class(0), IB_SMI_CLASS);
	assert_int_equal(mad_agent_class(1), IB_SMI_DIRECT_CLASS);
	assert_int_equal(mad_agent_class(3), IB_PERFORMANCE_CLASS);
	assert_int_equal(mad_agent_class(4), 0);
	assert_int_equal(mad_agent_class(31), 0);
	assert_int_equal(mad_agent_class(32), -1);
	assert_int_equal(mad_agent_class(-1), -1);
}

TEST(a_second_init_opens_another_port_in_its_place)
{
	int classes[] = {IB_SA_CLASS};
	char ca_name[] = "mlx5_0";

	madrpc_init(ca_name, 1, classes, 1);
	assert_int_equal(device_handles(), 1);
	assert_int_equal(mad_class_agent(IB_SA_CLASS), 0);
	assert_int_equal(mad_class_agent(IB_SMI_CLASS), -1);
}

TEST(a_server_is_registered)
{
	long methods[16 / sizeof(long)] = {1 << IB_MAD_METHOD_GET};

	assert_int_equal(mad_register_server(0x33, 0, methods, 0x123456), 4);
	assert_int_equal(device_agent(madrpc_portid(), 4).oui, 0x123456);
	assert_int_equal(device_agent(madrpc_portid(), 4).methods[0], 1 << IB_MAD_METHOD_GET);
}

/* The message of an init that cannot succeed; it ends the process. */
static void fail_init(char *ca_name, char *said, size_t size, int *status)
{
	int classes[] = {IB_SMI_CLASS}, fds[2];
	ssize_t length;
	pid_t child;

	assert_int_equal(pipe(fds), 0);
	fflush(NULL);
	child = fork();
	if (!child) {
		dup2(fds[1], STDERR_FILENO);
		madrpc_init(ca_name, 1, classes, 1);
		_exit(0);
	}
	close(fds[1]);
	length = read(fds[0], said, size - 1);
	said[length > 0 ? length : 0] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(child, status, 0), child);
}

static void *hold_the_gate(void *arg)
{
	atomic_int *stage = arg;

	madrpc_lock();
	*stage = 1;
	while (*stage == 1)
		usleep(1000);
	madrpc_unlock();
	return NULL;
}

TEST(a_child_does_not_wait_for_a_thread_of_its_parent)
{
	atomic_int stage = 0;
	pthread_t holder;
	int status;
	pid_t child;

	assert_int_equal(pthread_create(&holder, NULL, hold_the_gate, &stage), 0);
	while (!stage)
		usleep(1000);
	fflush(NULL);
	child = fork();
	if (!child) {
		alarm(20);
		_exit(safe_smp_query(buf, &to, 0x11, 0, 0) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	stage = 2;
	pthread_join(holder, NULL);
	assert_int_equal(status, 0);
}

TEST(an_init_that_fails_ends_the_process_with_a_message)
{
	char nodev[] = "nodev", said[512];
	int status;

	fail_init(nodev, said, sizeof(said), &status);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 255);
	assert_non_null(strstr(said, "madrpc_init"));
	assert_non_null(strstr(said, "nodev port 1"));
}

/* --- management classes --------------------------------------------------------- */

TEST(smps_go_by_it)
{
	assert_ptr_equal(smp_query(buf, &to, IB_ATTR_PORT_INFO, 3, 0), buf);
	expect_mad(first + 0, "0:01010101 17:15 23:03");
	assert_ptr_equal(smp_set(buf, &to, IB_ATTR_PORT_INFO, 3, 0), buf);
	expect_mad(first + 1, "0:01010102 17:15 23:03");
	assert_ptr_equal(safe_smp_query(buf, &to, IB_ATTR_PORT_INFO, 3, 0), buf);
	expect_mad(first + 2, "0:01010101 17:15 23:03");
	assert_ptr_equal(safe_smp_set(buf, &to, IB_ATTR_PORT_INFO, 3, 0), buf);
	expect_mad(first + 3, "0:01010102 17:15 23:03");
}

TEST(sa_mads_go_by_it)
{
	ib_sa_call_t call = {.method = IB_MAD_METHOD_GET, .attrid = IB_SA_ATTR_NODERECORD};
	ibmad_gid_t gid = {1};

	assert_ptr_equal(sa_call(buf, &to, &call, 0), buf);
	expect_mad(first + 0, "0:01030201 17:11");
	assert_ptr_equal(safe_sa_call(buf, &to, &call, 0), buf);
	expect_mad(first + 1, "0:01030201 17:11");
	assert_int_equal(ib_path_query(gid, gid, &to, buf), 0);
	expect_mad(first + 2, "0:01030201 17:35 55:0c 64:01 80:01");
}

TEST(counters_go_by_it)
{
	assert_ptr_equal(port_performance_query(buf, &to, 0xff, 0), buf);
	expect_mad(first + 0, "0:01040101 17:12 65:ff");
	expect_address(first + 0, 1, 0x80010000, 7, 0);
	assert_ptr_equal(port_performance_reset(buf, &to, 2, 0xf, 0), buf);
	expect_mad(first + 1, "0:01040102 17:12 65:02000f");
	assert_ptr_equal(port_performance_reset(buf, &to, 2, 0, 0), buf);
	expect_mad(first + 2, "0:01040102 17:12 65:02ffff 82:ff");
}

TEST(vendor_calls_go_by_it)
{
	ib_vendor_call_t call = {.method = IB_MAD_METHOD_GET, .mgmt_class = 0x0a};

	assert_null(ib_vendor_call(buf, &to, &call));
	assert_int_equal(mad_register_client(0x0a, 0), 0);
	assert_ptr_equal(ib_vendor_call(buf, &to, &call), buf);
	expect_mad(first + 0, "0:010a0101");
}

TEST(addresses_are_resolved_by_it)
{
	static uint8_t port_info[IB_SMP_DATA_SIZE], path[IB_SA_DATA_SIZE];
	ib_portid_t found = {0}, sm = {0};
	uint64_t guid = 5;
	char text[] = "0x9";
	int portnum;

	mad_set_field(port_info, 0, IB_PORT_SMLID_F, 3);
	mad_set_field(port_info, 0, IB_PORT_LID_F, 4);
	mad_set_field(path, 0, IB_SA_PR_DLID_F, 5);
	respond_with(IB_SMI_DIRECT_CLASS, IB_ATTR_PORT_INFO, 0, port_info, sizeof(port_info));
	respond_with(IB_SA_CLASS, IB_SA_ATTR_PATHRECORD, 0, path, sizeof(path));
	assert_int_equal(ib_resolve_smlid(&sm, 0), 0);
	assert_int_equal(sm.lid, 3);
	assert_int_equal(ib_resolve_self(&found, &portnum, NULL), 0);
	assert_int_equal(found.lid, 4);
	assert_int_equal(ib_resolve_guid(&found, &guid, &sm, 0), 0);
	assert_int_equal(found.lid, 5);
	assert_int_equal(ib_resolve_portid_str(&found, text, IB_DEST_LID, NULL), 0);
	assert_int_equal(found.lid, 9);
	assert_int_equal(ib_resolve_portid_str(&found, text, IB_DEST_GUID, &sm), 0);
	assert_int_equal(found.lid, 5);
}

/* --- requests and responses ----------------------------------------------------- */

TEST(requests_go_by_it)
{
	ib_rpc_t rpc = {.mgtclass = IB_PERFORMANCE_CLASS,
			.method = IB_MAD_METHOD_GET,
			.attr.id = 0x12,
			.dataoffs = 64,
			.datasz = 192};
	ib_rmpp_hdr_t rmpp = {0};

	to.qp = 1;
	assert_ptr_equal(madrpc(&rpc, &to, buf, buf), buf);
	expect_mad(first + 0, "0:01040101 17:12");
	rpc.mgtclass = IB_SA_CLASS;
	rpc.trid = 0;
	assert_ptr_equal(madrpc_rmpp(&rpc, &to, &rmpp, buf), buf);
	assert_int_equal(written(), 2);
	rpc.trid = 0;
	assert_int_equal(mad_send(&rpc, &to, NULL, buf), 0);
	assert_int_equal(written(), 3);
}

TEST(requests_of_other_nodes_arrive_and_get_responses)
{
	struct ib_user_mad header = {0};
	uint8_t mad[256] = {1, 0x33, 1, 1};
	void *umad;

	assert_int_equal(mad_register_server(0x33, 0, NULL, 0x123456), 4);
	header.agent_id = 4;
	header.addr.lid = htobe16(9);
	header.addr.qpn = htobe32(1);
	device_queue(madrpc_portid(), &header, mad, sizeof(mad));
	umad = mad_receive(NULL, 1000);
	assert_non_null(umad);
	assert_int_equal(mad_respond(umad, NULL, 0), 0);
	assert_int_equal(device_packet(first)->mad[3], IB_MAD_METHOD_GET_RESPONSE);
	expect_address(first + 0, 1, IB_DEFAULT_QP1_QKEY, 9, 0);
	mad_free(umad);
	assert_null(mad_receive(NULL, 0));
}

/* --- saving a response ---------------------------------------------------------- */

TEST(the_next_response_is_saved_once)
{
	uint8_t saved[80] = {0}, again[80];

	buf[0] = 0xaa;
	madrpc_save_mad(saved, 66);
	assert_non_null(smp_query(buf, &to, 0x11, 0, 0));
	assert_int_equal(saved[1], IB_SMI_CLASS);
	assert_int_equal(saved[3], IB_MAD_METHOD_GET_RESPONSE);
	assert_int_equal(saved[17], 0x11);
	assert_int_equal(saved[64], 0xaa);
	buf[2] = 0xbb;
	assert_int_equal(saved[66], 0);
	memcpy(again, saved, sizeof(again));
	assert_non_null(smp_query(buf, &to, 0x12, 0, 0));
	assert_memory_equal(again, saved, sizeof(again));
}

TEST(a_response_with_a_status_is_saved_too)
{
	uint8_t saved[24] = {0};

	respond_with(IB_SMI_CLASS, 0x77, 0x001c, NULL, 0);
	madrpc_save_mad(saved, sizeof(saved));
	assert_null(smp_query(buf, &to, 0x77, 0, 0));
	assert_int_equal(saved[5], 0x1c);
}

TEST(no_more_is_saved_than_there_is_or_asked_for)
{
	uint8_t saved[300];

	memset(saved, 0x55, sizeof(saved));
	madrpc_save_mad(saved, 300);
	assert_non_null(smp_query(buf, &to, 0x11, 0, 0));
	assert_int_equal(saved[255], 0);
	assert_int_equal(saved[256], 0x55);
	madrpc_save_mad(saved + 256, 0);
	assert_non_null(smp_query(buf, &to, 0x11, 0, 0));
	madrpc_save_mad(saved + 256, -1);
	assert_non_null(smp_query(buf, &to, 0x11, 0, 0));
	madrpc_save_mad(NULL, 10);
	assert_non_null(smp_query(buf, &to, 0x11, 0, 0));
	assert_int_equal(saved[256], 0x55);
}

/* --- locking -------------------------------------------------------------------- */

static atomic_bool done;

static void *set_safely(void *arg)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {0};
	ib_portid_t there = {.lid = 7};

	(void)arg;
	assert_non_null(safe_smp_set(data, &there, 0x11, 0, 0));
	done = true;
	return NULL;
}

TEST(a_lock_keeps_safe_calls_out)
{
	const struct timespec while_ = {0, 20000000};
	pthread_t thread;

	madrpc_lock();
	/*
	 * calls that are not safe do not use the lock; a Set, unlike a Get, is not
	 * retransmitted early
	 */
	assert_non_null(smp_set(buf, &to, 0x11, 0, 0));
	assert_int_equal(pthread_create(&thread, NULL, set_safely, NULL), 0);
	nanosleep(&while_, NULL);
	assert_false(done);
	assert_int_equal(written(), 1);
	madrpc_unlock();
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(done);
	assert_int_equal(written(), 2);
	/* a port that is not locked may be unlocked */
	madrpc_unlock();
	assert_non_null(safe_smp_set(buf, &to, 0x11, 0, 0));
	madrpc_lock();
	madrpc_unlock();
}

/* --- cancelled threads ----------------------------------------------------------- */

static atomic_bool calls;

/* A thread with a cancellation that is pending: the first cancellation point ends the thread.
 */
static void *query_cancelled(void *arg)
{
	ib_portid_t there = {.lid = 7};
	uint8_t data[IB_SMP_DATA_SIZE];

	(void)arg;
	pthread_cancel(pthread_self());
	calls = true;
	safe_smp_query(data, &there, 0x11, 0, 0);
	done = true;
	pthread_testcancel();
	return NULL;
}

static pthread_t start_cancelled(void)
{
	pthread_t thread;

	calls = done = false;
	if (pthread_create(&thread, NULL, query_cancelled, NULL))
		_exit(2);
	while (!calls)
		usleep(1000);
	return thread;
}

/* The thread was cancelled after its call, and the gate is open. */
static bool ended_well(pthread_t thread)
{
	void *result;

	pthread_join(thread, &result);
	return done && result == PTHREAD_CANCELED && safe_smp_query(buf, &to, 0x11, 0, 0);
}

/* Runs a function in a child, because a lock that stays locked would stop all other tests. */
static void expect_of_child(bool (*is_right)(void))
{
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (!child) {
		alarm(20);
		_exit(is_right() ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static bool cancel_in_wait(void)
{
	pthread_t thread;

	madrpc_lock();
	thread = start_cancelled();
	usleep(50000); /* the thread waits for the lock, or is cancelled */
	madrpc_unlock();
	return ended_well(thread);
}

TEST(a_thread_cancelled_while_it_waits_for_the_lock_leaves_the_lock_usable)
{
	expect_of_child(cancel_in_wait);
}

static void test_cancellation(enum umad_log_level level, const char *text, void *user)
{
	(void)level;
	(void)text;
	(void)user;
	pthread_testcancel();
}

static bool cancel_in_call(void)
{
	umad_set_log_hook(test_cancellation, NULL);
	device_fail(DEVICE_WRITE, 1, ENOMEM); /* the failure is reported to the hook */
	return ended_well(start_cancelled());
}

TEST(a_thread_cancelled_in_a_safe_call_leaves_the_lock_usable)
{
	expect_of_child(cancel_in_call);
}

static void *lock_cancelled(void *arg)
{
	(void)arg;
	pthread_cancel(pthread_self());
	madrpc_lock();
	done = true;
	pthread_testcancel();
	return NULL;
}

static bool cancel_with_lock(void)
{
	pthread_t thread;
	void *result;

	done = false;
	if (pthread_create(&thread, NULL, lock_cancelled, NULL))
		return false;
	pthread_join(thread, &result);
	madrpc_unlock();
	return done && result == PTHREAD_CANCELED && safe_smp_query(buf, &to, 0x11, 0, 0);
}

TEST(a_thread_that_has_the_lock_can_be_cancelled)
{
	expect_of_child(cancel_with_lock);
}
