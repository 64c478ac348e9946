/* SPDX-License-Identifier: BSD-2-Clause */

/* The lines of the requests that took longest. */
#ifndef UMAD_CAPTURE_SLOWEST_H
#define UMAD_CAPTURE_SLOWEST_H

#include "summary.h"

#define SLOWEST_MOST 1000

struct slowest_line {
	int64_t round_trip; /* ns */
	char *text;
};

/* Longest first; if equal, the earlier packet first. */
struct slowest {
	struct slowest_line *lines; /* wanted + 1 */
	unsigned wanted, count;
};

/* Returns 0 or -ENOMEM. */
int slowest_init(struct slowest *slowest, unsigned wanted);
void slowest_free(struct slowest *slowest);

/* Keeps the packet's line if it is among the slowest. Returns 0 or -ENOMEM. */
int slowest_note(struct slowest *slowest, const struct packet_record *record,
		 const struct summary_exchange *exchange);

void slowest_print(FILE *out, const struct slowest *slowest);

#endif
