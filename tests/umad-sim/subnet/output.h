/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A file that the fabric writes: the trace, a capture, the statistics.
 *
 * Writes to a regular file wait for the disk. Other files, such as pipes, may have a reader
 * that is slow or has stopped reading. The fabric does not wait for it: the rest stays in
 * memory, up to a limit, and is written later. Beyond the limit the caller drops units (packets
 * of a capture, lines of a trace), which leaves a gap in the file. A pipe gets complete units
 * only.
 *
 * After an error nothing more is written; a regular file ends with the last complete write.
 */
#ifndef FABRIC_OUTPUT_H
#define FABRIC_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OUTPUT_LIMIT (64UL * 1024 * 1024) /* bytes that may wait for a reader */

/* The format of the file. */
struct output_format {
	const char *units; /* for messages: "packets" */
	/* Returns the size of the first unit, which may be the only one. Stores whether
	 * messages count it as a unit. */
	size_t (*unit)(const uint8_t *bytes, size_t length, bool *counts);
};

extern const struct output_format output_lines;

struct output {
	int fd; /* -1: not open */
	const struct output_format *format;
	char *name;
	bool regular;
	int error; /* 0, or an errno, after which nothing more is written */
	bool told; /* output_write() has returned the error */
	off_t size;
	uint64_t dropped;
	uint8_t *buffer; /* from begin to end: to be written */
	size_t begin, end, room;
};

/* Creates the file. Waits for the reader of a named pipe; a signal ends the wait with -EINTR.
 * Ignores SIGPIPE and SIGXFSZ from now on. Returns 0 or a negative errno. */
int output_open(struct output *output, const char *name, const struct output_format *format);

/*
 * Adds bytes for the caller to fill; NULL on OOM or after an error. Valid until the next call.
 */
uint8_t *output_add(struct output *output, size_t count);

/* Writes the added units, as far as the file takes them without blocking. Returns 0 or a
 * negative errno; returns an error only once, then 0. */
int output_write(struct output *output);

/* Whether units wait for the reader. */
bool output_is_behind(const struct output *output);

/* Whether the limit is reached: the next unit must be dropped, not added. */
bool output_is_full(const struct output *output);

/* Counts a dropped unit. Reports the first one on stderr. */
void output_drop(struct output *output);

/* Writes the rest. Waits a little for a reader; a signal ends the wait. Returns as
 * output_write(). */
int output_finish(struct output *output);

/* Finishes, reports the number of dropped units on stderr, and closes the file. A no-op if it
 * is not open. */
void output_close(struct output *output);

#endif
