/* SPDX-License-Identifier: BSD-2-Clause */

/* Blocks of a pcapng file, in the host's byte order. */
#include "pcapng.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SECTION = 0x0a0d0d0a,
	INTERFACE = 1,
	PACKET = 6
};

#define BYTE_ORDER_MAGIC 0x1a2b3c4d

enum {
	OPTION_END = 0,
	OPTION_COMMENT = 1,
	SECTION_PROGRAM = 4,
	INTERFACE_NAME = 2,
	INTERFACE_TIME_UNIT = 9,
	PACKET_FLAGS = 2,
	PACKET_NUMBER = 5
};

#define NANOSECONDS 9 /* 10^-9 s */

/* The direction in a packet's flags. */
#define INBOUND  1
#define OUTBOUND 2

static uint8_t *grow(struct pcapng *file, size_t bytes)
{
	size_t room = file->room ? file->room : 4096;
	uint8_t *buffer;

	while (room < file->length + bytes)
		room *= 2;
	if (room != file->room) {
		buffer = realloc(file->buffer, room);
		if (!buffer)
			return NULL;
		file->buffer = buffer;
		file->room = room;
	}
	file->length += bytes;
	return file->buffer + file->length - bytes;
}

/* Adds bytes, and zeros up to a multiple of four. Without memory, the file ends as if the disk
 * was full. */
static void add(struct pcapng *file, const void *bytes, size_t count)
{
	size_t padded = (count + 3) / 4 * 4;
	uint8_t *at = file->error ? NULL : grow(file, padded);

	if (!at) {
		file->error = file->error ? file->error : ENOMEM;
		return;
	}
	memcpy(at, bytes, count);
	memset(at + count, 0, padded - count);
}

static void add32(struct pcapng *file, uint32_t value)
{
	add(file, &value, sizeof(value));
}

static void add16s(struct pcapng *file, unsigned int first, unsigned int second)
{
	uint16_t values[2] = {(uint16_t)first, (uint16_t)second};

	add(file, values, sizeof(values));
}

static void add_option(struct pcapng *file, unsigned int code, const void *bytes, size_t count)
{
	add16s(file, code, (unsigned int)count);
	add(file, bytes, count);
}

/* Returns where the block begins. end_block() writes the length at the beginning and at the
 * end. */
static size_t begin_block(struct pcapng *file, uint32_t type)
{
	size_t begin = file->length;

	add32(file, type);
	add32(file, 0);
	return begin;
}

static void end_block(struct pcapng *file, size_t begin)
{
	uint32_t length;

	add16s(file, OPTION_END, 0);
	length = (uint32_t)(file->length - begin + sizeof(length));
	add32(file, length);
	if (!file->error)
		memcpy(file->buffer + begin + 4, &length, sizeof(length));
}

int pcapng_open(struct pcapng *file, const char *name, const char *program)
{
	uint64_t unknown_length = UINT64_MAX;
	size_t begin;

	*file = (struct pcapng){
		.fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
	if (file->fd < 0)
		return -errno;
	begin = begin_block(file, SECTION);
	add32(file, BYTE_ORDER_MAGIC);
	add16s(file, 1, 0); /* the version */
	add(file, &unknown_length, sizeof(unknown_length));
	add_option(file, SECTION_PROGRAM, program, strlen(program));
	end_block(file, begin);
	return pcapng_write(file);
}

void pcapng_close(struct pcapng *file)
{
	pcapng_write(file);
	if (file->fd >= 0)
		close(file->fd);
	free(file->buffer);
	*file = (struct pcapng){.fd = -1};
}

void pcapng_add_interface(struct pcapng *file, const char *name, unsigned int link_type)
{
	size_t begin = begin_block(file, INTERFACE);
	uint8_t unit = NANOSECONDS;

	file->interfaces++;
	add16s(file, link_type, 0);
	add32(file, 0); /* packets of any length */
	add_option(file, INTERFACE_NAME, name, strlen(name));
	add_option(file, INTERFACE_TIME_UNIT, &unit, 1);
	end_block(file, begin);
}

void pcapng_add_packet(struct pcapng *file, const struct pcapng_packet *packet)
{
	size_t begin = begin_block(file, PACKET);
	uint32_t flags = packet->outbound ? OUTBOUND : INBOUND;

	add32(file, packet->interface);
	add32(file, (uint32_t)(packet->time >> 32));
	add32(file, (uint32_t)packet->time);
	add32(file, (uint32_t)packet->length);
	add32(file, (uint32_t)packet->length);
	add(file, packet->frame, packet->length);
	if (packet->comment[0])
		add_option(file, OPTION_COMMENT, packet->comment, strlen(packet->comment));
	add_option(file, PACKET_FLAGS, &flags, sizeof(flags));
	add_option(file, PACKET_NUMBER, &packet->number, sizeof(packet->number));
	end_block(file, begin);
}

static int write_all(struct pcapng *file)
{
	size_t done = 0;

	while (done < file->length) {
		ssize_t written = write(file->fd, file->buffer + done, file->length - done);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return errno;
		done += (size_t)written;
	}
	return 0;
}

int pcapng_write(struct pcapng *file)
{
	if (!file->error)
		file->error = write_all(file);
	if (!file->error)
		file->size += (off_t)file->length;
	file->length = 0;
	if (!file->error || file->told)
		return 0;
	file->told = true;
	if (ftruncate(file->fd, file->size)) /* fails for a pipe, which has no end to cut */
		errno = file->error;
	return -file->error;
}
