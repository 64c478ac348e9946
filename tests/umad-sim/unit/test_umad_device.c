/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The umad device: registration of agents, header layouts, failed writes, removal of devices.
 */
#include "device_fixture.h"
#include "test.h"

/* --- registration --------------------------------------------------------------- */

MACHINES_TEST(agents_get_the_lowest_free_id)
{
	for (int id = 0; id < 4; id++)
		assert_int_equal(agent(machines->alpha, VENDOR_CLASS, 0, 0), id);
	assert_int_equal(unregister(machines->alpha, 1), 0);
	assert_int_equal(unregister(machines->alpha, 2), 0);
	assert_int_equal(agent(machines->alpha, VENDOR_CLASS, 0, 0), 1);
	assert_int_equal(agent(machines->alpha, VENDOR_CLASS, 0, 0), 2);
	assert_int_equal(agent(machines->alpha, VENDOR_CLASS, 0, 0), 4);
}

MACHINES_TEST(a_descriptor_has_32_agents_and_no_more)
{
	struct device *other = open_device(machines->subnet, ALPHA);

	for (int id = 0; id < 32; id++)
		assert_int_equal(agent(machines->alpha, VENDOR_CLASS, 0, 0), id);
	assert_int_equal(agent(machines->alpha, VENDOR_CLASS, 0, 0), -ENOMEM);
	assert_int_equal(agent(other, VENDOR_CLASS, 0, 0), 0);
	close_device(other);
}

MACHINES_TEST(a_method_that_is_served_already_is_refused)
{
	struct device *other = open_device(machines->subnet, ALPHA);

	assert_int_equal(agent(machines->alpha, PING_CLASS, 0, 1), 0);
	assert_int_equal(agent(machines->alpha, PING_CLASS, 0, 1), -EINVAL);
	assert_int_equal(agent(other, PING_CLASS, 0, 1), -EINVAL);
	assert_int_equal(agent(machines->gamma, PING_CLASS, 0, 1), 0); /* another port */
	assert_int_equal(unregister(machines->alpha, 0), 0);
	assert_int_equal(agent(other, PING_CLASS, 0, 1), 0);
	close_device(other);
	assert_int_equal(agent(machines->alpha, PING_CLASS, 0, 1), 0);
}

MACHINES_TEST(disjoint_methods_of_a_class_are_served_side_by_side)
{
	assert_int_equal(agent(machines->alpha, PING_CLASS, 0, 1), 0);
	assert_int_equal(agent(machines->alpha, PING_CLASS, 0, 2), 1);
	assert_int_equal(agent(machines->alpha, PING_CLASS, 0, 0x7f), 2);
	assert_int_equal(agent(machines->alpha, PING_CLASS, 0, 0x7f), -EINVAL);
}

static struct ib_user_mad_reg_req2 ping_server(void)
{
	return (struct ib_user_mad_reg_req2){.qpn = 1,
					     .mgmt_class = PING_CLASS,
					     .mgmt_class_version = 1,
					     .method_mask = {2, 0},
					     .oui = OUI};
}

MACHINES_TEST(a_registration_gets_the_next_id_or_is_refused)
{
	static const struct {
		uint32_t qpn;
		uint8_t class, version;
		uint32_t oui;
		int result;
	} rows[] = {
		{1, PING_CLASS, 1, OUI, 0},
		{1, PING_CLASS, 1, OUI + 1, 1}, /* another OUI is served beside the first */
		{1, PING_CLASS, 1, OUI + 1, -EINVAL},
		{1, PING_CLASS, 2, OUI, 2},     /* and another class version */
		{1, PING_CLASS, 1, 0, -EINVAL}, /* a server of range 2 needs an OUI */
		{1, VENDOR_CLASS, 1, 0, 3},
		{1, PING_CLASS, 1, 0x1000000, -EINVAL}, /* an OUI has 24 bits */
		{1, PING_CLASS, 1, 0xffffff, 4},
		{2, PING_CLASS, 1, OUI, -EINVAL},
		{257, PING_CLASS, 1, OUI, -EINVAL},
		{0, PING_CLASS, 1, OUI, -EINVAL}, /* QP0 is for subnet management only */
		{1, CLASS_SMP, 1, OUI, -EINVAL},
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct ib_user_mad_reg_req2 request = ping_server();

		request.qpn = rows[i].qpn;
		request.mgmt_class = rows[i].class;
		request.mgmt_class_version = rows[i].version;
		request.oui = rows[i].oui;
		assert_int_equal(agent2(machines->alpha, &request), rows[i].result);
	}
}

