/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Netlink sockets of the families that report devices. A socket for uevents is replaced with
 * one to the fabric, which sends the uevents of the program's devices and behaves like a
 * netlink socket. RDMA netlink would reach the real kernel and make it load modules, so that
 * family fails as on a kernel without RDMA. All other sockets are left alone.
 */
#undef _FILE_OFFSET_BITS /* each name is a function of its own */
#undef _TIME_BITS
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "preload.h"

#define GROUP_KERNEL 1 /* of uevents: the kernel's group; udev uses another */

/* Functions that the C library exports but does not declare. */
ssize_t __recv_chk(int fd, void *buffer, size_t count, size_t size, int flags);
ssize_t __recvfrom_chk(int fd, void *restrict buffer, size_t count, size_t size, int flags,
		       struct sockaddr *restrict from, socklen_t *restrict length);

static int fail(int error)
{
	errno = error;
	return -1;
}

static int open_uevents(int type)
{
	struct request request = {.kind = REQUEST_UEVENTS, .view = view_number()};
	struct device *device = device_new(DEVICE_UEVENTS);
	struct reply reply;
	int connection = -1;
	int error;

	if (!device)
		return fail(ENOMEM);
	device->handle = 0; /* the port ID of the netlink socket: none yet */
	error = ask_fabric(&request, &reply, &connection, NULL);
	if (!error)
		error = device_note(connection, device);
	device_put(device);
	if (error) {
		if (connection >= 0)
			REAL(close)(connection);
		return fail(-error);
	}
	if (type & SOCK_NONBLOCK)
		REAL(fcntl)(connection, F_SETFL, REAL(fcntl)(connection, F_GETFL) | O_NONBLOCK);
	if (!(type & SOCK_CLOEXEC))
		REAL(fcntl)(connection, F_SETFD, 0);
	return connection;
}

EXPORT int socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && fabric_folder()) {
		if (protocol == NETLINK_KOBJECT_UEVENT)
			return open_uevents(type);
		if (protocol == NETLINK_RDMA)
			return fail(EPROTONOSUPPORT);
	}
	return REAL(socket)(domain, type, protocol);
}

/* Of the devices, only one for uevents is a socket. */
static int refuse(struct device *device)
{
	device_put(device);
	return fail(ENOTSOCK);
}

static int join(int fd, bool member)
{
	char byte = member ? UEVENTS_JOIN : UEVENTS_LEAVE;

	return REAL(send)(fd, &byte, 1, MSG_NOSIGNAL) == 1 ? 0 : fail(EIO);
}

EXPORT int bind(int fd, const struct sockaddr *address, socklen_t length)
{
	struct device *device = device_get(fd);
	struct sockaddr_nl netlink;
	int result;

	if (!device)
		return REAL(bind)(fd, address, length);
	if (device->kind != DEVICE_UEVENTS)
		return refuse(device);
	if (length < sizeof(netlink) || address->sa_family != AF_NETLINK) {
		result = fail(EINVAL);
	} else {
		memcpy(&netlink, address, sizeof(netlink));
		device->handle = netlink.nl_pid ? netlink.nl_pid : (uint32_t)getpid();
		result = join(fd, netlink.nl_groups & (1U << (GROUP_KERNEL - 1)));
	}
	device_put(device);
	return result;
}

static void give_address(uint32_t pid, uint32_t groups, void *address, socklen_t *length)
{
	struct sockaddr_nl netlink = {
		.nl_family = AF_NETLINK, .nl_pid = pid, .nl_groups = groups};

	if (!address || !length)
		return;
	memcpy(address, &netlink, *length < sizeof(netlink) ? *length : sizeof(netlink));
	*length = sizeof(netlink);
}

EXPORT int getsockname(int fd, struct sockaddr *restrict address, socklen_t *restrict length)
{
	struct device *device = device_get(fd);

	if (!device)
		return REAL(getsockname)(fd, address, length);
	if (device->kind != DEVICE_UEVENTS)
		return refuse(device);
	give_address((uint32_t)device->handle, 0, address, length);
	device_put(device);
	return 0;
}

/* 1: done, with the result; 0: left to the C library. */
static int set_option(int fd, int level, int option, const void *value, socklen_t length,
		      int *result)
{
	struct device *device = device_get(fd);
	int group;

	if (!device)
		return 0;
	if (device->kind != DEVICE_UEVENTS) {
		*result = refuse(device);
		return 1;
	}
	device_put(device);
	if (level != SOL_NETLINK)
		return 0;
	*result = 0;
	if (option != NETLINK_ADD_MEMBERSHIP && option != NETLINK_DROP_MEMBERSHIP)
		return 1;
	if (length < sizeof(group))
		*result = fail(EINVAL);
	else if (memcpy(&group, value, sizeof(group)), group == GROUP_KERNEL)
		*result = join(fd, option == NETLINK_ADD_MEMBERSHIP);
	return 1;
}

