/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads a device and its ports. */

#include "export.h"
#include "log.h"
#include "devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* P_Key indices have 16 bits (IBA 10.9.1). */
#define PKEYS_MAX 65535

/*
 * A missing P_Key ends the table, unless the table was removed (and perhaps created again).
 * Returns -ENOENT at the end, 0 if the P_Key exists now, -ENODEV if the port was removed, or
 * another errno.
 */
static int confirm_end(const char *port_path, const char *name, unsigned *pkey)
{
	unsigned first;
	int err = sysfs_read_uint(port_path, "pkeys/0", &first);

	if (err)
		return err == -ENOENT ? -ENODEV : err;
	return sysfs_read_uint(port_path, name, pkey);
}

/*
 * Warns about a port without P_Keys unless it was removed, in which case it has no GIDs either.
 * Returns -ENOENT if the port exists, -ENODEV if it was removed, or another negative errno.
 */
static int confirm_absence(const char *port_path)
{
	union umad_gid gid;
	int err = sysfs_read_gid(port_path, SYS_PORT_GID, &gid);

	if (err)
		return err == -ENOENT ? -ENODEV : err;
	log_warning("%s has no P_Keys", port_path);
	return -ENOENT;
}

/* Reads pkeys/0, pkeys/1, ... until one is missing. */
static int read_pkeys(const char *port_path, struct umad_port *port)
{
	unsigned pkey, count = 0, room = 0;
	uint16_t *pkeys = NULL, *grown;
	char name[sizeof("pkeys/65535")];
	int err = 0;

	while (count < PKEYS_MAX) {
		snprintf(name, sizeof(name), "pkeys/%u", count);
		err = sysfs_read_uint(port_path, name, &pkey);
		if (err == -ENOENT && count)
			err = confirm_end(port_path, name, &pkey);
		if (err)
			break;
		if (pkey > UINT16_MAX) {
			err = -EIO;
			break;
		}
		if (count == room) {
			room = room ? room * 2 : 128;
			grown = realloc(pkeys, room * sizeof(*pkeys));
			if (!grown) {
				err = -ENOMEM;
				break;
			}
			pkeys = grown;
		}
		pkeys[count++] = (uint16_t)pkey;
	}
	if (count && (!err || err == -ENOENT)) {
		port->pkeys = pkeys;
		port->pkeys_size = count;
		return 0;
	}
	free(pkeys);
	return err == -ENOENT ? confirm_absence(port_path) : err;
}

/* An attribute, or `otherwise` if the device lacks it. Fails only if sysfs_shortage(). */
static int read_optional(const char *path, const char *name, char *text, size_t size,
			 const char *otherwise)
{
	int length = sysfs_read_text(path, name, text, size);

	if (length < 0)
		strcpy(text, otherwise);
	return sysfs_shortage(length) ? length : 0;
}

/* Logs which attribute cannot be read. Returns the error. */
static int unreadable(const char *path, const char *name, int err)
{
	log_info("%s/%s cannot be read: %s", path, name, strerror(-err));
	return err;
}

/* Reads a port without its P_Keys. */
static int read_attributes(const char *ca_name, int portnum, struct umad_port *port)
{
	const struct {
		const char *name;
		unsigned *value;
	} numbers[] = {
		{SYS_PORT_LID, &port->base_lid}, {SYS_PORT_LMC, &port->lmc},
		{SYS_PORT_SMLID, &port->sm_lid}, {SYS_PORT_SMSL, &port->sm_sl},
		{SYS_PORT_STATE, &port->state},  {SYS_PORT_PHY_STATE, &port->phys_state},
	};
	char path[SYSFS_PATH_MAX];
	union umad_gid gid;
	unsigned capmask;
	size_t i;
	int err;

	memset(port, 0, sizeof(*port));
	strcpy(port->ca_name, ca_name);
	port->portnum = portnum;
	node_port_path(path, ca_name, portnum);

	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		err = sysfs_read_uint(path, numbers[i].name, numbers[i].value);
		if (err)
			return unreadable(path, numbers[i].name, err);
	}
	/* no rate while a cage is empty */
	err = sysfs_read_uint(path, SYS_PORT_RATE, &port->rate);
	if (sysfs_shortage(err))
		return err;
	if (err)
		port->rate = 0;
	err = read_optional(path, SYS_PORT_LINK_LAYER, port->link_layer,
			    sizeof(port->link_layer), "IB");
	if (err)
		return err;

	err = sysfs_read_uint(path, SYS_PORT_CAPMASK, &capmask);
	if (err)
		return unreadable(path, SYS_PORT_CAPMASK, err);
	port->capmask = htobe32(capmask);

	err = sysfs_read_gid(path, SYS_PORT_GID, &gid);
	if (err)
		return unreadable(path, SYS_PORT_GID, err);
	port->gid_prefix = gid.global.subnet_prefix;
	port->port_guid = gid.global.interface_id;
	return 0;
}

