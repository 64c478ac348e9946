/* SPDX-License-Identifier: BSD-2-Clause */

/* Requests to a fabric. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "ask.h"

/* Returns the descriptor that came with a message, or -1. */
static int passed_fd(struct msghdr *message)
{
	struct cmsghdr *control = CMSG_FIRSTHDR(message);
	int fd = -1;

	if (control && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(control), sizeof(fd));
	return fd;
}

static int talk(int fd, enum request_kind kind, const char *request_text, struct reply *reply,
		char *text, int *file)
{
	struct request request = {.magic = PROTOCOL_MAGIC, .kind = kind};
	struct iovec out[2] = {{&request, sizeof(request)},
			       {(void *)(uintptr_t)request_text, strlen(request_text)}};
	struct msghdr message = {.msg_iov = out, .msg_iovlen = 2};
	struct iovec in[2] = {{reply, sizeof(*reply)}, {text, LONGEST_TEXT}};
	union passed_fd control = {0};
	ssize_t length;

	if (strlen(request_text) > LONGEST_TEXT)
		return -E2BIG;
	if (sendmsg(fd, &message, MSG_NOSIGNAL) < 0 && errno != EPIPE)
		return -errno;
	/* if the fabric did not read the request, recv() first fails with ECONNRESET */
	do {
		message = (struct msghdr){.msg_iov = in,
					  .msg_iovlen = 2,
					  .msg_control = &control,
					  .msg_controllen = sizeof(control)};
		length = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	} while (length < 0 && (errno == EINTR || errno == ECONNRESET));
	if (length < 0)
		return -errno;
	*file = passed_fd(&message);
	if (length < (ssize_t)sizeof(*reply))
		return -ECONNRESET;
	text[length - (ssize_t)sizeof(*reply)] = '\0';
	return reply->error;
}

static int ask_for(const char *folder, enum request_kind kind, const char *request_text,
		   struct reply *reply, char *text, int *connection, int *file)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int error;

	text[0] = '\0';
	*file = -1;
	if (fd < 0)
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/%s", folder, SOCKET_NAME);
	error = connect(fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
	if (!error)
		error = talk(fd, kind, request_text, reply, text, file);
	if (error || !connection)
		close(fd);
	else
		*connection = fd;
	return error;
}

int ask(const char *folder, enum request_kind kind, const char *request_text,
	struct reply *reply, char *text, int *connection)
{
	int file;
	int error = ask_for(folder, kind, request_text, reply, text, connection, &file);

	if (file >= 0)
		close(file);
	return error;
}

int ask_command(const char *folder, const char *command, char *text, int *file)
{
	struct reply reply;

	return ask_for(folder, REQUEST_COMMAND, command, &reply, text, NULL, file);
}
