/* SPDX-License-Identifier: BSD-2-Clause */

#include "virtual.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SECOND       UINT64_C(1000000000)
#define NEVER        UINT64_MAX
#define UPTIME       (1000 * SECOND)       /* CLOCK_MONOTONIC when time begins */
#define EPOCH        (1700000000 * SECOND) /* CLOCK_REALTIME */
#define MOST_TIMERS  64
#define MOST_THREADS 1024
#define PATIENCE_MS  10000

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *until);
int __real_pthread_cond_signal(pthread_cond_t *cond);
int __wrap_pthread_cond_signal(pthread_cond_t *cond);
int __real_pthread_cond_broadcast(pthread_cond_t *cond);
int __wrap_pthread_cond_broadcast(pthread_cond_t *cond);
int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __real_nanosleep(const struct timespec *time, struct timespec *rest);
int __wrap_nanosleep(const struct timespec *time, struct timespec *rest);
int __real_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *time,
			   struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *time,
			   struct itimerspec *old);
int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

/* A thread that waits: for descriptors, a condition, another thread's end, or time only. */
struct sleeper {
	struct sleeper *next, *previous;
	uint64_t until;
	const pthread_cond_t *cond;
	const pthread_t *joins;
	struct pollfd *fds;
	nfds_t count;
	bool woken;
	pthread_cond_t wake;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local unsigned has_lock;
static atomic_bool begun;
/* the lock guards the rest */
static struct virtual_source source;
static _Atomic uint64_t now;
static unsigned running;                /* threads that do not wait */
static pthread_t threads[MOST_THREADS]; /* that were created, and have not ended */
static unsigned thread_count;
static struct sleeper sleepers = {.next = &sleepers, .previous = &sleepers};
static uint64_t random_state;
static struct timer {
	int fd; /* an eventfd */
	uint64_t at;
} timers[MOST_TIMERS];

void virtual_lock(void)
{
	if (!has_lock++)
		pthread_mutex_lock(&lock);
}

void virtual_unlock(void)
{
	if (!--has_lock)
		pthread_mutex_unlock(&lock);
}

bool virtual_sees_machine(void)
{
	return begun && !has_lock;
}

uint64_t virtual_ns(void)
{
	return now;
}

/* --- events --------------------------------------------------------------------- */

static void wake(struct sleeper *sleeper)
{
	if (sleeper->woken)
		return;
	sleeper->woken = true;
	running++;
	__real_pthread_cond_signal(&sleeper->wake);
}

/* How many descriptors are ready. */
static int look(struct pollfd *fds, nfds_t count)
{
	int ready = 0;

	for (nfds_t i = 0; i < count; i++) {
		short revents = source.revents(fds[i].fd);

		if (revents < 0)
			__real_poll(&fds[i], 1, 0);
		else
			fds[i].revents = (short)(revents & (fds[i].events | POLLERR | POLLHUP));
		ready += fds[i].revents != 0;
	}
	return ready;
}

static void look_at_all(void)
{
	for (struct sleeper *each = sleepers.next; each != &sleepers; each = each->next)
		if (!each->woken && look(each->fds, each->count))
			wake(each);
}

static uint64_t next_event(void)
{
	uint64_t next = source.next();

	for (struct sleeper *each = sleepers.next; each != &sleepers; each = each->next)
		if (each->until < next)
			next = each->until;
	for (int i = 0; i < MOST_TIMERS; i++)
		if (timers[i].at && timers[i].at < next)
			next = timers[i].at;
	return next;
}

static void move_to(uint64_t time)
{
	static const uint64_t one = 1;

	if (time > now) {
		now = time;
		source.set_time(time);
	}
	source.run();
	for (int i = 0; i < MOST_TIMERS; i++)
		if (timers[i].at && timers[i].at <= now) {
			timers[i].at = 0;
			if (write(timers[i].fd, &one, sizeof(one)) != sizeof(one))
				abort();
		}
	for (struct sleeper *each = sleepers.next; each != &sleepers; each = each->next)
		if (each->until <= now)
			wake(each);
}

/* Nothing can happen any more, unless another process writes to a pipe. */
static void wait_for_others(void)
{
	for (struct sleeper *each = sleepers.next; each != &sleepers; each = each->next)
		if (each->count && __real_poll(each->fds, each->count, PATIENCE_MS) > 0)
			return;
	fprintf(stderr, "virtual time: all threads wait for ever\n");
	abort();
}

/* When no thread runs, time goes on until one does. */
static void go_on(void)
{
	while (!running) {
		uint64_t next;

		source.run();
		look_at_all();
		if (running)
			return;
		next = next_event();
		if (next == NEVER)
			wait_for_others();
		else
			move_to(next);
	}
}

/* --- waiting -------------------------------------------------------------------- */

static void leave(struct sleeper *sleeper)
{
	sleeper->next->previous = sleeper->previous;
	sleeper->previous->next = sleeper->next;
	pthread_cond_destroy(&sleeper->wake);
}

/* The thread is cancelled. */
static void leave_early(void *arg)
{
	struct sleeper *sleeper = arg;

	if (!sleeper->woken)
		running++;
	leave(sleeper);
	virtual_unlock();
}

/* The lock is held; it is held again when the thread is woken, or the time has come. */
static void enter(struct sleeper *sleeper)
{
	pthread_cond_init(&sleeper->wake, NULL);
	sleeper->next = &sleepers;
	sleeper->previous = sleepers.previous;
	sleepers.previous->next = sleeper;
	sleepers.previous = sleeper;
	running--;
	go_on();
}

static void wait_for_wake(struct sleeper *sleeper)
{
	pthread_cleanup_push(leave_early, sleeper);
	while (!sleeper->woken)
		__real_pthread_cond_wait(&sleeper->wake, &lock);
	pthread_cleanup_pop(0);
	leave(sleeper);
}

static uint64_t after(uint64_t ns)
{
	return ns > NEVER - now ? NEVER : now + ns;
}

int virtual_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	struct sleeper sleeper = {.fds = fds, .count = count};
	int ready;

