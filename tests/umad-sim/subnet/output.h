/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A file that the fabric writes: the trace, a capture, the statistics.
 *
 * A write to a regular file waits for the disk. Any other file, such as a pipe, may have a
 * reader that is slow or does not read at all. The fabric does not wait for this reader: the
 * rest stays in memory, up to a limit, and is written later. Beyond the limit the caller drops
 * units (packets of a capture, lines of a trace), and the file has a gap. A pipe gets complete
 * units only.
 *
 * After an error nothing more is written, and a regular file ends with the last complete write.
 */
#ifndef FABRIC_OUTPUT_H
#define FABRIC_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OUTPUT_LIMIT (64UL * 1024 * 1024) /* bytes that wait for a reader */

/* The format of the file. */
struct output_format {
	const char *units; /* for messages: "packets" */
	/* The bytes of the first unit; it may be the only one. Stores whether it counts as one
	 * of the units in messages. */
	size_t (*unit)(const uint8_t *bytes, size_t length, bool *counts);
};

extern const struct output_format output_lines;

struct output {
	int fd; /* -1: not open */
	const struct output_format *format;
	char *name;
	bool regular;
	int error; /* 0, or an errno: nothing more is written */
	bool told; /* output_write() has returned the error */
	off_t size;
	uint64_t dropped;
	uint8_t *buffer; /* from begin to end: to be written */
	size_t begin, end, room;
};

/*
 * Creates the file. Waits for the reader of a named pipe; a signal ends the wait with -EINTR.
 * Ignores SIGPIPE and SIGXFSZ from now on. 0 or a negative errno.
 */
int output_open(struct output *output, const char *name, const struct output_format *format);

/* Adds bytes, which the caller fills: NULL without memory or after an error. The address is
 * valid until the next call. */
uint8_t *output_add(struct output *output, size_t count);

/* Writes the added units, as far as the file takes them at once. 0 or a negative errno, which
 * is returned once; then 0. */
int output_write(struct output *output);

/* Whether units wait for the reader. */
bool output_is_behind(const struct output *output);

/* Whether the limit is reached: a unit must not be added, but dropped. */
bool output_is_full(const struct output *output);

/* Counts a unit that is not added. A message on stderr tells the first one. */
void output_drop(struct output *output);

/* Writes the rest. Waits for a reader, but not long; a signal ends the wait. Returns as
 * output_write(). */
int output_finish(struct output *output);

/* Finishes, tells the number of dropped units on stderr, and closes the file. Nothing happens
 * if it is not open. */
void output_close(struct output *output);

#endif
