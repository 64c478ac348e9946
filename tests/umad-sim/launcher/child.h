/* SPDX-License-Identifier: BSD-2-Clause */

/* Runs a program as a child with a library preloaded. */
#ifndef UMAD_SIM_CHILD_H
#define UMAD_SIM_CHILD_H

#include <sys/types.h>

/* The exit status if the parent itself fails. */
#define STATUS_FAILED 125

/* The library, and what messages say about it. */
struct preload {
	const char *self;         /* the parent's name, for messages */
	const char *library;      /* the file name of the library */
	const char *from_program; /* its installed path, relative to the folder of the parent */
	const char *ready;        /* the environment variable with the socket to which the
				   * library writes a byte when it is loaded (ready.h) */
	const char *otherwise;    /* what happened without the library, for messages */
	int (*prepare)(void);     /* called in the child before the program; a result other
				   * than 0: the program is not run. NULL: nothing is called */
};

/*
 * Makes the child's exit status available if the parent was started with SIGCHLD ignored, and
 * opens /dev/null as standard descriptors that are closed. The program gets the actions of
 * signals and the standard descriptors that the parent was started with.
 */
void child_prepare(void);

/*
 * Adds the library to LD_PRELOAD for the child. LD_PRELOAD cannot have every path. For such a
 * path a link to the library is made in the folder; if the folder is NULL, the library stays
 * open until the parent ends. Returns 0, or STATUS_FAILED with the reason on stderr.
 */
int child_preload(const struct preload *preload, const char *folder);

/*
 * Starts the program. Signals that would end this process are passed to the program. Stores the
 * process id, and the descriptor for child_heard(), which must be the next call. Returns 0 or
 * STATUS_FAILED. The child exits with 126 or 127 if the program cannot be executed, and with
 * STATUS_FAILED after a failure of prepare().
 */
int child_start(const struct preload *preload, char **arguments, pid_t *child, int *ready);

enum child_report {
	CHILD_SILENT,      /* the program ended, and the library did not report */
	CHILD_LOADED,      /* the library is loaded into the program, or into a child of it */
	CHILD_NOT_STARTED, /* the program was not executed; the reason is on stderr */
};

/* Waits for the report of the library, or for the end of the program. Closes the descriptor. */
enum child_report child_heard(int ready);

/* The exit status that a shell reports for the status of waitpid(2). */
int child_status(int status);

/*
 * Returns the exit status of a program that has ended, or STATUS_FAILED, with the reason on
 * stderr, if the library was not loaded.
 */
int child_judge(const struct preload *preload, const char *program, enum child_report report,
		int status);

#endif
