/* SPDX-License-Identifier: BSD-2-Clause */

/* Vendor-specific classes, and baseboard management. */

#include "mad_fixture.h"
#include "test.h"

static ib_portid_t to;
static uint8_t buf[256];

static int setup(void)
{
	to = (ib_portid_t){.lid = 8};
	memset(buf, 0, sizeof(buf));
	buf[0] = 0xa1;
	buf[191] = 0xc3;
	buf[215] = 0xd4;
	buf[231] = 0xe5;
	buf[232] = 0xf6;
	return fixture_setup();
}

FIXTURE(setup, fixture_teardown);

/* --- vendor specific ------------------------------------------------------------ */

TEST(range_1_has_its_data_behind_the_header)
{
	ib_vendor_call_t call = {.method = IB_MAD_METHOD_GET,
				 .mgmt_class = 0x0a,
				 .attrid = 0x50,
				 .mod = 4,
				 .oui = 0x123456};

	to = (ib_portid_t){.lid = 8, .qp = 77, .sl = 2};
	assert_ptr_equal(ib_vendor_call_via(buf, &to, &call, fixture.port), buf);
	assert_int_equal(errno, 0);
	expect_mad(0, "0:010a0101 17:50 23:04 24:a1 215:c3 239:d4 255:e5");
	expect_address(0, 1, 0x80010000, 8, 2);
	expect_agent(0);
	assert_int_equal(buf[232], 0xf6);
}

TEST(range_2_has_an_oui)
{
	ib_vendor_call_t call = {.method = IB_MAD_METHOD_SET,
				 .mgmt_class = 0x33,
				 .attrid = 0x50,
				 .oui = 0x123456};

	to = (ib_portid_t){.lid = 8, .qkey = 9};
	assert_ptr_equal(ib_vendor_call_via(buf, &to, &call, fixture.port), buf);
	expect_mad(0, "0:01330102 17:50 37:123456 40:a1 231:c3 255:d4");
	expect_address(0, 1, 9, 8, 0);
	expect_agent(0);
	assert_int_equal(buf[231], 0xe5);
}

TEST(get_set_and_trap_wait_for_a_response)
{
	static const unsigned methods[] = {IB_MAD_METHOD_GET, IB_MAD_METHOD_SET,
					   IB_MAD_METHOD_TRAP};
	ib_vendor_call_t call = {.mgmt_class = 0x0a, .timeout = 5};

	be_silent();
	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
		call.method = methods[i];
		assert_fails_null(ib_vendor_call_via(buf, &to, &call, fixture.port), ETIMEDOUT);
	}
}

TEST(other_methods_only_send)
{
	static const unsigned methods[] = {IB_MAD_METHOD_SEND, IB_MAD_METHOD_TRAP_REPRESS,
					   IB_MAD_METHOD_GET_RESPONSE, 0x10};
	ib_vendor_call_t call = {.mgmt_class = 0x0a};
	uint8_t before[sizeof(buf)];

	fixture.silent = true;
	memcpy(before, buf, sizeof(buf));
	for (unsigned i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
		call.method = methods[i];
		assert_ptr_equal(ib_vendor_call_via(buf, &to, &call, fixture.port), buf);
		assert_int_equal(device_written(), i + 1);
		assert_int_equal(device_packet(i)->mad[3], methods[i]);
	}
	expect_mad(0, "0:010a0103 24:a1 215:c3 239:d4 255:e5");
	assert_memory_equal(buf, before, sizeof(buf));
}

TEST(a_vendor_s_response_comes_back_in_the_buffer)
{
	ib_vendor_call_t call = {
		.method = IB_MAD_METHOD_GET, .mgmt_class = 0x33, .attrid = 0x50};
	uint8_t data[IB_SMP_DATA_SIZE];

	/* the fixture writes at offset 64, which is 24 bytes into the data */
	fill(data, sizeof(data), 1);
	respond_with(0x33, 0x50, 0, data, sizeof(data));
	assert_non_null(ib_vendor_call_via(buf, &to, &call, fixture.port));
	assert_int_equal(buf[0], 0xa1);
	assert_memory_equal(buf + 24, data, sizeof(data));
}

