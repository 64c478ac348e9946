/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "kernel_abi.h"
#include "test.h"

#include <infiniband/umad_ext.h>
#include <limits.h>

static struct fake_device *device;
static int fd;

static int setup(void)
{
	if (fake_setup())
		return -1;
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	fake_umad(0, "mlx5_0", 1);
	device = fake_device("umad0");
	fd = umad_open_port("mlx5_0", 1);
	return fd < 0 ? -1 : 0;
}

static int teardown(void)
{
	umad_close_port(fd);
	return fake_teardown();
}

FIXTURE(setup, teardown);

/* The last registration that the kernel received, by either ioctl. */
static struct ib_user_mad_reg_req asked(void)
{
	struct ib_user_mad_reg_req req;

	assert_int_equal(device->registered_by, IB_USER_MAD_REGISTER_AGENT);
	memcpy(&req, device->registered, sizeof(req));
	return req;
}

static struct ib_user_mad_reg_req2 asked2(void)
{
	struct ib_user_mad_reg_req2 req;

	assert_int_equal(device->registered_by, IB_USER_MAD_REGISTER_AGENT2);
	memcpy(&req, device->registered, sizeof(req));
	return req;
}

TEST(a_client_has_no_methods)
{
	struct ib_user_mad_reg_req req;
	uint8_t none[16] = {0};

	device->next_id = 3;
	assert_int_equal(umad_register(fd, 4, 1, 0, NULL), 3);
	req = asked();
	assert_int_equal(req.mgmt_class, 4);
	assert_int_equal(req.mgmt_class_version, 1);
	assert_int_equal(req.rmpp_version, 0);
	assert_int_equal(req.qpn, 1);
	assert_memory_equal(req.oui, "\x00\x14\x05", 3);
	assert_memory_equal(req.method_mask, none, 16);
}

TEST(a_servers_methods_are_passed_on)
{
	long mask[16 / sizeof(long)] = {0x6};
	struct ib_user_mad_reg_req req;

	assert_int_equal(umad_register(fd, 0x32, 1, 1, mask), 0);
	req = asked();
	assert_memory_equal(req.method_mask, mask, 16);
	assert_int_equal(req.rmpp_version, 1);
}

TEST(smps_go_by_qp0_and_everything_else_by_qp1)
{
	for (int mgmt_class = 0; mgmt_class < 256; mgmt_class++) {
		assert_true(umad_register(fd, mgmt_class, 1, 0, NULL) >= 0);
		assert_int_equal(asked().qpn, mgmt_class != 0x01 && mgmt_class != 0x81);
	}
}

TEST(the_kernels_refusal_is_eperm_with_its_errno)
{
	uint8_t oui[] = {1, 2, 3};

	device->register_error = EPROTONOSUPPORT;
	assert_int_equal(umad_register(fd, 4, 1, 0, NULL), -EPERM);
	assert_int_equal(errno, EPROTONOSUPPORT);
	assert_int_equal(umad_register_oui(fd, 0x30, 0, oui, NULL), -EPERM);
	assert_int_equal(errno, EPROTONOSUPPORT);
}

TEST(a_class_or_version_beyond_a_byte_is_refused)
{
	assert_int_equal(umad_register(fd, 256, 1, 0, NULL), -EINVAL);
	assert_int_equal(umad_register(fd, -1, 1, 0, NULL), -EINVAL);
	assert_int_equal(umad_register(fd, 4, 256, 0, NULL), -EINVAL);
	assert_fails(umad_register(fd, 4, -1, 0, NULL), EINVAL);
	assert_int_equal(device->registered_by, 0);
}

TEST(a_version_may_be_any_byte)
{
	const int versions[] = {0, 2, 255};

	for (unsigned i = 0; i < 3; i++) {
		assert_true(umad_register(fd, 4, versions[i], 0, NULL) >= 0);
		assert_int_equal(asked().mgmt_class_version, versions[i]);
	}
}

