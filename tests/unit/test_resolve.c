/* SPDX-License-Identifier: BSD-2-Clause */

#include "mad_fixture.h"
#include "test.h"

/* The port's own attributes, and the path to another port. */
static uint8_t port_info[IB_SMP_DATA_SIZE], node_info[IB_SMP_DATA_SIZE], path[IB_SA_DATA_SIZE];

#define PORT_INFO "0:01810101 17:15 32:ffffffff"
#define NODE_INFO "0:01810101 17:11 32:ffffffff"

static int setup(void)
{
	int ret = fixture_setup();

	memset(port_info, 0, sizeof(port_info));
	memset(node_info, 0, sizeof(node_info));
	memset(path, 0, sizeof(path));
	mad_set_field64(port_info, 0, IB_PORT_GID_PREFIX_F, 0xfec0000000000007);
	mad_set_field(port_info, 0, IB_PORT_LID_F, 0x21);
	mad_set_field(port_info, 0, IB_PORT_SMLID_F, 0x42);
	mad_set_field(port_info, 0, IB_PORT_SMSL_F, 5);
	mad_set_field64(node_info, 0, IB_NODE_PORT_GUID_F, 0x1122334455667788);
	mad_set_field(node_info, 0, IB_NODE_LOCAL_PORT_F, 2);
	mad_set_field(path, 0, IB_SA_PR_DLID_F, 0x77);
	mad_set_field(path, 0, IB_SA_PR_SL_F, 6);
	respond_with(IB_SMI_DIRECT_CLASS, IB_ATTR_PORT_INFO, 0, port_info, sizeof(port_info));
	respond_with(IB_SMI_DIRECT_CLASS, IB_ATTR_NODE_INFO, 0, node_info, sizeof(node_info));
	respond_with(IB_SA_CLASS, IB_SA_ATTR_PATHRECORD, 0, path, sizeof(path));
	return ret;
}

FIXTURE(setup, fixture_teardown);

/* --- the subnet manager --------------------------------------------------------- */

TEST(the_port_knows_its_subnet_manager)
{
	ib_portid_t sm;

	memset(&sm, 0x44, sizeof(sm));
	assert_int_equal(ib_resolve_smlid_via(&sm, 0, fixture.port), 0);
	assert_int_equal(device_written(), 1);
	expect_mad(0, PORT_INFO);
	expect_address(0, 0, 0, 0xffff, 0);
	assert_int_equal(sm.lid, 0x42);
	assert_int_equal(sm.sl, 5);
	assert_int_equal(sm.qp, 0);
	assert_int_equal(sm.qkey, 0);
	assert_int_equal(sm.drpath.cnt, 0);
}

TEST(a_subnet_without_manager_has_none)
{
	static const uint16_t lids[] = {0, 0xc000, 0xffff};
	ib_portid_t sm;

	for (size_t i = 0; i < sizeof(lids) / sizeof(*lids); i++) {
		mad_set_field(port_info, 0, IB_PORT_SMLID_F, lids[i]);
		assert_fails_minus_1(ib_resolve_smlid_via(&sm, 0, fixture.port), ENXIO);
	}
	assert_fails_minus_1(ib_resolve_smlid_via(NULL, 0, fixture.port), EINVAL);
}

TEST(the_time_to_find_it_can_be_given)
{
	ib_portid_t sm;

	be_silent();
	mad_rpc_set_timeout(fixture.port, 100000000);
	assert_fails_minus_1(ib_resolve_smlid_via(&sm, 5, fixture.port), ETIMEDOUT);
}

/* --- the own port --------------------------------------------------------------- */

TEST(one_s_own_address_is_what_the_port_says)
{
	static const ibmad_gid_t own = {0xfe, 0xc0, 0,    0,    0,    0,    0,    7,
					0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
	ib_portid_t self;
	ibmad_gid_t gid;
	int portnum;

	memset(&self, 0x33, sizeof(self));
	assert_int_equal(ib_resolve_self_via(&self, &portnum, &gid, fixture.port), 0);
	assert_int_equal(device_written(), 2);
	expect_mad(0, NODE_INFO);
	expect_mad(1, PORT_INFO);
	assert_int_equal(self.lid, 0x21);
	assert_int_equal(self.sl, 5);
	/* the library does not change the rest */
	assert_int_equal(self.qp, 0x33333333);
	assert_int_equal(portnum, 2);
	assert_memory_equal(gid, own, sizeof(own));
}

TEST(what_nobody_asks_for_is_not_told)
{
	int portnum;

	assert_int_equal(ib_resolve_self_via(NULL, &portnum, NULL, fixture.port), 0);
	assert_int_equal(portnum, 2);
	assert_int_equal(ib_resolve_self_via(NULL, NULL, NULL, fixture.port), 0);
}

TEST(a_port_that_does_not_respond_is_not_found)
{
	ib_portid_t self = {.lid = 9};

	be_silent();
	assert_fails_minus_1(ib_resolve_self_via(&self, NULL, NULL, fixture.port), ETIMEDOUT);
	assert_int_equal(self.lid, 9);
}

/* --- by GID and GUID ------------------------------------------------------------ */

static ibmad_gid_t other = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 9, 8, 7, 6, 5, 4, 3, 2};

