/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * sysfs_files: prints the files of all InfiniBand devices, two lines for each: "PATH TYPE MODE
 * SIZE VALUE" and "PATH CALL: RESULT, ...". The folders of a device have the paths of its
 * class, and ADAPTER is the folder above them. The value of a link is the path to which it
 * leads. The counters of the driver are "#".
 *
 * sysfs_files ports: prints what umad_get_cas_names(), umad_get_ca() and umad_get_port()
 * return.
 */
#include <infiniband/umad.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define MOST_BYTES 4096

static char adapter[PATH_MAX]; /* of the device whose files are printed */

static void print_result(const char *call, bool succeeded)
{
	printf(", %s: %s", call, succeeded ? "success" : strerror(errno));
}

/* --- the content of a file ----------------------------------------------------------- */

/* Reads a file in parts of this size. Returns the length, or -1 with errno. */
static ssize_t read_parts(int fd, size_t part, char content[MOST_BYTES])
{
	size_t length = 0;
	ssize_t got;

	do {
		size_t rest = MOST_BYTES - length;

		got = read(fd, content + length, part < rest ? part : rest);
		length += got > 0 ? (size_t)got : 0;
	} while (got > 0);
	return got < 0 ? -1 : (ssize_t)length;
}

/* Counters of the driver may change meanwhile. */
static bool is_of_driver(const char *path)
{
	return strstr(path, "/hw_counters/");
}

static void print_content(const char *path, const char *content, size_t length)
{
	if (is_of_driver(path) && length && strspn(content, "0123456789") == length - 1) {
		printf(" #\\n");
		return;
	}
	putchar(' ');
	for (size_t i = 0; i < length; i++)
		if (content[i] == '\n')
			fputs("\\n", stdout);
		else
			putchar(content[i]);
}

static void read_file(const char *path)
{
	char content[MOST_BYTES];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read_parts(fd, MOST_BYTES, content);

	if (length < 0)
		printf(" %s", strerror(errno));
	else
		print_content(path, content, (size_t)length);
	if (fd >= 0)
		close(fd);
}

/* --- calls on a file ------------------------------------------------------------------ */

/* Prints whether a part of a file is that part of the whole. */
static void print_same(const char *path, const char *what, const char *part, ssize_t length,
		       const char *whole, ssize_t expected)
{
	if (is_of_driver(path) && length >= 0)
		return;
	printf(", %s: %s", what,
	       length < 0 ? strerror(errno)
	       : length == expected && memcmp(part, whole, (size_t)length) == 0 ? "same"
										: "different");
}

/* Offsets and parts: the same bytes as at once. */
static void read_by_parts(const char *path, int fd)
{
	char whole[MOST_BYTES], part[MOST_BYTES];
	ssize_t length = read_parts(fd, MOST_BYTES, whole);

	print_result("rewind", lseek(fd, 0, SEEK_SET) == 0);
	print_same(path, "single bytes", part, read_parts(fd, 1, part), whole, length);
	print_same(path, "from byte 1", part, pread(fd, part, MOST_BYTES, 1), whole + 1,
		   length > 0 ? length - 1 : 0);
	printf(", after the end: %zd", pread(fd, part, MOST_BYTES, 4000));
	printf(", end: %lld, data: %lld, hole: %lld", (long long)lseek(fd, 0, SEEK_END),
	       (long long)lseek(fd, 1, SEEK_DATA), (long long)lseek(fd, 1, SEEK_HOLE));
}

/* Opens and closes. */
static void print_open(const char *call, const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0644);

	print_result(call, fd >= 0);
	if (fd >= 0)
		close(fd);
}

/* The same by a stream. */
static void print_stream(const char *call, const char *path, const char *mode)
{
	FILE *file = fopen(path, mode);

	print_result(call, file != NULL);
	if (file)
		fclose(file);
}

static void try_file(const char *path, const struct stat *status)
{
	char below[PATH_MAX + 8], target[PATH_MAX];
	struct stat opened = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	print_result("open", fd >= 0);
	if (fd >= 0) {
		print_result("fstat", fstat(fd, &opened) == 0);
		if (opened.st_size != status->st_size || opened.st_mode != status->st_mode)
			printf(" (size %lld, mode %04o)", (long long)opened.st_size,
			       opened.st_mode & 07777);
		read_by_parts(path, fd);
		close(fd);
	}
	print_open("open to write", path, O_WRONLY);
	print_open("open to read and write", path, O_RDWR | O_CREAT);
	print_open("exclusive", path, O_WRONLY | O_CREAT | O_EXCL);
	print_stream("stream to write", path, "we");
	print_stream("stream to read and write", path, "r+e");
	print_stream("exclusive stream", path, "wxe");
	print_open("as a folder", path, O_RDONLY | O_DIRECTORY);
	snprintf(below, sizeof(below), "%s/x", path);
	print_open("below it", below, O_RDONLY);
	print_result("readlink", readlink(path, target, sizeof(target)) >= 0);
	print_result("access", access(path, R_OK) == 0);
	print_result("access to execute", access(path, X_OK) == 0);
}

static void try_folder(const char *path)
{
	char below[PATH_MAX + 8];

	snprintf(below, sizeof(below), "%s/x", path);
	print_open("open to write", path, O_WRONLY);
	print_open("missing file", below, O_RDONLY);
	print_open("new file", below, O_CREAT | O_WRONLY);
}

/* --- the tree ------------------------------------------------------------------------ */

