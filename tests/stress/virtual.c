/* SPDX-License-Identifier: BSD-2-Clause */

#include "virtual.h"

#include "fake_device.h"
#include "jobs.h"

#include <stdatomic.h>

#define FOREVER   INT64_MAX
/* Far above CLOCK_MONOTONIC: timers of the kernel, which have that clock, never fire. */
#define BEGIN     INT64_C(1000000000000000)
#define MOST_FDS  2
#define MOST_HEAP (1U << 20)

int64_t __wrap_clock_us(void);
int __wrap_sys_poll(int fd, int timeout_ms);
int __wrap_sys_poll_both(int fd, int other, int timeout_ms, int *other_revents);
void __wrap_clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until);
int __wrap_pthread_cond_signal(pthread_cond_t *cond);
int __real_pthread_cond_signal(pthread_cond_t *cond);
int __wrap_pthread_cond_broadcast(pthread_cond_t *cond);
int __real_pthread_cond_broadcast(pthread_cond_t *cond);

/* A thread that waits: for descriptors, or for a condition of the library. */
struct sleeper {
	struct sleeper *next, *previous;
	int64_t until;
	const pthread_cond_t *cond; /* of the library; or NULL */
	struct pollfd fds[MOST_FDS];
	unsigned fd_count;
	bool woken;
	pthread_cond_t wake;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int64_t now = BEGIN;
static unsigned running = 1; /* threads that do not wait: at first that of main() */
static struct sleeper sleepers = {.next = &sleepers, .previous = &sleepers};
static struct event *heap[MOST_HEAP]; /* from 1 on */
static unsigned heap_count;
static uint64_t orders;

int64_t virtual_now(void)
{
	return now;
}

int64_t virtual_elapsed(void)
{
	return now - BEGIN;
}

void virtual_lock(void)
{
	pthread_mutex_lock(&lock);
}

void virtual_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* --- events --------------------------------------------------------------------- */

static bool is_before(const struct event *a, const struct event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void virtual_at(struct event *event, int64_t at)
{
	unsigned place = ++heap_count;

	must(heap_count < MOST_HEAP, "too many events");
	event->at = at;
	event->order = orders++;
	for (; place > 1 && is_before(event, heap[place / 2]); place /= 2)
		heap[place] = heap[place / 2];
	heap[place] = event;
}

void virtual_forget(void)
{
	heap_count = 0;
}

static struct event *take_event(void)
{
	struct event *first = heap[1], *last = heap[heap_count--];
	unsigned place = 1, child;

	for (; (child = 2 * place) <= heap_count; place = child) {
		if (child < heap_count && is_before(heap[child + 1], heap[child]))
			child++;
		if (!is_before(heap[child], last))
			break;
		heap[place] = heap[child];
	}
	heap[place] = last;
	return first;
}

/* --- threads -------------------------------------------------------------------- */

static void wake(struct sleeper *sleeper)
{
	if (sleeper->woken)
		return;
	sleeper->woken = true;
	running++;
	__real_pthread_cond_signal(&sleeper->wake);
}

/*
 * The events of descriptors, of which some are handles of the fake device. Those after one that
 * is ready have none: this saves system calls.
 */
static int look(struct pollfd *fds, unsigned count)
{
	int ready = 0, revents;

	for (unsigned i = 0; i < count; i++) {
		fds[i].revents = 0;
		if (ready)
			continue;
		revents = device_revents(fds[i].fd);
		if (revents >= 0)
			fds[i].revents = (short)revents;
		else
			poll(&fds[i], 1, 0);
		ready += fds[i].revents != 0;
	}
	return ready;
}

void virtual_look(void)
{
	for (struct sleeper *each = sleepers.next; each != &sleepers; each = each->next)
		if (!each->woken && look(each->fds, each->fd_count))
			wake(each);
}

/* When no thread runs, time goes on until one does. */
static void go_on(void)
{
	int64_t next;

	while (!running) {
		virtual_look();
		if (running)
			return;
		next = heap_count ? heap[1]->at : FOREVER;
		for (struct sleeper *each = sleepers.next; each != &sleepers; each = each->next)
			if (each->until < next)
				next = each->until;
		must(next != FOREVER, "all threads wait for ever");
		if (next > now)
			now = next;
		for (struct event *event; heap_count && heap[1]->at <= now;) {
			event = take_event();
			event->happen(event);
		}
		for (struct sleeper *each = sleepers.next; each != &sleepers; each = each->next)
			if (each->until <= now)
				wake(each);
	}
}

static void sleep_until(struct sleeper *sleeper)
{
	pthread_cond_init(&sleeper->wake, NULL);
	sleeper->next = &sleepers;
	sleeper->previous = sleepers.previous;
	sleepers.previous->next = sleeper;
	sleepers.previous = sleeper;
	running--;
	go_on();
}

/* The lock is held, and released. */
static void wait_for_wake(struct sleeper *sleeper)
{
	while (!sleeper->woken)
		pthread_cond_wait(&sleeper->wake, &lock);
	sleeper->next->previous = sleeper->previous;
	sleeper->previous->next = sleeper->next;
	pthread_mutex_unlock(&lock);
	pthread_cond_destroy(&sleeper->wake);
}

static void wait_for_fds(struct sleeper *sleeper, int timeout_ms)
{
	pthread_mutex_lock(&lock);
	sleeper->until = timeout_ms < 0 ? FOREVER : now + timeout_ms * INT64_C(1000);
	sleep_until(sleeper);
	wait_for_wake(sleeper);
}

struct start {
	void *(*run)(void *);
	void *arg;
};

/* With the lock: the thread does not run any more. */
static void stop_running(void)
{
	running--;
	if (sleepers.next != &sleepers)
		go_on();
}

static void *run_thread(void *arg)
{
	struct start start = *(struct start *)arg;
	void *result;

	free(arg);
	result = start.run(start.arg);
	pthread_mutex_lock(&lock);
	stop_running();
	pthread_mutex_unlock(&lock);
	return result;
}

pthread_t virtual_thread(void *(*run)(void *), void *arg)
{
	struct start *start = malloc(sizeof(*start));
	pthread_t thread;

	must(start, "no memory");
	*start = (struct start){run, arg};
	pthread_mutex_lock(&lock);
	running++;
	pthread_mutex_unlock(&lock);
	must(!pthread_create(&thread, NULL, run_thread, start), "no thread");
	return thread;
}

void virtual_join(pthread_t thread)
{
	pthread_mutex_lock(&lock);
	stop_running();
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	pthread_mutex_lock(&lock);
	running++;
	pthread_mutex_unlock(&lock);
}

int virtual_poll(struct pollfd *fds, unsigned count, int timeout_ms)
{
	struct sleeper sleeper = {.fd_count = count};
	int ready = 0;

	must(count <= MOST_FDS, "too many descriptors");
	if (!timeout_ms)
		return look(fds, count);
	for (unsigned i = 0; i < count; i++)
		sleeper.fds[i] = fds[i];
	wait_for_fds(&sleeper, timeout_ms);
	for (unsigned i = 0; i < count; i++) {
		fds[i].revents = sleeper.fds[i].revents;
		ready += fds[i].revents != 0;
	}
	return ready;
}

/* --- in place of the library's -------------------------------------------------- */

int64_t __wrap_clock_us(void)
{
	return now;
}

int __wrap_sys_poll(int fd, int timeout_ms)
{
	struct pollfd handle = {.fd = fd, .events = POLLIN};

	virtual_poll(&handle, 1, timeout_ms);
	return handle.revents;
}

int __wrap_sys_poll_both(int fd, int other, int timeout_ms, int *other_revents)
{
	struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = other, .events = POLLIN}};

	virtual_poll(fds, 2, timeout_ms);
	*other_revents = fds[1].revents;
	return fds[0].revents;
}

/* The library's lock is held: whoever signals the condition finds the thread waiting. */
void __wrap_clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until)
{
	struct sleeper sleeper = {.cond = cond, .until = until};

	pthread_mutex_lock(&lock);
	sleep_until(&sleeper);
	pthread_mutex_unlock(mutex);
	wait_for_wake(&sleeper);
	pthread_mutex_lock(mutex);
}

static void wake_by(const pthread_cond_t *cond)
{
	pthread_mutex_lock(&lock);
	for (struct sleeper *each = sleepers.next; each != &sleepers; each = each->next)
		if (each->cond == cond)
			wake(each);
	pthread_mutex_unlock(&lock);
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
	wake_by(cond);
	return __real_pthread_cond_signal(cond);
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
	wake_by(cond);
	return __real_pthread_cond_broadcast(cond);
}
