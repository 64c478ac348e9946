/* SPDX-License-Identifier: BSD-2-Clause */

#include "hook.h"

#include <pthread.h>

/* Guards all hooks, each with its argument; never held while a hook is called. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* The lock is nobody else's across a fork: in the child, nobody else could give it back. */
static void take_lock(void)
{
	pthread_mutex_lock(&lock);
}

static void watch_forks(void)
{
	pthread_atfork(take_lock, unlock, unlock);
}

static void take(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	take_lock();
}

void hook_set(struct hook *hook, struct hook value)
{
	take();
	*hook = value;
	unlock();
}

struct hook hook_get(const struct hook *hook)
{
	struct hook value;

	take();
	value = *hook;
	unlock();
	return value;
}
