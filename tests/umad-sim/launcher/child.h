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
	int (*prepare)(void); /* called in the child before the program, which runs only if it
				 returns 0; may be NULL */
};

/*
 * Makes the child's exit status available even if the parent was started with SIGCHLD ignored,
 * and opens /dev/null as standard descriptors that are closed. The program still gets the
 * signal actions and standard descriptors that the parent was started with.
 */
void child_prepare(void);

/*
 * Adds the library to LD_PRELOAD for the child. LD_PRELOAD cannot hold every path; for such a
 * path, makes a link to the library in the folder or, if the folder is NULL, keeps the library
 * open until the parent ends. Returns 0, or STATUS_FAILED with the reason on stderr.
 */
int child_preload(const struct preload *preload, const char *folder);

/*
 * Starts the program, and from then on passes it the signals that would end this process.
 * Stores the process ID and the descriptor for child_heard(), which must be the next call.
 * Returns 0 or STATUS_FAILED. The child exits with 126 or 127 if the program cannot be
 * executed, and with STATUS_FAILED if prepare() fails.
 */
int child_start(const struct preload *preload, char **arguments, pid_t *child, int *ready);

enum child_report {
	CHILD_SILENT,      /* the program ended, and the library did not report */
	CHILD_LOADED,      /* the library is loaded, into the program or a child of it */
	CHILD_NOT_STARTED, /* the program was not executed; the reason is on stderr */
};

/* Waits until the library reports or the program ends. Closes the descriptor. */
enum child_report child_heard(int ready);

/* Turns a waitpid(2) status into the exit status that a shell reports. */
int child_status(int status);

/* Returns the exit status of a program that has ended; STATUS_FAILED, with the reason on
 * stderr, if the library was not loaded. */
int child_judge(const struct preload *preload, const char *program, enum child_report report,
		int status);

#endif
