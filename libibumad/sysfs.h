/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Attributes and folders in sysfs, with checks of their sizes and contents. All calls return 0
 * or a negative errno: -EIO for an invalid content.
 */
#ifndef LIBIBUMAD_SYSFS_H
#define LIBIBUMAD_SYSFS_H

#include <infiniband/umad.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The size of a buffer for the longest path. */
#define SYSFS_PATH_MAX 256

/* A path to a directory or attribute; -ENAMETOOLONG. */
__attribute__((format(printf, 2, 3))) int sysfs_path(char path[SYSFS_PATH_MAX],
						     const char *format, ...);

/*
 * Whether an error is a shortage of this process or machine (no descriptor, no memory, a
 * signal). It does not concern the device. A public call then fails with this error.
 */
bool sysfs_shortage(int err);

/*
 * Whether the attribute is missing, or has no usable value. A shortage and a lack of rights are
 * other errors.
 */
bool sysfs_absent(int err);

/* Reads the first line, cut to size - 1 bytes. Returns its whole length, as strlcpy() does. */
int sysfs_read_text(const char *dir, const char *name, char *text, size_t size);

/* Reads the number at the begin of the attribute, in the notation of C: "4: ACTIVE" is 4. */
int sysfs_read_uint(const char *dir, const char *name, unsigned *value);

/* Reads four groups of four hex digits. */
int sysfs_read_guid(const char *dir, const char *name, __be64 *guid);

/* Reads eight groups of four hex digits. */
int sysfs_read_gid(const char *dir, const char *name, union umad_gid *gid);

/* --- the folder of a device ------------------------------------------------------- */

/* NodeInfo:NodeType (IBA 14.2.5.3). */
enum {
	NODE_CA = 1,
	NODE_SWITCH = 2,
	NODE_ROUTER = 3
};

/* PortInfo:PortState, PortPhysicalState, CapabilityMask (IBA 14.2.5.6). */
enum {
	PORT_DOWN = 1,
	PORT_ACTIVE = 4
};
enum {
	PORT_PHYS_DISABLED = 3,
	PORT_PHYS_LINK_UP = 5
};
enum {
	PORT_IS_SM_DISABLED = 1 << 10
};

/* Whether a device can have the name: one path component that fits the structures. */
bool node_name_valid(const char *ca_name);

/* The paths of a device and of a port. The name is valid. */
void node_path(char path[SYSFS_PATH_MAX], const char *ca_name);
void node_port_path(char path[SYSFS_PATH_MAX], const char *ca_name, int portnum);

/* The NodeType; -ENODEV if no InfiniBand device has the name, or the error of reading sysfs. */
int node_type(const char *ca_name);

/* The same for any device in /sys/class/infiniband: a type above 3 is no InfiniBand device. */
int node_any_type(const char *ca_name);

/* 1 if no device of any type has the name, 0 if a device has it, or a negative errno. */
int node_gone(const char *ca_name);

/* The numbers of ports are 8 bits (IBA 14.2.5.3). */
#define NODE_PORTS_MAX 256

/*
 * Marks the ports of the device. Returns the highest number; -EIO if a number does not fit, or
 * the error of reading the folder.
 */
int node_ports(const char *ca_name, bool ports[NODE_PORTS_MAX]);

#endif
