/* SPDX-License-Identifier: BSD-2-Clause */

/* Hides the machine's InfiniBand devices from a program. */
#include "namespace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mounts.h"

/* The folders to cover, in order: a device comes before the folder of its class, because its
 * path leads through that folder. */
struct folders {
	char **paths;
	size_t count;
	size_t devices;
	int error; /* 0 or -ENOMEM */
};

/* --- the folders of the devices --------------------------------------------------- */

static void __attribute__((format(printf, 2, 3)))
add(struct folders *folders, const char *format, ...)
{
	size_t bytes = (folders->count + 1) * sizeof(*folders->paths);
	char **paths = realloc(folders->paths, bytes);
	va_list arguments;

	if (paths)
		folders->paths = paths;
	va_start(arguments, format);
	if (!paths || vasprintf(&paths[folders->count], format, arguments) < 0)
		folders->error = -ENOMEM;
	else
		folders->count++;
	va_end(arguments);
}

/* A raw system call: if umad-sim itself runs on a fabric, the C library's calls are those of
 * the preloaded library and show that fabric's devices. */
static DIR *open_folder(const char *path)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !folder)
		close(fd);
	return folder;
}

/* rdma_cm belongs to a kernel module and exists without any device. */
static bool is_device_node(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && strcmp(entry->d_name, "rdma_cm") != 0;
}

/* A class's regular files belong to the module and exist without any device. */
static bool is_class_device(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && entry->d_type != DT_REG;
}

/* A folder that cannot be read counts as one with devices. */
static void add_folder(struct folders *folders, const char *path,
		       bool (*is_device)(const struct dirent *entry), bool with_entries)
{
	DIR *folder = open_folder(path);
	struct dirent *entry;

	if (!folder && (errno == ENOENT || errno == ENOTDIR))
		return;
	folders->devices += !folder;
	while (folder && (entry = readdir(folder))) {
		if (!is_device(entry))
			continue;
		folders->devices++;
		if (with_entries)
			add(folders, "%s/%s", path, entry->d_name);
	}
	if (folder)
		closedir(folder);
	add(folders, "%s", path);
}

static void add_nodes(struct folders *folders, const char *dev)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/infiniband", dev);
	add_folder(folders, path, is_device_node, false);
}

