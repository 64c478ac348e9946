/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A capture file in the pcapng format. Of its blocks this has what a fabric needs: a section,
 * an interface for each port, packets with the direction, a number and a comment. libpcap
 * writes files without interfaces and comments only.
 *
 * Each call writes whole blocks with one write(). So the file is whole whenever the process
 * ends. After an error nothing more is written, and a regular file ends with its last whole
 * block.
 */
#ifndef FABRIC_PCAPNG_H
#define FABRIC_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pcapng {
	int fd;
	int error; /* 0, or an errno: nothing more is written */
	bool told; /* pcapng_write() has returned it */
	off_t size;
	uint32_t interfaces; /* so far */
	uint8_t *buffer;     /* of blocks to be written */
	size_t length, room;
};

struct pcapng_packet {
	uint32_t interface;
	uint64_t time; /* nanoseconds since 1970 */
	const uint8_t *frame;
	size_t length;
	uint64_t number;     /* of the packet: the same on all interfaces */
	const char *comment; /* "": none */
	bool outbound;
};

/* Creates the file, which belongs to the program. 0 or a negative errno. */
int pcapng_open(struct pcapng *file, const char *name, const char *program);
/* Writes what is left, and closes the file. */
void pcapng_close(struct pcapng *file);

/* Adds blocks, for pcapng_write(). An interface's number is the count of those before. */
void pcapng_add_interface(struct pcapng *file, const char *name, unsigned int link_type);
void pcapng_add_packet(struct pcapng *file, const struct pcapng_packet *packet);

/* Writes the blocks that were added. 0 or a negative errno, once; then 0. */
int pcapng_write(struct pcapng *file);

#endif
