/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Messages that are no responses to requests of this library: requests of others, and responses
 * to mad_send_via(). They are kept for mad_receive_via(), as long as the kernel would.
 */
#ifndef LIBIBMAD_INBOX_H
#define LIBIBMAD_INBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct message {
	struct message *next;
	int length; /* of the MAD */
	uint8_t umad[];
};

struct inbox {
	struct message *first;
	struct message **last;
	size_t bytes;
	uint32_t *expected; /* IDs of mad_send_via() calls; NULL: no call so far */
};

void inbox_init(struct inbox *inbox);
void inbox_free(struct inbox *inbox);

/* A response with this ID is to be kept. */
void inbox_expect(struct inbox *inbox, uint32_t tid);

/* A message has come. Returns whether it was kept: not if it is late, unexpected or too much.
 */
bool inbox_add(struct inbox *inbox, const uint8_t *umad, int length);

/* Takes the first message out; the caller frees it. NULL: there is none. */
struct message *inbox_take(struct inbox *inbox);

#endif
