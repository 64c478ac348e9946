/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Reads attributes and directories of sysfs, checking size and content. Calls return 0 or a
 * negative errno, -EIO for invalid content.
 */
#ifndef LIBIBUMAD_SYSFS_H
#define LIBIBUMAD_SYSFS_H

#include <infiniband/umad.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Buffer size for the longest path. */
#define SYSFS_PATH_MAX 256

/* Formats a path. -ENAMETOOLONG. */
__attribute__((format(printf, 2, 3))) int sysfs_path(char path[SYSFS_PATH_MAX],
						     const char *format, ...);

/*
 * Whether an error is a shortage (descriptors, memory, a signal) that is not about the device.
 * Public calls then fail with it.
 */
bool sysfs_shortage(int err);

/* Whether an attribute is missing or has no usable value; not so for shortages and EACCES. */
bool sysfs_absent(int err);

/* Reads the first line, truncated to size. Returns its whole length, as strlcpy() does. */
int sysfs_read_text(const char *dir, const char *name, char *text, size_t size);

/* Reads a leading number in C notation: "4: ACTIVE" is 4. */
int sysfs_read_uint(const char *dir, const char *name, unsigned *value);

/* Reads four groups of four hex digits. */
int sysfs_read_guid(const char *dir, const char *name, __be64 *guid);

/* Reads eight groups of four hex digits. */
int sysfs_read_gid(const char *dir, const char *name, union umad_gid *gid);

/* --- a device's directory --------------------------------------------------------- */

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

/* Whether it is a path component that fits the structures. */
bool node_name_valid(const char *ca_name);

/* The name must be valid. */
void node_path(char path[SYSFS_PATH_MAX], const char *ca_name);
void node_port_path(char path[SYSFS_PATH_MAX], const char *ca_name, int portnum);

/* Returns the NodeType, -ENODEV if no InfiniBand device has the name, or an error of sysfs. */
int node_type(const char *ca_name);

/* The same for any RDMA device; above 3: not InfiniBand. */
int node_any_type(const char *ca_name);

/* Returns 1 if no device has the name, 0 if one has, or a negative errno. */
int node_gone(const char *ca_name);

/* Port numbers have 8 bits (IBA 14.2.5.3). */
#define NODE_PORTS_MAX 256

/*
 * Marks a device's ports. Returns the highest number, -EIO if one is too high, or an error of
 * sysfs.
 */
int node_ports(const char *ca_name, bool ports[NODE_PORTS_MAX]);

#endif
