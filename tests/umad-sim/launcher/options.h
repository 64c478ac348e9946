/* SPDX-License-Identifier: BSD-2-Clause */

/* umad-sim's command line. */
#ifndef UMAD_SIM_OPTIONS_H
#define UMAD_SIM_OPTIONS_H

#include <stdbool.h>

#include "server.h"

enum mode {
	MODE_RUN,   /* a fabric for one program */
	MODE_SERVE, /* a fabric with a name, for several programs */
	MODE_JOIN,  /* a program on a served fabric */
	MODE_TELL,  /* a rule or a query for a served fabric */
	MODE_PRINT, /* the topology as a file */
	MODE_CHECK  /* errors of the topology and the rules */
};

struct options {
	enum mode mode;
	struct server_options server;
	bool random_seed;
	const char *name; /* of the fabric; NULL: none */
	const char *at;   /* nodes; NULL: the first CA */
	const char *topology;
	bool without_namespace;
	bool kernel;      /* MODE_SERVE: the nodes are devices of the kernel */
	const char *rule; /* MODE_TELL */
	const char *faults_file;
	const char **faults; /* ends with NULL; has room for all arguments */
	char **program;      /* its arguments */
};

/* Reads the command line. Exits if it is wrong or asks for help. */
void read_options(int argc, char **argv, struct options *options);

/* Flushes standard output. Returns 0, or STATUS_FAILED with a message on stderr. */
int finish_output(void);

#endif
