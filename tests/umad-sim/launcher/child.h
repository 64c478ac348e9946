/* SPDX-License-Identifier: BSD-2-Clause */

/* Runs a program as a child with a library preloaded. Without the library the program is not
 * run. */
#ifndef UMAD_SIM_CHILD_H
#define UMAD_SIM_CHILD_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* The exit status if the parent itself fails. */
#define STATUS_FAILED 125

/* The library, and what messages say about it. */
struct preload {
	const char *self;         /* the parent's name, for messages */
	const char *library;      /* the file name of the library */
	const char *from_program; /* its installed path, relative to the folder of the parent */
	const char *ready;        /* the environment variable with the descriptor to which the
				   * library writes a byte when it is loaded */
	const char *otherwise;    /* what would happen without the library, for messages */
	bool ask_loader;          /* first have the loader confirm that it loads the library:
				   * this takes as long as a start of the program */
};

/*
 * Makes the child's exit status available if the parent was started with SIGCHLD ignored, and
 * opens /dev/null as standard descriptors that are closed. The program gets the actions of
 * signals and the standard descriptors that the parent was started with.
 */
void child_prepare(void);

/*
 * Adds the library to LD_PRELOAD for the child; the path is stored. LD_PRELOAD cannot have
 * every path. For such a path a link to the library is made in the folder; if the folder is
 * NULL, the library stays open until the parent ends. Returns 0, or STATUS_FAILED with the
 * reason on stderr; it also fails for a program for which nothing is preloaded.
 */
int child_preload(const struct preload *preload, char **arguments, const char *folder,
		  char library[PATH_MAX]);

/*
 * Starts the program; with ask_loader, only if the loader confirms that it loads the library.
 * Signals that would end this process are passed to the program. Stores the process id, and
 * the descriptor for child_heard(). Returns 0 or STATUS_FAILED. A program that cannot be
 * executed exits with 126 or 127.
 */
int child_start(const struct preload *preload, char **arguments, const char *library,
		pid_t *child, int *ready);

/* Whether the library reported that it is loaded; false: the program ended before that. Closes
 * the descriptor. */
bool child_heard(int ready);

/* The exit status that a shell reports for the status of waitpid(2). */
int child_status(int status);

/*
 * Returns the exit status of a program that has ended, or STATUS_FAILED, with the reason on
 * stderr, if the library was not loaded.
 */
int child_judge(const struct preload *preload, const char *program, bool heard, int status);

#endif
