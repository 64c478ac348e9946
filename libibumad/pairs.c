/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The devices for a port's SMPs and GMPs, usually one for both. On a planarized port, each
 * plane is a device with the PortGUID of the device that programs see, which does not send SMPs
 * (IsSMDisabled).
 */

#include "devices.h"
#include "export.h"
#include "log.h"

#include <stdlib.h>
#include <string.h>

/* How usable a port is, worst first. */
enum use {
	DISABLED,
	DOWN,
	UP
};

/* An InfiniBand port with a PortGUID, of a device that umad_get_ca() can read. */
struct guid_port {
	__be64 guid;
	const char *ca_name;
	uint32_t portnum;
	bool smi; /* not IsSMDisabled */
	enum use use;
};

struct port_list {
	ca_name_t *names;
	struct guid_port *ports;
	size_t count, room;
};

static void list_free(struct port_list *list)
{
	free(list->ports);
	free(list->names);
}

static int add_port(struct port_list *list, const char *ca_name, const umad_port_t *port)
{
	struct guid_port *grown;
	enum use use = UP;

	if (!is_infiniband(port->link_layer) || !port->port_guid)
		return 0;
	if (port->state <= PORT_DOWN)
		use = port->phys_state == PORT_PHYS_DISABLED ? DISABLED : DOWN;
	if (!list->ports || list->count == list->room) {
		list->room = list->room ? list->room * 2 : 16;
		grown = realloc(list->ports, list->room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		list->ports = grown;
	}
	list->ports[list->count++] = (struct guid_port){
		.guid = port->port_guid,
		.ca_name = ca_name,
		.portnum = (uint32_t)port->portnum,
		.smi = !(be32toh(port->capmask) & PORT_IS_SM_DISABLED),
		.use = use,
	};
	return 0;
}

/*
 * Adds the ports of a device that can be read as a whole; with many ports, only if asked to.
 * Fails only if sysfs_shortage().
 */
static int add_device(struct port_list *list, const char *ca_name, bool many, bool *has_many)
{
	bool ports[NODE_PORTS_MAX] = {false};
	int i, type = node_type(ca_name), err = type < 0 ? type : ca_check(ca_name);
	int highest = err == (many ? -EOVERFLOW : 0) ? node_ports(ca_name, ports) : -1;
	umad_port_t port;

	*has_many |= err == -EOVERFLOW;
	if (sysfs_shortage(err))
		return err;
	if (err && err != -ENODEV && err != -EOVERFLOW)
		log_info("%s is in no pair: %s", ca_name, strerror(-err));
	if (sysfs_shortage(highest))
		return highest;
	for (i = 0; i <= highest; i++) {
		if (!ports[i])
			continue;
		err = port_check(ca_name, i, &port);
		if (!err)
			err = add_port(list, ca_name, &port);
		if (sysfs_shortage(err))
			return err;
	}
	return 0;
}

/*
 * Lists ports by device name and number. Devices with more ports than umad_get_ca() supports
 * come last: rdma-core does not have them.
 */
static int list_ports(struct port_list *list)
{
	int i, err = 0, listed = devices_sorted(&list->names);
	bool has_many = false;

	list->ports = NULL;
	list->count = list->room = 0;
	if (listed < 0)
		return listed;
	for (i = 0; i < listed && !err; i++)
		err = add_device(list, list->names[i], false, &has_many);
	for (i = 0; i < listed && !err && has_many; i++)
		err = add_device(list, list->names[i], true, &has_many);
	if (err)
		list_free(list);
	return err;
}

/* The last device with the GUID that does, or does not, send SMPs; or NULL. */
static const char *find_side(const struct port_list *list, __be64 guid, bool smi)
{
	const char *found = NULL;
	size_t i;

	for (i = 0; i < list->count; i++)
		if (list->ports[i].guid == guid && list->ports[i].smi == smi)
			found = list->ports[i].ca_name;
	return found;
}

/* Fills in a pair without preferred ports. False if the port is in no pair. */
static bool pair_of(const struct port_list *list, const struct guid_port *port,
		    struct umad_ca_pair *pair)
{
	const char *other = find_side(list, port->guid, !port->smi);

	memset(pair, 0, sizeof(*pair));
	/* only one of several devices on this side is in the pair */
	if (other && strcmp(find_side(list, port->guid, port->smi), port->ca_name) != 0)
		return false;
	strcpy(pair->gsi_name, port->smi && other ? other : port->ca_name);
	if (port->smi)
		strcpy(pair->smi_name, port->ca_name);
	else if (other)
		strcpy(pair->smi_name, other);
	return true;
}

static bool is_stored(const struct umad_ca_pair *pairs, size_t count,
		      const struct umad_ca_pair *pair)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (!memcmp(&pairs[i], pair, sizeof(*pair)))
			return true;
	return false;
}

