/* SPDX-License-Identifier: BSD-2-Clause */

/* Sending, receiving, waiting. */

#include "export.h"
#include "log.h"
#include "packet.h"
#include "probe.h"
#include "sys.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The smallest receive buffer: one MAD (IBA 13.4.2). */
#define MAD_SIZE 256

static int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Milliseconds left, rounded up; 0 when it is over. */
static int remaining_ms(int64_t deadline)
{
	int64_t ns = deadline - clock_ns();

	return ns > 0 ? (int)((ns + 999999) / 1000000) : 0;
}

/* Converts the result of sys_poll() to that of umad_poll(). */
static int poll_result(int revents)
{
	if (revents > 0 && revents & POLLIN)
		return 0;
	if (revents == 0)
		return fail_errno(-ETIMEDOUT);
	if (revents < 0)
		return fail_io(revents);
	return revents & POLLNVAL ? fail_errno(-EINVAL) : fail_io(-EIO);
}

EXPORT int umad_poll(int portid, int timeout_ms)
{
	/* poll(2) ignores negative descriptors and would wait */
	if (portid < 0)
		return fail_errno(-EINVAL);
	return poll_result(sys_poll(portid, timeout_ms));
}

EXPORT int umad_poll_with(int portid, int fd, int timeout_ms)
{
	int revents, other_revents;

	if (portid < 0 || fd < 0)
		return fail_errno(-EINVAL);
	revents = sys_poll_both(portid, fd, timeout_ms, &other_revents);
	if (!revents && other_revents)
		return other_revents & POLLNVAL ? fail_errno(-EINVAL) : 1;
	return poll_result(revents);
}

static void call_packet_hook(enum umad_packet_direction direction, int fd,
			     const struct ib_user_mad *umad, int length, int64_t time)
{
	struct umad_packet_info packet = {
		.direction = direction,
		.portid = fd,
		.agentid = (int)umad->agent_id,
		.length = length,
		.time = time,
		.umad = umad,
		.mad = (const char *)umad + packet_header_size(),
	};

	packet_report(&packet);
}

/* Converts the result of sys_write() to that of umad_send(). */
static int write_result(ssize_t written, size_t size)
{
	if (written >= 0)
		return (size_t)written == size ? 0 : fail_io(-EIO);
	return written == -EBADF ? fail_errno(-EINVAL) : fail_io((int)written);
}

/* umad_send() with a hook, debug messages or a probe, which see a copy. */
static int write_and_trace(int fd, const struct ib_user_mad *mad, size_t size, int length)
{
	union {
		struct ib_user_mad umad;
		uint8_t bytes[sizeof(struct ib_user_mad) + MAD_SIZE];
	} small;
	struct ib_user_mad *copy = size <= sizeof(small) ? &small.umad : malloc(size);
	/* the response may be received before the write returns */
	int64_t time = packet_time();
	uint32_t agent = mad->agent_id;
	uint16_t lid = be16toh(mad->addr.lid);
	ssize_t written;
	int err;

	if (copy)
		memcpy(copy, mad, size);
	written = sys_write(fd, mad, size);
	probe_send(fd, agent, (const uint8_t *)mad + (size - (size_t)length), length, lid,
		   written < 0 ? (int)-written : 0);
	log_debug("agent %u on handle %d sends %d bytes to lid %u: %s", agent, fd, length, lid,
		  written < 0 ? strerror((int)-written) : "done");
	err = write_result(written, size);
	if (!err && copy)
		call_packet_hook(UMAD_PACKET_SENT, fd, copy, length, time);
	else if (!err && packet_wanted())
		log_warning("no memory: the hook is not told of %d bytes that were sent",
			    length);
	if (copy != &small.umad)
		free(copy);
	return err;
}

/*
 * Reads nothing from the message after the write: another thread may receive the response
 * before the write returns, and the caller may then free or change the message.
 */
EXPORT int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms,
		     int retries)
{
	struct ib_user_mad *mad = umad;
	size_t size;

	if (!umad || agentid < 0 || length < 0)
		return fail_errno(-EINVAL);
	mad->agent_id = (uint32_t)agentid;
	mad->timeout_ms = (uint32_t)timeout_ms;
	mad->retries = (uint32_t)retries;
	size = packet_header_size() + (size_t)length;
	if (packet_wanted() || log_wanted(UMAD_LOG_DEBUG) || IS_TRACED(send))
		return write_and_trace(portid, mad, size, length);
	return write_result(sys_write(portid, mad, size), size);
}

/* Receives without waiting, as umad_recv() with timeout 0. */
static int read_message(int fd, struct ib_user_mad *umad, int *length)
{
	size_t header = packet_header_size(), room = header + (size_t)*length;
	ssize_t got = sys_read(fd, umad, room);

	if (got == -EAGAIN)
		return fail_errno(-EWOULDBLOCK);
	if (got == -EBADF)
		return fail_errno(-EINVAL);
	if (got == -ENOSPC && umad->length > room && umad->length - header <= INT_MAX) {
		/* the kernel stores the length in the header */
		*length = (int)(umad->length - header);
		return fail_errno(-ENOSPC);
	}
	if (got < 0)
		return fail_io(got == -ENOSPC ? -EIO : (int)got);
	if ((size_t)got < header || (size_t)got > room || umad->agent_id > INT_MAX)
		return fail_io(-EIO);
	*length = (int)((size_t)got - header);
	if (IS_TRACED(receive))
		probe_receive(fd, umad, (const uint8_t *)umad + header, *length);
	log_debug("agent %u on handle %d receives %d bytes from lid %u, status %u",
		  umad->agent_id, fd, *length, be16toh(umad->addr.lid), umad->status);
	if (packet_wanted())
		call_packet_hook(UMAD_PACKET_RECEIVED, fd, umad, *length, packet_time());
	return (int)umad->agent_id;
}

/* umad_recv() with a timeout. */
static int wait_and_read_message(int fd, struct ib_user_mad *umad, int *length, int timeout_ms)
{
	int64_t deadline = 0;
	int result, left = timeout_ms;

	if (timeout_ms > 0)
		deadline = clock_ns() + timeout_ms * INT64_C(1000000);
	/* another thread may take what poll announced */
	do {
		result = poll_result(sys_poll(fd, left));
		if (!result)
			result = read_message(fd, umad, length);
		if (result != -EWOULDBLOCK)
			return result;
		if (timeout_ms > 0)
			left = remaining_ms(deadline);
	} while (left);
	return fail_errno(-ETIMEDOUT);
}

EXPORT int umad_recv(int portid, void *umad, int *length, int timeout_ms)
{
	if (portid < 0 || !umad || !length || *length < MAD_SIZE)
		return fail_errno(-EINVAL);
	if (timeout_ms)
		return wait_and_read_message(portid, umad, length, timeout_ms);
	return read_message(portid, umad, length);
}
