/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A filter: an expression that selects packets, such as "class SubnAdm and not received". It
 * consists of words (request, sent, error ...) and comparisons (method = 0x81, lid 5, attribute
 * NodeInfo, time > 1ms), combined with and, or, not and brackets.
 */
#ifndef UMAD_CAPTURE_FILTER_H
#define UMAD_CAPTURE_FILTER_H

#include "ring.h"

struct filter;

struct filter_error {
	size_t at; /* position of the error in the text */
	char text[128];
};

/* Reads an expression. NULL if it is wrong, or on OOM. */
struct filter *filter_read(const char *text, struct filter_error *error);

/* Whether the filter selects the packet. round_trip: from summary_note(). */
bool filter_match(const struct filter *filter, const struct packet_record *record,
		  int64_t round_trip);

void filter_free(struct filter *filter);

#endif
