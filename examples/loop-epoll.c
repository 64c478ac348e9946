/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shows an engine in an event loop of the program: mad_async_poll_fd() and mad_async_process().
 *
 * An event loop of epoll(7): discovers the fabric every 100 ms while the loop does other work,
 * too, and prints what it found.
 *
 *   loop-epoll [TIMES]
 *
 * Exits with 0, or with 1 if something failed.
 */

#include "program.h"

#include <infiniband/mad_fabric.h>

#include <err.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int times = 3;

static void discovered(struct mad_async *async, int error, struct mad_fabric *fabric, void *arg)
{
	(void)async;
	(void)arg;
	if (error)
		errx(1, "%s", strerror(-error));
	printf("%zu nodes\n", fabric->node_count);
	mad_fabric_free(fabric);
	times--;
}

static void watch(int loop, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (fd < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event))
		err(1, "epoll");
}

int main(int argc, char **argv)
{
	struct itimerspec every = {.it_value.tv_nsec = 1, .it_interval.tv_nsec = 100000000};
	struct ibmad_port *port;
	struct mad_async *async = mad_port_open(NULL, 0, &port) ? NULL : mad_async_create(port);
	int loop = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, 0);
	struct epoll_event event;
	uint64_t ticks;
	int engine;

	if (argc > 1)
		times = read_number(argv[1], 1, 1000000);
	if (times < 0 || argc > 2)
		errx(2, "usage: loop-epoll [TIMES]");
	if (!async)
		err(1, "no engine");
	engine = mad_async_poll_fd(async);
	watch(loop, engine);
	watch(loop, timer);
	timerfd_settime(timer, 0, &every, NULL);
	while (times > 0) {
		int error = 0;

		if (epoll_wait(loop, &event, 1, -1) < 1)
			continue;
		if (event.data.fd == engine) /* something to do for the engine */
			error = mad_async_process(async);
		else if (read(timer, &ticks, sizeof(ticks)) > 0)
			error = mad_fabric_submit(async, NULL, discovered, NULL, NULL);
		if (error < 0)
			errx(1, "%s", strerror(-error));
	}
	close(timer);
	close(loop);
	mad_async_free(async);
	mad_rpc_close_port(port);
	return finish(0);
}
