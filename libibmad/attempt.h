/* SPDX-License-Identifier: BSD-2-Clause */

/* A transaction's sendings: each has an id, by which its answer is known. */
#ifndef LIBIBMAD_ATTEMPT_H
#define LIBIBMAD_ATTEMPT_H

#include "transaction.h"

/* All: the port is locked. */

/*
 * Gives the next sending its id, and expects its answer from now on. The first one's is the
 * request's own, if no other answer can have that; those of all others are new.
 */
void attempt_name(struct ibmad_port *port, struct transaction *transaction, int64_t now);

/* The sending that a MAD of that id and class answers; NULL: none. */
struct attempt *attempt_find(struct ibmad_port *port, const uint8_t *mad);

/* Its answer is not expected any more. */
void attempt_forget(struct ibmad_port *port, struct attempt *attempt);
void attempts_forget(struct ibmad_port *port, struct transaction *transaction);
/* The same, and it may come yet: callers know the first sending's id, and may give it again. */
void attempts_give_up(struct ibmad_port *port, struct transaction *transaction);

#endif
