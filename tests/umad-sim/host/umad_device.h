/* SPDX-License-Identifier: BSD-2-Clause */

/* /dev/infiniband/umadN as the kernel's user_mad.c implements it: handles, their agents and
 * queues. How programs connect is not known here. */
#ifndef FABRIC_UMAD_DEVICE_H
#define FABRIC_UMAD_DEVICE_H

#include "hosts.h"
#include "protocol.h"

#define MOST_QUEUED 200000 /* the kernel's limit */

struct handle {
	struct handle *next; /* of its port */
	struct fabric *fabric;
	struct host_port *host;
	struct agent *agents[AGENTS_PER_HANDLE];
	struct shared *shared; /* the owner's; shared with the program */
	bool gone;             /* its device was removed; it stays so even if the device comes
				* back */
	struct message *queue; /* messages to be read, in order */
	struct message **queue_end;
	size_t reassembled; /* bytes of incomplete messages */
	uint32_t queued;    /* length of the queue; at MOST_QUEUED, messages are dropped */
	void *owner;
	void (*readable)(struct handle *handle); /* a message was queued */
	void (*removed)(struct handle *handle);  /* its device was removed */
};

/* Opens a port's device. The owner sets `shared` (zeroed), owner and functions. NULL without
 * memory. */
struct handle *handle_open(struct fabric *fabric, struct host_port *host);
void handle_close(struct handle *handle);

/* Performs an ioctl, whose argument is changed in place. 0 or a negative errno. */
int handle_ioctl(struct handle *handle, uint32_t code, uint8_t argument[ARGUMENT_BYTES]);

/*
 * Handles a write(): header and MAD, which check_write() has accepted. 0 or a negative errno.
 */
int handle_write(struct handle *handle, const uint8_t *bytes, size_t length);

/* The owner gets a message of any agent to read, unless too many are queued. */
void handle_queue(struct handle *handle, struct message *message);

/*
 * Takes the first message off the queue. Its header is in the handle's layout: the program
 * reads `header` (HEADER_BYTES or OLD_HEADER_BYTES of it) and the data. NULL: the queue is
 * empty.
 */
struct message *handle_take(struct handle *handle, size_t *header_bytes);

/* A port's device is removed, or comes back. */
void host_remove(struct host_port *host);
void host_add(struct host_port *host);

#endif
