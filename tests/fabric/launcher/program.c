/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The program that umad-sim runs, with libumad-sim.so preloaded. On a machine with InfiniBand a
 * program without the library would use the real fabric. So umad-sim checks three things: the
 * kind of program allows LD_PRELOAD; the dynamic loader, asked without running the program,
 * lists the library; and the library reports that it is loaded, before main() begins.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder.h"
#include "program.h"
#include "protocol.h"

static pid_t program;
static struct sigaction child_action; /* with which umad-sim was started */

void program_prepare(void)
{
	struct sigaction wait_for_it = {.sa_handler = SIG_DFL};

	sigaction(SIGCHLD, &wait_for_it, &child_action);
}

static void pass_on(int signal)
{
	if (program > 0)
		kill(program, signal);
}

static void on_signal(int signal, void (*handler)(int signal))
{
	struct sigaction action = {.sa_handler = handler};

	sigaction(signal, &action, NULL);
}

static int refuse(const char *what, const char *why)
{
	fprintf(stderr, "umad-sim: %s: %s: it would run on the real machine\n", what, why);
	return STATUS_FAILED;
}

/* The library in this program's folder (built), or at its place relative to it (installed). */
static int find_library(char path[PATH_MAX])
{
	static const char *const places[] = {LIBRARY_NAME, PRELOAD_FROM_PROGRAM};
	char folder[PATH_MAX], place[2 * PATH_MAX];
	const char *self = (const char *)(uintptr_t)getauxval(AT_EXECFN); // NOLINT

	/* the path that it was started by will do where there is no /proc */
	if (!realpath("/proc/self/exe", folder) && !(self && realpath(self, folder))) {
		fprintf(stderr, "umad-sim: /proc/self/exe: %s\n", strerror(errno));
		return STATUS_FAILED;
	}
	*strrchr(folder, '/') = '\0';
	for (unsigned int i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(place, sizeof(place), "%s/%s", folder, places[i]);
		if (!access(place, R_OK) && realpath(place, path))
			return 0;
	}
	fprintf(stderr, "umad-sim: %s: %s\n", place, strerror(errno));
	return STATUS_FAILED;
}

/* A space or colon ends a path in LD_PRELOAD, a dollar sign begins a variable (ld.so(8)). */
static bool can_be_preloaded(const char *path)
{
	return !strpbrk(path, " :$");
}

/* A path to the library that LD_PRELOAD can have: if need be, a link in the fabric's folder. */
static int name_library(const char *folder, char path[PATH_MAX])
{
	char link_path[PATH_MAX];
	int status = find_library(path);

	if (status || can_be_preloaded(path))
		return status;
	snprintf(link_path, sizeof(link_path), "%s/program-%d", folder, getpid());
	if ((mkdir(link_path, 0700) && errno != EEXIST) ||
	    (strcat(link_path, "/" LIBRARY_NAME),
	     symlink(path, link_path) && errno != EEXIST)) {
		fprintf(stderr, "umad-sim: %s: %s\n", link_path, strerror(errno));
		return STATUS_FAILED;
	}
	strcpy(path, link_path);
	return 0;
}

static int set_environment(const char *library, const char *folder, uint32_t view)
{
	const char *others = getenv("LD_PRELOAD");
	char number[16];
	char *preload;
	int error;

	if (asprintf(&preload, "%s%s%s", library, others ? ":" : "", others ? others : "") < 0)
		return -ENOMEM;
	snprintf(number, sizeof(number), "%u", view);
	error = setenv("LD_PRELOAD", preload, 1) || setenv(ENV_FOLDER, folder, 1) ||
		setenv(ENV_VIEW, number, 1) || unsetenv(ENV_HANDLES);
	free(preload);
	return error ? -ENOMEM : 0;
}

/*
 * Whether the loader loads the library into the program: the loader lists the libraries and
 * does not start the program (ld.so(8), LD_TRACE_LOADED_OBJECTS). Returns true for a program
 * that cannot be executed: exec_program() reports that.
 */
static bool is_loaded(char **arguments, const char *library)
{
	char line[PATH_MAX + 64];
	bool found = false;
	int ends[2], status;
	FILE *list;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return false;
	child = fork();
	if (child == 0) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(open("/dev/null", O_RDWR | O_CLOEXEC), STDERR_FILENO);
		setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
		execvp(arguments[0], arguments);
		_exit(127);
	}
	close(ends[1]);
	list = fdopen(ends[0], "r");
	while (child > 0 && list && fgets(line, sizeof(line), list)) {
		const char *name = strstr(line, library);

		found |= name && !strncmp(name + strlen(library), " (0x", 4);
	}
	if (list)
		fclose(list);
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return false;
	return found || (WIFEXITED(status) && WEXITSTATUS(status) == 127);
}

static void __attribute__((noreturn)) exec_program(char **arguments, int ready)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", ready);
	setenv(ENV_READY, number, 1);
	on_signal(SIGINT, SIG_DFL);
	on_signal(SIGQUIT, SIG_DFL);
	sigaction(SIGCHLD, &child_action, NULL);
	execvp(arguments[0], arguments);
	fprintf(stderr, "umad-sim: %s: %s\n", arguments[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* Whether the library reported that it is loaded; false: the program ended before that. */
static bool hear_ready(int ready)
{
	char byte;
	ssize_t length;

	do {
		length = read(ready, &byte, 1);
	} while (length < 0 && errno == EINTR);
	return length == 1;
}

static int wait_for_program(void)
{
	int status;

	while (waitpid(program, &status, 0) < 0)
		if (errno != EINTR) {
			fprintf(stderr, "umad-sim: waitpid: %s\n", strerror(errno));
			return STATUS_FAILED;
		}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int program_run(char **arguments, const char *folder, uint32_t view)
{
	char library[PATH_MAX], found[PATH_MAX], interpreted_by[PATH_MAX];
	const char *why = check_program(find_program(arguments[0], found), interpreted_by);
	int status, ready[2];
	bool heard;

	if (why)
		return refuse(interpreted_by[0] ? interpreted_by : arguments[0], why);
	status = name_library(folder, library);
	if (status)
		return status;
	if (set_environment(library, folder, view) || pipe(ready)) {
		fprintf(stderr, "umad-sim: %s\n", strerror(errno));
		return STATUS_FAILED;
	}
	if (!is_loaded(arguments, library))
		return refuse(arguments[0], "its loader does not preload libumad-sim.so");
	on_signal(SIGINT, SIG_IGN);
	on_signal(SIGQUIT, SIG_IGN);
	program = fork();
	if (program == 0) {
		close(ready[0]);
		exec_program(arguments, ready[1]);
	}
	if (program < 0) {
		fprintf(stderr, "umad-sim: fork: %s\n", strerror(errno));
		return STATUS_FAILED;
	}
	on_signal(SIGTERM, pass_on);
	on_signal(SIGHUP, pass_on);
	close(ready[1]);
	heard = hear_ready(ready[0]);
	close(ready[0]);
	status = wait_for_program();
	if (heard || status == 126 || status == 127)
		return status;
	return refuse(arguments[0], "libumad-sim.so did not report that it is loaded");
}