	virtual_lock();
	source.run();
	ready = look(fds, count);
	sleeper.until = timeout_ms < 0 ? NEVER : after((uint64_t)timeout_ms * 1000000);
	/* another thread may have read what woke this one */
	while (!ready && sleeper.until > now) {
		sleeper.woken = false;
		enter(&sleeper);
		wait_for_wake(&sleeper);
		ready = look(fds, count);
	}
	virtual_unlock();
	return ready;
}

int __wrap_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms)
{
	struct pollfd fd = {.fd = epoll, .events = POLLIN};

	if (virtual_sees_machine()) {
		virtual_poll(&fd, 1, timeout_ms);
		timeout_ms = 0;
	}
	return __real_epoll_wait(epoll, events, most, timeout_ms);
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *rest)
{
	struct sleeper sleeper = {0};

	if (!virtual_sees_machine())
		return __real_nanosleep(time, rest);
	virtual_lock();
	sleeper.until = after((uint64_t)time->tv_sec * SECOND + (uint64_t)time->tv_nsec);
	enter(&sleeper);
	wait_for_wake(&sleeper);
	virtual_unlock();
	return 0;
}

static void lock_again(void *mutex)
{
	pthread_mutex_lock(mutex);
}

/* The mutex is held until the thread waits: who signals the condition finds it waiting. */
static int wait_for_cond(const pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until)
{
	struct sleeper sleeper = {.cond = cond, .until = until};

	virtual_lock();
	enter(&sleeper);
	pthread_mutex_unlock(mutex);
	pthread_cleanup_push(lock_again, mutex);
	wait_for_wake(&sleeper);
	virtual_unlock();
	pthread_cleanup_pop(1);
	return now >= until ? ETIMEDOUT : 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	return virtual_sees_machine() ? wait_for_cond(cond, mutex, NEVER)
				      : __real_pthread_cond_wait(cond, mutex);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *until)
{
	uint64_t ns = (uint64_t)until->tv_sec * SECOND + (uint64_t)until->tv_nsec;

	return virtual_sees_machine()
		       ? wait_for_cond(cond, mutex, ns > UPTIME ? ns - UPTIME : 0)
		       : __real_pthread_cond_timedwait(cond, mutex, until);
}

static void wake_waiting(const pthread_cond_t *cond, bool all)
{
	unsigned count = 0;

	for (struct sleeper *each = sleepers.next; each != &sleepers; each = each->next)
		count += each->cond == cond && !each->woken;
	if (count && !all) {
		random_state = random_state * UINT64_C(6364136223846793005) + 1;
		count = (unsigned)(random_state >> 33) % count;
	}
	for (struct sleeper *each = sleepers.next; each != &sleepers; each = each->next)
		if (each->cond == cond && !each->woken && (all || !count--))
			wake(each);
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
	if (!virtual_sees_machine())
		return __real_pthread_cond_signal(cond);
	virtual_lock();
	wake_waiting(cond, false);
	virtual_unlock();
	return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
	if (!virtual_sees_machine())
		return __real_pthread_cond_broadcast(cond);
	virtual_lock();
	wake_waiting(cond, true);
	virtual_unlock();
	return 0;
}

