/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shows umad.h: the devices of a machine, and what they tell of their ports.
 *
 * Prints the InfiniBand devices of this machine and their ports.
 */

#include "program.h"

#include <infiniband/umad.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const states[] = {"?", "Down", "Initializing", "Armed", "Active"};

static void print_port(const umad_port_t *port)
{
	const char *state = port->state < 5 ? states[port->state] : "?";

	printf("  port %d: %s, %u Gb/s, %s, LID %u, SM LID %u, GUID 0x%016" PRIx64 "\n",
	       port->portnum, state, port->rate, port->link_layer, port->base_lid, port->sm_lid,
	       be64toh(port->port_guid));
}

/* The ports one by one: umad_get_ca() cannot hold more than 9 ports. */
static int print_ports(const char *name)
{
	__be64 guids[256];
	int failed = 0, count = umad_get_ca_portguids(name, guids, 256);
	umad_port_t port;

	if (count < 0) {
		perror(name);
		return 1;
	}
	printf("%s:\n", name);
	for (int i = 0; i < count; i++) {
		if (!guids[i])
			continue;
		if (umad_get_port(name, i, &port) < 0) {
			fprintf(stderr, "%s port %d: %s\n", name, i, strerror(errno));
			failed = 1;
			continue;
		}
		print_port(&port);
		umad_release_port(&port);
	}
	return failed;
}

static int print_device(const char *name)
{
	umad_ca_t ca;

	if (umad_get_ca(name, &ca) < 0) {
		if (errno == EOVERFLOW)
			return print_ports(name);
		perror(name);
		return 1;
	}
	printf("%s: %s, firmware %s, GUID 0x%016" PRIx64 "\n", ca.ca_name, ca.ca_type,
	       ca.fw_ver, be64toh(ca.node_guid));
	for (int i = 0; i < UMAD_CA_MAX_PORTS; i++)
		if (ca.ports[i])
			print_port(ca.ports[i]);
	umad_release_ca(&ca);
	return 0;
}

int main(void)
{
	struct umad_device_node *list = umad_get_ca_device_list(), *device;
	int failed = 0;

	if (!list) {
		fprintf(stderr, "this machine has no InfiniBand device\n");
		return 1;
	}
	for (device = list; device; device = device->next)
		failed |= print_device(device->ca_name);
	umad_free_ca_device_list(list);
	return finish(failed);
}
