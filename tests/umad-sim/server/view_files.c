/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The files of a view. A device is sys/devices/umad-sim/<address>/ with its infiniband and
 * infiniband_mad folders; the folders of the classes link to it, as in the kernel's sysfs. A
 * file is replaced as a whole: a reader gets either the old content or the new.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults.h"
#include "link.h"
#include "mad_header.h"
#include "node.h"
#include "pma_table.h"
#include "protocol.h"
#include "view.h"
#include "wire.h"

#define UMAD_MAJOR 231
#define ISSM_MINOR 64

/* Keeps the first error. */
static void set_error(struct view *view, int error)
{
	if (!view->error)
		view->error = error;
}

/* Formats the path of a file of the view. False if it is too long. */
static bool __attribute__((format(printf, 3, 4)))
path_in(struct view *view, char path[1024], const char *format, ...)
{
	va_list arguments;
	int start = snprintf(path, 1024, "%s/", view->folder);
	int length;

	va_start(arguments, format);
	length = vsnprintf(path + start, (size_t)(1024 - start), format, arguments);
	va_end(arguments);
	if (start + length < 1020)
		return true;
	set_error(view, -ENAMETOOLONG);
	return false;
}

static int replace(const char *path, const char *text, size_t length, mode_t mode)
{
	char temporary[1032];
	int error = 0;
	int fd;

	snprintf(temporary, sizeof(temporary), "%s.new", path);
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	errno = ENOSPC; /* a short write does not set errno */
	if (write(fd, text, length) != (ssize_t)length || fchmod(fd, mode))
		error = -errno;
	if (close(fd) && !error)
		error = -errno;
	if (!error && rename(temporary, path))
		error = -errno;
	if (error)
		unlink(temporary);
	return error;
}

/*
 * A file that cannot be written does not keep its old content; view_repair() writes it later.
 */
static void write_file(struct view *view, const char *path, const char *text, size_t length,
		       mode_t mode)
{
	int error;

	if (view->repairing && access(path, F_OK) == 0)
		return;
	error = replace(path, text, length, mode);
	if (error) {
		unlink(path);
		/* the old file's space is free now */
		error = replace(path, text, length, mode);
	}
	set_error(view, error);
}

/* Writes an empty file for an attribute that the kernel fails to read. */
static void empty_attribute(struct view *view, const char *folder, const char *name)
{
	char path[1024];

	if (path_in(view, path, "%s/%s", folder, name))
		write_file(view, path, "", 0, SYSFS_FILE | 0444);
}

/* Writes an attribute in a folder of the view, with a line break as in the kernel. */
static void __attribute__((format(printf, 4, 5)))
attribute(struct view *view, const char *folder, const char *name, const char *format, ...)
{
	char path[1024];
	char text[256];
	va_list arguments;
	int length;

	if (!path_in(view, path, "%s/%s", folder, name))
		return;
	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text) - 1, format, arguments);
	va_end(arguments);
	if (length > (int)sizeof(text) - 2)
		length = (int)sizeof(text) - 2;
	text[length++] = '\n';
	write_file(view, path, text, (size_t)length, SYSFS_FILE | 0444);
}

