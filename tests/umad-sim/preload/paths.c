/* SPDX-License-Identifier: BSD-2-Clause */

/* Which paths lead into the program's view of the fabric. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload.h"

#define DEVICES "/dev/infiniband"

/* Room for the path of the working directory at the first attempt. */
#define SHORT_PATH 256

static const char *const prefixes[] = {
	"/sys/class/infiniband",
	DEVICES,
	"/sys/devices/umad-sim",
};

/* A sanitizer replaces the C library's calls, and reports a race if two threads use the same
 * descriptor. PAST_SANITIZERS calls the C library directly. */
#ifdef PAST_SANITIZERS
#define REAL_CALLS dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD)
#else
#define REAL_CALLS RTLD_NEXT
#endif

uintptr_t find_real_function(struct real_function *real)
{
	uintptr_t found = (uintptr_t)dlsym(REAL_CALLS, real->name);

	atomic_store_explicit(&real->function, found, memory_order_relaxed);
	if (!found) {
		fprintf(stderr, "umad-sim: the C library has no %s\n", real->name);
		abort();
	}
	return found;
}

/* The linker defines these at both ends of the section. */
extern struct real_function __start_real_functions[], __stop_real_functions[];

/* Not every release of the C library has all these functions; no program calls those that are
 * missing. */
void find_real_functions(void)
{
	for (struct real_function *real = __start_real_functions; real != __stop_real_functions;
	     real++)
		atomic_store_explicit(&real->function, (uintptr_t)dlsym(REAL_CALLS, real->name),
				      memory_order_relaxed);
	dlerror();
}

/* Saved at the first use, so that a program that empties its environment stays on the fabric.
 * Constructors of other libraries may call this before this library's constructor runs. */
static char folder_text[PATH_BYTES];
static unsigned int view;
static char view_folder[PATH_BYTES];
static char devices_folder[PATH_BYTES + 32];

static void remember(void)
{
	static atomic_bool done;
	const char *folder, *number;

	if (atomic_load_explicit(&done, memory_order_relaxed) || atomic_exchange(&done, true))
		return;
	folder = getenv(ENV_FOLDER);
	number = getenv(ENV_VIEW);
	view = number ? (unsigned int)strtoul(number, NULL, 10) : 0;
	snprintf(folder_text, sizeof(folder_text), "%s", folder ? folder : "");
	snprintf(view_folder, sizeof(view_folder), "%.*s/view-%u", PATH_BYTES - 32, folder_text,
		 view);
	snprintf(devices_folder, sizeof(devices_folder), "%s" DEVICES, view_folder);
}

const char *fabric_folder(void)
{
	remember();
	return folder_text[0] ? folder_text : NULL;
}

unsigned int view_number(void)
{
	remember();
	return view;
}

char *append_number(char *text, unsigned long long number)
{
	unsigned long long rest = number;
	char *end = text;

	do
		end++;
	while (rest /= 10);
	*end = '\0';
	for (char *digit = end; digit > text; number /= 10)
		*--digit = (char)('0' + number % 10);
	return end;
}

