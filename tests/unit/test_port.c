/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "test.h"

#include <infiniband/umad_ext.h>
#include <fcntl.h>

static int setup(void)
{
	if (fake_setup())
		return -1;
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	fake_umad(0, "mlx5_0", 1);
	return 0;
}

FIXTURE(setup, fake_teardown);

TEST(init_and_done_succeed)
{
	assert_int_equal(umad_init(), 0);
	assert_int_equal(umad_done(), 0);
}

TEST(a_port_is_opened_for_reading_and_writing_without_blocking)
{
	struct fake_device *device = fake_device("umad0");
	int fd;

	fd = umad_open_port("mlx5_0", 1);
	assert_true(fd >= 0);
	assert_int_equal(device->open_flags & O_ACCMODE, O_RDWR);
	assert_true(device->open_flags & O_NONBLOCK);
	assert_int_equal(umad_get_fd(fd), fd);
	assert_int_equal(umad_close_port(fd), 0);
	assert_int_equal(device->opened, 0);
}

TEST(the_default_port_is_opened)
{
	int fd = umad_open_port(NULL, 0), smi = umad_open_smi_port(NULL, 0);

	assert_true(fd >= 0);
	assert_true(smi >= 0);
	assert_int_equal(fake_device("umad0")->opened, 2);
	umad_close_port(fd);
	umad_close_port(smi);
}

TEST(an_smi_port_needs_subnet_management)
{
	int fd;

	fake_file("/sys/class/infiniband/mlx5_0/ports/1/cap_mask", "0x400\n");
	assert_int_equal(umad_open_smi_port("mlx5_0", 0), -ENODEV);
	assert_int_equal(umad_open_smi_port(NULL, 0), -ENODEV);
	fd = umad_open_port(NULL, 0);
	assert_true(fd >= 0);
	umad_close_port(fd);
}

TEST(with_abi_5_the_pkey_index_is_asked_for)
{
	int fd;

	fake_device("umad0")->no_pkey = true;
	fd = umad_open_port("mlx5_0", 1);
	assert_true(fd >= 0);
	assert_int_equal(umad_size(), 56);
	umad_close_port(fd);
	fake_device("umad0")->no_pkey = false;
	fd = umad_open_port("mlx5_0", 1);
	assert_true(fd >= 0);
	assert_int_equal(umad_size(), 64);
	umad_close_port(fd);
}

TEST(from_abi_6_on_the_pkey_index_is_there_unasked)
{
	int fd;

	fake_file("/sys/class/infiniband_mad/abi_version", "6\n");
	fake_device("umad0")->no_pkey = true;
	fd = umad_open_port("mlx5_0", 1);
	assert_true(fd >= 0);
	assert_int_equal(umad_size(), 64);
	umad_close_port(fd);
}

TEST(an_abi_that_is_old_or_unreadable_is_not_supported)
{
	fake_file("/sys/class/infiniband_mad/abi_version", "4\n");
	assert_fails(umad_open_port("mlx5_0", 1), EOPNOTSUPP);
	fake_file("/sys/class/infiniband_mad/abi_version", "%s", "");
	assert_int_equal(umad_open_port("mlx5_0", 1), -EOPNOTSUPP);
	fake_remove("/sys/class/infiniband_mad/abi_version");
	assert_int_equal(umad_open_port(NULL, 0), -EOPNOTSUPP);
}

TEST(what_is_wrong_is_told)
{
	assert_fails(umad_open_port("mlx5_9", 1), ENODEV);
	assert_int_equal(umad_open_port("mlx5_9", 0), -ENODEV);
	assert_fails(umad_open_port("mlx5_0", 2), EINVAL);
	assert_int_equal(umad_open_port("mlx5_0", -1), -EINVAL);
	fake_device("umad0")->open_error = EACCES;
	assert_errno(assert_int_equal(umad_open_port("mlx5_0", 1), -EIO), EACCES);
}

TEST(a_node_that_udev_has_not_made_yet_is_an_io_error)
{
	fake_file("/sys/class/infiniband_mad/umad8/ibdev", "mlx5_0\n");
	fake_file("/sys/class/infiniband_mad/umad8/port", "2\n");
	assert_errno(assert_int_equal(umad_open_port("mlx5_0", 2), -EIO), ENOENT);
}

TEST(a_roce_port_is_opened_when_it_is_named)
{
	int fd;

	fake_file("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
	fd = umad_open_port("mlx5_0", 1);
	assert_true(fd >= 0);
	umad_close_port(fd);
}

TEST(closing_what_is_not_open_is_refused)
{
	int fd = umad_open_port("mlx5_0", 1);

	assert_int_equal(umad_close_port(fd), 0);
	assert_fails(umad_close_port(fd), EINVAL);
	assert_int_equal(umad_close_port(-1), -EINVAL);
	assert_int_equal(umad_get_fd(-1), -EINVAL);
}

/* This program is linked with netlink_none.c. */
TEST(without_netlink_there_is_no_monitor_and_no_autoload)
{
	struct umad_monitor *monitor;

	assert_fails(umad_monitor_open(&monitor, 0), EOPNOTSUPP);
	fake_remove("/sys/class/infiniband_mad/umad0");
	assert_int_equal(umad_open_port("mlx5_0", 1), -EINVAL);
}

TEST(every_call_and_every_allocation_may_fail)
{
	int fd;

	for (unsigned n = 1;; n++) {
		fake_fail_call(n, EMFILE);
		errno = 0;
		fd = umad_open_port(NULL, 0);
		if (!fake_failed())
			break;
		/* a shortage says nothing about the device and the kernel */
		assert_int_equal(fd, -EIO);
		assert_int_equal(errno, EMFILE);
	}
	fake_fail_call(0, 0);
	assert_true(fd >= 0);
	umad_close_port(fd);
	fake_fail_malloc(1);
	assert_int_equal(umad_open_port(NULL, 0), -ENOMEM);
}
