/* SPDX-License-Identifier: BSD-2-Clause */

/* The IsSM bit, which is set while the issm device of the port is open (kernel: user_mad). */

#include "devices.h"
#include "export.h"
#include "log.h"
#include "sys.h"

#include <infiniband/umad_ext.h>
#include <fcntl.h>
#include <string.h>

/* To the caller, -EINVAL looks like a wrong argument. */
static void log_no_issm(const struct port_choice *port)
{
	char path[SYSFS_PATH_MAX];

	if (!log_wanted(UMAD_LOG_INFO))
		return;
	if (cdev_find(CDEV_UMAD, port, path))
		log_info("%s port %d has no issm device", port->ca_name, port->portnum);
	else
		log_info(
			"%s port %d has a umad device, but no issm device: from Linux 6.12 on, "
			"ports without QP0, such as RoCE ports, have none",
			port->ca_name, port->portnum);
}

static int find_issm(const char *ca_name, int portnum, char path[SYSFS_PATH_MAX])
{
	struct port_choice choice;
	int err = select_port(ca_name, portnum, false, &choice);

	if (err)
		return err;
	err = cdev_find(CDEV_ISSM, &choice, path);
	if (err == -EINVAL)
		log_no_issm(&choice);
	return err;
}

EXPORT int umad_get_issm_path(const char *ca_name, int portnum, char path[], int max)
{
	char found[SYSFS_PATH_MAX];
	int err;

	if (!path || max <= 0)
		return fail(path ? -ENOSPC : -EINVAL);
	path[0] = '\0';
	err = find_issm(ca_name, portnum, found);
	if (err)
		return fail_lookup(err);
	if (strlen(found) >= (size_t)max)
		return fail(-ENOSPC);
	strcpy(path, found);
	return 0;
}

EXPORT int umad_open_issm(const char *ca_name, int portnum, int flags)
{
	char path[SYSFS_PATH_MAX];
	int err, fd;

	if (flags & ~UMAD_ISSM_NONBLOCK)
		return fail(-EINVAL);
	err = find_issm(ca_name, portnum, path);
	if (err)
		return fail_lookup(err);
	fd = sys_open(path, O_RDONLY | (flags & UMAD_ISSM_NONBLOCK ? O_NONBLOCK : 0));
	if (fd < 0) {
		log_info("%s cannot be opened: %s", path, strerror(-fd));
		return fail(fd);
	}
	return fd;
}

EXPORT int umad_close_issm(int fd)
{
	return sys_close(fd) == -EBADF ? fail(-EINVAL) : 0;
}
