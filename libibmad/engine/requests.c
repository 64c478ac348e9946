/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/requests.h"

#include "mad/mad_wire.h"
#include "engine/wait.h"

#include <infiniband/mad.h>
#include <infiniband/umad.h>

/* Who does not fetch what is sent to him need not have it all. */
#define REQUESTS_MAX       1024
#define REQUESTS_MAX_BYTES (64u << 20)

void requests_init(struct requests *requests)
{
	*requests = (struct requests){.last = &requests->first};
}

void requests_free(struct requests *requests)
{
	struct request *request, *next;

	for (request = requests->first; request; request = next) {
		next = request->next;
		free(request);
	}
	requests_init(requests);
}

/* Whether it answers what mad_send_via() sent, and that for the first time. */
static bool was_sent_for(struct ibmad_port *port, uint32_t tid)
{
	for (unsigned i = 0; tid && i < SENT_REQUESTS; i++)
		if (port->sent_requests[i] == tid) {
			port->sent_requests[i] = 0;
			return true;
		}
	return false;
}

static bool is_request(const uint8_t *mad)
{
	return !(mad[3] & IB_MAD_RESPONSE) && mad[3] != IB_MAD_METHOD_TRAP_REPRESS;
}

static void wake_receiver(struct ibmad_port *port)
{
	struct waiter *waiter = port->waiters;

	while (waiter && (!waiter->receiving || waiter->woken))
		waiter = waiter->next;
	waiter_wake(waiter);
}

void request_receive(struct ibmad_port *port, uint8_t *umad, int length)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	const uint8_t *mad = umad_get_mad(umad);
	size_t size = umad_size() + (size_t)length;
	struct request *request = NULL;

	if (length >= 24 &&
	    ((!header->status && is_request(mad)) ||
	     was_sent_for(port, get32(mad, TID_OFFS))) &&
	    port->requests.count < REQUESTS_MAX &&
	    port->requests.bytes + size <= REQUESTS_MAX_BYTES)
		request = malloc(sizeof(*request) + size);
	if (!request) {
		/* that a sending which has been repeated came to nothing is no answer */
		port->dropped += !header->status;
		return;
	}
	request->next = NULL;
	request->length = length;
	memcpy(request->umad, umad, size);
	*port->requests.last = request;
	port->requests.last = &request->next;
	port->requests.count++;
	port->requests.bytes += size;
	wake_receiver(port);
}
