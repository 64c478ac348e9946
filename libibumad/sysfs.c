/* SPDX-License-Identifier: BSD-2-Clause */

#include "sysfs.h"
#include "sys.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than the longest attribute that the library needs; the rest is not read. */
#define ATTRIBUTE_MAX 256

int sysfs_path(char path[SYSFS_PATH_MAX], const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(path, SYSFS_PATH_MAX, format, args);
	va_end(args);
	return length >= 0 && length < SYSFS_PATH_MAX ? 0 : -ENAMETOOLONG;
}

bool sysfs_shortage(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -EINTR;
}

bool sysfs_absent(int err)
{
	return err < 0 && !sysfs_shortage(err) && err != -EACCES && err != -EPERM;
}

/* The attribute's first line, terminated. Returns its length. */
static int read_line(const char *dir, const char *name, char line[ATTRIBUTE_MAX])
{
	char path[SYSFS_PATH_MAX];
	ssize_t length;
	int err, fd;

	err = sysfs_path(path, "%s/%s", dir, name);
	if (err < 0)
		return err;
	/* O_NONBLOCK: a file that is not a plain file must not block the caller */
	fd = sys_open(path, O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		return fd;
	length = sys_read(fd, line, ATTRIBUTE_MAX - 1);
	sys_close(fd);
	/* EINVAL: the kernel has no value of the attribute */
	if (length < 0)
		return length == -EINVAL ? -EIO : (int)length;
	line[length] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return (int)strlen(line);
}

int sysfs_read_text(const char *dir, const char *name, char *text, size_t size)
{
	char line[ATTRIBUTE_MAX];
	int length = read_line(dir, name, line);
	size_t kept;

	if (length < 0)
		return length;
	kept = (size_t)length < size ? (size_t)length : size - 1;
	memcpy(text, line, kept);
	text[kept] = '\0';
	return length;
}

int sysfs_read_uint(const char *dir, const char *name, unsigned *value)
{
	char line[ATTRIBUTE_MAX];
	unsigned long number;
	int length = read_line(dir, name, line);

	if (length < 0)
		return length;
	if (!isdigit((unsigned char)line[0]))
		return -EIO;
	errno = 0;
	number = strtoul(line, NULL, 0);
	if (errno || number > UINT_MAX)
		return -EIO;
	*value = (unsigned)number;
	return 0;
}

/* Parses groups of one to four hex digits with colons between them. */
static int read_groups(const char *dir, const char *name, __be16 *groups, int count)
{
	char line[ATTRIBUTE_MAX];
	const char *text = line;
	int i, length = read_line(dir, name, line);
	size_t digits;

	if (length < 0)
		return length;
	for (i = 0; i < count; i++) {
		digits = strspn(text, "0123456789abcdefABCDEF");
		if (digits < 1 || digits > 4 || text[digits] != (i + 1 < count ? ':' : '\0'))
			return -EIO;
		groups[i] = htobe16((uint16_t)strtoul(text, NULL, 16));
		text += digits + 1;
	}
	return 0;
}

int sysfs_read_guid(const char *dir, const char *name, __be64 *guid)
{
	__be16 groups[4];
	int err = read_groups(dir, name, groups, 4);

	if (!err)
		memcpy(guid, groups, sizeof(groups));
	return err;
}

int sysfs_read_gid(const char *dir, const char *name, union umad_gid *gid)
{
	union umad_gid read;
	int err = read_groups(dir, name, read.raw_be16, 8);

	if (!err)
		*gid = read;
	return err;
}

/* --- the folder of a device ------------------------------------------------------- */

bool node_name_valid(const char *ca_name)
{
	size_t length = strnlen(ca_name, UMAD_CA_NAME_LEN);

	return length > 0 && length < UMAD_CA_NAME_LEN && ca_name[0] != '.' &&
	       !strchr(ca_name, '/');
}

/* A valid name is short, so that neither path is cut. */
void node_path(char path[SYSFS_PATH_MAX], const char *ca_name)
{
	snprintf(path, SYSFS_PATH_MAX, "%s/%s", SYS_INFINIBAND, ca_name);
}

void node_port_path(char path[SYSFS_PATH_MAX], const char *ca_name, int portnum)
{
	snprintf(path, SYSFS_PATH_MAX, "%s/%s/%s/%d", SYS_INFINIBAND, ca_name, SYS_CA_PORTS_DIR,
		 portnum);
}

int node_any_type(const char *ca_name)
{
	char path[SYSFS_PATH_MAX];
	unsigned type;
	int err;

	if (!node_name_valid(ca_name))
		return -ENODEV;
	node_path(path, ca_name);
	err = sysfs_read_uint(path, SYS_NODE_TYPE, &type);
	if (err)
		return sysfs_absent(err) ? -ENODEV : err;
	return type <= INT_MAX ? (int)type : -ENODEV;
}

int node_type(const char *ca_name)
{
	int type = node_any_type(ca_name);

	return type < 0 || (type >= NODE_CA && type <= NODE_ROUTER) ? type : -ENODEV;
}

int node_gone(const char *ca_name)
{
	char path[SYSFS_PATH_MAX];
	unsigned type;
	int err;

	if (!node_name_valid(ca_name))
		return 0;
	node_path(path, ca_name);
	err = sysfs_read_uint(path, SYS_NODE_TYPE, &type);
	if (sysfs_shortage(err))
		return err;
	return err == -ENOENT || err == -ENODEV;
}

struct port_marks {
	bool *ports;
	int highest;
};

static int mark_port(const char *name, void *arg)
{
	struct port_marks *marks = arg;
	int number;

	/* the name of a port is its number, without leading zeros */
	if (!*name || strspn(name, "0123456789") != strlen(name) || (name[0] == '0' && name[1]))
		return 0;
	number = strlen(name) > 3 ? NODE_PORTS_MAX : atoi(name);
	if (number >= NODE_PORTS_MAX)
		return -EIO;
	marks->ports[number] = true;
	if (marks->highest < number)
		marks->highest = number;
	return 0;
}

int node_ports(const char *ca_name, bool ports[NODE_PORTS_MAX])
{
	struct port_marks marks = {.ports = ports};
	char path[SYSFS_PATH_MAX];
	int err;

	memset(ports, 0, NODE_PORTS_MAX * sizeof(*ports));
	err = sysfs_path(path, "%s/%s/%s", SYS_INFINIBAND, ca_name, SYS_CA_PORTS_DIR);
	if (!err)
		err = sys_list(path, mark_port, &marks);
	return err ? err : marks.highest;
}
