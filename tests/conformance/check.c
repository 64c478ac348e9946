/* SPDX-License-Identifier: BSD-2-Clause */

#include "check.h"

#include <dirent.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORTH_TELLING 100 /* ms; longer checks are reported with their time */
#define CANNOT        77
#define LIMIT         240 /* seconds; a check that takes longer without progress hangs */

static void __attribute__((format(printf, 2, 0)))
say(const char *kind, const char *format, va_list arguments)
{
	char line[512];

	vsnprintf(line, sizeof(line), format, arguments);
	printf("  %s%s\n", kind, line);
	fflush(stdout);
}

void note(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say("", format, arguments);
	va_end(arguments);
}

void cannot(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say("not here: ", format, arguments);
	va_end(arguments);
	_exit(CANNOT);
}

void not_on_this_kernel(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say("left out on this kernel: ", format, arguments);
	va_end(arguments);
	_exit(CANNOT);
}

static void __attribute__((format(printf, 3, 4), noreturn))
wrong(const char *file, int line, const char *format, ...)
{
	va_list arguments;
	char text[512];

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	printf("  %s:%d: %s\n", strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line, text);
	fflush(stdout);
	_exit(1);
}

void expect_true(bool condition, const char *text, const char *file, int line)
{
	if (!condition)
		wrong(file, line, "not so: %s (errno %d)", text, errno);
}

void expect_number(long long actual, long long expected, const char *text, const char *file,
		   int line)
{
	if (actual != expected)
		wrong(file, line, "%s is %lld, not %lld (errno %d)", text, actual, expected,
		      errno);
}

void expect_same(const void *actual, const void *expected, size_t count, const char *text,
		 const char *file, int line)
{
	const uint8_t *a = actual;
	const uint8_t *b = expected;

	for (size_t i = 0; i < count; i++)
		if (a[i] != b[i])
			wrong(file, line, "%s: byte %zu is 0x%02x, not 0x%02x", text, i, a[i],
			      b[i]);
}

void expect_failure(long long result, int error, const char *text, const char *file, int line)
{
	int found = errno;

	if (result != -1)
		wrong(file, line, "%s is %lld, not -1 with %s", text, result, strerror(error));
	if (found != error)
		wrong(file, line, "%s: %s, not %s", text, strerror(found), strerror(error));
}

int start_child(void (*run)(void *), void *argument)
{
	pid_t child;

	fflush(stdout);
	child = fork();
	expect(child >= 0);
	if (child)
		return child;
	run(argument);
	exit(0);
}

void expect_child(int child)
{
	int status;

	expect_equal(waitpid(child, &status, 0), child);
	expect_equal(status, 0);
}

int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void pause_ms(unsigned milliseconds)
{
	struct timespec time = {(time_t)(milliseconds / 1000),
				(long)(milliseconds % 1000) * 1000000};

	while (nanosleep(&time, &time) && errno == EINTR)
		;
}

void *allocate(size_t bytes)
{
	void *memory = calloc(1, bytes);

	expect(memory);
	return memory;
}

void tell_progress(void)
{
	alarm(LIMIT);
}

/* The check has its own process group: its child processes end with it. */
static int run_alone(const struct check *check)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		setpgid(0, 0);
		tell_progress();
		check->run();
		exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 1;
	kill(-child, SIGKILL);
	while (waitpid(-child, NULL, 0) > 0) /* orphans of the check are our children now */
		;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	printf("  signal %d%s\n", WTERMSIG(status),
	       WTERMSIG(status) == SIGALRM ? ": it hangs" : "");
	return 1;
}

int run_checks(const struct check *checks, size_t count)
{
	size_t failed = 0, left_out = 0;
	bool alone = getenv("CONFORMANCE_PORT") != NULL;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (size_t i = 0; i < count; i++) {
		int64_t started = now_ms();
		int status;

		if (alone && !checks[i].alone) {
			left_out++;
			continue;
		}
		printf("%s\n", checks[i].name);
		status = run_alone(&checks[i]);
		if (now_ms() - started >= WORTH_TELLING)
			note("(%lld ms)", (long long)(now_ms() - started));
		if (status == CANNOT)
			left_out++;
		else if (status)
			failed++;
		if (status)
			printf("  %s\n", status == CANNOT ? "LEFT OUT" : "FAILED");
	}
	printf("%zu checks, %zu failed, %zu left out\n", count, failed, left_out);
	if (failed)
		return 1;
	return left_out == count ? CANNOT : 0;
}

unsigned count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	expect(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}
