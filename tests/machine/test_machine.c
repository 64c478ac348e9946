/* SPDX-License-Identifier: BSD-2-Clause */

/* The machine itself: time, packets, faults, threads, and what it does with calls that fail. */

#include "children.h"
#include "machine.h"

#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <pthread.h>

static struct ibmad_port *port;

static int setup(void)
{
	int classes[] = {IB_SMI_CLASS};

	machine_setup();
	port = mad_rpc_open_port(NULL, 0, classes, 1);
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

static bool fails_with(int error)
{
	errno = 0;
	return !ask("n4") && errno == error;
}

TEST(a_node_answers_with_its_own_data_and_time_stands_still)
{
	assert_true(ask("n1") && ask("n8") && ask("sm"));
	assert_int_equal(machine_us(), 0);
	assert_int_equal(machine_requests("n8"), 1);
	assert_int_equal(machine_requests(NULL), 3);
}

static enum machine_verdict answer_busy(struct machine_mad *mad, void *arg)
{
	(void)arg;
	return mad->at_host ? MACHINE_PASS : machine_reply(mad, 0x1c, 0, NULL, 0);
}

TEST(rules_hooks_and_calls_that_fail_decide_what_happens)
{
	mad_rpc_set_timeout(port, 100);
	mad_rpc_set_retries(port, 1);
	machine_rule("slow 3ms on n4");
	assert_true(ask("n4"));
	assert_in_range(machine_us(), 3000, 3100);
	machine_rule("silent on n4");
	assert_true(fails_with(ETIMEDOUT));
	assert_int_equal(machine_requests("n4"), 2);
	assert_in_range(machine_us(), 103000, 124000);
	machine_on_arrival(answer_busy, NULL);
	assert_true(fails_with(EIO));
	machine_fail(MACHINE_WRITE, 1, ENOMEM);
	assert_true(fails_with(ENOMEM));
	machine_rule("remove on host");
	assert_true(fails_with(ENODEV));
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
