/* SPDX-License-Identifier: BSD-2-Clause */

/* Requests to the fabric, over its socket. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "preload.h"

static struct sockaddr_un address; /* no path: not on a fabric */

void fabric_begin_program(void)
{
	struct sockaddr_un made = {.sun_family = AF_UNIX};

	if (fabric_folder() &&
	    snprintf(made.sun_path, sizeof(made.sun_path), "%s/%s", fabric_folder(),
		     SOCKET_NAME) < (int)sizeof(made.sun_path))
		address = made;
}

static int connect_to_fabric(void)
{
	int fd;

	if (!address.sun_path[0])
		fabric_begin_program(); /* called by a constructor of another library */
	if (!address.sun_path[0])
		return -ENODEV;
	fd = REAL(socket)(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (REAL(connect)(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	REAL(close)(fd);
	return -ENODEV; /* the fabric has ended, and with it its devices */
}

/* interruptible: fail with -EINTR when a signal handler has run. */
static int receive_reply(int connection, bool interruptible, struct reply *reply, int *fd)
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
	} while (length < 0 && ((errno == EINTR && !interruptible) || errno == ECONNRESET));

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

static void close_connection(void *fd)
{
	REAL(close)(*(int *)fd);
}

/* Waits for an issm device as open() does: until a signal handler has run. Cancelling the
 * thread closes the connection, so that the fabric does not give it the device. */
static int wait_for_device(int connection, struct reply *reply)
{
	int error, state;

	pthread_cleanup_push(close_connection, &connection);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	error = receive_reply(connection, true, reply, NULL);
	pthread_setcancelstate(state, NULL);
	pthread_cleanup_pop(0);
	return error;
}

static int exchange(int connection, struct request *request, bool cancellable,
		    struct reply *reply, int *fd)
{
	bool waits = request->kind == REQUEST_OPEN_ISSM && !request->nonblock;

	request->magic = PROTOCOL_MAGIC;
	if (REAL(send)(connection, request, sizeof(*request), MSG_NOSIGNAL) < 0 &&
	    errno != EPIPE)
		return -errno;
	if (waits && cancellable)
		return wait_for_device(connection, reply);
	return receive_reply(connection, waits, reply, fd);
}

int ask_fabric(struct request *request, struct reply *reply, int *connection, int *fd)
{
	int error, opened, state;

	/* cancelling the thread would leak the connection */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	error = opened = connect_to_fabric();
	if (opened >= 0)
		error = exchange(opened, request, state == PTHREAD_CANCEL_ENABLE, reply, fd);
	if (opened >= 0 && (error || !connection))
		REAL(close)(opened);
	else if (opened >= 0)
		*connection = opened;
	pthread_setcancelstate(state, NULL);
	return error;
}