MACHINES_TEST(classes_from_0x50_on_are_refused)
{
	assert_int_equal(agent(machines->alpha, 0x4f, 0, 0), 0);
	assert_int_equal(agent(machines->alpha, 0x50, 0, 0), -EINVAL);
	assert_int_equal(agent(machines->alpha, 0x80, 0, 0), -EINVAL);
	assert_int_equal(agent(machines->alpha, 0xff, 0, 0), -EINVAL);
	assert_int_equal(agent(machines->alpha, CLASS_DIRECTED_SMP, 0, 0), 1);
}

MACHINES_TEST(rmpp_is_for_the_classes_that_have_it)
{
	static const uint8_t with[] = {0x03, 0x06, 0x10, 0x12, 0x30, 0x40, 0x4f};
	static const uint8_t without[] = {0x04, 0x05, 0x07, 0x08, 0x09, 0x21};
	struct ib_user_mad_reg_req2 own = {.qpn = 1,
					   .mgmt_class = CLASS_SA,
					   .mgmt_class_version = 1,
					   .rmpp_version = 1,
					   .flags = IB_USER_MAD_USER_RMPP};
	for (size_t i = 0; i < COUNT_OF(with); i++)
		assert_int_equal(agent(machines->alpha, with[i], 1, 0), i);
	assert_in_range(agent2(machines->alpha, &own), 0, 31); /* a program's own RMPP */
	for (size_t i = 0; i < COUNT_OF(without); i++) {
		assert_int_equal(agent(machines->alpha, without[i], 1, 0), -EINVAL);
		/* ib_register_mad_agent() does not check the flag here */
		own.mgmt_class = without[i];
		assert_int_equal(agent2(machines->alpha, &own), -EINVAL);
		assert_in_range(agent(machines->alpha, without[i], 0, 0), 0, 31);
	}
}

MACHINES_TEST(there_is_one_version_of_rmpp)
{
	assert_int_equal(agent(machines->alpha, CLASS_SA, 2, 0), -EINVAL);
	assert_int_equal(agent(machines->alpha, CLASS_SA, 255, 0), -EINVAL);
	assert_int_equal(agent(machines->alpha, CLASS_SA, 1, 0), 0);
}

MACHINES_TEST(an_unknown_flag_is_refused_with_those_that_there_are)
{
	struct ib_user_mad_reg_req2 request = ping_server();

	request.flags = 4;
	assert_int_equal(agent2(machines->alpha, &request), -EINVAL);
	assert_int_equal(request.flags, 1);
	request.flags = 1;
	assert_int_equal(agent2(machines->alpha, &request), 0);
}

MACHINES_TEST(an_unknown_id_is_not_unregistered)
{
	assert_int_equal(unregister(machines->alpha, 0), -EINVAL);
	assert_int_equal(agent(machines->alpha, VENDOR_CLASS, 0, 0), 0);
	assert_int_equal(unregister(machines->alpha, 0), 0);
	assert_int_equal(unregister(machines->alpha, 0), -EINVAL);
	assert_int_equal(unregister(machines->alpha, 32), -EINVAL);
	assert_int_equal(unregister(machines->alpha, UINT32_MAX), -EINVAL);
}

MACHINES_TEST(an_unknown_ioctl_is_refused)
{
	uint32_t nothing = 0;

	assert_int_equal(call(machines->alpha, 0x1b05, &nothing, 4), -ENOTTY);
	assert_int_equal(call(machines->alpha, 0, &nothing, 4), -ENOTTY);
}

/* --- the header's layout -------------------------------------------------------- */

MACHINES_TEST(p_keys_are_enabled_before_there_is_an_agent)
{
	assert_int_equal(enable_pkey(machines->alpha), 0);
	assert_int_equal(enable_pkey(machines->alpha), 0);
	assert_int_equal(layout(machines->alpha), 64);
	assert_int_equal(agent(machines->alpha, VENDOR_CLASS, 0, 0), 0);
	assert_int_equal(layout(machines->alpha), 64);
	assert_int_equal(layout(machines->gamma), 56); /* each descriptor has its own */
}

