/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Open umad devices and processes, on umad-sim: threads that close descriptors others are
 * using, children of fork(), vfork() and posix_spawn(), exec(), and the calls that close many
 * descriptors. With sanitizers, the preloaded library's sources are part of this program.
 */
#define OWN_MAIN /* it has arguments */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/ib_user_mad.h>

#define DEVICE   "/dev/infiniband/umad0"
#define THREADS  8
#define SLOTS    4
#define HIGH_FD  1000 /* higher than any descriptor of the preloaded library */
#define ROUNDS   400
#define CHILDREN 200

int close_range(unsigned int first, unsigned int last, int flags);
void closefrom(int first);

static int open_device(int flags)
{
	int fd = open(DEVICE, O_RDWR | O_NONBLOCK | flags);

	assert_true(fd >= 0);
	return fd;
}

/* Whether a descriptor is a umad device, on which an agent can be registered. */
static bool is_device(int fd)
{
	struct ib_user_mad_reg_req request = {
		.qpn = 1, .mgmt_class = 4, .mgmt_class_version = 1};

	return !ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &request) &&
	       !ioctl(fd, IB_USER_MAD_UNREGISTER_AGENT, &request.id);
}

static void ended_well(pid_t child)
{
	int status;

	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* --- threads ----------------------------------------------------------------- */

/* Replaces, closes, reads and writes descriptors that other threads are using, too. */
static void *use_devices(void *argument)
{
	unsigned int seed = (unsigned int)(uintptr_t)argument;
	char packet[1024] = "";

	for (int round = 0; round < ROUNDS; round++) {
		int shared = HIGH_FD + rand_r(&seed) % SLOTS;
		struct pollfd pollfd = {.fd = shared, .events = POLLIN};
		int fd;

		switch (rand_r(&seed) % 5) {
		case 0:
			fd = open(DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
			if (fd >= 0) {
				dup3(fd, shared, O_CLOEXEC);
				close(fd);
			}
			break;
		case 1:
			close(shared);
			break;
		case 2:
			if (read(shared, packet, sizeof(packet)) < 0)
				poll(&pollfd, 1, 0);
			break;
		case 3:
			/* no such agent: the fabric refuses this after it has read the shared
			 * memory */
			packet[0] = 31;
			if (write(shared, packet, 320) < 0)
				poll(&pollfd, 1, 0);
			break;
		default:
			is_device(shared);
		}
	}
	return NULL;
}

TEST(threads_may_close_what_others_use)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, use_devices, (void *)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < SLOTS; i++)
		close(HIGH_FD + i);
}

static atomic_bool reading;

static void *read_always(void *argument)
{
	int fd = *(int *)argument;
	char packet[1024];

	while (atomic_load(&reading))
		if (read(fd, packet, sizeof(packet)) >= 0)
			return argument;
	return NULL;
}

TEST(a_child_reads_though_a_thread_read_when_it_was_forked)
{
	int fd = open_device(O_CLOEXEC);
	char packet[1024];
	pthread_t thread;
	void *wrong;

	atomic_store(&reading, true);
	assert_int_equal(pthread_create(&thread, NULL, read_always, &fd), 0);
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();

		if (child == 0) {
			alarm(60); /* stops a hang */
			_exit(read(fd, packet, sizeof(packet)) < 0 && errno == EAGAIN ? 0 : 1);
		}
		ended_well(child);
	}
	atomic_store(&reading, false);
	assert_int_equal(pthread_join(thread, &wrong), 0);
	assert_null(wrong);
	assert_int_equal(close(fd), 0);
}

/* --- children ---------------------------------------------------------------- */

TEST(a_child_of_fork_closes_its_own_only)
{
	int fd = open_device(O_CLOEXEC);
	pid_t child = fork();

	if (child == 0)
		_exit(is_device(fd) && !close(fd) && !is_device(fd) ? 0 : 1);
	ended_well(child);
	assert_true(is_device(fd));
	assert_int_equal(close(fd), 0);
	assert_false(is_device(fd));
}

