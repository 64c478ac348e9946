/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "devices.h"
#include "netlink.h"
#include "test.h"

/* The kernel's response over netlink; replaces netlink.c. */
static const char *response;
static void (*on_request)(void);
static int requests;

int netlink_find_umad(const char *ca_name, int portnum, char *name, size_t size)
{
	assert_string_equal(ca_name, "mlx5_0");
	assert_int_equal(portnum, 1);
	requests++;
	if (on_request)
		on_request();
	if (!response)
		return -ENOENT;
	snprintf(name, size, "%s", response);
	return 0;
}

int uevent_open(struct nl_sock **sock)
{
	(void)sock;
	return -EOPNOTSUPP;
}

int uevent_fd(const struct nl_sock *sock)
{
	(void)sock;
	return -EOPNOTSUPP;
}

void uevent_close(struct nl_sock *sock)
{
	(void)sock;
}

int uevent_receive(struct nl_sock *sock, char **text)
{
	(void)sock;
	(void)text;
	return -EOPNOTSUPP;
}

static int setup(void)
{
	response = NULL;
	on_request = NULL;
	requests = 0;
	if (fake_setup())
		return -1;
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	return 0;
}

FIXTURE(setup, fake_teardown);

static const struct port_choice mlx5_0_1 = {"mlx5_0", 1};

/* The device that cdev_find() finds, or its errno as text. */
static const char *found(enum cdev_kind kind, const char *ca_name, int portnum)
{
	static char path[SYSFS_PATH_MAX];
	struct port_choice port = {.portnum = portnum};
	int ret;

	strcpy(port.ca_name, ca_name);
	ret = cdev_find(kind, &port, path);
	if (ret)
		snprintf(path, sizeof(path), "%d", ret);
	return path;
}

static const char *error(int err)
{
	static char text[16];

	snprintf(text, sizeof(text), "%d", err);
	return text;
}

TEST(a_device_is_found_by_ca_and_port)
{
	fake_umad(0, "mlx5_1", 1);
	fake_umad(1, "mlx5_0", 2);
	fake_umad(7, "mlx5_0", 1);
	assert_string_equal(found(CDEV_UMAD, "mlx5_0", 1), "/dev/infiniband/umad7");
	assert_string_equal(found(CDEV_ISSM, "mlx5_0", 1), "/dev/infiniband/issm7");
	assert_string_equal(found(CDEV_UMAD, "mlx5_0", 2), "/dev/infiniband/umad1");
	assert_int_equal(requests, 0);
}

TEST(numbers_beyond_192_are_found)
{
	fake_umad(1234567, "mlx5_0", 1);
	assert_string_equal(found(CDEV_UMAD, "mlx5_0", 1), "/dev/infiniband/umad1234567");
}

TEST(a_port_without_device_is_told_from_a_ca_that_is_not_there)
{
	fake_umad(0, "mlx5_1", 1);
	assert_string_equal(found(CDEV_UMAD, "mlx5_0", 1), error(-EINVAL));
	assert_int_equal(requests, 1);
	assert_string_equal(found(CDEV_UMAD, "mlx5_9", 1), error(-ENODEV));
	assert_int_equal(requests, 1);
}

TEST(the_cas_own_hardware_is_asked_first)
{
	fake_umad(0, "mlx5_1", 1);
	fake_file("/sys/class/infiniband/mlx5_0/device/infiniband_mad/umad3/ibdev", "mlx5_0\n");
	fake_file("/sys/class/infiniband/mlx5_0/device/infiniband_mad/umad3/port", "1\n");
	/* further calls would be an error */
	fake_fail_call(6, EIO);
	assert_string_equal(found(CDEV_UMAD, "mlx5_0", 1), "/dev/infiniband/umad3");
	assert_true(!fake_failed());
	fake_fail_call(0, 0);
}

TEST(hardware_that_is_shared_is_no_response)
{
	fake_file("/sys/class/infiniband/mlx5_0/device/infiniband_mad/umad3/ibdev", "mlx5_1\n");
	fake_file("/sys/class/infiniband/mlx5_0/device/infiniband_mad/umad3/port", "1\n");
	fake_umad(4, "mlx5_0", 1);
	assert_string_equal(found(CDEV_UMAD, "mlx5_0", 1), "/dev/infiniband/umad4");
}