static void __attribute__((format(printf, 2, 3)))
make_folder(struct view *view, const char *format, ...)
{
	char path[1024];
	char name[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(name, sizeof(name), format, arguments);
	va_end(arguments);
	if (!path_in(view, path, "%s", name))
		return;
	for (char *slash = path + strlen(view->folder) + 1; *slash; slash++) {
		if (*slash != '/')
			continue;
		*slash = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			set_error(view, -errno);
		*slash = '/';
	}
	if (mkdir(path, 0755) && errno != EEXIST)
		set_error(view, -errno);
}

static void remove_file(struct view *view, const char *path)
{
	if (unlink(path) && errno != ENOENT)
		set_error(view, -errno);
}

static void link_to(struct view *view, const char *name, const char *target)
{
	char path[1024];
	struct stat status;

	if (!path_in(view, path, "%s", name) ||
	    (view->repairing && target && lstat(path, &status) == 0))
		return;
	remove_file(view, path);
	if (target && symlink(target, path))
		set_error(view, -errno);
}

/* Writes what the kernel adds to every device, into a device's folder in the class. Nothing
 * here has runtime power management. */
static void write_common(struct view *view, const char *pci, const char *folder,
			 const char *class)
{
	static const char *const power[][2] = {
		{"async", "disabled"},           {"control", "auto"},
		{"runtime_active_kids", "0"},    {"runtime_active_time", "0"},
		{"runtime_enabled", "disabled"}, {"runtime_status", "unsupported"},
		{"runtime_suspended_time", "0"}, {"runtime_usage", "0"},
	};
	char name[256], target[64];

	snprintf(name, sizeof(name), "%s/power", folder);
	make_folder(view, "%s", name);
	for (unsigned int i = 0; i < sizeof(power) / sizeof(power[0]); i++)
		attribute(view, name, power[i][0], "%s", power[i][1]);
	empty_attribute(view, name, "autosuspend_delay_ms");
	snprintf(name, sizeof(name), "%s/device", folder);
	snprintf(target, sizeof(target), "../../../%.20s", strrchr(pci, '/') + 1);
	link_to(view, name, target);
	snprintf(name, sizeof(name), "%s/subsystem", folder);
	snprintf(target, sizeof(target), "../../../../../class/%s", class);
	link_to(view, name, target);
}

static void device_folder(unsigned int device, char folder[64])
{
	snprintf(folder, 64, "sys/devices/umad-sim/0000:%02x:00.0", device + 1);
}

static void port_folder(const struct fabric *fabric, const struct view_port *port,
			char folder[128])
{
	char device[64];

	device_folder(port->device, device);
	snprintf(folder, 128, "%s/infiniband/mlx5_%u/ports/%u", device, port->device,
		 cable(fabric, port->port)->number);
}

static const char *state_name(uint8_t state)
{
	static const char *const names[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE"};

	return names[state];
}

static const char *phys_state_name(uint8_t state)
{
	return state == PHYS_LINK_UP    ? "LinkUp"
	       : state == PHYS_DISABLED ? "Disabled"
					: "Polling";
}

static void write_pkeys(const struct fabric *fabric, struct view *view, struct view_port *port,
			const char *folder, bool all)
{
	char name[32];

	for (unsigned int i = 0; i < PKEY_COUNT; i++) {
		uint16_t pkey = pkey_at(fabric, port->port, i);

		if (!all && pkey == port->pkeys[i])
			continue;
		snprintf(name, sizeof(name), "pkeys/%u", i);
		attribute(view, folder, name, "0x%04x", pkey);
		port->pkeys[i] = pkey;
	}
}

static void write_gids(const struct fabric *fabric, struct view *view, struct view_port *port,
		       const char *folder, bool all)
{
	struct port_settings defaults;
	const struct port_settings *settings = settings_read(fabric, port->port, &defaults);
	bool of_switch = hardware(fabric, cable(fabric, port->port)->node)->type == NODE_SWITCH;
	char name[32];

	for (unsigned int i = 0; i < (of_switch ? 1 : GUID_COUNT); i++) {
		uint8_t gid[GID_BYTES];

		port_gid(fabric, port->port, gid);
		if (i)
			put64(gid + 8, settings->guids[i]);
		if (!all && memcmp(gid, port->gids[i], GID_BYTES) == 0)
			continue;
		memcpy(port->gids[i], gid, GID_BYTES);
		snprintf(name, sizeof(name), "gids/%u", i);
		attribute(view, folder, name, "%04x:%04x:%04x:%04x:%04x:%04x:%04x:%04x",
			  get16(gid), get16(gid + 2), get16(gid + 4), get16(gid + 6),
			  get16(gid + 8), get16(gid + 10), get16(gid + 12), get16(gid + 14));
		if (!all)
			continue;
		snprintf(name, sizeof(name), "gid_attrs/types/%u", i);
		attribute(view, folder, name, "IB/RoCE v1");
		snprintf(name, sizeof(name), "gid_attrs/ndevs/%u", i);
		empty_attribute(view, folder, name);
	}
}

static void write_rate(const struct fabric *fabric, struct view *view, const char *folder,
		       uint32_t port)
{
	const struct graph_port *end = cable(fabric, port);
	bool up = link_is_up(fabric, port);
	enum link_speed speed = up ? active_speed(fabric, port) : SDR;
	unsigned int width = up ? fabric->ports[port].width : end->width;
	unsigned int lanes = width ? width : 4; /* no cable, no width: a switch's port 0 */
	uint64_t tenths = link_mbits(lanes, speed) / 100;

	attribute(view, folder, "rate", "%llu%s Gb/sec (%uX %s)",
		  (unsigned long long)tenths / 10, tenths % 10 ? ".5" : "", lanes,
		  link_speed_name(speed));
}

void view_write_port(const struct fabric *fabric, struct view *view, struct view_port *port,
		     bool all)
{
	const struct port *state = &fabric->ports[port->port];
	char folder[128];

	port_folder(fabric, port, folder);
	if (all) {
		make_folder(view, "%s/pkeys", folder);
		make_folder(view, "%s/gids", folder);
		make_folder(view, "%s/gid_attrs/types", folder);
		make_folder(view, "%s/gid_attrs/ndevs", folder);
		make_folder(view, "%s/counters", folder);
	}
	attribute(view, folder, "lid", "0x%x", state->lid);
	attribute(view, folder, "lid_mask_count", "%u", state->lmc);
	attribute(view, folder, "sm_lid", "0x%x", state->sm_lid);
	attribute(view, folder, "sm_sl", "%u", state->sm_sl);
	attribute(view, folder, "cap_mask", "0x%08x", state->capability_mask);
	attribute(view, folder, "state", "%u: %s", state->state, state_name(state->state));
	attribute(view, folder, "phys_state", "%u: %s", state->phys_state,
		  phys_state_name(state->phys_state));
	attribute(view, folder, "link_layer", "InfiniBand");
	write_rate(fabric, view, folder, port->port);
	write_pkeys(fabric, view, port, folder, all);
	write_gids(fabric, view, port, folder, all);
}

static void write_guid(struct view *view, const char *folder, const char *name, uint64_t guid)
{
	attribute(view, folder, name, "%04x:%04x:%04x:%04x",
		  (unsigned int)(guid >> 48) & 0xffff, (unsigned int)(guid >> 32) & 0xffff,
		  (unsigned int)(guid >> 16) & 0xffff, (unsigned int)guid & 0xffff);
}

static void write_device(const struct fabric *fabric, struct view *view, unsigned int device,
			 const char *pci)
{
	static const char *const types[] = {"", "CA", "switch", "router"};
	const struct graph_node *node = hardware(fabric, view->nodes[device]);
	char folder[128];

	snprintf(folder, sizeof(folder), "%s/infiniband/mlx5_%u", pci, device);
	make_folder(view, "%s/ports", folder);
	attribute(view, pci, "vendor", "0x%04x", node->vendor_id & 0xffff);
	attribute(view, pci, "device", "0x%04x", node->device_id);
	attribute(view, folder, "node_type", "%u: %s", node->type, types[node->type]);
	attribute(view, folder, "fw_ver", "20.41.1000");
	attribute(view, folder, "hw_rev", "0");
	attribute(view, folder, "hca_type", "MT%u", node->device_id);
	attribute(view, folder, "board_id", "SIM0000000001");
	attribute(view, folder, "node_desc", "%s", node->name);
	attribute(view, folder, "uevent", "NAME=mlx5_%u", device);
	write_common(view, pci, folder, "infiniband");
	write_guid(view, folder, "node_guid", node->guid);
	write_guid(view, folder, "sys_image_guid", node->system_guid);
}

/* A character device's entry in its class: its port and its number. */
static void write_entry(const struct fabric *fabric, struct view *view, const char *pci,
			const char *kind, unsigned int number, unsigned int minor)
{
	const struct view_port *port = &view->ports[number];
	char folder[128];

	snprintf(folder, sizeof(folder), "%s/infiniband_mad/%s%u", pci, kind, number);
	make_folder(view, "%s", folder);
	attribute(view, folder, "ibdev", "mlx5_%u", port->device);
	attribute(view, folder, "port", "%u", cable(fabric, port->port)->number);
	attribute(view, folder, "dev", "%u:%u", UMAD_MAJOR, minor);
	attribute(view, folder, "uevent", "MAJOR=%u\nMINOR=%u\nDEVNAME=infiniband/%s%u",
		  UMAD_MAJOR, minor, kind, number);
	write_common(view, pci, folder, "infiniband_mad");
}

void view_write_device(const struct fabric *fabric, struct view *view, unsigned int device)
{
	char pci[64];

	device_folder(device, pci);
	write_device(fabric, view, device, pci);
	for (unsigned int i = 0; i < view->port_count; i++) {
		if (view->ports[i].device != device)
			continue;
		write_entry(fabric, view, pci, "umad", i, i);
		write_entry(fabric, view, pci, "issm", i, ISSM_MINOR + i);
		view_write_port(fabric, view, &view->ports[i], true);
	}
}

void view_write_classes(struct view *view)
{
	make_folder(view, "sys/class/infiniband");
	make_folder(view, "sys/class/infiniband_mad");
	make_folder(view, "dev/infiniband");
	attribute(view, "sys/class/infiniband_mad", "abi_version", "5");
}

/* The entry's link in its class, and its file in /dev. */
static void show_entry(struct view *view, const char *pci, const char *kind,
		       unsigned int number, bool present)
{
	char name[64];
	char target[128];
	char path[1024];

	snprintf(name, sizeof(name), "sys/class/infiniband_mad/%s%u", kind, number);
	snprintf(target, sizeof(target), "../../../%s/infiniband_mad/%s%u", pci, kind, number);
	link_to(view, name, present ? target : NULL);
	if (!path_in(view, path, "dev/infiniband/%s%u", kind, number))
		return;
	if (present)
		write_file(view, path, "", 0, 0600);
	else
		remove_file(view, path);
}

void view_show_device(struct view *view, unsigned int device, bool present)
{
	char pci[64];
	char name[64];
	char target[128];

	device_folder(device, pci);
	snprintf(name, sizeof(name), "sys/class/infiniband/mlx5_%u", device);
	snprintf(target, sizeof(target), "../../../%s/infiniband/mlx5_%u", pci, device);
	link_to(view, name, present ? target : NULL);
	for (unsigned int i = 0; i < view->port_count; i++) {
		if (view->ports[i].device != device)
			continue;
		show_entry(view, pci, "umad", i, present);
		show_entry(view, pci, "issm", i, present);
	}
}

/* Reads an attribute of a port from its node's agent. */
static void read_counters(struct fabric *fabric, uint32_t port, uint16_t attribute,
			  uint8_t mad[MAD_BYTES])
{
	memset(mad, 0, MAD_BYTES);
	mad[0] = 1;
	mad[1] = IB_PERFORMANCE_CLASS;
	mad[2] = 1;
	mad[3] = METHOD_GET;
	put16(mad + 16, attribute);
	pma_set_field(mad, IB_PC_PORT_SELECT_F, cable(fabric, port)->number);
	node_respond(fabric, port, mad);
}

/* The kernel reads these fields from PortCountersExtended if the agent has it, else from
 * PortCounters. Error counters exist only in the latter, hence their few bits. */
static const struct {
	const char *name;
	enum MAD_FIELDS field, extended; /* IB_NO_FIELD: none */
} counter_files[] = {
	{"symbol_error", IB_PC_ERR_SYM_F, IB_NO_FIELD},
	{"link_error_recovery", IB_PC_LINK_RECOVERS_F, IB_NO_FIELD},
	{"link_downed", IB_PC_LINK_DOWNED_F, IB_NO_FIELD},
	{"port_rcv_errors", IB_PC_ERR_RCV_F, IB_NO_FIELD},
	{"port_rcv_remote_physical_errors", IB_PC_ERR_PHYSRCV_F, IB_NO_FIELD},
	{"port_rcv_switch_relay_errors", IB_PC_ERR_SWITCH_REL_F, IB_NO_FIELD},
	{"port_xmit_discards", IB_PC_XMT_DISCARDS_F, IB_NO_FIELD},
	{"port_xmit_constraint_errors", IB_PC_ERR_XMTCONSTR_F, IB_NO_FIELD},
	{"port_rcv_constraint_errors", IB_PC_ERR_RCVCONSTR_F, IB_NO_FIELD},
	{"local_link_integrity_errors", IB_PC_ERR_LOCALINTEG_F, IB_NO_FIELD},
	{"excessive_buffer_overrun_errors", IB_PC_ERR_EXCESS_OVR_F, IB_NO_FIELD},
	{"VL15_dropped", IB_PC_VL15_DROPPED_F, IB_NO_FIELD},
	{"port_xmit_wait", IB_PC_XMT_WAIT_F, IB_NO_FIELD},
	{"port_xmit_data", IB_PC_XMT_BYTES_F, IB_PC_EXT_XMT_BYTES_F},
	{"port_rcv_data", IB_PC_RCV_BYTES_F, IB_PC_EXT_RCV_BYTES_F},
	{"port_xmit_packets", IB_PC_XMT_PKTS_F, IB_PC_EXT_XMT_PKTS_F},
	{"port_rcv_packets", IB_PC_RCV_PKTS_F, IB_PC_EXT_RCV_PKTS_F},
	{"unicast_xmit_packets", IB_NO_FIELD, IB_PC_EXT_XMT_UPKTS_F},
	{"unicast_rcv_packets", IB_NO_FIELD, IB_PC_EXT_RCV_UPKTS_F},
	{"multicast_xmit_packets", IB_NO_FIELD, IB_PC_EXT_XMT_MPKTS_F},
	{"multicast_rcv_packets", IB_NO_FIELD, IB_PC_EXT_RCV_MPKTS_F},
};

static_assert(sizeof(counter_files) / sizeof(counter_files[0]) == COUNTER_FILES,
	      "a view remembers each counter");

static void write_port_counters(struct fabric *fabric, struct view *view,
				struct view_port *port, bool all)
{
	bool has_extended = faults_counters(fabric, cable(fabric, port->port)->node) != 32;
	uint8_t mad[MAD_BYTES], extended_mad[MAD_BYTES];
	char folder[128];

	read_counters(fabric, port->port, IB_GSI_PORT_COUNTERS, mad);
	if (has_extended)
		read_counters(fabric, port->port, IB_GSI_PORT_COUNTERS_EXT, extended_mad);
	port_folder(fabric, port, folder);
	strcat(folder, "/counters");
	for (unsigned int i = 0; i < COUNTER_FILES; i++) {
		bool extended = has_extended && counter_files[i].extended != IB_NO_FIELD;
		uint64_t value;

		if (!extended && counter_files[i].field == IB_NO_FIELD)
			continue;
		value = extended ? pma_field(extended_mad, counter_files[i].extended)
				 : pma_field(mad, counter_files[i].field);
		if (!all && !view->repairing && value == port->counters[i])
			continue;
		if (!view->repairing) /* existing files are not rewritten */
			port->counters[i] = value;
		attribute(view, folder, counter_files[i].name, "%llu",
			  (unsigned long long)value);
	}
}

void view_write_counters(struct fabric *fabric, struct view *view, bool all)
{
	for (unsigned int i = 0; i < view->port_count; i++)
		write_port_counters(fabric, view, &view->ports[i], all);
}
