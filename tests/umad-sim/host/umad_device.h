/* SPDX-License-Identifier: BSD-2-Clause */

/* /dev/infiniband/umadN as the kernel's user_mad.c implements it: handles, their agents and
 * queues. Knows nothing of how programs connect. */
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
	bool gone; /* its device was removed; stays set when the device comes back */
	struct message *queue; /* messages to be read, in order */
	struct message **queue_end;
	size_t reassembled; /* in incomplete messages */
	uint32_t queued;    /* queue length; messages are dropped at MOST_QUEUED */
	void *owner;
	void (*readable)(struct handle *handle); /* a message was queued */
	void (*removed)(struct handle *handle);  /* its device was removed */
};

/* Opens a port's device; NULL on OOM. The owner sets `shared` (zeroed), owner and functions. */
struct handle *handle_open(struct fabric *fabric, struct host_port *host);
void handle_close(struct handle *handle);

/* Performs an ioctl; updates its argument in place. Returns 0 or a negative errno. */
int handle_ioctl(struct handle *handle, uint32_t code, uint8_t argument[ARGUMENT_BYTES]);

/* Handles a write(): header and MAD, already accepted by check_write(). Returns 0 or a negative
 * errno. */
int handle_write(struct handle *handle, const uint8_t *bytes, size_t length);

/* Queues a message for the owner to read; drops it if the queue is full. */
void handle_queue(struct handle *handle, struct message *message);

/* Dequeues the first message, or returns NULL. The header is in the handle's layout: the
 * program reads `header` (HEADER_BYTES or OLD_HEADER_BYTES of it), then the data. */
struct message *handle_take(struct handle *handle, size_t *header_bytes);

/* Removes a port's device, or brings it back. */
void host_remove(struct host_port *host);
void host_add(struct host_port *host);

#endif
