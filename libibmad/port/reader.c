/* SPDX-License-Identifier: BSD-2-Clause */

#include "port/reader.h"

#include "base/export.h"
#include "mad/layout.h"
#include "mad/probe.h"

#include <infiniband/umad_ext.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/eventfd.h>

/* A leader that cannot be woken returns from poll(2) after this time. */
#define LOOK_UP_MS   100
/* A leader reads this number of messages at most before its own request is looked at. */
#define READ_AT_ONCE 32
/* If there is no memory for a message, it is read again after this time. */
#define BLOCKED_US   10000
/* The LMC of the local port is read again after this time, if it matters. */
#define LMC_US       1000000
/* The kernel queues this number of messages for a handle at most. */
#define QUEUED_MAX   200001

/* --- tracing -------------------------------------------------------------------- */

/* Tells those who trace of windows whose sizes have changed. */
static INLINE void trace_windows(struct ibmad_port *port)
{
	if (probe_is_window_traced())
		port_trace_windows(port);
}

RARE void port_trace_windows(struct ibmad_port *port)
{
	unsigned before, size;

	for (unsigned i = 0; i < FLOW_WINDOWS; i++) {
		before = port->traced_sizes[i];
		size = port->requests.flow.windows[i].size;
		port->traced_sizes[i] = size;
		if (size != before)
			probe_window_changed(port->handle.fd, i, before, size);
	}
}

/* --- messages ------------------------------------------------------------------- */

/* A message that is for no request: the agent says whether it is a server's. */
static RARE void take_unclaimed(struct ibmad_port *port, const uint8_t *umad, int length)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	struct mad_server *server = server_find(&port->servers, header->agent_id);

	if (server && server_receive(server, umad, length)) {
		if (server->listener)
			port_tell_engine(port, server->listener, false);
		return;
	}
	if (inbox_add(&port->inbox, umad, length))
		waiters_wake_receiver(&port->waiters);
	else
		/* the report of a timeout is not counted: it is no MAD from the wire */
		port->dropped += !header->status;
}

/*
 * A response has the ID of a request, and is not the response to it. Releases the lock for the
 * message, whose hook may call the library.
 */
static RARE void note_mismatch_unlocking(struct ibmad_port *port, const uint8_t *umad,
					 const uint8_t *mad)
{
	port->mismatched++;
	probe_response_mismatched(umad, mad);
	port_unlock(port);
	report_mismatch(be16toh(((const struct ib_user_mad *)(const void *)umad)->addr.lid),
			mad);
	port_lock(port);
}

/* Whether a message with the ID of a request is its response, or the report of its timeout. */
static bool is_expected(const struct ib_user_mad *header, const uint8_t *mad, int length)
{
	return header->status ? !is_response(mad) : length >= 36 && is_response(mad);
}

/*
 * The LMC of the local port; an SM usually gives the same LMC to all ports. If it cannot be
 * read, the largest one. No lock is held.
 */
static unsigned read_lmc(const struct ibmad_port *port)
{
	umad_port_t local;
	unsigned lmc;

	if (umad_get_port(port->handle.ca_name, port->handle.portnum, &local))
		return LMC_MAX;
	lmc = local.lmc < LMC_MAX ? local.lmc : LMC_MAX;
	umad_release_port(&local);
	return lmc;
}

/*
 * The transmission that a message is a response to, or whose timeout it reports; NULL: none.
 * Releases the lock to read the LMC, which matters only if a response is from another LID.
 */
static INLINE struct transmission *find_transmission_unlocking(struct ibmad_port *port,
							       const uint8_t *umad, int length)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	const uint8_t *mad = umad + port->handle.header_size;
	struct transmission *transmission;
	enum response_match match;
	unsigned lmc;

	for (;;) {
		if (length < 24)
			return NULL;
		transmission = tids_find(&port->requests.tids, get32(mad, TID_OFFS), mad[1]);
		if (!transmission || !is_expected(header, mad, length))
			return NULL;
		if (header->status)
			return transmission;
		match = response_match(request_of(transmission), umad, length, port->lmc);
		if (match == RESPONSE_MATCHES)
			return transmission;
		if (match == RESPONSE_OF_ANOTHER || clock_us() < port->lmc_until) {
			note_mismatch_unlocking(port, umad, mad);
			return NULL;
		}
		port_unlock(port);
		lmc = read_lmc(port);
		port_lock(port);
		port->lmc = lmc;
		port->lmc_until = clock_us() + LMC_US;
	}
}

/*
 * Handles a message that was read before "now": length bytes of MAD in umad. "allocated": the
 * port may keep umad. Returns whether the port keeps it.
 */
