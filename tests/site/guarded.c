/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * guarded LIBRARY PROGRAM [ARGUMENT ...]: runs a program with the guard preloaded. Without the
 * guard the program finds no umad device: an empty folder covers /dev/infiniband in a mount
 * namespace, and the guard uncovers the folder from inside the process (guard.c). Appends the
 * line "run PID" to the file SITE_SENT.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guarded.h"

#define CANNOT_GUARD 3

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || dprintf(fd, "%s", text) < 0)
		err(CANNOT_GUARD, "%s", path);
	close(fd);
}

static void map_to_root(uid_t user, gid_t group)
{
	char users[32], groups[32];

	snprintf(users, sizeof(users), "0 %u 1", user);
	snprintf(groups, sizeof(groups), "0 %u 1", group);
	write_file("/proc/self/setgroups", "deny");
	write_file("/proc/self/uid_map", users);
	write_file("/proc/self/gid_map", groups);
}

/* In a user namespace, root has the right to mount, and the guard the right to unmount. */
static void enter_namespace(void)
{
	uid_t user = geteuid();
	gid_t group = getegid();

	if (unshare(CLONE_NEWNS)) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
			err(CANNOT_GUARD, "the devices cannot be guarded: a mount namespace");
		map_to_root(user, group);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		err(CANNOT_GUARD, "the devices cannot be guarded: the mount namespace");
}

/* Whether the kernel has the folder. The C library's access() would be umad-sim's, if this
 * program runs on it. */
static bool has_devices(void)
{
	return !syscall(SYS_faccessat, AT_FDCWD, GUARDED_FOLDER, F_OK) || errno != ENOENT;
}

static void cover_devices(void)
{
	if (!has_devices())
		return;
	enter_namespace();
	if (mount("guarded", GUARDED_FOLDER, "tmpfs", MS_RDONLY, "mode=755"))
		err(CANNOT_GUARD, GUARDED_FOLDER);
	setenv(GUARDED_COVERED, "1", 1);
}

/* In LD_PRELOAD a blank or a colon ends a path (ld.so(8)). The path of an open file has none.
 */
static void preload(const char *library)
{
	const char *others = getenv("LD_PRELOAD");
	int fd = open(library, O_RDONLY);
	char *list;

	if (fd < 0)
		err(CANNOT_GUARD, "%s", library);
	if (asprintf(&list, "/proc/self/fd/%d%s%s", fd, others ? ":" : "",
		     others ? others : "") < 0 ||
	    setenv("LD_PRELOAD", list, 1))
		err(CANNOT_GUARD, "LD_PRELOAD");
	free(list);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		errx(2, "usage: guarded LIBRARY PROGRAM [ARGUMENT ...]");
	unsetenv(GUARDED_COVERED);
	cover_devices();
	preload(argv[1]);
	if (!guard_report("run %d", getpid()))
		err(CANNOT_GUARD, "SITE_SENT");
	execvp(argv[2], argv + 2);
	err(errno == ENOENT ? 127 : 126, "%s", argv[2]);
}
