/* SPDX-License-Identifier: BSD-2-Clause */

/* An open device is a character device: to calls on descriptors, and to calls on folders. */
#include "check.h"
#include "mads.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define FOLDER     "/dev/infiniband"
#define CLASS_NAME "/sys/class/infiniband_mad"
#define LARGE_FILE 0100000 /* of x86; on 64-bit machines, the C library does not define it */
#define NO_ACCESS  3       /* neither read() nor write() */

static const char *const kinds[] = {"umad", "issm"};

/* Opens the device of a kind without waiting. */
static int opened(const char *kind, int flags)
{
	int fd = open_device(&here, kind, flags | O_NONBLOCK);

	expect(fd >= 0);
	return fd;
}

/* --- status ----------------------------------------------------------------------- */

static void expect_same_status(const struct stat *status, const struct stat *expected)
{
	expect(S_ISCHR(status->st_mode));
	expect_equal(status->st_mode, expected->st_mode);
	expect_equal(status->st_rdev, expected->st_rdev);
	expect_equal(status->st_dev, expected->st_dev);
	expect_equal(status->st_ino, expected->st_ino);
	expect_equal(status->st_nlink, expected->st_nlink);
	expect_equal(status->st_uid, expected->st_uid);
	expect_equal(status->st_gid, expected->st_gid);
	expect_equal(status->st_size, 0);
	expect_equal(status->st_blocks, 0);
	expect_equal(status->st_mtime, expected->st_mtime);
}

static void expect_status_of_device(int fd, const char *kind)
{
	struct stat by_path, status;
	struct statx extended;
	char path[64];

	device_path(&here, kind, path);
	expect_equal(stat(path, &by_path), 0);
	expect_equal(fstat(fd, &status), 0);
	expect_same_status(&status, &by_path);
	memset(&status, 0, sizeof(status));
	expect_equal(fstatat(fd, "", &status, AT_EMPTY_PATH), 0);
	expect_same_status(&status, &by_path);
	expect_equal(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &extended), 0);
	expect_equal(extended.stx_mode, by_path.st_mode);
	expect_equal(extended.stx_rdev_major, major(by_path.st_rdev));
	expect_equal(extended.stx_rdev_minor, minor(by_path.st_rdev));
	expect_equal(extended.stx_ino, by_path.st_ino);
	expect_equal(extended.stx_size, 0);
}

static void a_handle_has_the_status_of_its_device(void)
{
	int copy, fd;

	for (size_t i = 0; i < 2; i++) {
		if (i == 1 && !has_issm(&here))
			continue;
		fd = opened(kinds[i], O_RDWR);
		copy = dup(fd);
		expect_status_of_device(fd, kinds[i]);
		expect_equal(close(fd), 0);
		expect_status_of_device(copy, kinds[i]);
		expect_equal(close(copy), 0);
	}
}

static void a_path_handle_only_names_its_device(void)
{
	struct pollfd poll_fd = {.events = POLLIN};
	char byte = 0;
	int fd = opened("umad", O_PATH);
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	expect_status_of_device(fd, "umad");
	expect_status_of_device(copy, "umad");
	expect_errno(read(fd, &byte, 1), EBADF);
	expect_errno(write(fd, &byte, 1), EBADF);
	expect_errno(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), EBADF);
	expect_errno(send(fd, &byte, 1, 0), EBADF);
	expect_errno(read(copy, &byte, 1), EBADF);
	expect_equal(fcntl(fd, F_GETFL), O_PATH);
	poll_fd.fd = fd;
	expect_equal(poll(&poll_fd, 1, 0), 1);
	expect_equal(poll_fd.revents, POLLNVAL);
}

