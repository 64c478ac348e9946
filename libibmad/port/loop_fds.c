/* SPDX-License-Identifier: BSD-2-Clause */

#include "port/loop_fds.h"

#include "port/timers.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* An event loop that does not watch the handle looks at the port after this time, */
#define LOOK_US  20000
/* or after this time if nobody can watch it. */
#define BLIND_US 5000

void listener_init(struct listener *listener)
{
	*listener = (struct listener){
		.timer_at = NEVER,
		.look_at = NEVER,
		.alarm = {.work_fd = -1, .timer_fd = -1, .poll_fd = -1, .armed = NEVER},
	};
	list_init(&listener->completed);
	list_init(&listener->arrived);
	list_init(&listener->refused);
	list_init(&listener->ended);
}

/* --- descriptors ---------------------------------------------------------------- */

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void listener_close(struct listener *listener)
{
	struct alarm *alarm = &listener->alarm;

	close_one(&alarm->poll_fd);
	close_one(&alarm->timer_fd);
	close_one(&alarm->work_fd);
	alarm->watching = alarm->signalled = false;
	alarm->armed = NEVER;
}

static int add(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

int listener_poll_fd(struct listener *listener)
{
	struct alarm *alarm = &listener->alarm;
	int error;

	if (alarm->poll_fd >= 0)
		return alarm->poll_fd;
	alarm->work_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (alarm->work_fd >= 0)
		alarm->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (alarm->timer_fd >= 0)
		alarm->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (alarm->poll_fd >= 0 && !add(alarm->poll_fd, alarm->work_fd) &&
	    !add(alarm->poll_fd, alarm->timer_fd))
		return alarm->poll_fd;
	error = errno;
	listener_close(listener);
	return -error;
}

/*
 * If epoll_ctl() fails, the handle is closed already, or there is no memory: then the event
 * loop looks at the port by its timer.
 */
void listener_watch(struct listener *listener, int handle, bool watch)
{
	struct alarm *alarm = &listener->alarm;

	if (alarm->poll_fd < 0 || listener->blind || watch == alarm->watching)
		return;
	if (watch)
		alarm->watching = !add(alarm->poll_fd, handle);
	else
		alarm->watching = epoll_ctl(alarm->poll_fd, EPOLL_CTL_DEL, handle, NULL) != 0;
}

/* --- work ----------------------------------------------------------------------- */

static bool has_callbacks(const struct listener *listener)
{
	return !list_is_empty(&listener->completed) || !list_is_empty(&listener->arrived) ||
	       !list_is_empty(&listener->ended) || listener->calls;
}

bool listener_has_own_work(const struct listener *listener, bool gone)
{
	return has_callbacks(listener) || !list_is_empty(&listener->refused) ||
	       (gone && listener_is_empty(listener));
}

/* Work that another thread is doing is not announced. */
bool listener_has_work(const struct listener *listener, const struct port_work *work)
{
	if (!listener->processing && has_callbacks(listener))
		return true;
	if (!listener->serving && (!list_is_empty(&listener->refused) ||
				   (work->now && listener_serves_port(listener))))
		return true;
	return work->gone && !listener->processing && listener_is_empty(listener);
}

int64_t listener_next(const struct listener *listener, const struct port_work *work)
{
	int64_t next = work->next;

	if (!listener_serves_port(listener))
		next = NEVER;
	if ((listener->blind || !listener_serves_port(listener)) &&
	    (listener->open || listener->servers) && listener->look_at < next)
		next = listener->look_at;
	if (listener->timer_at == NEVER || listener->processing)
		return next;
	if (work->gone)
		return 0;
	return listener->timer_at < next ? listener->timer_at : next;
}

void listener_begin(struct listener *listener)
{
	if (listener->blind)
		listener->look_at = clock_us() + BLIND_US;
	else if (!listener_serves_port(listener))
		listener->look_at = clock_us() + LOOK_US;
}

static void arm(struct alarm *alarm, int64_t at)
{
	struct itimerspec time = {0};

	if (at != NEVER) {
		time.it_value.tv_sec = (time_t)(at / 1000000);
		time.it_value.tv_nsec = (long)(at % 1000000 * 1000);
		/* all zeros would disarm the timer */
		if (at <= 0)
			time.it_value.tv_nsec = 1;
	}
	timerfd_settime(alarm->timer_fd, TFD_TIMER_ABSTIME, &time, NULL);
	alarm->armed = at;
}

static void set_alarm(struct alarm *alarm, bool work, int64_t next, bool due)
{
	eventfd_t count;

	if (work != alarm->signalled) {
		alarm->signalled = work;
		if (work)
			eventfd_write(alarm->work_fd, 1);
		else
			eventfd_read(alarm->work_fd, &count);
	}
	if (next < alarm->armed || (due && next > alarm->armed && alarm->armed <= clock_us()))
		arm(alarm, next);
}

void listener_wake(struct listener *listener, struct waiters *waiters, bool gone)
{
	if (listener->waiting &&
	    (listener_has_own_work(listener, gone) || listener_is_stopped(listener)))
		waiter_wake(waiters, &listener->waiter);
}

void listener_update(struct listener *listener, struct waiters *waiters,
		     const struct port_work *work, bool due)
{
	listener_wake(listener, waiters, work->gone);
	if (listener_has_alarm(listener))
		set_alarm(&listener->alarm, listener_has_work(listener, work),
			  listener_next(listener, work), due);
}
