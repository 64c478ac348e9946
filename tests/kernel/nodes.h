/* SPDX-License-Identifier: BSD-2-Clause */

/* Definitions that the client and the servers of two machines share. A node is a GID. */
#ifndef KERNEL_NODES_H
#define KERNEL_NODES_H

#include "environment.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/*
 * Attributes: a request of NAME has its number in the first 4 bytes. Its modifier is the number
 * of bytes of data that the response must have. SILENCE has no response.
 */
#define NAME    0x20
#define SILENCE 0x21

#define NAME_BYTES 24 /* of data, at least: the GID, the number, the size */
#define LARGEST    100000
#define TID_LOW    12

static inline void put32(uint8_t *at, uint32_t value)
{
	value = htobe32(value);
	memcpy(at, &value, sizeof(value));
}

static inline uint32_t get32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return be32toh(value);
}

/* The data of a response of NAME: bytes that depend on the node, the request and the offset. */
static inline void write_name(uint8_t *data, size_t size, const uint8_t gid[16],
			      uint32_t number)
{
	memcpy(data, gid, 16);
	put32(data + 16, number);
	put32(data + 20, (uint32_t)size);
	for (size_t i = NAME_BYTES; i < size; i++)
		data[i] = (uint8_t)(gid[15] * 7 + number * 13 + i * 31 + i / 251);
}

/* An entry of the GID table of a device's first port. */
static inline void read_gid(const char *device, unsigned index, uint8_t gid[16])
{
	struct port port = {.portnum = 1};
	char name[32], text[64];

	snprintf(port.ca_name, sizeof(port.ca_name), "%s", device);
	snprintf(name, sizeof(name), "gids/%u", index);
	read_port_file(&port, name, text, sizeof(text));
	if (inet_pton(AF_INET6, text, gid) != 1)
		memset(gid, 0, 16);
}

#endif
