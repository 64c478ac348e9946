/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Tests what the preloaded library adds to the socket below a umad or issm device. umad-sim
 * runs the program on host-1 and host-2 of fat-tree:4,2, as umad0 and umad1. It makes system
 * calls directly, without libibumad.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <rdma/ib_user_mad.h>

#include "protocol.h"
#define OWN_MAIN /* it has arguments */
#include "test.h"

#define HEADER     64
#define OLD_HEADER 56
#define MAD        256
#define CLASS      0x32 /* vendor range 2, with OUI */
#define DATA       40   /* offset of the class's data */
#define LARGE      (1 << 20)

static const char *umad_sim;

static int open_device(const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/infiniband/%s", name);
	return open(path, O_RDWR | flags);
}

static int agent(int fd, uint8_t class, uint8_t rmpp, uint64_t methods)
{
	struct ib_user_mad_reg_req2 request = {
		.qpn = class == 0x81 ? 0 : 1,
		.mgmt_class = class,
		.mgmt_class_version = 1,
		.method_mask = {methods},
		.oui = class == CLASS ? 0x001405 : 0,
		.rmpp_version = rmpp,
	};

	return ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, &request) ? -errno : (int)request.id;
}

static uint16_t lid_of(unsigned int device)
{
	char path[80];
	unsigned int lid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/infiniband/mlx5_%u/ports/1/lid", device);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%x", &lid), 1);
	fclose(file);
	return (uint16_t)lid;
}

/* Get(NodeInfo) of the program's own node. */
static void make_smp(uint8_t packet[HEADER + MAD], int id, uint32_t tid, uint32_t timeout)
{
	uint8_t *mad = packet + HEADER;

	memset(packet, 0, HEADER + MAD);
	memcpy(packet, &id, 4);
	memcpy(packet + 8, &timeout, 4);
	packet[28] = 0xff;
	packet[29] = 0xff;
	mad[0] = 1;
	mad[1] = 0x81;
	mad[2] = 1;
	mad[3] = 1;
	mad[17] = 0x11;
	memcpy(mad + 12, &tid, 4);
	memset(mad + 32, 0xff, 4);
}

static void make_message(uint8_t *packet, int id, uint8_t method, uint16_t lid, size_t length,
			 uint32_t timeout)
{
	uint8_t *mad = packet + HEADER;

	memset(packet, 0, HEADER + DATA);
	memcpy(packet, &id, 4);
	memcpy(packet + 8, &timeout, 4);
	packet[23] = 1;    /* QP1 */
	packet[24] = 0x80; /* its Q_Key */
	packet[25] = 1;
	packet[28] = (uint8_t)(lid >> 8);
	packet[29] = (uint8_t)lid;
	mad[0] = 1;
	mad[1] = CLASS;
	mad[2] = 1;
	mad[3] = method;
	mad[15] = 9;
	mad[26] = 1; /* RMPP: active */
	mad[38] = 0x14;
	mad[39] = 0x05;
	for (size_t i = DATA; i < length; i++)
		mad[i] = (uint8_t)(i * 31 + i / 251);
}

static void wait_for_data(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&poll_fd, 1, 5000), 1);
	assert_int_equal(poll_fd.revents, POLLIN);
}

TEST(devices_are_character_devices)
{
	struct stat status;

	assert_int_equal(stat("/dev/infiniband/umad1", &status), 0);
	assert_true(S_ISCHR(status.st_mode));
	assert_int_equal(major(status.st_rdev), 231);
	assert_int_equal(minor(status.st_rdev), 1);
	assert_fails_minus_1(open_device("umad7", 0), ENOENT);
}

TEST(a_read_with_nothing_there_says_so)
{
	uint8_t buffer[HEADER + MAD];
	int fd = open_device("umad0", O_NONBLOCK);

	assert_true(fd >= 0);
	assert_int_equal(agent(fd, 0x81, 0, 0), 0);
	assert_fails_minus_1(read(fd, buffer, sizeof(buffer)), EAGAIN);
	assert_fails_minus_1(read(fd, buffer, HEADER - 1), EINVAL);
	close(fd);
}