MACHINES_TEST(p_keys_are_not_enabled_once_there_was_an_agent)
{
	assert_int_equal(agent(machines->alpha, VENDOR_CLASS, 0, 0), 0);
	assert_int_equal(enable_pkey(machines->alpha), -EINVAL);
	assert_int_equal(unregister(machines->alpha, 0), 0);
	assert_int_equal(enable_pkey(machines->alpha), -EINVAL);
	assert_int_equal(layout(machines->alpha), 56);
}

MACHINES_TEST(the_newer_registration_brings_the_newer_layout)
{
	struct ib_user_mad_reg_req2 request = ping_server();

	request.flags = 2;
	assert_int_equal(agent2(machines->alpha, &request), -EINVAL);
	assert_int_equal(layout(machines->alpha), 56);
	request.flags = 0;
	assert_int_equal(agent2(machines->alpha, &request), 0);
	assert_int_equal(layout(machines->alpha), 64);
}

/* --- write() -------------------------------------------------------------------- */

static int write_bytes(struct device *device, uint8_t class, uint32_t id, size_t length,
		       uint8_t flags)
{
	struct destination to = {.id = id, .lid = 1};
	uint8_t mad[1024];

	make_mad(mad, sizeof(mad), class, METHOD_SEND, 1);
	mad[26] = flags;
	return write_mad(device, &to, mad, length);
}

MACHINES_TEST(less_than_a_header_of_36_bytes_is_refused)
{
	assert_int_equal(agent(machines->alpha, VENDOR_CLASS, 0, 0), 0);
	assert_int_equal(write_bytes(machines->alpha, VENDOR_CLASS, 0, 0, 0), -EINVAL);
	assert_int_equal(write_bytes(machines->alpha, VENDOR_CLASS, 0, 35, 0), -EINVAL);
	assert_int_equal(write_bytes(machines->alpha, VENDOR_CLASS, 0, 36, 0), 0);
}

MACHINES_TEST(less_than_a_class_s_header_is_refused)
{
	assert_int_equal(agent(machines->alpha, PING_CLASS, 0, 0), 0);
	assert_int_equal(write_bytes(machines->alpha, PING_CLASS, 0, 39, 0), -EINVAL);
	assert_int_equal(write_bytes(machines->alpha, PING_CLASS, 0, 40, 0), 0);
	assert_int_equal(write_bytes(machines->alpha, CLASS_SA, 0, 55, 0), -EINVAL);
	assert_int_equal(write_bytes(machines->alpha, CLASS_SA, 0, 56, 0), 0);
}

MACHINES_TEST(more_than_256_bytes_need_rmpp_that_is_active)
{
	struct ib_user_mad_reg_req2 request = {.qpn = 1,
					       .mgmt_class = CLASS_SA,
					       .mgmt_class_version = 2,
					       .rmpp_version = 1,
					       .flags = IB_USER_MAD_USER_RMPP};

	assert_int_equal(agent(machines->alpha, CLASS_SA, 0, 0), 0);
	assert_int_equal(agent(machines->alpha, CLASS_SA, 1, 0), 1);
	assert_int_equal(agent2(machines->alpha, &request), 2);
	assert_int_equal(write_bytes(machines->alpha, CLASS_SA, 0, 256, ACTIVE), 0);
	assert_int_equal(write_bytes(machines->alpha, CLASS_SA, 0, 257, ACTIVE), -EINVAL);
	assert_int_equal(write_bytes(machines->alpha, CLASS_SA, 1, 257, 0), -EINVAL);
	assert_int_equal(write_bytes(machines->alpha, CLASS_SA, 1, 257, ACTIVE), 0);
	assert_int_equal(write_bytes(machines->alpha, VENDOR_CLASS, 1, 257, ACTIVE), -EINVAL);
	assert_int_equal(write_bytes(machines->alpha, CLASS_SA, 2, 257, ACTIVE), -EINVAL);
}

