/* SPDX-License-Identifier: BSD-2-Clause */

#include "devices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The ranks of ports, from the lowest to the highest. */
enum rank {
	UNUSABLE,
	NOT_DISABLED,
	LINK_UP,
	ACTIVE
};

/* The next two functions return 1 for yes, 0 for no, or a negative errno. */

static int is_infiniband(const char *port_path)
{
	char link_layer[UMAD_CA_NAME_LEN];
	int length;

	length =
		sysfs_read_text(port_path, SYS_PORT_LINK_LAYER, link_layer, sizeof(link_layer));
	if (sysfs_shortage(length))
		return length;
	if (length < 0)
		return 1; /* old kernels and simulators have no link layer */
	return !strcmp(link_layer, "InfiniBand") || !strcmp(link_layer, "IB");
}

static int has_smi(const char *port_path)
{
	unsigned capmask;
	int err = sysfs_read_uint(port_path, SYS_PORT_CAPMASK, &capmask);

	if (err)
		return sysfs_absent(err) ? 0 : err;
	return !(capmask & PORT_IS_SM_DISABLED);
}

/* A port's rank, or a negative errno. Reads no more attributes than the rank needs. */
static int rank_port(const char *ca_name, int portnum, bool smi_only)
{
	char path[SYSFS_PATH_MAX];
	unsigned state, phys_state;
	int answer;

	node_port_path(path, ca_name, portnum);
	answer = sysfs_read_uint(path, SYS_PORT_STATE, &state);
	if (answer)
		return sysfs_absent(answer) ? UNUSABLE : answer;
	answer = smi_only ? has_smi(path) : 1;
	if (answer <= 0)
		return answer ? answer : UNUSABLE;
	if (state == PORT_ACTIVE) {
		answer = is_infiniband(path);
		if (answer)
			return answer < 0 ? answer : ACTIVE;
	}
	answer = sysfs_read_uint(path, SYS_PORT_PHY_STATE, &phys_state);
	if (answer)
		return sysfs_absent(answer) ? UNUSABLE : answer;
	if (phys_state == PORT_PHYS_DISABLED)
		return UNUSABLE;
	/* an Active port without InfiniBand: is_infiniband() was called above */
	if (phys_state == PORT_PHYS_LINK_UP && state != PORT_ACTIVE) {
		answer = is_infiniband(path);
		if (answer)
			return answer < 0 ? answer : LINK_UP;
	}
	return NOT_DISABLED;
}

/* The rank of a port that the caller named. It must be InfiniBand. */
static int rank_named_port(const char *ca_name, int portnum, bool smi_only)
{
	char path[SYSFS_PATH_MAX];
	int rank = rank_port(ca_name, portnum, smi_only), answer;

	if (rank != NOT_DISABLED)
		return rank;
	node_port_path(path, ca_name, portnum);
	answer = is_infiniband(path);
	return answer < 0 ? answer : answer ? rank : UNUSABLE;
}

/*
 * The rank of the best port of a device, whose number is stored, or of the given port. A
 * negative errno on a shortage, or if no port is usable and a port cannot be read.
 */
static int rank_ca(const char *ca_name, int *portnum, bool smi_only)
{
	int i, highest, rank, best = UNUSABLE, unreadable = 0, type = node_type(ca_name);
	bool ports[UMAD_CA_MAX_PORTS];
	char path[SYSFS_PATH_MAX];

	if (type == NODE_SWITCH) {
		*portnum = 0;
		node_port_path(path, ca_name, 0);
		rank = smi_only ? has_smi(path) : 1;
		return rank > 0 ? ACTIVE : rank ? rank : UNUSABLE;
	}
	if (type < 0)
		return type == -ENODEV ? UNUSABLE : type;
	if (*portnum > 0)
		return rank_named_port(ca_name, *portnum, smi_only);
	highest = node_ports(ca_name, ports);
	if (highest < 0)
		return sysfs_absent(highest) ? UNUSABLE : highest;
	for (i = 0; i <= highest && best < ACTIVE; i++) {
		if (!ports[i])
			continue;
		rank = rank_port(ca_name, i, smi_only);
		if (sysfs_shortage(rank))
			return rank;
		if (rank < 0 && !unreadable)
			unreadable = rank;
		if (rank > best) {
			best = rank;
			*portnum = i;
		}
	}
	return best == UNUSABLE && unreadable ? unreadable : best;
}

static int select_any(int portnum, bool smi_only, struct port_choice *choice)
{
	int i, port, rank, best = UNUSABLE, unreadable = 0;
	ca_name_t *names;
	int listed = devices_list(&names);

	if (listed < 0)
		return listed;
	for (i = 0; i < listed && best < ACTIVE; i++) {
		port = portnum;
		rank = rank_ca(names[i], &port, smi_only);
		if (sysfs_shortage(rank)) {
			free(names);
			return rank;
		}
		if (rank < 0 && !unreadable)
			unreadable = rank;
		/* of the devices without an Active port, the first usable one */
		if (rank == ACTIVE || (rank > UNUSABLE && best == UNUSABLE)) {
			best = rank;
			memcpy(choice->ca_name, names[i], sizeof(choice->ca_name));
			choice->portnum = port;
		}
	}
	free(names);
	if (best > UNUSABLE)
		return 0;
	return unreadable ? unreadable : -ENODEV;
}

int select_port(const char *ca_name, int portnum, bool smi_only, struct port_choice *choice)
{
	int rank;

	if (portnum < 0)
		return -EINVAL;
	if (!ca_name)
		return select_any(portnum, smi_only, choice);
	if (!node_name_valid(ca_name))
		return -ENODEV;
	strcpy(choice->ca_name, ca_name);
	choice->portnum = portnum;
	if (portnum > 0)
		return 0;
	rank = rank_ca(ca_name, &choice->portnum, smi_only);
	return rank > UNUSABLE ? 0 : rank ? rank : -ENODEV;
}

int select_ca(const char *ca_name, struct port_choice *choice)
{
	if (!ca_name)
		return select_any(0, false, choice);
	if (!node_name_valid(ca_name))
		return -ENODEV;
	strcpy(choice->ca_name, ca_name);
	choice->portnum = 0;
	return 0;
}
