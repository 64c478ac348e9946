/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A small test framework for a virtual machine: it needs only libc. Each check is a child
 * process, so that descriptors, agents or hangs of a check do not affect the others.
 */
#ifndef CONFORMANCE_CHECK_H
#define CONFORMANCE_CHECK_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct check {
	const char *name;
	void (*run)(void);
	bool alone; /* needs one port, sends nothing and changes nothing */
};

#define CHECK(function)                    \
	{                                  \
#function, function, false \
	}
#define CHECK_ALONE(function)             \
	{                                 \
#function, function, true \
	}

/*
 * Runs the checks in sequence and prints the result of each. Returns the program's exit status:
 * 1 if one failed, 77 if this environment can run none of them, otherwise 0. If the variable
 * CONFORMANCE_PORT is set (environment.h), runs only those that are CHECK_ALONE.
 */
int run_checks(const struct check *checks, size_t count);

/* Ends a check that this environment cannot run. */
void cannot(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/*
 * Ends a check of something that this kernel does not do. The text states what the check has
 * observed: a check does not look at the version of the kernel.
 */
void not_on_this_kernel(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));

/*
 * The check has made progress. A check hangs if it takes longer than 240 s without
 * progress; a slow machine may need longer for all cases of a check.
 */
void tell_progress(void);

/* Prints a number or fact that the check has measured. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A failed expectation ends the check; any of its threads may call these. */
#define expect(condition) expect_true(condition, #condition, __FILE__, __LINE__)
#define expect_equal(actual, expected) \
	expect_number((long long)(actual), (long long)(expected), #actual, __FILE__, __LINE__)
#define expect_bytes(actual, expected, count) \
	expect_same(actual, expected, count, #actual, __FILE__, __LINE__)
/* A call that returns -1 and sets errno. */
#define expect_errno(call, error) expect_failure(call, error, #call, __FILE__, __LINE__)

void expect_true(bool condition, const char *text, const char *file, int line);
void expect_number(long long actual, long long expected, const char *text, const char *file,
		   int line);
void expect_same(const void *actual, const void *expected, size_t count, const char *text,
		 const char *file, int line);
void expect_failure(long long result, int error, const char *text, const char *file, int line);

/* A child process that runs a function; the child must exit with status 0. */
int start_child(void (*run)(void *), void *argument);
void expect_child(int child);

/* CLOCK_MONOTONIC in milliseconds; a sleep. */
int64_t now_ms(void);
void pause_ms(unsigned milliseconds);

/* Zeroed memory; ends the check if there is none. */
void *allocate(size_t bytes);

/* Of this process. The number counts the folder that it reads, too: compare two numbers. */
unsigned count_descriptors(void);

#endif
