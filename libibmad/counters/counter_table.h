/* SPDX-License-Identifier: BSD-2-Clause */

/* The counters, and the attributes of performance management that have them (IBA 16.1.3). */
#ifndef LIBIBMAD_COUNTER_TABLE_H
#define LIBIBMAD_COUNTER_TABLE_H

#include <infiniband/mad_counters.h>

#include <stdbool.h>

/*
 * The attributes, in the order of the requests of a reading. A later attribute adds counters
 * that an earlier one does not have.
 */
enum counter_source {
	SOURCE_EXTENDED,
	SOURCE_BASIC,
	SOURCE_RCV_DETAILS,
	SOURCE_XMIT_DETAILS,
	SOURCE_SPEEDS, /* PortExtendedSpeedsCounters */
	COUNTER_SOURCES,
	/* the groups of details, in the order of the bits of enum mad_counters_detail */
	SOURCE_LANES = COUNTER_SOURCES,
	SOURCE_VL_PACKETS,
	SOURCE_VL_DATA,
	SOURCE_VL_XMIT_WAIT,
	SOURCE_TICK,
	/* what the node has of them */
	SOURCE_CLASS_PORT_INFO,
	SOURCE_NONE
};

/* The counters of a node in the attribute, by its ClassPortInfo. */
uint64_t counter_source_offers(enum counter_source source, uint32_t capability_mask,
			       uint32_t capability_mask2);
unsigned counter_source_attribute(enum counter_source source);
/* The attribute that a counter was read from; "extended" has those of PortCountersExtended. */
enum counter_source counter_source_of(unsigned counter, uint64_t extended);
/*
 * CounterSelect (bits 0 to 15) and CounterSelect2 (from bit 16 on) of counters; the
 * CounterSelect of 64 bits of SOURCE_SPEEDS.
 */
uint64_t counter_source_select(enum counter_source source, uint64_t counters);

/*
 * Reads counters from an attribute of IB_PC_DATA_SZ bytes, and marks them as present. They are
 * 0 before.
 */
void counter_source_read(enum counter_source source, const uint8_t *data, uint64_t counters,
			 struct mad_counters *reading);

/* Reads a group of details, and marks it as present. */
void details_read(enum counter_source source, const uint8_t *data,
		  struct mad_counters_details *details);

/* A member by its number, which is less than MAD_COUNTER_COUNT. */
uint64_t *counter_in(struct mad_counters *counters, unsigned counter);

/* A counter, and the time of its response, of counters with all members. */
uint64_t counter_value(const struct mad_counters *counters, unsigned counter);
uint64_t counter_time_us(const struct mad_counters *counters, unsigned counter);

/* The lowest counter of a mask from a number on; MAD_COUNTER_COUNT: none. */
static inline unsigned counter_from(uint64_t mask, unsigned from)
{
	mask &= UINT64_MAX << from;
	return mask ? (unsigned)__builtin_ctzll(mask) : MAD_COUNTER_COUNT;
}

/* The counters of a mask, which has no other bits, by number. */
#define for_each_counter(counter, mask)                                               \
	for (unsigned counter = counter_from(mask, 0); (counter) < MAD_COUNTER_COUNT; \
	     (counter) = counter_from(mask, (counter) + 1))

/* The sum, which stops at UINT64_MAX. */
static inline uint64_t add_counts(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

#endif
