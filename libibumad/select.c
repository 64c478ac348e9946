/* SPDX-License-Identifier: BSD-2-Clause */

#include "devices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Ranks of ports, worst first. */
enum rank {
	UNUSABLE,
	ETHERNET, /* if the caller asks for a port number or for SMPs */
	NOT_DISABLED,
	LINK_UP,
	ACTIVE
};

/* What the caller asks for. */
struct criteria {
	int portnum;
	bool smi_only;
};

/* These two return 1 (yes), 0 (no), or a negative errno. */

static int has_infiniband(const char *port_path)
{
	char link_layer[UMAD_CA_NAME_LEN];
	int length;

	length =
		sysfs_read_text(port_path, SYS_PORT_LINK_LAYER, link_layer, sizeof(link_layer));
	if (sysfs_shortage(length))
		return length;
	if (length < 0)
		return 1; /* old kernels and simulators have none */
	return is_infiniband(link_layer);
}

static int has_smi(const char *port_path)
{
	unsigned capmask;
	int err = sysfs_read_uint(port_path, SYS_PORT_CAPMASK, &capmask);

	if (err)
		return sysfs_absent(err) ? 0 : err;
	return !(capmask & PORT_IS_SM_DISABLED);
}

/* A port's rank, or a negative errno. */
static int rank_port(const char *ca_name, int portnum, const struct criteria *criteria)
{
	char path[SYSFS_PATH_MAX];
	unsigned state, phys_state;
	int answer;

	node_port_path(path, ca_name, portnum);
	answer = sysfs_read_uint(path, SYS_PORT_STATE, &state);
	if (!answer)
		answer = sysfs_read_uint(path, SYS_PORT_PHY_STATE, &phys_state);
	if (answer)
		return sysfs_absent(answer) ? UNUSABLE : answer;
	answer = criteria->smi_only ? has_smi(path) : 1;
	if (answer <= 0)
		return answer ? answer : UNUSABLE;
	answer = has_infiniband(path);
	if (answer < 0)
		return answer;
	if (answer && state == PORT_ACTIVE)
		return ACTIVE;
	if (phys_state == PORT_PHYS_DISABLED)
		return UNUSABLE;
	if (!answer)
		return criteria->portnum || criteria->smi_only ? ETHERNET : NOT_DISABLED;
	return phys_state == PORT_PHYS_LINK_UP ? LINK_UP : NOT_DISABLED;
}

/* A switch's port is always port 0, and counts as Active. */
static int rank_switch(const char *ca_name, int portnum, const struct criteria *criteria)
{
	char path[SYSFS_PATH_MAX];
	int answer;

	node_port_path(path, ca_name, 0);
	answer = criteria->smi_only ? has_smi(path) : 1;
	if (answer < 0)
		return answer;
	return answer && !portnum ? ACTIVE : UNUSABLE;
}

/*
 * Rank and number of a device's best port, with readable_only among readable ones. Negative
 * errno if sysfs_shortage(), or if no port is usable and one cannot be read.
 */
static int rank_ports(const char *ca_name, int type, const struct criteria *criteria,
		      bool readable_only, int *portnum)
{
	int i, rank, err, best = UNUSABLE, unreadable = 0;
	bool ports[NODE_PORTS_MAX];
	int highest = node_ports(ca_name, ports);
	umad_port_t port;

	if (highest < 0)
		return sysfs_absent(highest) ? UNUSABLE : highest;
	for (i = 0; i <= highest && best < ACTIVE; i++) {
		if (!ports[i] ||
		    (type != NODE_SWITCH && criteria->portnum && i != criteria->portnum))
			continue;
		rank = type == NODE_SWITCH ? rank_switch(ca_name, i, criteria)
					   : rank_port(ca_name, i, criteria);
		err = rank > best && readable_only ? port_check(ca_name, i, &port) : 0;
		if (err)
			rank = err;
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

/*
 * The rank of a device by its best port. If part of it is unreadable, clears *whole and counts
 * readable ports only: UNUSABLE or a negative errno if there are none.
 */
static int check_rank(const char *ca_name, int type, const struct criteria *criteria, int rank,
		      int *portnum, bool *whole)
{
	int err = ca_check(ca_name);

	*whole = !err;
	if (!err)
		return rank;
	if (sysfs_shortage(err))
		return err;
	return rank_ports(ca_name, type, criteria, true, portnum);
}

struct candidate {
	enum rank rank;
	struct port_choice choice;
};

/*
 * Whether a device beats the candidate before it: the first Active one, else the first usable
 * one.
 */
static bool is_better(int rank, const struct candidate *candidate)
{
	if (rank == ACTIVE || candidate->rank <= ETHERNET)
		return rank > (int)candidate->rank;
	return false;
}

static int select_any(const struct criteria *criteria, struct port_choice *choice)
{
	/* the best of devices that are wholly readable, and of the others */
	struct candidate whole = {.rank = UNUSABLE}, part = whole, *better;
	int i, port = 0, rank, type, unreadable = 0;
	bool is_whole = false;
	ca_name_t *names;
	int listed = devices_list(&names);

	if (listed < 0)
		return listed;
	for (i = 0; i < listed && whole.rank < ACTIVE; i++) {
		type = node_type(names[i]);
		if (type == -ENODEV)
			continue;
		rank = type < 0 ? type : rank_ports(names[i], type, criteria, false, &port);
		if (rank > UNUSABLE && is_better(rank, &whole))
			rank = check_rank(names[i], type, criteria, rank, &port, &is_whole);
		else if (rank > UNUSABLE)
			continue;
		if (sysfs_shortage(rank)) {
			free(names);
			return rank;
		}
		if (rank < 0 && !unreadable)
			unreadable = rank;
		better = rank > UNUSABLE && is_whole ? &whole : &part;
		if (rank > UNUSABLE && is_better(rank, better)) {
			better->rank = (enum rank)rank;
			memcpy(better->choice.ca_name, names[i], sizeof(names[i]));
			better->choice.portnum = port;
		}
	}
	free(names);
	better = whole.rank > UNUSABLE ? &whole : &part;
	if (better->rank > UNUSABLE) {
		*choice = better->choice;
		return 0;
	}
	return unreadable ? unreadable : -ENODEV;
}

/* The best port of a device of any type. */
static int select_of_ca(const char *ca_name, bool smi_only, int *portnum)
{
	const struct criteria criteria = {.smi_only = smi_only};
	int rank, type = node_any_type(ca_name);
	bool whole;

	if (type < 0)
		return type;
	rank = rank_ports(ca_name, type, &criteria, false, portnum);
	if (rank > UNUSABLE)
		rank = check_rank(ca_name, type, &criteria, rank, portnum, &whole);
	return rank > UNUSABLE ? 0 : rank ? rank : -ENODEV;
}

int select_port(const char *ca_name, int portnum, bool smi_only, struct port_choice *choice)
{
	const struct criteria criteria = {.portnum = portnum, .smi_only = smi_only};

	if (portnum < 0)
		return -EINVAL;
	if (!ca_name)
		return select_any(&criteria, choice);
	if (!node_name_valid(ca_name))
		return -ENODEV;
	strcpy(choice->ca_name, ca_name);
	choice->portnum = portnum;
	return portnum > 0 ? 0 : select_of_ca(ca_name, smi_only, &choice->portnum);
}

int select_ca(const char *ca_name, struct port_choice *choice)
{
	const struct criteria any = {0};

	if (!ca_name)
		return select_any(&any, choice);
	if (!node_name_valid(ca_name))
		return -ENODEV;
	strcpy(choice->ca_name, ca_name);
	choice->portnum = 0;
	return 0;
}
