/* SPDX-License-Identifier: BSD-2-Clause */

/* The folders of fabrics. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "remove_tree.h"

/* Returns the user's own folder for all fabrics; refuses one that another user made. */
static int base_folder(char base[FOLDER_BYTES], char *why)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat status;

	/* the XDG Base Directory Specification forbids a relative path; LD_PRELOAD cannot have
	 * the characters below */
	if (!runtime || runtime[0] != '/' || strpbrk(runtime, " :$") || strlen(runtime) > 40 ||
	    access(runtime, W_OK))
		runtime = "/tmp";
	snprintf(base, FOLDER_BYTES, "%s/umad-sim-%u", runtime, getuid());
	if (mkdir(base, 0700) && errno != EEXIST) {
		snprintf(why, 256, "%s: %s", base, strerror(errno));
		return -errno;
	}
	if (lstat(base, &status) || !S_ISDIR(status.st_mode) || status.st_uid != getuid() ||
	    status.st_mode & 077) {
		snprintf(why, 256, "%s is not a folder of yours with mode 0700: remove it",
			 base);
		return -EPERM;
	}
	return 0;
}

static void name_lock(const char *folder, char path[FOLDER_BYTES + 8])
{
	snprintf(path, FOLDER_BYTES + 8, "%s/lock", folder);
}

void folder_remove(const char *folder)
{
	char path[FOLDER_BYTES + 8];

	/* enough for a fabric that did not start, and needs no descriptor */
	name_lock(folder, path);
	unlink(path);
	if (rmdir(folder))
		remove_tree(folder);
}

static int open_lock(const char *folder, int flags)
{
	char path[FOLDER_BYTES + 8];

	name_lock(folder, path);
	return open(path, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static int is_abandoned(const char *folder)
{
	int lock = open_lock(folder, 0);
	int abandoned;

	/* the caller holds the base folder's lock, so no other process makes a folder */
	if (lock < 0)
		return errno == ENOENT;
	abandoned = flock(lock, LOCK_EX | LOCK_NB) == 0;
	close(lock);
	return abandoned;
}

static void clear_abandoned(const char *base)
{
	DIR *folders = opendir(base);
	struct dirent *entry;
	char path[FOLDER_BYTES];

	while (folders && (entry = readdir(folders))) {
		if (entry->d_name[0] == '.' || snprintf(path, sizeof(path), "%s/%s", base,
							entry->d_name) >= (int)sizeof(path))
			continue;
		if (is_abandoned(path))
			folder_remove(path);
	}
	if (folders)
		closedir(folders);
}

/*
 * Locks the base folder. A process must hold this lock while it tests the locks of others, or
 * makes a folder and its lock: otherwise it could take a new folder for an abandoned one, or
 * hold a lock just when the owner wants it. Returns the descriptor, or a negative errno.
 */
static int lock_base(const char *base, char *why)
{
	char path[FOLDER_BYTES + 8];
	int error;
	int fd;

	snprintf(path, sizeof(path), "%s/.lock", base);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	while (fd >= 0 && flock(fd, LOCK_EX))
		if (errno != EINTR)
			break;
	if (fd >= 0)
		return fd;
	error = -errno;
	snprintf(why, 256, "%s: %s", path, strerror(-error));
	return error;
}

/* A fabric's name becomes part of a path, so it must be short. */
static int name_folder(const char *base, const char *name, char folder[FOLDER_BYTES], char *why)
{
	if (name[0] && name[0] != '.' && !strchr(name, '/') &&
	    snprintf(folder, FOLDER_BYTES, "%s/%s", base, name) < FOLDER_BYTES)
		return 0;
	snprintf(why, 256,
		 "invalid fabric name \"%.100s\": too long, a \"/\" or a leading \".\"", name);
	return -EINVAL;
}

static int make_folder(const char *name, const char *folder, char *why)
{
	int lock;
	int error;

	if (mkdir(folder, 0700)) {
		error = errno == EEXIST ? -EADDRINUSE : -errno;
		if (error == -EADDRINUSE)
			snprintf(why, 256, "a fabric \"%.100s\" is already running", name);
		else
			snprintf(why, 256, "%s: %s", folder, strerror(-error));
		return error;
	}
	lock = open_lock(folder, O_CREAT);
	if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
		return lock;
	error = -errno;
	snprintf(why, 256, "%s/lock: %s", folder, strerror(-error));
	if (lock >= 0)
		close(lock);
	folder_remove(folder);
	return error;
}

int folder_create(const char *name, char folder[FOLDER_BYTES], char *why)
{
	char base[FOLDER_BYTES];
	int error = base_folder(base, why);
	int base_lock;
	int lock;

	if (error || (error = name_folder(base, name, folder, why)))
		return error;
	base_lock = lock_base(base, why);
	if (base_lock < 0)
		return base_lock;
	clear_abandoned(base);
	lock = make_folder(name, folder, why);
	close(base_lock);
	return lock;
}

/* Finds an unnamed fabric by its process ID, which its folder's name begins with. */
static void find_by_process(const char *base, const char *id, char folder[FOLDER_BYTES])
{
	size_t length = strlen(id);
	DIR *folders = opendir(base);
	struct dirent *entry;

	while (folders && (entry = readdir(folders)))
		if (!strncmp(entry->d_name, id, length) && entry->d_name[length] == '-' &&
		    snprintf(folder, FOLDER_BYTES, "%s/%s", base, entry->d_name) <
			    FOLDER_BYTES &&
		    !is_abandoned(folder))
			break;
	if (folders)
		closedir(folders);
}

int folder_find(const char *name, char folder[FOLDER_BYTES], char *why)
{
	char base[FOLDER_BYTES];
	int error = base_folder(base, why);
	int base_lock;

	if (error || (error = name_folder(base, name, folder, why)))
		return error;
	base_lock = lock_base(base, why);
	if (base_lock < 0)
		return base_lock;
	if (access(folder, X_OK) && strspn(name, "0123456789") == strlen(name))
		find_by_process(base, name, folder);
	if (access(folder, X_OK) || is_abandoned(folder)) {
		snprintf(why, 256, "no fabric \"%.100s\" is running", name);
		error = -ENOENT;
	}
	close(base_lock);
	return error;
}
