/* SPDX-License-Identifier: BSD-2-Clause */

#include "random_host.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static uint32_t state;

static uint32_t below(uint32_t limit)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return (state >> 8) % limit;
}

static bool chance(uint32_t percent)
{
	return below(100) < percent;
}

#define ONE_OF(array) (array)[below(sizeof(array) / sizeof(*(array)))]

static struct host_port draw_port(int number, uint64_t guid)
{
	static const struct {
		unsigned state, phys_state;
	} states[] = {{4, 5}, {4, 5}, {4, 5}, {4, 5}, {2, 5}, {3, 5},
		      {1, 2}, {1, 2}, {1, 3}, {1, 3}, {1, 1}};
	static const char *const needed[] = {"lid",    "lid_mask_count", "sm_lid",   "sm_sl",
					     "state",  "phys_state",     "cap_mask", "gids",
					     "gids/0", "pkeys",          "rate"};
	struct host_port port = {.number = number, .link_layer = "InfiniBand", .guid = guid};
	uint32_t i = below(sizeof(states) / sizeof(*states));

	port.state = states[i].state;
	port.phys_state = states[i].phys_state;
	if (chance(15))
		port.link_layer = "Ethernet";
	else if (chance(3))
		port.link_layer = NULL;
	port.sm_disabled = chance(6);
	if (chance(5))
		port.guid = 0;
	if (chance(4))
		port.missing = ONE_OF(needed);
	return port;
}

static struct host_device *add_device(struct host *host, const char *kind, int number)
{
	struct host_device *device = &host->devices[host->device_count++];

	*device = (struct host_device){.node_type = 1};
	snprintf(device->name, sizeof(device->name), "%s%d", kind, number);
	if (chance(5)) {
		static const char *const files[] = {"node_guid", "sys_image_guid", "fw_ver",
						    "hw_rev", "hca_type"};

		device->missing = ONE_OF(files);
	}
	return device;
}

static void add_port(struct host_device *device, struct host_port port)
{
	device->ports[device->port_count++] = port;
}

/* An adapter or switch with ports of its own. */
static void add_adapter(struct host *host, int number, uint64_t guid)
{
	static const int types[] = {2, 3, 4, 5, 6, 7};
	struct host_device *device = add_device(host, "mlx5_", number);
	int i, ports = chance(60) ? 1 : 2;

	if (chance(3))
		ports = chance(50) ? 4 : HOST_PORTS;
	if (chance(12))
		device->node_type = ONE_OF(types);
	if (device->node_type == 2) {
		add_port(device, draw_port(0, guid));
		device->ports[0].link_layer = "InfiniBand";
		return;
	}
	for (i = 1; i <= ports; i++)
		add_port(device, draw_port(i, guid + (uint64_t)i));
}

/* A planarized port: a device for GMPs, and a device for SMPs with a port for each plane. */
static void add_planes(struct host *host, int number, uint64_t guid)
{
	struct host_device *gsi = add_device(host, "mlx5_", number);
	struct host_device *smi = add_device(host, "smi", number);
	struct host_port port = draw_port(1, guid + 1);
	int i, planes = 1 + (int)below(4);

	port.link_layer = "InfiniBand";
	port.sm_disabled = true;
	add_port(gsi, port);
	for (i = 1; i <= planes; i++) {
		port = draw_port(i, gsi->ports[0].guid);
		port.link_layer = "InfiniBand";
		port.guid = gsi->ports[0].guid;
		port.sm_disabled = false;
		add_port(smi, port);
	}
}

void host_draw(struct host *host, uint32_t seed)
{
	struct host_device device;
	int number = 0, wanted;
	uint32_t i, other;

	state = seed * 2654435761U + 1;
	for (i = 0; i < 8; i++)
		below(2);
	memset(host, 0, sizeof(*host));
	wanted = 1 + (int)below(6);
	number = chance(30) ? 8 : 0; /* some names have two digits */
	while (wanted-- > 0 && host->device_count + 2 <= HOST_DEVICES) {
		if (chance(12))
			add_planes(host, number, 0x0002c90300000000 + (uint64_t)number * 256);
		else
			add_adapter(host, number, 0x0002c90300000000 + (uint64_t)number * 256);
		number++;
	}
	for (i = (uint32_t)host->device_count; i > 1; i--) {
		other = below(i);
		device = host->devices[i - 1];
		host->devices[i - 1] = host->devices[other];
		host->devices[other] = device;
	}
}

