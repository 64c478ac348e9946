/* SPDX-License-Identifier: BSD-2-Clause */

/* Files that the fabric writes without waiting for their readers. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define READER_POLL_MS 20   /* how often to try to open a pipe that has no reader */
#define LAST_WAIT_MS   3000 /* for the reader, on close */
#define FIRST_ROOM     4096

static size_t line_length(const uint8_t *bytes, size_t length, bool *counts)
{
	const uint8_t *end = memchr(bytes, '\n', length);

	*counts = true;
	return end ? (size_t)(end - bytes) + 1 : length;
}

const struct output_format output_lines = {.units = "lines", .unit = line_length};

/* --- open ------------------------------------------------------------------------ */

/* Sleeps; -1 with EINTR after a signal that the process otherwise blocks. */
static int wait_a_little(void)
{
	struct timespec time = {.tv_nsec = READER_POLL_MS * 1000000L};
	sigset_t none;

	sigemptyset(&none);
	return ppoll(NULL, 0, &time, &none);
}

static bool is_pipe(const char *name)
{
	struct stat status;

	return stat(name, &status) == 0 && S_ISFIFO(status.st_mode);
}

/* A blocking open() of a named pipe would wait for a reader with the signals that end the
 * fabric blocked. */
static int open_file(const char *name)
{
	int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC;
	int fd = open(name, flags, 0666);

	while (fd < 0 && errno == ENXIO && is_pipe(name)) {
		if (wait_a_little() < 0)
			return -1;
		fd = open(name, flags, 0666);
	}
	return fd;
}

int output_open(struct output *output, const char *name, const struct output_format *format)
{
	struct stat status;
	int error;

	*output = (struct output){.format = format, .fd = -1};
	signal(SIGPIPE, SIG_IGN); /* a pipe's reader may end */
	signal(SIGXFSZ, SIG_IGN); /* the file may reach its size limit */
	output->name = strdup(name);
	if (!output->name)
		return -ENOMEM;
	output->fd = open_file(name);
	if (output->fd >= 0 && fstat(output->fd, &status) == 0) {
		output->regular = S_ISREG(status.st_mode);
		return 0;
	}
	error = -errno;
	output_close(output);
	return error;
}

/* --- write ----------------------------------------------------------------------- */

/* Makes room at the end of the buffer; false on OOM. */
static bool make_room(struct output *output, size_t count)
{
	size_t room = output->room ? output->room : FIRST_ROOM;
	size_t used = output->end - output->begin;
	uint8_t *buffer;

	if (output->end + count <= output->room)
		return true;
	if (output->begin > used) { /* at most one byte is moved for each byte written */
		memcpy(output->buffer, output->buffer + output->begin, used);
		output->begin = 0;
		output->end = used;
	}
	while (room < output->end + count)
		room *= 2;
	if (room == output->room)
		return true;
	buffer = realloc(output->buffer, room);
	if (!buffer)
		return false;
	output->buffer = buffer;
	output->room = room;
	return true;
}

uint8_t *output_add(struct output *output, size_t count)
{
	if (!output->error && !make_room(output, count))
		output->error = ENOMEM;
	if (output->error)
		return NULL;
	output->end += count;
	return output->buffer + output->end - count;
}

/* As many complete units as a pipe takes atomically (pipe(7)), but at least one. */
static size_t some_units(const struct output *output)
{
	size_t left = output->end - output->begin;
	size_t some = 0;

	if (output->regular)
		return left;
	while (some < left) {
		bool counts;
		size_t unit = output->format->unit(output->buffer + output->begin + some,
						   left - some, &counts);

		if (some && some + unit > PIPE_BUF)
			break;
		some += unit;
	}
	return some;
}

/* Returns 0 or an errno; EAGAIN: the rest waits for the reader. */
static int write_all(struct output *output)
{
	while (output->begin < output->end) {
		ssize_t written =
			write(output->fd, output->buffer + output->begin, some_units(output));

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return errno;
		output->begin += (size_t)written;
	}
	return 0;
}

int output_write(struct output *output)
{
	size_t before = output->begin, length = output->end - before;
	int error = output->error ? output->error : write_all(output);

	if (error == EAGAIN && !output->regular)
		return 0;
	output->begin = output->end = 0;
	output->error = error;
	if (!error)
		output->size += (off_t)length;
	if (!error || output->told)
		return 0;
	output->told = true;
	if (output->regular && ftruncate(output->fd, output->size))
		output->error = errno;
	return -output->error;
}

bool output_is_behind(const struct output *output)
{
	return output->begin < output->end;
}

bool output_is_full(const struct output *output)
{
	return output->end - output->begin >= OUTPUT_LIMIT;
}

void output_drop(struct output *output)
{
	if (!output->dropped++)
		fprintf(stderr, "umad-sim: %s: its reader is too slow: %s are dropped\n",
			output->name, output->format->units);
}

/* --- close ------------------------------------------------------------------------ */

static int64_t now_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int output_finish(struct output *output)
{
	struct pollfd writable = {.fd = output->fd, .events = POLLOUT};
	int64_t left, end = now_ms() + LAST_WAIT_MS;
	int error = output_write(output);
	sigset_t none;

	sigemptyset(&none);
	while (!error && output_is_behind(output) && (left = end - now_ms()) > 0) {
		struct timespec time = {(time_t)(left / 1000), (long)(left % 1000 * 1000000)};

		if (ppoll(&writable, 1, &time, &none) < 0)
			return 0;
		error = output_write(output);
	}
	return error;
}

static void drop_rest(struct output *output)
{
	while (output_is_behind(output)) {
		bool counts;

		output->begin += output->format->unit(output->buffer + output->begin,
						      output->end - output->begin, &counts);
		output->dropped += counts;
	}
}

void output_close(struct output *output)
{
	if (output->fd >= 0) {
		output_finish(output);
		drop_rest(output);
		if (output->dropped)
			fprintf(stderr,
				"umad-sim: %s: %llu %s were dropped, because its reader was "
				"too slow\n",
				output->name, (unsigned long long)output->dropped,
				output->format->units);
		close(output->fd);
	}
	free(output->name);
	free(output->buffer);
	*output = (struct output){.fd = -1};
}
