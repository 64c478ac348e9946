/* SPDX-License-Identifier: BSD-2-Clause */

/* The machine itself: time, packets, faults, threads, and what it does with calls that fail. */

#include "children.h"
#include "machine.h"

#include <infiniband/mad.h>
#include <infiniband/mad_async.h>
#include <infiniband/umad.h>
#include <pthread.h>

static struct ibmad_port *port;

static int setup(void)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS};

	machine_setup();
	port = mad_rpc_open_port(NULL, 0, classes, 4);
	return port ? 0 : -1;
}

static int teardown(void)
{
	mad_rpc_close_port(port);
	return machine_teardown();
}

FIXTURE(setup, teardown);

static bool ask(const char *node)
{
	uint8_t info[IB_SMP_DATA_SIZE] = {0};
	ib_portid_t to = {.lid = machine_lid(node)};
	uint64_t guid = 0;

	if (!smp_query_via(info, &to, IB_ATTR_NODE_INFO, 0, 0, port))
		return false;
	mad_decode_field(info, IB_NODE_PORT_GUID_F, &guid);
	assert_true(guid == machine_guid(node));
	return true;
}

TEST(a_node_answers_with_its_own_data_and_time_stands_still)
{
	assert_true(ask("n1") && ask("n8") && ask("sm"));
	assert_int_equal(machine_us(), 0);
	assert_int_equal(machine_requests("n8"), 1);
	assert_int_equal(machine_requests(NULL), 3);
}

TEST(a_rule_makes_time_pass)
{
	machine_rule("slow 3ms on n4");
	assert_true(ask("n4"));
	assert_in_range(machine_us(), 3000, 3100);
}

TEST(a_request_to_a_silent_node_fails_after_all_attempts)
{
	machine_rule("silent on n4");
	mad_rpc_set_timeout(port, 100);
	mad_rpc_set_retries(port, 3);
	errno = 0;
	assert_false(ask("n4"));
	assert_int_equal(errno, ETIMEDOUT);
	assert_int_equal(machine_requests("n4"), 3);
	assert_in_range(machine_us(), 300000, 340000);
}

static enum machine_verdict answer_busy(struct machine_mad *mad, void *arg)
{
	if (mad->at_host)
		return MACHINE_PASS;
	return *(int *)arg ? MACHINE_DROP : machine_reply(mad, 0x1c, 0, NULL, 0);
}

TEST(a_hook_takes_the_place_of_nodes)
{
	int drop = 0;

	machine_on_arrival(answer_busy, &drop);
	errno = 0;
	assert_false(ask("n1"));
	assert_int_equal(errno, EIO);
	drop = 1;
	mad_rpc_set_timeout(port, 100);
	assert_false(ask("n1"));
	assert_int_equal(errno, ETIMEDOUT);
}

static void *ask_all(void *arg)
{
	char name[16];

	(void)arg;
	for (int i = 1; i <= 8; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		if (!ask(name))
			return arg;
	}
	return NULL;
}

TEST(threads_wait_by_virtual_time)
{
	pthread_t threads[8];
	void *failed;

	machine_rule("slow 1s");
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_all, threads), 0);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_in_range(machine_us(), 8000000, 8000000 * 8);
}

TEST(a_device_that_is_removed)
{
	machine_rule("remove on host");
	errno = 0;
	assert_false(ask("n1"));
	assert_int_equal(errno, ENODEV);
}

TEST(calls_fail_as_asked)
{
	machine_fail(MACHINE_WRITE, 1, EIO);
	assert_false(ask("n1"));
	assert_true(ask("n1"));
	assert_int_equal(machine_calls(MACHINE_WRITE), 2);
}

TEST(the_sa_answers_with_several_segments)
{
	ib_portid_t to = {.lid = machine_lid("sm"), .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
	ib_rpc_t rpc = {.mgtclass = IB_SA_CLASS,
			.method = IB_MAD_METHOD_GET_TABLE,
			.attr.id = IB_SA_ATTR_NODERECORD,
			.dataoffs = IB_SA_DATA_OFFS,
			.datasz = IB_SA_DATA_SIZE};
	struct mad_message message;

	assert_int_equal(mad_rpc_message(port, &rpc, &to, NULL, 0, &message), 0);
	assert_in_range(message.length, IB_SA_DATA_OFFS + 11 * 108, IB_SA_DATA_OFFS + 11 * 112);
	mad_message_free(&message);
}

static int handle;

static int read_message(void)
{
	uint64_t buffer[64];
	int length = MACHINE_MAD;

	EXPECT(umad_recv(handle, buffer, &length, 0) == 3 && length == 30);
	return 0;
}

/* Also a message for an agent that nobody registered. */
TEST(a_child_and_its_parent_read_what_was_there_before)
{
	struct ib_user_mad header = {.agent_id = 3};
	uint8_t mad[30] = {1};

	handle = umad_open_port(NULL, 0);
	machine_receive(&header, mad, sizeof(mad));
	run_in_child(read_message);
	assert_int_equal(read_message(), 0);
	assert_int_equal(umad_close_port(handle), 0);
}
