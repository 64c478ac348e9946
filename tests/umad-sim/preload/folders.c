/* SPDX-License-Identifier: BSD-2-Clause */

/* Replaces the C library's calls that read folders. A device is a regular file in the view, but
 * must be a character device in its folder's entries, as in the kernel's /dev. */
#undef _FILE_OFFSET_BITS /* each name is a function of its own */
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

EXPORT DIR *opendir(const char *path)
{
	return REAL(opendir)(REDIRECT(path));
}

/* The type of an entry as in the kernel. */
static unsigned char type_of(DIR *folder, const char *name, unsigned char type)
{
	unsigned int number;

	if (type != DT_REG || device_of_name(name, &number) == DEVICE_NONE ||
	    !is_folder_of_devices(dirfd(folder)))
		return type;
	return DT_CHR;
}

#define READDIR(name, entry_type)                                                      \
	EXPORT entry_type *name(DIR *folder)                                           \
	{                                                                              \
		entry_type *entry = REAL(name)(folder);                                \
                                                                                       \
		if (entry)                                                             \
			entry->d_type = type_of(folder, entry->d_name, entry->d_type); \
		return entry;                                                          \
	}

READDIR(readdir, struct dirent)
READDIR(readdir64, struct dirent64)

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define READDIR_R(name, entry_type)                                                    \
	EXPORT int name(DIR *restrict folder, entry_type *restrict entry,              \
			entry_type **restrict result)                                  \
	{                                                                              \
		int error = REAL(name)(folder, entry, result);                         \
                                                                                       \
		if (!error && *result)                                                 \
			entry->d_type = type_of(folder, entry->d_name, entry->d_type); \
		return error;                                                          \
	}

READDIR_R(readdir_r, struct dirent)
READDIR_R(readdir64_r, struct dirent64)

/* The C library's scandir() does not call readdir(). */
#define SCANDIR(name, entry_type, read_entry)                                          \
	/* Adds a copy of an entry; false on OOM. */                                   \
	static bool name##_add(entry_type ***list, int count, const entry_type *entry) \
	{                                                                              \
		entry_type **longer = *list;                                           \
                                                                                       \
		if (!(count & (count - 1))) /* its size is a power of 2 */             \
			longer = reallocarray(*list, count ? 2 * (size_t)count : 1,    \
					      sizeof(*longer));                        \
		if (!longer)                                                           \
			return false;                                                  \
		*list = longer;                                                        \
		longer[count] = malloc(entry->d_reclen);                               \
		if (longer[count])                                                     \
			memcpy(longer[count], entry, entry->d_reclen);                 \
		return longer[count] != NULL;                                          \
	}                                                                              \
	/* Returns the number of entries; sets *error. */                              \
	static int name##_read(DIR *folder, entry_type ***list,                        \
			       int (*filter)(const entry_type *), int *error)          \
	{                                                                              \
		entry_type *entry;                                                     \
		int count = 0;                                                         \
                                                                                       \
		for (;;) {                                                             \
			errno = 0;                                                     \
			entry = read_entry(folder);                                    \
			*error = entry ? 0 : errno;                                    \
			if (!entry)                                                    \
				return count;                                          \
			if (filter && !filter(entry))                                  \
				continue;                                              \
			if (!name##_add(list, count, entry)) {                         \
				*error = ENOMEM;                                       \
				return count;                                          \
			}                                                              \
			count++;                                                       \
		}                                                                      \
	}                                                                              \
	EXPORT int name(const char *path, entry_type ***list,                          \
			int (*filter)(const entry_type *),                             \
			int (*compare)(const entry_type **, const entry_type **))      \
	{                                                                              \
		const char *instead = REDIRECT(path);                                  \
		entry_type **found = NULL;                                             \
		int saved_errno = errno;                                               \
		int count, error;                                                      \
		DIR *folder;                                                           \
                                                                                       \
		if (!leads_into_view(instead))                                         \
			return REAL(name)(instead, list, filter, compare);             \
		folder = REAL(opendir)(instead);                                       \
		if (!folder)                                                           \
			return -1;                                                     \
		count = name##_read(folder, &found, filter, &error);                   \
		closedir(folder);                                                      \
		if (error) {                                                           \
			while (count > 0)                                              \
				free(found[--count]);                                  \
			free(found);                                                   \
			errno = error;                                                 \
			return -1;                                                     \
		}                                                                      \
		if (compare && count)                                                  \
			qsort(found, (size_t)count, sizeof(*found),                    \
			      (int (*)(const void *, const void *))compare);           \
		*list = found;                                                         \
		errno = saved_errno;                                                   \
		return count;                                                          \
	}

SCANDIR(scandir, struct dirent, readdir)
SCANDIR(scandir64, struct dirent64, readdir64)

/* glob() calls internal functions of the C library unless it is given others. */

static void *glob_open(const char *path)
{
	return opendir(path);
}

static void glob_close(void *folder)
{
	closedir(folder);
}

#define GLOB(name, glob_type, entry_type, status_type, readdir, stat, lstat)             \
	static entry_type *name##_read(void *folder)                                     \
	{                                                                                \
		return readdir(folder);                                                  \
	}                                                                                \
	static int name##_stat(const char *path, status_type *status)                    \
	{                                                                                \
		return stat(path, status);                                               \
	}                                                                                \
	static int name##_lstat(const char *path, status_type *status)                   \
	{                                                                                \
		return lstat(path, status);                                              \
	}                                                                                \
	EXPORT int name(const char *pattern, int flags,                                  \
			int (*on_error)(const char *path, int error), glob_type *result) \
	{                                                                                \
		glob_type callers = *result;                                             \
		int error;                                                               \
                                                                                         \
		if (flags & GLOB_ALTDIRFUNC)                                             \
			return REAL(name)(pattern, flags, on_error, result);             \
		result->gl_opendir = glob_open;                                          \
		result->gl_readdir = name##_read;                                        \
		result->gl_closedir = glob_close;                                        \
		result->gl_stat = name##_stat;                                           \
		result->gl_lstat = name##_lstat;                                         \
		error = REAL(name)(pattern, flags | GLOB_ALTDIRFUNC, on_error, result);  \
		result->gl_opendir = callers.gl_opendir;                                 \
		result->gl_readdir = callers.gl_readdir;                                 \
		result->gl_closedir = callers.gl_closedir;                               \
		result->gl_stat = callers.gl_stat;                                       \
		result->gl_lstat = callers.gl_lstat;                                     \
		result->gl_flags &= ~GLOB_ALTDIRFUNC;                                    \
		return error;                                                            \
	}

GLOB(glob, glob_t, struct dirent, struct stat, readdir, stat, lstat)
GLOB(glob64, glob64_t, struct dirent64, struct stat64, readdir64, stat64, lstat64)
