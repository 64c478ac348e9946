/* SPDX-License-Identifier: BSD-2-Clause */

/* The attributes with counters that a performance management agent has, as tables. */
#ifndef FABRIC_PMA_TABLE_H
#define FABRIC_PMA_TABLE_H

#include "counters.h"
#include "query.h"

#define ALL_PORTS                   0xff /* PortSelect, on switches */
#define PMA_SAMPLES_RESULT_EXTENDED 0x1e /* mad.h does not name it */

#define MAX_OWN_FIELDS 38 /* of an attribute with counters of its own */

enum split { /* how a counter's units are divided among a row's fields */
	WHOLE,
	BY_SL,
	BY_VL,
	BY_LANE /* of links that have forward error correction: FDR and faster ones */
};

struct pma_row { /* fields one after the other, each with its bit in CounterSelect */
	enum MAD_FIELDS first;
	uint8_t count;
	uint8_t select;  /* the first one's bit */
	uint8_t split;   /* enum split */
	uint8_t shift;   /* one unit of the row for 2^shift of the counter's */
	uint8_t counter; /* COUNTER_COUNT: nothing feeds it */
};

struct pma_attribute {
	uint16_t id;
	bool switch_only;
	bool own; /* has counters of its own, set apart from what they derive from */
	enum MAD_FIELDS select;  /* CounterSelect */
	enum MAD_FIELDS select2; /* its further bits, from 16 on; or IB_NO_FIELD */
	uint8_t row_count;
	const struct pma_row *rows;
};

/* NULL: there is no such attribute. */
const struct pma_attribute *pma_attribute(unsigned int id);

/* A node's ports that PortSelect names, from *first to *last (by index); false: none. */
bool pma_ports(const struct query *query, unsigned int select, uint32_t *first, uint32_t *last);

/* A field of the attribute, whose bits may be fewer than the value's. */
uint64_t pma_field(const uint8_t *mad, enum MAD_FIELDS field);
void pma_set_field(uint8_t *mad, enum MAD_FIELDS field, uint64_t value);

/* The samples (IBA 16.1.3.2, 16.1.3.4), in pma_samples.c; a status. */
unsigned int pma_samples_control(struct query *query);
unsigned int pma_samples_result(struct query *query);

#endif
