/* SPDX-License-Identifier: BSD-2-Clause */

#include "devices.h"
#include "log.h"
#include "netlink.h"
#include "sys.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define DEV_INFINIBAND "/dev/infiniband"

static const char *const prefixes[] = {
	[CDEV_UMAD] = "umad",
	[CDEV_ISSM] = "issm",
};

bool cdev_name_is(enum cdev_kind kind, const char *name)
{
	size_t prefix = strlen(prefixes[kind]), length = strnlen(name, CDEV_NAME_LEN);

	return length < CDEV_NAME_LEN && length > prefix &&
	       !strncmp(name, prefixes[kind], prefix) &&
	       prefix + strspn(name + prefix, "0123456789") == length;
}

static int read_owner(const char *dir, struct port_choice *port)
{
	unsigned portnum;
	int length, err;

	length = sysfs_read_text(dir, SYS_IB_MAD_DEV, port->ca_name, sizeof(port->ca_name));
	if (length < 0)
		return length;
	if ((size_t)length >= sizeof(port->ca_name) || !node_name_valid(port->ca_name))
		return -EIO;
	err = sysfs_read_uint(dir, SYS_IB_MAD_PORT, &portnum);
	if (err)
		return err;
	if (portnum > INT_MAX)
		return -EIO;
	port->portnum = (int)portnum;
	return 0;
}

int cdev_owner(const char *name, struct port_choice *port)
{
	char dir[SYSFS_PATH_MAX];
	int err = sysfs_path(dir, "%s/%s", SYS_INFINIBAND_MAD, name);

	return err ? err : read_owner(dir, port);
}

struct search {
	enum cdev_kind kind;
	const struct port_choice *port;
	const char *dir;
	char found[CDEV_NAME_LEN];
	int unreadable; /* the first error that is not sysfs_absent(); 0: none */
};

/* Returns an error that ends the search, a sysfs_shortage(); remembers any other. */
static int note_error(struct search *search, int err)
{
	if (err < 0 && !sysfs_absent(err) && !search->unreadable)
		search->unreadable = err;
	return sysfs_shortage(err) ? err : 0;
}

static int match_device(const char *name, void *arg)
{
	struct search *search = arg;
	struct port_choice owner;
	char dir[SYSFS_PATH_MAX];
	int err;

	if (!cdev_name_is(search->kind, name) || sysfs_path(dir, "%s/%s", search->dir, name))
		return 0;
	err = read_owner(dir, &owner);
	if (err)
		return note_error(search, err);
	if (owner.portnum != search->port->portnum ||
	    strcmp(owner.ca_name, search->port->ca_name))
		return 0;
	strcpy(search->found, name);
	return 1;
}

/* Returns 0, -EINVAL if there is no such device, or an error that is a sysfs_shortage(). */
static int search_folder(struct search *search, const char *dir)
{
	int ret;

	search->dir = dir;
	ret = sys_list(dir, match_device, search);
	if (ret == 1)
		return 0;
	ret = note_error(search, ret);
	return ret ? ret : -EINVAL;
}

/* Looks below the port's own hardware first, then at all devices. */
static int find_in_sysfs(struct search *search)
{
	char siblings[SYSFS_PATH_MAX];
	int err = -EINVAL;

	if (!sysfs_path(siblings, "%s/%s/device/infiniband_mad", SYS_INFINIBAND,
			search->port->ca_name))
		err = search_folder(search, siblings);
	return err == -EINVAL ? search_folder(search, SYS_INFINIBAND_MAD) : err;
}

/* Asking for a port's umad device loads ib_umad, which also creates the issm devices. */
static int find_by_netlink(struct search *search)
{
	char name[CDEV_NAME_LEN];
	int err;

	err = netlink_find_umad(search->port->ca_name, search->port->portnum, name,
				sizeof(name));
	if (err) {
		log_info("no umad device for %s port %d by netlink: %s", search->port->ca_name,
			 search->port->portnum, strerror(-err));
		return sysfs_shortage(err) ? err : -EINVAL;
	}
	if (search->kind != CDEV_UMAD)
		return find_in_sysfs(search);
	if (!cdev_name_is(CDEV_UMAD, name))
		return -EINVAL;
	strcpy(search->found, name);
	return 0;
}

int cdev_find(enum cdev_kind kind, const struct port_choice *port, char path[SYSFS_PATH_MAX])
{
	struct search search = {.kind = kind, .port = port};
	int type, err = find_in_sysfs(&search);

	if (err == -EINVAL) {
		type = node_any_type(port->ca_name);
		err = type < 0 ? type : find_by_netlink(&search);
	}
	if (err)
		return err == -EINVAL && search.unreadable ? search.unreadable : err;
	snprintf(path, SYSFS_PATH_MAX, "%s/%s", DEV_INFINIBAND, search.found);
	return 0;
}

int cdev_abi_version(void)
{
	unsigned version;
	int err = sysfs_read_uint(IB_UMAD_ABI_DIR, IB_UMAD_ABI_FILE, &version);

	if (err)
		return err;
	return version > INT_MAX ? -EIO : (int)version;
}
