/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/inbox.h"

#include "mad/layout.h"

#include <infiniband/mad.h>
#include <infiniband/umad.h>

/* What is kept at most, if no thread calls mad_receive_via(). */
#define MESSAGES_MAX 1024
#define BYTES_MAX    (64u << 20)

void inbox_init(struct inbox *inbox)
{
	inbox->first = NULL;
	inbox->last = &inbox->first;
	inbox->count = 0;
	inbox->bytes = 0;
}

void inbox_free(struct inbox *inbox)
{
	struct message *message, *next;

	for (message = inbox->first; message; message = next) {
		next = message->next;
		free(message);
	}
	inbox_init(inbox);
}

void inbox_expect(struct inbox *inbox, uint32_t tid)
{
	inbox->expected[inbox->next_expected++ % INBOX_TIDS] = tid;
}

/* Whether it is the first response with an expected ID. */
static bool is_expected(struct inbox *inbox, uint32_t tid)
{
	for (unsigned i = 0; tid && i < INBOX_TIDS; i++)
		if (inbox->expected[i] == tid) {
			inbox->expected[i] = 0;
			return true;
		}
	return false;
}

static bool is_request(const uint8_t *mad)
{
	return !(mad[3] & IB_MAD_RESPONSE) && mad[3] != IB_MAD_METHOD_TRAP_REPRESS;
}

static bool is_wanted(struct inbox *inbox, const uint8_t *umad, int length)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	/* umad_get_mad() takes no const */
	const uint8_t *mad = umad + umad_size();

	if (length < 24)
		return false;
	return (!header->status && is_request(mad)) || is_expected(inbox, get32(mad, TID_OFFS));
}

bool inbox_add(struct inbox *inbox, const uint8_t *umad, int length)
{
	size_t size = umad_size() + (size_t)length;
	struct message *message;

	if (!is_wanted(inbox, umad, length) || inbox->count >= MESSAGES_MAX ||
	    inbox->bytes + size > BYTES_MAX)
		return false;
	message = malloc(sizeof(*message) + size);
	if (!message)
		return false;
	message->next = NULL;
	message->length = length;
	memcpy(message->umad, umad, size);
	*inbox->last = message;
	inbox->last = &message->next;
	inbox->count++;
	inbox->bytes += size;
	return true;
}

struct message *inbox_take(struct inbox *inbox)
{
	struct message *message = inbox->first;

	if (!message)
		return NULL;
	inbox->first = message->next;
	if (!inbox->first)
		inbox->last = &inbox->first;
	inbox->count--;
	inbox->bytes -= umad_size() + (size_t)message->length;
	return message;
}
