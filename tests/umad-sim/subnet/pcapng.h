/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A capture file in the pcapng format, with the blocks that a fabric needs: a section, an
 * interface for each port, packets with direction, number and comment. libpcap cannot write
 * interfaces and comments.
 *
 * output.h writes complete blocks, so the file is valid whenever the process ends.
 */
#ifndef FABRIC_PCAPNG_H
#define FABRIC_PCAPNG_H

#include "output.h"

struct pcapng {
	struct output output;
	uint32_t interfaces; /* number of interfaces */
};

struct pcapng_packet {
	uint32_t interface;
	uint64_t time; /* nanoseconds since 1970 */
	const uint8_t *frame;
	size_t length;
	uint64_t number;     /* of the packet; the same on all interfaces */
	const char *comment; /* "": none */
	bool outbound;
};

/*
 * Creates a file for the program. Returns 0 or a negative errno. Close it with output_close().
 */
int pcapng_open(struct pcapng *file, const char *name, const char *program);

/*
 * Add blocks for output_write(). Interfaces are numbered from 0, in the order of their blocks.
 */
void pcapng_add_interface(struct pcapng *file, const char *name, unsigned int link_type);
void pcapng_add_packet(struct pcapng *file, const struct pcapng_packet *packet);

#endif
