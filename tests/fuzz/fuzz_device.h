/* SPDX-License-Identifier: BSD-2-Clause */

/* Targets whose requests go to the fake device. */
#ifndef FUZZ_DEVICE_H
#define FUZZ_DEVICE_H

#include "fake_device.h"
#include "fuzz.h"

/* Reads each byte: a sanitizer reports those outside of the allocation. */
static inline uint8_t sum(const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	uint8_t result = 0;

	while (size--)
		result ^= *at++;
	return result;
}

/* One of the last 256 packets that were written; NULL if there is none. */
static inline const struct device_packet *take_packet(struct input *input)
{
	unsigned written = device_written(), n = (unsigned)take(input, 1);

	return written ? device_packet(written - 1 - n % written) : NULL;
}

#endif
