/* SPDX-License-Identifier: BSD-2-Clause */

#include "node.h"
#include "sys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool node_name_valid(const char *ca_name)
{
	size_t length = strnlen(ca_name, UMAD_CA_NAME_LEN);

	return length > 0 && length < UMAD_CA_NAME_LEN && ca_name[0] != '.' &&
	       !strchr(ca_name, '/');
}

/* A valid name is short: neither path can be cut. */
void node_path(char path[SYSFS_PATH_MAX], const char *ca_name)
{
	snprintf(path, SYSFS_PATH_MAX, "%s/%s", SYS_INFINIBAND, ca_name);
}

void node_port_path(char path[SYSFS_PATH_MAX], const char *ca_name, int portnum)
{
	snprintf(path, SYSFS_PATH_MAX, "%s/%s/%s/%d", SYS_INFINIBAND, ca_name, SYS_CA_PORTS_DIR,
		 portnum);
}

int node_type(const char *ca_name)
{
	char path[SYSFS_PATH_MAX];
	unsigned type;
	int err;

	if (!node_name_valid(ca_name))
		return -ENODEV;
	node_path(path, ca_name);
	err = sysfs_read_uint(path, SYS_NODE_TYPE, &type);
	if (err)
		return sysfs_absent(err) ? -ENODEV : err;
	return type >= NODE_CA && type <= NODE_ROUTER ? (int)type : -ENODEV;
}

int node_gone(const char *ca_name)
{
	char path[SYSFS_PATH_MAX];
	unsigned type;
	int err;

	if (!node_name_valid(ca_name))
		return 0;
	node_path(path, ca_name);
	err = sysfs_read_uint(path, SYS_NODE_TYPE, &type);
	if (sysfs_shortage(err))
		return err;
	return err == -ENOENT || err == -ENODEV;
}

struct port_marks {
	bool *ports;
	int highest;
};

static int mark_port(const char *name, void *arg)
{
	struct port_marks *marks = arg;

	/* a port's name is its number, without leading zeros */
	if (!*name || strspn(name, "0123456789") != strlen(name) || (name[0] == '0' && name[1]))
		return 0;
	if (strlen(name) > 1)
		return -EIO;
	marks->ports[name[0] - '0'] = true;
	if (marks->highest < name[0] - '0')
		marks->highest = name[0] - '0';
	return 0;
}

_Static_assert(UMAD_CA_MAX_PORTS == 10, "a port number that fits is one digit");

int node_ports(const char *ca_name, bool ports[UMAD_CA_MAX_PORTS])
{
	struct port_marks marks = {.ports = ports};
	char path[SYSFS_PATH_MAX];
	int err;

	memset(ports, 0, UMAD_CA_MAX_PORTS * sizeof(*ports));
	err = sysfs_path(path, "%s/%s/%s", SYS_INFINIBAND, ca_name, SYS_CA_PORTS_DIR);
	if (!err)
		err = sys_list(path, mark_port, &marks);
	return err ? err : marks.highest;
}
