/* SPDX-License-Identifier: BSD-2-Clause */

#include "mad_fixture.h"
#include "test.h"

/* The caller owns the bytes behind the attribute. */
static ib_portid_t to;
static uint8_t buf[256];

static int setup(void)
{
	to = (ib_portid_t){.lid = 8};
	memset(buf, 0, sizeof(buf));
	buf[0] = 0xa1;
	buf[191] = 0xc3;
	buf[192] = 0xd4;
	return fixture_setup();
}

FIXTURE(setup, fixture_teardown);

static void *query(unsigned attribute, int number)
{
	return pma_query_via(buf, &to, number, 0, attribute, fixture.port);
}

static void *reset(unsigned attribute, int number, unsigned mask)
{
	return performance_reset_via(buf, &to, number, mask, 0, attribute, fixture.port);
}

TEST(a_query_selects_the_port)
{
	assert_ptr_equal(query(IB_GSI_PORT_COUNTERS, 3), buf);
	assert_int_equal(errno, 0);
	expect_mad(0, "0:01040101 17:12 64:a103 255:c3");
	expect_address(0, 1, 0x80010000, 8, 0);
	expect_agent(0);
	assert_int_equal(buf[192], 0xd4);
	/* and only its byte */
	assert_non_null(query(IB_GSI_PORT_COUNTERS_EXT, 0x2ff));
	expect_mad(1, "0:01040101 17:1d 64:a1ff 255:c3");
}

TEST(an_smp_s_key_is_not_for_others)
{
	smp_mkey_set(fixture.port, 0x1122334455667788);
	assert_non_null(query(IB_GSI_PORT_COUNTERS, 3));
	expect_mad(0, "0:01040101 17:12 64:a103 255:c3");
}

TEST(qp_key_and_service_level_can_be_given)
{
	to = (ib_portid_t){.lid = 8, .qp = 5, .qkey = 0x55, .sl = 4};
	assert_non_null(query(IB_GSI_PORT_COUNTERS, 1));
	expect_address(0, 5, 0x55, 8, 4);
	assert_non_null(reset(IB_GSI_PORT_COUNTERS, 1, 0));
	expect_address(1, 5, 0x55, 8, 4);
}

TEST(a_reset_selects_counters_and_nothing_else)
{
	assert_ptr_equal(reset(IB_GSI_PORT_COUNTERS, 3, 0xf00), buf);
	expect_mad(0, "0:01040102 17:12 65:030f00");
	expect_address(0, 1, 0x80010000, 8, 0);
	expect_agent(0);
	assert_int_equal(buf[192], 0xd4);
}

TEST(the_upper_half_of_the_mask_is_counter_select_2)
{
	assert_non_null(reset(IB_GSI_PORT_COUNTERS, 1, 0x12345678));
	expect_mad(0, "0:01040102 17:12 65:015678 82:34");
	/* among the extended counters it has 16 bits, at another offset */
	assert_non_null(reset(IB_GSI_PORT_COUNTERS_EXT, 1, 0x12345678));
	expect_mad(1, "0:01040102 17:1d 65:015678 70:1234");
	assert_non_null(reset(IB_GSI_PORT_RCV_ERROR_DETAILS, 1, 0x12345678));
	expect_mad(2, "0:01040102 17:15 65:015678 82:34");
}

TEST(no_mask_resets_all)
{
	assert_non_null(reset(IB_GSI_PORT_COUNTERS, 255, 0));
	expect_mad(0, "0:01040102 17:12 65:ffffff 82:ff");
	assert_non_null(reset(IB_GSI_PORT_COUNTERS_EXT, 255, 0));
	expect_mad(1, "0:01040102 17:1d 65:ffffff 70:ffff");
}

TEST(the_response_comes_back_in_the_buffer)
{
	uint8_t counters[IB_PC_DATA_SZ];

	fill(counters, sizeof(counters), 1);
	respond_with(IB_PERFORMANCE_CLASS, IB_GSI_PORT_COUNTERS, 0, counters, sizeof(counters));
	assert_non_null(query(IB_GSI_PORT_COUNTERS, 1));
	assert_memory_equal(buf, counters, sizeof(counters));
	assert_int_equal(buf[192], 0xd4);
}

TEST(failures_are_told_by_errno)
{
	respond_with(IB_PERFORMANCE_CLASS, 0x99, 0x000c, NULL, 0);
	assert_fails_null(query(0x99, 1), EIO);
	assert_fails_null(reset(0x99, 1, 0), EIO);
	be_silent();
	assert_fails_null(query(IB_GSI_PORT_COUNTERS, 1), ETIMEDOUT);
}

TEST(what_cannot_be_asked_is_refused)
{
	to = (ib_portid_t){.lid = -1};
	assert_fails_null(query(IB_GSI_PORT_COUNTERS, 1), EINVAL);
	assert_fails_null(reset(IB_GSI_PORT_COUNTERS, 1, 0), EINVAL);
	assert_fails_null(pma_query_via(buf, NULL, 1, 0, IB_GSI_PORT_COUNTERS, fixture.port),
			  EINVAL);
	errno = 0;
	to.lid = 1;
	assert_fails_null(pma_query_via(NULL, &to, 1, 0, IB_GSI_PORT_COUNTERS, fixture.port),
			  EINVAL);
	assert_int_equal(device_written(), 0);
}
