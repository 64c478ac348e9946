/* SPDX-License-Identifier: BSD-2-Clause */

/* The mounts of this process's mount namespace. */
#ifndef UMAD_SIM_MOUNTS_H
#define UMAD_SIM_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct mount_entry {
	dev_t device; /* of the file system */
	bool sysfs;   /* sysfs has the same folders in each network namespace */
	char *root;   /* the part of the file system that is mounted; "/": all of it */
	char *place;
};

struct mounts {
	struct mount_entry *entries; /* a later one may be on top of an earlier one */
	size_t count;
};

/* Reads /proc/self/mountinfo. 0 or -ENOMEM; without the file there are no mounts. In both cases
 * mounts_free() is necessary. */
int mounts_read(struct mounts *mounts);
void mounts_free(struct mounts *mounts);

/* Whether the mounts have parts of one file system. */
bool mounts_are_alike(const struct mount_entry *a, const struct mount_entry *b);

/* The mount with a path, which is absolute and has no links, and the path from the root of its
 * file system (PATH_MAX bytes); NULL: there is none. */
const struct mount_entry *mounts_find(const struct mounts *mounts, const char *path,
				      char *inner);

/*
 * Where a mount shows a folder or a file of its file system, or a part of it, as a path
 * (PATH_MAX bytes). False: nowhere, or another mount is on top of it.
 */
bool mount_shows(const struct mount_entry *mount, const char *inner, char *path);

#endif
