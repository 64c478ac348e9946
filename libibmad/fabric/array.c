/* SPDX-License-Identifier: BSD-2-Clause */

#include "fabric/array.h"

#include <stdlib.h>
#include <string.h>

void *array_reserve(void *entries, size_t count, size_t *size, size_t entry_size)
{
	size_t wanted = *size ? *size : 16;
	char *larger;

	if (count <= *size)
		return entries;
	while (wanted < count)
		wanted *= 2;
	larger = realloc(entries, wanted * entry_size);
	if (!larger)
		return NULL;
	memset(larger + *size * entry_size, 0, (wanted - *size) * entry_size);
	*size = wanted;
	return larger;
}
