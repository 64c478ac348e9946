/* SPDX-License-Identifier: BSD-2-Clause */

/* umad-sim's command line. */
#ifndef UMAD_SIM_OPTIONS_H
#define UMAD_SIM_OPTIONS_H

#include <stdbool.h>

#include "server.h"

enum mode {
	MODE_RUN,   /* a fabric for one program */
	MODE_SERVE, /* a fabric with a name, for several */
	MODE_JOIN,  /* a program on a fabric that is served */
	MODE_TELL,  /* a rule or a question for it */
	MODE_PRINT  /* the topology as a file */
};

struct options {
	enum mode mode;
	struct server_options server;
	bool random_seed;
	const char *name; /* of the fabric; NULL: it needs none */
	const char *at;   /* nodes; NULL: the first CA */
	const char *topology;
	const char *rule; /* MODE_TELL */
	const char *faults_file;
	const char **faults; /* as many as arguments at most; ends with NULL */
	char **program;      /* its arguments */
};

/* Reads the command line; does not return if it is wrong, or asks for help. */
void read_options(int argc, char **argv, struct options *options);

#endif
