/* SPDX-License-Identifier: BSD-2-Clause */

/* Programs with 64-bit time and offsets see the fabric, also on 32-bit machines. */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define UMAD        "/dev/infiniband/umad0"
#define ENABLE_PKEY _IO(0x1b, 3)
#define PORT        "/sys/class/infiniband/mlx5_0/ports/1"

_Static_assert(sizeof(off_t) == 8, "64-bit offsets");

TEST(a_device_is_a_character_device_to_every_stat)
{
	struct stat status[3];

	assert_int_equal(stat(UMAD, &status[0]), 0);
	assert_int_equal(lstat(UMAD, &status[1]), 0);
	assert_int_equal(fstatat(AT_FDCWD, UMAD, &status[2], 0), 0);
	for (int i = 0; i < 3; i++) {
		assert_true(S_ISCHR(status[i].st_mode));
		assert_int_equal(major(status[i].st_rdev), 231);
	}
}

TEST(a_duplicate_of_a_device_is_one)
{
	int fd = open(UMAD, O_RDWR);
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 100);
	struct pollfd waited = {.fd = copy, .events = POLLIN};
	struct timespec soon = {.tv_nsec = 1};
	char byte;

	assert_true(fd >= 0 && copy >= 100);
	close(fd);
	assert_int_equal(ioctl(copy, ENABLE_PKEY), 0);
	assert_int_equal(ppoll(&waited, 1, &soon, NULL), 0);
	assert_int_equal(read(copy, &byte, 1), -1);
	assert_int_equal(errno, EINVAL);
	close(copy);
}

TEST(files_of_the_fabric_are_read)
{
	FILE *file = fopen(PORT "/lid", "r");
	struct dirent **entries;
	int lid, count = scandir("/sys/class/infiniband_mad", &entries, NULL, alphasort);

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%i", &lid), 1);
	assert_true(lid > 0);
	fclose(file);
	assert_true(count > 2);
	while (count-- > 0)
		free(entries[count]);
	free(entries);
}

TEST(files_of_the_fabric_are_not_written)
{
	static const struct {
		const char *mode;
		int error;
	} rows[] = {{"w", EACCES}, {"r+", EACCES}, {"wx", EEXIST}, {"a+x", EEXIST}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_null(fopen(PORT "/lid", rows[i].mode));
		assert_int_equal(errno, rows[i].error);
	}
}

TEST(files_of_the_fabric_are_not_written_by_relative_paths)
{
	int folder = open(PORT, O_RDONLY | O_DIRECTORY), fd;

	assert_true(folder >= 0);
	fd = openat(folder, "lid", O_RDONLY);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(openat(folder, "lid", O_RDWR | O_CREAT, 0600), -1);
	assert_int_equal(errno, EACCES);
	assert_int_equal(openat(folder, "lid", O_WRONLY | O_CREAT | O_EXCL, 0600), -1);
	assert_int_equal(errno, EEXIST);
	close(folder);
	assert_int_equal(chdir(PORT), 0);
	assert_int_equal(open("lid", O_WRONLY | O_TRUNC), -1);
	assert_int_equal(errno, EACCES);
	assert_int_equal(chdir("/"), 0);
}

TEST(files_of_the_fabric_have_their_size_for_lseek)
{
	int fd = open(PORT "/lid", O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), 4096);
	assert_int_equal(lseek(fd, -4096, SEEK_END), 0);
	assert_int_equal(lseek(fd, -4097, SEEK_END), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(lseek(fd, 1, SEEK_DATA), 1);
	assert_int_equal(lseek(fd, 1, SEEK_HOLE), 4096);
	assert_int_equal(lseek(fd, 4096, SEEK_HOLE), -1);
	assert_int_equal(errno, ENXIO);
	close(fd);
}
