/* SPDX-License-Identifier: BSD-2-Clause */

/* Opening a port (port.c) and its issm device (issm.c), and finding the devices (cdev.c). */

#include "at.h"
#include "devices.h"
#include "fake.h"
#include "kept_log.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>

#define MAD "/sys/class/infiniband_mad"

static struct fake_device *umad, *issm;

/* The kernel's response over netlink; the linker's --wrap makes the library call this. */
static const char *response;
static void (*on_request)(void);
static int requests;

int __real_netlink_find_umad(const char *ca_name, int portnum, char *name, size_t size);
int __wrap_netlink_find_umad(const char *ca_name, int portnum, char *name, size_t size);

int __wrap_netlink_find_umad(const char *ca_name, int portnum, char *name, size_t size)
{
	assert_string_equal(ca_name, "mlx5_0");
	requests++;
	if (on_request)
		on_request();
	if (!response)
		return __real_netlink_find_umad(ca_name, portnum, name, size);
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
	fake_umad(2, "mlx5_0", 1);
	umad = fake_device("umad2");
	issm = fake_device("issm2");
	return 0;
}

FIXTURE(setup, fake_teardown);

/* --- ports ---------------------------------------------------------------------- */

/* Opens the port, and closes it; the header has this size. */
static void opens(const char *ca_name, int portnum, int header)
{
	int fd = umad_open_port(ca_name, portnum);

	assert_true(fd >= 0);
	assert_int_equal(umad->opened, 1);
	assert_int_equal(umad->open_flags & O_ACCMODE, O_RDWR);
	assert_true(umad->open_flags & O_NONBLOCK);
	assert_int_equal(umad_get_fd(fd), fd);
	assert_int_equal(umad_size(), header);
	assert_int_equal(umad_close_port(fd), 0);
	assert_int_equal(umad->opened, 0);
	assert_fails(umad_close_port(fd), EINVAL);
}

TEST(a_port_is_opened_for_reading_and_writing_without_blocking)
{
	assert_int_equal(umad_init(), 0);
	opens("mlx5_0", 1, 64);
	opens(NULL, 0, 64);
	/* a RoCE port when it is named */
	fake_file("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
	opens("mlx5_0", 1, 64);
	assert_fails(umad_close_port(-1), EINVAL);
	assert_fails(umad_get_fd(-1), EINVAL);
	assert_int_equal(umad_done(), 0);
}

TEST(an_smi_port_needs_subnet_management)
{
	int smi = umad_open_smi_port(NULL, 0);

	assert_int_equal(umad_close_port(smi), 0);
	fake_file("/sys/class/infiniband/mlx5_0/ports/1/cap_mask", "0x400\n");
	assert_fails(umad_open_smi_port("mlx5_0", 0), ENODEV);
	assert_fails(umad_open_smi_port(NULL, 0), ENODEV);
	opens(NULL, 0, 64);
}

TEST(the_pkey_index_is_asked_for_before_abi_6)
{
	umad->no_pkey = true;
	opens("mlx5_0", 1, 56);
	fake_file("/sys/class/infiniband_mad/abi_version", "6\n");
	opens("mlx5_0", 1, 64);
	fake_file("/sys/class/infiniband_mad/abi_version", "5\n");
	umad->no_pkey = false;
	opens("mlx5_0", 1, 64);
}

TEST(what_is_wrong_with_a_port_is_told)
{
	static const char *const versions[] = {"4\n", "", "rubbish\n", "4294967295\n"};

	assert_fails(umad_open_port("mlx5_9", 1), ENODEV);
	assert_fails(umad_open_port("mlx5_9", 0), ENODEV);
	assert_fails(umad_open_port("mlx5_0", 2), EINVAL);
	assert_fails(umad_open_port("mlx5_0", -1), EINVAL);
	umad->open_error = EACCES;
	assert_errno(assert_int_equal(umad_open_port("mlx5_0", 1), -EIO), EACCES);
	/* udev has not made the node yet */
	fake_file("/sys/class/infiniband_mad/umad8/ibdev", "mlx5_0\n");
	fake_file("/sys/class/infiniband_mad/umad8/port", "2\n");
	assert_errno(assert_int_equal(umad_open_port("mlx5_0", 2), -EIO), ENOENT);
	/* the ABI is old or unreadable */
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		fake_file("/sys/class/infiniband_mad/abi_version", "%s", versions[i]);
		assert_fails(umad_open_port("mlx5_0", 1), EOPNOTSUPP);
	}
	fake_remove("/sys/class/infiniband_mad/abi_version");
	assert_fails(umad_open_port(NULL, 0), EOPNOTSUPP);
}

