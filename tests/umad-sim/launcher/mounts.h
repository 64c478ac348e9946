/* SPDX-License-Identifier: BSD-2-Clause */

/* The mounts of this process's mount namespace. */
#ifndef UMAD_SIM_MOUNTS_H
#define UMAD_SIM_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct mount_entry {
	dev_t device; /* of the file system */
	bool sysfs;   /* sysfs: the same folders in every network namespace */
	char *root;   /* the part of the file system that is mounted; "/": all of it */
	char *place;
};

struct mounts {
	struct mount_entry *entries; /* a later mount may cover an earlier one */
	size_t count;
};

/* Reads /proc/self/mountinfo; without the file there are no mounts. Returns 0 or -ENOMEM; call
 * mounts_free() in either case. */
int mounts_read(struct mounts *mounts);
void mounts_free(struct mounts *mounts);

/* Whether both mounts show parts of the same file system. */
bool mounts_are_alike(const struct mount_entry *a, const struct mount_entry *b);

/* Finds the mount of an absolute path without links, and stores the path from the root of its
 * file system (PATH_MAX bytes); NULL if there is none. */
const struct mount_entry *mounts_find(const struct mounts *mounts, const char *path,
				      char *inner);

/* Stores the path (PATH_MAX bytes) where a mount shows a file or folder of its file system, or
 * a part of it. False if it does not, or if another mount covers it. */
bool mount_shows(const struct mount_entry *mount, const char *inner, char *path);

#endif
