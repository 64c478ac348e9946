/* SPDX-License-Identifier: BSD-2-Clause */

/* The performance management agent of a node (IBA 16.1, A10.4.4, A13.6). */
#ifndef FABRIC_PMA_H
#define FABRIC_PMA_H

#include "query.h"

/* Answers a performance management MAD in its place; false: no answer is due. */
bool pma_answer(struct query *query);

#endif
