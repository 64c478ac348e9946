/* SPDX-License-Identifier: BSD-2-Clause */

/* Tables of the attributes with counters of a performance management agent. */
#ifndef FABRIC_PMA_TABLE_H
#define FABRIC_PMA_TABLE_H

#include "counters.h"
#include "query.h"

#define ALL_PORTS                   0xff /* PortSelect, on switches */
#define PMA_SAMPLES_RESULT_EXTENDED 0x1e /* not in mad.h */

#define MAX_OWN_FIELDS 38 /* in an attribute with counters of its own */

enum split { /* how the units of a counter are divided among the fields of a row */
	WHOLE,
	BY_SL,
	BY_VL,
	BY_LANE /* of links with forward error correction: FDR and faster */
};

struct pma_row { /* consecutive fields, each with its bit in CounterSelect */
	enum MAD_FIELDS first;
	uint8_t count;
	uint8_t select;  /* the bit of the first field */
	uint8_t split;   /* enum split */
	uint8_t shift;   /* one unit of the row is 2^shift units of the counter */
	uint8_t counter; /* COUNTER_COUNT: no counter */
};

struct pma_attribute {
	uint16_t id;
	bool switch_only;
	bool own; /* its fields are set separately from the counters they derive from */
	enum MAD_FIELDS select;  /* CounterSelect */
	enum MAD_FIELDS select2; /* the bits of CounterSelect2, from 16 on; or IB_NO_FIELD */
	uint8_t row_count;
	const struct pma_row *rows;
};

/* NULL: no such attribute. */
const struct pma_attribute *pma_attribute(unsigned int id);

/* Finds the ports of a node that PortSelect names, *first to *last (by index); false if there
 * are none. */
bool pma_ports(const struct query *query, unsigned int select, uint32_t *first, uint32_t *last);

/* Writes a field of the attribute, which may be narrower than the value. */
uint64_t pma_field(const uint8_t *mad, enum MAD_FIELDS field);
void pma_set_field(uint8_t *mad, enum MAD_FIELDS field, uint64_t value);

/* Samples (IBA 16.1.3.2, 16.1.3.4), in pma_samples.c. Returns a status. */
unsigned int pma_samples_control(struct query *query);
unsigned int pma_samples_result(struct query *query);

#endif
