/* SPDX-License-Identifier: BSD-2-Clause */

/* A device's folder in sysfs: its name checked, its node type, which ports it has. */
#ifndef LIBIBUMAD_NODE_H
#define LIBIBUMAD_NODE_H

#include "sysfs.h"

#include <stdbool.h>

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

/* A name that can be a device's: one path component that fits the structures. */
bool node_name_valid(const char *ca_name);

/* The paths of a device and of a port, for a name that is valid. */
void node_path(char path[SYSFS_PATH_MAX], const char *ca_name);
void node_port_path(char path[SYSFS_PATH_MAX], const char *ca_name, int portnum);

/*
 * The NodeType; -ENODEV if no InfiniBand device has that name, or the error of reading sysfs.
 */
int node_type(const char *ca_name);

/* 1 if no device of any kind has that name, 0 if one has it, or a negative errno. */
int node_gone(const char *ca_name);

/*
 * Marks the ports that the device has. Returns the highest number; -EIO when one does
 * not fit, or what reading the folder gave.
 */
int node_ports(const char *ca_name, bool ports[UMAD_CA_MAX_PORTS]);

#endif