static int read_port(const char *ca_name, int portnum, struct umad_port *port)
{
	char path[SYSFS_PATH_MAX];
	int err = read_attributes(ca_name, portnum, port);

	if (err)
		return err;
	node_port_path(path, ca_name, portnum);
	return read_pkeys(path, port);
}

int port_check(const char *ca_name, int portnum, umad_port_t *port)
{
	char path[SYSFS_PATH_MAX];
	unsigned pkey;
	int err = read_attributes(ca_name, portnum, port);

	if (err)
		return err;
	node_port_path(path, ca_name, portnum);
	err = sysfs_read_uint(path, "pkeys/0", &pkey);
	return err ? unreadable(path, "pkeys/0", err) : 0;
}

bool is_infiniband(const char *link_layer)
{
	return !strcmp(link_layer, "InfiniBand") || !strcmp(link_layer, "IB");
}

static uint64_t fnv1a(uint64_t hash, const void *bytes, size_t count)
{
	const uint8_t *byte = bytes;

	while (count-- > 0)
		hash = (hash ^ *byte++) * 0x100000001b3;
	return hash;
}

int port_digest(const char *ca_name, int portnum, uint64_t *digest)
{
	struct umad_port port;
	uint16_t *pkeys;
	int err = read_port(ca_name, portnum, &port);

	if (err)
		return err;
	pkeys = port.pkeys;
	port.pkeys = NULL; /* pointers are not values of the port */
	*digest = fnv1a(0xcbf29ce484222325, &port, sizeof(port));
	*digest = fnv1a(*digest, pkeys, port.pkeys_size * sizeof(*pkeys)) | 1;
	free(pkeys);
	return 0;
}

static int read_guids(const char *path, __be64 *node_guid, __be64 *system_guid)
{
	int err = sysfs_read_guid(path, SYS_CA_NODE_GUID, node_guid);

	if (err)
		return unreadable(path, SYS_CA_NODE_GUID, err);
	err = sysfs_read_guid(path, SYS_CA_SYS_GUID, system_guid);
	return err ? unreadable(path, SYS_CA_SYS_GUID, err) : 0;
}

int ca_check(const char *ca_name)
{
	bool ports[NODE_PORTS_MAX];
	char path[SYSFS_PATH_MAX];
	struct umad_port port;
	__be64 guid;
	int i, err, highest;

	node_path(path, ca_name);
	err = read_guids(path, &guid, &guid);
	if (err)
		return err;
	highest = node_ports(ca_name, ports);
	for (i = 0; i <= highest; i++) {
		if (!ports[i])
			continue;
		err = port_check(ca_name, i, &port);
		if (err)
			return err;
		node_port_path(path, ca_name, i);
		/* 0 may mean that the rate cannot be read */
		err = port.rate ? 0 : sysfs_read_uint(path, SYS_PORT_RATE, &port.rate);
		if (err)
			return unreadable(path, SYS_PORT_RATE, err);
	}
	if (highest < 0)
		return highest;
	return highest < UMAD_CA_MAX_PORTS ? 0 : -EOVERFLOW;
}

