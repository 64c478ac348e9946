/* SPDX-License-Identifier: BSD-2-Clause */

/* Which of the threads that wait on a port are woken, and what ends the poll of the leader. */

#include "port/waiters.h"
#include "test.h"

#include <sys/eventfd.h>
#include <unistd.h>

#define COUNT 4

static struct waiters waiters;
static struct waiter entries[COUNT]; /* in the order of the list */

static int setup(void)
{
	waiters_init(&waiters);
	waiters_open(&waiters);
	for (int i = COUNT; i-- > 0;) {
		waiter_begin(&waiters, &entries[i]);
		pthread_cond_init(&entries[i].changed, NULL);
	}
	return 0;
}

static int teardown(void)
{
	for (int i = 0; i < COUNT; i++)
		pthread_cond_destroy(&entries[i].changed);
	waiters_free(&waiters);
	return 0;
}

FIXTURE(setup, teardown);

/* The number of writes to the descriptor since the last call. */
static unsigned alarms(void)
{
	eventfd_t count;

	return eventfd_read(waiters.wake_fd, &count) ? 0 : (unsigned)count;
}

/* A bit for each waiter that was woken since the last call, beginning with the first one. */
static unsigned woken(void)
{
	unsigned bits = 0;

	for (int i = 0; i < COUNT; i++) {
		bits |= (unsigned)entries[i].woken << i;
		entries[i].woken = false;
	}
	return bits;
}

static void lead(struct waiter *waiter)
{
	waiters.leader = waiter;
	waiters.polling = true;
}

PLAIN_TEST(without_its_descriptor_nothing_is_written)
{
	struct waiters closed;
	struct waiter leader;

	waiters_init(&closed);
	assert_int_equal(closed.wake_fd, -1);
	waiter_begin(&closed, &leader);
	closed.leader = &leader;
	closed.polling = true;
	waiter_wake(&closed, &leader);
	assert_true(leader.woken);
	assert_false(closed.signalled);
	waiters_alert(&closed);
	assert_true(closed.alerted);
	waiters_free(&closed);
}

TEST(the_descriptor_ends_the_poll_of_the_leader_once)
{
	lead(&entries[1]);
	waiter_wake(&waiters, &entries[1]);
	assert_true(waiters.signalled);
	waiter_wake(&waiters, &entries[1]);
	assert_int_equal(alarms(), 1);
	waiters.signalled = false;
	waiter_wake(&waiters, &entries[1]);
	assert_int_equal(alarms(), 1);
}

TEST(a_thread_that_neither_sleeps_nor_polls_needs_no_alarm)
{
	waiters.leader = &entries[0];
	waiter_wake(&waiters, &entries[0]);
	waiter_signal(&waiters, &entries[0]);
	assert_int_equal(alarms(), 0);
	waiters.polling = true;
	waiter_wake(&waiters, &entries[2]);
	assert_int_equal(alarms(), 0);
	assert_int_equal(woken(), 0x5);
}

TEST(a_follower_is_woken_without_the_descriptor)
{
	lead(&entries[0]);
	entries[1].following = true;
	waiter_wake(&waiters, &entries[1]);
	assert_int_equal(alarms(), 0);
	assert_int_equal(woken(), 0x2);
}

TEST(descriptor_0_is_one)
{
	int saved = dup(STDIN_FILENO);

	waiters_free(&waiters);
	close(STDIN_FILENO);
	waiters_open(&waiters);
	assert_int_equal(waiters.wake_fd, 0);
	lead(&entries[0]);
	waiter_wake(&waiters, &entries[0]);
	assert_int_equal(alarms(), 1);
	waiters_alert(&waiters);
	assert_int_equal(alarms(), 1);
	waiters_free(&waiters);
	if (saved >= 0) {
		dup2(saved, STDIN_FILENO);
		close(saved);
	}
}

TEST(all_are_woken)
{
	waiters_wake_all(&waiters);
	assert_int_equal(woken(), 0xf);
}

TEST(one_receiver_is_woken_for_each_message)
{
	waiters_wake_receiver(&waiters);
	assert_int_equal(woken(), 0);
	entries[1].receiving = entries[3].receiving = true;
	waiters_wake_receiver(&waiters);
	assert_true(entries[1].woken);
	assert_false(entries[3].woken);
	waiters_wake_receiver(&waiters);
	assert_int_equal(woken(), 0xa);
}

TEST(one_sender_is_woken_for_all_that_may_be_sent)
{
	waiters_wake_sender(&waiters);
	assert_int_equal(woken(), 0);
	entries[1].sending = entries[3].sending = true;
	waiters_wake_sender(&waiters);
	waiters_wake_sender(&waiters);
	assert_int_equal(woken(), 0x2);
}

TEST(senders_that_would_wait_too_long_are_woken)
{
	for (int i = 0; i < COUNT; i++) {
		entries[i].sending = i != 2;
		entries[i].until = 99 + i;
	}
	waiters_wake_for(&waiters, 100);
	assert_int_equal(woken(), 0x8);
}

TEST(the_first_follower_leads_next)
{
	waiters_pass(&waiters);
	assert_int_equal(woken(), 0);
	entries[1].following = entries[2].following = true;
	waiters_pass(&waiters);
	assert_int_equal(woken(), 0x2);
	waiters.leader = &entries[0];
	waiters_pass(&waiters);
	assert_int_equal(woken(), 0);
	waiters.leader = NULL;
	waiters.reading = true;
	waiters_pass(&waiters);
	assert_int_equal(woken(), 0);
}

/* The thread that led is in the parent, and so is the descriptor's alarm. */
TEST(a_child_of_fork_has_no_leader)
{
	lead(&entries[0]);
	waiters.reading = true;
	waiters.signalled = true;
	waiters.alerted = true;
	waiters_inherit(&waiters);
	assert_null(waiters.leader);
	assert_false(waiters.polling);
	assert_false(waiters.reading);
	assert_false(waiters.signalled);
	assert_false(waiters.alerted);
}
