/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "packet.h"
#include "test.h"

#include <infiniband/umad_ext.h>

FIXTURE(fake_setup, fake_teardown);

struct buffer {
	struct ib_user_mad umad;
	uint8_t mad[256];
};

TEST(the_header_is_56_bytes_until_a_port_says_otherwise)
{
	struct buffer buffer;

	assert_int_equal(umad_size(), 56);
	assert_ptr_equal(umad_get_mad(&buffer), (char *)&buffer + 56);
	packet_set_layout(true);
	assert_int_equal(umad_size(), 64);
	assert_ptr_equal(umad_get_mad(&buffer), buffer.mad);
}

TEST(an_address_is_stored_in_network_order)
{
	struct buffer buffer = {0};

	assert_int_equal(umad_set_addr(&buffer, 0x1234, 1, 5, (int)0x80010000), 0);
	assert_true(buffer.umad.addr.lid == htobe16(0x1234));
	assert_true(buffer.umad.addr.qpn == htobe32(1));
	assert_int_equal(buffer.umad.addr.sl, 5);
	assert_true(buffer.umad.addr.qkey == htobe32(0x80010000));
	assert_int_equal(umad_set_addr_net(&buffer, htobe16(7), htobe32(8), 9, htobe32(10)), 0);
	assert_true(buffer.umad.addr.lid == htobe16(7));
	assert_true(buffer.umad.addr.qpn == htobe32(8));
	assert_int_equal(buffer.umad.addr.sl, 9);
	assert_true(buffer.umad.addr.qkey == htobe32(10));
	assert_ptr_equal(umad_get_mad_addr(&buffer), &buffer.umad.addr);
}

TEST(a_grh_is_copied_whole)
{
	ib_mad_addr_t grh = {.gid_index = 3,
			     .hop_limit = 64,
			     .traffic_class = 7,
			     .gid = {0xfe, 0x80, 1},
			     .flow_label = 0x12345};
	struct buffer buffer = {0};

	assert_int_equal(umad_set_grh(&buffer, &grh), 0);
	assert_int_equal(buffer.umad.addr.grh_present, 1);
	assert_int_equal(buffer.umad.addr.gid_index, 3);
	assert_int_equal(buffer.umad.addr.hop_limit, 64);
	assert_int_equal(buffer.umad.addr.traffic_class, 7);
	assert_memory_equal(buffer.umad.addr.gid, grh.gid, 16);
	assert_true(buffer.umad.addr.flow_label == htobe32(0x12345));

	memset(&buffer, 0, sizeof(buffer));
	assert_int_equal(umad_set_grh_net(&buffer, &grh), 0);
	assert_int_equal(buffer.umad.addr.gid_index, 3);
	assert_memory_equal(buffer.umad.addr.gid, grh.gid, 16);
	assert_true(buffer.umad.addr.flow_label == 0x12345);
}

TEST(without_a_grh_none_is_present)
{
	struct buffer buffer = {.umad.addr.grh_present = 1};

	assert_int_equal(umad_set_grh(&buffer, NULL), 0);
	assert_int_equal(buffer.umad.addr.grh_present, 0);
	buffer.umad.addr.grh_present = 1;
	assert_int_equal(umad_set_grh_net(&buffer, NULL), 0);
	assert_int_equal(buffer.umad.addr.grh_present, 0);
}

TEST(a_buffers_own_address_may_be_its_grh)
{
	struct buffer buffer = {.umad.addr = {.hop_limit = 9, .flow_label = 1}};

	assert_int_equal(umad_set_grh(&buffer, &buffer.umad.addr), 0);
	assert_int_equal(buffer.umad.addr.hop_limit, 9);
	assert_true(buffer.umad.addr.flow_label == htobe32(1));
}

TEST(a_pkey_index_goes_both_ways)
{
	struct buffer buffer = {0};

	packet_set_layout(true);
	assert_int_equal(umad_get_pkey(&buffer), 0);
	assert_int_equal(umad_set_pkey(&buffer, 65535), 0);
	assert_int_equal(umad_get_pkey(&buffer), 65535);
	assert_fails(umad_set_pkey(&buffer, 65536), EINVAL);
	assert_int_equal(umad_set_pkey(&buffer, -1), -EINVAL);
	assert_int_equal(umad_get_pkey(&buffer), 65535);
}

TEST(the_old_layout_keeps_pkeys_out_of_the_mad)
{
	struct buffer buffer, before;

	memset(&buffer, 0xa5, sizeof(buffer));
	before = buffer;
	packet_set_layout(false);
	assert_int_equal(umad_set_pkey(&buffer, 0), 0);
	assert_fails(umad_set_pkey(&buffer, 1), EOPNOTSUPP);
	assert_int_equal(umad_get_pkey(&buffer), 0);
	assert_memory_equal(&buffer, &before, sizeof(buffer));
}

TEST(the_status_is_the_kernels)
{
	struct buffer buffer = {.umad.status = ETIMEDOUT};

	assert_int_equal(umad_status(&buffer), 110);
}

TEST(null_is_refused)
{
	ib_mad_addr_t grh = {.flow_label = 1};

	assert_null(umad_get_mad(NULL));
	assert_null(umad_get_mad_addr(NULL));
	assert_int_equal(umad_status(NULL), -EINVAL);
	assert_int_equal(umad_set_addr(NULL, 0, 0, 0, 0), -EINVAL);
	assert_int_equal(umad_set_addr_net(NULL, 0, 0, 0, 0), -EINVAL);
	assert_int_equal(umad_set_grh(NULL, NULL), -EINVAL);
	assert_int_equal(umad_set_grh(NULL, &grh), -EINVAL);
	assert_int_equal(umad_set_grh_net(NULL, NULL), -EINVAL);
	assert_int_equal(umad_set_pkey(NULL, 0), -EINVAL);
	assert_int_equal(umad_get_pkey(NULL), -EINVAL);
}

TEST(buffers_come_zeroed_and_never_from_a_negative_number)
{
	uint8_t *buffers = umad_alloc(3, 100);

	for (int i = 0; i < 300; i++)
		assert_int_equal(buffers[i], 0);
	umad_free(buffers);
	umad_free(NULL);
	assert_null(umad_alloc(-1, 100));
}
