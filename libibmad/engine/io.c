/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The only place that sends, reads, polls and runs timers. A single-threaded program writes,
 * polls and reads once per request.
 *
 * The leader polls the handle and an eventfd through which other threads wake it. Event loops
 * poll the handle, too; whoever comes first reads for all. A simulator's handle is polled
 * alone, by one thread at a time: nobody else reads meanwhile, and poll(2) returns every 100
 * ms.
 */

#include "base/report.h"
#include "engine/async.h"
#include "mad/debug.h"
#include "mad/probe.h"

#include <infiniband/umad_ext.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

/* Other threads' requests that a leader sends before checking on its own. */
#define SENT_AT_ONCE   16
/* queue_next() examines this many requests per request sent. */
#define EXAMINED       16
/* Poll timeout of a leader that cannot be woken. */
#define RETURN_MS      100
/* After OOM for a message, it is read again after this time. */
#define BLOCKED_US     10000
/* How long the local port's LMC is cached. */
#define LMC_US         1000000
/* Poll interval of an event loop whose handle is not watched. */
#define LOOP_RETURN_US 5000
/*
 * How long the kernel waits for segments' acknowledgement, or the request's timeout if shorter.
 * It then retransmits them, up to the message's retries.
 */
#define ACK_MS         2000
/* Retries of a response, which has no timeout. */
#define ACK_RETRIES    4
/* The kernel queues at most this many messages per handle. */
#define QUEUED_MAX     200001
/* Dropped messages are read into memory of this size, mapped repeatedly. */
#define DRAIN_SIZE     (1 << 20)

const char *const public_call_names[] = {
	[CALL_RPC] = "mad_rpc",
	[CALL_RPC_RMPP] = "mad_rpc_rmpp",
	[CALL_RPC_MESSAGE] = "mad_rpc_message",
	[CALL_ASYNC_SUBMIT] = "mad_async_submit",
	[CALL_SA_SUBMIT] = "mad_sa_submit",
};

/* --- the handle: writing -------------------------------------------------------- */

/* The errno of a failed umad_send(). EIO may mean that the device is gone: poll(2) tells. */
static int send_error(const struct handle *handle, int ret)
{
	int error = ret == -EIO ? errno : -ret;

	if (error == EIO && umad_poll(handle->fd, 0) == -EIO && errno != EINTR)
		return ENODEV;
	return error;
}

/* Writes a umad buffer's MAD for the agent in its header. Returns 0 or an errno. */
static int handle_write(const struct handle *handle, uint8_t *umad, int length, int kernel_ms,
			int retries)
{
	int agent = (int)((struct ib_user_mad *)(void *)umad)->agent_id, ret;

	report_packet("send\n", umad + handle->header_size, length);
	do
		ret = umad_send(handle->fd, agent, umad, length, kernel_ms, retries);
	while (ret == -EIO && errno == EINTR);
	return ret ? send_error(handle, ret) : 0;
}

/* Timeout 0: the kernel waits for no response. */
int handle_respond(const struct handle *handle, uint8_t *umad, int length, bool by_rmpp)
{
	return handle_write(handle, umad, length, 0, by_rmpp ? ACK_RETRIES : 0);
}

/*
 * The library retransmits single-MAD requests. Longer ones are up to the kernel, until the
 * timeout: only it knows which segments are lost.
 */
static int kernel_retries(const struct handle *handle, const uint8_t *mad, int kernel_ms)
{
	bool by_rmpp = handle->rmpp[mad[1]] && mad[RMPP_VERSION_OFFS] == RMPP_VERSION &&
		       mad[RMPP_FLAGS_OFFS] & IB_RMPP_FLAG_ACTIVE;

	return by_rmpp ? (kernel_ms - 1) / ACK_MS : 0;
}

/* --- the handle: reading -------------------------------------------------------- */

enum handle_result {
	HANDLE_MESSAGE,  /* a message is in the buffer */
	HANDLE_NONE,     /* nothing is queued */
	HANDLE_TOO_LONG, /* the first 256 bytes are in the buffer; the message stays queued */
	HANDLE_GONE,     /* the device is gone */
};

/* Non-blocking umad_recv() that retries on EINTR. */
static int receive_again(const struct handle *handle, void *umad, int *length)
{
	int ret;

	do
		ret = umad_recv(handle->fd, umad, length, 0);
	while (ret == -EIO && errno == EINTR);
	return ret;
}

