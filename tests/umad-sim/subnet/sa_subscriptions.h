/* SPDX-License-Identifier: BSD-2-Clause */

/* Subscriptions to notices, and the Reports to subscribers (IBA 13.4.11). */
#ifndef FABRIC_SA_SUBSCRIPTIONS_H
#define FABRIC_SA_SUBSCRIPTIONS_H

#include "mad_header.h"

struct sa;
struct sa_request;

/* Set(InformInfo). Returns a status. */
unsigned int subscribe(struct sa_request *request);
void subscriptions_free(struct sa *sa);

/* Sends Reports to subscribers: of trap 64 (in service) or 65 (out of service) for a port with
 * this GID, or 66 or 67 for a multicast group. */
void sa_gid_event(struct sa *sa, unsigned int trap, const uint8_t gid[16]);

/* Forwards to the subscribers a trap MAD (Notice at offset 64) that a node sent to the SM. */
void sa_forward_trap(struct sa *sa, const uint8_t trap[MAD_BYTES]);

#endif
