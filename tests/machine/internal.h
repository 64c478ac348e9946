/* SPDX-License-Identifier: BSD-2-Clause */

/* What fabric.c and handles.c share. */
#ifndef TESTS_MACHINE_INTERNAL_H
#define TESTS_MACHINE_INTERNAL_H

#include "machine.h"
#include "umad_device.h"

/* With the lock: opens and closes the program's umad devices on this fabric. */
void handles_begin(void);
/* Closes what is open, and returns how many handles that were. */
int handles_end(void);
short handles_revents(int fd);

/*
 * With the lock: the host port of "umadN" or "issmN" among the devices that the program sees;
 * NULL: no such device.
 */
struct host_port *fabric_device(const char *name);
struct fabric *fabric_of_machine(void);
/* The real path of a file or folder of the program's sysfs; NULL: it is none of sysfs. */
const char *fabric_path(const char *path, char real[512]);

#endif
