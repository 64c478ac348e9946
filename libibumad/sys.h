/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The only calls that touch sysfs or a umad device. They return a negative errno if they fail.
 * Tests are linked with other functions in place of sys.c.
 */
#ifndef LIBIBUMAD_SYS_H
#define LIBIBUMAD_SYS_H

#include <stddef.h>
#include <sys/types.h>

/* A descriptor, close-on-exec. */
int sys_open(const char *path, int flags);
int sys_close(int fd);
int sys_ioctl(int fd, unsigned long request, void *arg);
ssize_t sys_read(int fd, void *buf, size_t size);
ssize_t sys_write(int fd, const void *buf, size_t size);

/* Waits until a descriptor is readable. Returns its revents, or 0 after the timeout. */
int sys_poll(int fd, int timeout_ms);
/*
 * The same for two descriptors. Returns the revents of the first one; *other_revents has those
 * of the second one.
 */
int sys_poll_both(int fd, int other, int timeout_ms, int *other_revents);

/*
 * Calls visit for each name in a directory, in no order, without "." and "..". If visit returns
 * another value than 0, the walk ends and returns this value.
 */
typedef int sys_visit_fn(const char *name, void *arg);
int sys_list(const char *dir, sys_visit_fn *visit, void *arg);

#endif