/* Non-blocking read. *length is the buffer's size for the MAD, on return the MAD's length. */
static enum handle_result handle_receive(const struct handle *handle, uint8_t *umad,
					 int *length)
{
	int ret = receive_again(handle, umad, length);

	if (ret >= 0) {
		report_packet("receive\n", umad + handle->header_size, *length);
		return HANDLE_MESSAGE;
	}
	if (ret == -EWOULDBLOCK)
		return HANDLE_NONE;
	return ret == -ENOSPC ? HANDLE_TOO_LONG : HANDLE_GONE;
}

/*
 * An address range of "size" bytes. With a memfd, it maps the same DRAIN_SIZE bytes repeatedly.
 */
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

/*
 * Reads and drops a message of this length. On OOM returns HANDLE_TOO_LONG, and the message
 * stays queued.
 */
static enum handle_result handle_drain(const struct handle *handle, int length)
{
	size_t size = (umad_size() + (size_t)length + DRAIN_SIZE - 1) / DRAIN_SIZE * DRAIN_SIZE;
	void *range = map_drain(size);
	int ret;

	if (range == MAP_FAILED)
		return HANDLE_TOO_LONG;
	ret = receive_again(handle, range, &length);
	munmap(range, size);
	if (ret == -EWOULDBLOCK)
		return HANDLE_NONE;
	return ret < 0 && ret != -ENOSPC ? HANDLE_GONE : HANDLE_MESSAGE;
}

/* --- waking and telling --------------------------------------------------------- */

static void wake_leader(struct ibmad_port *port)
{
	if (port->lead != LEAD_POLLING)
		return;
	port->lead = LEAD_WOKEN;
	eventfd_write(port->wake_fd, 1);
}

void waiter_wake(struct ibmad_port *port, struct waiter *waiter)
{
	if (waiter->state == WAITER_SLEEPING)
		pthread_cond_signal(&waiter->awake);
	else if (waiter == port->leader)
		wake_leader(port);
	waiter->state = WAITER_WOKEN;
}

static struct waiter *waiter_at(struct list *entry)
{
	return list_entry(entry, struct waiter, all);
}

void port_pass_lead(struct ibmad_port *port)
{
	if (port->leader || port->reading)
		return;
	list_for_each (entry, &port->waiters)
		if (waiter_at(entry)->state == WAITER_SLEEPING) {
			waiter_wake(port, waiter_at(entry));
			return;
		}
}

void port_wake_receiver(struct ibmad_port *port)
{
	list_for_each (entry, &port->waiters) {
		struct waiter *waiter = waiter_at(entry);

		if (waiter->kind == WAIT_FOR_MESSAGE && waiter->state != WAITER_WOKEN) {
			waiter_wake(port, waiter);
			return;
		}
	}
}

/* write(2) because eventfd_write() is not documented as async-signal-safe. */
void port_alert(struct ibmad_port *port)
{
	const uint64_t one = 1;
	int saved_errno = errno, fd = port->wake_fd;

	/* in a fork()ed child nobody waits before the first call */
	if (port->forks != port_forks)
		return;
	port->alerted = true;
	/* on failure, the descriptor is readable already */
	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		errno = saved_errno;
}

static void wake_all_engines(struct ibmad_port *port)
{
	list_for_each (entry, &port->engines)
		engine_wake(list_entry(entry, struct mad_async, all));
}

int64_t port_next(const struct ibmad_port *port)
{
	int64_t next = timers_next(&port->timers), opens = queue_opens(&port->queue);

	return opens < next ? opens : next;
}

/* Updates what an engine's event loop polls. Work another thread is doing is not announced. */
static void tell_loop(struct ibmad_port *port, struct mad_async *engine, int64_t next)
{
	bool work = false;

	if (engine->thread == ENGINE_FREE) {
		int64_t timer_at = engine_timer_at(engine);

		work = engine_has_work(engine);
		/* all timers that are set are due */
		if (port->error)
			work |= engine_is_idle(engine) || timer_at != NEVER;
		if (timer_at < next)
			next = timer_at;
	}
	if (port->blocked_until) {
		if (port->blocked_until < next)
			next = port->blocked_until;
	} else if (!engine->alarm.watching &&
		   (engine_has_requests(engine) || engine->servers) && !port->error) {
		/* a simulator's handle, or one epoll could not watch */
		int64_t look = clock_us() + LOOP_RETURN_US;

		if (look < next)
			next = look;
	}
	alarm_set(&engine->alarm, work, next);
}

