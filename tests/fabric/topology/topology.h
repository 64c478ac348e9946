/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Topologies from a word on the command line: a generator ("fat-tree:36,2", "dragonfly:...",
 * "torus:4,4,4", "pair") or the name of a file in the format that ibnetdiscover prints, or
 * ibsim's.
 */
#ifndef FABRIC_TOPOLOGY_H
#define FABRIC_TOPOLOGY_H

#include <stddef.h>
#include <stdio.h>

#include "graph.h"

struct topology_error {
	char text[256]; /* "small.net:17: port 9 of a switch of 8 ports": file, line, reason */
};

/* Adds the topology to an initialised, empty graph. On a failure the graph may hold a part of
 * it. */
int topology_load(struct graph *graph, const char *spec, struct topology_error *error);

/* What topology_load() tries, in this order. -ENOENT: the word is no generator's. */
int topology_generate(struct graph *graph, const char *spec, struct topology_error *error);
int topology_read(struct graph *graph, const char *text, size_t length, const char *file,
		  struct topology_error *error);

/* The words of the generators, as a list: "pair, fat-tree". */
void topology_words(char *text, size_t size);

/* Prints the graph as ibnetdiscover would, so that it can be loaded again. */
void topology_print(const struct graph *graph, FILE *out);

/*
 * The whole file, to be freed by the caller; it has no terminating zero. -EFBIG: more than
 * limit bytes. error is left alone.
 */
int topology_slurp(const char *file, size_t limit, char **text, size_t *length);

/* Keeps the reason, whatever bytes it quotes fit to be shown, and returns ret. */
int topology_fail(struct topology_error *error, int ret, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
