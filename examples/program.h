/* SPDX-License-Identifier: BSD-2-Clause */

/* The examples share this: times and numbers on the command line, and the end of the output. */
#ifndef EXAMPLES_PROGRAM_H
#define EXAMPLES_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A time in seconds, from 0.001 to a million, as milliseconds; 0 for any other text. */
static inline unsigned read_ms(const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (!*text || !strchr("0123456789.", *text) || *end ||
	    !(seconds >= 0.001 && seconds <= 1e6))
		return 0;
	return (unsigned)(seconds * 1000 + 0.5);
}

/* A whole number, decimal or with 0x, from least to most; -1 for any other text. */
static inline int read_number(const char *text, int least, int most)
{
	char *end;
	long number = strtol(text, &end, strncmp(text, "0x", 2) ? 10 : 16);

	if (!*text || !strchr("0123456789", *text) || *end || number < least || number > most)
		return -1;
	return (int)number;
}

/* An M_Key, in any base of C. False for any other text. */
static inline bool read_m_key(const char *text, uint64_t *key)
{
	char *end;

	*key = strtoull(text, &end, 0);
	return *text && strchr("0123456789", *text) && !*end;
}

/* The exit status; 1 in place of 0 if the output could not be written. */
static inline int finish(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fputs("the output could not be written\n", stderr);
	return status ? status : 1;
}

#endif