static void a_device_is_no_folder_and_no_new_file(void)
{
	char path[64];
	int fd;

	device_path(&here, "umad", path);
	expect_errno(open(path, O_RDONLY | O_DIRECTORY), ENOTDIR);
	expect_errno(open(path, O_PATH | O_DIRECTORY), ENOTDIR);
	expect_errno(open(path, O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
	expect_errno(open(path, O_RDWR | O_DIRECT), EINVAL);
	fd = opened("umad", O_RDWR | O_TRUNC | O_NOFOLLOW);
	client(fd, 0);
	expect_errno(openat(fd, "umad", O_RDONLY), ENOTDIR);
	expect_errno(fchdir(fd), ENOTDIR);
}

/* --- access ----------------------------------------------------------------------- */

static void expect_access(int flags, int read_error, int write_error)
{
	char byte = 0;
	int fd = opened("umad", flags);

	expect_equal(fcntl(fd, F_GETFL) & O_ACCMODE, flags);
	expect_errno(read(fd, &byte, 1), read_error);
	expect_errno(write(fd, &byte, 1), write_error);
	expect_errno(read(fd, &byte, 0), read_error);
	expect_errno(write(fd, &byte, 0), write_error);
	expect_equal(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), 0); /* any access permits ioctl() */
}

static void a_handle_permits_what_it_was_opened_for(void)
{
	expect_access(O_RDWR, EINVAL, EINVAL);
	expect_access(O_RDONLY, EINVAL, EBADF);
	expect_access(O_WRONLY, EBADF, EINVAL);
	expect_access(NO_ACCESS, EBADF, EBADF);
}

static void an_issm_handle_permits_what_it_was_opened_for(void)
{
	char byte = 0;
	int fd;

	needs_issm();
	fd = opened("issm", O_RDWR);
	expect_errno(read(fd, &byte, 1), EINVAL);
	expect_errno(write(fd, &byte, 1), EINVAL);
	expect_equal(close(fd), 0);
	fd = opened("issm", O_RDONLY);
	expect_errno(read(fd, &byte, 1), EINVAL);
	expect_errno(write(fd, &byte, 1), EBADF);
}

static void copies_have_the_access_of_their_handle(void)
{
	char byte = 0;
	int fd = opened("umad", O_RDONLY);
	int copies[] = {dup(fd), dup2(fd, 200), dup3(fd, 201, O_CLOEXEC),
			fcntl(fd, F_DUPFD, 300), fcntl(fd, F_DUPFD_CLOEXEC, 300)};

	expect_equal(close(fd), 0);
	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++) {
		expect(copies[i] >= 0);
		expect_errno(write(copies[i], &byte, 1), EBADF);
		expect_errno(read(copies[i], &byte, 1), EINVAL);
	}
}

static void flags_of_a_handle_are_those_of_open(void)
{
	int fd = opened("umad", O_RDWR | O_CLOEXEC | O_TRUNC | O_NOCTTY);
	int large = sizeof(long) == 8 ? LARGE_FILE : 0;

	expect_equal(fcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK | large);
	expect_equal(fcntl(fd, F_SETFL, O_RDONLY), 0);
	expect_equal(fcntl(fd, F_GETFL), O_RDWR | large);
	expect_equal(fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK), 0);
	expect_equal(fcntl(fd, F_GETFL), O_RDWR | O_APPEND | O_NONBLOCK | large);
	expect_equal(close(fd), 0);
	fd = opened("umad", O_RDONLY | O_SYNC | O_NOFOLLOW | O_APPEND);
	expect_equal(fcntl(fd, F_GETFL),
		     O_RDONLY | O_SYNC | O_NOFOLLOW | O_APPEND | O_NONBLOCK | large);
}

/* --- other calls ------------------------------------------------------------------ */

