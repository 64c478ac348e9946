/* SPDX-License-Identifier: BSD-2-Clause */

#include "attempt.h"

#include "mad_wire.h"

void attempt_forget(struct ibmad_port *port, struct attempt *attempt)
{
	if (!attempt->tid)
		return;
	table_remove(&port->table, attempt);
	attempt->tid = 0;
}

void attempts_forget(struct ibmad_port *port, struct transaction *transaction)
{
	for (unsigned i = 0; i < LIVE_ATTEMPTS; i++)
		attempt_forget(port, &transaction->attempts[i]);
}

void attempts_give_up(struct ibmad_port *port, struct transaction *transaction)
{
	if (transaction->attempts[0].tid && !transaction->asynchronous)
		port->given_up[port->next_given_up++ % GIVEN_UP] = transaction->attempts[0].tid;
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

/* The first sending's answer may take all the time there is; of the others, the latest do. */
static struct attempt *free_attempt(struct transaction *transaction)
{
	unsigned others = LIVE_ATTEMPTS - 1, sendings = transaction->sendings;

	return &transaction->attempts[sendings ? 1 + (sendings - 1) % others : 0];
}

void attempt_name(struct ibmad_port *port, struct transaction *transaction, int64_t now)
{
	struct attempt *attempt = free_attempt(transaction);
	uint8_t *mad = transaction_mad(transaction);
	uint32_t tid = get32(mad, TID_OFFS);

	attempt_forget(port, attempt);
	if (transaction->sendings || !tid || is_taken(port, mad)) {
		tid = (uint32_t)mad_trid();
		put32(mad, TID_OFFS, tid);
	}
	attempt->sent = (uint32_t)now & 0x3fffffff;
	table_add(&port->table, attempt, tid);
}
