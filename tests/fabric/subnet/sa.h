/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The built-in subnet administration (IBA 15): answers from what the fabric is at that moment,
 * not from a copy of it. It stores what others bring: multicast groups and their members,
 * services, subscriptions.
 */
#ifndef FABRIC_SA_H
#define FABRIC_SA_H

#include <stddef.h>
#include <stdint.h>

#include "fabric.h"
#include "mad_header.h"

struct sa;

/* Sends a MAD of the SA's own (a Report to a subscriber) to the end port with that LID. */
typedef void sa_send_fn(void *context, uint16_t lid, const uint8_t mad[MAD_BYTES]);

/* NULL without memory. The fabric outlives it. */
struct sa *sa_new(struct fabric *fabric, sa_send_fn *send, void *context);
void sa_free(struct sa *sa);

/*
 * Answers a request that came from the end port (by index) with that LID. The answer is
 * allocated and the caller's: its MAD header, RMPP header (active, with version, type and
 * flags; segment number and payload length are made by who sends it), SA header and records,
 * `*length` bytes in all, 256 unless it is a table. NULL: no answer is due (or no memory).
 */
uint8_t *sa_answer(struct sa *sa, uint32_t from, uint16_t from_lid, const uint8_t *request,
		   size_t request_length, size_t *length);

#endif
