/* SPDX-License-Identifier: BSD-2-Clause */

/* Subnet administrator (SA): MultiPathRecords. */
#ifndef FABRIC_SA_MULTI_H
#define FABRIC_SA_MULTI_H

#include "sa_parts.h"

/* Handles a GetMulti of a MultiPathRecord, which may be longer than a MAD. Returns a status. */
unsigned int sa_multi_path(struct sa_request *request, const uint8_t *message, size_t length);

#endif
