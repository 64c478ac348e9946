/* SPDX-License-Identifier: BSD-2-Clause */

/* The IsSM bit: set while the port's issm device is open (kernel: user_mad). */

#include "devices.h"
#include "export.h"
#include "log.h"
#include "sys.h"

#include <infiniband/umad_ext.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <sys/select.h>

#define NEXT_ATTEMPT_MS 50

/* The caller sees only -EINVAL, which looks like a bad argument. */
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

static int find_issm(const char *ca_name, int portnum, struct port_choice *port,
		     char path[SYSFS_PATH_MAX])
{
	int err = select_port(ca_name, portnum, false, port);

	if (err)
		return err;
	err = cdev_find(CDEV_ISSM, port, path);
	if (err == -EINVAL)
		log_no_issm(port);
	return err;
}

EXPORT int umad_get_issm_path(const char *ca_name, int portnum, char path[], int max)
{
	struct port_choice port;
	char found[SYSFS_PATH_MAX];
	int err;

	if (!path || max <= 0)
		return fail_errno(path ? -ENOSPC : -EINVAL);
	path[0] = '\0';
	err = find_issm(ca_name, portnum, &port, found);
	if (err)
		return fail_lookup(err);
	if (strlen(found) >= (size_t)max)
		return fail_errno(-ENOSPC);
	strcpy(path, found);
	return 0;
}

/*
 * If the device is removed, the kernel kills a program blocked in open()
 * (docs/kernel-contract.md). So poll with non-blocking attempts; a signal handled in between
 * ends the call.
 */
static int open_when_free(const struct port_choice *port, char path[SYSFS_PATH_MAX])
{
	const struct timespec time = {.tv_nsec = NEXT_ATTEMPT_MS * 1000000L};
	sigset_t all, blocked;
	int fd = -EAGAIN;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &blocked);
	while (fd == -EAGAIN) {
		fd = pselect(0, NULL, NULL, NULL, &time, &blocked) ? -errno : 0;
		if (!fd)
			fd = cdev_find(CDEV_ISSM, port, path);
		if (!fd)
			fd = sys_open(path, O_RDONLY | O_NONBLOCK);
	}
	pthread_sigmask(SIG_SETMASK, &blocked, NULL);
	/* errors of a device that is being removed */
	return fd == -EINVAL || fd == -ENOENT || fd == -ENXIO ? -ENODEV : fd;
}

EXPORT int umad_open_issm(const char *ca_name, int portnum, int flags)
{
	struct port_choice port;
	char path[SYSFS_PATH_MAX];
	int err, fd;

	if (flags & ~UMAD_ISSM_NONBLOCK)
		return fail_errno(-EINVAL);
	err = find_issm(ca_name, portnum, &port, path);
	if (err)
		return fail_lookup(err);
	fd = sys_open(path, O_RDONLY | O_NONBLOCK);
	if (fd == -EAGAIN && !(flags & UMAD_ISSM_NONBLOCK))
		fd = open_when_free(&port, path);
	if (fd < 0) {
		log_info("%s cannot be opened: %s", path, strerror(-fd));
		return fail_errno(fd);
	}
	return fd;
}

EXPORT int umad_close_issm(int fd)
{
	return sys_close(fd) == -EBADF ? fail_errno(-EINVAL) : 0;
}
