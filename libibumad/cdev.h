/* SPDX-License-Identifier: BSD-2-Clause */

/* Which umad or issm device belongs to a port. */
#ifndef LIBIBUMAD_CDEV_H
#define LIBIBUMAD_CDEV_H

#include "select.h"
#include "sysfs.h"

enum cdev_kind {
	CDEV_UMAD,
	CDEV_ISSM
};

/* Room for a device's name, as "umad0". */
#define CDEV_NAME_LEN 32

/*
 * Finds a port's device, having the kernel load ib_umad where that is what is missing.
 * Returns 0 and its path below /dev; -EINVAL none for that port, -ENODEV no such CA, or the
 * error of reading sysfs.
 */
int cdev_find(enum cdev_kind kind, const struct port_choice *port, char path[SYSFS_PATH_MAX]);

/* Whether a name is that of a device of that kind: "umad" or "issm" and a number. */
bool cdev_name_is(enum cdev_kind kind, const char *name);

/* Whose device it is, as sysfs says: 0, or -EIO and the like. */
int cdev_owner(const char *name, struct port_choice *port);

/* The version of the kernel's user_mad ABI; -ENOENT and the like where there is none. */
int cdev_abi_version(void);

#endif
