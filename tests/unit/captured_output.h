/* SPDX-License-Identifier: BSD-2-Clause */

/* The output on stdout or stderr between two calls. */
#ifndef TESTS_UNIT_CAPTURED_OUTPUT_H
#define TESTS_UNIT_CAPTURED_OUTPUT_H

#include <stdio.h>
#include <unistd.h>

static struct {
	FILE *stream, *file;
	int saved; /* the stream's own descriptor */
	char text[8192];
} captured;

static inline void capture_output(FILE *stream)
{
	captured.stream = stream;
	captured.file = tmpfile();
	captured.saved = dup(fileno(stream));
	fflush(stream);
	dup2(fileno(captured.file), fileno(stream));
}

/* Ends the capture. The text is valid until the next one ends. */
static inline const char *captured_output(void)
{
	fflush(captured.stream);
	dup2(captured.saved, fileno(captured.stream));
	close(captured.saved);
	rewind(captured.file);
	captured.text[fread(captured.text, 1, sizeof(captured.text) - 1, captured.file)] = '\0';
	fclose(captured.file);
	return captured.text;
}

#endif
