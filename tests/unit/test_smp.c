/* SPDX-License-Identifier: BSD-2-Clause */

#include "mad_fixture.h"
#include "test.h"

static ib_portid_t to;
static uint8_t buf[IB_SMP_DATA_SIZE];

static int setup(void)
{
	to = (ib_portid_t){.lid = 7};
	memset(buf, 0, sizeof(buf));
	buf[0] = 0xa1;
	buf[63] = 0xc3;
	return fixture_setup();
}

FIXTURE(setup, fixture_teardown);

static void *query(unsigned attribute)
{
	return smp_query_via(buf, &to, attribute, 0, 0, fixture.port);
}

TEST(a_lid_makes_it_lid_routed)
{
	assert_ptr_equal(
		smp_query_via(buf, &to, IB_ATTR_PORT_INFO, 0x12345678, 0, fixture.port), buf);
	assert_int_equal(errno, 0);
	assert_int_equal(device_written(), 1);
	expect_mad(0, "0:01010101 17:15 20:12345678 64:a1 127:c3");
	expect_address(0, 0, 0, 7, 0);
	expect_agent(0);
}

TEST(without_lid_the_route_is_directed)
{
	to = (ib_portid_t){.drpath = {.cnt = 2, .p = {0, 1, 3}}};
	assert_non_null(query(IB_ATTR_NODE_INFO));
	expect_mad(0, "0:01810101 7:02 17:11 32:ffffffff 64:a1 127:c3 129:0103");
	expect_address(0, 0, 0, 0xffff, 0);
	expect_agent(0);
	to.lid = -5;
	assert_non_null(query(IB_ATTR_NODE_INFO));
	expect_address(1, 0, 0, 0xffff, 0);
}

TEST(a_permissive_end_makes_the_route_directed)
{
	to = (ib_portid_t){.lid = 7, .drpath = {.drslid = 0xffff}};
	assert_non_null(query(IB_ATTR_NODE_INFO));
	expect_mad(0, "0:01810101 17:11 32:ffffffff 64:a1 127:c3");
	expect_address(0, 0, 0, 0xffff, 0);
	to.drpath.drslid = 0x21;
	to.drpath.drdlid = 0xffff;
	assert_non_null(query(IB_ATTR_NODE_INFO));
	expect_mad(1, "0:01810101 17:11 32:0021ffff 64:a1 127:c3");
	expect_address(1, 0, 0, 7, 0);
}

TEST(a_set_says_so)
{
	assert_ptr_equal(smp_set_via(buf, &to, IB_ATTR_PORT_INFO, 1, 0, fixture.port), buf);
	expect_mad(0, "0:01010102 17:15 23:01 64:a1 127:c3");
}

TEST(the_m_key_goes_along)
{
	smp_mkey_set(fixture.port, 0x1122334455667788);
	assert_non_null(query(IB_ATTR_NODE_INFO));
	expect_mad(0, "0:01010101 17:11 24:1122334455667788 64:a1 127:c3");
	to.lid = 0;
	assert_non_null(smp_set_via(buf, &to, IB_ATTR_NODE_INFO, 0, 0, fixture.port));
	expect_mad(1, "0:01810102 17:11 24:1122334455667788ffffffff 64:a1 127:c3");
}

TEST(service_level_qp_and_key_do_not_count)
{
	to = (ib_portid_t){
		.lid = 7, .qp = 5, .qkey = 0x55, .sl = 3, .pkey_idx = 1, .grh_present = 1};
	assert_non_null(query(IB_ATTR_NODE_INFO));
	expect_address(0, 0, 0, 7, 0);
	assert_int_equal(to.sl, 0);
	assert_int_equal(to.qp, 0);
}

TEST(an_smp_has_no_partition_and_no_grh_whatever_the_buffer_had)
{
	_Alignas(8) uint8_t umad[sizeof(struct ib_user_mad) + IB_MAD_SIZE];
	ib_rpc_t rpc = {.mgtclass = IB_SMI_CLASS, .method = IB_MAD_METHOD_GET, .trid = 1};

	memset(umad, 0xff, sizeof(umad));
	assert_int_equal(mad_build_pkt(umad, &rpc, &to, NULL, NULL), IB_MAD_SIZE);
	assert_int_equal(umad_get_pkey(umad), 0);
	assert_int_equal(umad_get_mad_addr(umad)->grh_present, 0);
}

TEST(the_response_comes_back_in_the_buffer)
{
	uint8_t info[IB_SMP_DATA_SIZE + 16];

	fill(info, sizeof(info), 1);
	respond_with(IB_SMI_CLASS, IB_ATTR_NODE_INFO, 0, info, IB_SMP_DATA_SIZE);
	fill(info + IB_SMP_DATA_SIZE, 16, 99);
	assert_non_null(query(IB_ATTR_NODE_INFO));
	assert_memory_equal(buf, info, sizeof(buf));
}

TEST(a_status_is_an_error_and_the_buffer_left_alone)
{
	uint8_t before[sizeof(buf)];
	int status = -1;

	to = (ib_portid_t){.drpath = {.cnt = 1, .p = {0, 1}}};
	memcpy(before, buf, sizeof(buf));
	respond_with(IB_SMI_DIRECT_CLASS, 0x77, 0x000c, "x", 1);
	/* without the direction bit, which is part of the field */
	assert_fails_null(smp_query_status_via(buf, &to, 0x77, 0, 0, &status, fixture.port),
			  EIO);
	assert_int_equal(status, 0x000c);
	assert_memory_equal(buf, before, sizeof(buf));
	status = -1;
	assert_null(smp_set_status_via(buf, &to, 0x77, 0, 0, &status, fixture.port));
	assert_int_equal(status, 0x000c);
	assert_fails_null(query(0x77), EIO);
}

TEST(success_is_status_0)
{
	int status = -1;

	assert_non_null(smp_query_status_via(buf, &to, 0x11, 0, 0, &status, fixture.port));
	assert_int_equal(status, 0);
	status = -1;
	assert_non_null(smp_set_status_via(buf, &to, 0x11, 0, 0, &status, fixture.port));
	assert_int_equal(status, 0);
}

TEST(no_response_is_a_timeout)
{
	int status = -1;

	be_silent();
	assert_fails_null(smp_query_status_via(buf, &to, 0x11, 0, 0, &status, fixture.port),
			  ETIMEDOUT);
	assert_int_equal(status, 0);
	expect_mad(0, "0:01010101 17:11 64:a1 127:c3");
}

TEST(a_call_s_own_timeout_counts)
{
	be_silent();
	mad_rpc_set_timeout(fixture.port, 100000000);
	assert_fails_null(smp_set_via(buf, &to, 0x11, 0, 5, fixture.port), ETIMEDOUT);
}

TEST(what_cannot_be_sent_is_refused)
{
	int status = -1;

	to = (ib_portid_t){.drpath = {.cnt = 64}};
	assert_fails_null(smp_query_status_via(buf, &to, 0x11, 0, 0, &status, fixture.port),
			  EINVAL);
	assert_int_equal(status, 0);
	assert_fails_null(smp_query_via(buf, NULL, 0x11, 0, 0, fixture.port), EINVAL);
	errno = 0;
	to.drpath.cnt = 0;
	assert_fails_null(smp_set_via(buf, &to, 0x11, 0, 0, NULL), EINVAL);
	assert_int_equal(device_written(), 0);
}