static void a_handle_has_no_position_and_no_size(void)
{
	char bytes[MAD];
	int fd = opened("umad", O_RDWR);

	expect_errno(lseek(fd, 0, SEEK_SET), ESPIPE);
	expect_errno(lseek(fd, 0, SEEK_CUR), ESPIPE);
	expect_errno(pread(fd, bytes, sizeof(bytes), 0), ESPIPE);
	expect_errno(pwrite(fd, bytes, sizeof(bytes), 0), ESPIPE);
	expect_errno(ftruncate(fd, 0), EINVAL);
	expect_errno(fsync(fd), EINVAL);
	expect(mmap(NULL, sizeof(bytes), PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
	expect_equal(errno, ENODEV);
}

static void a_handle_is_no_terminal(void)
{
	int fd = opened("umad", O_RDWR), value = 0;

	errno = 0;
	expect_equal(isatty(fd), 0);
	expect_equal(errno, ENOTTY);
	expect_errno(ioctl(fd, FIONREAD, &value), ENOTTY);
	value = 1;
	expect_errno(ioctl(fd, FIOASYNC, &value), ENOTTY);
	expect_equal(ioctl(fd, FIONBIO, &value), 0);
	expect(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

static void expect_no_socket(int fd)
{
	struct sockaddr address = {.sa_family = AF_UNIX};
	socklen_t length = sizeof(address);
	struct mmsghdr several = {0};
	char byte = 0;

	expect_errno(send(fd, &byte, 1, 0), ENOTSOCK);
	expect_errno(sendto(fd, &byte, 1, 0, NULL, 0), ENOTSOCK);
	expect_errno(sendmsg(fd, &several.msg_hdr, 0), ENOTSOCK);
	expect_errno(sendmmsg(fd, &several, 1, 0), ENOTSOCK);
	expect_errno(recv(fd, &byte, 1, MSG_DONTWAIT), ENOTSOCK);
	expect_errno(recvfrom(fd, &byte, 1, MSG_DONTWAIT, NULL, NULL), ENOTSOCK);
	expect_errno(recvmsg(fd, &several.msg_hdr, MSG_DONTWAIT), ENOTSOCK);
	expect_errno(recvmmsg(fd, &several, 1, MSG_DONTWAIT, NULL), ENOTSOCK);
	expect_errno(shutdown(fd, SHUT_RDWR), ENOTSOCK);
	expect_errno(bind(fd, &address, length), ENOTSOCK);
	expect_errno(connect(fd, &address, length), ENOTSOCK);
	expect_errno(listen(fd, 1), ENOTSOCK);
	expect_errno(accept(fd, NULL, NULL), ENOTSOCK);
	expect_errno(accept4(fd, NULL, NULL, SOCK_CLOEXEC), ENOTSOCK);
	expect_errno(getsockname(fd, &address, &length), ENOTSOCK);
	expect_errno(getpeername(fd, &address, &length), ENOTSOCK);
	expect_errno(getsockopt(fd, SOL_SOCKET, SO_TYPE, &address, &length), ENOTSOCK);
	expect_errno(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &address, length), ENOTSOCK);
}

static void a_handle_is_no_socket(void)
{
	expect_no_socket(opened("umad", O_RDWR));
	if (has_issm(&here))
		expect_no_socket(opened("issm", O_RDWR));
}

static void poll_says_what_a_device_is_ready_for(void)
{
	struct pollfd poll_fd = {.fd = opened("umad", O_RDWR), .events = -1};

	poll_fd.events &= ~POLLNVAL;
	expect_equal(poll(&poll_fd, 1, 0), 1);
	expect_equal(poll_fd.revents, POLLOUT | POLLWRNORM);
	poll_fd.events = POLLIN | POLLPRI;
	expect_equal(poll(&poll_fd, 1, 0), 0);
}

static void an_issm_device_is_always_ready(void)
{
	struct pollfd poll_fd = {.events = POLLIN | POLLOUT | POLLPRI};

	needs_issm();
	poll_fd.fd = opened("issm", O_RDWR);
	expect_equal(poll(&poll_fd, 1, 0), 1);
	expect_equal(poll_fd.revents, POLLIN | POLLOUT);
}

/* --- folders ---------------------------------------------------------------------- */

/* The type that a folder has for an entry; -1: the folder does not have the entry. */
static int type_in(const char *folder, const char *name)
{
	DIR *open_folder = opendir(folder);
	struct dirent *entry;
	int type = -1;

	expect(open_folder);
	while ((entry = readdir(open_folder)))
		if (!strcmp(entry->d_name, name))
			type = entry->d_type;
	closedir(open_folder);
	return type;
}

static const char *wanted;

static int is_wanted(const struct dirent *entry)
{
	return !strcmp(entry->d_name, wanted) && entry->d_type == DT_CHR;
}

static void folders_tell_the_types_of_their_entries(void)
{
	struct dirent **list;
	char path[64];
	DIR *folder;

	device_path(&here, "umad", path);
	wanted = strrchr(path, '/') + 1;
	expect_equal(type_in(FOLDER, wanted), DT_CHR);
	expect_equal(type_in(CLASS_NAME, wanted), DT_LNK);
	expect_equal(type_in(CLASS_NAME, "abi_version"), DT_REG);
	expect_equal(type_in("/sys/class/infiniband", here.ca_name), DT_LNK);
	expect_equal(scandir(FOLDER, &list, is_wanted, alphasort), 1);
	expect_equal(list[0]->d_type, DT_CHR);
	free(list[0]);
	free(list);
	folder = fdopendir(open(FOLDER, O_RDONLY | O_DIRECTORY));
	expect(folder);
	for (struct dirent *entry; (entry = readdir(folder));)
		if (!strncmp(entry->d_name, "umad", 4))
			expect_equal(entry->d_type, DT_CHR);
	closedir(folder);
}

static void a_name_in_the_folder_is_the_device(void)
{
	struct stat by_path, status;
	char path[64], byte = 0;
	int folder = open(FOLDER, O_RDONLY | O_DIRECTORY), fd;

	expect(folder >= 0);
	device_path(&here, "umad", path);
	expect_equal(stat(path, &by_path), 0);
	expect_equal(fstatat(folder, strrchr(path, '/') + 1, &status, 0), 0);
	expect_same_status(&status, &by_path);
	fd = openat(folder, strrchr(path, '/') + 1, O_RDWR | O_NONBLOCK);
	expect(fd >= 0);
	expect_status_of_device(fd, "umad");
	expect_errno(read(fd, &byte, 1), EINVAL);
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(a_handle_has_the_status_of_its_device),
		CHECK_ALONE(a_path_handle_only_names_its_device),
		CHECK_ALONE(a_device_is_no_folder_and_no_new_file),
		CHECK_ALONE(a_handle_permits_what_it_was_opened_for),
		CHECK(an_issm_handle_permits_what_it_was_opened_for),
		CHECK_ALONE(copies_have_the_access_of_their_handle),
		CHECK_ALONE(flags_of_a_handle_are_those_of_open),
		CHECK_ALONE(a_handle_has_no_position_and_no_size),
		CHECK_ALONE(a_handle_is_no_terminal),
		CHECK(a_handle_is_no_socket),
		CHECK_ALONE(poll_says_what_a_device_is_ready_for),
		CHECK(an_issm_device_is_always_ready),
		CHECK_ALONE(folders_tell_the_types_of_their_entries),
		CHECK_ALONE(a_name_in_the_folder_is_the_device),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