TEST(a_packet_that_does_not_fit_stays)
{
	uint8_t packet[HEADER + MAD];
	int fd = open_device("umad0", O_NONBLOCK);
	int id = agent(fd, 0x81, 0, 0);

	make_smp(packet, id, 1, 1000);
	assert_int_equal(write(fd, packet, sizeof(packet)), sizeof(packet));
	wait_for_data(fd);
	assert_fails_minus_1(read(fd, packet, HEADER + 100), EINVAL);
	assert_int_equal(read(fd, packet, sizeof(packet)), sizeof(packet));
	assert_int_equal(packet[HEADER + 3], 0x81);
	close(fd);
}

TEST(a_timeout_hands_24_bytes_of_mad_back)
{
	uint8_t packet[HEADER + MAD];
	uint32_t status;
	int fd = open_device("umad0", O_NONBLOCK);
	int id = agent(fd, 0x81, 0, 0);

	make_smp(packet, id, 1, 20);
	packet[HEADER + 7] = 2; /* a path to nowhere: leaf-1 has no port 9 */
	packet[HEADER + 129] = 1;
	packet[HEADER + 130] = 9;
	assert_int_equal(write(fd, packet, sizeof(packet)), sizeof(packet));
	wait_for_data(fd);
	assert_fails_minus_1(read(fd, packet, HEADER + 23), EINVAL);
	assert_int_equal(read(fd, packet, sizeof(packet)), HEADER + 24);
	memcpy(&status, packet + 4, 4);
	assert_int_equal(status, ETIMEDOUT);
	close(fd);
}

TEST(what_write_refuses)
{
	uint8_t packet[HEADER + MAD + 1] = {0};
	int fd = open_device("umad0", O_NONBLOCK);
	int id = agent(fd, 0x81, 0, 0);

	make_smp(packet, id, 1, 0);
	assert_fails_minus_1(write(fd, packet, HEADER + 35), EINVAL);
	assert_fails_minus_1(write(fd, packet, sizeof(packet)), EINVAL);
	packet[0] = 5;
	assert_fails_minus_1(write(fd, packet, HEADER + MAD), EIO);
	packet[0] = 32;
	assert_fails_minus_1(write(fd, packet, HEADER + MAD), EINVAL);
	close(fd);
}

TEST(a_transaction_in_flight_is_refused_until_it_is_over)
{
	uint8_t packet[HEADER + MAD];
	int fd = open_device("umad0", O_NONBLOCK);
	int id = agent(fd, 0x81, 0, 0);

	make_smp(packet, id, 7, 30);
	packet[HEADER + 7] = 2;
	packet[HEADER + 129] = 1;
	packet[HEADER + 130] = 9;
	assert_int_equal(write(fd, packet, sizeof(packet)), sizeof(packet));
	assert_fails_minus_1(write(fd, packet, sizeof(packet)), EINVAL);
	wait_for_data(fd);
	assert_int_equal(write(fd, packet, sizeof(packet)), sizeof(packet));
	close(fd);
}

TEST(the_old_layout_is_there_until_it_is_given_up)
{
	struct ib_user_mad_reg_req request = {
		.qpn = 0, .mgmt_class = 0x81, .mgmt_class_version = 1};
	uint8_t packet[HEADER + MAD];
	int fd = open_device("umad0", O_NONBLOCK);

	assert_int_equal(ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &request), 0);
	assert_fails_minus_1(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), EINVAL);
	make_smp(packet, (int)request.id, 1, 1000);
	memmove(packet + OLD_HEADER, packet + HEADER, MAD);
	assert_int_equal(write(fd, packet, OLD_HEADER + MAD), OLD_HEADER + MAD);
	wait_for_data(fd);
	assert_int_equal(read(fd, packet, sizeof(packet)), OLD_HEADER + MAD);
	assert_int_equal(packet[OLD_HEADER + 3], 0x81);
	assert_fails_minus_1(ioctl(fd, _IO(0x1b, 99)), ENOTTY);
	close(fd);
}

