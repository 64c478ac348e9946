/* SPDX-License-Identifier: BSD-2-Clause */

/* Allocations that fail on request: malloc's family, wrapped by the linker. */

#include "fake_device_state.h"

#include <errno.h>
#include <stdatomic.h>

static atomic_uint malloc_fail_in, allocations;

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static bool malloc_fails(void)
{
	unsigned n = atomic_load(&malloc_fail_in);

	allocations++;
	while (n && !atomic_compare_exchange_weak(&malloc_fail_in, &n, n - 1))
		;
	if (n == 1)
		errno = ENOMEM;
	return n == 1;
}

void *__wrap_malloc(size_t size)
{
	return malloc_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return malloc_fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return malloc_fails() ? NULL : __real_realloc(old, size);
}

unsigned device_allocations(void)
{
	return allocations;
}

void device_fail_malloc(unsigned n)
{
	atomic_store(&malloc_fail_in, n);
}
