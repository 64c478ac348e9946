/* SPDX-License-Identifier: BSD-2-Clause */

/* Opens umad and issm devices, and adopts those that stayed open across exec(). */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "preload.h"

/* The kernel's O_LARGEFILE, which open() adds on 64-bit machines, where the C library has 0. */
#if __WORDSIZE == 32
#define LARGE_FILE 0
#elif defined(__aarch64__)
#define LARGE_FILE 0400000
#elif defined(__powerpc64__)
#define LARGE_FILE 0200000
#else
#define LARGE_FILE 0100000
#endif

static int fail(int error)
{
	errno = -error;
	return -1;
}

static int map_shared(struct device *device, int fd)
{
	void *shared = REAL(mmap)(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
				  MAP_SHARED, fd, 0);

	if (shared == MAP_FAILED)
		return -errno;
	device->shared = shared;
	return 0;
}

/* Sets the flags of open() on the socket. */
static void set_flags(int fd, int flags)
{
	int own = flags & (O_NONBLOCK | O_APPEND);

	if (own)
		REAL(fcntl)(fd, F_SETFL, REAL(fcntl)(fd, F_GETFL) | own);
	if (!(flags & O_CLOEXEC))
		REAL(fcntl)(fd, F_SETFD, 0);
}

int device_flags(int fd, int flags)
{
	struct device *device = device_get(fd);

	if (!device)
		return flags;
	if (device->kind != DEVICE_UEVENTS)
		flags = (flags & ~O_ACCMODE) | device->flags;
	device_put(device);
	return flags;
}

/* A device is a regular file in the view; shows a character device instead. */
static void show_device(enum device_kind kind, unsigned int number, struct statx *file)
{
	file->stx_mode = S_IFCHR | 0600;
	file->stx_rdev_major = UMAD_MAJOR;
	file->stx_rdev_minor = kind == DEVICE_UMAD ? number : ISSM_MINOR + number;
}

/* Refuses what open() does not do with a device that exists. */
static int check_flags(int flags)
{
	if (flags & O_DIRECTORY)
		return -ENOTDIR;
	if (flags & O_PATH)
		return 0;
	if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return -EEXIST;
	return flags & O_DIRECT ? -EINVAL : 0;
}

static int make_device(struct device *device, int connection, int shared_fd)
{
	int error = 0;

	if (device->kind == DEVICE_UMAD && !(device->flags & O_PATH))
		error = shared_fd < 0 ? -EPROTO : map_shared(device, shared_fd);
	return error ? error : device_note(connection, device);
}

/* An O_PATH descriptor is that of the file in the view. Returns 0 or a negative errno. */
static int open_path(struct device *device, const char *path, int flags, int *fd)
{
	*fd = REAL(open)(path, flags);
	device->flags = O_PATH;
	return *fd < 0 ? -errno : device_note(*fd, device);
}

/* The fabric has sent the packet that makes an issm device ready; waits until it arrives. */
static void wait_until_ready(int fd)
{
	uint8_t byte;
	int state;

	/* cancelling the thread would leak the descriptor */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	while (REAL(recv)(fd, &byte, sizeof(byte), MSG_PEEK) < 0 && errno == EINTR)
		;
	pthread_setcancelstate(state, NULL);
}

/* Opens a device of the fabric. Returns 0 or a negative errno. */
static int connect_device(struct device *device, int flags, int *connection)
{
	struct request request = {
		.kind = device->kind == DEVICE_UMAD ? REQUEST_OPEN_UMAD : REQUEST_OPEN_ISSM,
		.view = view_number(),
		.number = device->number,
		.nonblock = (flags & O_NONBLOCK) != 0,
	};
	struct reply reply;
	int shared_fd = -1;
	int error = ask_fabric(&request, &reply, connection, &shared_fd);

	if (!error) {
		if (device->kind == DEVICE_ISSM)
			wait_until_ready(*connection);
		device->handle = reply.handle;
		device->flags = (flags & (O_ACCMODE | O_SYNC | O_NOFOLLOW)) | LARGE_FILE;
		set_flags(*connection, flags);
		error = make_device(device, *connection, shared_fd);
	}
	if (shared_fd >= 0)
		REAL(close)(shared_fd);
	return error;
}

int device_open(enum device_kind kind, unsigned int number, int flags, const char *path)
{
	struct device *device = device_new(kind);
	int error, fd = -1;

	if (!device)
		return fail(-ENOMEM);
	device->number = number;
	error = REAL(statx)(AT_FDCWD, path, 0, STATX_BASIC_STATS, &device->file) ? -errno : 0;
	show_device(kind, number, &device->file);
	if (!error)
		error = check_flags(flags);
	if (!error)
		error = flags & O_PATH ? open_path(device, path, flags, &fd)
				       : connect_device(device, flags, &fd);
	device_put(device);
	if (!error)
		return fd;
	if (fd >= 0)
		REAL(close)(fd);
	return fail(error);
}

/* posix_spawn() may have closed the descriptor, or reused its number. */
static bool is_still_open(int fd, const struct device *device)
{
	struct statx status;

	if (REAL(statx)(fd, "", AT_EMPTY_PATH, STATX_TYPE, &status))
		return false;
	return device->flags & O_PATH ? REAL(fcntl)(fd, F_GETFL) & O_PATH
				      : S_ISSOCK(status.stx_mode);
}

/* The status of an inherited device, which may have been removed. */
static void inherit_status(struct device *device)
{
	const char *folder = folder_of_devices();
	char *path;

	if (!folder || device->kind == DEVICE_UEVENTS)
		return;
	path = alloca(strlen(folder) + 32);
	strcpy(path, folder);
	strcat(path, device->kind == DEVICE_UMAD ? "/umad" : "/issm");
	append_number(path + strlen(path), device->number);
	show_device(device->kind, device->number, &device->file);
	if (!REAL(statx)(AT_FDCWD, path, 0, STATX_BASIC_STATS, &device->file))
		show_device(device->kind, device->number, &device->file);
}

/* Maps the memory that the fabric shares with the handle. */
static int get_shared(const struct device *device, int *shared_fd)
{
	struct request request = {.kind = REQUEST_SHARE, .handle = device->handle};
	struct reply reply;

	return ask_fabric(&request, &reply, NULL, shared_fd);
}

int device_inherit(int fd, const struct device *like)
{
	struct device *device;
	int shared_fd = -1;
	int error = 0;

	if (!is_still_open(fd, like))
		return 0;
	device = device_new(like->kind);
	if (!device)
		return -ENOMEM;
	device->number = like->number;
	device->flags = like->flags;
	device->handle = like->handle;
	inherit_status(device);
	if (like->kind == DEVICE_UMAD && !(like->flags & O_PATH))
		error = get_shared(device, &shared_fd);
	if (!error)
		error = make_device(device, fd, shared_fd);
	device_put(device);
	if (shared_fd >= 0)
		REAL(close)(shared_fd);
	return error;
}
