/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A port handle and the agents on it: one MAD written, one message of any length read. No call
 * takes a lock or changes anything but what it is given.
 */
#ifndef LIBIBMAD_LINK_H
#define LIBIBMAD_LINK_H

#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <stdatomic.h>
#include <stdbool.h>

#define MGMT_CLASSES 256
/* The size of a umad header of either layout and one MAD. */
#define PACKET_SIZE  (64 + IB_MAD_SIZE)

struct link {
	int fd;
	char *ca_name; /* as the caller of the open call gave it; NULL: any */
	int portnum;
	atomic_int agents[MGMT_CLASSES]; /* by class; -1: none */
	atomic_bool rmpp[MGMT_CLASSES];  /* whether that agent has RMPP */
};

/* The agent of a class; -1 without one. */
static inline int link_agent(const struct link *link, int mgmt_class)
{
	return mgmt_class >= 0 && mgmt_class < MGMT_CLASSES ? link->agents[mgmt_class] : -1;
}

/*
 * Writes the MAD in a umad buffer for the agent that its header names. 0 or an errno; ENODEV:
 * the device is gone.
 */
int link_write(const struct link *link, uint8_t *umad, int length, int kernel_ms);

/* The same for a response. By RMPP, even one of a single segment is acknowledged. */
int link_respond(const struct link *link, uint8_t *umad, int length, bool by_rmpp);

enum link_result {
	LINK_MESSAGE,  /* a message is in the buffer */
	LINK_NONE,     /* no message is queued */
	LINK_TOO_LONG, /* the first 256 bytes are in the buffer, the message stays queued */
	LINK_GONE,     /* the device is gone */
};

/*
 * Reads a message without waiting, whatever signals come. *length is the size of the buffer for
 * the MAD, and becomes the length of the message's MAD.
 */
enum link_result link_read(const struct link *link, void *umad, int *length);

/*
 * Reads a message of this length and drops it. LINK_TOO_LONG: there is not enough memory for
 * that, and the message stays queued.
 */
enum link_result link_drain(const struct link *link, int length);

#endif
