/* SPDX-License-Identifier: BSD-2-Clause */

#include "select.h"
#include "devices.h"
#include "node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How good a port is, from none to best. */
enum rank {
	UNUSABLE,
	NOT_DISABLED,
	LINK_UP,
	ACTIVE
};

static bool is_infiniband(const char *port_path)
{
	char link_layer[UMAD_CA_NAME_LEN];

	if (sysfs_read_text(port_path, SYS_PORT_LINK_LAYER, link_layer, sizeof(link_layer)) < 0)
		return true; /* kernels and simulators from before RoCE */
	return !strcmp(link_layer, "InfiniBand") || !strcmp(link_layer, "IB");
}

static bool has_smi(const char *port_path)
{
	unsigned capmask;

	return !sysfs_read_uint(port_path, SYS_PORT_CAPMASK, &capmask) &&
	       !(capmask & PORT_IS_SM_DISABLED);
}

/* Reads no more attributes than it takes to tell. */
static enum rank rank_port(const char *ca_name, int portnum, bool smi_only)
{
	char path[SYSFS_PATH_MAX];
	unsigned state, phys_state;

	node_port_path(path, ca_name, portnum);
	if (sysfs_read_uint(path, SYS_PORT_STATE, &state) || (smi_only && !has_smi(path)))
		return UNUSABLE;
	if (state == PORT_ACTIVE && is_infiniband(path))
		return ACTIVE;
	if (sysfs_read_uint(path, SYS_PORT_PHY_STATE, &phys_state) ||
	    phys_state == PORT_PHYS_DISABLED)
		return UNUSABLE;
	/* an Active port that comes here is not InfiniBand: no need to read that again */
	if (phys_state == PORT_PHYS_LINK_UP && state != PORT_ACTIVE && is_infiniband(path))
		return LINK_UP;
	return NOT_DISABLED;
}

/* The best port of a device, or how good the given one is (which must be InfiniBand). */
static enum rank rank_ca(const char *ca_name, int *portnum, bool smi_only)
{
	bool ports[UMAD_CA_MAX_PORTS];
	char path[SYSFS_PATH_MAX];
	enum rank rank, best = UNUSABLE;
	int i, highest, wanted = *portnum, type = node_type(ca_name);

	if (type == NODE_SWITCH) {
		*portnum = 0;
		node_port_path(path, ca_name, 0);
		return smi_only && !has_smi(path) ? UNUSABLE : ACTIVE;
	}
	if (type < 0)
		return UNUSABLE;
	if (wanted > 0) {
		node_port_path(path, ca_name, wanted);
		rank = rank_port(ca_name, wanted, smi_only);
		return rank == NOT_DISABLED && !is_infiniband(path) ? UNUSABLE : rank;
	}
	highest = node_ports(ca_name, ports);
	for (i = 0; i <= highest && best < ACTIVE; i++) {
		if (!ports[i])
			continue;
		rank = rank_port(ca_name, i, smi_only);
		if (rank > best) {
			best = rank;
			*portnum = i;
		}
	}
	return best;
}

static int select_any(int portnum, bool smi_only, struct port_choice *choice)
{
	enum rank rank, best = UNUSABLE;
	ca_name_t *names;
	int i, port, listed = devices_list(&names);

	if (listed < 0)
		return listed;
	for (i = 0; i < listed && best < ACTIVE; i++) {
		port = portnum;
		rank = rank_ca(names[i], &port, smi_only);
		/* of the devices without an Active port, the first usable one */
		if (rank == ACTIVE || (rank > UNUSABLE && best == UNUSABLE)) {
			best = rank;
			memcpy(choice->ca_name, names[i], sizeof(choice->ca_name));
			choice->portnum = port;
		}
	}
	free(names);
	return best > UNUSABLE ? 0 : -ENODEV;
}

int select_port(const char *ca_name, int portnum, bool smi_only, struct port_choice *choice)
{
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
	return rank_ca(ca_name, &choice->portnum, smi_only) > UNUSABLE ? 0 : -ENODEV;
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
