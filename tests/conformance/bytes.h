/* SPDX-License-Identifier: BSD-2-Clause */

/* Numbers in network order at any place of a MAD. */
#ifndef CONFORMANCE_BYTES_H
#define CONFORMANCE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void put16(uint8_t *at, uint16_t value)
{
	value = htobe16(value);
	memcpy(at, &value, sizeof(value));
}

static inline uint16_t get16(const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return be16toh(value);
}

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

#endif
