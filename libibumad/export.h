/* SPDX-License-Identifier: BSD-2-Clause */

/* The visibility of public calls, and their values of errno. */
#ifndef LIBIBUMAD_EXPORT_H
#define LIBIBUMAD_EXPORT_H

#include <errno.h>

#define EXPORT __attribute__((visibility("default")))

/* Returns a negative errno from a public call, with errno set to it. */
static inline int fail_errno(int err)
{
	errno = -err;
	return err;
}

/* Returns -EIO, and sets errno to the cause, which is a negative errno. */
static inline int fail_io(int cause)
{
	errno = -cause;
	return -EIO;
}

/*
 * Returns the error of a lookup in sysfs: -EIO with the cause in errno, unless callers
 * distinguish the error.
 */
static inline int fail_lookup(int err)
{
	return err == -ENODEV || err == -ENOMEM || err == -EINVAL ? fail_errno(err)
								  : fail_io(err);
}

#endif
