/* SPDX-License-Identifier: BSD-2-Clause */

/* Reserved words of structures that callers fill must be 0, so that members can be added. */
#ifndef LIBIBMAD_RESERVED_H
#define LIBIBMAD_RESERVED_H

#include <stdbool.h>
#include <stddef.h>

static inline bool bytes_are_zero(const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (((const unsigned char *)bytes)[i])
			return false;
	return true;
}

#define is_reserved(array) bytes_are_zero(array, sizeof(array))

#endif
