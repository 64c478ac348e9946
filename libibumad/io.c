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

/* The least that a receiver must have room for: one MAD (IBA 13.4.2). */
#define MAD_SIZE 256

/*
 * The calls that send, receive and wait leave errors, the packet hook, messages and probes to
 * functions that are not inlined: so they save no registers for these. RARE is for all but the
 * results of a wait or a read that programs often get, such as -EWOULDBLOCK.
 */
#define RARE __attribute__((noinline, cold))

static int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Milliseconds until then, begun ones counted whole; 0 when it is over. */
static int remaining_ms(int64_t deadline)
{
	int64_t ns = deadline - clock_ns();

	return ns > 0 ? (int)((ns + 999999) / 1000000) : 0;
}

/* What umad_poll() returns, errno set, for the result of sys_poll() without POLLIN. */
static __attribute__((noinline)) int poll_failed(int revents)
{
	if (revents == 0)
		return fail(-ETIMEDOUT);
	if (revents < 0)
		return fail_io(revents);
	return revents & POLLNVAL ? fail(-EINVAL) : fail_io(-EIO);
}

static inline bool is_readable(int revents)
{
	return __builtin_expect(revents > 0 && revents & POLLIN, true);
}

EXPORT int umad_poll(int portid, int timeout_ms)
{
	int revents;

	/* poll(2) takes no notice of a negative descriptor, and would wait for nothing */
	if (portid < 0)
		return fail(-EINVAL);
	revents = sys_poll(portid, timeout_ms);
	return is_readable(revents) ? 0 : poll_failed(revents);
}

/* What umad_poll_with() returns, errno set, if no message can be received. */
static __attribute__((noinline)) int poll_with_failed(int revents, int other_revents)
{
	if (!revents && other_revents)
		return other_revents & POLLNVAL ? fail(-EINVAL) : 1;
	return poll_failed(revents);
}

EXPORT int umad_poll_with(int portid, int fd, int timeout_ms)
{
	int revents, other_revents;

	if (portid < 0 || fd < 0)
		return fail(-EINVAL);
	revents = sys_poll_both(portid, fd, timeout_ms, &other_revents);
	return is_readable(revents) ? 0 : poll_with_failed(revents, other_revents);
}

/* Tells the hook of a MAD behind its header. */
static RARE void report(enum umad_packet_direction direction, int fd,
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

/* What umad_send() returns, errno set, if sys_write() did not write the whole message. */
static RARE int fail_write(ssize_t written)
{
	if (written == -EBADF)
		return fail(-EINVAL);
	return fail_io(written < 0 ? (int)written : -EIO);
}

static inline int write_errno(ssize_t written)
{
	return written < 0 ? (int)-written : 0;
}

/* umad_send() with a packet hook, messages of level 2 or a probe: a copy has what was sent. */
static RARE int write_and_tell(int fd, const struct ib_user_mad *mad, size_t size, int length)
{
	union {
		struct ib_user_mad umad;
		uint8_t bytes[sizeof(struct ib_user_mad) + MAD_SIZE];
	} small;
	struct ib_user_mad *copy = size <= sizeof(small) ? &small.umad : malloc(size);
	/* a response may be received before the write returns */
	int64_t time = packet_time();
	uint32_t agent = mad->agent_id;
	uint16_t lid = be16toh(mad->addr.lid);
	ssize_t written;
	int err;

	if (copy)
		memcpy(copy, mad, size);
	written = sys_write(fd, mad, size);
	probe_send(fd, agent, (const uint8_t *)mad + (size - (size_t)length), length, lid,
		   write_errno(written));
	log_debug("agent %u on handle %d sends %d bytes to lid %u: %s", agent, fd, length, lid,
		  written < 0 ? strerror((int)-written) : "done");
	err = (size_t)written == size ? 0 : fail_write(written);
	if (!err && copy)
		report(UMAD_PACKET_SENT, fd, copy, length, time);
	else if (!err && packet_wanted())
		log_warning("no memory: the hook is not told of %d bytes that were sent",
			    length);
	if (copy != &small.umad)
		free(copy);
	return err;
}

/*
 * The caller may free or change the message as soon as the kernel has it: another thread may
 * receive the response, and end the transaction, before the write returns here. So nothing is
 * read from the message after the write.
 */
EXPORT int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms,
		     int retries)
{
	struct ib_user_mad *mad = umad;
	ssize_t written;
	size_t size;

	if (!umad || agentid < 0 || length < 0)
		return fail(-EINVAL);
	mad->agent_id = (uint32_t)agentid;
	mad->timeout_ms = (uint32_t)timeout_ms;
	mad->retries = (uint32_t)retries;
	size = packet_header_size() + (size_t)length;
	if (packet_wanted() || log_wanted(UMAD_LOG_DEBUG) || IS_TRACED(send))
		return write_and_tell(portid, mad, size, length);
	written = sys_write(portid, mad, size);
	return __builtin_expect((size_t)written == size, true) ? 0 : fail_write(written);
}