#define OTHER "fe800000000000000908070605040302"

TEST(a_gid_is_looked_up_at_the_subnet_manager)
{
	ib_portid_t to;

	memset(&to, 0x22, sizeof(to));
	assert_int_equal(ib_resolve_gid_via(&to, other, NULL, 0, fixture.port), 0);
	assert_int_equal(device_written(), 2);
	expect_mad(0, PORT_INFO);
	expect_mad(1, "0:01030201 17:35 55:0c 64:" OTHER OTHER);
	expect_address(1, 1, 0x80010000, 0x42, 5);
	assert_int_equal(to.lid, 0x77);
	/* and nothing else is set */
	assert_int_equal(to.sl, 0x22);
	assert_int_equal(to.gid[0], 0x22);
}

TEST(a_subnet_manager_that_is_known_is_not_looked_for)
{
	ib_portid_t to = {0}, sm = {.lid = 3, .sl = 1};

	assert_int_equal(ib_resolve_gid_via(&to, other, &sm, 0, fixture.port), 0);
	assert_int_equal(device_written(), 1);
	expect_address(0, 1, 0x80010000, 3, 1);
}

TEST(one_without_lid_is_and_is_told)
{
	ib_portid_t to = {0}, sm = {0};

	assert_int_equal(ib_resolve_gid_via(&to, other, &sm, 0, fixture.port), 0);
	assert_int_equal(device_written(), 2);
	assert_int_equal(sm.lid, 0x42);
	assert_int_equal(sm.sl, 5);
}

TEST(a_guid_is_looked_up_from_one_s_own)
{
	uint64_t guid = 0x0908070605040302;
	ib_portid_t to = {0};

	assert_int_equal(ib_resolve_guid_via(&to, &guid, NULL, 0, fixture.port), 0);
	assert_int_equal(device_written(), 3);
	expect_mad(0, PORT_INFO);
	expect_mad(1, NODE_INFO);
	expect_mad(2, "0:01030201 17:35 55:0c 64:" OTHER "fe800000000000001122334455667788");
	assert_int_equal(to.lid, 0x77);
	assert_int_equal(to.sl, 6);
	assert_memory_equal(to.gid, other, sizeof(other));
	assert_int_equal(to.grh_present, 0);
}

TEST(the_portid_s_subnet_prefix_counts)
{
	ib_portid_t to = {.gid = {0xfe, 0xc0, 0, 0, 0, 0, 0, 5}}, sm = {.lid = 1};
	uint64_t guid = 0x0908070605040302;

	assert_int_equal(ib_resolve_guid_via(&to, &guid, &sm, 0, fixture.port), 0);
	assert_int_equal(device_written(), 2);
	expect_mad(0, NODE_INFO);
	expect_mad(1, "0:01030201 17:35 55:0c 64:fec00000000000050908070605040302"
		      "fe800000000000001122334455667788");
}

TEST(nobody_has_no_lid)
{
	ib_portid_t to = {.lid = 5}, sm = {.lid = 1};
	uint64_t guid = 1;

	fixture.responses[2].status = 0x0300;
	assert_fails_minus_1(ib_resolve_gid_via(&to, other, &sm, 0, fixture.port), EIO);
	assert_int_equal(to.lid, -1);
	assert_fails_minus_1(ib_resolve_guid_via(&to, &guid, &sm, 0, fixture.port), EIO);
	assert_fails_minus_1(ib_resolve_gid_via(NULL, other, &sm, 0, fixture.port), EINVAL);
	assert_int_equal(ib_resolve_gid_via(&to, NULL, &sm, 0, fixture.port), -1);
	assert_int_equal(ib_resolve_guid_via(NULL, &guid, &sm, 0, fixture.port), -1);
	assert_int_equal(ib_resolve_guid_via(&to, NULL, &sm, 0, fixture.port), -1);
}

TEST(without_subnet_manager_nobody_is_found)
{
	uint64_t guid = 1;
	ib_portid_t to = {.lid = 5};

	mad_set_field(port_info, 0, IB_PORT_SMLID_F, 0);
	assert_fails_minus_1(ib_resolve_gid_via(&to, other, NULL, 0, fixture.port), ENXIO);
	assert_fails_minus_1(ib_resolve_guid_via(&to, &guid, NULL, 0, fixture.port), ENXIO);
	assert_int_equal(to.lid, 5);
}

/* --- by text -------------------------------------------------------------------- */

static ib_portid_t resolved;

static int resolve(enum MAD_DEST kind, const char *text)
{
	char copy[300];

	snprintf(copy, sizeof(copy), "%s", text);
	memset(&resolved, 0x44, sizeof(resolved));
	errno = 0;
	return ib_resolve_portid_str_via(&resolved, copy, kind, NULL, fixture.port);
}

