/* SPDX-License-Identifier: BSD-2-Clause */

/* The performance management agent: reads, clears and sets counters according to its tables. */
#include <infiniband/mad_fields.h>

#include "faults.h"
#include "gmp_agents.h"
#include "pma.h"
#include "pma_table.h"

/* 0: no such field. */
static unsigned field_bits(enum MAD_FIELDS field)
{
	const struct mad_field *info = mad_field_info(field);

	return info ? info->bits : 0;
}

#define PMA_VERSION 1
#define DATA        IB_PC_DATA_OFFS
#define HASH_SL     0x736c

/* ClassPortInfo: CapabilityMask and CapabilityMask2 (IBA 16.1.3.1). */
enum {
	ALL_PORT_SELECT = 1 << 8,
	EXTENDED_WIDTH = 1 << 9,
	XMIT_WAIT = 1 << 12,
	QP1_DROPPED = 1 << 15,
	ADDITIONAL_EXTENDED = 1 << 1
};

/* QP1Dropped is the upper half of the word whose lower half is VL15Dropped (IBA 16.1.3.5). The
 * library's field stays compatible with older versions and so is the lower half, too. */
#define QP1_DROPPED_AT (DATA + 20)

uint64_t pma_field(const uint8_t *mad, enum MAD_FIELDS field)
{
	uint8_t copy[MAD_BYTES];

	if (field == IB_PC_QP1_DROP_F)
		return get16(mad + QP1_DROPPED_AT);
	memcpy(copy, mad, MAD_BYTES);
	if (field_bits(field) > 32)
		return mad_get_field64(copy, DATA, field);
	return mad_get_field(copy, DATA, field);
}

/* Counters stick at their highest value (IBA 16.1.3.5). */
void pma_set_field(uint8_t *mad, enum MAD_FIELDS field, uint64_t value)
{
	unsigned int bits = field_bits(field);

	if (bits < 64 && value >> bits)
		value = (1ULL << bits) - 1;
	if (field == IB_PC_QP1_DROP_F)
		put16(mad + QP1_DROPPED_AT, (unsigned int)value);
	else if (bits > 32)
		mad_set_field64(mad, DATA, field, value);
	else
		mad_set_field(mad, DATA, field, (uint32_t)value);
}

bool pma_ports(const struct query *query, unsigned int select, uint32_t *first, uint32_t *last)
{
	const struct graph_node *node = hardware(query->fabric, query->node);
	bool is_switch = node->type == NODE_SWITCH;

	if (select == ALL_PORTS && is_switch) {
		*first = node->first_port;
		*last = node->first_port + node->port_count;
		return true;
	}
	if (select > node->port_count || (select == 0 && !is_switch))
		return false;
	*first = *last = node->first_port + select;
	return true;
}

#define ACTIVE_SLS 8
#define ACTIVE_VLS 4 /* PortInfo: OperationalVLs; SL n uses VL n mod 4 */
#define TURNS      32

/* The SL of the n-th unit that a port transmits. */
static unsigned int sl_of(const struct fabric *fabric, uint32_t transmitter, uint64_t turn)
{
	if (!(fabric->load > 0))
		return 0;
	return fabric_hash(fabric, HASH_SL, transmitter, turn) % ACTIVE_SLS;
}

/* Units use the SLs in turn, so that each SL's part only grows and the parts add up to the
 * whole. */
static uint64_t part(const struct fabric *fabric, uint32_t transmitter, uint64_t whole,
		     enum split split, unsigned int level)
{
	uint64_t sum = 0;

	if (split == WHOLE)
		return whole;
	for (uint64_t turn = 0; turn < TURNS; turn++) {
		unsigned int sl = sl_of(fabric, transmitter, turn);

		if ((split == BY_SL ? sl : sl % ACTIVE_VLS) == level)
			sum += whole / TURNS + (turn < whole % TURNS);
	}
	return sum;
}

static bool is_received(enum counter counter)
{
	return counter == COUNT_RCV_DATA || counter == COUNT_RCV_PACKETS;
}