static void add_classes(struct folders *folders, const char *sysfs)
{
	char path[2 * PATH_MAX];
	struct dirent *entry;
	DIR *classes;

	snprintf(path, sizeof(path), "%s/class", sysfs);
	classes = open_folder(path);
	while (classes && (entry = readdir(classes))) {
		if (strncmp(entry->d_name, "infiniband", strlen("infiniband")) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/class/%s", sysfs, entry->d_name);
		add_folder(folders, path, is_class_device, true);
	}
	if (classes)
		closedir(classes);
}

/* /sys and /dev may be mounted in several places, for example below a chroot(2) folder. */
static void add_other_mounts(struct folders *folders, const struct mounts *mounts)
{
	struct stat sys, dev;

	if (stat("/sys", &sys) || stat("/dev", &dev))
		sys.st_dev = dev.st_dev = 0;
	for (size_t i = 0; i < mounts->count; i++) {
		const struct mount_entry *mount = &mounts->entries[i];

		if (strcmp(mount->root, "/") != 0)
			continue;
		if ((mount->sysfs || mount->device == sys.st_dev) &&
		    strcmp(mount->place, "/sys") != 0)
			add_classes(folders, mount->place);
		if (mount->device == dev.st_dev && strcmp(mount->place, "/dev") != 0)
			add_nodes(folders, mount->place);
	}
}

/* Resolves the links of a path; with raw system calls, as in open_folder(). */
static bool resolve(const char *path, char *resolved)
{
	char link_path[64];
	long length;
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return false;
	snprintf(link_path, sizeof(link_path), "/proc/self/fd/%d", fd);
	length = syscall(SYS_readlinkat, AT_FDCWD, link_path, resolved, PATH_MAX - 1);
	close(fd);
	if (length > 0)
		resolved[length] = '\0';
	return length > 0;
}

/* Parts of /sys and /dev may be mounted elsewhere: a device's folder, one above it, one of its
 * files. */
static void add_parts(struct folders *folders, const struct mounts *mounts)
{
	char resolved[PATH_MAX], inner[PATH_MAX], shown[PATH_MAX];
	size_t count = folders->count;

	for (size_t i = 0; i < count; i++) {
		const struct mount_entry *own = resolve(folders->paths[i], resolved)
							? mounts_find(mounts, resolved, inner)
							: NULL;

		for (size_t j = 0; own && j < mounts->count; j++) {
			const struct mount_entry *other = &mounts->entries[j];

			if (other != own && strcmp(other->root, "/") != 0 &&
			    mounts_are_alike(own, other) && mount_shows(other, inner, shown))
				add(folders, "%s", shown);
		}
	}
}

static void find_folders(struct folders *folders)
{
	struct mounts mounts;

	*folders = (struct folders){0};
	if (mounts_read(&mounts))
		folders->error = -ENOMEM;
	add_classes(folders, "/sys");
	add_nodes(folders, "/dev");
	add_other_mounts(folders, &mounts);
	add_parts(folders, &mounts);
	mounts_free(&mounts);
}

static void forget_folders(struct folders *folders)
{
	for (size_t i = 0; i < folders->count; i++)
		free(folders->paths[i]);
	free(folders->paths);
}

bool namespace_is_needed(void)
{
	struct folders folders;
	bool needed;

	find_folders(&folders);
	needed = folders.devices || folders.error;
	forget_folders(&folders);
	return needed;
}

/* --- the namespaces --------------------------------------------------------------- */

static int failed(char why[NAMESPACE_TEXT], const char *what)
{
	int error = -errno;

	snprintf(why, NAMESPACE_TEXT, "%.200s: %s", what, strerror(errno));
	return error;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : write(fd, text, strlen(text));
	int error = errno;

	if (fd >= 0)
		close(fd);
	errno = error;
	return length < 0 ? -1 : 0;
}

/* User and group keep their numbers: without privileges, the kernel permits nothing else. */
static int map_ids(uid_t user, gid_t group, char why[NAMESPACE_TEXT])
{
	char users[64], groups[64];

	snprintf(users, sizeof(users), "%u %u 1", user, user);
	snprintf(groups, sizeof(groups), "%u %u 1", group, group);
	if (write_file("/proc/self/setgroups", "deny") && errno != ENOENT)
		return failed(why, "/proc/self/setgroups");
	if (write_file("/proc/self/uid_map", users))
		return failed(why, "/proc/self/uid_map");
	if (write_file("/proc/self/gid_map", groups))
		return failed(why, "/proc/self/gid_map");
	return 0;
}

static int enter_namespaces(char why[NAMESPACE_TEXT])
{
	uid_t user = geteuid();
	gid_t group = getegid();
	int error;

	if (unshare(CLONE_NEWNS)) { /* without CAP_SYS_ADMIN */
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
			return failed(why, "a mount namespace");
		error = map_ids(user, group, why);
		if (error)
			return error;
	}
	/* the machine keeps its devices, and mounts that it makes later still show up here */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		return failed(why, "the mount namespace");
	return 0;
}

/* Covers a folder with an empty one, a file with /dev/null. */
static bool cover_one(const char *path)
{
	if (mount("umad-sim", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "mode=755") == 0)
		return true;
	return errno == ENOTDIR && mount("/dev/null", path, NULL, MS_BIND, NULL) == 0;
}

static int cover(const struct folders *folders, char why[NAMESPACE_TEXT])
{
	for (size_t i = 0; i < folders->count; i++)
		if (!cover_one(folders->paths[i]) &&
		    errno != ENOENT) /* device removed meanwhile */
			return failed(why, folders->paths[i]);
	return 0;
}

/*
 * With these capabilities a program could undo this: unmount a folder, enter another process's
 * namespace or reach it through /proc/PID/root, create a device node, or open a covered folder
 * by its handle. Without CAP_SYS_PTRACE, the kernel denies /proc/PID/root of a process that has
 * more capabilities than the program.
 */
static const unsigned int removed_capabilities[] = {
	CAP_SYS_ADMIN,
	CAP_SYS_PTRACE,
	CAP_MKNOD,
	CAP_DAC_READ_SEARCH,
};

/* A program gets no capability that is neither in the bounding nor in the inheritable set. */
static int remove_capabilities(char why[NAMESPACE_TEXT])
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, sets))
		return failed(why, "capget");
	for (size_t i = 0; i < sizeof(removed_capabilities) / sizeof(unsigned int); i++) {
		unsigned int capability = removed_capabilities[i];

		sets[CAP_TO_INDEX(capability)].inheritable &= ~CAP_TO_MASK(capability);
		if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0))
			return failed(why, "capabilities");
	}
	return syscall(SYS_capset, &header, sets) ? failed(why, "capset") : 0;
}

/* --- hiding --------------------------------------------------------------------- */

static int hide(const struct folders *folders, char why[NAMESPACE_TEXT])
{
	char directory[PATH_MAX];
	int error;

	errno = 0;
	if (syscall(SYS_getcwd, directory, sizeof(directory)) < 0 || directory[0] != '/') {
		errno = errno ? errno : ENOENT; /* it is in another mount namespace */
		return failed(why, "the working directory");
	}
	error = enter_namespaces(why);
	if (!error)
		error = cover(folders, why);
	if (!error)
		error = remove_capabilities(why);
	/* the working directory may now be below a covered folder */
	if (!error && syscall(SYS_chdir, directory))
		error = failed(why, directory);
	return error;
}

int namespace_enter(char why[NAMESPACE_TEXT])
{
	struct folders folders;
	int error;

	find_folders(&folders);
	errno = ENOMEM;
	error = folders.error ? failed(why, "the list of devices") : hide(&folders, why);
	forget_folders(&folders);
	errno = EBUSY;
	if (!error && namespace_is_needed())
		error = failed(why, "a device is still there");
	return error;
}