void port_tell(struct ibmad_port *port)
{
	int64_t next = port_next(port);

	if (next < port->polls_until)
		wake_leader(port);
	list_for_each (entry, &port->loops)
		tell_loop(port, list_entry(entry, struct mad_async, loop), next);
}

void port_watch(struct ibmad_port *port, bool watch)
{
	if (!port->has_descriptor)
		return;
	list_for_each (entry, &port->loops)
		alarm_watch(&list_entry(entry, struct mad_async, loop)->alarm, port->handle.fd,
			    watch);
}

/* --- events of requests --------------------------------------------------------- */

static void count_rtt(struct mad_async *engine, uint32_t rtt_us)
{
	struct mad_async_stats *stats = &engine->stats;

	if (!engine->rtt_count || rtt_us < stats->rtt_min_us)
		stats->rtt_min_us = rtt_us;
	if (rtt_us > stats->rtt_max_us)
		stats->rtt_max_us = rtt_us;
	engine->rtt_sum_us += rtt_us;
	engine->rtt_count++;
}

/* The request is DONE: wakes its thread, or queues the engine's callback. */
static void complete_request(struct ibmad_port *port, struct request *request)
{
	struct mad_async *engine = engine_of(port, request);

	timer_stop(&port->timers, &request->timer);
	queue_remove(&port->queue, request);
	queue_leave(&port->queue, request);
	if (!engine) {
		waiter_wake(port,
			    &list_entry(request, struct blocking_request, request)->waiter);
		return;
	}
	if (request_has_response(request))
		count_rtt(engine, request->rtt_us);
	else if (request->error == ETIMEDOUT)
		engine->stats.timed_out++;
	if (request->status & IB_MAD_STS_BUSY)
		engine->stats.busy++;
	list_add_last(&engine->completed, &request->queue);
	engine_wake(engine);
}

/* Acts on a request's new phase. */
static void settle_request(struct ibmad_port *port, struct request *request)
{
	struct mad_async *engine = engine_of(port, request);

	switch (request->phase) {
	case REQUEST_DONE:
		complete_request(port, request);
		return;
	case REQUEST_QUEUED:
		queue_again(&port->queue, request);
		break;
	case REQUEST_PAUSED:
		if (engine)
			engine->stats.busy++;
		queue_pause(&port->queue, request);
		break;
	default:
		break;
	}
	if (request->timer.at == NEVER)
		timer_stop(&port->timers, &request->timer);
	else
		timer_start(&port->timers, &request->timer);
	queue_update(&port->queue, request);
}

static void handle_event(struct ibmad_port *port, struct request *request,
			 struct request_event *event)
{
	if (request_handle(&port->requests, request, event))
		settle_request(port, request);
}

void port_cancel(struct ibmad_port *port, struct request *request, int error)
{
	struct request_event event = {.kind = EVENT_CANCEL, .error = error, .now = clock_us()};

	handle_event(port, request, &event);
}

/* Timers may be judged up to this time: all earlier messages were handled. */
static int64_t judged_until(const struct ibmad_port *port)
{
	const struct flow_window *windows = port->requests.flow.windows;
	int64_t time = port->read_until;

	/*
	 * On OOM nothing can be read. While a simulator's handle is polled, nobody else can
	 * read, but the leader reads as soon as something arrives.
	 */
	if (port->blocked_until || port->lead == LEAD_POLLING_ALONE)
		return clock_us();
	/* messages that arrived before a request was sent are read before its response */
	for (unsigned i = 0; i < FLOW_WINDOWS; i++)
		if (windows[i].newest > time)
			time = windows[i].newest;
	return time;
}

static void expire_timers(struct ibmad_port *port)
{
	struct request_event event = {.kind = EVENT_TIMER};

	if (!port->timers.first)
		return;
	event.now = judged_until(port);
	for (unsigned i = 0; i < BATCH && timers_next(&port->timers) <= event.now; i++)
		handle_event(port, list_entry(port->timers.first, struct request, timer),
			     &event);
}

/* --- sending -------------------------------------------------------------------- */

/*
 * Finds the SA and the local GID. Returns 0 or an errno. Reads sysfs, so don't hold the lock.
 */