/* --- files ---------------------------------------------------------------------- */

struct files {
	host_write_fn *write;
	void *user;
	char folder[96];
	const char *missing;
};

/* Whether a file is the missing one, or in the missing folder. */
static bool is_missing(const struct files *files, const char *name)
{
	size_t length = files->missing ? strlen(files->missing) : 0;

	return length && !strncmp(name, files->missing, length) &&
	       (!name[length] || name[length] == '/');
}

__attribute__((format(printf, 3, 4))) static void put(const struct files *files,
						      const char *name, const char *format, ...)
{
	char path[128], text[64];
	va_list args;

	if (is_missing(files, name))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(path, sizeof(path), "%s/%s", files->folder, name);
	files->write(path, text, files->user);
}

static void write_port(const struct host_device *device, const struct host_port *port,
		       struct files *files)
{
	uint64_t guid = port->guid;

	snprintf(files->folder, sizeof(files->folder), "/sys/class/infiniband/%.20s/ports/%d",
		 device->name, port->number);
	files->missing = port->missing;
	put(files, "lid", "0x2b\n");
	put(files, "lid_mask_count", "0\n");
	put(files, "sm_lid", "0x1\n");
	put(files, "sm_sl", "0\n");
	put(files, "state", "%u: X\n", port->state);
	put(files, "phys_state", "%u: X\n", port->phys_state);
	put(files, "rate", "100 Gb/sec (4X EDR)\n");
	put(files, "cap_mask", port->sm_disabled ? "0x2651ec48\n" : "0x2651e848\n");
	if (port->link_layer)
		put(files, "link_layer", "%s\n", port->link_layer);
	put(files, "gids/0", "fe80:0000:0000:0000:%04x:%04x:%04x:%04x\n",
	    (unsigned)(guid >> 48), (unsigned)(guid >> 32) & 0xffff,
	    (unsigned)(guid >> 16) & 0xffff, (unsigned)guid & 0xffff);
	put(files, "pkeys/0", "0xffff\n");
	put(files, "pkeys/1", "0x7fff\n");
}

static void write_umad(const struct host_device *device, const struct host_port *port,
		       int number, struct files *files)
{
	static const char *const kinds[] = {"umad", "issm"};

	files->missing = NULL;
	for (int i = 0; i < 2; i++) {
		snprintf(files->folder, sizeof(files->folder), "/sys/class/infiniband_mad/%s%d",
			 kinds[i], number);
		put(files, "ibdev", "%.20s\n", device->name);
		put(files, "port", "%d\n", port->number);
	}
}

void host_write(const struct host *host, host_write_fn *write, void *user)
{
	struct files files = {.write = write, .user = user};
	int i, j, number = 0;

	write("/sys/class/infiniband_mad/abi_version", "5\n", user);
	for (i = 0; i < host->device_count; i++) {
		const struct host_device *device = &host->devices[i];

		snprintf(files.folder, sizeof(files.folder), "/sys/class/infiniband/%.20s",
			 device->name);
		files.missing = device->missing;
		put(&files, "node_type", "%d: X\n", device->node_type);
		put(&files, "fw_ver", "20.31.1014\n");
		put(&files, "hw_rev", "0\n");
		put(&files, "hca_type", "MT4123\n");
		put(&files, "node_guid", "0002:c903:00a0:0b10\n");
		put(&files, "sys_image_guid", "0002:c903:00a0:0b13\n");
		for (j = 0; j < device->port_count; j++) {
			write_port(device, &device->ports[j], &files);
			write_umad(device, &device->ports[j], number++, &files);
		}
	}
}
