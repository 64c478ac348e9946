/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "kept_log.h"
#include "kernel_abi.h"
#include "test.h"

#include <limits.h>

static struct fake_device *device;
static int fd;
static uint32_t id;

static int setup(void)
{
	if (fake_setup())
		return -1;
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	fake_umad(0, "mlx5_0", 1);
	device = fake_device("umad0");
	id = 77;
	fd = umad_open_port("mlx5_0", 1);
	return fd < 0 ? -1 : 0;
}

static int teardown(void)
{
	umad_close_port(fd);
	return fake_teardown();
}

FIXTURE(setup, teardown);

#define assert_kernel_refuses(call, error) assert_errno(assert_int_equal(call, -EPERM), error)

/* umad_register2() returns a positive errno, and stores no ID. */
static void register2_fails(struct umad_reg_attr attr, int error)
{
	assert_errno(assert_int_equal(umad_register2(fd, &attr, &id), error), error);
	assert_int_equal(id, 77);
}

/* The last registration that the kernel received, by the first ioctl. */
static void asked(struct ib_user_mad_reg_req wanted, const void *mask)
{
	struct ib_user_mad_reg_req req;

	assert_int_equal(device->registered_by, IB_USER_MAD_REGISTER_AGENT);
	memcpy(&req, device->registered, sizeof(req));
	memcpy(wanted.method_mask, mask, sizeof(wanted.method_mask));
	wanted.qpn = wanted.mgmt_class != 0x01 && wanted.mgmt_class != 0x81;
	wanted.id = req.id;
	assert_memory_equal(&req, &wanted, sizeof(req));
}

static const long no_methods[16 / sizeof(long)];

TEST(smps_go_by_qp0_and_everything_else_by_qp1_with_the_methods_of_a_server)
{
	long mask[16 / sizeof(long)] = {0x6};

	device->next_id = 3;
	for (int i = 0; i < 256; i++) {
		const uint8_t class = (uint8_t)i, version = (uint8_t)(255 - i), rmpp = i & 1;

		assert_int_equal(umad_register(fd, class, version, rmpp, i % 3 ? NULL : mask),
				 i + 3);
		asked((struct ib_user_mad_reg_req){.mgmt_class = class,
						   .mgmt_class_version = version,
						   .rmpp_version = rmpp,
						   .oui = {0x00, 0x14, 0x05}},
		      i % 3 ? no_methods : mask);
	}
}

TEST(an_oui_goes_with_vendor_range_2_alone_and_numbers_are_bytes)
{
	uint8_t oui[] = {0x11, 0x22, 0x33};

	assert_int_equal(umad_register_oui(fd, 0x4f, 1, oui, NULL), 0);
	asked((struct ib_user_mad_reg_req){.mgmt_class = 0x4f,
					   .mgmt_class_version = 1,
					   .rmpp_version = 1,
					   .oui = {0x11, 0x22, 0x33}},
	      no_methods);
	device->registered_by = 0;
	keep_log(1);
	assert_fails(umad_register_oui(fd, 0x2f, 1, oui, NULL), EINVAL);
	assert_string_equal(kept.text, "class 0x2f is not in vendor range 2");
	end_log();
	assert_fails(umad_register_oui(fd, 0x50, 1, oui, NULL), EINVAL);
	assert_fails(umad_register_oui(fd, 0x130, 1, oui, NULL), EINVAL);
	assert_fails(umad_register_oui(fd, 0x30, 1, NULL, NULL), EINVAL);
	assert_fails(umad_register(fd, 256, 1, 0, NULL), EINVAL);
	assert_fails(umad_register(fd, -1, 1, 0, NULL), EINVAL);
	assert_fails(umad_register(fd, 4, 256, 0, NULL), EINVAL);
	assert_fails(umad_register(fd, 4, -1, 0, NULL), EINVAL);
	assert_int_equal(device->registered_by, 0);
}

