/* SPDX-License-Identifier: BSD-2-Clause */

/* Devices, the choice of a port, and the umad and issm devices of a port. */
#ifndef LIBIBUMAD_DEVICES_H
#define LIBIBUMAD_DEVICES_H

#include "sysfs.h"

#include <infiniband/umad.h>
#include <stdbool.h>

typedef char ca_name_t[UMAD_CA_NAME_LEN];

/*
 * Lists the names below SYS_INFINIBAND in the order of the directory. Some may be other devices
 * than InfiniBand devices: see node_type(). Returns their number, and an array that the caller
 * frees; or a negative errno.
 */
int devices_list(ca_name_t **names);

/* The same, sorted. */
int devices_sorted(ca_name_t **names);

/* --- ca.c ------------------------------------------------------------------------- */

/*
 * Reads the values of a port that umad_get_port() has. Stores a digest of them, which is never
 * 0: different values have the same digest with a probability of 2^-63. Returns 0 or the error
 * of reading sysfs.
 */
int port_digest(const char *ca_name, int portnum, uint64_t *digest);

/*
 * Reads what umad_get_port() reads, except the P_Keys, of which the first one must exist.
 * Returns 0 or the error of reading sysfs.
 */
int port_check(const char *ca_name, int portnum, umad_port_t *port);

/*
 * 0 if umad_get_ca() can read the device, and each rate can be read. -EOVERFLOW if this is so,
 * except that umad_get_ca() cannot hold the ports. Or the error.
 */
int ca_check(const char *ca_name);

/* Whether the text of link_layer is InfiniBand's. */
bool is_infiniband(const char *link_layer);

/* --- select.c: the port, if the caller does not name it --------------------------- */

struct port_choice {
	char ca_name[UMAD_CA_NAME_LEN];
	int portnum;
};

/*
 * Chooses a port for ca_name (or NULL) and portnum (or 0), as umad_open_port() describes. With
 * smi_only, the port has subnet management enabled. If the caller gives a name and a number,
 * sysfs is not read. Returns 0; -ENODEV if no port is usable; -EINVAL for a negative number;
 * -ENOMEM; or the error of reading sysfs.
 */
int select_port(const char *ca_name, int portnum, bool smi_only, struct port_choice *choice);

/*
 * Chooses a device: the default device for NULL. If the caller gives a name, sysfs is not read.
 * Returns 0; -ENODEV if no device is usable, or for a name that no device can have; -ENOMEM; or
 * the error of reading sysfs.
 */
int select_ca(const char *ca_name, struct port_choice *choice);

/*
 * Logs the ports that select_port() or select_ca() could choose, and its result: "err", or
 * "choice". Nothing if the caller named the port, or such messages are not wanted.
 */
void choice_log(const char *ca_name, int portnum, int err, const struct port_choice *choice);

/* --- cdev.c: the umad or issm device of a port ------------------------------------ */

enum cdev_kind {
	CDEV_UMAD,
	CDEV_ISSM
};

/* The size of a buffer for the name of a device, such as "umad0". */
#define CDEV_NAME_LEN 32

/*
 * Finds the device of a port. If it is missing, asks the kernel to load ib_umad. Returns 0 and
 * the path below /dev; -EINVAL if the port has no device; -ENODEV if there is no such CA; or
 * the error of reading sysfs.
 */
int cdev_find(enum cdev_kind kind, const struct port_choice *port, char path[SYSFS_PATH_MAX]);

/* Whether a name is "umad" or "issm" and a number. */
bool cdev_name_is(enum cdev_kind kind, const char *name);

/* Reads the port of the device from sysfs. Returns 0 or a negative errno, such as -EIO. */
int cdev_owner(const char *name, struct port_choice *port);

/* The version of the kernel's user_mad ABI, or a negative errno, such as -ENOENT. */
int cdev_abi_version(void);

#endif
