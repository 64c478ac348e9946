/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake_device.h"
#include "fake_device_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAX_FILES 128
/* Descriptors of files: different from those of the process. */
#define FIRST_FD  100000
#define MAX_OPEN  16

static struct {
	char path[128], text[128];
} files[MAX_FILES];

static struct {
	bool open;
	const char *text;
} descriptors[MAX_OPEN];

static const char *find_file(const char *path)
{
	int i;

	for (i = 0; i < MAX_FILES; i++)
		if (!strcmp(files[i].path, path))
			return files[i].text;
	return NULL;
}

void device_file(const char *path, const char *text)
{
	int i, place = -1;

	for (i = MAX_FILES - 1; i >= 0; i--)
		if (!strcmp(files[i].path, path))
			break;
		else if (!files[i].path[0])
			place = i;
	if (i < 0)
		i = place;
	assert_in_range(i, 0, MAX_FILES - 1);
	snprintf(files[i].path, sizeof(files[i].path), "%s", text ? path : "");
	snprintf(files[i].text, sizeof(files[i].text), "%s", text ? text : "");
}

void files_setup(void)
{
	static const struct {
		const char *path, *text;
	} attributes[] = {
#define CA "/sys/class/infiniband/mlx5_0/"
		{CA "node_type", "1: CA\n"},
		{CA "fw_ver", "20.31.1014\n"},
		{CA "hw_rev", "0\n"},
		{CA "hca_type", "MT4123\n"},
		{CA "node_guid", "0002:c903:00a0:0b10\n"},
		{CA "sys_image_guid", "0002:c903:00a0:0b13\n"},
		{CA "ports/1/lid", "0x2b\n"},
		{CA "ports/1/lid_mask_count", "1\n"},
		{CA "ports/1/sm_lid", "0x1\n"},
		{CA "ports/1/sm_sl", "3\n"},
		{CA "ports/1/state", "4: ACTIVE\n"},
		{CA "ports/1/phys_state", "5: LinkUp\n"},
		{CA "ports/1/rate", "100 Gb/sec (4X EDR)\n"},
		{CA "ports/1/cap_mask", "0x2651e848\n"},
		{CA "ports/1/link_layer", "InfiniBand\n"},
		{CA "ports/1/gids/0", "fe80:0000:0000:0000:0002:c903:00a0:0b11\n"},
		{CA "ports/1/pkeys/0", "0xffff\n"},
		{CA "ports/1/pkeys/1", "0x7fff\n"},
#undef CA
		{"/sys/class/infiniband_mad/abi_version", "5\n"},
		{"/sys/class/infiniband_mad/umad0/ibdev", "mlx5_0\n"},
		{"/sys/class/infiniband_mad/umad0/port", "1\n"},
	};
	size_t i;

	memset(files, 0, sizeof(files));
	memset(descriptors, 0, sizeof(descriptors));
	for (i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
		device_file(attributes[i].path, attributes[i].text);
}

int files_open(void)
{
	int i, count = 0;

	for (i = 0; i < MAX_OPEN; i++)
		count += descriptors[i].open;
	return count;
}

int files_open_file(const char *path)
{
	const char *text = find_file(path);
	int i;

	if (!text)
		return -ENOENT;
	for (i = 0; i < MAX_OPEN; i++)
		if (!descriptors[i].open) {
			descriptors[i].open = true;
			descriptors[i].text = text;
			return FIRST_FD + i;
		}
	return -EMFILE;
}

static bool is_open(int fd)
{
	return fd >= FIRST_FD && fd < FIRST_FD + MAX_OPEN && descriptors[fd - FIRST_FD].open;
}

int files_close_file(int fd)
{
	if (!is_open(fd))
		return -EBADF;
	descriptors[fd - FIRST_FD].open = false;
	return 0;
}

ssize_t files_read_file(int fd, void *buf, size_t size)
{
	const char **text = &descriptors[is_open(fd) ? fd - FIRST_FD : 0].text;
	size_t length;

	if (!is_open(fd))
		return -EBADF;
	length = strlen(*text);
	if (length > size)
		length = size;
	memcpy(buf, *text, length);
	*text += length;
	return (ssize_t)length;
}

/* The name of a file, or of its folder in dir; whether the file is in dir. */
static bool name_in(const char *dir, const char *path, char name[128])
{
	size_t length = strlen(dir);

	if (strncmp(path, dir, length) || path[length] != '/')
		return false;
	snprintf(name, 128, "%.*s", (int)strcspn(path + length + 1, "/"), path + length + 1);
	return true;
}

/* Whether an earlier file has the same name in the folder. */
static bool is_told(const char *dir, const char *name, int before)
{
	char other[128];
	int i;

	for (i = 0; i < before; i++)
		if (name_in(dir, files[i].path, other) && !strcmp(other, name))
			return true;
	return false;
}

int files_list(const char *dir, sys_visit_fn *visit, void *arg)
{
	bool there = false;
	char name[128];
	int i, err = 0;

	for (i = 0; !err && i < MAX_FILES; i++) {
		if (!name_in(dir, files[i].path, name))
			continue;
		there = true;
		if (!is_told(dir, name, i))
			err = visit(name, arg);
	}
	return there ? err : -ENOENT;
}
