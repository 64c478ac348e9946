/* SPDX-License-Identifier: BSD-2-Clause */

/* The IsSM bit: one program holds it; other programs fail or wait. */
#include "check.h"
#include "environment.h"

#include <fcntl.h>
#include <infiniband/umad_ext.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>

#define IS_SM 0x2

static unsigned long capabilities(void)
{
	char text[64];

	read_port_file(&here, "cap_mask", text, sizeof(text));
	return strtoul(text, NULL, 0);
}

static int hold(int flags)
{
	return umad_open_issm(here.ca_name, here.portnum, flags);
}

static void the_bit_is_there_as_long_as_it_is_held(void)
{
	unsigned long before = capabilities();
	int fd;

	needs_issm();
	fd = hold(0);
	expect(fd >= 0);
	expect_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	expect_equal(capabilities(), (before | IS_SM));
	expect_equal(umad_close_issm(fd), 0);
	expect_equal(capabilities(), before);
	expect_equal(umad_close_issm(fd), -EINVAL);
}

static void a_second_holder_is_refused(void)
{
	int first;

	needs_issm();
	first = hold(0);
	expect(first >= 0);
	expect_equal(hold(UMAD_ISSM_NONBLOCK), -EAGAIN);
	expect_equal(umad_close_issm(first), 0);
	first = hold(UMAD_ISSM_NONBLOCK);
	expect(first >= 0);
	expect_equal(umad_close_issm(first), 0);
}

static void hold_and_release(void *unused)
{
	int fd = hold(0);

	(void)unused;
	expect(fd >= 0);
	expect(capabilities() & IS_SM);
}

static void a_second_holder_waits(void)
{
	int child, first;

	needs_issm();
	first = hold(0);
	expect(first >= 0);
	child = fork();
	if (child == 0) {
		expect_equal(umad_close_issm(first), 0); /* a copy of the descriptor */
		hold_and_release(NULL);
		exit(0);
	}
	pause_ms(100);
	expect_equal(waitpid(child, &(int){0}, WNOHANG), 0);
	expect_equal(umad_close_issm(first), 0);
	expect_child(child);
}

static void the_programs_end_releases_it(void)
{
	needs_issm();
	expect_child(start_child(hold_and_release, NULL));
	expect(!(capabilities() & IS_SM));
}

static void the_other_port_is_another_matter(void)
{
	int first, second;

	needs_issm();
	first = hold(0);
	second = umad_open_issm(there.ca_name, there.portnum, UMAD_ISSM_NONBLOCK);
	expect(first >= 0);
	expect(second >= 0);
	expect_equal(umad_close_issm(first), 0);
	expect_equal(umad_close_issm(second), 0);
}

static void there_is_nothing_to_read(void)
{
	char byte;
	int fd;

	needs_issm();
	fd = open_device(&here, "issm", O_RDONLY);
	expect(fd >= 0);
	expect_errno(read(fd, &byte, 1), EINVAL);
}

static void its_path_is_found(void)
{
	char expected[64], path[64];

	needs_issm();
	device_path(&here, "issm", expected);
	expect_equal(umad_get_issm_path(here.ca_name, here.portnum, path, sizeof(path)), 0);
	expect(!strcmp(path, expected));
	expect_equal(umad_get_issm_path(here.ca_name, here.portnum, path, 8), -ENOSPC);
}

static char messages[1024];

static void keep_message(enum umad_log_level level, const char *text, void *user)
{
	size_t used = strlen(messages);

	(void)level;
	(void)user;
	snprintf(messages + used, sizeof(messages) - used, "%s\n", text);
}

static void only_a_port_without_issm_device_is_said_to_have_none(void)
{
	bool none = !has_issm(&here);
	int fd;

	umad_set_log_hook(keep_message, NULL);
	umad_debug(1);
	fd = hold(UMAD_ISSM_NONBLOCK);
	expect_equal(fd < 0 ? fd : 0, none ? -EINVAL : 0);
	expect_equal(strstr(messages, "no issm device") != NULL, none);
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(the_bit_is_there_as_long_as_it_is_held),
		CHECK(a_second_holder_is_refused),
		CHECK(a_second_holder_waits),
		CHECK(the_programs_end_releases_it),
		CHECK(the_other_port_is_another_matter),
		CHECK(there_is_nothing_to_read),
		CHECK(its_path_is_found),
		CHECK(only_a_port_without_issm_device_is_said_to_have_none),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
