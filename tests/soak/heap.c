/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Preloaded in umad-sim: before umad-sim waits, writes the bytes of its heap in use to the file
 * SOAK_HEAP, at most ten times a second.
 */
#include "../heap_in_use.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

extern size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t allocated(void)
{
	if (__sanitizer_get_current_allocated_bytes)
		return __sanitizer_get_current_allocated_bytes();
	return heap_in_use();
}

static void write_heap(void)
{
	const char *path = getenv("SOAK_HEAP");
	size_t heap = allocated(); /* before the file's buffer is allocated */
	FILE *file = path ? fopen(path, "w") : NULL;

	if (!file)
		return;
	fprintf(file, "%zu\n", heap);
	fclose(file);
}

typedef int ppoll_fn(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		     const sigset_t *mask);

#define EXPORT __attribute__((visibility("default")))

EXPORT ppoll_fn ppoll;
EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		       const sigset_t *mask, size_t size);

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
	  const sigset_t *mask)
{
	static struct timespec written;
	static ppoll_fn *next;
	struct timespec now;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "ppoll");
	clock_gettime(CLOCK_MONOTONIC, &now);
	if ((now.tv_sec - written.tv_sec) * 1000 + (now.tv_nsec - written.tv_nsec) / 1000000 >=
	    100) {
		written = now;
		write_heap();
	}
	return next(fds, count, timeout, mask);
}

/* The same in a program that was built with _FORTIFY_SOURCE. */
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t size)
{
	(void)size;
	return ppoll(fds, count, timeout, mask);
}
