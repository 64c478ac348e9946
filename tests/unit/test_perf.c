/* SPDX-License-Identifier: BSD-2-Clause */

#include "mad_fixture.h"
#include "test.h"

/* The caller owns the bytes behind the attribute. */
static uint8_t buf[256];

static int setup(void)
{
	memset(buf, 0, sizeof(buf));
	buf[0] = 0xa1;
	buf[191] = 0xc3;
	buf[192] = 0xd4;
	return fixture_setup();
}

FIXTURE(setup, fixture_teardown);

TEST(a_query_selects_the_port)
{
	ib_portid_t to = {.lid = 8};

	assert_ptr_equal(pma_query_via(buf, &to, 3, 0, IB_GSI_PORT_COUNTERS, fixture.port),
			 buf);
	assert_int_equal(errno, 0);
	expect_mad(0, "0:01040101 17:12 64:a103 255:c3");
	expect_address(0, 1, 0x80010000, 8, 0);
	expect_agent(0);
	assert_int_equal(buf[192], 0xd4);
	/* and only its byte */
	assert_non_null(
		pma_query_via(buf, &to, 0x2ff, 0, IB_GSI_PORT_COUNTERS_EXT, fixture.port));
	expect_mad(1, "0:01040101 17:1d 64:a1ff 255:c3");
}

TEST(an_smp_s_key_is_not_for_others)
{
	ib_portid_t to = {.lid = 8};

	smp_mkey_set(fixture.port, 0x1122334455667788);
	assert_non_null(pma_query_via(buf, &to, 3, 0, IB_GSI_PORT_COUNTERS, fixture.port));
	expect_mad(0, "0:01040101 17:12 64:a103 255:c3");
}

TEST(qp_key_and_service_level_can_be_given)
{
	ib_portid_t to = {.lid = 8, .qp = 5, .qkey = 0x55, .sl = 4};

	assert_non_null(pma_query_via(buf, &to, 1, 0, IB_GSI_PORT_COUNTERS, fixture.port));
	expect_address(0, 5, 0x55, 8, 4);
	assert_non_null(
		performance_reset_via(buf, &to, 1, 0, 0, IB_GSI_PORT_COUNTERS, fixture.port));
	expect_address(1, 5, 0x55, 8, 4);
}

TEST(a_reset_selects_counters_and_nothing_else)
{
	ib_portid_t to = {.lid = 8};

	assert_ptr_equal(performance_reset_via(buf, &to, 3, 0xf00, 0, IB_GSI_PORT_COUNTERS,
					       fixture.port),
			 buf);
	expect_mad(0, "0:01040102 17:12 65:030f00");
	expect_address(0, 1, 0x80010000, 8, 0);
	expect_agent(0);
	assert_int_equal(buf[192], 0xd4);
}

TEST(the_upper_half_of_the_mask_is_counter_select_2)
{
	ib_portid_t to = {.lid = 8};

	assert_non_null(performance_reset_via(buf, &to, 1, 0x12345678, 0, IB_GSI_PORT_COUNTERS,
					      fixture.port));
	expect_mad(0, "0:01040102 17:12 65:015678 82:34");
	/* among the extended counters it has 16 bits, at another offset */
	assert_non_null(performance_reset_via(buf, &to, 1, 0x12345678, 0,
					      IB_GSI_PORT_COUNTERS_EXT, fixture.port));
	expect_mad(1, "0:01040102 17:1d 65:015678 70:1234");
	assert_non_null(performance_reset_via(buf, &to, 1, 0x12345678, 0,
					      IB_GSI_PORT_RCV_ERROR_DETAILS, fixture.port));
	expect_mad(2, "0:01040102 17:15 65:015678 82:34");
}

TEST(no_mask_resets_all)
{
	ib_portid_t to = {.lid = 8};

	assert_non_null(
		performance_reset_via(buf, &to, 255, 0, 0, IB_GSI_PORT_COUNTERS, fixture.port));
	expect_mad(0, "0:01040102 17:12 65:ffffff 82:ff");
	assert_non_null(performance_reset_via(buf, &to, 255, 0, 0, IB_GSI_PORT_COUNTERS_EXT,
					      fixture.port));
	expect_mad(1, "0:01040102 17:1d 65:ffffff 70:ffff");
}

TEST(the_response_comes_back_in_the_buffer)
{
	uint8_t counters[IB_PC_DATA_SZ];
	ib_portid_t to = {.lid = 8};

	fill(counters, sizeof(counters), 1);
	respond_with(IB_PERFORMANCE_CLASS, IB_GSI_PORT_COUNTERS, 0, counters, sizeof(counters));
	assert_non_null(pma_query_via(buf, &to, 1, 0, IB_GSI_PORT_COUNTERS, fixture.port));
	assert_memory_equal(buf, counters, sizeof(counters));
	assert_int_equal(buf[192], 0xd4);
}

TEST(failures_are_told_by_errno)
{
	ib_portid_t to = {.lid = 8};

	respond_with(IB_PERFORMANCE_CLASS, 0x99, 0x000c, NULL, 0);
	assert_fails_null(pma_query_via(buf, &to, 1, 0, 0x99, fixture.port), EIO);
	assert_fails_null(performance_reset_via(buf, &to, 1, 0, 0, 0x99, fixture.port), EIO);
	be_silent();
	assert_fails_null(pma_query_via(buf, &to, 1, 0, IB_GSI_PORT_COUNTERS, fixture.port),
			  ETIMEDOUT);
}

TEST(what_cannot_be_asked_is_refused)
{
	ib_portid_t to = {.lid = -1};

	assert_fails_null(pma_query_via(buf, &to, 1, 0, IB_GSI_PORT_COUNTERS, fixture.port),
			  EINVAL);
	assert_fails_null(
		performance_reset_via(buf, &to, 1, 0, 0, IB_GSI_PORT_COUNTERS, fixture.port),
		EINVAL);
	assert_fails_null(pma_query_via(buf, NULL, 1, 0, IB_GSI_PORT_COUNTERS, fixture.port),
			  EINVAL);
	errno = 0;
	to.lid = 1;
	assert_fails_null(pma_query_via(NULL, &to, 1, 0, IB_GSI_PORT_COUNTERS, fixture.port),
			  EINVAL);
	assert_int_equal(device_written(), 0);
}