TEST(an_oui_goes_with_vendor_range_2_alone)
{
	uint8_t oui[] = {0x11, 0x22, 0x33};
	struct ib_user_mad_reg_req req;

	assert_int_equal(umad_register_oui(fd, 0x4f, 1, oui, NULL), 0);
	req = asked();
	assert_int_equal(req.mgmt_class, 0x4f);
	assert_int_equal(req.mgmt_class_version, 1);
	assert_int_equal(req.rmpp_version, 1);
	assert_int_equal(req.qpn, 1);
	assert_memory_equal(req.oui, oui, 3);
	assert_int_equal(umad_register_oui(fd, 0x2f, 1, oui, NULL), -EINVAL);
	assert_int_equal(umad_register_oui(fd, 0x50, 1, oui, NULL), -EINVAL);
	assert_int_equal(umad_register_oui(fd, 0x130, 1, oui, NULL), -EINVAL);
	assert_fails(umad_register_oui(fd, 0x30, 1, NULL, NULL), EINVAL);
}

TEST(register2_passes_everything_on)
{
	struct umad_reg_attr attr = {.mgmt_class = 0x32,
				     .mgmt_class_version = 2,
				     .flags = UMAD_USER_RMPP,
				     .method_mask = {0x0123456789abcdef, 0x8000000000000001},
				     .oui = 0x112233,
				     .rmpp_version = 1};
	struct ib_user_mad_reg_req2 req;
	uint32_t id = 77;

	device->next_id = 5;
	assert_int_equal(umad_register2(fd, &attr, &id), 0);
	assert_int_equal(id, 5);
	req = asked2();
	assert_int_equal(req.qpn, 1);
	assert_int_equal(req.mgmt_class, 0x32);
	assert_int_equal(req.mgmt_class_version, 2);
	assert_int_equal(req.flags, 1);
	assert_true(req.method_mask[0] == 0x0123456789abcdef);
	assert_true(req.method_mask[1] == 0x8000000000000001);
	assert_int_equal(req.oui, 0x112233);
	assert_int_equal(req.rmpp_version, 1);
}

TEST(flags_that_the_kernel_refuses_come_back_as_those_it_knows)
{
	struct umad_reg_attr attr = {.mgmt_class = 4, .flags = 0x81};
	uint32_t id;

	assert_errno(assert_int_equal(umad_register2(fd, &attr, &id), EINVAL), EINVAL);
	assert_int_equal(attr.flags, UMAD_USER_RMPP);
}

TEST(without_the_second_ioctl_the_first_does_unless_flags_are_asked_for)
{
	struct umad_reg_attr attr = {.mgmt_class = 0x32,
				     .mgmt_class_version = 1,
				     .method_mask = {0x8000000000000003, 0x8000000000000001},
				     .oui = 0x112233,
				     .rmpp_version = 1};
	struct ib_user_mad_reg_req req;
	unsigned long mask[16 / sizeof(long)] = {0x3};
	uint32_t id = 77;

	mask[8 / sizeof(long) - 1] |= 1UL << (8 * sizeof(long) - 1);
	mask[8 / sizeof(long)] |= 1;
	mask[16 / sizeof(long) - 1] |= 1UL << (8 * sizeof(long) - 1);
	device->no_pkey = true;
	assert_int_equal(umad_register2(fd, &attr, &id), 0);
	assert_int_equal(id, 0);
	req = asked();
	assert_int_equal(req.mgmt_class, 0x32);
	assert_int_equal(req.rmpp_version, 1);
	assert_int_equal(req.qpn, 1);
	assert_memory_equal(req.oui, "\x11\x22\x33", 3);
	assert_memory_equal(req.method_mask, mask, 16);
	attr.flags = UMAD_USER_RMPP;
	assert_int_equal(umad_register2(fd, &attr, &id), ENOTTY);
	assert_int_equal(attr.flags, 0);
}

TEST(the_second_ioctl_switches_the_layout_over)
{
	struct umad_reg_attr attr = {.mgmt_class = 4};
	uint32_t id;
	int old;

	device->no_pkey = true;
	old = umad_open_port("mlx5_0", 1);
	assert_int_equal(umad_size(), 56);
	device->no_pkey = false;
	assert_int_equal(umad_register2(old, &attr, &id), 0);
	assert_int_equal(umad_size(), 64);
	umad_close_port(old);
}

TEST(register2_refuses_what_makes_no_sense)
{
	struct umad_reg_attr attr = {.mgmt_class = 0x30};
	uint32_t id;

	assert_int_equal(umad_register2(fd, &attr, &id), EINVAL);
	attr.oui = 0x1000000;
	assert_int_equal(umad_register2(fd, &attr, &id), EINVAL);
	attr.oui = 0xffffff;
	assert_int_equal(umad_register2(fd, &attr, NULL), EINVAL);
	assert_errno(assert_int_equal(umad_register2(fd, NULL, &id), EINVAL), EINVAL);
	assert_int_equal(device->registered_by, 0);
	assert_int_equal(umad_register2(fd, &attr, &id), 0);
}