TEST(register2_passes_everything_on)
{
	struct umad_reg_attr attr = {.mgmt_class = 0x32,
				     .mgmt_class_version = 2,
				     .flags = UMAD_USER_RMPP,
				     .method_mask = {0x0123456789abcdef, 0x8000000000000001},
				     .oui = 0x112233,
				     .rmpp_version = 1};
	struct ib_user_mad_reg_req2 req,
		wanted = {.qpn = 1,
			  .mgmt_class = 0x32,
			  .mgmt_class_version = 2,
			  .flags = UMAD_USER_RMPP,
			  .method_mask = {0x0123456789abcdef, 0x8000000000000001},
			  .oui = 0x112233,
			  .rmpp_version = 1};

	device->next_id = 5;
	assert_int_equal(umad_register2(fd, &attr, &id), 0);
	assert_int_equal(id, 5);
	assert_int_equal(device->registered_by, IB_USER_MAD_REGISTER_AGENT2);
	memcpy(&req, device->registered, sizeof(req));
	wanted.id = req.id;
	assert_memory_equal(&req, &wanted, sizeof(req));
	/* flags that the kernel refuses come back as those it knows */
	attr.flags = 0x81;
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
	unsigned long mask[16 / sizeof(long)] = {0x3};

	mask[8 / sizeof(long) - 1] |= 1UL << (8 * sizeof(long) - 1);
	mask[8 / sizeof(long)] |= 1;
	mask[16 / sizeof(long) - 1] |= 1UL << (8 * sizeof(long) - 1);
	device->no_pkey = true;
	assert_int_equal(umad_register2(fd, &attr, &id), 0);
	assert_int_equal(id, 0);
	asked((struct ib_user_mad_reg_req){.mgmt_class = 0x32,
					   .mgmt_class_version = 1,
					   .rmpp_version = 1,
					   .oui = {0x11, 0x22, 0x33}},
	      mask);
	attr.flags = UMAD_USER_RMPP;
	assert_int_equal(umad_register2(fd, &attr, &id), ENOTTY);
	assert_int_equal(attr.flags, 0);
}

TEST(the_second_ioctl_switches_the_layout_over)
{
	struct umad_reg_attr attr = {.mgmt_class = 4};
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
	struct umad_reg_attr attr = {.mgmt_class = 0x30, .oui = 0xffffff};

	register2_fails((struct umad_reg_attr){.mgmt_class = 0x30}, EINVAL);
	register2_fails((struct umad_reg_attr){.mgmt_class = 0x30, .oui = 0x1000000}, EINVAL);
	assert_int_equal(umad_register2(fd, &attr, NULL), EINVAL);
	assert_errno(assert_int_equal(umad_register2(fd, NULL, &id), EINVAL), EINVAL);
	assert_int_equal(device->registered_by, 0);
	assert_int_equal(umad_register2(fd, &attr, &id), 0);
}

/* The message ends with the handle and the cause. */
static void logged(const char *what)
{
	char text[200];

	snprintf(text, sizeof(text),
		 "%s cannot be registered on handle %d: Protocol not supported", what, fd);
	assert_string_equal(kept.text, text);
	assert_int_equal(kept.level, UMAD_LOG_INFO);
}

TEST(what_the_kernel_or_an_int_cannot_have_is_an_error)
{
	struct umad_reg_attr attr = {.mgmt_class = 4, .mgmt_class_version = 2};
	uint8_t oui[] = {1, 2, 3};

	device->register_error = EPROTONOSUPPORT;
	keep_log(1);
	assert_kernel_refuses(umad_register(fd, 4, 1, 0, NULL), EPROTONOSUPPORT);
	logged("class 0x04 version 1");
	assert_kernel_refuses(umad_register_oui(fd, 0x30, 0, oui, NULL), EPROTONOSUPPORT);
	register2_fails(attr, EPROTONOSUPPORT);
	logged("class 0x04 version 2 flags 0x0");
	device->register_error = 0;
	device->next_id = INT_MAX;
	assert_int_equal(umad_register(fd, 4, 1, 0, NULL), INT_MAX);
	assert_int_equal(kept.count, 3);
	end_log();
	device->next_id = 0x80000000;
	assert_kernel_refuses(umad_register(fd, 4, 1, 0, NULL), EIO);
	register2_fails(attr, EIO);
	device->gone = true;
	assert_kernel_refuses(umad_register(fd, 4, 1, 0, NULL), EPIPE);
	register2_fails(attr, EPIPE);
	assert_fails(umad_unregister(fd, 0), EINVAL);
	/* a handle that is not open */
	assert_fails(umad_register(99, 4, 1, 0, NULL), EINVAL);
	assert_fails(umad_register(-1, 4, 1, 0, NULL), EINVAL);
	assert_fails(umad_register_oui(99, 0x30, 0, oui, NULL), EINVAL);
	assert_int_equal(umad_register2(99, &attr, &id), EINVAL);
	assert_fails(umad_unregister(99, 0), EINVAL);
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
	assert_fails(umad_unregister(fd, 4), EINVAL);
	assert_fails(umad_unregister(fd, -1), EINVAL);
}
