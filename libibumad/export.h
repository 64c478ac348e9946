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

#endif
