/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A port handle and the agents on it: one MAD is written, one message of any length is read. No
 * call takes a lock.
 */
#ifndef LIBIBMAD_HANDLE_H
#define LIBIBMAD_HANDLE_H

#include "mad/packet.h"

#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <stdatomic.h>
#include <stdbool.h>

#define MGMT_CLASSES 256

struct handle {
	int fd;
	unsigned header_size; /* of the umad header */
	char *ca_name;        /* as the caller of the open call gave it; NULL: any */
	int portnum;
	atomic_int agents[MGMT_CLASSES]; /* by class; -1: none */
	atomic_bool rmpp[MGMT_CLASSES];  /* whether that agent has RMPP */
};

/* The agent of a class; -1 without one. */
static inline int handle_agent(const struct handle *handle, int mgmt_class)
{
	return mgmt_class >= 0 && mgmt_class < MGMT_CLASSES ? handle->agents[mgmt_class] : -1;
}

/*
 * Writes the MAD in a umad buffer for the agent that its header names. 0 or an errno; ENODEV:
 * the device is gone.
 */
int handle_send(const struct handle *handle, uint8_t *umad, int length, int kernel_ms);

/* The same for a response. by_rmpp: the receiver acknowledges it, even a single segment. */
int handle_respond(const struct handle *handle, uint8_t *umad, int length, bool by_rmpp);

enum handle_result {
	HANDLE_MESSAGE,  /* a message is in the buffer */
	HANDLE_NONE,     /* no message is queued */
	HANDLE_TOO_LONG, /* the first 256 bytes are in the buffer, the message stays queued */
	HANDLE_GONE,     /* the device is gone */
};

/*
 * Reads a message without waiting. A signal does not interrupt the call. *length is the size of
 * the buffer for the MAD, and becomes the length of the message's MAD.
 */
enum handle_result handle_receive(const struct handle *handle, void *umad, int *length);

/*
 * Reads a message of this length and drops it. HANDLE_TOO_LONG: not enough memory; the message
 * stays queued.
 */
enum handle_result handle_drain(const struct handle *handle, int length);

#endif
