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

static const char *const prefixes[] = {
	"/sys/class/infiniband",
	"/dev/infiniband",
	"/sys/devices/umad-sim",
};

/* A sanitizer replaces the C library's calls. It reports a race if two threads use the same
 * descriptor. With PAST_SANITIZERS, the C library's calls are used directly. */
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
 * Saved at the first use: a program that empties its environment stays on the fabric.
 * Constructors of other libraries may call this before the constructor of this library runs.
 */
static char folder_text[PATH_BYTES];
static unsigned int view;
static char view_folder[PATH_BYTES];

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

/* What follows the ".." that leads out of the folder in which the path begins. NULL: the path
 * stays inside. */
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
 * replaces this part in place by the prefix; the rest of the path stays as it is. If it leads
 * out of the prefix again, the detour is removed.
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

/* Makes a path that begins in the working directory absolute, but only if it may name a
 * device. */
static bool join(const char *path, char joined[PATH_BYTES])
{
	int saved_errno = errno;
	size_t length;

	if (!strstr(path, "infiniband") && !strstr(path, "umad") && !strstr(path, "issm"))
		return false;
	if (!getcwd(joined, PATH_BYTES)) {
		errno = saved_errno;
		return false;
	}
	restore_path(joined);
	length = strlen(joined);
	return snprintf(joined + length, PATH_BYTES - length, "/%s", path) <
	       (int)(PATH_BYTES - length);
}

/* Where a path leads. *from: the path as tidy() writes it, in the buffer, or the path itself
 * if it needs no change. */
static enum way follow(int folder, const char *path, char buffer[PATH_BYTES], const char **from)
{
	*from = path;
	if (path[0] != '/') {
		if (folder != AT_FDCWD || !join(path, buffer))
			return ELSEWHERE;
	} else {
		if (!strstr(path, "/..") && is_below_prefix(path, strlen(path)))
			return INSIDE;
		if ((!strstr(path, "//") && !strstr(path, "/.")) || strlen(path) >= PATH_BYTES)
			return ELSEWHERE;
		strcpy(buffer, path);
	}
	*from = buffer;
	return tidy(buffer);
}

const char *redirect_path_at(int folder, const char *path, char buffer[PATH_BYTES])
{
	const char *inside;
	enum way way;
	size_t start;

	if (!path || !fabric_folder())
		return path;
	way = follow(folder, path, buffer, &inside);
	if (way == ELSEWHERE)
		return path;
	if (way == THROUGH)
		return buffer;
	start = strlen(view_folder);
	if (start + strlen(inside) >= PATH_BYTES) {
		buffer[0] = '\0'; /* a path that does not exist, instead of the real machine's
				   * path */
		return buffer;
	}
	memmove(buffer + start, inside, strlen(inside) + 1);
	memcpy(buffer, view_folder, start);
	return buffer;
}

const char *redirect_path(const char *path, char buffer[PATH_BYTES])
{
	return redirect_path_at(AT_FDCWD, path, buffer);
}

/* The part of a path below the view's folder; NULL if the path does not lead into the view. */
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

bool leads_into_view(const char *redirected)
{
	return redirected && after_view(redirected);
}

enum device_kind device_of_path(const char *redirected, unsigned int *number)
{
	static const char folder[] = "/dev/infiniband/";
	const char *path = redirected ? after_view(redirected) : NULL;
	enum device_kind kind;
	char *end;

	if (!path || strncmp(path, folder, sizeof(folder) - 1) != 0)
		return DEVICE_NONE;
	path += sizeof(folder) - 1;
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
