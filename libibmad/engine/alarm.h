/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What an event loop polls: one descriptor, which is readable while the port's handle is, while
 * there is other work, and when a time has come.
 */
#ifndef LIBIBMAD_ALARM_H
#define LIBIBMAD_ALARM_H

#include <stdbool.h>
#include <stdint.h>

struct alarm {
	int poll_fd;    /* an epoll descriptor of the others; -1: not open */
	int work_fd;    /* an eventfd: there is work */
	int timer_fd;   /* a timerfd */
	bool watching;  /* poll_fd has the handle */
	bool signalled; /* work_fd is readable */
	int64_t armed;  /* the time that timer_fd is set to; NEVER */
};

void alarm_init(struct alarm *alarm);
void alarm_close(struct alarm *alarm);

static inline bool alarm_is_open(const struct alarm *alarm)
{
	return alarm->poll_fd >= 0;
}

/* Opens it, unless it is open: poll_fd, or a negative errno. */
int alarm_open(struct alarm *alarm);
/* Whether poll_fd is readable for messages. */
void alarm_watch(struct alarm *alarm, int handle, bool watch);
/*
 * Sets it by the present state: whether there is work, and when there is more. A later time
 * than before is set only after the earlier one has come: the loop may wake once in vain.
 */
void alarm_set(struct alarm *alarm, bool work, int64_t next);

#endif
