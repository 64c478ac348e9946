/* SPDX-License-Identifier: BSD-2-Clause */

/* Counters and the performance attributes that have them (IBA 16.1.3). */
#ifndef LIBIBMAD_COUNTER_TABLE_H
#define LIBIBMAD_COUNTER_TABLE_H

#include <infiniband/mad_counters.h>

#include <stdbool.h>

/* In request order. Later attributes add counters that earlier ones lack. */
enum counter_source {
	SOURCE_EXTENDED,
	SOURCE_BASIC,
	SOURCE_RCV_DETAILS,
	SOURCE_XMIT_DETAILS,
	SOURCE_SPEEDS, /* PortExtendedSpeedsCounters */
	COUNTER_SOURCES,
	/* groups of details, in the order of enum mad_counters_detail's bits */
	SOURCE_LANES = COUNTER_SOURCES,
	SOURCE_VL_PACKETS,
	SOURCE_VL_DATA,
	SOURCE_VL_XMIT_WAIT,
	SOURCE_TICK,
	/* which of them the node has */
	SOURCE_CLASS_PORT_INFO,
	SOURCE_NONE
};

/* A node's counters in the attribute, according to its ClassPortInfo. */
uint64_t counter_source_offers(enum counter_source source, uint32_t capability_mask,
			       uint32_t capability_mask2);
unsigned counter_source_attribute(enum counter_source source);
/* The attribute a counter was read from; extended: those from PortCountersExtended. */
enum counter_source counter_source_of(unsigned counter, uint64_t extended);
/*
 * CounterSelect (bits 0 to 15) and CounterSelect2 (bits 16 on) for the counters; for
 * SOURCE_SPEEDS, its 64-bit CounterSelect.
 */
uint64_t counter_source_select(enum counter_source source, uint64_t counters);

/* Reads counters from IB_PC_DATA_SZ bytes and marks them present. They must be 0 before. */
void counter_source_read(enum counter_source source, const uint8_t *data, uint64_t counters,
			 struct mad_counters *reading);

/* Reads a group of details and marks it present. */
void details_read(enum counter_source source, const uint8_t *data,
		  struct mad_counters_details *details);

/* counter must be less than MAD_COUNTER_COUNT. */
uint64_t *counter_in(struct mad_counters *counters, unsigned counter);

/* A counter, and its response's time. The structure must have all members. */
uint64_t counter_value(const struct mad_counters *counters, unsigned counter);
uint64_t counter_time_us(const struct mad_counters *counters, unsigned counter);

/* Lowest counter in the mask from a number on; MAD_COUNTER_COUNT: none. */
static inline unsigned counter_from(uint64_t mask, unsigned from)
{
	mask &= UINT64_MAX << from;
	return mask ? (unsigned)__builtin_ctzll(mask) : MAD_COUNTER_COUNT;
}

/* Iterates over a mask, which must have no other bits. */
#define for_each_counter(counter, mask)                                               \
	for (unsigned counter = counter_from(mask, 0); (counter) < MAD_COUNTER_COUNT; \
	     (counter) = counter_from(mask, (counter) + 1))

/* Saturates at UINT64_MAX. */
static inline uint64_t add_counts(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

#endif