/* This program is linked with netlink_none.c. */
TEST(without_netlink_there_is_no_monitor_and_no_autoload)
{
	struct umad_monitor *monitor;

	assert_fails(umad_monitor_open(&monitor, 0), EOPNOTSUPP);
	fake_remove("/sys/class/infiniband_mad/umad2");
	assert_int_equal(umad_open_port("mlx5_0", 1), -EINVAL);
}

/* --- finding a device ------------------------------------------------------------- */

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
	fake_umad(1, "mlx5_0", 3);
	finds_umad("umad2");
	assert_int_equal(requests, 0);
	/* a port without device, and a CA that is not there */
	finds(CDEV_UMAD, "mlx5_0", 2, NULL, EINVAL);
	assert_int_equal(requests, 1);
	finds(CDEV_UMAD, "mlx5_9", 1, NULL, ENODEV);
	assert_int_equal(requests, 1);
	fake_umad(1234567, "mlx5_0", 2);
	finds(CDEV_ISSM, "mlx5_0", 2, "issm1234567", 0);
}

TEST(the_cas_own_hardware_is_asked_first)
{
	static const char own[] =
		"/sys/class/infiniband/mlx5_0/device/infiniband_mad/umad3/ibdev";

	fake_file(own, "mlx5_0\n");
	fake_file("/sys/class/infiniband/mlx5_0/device/infiniband_mad/umad3/port", "1\n");
	/* further calls would be an error */
	fake_fail_call(6, EIO);
	finds_umad("umad3");
	assert_true(!fake_failed());
	fake_fail_call(0, 0);
	/* hardware that is shared is no response */
	fake_file(own, "mlx5_1\n");
	finds_umad("umad2");
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

	fake_remove(MAD);
	fake_link(MAD "/umad0", "nowhere");
	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
		if (entries[i].ibdev)
			fake_file(at(MAD "/%s/ibdev", entries[i].name), "%s", entries[i].ibdev);
		if (entries[i].port)
			fake_file(at(MAD "/%s/port", entries[i].name), "%s", entries[i].port);
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
	static const char *const no_names[] = {
		"uverbs0", "../../etc/passwd", "umad", "umad1/x", "issm0", ""};
	int fd;

	fake_remove(MAD);
	for (size_t i = 0; i < sizeof(no_names) / sizeof(*no_names); i++) {
		response = no_names[i];
		finds_umad(NULL);
	}
	/* a failure is not remembered */
	assert_int_equal(umad_open_port("mlx5_0", 1), -EOPNOTSUPP);
	response = "umad5";
	finds(CDEV_ISSM, "mlx5_0", 1, NULL, EINVAL);
	on_request = load_module;
	finds(CDEV_ISSM, "mlx5_0", 1, "issm5", 0);
	fake_remove(MAD);
	requests = 0;
	fd = umad_open_port("mlx5_0", 1);
	assert_true(fd >= 0);
	assert_int_equal(requests, 1);
	assert_int_equal(fake_device("umad5")->opened, 1);
	umad_close_port(fd);
}

/* --- issm devices --------------------------------------------------------------- */

TEST(the_path_of_an_issm_device_is_whole_or_empty)
{
	char path[64];
	const int length = (int)strlen("/dev/infiniband/issm2");

	for (int max = -1; max <= length + 1; max++) {
		memset(path, 'x', sizeof(path));
		if (max <= length) {
			assert_fails(umad_get_issm_path("mlx5_0", 1, path, max), ENOSPC);
			assert_true(max <= 0 || !path[0]);
		} else {
			assert_int_equal(umad_get_issm_path("mlx5_0", 1, path, max), 0);
			assert_string_equal(path, "/dev/infiniband/issm2");
		}
		assert_int_equal(path[max > 0 ? max : 0], 'x');
	}
	assert_int_equal(umad_get_issm_path(NULL, 0, path, sizeof(path)), 0);
	assert_string_equal(path, "/dev/infiniband/issm2");
	assert_fails(umad_get_issm_path("mlx5_0", 1, NULL, 64), EINVAL);
	assert_fails(umad_get_issm_path("mlx5_9", 1, path, 64), ENODEV);
	assert_string_equal(path, "");
	assert_fails(umad_get_issm_path("mlx5_0", 2, path, 64), EINVAL);
	assert_fails(umad_get_issm_path("mlx5_0", -1, path, 64), EINVAL);
	assert_fails(umad_get_issm_path(NULL, 7, path, 64), ENODEV);
}