static int find_path_source(const struct ibmad_port *port, struct path_source *source)
{
	umad_port_t local;

	source->agent = handle_agent(&port->handle, IB_SA_CLASS);
	source->sa_key = port->options.sa_key;
	if (source->agent < 0)
		return EHOSTUNREACH;
	if (umad_get_port(port->handle.ca_name, port->handle.portnum, &local))
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? errno
									     : EHOSTUNREACH;
	ib_portid_set(&source->sa, (int)local.sm_lid, 1, (int)IB_DEFAULT_QP1_QKEY);
	source->sa.sl = (uint8_t)local.sm_sl;
	/* both in network byte order */
	memcpy(source->gid, &local.gid_prefix, 8);
	memcpy(source->gid + 8, &local.port_guid, 8);
	umad_release_port(&local);
	return source->sa.lid ? 0 : EHOSTUNREACH;
}

static void ask_path_unlocking(struct ibmad_port *port, struct request *request,
			       struct request_event *event)
{
	struct path_source source = {0};

	port_unlock(port);
	event->error = find_path_source(port, &source);
	if (!event->error)
		redirect_ask_path(request->redirect, request->packet, &source);
	port_lock(port);
	/* port_cancel_all() does not find a request without a TID */
	if (port->error)
		event->error = port->error;
	event->kind = EVENT_ASKED;
	event->now = clock_us();
}

static void write_unlocking(struct ibmad_port *port, struct request *request,
			    struct request_event *event)
{
	struct mad_async *engine = engine_of(port, request);
	bool renumbered = request->transmissions.renumbered;
	bool first = request->transmissions.count == 1;

	/* a renumbered packet was counted before the kernel refused its former TID */
	if (!renumbered)
		queue_sent(&port->queue, request, event->now);
	if (engine && !renumbered) {
		engine->stats.sent++;
		if (first)
			engine->queued--;
		else
			engine->stats.retried++;
	}
	port_unlock(port);
	if (event->attempts_left)
		report_retry(event->attempts_left, request_mad(request));
	if (first && !renumbered)
		debug_sent(public_call_names[request->call], request->umad,
			   request_mad(request));
	event->error = handle_write(
		&port->handle, request->umad, request->length, event->kernel_ms,
		kernel_retries(&port->handle, request_mad(request), event->kernel_ms));
	port_lock(port);
	event->kind = EVENT_WRITTEN;
	/* the kernel may have resolved a GID: the write can take about a second */
	if (event->error || request->pending.kind)
		event->now = clock_us();
}

/* The request must not be queued. */
static void transmit_unlocking(struct ibmad_port *port, struct request *request)
{
	struct request_event event = {.kind = EVENT_SEND};

	if (port->error) {
		port_cancel(port, request, port->error);
		return;
	}
	event.now = clock_us();
	timer_stop(&port->timers, &request->timer);
	tids_reserve(&port->requests.tids, port->requests.tids.count + 1);
	request_handle(&port->requests, request, &event);
	while (request->phase == REQUEST_WRITING || request->phase == REQUEST_ASKING_PATH) {
		if (request->phase == REQUEST_WRITING)
			write_unlocking(port, request, &event);
		else
			ask_path_unlocking(port, request, &event);
		request_handle(&port->requests, request, &event);
	}
	settle_request(port, request);
}

void port_submit_unlocking(struct ibmad_port *port, struct request *request, bool urgent)
{
	probe_request_submitted(request, request->umad, request_mad(request),
				request->timeout_ms, request->attempts_left);
	if (urgent || port->error)
		queue_bypass(&port->queue, request);
	else if (!queue_submit(&port->queue, request))
		return;
	transmit_unlocking(port, request);
}

void port_send_unlocking(struct ibmad_port *port, unsigned most)
{
	struct queue *queue = &port->queue;
	unsigned turn = queue->turn, window, examine;
	struct request *request;

	for (unsigned i = 0; i < FLOW_WINDOWS && most; i++) {
		window = (turn + i) % FLOW_WINDOWS;
		examine = most < UINT_MAX / EXAMINED ? EXAMINED * most : UINT_MAX;
		while (most && (request = queue_next(queue, window, &examine))) {
			transmit_unlocking(port, request);
			most--;
		}
		/* start with the other window next time */
		if (!most)
			queue->turn = (window + 1) % FLOW_WINDOWS;
	}
}

/* --- messages ------------------------------------------------------------------- */

void port_trace_windows(struct ibmad_port *port)
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