TEST(poll_select_and_epoll_take_the_descriptor)
{
	uint8_t packet[HEADER + MAD];
	struct epoll_event event = {.events = EPOLLIN};
	struct timeval soon = {.tv_sec = 5};
	fd_set readable;
	int fd = open_device("umad0", O_NONBLOCK);
	int id = agent(fd, 0x81, 0, 0);
	int epoll = epoll_create1(0);
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN | POLLOUT};

	assert_int_equal(poll(&poll_fd, 1, 0), 1);
	assert_int_equal(poll_fd.revents, POLLOUT);
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	assert_int_equal(epoll_wait(epoll, &event, 1, 0), 0);
	make_smp(packet, id, 1, 1000);
	assert_int_equal(write(fd, packet, sizeof(packet)), sizeof(packet));
	assert_int_equal(epoll_wait(epoll, &event, 1, 5000), 1);
	FD_ZERO(&readable);
	FD_SET(fd, &readable);
	assert_int_equal(select(fd + 1, &readable, NULL, NULL, &soon), 1);
	close(epoll);
	close(fd);
}

TEST(a_copy_and_a_child_have_the_same_device)
{
	uint8_t packet[HEADER + MAD];
	int fd = open_device("umad0", O_NONBLOCK);
	int id = agent(fd, 0x81, 0, 0);
	int copy = fcntl(fd, F_DUPFD, 0);
	uint32_t number = 9;
	int status;

	close(fd);
	fd = copy;
	copy = dup(fd);
	close(fd);
	assert_fails_minus_1(ioctl(copy, IB_USER_MAD_UNREGISTER_AGENT, &number), EINVAL);
	make_smp(packet, id, 1, 1000);
	if (fork() == 0)
		_exit(write(copy, packet, sizeof(packet)) == sizeof(packet) ? 0 : 1);
	wait(&status);
	assert_int_equal(status, 0);
	wait_for_data(copy);
	assert_int_equal(read(copy, packet, sizeof(packet)), sizeof(packet));
	close(copy);
}

TEST(closing_gives_the_class_back_at_once)
{
	for (unsigned int i = 0; i < 50; i++) {
		int fd = open_device("umad0", O_NONBLOCK);

		assert_int_equal(agent(fd, CLASS, 1, 1ULL << 3), 0);
		close(fd);
	}
}

/* Sends a message with this many bytes of MAD from one host to the other, and reads it. */
static void send_large(size_t length)
{
	uint8_t *packet = malloc(HEADER + length);
	uint8_t *received = calloc(1, HEADER + length);
	int from = open_device("umad0", O_NONBLOCK);
	int to = open_device("umad1", O_NONBLOCK);
	int id = agent(from, CLASS, 1, 0);
	uint32_t told;

	assert_int_equal(agent(to, CLASS, 1, 1ULL << 3), 0);
	make_message(packet, id, 3, lid_of(1), length, 0);
	assert_int_equal(write(from, packet, HEADER + length), HEADER + length);
	wait_for_data(to);
	if (length > MAD) {
		assert_fails_minus_1(read(to, received, HEADER + MAD - 1), EINVAL);
		assert_fails_minus_1(read(to, received, HEADER + length - 1), ENOSPC);
		memcpy(&told, received + 16, 4);
		assert_int_equal(told, HEADER + length);
		assert_memory_equal(received + HEADER + DATA, packet + HEADER + DATA,
				    MAD - DATA);
	}
	assert_int_equal(read(to, received, HEADER + length), HEADER + length);
	assert_memory_equal(received + HEADER + DATA, packet + HEADER + DATA, length - DATA);
	assert_fails_minus_1(read(to, received, HEADER + length), EAGAIN);
	close(from);
	close(to);
	free(packet);
	free(received);
}

TEST(messages_of_any_size_arrive)
{
	static const size_t room = MAD - DATA;

	send_large(DATA + 1);
	send_large(MAD);
	send_large(MAD + 1);
	send_large(DATA + 2 * room);
	send_large(DATA + 64 * room + 1);
	send_large(LARGE);
	send_large(64 * LARGE);
}

