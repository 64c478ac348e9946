/* SPDX-License-Identifier: BSD-2-Clause */

#include "mad_fixture.h"
#include "test.h"

#include <infiniband/mad_sa.h>

static ib_portid_t to;
static uint8_t buf[256];

static ibmad_gid_t source = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
static ibmad_gid_t destination = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 9, 8, 7, 6, 5, 4, 3, 2};

static int setup(void)
{
	to = (ib_portid_t){.lid = 1};
	memset(buf, 0, sizeof(buf));
	buf[0] = 0xa1;
	buf[199] = 0xc3;
	buf[200] = 0xd4;
	return fixture_setup();
}

FIXTURE(setup, fixture_teardown);

TEST(a_call_has_mask_and_data)
{
	ib_sa_call_t call = {.method = IB_MAD_METHOD_GET,
			     .attrid = IB_SA_ATTR_MCRECORD,
			     .mod = 0xffffffff,
			     .mask = 0x1122334455667788};

	to = (ib_portid_t){.lid = 1, .qp = 77, .sl = 3};
	assert_ptr_equal(sa_rpc_call(fixture.port, buf, &to, &call, 0), buf);
	assert_int_equal(errno, 0);
	expect_mad(0, "0:01030201 17:38 20:ffffffff 48:1122334455667788 56:a1 255:c3");
	expect_address(0, 1, 0x80010000, 1, 3);
	expect_agent(0);
	assert_int_equal(to.qp, 1);
	assert_int_equal(buf[200], 0xd4);
}

TEST(a_q_key_can_be_given)
{
	ib_sa_call_t call = {.method = IB_MAD_METHOD_SET, .attrid = IB_SA_ATTR_MCRECORD};

	to = (ib_portid_t){.lid = 1, .qkey = 9};
	assert_non_null(sa_rpc_call(fixture.port, buf, &to, &call, 0));
	expect_address(0, 1, 9, 1, 0);
}

TEST(the_sm_key_has_its_place_and_is_not_the_m_key)
{
	ib_sa_call_t call = {.method = IB_MAD_METHOD_GET, .attrid = IB_SA_ATTR_NODERECORD};

	smp_mkey_set(fixture.port, 0x9999999999999999);
	mad_port_set(fixture.port, MAD_PORT_SA_KEY, 0x1122334455667788);
	assert_non_null(sa_rpc_call(fixture.port, buf, &to, &call, 0));
	expect_mad(0, "0:01030201 17:11 36:1122334455667788 56:a1 255:c3");
}

TEST(the_transaction_s_id_can_be_given)
{
	ib_sa_call_t call = {.method = IB_MAD_METHOD_GET,
			     .attrid = IB_SA_ATTR_NODERECORD,
			     .trid = 0x12345678};
	const uint8_t low[] = {0x12, 0x34, 0x56, 0x78};

	assert_non_null(sa_rpc_call(fixture.port, buf, &to, &call, 0));
	assert_memory_equal(device_packet(0)->mad + 12, low, sizeof(low));
}

static int respond_with_offset(const struct device_packet *packet, void *arg)
{
	uint8_t mad[256];

	(void)arg;
	device_copy_mad(packet, mad);
	mad[3] |= IB_MAD_RESPONSE;
	mad[45] = 14;
	memcpy(mad + IB_SA_DATA_OFFS, "record", 6);
	device_reply(packet, mad, sizeof(mad));
	return 0;
}

TEST(record_and_its_size_come_back)
{
	ib_sa_call_t call = {.method = IB_MAD_METHOD_GET, .attrid = IB_SA_ATTR_NODERECORD};

	device_on_write(respond_with_offset, NULL);
	assert_non_null(sa_rpc_call(fixture.port, buf, &to, &call, 0));
	assert_memory_equal(buf, "record", 6);
	assert_int_equal(call.recsz, 14);
	assert_int_equal(buf[200], 0xd4);
}

