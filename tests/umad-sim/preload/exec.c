/* SPDX-License-Identifier: BSD-2-Clause */

/* Puts the programs that a program starts on the fabric, too, whatever their environment: a
 * script may clear it. */
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <wordexp.h>

#include "preload.h"

/* A new environment larger than this is not on the stack. */
#define LARGE 2048

/* The fabric's variables in this program, NAME=value, and the library's path. */
static char folder_entry[PATH_BYTES + sizeof(ENV_FOLDER)];
static char view_entry[64];
static char library[PATH_BYTES];

/*
 * Finds the library's path, and its length, in a value of LD_PRELOAD; NULL if it is not there.
 */
static const char *find_library(const char *preload, size_t *length)
{
	const size_t name = strlen(LIBRARY_NAME);

	while (*preload) {
		*length = strcspn(preload, ": ");
		if (*length >= name && *length < PATH_BYTES &&
		    !memcmp(preload + *length - name, LIBRARY_NAME, name) &&
		    (*length == name || preload[*length - name - 1] == '/'))
			return preload;
		preload += *length;
		preload += strspn(preload, ": ");
	}
	return NULL;
}

void exec_begin_program(void)
{
	const char *preload = getenv("LD_PRELOAD"), *path;
	size_t length;

	if (!fabric_folder())
		return;
	snprintf(folder_entry, sizeof(folder_entry), "%s=%s", ENV_FOLDER, fabric_folder());
	snprintf(view_entry, sizeof(view_entry), "%s=%u", ENV_VIEW, view_number());
	path = preload ? find_library(preload, &length) : NULL;
	if (path)
		snprintf(library, sizeof(library), "%.*s", (int)length, path);
}

static bool is_entry(const char *entry, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(entry, name, length) && entry[length] == '=';
}

static const char *value_in(char *const environment[], const char *name)
{
	for (; environment && *environment; environment++)
		if (is_entry(*environment, name))
			return *environment + strlen(name) + 1;
	return NULL;
}

/* If a variable occurs twice, the loader uses the last one but getenv() the first. */
static bool has_once(char *const environment[], const char *name)
{
	unsigned int count = 0;

	for (; environment && *environment; environment++)
		count += is_entry(*environment, name);
	return count == 1;
}

static bool is_readable(const char *path, size_t length)
{
	char *copy;

	if (path[0] != '/')
		return false;
	if (length == strlen(library) && !memcmp(path, library, length))
		return !REAL(access)(library, R_OK);
	copy = alloca(length + 1);
	memcpy(copy, path, length);
	copy[length] = '\0';
	return !REAL(access)(copy, R_OK);
}

/* Whether the environment has the variables of this fabric, or of one nested in it. */
static bool on_a_fabric(char *const environment[])
{
	const char *folder = value_in(environment, ENV_FOLDER), *path;
	size_t length;

	if (!has_once(environment, "LD_PRELOAD") || !folder || !*folder ||
	    !value_in(environment, ENV_VIEW))
		return false;
	path = find_library(value_in(environment, "LD_PRELOAD"), &length);
	return path && is_readable(path, length);
}

/*
 * What a program's environment needs: the fabric's variables, and the inherited devices. The
 * memory is on the caller's stack if it is small, and always in a child of vfork(), which
 * shares the parent's memory.
 */
struct additions {
	bool keeps;                       /* the environment has the fabric's variables */
	const char *others;               /* libraries in LD_PRELOAD */
	size_t entries, preload, handles; /* bytes of each part */
};

static size_t count_of(char *const list[])
{
	size_t count = 0;

	while (list && list[count])
		count++;
	return count;
}

/* Returns the number of bytes that fill() needs; 0: the environment can stay as it is. */
static size_t measure(char *const environment[], struct additions *additions)
{
	if (!library[0])
		return 0;
	additions->keeps = on_a_fabric(environment);
	additions->handles = device_list(NULL, 0);
	if (additions->keeps && !additions->handles)
		return 0;
	additions->others = value_in(environment, "LD_PRELOAD");
	if (!additions->others)
		additions->others = "";
	additions->preload = additions->keeps ? 0
					      : strlen("LD_PRELOAD=") + strlen(library) + 1 +
							strlen(additions->others) + 1;
	if (additions->handles)
		additions->handles += strlen(ENV_HANDLES "=");
	additions->entries = (count_of(environment) + 5) * sizeof(char *);
	return additions->entries + additions->preload + additions->handles;
}

/* Writes LD_PRELOAD=library:others. Returns its end. */
static char *write_preload(char *text, const char *others)
{
	text = stpcpy(stpcpy(text, "LD_PRELOAD="), library);
	if (*others)
		text = stpcpy(stpcpy(text, ":"), others);
	return text + 1;
}

static char **fill(void *memory, char *const environment[], const struct additions *additions)
{
	char **filled = memory, **next = filled;
	char *text = (char *)memory + additions->entries;

	for (; environment && *environment; environment++)
		if (additions->keeps ||
		    (!is_entry(*environment, "LD_PRELOAD") &&
		     !is_entry(*environment, ENV_FOLDER) && !is_entry(*environment, ENV_VIEW)))
			*next++ = *environment;
	if (!additions->keeps) {
		*next++ = text;
		*next++ = folder_entry;
		*next++ = view_entry;
		text = write_preload(text, additions->others);
	}
	if (additions->handles) {
		*next++ = text;
		text = stpcpy(text, ENV_HANDLES "=");
		device_list(text, additions->handles - strlen(ENV_HANDLES "="));
	}
	*next = NULL;
	return filled;
}

