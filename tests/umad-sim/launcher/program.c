/* SPDX-License-Identifier: BSD-2-Clause */

/* Runs a program with libumad-sim.so preloaded. The machine's devices are hidden from it, so
 * even calls that the library does not intercept see no device. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "ask.h"
#include "program.h"
#include "protocol.h"
#include "namespace.h"

static struct preload preload = {
	.self = "umad-sim",
	.library = LIBRARY_NAME,
	.from_program = PRELOAD_FROM_PROGRAM,
	.ready = ENV_READY,
	.otherwise = "it saw no InfiniBand device",
};

static int hide_devices(void)
{
	char why[NAMESPACE_TEXT];
	int error = namespace_enter(why);

	if (error)
		fprintf(stderr,
			"umad-sim: cannot hide the InfiniBand devices of this machine: %s "
			"(to run the program anyway, use --without-namespace)\n",
			why);
	return error;
}

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

int program_run(char **arguments, const char *folder, uint32_t view, bool without_namespace)
{
	char text[LONGEST_TEXT + 1];
	enum child_report report;
	struct reply reply;
	int ready, status;
	pid_t child;

	if (namespace_is_needed()) {
		if (without_namespace)
			preload.otherwise =
				"it ran beside the InfiniBand devices of this machine";
		else
			preload.prepare = hide_devices;
	}
	status = child_preload(&preload, folder);
	if (status)
		return status;
	if (set_environment(folder, view)) {
		fprintf(stderr, "umad-sim: cannot set the environment: %s\n", strerror(errno));
		return STATUS_FAILED;
	}
	status = child_start(&preload, arguments, &child, &ready);
	if (status)
		return status;
	report = child_heard(ready);
	if (report == CHILD_LOADED) /* if the fabric has ended, the program will notice */
		ask(folder, REQUEST_BEGIN, "", &reply, text, NULL);
	return child_judge(&preload, arguments[0], report, wait_for_program(child));
}
