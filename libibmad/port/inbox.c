/* SPDX-License-Identifier: BSD-2-Clause */

#include "port/inbox.h"

#include "mad/layout.h"
#include "mad/packet.h"

#include <infiniband/mad.h>
#include <infiniband/umad.h>

/* The messages that are kept at most, in bytes: about 200,000 MADs. */
#define BYTES_MAX (64u << 20)
/* The IDs that are expected at most, a power of two, and the places at which one ID may be. */
#define EXPECTED  65536
#define PLACES    8

void inbox_init(struct inbox *inbox)
{
	*inbox = (struct inbox){.last = &inbox->first};
}

void inbox_free(struct inbox *inbox)
{
	struct message *message;

	while ((message = inbox_take(inbox)))
		free(message);
	free(inbox->expected);
	inbox_init(inbox);
}

/* What is stored for the requests of a class with an ID: never 0, which is an empty place. */
static uint64_t content_of(uint32_t tid, uint8_t mgmt_class)
{
	return (uint64_t)tid << 32 | 1u << 8 | mgmt_class;
}

/* IDs are consecutive, so that an ID is usually at its first place. */
static uint64_t *place_of(struct inbox *inbox, uint32_t tid, uint64_t content)
{
	for (unsigned i = 0; inbox->expected && i < PLACES; i++)
		if (inbox->expected[(tid + i) % EXPECTED] == content)
			return &inbox->expected[(tid + i) % EXPECTED];
	return NULL;
}

/* Without memory, the response is dropped. If all places are taken, a new ID replaces another.
 */
void inbox_expect(struct inbox *inbox, uint32_t tid, uint8_t mgmt_class)
{
	uint64_t *place;

	if (!inbox->expected)
		inbox->expected = calloc(EXPECTED, sizeof(*inbox->expected));
	if (!inbox->expected)
		return;
	place = place_of(inbox, tid, 0);
	if (!place)
		place = &inbox->expected[tid % EXPECTED];
	*place = content_of(tid, mgmt_class);
}

/* Whether this is the first response with an expected ID. */
static bool is_expected(struct inbox *inbox, uint32_t tid, uint8_t mgmt_class)
{
	uint64_t *place = place_of(inbox, tid, content_of(tid, mgmt_class));

	if (place)
		*place = 0;
	return place != NULL;
}

static bool is_wanted(struct inbox *inbox, const uint8_t *umad, int length)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	const uint8_t *mad = packet_mad(umad);

	if (length < 24)
		return false;
	return (!header->status && !is_response(mad)) ||
	       is_expected(inbox, get32(mad, TID_OFFS), mad[1]);
}

bool inbox_add(struct inbox *inbox, const uint8_t *umad, int length)
{
	size_t size = umad_size() + (size_t)length;
	struct message *message;

	if (!is_wanted(inbox, umad, length) || inbox->bytes + size > BYTES_MAX)
		return false;
	message = malloc(sizeof(*message) + size);
	if (!message)
		return false;
	message->next = NULL;
	message->length = length;
	memcpy(message->umad, umad, size);
	*inbox->last = message;
	inbox->last = &message->next;
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
	inbox->bytes -= umad_size() + (size_t)message->length;
	return message;
}
