/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Which packets are wanted: an expression such as "class SubnAdm and not received". It is of
 * words (request, sent, error ...) and of comparisons (method = 0x81, lid 5, attribute
 * NodeInfo), with and, or, not and brackets.
 */
#ifndef UMAD_CAPTURE_FILTER_H
#define UMAD_CAPTURE_FILTER_H

#include "ring.h"

struct filter;

struct filter_error {
	size_t at; /* the byte of the text that makes no sense */
	char text[128];
};

/* Reads an expression. NULL: it makes no sense, or there is no memory. */
struct filter *filter_read(const char *text, struct filter_error *error);

/* Whether the packet is wanted. */
bool filter_match(const struct filter *filter, const struct packet_record *record);

void filter_free(struct filter *filter);

#endif