TEST(failures_are_told_by_errno)
{
	ib_sa_call_t call = {
		.method = IB_MAD_METHOD_GET, .attrid = IB_SA_ATTR_NODERECORD, .recsz = 77};

	respond_with(IB_SA_CLASS, IB_SA_ATTR_NODERECORD, 0x0300, NULL, 0);
	assert_fails_null(sa_rpc_call(fixture.port, buf, &to, &call, 0), EIO);
	assert_int_equal(call.recsz, 0);
	be_silent();
	assert_fails_null(sa_rpc_call(fixture.port, buf, &to, &call, 0), ETIMEDOUT);
	mad_rpc_set_timeout(fixture.port, 100000000);
	assert_fails_null(sa_rpc_call(fixture.port, buf, &to, &call, 5), ETIMEDOUT);
}

TEST(a_call_needs_a_lid)
{
	ib_sa_call_t call = {.method = IB_MAD_METHOD_GET};

	to = (ib_portid_t){.lid = 0};
	for (to.lid = -1; to.lid <= 0; to.lid++) {
		assert_fails_null(sa_rpc_call(fixture.port, buf, &to, &call, 0), EINVAL);
	}
	assert_null(sa_rpc_call(fixture.port, buf, NULL, &call, 0));
	assert_null(sa_rpc_call(fixture.port, buf, &to, NULL, 0));
	assert_null(sa_rpc_call(NULL, buf, &to, &call, 0));
	assert_int_equal(device_written(), 0);
}

/* --- paths and nodes ------------------------------------------------------------ */

TEST(a_path_is_asked_for_by_both_gids)
{
	ib_portid_t sm = {.lid = 1, .sl = 2};
	uint8_t path[IB_SA_DATA_SIZE];

	fill(path, sizeof(path), 1);
	path[40] = 0xbe; /* the DLID */
	path[41] = 0xef;
	respond_with(IB_SA_CLASS, IB_SA_ATTR_PATHRECORD, 0, path, sizeof(path));
	assert_int_equal(ib_path_query_via(fixture.port, source, destination, &sm, buf),
			 0xbeef);
	expect_mad(0, "0:01030201 17:35 55:0c 64:fe80000000000000 72:0908070605040302"
		      " 80:fe80000000000000 88:0102030405060708 255:c3");
	expect_address(0, 1, 0x80010000, 1, 2);
	assert_memory_equal(buf, path, sizeof(path));
	assert_int_equal(buf[200], 0xd4);
}

TEST(no_path_is_minus_one)
{
	ib_portid_t sm = {.lid = 1};

	respond_with(IB_SA_CLASS, IB_SA_ATTR_PATHRECORD, 0x0300, NULL, 0);
	assert_fails_minus_1(ib_path_query_via(fixture.port, source, destination, &sm, buf),
			     EIO);
	errno = 0;
	sm.lid = 0;
	assert_fails_minus_1(ib_path_query_via(fixture.port, source, destination, &sm, buf),
			     EINVAL);
	assert_int_equal(ib_path_query_via(fixture.port, NULL, destination, &sm, buf), -1);
	assert_int_equal(ib_path_query_via(fixture.port, source, NULL, &sm, buf), -1);
	assert_int_equal(ib_path_query_via(fixture.port, source, destination, NULL, buf), -1);
	assert_int_equal(ib_path_query_via(fixture.port, source, destination, &sm, NULL), -1);
	assert_int_equal(device_written(), 1);
}

TEST(a_node_is_asked_for_by_its_port_guid)
{
	uint8_t node[IB_SA_DATA_SIZE];
	ib_portid_t sm = {.lid = 1};

	fill(node, sizeof(node), 1);
	respond_with(IB_SA_CLASS, IB_SA_ATTR_NODERECORD, 0, node, sizeof(node));
	assert_int_equal(ib_node_query_via(fixture.port, 0x1122334455667788, &sm, buf), 0);
	expect_mad(0, "0:01030201 17:11 54:01 80:1122334455667788 255:c3");
	assert_memory_equal(buf, node, sizeof(node));
}

TEST(no_node_is_minus_one)
{
	ib_portid_t sm = {.lid = 1};

	respond_with(IB_SA_CLASS, IB_SA_ATTR_NODERECORD, 0x0300, NULL, 0);
	assert_fails_minus_1(ib_node_query_via(fixture.port, 1, &sm, buf), EIO);
	assert_fails_minus_1(ib_node_query_via(fixture.port, 1, &sm, NULL), EINVAL);
}
