/* SPDX-License-Identifier: BSD-2-Clause */

/* Who subscribed to which notices, and the Reports that they get (IBA 13.4.11). */
#ifndef FABRIC_SA_SUBSCRIPTIONS_H
#define FABRIC_SA_SUBSCRIPTIONS_H

#include "mad_header.h"

struct sa;
struct sa_request;

/* InformInfo: a status. */
unsigned int subscribe(struct sa_request *request);
void subscriptions_free(struct sa *sa);

/*
 * Trap 64 (in service) or 65 (out of service) for a port with this GUID, 66 and 67 for a
 * multicast group: who subscribed gets a Report.
 */
void sa_gid_event(struct sa *sa, unsigned int trap, const uint8_t gid[16]);

/* A trap MAD (Notice at offset 64) that some node sent to the SM: forwarded to subscribers. */
void sa_forward_trap(struct sa *sa, const uint8_t trap[MAD_BYTES]);

#endif
