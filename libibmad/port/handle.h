/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A port handle and the agents on it: one MAD is written, one message of any length is read. No
 * call takes a lock.
 */
#ifndef LIBIBMAD_HANDLE_H
#define LIBIBMAD_HANDLE_H

#include "base/report.h"
#include "mad/layout.h"
#include "mad/packet.h"

#include <errno.h>
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
 * How long the kernel waits for the acknowledgement of segments, or the request's timeout if
 * that is shorter. Then the kernel retransmits them, as often as the message has retries.
 */
#define ACK_MS 2000

/* The rest of handle_write(), after umad_send() has failed with "ret". */
int handle_write_failed(const struct handle *handle, uint8_t *umad, int length, int kernel_ms,
			int retries, int ret);

/*
 * Writes the MAD in a umad buffer for the agent that its header names. 0 or an errno; ENODEV:
 * the device is gone.
 */
static inline int handle_write(const struct handle *handle, uint8_t *umad, const uint8_t *mad,
			       int length, int kernel_ms, int retries)
{
	int agent = (int)((struct ib_user_mad *)(void *)umad)->agent_id, ret;

	report_packet("send\n", mad, length);
	ret = umad_send(handle->fd, agent, umad, length, kernel_ms, retries);
	return ret ? handle_write_failed(handle, umad, length, kernel_ms, retries, ret) : 0;
}

static inline bool handle_uses_rmpp(const struct handle *handle, const uint8_t *mad)
{
	return handle->rmpp[mad[1]] && mad[RMPP_VERSION_OFFS] == RMPP_VERSION &&
	       mad[RMPP_FLAGS_OFFS] & IB_RMPP_FLAG_ACTIVE;
}

/*
 * The same for a request. The library retransmits a request of one MAD. The kernel retransmits
 * the segments of a longer request until the timeout, because only the kernel knows which
 * segments are lost.
 */
static inline int handle_send(const struct handle *handle, uint8_t *umad, int length,
			      int kernel_ms)
{
	const uint8_t *mad = umad + handle->header_size;

	return handle_write(handle, umad, mad, length, kernel_ms,
			    handle_uses_rmpp(handle, mad) ? (kernel_ms - 1) / ACK_MS : 0);
}

/* The same for a response. by_rmpp: the receiver acknowledges it, even a single segment. */
int handle_respond(const struct handle *handle, uint8_t *umad, int length, bool by_rmpp);

enum handle_result {
	HANDLE_MESSAGE,  /* a message is in the buffer */
	HANDLE_NONE,     /* no message is queued */
	HANDLE_TOO_LONG, /* the first 256 bytes are in the buffer, the message stays queued */
	HANDLE_GONE,     /* the device is gone */
};

/* The rest of handle_receive(), after umad_recv() has failed with "ret". */
enum handle_result handle_receive_failed(const struct handle *handle, uint8_t *umad,
					 int *length, int ret);

/*
 * Reads a message without waiting. A signal does not interrupt the call. *length is the size of
 * the buffer for the MAD, and becomes the length of the message's MAD.
 */
static inline enum handle_result handle_receive(const struct handle *handle, uint8_t *umad,
						int *length)
{
	int ret = umad_recv(handle->fd, umad, length, 0);

	if (ret < 0)
		return handle_receive_failed(handle, umad, length, ret);
	report_packet("receive\n", umad + handle->header_size, *length);
	return HANDLE_MESSAGE;
}

/*
 * Reads a message of this length and drops it. HANDLE_TOO_LONG: not enough memory; the message
 * stays queued.
 */
enum handle_result handle_drain(const struct handle *handle, int length);

#endif
