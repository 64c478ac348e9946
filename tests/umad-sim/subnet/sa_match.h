/* SPDX-License-Identifier: BSD-2-Clause */

/* Which records and ports a request selects, and what the requester may see of them. */
#ifndef FABRIC_SA_MATCH_H
#define FABRIC_SA_MATCH_H

#include "sa_parts.h"

/* Whether two records agree in all components of the mask. */
bool sa_matches(const struct record_type *type, uint64_t mask, const uint8_t *wanted,
		const uint8_t *record);

/* Adds the record to the response if the request selects it; false if no more records are
 * needed. */
bool sa_offer(struct sa_request *request, const uint8_t *record);

/* Visits the end ports that a request whose first component is a LID can select. */
void sa_each_end_port(struct sa_request *request,
		      bool (*visit)(struct sa_request *request, uint32_t port));

/* Whether an end port is reachable now: it has a LID and its link is up. */
bool sa_in_subnet(const struct fabric *fabric, uint32_t port);

/* The end port with this GUID (its own or an additional one), or with this GID; or NONE. */
uint32_t sa_find_guid(struct sa *sa, uint64_t guid);
uint32_t sa_find_any_guid(struct sa *sa, uint64_t guid);
uint32_t sa_find_gid(struct sa *sa, const uint8_t gid[16]);

/* Whether a port is a member of the P_Key's partition; a P_Key with which two ports can
 * communicate, or 0. */
bool sa_has_pkey(const struct fabric *fabric, uint32_t port, uint16_t pkey);
uint16_t sa_shared_pkey(const struct fabric *fabric, uint32_t a, uint32_t b, uint16_t wanted);

/*
 * Selectors (IBA 15.2.5.16): from the best possible value, compute the one that a request's
 * byte selects, which may be less; false if even the best does not satisfy the request. The
 * best lifetime is the shortest.
 */
bool sa_fit_mtu(uint8_t selected, uint8_t *mtu);
bool sa_fit_rate(uint8_t selected, uint8_t *rate);
bool sa_fit_life(uint8_t selected, uint8_t *life);

#define SELECT_EXACTLY 0x80 /* the selector of values in responses */

#endif
