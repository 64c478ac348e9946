/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * looks FOLDER [HANDLE]: looks for the devices of the machine that the script "namespace"
 * makes, with system calls only. With HANDLE also tries to escape from the namespace. Prints a
 * line beginning with "machine:" for each way that leads to a device, and finally "looked".
 * FOLDER is a folder for files, with links to /sys and /dev.
 *
 * looks --handle prints the handle of a device. looks --run PROGRAM [ARGUMENT ...] runs a
 * program three times, the last time after opening a file at the descriptor in umad-sim's
 * variable. looks --alone PROGRAM [ARGUMENT ...] runs a program without environment, which
 * takes it off the fabric.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define NODE   "/dev/infiniband/umad9"
#define DEVICE "/sys/class/infiniband/mlx5_9/node_guid"

static char path[4096];

static void seen(const char *way, bool is_seen)
{
	if (is_seen)
		printf("machine: %s: %s\n", way, path);
}

static bool is_opened(int fd)
{
	return fd >= 0 && !close(fd);
}

static bool opens(int folder, const char *name)
{
	return is_opened((int)syscall(SYS_openat, folder, name, O_RDONLY | O_CLOEXEC));
}

/* Parts of /sys and /dev mounted elsewhere. A file may be there, but empty. */
static void look_at_parts(const char *folder)
{
	static const char *const parts[] = {"class/mlx5_9/node_guid",
					    "pci/infiniband/mlx5_9/node_guid",
					    "pci/infiniband_mad/umad9/ibdev",
					    "with space/node_guid",
					    "dev/umad9",
					    "node",
					    "guid",
					    "other/231:9/ibdev"};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		char byte;
		int fd;

		snprintf(path, sizeof(path), "%s/parts/%s", folder, parts[i]);
		fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
		seen("read", fd >= 0 && syscall(SYS_read, fd, &byte, 1) == 1);
		if (fd >= 0)
			close(fd);
	}
}

static void look_by_paths(const char *folder)
{
	static const char *const paths[] = {
		"mlx5_9/node_guid", /* in the working directory */
		NODE,
		DEVICE,
		"/dev/infiniband/uverbs9",
		"/dev/infiniband/rdma_cm",
		"/sys/class/infiniband_mad/umad9/ibdev",
		"/sys/class/infiniband_mad/abi_version",
		"/sys/devices/pci0/0000:01:00.0/infiniband/mlx5_9/node_guid",
		"/sys/devices/pci0/0000:01:00.0/infiniband_mad/umad9/ibdev",
		"/sys/dev/char/231:9/ibdev",
		"/proc/self/root" NODE,
		"/proc/thread-self/root" DEVICE,
		"/proc/1/root" NODE,
	};
	static const char *const below[] = {
		"link-sys/class/infiniband/mlx5_9/node_guid", "link-dev/infiniband/umad9",
		"link-umad9", "sys/class/infiniband/mlx5_9/node_guid", "dev/infiniband/umad9"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		strcpy(path, paths[i]);
		seen("open", opens(AT_FDCWD, path));
	}
	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, below[i]);
		seen("open", opens(AT_FDCWD, path));
	}
	snprintf(path, sizeof(path), "/proc/%d/root%s", getppid(), NODE);
	seen("open", opens(AT_FDCWD, path));
	snprintf(path, sizeof(path), "/proc/%d/cwd/dev/infiniband/umad9", getppid());
	seen("open", opens(AT_FDCWD, path));
}

static void look_by_other_calls(void)
{
	struct {
		struct file_handle head;
		char bytes[MAX_HANDLE_SZ];
	} handle = {.head.handle_bytes = MAX_HANDLE_SZ};
	struct statx status;
	struct statfs system;
	int mounted, folder;
	char target[256];

	strcpy(path, NODE);
	seen("statx", !syscall(SYS_statx, AT_FDCWD, path, 0, STATX_TYPE, &status));
	seen("statfs", !syscall(SYS_statfs, path, &system));
	seen("faccessat", !syscall(SYS_faccessat, AT_FDCWD, path, F_OK));
	seen("name_to_handle_at",
	     !syscall(SYS_name_to_handle_at, AT_FDCWD, path, &handle, &mounted, 0));
	strcpy(path, "/sys/class/infiniband/mlx5_9");
	seen("readlinkat", syscall(SYS_readlinkat, AT_FDCWD, path, target, sizeof(target)) > 0);
	strcpy(path, "infiniband/mlx5_9/node_guid");
	folder = (int)syscall(SYS_openat, AT_FDCWD, "/sys/class", O_RDONLY | O_CLOEXEC);
	seen("open below a folder", opens(folder, path));
	close(folder);
	if (!syscall(SYS_chdir, "/dev")) {
		seen("open in the working directory", opens(AT_FDCWD, "infiniband/umad9"));
		seen("/proc/self/cwd", opens(AT_FDCWD, "/proc/self/cwd/infiniband/umad9"));
	}
}

static void look_into(const char *name)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	strcpy(path, name);
	while (folder && (entry = readdir(folder)))
		seen("getdents", entry->d_name[0] != '.');
	if (folder)
		closedir(folder);
}

