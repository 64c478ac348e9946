/* SPDX-License-Identifier: BSD-2-Clause */

/* One line of text for each MAD. */
#ifndef UMAD_CAPTURE_SUMMARY_H
#define UMAD_CAPTURE_SUMMARY_H

#include <stdio.h>

#include "ring.h"

/* The requests that may still get a response; later requests replace older ones. */
#define SUMMARY_REQUESTS 65536

struct summary_request {
	uint64_t key; /* 0: none */
	int64_t sent; /* ns */
};

struct summary {
	struct summary_request *requests; /* SUMMARY_REQUESTS */
};

/* 0 or -ENOMEM. */
int summary_init(struct summary *summary);
void summary_free(struct summary *summary);

/*
 * Records the packet to compute round trip times. Returns the ns since the request, for a
 * response or a request that the kernel gives back; -1: it is neither, or the request is
 * unknown.
 */
int64_t summary_note(struct summary *summary, const struct packet_record *record);

/* Prints a packet's line. */
void summary_print(FILE *out, const struct packet_record *record, int64_t round_trip);

#endif