static bool is_below_prefix(const char *path, size_t length)
{
	for (unsigned int i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (length >= strlen(prefixes[i]) &&
		    !memcmp(path, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* The next component of a path, and its length. */
static const char *component(const char *path, size_t *length)
{
	path += strspn(path, "/");
	*length = strcspn(path, "/");
	return path;
}

static bool is_dot(const char *name, size_t length)
{
	return length == 1 && name[0] == '.';
}

static bool is_dot_dot(const char *name, size_t length)
{
	return length == 2 && name[0] == '.' && name[1] == '.';
}

/* What follows the ".." that leaves the folder in which the path begins; NULL if the path stays
 * inside. */
static const char *way_out(const char *path)
{
	size_t length;
	int depth = 0;

	for (path = component(path, &length); length; path = component(path + length, &length))
		if (is_dot_dot(path, length)) {
			if (--depth < 0)
				return path + length;
		} else if (!is_dot(path, length)) {
			depth++;
		}
	return NULL;
}

static size_t parent(const char *path, size_t length)
{
	while (length && path[--length] != '/')
		;
	return length;
}

enum way {
	ELSEWHERE, /* does not lead below a prefix */
	INSIDE,
	THROUGH, /* into a prefix, and out of it again */
};

/*
 * Finds out where an absolute path leads. If it leads below a prefix by "//", "/." or "/..",
 * replaces that part in place with the prefix and keeps the rest. If it leads out of the prefix
 * again, removes the detour.
 */
static enum way tidy(char *path)
{
	const char *rest = path, *out;
	size_t length = 0, name;
	enum way way = ELSEWHERE;

	for (;;) {
		if (is_below_prefix(path, length)) {
			out = way_out(rest);
			if (!out) {
				memmove(path + length, rest, strlen(rest) + 1);
				return INSIDE;
			}
			way = THROUGH;
			length = parent(path, length);
			rest = out;
			continue;
		}
		rest = component(rest, &name);
		if (!name) {
			path[length] = '\0';
			return way;
		}
		if (is_dot_dot(rest, name)) {
			length = parent(path, length);
		} else if (!is_dot(rest, name)) {
			path[length++] = '/';
			memmove(path + length, rest, name);
			length += name;
		}
		rest += name;
	}
}

/* Whether a path relative to the working directory may name a device. */
static bool may_name_device(const char *path)
{
	return strstr(path, "infiniband") || strstr(path, "umad") || strstr(path, "issm");
}

/* The length of the working directory's path; more if it is long. */
static size_t folder_bytes(void)
{
	char folder[SHORT_PATH];
	int saved_errno = errno;
	size_t bytes = getcwd(folder, sizeof(folder)) ? strlen(folder) : PATH_BYTES;

	errno = saved_errno;
	return bytes;
}

/* Makes a path relative to the working directory absolute. False if it gets too long. */
static bool join(const char *path, char *joined, size_t size)
{
	int saved_errno = errno;
	size_t length;

	if (!getcwd(joined, size)) {
		errno = saved_errno;
		return false;
	}
	restore_path(joined);
	length = strlen(joined);
	if (length + 1 + strlen(path) >= size)
		return false;
	joined[length] = '/';
	strcpy(joined + length + 1, path);
	return true;
}

/* A folder's numbers; false if there is no such folder. */
static bool __attribute__((noinline))
identify(int folder, const char *path, unsigned int *major, unsigned int *minor,
	 uint64_t *inode)
{
	struct statx status;

	if (REAL(statx)(folder, path, AT_EMPTY_PATH, STATX_INO, &status))
		return false;
	*major = status.stx_dev_major;
	*minor = status.stx_dev_minor;
	*inode = status.stx_ino;
	return true;
}

bool is_folder_of_devices(int fd)
{
	unsigned int major[2], minor[2];
	int saved_errno = errno;
	uint64_t inode[2];
	bool is_same;

	is_same = fabric_folder() && identify(fd, "", &major[0], &minor[0], &inode[0]) &&
		  identify(AT_FDCWD, devices_folder, &major[1], &minor[1], &inode[1]) &&
		  major[0] == major[1] && minor[0] == minor[1] && inode[0] == inode[1];
	errno = saved_errno;
	return is_same;
}

enum form {
	PLAIN,    /* leads nowhere else */
	BELOW,    /* below a prefix */
	DETOUR,   /* may lead there by "//", "/." or "/.." */
	RELATIVE, /* may lead there from the working directory */
	NAME      /* of a device, in the folder of devices */
};

static enum form form_of(int folder, const char *path)
{
	unsigned int number;

	if (path[0] != '/' && folder == AT_FDCWD)
		return may_name_device(path) ? RELATIVE : PLAIN;
	if (path[0] != '/')
		return device_of_name(path, &number) && is_folder_of_devices(folder) ? NAME
										     : PLAIN;
	if (!strstr(path, "/..") && is_below_prefix(path, strlen(path)))
		return BELOW;
	return strstr(path, "//") || strstr(path, "/.") ? DETOUR : PLAIN;
}

size_t redirect_bytes(int folder, const char *path)
{
	enum form form;
	size_t bytes;

	if (!path || !fabric_folder())
		return 0;
	form = form_of(folder, path);
	if (form == PLAIN)
		return 0;
	bytes = strlen(path);
	if (bytes >= PATH_BYTES)
		return form == BELOW;
	if (form == RELATIVE)
		bytes += folder_bytes() + 1;
	if (form == NAME)
		bytes += strlen(DEVICES "/");
	return strlen(view_folder) + bytes + 1;
}

/* Where a path leads. *from: the path as tidy() rewrites it, in the buffer, or the path itself
 * if it needs no change. */
static enum way follow(int folder, const char *path, char *buffer, size_t size,
		       const char **from)
{
	enum form form = form_of(folder, path);

	*from = path;
	if (form == PLAIN || form == BELOW)
		return form == BELOW ? INSIDE : ELSEWHERE;
	*from = buffer;
	if (form == NAME) {
		stpcpy(stpcpy(buffer, DEVICES "/"), path);
		return INSIDE;
	}
	if (form == DETOUR)
		strcpy(buffer, path);
	else if (!join(path, buffer, size - strlen(view_folder)))
		return ELSEWHERE;
	return tidy(buffer);
}

const char *redirect_path_at(int folder, const char *path, char *buffer, size_t size)
{
	const char *inside;
	enum way way = follow(folder, path, buffer, size, &inside);
	size_t start;

	if (way == ELSEWHERE)
		return path;
	if (way == THROUGH)
		return buffer;
	start = strlen(view_folder);
	if (start + strlen(inside) >= (size < PATH_BYTES ? size : PATH_BYTES)) {
		buffer[0] =
			'\0'; /* a path that does not exist, rather than the real machine's */
		return buffer;
	}
	memmove(buffer + start, inside, strlen(inside) + 1);
	memcpy(buffer, view_folder, start);
	return buffer;
}

/* The part of a path below the view's folder; NULL if it does not lead into the view. */
static const char *after_view(const char *path)
{
	size_t length;

	if (!fabric_folder())
		return NULL;
	length = strlen(view_folder);
	return !strncmp(path, view_folder, length) && path[length] == '/' ? path + length
									  : NULL;
}

void restore_path(char *path)
{
	const char *inside = after_view(path);

	if (inside)
		memmove(path, inside, strlen(inside) + 1);
}

bool is_empty(const char *path)
{
	return !path || !*path;
}

bool leads_into_view(const char *redirected)
{
	return redirected && after_view(redirected);
}

bool leads_into_sysfs(const char *redirected)
{
	const char *path = redirected ? after_view(redirected) : NULL;

	return path && !strncmp(path, "/sys/", strlen("/sys/"));
}

bool is_sysfs_file(unsigned int mode, unsigned int major, unsigned int minor)
{
	unsigned int of_view[2];
	int saved_errno = errno;
	uint64_t inode;
	bool is_here;

	if (!S_ISREG(mode) || !(mode & SYSFS_FILE) || !fabric_folder())
		return false;
	is_here = identify(AT_FDCWD, devices_folder, &of_view[0], &of_view[1], &inode) &&
		  of_view[0] == major && of_view[1] == minor;
	errno = saved_errno;
	return is_here;
}

enum device_kind device_of_name(const char *name, unsigned int *number)
{
	enum device_kind kind = strncmp(name, "umad", 4) == 0   ? DEVICE_UMAD
				: strncmp(name, "issm", 4) == 0 ? DEVICE_ISSM
								: DEVICE_NONE;
	char *end;

	if (kind == DEVICE_NONE || name[4] < '0' || name[4] > '9')
		return DEVICE_NONE;
	*number = (unsigned int)strtoul(name + 4, &end, 10);
	return *end ? DEVICE_NONE : kind;
}

enum device_kind device_of_path(const char *redirected, unsigned int *number)
{
	static const char folder[] = DEVICES "/";
	const char *path = redirected ? after_view(redirected) : NULL;

	if (!path || strncmp(path, folder, sizeof(folder) - 1) != 0)
		return DEVICE_NONE;
	path += sizeof(folder) - 1;
	while (*path == '/' || (path[0] == '.' && path[1] == '/'))
		path++;
	return device_of_name(path, number);
}

const char *folder_of_devices(void)
{
	return fabric_folder() ? devices_folder : NULL;
}