/*
 * A response has a request's TID but does not match it. Releases the lock for the message,
 * whose hook may call the library.
 */
static void note_mismatch_unlocking(struct ibmad_port *port, const uint8_t *umad,
				    const uint8_t *mad)
{
	port->mismatched++;
	probe_response_mismatched(umad, mad);
	port_unlock(port);
	report_mismatch(be16toh(((const struct ib_user_mad *)(const void *)umad)->addr.lid),
			mad);
	port_lock(port);
}

/*
 * The local port's LMC, usually the same as other ports'; the maximum if it cannot be read.
 * Must be called without the lock.
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
 * Finds the transmission a message responds to, or whose timeout it reports; NULL: none.
 * Releases the lock to read the LMC, only needed if the response comes from another LID.
 */
static struct transmission *find_transmission_unlocking(struct ibmad_port *port,
							const uint8_t *umad, int length)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	const uint8_t *mad = umad + port->handle.header_size;
	struct transmission *transmission;
	enum response_match match;
	unsigned lmc;

	while (length >= 24) {
		transmission = tids_find(&port->requests.tids, get32(mad, TID_OFFS), mad[1]);
		if (!transmission)
			return NULL;
		if (header->status) /* a timeout report: the kernel returns the request */
			return is_response(mad) ? NULL : transmission;
		if (length < 36 || !is_response(mad))
			return NULL;
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
	return NULL;
}

/* Handles a message that belongs to no request. */
static void take_unclaimed(struct ibmad_port *port, const uint8_t *umad, int length)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;

	if (servers_receive(port, umad, length))
		return;
	if (inbox_add(&port->inbox, umad, length))
		port_wake_receiver(port);
	else
		/* a timeout report is not a MAD from the wire: don't count it */
		port->dropped += !header->status;
}

/*
 * Handles a message read before "now", with length bytes of MAD. "allocated": the port may keep
 * umad. Returns whether it did.
 */
static bool receive_unlocking(struct ibmad_port *port, uint8_t *umad, int length,
			      bool allocated, int64_t now)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	struct transmission *transmission = find_transmission_unlocking(port, umad, length);
	struct request_event event = {.kind = header->status ? EVENT_REPORT : EVENT_RESPONSE,
				      .now = now,
				      .transmission = transmission,
				      .umad = umad,
				      .length = length,
				      .allocated = allocated};

	if (!transmission) {
		take_unclaimed(port, umad, length);
		return false;
	}
	if (event.kind == EVENT_RESPONSE)
		queue_remove(&port->queue, request_of(transmission));
	handle_event(port, request_of(transmission), &event);
	if (probe_is_window_traced())
		port_trace_windows(port);
	return allocated && !event.allocated;
}

/* Only the message's first MAD could be read: its request fails with this errno. */
static void receive_failed_unlocking(struct ibmad_port *port, const uint8_t *umad, int error)
{
	struct transmission *transmission =
		find_transmission_unlocking(port, umad, IB_MAD_SIZE);

	if (transmission && !((const struct ib_user_mad *)(const void *)umad)->status)
		port_cancel(port, request_of(transmission), error);
	else
		port->dropped++;
}

/* --- reading -------------------------------------------------------------------- */

/* Messages can't be read before this time; 0: they can. */
static void set_blocked(struct ibmad_port *port, int64_t until)
{
	/* otherwise event loops would spin */
	if (!until != !port->blocked_until)
		port_watch(port, !until);
	port->blocked_until = until;
}

/*
 * Reads a multi-MAD message whose first MAD is in the buffer. If it is no longer queued,
 * another process sharing the handle has read it.
 */
static enum handle_result read_long_unlocking(struct ibmad_port *port, int length)
{
	enum handle_result result;
	uint8_t *umad = NULL;
	int error = 0;

	port_unlock(port);
	if ((size_t)length > port->options.max_reply)
		error = EMSGSIZE;
	else if (!(umad = malloc(umad_size() + (size_t)length)))
		error = ENOMEM;
	result = umad ? handle_receive(&port->handle, umad, &length)
		      : handle_drain(&port->handle, length);
	port_lock(port);
	/* complete the request only once while the message blocks the queue */
	if (!umad && !port->blocked_until)
		receive_failed_unlocking(port, port->buffer, error);
	set_blocked(port, !umad && result == HANDLE_TOO_LONG ? clock_us() + BLOCKED_US : 0);
	if (!umad || result != HANDLE_MESSAGE ||
	    !receive_unlocking(port, umad, length, length > IB_MAD_SIZE, clock_us()))
		free(umad);
	return result == HANDLE_NONE ? HANDLE_TOO_LONG : result;
}

