/* SPDX-License-Identifier: BSD-2-Clause */

/* A transaction's sendings: each has an id, by which its answer is known. */
#ifndef LIBIBMAD_ATTEMPT_H
#define LIBIBMAD_ATTEMPT_H

#include "transaction.h"

/* All: the port is locked. */

/*
 * Gives the next sending its id, and expects its answer from now on. The id is the request's
 * own, unless the kernel still holds that one, or a response to another request may have it:
 * then it is new.
 */
struct attempt *attempt_name(struct ibmad_port *port, struct transaction *transaction,
			     int64_t now);

/* The request's own id is the first attempt's. Whether the kernel may still hold it. */
static inline bool attempt_is_own(const struct attempt *attempt)
{
	return attempt->slot == 0;
}

static inline bool attempts_hold_own(const struct transaction *transaction)
{
	return transaction->expected & 1;
}

/* The sending that a MAD of that id and class answers; NULL: none. */
struct attempt *attempt_find(struct ibmad_port *port, const uint8_t *mad);

/* Its answer is not expected any more. */
void attempt_forget(struct ibmad_port *port, struct attempt *attempt);
void attempts_forget(struct ibmad_port *port, struct transaction *transaction);
/* The kernel refused it. What is sent next has a new id, if this one was the request's. */
void attempt_refused(struct ibmad_port *port, struct attempt *attempt);
/*
 * None of their answers is expected any more. If one with the request's own id may come yet, no
 * other request is given that id.
 */
void attempts_give_up(struct ibmad_port *port, struct transaction *transaction);
/* The same, and the request is sent once more: it has a new id, if the kernel holds its own. */
void attempts_renew(struct ibmad_port *port, struct transaction *transaction);

#endif