EXPORT int setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
	int result;

	return set_option(fd, level, option, value, length, &result)
		       ? result
		       : REAL(setsockopt)(fd, level, option, value, length);
}

/* Receives as from the kernel. Fails once if the fabric reports lost uevents, and when the
 * fabric has ended. */
ssize_t uevents_receive_message(int fd, struct msghdr *message, int flags)
{
	void *address = message->msg_name;
	socklen_t room = message->msg_namelen;
	ssize_t length;
	char lost;

	message->msg_name = NULL;
	message->msg_namelen = 0;
	length = REAL(recvmsg)(fd, message, flags);
	message->msg_name = address;
	message->msg_namelen = room;
	if (length < 0)
		return -1;
	if (length == 0 && !(message->msg_flags & MSG_TRUNC))
		return fail(EIO);
	if (length == UEVENTS_LOST && !(message->msg_flags & MSG_TRUNC)) {
		if (flags & MSG_PEEK)
			REAL(recv)(fd, &lost, sizeof(lost), MSG_DONTWAIT);
		return fail(ENOBUFS);
	}
	give_address(0, 1U << (GROUP_KERNEL - 1), address,
		     address ? &message->msg_namelen : NULL);
	return length;
}

ssize_t uevents_receive(int fd, void *buffer, size_t count, int flags, struct sockaddr *from,
			socklen_t *length)
{
	struct iovec part = {buffer, count};
	struct msghdr message = {.msg_name = from,
				 .msg_namelen = from && length ? *length : 0,
				 .msg_iov = &part,
				 .msg_iovlen = 1};
	ssize_t received = uevents_receive_message(fd, &message, flags);

	if (received >= 0 && from && length)
		*length = message.msg_namelen;
	return received;
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	struct device *device = device_get(fd);
	ssize_t length;

	if (!device)
		return REAL(recvmsg)(fd, message, flags);
	if (device->kind != DEVICE_UEVENTS)
		return refuse(device);
	length = uevents_receive_message(fd, message, flags);
	device_put(device);
	return length;
}

EXPORT ssize_t recvfrom(int fd, void *restrict buffer, size_t count, int flags,
			struct sockaddr *restrict from, socklen_t *restrict length)
{
	struct device *device = device_get(fd);
	ssize_t received;

	if (!device)
		return REAL(recvfrom)(fd, buffer, count, flags, from, length);
	if (device->kind != DEVICE_UEVENTS)
		return refuse(device);
	received = uevents_receive(fd, buffer, count, flags, from, length);
	device_put(device);
	return received;
}

EXPORT ssize_t recv(int fd, void *buffer, size_t count, int flags)
{
	struct device *device = device_get(fd);
	ssize_t received;

	if (!device)
		return REAL(recv)(fd, buffer, count, flags);
	if (device->kind != DEVICE_UEVENTS)
		return refuse(device);
	received = uevents_receive(fd, buffer, count, flags, NULL, NULL);
	device_put(device);
	return received;
}

EXPORT ssize_t __recv_chk(int fd, void *buffer, size_t count, size_t size, int flags)
{
	return count <= size ? recv(fd, buffer, count, flags)
			     : REAL(__recv_chk)(fd, buffer, count, size, flags);
}

EXPORT ssize_t __recvfrom_chk(int fd, void *restrict buffer, size_t count, size_t size,
			      int flags, struct sockaddr *restrict from,
			      socklen_t *restrict length)
{
	return count <= size
		       ? recvfrom(fd, buffer, count, flags, from, length)
		       : REAL(__recvfrom_chk)(fd, buffer, count, size, flags, from, length);
}

#if __WORDSIZE == 32
/* Programs with 64-bit time call these on 32-bit machines. */
ssize_t __recvmsg64(int fd, struct msghdr *message, int flags);
int __setsockopt64(int fd, int level, int option, const void *value, socklen_t length);

EXPORT ssize_t __recvmsg64(int fd, struct msghdr *message, int flags)
{
	struct device *device = device_get(fd);
	ssize_t length;

	if (!device)
		return REAL(__recvmsg64)(fd, message, flags);
	if (device->kind != DEVICE_UEVENTS)
		return refuse(device);
	length = uevents_receive_message(fd, message, flags);
	device_put(device);
	return length;
}

EXPORT int __setsockopt64(int fd, int level, int option, const void *value, socklen_t length)
{
	int result;

	return set_option(fd, level, option, value, length, &result)
		       ? result
		       : REAL(__setsockopt64)(fd, level, option, value, length);
}
#endif
