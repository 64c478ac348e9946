/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Checked locks, which the linker puts in place of plain ones (--wrap). The test program aborts
 * if a thread releases a lock that it does not hold, or takes a lock twice. Without a check,
 * the first error has an effect only if two threads use the lock at once, and after the second
 * error the thread waits for ever.
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

/* A lock that is initialized with attributes is not checked. */
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