static int read_ca(const char *ca_name, struct umad_ca *ca)
{
	bool ports[NODE_PORTS_MAX];
	char path[SYSFS_PATH_MAX];
	int i, err, type, count = 0;

	strcpy(ca->ca_name, ca_name);
	type = node_any_type(ca_name);
	if (type < 0)
		return type;
	ca->node_type = (unsigned)type;

	node_path(path, ca_name);
	err = read_optional(path, SYS_CA_FW_VERS, ca->fw_ver, sizeof(ca->fw_ver), "");
	if (!err)
		err = read_optional(path, SYS_CA_HW_VERS, ca->hw_ver, sizeof(ca->hw_ver), "");
	if (!err)
		err = read_optional(path, SYS_CA_TYPE, ca->ca_type, sizeof(ca->ca_type), "");
	if (!err)
		err = read_guids(path, &ca->node_guid, &ca->system_guid);
	if (err)
		return err;

	ca->numports = node_ports(ca_name, ports);
	if (ca->numports < 0)
		return ca->numports;
	if (ca->numports >= UMAD_CA_MAX_PORTS) {
		for (i = 0; i <= ca->numports; i++)
			count += ports[i];
		log_warning("%s: %d ports; umad_get_ca() can hold %d", ca_name, count,
			    UMAD_CA_MAX_PORTS - 1);
		return -EOVERFLOW;
	}
	for (i = 0; i <= ca->numports; i++) {
		if (!ports[i])
			continue;
		ca->ports[i] = calloc(1, sizeof(*ca->ports[i]));
		if (!ca->ports[i])
			return -ENOMEM;
		err = read_port(ca_name, i, ca->ports[i]);
		if (err)
			return err;
	}
	return 0;
}

EXPORT int umad_get_ca(const char *ca_name, umad_ca_t *ca)
{
	struct port_choice choice;
	int err;

	if (!ca)
		return fail_errno(-EINVAL);
	memset(ca, 0, sizeof(*ca));
	err = select_ca(ca_name, &choice);
	if (!ca_name)
		choice_log(NULL, 0, err, &choice);
	if (!err)
		err = read_ca(choice.ca_name, ca);
	if (err) {
		log_info("device %s cannot be read: %s", ca_name ? ca_name : "(any)",
			 strerror(-err));
		umad_release_ca(ca);
		return fail_lookup(err);
	}
	return 0;
}

EXPORT int umad_release_ca(umad_ca_t *ca)
{
	int i;

	if (!ca)
		return fail_errno(-ENODEV);
	for (i = 0; i < UMAD_CA_MAX_PORTS; i++) {
		if (!ca->ports[i])
			continue;
		umad_release_port(ca->ports[i]);
		free(ca->ports[i]);
		ca->ports[i] = NULL;
	}
	return 0;
}

EXPORT int umad_get_port(const char *ca_name, int portnum, umad_port_t *port)
{
	struct port_choice choice;
	int err, type;

	if (!port)
		return fail_errno(-EINVAL);
	memset(port, 0, sizeof(*port));
	err = select_port(ca_name, portnum, false, &choice);
	choice_log(ca_name, portnum, err, &choice);
	if (!err && (type = node_any_type(choice.ca_name)) < 0)
		err = type;
	if (!err)
		err = read_port(choice.ca_name, choice.portnum, port);
	if (err) {
		log_info("port %d of device %s cannot be read: %s", portnum,
			 ca_name ? ca_name : "(any)", strerror(-err));
		return fail_lookup(err);
	}
	return 0;
}

EXPORT int umad_release_port(umad_port_t *port)
{
	if (!port)
		return fail_errno(-ENODEV);
	free(port->pkeys);
	port->pkeys = NULL;
	port->pkeys_size = 0;
	return 0;
}

EXPORT int umad_get_ca_portguids(const char *ca_name, __be64 *portguids, int max)
{
	bool ports[NODE_PORTS_MAX];
	struct port_choice choice;
	char path[SYSFS_PATH_MAX];
	union umad_gid gid;
	int i, highest, err, type;

	err = select_ca(ca_name, &choice);
	if (!ca_name)
		choice_log(NULL, 0, err, &choice);
	if (!err && (type = node_any_type(choice.ca_name)) < 0)
		err = type;
	if (err)
		return fail_lookup(err);
	if (!portguids)
		return 0;
	highest = node_ports(choice.ca_name, ports);
	if (highest < 0)
		return fail_lookup(highest);
	if (max <= highest)
		return fail_errno(-ENOMEM);
	for (i = 0; i <= highest; i++) {
		portguids[i] = 0;
		if (!ports[i])
			continue;
		node_port_path(path, choice.ca_name, i);
		err = sysfs_read_gid(path, SYS_PORT_GID, &gid);
		if (err)
			return fail_lookup(unreadable(path, SYS_PORT_GID, err));
		portguids[i] = gid.global.interface_id;
	}
	return highest + 1;
}
