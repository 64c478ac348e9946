/* SPDX-License-Identifier: BSD-2-Clause */

/* How a request is made and freed. */

#include "request/request.h"

#include "base/export.h"
#include "mad/layout.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

void requests_init(struct requests *requests)
{
	tids_init(&requests->tids);
	flow_init(&requests->flow);
}

RARE int request_allocate(struct request *request, bool rmpp, size_t size)
{
	size_t length = request->dataoffs + size;
	uint8_t *umad;

	if (!rmpp || size > INT_MAX - 2 * PACKET_SIZE)
		return -EMSGSIZE;
	request->length = (int)length;
	/* packet_build() writes a whole MAD */
	umad = calloc(1, request->header_size + (length < IB_MAD_SIZE ? IB_MAD_SIZE : length));
	if (!umad)
		return -ENOMEM;
	request->umad = umad;
	return 0;
}

/* --- the end -------------------------------------------------------------------- */

void request_drop_pending(struct request *request)
{
	free(request->pending.umad);
	request->pending = (struct pending_event){.kind = EVENT_NONE};
}

void request_free(struct request *request)
{
	request_drop_pending(request);
	free(request->redirect);
	request->redirect = NULL;
	if (request_is_large(request))
		free(request->umad);
	request->umad = request->packet;
}
