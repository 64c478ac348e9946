/* SPDX-License-Identifier: BSD-2-Clause */

/* Transaction IDs (IBA 13.4.6.4). */

#include "base/export.h"

#include <infiniband/mad.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <time.h>

/*
 * The IDs of a process follow one another from a random start. So a program that is started
 * again does not take late responses to its earlier requests, and two programs do not use the
 * same IDs. 0 is no ID: it says that there is no start yet.
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