TEST(one_program_holds_an_issm_device)
{
	int first = open_device("issm0", 0);
	uint8_t byte;

	assert_true(first >= 0);
	assert_fails_minus_1(open_device("issm0", O_NONBLOCK), EAGAIN);
	assert_fails_minus_1(read(first, &byte, 1), EINVAL);
	assert_int_equal(system("grep -q 2 /dev/null || grep -q 'a$' "
				"/sys/class/infiniband/mlx5_0/ports/1/cap_mask"),
			 0);
	close(first);
	first = open_device("issm0", O_NONBLOCK);
	assert_true(first >= 0);
	close(first);
}

TEST(who_waits_for_an_issm_device_gets_it)
{
	int first = open_device("issm0", 0);
	int status;
	pid_t child;

	child = fork();
	if (child == 0) {
		close(first);
		_exit(open_device("issm0", 0) >= 0 ? 0 : 1);
	}
	usleep(100000);
	assert_int_equal(waitpid(child, &status, WNOHANG), 0);
	close(first);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void tell(const char *rule)
{
	char command[512];

	snprintf(command, sizeof(command), "%s --tell %s '%s'", umad_sim,
		 strrchr(getenv("UMAD_SIM_FOLDER"), '/') + 1, rule);
	assert_int_equal(system(command), 0);
}

static int connect_to_fabric(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket",
		 getenv("UMAD_SIM_FOLDER"));
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* Sends random bytes straight to the fabric's socket: requests with the right magic number and
 * random other fields, and packets on a handle. */
TEST(rubbish_does_not_hurt_the_fabric)
{
	uint8_t packet[HEADER + MAD];
	uint8_t bytes[4000];
	unsigned int seed = 20;
	int fd = open_device("umad0", O_NONBLOCK);
	int id = agent(fd, 0x81, 0, 0);

	for (unsigned int round = 0; round < 3000; round++) {
		size_t length = (size_t)rand_r(&seed) % sizeof(bytes) + 1;
		uint32_t magic = PROTOCOL_MAGIC;
		int connection;

		for (size_t i = 0; i < length; i++)
			bytes[i] = (uint8_t)rand_r(&seed);
		syscall(SYS_sendto, fd, bytes, length, MSG_DONTWAIT, NULL, 0);
		if (round % 2)
			memcpy(bytes, &magic, 4);
		bytes[4] = (uint8_t)(REQUEST_ATTACH + round % REQUEST_BEGIN); /* the kind of
									       * request */
		memset(bytes + 5, 0, 3);
		if (bytes[4] ==
		    REQUEST_OWN) /* except this kind: the fabric ends with its connection */
			continue;
		connection = connect_to_fabric();
		send(connection, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
		close(connection);
	}
	while (read(fd, packet, sizeof(packet)) > 0)
		;
	make_smp(packet, id, 77, 1000);
	assert_int_equal(write(fd, packet, sizeof(packet)), sizeof(packet));
	wait_for_data(fd);
	close(fd);
}

TEST(a_removed_device_is_an_error_to_all_who_wait)
{
	uint8_t packet[HEADER + MAD];
	int fd = open_device("umad1", O_NONBLOCK);
	int id = agent(fd, 0x81, 0, 0);
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	uint32_t number = 0;

	tell("after 100ms remove on host-2");
	assert_int_equal(poll(&poll_fd, 1, 5000), 1);
	assert_int_equal(poll_fd.revents, POLLERR);
	make_smp(packet, id, 1, 1000);
	assert_fails_minus_1(write(fd, packet, sizeof(packet)), EIO);
	assert_fails_minus_1(read(fd, packet, sizeof(packet)), EIO);
	assert_int_equal(agent(fd, 0x81, 0, 0), -EPIPE);
	assert_fails_minus_1(ioctl(fd, IB_USER_MAD_UNREGISTER_AGENT, &number), EINVAL);
	assert_fails_minus_1(open_device("umad1", O_NONBLOCK), ENOENT);
	tell("add on host-2");
	assert_fails_minus_1(write(fd, packet, sizeof(packet)), EIO);
	assert_int_equal(close(fd), 0);
	fd = open_device("umad1", O_NONBLOCK);
	assert_int_equal(agent(fd, 0x81, 0, 0), 0);
	close(fd);
}

/* A socket for uevents, in the kernel's group or in none. */
static int open_uevents(bool member)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = member};
	socklen_t length = sizeof(address);
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
			NETLINK_KOBJECT_UEVENT);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	assert_int_equal(length, sizeof(address));
	assert_int_equal(address.nl_family, AF_NETLINK);
	return fd;
}

