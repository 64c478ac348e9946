/* SPDX-License-Identifier: BSD-2-Clause */

/* Requests to a performance management agent, and the fields of its responses. */
#ifndef FABRIC_PMA_FIXTURE_H
#define FABRIC_PMA_FIXTURE_H

#include "gmp_fixture.h"

#include <infiniband/mad_fields.h>

/* 0: the number is no field. */
static unsigned field_bits(enum MAD_FIELDS field)
{
	const struct mad_field *info = mad_field_info(field);

	return info ? info->bits : 0;
}

#define DATA     IB_PC_DATA_OFFS
#define EXTENDED 0x1e

static inline unsigned int ask(struct star *star, uint32_t node, unsigned int method,
			       unsigned int attribute, unsigned int port)
{
	struct query query = query_of(star, node);

	request(star, IB_PERFORMANCE_CLASS, 1, method, attribute, 0);
	star->mad[DATA + 1] = (uint8_t)port;
	assert_true(pma_respond(&query));
	assert_int_equal(mad_method(star->mad), 0x81);
	return status_of_response(star);
}

/* A Set of the attribute in which every byte is `byte`. */
static inline unsigned int set(struct star *star, uint32_t node, unsigned int attribute,
			       unsigned int port, enum MAD_FIELDS select_field, uint64_t select,
			       uint8_t byte)
{
	struct query query = query_of(star, node);

	request(star, IB_PERFORMANCE_CLASS, 1, METHOD_SET, attribute, 0);
	memset(star->mad + DATA + 4, byte, MAD_BYTES - DATA - 4);
	star->mad[DATA + 1] = (uint8_t)port;
	if (attribute == IB_GSI_PORT_COUNTERS)
		mad_set_field(star->mad, DATA, IB_PC_COUNTER_SELECT2_F, 0);
	if (field_bits(select_field) > 32)
		mad_set_field64(star->mad, DATA, select_field, select);
	else
		mad_set_field(star->mad, DATA, select_field, (uint32_t)select);
	assert_true(pma_respond(&query));
	return status_of_response(star);
}

static inline uint64_t field(struct star *star, enum MAD_FIELDS number)
{
	return field_bits(number) > 32 ? mad_get_field64(star->mad, DATA, number)
				       : mad_get_field(star->mad, DATA, number);
}

static inline uint64_t read_field(struct star *star, uint32_t node, unsigned int attribute,
				  unsigned int port, enum MAD_FIELDS number)
{
	assert_int_equal(ask(star, node, METHOD_GET, attribute, port), STATUS_OK);
	return field(star, number);
}

static inline uint64_t extended(struct star *star, uint32_t node, unsigned int port,
				enum MAD_FIELDS number)
{
	return read_field(star, node, IB_GSI_PORT_COUNTERS_EXT, port, number);
}

#endif
