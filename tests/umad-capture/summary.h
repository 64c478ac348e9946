/* SPDX-License-Identifier: BSD-2-Clause */

/* One line of text for each MAD. */
#ifndef UMAD_CAPTURE_SUMMARY_H
#define UMAD_CAPTURE_SUMMARY_H

#include <stdio.h>

#include "ring.h"

/* Requests that may still get a response; later requests replace older ones. */
#define SUMMARY_REQUESTS 65536

struct summary_request {
	uint64_t key; /* 0: none */
	int64_t sent; /* ns */
	uint8_t hops; /* of the directed route */
	uint8_t path[64];
};

/* What is known of a response, or of a request that the kernel returned. */
struct summary_exchange {
	int64_t round_trip; /* ns since the request; -1: unknown request */
	/* of the request's directed route: the kernel returns only its header */
	uint8_t hops;
	uint8_t path[64];
};

struct summary {
	struct summary_request *requests; /* SUMMARY_REQUESTS */
};

/* Returns 0 or -ENOMEM. */
int summary_init(struct summary *summary);
void summary_free(struct summary *summary);

/* Remembers a request; finds the request of any other packet. */
struct summary_exchange summary_note(struct summary *summary,
				     const struct packet_record *record);

void summary_print(FILE *out, const struct packet_record *record,
		   const struct summary_exchange *exchange);

/* Prints "12.3 us", "1.23 ms" or "4.56 s". */
void summary_print_duration(FILE *out, int64_t ns);

#endif
