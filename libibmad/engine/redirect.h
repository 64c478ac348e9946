/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Redirection (IBA 13.5.2): a response may say that another port handles the request. The
 * response has the LID of that port, or its GID alone; then the SA is asked for the path.
 */
#ifndef LIBIBMAD_REDIRECT_H
#define LIBIBMAD_REDIRECT_H

#include "engine/link.h"

struct detour {
	ib_portid_t to;
	unsigned count;   /* of redirections so far */
	uint32_t tid;     /* the request's own ID, while the SA is asked */
	bool needs_path;  /* only the GID is known */
	bool awaits_path; /* the packet is the request to the SA */
	_Alignas(8) uint8_t request[PACKET_SIZE]; /* the packet meanwhile */
};

/*
 * Takes a response that redirects, or the SA's response, to the request in packet, whose own ID
 * is *tid; *detour is NULL before the first redirection. 0: the request is to be sent again;
 * -ELOOP too many redirections, -EHOSTUNREACH no path, -ENOMEM.
 */
int redirect(struct detour **detour, uint8_t *packet, uint32_t *tid, const uint8_t *mad,
	     int length);

static inline bool redirect_needs_path(const struct detour *detour)
{
	return detour && detour->needs_path;
}

static inline bool redirect_awaits_path(const struct detour *detour)
{
	return detour && detour->awaits_path;
}

/*
 * Makes the packet a request to the SA for the path. It calls umad_get_port(), so no lock
 * should be held. 0 or an errno.
 */
int redirect_ask_path(struct detour *detour, uint8_t *packet, const struct link *link,
		      uint64_t sa_key);

/* Writes the address that the request was redirected to, if it was, into dport. */
void redirect_report(const struct detour *detour, ib_portid_t *dport);

#endif
