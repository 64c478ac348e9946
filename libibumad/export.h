/* SPDX-License-Identifier: BSD-2-Clause */

/* What every public call needs: to be visible, and to leave errno as it should. */
#ifndef LIBIBUMAD_EXPORT_H
#define LIBIBUMAD_EXPORT_H

#include <errno.h>

#define EXPORT __attribute__((visibility("default")))

/* Returns a negative errno from a public call, with errno set to it. */
static inline int fail(int err)
{
	errno = -err;
	return err;
}

/* Returns -EIO, with errno telling the cause, a negative errno. */
static inline int fail_io(int cause)
{
	errno = -cause;
	return -EIO;
}

/*
 * Returns what looking through sysfs gave: -EIO with the cause in errno, unless it is an error
 * that means something to the caller.
 */
static inline int fail_lookup(int err)
{
	return err == -ENODEV || err == -ENOMEM || err == -EINVAL ? fail(err) : fail_io(err);
}

#endif
