/* SPDX-License-Identifier: BSD-2-Clause */

/* A program that runs as a child, with a library preloaded, or not at all. */
#ifndef UMAD_SIM_CHILD_H
#define UMAD_SIM_CHILD_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* The exit status if the parent itself fails. */
#define STATUS_FAILED 125

/* Who preloads what. */
struct preload {
	const char *self;         /* the parent's name, for messages */
	const char *library;      /* the file name of the library */
	const char *from_program; /* where it is installed, from the folder of the parent */
	const char *ready;        /* the environment variable with the descriptor on which the
				     library reports that it is loaded: it writes a byte */
	const char *otherwise;    /* what would happen without the library, for messages */
	bool ask_loader;          /* the loader says first that it loads the library: this takes
				     as long as a start of the program */
};

/* Keeps the exit status of the child if the parent was started with SIGCHLD ignored. */
void child_prepare(void);

/*
 * Adds the library to LD_PRELOAD for the child; its path is stored. LD_PRELOAD cannot have
 * every path: then there is a link to the library in the folder, or the library is open until
 * the parent ends if the folder is NULL. Returns 0; STATUS_FAILED, with the reason on stderr,
 * also for a program for which nothing is preloaded.
 */
int child_preload(const struct preload *preload, char **arguments, const char *folder,
		  char library[PATH_MAX]);

/*
 * Starts the program; with ask_loader, if the loader will load the library into it. Signals to
 * end this process go to the program. Stores the process id, and the descriptor for
 * child_heard(). Returns 0 or STATUS_FAILED. A program that cannot be executed ends with 126 or
 * 127.
 */
int child_start(const struct preload *preload, char **arguments, const char *library,
		pid_t *child, int *ready);

/* Whether the library reported that it is loaded; false: the program ended before that. Closes
 * the descriptor. */
bool child_heard(int ready);

/* The exit status of a shell for what waitpid(2) stored. */
int child_status(int status);

/*
 * Returns the exit status of a program that has ended, or STATUS_FAILED, with the reason on
 * stderr, if the library was not loaded.
 */
int child_judge(const struct preload *preload, const char *program, bool heard, int status);

#endif
