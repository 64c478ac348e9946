/* SPDX-License-Identifier: BSD-2-Clause */

/* The files that the fabric writes: trace, capture and statistics. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture.h"
#include "server.h"
#include "trace.h"
#include "workload.h"

/* Prefixes an error's text with the file's name, and returns the error. */
static int with_name(int error, const char *name, char *why)
{
	if (error)
		snprintf(why, 256, "%.200s: %s", name, strerror(-error));
	return error;
}

/* error: 0 or a negative errno of output_write() */
static void tell_trace(const struct output *output, int error)
{
	if (error)
		fprintf(stderr, "umad-sim: %s: %s; the trace ends\n", output->name,
			strerror(-error));
}

/* Called once per line. */
static ssize_t write_trace(void *cookie, const char *line, size_t length)
{
	struct output *output = cookie;
	uint8_t *space = NULL;

	if (output_is_full(output))
		output_drop(output);
	else
		space = output_add(output, length);
	if (space)
		memcpy(space, line, length);
	tell_trace(output, output_write(output));
	return (ssize_t)length;
}

static int open_trace(struct server *server, const char *name, char *why)
{
	int error = output_open(&server->trace_output, name, &output_lines);

	if (error)
		return with_name(error, name, why);
	server->trace = fopencookie(&server->trace_output, "w",
				    (cookie_io_functions_t){.write = write_trace});
	return server->trace ? trace_to(&server->fabric, server->trace) : -ENOMEM;
}

static int open_capture(struct server *server, const struct server_options *options, char *why)
{
	uint32_t port = NONE;
	struct timespec time;
	uint64_t start;
	int error;

	if (options->capture_at) {
		error = capture_port(&server->fabric, options->capture_at, &port, why);
		if (error)
			return error;
	}
	clock_gettime(CLOCK_REALTIME, &time);
	server_tell_time(server);
	start = (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec - server->fabric.now;
	return with_name(capture_to(&server->fabric, options->capture, port, start),
			 options->capture, why);
}

void outputs_write_stats(struct server *server)
{
	size_t length = 0;
	char *text = NULL;
	FILE *stream = server->stats.fd < 0 ? NULL : open_memstream(&text, &length);
	uint8_t *space = NULL;
	int error;

	if (server->stats.fd < 0)
		return;
	server_tell_time(server);
	if (stream)
		workload_print(&server->fabric, stream);
	if (stream && !(ferror(stream) | fclose(stream)))
		space = output_add(&server->stats, length);
	if (space)
		memcpy(space, text, length);
	free(text);
	error = space ? output_write(&server->stats) : -ENOMEM;
	if (error)
		fprintf(stderr, "umad-sim: cannot write the statistics: %s\n",
			strerror(-error));
}

int outputs_open(struct server *server, const struct server_options *options, char *why)
{
	int error = 0;

	if (options->trace)
		error = open_trace(server, options->trace, why);
	if (!error && options->capture)
		error = open_capture(server, options, why);
	if (!error && options->stats) /* now, so that errors are reported at once */
		error = with_name(output_open(&server->stats, options->stats, &output_lines),
				  options->stats, why);
	return error;
}

bool outputs_flush(struct server *server)
{
	bool behind = capture_flush(&server->fabric);

	if (output_is_behind(&server->trace_output))
		tell_trace(&server->trace_output, output_write(&server->trace_output));
	return behind || output_is_behind(&server->trace_output);
}

void outputs_close(struct server *server)
{
	capture_free(&server->fabric);
	trace_free(&server->fabric);
	if (server->trace)
		fclose(server->trace);
	tell_trace(&server->trace_output, output_finish(&server->trace_output));
	output_close(&server->trace_output);
	output_close(&server->stats);
}