/* The value of a field that was never set. */
static uint64_t derive(const struct fabric *fabric, uint32_t port, const struct pma_row *row,
		       unsigned int index)
{
	uint32_t transmitter = port;
	uint64_t whole;

	if (row->counter == COUNTER_COUNT)
		return 0;
	if (row->split == BY_LANE)
		return counter_of_lane(fabric, port, index);
	whole = counter_total(fabric, port, (enum counter)row->counter) >> row->shift;
	if (is_received((enum counter)row->counter) && cable(fabric, port)->peer != NONE)
		transmitter = cable(fabric, port)->peer;
	return part(fabric, transmitter, whole, (enum split)row->split, index);
}

struct own { /* of an attribute on one port: offsets from the derived values (modulo 2^64) */
	uint64_t offsets[MAX_OWN_FIELDS];
};

static struct gmp_place place_of(const struct query *query,
				 const struct pma_attribute *attribute, uint32_t port)
{
	return (struct gmp_place){.node = query->node,
				  .class = IB_PERFORMANCE_CLASS,
				  .attribute = attribute->id,
				  .modifier = cable(query->fabric, port)->number};
}

static void recall(const struct query *query, const struct pma_attribute *attribute,
		   uint32_t port, struct own *own)
{
	struct gmp_place place = place_of(query, attribute, port);

	if (!attribute->own || !gmp_recall(query->fabric, &place, own, sizeof(*own)))
		memset(own, 0, sizeof(*own));
}

/* A field's bit in CounterSelect is also the index of its offset: own counters have bits 0 ..
 * 37. */
static uint64_t value_of(const struct query *query, const struct pma_attribute *attribute,
			 uint32_t port, const struct pma_row *row, unsigned int index,
			 const struct own *own)
{
	if (!attribute->own)
		return counter_get(query->fabric, port, (enum counter)row->counter);
	return derive(query->fabric, port, row, index) + own->offsets[row->select + index];
}

/* The sum of two counters; sticks at the highest value as counters do. */
static uint64_t add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static void read_counters(struct query *query, const struct pma_attribute *attribute,
			  uint32_t first, uint32_t last)
{
	uint64_t sums[64] = {0};

	for (uint32_t port = first; port <= last; port++) {
		struct own own;

		recall(query, attribute, port, &own);
		for (unsigned int r = 0; r < attribute->row_count; r++) {
			const struct pma_row *row = &attribute->rows[r];

			for (unsigned int i = 0; i < row->count; i++) {
				uint64_t *sum = &sums[row->select + i];

				*sum = add(*sum,
					   value_of(query, attribute, port, row, i, &own));
			}
		}
	}
	for (unsigned int r = 0; r < attribute->row_count; r++) {
		const struct pma_row *row = &attribute->rows[r];

		for (unsigned int i = 0; i < row->count; i++)
			pma_set_field(query->mad, row->first + i, sums[row->select + i]);
	}
}

static void write_row(struct query *query, const struct pma_attribute *attribute, uint32_t port,
		      const struct pma_row *row, uint64_t select, struct own *own)
{
	for (unsigned int i = 0; i < row->count; i++) {
		uint64_t value = pma_field(query->mad, row->first + i);

		if (!(select >> (row->select + i) & 1))
			continue;
		if (attribute->own)
			own->offsets[row->select + i] =
				value - derive(query->fabric, port, row, i);
		else
			counter_set(query->fabric, port, (enum counter)row->counter, value);
	}
}

static void write_counters(struct query *query, const struct pma_attribute *attribute,
			   uint64_t select, uint32_t first, uint32_t last)
{
	for (uint32_t port = first; port <= last; port++) {
		struct gmp_place place = place_of(query, attribute, port);
		struct own own;

		recall(query, attribute, port, &own);
		for (unsigned int r = 0; r < attribute->row_count; r++)
			write_row(query, attribute, port, &attribute->rows[r], select, &own);
		if (attribute->own)
			(void)gmp_keep(query->fabric, &place, &own, sizeof(own));
	}
}

