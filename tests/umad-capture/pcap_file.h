/* SPDX-License-Identifier: BSD-2-Clause */

/* The capture's file, or the files of a rotation. */
#ifndef UMAD_CAPTURE_PCAP_FILE_H
#define UMAD_CAPTURE_PCAP_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "ring.h"

struct pcap;
struct pcap_dumper;

struct pcap_file {
	const char *name;   /* "-": the capture goes to `fd` */
	uint64_t most;      /* bytes per file; 0: no limit */
	unsigned int files; /* in a rotation; 0: no limit */
	int fd;             /* for "-" */
	struct pcap *pcap;
	struct pcap_dumper *dumper;
	FILE *stream;
	char *buffer; /* of the stream; never freed, since a failed stream is not closed */
	unsigned int number; /* of the open file, from 0 */
	uint64_t bytes;      /* in the file and in the buffer */
	uint64_t written;    /* in the file */
	uint64_t pending;    /* frames in the buffer */
	uint64_t lost;       /* frames that could not be written */
	bool failed;         /* a write failed: nothing more is written */
};

/* Opens the file, or the first one of a rotation. Returns 0, or a negative errno with a message
 * on stderr. */
int pcap_file_open(struct pcap_file *file);

/*
 * Buffers the frames of a packet. The buffer is written when it is full and by
 * pcap_file_flush(), always up to the end of a frame. If a write fails, the reason is printed,
 * the file ends with its last complete frame, and later packets are only counted.
 */
void pcap_file_write(struct pcap_file *file, const struct packet_record *record);
void pcap_file_flush(struct pcap_file *file);

void pcap_file_close(struct pcap_file *file);

#endif
