/* SPDX-License-Identifier: BSD-2-Clause */

/* Ends the programs of a fabric that ends or is killed. */
#include "programs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "folder.h"
#include "protocol.h"

#define PROGRAMS_END_MS 3000 /* from SIGTERM to SIGKILL */
#define GIVE_UP_MS      5000 /* a process that waits for a disk survives SIGKILL */
#define ROUND_MS        20
#define GUARD_NAME      "umad-sim-guard" /* process name: see prctl(2) */

/* Reads the whole environment of a process, however long; NULL if the process has ended or is
 * another user's. The caller frees it. */
static char *read_environment(const char *process, size_t *length)
{
	char path[64], *bytes = NULL;
	size_t room = 0;
	ssize_t got = 1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%.20s/environ", process);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	*length = 0;
	while (fd >= 0 && got > 0) {
		if (*length + 1 >= room) {
			char *more = realloc(bytes, room = room ? 2 * room : 8192);

			if (!more)
				break;
			bytes = more;
		}
		got = read(fd, bytes + *length, room - *length - 1);
		*length += got > 0 ? (size_t)got : 0;
	}
	if (fd >= 0)
		close(fd);
	if (bytes)
		bytes[*length] = '\0';
	return bytes;
}

static bool has_variable(const char *process, const char *variable)
{
	size_t length;
	char *environment = read_environment(process, &length);
	const char *each = environment;
	bool found = false;

	for (; each && each < environment + length && !found; each += strlen(each) + 1)
		found = strcmp(each, variable) == 0;
	free(environment);
	return found;
}

/* The guard of a nested fabric: that fabric runs on this one, and its programs have another
 * folder in their environment. The guard ends after them. */
static bool is_guard(const char *process)
{
	char path[64], name[sizeof(GUARD_NAME)];
	FILE *file;
	bool is_one;

	snprintf(path, sizeof(path), "/proc/%.20s/comm", process);
	file = fopen(path, "re");
	is_one = file && fgets(name, sizeof(name), file) && strcmp(name, GUARD_NAME) == 0;
	if (file)
		fclose(file);
	return is_one;
}

/* Sends a signal (0: none) to each process with the variable. Returns how many there are. */
static unsigned int send_all(const char *variable, int number)
{
	DIR *processes = opendir("/proc");
	unsigned int count = 0;
	struct dirent *entry;

	while (processes && (entry = readdir(processes))) {
		pid_t process = (pid_t)strtol(entry->d_name, NULL, 10);

		if (!isdigit((unsigned char)entry->d_name[0]) || process == getpid() ||
		    !has_variable(entry->d_name, variable) || is_guard(entry->d_name))
			continue;
		if (kill(process, number) == 0)
			count++;
	}
	if (processes)
		closedir(processes);
	return count;
}

void programs_end(const char *folder)
{
	const struct timespec pause = {.tv_nsec = ROUND_MS * 1000000L};
	char variable[sizeof(ENV_FOLDER "=") + FOLDER_BYTES];
	unsigned int left;

	snprintf(variable, sizeof(variable), "%s=%s", ENV_FOLDER, folder);
	left = send_all(variable, SIGTERM);
	for (int time = ROUND_MS; left && time <= GIVE_UP_MS; time += ROUND_MS) {
		nanosleep(&pause, NULL);
		left = send_all(variable, time < PROGRAMS_END_MS ? 0 : SIGKILL);
	}
}

static void __attribute__((noreturn)) guard(const char *folder, int end_of_caller)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char byte;

	setsid(); /* keep the group's signals from the guard */
	prctl(PR_SET_NAME, GUARD_NAME);
	for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	while (read(end_of_caller, &byte, 1) < 0 && errno == EINTR)
		;
	programs_end(folder);
	folder_remove(folder);
	_exit(0);
}

static struct {
	pid_t process;
	int held; /* the guard waits until this is closed */
} the_guard;

int guard_start(const char *folder, int unused)
{
	int ends[2], error;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	the_guard.process = fork();
	error = the_guard.process < 0 ? -errno : 0;
	if (the_guard.process == 0) {
		close(ends[1]);
		if (unused >= 0)
			close(unused);
		guard(folder, ends[0]);
	}
	the_guard.held = ends[1];
	close(ends[0]);
	if (error)
		close(ends[1]);
	return error;
}

void guard_release(void)
{
	kill(the_guard.process, SIGKILL);
	close(the_guard.held);
	waitpid(the_guard.process, NULL, 0);
}
