/* SPDX-License-Identifier: BSD-2-Clause */

#include "at.h"
#include "fake.h"
#include "devices.h"
#include "test.h"

/* The kernel's response over netlink: the linker's --wrap makes the library call this. */
static const char *response;
static void (*on_request)(void);
static int requests;

int __wrap_netlink_find_umad(const char *ca_name, int portnum, char *name, size_t size);

int __wrap_netlink_find_umad(const char *ca_name, int portnum, char *name, size_t size)
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

/* cdev_find() finds this device; NULL: it fails with this errno. */
static void finds(enum cdev_kind kind, const char *ca_name, int portnum, const char *name,
		  int err)
{
	char path[SYSFS_PATH_MAX];
	struct port_choice port = {.portnum = portnum};

	strcpy(port.ca_name, ca_name);
	assert_int_equal(cdev_find(kind, &port, path), -err);
	if (name)
		assert_string_equal(path, at("/dev/infiniband/%s", name));
}

static void finds_umad(const char *name)
{
	finds(CDEV_UMAD, "mlx5_0", 1, name, name ? 0 : EINVAL);
}

TEST(a_device_is_found_by_ca_and_port)
{
	fake_umad(0, "mlx5_1", 1);
	/* a port without device, and a CA that is not there */
	finds_umad(NULL);
	assert_int_equal(requests, 1);
	finds(CDEV_UMAD, "mlx5_9", 1, NULL, ENODEV);
	assert_int_equal(requests, 1);
	fake_umad(1, "mlx5_0", 2);
	fake_umad(1234567, "mlx5_0", 1);
	finds_umad("umad1234567");
	finds(CDEV_ISSM, "mlx5_0", 1, "issm1234567", 0);
	finds(CDEV_UMAD, "mlx5_0", 2, "umad1", 0);
	assert_int_equal(requests, 1);
}

TEST(the_cas_own_hardware_is_asked_first)
{
	static const char own[] =
		"/sys/class/infiniband/mlx5_0/device/infiniband_mad/umad3/ibdev";

	fake_umad(4, "mlx5_0", 1);
	fake_file(own, "mlx5_0\n");
	fake_file("/sys/class/infiniband/mlx5_0/device/infiniband_mad/umad3/port", "1\n");
	/* further calls would be an error */
	fake_fail_call(6, EIO);
	finds_umad("umad3");
	assert_true(!fake_failed());
	fake_fail_call(0, 0);
	/* hardware that is shared is no response */
	fake_file(own, "mlx5_1\n");
	finds_umad("umad4");
}

TEST(entries_that_make_no_sense_are_passed_over)
{
	static const struct {
		const char *name, *ibdev, *port; /* NULL: there is no such file */
	} entries[] = {
		{"umad", "mlx5_0\n", "1\n"},
		{"umadx", "mlx5_0\n", "1\n"},
		{"umad1x", "mlx5_0\n", "1\n"},
		{"umad99999999999999999999999999999", "mlx5_0\n", "1\n"},
		{"umad1", NULL, "1\n"},
		{"umad2", "mlx5_0\n", NULL},
		{"umad3", "", "1\n"},
		{"umad4", "mlx5_0\n", "4294967295\n"},
		{"umad5", "mlx5_0_and_a_long_tail\n", "1\n"},
		{"umad6", "../mlx5_0\n", "1\n"},
	};
	static const char folder[] = "/sys/class/infiniband_mad";

	fake_link("/sys/class/infiniband_mad/umad0", "nowhere");
	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
		if (entries[i].ibdev)
			fake_file(at("%s/%s/ibdev", folder, entries[i].name), "%s",
				  entries[i].ibdev);
		if (entries[i].port)
			fake_file(at("%s/%s/port", folder, entries[i].name), "%s",
				  entries[i].port);
	}
	finds_umad(NULL);
	fake_umad(7, "mlx5_0", 1);
	finds_umad("umad7");
}

static void load_module(void)
{
	fake_umad(5, "mlx5_0", 1);
}

TEST(the_kernel_is_asked_when_sysfs_has_nothing)
{
	int fd;

	/* a failure is not remembered */
	assert_int_equal(umad_open_port("mlx5_0", 1), -EOPNOTSUPP);
	response = "umad5";
	finds(CDEV_ISSM, "mlx5_0", 1, NULL, EINVAL);
	on_request = load_module;
	finds(CDEV_ISSM, "mlx5_0", 1, "issm5", 0);
	fake_remove("/sys/class/infiniband_mad");
	requests = 0;
	fd = umad_open_port("mlx5_0", 1);
	assert_true(fd >= 0);
	assert_int_equal(requests, 1);
	assert_int_equal(fake_device("umad5")->opened, 1);
	umad_close_port(fd);
	response = NULL;
	fake_remove("/sys/class/infiniband_mad");
	on_request = NULL;
	assert_int_equal(umad_open_port("mlx5_0", 1), -EOPNOTSUPP);
}

TEST(a_response_that_names_no_umad_device_is_rejected)
{
	static const char *const names[] = {
		"uverbs0", "../../etc/passwd", "umad", "umad1/x", "issm0", ""};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		response = names[i];
		finds_umad(NULL);
	}
}