/* Opens with io_uring. False if the kernel has none, or does not permit it. */
static bool look_by_io_uring(void)
{
	struct io_uring_params params = {0};
	int ring = (int)syscall(SYS_io_uring_setup, 1, &params);
	size_t bytes;
	struct io_uring_sqe *request;
	struct io_uring_cqe *result;
	char *queue;

	if (ring < 0 || !(params.features & IORING_FEAT_SINGLE_MMAP))
		return false;
	bytes = params.cq_off.cqes + params.cq_entries * sizeof(*result);
	queue = mmap(NULL, bytes + params.sq_off.array + sizeof(unsigned int),
		     PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	request = mmap(NULL, sizeof(*request), PROT_READ | PROT_WRITE, MAP_SHARED, ring,
		       IORING_OFF_SQES);
	if (queue == MAP_FAILED || request == MAP_FAILED)
		return false;
	strcpy(path, NODE);
	*request = (struct io_uring_sqe){.opcode = IORING_OP_OPENAT,
					 .fd = AT_FDCWD,
					 .addr = (uintptr_t)path,
					 .open_flags = O_RDONLY};
	*(unsigned int *)(queue + params.sq_off.array) = 0;
	__atomic_store_n((unsigned int *)(queue + params.sq_off.tail), 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		return false;
	result = (struct io_uring_cqe *)(queue + params.cq_off.cqes);
	seen("io_uring", result->res >= 0);
	return !close(ring);
}

/* In a child, because io_uring may start threads, and a process with threads cannot enter a
 * namespace. */
static void look_in_child(bool (*look)(void))
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		status = look() ? 0 : 77;
		fflush(stdout);
		_exit(status);
	}
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status))
		puts("not tested: the kernel permits no io_uring");
}

/* --- ways out of the namespace --------------------------------------------------------- */

static void uncover(const char *way)
{
	strcpy(path, NODE);
	umount2("/dev/infiniband", MNT_DETACH);
	seen(way, opens(AT_FDCWD, path));
	strcpy(path, DEVICE);
	umount2("/sys/class/infiniband", MNT_DETACH);
	umount2("/sys/class/infiniband/mlx5_9", MNT_DETACH);
	seen(way, opens(AT_FDCWD, path));
}

/* The namespaces of umad-sim itself, and of process 1. */
static void enter_namespace_of(int process)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/ns/mnt", process);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !setns(fd, CLONE_NEWNS)) {
		snprintf(path, sizeof(path), "%s", name);
		seen("setns", true);
	}
}

static void make_device(const char *folder)
{
	snprintf(path, sizeof(path), "%s/made", folder);
	seen("mknod", !mknod(path, S_IFCHR | 0600, makedev(231, 9)));
	unlink(path);
}

static void print_handle(void)
{
	struct {
		struct file_handle head;
		unsigned char bytes[MAX_HANDLE_SZ];
	} handle = {.head.handle_bytes = MAX_HANDLE_SZ};
	int mounted;

	if (name_to_handle_at(AT_FDCWD, NODE, &handle.head, &mounted, 0))
		exit(1);
	printf("%d", handle.head.handle_type);
	for (unsigned int i = 0; i < handle.head.handle_bytes; i++)
		printf(":%u", handle.bytes[i]);
	putchar('\n');
}

static void open_handle(const char *text)
{
	struct {
		struct file_handle head;
		unsigned char bytes[MAX_HANDLE_SZ];
	} handle = {0};
	int folder = open("/dev", O_RDONLY | O_CLOEXEC);
	char *end;

	handle.head.handle_type = (int)strtol(text, &end, 10);
	while (*end == ':')
		handle.bytes[handle.head.handle_bytes++] =
			(unsigned char)strtoul(end + 1, &end, 10);
	strcpy(path, NODE);
	seen("open_by_handle_at", is_opened(open_by_handle_at(folder, &handle.head, O_RDONLY)));
	close(folder);
}

static void get_out(const char *folder, const char *handle)
{
	open_handle(handle);
	make_device(folder);
	uncover("umount");
	enter_namespace_of(getppid());
	enter_namespace_of(1);
	if (!unshare(CLONE_NEWUSER | CLONE_NEWNS))
		uncover("umount in a namespace");
}

static void run(char **arguments)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		execvp(arguments[0], arguments);
		_exit(127);
	}
	if (waitpid(child, &status, 0) != child || status)
		printf("status %d\n", status);
	fflush(stdout);
}

static void run_three_times(char **arguments)
{
	const char *number = getenv("UMAD_SIM_READY");
	FILE *file = tmpfile();

	run(arguments);
	run(arguments);
	if (number && file && dup2(fileno(file), atoi(number)) < 0)
		puts("no descriptor");
	run(arguments);
	if (file && lseek(fileno(file), 0, SEEK_END) != 0)
		puts("something is written to a file of the program");
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "--handle")) {
		print_handle();
		return 0;
	}
	if (!strcmp(argv[1], "--run")) {
		run_three_times(argv + 2);
		return 0;
	}
	if (!strcmp(argv[1], "--alone")) {
		execve(argv[2], argv + 2, (char *[]){NULL});
		return 1;
	}
	look_by_paths(argv[1]);
	look_at_parts(argv[1]);
	look_by_other_calls();
	look_into("/dev/infiniband");
	look_into("/sys/class/infiniband");
	look_into("/sys/devices/pci0/0000:01:00.0/infiniband/mlx5_9");
	look_in_child(look_by_io_uring);
	if (argc > 2 && argv[2][0] != '/') /* the kernel adds the path of a script */
		get_out(argv[1], argv[2]);
	puts("looked");
	return 0;
}
