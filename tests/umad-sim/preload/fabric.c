/* SPDX-License-Identifier: BSD-2-Clause */

/* Requests to the fabric, over its socket. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "preload.h"

static int connect_to_fabric(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if (!fabric_folder() ||
	    snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", fabric_folder(),
		     SOCKET_NAME) >= (int)sizeof(address.sun_path))
		return -ENODEV;
	fd = REAL(socket)(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (REAL(connect)(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	REAL(close)(fd);
	return -ENODEV; /* the fabric has ended, and its devices with it */
}

static int receive_reply(int connection, struct reply *reply, int *fd)
{
	union passed_fd control;
	struct iovec part = {reply, sizeof(*reply)};
	struct msghdr header = {.msg_iov = &part,
				.msg_iovlen = 1,
				.msg_control = &control,
				.msg_controllen = sizeof(control)};
	struct cmsghdr *attached;
	ssize_t length;

	/* if the fabric did not read the request, recv() first fails with ECONNRESET */
	do {
		length = REAL(recvmsg)(connection, &header, MSG_CMSG_CLOEXEC);
	} while (length < 0 && (errno == EINTR || errno == ECONNRESET));

	if (length < 0)
		return -errno;
	if (length < (ssize_t)sizeof(*reply))
		return -ENODEV;
	attached = CMSG_FIRSTHDR(&header);
	if (attached && attached->cmsg_level == SOL_SOCKET &&
	    attached->cmsg_type == SCM_RIGHTS) {
		int received;

		memcpy(&received, CMSG_DATA(attached), sizeof(received));
		if (fd)
			*fd = received;
		else
			REAL(close)(received);
	}
	return reply->error;
}

int ask_fabric(struct request *request, struct reply *reply, int *connection, int *fd)
{
	int opened = connect_to_fabric();
	int error = 0;

	if (opened < 0)
		return opened;
	request->magic = PROTOCOL_MAGIC;
	if (REAL(send)(opened, request, sizeof(*request), MSG_NOSIGNAL) < 0 && errno != EPIPE)
		error = -errno;
	if (!error)
		error = receive_reply(opened, reply, fd);
	if (error || !connection)
		REAL(close)(opened);
	else
		*connection = opened;
	return error;
}
