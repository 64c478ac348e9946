/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Messages for mad_receive_via(): requests of others, and responses to mad_send_via(). Each
 * stays until it is received or the port is closed.
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
	uint64_t *expected; /* IDs and classes of mad_send_via() calls; NULL: none so far */
};

void inbox_init(struct inbox *inbox);
void inbox_free(struct inbox *inbox);

/* A response with this ID and class is to be kept. */
void inbox_expect(struct inbox *inbox, uint32_t tid, uint8_t mgmt_class);

/*
 * A message has come. Returns whether it was kept: not if it is a response that is not
 * expected, if the inbox is full, or without memory.
 */
bool inbox_add(struct inbox *inbox, const uint8_t *umad, int length);

/* Takes the first message out; the caller frees it. NULL: there is none. */
struct message *inbox_take(struct inbox *inbox);

#endif
