/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/reader.h"

#include <infiniband/umad_ext.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A leader that cannot be woken looks up so often. */
#define LOOK_UP_MS  100
/* A leader reads so many messages before it looks at the clock: they may be others'. */
#define BATCH       32
/* Timers are judged this late at most, even if there are always messages to read. */
#define TIMERS_LATE INT64_C(100000)
/* Without memory, a message that is too long is tried again after this time. */
#define BLOCKED     INT64_C(10000)

void reader_init(struct reader *reader, struct core *core)
{
	reader->core = core;
	reader->wake_fd = -1;
	list_init(&reader->waiters);
}

void reader_open(struct reader *reader)
{
	if (reader_has_descriptor(reader))
		reader->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void reader_reset(struct reader *reader)
{
	reader_free(reader);
	list_init(&reader->waiters);
	reader->leader = NULL;
	reader->polling = false;
	reader->reading = false;
	reader->signalled = false;
	reader->alerted = false;
	reader_open(reader);
}

void reader_free(struct reader *reader)
{
	int fd = reader->wake_fd;

	/* first: a signal handler may call reader_alert() */
	reader->wake_fd = -1;
	if (fd >= 0)
		close(fd);
}

/* Async-signal-safe, which eventfd_write() is not said to be. */
void reader_alert(struct reader *reader)
{
	const uint64_t one = 1;
	int saved_errno = errno, fd = reader->wake_fd;

	reader->alerted = true;
	/* if it fails, the descriptor is readable already */
	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		errno = saved_errno;
}

/* --- waiters -------------------------------------------------------------------- */

void reader_begin(struct reader *reader, struct waiter *waiter)
{
	waiter->following = waiter->woken = false;
	waiter->interrupted = waiter->patient = false;
	waiter->receiving = waiter->sending = false;
	waiter->until = 0;
	list_add_first(&reader->waiters, &waiter->all);
}

void reader_end(struct reader *reader, struct waiter *waiter)
{
	list_remove(&waiter->all);
	reader_pass(reader);
}

void reader_wake(struct reader *reader, struct waiter *waiter)
{
	waiter->woken = true;
	if (waiter->following) {
		pthread_cond_signal(&waiter->changed);
	} else if (waiter == reader->leader && reader->polling && reader->wake_fd >= 0 &&
		   !reader->signalled) {
		reader->signalled = true;
		eventfd_write(reader->wake_fd, 1);
	}
}

static struct waiter *waiter_of(struct list *entry)
{
	return list_entry(entry, struct waiter, all);
}

void reader_wake_all(struct reader *reader)
{
	list_for_each (entry, &reader->waiters)
		reader_wake(reader, waiter_of(entry));
}

void reader_wake_receiver(struct reader *reader)
{
	list_for_each (entry, &reader->waiters)
		if (waiter_of(entry)->receiving && !waiter_of(entry)->woken) {
			reader_wake(reader, waiter_of(entry));
			return;
		}
}

void reader_wake_sender(struct reader *reader)
{
	list_for_each (entry, &reader->waiters)
		if (waiter_of(entry)->sending) {
			if (!waiter_of(entry)->woken)
				reader_wake(reader, waiter_of(entry));
			return;
		}
}

void reader_wake_for(struct reader *reader, int64_t at)
{
	list_for_each (entry, &reader->waiters) {
		struct waiter *waiter = waiter_of(entry);

		if ((waiter->sending || waiter->patient) && waiter->until > at)
			reader_wake(reader, waiter);
	}
}

void reader_pass(struct reader *reader)
{
	if (reader->leader || reader->reading)
		return;
	list_for_each (entry, &reader->waiters)
		if (waiter_of(entry)->following) {
			reader_wake(reader, waiter_of(entry));
			return;
		}
}

/* --- reading -------------------------------------------------------------------- */

/*
 * A message of more than one MAD, whose beginning is in the buffer. If it is not queued any
 * more, another process that shares the handle has read it.
 */
static void read_long(struct reader *reader, int length)
{
	struct core *core = reader->core;
	enum link_result result;
	uint8_t *umad = NULL;
	int error = 0;

	if ((size_t)length > core->options.max_reply)
		error = EMSGSIZE;
	else if (!(umad = malloc(umad_size() + (size_t)length)))
		error = ENOMEM;
	result =
		error ? link_drain(&core->link, length) : link_read(&core->link, umad, &length);
	core_lock(core);

	/* what blocks the queue has been reported */
	if (error && !reader->blocked_until)
		core_receive_failed(core, reader->buffer, error);
	reader->blocked_until = error && result == LINK_TOO_LONG ? clock_us() + BLOCKED : 0;
	if (result == LINK_GONE)
		core_fail(core, ENODEV);
	if (error || result != LINK_MESSAGE ||
	    !core_receive(core, umad, length, length > IB_MAD_SIZE))
		free(umad);
}

/* Reads a message and handles it; "reading" is this thread's. The lock is held only after. */
static enum link_result read_unlocked(struct reader *reader)
{
	struct core *core = reader->core;
	int length = IB_MAD_SIZE;
	enum link_result result = link_read(&core->link, reader->buffer, &length);

	if (result == LINK_TOO_LONG) {
		read_long(reader, length);
		return result;
	}
	core_lock(core);
	reader->blocked_until = 0;
	if (result == LINK_MESSAGE)
		core_receive(core, reader->buffer, length, false);
	else if (result == LINK_GONE)
		core_fail(core, ENODEV);
	return result;
}

/*
 * Whether the waiter has what it waits for. One that is patient reads the responses to the
 * other requests, too: they are often queued already. NULL: no waiter.
 */
static bool has_enough(const struct reader *reader, const struct waiter *waiter)
{
	return waiter && waiter->woken &&
	       !(waiter->patient && reader->core->transactions.outstanding.table.count);
}

/* Locked: reads until nothing is queued, "most" messages are read, or the waiter has enough. */
static void read_messages(struct reader *reader, unsigned most, const struct waiter *waiter,
			  int64_t now)
{
	struct core *core = reader->core;
	enum link_result result;

	while (most-- && !has_enough(reader, waiter) && !core->gone &&
	       reader->blocked_until <= now) {
		core_unlock(core);
		result = read_unlocked(reader);
		if (result == LINK_NONE)
			reader->emptied = now;
		if (result == LINK_NONE || result == LINK_GONE)
			return;
		core->hooks->progress(core);
	}
}

void reader_read(struct reader *reader, unsigned most, int64_t now)
{
	if (atomic_exchange(&reader->reading, true))
		return;
	read_messages(reader, most, NULL, now);
	reader->reading = false;
	reader_pass(reader);
}

int64_t reader_time(const struct reader *reader, int64_t now)
{
	const struct flow_window *windows = reader->core->transactions.flow.windows;
	int64_t time = now - TIMERS_LATE;

	/* no other thread can read while the leader polls: it is taken to be quick */
	if (reader->polling && reader->wake_fd < 0)
		return now;
	if (reader->emptied > time)
		time = reader->emptied;
	/* a response is read after all that came before its request was sent */
	for (unsigned i = 0; i < FLOW_WINDOWS; i++)
		if (windows[i].newest > time)
			time = windows[i].newest;
	return time;
}

/* --- waiting -------------------------------------------------------------------- */

static void follow(struct reader *reader, struct waiter *waiter, int64_t until)
{
	clock_cond_init(&waiter->changed);
	waiter->following = true;
	clock_cond_wait(&waiter->changed, &reader->core->lock, until);
	waiter->following = false;
	pthread_cond_destroy(&waiter->changed);
}

/* Polls the handle: as umad_poll(), or 1 if another thread woke the leader. */
static int poll_handle(struct reader *reader, int ms)
{
	int fd = reader->core->link.fd, ret;

	ret = reader->wake_fd < 0 ? umad_poll(fd, ms) : umad_poll_with(fd, reader->wake_fd, ms);
	reader->polling = false;
	return ret;
}

/* After a poll until the time "end": handles what came. The lock is held only after. */
static void handle_poll(struct reader *reader, struct waiter *waiter, int ret, int error,
			int64_t end)
{
	struct core *core = reader->core;

	if (ret == 0 && (reader->wake_fd < 0 || !atomic_exchange(&reader->reading, true))) {
		if (read_unlocked(reader) != LINK_NONE)
			core->hooks->progress(core);
		if (!has_enough(reader, waiter))
			read_messages(reader, BATCH - 1, waiter, clock_us());
		reader->reading = false;
		return;
	}
	core_lock(core);
	if (ret == -ETIMEDOUT)
		reader->emptied = end;
	else if (ret == -EIO && error == EINTR)
		waiter->interrupted = true;
	else if (ret < 0)
		core_fail(core, ENODEV);
}

static void lead(struct reader *reader, struct waiter *waiter, int64_t until, int64_t now)
{
	/* a simulator's handle is polled or read by one thread at a time */
	bool alone = reader->wake_fd < 0;
	int ms = ms_until(until, now, alone ? LOOK_UP_MS : INT_MAX), ret;
	struct core *core = reader->core;

	reader->leader = waiter;
	if (alone)
		reader->reading = true;
	reader->polling = true;
	core_unlock(core);
	ret = poll_handle(reader, ms);
	handle_poll(reader, waiter, ret, errno, now + ms * INT64_C(1000));
	if (alone)
		reader->reading = false;
	reader->leader = NULL;
	if (reader->signalled || ret == 1) {
		eventfd_t count;

		reader->signalled = false;
		eventfd_read(reader->wake_fd, &count);
	}
	/* in this order: whoever alerts writes last */
	if (reader->alerted && atomic_exchange(&reader->alerted, false))
		core->hooks->progress(core);
}

void reader_wait(struct reader *reader, struct waiter *waiter, int64_t until, int64_t now)
{
	bool can_read = reader->polling && reader->wake_fd >= 0 && !reader->reading;

	waiter->woken = false;
	waiter->until = until;
	/* the leader may not have run since a message came */
	if (until <= now && can_read)
		reader_read(reader, BATCH, now);
	else if (reader->leader || reader->reading)
		follow(reader, waiter, until);
	else if (reader->blocked_until > now)
		follow(reader, waiter,
		       until < reader->blocked_until ? until : reader->blocked_until);
	else
		lead(reader, waiter, until, now);
}
