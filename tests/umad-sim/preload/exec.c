/* SPDX-License-Identifier: BSD-2-Clause */

/* Programs that the program starts are on the fabric, too, with any environment: a script may
 * clear the environment. */
#include <alloca.h>
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wordexp.h>

#include "preload.h"

#define LIST_BYTES 4096

/* The fabric's variables in this program: NAME=value. And the library's path. */
static char folder_entry[PATH_BYTES];
static char view_entry[64];
static char library[PATH_BYTES];

/* The path of the library in a value of LD_PRELOAD; false: LD_PRELOAD does not have the
 * library. */
static bool find_library(const char *preload, char path[PATH_BYTES])
{
	while (*preload) {
		size_t length = strcspn(preload, ": ");
		const char *name;

		snprintf(path, PATH_BYTES, "%.*s", (int)length, preload);
		name = strrchr(path, '/');
		if (!strcmp(name ? name + 1 : path, LIBRARY_NAME))
			return true;
		preload += length + strspn(preload + length, ": ");
	}
	return false;
}

void exec_begin_program(void)
{
	const char *preload = getenv("LD_PRELOAD");

	if (!fabric_folder())
		return;
	snprintf(folder_entry, sizeof(folder_entry), "%s=%s", ENV_FOLDER, fabric_folder());
	snprintf(view_entry, sizeof(view_entry), "%s=%u", ENV_VIEW, view_number());
	if (!preload || !find_library(preload, library))
		library[0] = '\0';
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

/* If a variable occurs twice, the loader uses the last one, getenv() the first one. */
static bool has_once(char *const environment[], const char *name)
{
	unsigned int count = 0;

	for (; environment && *environment; environment++)
		count += is_entry(*environment, name);
	return count == 1;
}

/* Whether the environment has the variables of this fabric, or of a fabric inside it. */
static bool on_a_fabric(char *const environment[])
{
	const char *folder = value_in(environment, ENV_FOLDER);
	char path[PATH_BYTES];

	return has_once(environment, "LD_PRELOAD") && folder && *folder &&
	       value_in(environment, ENV_VIEW) &&
	       find_library(value_in(environment, "LD_PRELOAD"), path) && path[0] == '/' &&
	       !REAL(access)(path, R_OK);
}

/* What is added to a program's environment: the fabric's variables, and the inherited devices.
 * The memory is on the caller's stack: a child of vfork() must not allocate. */
struct additions {
	char preload[2 * PATH_BYTES];
	char handles[LIST_BYTES + sizeof(ENV_HANDLES) + 1];
};

static size_t count_of(char *const list[])
{
	size_t count = 0;

	while (list && list[count])
		count++;
	return count;
}

static char **fill(char **filled, char *const environment[], struct additions *additions)
{
	const char *others = value_in(environment, "LD_PRELOAD");
	bool keeps = on_a_fabric(environment);
	char **next = filled;

	for (; environment && *environment; environment++)
		if (keeps ||
		    (!is_entry(*environment, "LD_PRELOAD") &&
		     !is_entry(*environment, ENV_FOLDER) && !is_entry(*environment, ENV_VIEW)))
			*next++ = *environment;
	if (!keeps) {
		snprintf(additions->preload, sizeof(additions->preload), "LD_PRELOAD=%s%s%s",
			 library, others && *others ? ":" : "", others ? others : "");
		*next++ = additions->preload;
		*next++ = folder_entry;
		*next++ = view_entry;
	}
	strcpy(additions->handles, ENV_HANDLES "=");
	if (!device_list(additions->handles + strlen(additions->handles), LIST_BYTES))
		*next++ = additions->handles;
	*next = NULL;
	return filled;
}

#define WITH_FABRIC(environment)                                                              \
	(library[0] ? fill(alloca((count_of(environment) + 5) * sizeof(char *)), environment, \
			   alloca(sizeof(struct additions)))                                  \
		    : (char **)(uintptr_t)(environment))

EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
	return REAL(execve)(path, arguments, WITH_FABRIC(environment));
}

EXPORT int execv(const char *path, char *const arguments[])
{
	return execve(path, arguments, environ);
}

EXPORT int execvpe(const char *name, char *const arguments[], char *const environment[])
{
	return REAL(execvpe)(name, arguments, WITH_FABRIC(environment));
}

EXPORT int execvp(const char *name, char *const arguments[])
{
	return execvpe(name, arguments, environ);
}

EXPORT int fexecve(int fd, char *const arguments[], char *const environment[])
{
	return REAL(fexecve)(fd, arguments, WITH_FABRIC(environment));
}

/* glibc before 2.34 does not have it; programs built for it do not call it. */
int execveat(int folder, const char *name, char *const arguments[], char *const environment[],
	     int flags);

EXPORT int execveat(int folder, const char *name, char *const arguments[],
		    char *const environment[], int flags)
{
	return REAL(execveat)(folder, name, arguments, WITH_FABRIC(environment), flags);
}

/* Makes an array of the arguments of execl() and similar calls: `first` and those after it. */
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
	return REAL(posix_spawn)(pid, path, actions, attributes, arguments,
				 WITH_FABRIC(environment));
}

EXPORT int posix_spawnp(pid_t *pid, const char *name, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attributes, char *const arguments[],
			char *const environment[])
{
	return REAL(posix_spawnp)(pid, name, actions, attributes, arguments,
				  WITH_FABRIC(environment));
}

/* For system() and popen(): the C library starts the shell with the process's environment. */
static void restore_environment(void)
{
	const char *others = getenv("LD_PRELOAD");
	char preload[2 * PATH_BYTES];

	if (!library[0] || on_a_fabric(environ))
		return;
	snprintf(preload, sizeof(preload), "%s%s%s", library, others && *others ? ":" : "",
		 others ? others : "");
	setenv("LD_PRELOAD", preload, 1);
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
