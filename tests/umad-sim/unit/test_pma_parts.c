/* SPDX-License-Identifier: BSD-2-Clause */

/* Parts of counters (by SL, VL, lane, cause), and samples. */

#include "pma_fixture.h"
#include "test.h"

static uint64_t sum_of(struct star *star, uint32_t node, unsigned int attribute,
		       enum MAD_FIELDS first, unsigned int count, unsigned int *used)
{
	uint64_t sum = 0;

	*used = 0;
	assert_int_equal(ask(star, node, METHOD_GET, attribute, 1), STATUS_OK);
	for (unsigned int i = 0; i < count; i++) {
		sum += field(star, first + i);
		*used += field(star, first + i) != 0;
	}
	return sum;
}

STAR_TEST(the_parts_of_a_counter_add_up_to_it)
{
	unsigned int used;
	uint64_t data, packets, wait;

	star->fabric.load = 0.5;
	star->fabric.now = 20 * MILLISECOND;
	assert_int_equal(ask(star, ALPHA, METHOD_GET, IB_GSI_PORT_COUNTERS_EXT, 1), STATUS_OK);
	data = field(star, IB_PC_EXT_XMT_BYTES_F);
	packets = field(star, IB_PC_EXT_RCV_PKTS_F);
	wait = field(star, IB_PC_EXT_XMT_WAIT_F);
	assert_true(sum_of(star, ALPHA, IB_GSI_PORT_XMIT_DATA_SL, IB_PC_XMT_DATA_SL0_F, 16,
			   &used) == data);
	assert_in_range(used, 4, 8);
	assert_true(sum_of(star, SWITCH, IB_GSI_PORT_RCV_DATA_SL, IB_PC_RCV_DATA_SL0_F, 16,
			   &used) == data);
	assert_true(sum_of(star, ALPHA, IB_GSI_PORT_VL_XMIT_TIME_CONG,
			   IB_PC_VL_XMIT_TIME_CONG0_F, 15, &used) == wait);
	assert_in_range(used, 2, 4);
	assert_true(sum_of(star, ALPHA, IB_GSI_PORT_SL_RCV_FECN, IB_PC_SL_RCV_FECN0_F, 16,
			   &used) == packets >> 6);
	assert_true(read_field(star, ALPHA, IB_GSI_PORT_RCV_CON_CTRL, 1,
			       IB_PC_RCV_CON_CTRL_PKT_RCV_FECN_F) == packets >> 6);
	assert_true(sum_of(star, ALPHA, IB_GSI_PORT_PORT_VL_OP_PACKETS,
			   IB_PC_PORT_VL_OP_PACKETS0_F, 16, &used) == packets);
	assert_true(read_field(star, ALPHA, IB_GSI_PORT_PORT_OP_RCV_COUNTERS, 1,
			       IB_PC_PORT_OP_RCV_PKTS_F) == packets);
}

STAR_TEST(both_ends_have_the_same_counters_by_sl)
{
	uint8_t sent[64];

	star->fabric.load = 0.1;
	star->fabric.now = 7777777;
	assert_int_equal(ask(star, BETA, METHOD_GET, IB_GSI_PORT_XMIT_DATA_SL, 1), STATUS_OK);
	memcpy(sent, star->mad + DATA + 4, sizeof(sent));
	assert_int_equal(ask(star, SWITCH, METHOD_GET, IB_GSI_PORT_RCV_DATA_SL, 2), STATUS_OK);
	assert_memory_equal(sent, star->mad + DATA + 4, sizeof(sent));
}

STAR_TEST(the_parts_of_a_counter_never_fall)
{
	uint64_t before[16] = {0};

	star->fabric.load = 0.01;
	for (unsigned int i = 0; i < 500; i++) {
		star->fabric.now += 61;
		assert_int_equal(ask(star, BETA, METHOD_GET, IB_GSI_PORT_XMIT_DATA_SL, 1),
				 STATUS_OK);
		for (unsigned int sl = 0; sl < 16; sl++) {
			uint64_t now = field(star, IB_PC_XMT_DATA_SL0_F + sl);

			assert_true(now >= before[sl]);
			before[sl] = now;
		}
	}
}

