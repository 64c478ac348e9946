/* SPDX-License-Identifier: BSD-2-Clause */

/* Widths, speeds, rates and MTUs of links (IBA 14.2.5.6). */

#include "test.h"

#include <infiniband/mad_link.h>

static uint8_t info[IB_SMP_DATA_SIZE], port0[IB_SMP_DATA_SIZE], mlnx[IB_SMP_DATA_SIZE];
static struct mad_link decoded;

static int setup(void)
{
	memset(info, 0, sizeof(info));
	memset(port0, 0, sizeof(port0));
	memset(mlnx, 0, sizeof(mlnx));
	mad_set_field(info, 0, IB_PORT_STATE_F, MAD_PORT_ACTIVE);
	mad_set_field(info, 0, IB_PORT_PHYS_STATE_F, MAD_PHYSICAL_LINK_UP);
	mad_set_field(info, 0, IB_PORT_LINK_WIDTH_ACTIVE_F, MAD_WIDTH_4X);
	mad_set_field(info, 0, IB_PORT_CAPMASK_F, MAD_PORT_CAP_EXTENDED_SPEEDS);
	return 0;
}

FIXTURE(setup, NULL);

TEST(each_speed_has_its_rate)
{
	static const struct {
		enum MAD_FIELDS field;
		unsigned value, speed;
		const char *name;
		double rate; /* of four lanes */
	} rows[] = {
		{IB_PORT_LINK_SPEED_ACTIVE_F, 1, MAD_SPEED_SDR, "SDR", 10},
		{IB_PORT_LINK_SPEED_ACTIVE_F, 2, MAD_SPEED_DDR, "DDR", 20},
		{IB_PORT_LINK_SPEED_ACTIVE_F, 4, MAD_SPEED_QDR, "QDR", 40},
		{IB_PORT_LINK_SPEED_EXT_ACTIVE_F, 1, MAD_SPEED_FDR, "FDR", 56},
		{IB_PORT_LINK_SPEED_EXT_ACTIVE_F, 2, MAD_SPEED_EDR, "EDR", 100},
		{IB_PORT_LINK_SPEED_EXT_ACTIVE_F, 4, MAD_SPEED_HDR, "HDR", 200},
		{IB_PORT_LINK_SPEED_EXT_ACTIVE_F, 8, MAD_SPEED_NDR, "NDR", 400},
		{IB_PORT_LINK_SPEED_EXT_ACTIVE_2_F, 1, MAD_SPEED_XDR, "XDR", 800},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setup();
		mad_set_field(info, 0, rows[i].field, rows[i].value);
		mad_link_decode(&decoded, sizeof(decoded), info, NULL, NULL);
		assert_int_equal(decoded.speed, rows[i].speed);
		assert_string_equal(mad_link_speed_name(decoded.speed), rows[i].name);
		assert_int_equal(decoded.width, 4);
		assert_true(decoded.rate_gbps == rows[i].rate);
	}
}

static void expect_lanes(unsigned widths, unsigned lanes)
{
	mad_set_field(info, 0, IB_PORT_LINK_WIDTH_SUPPORTED_F, widths);
	mad_set_field(info, 0, IB_PORT_LINK_WIDTH_ENABLED_F, MAD_WIDTH_1X);
	mad_link_decode(&decoded, sizeof(decoded), info, NULL, NULL);
	assert_int_equal(decoded.width_supported, lanes);
	assert_int_equal(decoded.width_enabled, 1);
}

TEST(each_width_has_its_lanes)
{
	expect_lanes(MAD_WIDTH_1X, 1);
	expect_lanes(MAD_WIDTH_2X, 2);
	expect_lanes(MAD_WIDTH_1X | MAD_WIDTH_2X | MAD_WIDTH_4X, 4);
	expect_lanes(MAD_WIDTH_8X | MAD_WIDTH_2X, 8);
	expect_lanes(31, 12);
	expect_lanes(0, 0);
	expect_lanes(0xe0, 0);
}

/* A program that was compiled with another mad_link. */
TEST(a_link_may_be_shorter_or_longer_than_the_library_knows)
{
	struct {
		struct mad_link link;
		uint8_t later[8];
	} longer;

	mad_set_field(info, 0, IB_PORT_LINK_SPEED_ACTIVE_F, 4);
	mad_link_decode(&decoded, sizeof(decoded), info, NULL, NULL);
	memset(&longer, 0xa5, sizeof(longer));
	mad_link_decode(&longer.link, sizeof(longer), info, NULL, NULL);
	assert_memory_equal(&longer.link, &decoded, sizeof(decoded));
	for (size_t i = 0; i < sizeof(longer.later); i++)
		assert_int_equal(longer.later[i], 0);
	memset(&longer, 0xa5, sizeof(longer));
	mad_link_decode(&longer.link, offsetof(struct mad_link, width_supported), info, NULL,
			NULL);
	assert_int_equal(longer.link.width, 4);
	assert_int_equal(longer.link.width_supported, 0xa5);
	mad_link_decode(&longer.link, 0, info, NULL, NULL);
}

