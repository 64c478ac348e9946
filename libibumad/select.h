/* SPDX-License-Identifier: BSD-2-Clause */

/* Which port is meant when the caller leaves it open. */
#ifndef LIBIBUMAD_SELECT_H
#define LIBIBUMAD_SELECT_H

#include <infiniband/umad.h>
#include <stdbool.h>

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

#endif