STAR_TEST(counters_that_nothing_feeds_can_be_set_and_cleared)
{
	static const struct detail {
		unsigned int attribute;
		enum MAD_FIELDS select;
		enum MAD_FIELDS first;
		unsigned int bit;
		unsigned int count;
	} details[] = {
		{IB_GSI_PORT_RCV_ERROR_DETAILS, IB_PC_COUNTER_SELECT_F,
		 IB_PC_RCV_LOCAL_PHY_ERR_F, 0, 6},
		{IB_GSI_PORT_XMIT_DISCARD_DETAILS, IB_PC_COUNTER_SELECT_F,
		 IB_PC_XMT_INACT_DISC_F, 0, 4},
		{IB_GSI_PORT_PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS, IB_PC_COUNTER_SELECT_F,
		 IB_PC_PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS0_F, 0, 16},
		{IB_GSI_PORT_EXT_SPEEDS_COUNTERS, IB_PESC_COUNTER_SELECT_F,
		 IB_PESC_SYNC_HDR_ERR_CTR_F, 0, 38},
	};

	for (unsigned int i = 0; i < COUNT_OF(details); i++) {
		const struct detail *detail = &details[i];

		for (unsigned int f = 0; f < detail->count; f++) {
			unsigned int bits = mad_field_info(detail->first + f)->bits;
			uint64_t most = (1ULL << bits) - 1;

			assert_int_equal(set(star, ALPHA, detail->attribute, 1, detail->select,
					     1ULL << f, 0xff),
					 STATUS_OK);
			assert_true(read_field(star, ALPHA, detail->attribute, 1,
					       detail->first + f) == most);
			for (unsigned int o = 0; o < detail->count; o++)
				assert_true(o == f || field(star, detail->first + o) == 0);
			assert_true(read_field(star, ALPHA, detail->attribute, 2,
					       detail->first + f) == 0);
			assert_int_equal(set(star, ALPHA, detail->attribute, 1, detail->select,
					     UINT64_MAX >> (64 - detail->count), 0),
					 STATUS_OK);
			assert_true(read_field(star, ALPHA, detail->attribute, 1,
					       detail->first + f) == 0);
		}
	}
}

STAR_TEST(parts_that_were_cleared_begin_again_at_0)
{
	unsigned int used;
	uint64_t first;

	star->fabric.load = 0.1;
	star->fabric.now = MILLISECOND;
	first = sum_of(star, ALPHA, IB_GSI_PORT_XMIT_DATA_SL, IB_PC_XMT_DATA_SL0_F, 16, &used);
	assert_int_equal(set(star, ALPHA, IB_GSI_PORT_XMIT_DATA_SL, 1, IB_PC_COUNTER_SELECT_F,
			     0xffff, 0),
			 STATUS_OK);
	assert_true(sum_of(star, ALPHA, IB_GSI_PORT_XMIT_DATA_SL, IB_PC_XMT_DATA_SL0_F, 16,
			   &used) == 0);
	star->fabric.now *= 2;
	assert_in_range(
		sum_of(star, ALPHA, IB_GSI_PORT_XMIT_DATA_SL, IB_PC_XMT_DATA_SL0_F, 16, &used),
		first - 1, first + 1);
	/* the whole was not cleared */
	assert_true(extended(star, ALPHA, 1, IB_PC_EXT_XMT_BYTES_F) > first);
	gmp_forget(&star->fabric, ALPHA);
	assert_true(sum_of(star, ALPHA, IB_GSI_PORT_XMIT_DATA_SL, IB_PC_XMT_DATA_SL0_F, 16,
			   &used) > first + 1);
}

STAR_TEST(corrected_symbols_are_those_of_the_lanes_in_use)
{
	unsigned int used;

	star->fabric.errors = 1;
	star->fabric.now = 10 * SECOND;
	assert_true(sum_of(star, ALPHA, IB_GSI_PORT_EXT_SPEEDS_COUNTERS,
			   IB_PESC_FEC_CORR_BLOCK_CTR_LANE0_F, 12, &used) == 10);
	assert_int_equal(used, 4);
}

static uint64_t corrected(struct star *star, unsigned int node)
{
	unsigned int used;

	return sum_of(star, node, IB_GSI_PORT_EXT_SPEEDS_COUNTERS,
		      IB_PESC_FEC_CORR_BLOCK_CTR_LANE0_F, 12, &used);
}

