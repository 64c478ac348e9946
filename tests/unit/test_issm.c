/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "test.h"

#include <infiniband/umad_ext.h>
#include <fcntl.h>
#include <signal.h>

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
	/* no wait in the kernel, which kills the program if the device is removed meanwhile */
	assert_true(issm->open_flags & O_NONBLOCK);
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

static int attempts;

static void count_attempts(const char *path)
{
	if (!strcmp(path, "/dev/infiniband/issm2"))
		attempts++;
}

static void release_issm(const char *path)
{
	count_attempts(path);
	if (attempts == 3)
		fake_device("issm2")->open_error = 0;
}

static void remove_issm(const char *path)
{
	count_attempts(path);
	if (attempts != 2)
		return;
	fake_remove("/sys/class/infiniband_mad/issm2");
	fake_remove("/dev/infiniband/issm2");
	fake_before_open(NULL);
}

/* Another device may get the number of the device that was removed. */
static void move_issm(const char *path)
{
	count_attempts(path);
	if (attempts != 1)
		return;
	fake_umad(3, "mlx5_0", 1);
	fake_ca("mlx5_1");
	fake_port("mlx5_1", 1, 2);
	fake_umad(2, "mlx5_1", 1);
	fake_before_open(count_attempts);
}

TEST(a_port_that_is_held_is_waited_for)
{
	struct fake_device *issm = fake_device("issm2");
	int fd;

	attempts = 0;
	issm->open_error = EAGAIN;
	fake_before_open(release_issm);
	fd = umad_open_issm(NULL, 0, 0);
	fake_before_open(NULL);
	assert_true(fd >= 0);
	assert_int_equal(attempts, 3);
	assert_int_equal(umad_close_issm(fd), 0);
}

TEST(the_wait_ends_with_the_device)
{
	attempts = 0;
	fake_device("issm2")->open_error = EAGAIN;
	fake_before_open(remove_issm);
	assert_fails(umad_open_issm("mlx5_0", 1, 0), ENODEV);
	fake_before_open(NULL);
}

TEST(the_device_that_is_waited_for_is_that_of_the_port)
{
	int fd;

	attempts = 0;
	fake_device("issm2")->open_error = EAGAIN;
	fake_before_open(move_issm);
	fd = umad_open_issm(NULL, 0, 0);
	fake_before_open(NULL);
	assert_true(fd >= 0);
	assert_int_equal(fake_device("issm2")->opened, 0);
	assert_int_equal(fake_device("issm3")->opened, 1);
	assert_int_equal(umad_close_issm(fd), 0);
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
	fake_device("issm2")->open_error = EAGAIN;
	fake_before_open(raise_signal);
	assert_fails(umad_open_issm(NULL, 0, 0), EINTR);
	fake_before_open(NULL);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &blocked), 0);
	assert_int_equal(sigismember(&blocked, SIGUSR1), 0);
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
