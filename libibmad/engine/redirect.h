/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Redirection (IBA 13.5.2): a response may say that another port handles the request. The
 * response has the LID of that port, or its GID alone; then the SA is asked for the path.
 */
#ifndef LIBIBMAD_REDIRECT_H
#define LIBIBMAD_REDIRECT_H

#include "mad/packet.h"

#include <infiniband/mad.h>
#include <stdbool.h>

struct redirect_state {
	ib_portid_t to;
	unsigned count;   /* redirections so far */
	uint32_t tid;     /* needs_path, awaits_path: the request's own ID */
	bool needs_path;  /* the response had no LID: the SA is to be asked */
	bool awaits_path; /* the packet is the request to the SA */
	_Alignas(8) uint8_t request[PACKET_SIZE]; /* awaits_path: the redirected packet */
};

/* Where the SA is asked for a path, and how. */
struct path_source {
	ib_portid_t sa;
	uint8_t gid[16]; /* of the local port */
	int agent;       /* of the SA class; -1: none */
	uint64_t sa_key;
};

/*
 * Handles a response to the request in "packet": the response redirects, or is the SA's and has
 * the path. *tid is the request's own ID. *state is NULL before the first redirection, and is
 * allocated then. Returns 0 if the request is to be sent again; -ELOOP: too many redirections;
 * -EHOSTUNREACH: no path, or not the LID of one port; -ENOMEM.
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

/* Makes the packet a request to the SA for the path. */
void redirect_ask_path(struct redirect_state *state, uint8_t *packet,
		       const struct path_source *source);

/*
 * Writes the address that the request was redirected to into dport, if the LID is known. state
 * is NULL for a request that was never redirected.
 */
void redirect_report(const struct redirect_state *state, ib_portid_t *dport);

#endif
