/* SPDX-License-Identifier: BSD-2-Clause */

/* Which devices there are. */
#ifndef LIBIBUMAD_DEVICES_H
#define LIBIBUMAD_DEVICES_H

#include <infiniband/umad.h>

typedef char ca_name_t[UMAD_CA_NAME_LEN];

/*
 * The names below SYS_INFINIBAND, sorted; not all need be InfiniBand devices (node_type()
 * tells). Returns how many, and an array to be freed; a negative errno.
 */
int devices_list(ca_name_t **names);

#endif