TEST(register2_returns_the_kernels_errno)
{
	struct umad_reg_attr attr = {.mgmt_class = 4};
	uint32_t id = 77;

	device->register_error = ENOMEM;
	assert_errno(assert_int_equal(umad_register2(fd, &attr, &id), ENOMEM), ENOMEM);
	assert_int_equal(id, 77);
}

TEST(an_id_that_no_int_can_hold_is_an_error)
{
	struct umad_reg_attr attr = {.mgmt_class = 4};
	uint32_t id = 77;

	device->next_id = INT_MAX;
	assert_int_equal(umad_register(fd, 4, 1, 0, NULL), INT_MAX);
	device->next_id = 0x80000000;
	assert_errno(assert_int_equal(umad_register(fd, 4, 1, 0, NULL), -EPERM), EIO);
	assert_int_equal(umad_register2(fd, &attr, &id), EIO);
	assert_int_equal(id, 77);
}

TEST(an_agent_is_unregistered_by_its_id)
{
	device->next_id = 4;
	assert_int_equal(umad_unregister(fd, 3), 0);
	assert_int_equal(device->unregistered, 3);
	assert_int_equal(umad_unregister(fd, 0), 0);
	assert_int_equal(device->unregistered, 0);
	fake_fail_call(1, ENOMEM);
	assert_fails(umad_unregister(fd, 0), ENOMEM);
	assert_int_equal(umad_unregister(fd, 4), -EINVAL);
	assert_fails(umad_unregister(fd, -1), EINVAL);
}

TEST(a_handle_that_is_not_open_is_refused)
{
	struct umad_reg_attr attr = {.mgmt_class = 4};
	uint8_t oui[3] = {1, 2, 3};
	uint32_t id;

	assert_fails(umad_register(99, 4, 1, 0, NULL), EINVAL);
	assert_int_equal(umad_register(-1, 4, 1, 0, NULL), -EINVAL);
	assert_int_equal(umad_register_oui(99, 0x30, 0, oui, NULL), -EINVAL);
	assert_int_equal(umad_register2(99, &attr, &id), EINVAL);
	assert_int_equal(umad_unregister(99, 0), -EINVAL);
}

TEST(a_device_that_has_gone_gives_the_kernels_errno)
{
	struct umad_reg_attr attr = {.mgmt_class = 4};
	uint32_t id;

	device->gone = true;
	assert_errno(assert_int_equal(umad_register(fd, 4, 1, 0, NULL), -EPERM), EPIPE);
	assert_int_equal(umad_register2(fd, &attr, &id), EPIPE);
	assert_int_equal(umad_unregister(fd, 0), -EINVAL);
}

static char last_message[200];

static void keep_message(enum umad_log_level level, const char *text, void *user)
{
	(void)user;
	assert_int_equal(level, UMAD_LOG_INFO);
	snprintf(last_message, sizeof(last_message), "%s", text);
}

static void expect_message(const char *text)
{
	assert_string_equal(last_message, text);
	last_message[0] = '\0';
}

TEST(the_log_says_what_is_not_registered)
{
	struct umad_reg_attr attr = {.mgmt_class = 4, .mgmt_class_version = 2};
	uint8_t oui[3] = {1, 2, 3};
	char text[200];
	uint32_t id;

	last_message[0] = '\0';
	umad_set_log_hook(keep_message, NULL);
	umad_debug(1);
	umad_register_oui(fd, 0x2f, 1, oui, NULL);
	expect_message("class 0x2f is not in vendor range 2");
	device->register_error = ENOMEM;
	umad_register(fd, 6, 1, 0, NULL);
	snprintf(text, sizeof(text),
		 "class 0x06 version 1 cannot be registered on handle %d: Cannot allocate "
		 "memory",
		 fd);
	expect_message(text);
	umad_register2(fd, &attr, &id);
	snprintf(text, sizeof(text),
		 "class 0x04 version 2 flags 0x0 cannot be registered on handle %d: "
		 "Cannot allocate memory",
		 fd);
	expect_message(text);
	device->register_error = 0;
	assert_true(umad_register(fd, 6, 1, 0, NULL) >= 0);
	expect_message("");
	umad_debug(0);
	umad_set_log_hook(NULL, NULL);
}
