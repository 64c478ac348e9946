/* SPDX-License-Identifier: BSD-2-Clause */

#include "netlink.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/handlers.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <rdma/rdma_netlink.h>

/* The kernel's uevents; udev's have another group. */
#define UEVENT_GROUP_KERNEL 1

/* From <rdma/rdma_netlink.h> of Linux 5.3; building needs only 4.18. */
enum {
	NLDEV_CMD_GET_CHARDEV = 15,
	NLDEV_ATTR_CHARDEV_TYPE = 69,
	NLDEV_ATTR_CHARDEV_NAME = 70,
	NLDEV_ATTRS
};

/* What to find in a response, and the result. */
struct lookup {
	const char *ca_name;
	bool found;
	uint32_t dev_index;
	char *name;
	size_t size;
};

/* A terminated, non-empty text attribute, or NULL. */
static const char *text_of(struct nlattr *attr)
{
	const char *text;
	int length;

	if (!attr)
		return NULL;
	text = nla_data(attr);
	length = nla_len(attr);
	return length > 0 && text[0] && memchr(text, '\0', (size_t)length) ? text : NULL;
}

/* A device in the dump of RDMA_NLDEV_CMD_GET. */
static int match_dev_index(struct nl_msg *msg, void *arg)
{
	struct nlattr *attrs[NLDEV_ATTRS];
	struct lookup *lookup = arg;
	struct nlattr *index;
	const char *name;

	if (nlmsg_parse(nlmsg_hdr(msg), 0, attrs, NLDEV_ATTRS - 1, NULL) < 0)
		return NL_SKIP;
	index = attrs[RDMA_NLDEV_ATTR_DEV_INDEX];
	name = text_of(attrs[RDMA_NLDEV_ATTR_DEV_NAME]);
	if (!name || strcmp(name, lookup->ca_name) || !index ||
	    nla_len(index) < (int)sizeof(uint32_t))
		return NL_SKIP;
	lookup->dev_index = nla_get_u32(index);
	lookup->found = true;
	return NL_OK;
}

/* The response to RDMA_NLDEV_CMD_GET_CHARDEV. */
static int store_chardev_name(struct nl_msg *msg, void *arg)
{
	struct nlattr *attrs[NLDEV_ATTRS];
	struct lookup *lookup = arg;
	const char *name;

	if (nlmsg_parse(nlmsg_hdr(msg), 0, attrs, NLDEV_ATTRS - 1, NULL) < 0)
		return NL_SKIP;
	name = text_of(attrs[NLDEV_ATTR_CHARDEV_NAME]);
	if (!name || strlen(name) >= lookup->size)
		return NL_SKIP;
	strcpy(lookup->name, name);
	lookup->found = true;
	return NL_OK;
}

/*
 * Sends a request and passes each message of the response to handle_message(). Never blocks:
 * the kernel queues the response before sendmsg() returns.
 */
static int send_request(struct nl_sock *sock, struct nl_msg *msg,
			nl_recvmsg_msg_cb_t handle_message, struct lookup *lookup)
{
	lookup->found = false;
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, handle_message, lookup);
	if (nl_send_auto(sock, msg) < 0)
		return -EIO;
	if (nl_recvmsgs_default(sock) < 0 || !lookup->found)
		return -ENOENT;
	return 0;
}

static int find_dev_index(struct nl_sock *sock, struct lookup *lookup)
{
	int type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET);
	struct nl_msg *msg = nlmsg_alloc_simple(type, NLM_F_REQUEST | NLM_F_DUMP);
	int err;

	if (!msg)
		return -ENOMEM;
	err = send_request(sock, msg, match_dev_index, lookup);
	nlmsg_free(msg);
	return err == -ENOENT ? -ENODEV : err;
}

static int find_chardev(struct nl_sock *sock, int portnum, struct lookup *lookup)
{
	int type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, NLDEV_CMD_GET_CHARDEV);
	struct nl_msg *msg = nlmsg_alloc_simple(type, NLM_F_REQUEST);
	int err = -ENOMEM;

	if (msg && !nla_put_string(msg, NLDEV_ATTR_CHARDEV_TYPE, "umad") &&
	    !nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, lookup->dev_index) &&
	    !nla_put_u32(msg, RDMA_NLDEV_ATTR_PORT_INDEX, (uint32_t)portnum))
		err = send_request(sock, msg, store_chardev_name, lookup);
	nlmsg_free(msg);
	return err;
}

/*
 * The errno of a libnl error. libnl has one number for all errors it does not know, such as a
 * shortage of descriptors; cause is the errno of the failed call then.
 */
static int errno_of(int nl_error, int cause)
{
	switch (-nl_error) {
	case 0:
		return 0;
	case NLE_NOMEM:
		return -ENOMEM;
	case NLE_PERM:
		return -EPERM;
	case NLE_FAILURE:
		return cause ? -cause : -EOPNOTSUPP;
	default:
		return -EOPNOTSUPP;
	}
}

/* A non-blocking netlink socket, in a multicast group unless that is 0. */
static int connect_to(int protocol, int group, struct nl_sock **sock)
{
	int err, cause;

	*sock = nl_socket_alloc();
	if (!*sock)
		return -ENOMEM;
	errno = 0;
	err = nl_connect(*sock, protocol);
	if (!err)
		err = nl_socket_set_nonblocking(*sock);
	if (!err && group)
		err = nl_socket_add_membership(*sock, group);
	cause = errno;
	if (err)
		nl_socket_free(*sock);
	return errno_of(err, cause);
}

int netlink_find_umad(const char *ca_name, int portnum, char *name, size_t size)
{
	struct lookup lookup = {.ca_name = ca_name, .name = name, .size = size};
	struct nl_sock *sock;
	int err;

	err = connect_to(NETLINK_RDMA, 0, &sock);
	if (err)
		return err;
	/* no acknowledgements requested; a dump has its own end */
	nl_socket_disable_auto_ack(sock);
	err = find_dev_index(sock, &lookup);
	if (!err)
		err = find_chardev(sock, portnum, &lookup);
	nl_socket_free(sock);
	return err;
}

int uevent_open(struct nl_sock **sock)
{
	return connect_to(NETLINK_KOBJECT_UEVENT, UEVENT_GROUP_KERNEL, sock);
}

int uevent_fd(const struct nl_sock *sock)
{
	return nl_socket_get_fd(sock);
}

void uevent_close(struct nl_sock *sock)
{
	nl_socket_free(sock);
}

int uevent_receive(struct nl_sock *sock, char **text)
{
	struct sockaddr_nl sender;
	unsigned char *message;
	int length;

	for (;;) {
		message = NULL;
		errno = 0;
		length = nl_recv(sock, &sender, &message, NULL);
		if (length == -NLE_AGAIN || length == 0)
			return -EAGAIN;
		/* no memory in the kernel or libnl */
		if (length == -NLE_NOMEM)
			return errno == ENOBUFS ? -ENOBUFS : -ENOMEM;
		if (length < 0)
			return -EIO;
		/* any process may send here; accept messages from the kernel only */
		if (sender.nl_pid == 0 && message[length - 1] == '\0')
			break;
		free(message);
	}
	*text = (char *)message;
	return length;
}
