/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Locks that are checked, wrapped by the linker: a thread that releases a lock which it does
 * not hold, or takes a lock twice, ends the test program. Otherwise the first mistake shows
 * only if threads meet, and the second one never ends.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int __real_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *kind);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *kind);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);

/* A lock with attributes stays as it is. */
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *kind)
{
	pthread_mutexattr_t checked;
	int ret;

	if (kind)
		return __real_pthread_mutex_init(mutex, kind);
	pthread_mutexattr_init(&checked);
	pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
	ret = __real_pthread_mutex_init(mutex, &checked);
	pthread_mutexattr_destroy(&checked);
	return ret;
}

static int check(const char *call, int error)
{
	if (error) {
		fprintf(stderr, "%s: %s\n", call, strerror(error));
		abort();
	}
	return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	return check("pthread_mutex_lock", __real_pthread_mutex_lock(mutex));
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	return check("pthread_mutex_unlock", __real_pthread_mutex_unlock(mutex));
}
