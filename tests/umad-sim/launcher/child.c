/* SPDX-License-Identifier: BSD-2-Clause */

/* A child with a preloaded library, which reports that it is loaded before the program's main()
 * runs. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the child writes to the descriptor of child_heard() if it cannot execute the program.
 * The library writes a different byte. */
#define NOT_STARTED "n"

static pid_t program;
static sigset_t first_mask; /* the signals that are blocked without child_start() */

/* Signals whose actions the parent changes, and the actions it was started with, which the
 * program gets. */
static const int changed_signals[] = {SIGCHLD, SIGINT, SIGQUIT, SIGPIPE, SIGXFSZ};
#define CHANGED_SIGNALS (sizeof(changed_signals) / sizeof(changed_signals[0]))
static struct sigaction first_actions[CHANGED_SIGNALS];

/* Keeps files opened later from becoming standard descriptors. The program still gets them
 * closed. */
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

static int fail_with(const struct preload *preload, const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", preload->self, what, strerror(errno));
	return STATUS_FAILED;
}

/*
 * Finds the library: in this program's folder (built), or relative to this program (installed).
 */
static int find_library(const struct preload *preload, char path[PATH_MAX])
{
	const char *const places[] = {preload->library, preload->from_program};
	char folder[PATH_MAX], place[2 * PATH_MAX];
	const char *self = (const char *)(uintptr_t)getauxval(AT_EXECFN); // NOLINT

	/* without /proc: the path that started this program */
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

int child_preload(const struct preload *preload, const char *folder)
{
	char library[PATH_MAX];
	int status = name_library(preload, folder, library);

	if (!status && add_to_environment(library))
		status = fail_with(preload, "LD_PRELOAD");
	return status;
}

/* Tells the parent not to wait for the library: the program cannot be executed. */
static void __attribute__((noreturn)) not_started(int ready, int status)
{
	if (write(ready, NOT_STARTED, 1) != 1)
		status = STATUS_FAILED;
	_exit(status);
}

static void __attribute__((noreturn))
exec_program(const struct preload *preload, char **arguments, int ready)
{
	char number[64];
	struct stat status;

	if (preload->prepare && preload->prepare())
		not_started(ready, STATUS_FAILED);
	if (fstat(ready, &status))
		not_started(ready, STATUS_FAILED);
	snprintf(number, sizeof(number), "%d:%llu", ready, (unsigned long long)status.st_ino);
	setenv(preload->ready, number, 1);
	for (unsigned int i = 0; i < CHANGED_SIGNALS; i++)
		sigaction(changed_signals[i], &first_actions[i], NULL);
	execvp(arguments[0], arguments);
	fprintf(stderr, "%s: %s: %s\n", preload->self, arguments[0], strerror(errno));
	not_started(ready, errno == ENOENT ? 127 : 126);
}

/* The program has ended: interrupts the wait. */
static void wake(int signal)
{
	(void)signal;
}

int child_start(const struct preload *preload, char **arguments, pid_t *child, int *ready)
{
	struct sigaction ended = {.sa_handler = wake, .sa_flags = SA_RESTART};
	sigset_t blocked;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return fail_with(preload, "a socket");
	on_signal(SIGINT, SIG_IGN);
	on_signal(SIGQUIT, SIG_IGN);
	sigaction(SIGCHLD, &ended, NULL);
	/* before the fork: the program may send a signal, or end, before this process is ready
	 * for it */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGCHLD);
	for (unsigned int i = 0; i < PASSED_ON; i++)
		sigaddset(&blocked, passed_on[i]);
	sigprocmask(SIG_BLOCK, &blocked, &first_mask);
	program = fork();
	if (program == 0) {
		close(ends[0]);
		sigprocmask(SIG_SETMASK, &first_mask, NULL);
		exec_program(preload, arguments, ends[1]);
	}
	for (unsigned int i = 0; i < PASSED_ON && program > 0; i++)
		on_signal(passed_on[i], pass_on);
	if (program < 0) {
		sigprocmask(SIG_SETMASK, &first_mask, NULL);
		return fail_with(preload, "fork");
	}
	close(ends[1]);
	*child = program;
	*ready = ends[0];
	return 0;
}

static bool has_ended(void)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)program, &info, WEXITED | WNOHANG | WNOWAIT) ||
	       info.si_pid == program;
}

/* A program without the library keeps the descriptor open, and so do its children; so the wait
 * must end with the program, too. SIGCHLD is blocked except while ppoll() waits. */
enum child_report child_heard(int ready)
{
	static const struct timespec at_once;
	struct pollfd readable = {.fd = ready, .events = POLLIN};
	bool ended = false;
	char byte = 0;
	ssize_t length;
	int count;

	do {
		ended = has_ended(); /* all the program wrote has arrived by now */
		count = ppoll(&readable, 1, ended ? &at_once : NULL, &first_mask);
	} while (count < 0 && errno == EINTR);
	length = count > 0 ? read(ready, &byte, 1) : 0;
	close(ready);
	sigprocmask(SIG_SETMASK, &first_mask, NULL);
	if (length != 1)
		return CHILD_SILENT;
	return byte == NOT_STARTED[0] ? CHILD_NOT_STARTED : CHILD_LOADED;
}

int child_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int child_judge(const struct preload *preload, const char *name, enum child_report report,
		int status)
{
	if (report != CHILD_SILENT)
		return status;
	fprintf(stderr, "%s: %s: %s was not loaded (a static or set-user-ID program?): %s\n",
		preload->self, name, preload->library, preload->otherwise);
	return STATUS_FAILED;
}