TEST(a_lid_is_a_number_in_c_s_notation)
{
	static const struct {
		const char *text;
		int lid;
	} lids[] = {{"8", 8}, {"0x1f", 31}, {"010", 8},     {" 7", 7},
		    {"1", 1}, {"8 ", 8},    {"\t0x9\n", 9}, {"49151", 49151}};

	for (size_t i = 0; i < sizeof(lids) / sizeof(*lids); i++) {
		assert_int_equal(resolve(IB_DEST_LID, lids[i].text), 0);
		assert_int_equal(resolved.lid, lids[i].lid);
		assert_int_equal(resolved.qp, 0);
		assert_int_equal(resolved.drpath.cnt, 0);
	}
	assert_int_equal(device_written(), 0);
}

TEST(a_directed_route_begins_at_the_port)
{
	assert_int_equal(resolve(IB_DEST_DRPATH, "0,1,6"), 0);
	assert_int_equal(resolved.lid, 0);
	assert_int_equal(resolved.drpath.cnt, 2);
	assert_int_equal(resolved.drpath.p[2], 6);
	assert_int_equal(resolved.drpath.drslid, 0xffff);
	assert_int_equal(resolved.drpath.drdlid, 0xffff);
	assert_int_equal(resolved.qp, 0);
}

TEST(a_guid_is_resolved)
{
	static const char *const texts[] = {"0x0908070605040302", " 0x0908070605040302 \n"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		assert_int_equal(resolve(IB_DEST_GUID, texts[i]), 0);
		assert_int_equal(resolved.lid, 0x77);
		assert_int_equal(resolved.sl, 6);
		assert_memory_equal(resolved.gid, other, sizeof(other));
	}
	expect_mad(2, "0:01030201 17:35 55:0c 64:" OTHER "fe800000000000001122334455667788");
}

TEST(a_gid_is_resolved)
{
	assert_int_equal(resolve(IB_DEST_GID, "fe80::908:706:504:302"), 0);
	assert_int_equal(resolved.lid, 0x77);
	expect_mad(1, "0:01030201 17:35 55:0c 64:" OTHER OTHER);
}

TEST(a_lid_and_a_route_from_there_come_back_to_one_s_own_lid)
{
	static const char *const texts[] = {"2,0,1",     "2 0,1",        "0x2;0,1",
					    "2, 0, 1\n", " 2; 0 ,1\r\n", "2\t0,1"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		assert_int_equal(resolve(IB_DEST_DRSLID, texts[i]), 0);
		assert_int_equal(resolved.lid, 2);
		assert_int_equal(resolved.drpath.cnt, 1);
		assert_int_equal(resolved.drpath.p[1], 1);
		assert_int_equal(resolved.drpath.drslid, 0x21);
		assert_int_equal(resolved.drpath.drdlid, 0xffff);
	}
	expect_mad(0, NODE_INFO);
	expect_mad(1, PORT_INFO);
}

TEST(what_is_no_address_is_refused)
{
	static const struct {
		enum MAD_DEST kind;
		const char *text;
	} bad[] = {
		{IB_DEST_LID, ""},           {IB_DEST_LID, "0"},
		{IB_DEST_LID, "-1"},         {IB_DEST_LID, "+1"},
		{IB_DEST_LID, "x"},          {IB_DEST_LID, "8x"},
		{IB_DEST_LID, "8 9"},        {IB_DEST_LID, " "},
		{IB_DEST_LID, "08"},         {IB_DEST_LID, "0x"},
		{IB_DEST_LID, "49152"},      {IB_DEST_LID, "65536"},
		{IB_DEST_LID, "4294967304"}, {IB_DEST_LID, "18446744073709551624"},
		{IB_DEST_DRPATH, ""},        {IB_DEST_DRPATH, "x"},
		{IB_DEST_DRPATH, "0,256"},   {IB_DEST_GUID, ""},
		{IB_DEST_GUID, "0"},         {IB_DEST_GUID, "0x"},
		{IB_DEST_GUID, "0x1z"},      {IB_DEST_GUID, "0x1 z"},
		{IB_DEST_GUID, "-1"},        {IB_DEST_GUID, "0x10000000000000000"},
		{IB_DEST_GID, ""},           {IB_DEST_GID, "x"},
		{IB_DEST_GID, "fe80::1 "},   {IB_DEST_GID, "10.0.0.1"},
		{IB_DEST_DRSLID, ""},        {IB_DEST_DRSLID, "2"},
		{IB_DEST_DRSLID, "0,1"},     {IB_DEST_DRSLID, "x,1"},
		{IB_DEST_DRSLID, "2x1"},     {IB_DEST_DRSLID, "70000,1"},
		{(enum MAD_DEST)5, "8"},     {(enum MAD_DEST)77, "8"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_fails_minus_1(resolve(bad[i].kind, bad[i].text), EINVAL);
	}
	assert_int_equal(device_written(), 0);
	/* here the route is invalid */
	assert_fails_minus_1(resolve(IB_DEST_DRSLID, "2,"), EINVAL);
	assert_fails_minus_1(resolve(IB_DEST_DRSLID, "2,x"), EINVAL);
	assert_fails_minus_1(resolve(IB_DEST_DRSLID, "2 ,0,1"), EINVAL);
	assert_fails_minus_1(
		ib_resolve_portid_str_via(&resolved, NULL, IB_DEST_LID, NULL, fixture.port),
		EINVAL);
}
