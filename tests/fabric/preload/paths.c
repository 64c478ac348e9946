/* SPDX-License-Identifier: BSD-2-Clause */

/* Which paths lead into the program's view of the fabric. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload.h"

static const char *const prefixes[] = {
	"/sys/class/infiniband",
	"/dev/infiniband",
	"/sys/devices/umad-sim",
};

/*
 * A sanitizer has its own versions of the C library's calls. They report it as a race that two
 * threads use one descriptor. With PAST_SANITIZERS the C library's own calls are used.
 */
#ifdef PAST_SANITIZERS
#define REAL_CALLS dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD)
#else
#define REAL_CALLS RTLD_NEXT
#endif

void *real_function(const char *name)
{
	void *function = dlsym(REAL_CALLS, name);

	if (!function) {
		fprintf(stderr, "umad-sim: the C library has no %s\n", name);
		abort();
	}
	return function;
}

/*
 * As the environment had them first: a program that empties its environment stays on the
 * fabric. The constructors of other libraries may ask before this library's has run.
 */
static char folder_text[PATH_BYTES];
static char view_text[16];

static void remember(void)
{
	static atomic_bool done;
	const char *folder, *view;

	if (atomic_load_explicit(&done, memory_order_relaxed) || atomic_exchange(&done, true))
		return;
	folder = getenv(ENV_FOLDER);
	view = getenv(ENV_VIEW);
	snprintf(folder_text, sizeof(folder_text), "%s", folder ? folder : "");
	snprintf(view_text, sizeof(view_text), "%s", view ? view : "");
}

const char *fabric_folder(void)
{
	remember();
	return folder_text[0] ? folder_text : NULL;
}

unsigned int view_number(void)
{
	remember();
	return (unsigned int)strtoul(view_text, NULL, 10);
}

static bool is_below_prefix(const char *path)
{
	for (unsigned int i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(path, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/*
 * The path with its beginning as the prefixes are written, where it leads there by way of "//",
 * "/." or "/.."; what follows them is as it was. Else NULL.
 */
static const char *tidy(const char *path, char *buffer, size_t size)
{
	size_t length = 0;

	if (strlen(path) >= size || (!strstr(path, "//") && !strstr(path, "/.")))
		return NULL;
	buffer[0] = '\0';
	while (*path && !is_below_prefix(buffer)) {
		size_t name = strcspn(path += strspn(path, "/"), "/");

		if (name == 2 && !strncmp(path, "..", 2)) {
			while (length && buffer[--length] != '/')
				;
		} else if (name && (name != 1 || *path != '.')) {
			buffer[length++] = '/';
			memcpy(buffer + length, path, name);
			length += name;
		}
		buffer[length] = '\0';
		path += name;
	}
	if (!is_below_prefix(buffer))
		return NULL;
	strcpy(buffer + length, path);
	return buffer;
}

/* A path that begins in the working directory, from the root on. Only if it may name a device.
 */
static bool join(const char *path, char joined[PATH_BYTES])
{
	size_t length;

	if (!strstr(path, "infiniband") && !strstr(path, "umad") && !strstr(path, "issm"))
		return false;
	if (!getcwd(joined, PATH_BYTES))
		return false;
	restore_path(joined);
	length = strlen(joined);
	return snprintf(joined + length, PATH_BYTES - length, "/%s", path) <
	       (int)(PATH_BYTES - length);
}

/* The path, from one of the prefixes on; in the buffer if it is not written so. Else NULL. */
static const char *path_inside(const char *path, char *buffer, size_t size)
{
	char joined[PATH_BYTES];

	if (path[0] == '/')
		return is_below_prefix(path) ? path : tidy(path, buffer, size);
	if (!join(path, joined))
		return NULL;
	if (!is_below_prefix(joined))
		return tidy(joined, buffer, size);
	if (strlen(joined) >= size)
		return NULL;
	return strcpy(buffer, joined);
}

static int view_folder(char *buffer, size_t size)
{
	return snprintf(buffer, size, "%s/view-%u", fabric_folder(), view_number());
}

const char *redirect_path(const char *path, char buffer[PATH_BYTES])
{
	char folder[PATH_BYTES];
	const char *inside;
	int start;

	if (!path || !fabric_folder())
		return path;
	inside = path_inside(path, buffer, PATH_BYTES);
	if (!inside)
		return path;
	start = view_folder(folder, sizeof(folder));
	if (start + (int)strlen(inside) >= PATH_BYTES) {
		buffer[0] = '\0'; /* a path that is nowhere, rather than the machine's own */
		return buffer;
	}
	memmove(buffer + start, inside, strlen(inside) + 1);
	memcpy(buffer, folder, (size_t)start);
	return buffer;
}

void restore_path(char *path)
{
	char folder[PATH_BYTES];
	size_t length;

	if (!fabric_folder())
		return;
	length = (size_t)view_folder(folder, sizeof(folder));
	if (length < sizeof(folder) && strncmp(path, folder, length) == 0 &&
	    path[length] == '/')
		memmove(path, path + length, strlen(path + length) + 1);
}

enum device_kind device_of_path(const char *path, unsigned int *number)
{
	static const char folder[] = "/dev/infiniband/";
	char tidied[256];
	const char *inside;
	enum device_kind kind;
	char *end;

	if (!path || !fabric_folder())
		return DEVICE_NONE;
	inside = path_inside(path, tidied, sizeof(tidied));
	if (!inside || strncmp(inside, folder, sizeof(folder) - 1) != 0)
		return DEVICE_NONE;
	path = inside + sizeof(folder) - 1;
	while (*path == '/' || (path[0] == '.' && path[1] == '/'))
		path++;
	kind = strncmp(path, "umad", 4) == 0   ? DEVICE_UMAD
	       : strncmp(path, "issm", 4) == 0 ? DEVICE_ISSM
					       : DEVICE_NONE;
	if (kind == DEVICE_NONE || path[4] < '0' || path[4] > '9')
		return DEVICE_NONE;
	*number = (unsigned int)strtoul(path + 4, &end, 10);
	return *end ? DEVICE_NONE : kind;
}
