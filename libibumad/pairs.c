/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The devices for the SMPs and the GMPs of a port: usually one device sends both. Each plane of
 * a planarized port is a device, under the port GUID of the device that programs see. The
 * latter does not send SMPs (IsSMDisabled).
 */

#include "devices.h"
#include "export.h"

#include <stdlib.h>
#include <string.h>

/* The devices found for one port GUID. */
struct guid_pair {
	__be64 guid;
	const char *smi; /* the first device that sends SMPs, or NULL */
	const char *gsi; /* the first device that does not, or NULL */
};

struct pair_list {
	struct guid_pair *pairs;
	size_t count, room;
};

static struct guid_pair *pair_for(struct pair_list *list, __be64 guid)
{
	struct guid_pair *grown;
	size_t i;

	for (i = 0; i < list->count; i++)
		if (list->pairs[i].guid == guid)
			return &list->pairs[i];
	if (list->count == list->room) {
		list->room = list->room ? list->room * 2 : 16;
		grown = realloc(list->pairs, list->room * sizeof(*grown));
		if (!grown)
			return NULL;
		list->pairs = grown;
	}
	list->pairs[list->count] = (struct guid_pair){.guid = guid};
	return &list->pairs[list->count++];
}

/* Adds a device's ports, without those that cannot be read. Fails on a shortage. */
static int add_device(struct pair_list *list, const char *ca_name)
{
	bool ports[UMAD_CA_MAX_PORTS] = {false};
	char path[SYSFS_PATH_MAX];
	struct guid_pair *pair;
	union umad_gid gid;
	const char **side;
	unsigned capmask;
	int i, err, highest = node_type(ca_name);

	if (highest > 0)
		highest = node_ports(ca_name, ports);
	if (sysfs_shortage(highest))
		return highest;
	for (i = 0; i <= highest; i++) {
		if (!ports[i])
			continue;
		node_port_path(path, ca_name, i);
		err = sysfs_read_gid(path, SYS_PORT_GID, &gid);
		if (!err)
			err = sysfs_read_uint(path, SYS_PORT_CAPMASK, &capmask);
		if (sysfs_shortage(err))
			return err;
		if (err)
			continue;
		pair = pair_for(list, gid.global.interface_id);
		if (!pair)
			return -ENOMEM;
		side = capmask & PORT_IS_SM_DISABLED ? &pair->gsi : &pair->smi;
		if (!*side)
			*side = ca_name;
	}
	return 0;
}

/*
 * Lists all pairs in the order of devices. The caller frees *pairs and the *names of the pairs.
 */
static int list_pairs(struct guid_pair **pairs, ca_name_t **names)
{
	struct pair_list list = {0};
	int i, err = 0, listed = devices_list(names);

	if (listed < 0)
		return listed;
	for (i = 0; i < listed && err >= 0; i++)
		err = add_device(&list, (*names)[i]);
	if (err < 0) {
		free(list.pairs);
		free(*names);
		return err;
	}
	*pairs = list.pairs;
	return (int)list.count;
}

static void fill_pair(struct umad_ca_pair *pair, const struct guid_pair *found)
{
	memset(pair, 0, sizeof(*pair));
	if (found->smi) {
		strcpy(pair->smi_name, found->smi);
		strcpy(pair->gsi_name, found->smi);
	}
	if (found->gsi)
		strcpy(pair->gsi_name, found->gsi);
}

EXPORT int umad_get_smi_gsi_pairs(struct umad_ca_pair cas[], size_t max)
{
	struct guid_pair *pairs;
	ca_name_t *names;
	int i, count;

	if (!cas && max)
		return fail(-EINVAL);
	count = list_pairs(&pairs, &names);
	if (count < 0)
		return fail_lookup(count);
	if ((size_t)count > max)
		count = (int)max;
	for (i = 0; i < count; i++)
		fill_pair(&cas[i], &pairs[i]);
	free(pairs);
	free(names);
	return count;
}

/*
 * Stores the port of the caller; if that is 0, the only port of the device, or its first port
 * that is not Down, or 0. Fails only on a shortage.
 */
static int prefer_port(const char *ca_name, uint8_t wanted, uint32_t *preferred)
{
	bool ports[UMAD_CA_MAX_PORTS];
	char path[SYSFS_PATH_MAX];
	int i, err, highest, count = 0, only = 0, up = 0;
	unsigned state;

	*preferred = wanted;
	if (wanted)
		return 0;
	highest = node_ports(ca_name, ports);
	if (sysfs_shortage(highest))
		return highest;
	for (i = 0; i <= highest; i++) {
		if (!ports[i])
			continue;
		count++;
		only = i;
		if (up)
			continue;
		node_port_path(path, ca_name, i);
		err = sysfs_read_uint(path, SYS_PORT_STATE, &state);
		if (sysfs_shortage(err))
			return err;
		if (!err && state > PORT_DOWN)
			up = i;
	}
	*preferred = (uint32_t)(count == 1 ? only : up);
	return 0;
}

EXPORT int umad_get_smi_gsi_pair_by_ca_name(const char *devname, uint8_t portnum,
					    struct umad_ca_pair *ca_pair, unsigned enforce_smi)
{
	struct port_choice choice;
	struct guid_pair *pairs;
	ca_name_t *names;
	int i, count, err;

	if (!ca_pair)
		return fail(-EINVAL);
	memset(ca_pair, 0, sizeof(*ca_pair));
	err = devname ? select_ca(devname, &choice)
		      : select_port(NULL, portnum, enforce_smi, &choice);
	if (err)
		return fail_lookup(err);
	count = list_pairs(&pairs, &names);
	if (count < 0)
		return fail_lookup(count);

	err = -ENODEV;
	for (i = 0; i < count && err == -ENODEV; i++) {
		struct umad_ca_pair pair;

		fill_pair(&pair, &pairs[i]);
		if (enforce_smi && !pair.smi_name[0])
			continue;
		if (strcmp(pair.smi_name, choice.ca_name) &&
		    strcmp(pair.gsi_name, choice.ca_name))
			continue;
		err = prefer_port(pair.gsi_name, portnum, &pair.gsi_preferred_port);
		if (!err && pair.smi_name[0])
			err = prefer_port(pair.smi_name, portnum, &pair.smi_preferred_port);
		if (!err)
			*ca_pair = pair;
	}
	free(pairs);
	free(names);
	return err ? fail_lookup(err) : 0;
}
