/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A process without descriptors that are free: calls fail and say why, and what they had to do
 * without comes back when descriptors are free again.
 */

#include "engine_fixture.h"
#include "fake.h"

#include <infiniband/mad_errors.h>
#include <infiniband/umad_ext.h>
#include <sys/eventfd.h>

FIXTURE(device_setup, device_teardown);

static int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS};

static bool open_one(void)
{
	struct ibmad_port *opened = mad_rpc_open_port(NULL, 0, classes, 4);

	if (opened)
		mad_rpc_close_port(opened);
	return opened;
}

static bool open_pair(void)
{
	struct ibmad_ports_pair *opened = mad_rpc_open_port2(NULL, 0, classes, 4, 0);

	if (opened)
		mad_rpc_close_port2(opened);
	return opened;
}

static void ignore(enum umad_log_level level, const char *text, void *user)
{
	(void)level;
	(void)text;
	(void)user;
}

/* Whichever system call has no descriptor. */
TEST(a_port_that_is_not_opened_says_that_descriptors_are_missing)
{
	static bool (*const calls[])(void) = {open_one, open_pair};
	static const int causes[] = {EMFILE, ENFILE, ENOMEM};
	unsigned n, failures;
	bool opened;

	umad_set_log_hook(ignore, NULL);
	for (unsigned i = 0; i < 6; i++) {
		failures = 0;
		for (n = 1;; n++) {
			fake_fail_call(n, causes[i / 2]);
			errno = 0;
			opened = calls[i % 2]();
			if (!fake_failed())
				break;
			if (opened)
				continue; /* the call does not need what failed */
			failures++;
			if (errno != causes[i / 2] ||
			    mad_last_failure()->error != -causes[i / 2])
				fail_msg("call %u, system call %u: %s", i % 2, n,
					 strerror(errno));
		}
		fake_fail_call(0, 0);
		assert_true(opened);
		assert_true(failures > 3);
	}
	umad_set_log_hook(NULL, NULL);
}

static bool no_eventfd;

int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);

int __wrap_eventfd(unsigned count, int flags)
{
	if (!no_eventfd)
		return __real_eventfd(count, flags);
	errno = EMFILE;
	return -1;
}

/* The poll of a thread that waits for a message is this long. */
static int poll_of_a_receiver(void)
{
	unsigned polls = device_calls(DEVICE_POLL);
	pthread_t thread = start_thread(receive_message, NULL);
	struct ib_user_mad header = {.agent_id = 0};
	uint8_t mad[IB_MAD_SIZE] = {1, IB_SMI_CLASS, 1, IB_MAD_METHOD_GET};
	int timeout;

	wait_for_poll(polls);
	timeout = device_poll_timeout();
	device_queue(device_fd(), &header, mad, sizeof(mad));
	join_thread(thread);
	return timeout;
}

/*
 * Without an eventfd, the thread that waits has to look up every 100 ms. A port that was opened
 * without one opens it later.
 */
TEST(a_port_gets_the_descriptor_that_it_had_to_do_without)
{
	no_eventfd = true;
	assert_int_equal(open_port(), 0);
	assert_in_range(poll_of_a_receiver(), 1, 100);
	no_eventfd = false;
	assert_true(poll_of_a_receiver() > LONG_MS);
	mad_rpc_close_port(port);
}
