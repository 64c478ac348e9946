/* SPDX-License-Identifier: BSD-2-Clause */

#include "port/waiters.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct waiter *waiter_at(struct list *entry)
{
	return list_entry(entry, struct waiter, all);
}

void waiters_init(struct waiters *waiters)
{
	*waiters = (struct waiters){.wake_fd = -1};
	list_init(&waiters->all);
}

void waiters_open(struct waiters *waiters)
{
	waiters->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void waiters_free(struct waiters *waiters)
{
	int fd = waiters->wake_fd;

	/* first: a signal handler may call waiters_alert() */
	waiters->wake_fd = -1;
	if (fd >= 0)
		close(fd);
}

void waiters_inherit(struct waiters *waiters)
{
	waiters->leader = NULL;
	waiters->polling = false;
	waiters->reading = false;
	waiters->signalled = false;
	waiters->alerted = false;
}

/* Async-signal-safe, which eventfd_write() is not said to be. */
void waiters_alert(struct waiters *waiters)
{
	const uint64_t one = 1;
	int saved_errno = errno, fd = waiters->wake_fd;

	waiters->alerted = true;
	/* if it fails, the descriptor is readable already */
	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		errno = saved_errno;
}

void waiter_signal(struct waiters *waiters, struct waiter *waiter)
{
	if (waiter->following) {
		pthread_cond_signal(&waiter->changed);
	} else if (waiter == waiters->leader && waiters->polling && waiters->wake_fd >= 0 &&
		   !waiters->signalled) {
		waiters->signalled = true;
		eventfd_write(waiters->wake_fd, 1);
	}
}

void waiters_wake_all(struct waiters *waiters)
{
	list_for_each (entry, &waiters->all)
		waiter_wake(waiters, waiter_at(entry));
}

void waiters_wake_receiver(struct waiters *waiters)
{
	list_for_each (entry, &waiters->all)
		if (waiter_at(entry)->receiving && !waiter_at(entry)->woken) {
			waiter_wake(waiters, waiter_at(entry));
			return;
		}
}

void waiters_wake_sender(struct waiters *waiters)
{
	list_for_each (entry, &waiters->all)
		if (waiter_at(entry)->sending) {
			if (!waiter_at(entry)->woken)
				waiter_wake(waiters, waiter_at(entry));
			return;
		}
}

void waiters_wake_for(struct waiters *waiters, int64_t at)
{
	list_for_each (entry, &waiters->all) {
		struct waiter *waiter = waiter_at(entry);

		if (waiter->sending && waiter->until > at)
			waiter_wake(waiters, waiter);
	}
}

void waiters_pass(struct waiters *waiters)
{
	if (waiters->leader || waiters->reading)
		return;
	list_for_each (entry, &waiters->all)
		if (waiter_at(entry)->following) {
			waiter_wake(waiters, waiter_at(entry));
			return;
		}
}
