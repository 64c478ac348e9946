/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Bounded, checked reading of one attribute below a directory. All return 0 or a negative
 * errno: -EIO for a content that is not what it should be.
 */
#ifndef LIBIBUMAD_SYSFS_H
#define LIBIBUMAD_SYSFS_H

#include <infiniband/umad.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for the longest path that is read. */
#define SYSFS_PATH_MAX 256

/* A path to a directory or attribute; -ENAMETOOLONG. */
__attribute__((format(printf, 2, 3))) int sysfs_path(char path[SYSFS_PATH_MAX],
						     const char *format, ...);

/*
 * Whether an error is a shortage of this process or machine (no descriptor, no memory, a
 * signal), which says nothing about the device. A public call then fails with this error.
 */
bool sysfs_shortage(int err);

/*
 * Whether an error is a fact about the device: the attribute is not there, or has no usable
 * value. A shortage and a lack of rights are not.
 */
bool sysfs_absent(int err);

/* The first line, cut to size - 1 bytes. Returns its whole length, as strlcpy does. */
int sysfs_read_text(const char *dir, const char *name, char *text, size_t size);

/* The number that the attribute begins with, in C's notation: "4: ACTIVE" is 4. */
int sysfs_read_uint(const char *dir, const char *name, unsigned *value);

/* Four groups of four hex digits. */
int sysfs_read_guid(const char *dir, const char *name, __be64 *guid);

/* Eight of them. */
int sysfs_read_gid(const char *dir, const char *name, union umad_gid *gid);

#endif
