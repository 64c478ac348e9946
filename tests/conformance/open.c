/* SPDX-License-Identifier: BSD-2-Clause */

/* Devices in sysfs and /dev, and opening them. */
#include "check.h"
#include "mads.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define UMAD_MAJOR 231
#define ISSM_MINOR 64

static void both_devices_are_listed(void)
{
	char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];
	int count = umad_get_cas_names(names, UMAD_MAX_DEVICES);
	bool found_here = false, found_there = false;

	for (int i = 0; i < count; i++) {
		found_here |= !strcmp(names[i], here.ca_name);
		found_there |= !strcmp(names[i], there.ca_name);
	}
	expect(found_here && found_there);
}

static void a_device_tells_of_its_ports(void)
{
	const umad_port_t *port;
	umad_ca_t ca;

	expect_equal(umad_get_ca(here.ca_name, &ca), 0);
	expect_equal(ca.node_type, 1);
	expect(ca.numports >= here.portnum);
	port = ca.ports[here.portnum];
	expect(port);
	expect_equal(port->base_lid, here.lid);
	expect_equal(port->state, 4);
	expect_equal(port->phys_state, 5);
	expect(port->rate > 0);
	expect_bytes(&port->gid_prefix, here.gid, 8);
	expect_bytes(&port->port_guid, here.gid + 8, 8);
	expect(port->pkeys_size >= 1);
	expect_equal(port->pkeys[0], 0xffff);
	expect_equal(!strcmp(port->link_layer, "Ethernet"), here.ethernet);
	expect_equal(umad_release_ca(&ca), 0);
}

static void a_soft_roce_device_lacks_what_hardware_has(void)
{
	umad_ca_t ca;

	if (!here.ethernet)
		cannot("the device is simulated hardware");
	expect_equal(umad_get_ca(here.ca_name, &ca), 0);
	expect_equal(strlen(ca.hw_ver), 0);
	expect_equal(strlen(ca.ca_type), 0);
	expect_equal(ca.ports[here.portnum]->base_lid, 0);
	expect_equal(ca.ports[here.portnum]->rate, 10);
	expect_equal(be32toh(ca.ports[here.portnum]->capmask), 0x10000);
	expect_equal(umad_release_ca(&ca), 0);
}

static void expect_node(const char *kind, unsigned int first_minor)
{
	char path[64];
	struct stat status;

	device_path(&here, kind, path);
	expect_equal(stat(path, &status), 0);
	expect(S_ISCHR(status.st_mode));
	expect_equal(status.st_mode & 0777, 0600);
	expect_equal(major(status.st_rdev), UMAD_MAJOR);
	expect_equal(minor(status.st_rdev),
		     first_minor + (unsigned int)atoi(path + strcspn(path, "0123456789")));
}

static void umad_nodes_are_character_devices_of_the_superuser(void)
{
	expect_node("umad", 0);
}

static void issm_nodes_are_character_devices_of_the_superuser(void)
{
	needs_issm();
	expect_node("issm", ISSM_MINOR);
}

static void entries_of_the_class_are_links(void)
{
	char path[64], entry[128];
	struct stat status;

	device_path(&here, "umad", path);
	snprintf(entry, sizeof(entry), SYS_INFINIBAND_MAD "%s", strrchr(path, '/'));
	expect_equal(lstat(entry, &status), 0);
	expect(S_ISLNK(status.st_mode));
}

static void the_version_of_the_interface_is_5(void)
{
	FILE *file = fopen(SYS_INFINIBAND_MAD "/abi_version", "r");
	int version;

	expect(file);
	expect_equal(fscanf(file, "%d", &version), 1);
	expect_equal(version, 5);
	expect_equal(fclose(file), 0);
}

static void a_port_is_opened_as_often_as_one_likes(void)
{
	int first = open_port(&here), second = open_port(&here);

	expect(first != second);
	expect_equal(umad_close_port(first), 0);
	client(second, 0);
	expect_equal(umad_close_port(second), 0);
	expect_equal(umad_close_port(second), -EINVAL);
}

static void handles_do_not_block_and_do_not_leak(void)
{
	int fd = open_port(&here);

	expect(fcntl(fd, F_GETFL) & O_NONBLOCK);
	expect_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

static void a_port_that_is_not_there_is_not_opened(void)
{
	expect(umad_open_port(here.ca_name, 77) < 0);
	expect_equal(umad_open_port("nobody", 1), -ENODEV);
	expect_errno(open("/dev/infiniband/umad200", O_RDWR), ENOENT);
}

static void ioctls_that_nobody_knows_are_refused(void)
{
	int fd = open_port(&here);

	expect_errno(ioctl(fd, _IO(IB_IOCTL_MAGIC, 99)), ENOTTY);
	expect_errno(ioctl(fd, _IO('T', 1)), ENOTTY);
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(both_devices_are_listed),
		CHECK(a_device_tells_of_its_ports),
		CHECK(a_soft_roce_device_lacks_what_hardware_has),
		CHECK(umad_nodes_are_character_devices_of_the_superuser),
		CHECK(issm_nodes_are_character_devices_of_the_superuser),
		CHECK_ALONE(entries_of_the_class_are_links),
		CHECK_ALONE(the_version_of_the_interface_is_5),
		CHECK_ALONE(a_port_is_opened_as_often_as_one_likes),
		CHECK_ALONE(handles_do_not_block_and_do_not_leak),
		CHECK_ALONE(a_port_that_is_not_there_is_not_opened),
		CHECK_ALONE(ioctls_that_nobody_knows_are_refused),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
