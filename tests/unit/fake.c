/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* nftw */
#endif

/* The machine: sysfs, faults. */

#include "fake_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FD 2048

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

static char root[32]; /* the folder of sysfs */
static void (*open_hook)(const char *path);
static bool (*order)(const char *name, const char *other);
static bool open_files[MAX_FD]; /* open ones of sysfs, by descriptor */
static unsigned calls, fail_in;
static int fail_error;
static bool failed;
static long allocated_before;

/* --- set-up and tear-down ------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
	(void)info;
	(void)ftw;
	return type == FTW_DP ? rmdir(path) : unlink(path);
}

static void remove_tree(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void lock(void)
{
	pthread_mutex_lock(&fake_lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&fake_lock);
}

static void watch_forks(void)
{
	pthread_atfork(lock, unlock, unlock);
}

int fake_setup(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	open_hook = NULL;
	order = NULL;
	calls = fail_in = 0;
	failed = false;
	devices_begin();
	fake_fail_malloc(0);
	allocated_before = fake_allocated();
	/*
	 * in memory: a test makes and removes many thousand files, which takes a minute on a
	 * busy disk
	 */
	strcpy(root, "/dev/shm/umad-XXXXXX");
	if (!mkdtemp(root)) {
		strcpy(root, "/tmp/umad-XXXXXX");
		if (!mkdtemp(root))
			return -1;
	}
	fake_dir("/sys/class");
	return 0;
}

int fake_teardown(void)
{
	long lost = fake_allocated() - allocated_before;
	int left;

	fake_fail_malloc(0);
	left = devices_end();
	for (int fd = 0; fd < MAX_FD; fd++)
		left += open_files[fd];
	memset(open_files, 0, sizeof(open_files));
	remove_tree(root);
	if (left)
		print_error("%d descriptors are still open\n", left);
	if (lost)
		print_error("%ld allocations were not freed\n", lost);
	return left || lost ? -1 : 0;
}

/* --- sysfs ---------------------------------------------------------------------- */

const char *fake_real_path(const char *path)
{
	static _Thread_local char real[512];

	snprintf(real, sizeof(real), "%s%s", root, path);
	return real;
}

static void make_parents(const char *path)
{
	char parent[512];

	snprintf(parent, sizeof(parent), "%s", path);
	*strrchr(parent, '/') = '\0';
	fake_dir(parent);
}

void fake_dir(const char *path)
{
	if (!mkdir(fake_real_path(path), 0755) || errno == EEXIST)
		return;
	make_parents(path);
	mkdir(fake_real_path(path), 0755);
}

void fake_file_bytes(const char *path, const void *bytes, size_t size)
{
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
	int fd = open(fake_real_path(path), flags, 0644);

	if (fd < 0) {
		make_parents(path);
		fd = open(fake_real_path(path), flags, 0644);
	}
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
}

void fake_file(const char *path, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fake_file_bytes(path, text, strlen(text));
}

void fake_link(const char *path, const char *target)
{
	make_parents(path);
	assert_int_equal(symlink(target, fake_real_path(path)), 0);
}

void fake_remove(const char *path)
{
	remove_tree(fake_real_path(path));
}

/* Files of a folder, each with its name and its text; the last name is NULL. */
static void make_files(const char *folder, const char *const (*files)[2])
{
	char path[256];

	for (; (*files)[0]; files++) {
		snprintf(path, sizeof(path), "%s/%s", folder, (*files)[0]);
		fake_file(path, "%s\n", (*files)[1]);
	}
}

void fake_ca(const char *ca_name)
{
	static const char *const files[][2] = {
		{"node_type", "1: CA"},
		{"fw_ver", "20.31.1014"},
		{"hw_rev", "0"},
		{"hca_type", "MT4123"},
		{"node_guid", "0002:c903:00a0:0b10"},
		{"sys_image_guid", "0002:c903:00a0:0b13"},
		{NULL, NULL},
	};
	char folder[128];

	snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s", ca_name);
	make_files(folder, files);
	strcat(folder, "/ports");
	fake_dir(folder);
}

