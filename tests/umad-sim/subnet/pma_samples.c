/* SPDX-License-Identifier: BSD-2-Clause */

/* Samples of counters over an interval (IBA 16.1.3.2, 16.1.3.4). A node has one sampling
 * mechanism. No timer is needed: a sample's values at any time follow from its start time. */
#include "gmp_agents.h"
#include "pma_table.h"

#define DATA         IB_PC_DATA_OFFS
#define CONTROL_SIZE 80 /* PortSamplesControl */
#define TICK         4  /* nanoseconds, Tick 0: a symbol time at 2.5 Gbit/s */
#define COUNTERS     15 /* of a sample */

#define WIDTH_32  4           /* CounterWidth */
#define MASK_ALL  0x1249249   /* only mandatory counters, for 9 counters of 3 bits each */
#define MASK_LAST 0x1249      /* the same for 5 */
#define WIDTH_64  0x80000000U /* PortSamplesResultExtended: ExtendedWidth */

/* The components of PortSamplesResultExtended. */
enum {
	EXTENDED_WIDTH_AT = DATA + 4,
	EXTENDED_COUNTERS_AT = DATA + 8
};

enum sample_status {
	SAMPLE_DONE,
	SAMPLE_SCHEDULED,
	SAMPLE_RUNNING
};

struct sample {
	uint64_t from; /* nanoseconds */
	uint64_t to;
	uint8_t control[CONTROL_SIZE]; /* the attribute as last set */
};

/* The counters that can be sampled, by CounterSelect0 .. 14: the mandatory ones, from 1 on. */
static const enum counter sampled[] = {COUNTER_COUNT,      COUNT_XMIT_DATA,   COUNT_RCV_DATA,
				       COUNT_XMIT_PACKETS, COUNT_RCV_PACKETS, COUNT_XMIT_WAIT};

#define SAMPLED_COUNT (sizeof(sampled) / sizeof(sampled[0]))

static struct gmp_place place_of(const struct query *query)
{
	return (struct gmp_place){.node = query->node,
				  .class = IB_PERFORMANCE_CLASS,
				  .attribute = IB_GSI_PORT_SAMPLES_CONTROL};
}

static void load(const struct query *query, struct sample *sample)
{
	struct gmp_place place = place_of(query);

	if (!gmp_recall(query->fabric, &place, sample, sizeof(*sample)))
		memset(sample, 0, sizeof(*sample));
}

static enum sample_status status_of(const struct sample *sample, uint64_t now)
{
	if (now >= sample->to)
		return SAMPLE_DONE;
	return now < sample->from ? SAMPLE_SCHEDULED : SAMPLE_RUNNING;
}

/* A counter that cannot be sampled reads as not selected. */
static void start(struct query *query)
{
	struct gmp_place place = place_of(query);
	struct sample sample;

	for (unsigned int i = 0; i < COUNTERS; i++)
		if (pma_field(query->mad, IB_PSC_COUNTER_SEL0_F + i) >= SAMPLED_COUNT)
			pma_set_field(query->mad, IB_PSC_COUNTER_SEL0_F + i, 0);
	sample.from = query->fabric->now + pma_field(query->mad, IB_PSC_SAMPLE_START_F) * TICK;
	sample.to = sample.from + pma_field(query->mad, IB_PSC_SAMPLE_INTVL_F) * TICK;
	memcpy(sample.control, query->mad + DATA, CONTROL_SIZE);
	(void)gmp_keep(query->fabric, &place, &sample, sizeof(sample));
}

/* While a sample is running, a Set changes nothing; the Tag in the response shows who started
 * it. */
unsigned int pma_samples_control(struct query *query)
{
	unsigned int port_select = (unsigned int)pma_field(query->mad, IB_PSC_PORT_SELECT_F);
	struct sample sample;
	uint32_t first, last;

	load(query, &sample);
	if (mad_modifier(query->mad) != 0 || !pma_ports(query, port_select, &first, &last))
		return STATUS_BAD_VALUE;
	if (mad_method(query->mad) == METHOD_SET &&
	    status_of(&sample, query->fabric->now) == SAMPLE_DONE) {
		start(query);
		load(query, &sample);
	}
	memset(query->mad + DATA, 0, MAD_BYTES - DATA);
	memcpy(query->mad + DATA, sample.control, CONTROL_SIZE);
	if (sample.to == 0) /* never set: the sample is of the requested port */
		pma_set_field(query->mad, IB_PSC_PORT_SELECT_F, port_select);
	pma_set_field(query->mad, IB_PSC_TICK_F, 0);
	pma_set_field(query->mad, IB_PSC_COUNTER_WIDTH_F, WIDTH_32);
	pma_set_field(query->mad, IB_PSC_COUNTER_MASK0_F, 1);
	pma_set_field(query->mad, IB_PSC_COUNTER_MASKS1TO9_F, MASK_ALL);
	pma_set_field(query->mad, IB_PSC_COUNTER_MASKS10TO14_F, MASK_LAST);
	pma_set_field(query->mad, IB_PSC_SAMPLE_MECHS_F, 0);
	pma_set_field(query->mad, IB_PSC_SAMPLE_STATUS_F,
		      status_of(&sample, query->fabric->now));
	pma_set_field(query->mad, IB_PSC_OPTION_MASK_F, 0);
	pma_set_field(query->mad, IB_PSC_VENDOR_MASK_F, 0);
	pma_set_field(query->mad, IB_PSC_SAMPLES_ONLY_OPT_MASK_F, 0);
	return STATUS_OK;
}

static uint64_t count(const struct query *query, const struct sample *sample,
		      unsigned int select, uint32_t first, uint32_t last)
{
	uint64_t now = query->fabric->now;
	uint64_t sum = 0;

	if (select == 0 || select >= SAMPLED_COUNT)
		return 0;
	for (uint32_t port = first; port <= last; port++)
		sum += counter_growth(query->fabric, port, sampled[select], sample->from,
				      now < sample->to ? now : sample->to);
	return sum;
}

unsigned int pma_samples_result(struct query *query)
{
	bool extended = mad_attribute(query->mad) == PMA_SAMPLES_RESULT_EXTENDED;
	struct sample sample;
	uint8_t control[MAD_BYTES] = {0};
	uint32_t first, last;
	bool any;

	if (mad_method(query->mad) != METHOD_GET)
		return STATUS_BAD_ATTRIBUTE;
	if (mad_modifier(query->mad) != 0)
		return STATUS_BAD_VALUE;
	load(query, &sample);
	memcpy(control + DATA, sample.control, CONTROL_SIZE);
	any = sample.to != 0 &&
	      pma_ports(query, (unsigned int)pma_field(control, IB_PSC_PORT_SELECT_F), &first,
			&last);
	memset(query->mad + DATA, 0, MAD_BYTES - DATA);
	pma_set_field(query->mad, IB_PSR_TAG_F, pma_field(control, IB_PSC_TAG_F));
	pma_set_field(query->mad, IB_PSR_SAMPLE_STATUS_F,
		      status_of(&sample, query->fabric->now));
	if (extended)
		put32(query->mad + EXTENDED_WIDTH_AT, WIDTH_64);
	for (unsigned int i = 0; any && i < COUNTERS; i++) {
		uint64_t value =
			count(query, &sample,
			      (unsigned int)pma_field(control, IB_PSC_COUNTER_SEL0_F + i),
			      first, last);

		if (extended)
			put64(query->mad + EXTENDED_COUNTERS_AT + sizeof(value) * i, value);
		else
			pma_set_field(query->mad, IB_PSR_COUNTER0_F + i, value);
	}
	return STATUS_OK;
}
