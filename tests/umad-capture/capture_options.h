/* SPDX-License-Identifier: BSD-2-Clause */

/* umad-capture's command line. */
#ifndef UMAD_CAPTURE_OPTIONS_H
#define UMAD_CAPTURE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "filter.h"

struct capture_options {
	const char *file;      /* NULL: none */
	struct filter *filter; /* NULL: all packets */
	uint64_t most;         /* bytes per file; 0: no limit */
	unsigned int files;    /* in a rotation; 0: no limit */
	bool summary;
	unsigned int slowest; /* lines; 0: none */
	char **program;       /* its arguments */
};

/* Reads the command line. Exits if it is wrong or asks for help. */
void read_capture_options(int argc, char **argv, struct capture_options *options);

#endif
