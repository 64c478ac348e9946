/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake_memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *memory);

static atomic_uint fail_in, allocations;
static atomic_bool failed;
static atomic_long allocated;

void fake_fail_malloc(unsigned n)
{
	failed = false;
	fail_in = n;
}

bool fake_malloc_failed(void)
{
	return failed;
}

unsigned fake_allocations(void)
{
	return allocations;
}

long fake_allocated(void)
{
	return allocated;
}

static bool fails(void)
{
	unsigned n = fail_in;

	allocations++;
	while (n && !atomic_compare_exchange_weak(&fail_in, &n, n - 1))
		;
	if (n != 1)
		return false;
	failed = true;
	errno = ENOMEM;
	return true;
}

static void *count(void *memory)
{
	allocated += memory != NULL;
	return memory;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : count(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : count(__real_calloc(n, size));
}

void *__wrap_realloc(void *old, size_t size)
{
	void *grown;

	if (fails())
		return NULL;
	grown = __real_realloc(old, size);
	return old ? grown : count(grown);
}

void __wrap_free(void *memory)
{
	allocated -= memory != NULL;
	__real_free(memory);
}
