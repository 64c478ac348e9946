/* SPDX-License-Identifier: BSD-2-Clause */

/* The performance management agent of a node (IBA 16.1, A10.4.4, A13.6). */
#ifndef FABRIC_PMA_H
#define FABRIC_PMA_H

#include "query.h"

/* Replaces a performance management MAD with its response; false if no response is due. */
bool pma_respond(struct query *query);

#endif
