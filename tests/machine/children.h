/* SPDX-License-Identifier: BSD-2-Clause */

/* Children of fork(2). */
#ifndef TESTS_MACHINE_CHILDREN_H
#define TESTS_MACHINE_CHILDREN_H

#include "test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a child of fork(2): the line of an expectation that is not met. */
#define EXPECT(condition)                \
	do {                             \
		if (!(condition))        \
			return __LINE__; \
	} while (0)

void __gcov_dump(void) __attribute__((weak));

/*
 * function() returns 0, or a line. The child ends by SIGKILL: valgrind would report the stacks
 * of the parent's threads.
 */
static inline void run_in_child(int (*function)(void))
{
	pid_t child = fork();
	int status;

	if (!child) {
		signal(SIGSEGV, SIG_DFL);
		signal(SIGABRT, SIG_DFL);
		alarm(60);
		status = function();
		if (status) {
			print_error("child: line %d\n", status);
			_exit(1);
		}
		if (__gcov_dump)
			__gcov_dump();
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

#endif
