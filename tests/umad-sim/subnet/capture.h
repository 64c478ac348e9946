/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A capture of the packets on the links, as a pcapng file (pcapng.h) of InfiniBand frames. Each
 * port is an interface of the file.
 *
 * A capture at one port has the packets that leave and enter there. A capture of the whole
 * fabric has each packet once per link it crosses: at the port where it arrives or, if the link
 * loses it, where it left. A packet's comment says why it ended there, or which fault hit it.
 * Packet numbers are the trace's.
 */
#ifndef FABRIC_CAPTURE_H
#define FABRIC_CAPTURE_H

#include "fabric.h"
#include "wire_packet.h"

struct capture;
struct record; /* a packet not written yet */

/* Finds the port (by index) of NODE/PORT. Returns 0, or -EINVAL with a reason in `why` (256
 * bytes). */
int capture_port(const struct fabric *fabric, const char *text, uint32_t *port, char *why);

/* Captures at a port, or everywhere if it is NONE. start: the clock at fabric->now 0, in
 * nanoseconds since 1970. Returns 0 or a negative errno. */
int capture_to(struct fabric *fabric, const char *name, uint32_t port, uint64_t start);
/* Writes some of the packets that wait for the reader of a pipe; true if more wait. */
bool capture_flush(struct fabric *fabric);
/* Writes the remaining records. The timers must already be freed. */
void capture_free(struct fabric *fabric);

/*
 * Records that a packet leaves by a port (lost on the link or not), or arrives at one over its
 * cable, at that time. `previous` is the packet's record at an earlier port, or NULL. Returns
 * the packet's latest record, or NULL; it is valid until the caller returns to the timers.
 */
struct record *capture_leaves(struct fabric *fabric, const struct packet *packet, uint32_t port,
			      bool lost, uint64_t at, struct record *previous);
struct record *capture_comes(struct fabric *fabric, const struct packet *packet, uint32_t port,
			     uint64_t at, struct record *previous);

/* Adds what happened to a packet at a port to the comment of its record (may be NULL). */
void capture_note(const struct fabric *fabric, struct record *record, uint32_t port,
		  const char *what);
/* Likewise, for a packet that has arrived and whose record is being written. */
void capture_note_arrived(const struct fabric *fabric, const struct packet *packet,
			  uint32_t port, const char *what);

#endif
