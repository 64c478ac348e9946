/* SPDX-License-Identifier: BSD-2-Clause */

/* A MAD's bytes: the common header (IBA 13.4.3), and numbers in network order. */
#ifndef FABRIC_MAD_HEADER_H
#define FABRIC_MAD_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#define MAD_BYTES 256

/* MAD status (IBA 13.4.7). */
enum mad_status {
	STATUS_OK = 0,
	STATUS_BUSY = 0x0001,
	STATUS_REDIRECT = 0x0002,
	STATUS_BAD_VERSION = 0x0004,
	STATUS_BAD_METHOD = 0x0008,
	STATUS_BAD_ATTRIBUTE = 0x000c, /* the attribute does not support the method */
	STATUS_BAD_VALUE = 0x001c      /* wrong value in the attribute or its modifier */
};

enum {
	METHOD_GET = 0x01,
	METHOD_SET = 0x02,
	METHOD_SEND = 0x03,
	METHOD_TRAP = 0x05,
	METHOD_REPORT = 0x06,
	METHOD_TRAP_REPRESS = 0x07,
	METHOD_GET_TABLE = 0x12,
	METHOD_DELETE = 0x15,
	METHOD_RESPONSE = 0x80
};

static inline unsigned int get16(const uint8_t *at)
{
	return (unsigned int)at[0] << 8 | at[1];
}

static inline uint32_t get32(const uint8_t *at)
{
	return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static inline uint64_t get64(const uint8_t *at)
{
	return (uint64_t)get32(at) << 32 | get32(at + 4);
}

static inline void put16(uint8_t *at, unsigned int value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline void put32(uint8_t *at, uint32_t value)
{
	put16(at, value >> 16);
	put16(at + 2, value & 0xffff);
}

static inline void put64(uint8_t *at, uint64_t value)
{
	put32(at, (uint32_t)(value >> 32));
	put32(at + 4, (uint32_t)value);
}

/* Fields of the common header (IBA 13.4.3). */
static inline unsigned int mad_class_of(const uint8_t *mad)
{
	return mad[1];
}

static inline unsigned int mad_version(const uint8_t *mad)
{
	return mad[2];
}

static inline unsigned int mad_method(const uint8_t *mad)
{
	return mad[3];
}

static inline unsigned int mad_attribute(const uint8_t *mad)
{
	return get16(mad + 16);
}

static inline uint32_t mad_modifier(const uint8_t *mad)
{
	return get32(mad + 20);
}

/* Responses have this bit, and so does TrapRepress (IBA 13.4.5). */
static inline bool mad_is_response(const uint8_t *mad)
{
	unsigned int method = mad_method(mad);

	return (method & METHOD_RESPONSE) != 0 || method == METHOD_TRAP_REPRESS;
}

/* Turns a request into a GetResp with this status, the response to both Get and Set. Also sets
 * the direction bit of a directed route. Leaves the data alone. */
static inline void respond(uint8_t *mad, unsigned int status)
{
	mad[3] = METHOD_GET | METHOD_RESPONSE;
	if (mad_class_of(mad) == 0x81)
		status |= 0x8000;
	put16(mad + 4, status);
}

#endif
