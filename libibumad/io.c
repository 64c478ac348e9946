/* SPDX-License-Identifier: BSD-2-Clause */

/* Sending, receiving, waiting. */

#include "export.h"
#include "log.h"
#include "packet_hook.h"
#include "probe.h"
#include "sys.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The least that a receiver must have room for: one MAD (IBA 13.4.2). */
#define MAD_SIZE 256

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

/* Of a poll's revents, or its negative errno: as wait_readable(). */
static int judge_poll(int revents, int *cause)
{
	*cause = -EIO;
	if (revents == 0)
		return -ETIMEDOUT;
	if (revents < 0) {
		*cause = revents;
		return -EIO;
	}
	if (revents & POLLIN)
		return 0;
	return revents & POLLNVAL ? -EINVAL : -EIO;
}

/* Returns 0 and what umad_poll() returns, errno not set: a cause in *cause under -EIO. */
static int wait_readable(int fd, int timeout_ms, int *cause)
{
	return judge_poll(sys_poll(fd, timeout_ms), cause);
}

EXPORT int umad_poll(int portid, int timeout_ms)
{
	int cause, err;

	/* poll(2) takes no notice of a negative descriptor, and would wait for nothing */
	if (portid < 0)
		return fail(-EINVAL);
	err = wait_readable(portid, timeout_ms, &cause);
	if (!err)
		return 0;
	return err == -EIO ? fail_io(cause) : fail(err);
}

EXPORT int umad_poll_with(int portid, int fd, int timeout_ms)
{
	int revents, other_revents, cause, err;

	if (portid < 0 || fd < 0)
		return fail(-EINVAL);
	revents = sys_poll_both(portid, fd, timeout_ms, &other_revents);
	if (!revents && other_revents)
		return other_revents & POLLNVAL ? fail(-EINVAL) : 1;
	err = judge_poll(revents, &cause);
	if (!err)
		return 0;
	return err == -EIO ? fail_io(cause) : fail(err);
}

/*
 * Tells the hook of a MAD behind its header. In a function of its own, as the other one below,
 * so that the calls do not save registers for it when there is no hook.
 */
static __attribute__((noinline, cold)) void report(enum umad_packet_direction direction, int fd,
						   const struct ib_user_mad *umad, int length,
						   int64_t time)
{
	struct umad_packet_info packet = {
		.direction = direction,
		.portid = fd,
		.agentid = (int)umad->agent_id,
		.length = length,
		.time = time,
		.umad = umad,
		.mad = (const char *)umad + umad_size(),
	};

	packet_report(&packet);
}

/*
 * Returns what sys_write() returns. The caller may free or change the message as soon as the
 * kernel has it: another thread may receive the response, and end the transaction, before the
 * write returns here. So nothing is read from the message after the write.
 */
static inline __attribute__((always_inline)) ssize_t write_message(
	int fd, const struct ib_user_mad *mad, size_t size, int length)
{
	uint32_t agent = mad->agent_id;
	uint16_t lid = be16toh(mad->addr.lid);
	ssize_t written = sys_write(fd, mad, size);

	probe_send(fd, agent, (const uint8_t *)mad + (size - (size_t)length), length, lid,
		   written < 0 ? (int)-written : 0);
	return written;
}

/* What umad_send() returns for what write_message() returned, errno set. */
static inline int judge_write(ssize_t written, size_t size)
{
	if (__builtin_expect((size_t)written == size, true))
		return 0;
	if (written == -EBADF)
		return fail(-EINVAL);
	return fail_io(written < 0 ? (int)written : -EIO);
}

/* umad_send() with a packet hook or messages of level 2: both are told what a copy has. */
static __attribute__((noinline, cold)) int write_and_tell(int fd, const struct ib_user_mad *mad,
							  size_t size, int length)
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
	written = write_message(fd, mad, size, length);
	log_debug("agent %u on handle %d sends %d bytes to lid %u: %s", agent, fd, length, lid,
		  written < 0 ? strerror((int)-written) : "done");
	err = judge_write(written, size);
	if (!err && copy)
		report(UMAD_PACKET_SENT, fd, copy, length, time);
	else if (!err && packet_wanted())
		log_warning("no memory: the hook is not told of %d bytes that were sent",
			    length);
	if (copy != &small.umad)
		free(copy);
	return err;
}

EXPORT int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms,
		     int retries)
{
	struct ib_user_mad *mad = umad;
	size_t size;

	if (!umad || agentid < 0 || length < 0)
		return fail(-EINVAL);
	mad->agent_id = (uint32_t)agentid;
	mad->timeout_ms = (uint32_t)timeout_ms;
	mad->retries = (uint32_t)retries;
	size = umad_size() + (size_t)length;
	if (packet_wanted() || log_wanted(UMAD_LOG_DEBUG))
		return write_and_tell(portid, mad, size, length);
	return judge_write(write_message(portid, mad, size, length), size);
}

static __attribute__((noinline, cold)) void report_received(int fd,
							    const struct ib_user_mad *mad,
							    int length)
{
	report(UMAD_PACKET_RECEIVED, fd, mad, length, packet_time());
}

/* Reads one message: the agent's id, -EAGAIN, or what umad_recv() returns, errno set. */
static int receive(int fd, struct ib_user_mad *mad, int *length)
{
	size_t header = umad_size(), size = header + (size_t)*length;
	ssize_t got = sys_read(fd, mad, size);

	if (got == -EAGAIN)
		return -EAGAIN;
	if (got == -EBADF)
		return fail(-EINVAL);
	if (got == -ENOSPC) {
		/* the kernel has told the length in the header */
		if (mad->length <= size || mad->length - header > INT_MAX)
			return fail_io(-EIO);
		*length = (int)(mad->length - header);
		return fail(-ENOSPC);
	}
	if (got < 0)
		return fail_io((int)got);
	if ((size_t)got < header || (size_t)got > size || mad->agent_id > INT_MAX)
		return fail_io(-EIO);
	*length = (int)((size_t)got - header);
	probe_receive(fd, mad, (const uint8_t *)mad + header, *length);
	log_debug("agent %u on handle %d receives %d bytes from lid %u, status %u",
		  mad->agent_id, fd, *length, be16toh(mad->addr.lid), mad->status);
	if (packet_wanted())
		report_received(fd, mad, *length);
	return (int)mad->agent_id;
}

EXPORT int umad_recv(int portid, void *umad, int *length, int timeout_ms)
{
	int64_t deadline = 0;
	int cause, err, id, left = timeout_ms;

	if (portid < 0 || !umad || !length || *length < MAD_SIZE)
		return fail(-EINVAL);
	if (timeout_ms == 0) {
		id = receive(portid, umad, length);
		return id == -EAGAIN ? fail(-EWOULDBLOCK) : id;
	}
	if (timeout_ms > 0)
		deadline = clock_ns() + timeout_ms * INT64_C(1000000);
	/* again and again: another thread may be quicker to take what poll announced */
	do {
		err = wait_readable(portid, left, &cause);
		if (err)
			return err == -EIO ? fail_io(cause) : fail(err);
		id = receive(portid, umad, length);
		if (id != -EAGAIN)
			return id;
		if (timeout_ms > 0)
			left = remaining_ms(deadline);
	} while (left);
	return fail(-ETIMEDOUT);
}
