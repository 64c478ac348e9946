/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * HCAs of a real kernel: the module sim_hca (tests/kernel/hca) makes an InfiniBand device of
 * each open file, and the packets of its ports come from and go to the fabric. Programs then
 * use the kernel's own umad devices.
 */
#ifndef UMAD_SIM_KERNEL_DEVICE_H
#define UMAD_SIM_KERNEL_DEVICE_H

#include "server.h"

/*
 * Makes devices mlx5_0, mlx5_1 ... of these nodes ("NODE" or "NODE,NODE"; NULL: the first CA).
 * Returns when the kernel has registered all of them. 0 or a negative errno; `why` (of 256
 * bytes) then has a reason.
 */
int kernel_devices_start(struct server *server, const char *nodes, char *why);
void kernel_devices_free(struct server *server);

/* Handles all messages of a device's connection; false: the kernel closed the device. */
bool kernel_device_read(struct connection *connection);

/* A port changed: tells the kernel by the events of a driver. */
void kernel_devices_port_changed(struct server *server, uint32_t port);

/* A node's device is removed, or comes back. */
void kernel_devices_node_changed(struct server *server, uint32_t node, bool present);

#endif
