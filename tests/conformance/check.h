/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Checks as small as a virtual machine wants them: no library beside libc. Each check is a
 * child process of its own, so that what one leaves open, registered or hanging is no other's
 * trouble.
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
	bool alone; /* it needs one port, sends nothing and changes nothing */
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
 * Runs them one after the other and says what became of each. Returns the program's exit
 * status: 1 if one failed, 77 if this world can do none of them, otherwise 0. With
 * CONFORMANCE_PORT in the environment (world.h) only those that are CHECK_ALONE.
 */
int run_checks(const struct check *checks, size_t count);

/* Ends a check that cannot be made in this world. */
void cannot(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/*
 * Ends a check of what this kernel does not do, although this world could. The text is the
 * fact, and the caller has observed it: kernels are not told apart by their version.
 */
void not_on_this_kernel(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));

/* A figure or fact that the check came by. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What is not as expected ends the check; from any of its threads. */
#define expect(condition) expect_true(condition, #condition, __FILE__, __LINE__)
#define expect_equal(actual, expected) \
	expect_number((long long)(actual), (long long)(expected), #actual, __FILE__, __LINE__)
#define expect_bytes(actual, expected, count) \
	expect_same(actual, expected, count, #actual, __FILE__, __LINE__)
/* A call that says -1 and sets errno. */
#define expect_errno(call, error) expect_failure(call, error, #call, __FILE__, __LINE__)

void expect_true(bool condition, const char *text, const char *file, int line);
void expect_number(long long actual, long long expected, const char *text, const char *file,
		   int line);
void expect_same(const void *actual, const void *expected, size_t count, const char *text,
		 const char *file, int line);
void expect_failure(long long result, int error, const char *text, const char *file, int line);

/* A child process that runs a function; it must end with status 0. */
int start_child(void (*run)(void *), void *argument);
void expect_child(int child);

/* CLOCK_MONOTONIC in milliseconds, and a pause. */
int64_t now_ms(void);
void pause_ms(unsigned milliseconds);

/* malloc() that does not fail, zeroed. */
void *allocate(size_t bytes);

#endif
