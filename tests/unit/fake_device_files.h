/* SPDX-License-Identifier: BSD-2-Clause */

/* The sysfs of the fake device's machine: a table of files. The caller locks it. */
#ifndef TESTS_UNIT_FAKE_DEVICE_FILES_H
#define TESTS_UNIT_FAKE_DEVICE_FILES_H

#include "sys.h"

/* One device, one port, its umad device. */
void files_setup(void);
/* The number of open files. */
int files_open(void);

/* The seam's calls for files; they return a negative errno on failure. */
int files_open_file(const char *path);
int files_close_file(int fd);
ssize_t files_read_file(int fd, void *buf, size_t size);
/* Calls a function for each name in a folder. */
int files_list(const char *dir, sys_visit_fn *visit, void *arg);

#endif