static INLINE bool receive_unlocking(struct ibmad_port *port, uint8_t *umad, int length,
				     bool allocated, int64_t now)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	struct transmission *transmission = find_transmission_unlocking(port, umad, length);
	struct port_request *request;
	struct request_event event;

	if (!transmission) {
		take_unclaimed(port, umad, length);
		return false;
	}
	request = port_request_of(request_of(transmission));
	event.kind = header->status ? EVENT_REPORT : EVENT_RESPONSE;
	event.now = now;
	event.transmission = transmission;
	event.umad = umad;
	event.length = length;
	event.allocated = allocated;
	if (!header->status)
		queue_remove(&port->queue, request);
	port_carry_out(port, request,
		       request_handle(&port->requests, &request->request, &event));
	trace_windows(port);
	return allocated && !event.allocated;
}

/* Only the first MAD of a message could be read: its request completes with this errno. */
static void receive_failed_unlocking(struct ibmad_port *port, const uint8_t *umad, int error)
{
	struct transmission *transmission =
		find_transmission_unlocking(port, umad, IB_MAD_SIZE);

	if (transmission && !((const struct ib_user_mad *)(const void *)umad)->status)
		port_handle(port, port_request_of(request_of(transmission)), EVENT_CANCEL,
			    error, clock_us());
	else
		port->dropped++;
}

/* --- reading -------------------------------------------------------------------- */

/*
 * Reads a message of more than one MAD, whose first MAD is in the buffer. If the message is not
 * queued any more, another process that shares the handle has read it. Takes the lock.
 */
static RARE void read_long(struct ibmad_port *port, int length)
{
	enum handle_result result;
	uint8_t *umad = NULL;
	int error = 0;

	if ((size_t)length > port->options.max_reply)
		error = EMSGSIZE;
	else if (!(umad = malloc(umad_size() + (size_t)length)))
		error = ENOMEM;
	result = umad ? handle_receive(&port->handle, umad, &length)
		      : handle_drain(&port->handle, length);
	port_lock(port);

	/* while a message blocks the queue, its request completes once */
	if (!umad && !port->blocked_until)
		receive_failed_unlocking(port, port->buffer, error);
	port->blocked_until = !umad && result == HANDLE_TOO_LONG ? clock_us() + BLOCKED_US : 0;
	if (result == HANDLE_GONE)
		port_fail(port, ENODEV);
	if (!umad || result != HANDLE_MESSAGE ||
	    !receive_unlocking(port, umad, length, length > IB_MAD_SIZE, clock_us()))
		free(umad);
}

/* All messages that came before a time were handled. */
static void note_empty(struct ibmad_port *port, int64_t time)
{
	port->emptied = time;
	port->read_since = 0;
}

/*
 * Notes the time even if the queue is never empty: after "reading_since", the kernel's queue
 * had QUEUED_MAX messages at most that came before.
 */
static void count_message(struct ibmad_port *port, int64_t now)
{
	if (!port->read_since)
		port->reading_since = now;
	if (++port->read_since > QUEUED_MAX)
		note_empty(port, port->reading_since);
}

/* Reads a message and handles it. Takes the lock. *time becomes the time after reading. */
static INLINE enum handle_result read_message(struct ibmad_port *port, int64_t *time)
{
	enum handle_result result;

	port->length = IB_MAD_SIZE;
	result = handle_receive(&port->handle, port->buffer, &port->length);
	if (result == HANDLE_TOO_LONG) {
		read_long(port, port->length);
		*time = clock_us();
		count_message(port, *time);
		return result;
	}
	port_lock(port);
	port->blocked_until = 0;
	if (result == HANDLE_MESSAGE) {
		*time = clock_us();
		count_message(port, *time);
		receive_unlocking(port, port->buffer, port->length, false, *time);
	} else if (result == HANDLE_GONE) {
		port_fail(port, ENODEV);
	}
	return result;
}

/*
 * Whether the thread stops reading, because its waiter is woken. A patient waiter reads until
 * no response is expected: the responses to other requests are often queued already. NULL: no
 * waiter.
 */
static bool has_enough(const struct ibmad_port *port, const struct waiter *waiter)
{
	return waiter && waiter->woken && !(waiter->patient && port->requests.tids.count);
}

/*
 * Reads until nothing is queued, "most" messages are read, or the waiter has enough. This
 * thread has set "reading". Takes the lock. "now" is the present time; for a waiter, it is a
 * time before poll(2), which may have lasted long. Returns the number of messages.
 */
