/* SPDX-License-Identifier: BSD-2-Clause */

/* Socket calls that just refuse a umad or issm device, which is a socket to the fabric but a
 * character device to the program. netlink.c has the calls that a socket for uevents needs. */
#undef _FILE_OFFSET_BITS /* each name is a function of its own */
#undef _TIME_BITS
#include <errno.h>
#include <sys/socket.h>

#include "preload.h"

static bool is_no_socket(int fd)
{
	struct device *device = device_get(fd);
	bool refused = device && device->kind != DEVICE_UEVENTS;

	if (device)
		device_put(device);
	if (refused)
		errno = ENOTSOCK;
	return refused;
}

#define SOCKET(type, name, parameters, ...)                             \
	EXPORT type name parameters                                     \
	{                                                               \
		return is_no_socket(fd) ? -1 : REAL(name)(__VA_ARGS__); \
	}

SOCKET(ssize_t, send, (int fd, const void *bytes, size_t count, int flags), fd, bytes, count,
       flags)
SOCKET(ssize_t, sendto,
       (int fd, const void *bytes, size_t count, int flags, const struct sockaddr *to,
	socklen_t length),
       fd, bytes, count, flags, to, length)
SOCKET(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), fd, message, flags)
SOCKET(int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned int count, int flags), fd,
       messages, count, flags)
SOCKET(int, recvmmsg,
       (int fd, struct mmsghdr *messages, unsigned int count, int flags,
	struct timespec *timeout),
       fd, messages, count, flags, timeout)
SOCKET(int, connect, (int fd, const struct sockaddr *to, socklen_t length), fd, to, length)
SOCKET(int, listen, (int fd, int waiting), fd, waiting)
SOCKET(int, accept, (int fd, struct sockaddr *restrict from, socklen_t *restrict length), fd,
       from, length)
SOCKET(int, accept4,
       (int fd, struct sockaddr *restrict from, socklen_t *restrict length, int flags), fd,
       from, length, flags)
SOCKET(int, shutdown, (int fd, int how), fd, how)
SOCKET(int, getpeername, (int fd, struct sockaddr *restrict to, socklen_t *restrict length), fd,
       to, length)
SOCKET(int, getsockopt,
       (int fd, int level, int option, void *restrict value, socklen_t *restrict length), fd,
       level, option, value, length)

#if __WORDSIZE == 32
/* Programs with 64-bit time call these on 32-bit machines. */
ssize_t __sendmsg64(int fd, const struct msghdr *message, int flags);
int __sendmmsg64(int fd, struct mmsghdr *messages, unsigned int count, int flags);
int __recvmmsg64(int fd, struct mmsghdr *messages, unsigned int count, int flags,
		 void *timeout);
int __getsockopt64(int fd, int level, int option, void *value, socklen_t *length);

SOCKET(ssize_t, __sendmsg64, (int fd, const struct msghdr *message, int flags), fd, message,
       flags)
SOCKET(int, __sendmmsg64, (int fd, struct mmsghdr *messages, unsigned int count, int flags), fd,
       messages, count, flags)
SOCKET(int, __recvmmsg64,
       (int fd, struct mmsghdr *messages, unsigned int count, int flags, void *timeout), fd,
       messages, count, flags, timeout)
SOCKET(int, __getsockopt64, (int fd, int level, int option, void *value, socklen_t *length), fd,
       level, option, value, length)
#endif
