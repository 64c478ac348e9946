/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The program that umad-sim runs, with libumad-sim.so preloaded. On a machine with InfiniBand a
 * program without the library would use the real fabric: such a program is not run.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "ask.h"
#include "program.h"
#include "protocol.h"

static const struct preload preload = {
	.self = "umad-sim",
	.library = LIBRARY_NAME,
	.from_program = PRELOAD_FROM_PROGRAM,
	.ready = ENV_READY,
	.otherwise = "it would run on the real machine",
	.ask_loader = true,
};

static int set_environment(const char *folder, uint32_t view)
{
	char number[16];

	snprintf(number, sizeof(number), "%u", view);
	return setenv(ENV_FOLDER, folder, 1) || setenv(ENV_VIEW, number, 1) ||
	       unsetenv(ENV_HANDLES);
}

static int wait_for_program(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR) {
			fprintf(stderr, "umad-sim: waitpid: %s\n", strerror(errno));
			return STATUS_FAILED;
		}
	return child_status(status);
}

int program_run(char **arguments, const char *folder, uint32_t view)
{
	char library[PATH_MAX], text[LONGEST_TEXT + 1];
	struct reply reply;
	int ready, status;
	pid_t child;
	bool heard;

	status = child_preload(&preload, arguments, folder, library);
	if (status)
		return status;
	if (set_environment(folder, view)) {
		fprintf(stderr, "umad-sim: %s\n", strerror(errno));
		return STATUS_FAILED;
	}
	status = child_start(&preload, arguments, library, &child, &ready);
	if (status)
		return status;
	heard = child_heard(ready);
	if (heard) /* if the fabric has ended, the program finds out */
		ask(folder, REQUEST_BEGIN, "", &reply, text, NULL);
	return child_judge(&preload, arguments[0], heard, wait_for_program(child));
}
