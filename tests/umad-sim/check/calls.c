/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * calls FOLDER: looks for the devices of the machine that the script "namespace" makes, with C
 * library calls that the preloaded library does not replace, or that a program makes past it.
 * Prints a line beginning with "machine:" for each way that leads to a device, and finally
 * "looked".
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <wordexp.h>

#define CLASS  "/sys/class/infiniband"
#define FOLDER "/dev/infiniband"
#define NODE   FOLDER "/umad9"

static void seen(const char *way, bool is_seen)
{
	if (is_seen)
		printf("machine: %s\n", way);
}

static bool is_opened(int fd)
{
	return fd >= 0 && !close(fd);
}

static void look_by_symbol(const char *way, void *symbol)
{
	int (*call)(const char *path, int flags, ...);

	*(void **)&call = symbol;
	if (!call)
		printf("not tested: %s\n", way);
	else
		seen(way, is_opened(call(NODE, O_RDONLY)));
}

/* A symbol's version is that of the C library's first release for the processor. */
static void *versioned(void *library, const char *name)
{
	static const char *const versions[] = {"GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.0",
					       "GLIBC_2.4", "GLIBC_2.27"};
	void *symbol = NULL;

	for (size_t i = 0; library && !symbol && i < sizeof(versions) / sizeof(*versions); i++)
		symbol = dlvsym(library, name, versions[i]);
	return symbol;
}

/* The C library's own open(), as Python's ctypes finds it. */
static void look_by_symbols(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY);
	void *another = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_LAZY);

	look_by_symbol("dlsym", libc ? dlsym(libc, "open") : NULL);
	look_by_symbol("dlsym with RTLD_NEXT", dlsym(RTLD_NEXT, "open"));
	look_by_symbol("dlvsym", versioned(libc, "open"));
	look_by_symbol("dlmopen", another ? dlsym(another, "open") : NULL);
}

static int found;

static int count_deep(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	(void)status, (void)kind, (void)where;
	found += strstr(path, "umad9") || strstr(path, "mlx5_9");
	return 0;
}

static int count(const char *path, const struct stat *status, int kind)
{
	return count_deep(path, status, kind, NULL);
}

static void look_by_walks(void)
{
	char *roots[] = {(char *)(size_t)CLASS, (char *)(size_t)FOLDER, NULL};
	FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	struct dirent **names = NULL;
	FTSENT *entry;
	int names_found;

	while (walk && (entry = fts_read(walk)))
		count(entry->fts_path, NULL, 0);
	if (walk)
		fts_close(walk);
	seen("fts_open", found);
	found = 0;
	ftw(FOLDER, count, 8);
	seen("ftw", found);
	found = 0;
	nftw(CLASS, count_deep, 8, FTW_PHYS);
	seen("nftw", found);
	names_found = scandirat(AT_FDCWD, FOLDER, &names, NULL, NULL);
	seen("scandirat", names_found > 2);
	for (int i = 0; i < names_found; i++)
		free(names[i]);
	free(names);
}

static void look_by_paths(const char *folder)
{
	char link[4096], names[256];
	struct statvfs system;
	struct stat status;
	wordexp_t words;
	int watch = inotify_init(), open_folder = open("/dev", O_RDONLY);

	seen("wordexp", !wordexp(FOLDER "/umad[0-9]", &words, 0) && words.we_wordc &&
				!strcmp(words.we_wordv[0], NODE));
	seen("statvfs", !statvfs(NODE, &system));
	seen("pathconf", pathconf(NODE, _PC_NAME_MAX) >= 0);
	seen("listxattr", listxattr(NODE, names, sizeof(names)) >= 0);
	seen("inotify_add_watch", inotify_add_watch(watch, NODE, IN_OPEN) >= 0);
	seen("openat", is_opened(openat(open_folder, "infiniband/umad9", O_RDONLY)));
	seen("fstatat", !fstatat(open_folder, "infiniband/umad9", &status, 0));
	snprintf(link, sizeof(link), "%s/link-sys/class/infiniband/mlx5_9/node_guid", folder);
	seen("a symbolic link to /sys", is_opened(open(link, O_RDONLY)));
	seen("/proc/self/root", is_opened(open("/proc/self/root" NODE, O_RDONLY)));
	seen("/proc/self/cwd",
	     !chdir("/dev") && is_opened(open("/proc/self/cwd/infiniband/umad9", O_RDONLY)));
	seen("truncate", !truncate(NODE, 0));
	seen("chmod", !chmod(NODE, 0666));
	seen("rename", !rename(NODE, FOLDER "/umad8") && !rename(FOLDER "/umad8", NODE));
	close(watch);
	close(open_folder);
}

static void look_by_spawn(void)
{
	char *arguments[] = {(char *)(size_t) "true", NULL};
	posix_spawn_file_actions_t actions;
	pid_t child;
	int status;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 9, NODE, O_RDONLY, 0);
	if (posix_spawnp(&child, "true", &actions, NULL, arguments, environ))
		return; /* the file could not be opened */
	seen("posix_spawn_file_actions_addopen",
	     waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	look_by_symbols();
	look_by_walks();
	look_by_paths(argv[1]);
	look_by_spawn();
	puts("looked");
	return 0;
}