/* All messages that arrived before this time were handled. */
static void note_read_until(struct ibmad_port *port, int64_t time)
{
	port->read_until = time;
	port->read_since = 0;
}

/*
 * Reads until nothing is queued, BATCH messages are read, or the waiter (may be NULL) is done.
 * "time" is in the past.
 */
static void read_messages_unlocking(struct ibmad_port *port, const struct waiter *waiter,
				    int64_t time)
{
	enum handle_result result = HANDLE_MESSAGE;
	int length;

	port->reading = true;
	for (unsigned i = 0; i < BATCH; i++) {
		length = IB_MAD_SIZE;
		port_unlock(port);
		result = handle_receive(&port->handle, port->buffer, &length);
		port_lock(port);
		if (result == HANDLE_TOO_LONG) {
			result = read_long_unlocking(port, length);
		} else {
			if (port->blocked_until)
				set_blocked(port, 0);
			if (result == HANDLE_NONE)
				note_read_until(port, time);
		}
		if (result == HANDLE_NONE || result == HANDLE_GONE)
			break;
		time = clock_us();
		/* in a storm the queue never empties, but we know what was read */
		if (!port->read_since++)
			port->reading_since = time;
		if (port->read_since > QUEUED_MAX)
			note_read_until(port, port->reading_since);
		if (result == HANDLE_MESSAGE && length <= IB_MAD_SIZE)
			receive_unlocking(port, port->buffer, length, false, time);
		if (port->error || port->blocked_until)
			break;
		/* keep reading for an engine: more responses are often queued already */
		if (waiter && waiter->state == WAITER_WOKEN &&
		    !(waiter->kind == WAIT_FOR_ENGINE && port->requests.tids.count))
			break;
	}
	port->reading = false;
	if (result == HANDLE_GONE)
		port_fail(port, PORT_GONE, ENODEV);
}

/* After reading: runs timers and sends at most "most" requests. */
static void advance_unlocking(struct ibmad_port *port, unsigned most)
{
	expire_timers(port);
	/* sending may take long: let another thread lead */
	if (queue_is_ready(&port->queue)) {
		port_pass_lead(port);
		port_send_unlocking(port, most);
	}
}

void port_work_unlocking(struct ibmad_port *port)
{
	int64_t now = clock_us();

	if (!port->reading && !port->error && port->blocked_until <= now) {
		read_messages_unlocking(port, NULL, now);
		port_pass_lead(port);
	}
	advance_unlocking(port, BATCH);
}

/* --- waiting -------------------------------------------------------------------- */

void waiter_begin(struct ibmad_port *port, struct waiter *waiter, enum wait_kind kind)
{
	waiter->kind = kind;
	waiter->state = WAITER_RUNNING;
	list_add_first(&port->waiters, &waiter->all);
}

void waiter_end(struct ibmad_port *port, struct waiter *waiter)
{
	list_remove(&waiter->all);
	port_pass_lead(port);
}

/* Sleeps until another thread wakes it. */
static void sleep_unlocking(struct ibmad_port *port, struct waiter *waiter, int64_t until,
			    int64_t now)
{
	int64_t next = port_next(port);

	if (port->blocked_until > now && port->blocked_until < until) {
		until = port->blocked_until;
	} else if (port->lead == LEAD_POLLING && next < port->polls_until) {
		/* the leader does not know this deadline; usually a response comes first */
		if (next <= now)
			wake_leader(port);
		else if (next < until)
			until = next;
	}
	clock_cond_init(&waiter->awake);
	waiter->state = WAITER_SLEEPING;
	clock_cond_wait(&waiter->awake, &port->lock, until);
	waiter->state = WAITER_RUNNING;
	pthread_cond_destroy(&waiter->awake);
}

