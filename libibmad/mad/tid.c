/* SPDX-License-Identifier: BSD-2-Clause */

/* Transaction ids (IBA 13.4.6.4). */

#include "base/export.h"

#include <infiniband/mad.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <time.h>

/*
 * The ids of a process follow one another from a random start, so that a program that is
 * started again is not handed the late answers to what it asked before, and two programs
 * do not start alike. 0 is not an id: it is the counter's way to say that it has no start
 * yet.
 */
static atomic_uint last_id;

/* A child must not go on where its parent does. */
static void forget_last_id(void)
{
	atomic_store(&last_id, 0);
}

static unsigned random_start(void)
{
	struct timespec now;
	unsigned start;

	pthread_atfork(NULL, NULL, forget_last_id);
	if (getrandom(&start, sizeof(start), GRND_NONBLOCK) == sizeof(start))
		return start;
	clock_gettime(CLOCK_REALTIME, &now);
	return (unsigned)now.tv_nsec ^ (unsigned)now.tv_sec << 20 ^ (unsigned)getpid() << 8;
}

EXPORT uint64_t mad_trid(void)
{
	unsigned last = atomic_load(&last_id), next;

	do {
		next = (last ? last : random_start()) + 1;
		if (!next)
			next = 1;
	} while (!atomic_compare_exchange_weak(&last_id, &last, next));
	return next;
}
