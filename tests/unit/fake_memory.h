/* SPDX-License-Identifier: BSD-2-Clause */

/* The allocations of a program that is linked with malloc's family wrapped (fake_memory.c). */
#ifndef TESTS_UNIT_FAKE_MEMORY_H
#define TESTS_UNIT_FAKE_MEMORY_H

#include <stdbool.h>

/* The n-th allocation from now on (1 is the next) fails; 0 none. */
void fake_fail_malloc(unsigned n);
/* Whether the requested fault has occurred. */
bool fake_malloc_failed(void);
/* The number of allocations so far; of those that were not freed. */
unsigned fake_allocations(void);
long fake_allocated(void);

#endif
