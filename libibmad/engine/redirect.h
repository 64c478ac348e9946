/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Redirection (IBA 13.5.2): a response may refer the request to another port, by LID or only by
 * GID; the SA is then asked for the path.
 */
#ifndef LIBIBMAD_REDIRECT_H
#define LIBIBMAD_REDIRECT_H

#include "mad/packet.h"

#include <infiniband/mad.h>
#include <stdbool.h>

struct redirect_state {
	ib_portid_t to;
	unsigned count;   /* redirections so far */
	uint32_t tid;     /* needs_path, awaits_path: the request's own TID */
	bool needs_path;  /* no LID in the response: ask the SA */
	bool awaits_path; /* the packet is the SA request */
	_Alignas(8) uint8_t request[PACKET_SIZE]; /* awaits_path: the redirected packet */
};

/* How to ask the SA for a path. */
struct path_source {
	ib_portid_t sa;
	uint8_t gid[16]; /* local port's */
	int agent;       /* the SA class's; -1: none */
	uint64_t sa_key;
};

/*
 * Handles a response that redirects the request in "packet", or the SA's path. *tid is the
 * request's own TID. *state is NULL before the first redirection, then allocated. Returns 0 if
 * the request is to be retransmitted, -ELOOP (too many redirections), -EHOSTUNREACH (no path,
 * or not a unicast LID) or -ENOMEM.
 */
int redirect(struct redirect_state **state, uint8_t *packet, uint32_t *tid, const uint8_t *mad,
	     int length);

static inline bool redirect_needs_path(const struct redirect_state *state)
{
	return state && state->needs_path;
}

static inline bool redirect_awaits_path(const struct redirect_state *state)
{
	return state && state->awaits_path;
}

/* Turns the packet into a path request to the SA. */
void redirect_ask_path(struct redirect_state *state, uint8_t *packet,
		       const struct path_source *source);

/*
 * Stores the final address in dport if its LID is known. state is NULL if there was no
 * redirection.
 */
void redirect_report(const struct redirect_state *state, ib_portid_t *dport);

#endif