/* Returns NULL if the memory must be on the stack. */
static void *map_large(size_t bytes)
{
	void *memory = bytes > LARGE && owns_memory()
			       ? REAL(mmap)(NULL, bytes, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
			       : MAP_FAILED;

	return memory == MAP_FAILED ? NULL : memory;
}

/* Starts a program with `call`, with the changed environment in `changed`. */
#define ON_FABRIC(environment, changed, call)                                                \
	({                                                                                   \
		struct additions additions;                                                  \
		size_t bytes = measure(environment, &additions);                             \
		void *mapped = map_large(bytes);                                             \
		char **changed = !bytes ? (char **)(uintptr_t)(environment)                  \
					: fill(mapped ? mapped : alloca(bytes), environment, \
					       &additions);                                  \
		int result = call;                                                           \
                                                                                             \
		if (mapped)                                                                  \
			munmap(mapped, bytes);                                               \
		result;                                                                      \
	})

EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
	return ON_FABRIC(environment, changed, REAL(execve)(path, arguments, changed));
}

EXPORT int execv(const char *path, char *const arguments[])
{
	return execve(path, arguments, environ);
}

EXPORT int execvpe(const char *name, char *const arguments[], char *const environment[])
{
	return ON_FABRIC(environment, changed, REAL(execvpe)(name, arguments, changed));
}

EXPORT int execvp(const char *name, char *const arguments[])
{
	return execvpe(name, arguments, environ);
}

EXPORT int fexecve(int fd, char *const arguments[], char *const environment[])
{
	return ON_FABRIC(environment, changed, REAL(fexecve)(fd, arguments, changed));
}

/* glibc before 2.34 does not have it; programs built for it do not call it. */
int execveat(int folder, const char *name, char *const arguments[], char *const environment[],
	     int flags);

EXPORT int execveat(int folder, const char *name, char *const arguments[],
		    char *const environment[], int flags)
{
	return ON_FABRIC(environment, changed,
			 REAL(execveat)(folder, name, arguments, changed, flags));
}

/* Collects the arguments of execl() and the like into an array: `first` and those after it. */
#define GATHER(first, list, arguments)                              \
	do {                                                        \
		size_t count = 1;                                   \
                                                                    \
		va_start(list, first);                              \
		while (va_arg(list, char *))                        \
			count++;                                    \
		va_end(list);                                       \
		(arguments) = alloca((count + 1) * sizeof(char *)); \
		(arguments)[0] = (char *)(uintptr_t)(first);        \
		va_start(list, first);                              \
		for (size_t i = 1; i <= count; i++)                 \
			(arguments)[i] = va_arg(list, char *);      \
	} while (0)

EXPORT int execl(const char *path, const char *first, ...)
{
	char **arguments;
	va_list list;

	GATHER(first, list, arguments);
	va_end(list);
	return execve(path, arguments, environ);
}

EXPORT int execlp(const char *name, const char *first, ...)
{
	char **arguments;
	va_list list;

	GATHER(first, list, arguments);
	va_end(list);
	return execvpe(name, arguments, environ);
}

EXPORT int execle(const char *path, const char *first, ...)
{
	char **arguments, **environment;
	va_list list;

	GATHER(first, list, arguments);
	environment = va_arg(list, char **);
	va_end(list);
	return execve(path, arguments, environment);
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attributes, char *const arguments[],
		       char *const environment[])
{
	return ON_FABRIC(environment, changed,
			 REAL(posix_spawn)(pid, path, actions, attributes, arguments, changed));
}

EXPORT int posix_spawnp(pid_t *pid, const char *name, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attributes, char *const arguments[],
			char *const environment[])
{
	return ON_FABRIC(
		environment, changed,
		REAL(posix_spawnp)(pid, name, actions, attributes, arguments, changed));
}

/* For system() and popen(), whose shell gets the process's environment from the C library. */
static void restore_environment(void)
{
	const char *others = getenv("LD_PRELOAD");
	char *entry;

	if (!library[0] || on_a_fabric(environ))
		return;
	if (!others)
		others = "";
	entry = malloc(strlen("LD_PRELOAD=") + strlen(library) + 1 + strlen(others) + 1);
	if (!entry)
		return;
	write_preload(entry, others);
	setenv("LD_PRELOAD", entry + strlen("LD_PRELOAD="), 1);
	free(entry);
	setenv(ENV_FOLDER, folder_entry + sizeof(ENV_FOLDER), 1);
	setenv(ENV_VIEW, view_entry + sizeof(ENV_VIEW), 1);
}

EXPORT int system(const char *command)
{
	if (command)
		restore_environment();
	return REAL(system)(command);
}

EXPORT FILE *popen(const char *command, const char *mode)
{
	restore_environment();
	return REAL(popen)(command, mode);
}

EXPORT int wordexp(const char *words, wordexp_t *result, int flags)
{
	if (!(flags & WRDE_NOCMD))
		restore_environment();
	return REAL(wordexp)(words, result, flags);
}
