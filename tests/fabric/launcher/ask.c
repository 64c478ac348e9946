/* SPDX-License-Identifier: BSD-2-Clause */

/* Asking a fabric. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "ask.h"

static int talk(int fd, enum request_kind kind, const char *question, struct reply *reply,
		char *text)
{
	struct request request = {.magic = PROTOCOL_MAGIC, .kind = kind};
	struct iovec out[2] = {{&request, sizeof(request)},
			       {(void *)(uintptr_t)question, strlen(question)}};
	struct msghdr message = {.msg_iov = out, .msg_iovlen = 2};
	struct iovec in[2] = {{reply, sizeof(*reply)}, {text, LONGEST_TEXT}};
	ssize_t length;

	if (strlen(question) > LONGEST_TEXT)
		return -E2BIG;
	if (sendmsg(fd, &message, MSG_NOSIGNAL) < 0 && errno != EPIPE)
		return -errno;
	/* if the fabric did not read the request, its reply comes after ECONNRESET */
	do {
		length = readv(fd, in, 2);
	} while (length < 0 && (errno == EINTR || errno == ECONNRESET));
	if (length < (ssize_t)sizeof(*reply))
		return length < 0 ? -errno : -ECONNRESET;
	text[length - (ssize_t)sizeof(*reply)] = '\0';
	return reply->error;
}

int ask(const char *folder, enum request_kind kind, const char *question, struct reply *reply,
	char *text, int *connection)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int error;

	text[0] = '\0';
	if (fd < 0)
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/%s", folder, SOCKET_NAME);
	error = connect(fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
	if (!error)
		error = talk(fd, kind, question, reply, text);
	if (error || !connection)
		close(fd);
	else
		*connection = fd;
	return error;
}
