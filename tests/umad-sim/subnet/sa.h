/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The built-in subnet administrator (IBA 15). Responds from the current state of the fabric, of
 * which it keeps no copy. Stores what requesters register: multicast groups and their members,
 * services, subscriptions.
 */
#ifndef FABRIC_SA_H
#define FABRIC_SA_H

#include <stddef.h>
#include <stdint.h>

#include "fabric.h"
#include "mad_header.h"

struct sa;

/* Sends a MAD from the SA (a Report to a subscriber) to the end port with that LID. */
typedef void sa_send_fn(void *context, uint16_t lid, const uint8_t mad[MAD_BYTES]);

/* Returns NULL on OOM. The fabric must outlive the SA. */
struct sa *sa_new(struct fabric *fabric, sa_send_fn *send, void *context);
void sa_free(struct sa *sa);

/* Forgets everything, as a restart does, except the group that exists from the start, without
 * its members. */
void sa_forget(struct sa *sa);

/*
 * Handles a request from the end port (by index) with that LID. Returns a response, which the
 * caller frees, or NULL if none is due (or on OOM): MAD header, RMPP header (active, with
 * version, type and flags; the sender adds segment number and payload length), SA header and
 * records, `*length` bytes in all, which is 256 unless it is a table.
 */
uint8_t *sa_respond(struct sa *sa, uint32_t from, uint16_t from_lid, const uint8_t *request,
		    size_t request_length, size_t *length);

#endif
