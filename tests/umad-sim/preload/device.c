/* SPDX-License-Identifier: BSD-2-Clause */

/* umad and issm devices: sockets to the fabric, made to behave like devices. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "preload.h"

#define GIVEN_BACK  24 /* bytes of the MAD that come back on a timeout */
#define IOCTL_TYPE  0x1b
#define REGISTER    0x01 /* numbers of ioctls */
#define UNREGISTER  0x02
#define ENABLE_PKEY 0x03
#define REGISTER2   0x04

#define MOST_SEGMENTS 1024 /* of readv() */

static int fail(int error)
{
	errno = -error;
	return -1;
}

static size_t header_bytes(const struct device *device)
{
	return atomic_load(&device->shared->pkey_layout) ? HEADER_BYTES : OLD_HEADER_BYTES;
}

/* Receives the first packet, and reads the rest of a long message from its memory file. */
static ssize_t take(int fd, uint8_t *buffer, size_t first, size_t total)
{
	union passed_fd control;
	struct iovec part = {buffer, first};
	struct msghdr header = {.msg_iov = &part,
				.msg_iovlen = 1,
				.msg_control = &control,
				.msg_controllen = sizeof(control)};
	struct cmsghdr *attached;
	size_t done = 0;
	int file;

	if (REAL(recvmsg)(fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0)
		return -errno;
	attached = CMSG_FIRSTHDR(&header);
	if (total <= first)
		return (ssize_t)first;
	if (!attached || attached->cmsg_type != SCM_RIGHTS)
		return -EIO;
	memcpy(&file, CMSG_DATA(attached), sizeof(file));
	while (done < total) {
		ssize_t got = REAL(pread)(file, buffer + done, total - done, (off_t)done);

		if (got <= 0)
			break;
		done += (size_t)got;
	}
	REAL(close)(file);
	return done == total ? (ssize_t)total : -EIO;
}

/* read() as in the kernel's user_mad.c: a message that does not fit stays queued; if it is a
 * long one, fails with ENOSPC and copies the header and the first segment. */
static ssize_t read_packet(const struct device *device, int fd, uint8_t *buffer, size_t count)
{
	uint8_t packet[HEADER_BYTES];
	size_t header = header_bytes(device);
	ssize_t length;
	uint32_t status;
	uint32_t total;

	length = REAL(recv)(fd, packet, sizeof(packet), MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
	if (length < 0)
		return -errno;
	if (length < (ssize_t)header)
		return -EIO; /* the fabric has ended */
	memcpy(&status, packet + 4, sizeof(status));
	memcpy(&total, packet + 16, sizeof(total));
	if (status || total <= (size_t)length)
		return count < (size_t)length
			       ? -EINVAL
			       : take(fd, buffer, (size_t)length, (size_t)length);
	if (count < header + SINGLE_MAD_BYTES)
		return -EINVAL;
	if (count >= total)
		return take(fd, buffer, (size_t)length, total);
	length = REAL(recv)(fd, buffer, header + SINGLE_MAD_BYTES, MSG_PEEK | MSG_DONTWAIT);
	return length < 0 ? -errno : -ENOSPC;
}

/* Lets one thread read at a time. A thread with the lock does not wait, is not cancelled, and
 * runs no signal handler, which could read, too. */
static ssize_t read_alone(struct device *device, int fd, void *buffer, size_t count)
{
	sigset_t all, before;
	ssize_t result;
	int state;

	sigfillset(&all);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pthread_mutex_lock(&device->reading);
	result = read_packet(device, fd, buffer, count);
	pthread_mutex_unlock(&device->reading);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_setcancelstate(state, NULL);
	return result;
}

static void put_back(void *device)
{
	device_put(device);
}

/* Waits unless the handle is non-blocking. Returns 0 or a negative errno. As in the kernel,
 * removing the device does not wake the thread. */
static int wait_for_packet(struct device *device, int fd)
{
	ssize_t length;
	uint8_t byte;

	pthread_cleanup_push(put_back, device);
	length = REAL(recv)(fd, &byte, 1, MSG_PEEK);
	if (length == 0 && atomic_load(&device->shared->gone)) {
		length = -1;
		errno = EIO;
		if (!(REAL(fcntl)(fd, F_GETFL) & O_NONBLOCK))
			length = REAL(poll)(NULL, 0, -1);
	}
	pthread_cleanup_pop(0);
	return length < 0 ? -errno : 0;
}

static bool may_read(const struct device *device)
{
	int access = device->flags & O_ACCMODE;

	return device->kind == DEVICE_UEVENTS || access == O_RDONLY || access == O_RDWR;
}

static bool may_write(const struct device *device)
{
	int access = device->flags & O_ACCMODE;

	return device->kind == DEVICE_UEVENTS || access == O_WRONLY || access == O_RDWR;
}

ssize_t device_read(struct device *device, int fd, void *buffer, size_t count)
{
	ssize_t result;

	if (device->kind == DEVICE_UEVENTS)
		return uevents_receive(fd, buffer, count, 0, NULL, NULL);
	if (!may_read(device))
		return fail(-EBADF);
	if (device->kind != DEVICE_UMAD)
		return fail(-EINVAL);
	if (count < header_bytes(device))
		return fail(-EINVAL);
	if (atomic_load(&device->shared->gone))
		return fail(-EIO);
	do {
		result = read_alone(device, fd, buffer, count);
	} while (result == -EAGAIN && !(result = wait_for_packet(device, fd)));
	return result < 0 ? fail((int)result) : result;
}

/* Sends a message too long for a packet, in a memory file. */
static ssize_t send_long(int fd, const uint8_t *buffer, size_t count)
{
	int file = REAL(memfd_create)("umad-sim", MFD_CLOEXEC);
	union passed_fd control = {.header = {CMSG_LEN(sizeof(file)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec part = {(void *)(uintptr_t)buffer, HEADER_BYTES + SINGLE_MAD_BYTES};
	struct msghdr header = {.msg_iov = &part,
				.msg_iovlen = 1,
				.msg_control = &control,
				.msg_controllen = sizeof(control)};
	ssize_t sent = -1;
	size_t done = 0;

	while (file >= 0 && done < count) {
		ssize_t written = REAL(pwrite)(file, buffer + done, count - done, (off_t)done);

		if (written <= 0)
			break;
		done += (size_t)written;
	}
	memcpy(CMSG_DATA(&control.header), &file, sizeof(file));
	errno = ENOMEM;
	if (done == count)
		sent = REAL(sendmsg)(fd, &header, MSG_NOSIGNAL);
	if (file >= 0)
		REAL(close)(file);
	return sent;
}

/*
 * A write to a device does not block: if the socket is full, waits until the fabric has read.
 */
static int send_packet(int fd, const uint8_t *buffer, size_t count)
{
	for (;;) {
		struct pollfd room = {.fd = fd, .events = POLLOUT};
		ssize_t sent = count > LONGEST_PACKET
				       ? send_long(fd, buffer, count)
				       : REAL(send)(fd, buffer, count, MSG_NOSIGNAL);

		if (sent >= 0)
			return 0;
		if (errno == EAGAIN || errno == ENOBUFS)
			REAL(poll)(&room, 1, 100);
		else if (errno != EINTR)
			return errno == ENOMEM ? -ENOMEM : -EIO;
	}
}

ssize_t device_write(struct device *device, int fd, const void *buffer, size_t count)
{
	uint64_t key;
	int error;

	if (!may_write(device))
		return fail(-EBADF);
	if (device->kind != DEVICE_UMAD)
		return fail(-EINVAL);
	if (count > LONGEST_MESSAGE)
		return fail(-ENOMEM);
	error = check_write(device->shared, buffer, count);
	if (error)
		return fail(error);
	key = transaction_of(device->shared, buffer);
	if (key && !transaction_enter(device->shared, key))
		return fail(-EINVAL);
	error = send_packet(fd, buffer, count);
	if (!error)
		return (ssize_t)count;
	if (key)
		transaction_leave(device->shared, key);
	return fail(error);
}

/* The bytes of all segments; -EINVAL if readv() would refuse them. */
static ssize_t bytes_of(const struct iovec *parts, int count)
{
	size_t total = 0;

	if (count < 0 || count > MOST_SEGMENTS)
		return -EINVAL;
	for (int i = 0; i < count; i++) {
		if (parts[i].iov_len > SSIZE_MAX)
			return -EINVAL;
		total += parts[i].iov_len < SSIZE_MAX - total ? parts[i].iov_len
							      : SSIZE_MAX - total;
	}
	return (ssize_t)total;
}

/* As the kernel does for a device with only read() and write(): each segment is a call of its
 * own, and one that is not transferred in full is the last. */
static ssize_t transfer(struct device *device, int fd, const struct iovec *parts, size_t left,
			bool reads)
{
	ssize_t done = 0;

	for (const struct iovec *part = parts; left; part++) {
		ssize_t got;

		if (part > parts && !part->iov_len)
			continue;
		got = reads ? device_read(device, fd, part->iov_base, part->iov_len)
			    : device_write(device, fd, part->iov_base, part->iov_len);
		if (got < 0)
			return done ? done : -1;
		done += got;
		left -= (size_t)got;
		if ((size_t)got != part->iov_len)
			break;
	}
	return done;
}

ssize_t device_readv(struct device *device, int fd, const struct iovec *parts, int count)
{
	struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts,
				 .msg_iovlen = (size_t)count};
	ssize_t bytes = bytes_of(parts, count);

	if (bytes < 0)
		return fail((int)bytes);
	if (device->kind == DEVICE_UEVENTS)
		return uevents_receive_message(fd, &message, 0);
	return may_read(device) ? transfer(device, fd, parts, (size_t)bytes, true)
				: fail(-EBADF);
}

ssize_t device_writev(struct device *device, int fd, const struct iovec *parts, int count)
{
	ssize_t bytes = bytes_of(parts, count);

	if (bytes < 0)
		return fail((int)bytes);
	return may_write(device) ? transfer(device, fd, parts, (size_t)bytes, false)
				 : fail(-EBADF);
}

/* ioctl on a removed device, as in the kernel. */
static int ioctl_without_device(struct shared *shared, unsigned int number)
{
	switch (number) {
	case REGISTER:
	case REGISTER2:
		return fail(-EPIPE);
	case UNREGISTER:
		return fail(-EINVAL);
	case ENABLE_PKEY:
		if (atomic_load(&shared->used))
			return fail(-EINVAL);
		atomic_store(&shared->pkey_layout, 1);
		return 0;
	default:
		return fail(-ENOTTY);
	}
}

int device_ioctl(struct device *device, unsigned long code, void *argument)
{
	struct request request = {
		.kind = REQUEST_IOCTL, .handle = device->handle, .code = (uint32_t)code};
	unsigned int number = _IOC_NR(code);
	size_t size = _IOC_SIZE(code);
	struct reply reply;
	int error;

	if (device->kind != DEVICE_UMAD || _IOC_TYPE(code) != IOCTL_TYPE)
		return fail(-ENOTTY);
	if (atomic_load(&device->shared->gone))
		return ioctl_without_device(device->shared, number);
	if (size > ARGUMENT_BYTES)
		return fail(-ENOTTY);
	if (size && !argument)
		return fail(-EFAULT);
	if (size)
		memcpy(request.argument, argument, size);
	memset(&reply, 0, sizeof(reply));
	error = ask_fabric(&request, &reply, NULL, NULL);
	if (error == -EBADF || error == -ENODEV)
		return ioctl_without_device(device->shared, number);
	if (size && _IOC_DIR(code) & _IOC_READ && (!error || error == -EINVAL))
		memcpy(argument, reply.argument, size);
	return error ? fail(error) : 0;
}

/* Turns what poll() reports for a device's socket into what it reports for a device. */
static void correct_events(short *events)
{
	if (*events & POLLHUP)
		*events = POLLERR;
	else
		*events &= ~POLLWRBAND;
}

int device_correct_poll(struct pollfd *fds, nfds_t count)
{
	int without = 0;

	for (nfds_t i = 0; i < count; i++) {
		struct device *device =
			fds[i].revents & (POLLHUP | POLLWRBAND) ? device_get(fds[i].fd) : NULL;

		if (!device)
			continue;
		if (device->kind != DEVICE_UEVENTS || fds[i].revents & POLLHUP)
			correct_events(&fds[i].revents);
		without += !fds[i].revents;
		device_put(device);
	}
	return without;
}
