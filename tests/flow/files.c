/* SPDX-License-Identifier: BSD-2-Clause */

/* The sysfs of the judge's machine: one device with one port and its umad device. */

#include "files.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MAX_OPEN 16

#define CA "/sys/class/infiniband/mlx5_0/"
/* Files of a folder follow one another. */
static const struct {
	const char *path, *text;
} files[] = {
	{CA "node_type", "1: CA\n"},
	{CA "fw_ver", "20.31.1014\n"},
	{CA "hw_rev", "0\n"},
	{CA "hca_type", "MT4123\n"},
	{CA "node_guid", "0002:c903:00a0:0b10\n"},
	{CA "sys_image_guid", "0002:c903:00a0:0b13\n"},
	{CA "ports/1/lid", "0xbfff\n"},
	{CA "ports/1/lid_mask_count", "0\n"},
	{CA "ports/1/sm_lid", "0x1\n"},
	{CA "ports/1/sm_sl", "0\n"},
	{CA "ports/1/state", "4: ACTIVE\n"},
	{CA "ports/1/phys_state", "5: LinkUp\n"},
	{CA "ports/1/rate", "100 Gb/sec (4X EDR)\n"},
	{CA "ports/1/cap_mask", "0x2651e848\n"},
	{CA "ports/1/link_layer", "InfiniBand\n"},
	{CA "ports/1/gids/0", "fe80:0000:0000:0000:0002:c903:00a0:0b11\n"},
	{CA "ports/1/pkeys/0", "0xffff\n"},
	{"/sys/class/infiniband_mad/abi_version", "5\n"},
	{"/sys/class/infiniband_mad/umad0/ibdev", "mlx5_0\n"},
	{"/sys/class/infiniband_mad/umad0/port", "1\n"},
};
#define FILES (sizeof(files) / sizeof(*files))

static const char *unread[MAX_OPEN]; /* the text that is left of each open file */

int files_open(const char *path)
{
	for (size_t i = 0; i < FILES; i++) {
		if (strcmp(files[i].path, path))
			continue;
		for (int fd = 0; fd < MAX_OPEN; fd++)
			if (!unread[fd]) {
				unread[fd] = files[i].text;
				return fd + FILES_FIRST_FD;
			}
		return -EMFILE;
	}
	return -ENOENT;
}

static const char **text_of(int fd)
{
	int place = fd - FILES_FIRST_FD;

	return place >= 0 && place < MAX_OPEN && unread[place] ? &unread[place] : NULL;
}

int files_close(int fd)
{
	const char **text = text_of(fd);

	if (!text)
		return -EBADF;
	*text = NULL;
	return 0;
}

ssize_t files_read(int fd, void *buf, size_t size)
{
	const char **text = text_of(fd);
	size_t length;

	if (!text)
		return -EBADF;
	length = strlen(*text);
	if (length > size)
		length = size;
	memcpy(buf, *text, length);
	*text += length;
	return (ssize_t)length;
}

int files_list(const char *dir, sys_visit_fn *visit, void *arg)
{
	size_t length = strlen(dir);
	char name[64], previous[64] = "";
	int ret = 0;

	for (size_t i = 0; i < FILES && !ret; i++) {
		const char *path = files[i].path;

		if (strncmp(path, dir, length) || path[length] != '/')
			continue;
		path += length + 1;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(path, "/"), path);
		if (strcmp(name, previous))
			ret = visit(name, arg);
		memcpy(previous, name, sizeof(name));
	}
	return *previous ? ret : -ENOENT;
}
