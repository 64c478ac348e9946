/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A child with a library preloaded. Before the program's main() runs, three checks are made:
 * the kind of program allows LD_PRELOAD; on demand, the dynamic loader, called without running
 * the program, lists the library; and the library reports that it is loaded.
 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol.h"

static pid_t program;

/* Signals whose actions the parent changes, and their actions when the parent was started: the
 * program gets these. */
static const int changed_signals[] = {SIGCHLD, SIGINT, SIGQUIT, SIGPIPE, SIGXFSZ};
#define CHANGED_SIGNALS (sizeof(changed_signals) / sizeof(changed_signals[0]))
static struct sigaction first_actions[CHANGED_SIGNALS];

/* A file that is opened later must not become a standard descriptor. They stay closed for the
 * program. */
static void fill_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", O_RDWR | O_CLOEXEC);
}

void child_prepare(void)
{
	struct sigaction wait_for_it = {.sa_handler = SIG_DFL};

	for (unsigned int i = 0; i < CHANGED_SIGNALS; i++)
		sigaction(changed_signals[i], NULL, &first_actions[i]);
	sigaction(SIGCHLD, &wait_for_it, NULL);
	fill_standard_descriptors();
}

static void pass_on(int signal)
{
	if (program > 0)
		kill(program, signal);
}

static const int passed_on[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
#define PASSED_ON (sizeof(passed_on) / sizeof(passed_on[0]))

static void on_signal(int signal, void (*handler)(int signal))
{
	struct sigaction action = {.sa_handler = handler};

	sigaction(signal, &action, NULL);
}

static int refuse(const struct preload *preload, const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s: %s\n", preload->self, what, why, preload->otherwise);
	return STATUS_FAILED;
}

static int fail_with(const struct preload *preload, const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", preload->self, what, strerror(errno));
	return STATUS_FAILED;
}

/* The path of the library: in this program's folder (built), or relative to this program
 * (installed). */
static int find_library(const struct preload *preload, char path[PATH_MAX])
{
	const char *const places[] = {preload->library, preload->from_program};
	char folder[PATH_MAX], place[2 * PATH_MAX];
	const char *self = (const char *)(uintptr_t)getauxval(AT_EXECFN); // NOLINT

	/* without /proc, the path that started this program is used */
	if (!realpath("/proc/self/exe", folder) && !(self && realpath(self, folder)))
		return fail_with(preload, "/proc/self/exe");
	*strrchr(folder, '/') = '\0';
	for (unsigned int i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(place, sizeof(place), "%s/%s", folder, places[i]);
		if (!access(place, R_OK) && realpath(place, path))
			return 0;
	}
	return fail_with(preload, place);
}

/*
 * In LD_PRELOAD, a space or colon ends a path, and a dollar sign begins a variable (ld.so(8)).
 */
static bool can_be_preloaded(const char *path)
{
	return !strpbrk(path, " :$");
}

static int link_library(const struct preload *preload, const char *folder, char path[PATH_MAX])
{
	char link_path[PATH_MAX];

	snprintf(link_path, sizeof(link_path), "%s/program-%d", folder, getpid());
	if (mkdir(link_path, 0700) && errno != EEXIST)
		return fail_with(preload, link_path);
	strcat(strcat(link_path, "/"), preload->library);
	if (symlink(path, link_path) && errno != EEXIST)
		return fail_with(preload, link_path);
	strcpy(path, link_path);
	return 0;
}

static int open_library(const struct preload *preload, char path[PATH_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return fail_with(preload, path);
	snprintf(path, PATH_MAX, "/proc/%d/fd/%d", getpid(), fd);
	return 0;
}

static int name_library(const struct preload *preload, const char *folder, char path[PATH_MAX])
{
	int status = find_library(preload, path);

	if (status || can_be_preloaded(path))
		return status;
	return folder ? link_library(preload, folder, path) : open_library(preload, path);
}

static int add_to_environment(const char *library)
{
	const char *others = getenv("LD_PRELOAD");
	char *list;
	int error;

	if (asprintf(&list, "%s%s%s", library, others ? ":" : "", others ? others : "") < 0)
		return -ENOMEM;
	error = setenv("LD_PRELOAD", list, 1);
	free(list);
	return error;
}

int child_preload(const struct preload *preload, char **arguments, const char *folder,
		  char library[PATH_MAX])
{
	char found[PATH_MAX], interpreted_by[PATH_MAX];
	const char *why = check_program(find_program(arguments[0], found), interpreted_by);
	int status;

	if (why)
		return refuse(preload, interpreted_by[0] ? interpreted_by : arguments[0], why);
	status = name_library(preload, folder, library);
	if (!status && add_to_environment(library))
		status = fail_with(preload, "LD_PRELOAD");
	return status;
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

static void __attribute__((noreturn))
exec_program(const struct preload *preload, char **arguments, int ready)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", ready);
	setenv(preload->ready, number, 1);
	for (unsigned int i = 0; i < CHANGED_SIGNALS; i++)
		sigaction(changed_signals[i], &first_actions[i], NULL);
	execvp(arguments[0], arguments);
	fprintf(stderr, "%s: %s: %s\n", preload->self, arguments[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

int child_start(const struct preload *preload, char **arguments, const char *library,
		pid_t *child, int *ready)
{
	sigset_t passed, before;
	char why[128];
	int ends[2];

	if (pipe(ends))
		return fail_with(preload, "pipe");
	if (preload->ask_loader && !is_loaded(arguments, library)) {
		snprintf(why, sizeof(why), "its loader does not preload %s", preload->library);
		return refuse(preload, arguments[0], why);
	}
	on_signal(SIGINT, SIG_IGN);
	on_signal(SIGQUIT, SIG_IGN);
	/* the program may send a signal before this process can pass it on */
	sigemptyset(&passed);
	for (unsigned int i = 0; i < PASSED_ON; i++)
		sigaddset(&passed, passed_on[i]);
	sigprocmask(SIG_BLOCK, &passed, &before);
	program = fork();
	if (program == 0) {
		close(ends[0]);
		sigprocmask(SIG_SETMASK, &before, NULL);
		exec_program(preload, arguments, ends[1]);
	}
	for (unsigned int i = 0; i < PASSED_ON && program > 0; i++)
		on_signal(passed_on[i], pass_on);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (program < 0)
		return fail_with(preload, "fork");
	close(ends[1]);
	*child = program;
	*ready = ends[0];
	return 0;
}

bool child_heard(int ready)
{
	char byte;
	ssize_t length;

	do {
		length = read(ready, &byte, 1);
	} while (length < 0 && errno == EINTR);
	close(ready);
	return length == 1;
}

int child_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int child_judge(const struct preload *preload, const char *name, bool heard, int status)
{
	char why[128];

	if (heard || status == 126 || status == 127)
		return status;
	snprintf(why, sizeof(why), "%s did not report that it is loaded", preload->library);
	return refuse(preload, name, why);
}
