/* SPDX-License-Identifier: BSD-2-Clause */

/* The memory that malloc() has given to this process. */
#ifndef TESTS_HEAP_IN_USE_H
#define TESTS_HEAP_IN_USE_H

#include <malloc.h>
#include <stddef.h>

/* Bytes; 0 if the allocator does not tell, as a sanitizer's, or a C library without
 * mallinfo2(). */
static inline size_t heap_in_use(void)
{
#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 33)
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
#endif
#endif
	return 0;
}

#endif
