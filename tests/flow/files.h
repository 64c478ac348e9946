/* SPDX-License-Identifier: BSD-2-Clause */

/* The calls of libibumad/sys.h for the files of the judge's machine. */
#ifndef TESTS_FLOW_FILES_H
#define TESTS_FLOW_FILES_H

#include "sys.h"

/* Descriptors of files: different from handles and from descriptors of the process. */
#define FILES_FIRST_FD 100000

int files_open(const char *path);
int files_close(int fd);
ssize_t files_read(int fd, void *buf, size_t size);
int files_list(const char *dir, sys_visit_fn *visit, void *arg);

#endif
