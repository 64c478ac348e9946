/* SPDX-License-Identifier: BSD-2-Clause */

/* Where things lie in MADs (IBA 13.4.3, 13.6.2, 14.2.1), and the wire's byte order. */
#ifndef LIBIBMAD_MAD_WIRE_H
#define LIBIBMAD_MAD_WIRE_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define STATUS_OFFS       4
#define HOP_COUNT_OFFS    7
#define TID_OFFS          12 /* of its lower half: the upper one is the kernel's */
#define ATTRIBUTE_OFFS    16
#define RMPP_VERSION_OFFS 24
#define RMPP_TYPE_OFFS    25
#define RMPP_FLAGS_OFFS   26 /* with RRespTime above */
#define RMPP_STATUS_OFFS  27
#define RMPP_DATA1_OFFS   28
#define RMPP_DATA2_OFFS   32
#define RMPP_HEADER_END   36
#define INITIAL_PATH_OFFS 128
#define RETURN_PATH_OFFS  192

#define PERMISSIVE_LID 0xffff

static inline uint16_t get16(const uint8_t *mad, int offset)
{
	return (uint16_t)(mad[offset] << 8 | mad[offset + 1]);
}

static inline uint32_t get32(const uint8_t *mad, int offset)
{
	uint32_t value;

	memcpy(&value, mad + offset, sizeof(value));
	return be32toh(value);
}

static inline void put16(uint8_t *mad, int offset, uint16_t value)
{
	value = htobe16(value);
	memcpy(mad + offset, &value, sizeof(value));
}

static inline void put32(uint8_t *mad, int offset, uint32_t value)
{
	value = htobe32(value);
	memcpy(mad + offset, &value, sizeof(value));
}

static inline void put64(uint8_t *mad, int offset, uint64_t value)
{
	value = htobe64(value);
	memcpy(mad + offset, &value, sizeof(value));
}

#endif
