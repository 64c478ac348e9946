/* SPDX-License-Identifier: BSD-2-Clause */

/* Devices, the choice of a port, and a port's umad and issm devices. */
#ifndef LIBIBUMAD_DEVICES_H
#define LIBIBUMAD_DEVICES_H

#include "sysfs.h"

#include <infiniband/umad.h>
#include <stdbool.h>

typedef char ca_name_t[UMAD_CA_NAME_LEN];

/*
 * Lists the names in SYS_INFINIBAND, in directory order, including devices other than
 * InfiniBand (see node_type()). Returns their number and an array to free, or a negative errno.
 */
int devices_list(ca_name_t **names);

/* The same, sorted. */
int devices_sorted(ca_name_t **names);

/* --- ca.c ------------------------------------------------------------------------- */

/*
 * Stores a digest, never 0, of what umad_get_port() reads. Different values collide with a
 * probability of 2^-63. Returns 0 or a negative errno.
 */
int port_digest(const char *ca_name, int portnum, uint64_t *digest);

/*
 * Reads what umad_get_port() reads, but only the first P_Key, which must exist. Returns 0 or a
 * negative errno.
 */
int port_check(const char *ca_name, int portnum, umad_port_t *port);

/*
 * Returns 0 if umad_get_ca() and each rate can be read, -EOVERFLOW if only the number of ports
 * is too high for umad_get_ca(), or another negative errno.
 */
int ca_check(const char *ca_name);

bool is_infiniband(const char *link_layer);

/* --- select.c: the port, if the caller does not name it --------------------------- */

struct port_choice {
	char ca_name[UMAD_CA_NAME_LEN];
	int portnum;
};

/*
 * Chooses a port as umad_open_port() does; with smi_only, never one with IsSMDisabled. Does not
 * read sysfs if the caller gives name and number. Returns 0, -ENODEV (none usable), -EINVAL
 * (portnum is negative), -ENOMEM or an error of sysfs.
 */
int select_port(const char *ca_name, int portnum, bool smi_only, struct port_choice *choice);

/*
 * Chooses a device; NULL: the default. Does not read sysfs for a name. Returns 0, -ENODEV (none
 * usable, or not a name), -ENOMEM or an error of sysfs.
 */
int select_ca(const char *ca_name, struct port_choice *choice);

/*
 * Logs the candidates and the result ("err" or "choice"), if the library chose and messages are
 * wanted.
 */
void choice_log(const char *ca_name, int portnum, int err, const struct port_choice *choice);

/* --- cdev.c: the umad or issm device of a port ------------------------------------ */

enum cdev_kind {
	CDEV_UMAD,
	CDEV_ISSM
};

/* Buffer size for a name such as "umad0". */
#define CDEV_NAME_LEN 32

/*
 * Finds a port's device below /dev, loading ib_umad if necessary. Returns 0, -EINVAL if the
 * port has none, -ENODEV if there is no such CA, or an error of sysfs.
 */
int cdev_find(enum cdev_kind kind, const struct port_choice *port, char path[SYSFS_PATH_MAX]);

/* Whether a name is "umad" or "issm" with a number. */
bool cdev_name_is(enum cdev_kind kind, const char *name);

/* Reads a device's port. Returns 0 or a negative errno. */
int cdev_owner(const char *name, struct port_choice *port);

/* Returns the kernel's user_mad ABI version, or a negative errno. */
int cdev_abi_version(void);

#endif
