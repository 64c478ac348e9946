/* SPDX-License-Identifier: BSD-2-Clause */

#include "calls/alarm.h"

#include "engine/deadline.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

void alarm_init(struct alarm *alarm)
{
	*alarm = (struct alarm){
		.work_fd = -1,
		.timer_fd = -1,
		.wake_fd = -1,
		.poll_fd = -1,
		.armed = NEVER,
	};
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void alarm_close(struct alarm *alarm)
{
	close_one(&alarm->poll_fd);
	close_one(&alarm->wake_fd);
	close_one(&alarm->timer_fd);
	close_one(&alarm->work_fd);
	alarm_init(alarm);
}

/* The eventfd and the timerfd. 0 or a negative errno. */
static int open_sources(struct alarm *alarm)
{
	int error;

	if (alarm_is_open(alarm))
		return 0;
	alarm->work_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	alarm->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (alarm->work_fd >= 0 && alarm->timer_fd >= 0)
		return 0;
	error = errno;
	alarm_close(alarm);
	return -error;
}

static int watch(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

/* An epoll descriptor of the sources, and of another one unless it is -1. */
static int open_epoll(struct alarm *alarm, int *fd, int other)
{
	int epoll, error;

	if (*fd >= 0)
		return *fd;
	error = open_sources(alarm);
	if (error)
		return error;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0)
		return -errno;
	if (watch(epoll, alarm->work_fd) || watch(epoll, alarm->timer_fd) ||
	    (other >= 0 && watch(epoll, other))) {
		error = errno;
		close(epoll);
		return -error;
	}
	*fd = epoll;
	return epoll;
}

int alarm_wake_fd(struct alarm *alarm)
{
	return open_epoll(alarm, &alarm->wake_fd, -1);
}

int alarm_poll_fd(struct alarm *alarm, int other)
{
	return open_epoll(alarm, &alarm->poll_fd, other);
}

static void arm(struct alarm *alarm, int64_t at)
{
	struct itimerspec time = {0};

	if (at != NEVER) {
		time.it_value.tv_sec = (time_t)(at / 1000000);
		time.it_value.tv_nsec = (long)(at % 1000000 * 1000);
		/* all zeros would disarm it */
		if (at <= 0)
			time.it_value.tv_nsec = 1;
	}
	timerfd_settime(alarm->timer_fd, TFD_TIMER_ABSTIME, &time, NULL);
	alarm->armed = at;
}

void alarm_set(struct alarm *alarm, bool work, int64_t next, bool due)
{
	eventfd_t count;

	if (!alarm_is_open(alarm))
		return;
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
