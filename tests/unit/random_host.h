/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A random host: devices in random order with ports of random states, link layers and GUIDs,
 * some with missing files; planarized ports, and virtual functions without GUIDs. A seed draws
 * the same host on every machine.
 */
#ifndef TESTS_UNIT_RANDOM_HOST_H
#define TESTS_UNIT_RANDOM_HOST_H

#include <stdbool.h>
#include <stdint.h>

#define HOST_DEVICES 10
#define HOST_PORTS   12

struct host_port {
	int number;
	unsigned state, phys_state;
	const char *link_layer; /* NULL: no such file */
	uint64_t guid;
	bool sm_disabled;
	const char *missing; /* a file or folder; NULL: none */
};

struct host_device {
	char name[20];
	int node_type;
	const char *missing; /* a file; NULL: none */
	int port_count;
	struct host_port ports[HOST_PORTS];
};

struct host {
	int device_count;
	struct host_device devices[HOST_DEVICES]; /* in the order of the directory */
};

void host_draw(struct host *host, uint32_t seed);

/*
 * Calls write() for each file below /sys/class; devices, and the umad and issm devices, in the
 * order of the structure. The number of a umad device is that of its port on the host, from 0
 * on.
 */
typedef void host_write_fn(const char *path, const char *text, void *user);
void host_write(const struct host *host, host_write_fn *write, void *user);

#endif