TEST(a_child_of_vfork_closes_its_own_only)
{
	int fd = open_device(O_CLOEXEC);
	pid_t child = vfork();

	if (child == 0) {
		close(fd);
		dup2(STDERR_FILENO, fd);
		close_range((unsigned int)fd, (unsigned int)fd, 0);
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	ended_well(child);
	assert_true(is_device(fd));
	assert_int_equal(close(fd), 0);
}

/* clone() does not call the handlers of pthread_atfork(). */
TEST(a_child_of_clone_closes_its_own_only)
{
	int fd = open_device(O_CLOEXEC);
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (child == 0) {
		close(fd);
		_exit(open("/dev/null", O_RDWR) != fd || is_device(fd));
	}
	ended_well(child);
	assert_true(is_device(fd));
	assert_int_equal(close(fd), 0);
}

TEST(what_posix_spawn_closes_is_the_childs)
{
	char *const arguments[] = {(char[]){"true"}, NULL};
	posix_spawn_file_actions_t actions;
	int fd = open_device(0);
	pid_t child;

	assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
	assert_int_equal(posix_spawn_file_actions_addclose(&actions, fd), 0);
	assert_int_equal(posix_spawn(&child, "/bin/true", &actions, NULL, arguments, environ),
			 0);
	ended_well(child);
	assert_int_equal(posix_spawn_file_actions_destroy(&actions), 0);
	assert_int_equal(system("true"), 0);
	assert_true(is_device(fd));
	assert_int_equal(close(fd), 0);
}

static const char *self;

#ifndef PAST_SANITIZERS /* with them the next program has two such libraries, and the other \
			   one inherits */
TEST(a_handle_kept_across_exec_is_a_device)
{
	int fd = open_device(0), closed = open_device(O_CLOEXEC);
	char number[16], other[16];
	pid_t child;

	snprintf(number, sizeof(number), "%d", fd);
	snprintf(other, sizeof(other), "%d", closed);
	child = fork();
	if (child == 0) {
		execl(self, self, number, other, (char *)NULL);
		_exit(1);
	}
	ended_well(child);
	assert_true(is_device(fd));
	assert_int_equal(close(fd), 0);
	assert_int_equal(close(closed), 0);
}

TEST(a_handle_kept_across_exec_has_its_access)
{
	int reader = open(DEVICE, O_RDONLY | O_NONBLOCK), name = open(DEVICE, O_PATH);
	char numbers[2][16];
	pid_t child;

	assert_true(reader >= 0 && name >= 0);
	snprintf(numbers[0], sizeof(numbers[0]), "%d", reader);
	snprintf(numbers[1], sizeof(numbers[1]), "%d", name);
	child = fork();
	if (child == 0) {
		execl(self, self, numbers[0], numbers[1], "access", (char *)NULL);
		_exit(1);
	}
	ended_well(child);
	assert_int_equal(close(reader), 0);
	assert_int_equal(close(name), 0);
}
#endif

/* --- calls that close descriptors without close() ----------------------------- */

static void close_by_range(int fd)
{
	assert_int_equal(close_range((unsigned int)fd, (unsigned int)fd, 0), 0);
}

static void close_by_stream(int fd)
{
	FILE *stream = fdopen(fd, "r+");

	assert_non_null(stream);
	assert_int_equal(fclose(stream), 0);
}

static void close_by_dup2(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_int_equal(dup2(null, fd), fd);
	assert_int_equal(close(null), 0);
	assert_int_equal(close(fd), 0);
}

TEST(a_closed_number_is_the_next_files)
{
	static void (*const closes[])(int fd) = {close_by_range, close_by_stream, close_by_dup2,
						 closefrom};
	char byte = 1;

	for (unsigned int i = 0; i < sizeof(closes) / sizeof(closes[0]); i++) {
		int fd = open_device(O_CLOEXEC);
		int other;

		closes[i](fd);
		/* the lowest free number */
		other = open("/dev/zero", O_RDONLY | O_CLOEXEC);
		assert_int_equal(other, fd);
		assert_int_equal(read(other, &byte, 1), 1);
		assert_int_equal(byte, 0);
		assert_int_equal(close(other), 0);
	}
}

TEST(a_range_that_closes_at_exec_closes_nothing_now)
{
	int fd = open_device(0);

	assert_int_equal(close_range((unsigned int)fd, (unsigned int)fd, 4 /* at exec */), 0);
	assert_true(is_device(fd));
	assert_int_equal(close(fd), 0);
}

/* The program after exec(): one handle to read, and one that only names the device. */
static bool kept_their_access(int reader, int name)
{
	struct stat of_reader, of_name;
	char byte = 0;

	return !fstat(reader, &of_reader) && !fstat(name, &of_name) &&
	       S_ISCHR(of_reader.st_mode) && of_reader.st_rdev == makedev(231, 0) &&
	       S_ISCHR(of_name.st_mode) && of_name.st_rdev == of_reader.st_rdev &&
	       of_name.st_ino == of_reader.st_ino && is_device(reader) &&
	       write(reader, &byte, 1) < 0 && errno == EBADF && read(reader, &byte, 1) < 0 &&
	       errno == EINVAL && read(name, &byte, 1) < 0 && errno == EBADF;
}

int main(int argc, char **argv)
{
	self = argv[0];
	if (argc == 4)
		return kept_their_access(atoi(argv[1]), atoi(argv[2])) ? 0 : 1;
	if (argc == 3) /* the program after exec() */
		return is_device(atoi(argv[1])) && !is_device(atoi(argv[2])) ? 0 : 1;
	return run_all_tests();
}
