/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * /dev/infiniband/umadN as the kernel's user_mad.c has it: handles, their agents and their
 * queues. It knows nothing of how programs reach it.
 */
#ifndef FABRIC_UMAD_DEVICE_H
#define FABRIC_UMAD_DEVICE_H

#include "hosts.h"
#include "protocol.h"

#define MOST_QUEUED 200000 /* as the kernel's */

struct handle {
	struct handle *next; /* of its port */
	struct fabric *fabric;
	struct host_port *host;
	struct agent *agents[AGENTS_PER_HANDLE];
	struct shared *shared; /* its owner's; seen by the program */
	bool gone;             /* its device was removed, and may have come back without it */
	bool used;             /* an agent was registered: the layout stands */
	struct message *queue; /* what can be read, in order */
	struct message **queue_end;
	size_t reassembled; /* bytes of messages that are being put together */
	uint32_t queued;    /* how many there are; beyond MOST_QUEUED they are dropped */
	void *owner;
	void (*readable)(struct handle *handle); /* a message was queued */
	void (*removed)(struct handle *handle);  /* its device is gone */
};

/* Opens a port's device. The owner fills in `shared` (zeroed), owner and functions. NULL
 * without memory. */
struct handle *handle_open(struct fabric *fabric, struct host_port *host);
void handle_close(struct handle *handle);

/* An ioctl; its argument is changed in place. 0 or a negative errno. */
int handle_ioctl(struct handle *handle, uint32_t code, uint8_t argument[ARGUMENT_BYTES]);

/* What was written: header and MAD, already found good by check_write(). 0 or a negative errno.
 */
int handle_write(struct handle *handle, const uint8_t *bytes, size_t length);

/*
 * Takes the first message off the queue. Its header is made as the handle's layout has it: what
 * the program reads is `header` (HEADER_BYTES or OLD_HEADER_BYTES of it) and the data. NULL:
 * none.
 */
struct message *handle_take(struct handle *handle, size_t *header_bytes);

/* A port's device is taken away, or there again. */
void host_remove(struct host_port *host);
void host_add(struct host_port *host);

#endif
