/* SPDX-License-Identifier: BSD-2-Clause */

/* Opening a port loads ib_umad if it is not loaded. */
#include "check.h"
#include "environment.h"

#include <infiniband/umad_ext.h>
#include <unistd.h>
#include <sys/stat.h>

#define NOBODY 65534

static struct port port; /* the port while the module was loaded */

static void unloaded(void)
{
	struct stat status;

	if (!environment_asked("unload", ""))
		cannot("there is no kernel module to unload");
	expect_errno(stat(SYS_INFINIBAND_MAD, &status), ENOENT);
}

static bool is_loaded(void)
{
	struct stat status;

	return stat(SYS_INFINIBAND_MAD, &status) == 0;
}

static void opening_a_port_loads_the_module(void)
{
	int64_t started;
	int fd;

	unloaded();
	started = now_ms();
	fd = umad_open_port(port.ca_name, port.portnum);
	expect(fd >= 0);
	note("loaded and opened in %lld ms", (long long)(now_ms() - started));
	expect(umad_register(fd, 0x3a, 1, 0, NULL) >= 0);
	expect_equal(umad_close_port(fd), 0);
}

static void devices_are_listed_without_the_module(void)
{
	umad_ca_t ca;

	unloaded();
	expect_equal(umad_get_ca(port.ca_name, &ca), 0);
	expect_equal(umad_release_ca(&ca), 0);
	expect(!is_loaded());
	expect(environment_asked("load", ""));
}

static void what_is_not_there_does_not_load_it_or_open(void)
{
	unloaded();
	expect_equal(umad_open_port("nobody", 1), -EOPNOTSUPP);
	expect(!is_loaded());
	expect(umad_open_port(port.ca_name, 77) < 0);
	expect(environment_asked("load", ""));
}

static void a_failed_opening_is_not_remembered(void)
{
	int fd;

	unloaded();
	expect(environment_asked("forbid", ""));
	expect(umad_open_port(port.ca_name, port.portnum) < 0);
	expect(!is_loaded());
	expect(environment_asked("allow", ""));
	fd = umad_open_port(port.ca_name, port.portnum);
	expect(fd >= 0);
	expect_equal(umad_close_port(fd), 0);
	unloaded();
	fd = umad_open_port(port.ca_name, port.portnum);
	expect(fd >= 0);
	expect_equal(umad_close_port(fd), 0);
}

static void issm_is_found_once_the_module_is_there(void)
{
	int fd;

	needs_issm();
	unloaded();
	fd = umad_open_issm(port.ca_name, port.portnum, UMAD_ISSM_NONBLOCK);
	expect(fd >= 0);
	expect_equal(umad_close_issm(fd), 0);
}

static void open_as_nobody(void *unused)
{
	(void)unused;
	expect_equal(setuid(NOBODY), 0);
	expect_equal(umad_open_port(port.ca_name, port.portnum), -EIO);
	expect_equal(errno, EACCES);
}

static void who_has_no_rights_loads_it_and_cannot_open(void)
{
	unloaded();
	expect_child(start_child(open_as_nobody, NULL));
	expect(is_loaded());
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(opening_a_port_loads_the_module),
		CHECK(devices_are_listed_without_the_module),
		CHECK(what_is_not_there_does_not_load_it_or_open),
		CHECK(a_failed_opening_is_not_remembered),
		CHECK(issm_is_found_once_the_module_is_there),
		CHECK(who_has_no_rights_loads_it_and_cannot_open),
	};

	set_environment(argc, argv);
	find_ports();
	port = here;
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
