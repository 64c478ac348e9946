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
	fake_umad(2, "mlx5_0", 1);
	return 0;
}

FIXTURE(setup, fake_teardown);

TEST(the_path_is_that_of_the_ports_issm_device)
{
	char path[64] = "untouched";

	assert_int_equal(umad_get_issm_path("mlx5_0", 1, path, sizeof(path)), 0);
	assert_string_equal(path, "/dev/infiniband/issm2");
	assert_int_equal(umad_get_issm_path(NULL, 0, path, sizeof(path)), 0);
	assert_string_equal(path, "/dev/infiniband/issm2");
}

TEST(a_path_that_does_not_fit_is_not_cut)
{
	char path[64];
	int max, length = (int)strlen("/dev/infiniband/issm2");

	for (max = 1; max <= length; max++) {
		memset(path, 'x', sizeof(path));
		assert_fails(umad_get_issm_path("mlx5_0", 1, path, max), ENOSPC);
		assert_string_equal(path, "");
		assert_int_equal(path[max], 'x');
	}
	assert_int_equal(umad_get_issm_path("mlx5_0", 1, path, length + 1), 0);
	assert_int_equal(umad_get_issm_path("mlx5_0", 1, path, 0), -ENOSPC);
	assert_int_equal(umad_get_issm_path("mlx5_0", 1, path, -1), -ENOSPC);
}

TEST(what_is_wrong_is_told)
{
	char path[64];

	assert_int_equal(umad_get_issm_path("mlx5_0", 1, NULL, 64), -EINVAL);
	strcpy(path, "something");
	assert_int_equal(umad_get_issm_path("mlx5_9", 1, path, 64), -ENODEV);
	assert_string_equal(path, "");
	assert_int_equal(umad_get_issm_path("mlx5_0", 2, path, 64), -EINVAL);
	assert_int_equal(umad_get_issm_path("mlx5_0", -1, path, 64), -EINVAL);
	assert_int_equal(umad_get_issm_path(NULL, 7, path, 64), -ENODEV);
	assert_int_equal(umad_open_issm("mlx5_9", 1, 0), -ENODEV);
	assert_int_equal(umad_open_issm("mlx5_0", 2, 0), -EINVAL);
	assert_int_equal(umad_open_issm("mlx5_0", 1, 2), -EINVAL);
	assert_fails(umad_open_issm("mlx5_0", 1, -1), EINVAL);
}

TEST(issm_is_held_while_its_device_is_open)
{
	struct fake_device *issm = fake_device("issm2");
	int fd = umad_open_issm("mlx5_0", 1, 0);

	assert_true(fd >= 0);
	assert_int_equal(issm->opened, 1);
	assert_false(issm->open_flags & O_NONBLOCK);
	assert_int_equal(umad_close_issm(fd), 0);
	assert_int_equal(issm->opened, 0);
	assert_fails(umad_close_issm(fd), EINVAL);
}

TEST(a_port_that_is_held_is_not_waited_for_if_so_asked)
{
	struct fake_device *issm = fake_device("issm2");

	issm->open_error = EAGAIN;
	assert_fails(umad_open_issm(NULL, 0, UMAD_ISSM_NONBLOCK), EAGAIN);
	assert_true(issm->open_flags & O_NONBLOCK);
}

TEST(a_signal_or_missing_rights_are_told)
{
	fake_device("issm2")->open_error = EINTR;
	assert_int_equal(umad_open_issm(NULL, 0, 0), -EINTR);
	fake_device("issm2")->open_error = EACCES;
	assert_fails(umad_open_issm(NULL, 0, 0), EACCES);
}

static char last_message[512];

static void keep_message(enum umad_log_level level, const char *text, void *user)
{
	(void)level;
	(void)user;
	snprintf(last_message, sizeof(last_message), "%s", text);
}

TEST(a_port_without_issm_device_is_told_in_words)
{
	fake_remove("/sys/class/infiniband_mad/issm2");
	umad_set_log_hook(keep_message, NULL);
	strcpy(last_message, "none");
	assert_int_equal(umad_open_issm("mlx5_0", 1, 0), -EINVAL);
	assert_string_equal(last_message, "none");
	umad_debug(1);
	assert_fails(umad_open_issm("mlx5_0", 1, 0), EINVAL);
	assert_non_null(
		strstr(last_message, "mlx5_0 port 1 has a umad device, but no issm device"));
	assert_non_null(strstr(last_message, "QP0"));
	assert_int_equal(umad_open_issm(NULL, 0, 0), -EINVAL);
	assert_non_null(
		strstr(last_message, "mlx5_0 port 1 has a umad device, but no issm device"));
	/* a port that does not exist is not reported as a port without QP0 */
	assert_int_equal(umad_open_issm("mlx5_0", 2, 0), -EINVAL);
	assert_string_equal(last_message, "mlx5_0 port 2 has no issm device");
	strcpy(last_message, "none");
	assert_int_equal(umad_open_issm("mlx5_0", -1, 0), -EINVAL);
	assert_string_equal(last_message, "none");
	umad_debug(0);
	umad_set_log_hook(NULL, NULL);
}
