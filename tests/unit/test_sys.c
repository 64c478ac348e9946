/* SPDX-License-Identifier: BSD-2-Clause */

/* The seam itself, with files, folders and pipes of a real kernel. */

#include "sys.h"
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- a simulator that replaces the C library's call, as preloaded ones do ------- */

enum {
	RAW_ERRNO_FD = 2000,
	NO_ERRNO_FD
};

ssize_t read(int fd, void *buf, size_t size)
{
	switch (fd) {
	case RAW_ERRNO_FD:
		return -EAGAIN;
	case NO_ERRNO_FD:
		return -1;
	default:
		return syscall(SYS_read, fd, buf, size);
	}
}

/* A folder with a file. */
static char folder[32], file[48], missing[48];

static int setup(void)
{
	int fd;

	strcpy(folder, "/tmp/sys-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(file, sizeof(file), "%s/file", folder);
	snprintf(missing, sizeof(missing), "%s/missing", folder);
	fd = open(file, O_CREAT | O_WRONLY, 0600);
	return fd < 0 || write(fd, "hello", 5) != 5 || close(fd) ? -1 : 0;
}

static int teardown(void)
{
	unlink(file);
	return rmdir(folder);
}

FIXTURE(setup, teardown);

TEST(a_file_is_opened_read_and_closed_and_failures_are_negative_errnos)
{
	int fd = sys_open(file, O_RDONLY), number;
	char text[8] = "";

	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(sys_read(fd, text, sizeof(text)), 5);
	assert_string_equal(text, "hello");
	assert_int_equal(sys_read(fd, text, sizeof(text)), 0);
	assert_int_equal(sys_close(fd), 0);
	assert_int_equal(sys_close(fd), -EBADF);
	assert_int_equal(sys_open(missing, O_RDONLY), -ENOENT);
	assert_int_equal(sys_read(-1, text, 8), -EBADF);
	assert_int_equal(sys_write(-1, text, 8), -EBADF);
	assert_int_equal(sys_ioctl(-1, FIONREAD, &number), -EBADF);
	/* a simulator's: an errno as the return value, and errno 0 */
	assert_int_equal(sys_read(RAW_ERRNO_FD, text, 8), -EAGAIN);
	errno = EDOM;
	assert_int_equal(sys_read(NO_ERRNO_FD, text, 8), -EIO);
}

TEST(a_pipe_is_written_polled_and_read)
{
	char text[8] = "";
	int ends[2], number;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(sys_poll(ends[0], 0), 0);
	assert_int_equal(sys_poll(ends[0], 1), 0);
	assert_int_equal(sys_write(ends[1], "abc", 3), 3);
	assert_int_equal(sys_poll(ends[0], -1), POLLIN);
	assert_int_equal(sys_ioctl(ends[0], FIONREAD, &number), 0);
	assert_int_equal(number, 3);
	assert_int_equal(sys_read(ends[0], text, 8), 3);
	close(ends[1]);
	assert_true(sys_poll(ends[0], 0) & POLLHUP);
	close(ends[0]);
	assert_int_equal(sys_poll(ends[0], 0), POLLNVAL);
}

/* Counts the visits, and returns 7 from the second one on. */
static int count_names(const char *name, void *arg)
{
	assert_string_equal(name, "file");
	return ++*(int *)arg > 1 ? 7 : 0;
}

TEST(a_folder_is_walked_through_until_the_visitor_stops)
{
	int count = 0;

	assert_int_equal(sys_list(missing, NULL, NULL), -ENOENT);
	assert_int_equal(sys_list(file, NULL, NULL), -ENOTDIR);
	assert_int_equal(sys_list(folder, count_names, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(sys_list(folder, count_names, &count), 7);
	assert_int_equal(count, 2);
}