EXPORT int umad_get_smi_gsi_pairs(struct umad_ca_pair cas[], size_t max)
{
	struct umad_ca_pair pair;
	struct port_list list;
	size_t i, count = 0;
	int err;

	if (!cas && max)
		return fail_errno(-EINVAL);
	err = list_ports(&list);
	if (err)
		return fail_lookup(err);
	for (i = 0; i < list.count && count < max; i++)
		if (pair_of(&list, &list.ports[i], &pair) && !is_stored(cas, count, &pair))
			cas[count++] = pair;
	list_free(&list);
	return (int)count;
}

/* The best port of a device with the GUID and number (0: any), or NULL. */
static const struct guid_port *best_port(const struct port_list *list, __be64 guid,
					 const char *ca_name, uint32_t portnum)
{
	const struct guid_port *port, *best = NULL;

	for (port = list->ports; port < list->ports + list->count; port++)
		if (port->guid == guid && !strcmp(port->ca_name, ca_name) &&
		    (!portnum || port->portnum == portnum) && (!best || port->use > best->use))
			best = port;
	return best;
}

/*
 * Stores the preferred ports: the one the caller means and the best on the other side. Returns
 * a rank by the usability of both, then of the first; -1 if there is no such port as usable as
 * `least`.
 */
static int prefer_ports(const struct port_list *list, __be64 guid, const char *meant,
			uint32_t portnum, enum use least, struct umad_ca_pair *pair)
{
	const struct guid_port *port = best_port(list, guid, meant, portnum), *other = port;

	if (!port || port->use < least)
		return -1;
	pair->smi_preferred_port = pair->smi_name[0] ? port->portnum : 0;
	pair->gsi_preferred_port = port->portnum;
	if (strcmp(pair->gsi_name, meant) != 0) {
		other = best_port(list, guid, pair->gsi_name, 0);
		pair->gsi_preferred_port = other->portnum;
	} else if (pair->smi_name[0] && strcmp(pair->smi_name, meant) != 0) {
		other = best_port(list, guid, pair->smi_name, 0);
		pair->smi_preferred_port = other->portnum;
	}
	return (int)((other->use < port->use ? other->use : port->use) * (UP + 1) + port->use);
}

/*
 * Whether rdma-core does not know a port's pair: several ports have its PortGUID, none for
 * GMPs; or the caller wants an SMP device and the device's first port has IsSMDisabled. Such
 * pairs come last.
 */
static bool is_unknown_to_rdma_core(const struct port_list *list, const struct guid_port *port,
				    bool enforce_smi)
{
	const struct guid_port *first = list->ports, *other;
	size_t sharing = 0;

	if (find_side(list, port->guid, !port->smi))
		return false;
	while (strcmp(first->ca_name, port->ca_name) != 0)
		first++;
	for (other = list->ports; other < list->ports + list->count; other++)
		sharing += other->guid == port->guid;
	return (port->smi && sharing > 1) || (enforce_smi && !first->smi);
}

/*
 * Finds the first of the best pairs. Without a name, the caller means the SMP device if there
 * is one, and its port must not be disabled. Returns 0 or -ENODEV.
 */
static int find_pair(const struct port_list *list, const char *devname, uint32_t portnum,
		     bool enforce_smi, struct umad_ca_pair *found)
{
	int rank, err = -ENODEV, best = -1;
	const struct guid_port *port;
	struct umad_ca_pair pair;
	const char *meant;

	for (port = list->ports; port < list->ports + list->count; port++) {
		if ((devname && strcmp(port->ca_name, devname) != 0) ||
		    !pair_of(list, port, &pair) || (enforce_smi && !pair.smi_name[0]))
			continue;
		meant = pair.smi_name[0] ? pair.smi_name : pair.gsi_name;
		rank = prefer_ports(list, port->guid, devname ? devname : meant, portnum,
				    devname ? DISABLED : DOWN, &pair);
		if (rank >= 0)
			rank = rank * 2 + !is_unknown_to_rdma_core(list, port, enforce_smi);
		if (rank <= best)
			continue;
		best = rank;
		*found = pair;
		err = 0;
	}
	return err;
}

EXPORT int umad_get_smi_gsi_pair_by_ca_name(const char *devname, uint8_t portnum,
					    struct umad_ca_pair *ca_pair, unsigned enforce_smi)
{
	struct port_list list;
	int err;

	if (!ca_pair)
		return fail_errno(-EINVAL);
	memset(ca_pair, 0, sizeof(*ca_pair));
	if (devname && !node_name_valid(devname))
		return fail_errno(-ENODEV);
	err = list_ports(&list);
	if (err)
		return fail_lookup(err);
	err = find_pair(&list, devname, portnum, enforce_smi, ca_pair);
	list_free(&list);
	return err ? fail_lookup(err) : 0;
}