/* Tells the log, the hook and the probe of a message that was received. */
static RARE void tell_received(int fd, const struct ib_user_mad *mad, int length)
{
	probe_receive(fd, mad, (const uint8_t *)mad + packet_header_size(), length);
	log_debug("agent %u on handle %d receives %d bytes from lid %u, status %u",
		  mad->agent_id, fd, length, be16toh(mad->addr.lid), mad->status);
	if (packet_wanted())
		report(UMAD_PACKET_RECEIVED, fd, mad, length, packet_time());
}

/* What receive() returns if sys_read() read no message, errno set. */
static __attribute__((noinline)) int read_failed(ssize_t got, const struct ib_user_mad *mad,
						 size_t header, int *length)
{
	if (got == -EAGAIN)
		return fail(-EWOULDBLOCK);
	if (got == -EBADF)
		return fail(-EINVAL);
	if (got == -ENOSPC) {
		/* the kernel has told the length in the header */
		if (mad->length <= header + (size_t)*length || mad->length - header > INT_MAX)
			return fail_io(-EIO);
		*length = (int)(mad->length - header);
		return fail(-ENOSPC);
	}
	return fail_io(got < 0 ? (int)got : -EIO);
}

/* Reads one message: returns what umad_recv() returns with timeout 0, errno set. */
static inline __attribute__((always_inline)) int receive(int fd, struct ib_user_mad *mad,
							 int *length)
{
	size_t header = packet_header_size(), mad_length;
	ssize_t got = sys_read(fd, mad, header + (size_t)*length);

	/* a negative result, or one below the header's size, becomes a large number */
	mad_length = (size_t)got - header;
	if (__builtin_expect(mad_length > (size_t)*length, false))
		return read_failed(got, mad, header, length);
	if (__builtin_expect(mad->agent_id > INT_MAX, false))
		return fail_io(-EIO);
	*length = (int)mad_length;
	if (log_wanted(UMAD_LOG_DEBUG) || packet_wanted() || IS_TRACED(receive))
		tell_received(fd, mad, (int)mad_length);
	return (int)mad->agent_id;
}

/* umad_recv() with a timeout. */
static __attribute__((noinline)) int wait_and_receive(int fd, struct ib_user_mad *mad,
						      int *length, int timeout_ms)
{
	int64_t deadline = 0;
	int id, revents, left = timeout_ms;

	if (timeout_ms > 0)
		deadline = clock_ns() + timeout_ms * INT64_C(1000000);
	/* again and again: another thread may be quicker to take what poll announced */
	do {
		revents = sys_poll(fd, left);
		if (!is_readable(revents))
			return poll_failed(revents);
		id = receive(fd, mad, length);
		if (id != -EWOULDBLOCK)
			return id;
		if (timeout_ms > 0)
			left = remaining_ms(deadline);
	} while (left);
	return fail(-ETIMEDOUT);
}

EXPORT int umad_recv(int portid, void *umad, int *length, int timeout_ms)
{
	if (portid < 0 || !umad || !length || *length < MAD_SIZE)
		return fail(-EINVAL);
	if (timeout_ms)
		return wait_and_receive(portid, umad, length, timeout_ms);
	return receive(portid, umad, length);
}
