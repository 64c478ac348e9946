/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Responses of the kernel to the request for a port's umad device: datagrams of any messages
 * and attributes. A name is stored whole or not at all, and the memory of libnl is freed.
 */
#include "fuzz.h"
#include "netlink.h"

#include <errno.h>
#include <netlink/errno.h>
#include <netlink/handlers.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <rdma/rdma_netlink.h>

#define LONGEST      512
#define CHARDEV_NAME 70 /* RDMA_NLDEV_ATTR_CHARDEV_NAME of later headers */

static struct {
	struct input input;
	unsigned requests;
} run;

static int send_nothing(struct nl_sock *sock, struct nl_msg *msg)
{
	(void)sock;
	run.requests++;
	return (int)nlmsg_hdr(msg)->nlmsg_len;
}

/* An attribute: often one that the library reads, with a wrong length. */
static size_t put_attribute(uint8_t *at, size_t room)
{
	static const uint16_t types[] = {0, RDMA_NLDEV_ATTR_DEV_NAME, CHARDEV_NAME,
					 RDMA_NLDEV_ATTR_DEV_INDEX};
	struct nlattr attr;
	uint8_t choice = (uint8_t)take(&run.input, 1);
	size_t length = choice >> 2 & 63;

	if (room < sizeof(attr) + 64)
		return 0;
	attr.nla_type = choice & 3 ? types[choice & 3] : (uint16_t)take(&run.input, 2);
	attr.nla_len = (uint16_t)(sizeof(attr) + length);
	if (length == 62)
		attr.nla_len = (uint16_t)take(&run.input, 2);
	if (length == 63) {
		/* the attributes that the library reads */
		static const char name[] = "mlx5_0";

		memcpy(at + sizeof(attr), name, sizeof(name));
		length = sizeof(name);
		attr.nla_len = sizeof(attr) + sizeof(name);
	} else {
		take_bytes(&run.input, at + sizeof(attr), length);
	}
	memcpy(at, &attr, sizeof(attr));
	return NLA_ALIGN(sizeof(attr) + length);
}

static int receive(struct nl_sock *sock, struct sockaddr_nl *sender, unsigned char **buf,
		   struct ucred **creds)
{
	struct nlmsghdr header = {0};
	uint8_t bytes[LONGEST] = {0};
	size_t size = 0, begin;
	uint64_t kind;

	(void)creds;
	if (!run.input.size || take(&run.input, 1) == 0)
		return -NLE_AGAIN;
	for (uint64_t messages = take(&run.input, 1) % 3 + 1; messages; messages--) {
		begin = size;
		if (LONGEST - begin < 200)
			break;
		size += NLMSG_HDRLEN;
		for (uint64_t left = take(&run.input, 1) % 6; left; left--)
			size += put_attribute(bytes + size, LONGEST - size);
		header.nlmsg_len = (uint32_t)(size - begin);
		header.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET);
		header.nlmsg_flags = (uint16_t)take(&run.input, 1);
		header.nlmsg_pid = nl_socket_get_local_port(sock);
		kind = take(&run.input, 1);
		if (kind == 2)
			header.nlmsg_len = (uint32_t)take(&run.input, 4);
		else if (kind == 1)
			header.nlmsg_type = (uint16_t)take(&run.input, 2);
		else if (kind == 3 || kind == 4)
			header.nlmsg_type = kind == 3 ? NLMSG_DONE : NLMSG_ERROR;
		memcpy(bytes + begin, &header, sizeof(header));
	}
	*buf = malloc(size);
	memcpy(*buf, bytes, size);
	*sender = (struct sockaddr_nl){.nl_family = AF_NETLINK};
	return (int)size;
}

/* Replaces libnl's function in this program: there is no socket. */

int nl_connect(struct nl_sock *sock, int protocol)
{
	struct nl_cb *callbacks = nl_socket_get_cb(sock);

	(void)protocol;
	nl_cb_overwrite_send(callbacks, send_nothing);
	nl_cb_overwrite_recv(callbacks, receive);
	nl_cb_put(callbacks);
	nl_socket_disable_seq_check(sock);
	return 0;
}

int nl_socket_set_nonblocking(const struct nl_sock *sock)
{
	(void)sock;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t room;
	char *name;
	int error;

	run.input = (struct input){data, size};
	run.requests = 0;
	room = 1 + take(&run.input, 1) % 40;
	name = malloc(room);
	check(name != NULL);
	memset(name, 0x5a, room);
	error = netlink_find_umad("mlx5_0", 1, name, room);
	check(error <= 0 && run.requests <= 2);
	check(error || (memchr(name, '\0', room) && name[0] && run.requests == 2));
	free(name);
	return 0;
}
