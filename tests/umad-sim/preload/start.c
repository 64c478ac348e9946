/* SPDX-License-Identifier: BSD-2-Clause */

/* What happens when a program on the fabric starts, and when it forks. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload.h"
#include "ready.h"

/*
 * Removes a variable from the environment. Does not call unsetenv(), because a shell may have
 * its own, which does not work this early; the shell's children would then get variables meant
 * for the shell only.
 */
static void take_out(const char *name)
{
	size_t length = strlen(name);
	char **kept = environ;

	for (char **entry = environ; entry && *entry; entry++)
		if (strncmp(*entry, name, length) || (*entry)[length] != '=')
			*kept++ = *entry;
	if (kept)
		*kept = NULL;
}

/* Tells umad-sim, which is waiting, that the library is loaded. */
static void say_ready(void)
{
	int fd = ready_descriptor(getenv(ENV_READY));

	take_out(ENV_READY);
	if (fd < 0)
		return;
	REAL(send)(fd, "", 1, READY_SEND_FLAGS);
	REAL(close)(fd);
}

/* Adopts the devices that the program before exec() left open. */
static void inherit_devices(void)
{
	const char *text = getenv(ENV_HANDLES);
	unsigned long long handle;
	unsigned int number;
	int fd, kind, flags, length;

	while (text && sscanf(text, "%d:%d:%u:%d:%llu,%n", &fd, &kind, &number, &flags, &handle,
			      &length) == 5) {
		struct device like = {.kind = (enum device_kind)kind,
				      .number = number,
				      .flags = flags,
				      .handle = handle};

		if (kind > DEVICE_NONE && kind <= DEVICE_UEVENTS && device_inherit(fd, &like))
			dprintf(STDERR_FILENO,
				"umad-sim: lost the device on descriptor %d at exec\n", fd);
		text += length;
	}
	take_out(ENV_HANDLES);
}

static void __attribute__((constructor)) start(void)
{
	find_real_functions();
	fabric_begin_program();
	device_begin_process();
	pthread_atfork(NULL, NULL, device_begin_process);
	exec_begin_program();
	inherit_devices();
	say_ready();
}

/* fork() without handlers (glibc 2.34). */
pid_t _Fork(void);

EXPORT pid_t _Fork(void)
{
	pid_t child = REAL(_Fork)();

	if (child == 0)
		device_begin_process();
	return child;
}