static unsigned read_messages(struct ibmad_port *port, unsigned most,
			      const struct waiter *waiter, int64_t now)
{
	enum handle_result result;
	unsigned count = 0;
	int64_t time = now;

	for (;;) {
		result = read_message(port, &time);
		if (result == HANDLE_NONE)
			note_empty(port, now);
		if (result == HANDLE_NONE || result == HANDLE_GONE)
			return count;
		if (waiter && !count)
			now = time;
		count++;
		if (has_enough(port, waiter) || count == most || port->gone ||
		    port->blocked_until > now)
			return count;
		port_unlock(port);
	}
}

unsigned port_read_unlocking(struct ibmad_port *port, unsigned most, int64_t now)
{
	unsigned count = 0;

	if (atomic_exchange(&port->waiters.reading, true))
		return 0;
	if (!port->gone && port->blocked_until <= now) {
		port_unlock(port);
		count = read_messages(port, most, NULL, now);
	}
	port->waiters.reading = false;
	waiters_pass(&port->waiters);
	return count;
}

/* --- waiting -------------------------------------------------------------------- */

static NOINLINE void follow_unlocking(struct ibmad_port *port, struct waiter *waiter,
				      int64_t until)
{
	clock_cond_init(&waiter->changed);
	waiter->following = true;
	clock_cond_wait(&waiter->changed, &port->lock, until);
	waiter->following = false;
	pthread_cond_destroy(&waiter->changed);
}

/* Handles the result of a poll of "ms", begun at "now". Takes the lock. */
static INLINE void handle_poll(struct ibmad_port *port, struct waiter *waiter, int ret, int ms,
			       int64_t now)
{
	struct waiters *waiters = &port->waiters;
	int error = ret < 0 ? errno : 0;

	if (ret == 0 && (waiters->wake_fd < 0 || !atomic_exchange(&waiters->reading, true))) {
		read_messages(port, READ_AT_ONCE, waiter, now);
		waiters->reading = false;
		return;
	}
	port_lock(port);
	if (ret == -ETIMEDOUT)
		note_empty(port, now + ms * INT64_C(1000));
	else if (ret == -EIO && error == EINTR)
		waiter->interrupted = true;
	else if (ret < 0)
		port_fail(port, ENODEV);
}

/* The eventfd is not readable any more. */
static RARE void drain_wake_fd(struct waiters *waiters)
{
	eventfd_t count;

	waiters->signalled = false;
	eventfd_read(waiters->wake_fd, &count);
}

static void lead_unlocking(struct ibmad_port *port, struct waiter *waiter, int64_t until,
			   int64_t now)
{
	struct waiters *waiters = &port->waiters;
	bool alone;
	int ms, ret;

	/* no descriptor was free before */
	if (waiters->wake_fd < 0 && port->has_descriptor)
		waiters_open(waiters);
	/* a simulator's handle is polled or read by one thread at a time */
	alone = waiters->wake_fd < 0;
	ms = ms_until(until, now, alone ? LOOK_UP_MS : INT_MAX);
	waiters->leader = waiter;
	if (alone)
		waiters->reading = true;
	waiters->polling = true;
	port_unlock(port);
	ret = alone ? umad_poll(port->handle.fd, ms)
		    : umad_poll_with(port->handle.fd, waiters->wake_fd, ms);
	waiters->polling = false;
	handle_poll(port, waiter, ret, ms, now);
	if (alone)
		waiters->reading = false;
	waiters->leader = NULL;
	if (waiters->signalled || ret == 1)
		drain_wake_fd(waiters);
	/* last: waiters_alert() sets "alerted" before it writes to wake_fd */
	if (waiters->alerted && atomic_exchange(&waiters->alerted, false))
		port_tell_all_engines(port);
}

void port_wait_unlocking(struct ibmad_port *port, struct waiter *waiter, int64_t until,
			 int64_t now)
{
	struct waiters *waiters = &port->waiters;
	int64_t blocked = port->blocked_until;

	waiter->woken = false;
	waiter->until = until;
	if (port->gone)
		/* for a request that another thread is writing */
		follow_unlocking(port, waiter, until);
	else if (!waiters->leader && !waiters->reading && blocked <= now)
		lead_unlocking(port, waiter, until, now);
	else if (until <= now && waiters->polling && waiters->wake_fd >= 0 && !waiters->reading)
		/* the leader may not have run since a message came */
		port_read_unlocking(port, READ_AT_ONCE, now);
	else if (waiters->leader || waiters->reading)
		follow_unlocking(port, waiter, until);
	else
		follow_unlocking(port, waiter, until < blocked ? until : blocked);
}
