/* SPDX-License-Identifier: BSD-2-Clause */

/* Arrays that grow. */
#ifndef LIBIBMAD_ARRAY_H
#define LIBIBMAD_ARRAY_H

#include <stddef.h>

/*
 * The array with room for count entries, at least; *size is how many it has room for. New
 * entries are zero. NULL without memory, and the array is as it was.
 */
void *array_reserve(void *entries, size_t count, size_t *size, size_t entry_size);

#endif
