/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A capture file in the pcapng format, with the blocks that a fabric needs: a section, an
 * interface for each port, packets with direction, number and comment. libpcap cannot write
 * interfaces and comments.
 *
 * Each call writes complete blocks with one write(), so the file is complete whenever the
 * process ends. After an error nothing more is written, and a regular file ends with its last
 * complete block.
 */
#ifndef FABRIC_PCAPNG_H
#define FABRIC_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pcapng {
	int fd;
	int error; /* 0, or an errno: nothing more will be written */
	bool told; /* pcapng_write() has returned the error */
	off_t size;
	uint32_t interfaces; /* number of interfaces */
	uint8_t *buffer;     /* blocks to be written */
	size_t length, room;
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

/* Creates a file for the program. 0 or a negative errno. */
int pcapng_open(struct pcapng *file, const char *name, const char *program);
/* Writes the remaining blocks, and closes the file. */
void pcapng_close(struct pcapng *file);

/* Add blocks, which pcapng_write() writes. Interfaces are numbered from 0, in the order of
 * their blocks. */
void pcapng_add_interface(struct pcapng *file, const char *name, unsigned int link_type);
void pcapng_add_packet(struct pcapng *file, const struct pcapng_packet *packet);

/* Writes the added blocks. 0 or a negative errno, which is returned once; then 0. */
int pcapng_write(struct pcapng *file);

#endif