TEST(fdr10_is_in_the_port_info_of_mellanox)
{
	mad_set_field(info, 0, IB_PORT_LINK_SPEED_ACTIVE_F, 4);
	mad_set_field(info, 0, IB_PORT_LINK_SPEED_SUPPORTED_F, 7);
	mad_set_field(mlnx, 0, IB_MLNX_EXT_PORT_LINK_SPEED_ACTIVE_F, 1);
	mad_set_field(mlnx, 0, IB_MLNX_EXT_PORT_LINK_SPEED_SUPPORTED_F, 1);
	mad_link_decode(&decoded, sizeof(decoded), info, NULL, mlnx);
	assert_int_equal(decoded.speed, MAD_SPEED_FDR10);
	assert_true(decoded.rate_gbps == 40);
	assert_int_equal(decoded.speed_supported, MAD_SPEED_FDR10);
}

TEST(extended_speeds_count_if_the_capabilities_say_so)
{
	mad_set_field(info, 0, IB_PORT_LINK_SPEED_ACTIVE_F, 4);
	mad_set_field(info, 0, IB_PORT_LINK_SPEED_EXT_ACTIVE_F, 2);
	mad_set_field(info, 0, IB_PORT_CAPMASK_F, 0);
	mad_link_decode(&decoded, sizeof(decoded), info, NULL, NULL);
	assert_int_equal(decoded.speed, MAD_SPEED_QDR);
	/* for a switch, the capabilities of port 0 count */
	mad_set_field(port0, 0, IB_PORT_CAPMASK_F, MAD_PORT_CAP_EXTENDED_SPEEDS);
	mad_link_decode(&decoded, sizeof(decoded), info, port0, NULL);
	assert_int_equal(decoded.speed, MAD_SPEED_EDR);
	mad_link_decode(&decoded, sizeof(decoded), port0, info, NULL);
	assert_int_equal(decoded.speed, MAD_SPEED_NONE);
}

TEST(what_is_enabled_may_be_what_is_supported)
{
	mad_set_field(info, 0, IB_PORT_LINK_WIDTH_SUPPORTED_F, MAD_WIDTH_1X | MAD_WIDTH_4X);
	mad_set_field(info, 0, IB_PORT_LINK_WIDTH_ENABLED_F, 255);
	mad_set_field(info, 0, IB_PORT_LINK_SPEED_SUPPORTED_F, 7);
	mad_set_field(info, 0, IB_PORT_LINK_SPEED_ENABLED_F, 15);
	mad_set_field(info, 0, IB_PORT_LINK_SPEED_EXT_SUPPORTED_F, 3);
	mad_set_field(info, 0, IB_PORT_LINK_SPEED_EXT_ENABLED_F, 31);
	mad_link_decode(&decoded, sizeof(decoded), info, NULL, NULL);
	assert_int_equal(decoded.widths_enabled, decoded.widths_supported);
	assert_int_equal(decoded.speeds_enabled, decoded.speeds_supported);
	assert_int_equal(decoded.speed_enabled, MAD_SPEED_EDR);
	mad_set_field(info, 0, IB_PORT_LINK_SPEED_EXT_ENABLED_F, 30); /* disabled */
	mad_link_decode(&decoded, sizeof(decoded), info, NULL, NULL);
	assert_int_equal(decoded.speed_enabled, MAD_SPEED_QDR);
}

TEST(a_port_that_is_down_has_no_rate)
{
	mad_set_field(info, 0, IB_PORT_LINK_SPEED_ACTIVE_F, 4);
	mad_set_field(info, 0, IB_PORT_STATE_F, MAD_PORT_DOWN);
	mad_set_field(info, 0, IB_PORT_PHYS_STATE_F, MAD_PHYSICAL_POLLING);
	mad_link_decode(&decoded, sizeof(decoded), info, NULL, NULL);
	assert_int_equal(decoded.width, 0);
	assert_int_equal(decoded.speed, MAD_SPEED_NONE);
	assert_true(decoded.rate_gbps == 0);
}

TEST(mtus_are_bytes)
{
	static const unsigned bytes[] = {0, 256, 512, 1024, 2048, 4096, 0, 0};

	for (unsigned code = 0; code < 8; code++)
		assert_int_equal(mad_link_mtu(code), bytes[code]);
	mad_set_field(info, 0, IB_PORT_NEIGHBOR_MTU_F, 4);
	mad_set_field(info, 0, IB_PORT_MTU_CAP_F, 15);
	mad_link_decode(&decoded, sizeof(decoded), info, NULL, NULL);
	assert_int_equal(decoded.mtu, 2048);
	assert_int_equal(decoded.mtu_supported, 0);
}

TEST(what_is_no_speed_has_no_rate)
{
	assert_string_equal(mad_link_speed_name(MAD_SPEED_NONE), "");
	assert_string_equal(mad_link_speed_name(MAD_SPEED_XDR + 1), "?");
	assert_true(mad_link_rate_gbps(4, MAD_SPEED_NONE) == 0);
	assert_true(mad_link_rate_gbps(4, MAD_SPEED_XDR + 1) == 0);
	assert_true(mad_link_rate_gbps(0, MAD_SPEED_EDR) == 0);
	assert_true(mad_link_rate_gbps(1, MAD_SPEED_SDR) == 2.5);
}
