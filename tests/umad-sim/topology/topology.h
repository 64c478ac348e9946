/* SPDX-License-Identifier: BSD-2-Clause */

/* Topologies by a word on the command line: a generator's ("fat-tree:36,2", "dragonfly:...",
 * "torus:4,4,4", "pair") or the name of a file in the format of ibnetdiscover or ibsim. */
#ifndef FABRIC_TOPOLOGY_H
#define FABRIC_TOPOLOGY_H

#include <stddef.h>
#include <stdio.h>

#include "graph.h"

struct topology_error {
	char text[256]; /* "small.net:17: port 9 of a switch of 8 ports": file, line, reason */
};

/*
 * Adds the topology to an initialised, empty graph. On error, the graph may contain part of it.
 */
int topology_load(struct graph *graph, const char *spec, struct topology_error *error);

/* topology_load() tries these in this order. -ENOENT: no generator has this word. */
int topology_generate(struct graph *graph, const char *spec, struct topology_error *error);
int topology_read(struct graph *graph, const char *text, size_t length, const char *file,
		  struct topology_error *error);

/* The words of the generators, as one list: "pair, fat-tree". */
void topology_words(char *text, size_t size);

/* Prints the graph in ibnetdiscover's format, so that it can be loaded again. */
void topology_print(const struct graph *graph, FILE *out);

/*
 * Reads a whole file, which the caller frees, and adds a terminating zero. A file that contains
 * a zero byte is not text; it is read only up to there or a little further. -EFBIG: the file is
 * longer than the limit.
 */
int topology_slurp(const char *file, size_t limit, char **text, size_t *length);

/* Stores the reason, without control characters, and returns ret. */
int topology_fail(struct topology_error *error, int ret, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