/* The fields of older agents: the first rows of PortCounters and PortCountersExtended. */
enum {
	WITHOUT_XMIT_WAIT = 16,
	WITHOUT_ERRORS = 8
};

/* The attribute as the node supports it, in *limited if that has fewer fields; NULL if
 * unsupported. */
static const struct pma_attribute *limit(const struct query *query,
					 const struct pma_attribute *attribute,
					 struct pma_attribute *limited)
{
	uint32_t bits = faults_counters(query->fabric, query->node);

	*limited = *attribute;
	if (bits == 32 && attribute->id == IB_GSI_PORT_COUNTERS)
		limited->row_count = WITHOUT_XMIT_WAIT;
	else if (bits == 64 && attribute->id == IB_GSI_PORT_COUNTERS_EXT)
		limited->row_count = WITHOUT_ERRORS;
	else
		return bits == 32 ? NULL : attribute;
	return limited;
}

static unsigned int counters(struct query *query, const struct pma_attribute *attribute)
{
	unsigned int port_select = (unsigned int)pma_field(query->mad, IB_PC_PORT_SELECT_F);
	uint64_t select = pma_field(query->mad, attribute->select);
	uint64_t select2 = pma_field(query->mad, attribute->select2);
	uint32_t first, last;

	if (!pma_ports(query, port_select, &first, &last))
		return STATUS_BAD_VALUE;
	if (mad_method(query->mad) == METHOD_SET)
		write_counters(query, attribute, select | select2 << 16, first, last);
	/* the response keeps the request's OpCode, PortSelect and CounterSelect */
	memset(query->mad + DATA + 4, 0, MAD_BYTES - DATA - 4);
	pma_set_field(query->mad, attribute->select, select);
	pma_set_field(query->mad, attribute->select2, select2);
	read_counters(query, attribute, first, last);
	return STATUS_OK;
}

static unsigned int class_info(struct query *query)
{
	bool is_switch = hardware(query->fabric, query->node)->type == NODE_SWITCH;
	struct class_info info = {.version = PMA_VERSION,
				  .capabilities = EXTENDED_WIDTH | XMIT_WAIT | QP1_DROPPED,
				  .capabilities2 = ADDITIONAL_EXTENDED};
	uint32_t bits = faults_counters(query->fabric, query->node);

	if (bits == 32)
		info.capabilities = 0;
	if (bits != NO_LIMIT)
		info.capabilities2 = 0;
	if (is_switch)
		info.capabilities |= ALL_PORT_SELECT;
	class_port_info(query, &info, DATA);
	return STATUS_OK;
}

static unsigned int respond_to_attribute(struct query *query)
{
	unsigned int id = mad_attribute(query->mad);
	const struct pma_attribute *attribute = pma_attribute(id);
	struct pma_attribute limited;

	if (attribute)
		attribute = limit(query, attribute, &limited);
	if (id == CLASS_PORT_INFO)
		return class_info(query);
	if (id == IB_GSI_PORT_SAMPLES_CONTROL)
		return pma_samples_control(query);
	if (id == IB_GSI_PORT_SAMPLES_RESULT || id == PMA_SAMPLES_RESULT_EXTENDED)
		return pma_samples_result(query);
	if (!attribute || (attribute->switch_only &&
			   hardware(query->fabric, query->node)->type != NODE_SWITCH))
		return STATUS_BAD_ATTRIBUTE;
	return counters(query, attribute);
}

bool pma_respond(struct query *query)
{
	unsigned int method = mad_method(query->mad);

	if (mad_is_response(query->mad))
		return false;
	if (query->mad[0] != 1 || mad_version(query->mad) != PMA_VERSION)
		respond(query->mad, STATUS_BAD_VERSION);
	else if (method != METHOD_GET && method != METHOD_SET)
		respond(query->mad, STATUS_BAD_METHOD);
	else
		respond(query->mad, respond_to_attribute(query));
	return true;
}