MACHINES_TEST(an_agent_that_is_not_there_does_not_write)
{
	assert_int_equal(write_bytes(machines->alpha, VENDOR_CLASS, 0, 256, 0), -EIO);
	assert_int_equal(write_bytes(machines->alpha, VENDOR_CLASS, 31, 256, 0), -EIO);
	assert_int_equal(write_bytes(machines->alpha, VENDOR_CLASS, 32, 256, 0), -EINVAL);
	assert_int_equal(write_bytes(machines->alpha, VENDOR_CLASS, UINT32_MAX, 256, 0),
			 -EINVAL);
	assert_int_equal(agent(machines->alpha, VENDOR_CLASS, 0, 0), 0);
	assert_int_equal(unregister(machines->alpha, 0), 0);
	assert_int_equal(write_bytes(machines->alpha, VENDOR_CLASS, 0, 256, 0), -EIO);
}

/* --- removal -------------------------------------------------------------------- */

static struct host_port *host_of(const struct machines *machines)
{
	return host_at(fabric_of(machines), port_of(machines->subnet, ALPHA, 1));
}

MACHINES_TEST(a_removed_device_has_no_agents_and_refuses_all)
{
	struct ib_user_mad_reg_req2 request = ping_server();

	assert_int_equal(agent(machines->alpha, PING_CLASS, 0, 1), 0);
	host_remove(host_of(machines));
	assert_int_equal(machines->alpha->removed, 1);
	assert_int_equal(atomic_load(&machines->alpha->shared.gone), 1);
	assert_int_equal(atomic_load(&machines->alpha->shared.agents[0]), 0);
	assert_int_equal(write_bytes(machines->alpha, PING_CLASS, 0, 256, 0), -EIO);
	assert_int_equal(agent(machines->alpha, VENDOR_CLASS, 0, 0), -EPIPE);
	assert_int_equal(agent2(machines->alpha, &request), -EPIPE);
	assert_int_equal(unregister(machines->alpha, 0), -EINVAL);
	assert_int_equal(machines->gamma->removed, 0); /* another device */
}

MACHINES_TEST(unread_messages_of_a_removed_device_are_lost)
{
	struct destination to = {.lid = lid_of(machines->subnet, ALPHA)};
	uint8_t mad[MAD_BYTES];

	assert_int_equal(agent(machines->alpha, VENDOR_CLASS, 0, METHOD_SEND), 0);
	assert_int_equal(agent(machines->gamma, VENDOR_CLASS, 0, 0), 0);
	make_mad(mad, MAD_BYTES, VENDOR_CLASS, METHOD_SEND, 1);
	assert_int_equal(write_mad(machines->gamma, &to, mad, MAD_BYTES), 0);
	settle(fabric_of(machines));
	assert_int_equal(machines->alpha->readable, 1);
	host_remove(host_of(machines));
	assert_null(read_message(machines->alpha));
}

MACHINES_TEST(requests_of_a_removed_device_end_without_a_report)
{
	struct destination to = {.lid = 0x1234, .timeout = 100};
	uint8_t mad[MAD_BYTES];

	assert_int_equal(agent(machines->alpha, VENDOR_CLASS, 0, 0), 0);
	make_mad(mad, MAD_BYTES, VENDOR_CLASS, METHOD_GET, 1);
	assert_int_equal(write_mad(machines->alpha, &to, mad, MAD_BYTES), 0);
	host_remove(host_of(machines));
	pass(fabric_of(machines), SECOND);
	assert_null(read_message(machines->alpha));
}

MACHINES_TEST(a_device_that_is_back_is_opened_anew)
{
	struct device *again;

	assert_int_equal(agent(machines->alpha, PING_CLASS, 0, 1), 0);
	host_remove(host_of(machines));
	host_add(host_of(machines));
	again = open_device(machines->subnet, ALPHA);
	assert_int_equal(agent(again, PING_CLASS, 0, 1), 0);
	assert_int_equal(write_bytes(again, PING_CLASS, 0, 256, 0), 0);
	close_device(again);
}

MACHINES_TEST(a_descriptor_from_before_stays_dead)
{
	host_remove(host_of(machines));
	host_add(host_of(machines));
	assert_int_equal(write_bytes(machines->alpha, PING_CLASS, 0, 256, 0), -EIO);
	assert_int_equal(agent(machines->alpha, PING_CLASS, 0, 1), -EPIPE);
}