static void print_target(const char *path)
{
	char target[PATH_MAX], *resolved = realpath(path, NULL);
	size_t length = strlen(adapter);
	ssize_t got = readlink(path, target, sizeof(target) - 1);

	if (!resolved)
		printf(" %s", strerror(errno));
	else if (length && strncmp(resolved, adapter, length) == 0)
		printf(" ADAPTER%s", resolved + length);
	else
		printf(" %s", resolved);
	if (got > 0 && target[0] == '/')
		printf(" (absolute)");
	free(resolved);
}

static char type_of(mode_t mode)
{
	return S_ISREG(mode)   ? '-'
	       : S_ISDIR(mode) ? 'd'
	       : S_ISLNK(mode) ? 'l'
	       : S_ISCHR(mode) ? 'c'
			       : '?';
}

static void walk(const char *path);

static void print_file(const char *path, unsigned char entry_type)
{
	struct stat status;

	if (lstat(path, &status)) {
		printf("%s: %s\n", path, strerror(errno));
		return;
	}
	printf("%s %c %04o %lld", path, type_of(status.st_mode), status.st_mode & 07777,
	       (long long)status.st_size);
	if (status.st_blocks)
		printf(" (%lld blocks)", (long long)status.st_blocks);
	if (S_ISLNK(status.st_mode))
		print_target(path);
	if (S_ISREG(status.st_mode))
		read_file(path);
	if (S_ISCHR(status.st_mode))
		printf(" %u:%u", major(status.st_rdev), minor(status.st_rdev));
	printf("\n%s readdir: %s", path,
	       entry_type == IFTODT(status.st_mode) ? "same type" : "another type");
	if (S_ISREG(status.st_mode))
		try_file(path, &status);
	if (S_ISDIR(status.st_mode))
		try_folder(path);
	putchar('\n');
	if (S_ISDIR(status.st_mode))
		walk(path);
}

static int is_name(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static void walk(const char *path)
{
	struct dirent **entries;
	int count = scandir(path, &entries, is_name, alphasort);

	if (count < 0)
		printf("%s: %s\n", path, strerror(errno));
	for (int i = 0; i < count; i++) {
		char below[PATH_MAX];

		snprintf(below, sizeof(below), "%s/%s", path, entries[i]->d_name);
		print_file(below, entries[i]->d_type);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

/* A file of the PCI device, which tools read. */
static void print_of_adapter(const char *device, const char *name)
{
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/device/%s", device, name);
	print_file(path, DT_REG);
}

/* The entries of a class are links to the folders of devices: prints these as parts of the
 * class. */
static void print_class(const char *class)
{
	struct dirent **entries;
	int count = scandir(class, &entries, is_name, alphasort);

	for (int i = 0; i < count; i++) {
		char path[PATH_MAX], *resolved;

		snprintf(path, sizeof(path), "%s/%s", class, entries[i]->d_name);
		resolved = realpath(path, NULL);
		snprintf(adapter, sizeof(adapter), "%s", resolved ? resolved : "");
		for (int level = 0; level < 2 && adapter[0]; level++)
			*strrchr(adapter, '/') = '\0';
		print_file(path, entries[i]->d_type);
		if (resolved && entries[i]->d_type == DT_LNK)
			walk(path);
		if (strstr(path, "/infiniband/")) {
			print_of_adapter(path, "vendor");
			print_of_adapter(path, "device");
		}
		free(resolved);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

/* --- ports ---------------------------------------------------------------------------- */

static void print_port(const umad_port_t *port)
{
	printf("%s port %d: lid 0x%x lmc %u sm 0x%x sl %u state %u phys %u rate %u mask 0x%08x "
	       "prefix 0x%016" PRIx64 " guid 0x%016" PRIx64 " %s\n",
	       port->ca_name, port->portnum, port->base_lid, port->lmc, port->sm_lid,
	       port->sm_sl, port->state, port->phys_state, port->rate, be32toh(port->capmask),
	       be64toh(port->gid_prefix), be64toh(port->port_guid), port->link_layer);
	for (unsigned int i = 0; i < port->pkeys_size; i++)
		printf(" %04x", port->pkeys[i]);
	putchar('\n');
}

static void print_ca(const char *name)
{
	umad_ca_t ca;

	if (umad_get_ca(name, &ca)) {
		printf("%s: no CA\n", name);
		return;
	}
	printf("%s: %s, type %u, %d ports, firmware %s, hardware %s, type %s, guid "
	       "0x%016" PRIx64 ", system 0x%016" PRIx64 "\n",
	       name, ca.ca_name, ca.node_type, ca.numports, ca.fw_ver, ca.hw_ver, ca.ca_type,
	       be64toh(ca.node_guid), be64toh(ca.system_guid));
	for (int number = 0; number <= ca.numports; number++) {
		umad_port_t port;

		if (umad_get_port(name, number, &port))
			continue;
		print_port(&port);
		umad_release_port(&port);
	}
	umad_release_ca(&ca);
}

static void print_ports(void)
{
	char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];
	int count = umad_init() ? -1 : umad_get_cas_names(names, UMAD_MAX_DEVICES);

	printf("%d CAs\n", count);
	for (int i = 0; i < count; i++)
		print_ca(names[i]);
	umad_done();
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "ports") == 0) {
		print_ports();
		return 0;
	}
	print_class("/sys/class/infiniband");
	print_class("/sys/class/infiniband_mad");
	adapter[0] = '\0';
	walk("/dev/infiniband");
	return 0;
}