/* Polls the handle until a time. Returns 0 if messages are queued, else as umad_poll_with(). */
static int poll_unlocking(struct ibmad_port *port, int64_t until, int64_t now)
{
	bool alone = port->wake_fd < 0; /* a simulator's handle, or no descriptor was free */
	int ms = ms_until(until, now, alone ? RETURN_MS : INT_MAX), ret, error;
	eventfd_t count;

	port->lead = alone ? LEAD_POLLING_ALONE : LEAD_POLLING;
	port->polls_until = until;
	port->reading = alone;
	port_unlock(port);
	ret = alone ? umad_poll(port->handle.fd, ms)
		    : umad_poll_with(port->handle.fd, port->wake_fd, ms);
	error = errno;
	port_lock(port);
	if (alone)
		port->reading = false;
	if (port->lead == LEAD_WOKEN || ret == 1)
		eventfd_read(port->wake_fd, &count);
	port->lead = LEAD_WORKING;
	if (ret == -ETIMEDOUT && now + ms * INT64_C(1000) > port->read_until)
		note_read_until(port, now + ms * INT64_C(1000));
	return ret == -EIO && error == EINTR ? -EINTR : ret;
}

/* Returns 0 or -EINTR. */
static int lead_unlocking(struct ibmad_port *port, struct waiter *waiter, int64_t until,
			  int64_t now)
{
	int ret;

	if (port->wake_fd < 0 && port->has_descriptor)
		port_open_wake_fd(port);
	port_tell(port); /* event loops */
	port->leader = waiter;
	ret = poll_unlocking(port, until, now);
	if (ret == 0 && !port->reading && !port->error)
		read_messages_unlocking(port, waiter, now);
	else if (ret < 0 && ret != -ETIMEDOUT && ret != -EINTR)
		port_fail(port, PORT_GONE, ENODEV);
	port->leader = NULL;
	/* last: port_alert() sets "alerted" before writing to wake_fd */
	if (atomic_exchange(&port->alerted, false))
		wake_all_engines(port);
	advance_unlocking(port, SENT_AT_ONCE);
	return ret == -EINTR ? ret : 0;
}

int port_wait_unlocking(struct ibmad_port *port, struct waiter *waiter, int64_t until)
{
	int64_t now = clock_us(), next = port_next(port);
	/* after an error, threads only wait for requests that others are writing */
	bool can_read = !port->error && !port->reading && port->blocked_until <= now;

	waiter->state = WAITER_RUNNING;
	if (can_read && (until <= now || (!port->leader && next <= now)))
		/* the leader may not have run since a message arrived */
		port_work_unlocking(port);
	else if (can_read && !port->leader)
		return lead_unlocking(port, waiter, next < until ? next : until, now);
	else
		sleep_unlocking(port, waiter, until, now);
	return 0;
}

/* --- the end -------------------------------------------------------------------- */

/* Cancels requests that await a response. One being written completes later. */
static void cancel_sent(struct ibmad_port *port, int error)
{
	const struct tids *tids = &port->requests.tids;
	struct transmission *transmission;
	struct request *request;

	for (unsigned i = 0; tids->count && i < tids->bucket_count; i++) {
		transmission = tids->buckets[i];
		while (transmission) {
			request = request_of(transmission);
			transmission = transmission->next;
			if (request_is_ended(request))
				continue;
			port_cancel(port, request, error);
			/* port_cancel() may have removed any transmission from the bucket */
			transmission = tids->buckets[i];
		}
	}
}

void port_cancel_all(struct ibmad_port *port, int error)
{
	struct list queued, *first;

	queue_drain(&port->queue, &queued);
	while ((first = list_pop(&queued)))
		port_cancel(port, list_entry(first, struct request, queue), error);
	cancel_sent(port, error);
	while (port->timers.first)
		port_cancel(port, list_entry(port->timers.first, struct request, timer), error);
}

void port_fail(struct ibmad_port *port, enum port_state state, int error)
{
	if (port->state < state)
		port->state = state;
	if (!port->error)
		port->error = error;
	port_watch(port, false);
	port_cancel_all(port, port->error);
	servers_end(port, -port->error);
	list_for_each (entry, &port->waiters)
		waiter_wake(port, waiter_at(entry));
	wake_all_engines(port);
}

void request_debug(const struct request *request)
{
	uint32_t own_tid = request->transmissions.live[0].tid;
	const struct debug_result result = {
		.tid = own_tid ? own_tid : get32(request_mad(request), TID_OFFS),
		.error = request->error,
		.status = request->status,
		.transmissions = request->transmissions.count,
		.elapsed_ms = request->elapsed_ms,
	};

	if (ibdebug)
		debug_write_result(public_call_names[request->call], request->umad,
				   request_mad(request), &result);
}