static void assert_uevent(int fd, const char *expected)
{
	struct sockaddr_nl sender = {.nl_pid = 1};
	socklen_t length = sizeof(sender);
	char text[4096];
	ssize_t received;

	received = recvfrom(fd, text, sizeof(text), 0, (struct sockaddr *)&sender, &length);
	assert_true(received > 0);
	assert_int_equal(text[received - 1], '\0');
	assert_string_equal(text, expected);
	assert_int_equal(length, sizeof(sender));
	assert_int_equal(sender.nl_pid, 0); /* the kernel */
}

TEST(uevents_tell_of_one_of_two_devices)
{
	static const char *const paths[] = {"infiniband_mad/umad1", "infiniband_mad/issm1",
					    "infiniband/mlx5_1"};
	int fd = open_uevents(true);
	char expected[128];

	for (unsigned int i = 0; i < 6; i++) {
		if (i % 3 == 0)
			tell(i ? "return on host-2" : "remove on host-2");
		snprintf(expected, sizeof(expected), "%s@/devices/umad-sim/0000:02:00.0/%s",
			 i < 3 ? "remove" : "add", paths[i % 3]);
		assert_uevent(fd, expected);
		assert_int_equal(access("/sys/class/infiniband/mlx5_0", F_OK), 0);
		assert_int_equal(access("/sys/class/infiniband/mlx5_1", F_OK), i < 3 ? -1 : 0);
	}
	assert_fails_minus_1(recv(fd, expected, sizeof(expected), 0), EAGAIN);
	close(fd);
}

TEST(only_members_of_the_kernel_s_group_hear_uevents)
{
	int fd = open_uevents(false), group = 1;
	char text[256];

	tell("remove on host-2");
	assert_fails_minus_1(recv(fd, text, sizeof(text), 0), EAGAIN);
	assert_int_equal(
		setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)), 0);
	tell("return on host-2");
	assert_uevent(fd, "add@/devices/umad-sim/0000:02:00.0/infiniband_mad/umad1");
	close(fd);
}

TEST(uevents_that_were_lost_are_an_error_once)
{
	int fd = open_uevents(true);
	char text[1024];

	for (unsigned int i = 0; i < 50; i++) { /* more than fit in the queue */
		tell("remove on host-2");
		tell("return on host-2");
	}
	while (recv(fd, text, sizeof(text), 0) > 0)
		;
	if (errno == EAGAIN) {
		wait_for_data(fd);
		assert_fails_minus_1(recv(fd, text, sizeof(text), 0), ENOBUFS);
	}
	assert_int_equal(errno, ENOBUFS);
	assert_fails_minus_1(recv(fd, text, sizeof(text), 0), EAGAIN);
	tell("remove on host-2");
	assert_uevent(fd, "remove@/devices/umad-sim/0000:02:00.0/infiniband_mad/umad1");
	tell("return on host-2");
	close(fd);
}

TEST(there_is_no_rdma_netlink_that_would_ask_the_real_kernel)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	assert_fails_minus_1(socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA), EPROTONOSUPPORT);
	assert_true(fd >= 0);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc < 2 || !getenv("UMAD_SIM_FOLDER")) {
		fprintf(stderr,
			"usage: umad-sim --at host-1,host-2 fat-tree:4,2 -- %s UMAD-SIM\n",
			argv[0]);
		return 2;
	}
	umad_sim = argv[1];
	return run_all_tests();
}
