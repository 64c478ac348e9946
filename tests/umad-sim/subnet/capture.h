/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A capture of the packets on the links, as a pcapng file (pcapng.h) of InfiniBand frames.
 * Each port is an interface of the file.
 *
 * A capture at one port has the packets that leave by the port and that arrive at it. A
 * capture of the whole fabric has each packet once for each link that it crosses: at the port
 * where it arrives, or, if the link loses it, at the port where it left. The comment of a
 * packet says why it ended there, or which fault it met. Packet numbers are those of the
 * trace.
 */
#ifndef FABRIC_CAPTURE_H
#define FABRIC_CAPTURE_H

#include "fabric.h"
#include "wire_packet.h"

struct capture;
struct record; /* a packet that is not written yet */

/* The port (by index) for the text NODE/PORT. 0, or -EINVAL; `why` (of 256 bytes) then has a
 * reason. */
int capture_port(const struct fabric *fabric, const char *text, uint32_t *port, char *why);

/* Captures at a port, or, if the port is NONE, everywhere. start: the clock at fabric->now 0,
 * in nanoseconds since 1970. 0 or a negative errno. */
int capture_to(struct fabric *fabric, const char *name, uint32_t port, uint64_t start);
/* If packets wait for the reader of a pipe, writes some; true: more wait. */
bool capture_flush(struct fabric *fabric);
/* Writes the records that are left. The timers have been freed. */
void capture_free(struct fabric *fabric);

/*
 * Records that a packet leaves by a port (lost on the link or not), or that it arrives at a
 * port over its cable, at that time. `previous` is the packet's record at an earlier port, or
 * NULL. Returns the packet's latest record, or NULL. A record is valid until the caller
 * returns to the timers.
 */
struct record *capture_leaves(struct fabric *fabric, const struct packet *packet, uint32_t port,
			      bool lost, uint64_t at, struct record *previous);
struct record *capture_comes(struct fabric *fabric, const struct packet *packet, uint32_t port,
			     uint64_t at, struct record *previous);

/*
 * What happened to a packet at a port: text for the comment of its record (which may be NULL).
 */
void capture_note(const struct fabric *fabric, struct record *record, uint32_t port,
		  const char *what);
/* The same for a packet that has arrived and whose record is being written. */
void capture_note_arrived(const struct fabric *fabric, const struct packet *packet,
			  uint32_t port, const char *what);

#endif
