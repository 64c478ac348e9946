/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Redirection (IBA 13.5.2): an answer may say that another port sees to the request. It
 * names a LID, or a GID alone, and then the subnet administrator is asked for the path.
 */
#ifndef LIBIBMAD_REDIRECT_H
#define LIBIBMAD_REDIRECT_H

#include "engine/transaction.h"

struct detour {
	ib_portid_t to;
	unsigned count;   /* of redirections so far */
	uint32_t tid;     /* of the request, while the path is requested */
	bool needs_path;  /* of which only the GID is known */
	bool awaits_path; /* and the packet is a question for it */
	_Alignas(8) uint8_t request[PACKET_SIZE]; /* meanwhile */
};

/*
 * Takes an answer that redirects, or the path that was asked for. 0: the request is to be
 * sent again; -ELOOP too many of them, -EHOSTUNREACH no path, -EOPNOTSUPP the request was
 * more than one MAD, -ENOMEM.
 */
int redirect(struct transaction *transaction, const uint8_t *mad, int length);

static inline bool redirect_needs_path(const struct transaction *transaction)
{
	return transaction->detour && transaction->detour->needs_path;
}

static inline bool redirect_awaits_path(const struct transaction *transaction)
{
	return transaction->detour && transaction->detour->awaits_path;
}

/* Puts the question for the path in the request's place; not locked. 0 or an errno. */
int redirect_ask_path(struct ibmad_port *port, struct transaction *transaction);

/* Tells the caller where it ended up, unless where he said. */
void redirect_report(const struct transaction *transaction, ib_portid_t *dport);

void redirect_fini(struct transaction *transaction);

#endif
