/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A hostile client of the fabric's socket: requests and packets of any bytes, with descriptors;
 * connections closed at any moment. An input is a list of steps. The fabric continues to serve
 * another client. Afterwards the fabric has as many descriptors and connections as before.
 */
#include "fuzz.h"
#include "manager.h"
#include "remove_tree.h"
#include "server.h"
#include "topology.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CLIENTS   4
#define ROUNDS    8
#define MOST_FDS  4   /* descriptors that come with a packet */
#define HIGHEST   512 /* the highest descriptor that is checked */
#define MOST_SEEN 4096

static struct server server;
static char folder[] = "/tmp/umad-fuzz-XXXXXX";

static int descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < HIGHEST; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static int join(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", folder, SOCKET_NAME);
	check(fd >= 0 && !connect(fd, (struct sockaddr *)&address, sizeof(address)));
	return fd;
}

/* As many rounds as the fabric needs to accept, to read and to close. */
static void go_on(void)
{
	for (unsigned int i = 0; i < ROUNDS; i++)
		check(!server_round(&server, false));
}

/* The number of its view, which a client that follows the protocol gets. */
static void be_served(void)
{
	struct request request = {.magic = PROTOCOL_MAGIC, .kind = REQUEST_ATTACH};
	struct reply reply = {.error = -1};
	int fd = join();

	check(send(fd, &request, sizeof(request), MSG_NOSIGNAL) == (ssize_t)sizeof(request));
	go_on();
	check(recv(fd, &reply, sizeof(reply), 0) == (ssize_t)sizeof(reply));
	check(reply.error == 0 && reply.view > 0);
	close(fd);
	go_on();
}

static void remove_folder(void)
{
	server_free(&server);
	remove_tree(folder);
}

static void start(void)
{
	struct server_options options = {.seed = 1};
	struct topology_error error;
	struct graph graph;
	char why[256];

	check(mkdtemp(folder) != NULL);
	graph_init(&graph);
	check(topology_generate(&graph, "pair", &error) == 0);
	check(server_init(&server, &graph, &options, folder, why) == 0);
	atexit(remove_folder);
	be_served();
}

/* A request that is nearly valid, or any bytes. */
static void send_request(int fd, struct input *input)
{
	union {
		struct request request;
		uint8_t bytes[sizeof(struct request) + 256];
	} packet = {.request.magic = PROTOCOL_MAGIC};
	uint8_t shape = (uint8_t)take(input, 1);
	size_t length = sizeof(packet.request) + take(input, 1);
	uint8_t *text = packet.bytes + sizeof(packet.request);

	packet.request.kind = shape % 11;
	packet.request.view = 1;
	packet.request.handle = take(input, 1);
	packet.request.code = (uint32_t)take(input, shape & 0x80 ? 4 : 0);
	take_bytes(input, packet.request.argument, 16);
	take_bytes(input, text, shape & 0x40 ? 256 : 8);
	if (shape & 0x20) {
		length = take(input, 2) % sizeof(packet);
		take_bytes(input, &packet, length);
	}
	/* "stop" ends the fabric, and so does the end of the owner's connection */
	if (packet.request.kind == REQUEST_OWN || packet.request.kind == REQUEST_COMMAND)
		packet.request.kind = REQUEST_REFRESH;
	send(fd, &packet, length, MSG_NOSIGNAL);
}

static int memory(struct input *input)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	uint8_t bytes[128];

	take_bytes(input, bytes, sizeof(bytes));
	check(fd >= 0 && write(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes));
	/* of the length that it states, or longer than the fabric accepts */
	check(!ftruncate(fd, (off_t)take(input, 4) % (2 * (off_t)LONGEST_MESSAGE)));
	return fd;
}

/* A packet with descriptors: of memory, of a folder, of a socket. */
static void send_packet(int fd, struct input *input)
{
	uint8_t bytes[1024] = {0};
	struct iovec part = {bytes, take(input, 2) % sizeof(bytes)};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	unsigned int count = (unsigned int)take(input, 1) % (MOST_FDS + 1);
	int fds[MOST_FDS];
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(MOST_FDS * sizeof(int))];
	} control = {.header = {CMSG_LEN(count * sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};

	take_bytes(input, bytes, part.iov_len < 400 ? part.iov_len : 400);
	for (unsigned int i = 0; i < count; i++)
		fds[i] = take(input, 1) % 3 ? memory(input)
					    : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	if (count) {
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(count * sizeof(int));
	}
	sendmsg(fd, &header, MSG_NOSIGNAL);
	while (count > 0)
		close(fds[--count]);
}

static void step(int clients[CLIENTS], struct input *input)
{
	uint8_t what = (uint8_t)take(input, 1);
	int *client = &clients[what % CLIENTS];
	uint8_t bytes[MOST_SEEN];

	if (*client < 0)
		*client = join();
	switch (what / CLIENTS % 6) {
	case 0:
	case 1:
		send_request(*client, input);
		break;
	case 2:
		send_packet(*client, input);
		break;
	case 3:
		recv(*client, bytes, sizeof(bytes), 0);
		break;
	case 4:
		close(*client);
		*client = -1;
		break;
	default:
		check(!server_round(&server, false));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	int clients[CLIENTS] = {-1, -1, -1, -1};
	int before;

	if (!server.folder)
		start();
	before = descriptors();
	while (input.size)
		step(clients, &input);
	be_served();
	for (unsigned int i = 0; i < CLIENTS; i++)
		if (clients[i] >= 0)
			close(clients[i]);
	go_on();
	check(!server.connections && !server.stop);
	check(descriptors() == before);
	return 0;
}