/* Besides the symbol errors, at both ends; the blocks that were counted stay. */
STAR_TEST(a_rule_for_a_link_lets_its_corrected_blocks_rise)
{
	star->fabric.errors = 1;
	star->fabric.now = 10 * SECOND;
	rule(star, "fec 1000 on beta/1");
	assert_int_equal(corrected(star, BETA), 10);
	star->fabric.now = 12 * SECOND;
	assert_int_equal(corrected(star, BETA), 12 + 2000);
	assert_int_equal(corrected(star, ALPHA), 12);
	assert_int_equal(extended(star, BETA, 1, IB_PC_EXT_ERR_SYM_F), 12);
	assert_int_equal(extended(star, SWITCH, 2, IB_PC_EXT_ERR_SYM_F), 12);
	assert_int_equal(read_field(star, SWITCH, IB_GSI_PORT_EXT_SPEEDS_COUNTERS, 2,
				    IB_PESC_FEC_CORR_BLOCK_CTR_LANE0_F),
			 (12 + 2000) / 4);
	rule(star, "fec 1 on beta");
	star->fabric.now = 20 * SECOND;
	assert_int_equal(corrected(star, BETA), 20 + 2000 + 8);
	rule(star, "clear");
	star->fabric.now = 30 * SECOND;
	assert_int_equal(corrected(star, BETA), 30 + 2000 + 8);
}

static void start_sample(struct star *star, uint32_t ticks, unsigned int tag)
{
	struct query query = query_of(star, ALPHA);

	request(star, IB_PERFORMANCE_CLASS, 1, METHOD_SET, IB_GSI_PORT_SAMPLES_CONTROL, 0);
	mad_set_field(star->mad, DATA, IB_PSC_PORT_SELECT_F, 1);
	mad_set_field(star->mad, DATA, IB_PSC_SAMPLE_START_F, ticks);
	mad_set_field(star->mad, DATA, IB_PSC_SAMPLE_INTVL_F, ticks);
	mad_set_field(star->mad, DATA, IB_PSC_TAG_F, tag);
	mad_set_field(star->mad, DATA, IB_PSC_COUNTER_SEL0_F, 1);
	mad_set_field(star->mad, DATA, IB_PSC_COUNTER_SEL1_F, 4);
	mad_set_field(star->mad, DATA, IB_PSC_COUNTER_SEL14_F, 0x4000);
	assert_true(pma_respond(&query));
	assert_int_equal(status_of_response(star), STATUS_OK);
}

static uint64_t sample_status(struct star *star)
{
	return read_field(star, ALPHA, IB_GSI_PORT_SAMPLES_RESULT, 0, IB_PSR_SAMPLE_STATUS_F);
}

STAR_TEST(a_sample_is_scheduled_goes_on_and_ends)
{
	uint64_t from, to;

	star->fabric.load = 0.01;
	assert_int_equal(sample_status(star), 0);
	star->fabric.now = SECOND;
	start_sample(star, 1000000, 0xabcd);
	assert_int_equal(field(star, IB_PSC_SAMPLE_STATUS_F), 1);
	assert_int_equal(field(star, IB_PSC_COUNTER_SEL1_F), 4);
	assert_int_equal(field(star, IB_PSC_COUNTER_SEL14_F), 0);
	assert_int_equal(sample_status(star), 1);
	star->fabric.now = SECOND + 4 * MILLISECOND;
	from = extended(star, ALPHA, 1, IB_PC_EXT_XMT_BYTES_F);
	assert_int_equal(sample_status(star), 2);
	assert_int_equal(field(star, IB_PSR_COUNTER0_F), 0);
	star->fabric.now = SECOND + 8 * MILLISECOND;
	to = extended(star, ALPHA, 1, IB_PC_EXT_XMT_BYTES_F);
	assert_int_equal(sample_status(star), 0);
	assert_int_equal(field(star, IB_PSR_TAG_F), 0xabcd);
	assert_true(field(star, IB_PSR_COUNTER0_F) == to - from);
	/* later traffic is not in the sample */
	star->fabric.now = 10 * SECOND;
	assert_int_equal(sample_status(star), 0);
	assert_true(field(star, IB_PSR_COUNTER0_F) == to - from);
	assert_true(field(star, IB_PSR_COUNTER1_F) > 0);
	assert_int_equal(field(star, IB_PSR_COUNTER2_F), 0);
	assert_int_equal(ask(star, ALPHA, METHOD_GET, EXTENDED, 0), STATUS_OK);
	assert_int_equal(get32(star->mad + DATA + 4), 0x80000000);
	assert_true(get64(star->mad + DATA + 8) == to - from);
}

STAR_TEST(a_sample_that_goes_on_is_not_disturbed_by_another_one)
{
	start_sample(star, 1000, 1);
	start_sample(star, 2000, 2);
	assert_int_equal(field(star, IB_PSC_TAG_F), 1);
	star->fabric.now = 8000;
	start_sample(star, 2000, 2);
	assert_int_equal(field(star, IB_PSC_TAG_F), 2);
	assert_int_equal(ask(star, ALPHA, METHOD_SET, IB_GSI_PORT_SAMPLES_RESULT, 1),
			 STATUS_BAD_ATTRIBUTE);
}