TEST(issm_is_held_while_its_device_is_open)
{
	int fd = umad_open_issm("mlx5_0", 1, 0);

	assert_true(fd >= 0);
	assert_int_equal(issm->opened, 1);
	/* no wait in the kernel, which kills the program if the device is removed meanwhile */
	assert_true(issm->open_flags & O_NONBLOCK);
	assert_int_equal(umad_close_issm(fd), 0);
	assert_int_equal(issm->opened, 0);
	assert_fails(umad_close_issm(fd), EINVAL);
}

TEST(what_is_wrong_with_an_issm_device_is_told)
{
	static const int errors[] = {EINTR, EACCES, EAGAIN};

	assert_fails(umad_open_issm("mlx5_9", 1, 0), ENODEV);
	assert_fails(umad_open_issm("mlx5_0", 2, 0), EINVAL);
	assert_fails(umad_open_issm("mlx5_0", 1, 2), EINVAL);
	assert_fails(umad_open_issm("mlx5_0", 1, -1), EINVAL);
	/* EAGAIN: a port that is held, and the caller does not wait */
	for (size_t i = 0; i < 3; i++) {
		issm->open_error = errors[i];
		assert_fails(umad_open_issm(NULL, 0, i == 2 ? UMAD_ISSM_NONBLOCK : 0),
			     errors[i]);
		assert_true(issm->open_flags & O_NONBLOCK);
	}
}

/* What happens at an attempt to open the device of a port that is held. */
static int attempts;
static enum {
	IS_RELEASED,
	IS_REMOVED,
	IS_MOVED, /* another device gets the number of the device that was removed */
} change;

static void change_issm(const char *path)
{
	if (strcmp(path, "/dev/infiniband/issm2") || ++attempts != 2)
		return;
	if (change == IS_RELEASED) {
		issm->open_error = 0;
	} else if (change == IS_REMOVED) {
		fake_remove(MAD "/issm2");
	} else {
		fake_umad(3, "mlx5_0", 1);
		fake_ca("mlx5_1");
		fake_port("mlx5_1", 1, 2);
		fake_umad(2, "mlx5_1", 1);
	}
}

/* Waits for a port that is held, with this hook. */
static int wait_for_issm(void (*hook)(const char *path))
{
	int fd;

	attempts = 0;
	issm->open_error = EAGAIN;
	fake_before_open(hook);
	errno = 0;
	fd = umad_open_issm(NULL, 0, 0);
	fake_before_open(NULL);
	return fd;
}

TEST(a_port_that_is_held_is_waited_for_while_it_has_a_device)
{
	for (change = IS_RELEASED; change <= IS_MOVED; change++) {
		int fd;

		fake_umad(2, "mlx5_0", 1);
		if (change == IS_REMOVED) {
			assert_fails(wait_for_issm(change_issm), ENODEV);
			continue;
		}
		fd = wait_for_issm(change_issm);
		assert_true(fd >= 0);
		assert_int_equal(attempts, 2);
		assert_int_equal(issm->opened, change == IS_RELEASED);
		assert_int_equal(umad_close_issm(fd), 0);
	}
}

static void note_signal(int number)
{
	(void)number;
}

/* The signal comes in an attempt, and its handler runs in the wait. */
static void raise_signal(const char *path)
{
	(void)path;
	raise(SIGUSR1);
}

TEST(a_signal_ends_the_wait_also_with_SA_RESTART)
{
	struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART}, before;
	sigset_t blocked;

	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	assert_fails(wait_for_issm(raise_signal), EINTR);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &blocked), 0);
	assert_int_equal(sigismember(&blocked, SIGUSR1), 0);
}

TEST(a_port_without_issm_device_is_told_in_words)
{
	static const char text[] = "mlx5_0 port 1 has a umad device, but no issm device";

	fake_remove("/sys/class/infiniband_mad/issm2");
	keep_log(0);
	assert_int_equal(umad_open_issm("mlx5_0", 1, 0), -EINVAL);
	assert_int_equal(kept.count, 0);
	umad_debug(1);
	for (int i = 0; i < 2; i++) {
		kept.text[0] = '\0';
		assert_fails(umad_open_issm(i ? NULL : "mlx5_0", i ? 0 : 1, 0), EINVAL);
		assert_ptr_equal(strstr(kept.text, text), kept.text);
		assert_non_null(strstr(kept.text, "QP0"));
	}
	/* a port that does not exist is not reported as a port without QP0 */
	assert_int_equal(umad_open_issm("mlx5_0", 2, 0), -EINVAL);
	assert_string_equal(kept.text, "mlx5_0 port 2 has no issm device");
	kept.count = 0;
	assert_int_equal(umad_open_issm("mlx5_0", -1, 0), -EINVAL);
	assert_int_equal(kept.count, 0);
	end_log();
}
