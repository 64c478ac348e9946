/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A descriptor that becomes readable when there is something to do, and at a given time. Its
 * state follows from the latest alarm_set() alone: nothing that a thread polls for can be
 * missed because another thread did it.
 */
#ifndef LIBIBMAD_ALARM_H
#define LIBIBMAD_ALARM_H

#include <stdbool.h>
#include <stdint.h>

struct alarm {
	int work_fd;    /* an eventfd: there is something to do; -1: the alarm is not open */
	int timer_fd;   /* a timerfd */
	int wake_fd;    /* an epoll descriptor of both; -1: nobody asked for it */
	int poll_fd;    /* an epoll descriptor of both and another descriptor; likewise */
	bool signalled; /* work_fd is readable */
	int64_t armed;  /* when timer_fd becomes, or became, readable */
};

void alarm_init(struct alarm *alarm);
void alarm_close(struct alarm *alarm);

/* The descriptor; it is opened if it is not open. A negative errno. */
int alarm_wake_fd(struct alarm *alarm);
/* One that is readable when "other" is, too. */
int alarm_poll_fd(struct alarm *alarm, int other);

static inline bool alarm_is_open(const struct alarm *alarm)
{
	return alarm->work_fd >= 0;
}

/*
 * There is something to do, or there is not, and there will be at the time "next". If the timer
 * is set for an earlier time, it stays so, until it is due: "due" says that it may be.
 */
void alarm_set(struct alarm *alarm, bool work, int64_t next, bool due);

#endif
