/* SPDX-License-Identifier: BSD-2-Clause */

/* The list of records in a response. */
#include <stdlib.h>

#include "sa_parts.h"

size_t sa_stride(const struct record_type *type)
{
	return (type->size + 7UL) / 8 * 8;
}

bool sa_append(struct sa_request *request, const uint8_t *record)
{
	size_t step = sa_stride(request->type);
	size_t at = SA_HEADER + request->count * step;

	if (!request->table && request->count == 1) {
		request->status = SA_TOO_MANY_RECORDS;
		return false;
	}
	if (request->count == MAX_RECORDS) {
		request->status = SA_NO_RESOURCES;
		return false;
	}
	if (at + step > request->room) {
		size_t room = (at + step) * 2;
		uint8_t *grown = realloc(request->response, room);

		if (!grown) {
			request->status = SA_NO_RESOURCES;
			return false;
		}
		request->response = grown;
		request->room = room;
	}
	memset(request->response + at, 0, step);
	memcpy(request->response + at, record, request->type->size);
	request->count++;
	return true;
}