/* --- threads -------------------------------------------------------------------- */

struct start {
	void *(*run)(void *);
	void *arg;
};

/* The entry of a thread; NULL: it has ended. */
static pthread_t *find(pthread_t thread)
{
	for (unsigned i = 0; i < thread_count; i++)
		if (pthread_equal(threads[i], thread))
			return &threads[i];
	return NULL;
}

static void end_thread(void *arg)
{
	(void)arg;
	virtual_lock();
	for (struct sleeper *each = sleepers.next; each != &sleepers; each = each->next)
		if (each->joins && pthread_equal(*each->joins, pthread_self()))
			wake(each);
	*find(pthread_self()) = threads[thread_count - 1];
	thread_count--;
	running--;
	if (sleepers.next != &sleepers)
		go_on();
	virtual_unlock();
}

static void *run_thread(void *arg)
{
	struct start start = *(struct start *)arg;
	void *result;

	free(arg);
	pthread_cleanup_push(end_thread, NULL);
	result = start.run(start.arg);
	pthread_cleanup_pop(1);
	return result;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	struct start *start;
	int error;

	if (!virtual_sees_machine())
		return __real_pthread_create(thread, attr, run, arg);
	start = malloc(sizeof(*start));
	if (!start)
		return EAGAIN;
	*start = (struct start){run, arg};
	virtual_lock();
	error = __real_pthread_create(thread, attr, run_thread, start);
	if (error || thread_count == MOST_THREADS)
		abort();
	running++;
	threads[thread_count++] = *thread;
	virtual_unlock();
	return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
	struct sleeper sleeper = {.joins = &thread, .until = NEVER};

	if (virtual_sees_machine()) {
		virtual_lock();
		if (find(thread)) {
			enter(&sleeper);
			wait_for_wake(&sleeper);
		}
		virtual_unlock();
	}
	return __real_pthread_join(thread, result);
}

/* --- the clock ------------------------------------------------------------------ */

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	uint64_t ns;

	if (!begun || (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME))
		return __real_clock_gettime(clock, time);
	ns = now + (clock == CLOCK_MONOTONIC ? UPTIME : EPOCH);
	time->tv_sec = (time_t)(ns / SECOND);
	time->tv_nsec = (long)(ns % SECOND);
	return 0;
}

/* The descriptor of a timer never expires by itself: it becomes an eventfd. */
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *time,
			   struct itimerspec *old)
{
	uint64_t at =
		(uint64_t)time->it_value.tv_sec * SECOND + (uint64_t)time->it_value.tv_nsec;
	uint64_t count;
	int free_one = -1;

	if (!virtual_sees_machine())
		return __real_timerfd_settime(fd, flags, time, old);
	virtual_lock();
	for (int i = 0; i < MOST_TIMERS; i++) {
		if (timers[i].fd == fd)
			free_one = i;
		if (free_one < 0 && timers[i].fd < 0)
			free_one = i;
	}
	if (free_one < 0)
		abort();
	timers[free_one] = (struct timer){fd, 0};
	if (at)
		timers[free_one].at = !(flags & TFD_TIMER_ABSTIME) ? after(at)
				      : at > UPTIME                ? at - UPTIME
								   : 1;
	if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		abort();
	virtual_unlock();
	return 0;
}

void virtual_forget_timer(int fd)
{
	for (int i = 0; i < MOST_TIMERS; i++)
		if (timers[i].fd == fd)
			timers[i] = (struct timer){.fd = -1};
}

/* --- the beginning and the end -------------------------------------------------- */

static void begin_child(void)
{
	sleepers.next = sleepers.previous = &sleepers;
	running = 1;
	thread_count = 0;
	virtual_unlock();
}

void virtual_begin(const struct virtual_source *begin, uint64_t seed)
{
	static bool forks;

	if (!forks)
		pthread_atfork(virtual_lock, virtual_unlock, begin_child);
	forks = true;
	source = *begin;
	random_state = seed;
	now = 0;
	running = 1;
	thread_count = 0;
	for (int i = 0; i < MOST_TIMERS; i++)
		timers[i] = (struct timer){.fd = -1};
	begun = true;
}

unsigned virtual_end(void)
{
	begun = false;
	return thread_count;
}
