/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/receive.h"

#include "engine/answer.h"
#include "base/report.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* A message that nobody wants is read into this much memory, again and again. */
#define DRAIN_SIZE (1 << 20)

/* An address range of at least size bytes, all of it the same few pages if there is a file. */
static void *map_drain(size_t size)
{
	int fd = memfd_create("umad-drain", MFD_CLOEXEC);
	uint8_t *range = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (fd >= 0 && ftruncate(fd, DRAIN_SIZE)) {
		close(fd);
		fd = -1;
	}
	for (size_t at = 0; fd >= 0 && range != MAP_FAILED && at < size; at += DRAIN_SIZE)
		if (mmap(range + at, DRAIN_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			 fd, 0) == MAP_FAILED) {
			munmap(range, size);
			range = MAP_FAILED;
		}
	if (fd >= 0)
		close(fd);
	return range;
}

/* As umad_recv(), at once, whatever signals come. */
static int receive(struct ibmad_port *port, void *umad, int *length)
{
	int ret;

	do {
		ret = umad_recv(port->fd, umad, length, 0);
	} while (ret == -EIO && errno == EINTR);
	return ret;
}

/* Reads a message away; it would be in the way of all others. */
static int drain(struct ibmad_port *port, int length)
{
	size_t size = (umad_size() + (size_t)length + DRAIN_SIZE - 1) / DRAIN_SIZE * DRAIN_SIZE;
	void *range = map_drain(size);
	int ret;

	if (range == MAP_FAILED)
		return -ENOMEM;
	ret = receive(port, range, &length);
	munmap(range, size);
	return ret;
}

/* Locked: a message of whatever length has come, into memory of its own. */
static void take_long(struct ibmad_port *port, uint8_t *umad, int length)
{
	if (!answer_receive(port, umad, length, length > IB_MAD_SIZE))
		free(umad);
}

/*
 * A message of more than one MAD, whose beginning is in the port's buffer. If it is not there
 * any more, another process that shares the handle has read it.
 */
static void receive_long(struct ibmad_port *port, int length)
{
	uint8_t *umad = NULL;
	int error = 0, ret;

	port_unlock(port);
	if ((size_t)length > port->max_reply)
		error = EMSGSIZE;
	else if (!(umad = malloc(umad_size() + (size_t)length)))
		error = ENOMEM;
	ret = error ? drain(port, length) : receive(port, umad, &length);
	if (umad && ret >= 0)
		report_packet("receive\n", umad_get_mad(umad), length);
	port_lock(port);

	if (error)
		answer_failed(port, port->buffer, error);
	if (ret < 0 && ret != -EWOULDBLOCK && ret != -ENOSPC)
		port_fail(port, ENODEV);
	if (umad && ret >= 0)
		take_long(port, umad, length);
	else
		free(umad);
}

bool receive_message(struct ibmad_port *port)
{
	port_unlock(port);
	return receive_unlocked(port);
}

bool receive_unlocked(struct ibmad_port *port)
{
	int length = IB_MAD_SIZE, ret;

	ret = receive(port, port->buffer, &length);
	if (ret >= 0)
		report_packet("receive\n", umad_get_mad(port->buffer), length);
	port_lock(port);

	if (ret >= 0)
		answer_receive(port, port->buffer, length, false);
	else if (ret == -ENOSPC)
		receive_long(port, length);
	else if (ret != -EWOULDBLOCK)
		port_fail(port, ENODEV);
	return ret >= 0 || ret == -ENOSPC;
}
