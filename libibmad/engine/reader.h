/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The threads that wait for messages of a port. One of them, the leader, polls the handle, and
 * reads messages for all; the others, the followers, sleep on a condition variable each. When
 * the leader has what it waits for, another thread leads. No thread of the library's own is
 * needed. A thread that is alone writes, polls and reads once for each request.
 *
 * Any thread may read while the leader polls, unless the handle is a simulator's. Then the
 * leader polls through an eventfd, too, by which others wake it at once; otherwise it looks up
 * every 100 ms.
 */
#ifndef LIBIBMAD_READER_H
#define LIBIBMAD_READER_H

#include "engine/core.h"

/* Simulators that are preloaded have handles from this number on, which are no descriptors. */
#define FIRST_FAKE_HANDLE 1024

struct waiter {
	pthread_cond_t changed; /* while following */
	struct list all;        /* in the reader's */
	bool following;         /* it sleeps until another thread wakes it */
	bool woken;
	bool interrupted; /* by a signal, while it led */
	bool patient;     /* as the leader it reads on, even if it is woken */
	bool receiving;   /* it waits for messages in the inbox */
	bool sending;     /* it waits until its request may be sent */
	int64_t until;    /* reader_wait() returns at this time at the latest */
};

struct reader {
	struct core *core;
	struct list waiters;
	struct waiter *leader; /* NULL: no thread leads */
	atomic_bool polling;   /* the leader polls */
	atomic_bool reading;   /* a thread has the buffer */
	int wake_fd;           /* an eventfd that the leader polls, too; -1: none */
	bool signalled;        /* wake_fd is readable */
	atomic_bool alerted;   /* the leader is to tell the owners: reader_alert() */
	int64_t emptied;       /* all messages that came before this time were handled */
	int64_t blocked_until; /* no memory to read the next message away: try again then; or 0
				*/
	_Alignas(8) uint8_t buffer[PACKET_SIZE]; /* of the thread that reads */
};

void reader_init(struct reader *reader, struct core *core);
/* The core's link is open. */
void reader_open(struct reader *reader);
/* In a child of fork(): no thread waits, and the parent's eventfd is not used. */
void reader_reset(struct reader *reader);
void reader_free(struct reader *reader);

/* Whether the handle is a descriptor, which poll(2) and epoll know. */
static inline bool reader_has_descriptor(const struct reader *reader)
{
	return reader->core->link.fd < FIRST_FAKE_HANDLE;
}

/*
 * Any thread or signal handler: the leader, or the next one if no thread leads, calls the hook
 * "progress" of the core, so that the owners look at what was changed without the lock.
 */
void reader_alert(struct reader *reader);

/* All below: the core is locked. */

void reader_begin(struct reader *reader, struct waiter *waiter);
void reader_end(struct reader *reader, struct waiter *waiter);

/*
 * Waits until messages were handled, until the waiter is woken, or until the time "until";
 * "now" is the present time. It may return early. If that time is over, it handles what is
 * queued, as far as this thread may read now. The lock is dropped meanwhile.
 */
void reader_wait(struct reader *reader, struct waiter *waiter, int64_t until, int64_t now);

/* If no thread leads, makes one of the followers lead. */
void reader_pass(struct reader *reader);

void reader_wake(struct reader *reader, struct waiter *waiter);
void reader_wake_all(struct reader *reader);
/* Wakes a thread that waits for the inbox. */
void reader_wake_receiver(struct reader *reader);
/* Wakes a thread that waits until its request may be sent. */
void reader_wake_sender(struct reader *reader);
/*
 * The scheduler has something to do at the time "at". Wakes the threads that do the scheduler's
 * work, if they wait longer: those with "sending" or "patient" (mad_async_run()).
 */
void reader_wake_for(struct reader *reader, int64_t at);

/*
 * Reads what is queued, "most" messages at most, without waiting, unless another thread reads.
 * The lock is dropped meanwhile.
 */
void reader_read(struct reader *reader, unsigned most, int64_t now);

/*
 * The time that timers are compared with: a response that came before it was handled. While
 * messages come faster than they are read, it is 100 ms ago at most.
 */
int64_t reader_time(const struct reader *reader, int64_t now);

/* Whether messages are to be read before a timer that is set for the time "at" is judged. */
static inline bool reader_is_behind(const struct reader *reader, int64_t at, int64_t now)
{
	return at <= now && reader_time(reader, now) < at;
}

#endif
