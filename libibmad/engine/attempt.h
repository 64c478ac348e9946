/* SPDX-License-Identifier: BSD-2-Clause */

/* A transaction's sendings: each has an id, by which its answer is known. */
#ifndef LIBIBMAD_ATTEMPT_H
#define LIBIBMAD_ATTEMPT_H

#include "engine/transaction.h"

/* All: the port is locked. */

/*
 * Gives the next transmission its ID, and expects a response from now on. The ID is the
 * request's own. It is a new one if the kernel still holds the request's own ID, or if a
 * response to another request may have that ID.
 */
struct attempt *attempt_name(struct ibmad_port *port, struct transaction *transaction,
			     int64_t now);

/* Whether a transmission has the request's own ID: attempts[0] has it. */
static inline bool attempt_is_own(const struct attempt *attempt)
{
	return attempt->slot == 0;
}

/* Whether the kernel may still hold the request's own ID. */
static inline bool attempts_hold_own(const struct transaction *transaction)
{
	return transaction->expected & 1;
}

/* The sending that a MAD of that id and class answers; NULL: none. */
struct attempt *attempt_find(struct ibmad_port *port, const uint8_t *mad);

/* Its answer is not expected any more. */
void attempt_forget(struct ibmad_port *port, struct attempt *attempt);
void attempts_forget(struct ibmad_port *port, struct transaction *transaction);
/* The kernel refused it. If it had the request's own ID, the next transmission has a new ID. */
void attempt_refused(struct ibmad_port *port, struct attempt *attempt);
/*
 * No response is expected any more. If a response with the request's own ID may still come, no
 * other request gets that ID.
 */
void attempts_give_up(struct ibmad_port *port, struct transaction *transaction);
/* The same, and the request is sent again: with a new ID, if the kernel holds its own ID. */
void attempts_renew(struct ibmad_port *port, struct transaction *transaction);

#endif