TEST(a_vendor_s_status_is_an_io_error)
{
	ib_vendor_call_t call = {
		.method = IB_MAD_METHOD_GET, .mgmt_class = 0x0a, .attrid = 0x50};

	respond_with(0x0a, 0x50, 0x001c, NULL, 0);
	assert_fails_null(ib_vendor_call_via(buf, &to, &call, fixture.port), EIO);
}

TEST(a_device_that_refuses_a_send_is_told)
{
	ib_vendor_call_t call = {.method = IB_MAD_METHOD_SEND, .mgmt_class = 0x0a};

	device_fail(DEVICE_WRITE, 1, ENOMEM);
	assert_fails_null(ib_vendor_call_via(buf, &to, &call, fixture.port), ENOMEM);
}

TEST(what_is_no_vendor_call_is_refused)
{
	static const unsigned classes[] = {0x04, 0x08,  0x10,  0x2f,
					   0x50, 0x10a, 0x133, 0xffffffff};
	ib_vendor_call_t call = {.method = IB_MAD_METHOD_GET};

	for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++) {
		call.mgmt_class = classes[i];
		assert_fails_null(ib_vendor_call_via(buf, &to, &call, fixture.port), EINVAL);
	}
	/* a class of vendors, but not registered on this port */
	call.mgmt_class = 0x0b;
	assert_fails_null(ib_vendor_call_via(buf, &to, &call, fixture.port), EINVAL);
	call.mgmt_class = 0x0a;
	for (to.lid = -1; to.lid <= 0; to.lid++) {
		assert_fails_null(ib_vendor_call_via(buf, &to, &call, fixture.port), EINVAL);
	}
	assert_null(ib_vendor_call_via(buf, NULL, &call, fixture.port));
	assert_null(ib_vendor_call_via(buf, &to, NULL, fixture.port));
	assert_int_equal(device_written(), 0);
}

/* --- baseboard management ------------------------------------------------------- */

TEST(a_baseboard_call_has_its_key)
{
	ib_bm_call_t call = {.method = IB_MAD_METHOD_GET,
			     .attrid = IB_BM_ATTR_BKEYINFO,
			     .mod = 3,
			     .bkey = 0xaabbccddeeff0011};

	to = (ib_portid_t){.lid = 8, .qp = 7};
	assert_ptr_equal(bm_call_via(buf, &to, &call, fixture.port), buf);
	expect_mad(0, "0:01050101 17:10 23:03 24:aabbccddeeff0011 64:a1 255:c3");
	expect_address(0, 1, 0x80010000, 8, 0);
	expect_agent(0);
	assert_int_equal(buf[215], 0xd4);
}

TEST(a_baseboard_send_does_not_wait)
{
	ib_bm_call_t call = {.method = IB_MAD_METHOD_SEND, .attrid = IB_BM_ATTR_OEM};

	be_silent();
	assert_ptr_equal(bm_call_via(buf, &to, &call, fixture.port), buf);
	expect_mad(0, "0:01050103 17:2f 64:a1 255:c3");
	call.method = IB_MAD_METHOD_TRAP;
	assert_fails_null(bm_call_via(buf, &to, &call, fixture.port), ETIMEDOUT);
}

TEST(a_baseboard_s_response_comes_back_in_the_buffer)
{
	ib_bm_call_t call = {.method = IB_MAD_METHOD_SET, .attrid = IB_BM_ATTR_OEM};
	uint8_t data[IB_BM_DATA_SZ];

	fill(data, sizeof(data), 1);
	respond_with(IB_BOARD_MGMT_CLASS, IB_BM_ATTR_OEM, 0, data, sizeof(data));
	assert_non_null(bm_call_via(buf, &to, &call, fixture.port));
	assert_memory_equal(buf, data, sizeof(data));
	assert_int_equal(buf[215], 0xd4);
}

TEST(a_baseboard_call_needs_a_lid)
{
	ib_bm_call_t call = {.method = IB_MAD_METHOD_GET};

	to = (ib_portid_t){0};
	assert_fails_null(bm_call_via(buf, &to, &call, fixture.port), EINVAL);
	to.lid = 1;
	assert_null(bm_call_via(buf, NULL, &call, fixture.port));
	assert_null(bm_call_via(buf, &to, NULL, fixture.port));
	assert_int_equal(device_written(), 0);
}
