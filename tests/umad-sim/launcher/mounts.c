/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads /proc/self/mountinfo (proc_pid_mountinfo(5)). */
#include "mounts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* \040 is a space. */
static void decode(char *path)
{
	unsigned int byte;
	char *to = path;

	while (*path) {
		if (sscanf(path, "\\%3o", &byte) == 1) {
			*to++ = (char)byte;
			path += 4;
		} else {
			*to++ = *path++;
		}
	}
	*to = '\0';
}

static int add(struct mounts *mounts, const char *line)
{
	struct mount_entry *more =
		realloc(mounts->entries, (mounts->count + 1) * sizeof(*more));
	struct mount_entry *entry;
	const char *type = strstr(line, " - ");
	unsigned int major, minor;
	char *root = NULL, *place = NULL;

	if (!more)
		return -ENOMEM;
	mounts->entries = more;
	if (sscanf(line, "%*u %*u %u:%u %ms %ms", &major, &minor, &root, &place) != 4) {
		free(root);
		return 0;
	}
	decode(root);
	decode(place);
	entry = &mounts->entries[mounts->count++];
	*entry = (struct mount_entry){
		.device = makedev(major, minor),
		.sysfs = type && strncmp(type, " - sysfs ", strlen(" - sysfs ")) == 0,
		.root = root,
		.place = place,
	};
	return 0;
}

int mounts_read(struct mounts *mounts)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t room = 0;
	int error = 0;

	*mounts = (struct mounts){0};
	while (file && !error && getline(&line, &room, file) >= 0)
		error = add(mounts, line);
	free(line);
	if (file)
		fclose(file);
	return error;
}

void mounts_free(struct mounts *mounts)
{
	for (size_t i = 0; i < mounts->count; i++) {
		free(mounts->entries[i].root);
		free(mounts->entries[i].place);
	}
	free(mounts->entries);
}

bool mounts_are_alike(const struct mount_entry *a, const struct mount_entry *b)
{
	return a->device == b->device || (a->sysfs && b->sysfs);
}

/*
 * The part of a path below a folder, "" for the folder itself; NULL if the path is elsewhere.
 */
static const char *below(const char *path, const char *folder)
{
	size_t length = strcmp(folder, "/") == 0 ? 0 : strlen(folder);

	if (strncmp(path, folder, length) != 0 || (path[length] && path[length] != '/'))
		return NULL;
	return path + length;
}

const struct mount_entry *mounts_find(const struct mounts *mounts, const char *path,
				      char *inner)
{
	const struct mount_entry *found = NULL;

	for (size_t i = 0; i < mounts->count; i++) {
		const struct mount_entry *each = &mounts->entries[i];

		if (below(path, each->place) &&
		    (!found || strlen(each->place) >= strlen(found->place)))
			found = each;
	}
	if (found)
		snprintf(inner, PATH_MAX, "%s%s",
			 strcmp(found->root, "/") == 0 ? "" : found->root,
			 below(path, found->place));
	return found;
}

bool mount_shows(const struct mount_entry *mount, const char *inner, char *path)
{
	const char *rest = below(inner, mount->root);
	struct stat status;

	if (!rest && !below(mount->root, inner))
		return false;
	snprintf(path, PATH_MAX, "%s%s", mount->place, rest ? rest : "");
	return stat(path, &status) == 0 && status.st_dev == mount->device;
}
