/* SPDX-License-Identifier: BSD-2-Clause */

/* A line of text for each MAD. */
#ifndef UMAD_CAPTURE_SUMMARY_H
#define UMAD_CAPTURE_SUMMARY_H

#include <stdio.h>

#include "ring.h"

/* The requests that a response may be expected to; later ones take the places of older ones. */
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
 * Notes the packet for the round trip. Returns the ns since the request of a response, or of a
 * request that the kernel gives back; -1: there is none, or it is unknown.
 */
int64_t summary_note(struct summary *summary, const struct packet_record *record);

/* Prints a packet's line. */
void summary_print(FILE *out, const struct packet_record *record, int64_t round_trip);

#endif
