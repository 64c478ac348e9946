/* SPDX-License-Identifier: BSD-2-Clause */

#include "mad_fixture.h"
#include "test.h"

static uint8_t buf[256];

static int setup(void)
{
	memset(buf, 0, sizeof(buf));
	buf[0] = 0xa1;
	buf[191] = 0xc3;
	buf[223] = 0xd4;
	buf[224] = 0xe5;
	return fixture_setup();
}

FIXTURE(setup, fixture_teardown);

TEST(a_query_has_key_and_data)
{
	ib_portid_t to = {.lid = 8, .qp = 77, .sl = 2};
	int status = -1;

	assert_ptr_equal(cc_query_status_via(buf, &to, IB_CC_ATTR_CONGESTION_INFO, 5, 0,
					     &status, fixture.port, 0x1122334455667788),
			 buf);
	assert_int_equal(errno, 0);
	assert_int_equal(status, 0);
	expect_mad(0, "0:01210201 17:11 23:05 24:1122334455667788 64:a1 255:c3");
	/* always by QP1 */
	expect_address(0, 1, 0x80010000, 8, 2);
	expect_agent(0);
	assert_int_equal(buf[223], 0xd4);
}

TEST(the_log_begins_earlier)
{
	ib_portid_t to = {.lid = 8, .qkey = 9};

	assert_non_null(cc_query_status_via(buf, &to, IB_CC_ATTR_CONGESTION_LOG, 0, 0, NULL,
					    fixture.port, 1));
	expect_mad(0, "0:01210201 17:13 31:01 32:a1 223:c3 255:d4");
	expect_address(0, 1, 9, 8, 0);
	assert_int_equal(buf[224], 0xe5);
}

TEST(what_is_configured_and_what_comes_back_may_lie_apart)
{
	uint8_t payload[IB_CC_DATA_SZ] = {0x77}, response[IB_CC_DATA_SZ];
	ib_portid_t to = {.lid = 8};
	int status = -1;

	fill(response, sizeof(response), 3);
	respond_with(IB_CC_CLASS, IB_CC_ATTR_CA_CONGESTION_SETTING, 0, response,
		     sizeof(response));
	assert_ptr_equal(cc_config_status_via(payload, buf, &to,
					      IB_CC_ATTR_CA_CONGESTION_SETTING, 0, 0, &status,
					      fixture.port, 2),
			 buf);
	expect_mad(0, "0:01210202 17:16 31:02 64:77");
	assert_memory_equal(buf, response, sizeof(response));
	assert_int_equal(payload[0], 0x77);
	assert_int_equal(status, 0);
}

TEST(either_may_be_missing)
{
	ib_portid_t to = {.lid = 8};

	assert_ptr_equal(
		cc_config_status_via(NULL, buf, &to, 0x16, 0, 0, NULL, fixture.port, 0), buf);
	expect_mad(0, "0:01210202 17:16");
	/* no result, and no error */
	errno = EBADF;
	assert_null(cc_config_status_via(buf, NULL, &to, 0x16, 0, 0, NULL, fixture.port, 0));
	assert_int_equal(errno, 0);
}

TEST(a_status_is_told)
{
	ib_portid_t to = {.lid = 8};
	int status = -1;

	respond_with(IB_CC_CLASS, 0x99, 0x000c, NULL, 0);
	assert_fails_null(cc_query_status_via(buf, &to, 0x99, 0, 0, &status, fixture.port, 0),
			  EIO);
	assert_int_equal(status, 0x000c);
	be_silent();
	assert_fails_null(cc_query_status_via(buf, &to, 0x11, 0, 0, &status, fixture.port, 0),
			  ETIMEDOUT);
	assert_int_equal(status, 0);
}

TEST(nowhere_is_refused)
{
	assert_fails_null(cc_query_status_via(buf, NULL, 0x11, 0, 0, NULL, fixture.port, 0),
			  EINVAL);
	assert_int_equal(device_written(), 0);
}
