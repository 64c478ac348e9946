/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The two layouts of the header before a MAD: 64 bytes with a P_Key index, and 56 bytes for a
 * program that does not enable the P_Key index. Raw calls on a separate descriptor, because a
 * library enables it.
 */
#include "check.h"
#include "kernel_abi.h"
#include "mads.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>

#define HEADER     64
#define OLD_HEADER 56
#define TID        5

_Static_assert(sizeof(struct ib_user_mad_hdr) == HEADER, "with P_Key index");
_Static_assert(sizeof(struct ib_user_mad_hdr_old) == OLD_HEADER, "without");
_Static_assert(sizeof(struct ib_user_mad) == HEADER, "libibumad's");
_Static_assert(offsetof(struct ib_user_mad, length) == 16, "in both");
_Static_assert(offsetof(struct ib_user_mad, addr.grh_present) == 32, "in both");
_Static_assert(offsetof(struct ib_user_mad, addr.flow_label) == 52, "in both");
_Static_assert(offsetof(struct ib_user_mad, addr.pkey_index) == OLD_HEADER, "the new one's");

static int opened(const struct port *port)
{
	int fd = open_device(port, "umad", O_RDWR | O_NONBLOCK);

	expect(fd >= 0);
	return fd;
}

static int registered(int fd, uint8_t method)
{
	struct ib_user_mad_reg_req request = {
		.qpn = 1,
		.mgmt_class = CLASS,
		.mgmt_class_version = 1,
		.oui = {OUI >> 16, (OUI >> 8) & 0xff, OUI & 0xff},
	};

	if (method)
		request.method_mask[0] = 1UL << method;
	return ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &request) ? -errno : (int)request.id;
}

static void wait_for_data(int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};

	expect_equal(poll(&pollfd, 1, 30000), 1);
	expect_equal(pollfd.revents, POLLIN);
}

/* A request to the other port, in the layout with that header. */
static void make_request(uint8_t *packet, size_t header, int agent)
{
	/* libibumad's buffer has the address at the same offset in both layouts */
	void *umad = new_umad(MAD);
	uint32_t id = (uint32_t)agent, timeout = 20000;

	set_mad(umad, METHOD_ANY, TID);
	set_destination(umad, &there);
	fill(umad, DATA, MAD);
	memset(packet, 0, HEADER);
	memcpy(packet, umad, OLD_HEADER);
	memcpy(packet, &id, sizeof(id));
	memcpy(packet + 8, &timeout, sizeof(timeout));
	memcpy(packet + header, umad_get_mad(umad), MAD);
	free(umad);
}

static void expect_mad(const uint8_t *packet, size_t header)
{
	uint8_t expected[HEADER + MAD];
	uint32_t length;

	make_request(expected, HEADER, 0);
	memcpy(&length, packet + 16, sizeof(length));
	expect_equal(length, header + MAD);
	expect_equal(packet[header + 15], TID);
	expect_bytes(packet + header + DATA, expected + HEADER + DATA, MAD - DATA);
}

/* One request and its response: each side writes and reads the header of its layout. */
static void converse(int from, size_t header, int to, size_t other_header)
{
	uint8_t packet[HEADER + MAD];
	int agent = registered(from, 0);
	uint32_t qkey = htobe32(0x80010000);

	expect(agent >= 0);
	expect(registered(to, METHOD_ANY) >= 0);
	make_request(packet, header, agent);
	expect_equal(write(from, packet, header + MAD), header + MAD);

	wait_for_data(to);
	expect_errno(read(to, packet, other_header - 1), EINVAL);
	expect_equal(read(to, packet, sizeof(packet)), other_header + MAD);
	expect_mad(packet, other_header);
	packet[other_header + 3] |= RESPONSE;
	memcpy(packet + 24, &qkey, sizeof(qkey));
	expect_equal(write(to, packet, other_header + MAD), other_header + MAD);

	wait_for_data(from);
	memset(packet, 0xee, sizeof(packet));
	expect_equal(read(from, packet, sizeof(packet)), header + MAD);
	expect_equal(packet[header + 3], METHOD_ANY | RESPONSE);
	expect_mad(packet, header);
	if (header == HEADER)
		expect_bytes(packet + OLD_HEADER, "\0\0\0\0\0\0\0", 8); /* P_Key index 0 */
}

static void without_asking_the_header_has_56_bytes(void)
{
	converse(opened(&here), OLD_HEADER, opened(&there), OLD_HEADER);
}

static void who_asks_gets_64(void)
{
	int from = opened(&here), to = opened(&there);

	expect_equal(ioctl(from, IB_USER_MAD_ENABLE_PKEY), 0);
	expect_equal(ioctl(to, IB_USER_MAD_ENABLE_PKEY), 0);
	converse(from, HEADER, to, HEADER);
}

static void the_layout_is_the_descriptors(void)
{
	int from = opened(&here), to = opened(&there);

	expect_equal(ioctl(from, IB_USER_MAD_ENABLE_PKEY), 0);
	converse(from, HEADER, to, OLD_HEADER);
}

static void with_an_agent_it_is_too_late_to_ask(void)
{
	int fd = opened(&here);

	expect_equal(registered(fd, 0), 0);
	expect_errno(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), EINVAL);
	fd = opened(&here);
	expect_equal(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), 0);
	expect_equal(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), 0);
}

static void the_second_way_to_register_asks_by_itself(void)
{
	struct ib_user_mad_reg_req2 request = {
		.qpn = 1, .mgmt_class = CLASS, .mgmt_class_version = 1, .oui = OUI};
	int from = opened(&here), to = opened(&there);

	expect_equal(ioctl(from, IB_USER_MAD_REGISTER_AGENT2, &request), 0);
	expect_errno(ioctl(from, IB_USER_MAD_ENABLE_PKEY), EINVAL);
	converse(from, HEADER, to, OLD_HEADER);
}

static void the_library_asks(void)
{
	int fd = open_port(&here);

	expect_equal(umad_size(), HEADER);
	expect_equal(client(fd, 0), 0);
	expect_errno(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), EINVAL);
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(without_asking_the_header_has_56_bytes),
		CHECK(who_asks_gets_64),
		CHECK(the_layout_is_the_descriptors),
		CHECK_ALONE(with_an_agent_it_is_too_late_to_ask),
		CHECK(the_second_way_to_register_asks_by_itself),
		CHECK_ALONE(the_library_asks),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
