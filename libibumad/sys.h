/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The one seam to the kernel: everything that touches sysfs or a umad device goes through
 * these calls. They return a negative errno if they fail. Tests are linked with functions of
 * their own in place of sys.c.
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

/* Waits for a descriptor to be readable: its revents, or 0 when the time is up. */
int sys_poll(int fd, int timeout_ms);
/* The same for two descriptors: the revents of the first; the second one's in *other_revents.
 */
int sys_poll_both(int fd, int other, int timeout_ms, int *other_revents);

/*
 * Hands the names in a directory to visit, in no order, "." and ".." left out. What visit
 * returns, if not 0, ends the walk and is returned.
 */
typedef int sys_visit_fn(const char *name, void *arg);
int sys_list(const char *dir, sys_visit_fn *visit, void *arg);

#endif
