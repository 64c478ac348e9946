/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/alarm.h"

#include "engine/timers.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

void alarm_init(struct alarm *alarm)
{
	*alarm = (struct alarm){.work_fd = -1, .timer_fd = -1, .poll_fd = -1, .armed = NEVER};
}

void alarm_close(struct alarm *alarm)
{
	if (alarm->poll_fd >= 0)
		close(alarm->poll_fd);
	if (alarm->timer_fd >= 0)
		close(alarm->timer_fd);
	if (alarm->work_fd >= 0)
		close(alarm->work_fd);
	alarm_init(alarm);
}

static int add_to_epoll(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

int alarm_open(struct alarm *alarm)
{
	int error;

	if (alarm_is_open(alarm))
		return alarm->poll_fd;
	alarm->work_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (alarm->work_fd >= 0)
		alarm->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (alarm->timer_fd >= 0)
		alarm->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (alarm->poll_fd >= 0 && !add_to_epoll(alarm->poll_fd, alarm->work_fd) &&
	    !add_to_epoll(alarm->poll_fd, alarm->timer_fd))
		return alarm->poll_fd;
	error = errno;
	alarm_close(alarm);
	return -error;
}

void alarm_watch(struct alarm *alarm, int handle, bool watch)
{
	if (!alarm_is_open(alarm) || watch == alarm->watching)
		return;
	if (watch)
		alarm->watching = !add_to_epoll(alarm->poll_fd, handle);
	else
		alarm->watching = epoll_ctl(alarm->poll_fd, EPOLL_CTL_DEL, handle, NULL) != 0;
}

static void arm_timer(struct alarm *alarm, int64_t at)
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

void alarm_set(struct alarm *alarm, bool work, int64_t next)
{
	eventfd_t count;

	if (work != alarm->signalled) {
		alarm->signalled = work;
		if (work)
			eventfd_write(alarm->work_fd, 1);
		else
			eventfd_read(alarm->work_fd, &count);
	}
	if (next < alarm->armed || (next > alarm->armed && alarm->armed <= clock_us()))
		arm_timer(alarm, next);
}