void fake_port(const char *ca_name, int portnum, uint32_t guid)
{
	char folder[128], gid[64];
	const char *const files[][2] = {
		{"lid", "0x2b"},
		{"lid_mask_count", "1"},
		{"sm_lid", "0x1"},
		{"sm_sl", "3"},
		{"state", "4: ACTIVE"},
		{"phys_state", "5: LinkUp"},
		{"rate", "100 Gb/sec (4X EDR)"},
		{"cap_mask", "0x2651e848"},
		{"link_layer", "InfiniBand"},
		{"pkeys/0", "0xffff"},
		{"pkeys/1", "0x7fff"},
		{"gids/0", gid},
		{NULL, NULL},
	};

	snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s/ports/%d", ca_name, portnum);
	snprintf(gid, sizeof(gid), "fe80:0000:0000:0000:0002:c903:%04x:%04x", guid >> 16,
		 guid & 0xffff);
	make_files(folder, files);
}

void fake_umad(int number, const char *ca_name, int portnum)
{
	static const char *const kinds[] = {"umad", "issm"};
	char folder[64], name[32], port[16];
	const char *const files[][2] = {{"ibdev", ca_name}, {"port", port}, {NULL, NULL}};

	snprintf(port, sizeof(port), "%d", portnum);
	fake_file("/sys/class/infiniband_mad/abi_version", "5\n");
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%s%d", kinds[i], number);
		snprintf(folder, sizeof(folder), "/sys/class/infiniband_mad/%s", name);
		make_files(folder, files);
		fake_device(name);
	}
}

/* --- faults --------------------------------------------------------------------- */

bool fake_failed(void)
{
	return failed || fake_malloc_failed();
}

void fake_fail_call(unsigned n, int error)
{
	lock();
	fail_in = n;
	fail_error = error;
	failed = false;
	unlock();
}

unsigned fake_calls(void)
{
	return calls;
}

int begin_call(void)
{
	calls++;
	if (!fail_in || --fail_in)
		return 0;
	failed = true;
	return -fail_error;
}

void fake_before_open(void (*hook)(const char *path))
{
	open_hook = hook;
}

void before_open(const char *path)
{
	if (open_hook)
		open_hook(path);
}

void fake_order(bool (*before)(const char *name, const char *other))
{
	order = before;
}

/* --- the seam: files -------------------------------------------------------------- */

int open_file(const char *path, int flags)
{
	int fd;

	/* the library opens no other files */
	assert_memory_equal(path, "/sys/class/infiniband", 21);
	assert_null(strstr(path, "/../"));
	fd = open(fake_real_path(path), flags | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fd >= MAX_FD) {
		close(fd);
		return -EMFILE;
	}
	open_files[fd] = true;
	return fd;
}

static bool is_file(int fd)
{
	return fd >= 0 && fd < MAX_FD && open_files[fd];
}

int close_file(int fd)
{
	calls++; /* without a fault: a close that fails has closed the descriptor, too */
	if (!is_file(fd))
		return -EBADF;
	open_files[fd] = false;
	close(fd);
	return 0;
}

ssize_t read_file(int fd, void *buf, size_t size)
{
	ssize_t got;

	if (!is_file(fd))
		return -EBADF;
	got = read(fd, buf, size);
	return got < 0 ? -errno : got;
}

static bool is_before(const char *name, const char *other)
{
	return order ? order(name, other) : strcmp(name, other) < 0;
}

static int compare_entries(const void *a, const void *b)
{
	const struct dirent *const *one = a, *const *other = b;

	if (is_before((*one)->d_name, (*other)->d_name))
		return -1;
	return is_before((*other)->d_name, (*one)->d_name);
}

int sys_list(const char *path, sys_visit_fn *visit, void *arg)
{
	struct dirent **entries;
	int i, err, count;

	lock();
	err = begin_call();
	unlock();
	if (err)
		return err;
	before_open(path);
	assert_memory_equal(path, "/sys/class/infiniband", 21);
	count = scandir(fake_real_path(path), &entries, NULL, NULL);
	if (count < 0)
		return -errno;
	qsort(entries, (size_t)count, sizeof(struct dirent *), compare_entries);
	for (i = 0; i < count; i++) {
		if (!err && strcmp(entries[i]->d_name, ".") && strcmp(entries[i]->d_name, ".."))
			err = visit(entries[i]->d_name, arg);
		__real_free(entries[i]);
	}
	__real_free(entries);
	return err;
}
