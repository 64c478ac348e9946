/* SPDX-License-Identifier: BSD-2-Clause */

/* Blocks of a pcapng file, in the host's byte order. */
#include "pcapng.h"

#include <string.h>

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

/* Adds bytes, padded with zeros to a multiple of four. On OOM, the file ends as if the disk
 * were full. */
static void add(struct pcapng *file, const void *bytes, size_t count)
{
	size_t padded = (count + 3) / 4 * 4;
	uint8_t *at = output_add(&file->output, padded);

	if (!at)
		return;
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

/* Returns where the block begins, after the bytes not written yet. end_block() fills in the
 * length at both ends. */
static size_t begin_block(struct pcapng *file, uint32_t type)
{
	size_t begin = file->output.end - file->output.begin;

	add32(file, type);
	add32(file, 0);
	return begin;
}

static void end_block(struct pcapng *file, size_t begin)
{
	struct output *output = &file->output;
	uint32_t length;

	add16s(file, OPTION_END, 0);
	length = (uint32_t)(output->end - output->begin - begin + sizeof(length));
	add32(file, length);
	if (!output->error)
		memcpy(output->buffer + output->begin + begin + 4, &length, sizeof(length));
}

static size_t block_length(const uint8_t *bytes, size_t length, bool *counts)
{
	uint32_t block[2]; /* the type and the length */

	(void)length;
	memcpy(block, bytes, sizeof(block));
	*counts = block[0] == PACKET;
	return block[1];
}

static const struct output_format blocks = {.units = "packets", .unit = block_length};

int pcapng_open(struct pcapng *file, const char *name, const char *program)
{
	uint64_t unknown_length = UINT64_MAX;
	size_t begin;
	int error;

	*file = (struct pcapng){0};
	error = output_open(&file->output, name, &blocks);
	if (error)
		return error;
	begin = begin_block(file, SECTION);
	add32(file, BYTE_ORDER_MAGIC);
	add16s(file, 1, 0); /* the version */
	add(file, &unknown_length, sizeof(unknown_length));
	add_option(file, SECTION_PROGRAM, program, strlen(program));
	end_block(file, begin);
	return output_write(&file->output);
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