TEST(entries_that_make_no_sense_are_passed_over)
{
	fake_dir("/sys/class/infiniband_mad/umad");
	fake_dir("/sys/class/infiniband_mad/umadx");
	fake_dir("/sys/class/infiniband_mad/umad1x");
	fake_dir("/sys/class/infiniband_mad/umad99999999999999999999999999999");
	fake_link("/sys/class/infiniband_mad/umad0", "nowhere");
	fake_file("/sys/class/infiniband_mad/umad1/port", "1\n");
	fake_file("/sys/class/infiniband_mad/umad2/ibdev", "mlx5_0\n");
	fake_file("/sys/class/infiniband_mad/umad3/ibdev", "%s", "");
	fake_file("/sys/class/infiniband_mad/umad3/port", "1\n");
	fake_file("/sys/class/infiniband_mad/umad4/ibdev", "mlx5_0\n");
	fake_file("/sys/class/infiniband_mad/umad4/port", "4294967295\n");
	fake_file("/sys/class/infiniband_mad/umad5/ibdev", "mlx5_0_and_a_long_tail\n");
	fake_file("/sys/class/infiniband_mad/umad5/port", "1\n");
	fake_file("/sys/class/infiniband_mad/umad6/ibdev", "../mlx5_0\n");
	fake_file("/sys/class/infiniband_mad/umad6/port", "1\n");
	assert_string_equal(found(CDEV_UMAD, "mlx5_0", 1), error(-EINVAL));
	fake_umad(7, "mlx5_0", 1);
	assert_string_equal(found(CDEV_UMAD, "mlx5_0", 1), "/dev/infiniband/umad7");
}

static void load_module(void)
{
	fake_umad(5, "mlx5_0", 1);
}

TEST(the_kernel_is_asked_when_sysfs_has_nothing)
{
	int fd;

	response = "umad5";
	on_request = load_module;
	fd = umad_open_port("mlx5_0", 1);
	assert_true(fd >= 0);
	assert_int_equal(requests, 1);
	assert_int_equal(fake_device("umad5")->opened, 1);
	umad_close_port(fd);
}

TEST(an_issm_device_appears_with_the_module)
{
	response = "umad5";
	assert_string_equal(found(CDEV_ISSM, "mlx5_0", 1), error(-EINVAL));
	on_request = load_module;
	assert_string_equal(found(CDEV_ISSM, "mlx5_0", 1), "/dev/infiniband/issm5");
}

TEST(a_response_that_names_no_umad_device_is_rejected)
{
	static const char *const names[] = {
		"uverbs0", "../../etc/passwd", "umad", "umad1/x", "issm0", ""};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		response = names[i];
		assert_string_equal(found(CDEV_UMAD, "mlx5_0", 1), error(-EINVAL));
	}
}

TEST(a_failure_is_not_remembered)
{
	int fd;

	assert_int_equal(umad_open_port("mlx5_0", 1), -EOPNOTSUPP);
	load_module();
	fd = umad_open_port("mlx5_0", 1);
	assert_true(fd >= 0);
	umad_close_port(fd);
	fake_remove("/sys/class/infiniband_mad");
	assert_int_equal(umad_open_port("mlx5_0", 1), -EOPNOTSUPP);
}

TEST(the_abi_version_is_read_each_time)
{
	assert_int_equal(cdev_abi_version(), -ENOENT);
	fake_file("/sys/class/infiniband_mad/abi_version", "5\n");
	assert_int_equal(cdev_abi_version(), 5);
	fake_file("/sys/class/infiniband_mad/abi_version", "rubbish\n");
	assert_int_equal(cdev_abi_version(), -EIO);
	fake_file("/sys/class/infiniband_mad/abi_version", "4294967295\n");
	assert_int_equal(cdev_abi_version(), -EIO);
}

TEST(every_call_may_fail)
{
	char path[SYSFS_PATH_MAX];
	int ret;

	fake_umad(1, "mlx5_0", 1);
	for (unsigned n = 1;; n++) {
		fake_fail_call(n, EIO);
		ret = cdev_find(CDEV_UMAD, &mlx5_0_1, path);
		if (!fake_failed())
			break;
		assert_true(ret == 0 || ret == -EINVAL);
	}
	assert_int_equal(ret, 0);
	fake_fail_call(0, 0);
}
