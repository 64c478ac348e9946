/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* nftw */
#endif

/* The machine: memory, sysfs, faults. */

#include "fake_device_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define MANUAL_HANDLE 1024 /* the first handle of a manual device, as with simulators */

struct fake_state fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- memory: the library's allocations are counted, and fail on request ----------- */

static atomic_uint malloc_fail_in, allocations;
static atomic_bool malloc_failed;
static atomic_long allocated; /* without those that were freed */

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *memory);

static bool malloc_fails(void)
{
	unsigned n = malloc_fail_in;

	allocations++;
	while (n && !atomic_compare_exchange_weak(&malloc_fail_in, &n, n - 1))
		;
	if (n != 1)
		return false;
	malloc_failed = true;
	errno = ENOMEM;
	return true;
}

static void *count(void *memory)
{
	allocated += memory != NULL;
	return memory;
}

void *__wrap_malloc(size_t size)
{
	return malloc_fails() ? NULL : count(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return malloc_fails() ? NULL : count(__real_calloc(n, size));
}

void *__wrap_realloc(void *old, size_t size)
{
	void *grown;

	if (malloc_fails())
		return NULL;
	grown = __real_realloc(old, size);
	return old ? grown : count(grown);
}

void __wrap_free(void *memory)
{
	allocated -= memory != NULL;
	__real_free(memory);
}

unsigned device_allocations(void)
{
	return allocations;
}

void device_fail_malloc(unsigned n)
{
	malloc_failed = false;
	malloc_fail_in = n;
}

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

/*
 * The folder of a machine that is as device_setup() makes it, for the next one: to make and
 * remove its files takes most of the time of a short test.
 */
static char kept[sizeof(fake.root)];
static pid_t keeper;

static void __attribute__((destructor)) remove_kept(void)
{
	if (kept[0] && keeper == getpid())
		remove_tree(kept);
}

static bool take_kept(void)
{
	if (!kept[0] || keeper != getpid())
		return false;
	strcpy(fake.root, kept);
	kept[0] = '\0';
	return true;
}

/* A child of fork() has its own devices, in the state of the parent's. */
static void begin_child(void)
{
	for (int i = 0; i < MAX_FD; i++) {
		struct handle *handle = fake.handles[i];
		int timer = handle ? timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK) : -1;

		if (timer < 0)
			continue;
		dup2(timer, handle->fd);
		close(timer);
		handle->expires_ns = 0;
		arm(handle);
	}
	unlock();
}

static void watch_forks(void)
{
	pthread_atfork(lock, unlock, begin_child);
}

int begin_machine(bool manual)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_condattr_t monotonic;
	pthread_mutexattr_t plain;

	pthread_once(&once, watch_forks);
	memset(&fake, 0, sizeof(fake));
	/* not checked: a child of fork() releases a lock that a thread of the parent took */
	pthread_mutexattr_init(&plain);
	pthread_mutex_init(&fake.lock, &plain);
	pthread_mutexattr_destroy(&plain);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&fake.written, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_cond_init(&fake.polls_go, NULL);
	fake.manual = manual;
	fake.first_handle = manual ? MANUAL_HANDLE : -1;
	fake.last_fd = -1;
	device_fail_malloc(0);
	allocated = 0;
	fake.pristine = !manual && take_kept();
	if (fake.pristine)
		return 0;
	/*
	 * in memory: a test makes and removes many thousand files, which takes a minute on a
	 * busy disk
	 */
	strcpy(fake.root, "/dev/shm/umad-XXXXXX");
	if (!mkdtemp(fake.root)) {
		strcpy(fake.root, "/tmp/umad-XXXXXX");
		if (!mkdtemp(fake.root))
			return -1;
	}
	fake_dir("/sys/class");
	return 0;
}

int fake_setup(void)
{
	return begin_machine(true);
}

int fake_teardown(void)
{
	int left = fake.handle_count;
	long lost = allocated;

	device_fail_malloc(0);
	for (int fd = 0; fd < MAX_FD; fd++) {
		left += fake.files[fd];
		if (fake.handles[fd])
			close_handle(fake.handles[fd]);
	}
	for (unsigned i = 0; i < fake.packet_count; i++)
		__real_free(fake.packets[i]);
	__real_free(fake.packets);
	pthread_cond_destroy(&fake.polls_go);
	pthread_cond_destroy(&fake.written);
	pthread_mutex_destroy(&fake.lock);
	if (fake.pristine && !kept[0]) {
		strcpy(kept, fake.root);
		keeper = getpid();
	} else {
		remove_tree(fake.root);
	}
	if (left)
		print_error("%d descriptors are still open\n", left);
	/* a test of libibmad frees what the C library allocated */
	if (!fake.manual || left)
		return left ? -1 : 0;
	if (lost)
		print_error("%ld allocations were not freed\n", lost);
	return lost ? -1 : 0;
}

/* --- sysfs ---------------------------------------------------------------------- */

const char *fake_real_path(const char *path)
{
	static _Thread_local char real[512];

	snprintf(real, sizeof(real), "%s%s", fake.root, path);
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
	fake.pristine = false;
	if (!mkdir(fake_real_path(path), 0755) || errno == EEXIST)
		return;
	make_parents(path);
	mkdir(fake_real_path(path), 0755);
}

void fake_file_bytes(const char *path, const void *bytes, size_t size)
{
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
	int fd = open(fake_real_path(path), flags, 0644);

	fake.pristine = false;
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
	fake.pristine = false;
	make_parents(path);
	assert_int_equal(symlink(target, fake_real_path(path)), 0);
}

void fake_remove(const char *path)
{
	fake.pristine = false;
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
	return fake.failed || malloc_failed;
}

void fake_before_open(void (*hook)(const char *path))
{
	fake.before_open = hook;
}

static int failure(enum device_call call)
{
	fake.calls[call].calls++;
	if (!fake.calls[call].fail_in || --fake.calls[call].fail_in)
		return 0;
	fake.failed = true;
	return -fake.calls[call].error;
}

int begin_call(enum device_call call)
{
	int err = failure(call), err_of_any = failure(DEVICE_CALLS);

	return err ? err : err_of_any;
}

void fake_order(bool (*before)(const char *name, const char *other))
{
	fake.before = before;
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
	fake.files[fd] = true;
	return fd;
}

static bool is_file(int fd)
{
	return fd >= 0 && fd < MAX_FD && fake.files[fd];
}

int close_file(int fd)
{
	if (!is_file(fd))
		return -EBADF;
	fake.files[fd] = false;
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
	return fake.before ? fake.before(name, other) : strcmp(name, other) < 0;
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
	err = begin_call(DEVICE_FILES);
	unlock();
	if (err)
		return err;
	if (fake.before_open)
		fake.before_open(path);
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
