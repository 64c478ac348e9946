/* SPDX-License-Identifier: BSD-2-Clause */

/* Devices, the choice of a port, and the umad and issm devices of a port. */
#ifndef LIBIBUMAD_DEVICES_H
#define LIBIBUMAD_DEVICES_H

#include "sysfs.h"

#include <infiniband/umad.h>
#include <stdbool.h>

typedef char ca_name_t[UMAD_CA_NAME_LEN];

/*
 * The names below SYS_INFINIBAND, sorted; not all need be InfiniBand devices (node_type()
 * tells). Returns how many, and an array to be freed; a negative errno.
 */
int devices_list(ca_name_t **names);

/* --- select.c: the port, if the caller does not name it --------------------------- */

struct port_choice {
	char ca_name[UMAD_CA_NAME_LEN];
	int portnum;
};

/*
 * Chooses for ca_name (or NULL) and portnum (or 0), as umad_open_port() describes; with
 * smi_only never a port whose subnet management is disabled. A port named in full is
 * taken as it is. Returns 0; -ENODEV nothing usable, -EINVAL a negative number, -ENOMEM, or the
 * error of reading sysfs.
 */
int select_port(const char *ca_name, int portnum, bool smi_only, struct port_choice *choice);

/*
 * The device alone: the default one for NULL, or the named one, taken as it is. Returns
 * 0; -ENODEV no usable device or no name that could be one's, -ENOMEM, or the error of reading
 * sysfs.
 */
int select_ca(const char *ca_name, struct port_choice *choice);

/* --- cdev.c: the umad or issm device of a port ------------------------------------ */

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
