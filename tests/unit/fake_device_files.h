/* SPDX-License-Identifier: BSD-2-Clause */

/* The sysfs of the fake device's machine: a table of files. Its lock is the caller's. */
#ifndef TESTS_UNIT_FAKE_DEVICE_FILES_H
#define TESTS_UNIT_FAKE_DEVICE_FILES_H

#include "sys.h"

/* One device, one port, its umad device. */
void files_setup(void);
/* How many are open. */
int files_open(void);

/* The seam's calls for files; a negative errno where they fail. */
int files_open_file(const char *path);
int files_close_file(int fd);
ssize_t files_read_file(int fd, void *buf, size_t size);
/* Hands each name in a folder over once. */
int files_list(const char *dir, sys_visit_fn *visit, void *arg);

#endif
