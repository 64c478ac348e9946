/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/attempt.h"

#include "mad/mad_wire.h"

void attempt_forget(struct ibmad_port *port, struct attempt *attempt)
{
	struct transaction *transaction = transaction_of(attempt);
	unsigned others = ~(1u << attempt->slot) & ALL_ATTEMPTS;

	if ((transaction->expected & others) == transaction->expected)
		return;
	transaction->expected = transaction->expected & others & ALL_ATTEMPTS;
	table_remove(&port->table, attempt);
}

void attempts_forget(struct ibmad_port *port, struct transaction *transaction)
{
	for (unsigned i = 0; transaction->expected && i < LIVE_ATTEMPTS; i++)
		attempt_forget(port, &transaction->attempts[i]);
}

/* Whether a response with the request's own ID may come. */
static bool own_may_come(const struct transaction *transaction)
{
	return attempts_hold_own(transaction) || transaction->late;
}

/* Callers know the ID and may use it again: for a while no other request gets it. */
static void withhold_own(struct ibmad_port *port, const struct transaction *transaction)
{
	if (own_may_come(transaction) && !transaction->asynchronous)
		port->given_up[port->next_given_up++ % GIVEN_UP] = transaction->attempts[0].tid;
}

static void renew_own(struct ibmad_port *port, struct transaction *transaction)
{
	withhold_own(port, transaction);
	attempt_forget(port, &transaction->attempts[0]);
	transaction->attempts[0].tid = 0;
	transaction->late = false;
}

void attempt_refused(struct ibmad_port *port, struct attempt *attempt)
{
	attempt_forget(port, attempt);
	if (attempt_is_own(attempt))
		renew_own(port, transaction_of(attempt));
}

void attempts_give_up(struct ibmad_port *port, struct transaction *transaction)
{
	withhold_own(port, transaction);
	attempts_forget(port, transaction);
}

void attempts_renew(struct ibmad_port *port, struct transaction *transaction)
{
	if (attempts_hold_own(transaction))
		renew_own(port, transaction);
	attempts_forget(port, transaction);
}

struct attempt *attempt_find(struct ibmad_port *port, const uint8_t *mad)
{
	struct attempt *attempt = table_find(&port->table, get32(mad, TID_OFFS));

	while (attempt && transaction_mad(transaction_of(attempt))[1] != mad[1])
		attempt = table_find_next(attempt);
	return attempt;
}

/* Whether an answer with that id would be, or could be, another request's. */
static bool is_taken(struct ibmad_port *port, const uint8_t *mad)
{
	uint32_t tid = get32(mad, TID_OFFS);

	/* as a rule there is none */
	for (unsigned i = 0; i < GIVEN_UP && i < port->next_given_up; i++)
		if (port->given_up[i] == tid)
			return true;
	return attempt_find(port, mad);
}

/* The request's own ID unless the kernel holds it; of the others, the oldest is replaced. */
static struct attempt *free_attempt(struct transaction *transaction)
{
	unsigned others = LIVE_ATTEMPTS - 1;

	if (!attempts_hold_own(transaction))
		return &transaction->attempts[0];
	return &transaction->attempts[1 + transaction->sendings % others];
}

struct attempt *attempt_name(struct ibmad_port *port, struct transaction *transaction,
			     int64_t now)
{
	struct attempt *attempt = free_attempt(transaction);
	uint8_t *mad = transaction_mad(transaction);
	uint32_t tid = 0;

	attempt_forget(port, attempt);
	if (attempt_is_own(attempt) && attempt->tid) {
		put32(mad, TID_OFFS, attempt->tid);
		if (is_taken(port, mad))
			renew_own(port, transaction);
		tid = attempt->tid;
	}
	if (!tid) {
		tid = (uint32_t)mad_trid();
		put32(mad, TID_OFFS, tid);
	}
	attempt->sent = (uint32_t)now & 0x3fffffff;
	transaction->expected = (transaction->expected | 1u << attempt->slot) & ALL_ATTEMPTS;
	table_add(&port->table, attempt, tid);
	return attempt;
}
