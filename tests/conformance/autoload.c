/* SPDX-License-Identifier: BSD-2-Clause */

/* Opening a port loads ib_umad if it is not loaded. */
#include "check.h"
#include "environment.h"

#include <infiniband/umad_ext.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define NOBODY       65534
#define DEVICES_MOST 1024

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

/* Everything in a netlink message begins at a multiple of 4. */
static uint32_t aligned(uint32_t length)
{
	return (length + 3) & ~3U;
}

/* Adds an attribute to a netlink request. */
static void add_attribute(struct nlmsghdr *request, uint16_t type, const void *data,
			  size_t length)
{
	struct nlattr attribute = {.nla_type = type,
				   .nla_len = (uint16_t)(sizeof(attribute) + length)};
	char *place = (char *)request + request->nlmsg_len;

	memcpy(place, &attribute, sizeof(attribute));
	memcpy(place + sizeof(attribute), data, length);
	request->nlmsg_len += aligned(attribute.nla_len);
}

/* Asks for the character device of a type: 0 if there is one, or the kernel's error. */
static int find_device(int netlink, const char *type, uint32_t device)
{
	union {
		struct nlmsghdr header;
		char bytes[4096];
	} message = {.header = {.nlmsg_len = sizeof(struct nlmsghdr),
				.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV,
							       RDMA_NLDEV_CMD_GET_CHARDEV),
				.nlmsg_flags = NLM_F_REQUEST}};
	uint32_t portnum = (uint32_t)port.portnum;
	struct nlmsgerr error;

	add_attribute(&message.header, RDMA_NLDEV_ATTR_CHARDEV_TYPE, type, strlen(type) + 1);
	add_attribute(&message.header, RDMA_NLDEV_ATTR_DEV_INDEX, &device, sizeof(device));
	add_attribute(&message.header, RDMA_NLDEV_ATTR_PORT_INDEX, &portnum, sizeof(portnum));
	expect(send(netlink, &message, message.header.nlmsg_len, 0) > 0);
	expect(recv(netlink, &message, sizeof(message), 0) > 0);
	if (message.header.nlmsg_type != NLMSG_ERROR)
		return 0;
	memcpy(&error, message.bytes + sizeof(message.header), sizeof(error));
	return -error.error;
}

/* A device that comes back has a higher number. */
static void issm_is_no_type_of_a_character_device(void)
{
	int netlink, found = 0, unsupported = 0, wrong = 0;

	unloaded();
	expect(environment_asked("load", ""));
	netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
	expect(netlink >= 0);
	for (uint32_t device = 0; device < DEVICES_MOST; device++) {
		int error = find_device(netlink, "umad", device);

		if (error) {
			expect_equal(error, EINVAL); /* no such device */
			wrong++;
			continue;
		}
		found++;
		error = find_device(netlink, "issm", device);
		note("device %u, issm: %s", device, error ? strerror(error) : "found");
		unsupported += error == EOPNOTSUPP;
	}
	expect(found > 0 && wrong > 0);
	expect_equal(unsupported, found);
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
		CHECK(issm_is_no_type_of_a_character_device),
		CHECK(who_has_no_rights_loads_it_and_cannot_open),
	};

	set_environment(argc, argv);
	find_ports();
	port = here;
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
