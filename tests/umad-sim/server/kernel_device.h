/* SPDX-License-Identifier: BSD-2-Clause */

/* An HCA of a real kernel: shared by kernel_device.c and kernel_messages.c. */
#ifndef UMAD_SIM_KERNEL_DEVICE_H
#define UMAD_SIM_KERNEL_DEVICE_H

#include "hca_protocol.h"
#include "server.h"

#define MOST_PORTS 16 /* of a device */

struct known_port { /* a port's state as last reported to the kernel */
	uint64_t gid_prefix;
	uint64_t guids[GUID_COUNT];
	uint16_t pkeys[PKEY_COUNT];
	uint16_t lid, sm_lid;
	uint8_t lmc, sm_sl;
	bool active;
};

struct kernel_device {
	struct kernel_device *next;
	struct server *server;
	struct connection *connection; /* NULL: the device is removed */
	uint32_t node;
	unsigned int number;
	bool created;
	bool performing; /* a command is being performed: events follow its reply */
	int error;       /* why the device could not be created */
	struct known_port known[MOST_PORTS + 1];
};

/* --- kernel_messages.c ------------------------------------------------------------ */

/* Writes a message. Returns 0 or a negative errno. */
int kernel_tell(const struct kernel_device *device, enum sim_hca_kind kind, uint32_t port,
		uint32_t id, const void *payload, size_t length);

/* Stores a port's state as known to the kernel. */
void kernel_know(const struct fabric *fabric, uint32_t port, struct known_port *known);

/* host->to_kernel */
bool kernel_receives(struct host_port *host, const struct packet *packet);

#endif
