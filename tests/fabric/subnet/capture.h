/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A capture of what the links carry, as a pcapng file (pcapng.h) of InfiniBand frames. Each
 * port is an interface of the file.
 *
 * A capture at one port has what leaves by the port and what comes to it. A capture of the
 * whole fabric has each packet once for each link that it crosses: at the port that it comes
 * to, or, if the link loses it, at the port that it left by. The comment of a packet says what
 * became of it, if it went no further or something happened on the way. Packets have the
 * numbers of the trace.
 */
#ifndef FABRIC_CAPTURE_H
#define FABRIC_CAPTURE_H

#include "fabric.h"
#include "wire_packet.h"

struct capture;
struct record; /* of a packet that is not written yet */

/*
 * The port (by index) that the text NODE/PORT means. 0, or -EINVAL; `why` (of 256 bytes) then
 * says more.
 */
int capture_port(const struct fabric *fabric, const char *text, uint32_t *port, char *why);

/*
 * Captures at a port, or, if it is NONE, everywhere. start: what the clock said at fabric->now
 * 0, in nanoseconds since 1970. 0 or a negative errno.
 */
int capture_to(struct fabric *fabric, const char *name, uint32_t port, uint64_t start);
/* Writes what is left. The timers have been freed. */
void capture_free(struct fabric *fabric);

/*
 * A packet leaves by a port, and is lost on the link or not; it comes to a port over its cable;
 * at that time. `previous` is its record at an earlier port, or NULL. Returns its latest
 * record: NULL if it has none. A record is valid until the caller returns to the timers.
 */
struct record *capture_leaves(struct fabric *fabric, const struct packet *packet, uint32_t port,
			      bool lost, uint64_t at, struct record *previous);
struct record *capture_comes(struct fabric *fabric, const struct packet *packet, uint32_t port,
			     uint64_t at, struct record *previous);

/* What became of a packet at a port, for the comment of its record (which may be NULL). */
void capture_note(const struct fabric *fabric, struct record *record, uint32_t port,
		  const char *what);
/* Likewise, of a packet that has arrived and whose record is being written. */
void capture_note_arrived(const struct fabric *fabric, const struct packet *packet,
			  uint32_t port, const char *what);

#endif
