/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shows an engine in an event loop of libuv.
 *
 * An event loop of libuv: discovers the fabric every 100 ms while the loop does other work,
 * too, and prints what it found.
 *
 *   loop-uv [TIMES]
 *
 * Exits with 0, or with 1 if something failed.
 */

#include "program.h"

#include <infiniband/mad_fabric.h>

#include <err.h>
#include <errno.h>
#include <string.h>
#include <uv.h>

static int times = 3;

static void discovered(struct mad_async *async, int error, struct mad_fabric *fabric, void *arg)
{
	uv_loop_t *loop = arg;

	(void)async;
	if (error)
		errx(1, "%s", strerror(-error));
	printf("%zu nodes\n", fabric->node_count);
	mad_fabric_free(fabric);
	if (--times <= 0)
		uv_stop(loop);
}

/* Something to do for the engine. */
static void readable(uv_poll_t *poll, int status, int events)
{
	int error = mad_async_process(poll->data);

	(void)status;
	(void)events;
	if (error < 0)
		errx(1, "%s", strerror(-error));
}

static void tick(uv_timer_t *timer)
{
	int error = mad_fabric_submit(timer->data, NULL, discovered, timer->loop, NULL);

	if (error)
		errx(1, "%s", strerror(-error));
}

int main(int argc, char **argv)
{
	struct ibmad_port *port;
	struct mad_async *async = mad_port_open(NULL, 0, &port) ? NULL : mad_async_create(port);
	uv_timer_t timer = {.data = async};
	uv_poll_t poll = {.data = async};
	uv_loop_t loop;

	if (argc > 1)
		times = read_number(argv[1], 1, 1000000);
	if (times < 0 || argc > 2)
		errx(2, "usage: loop-uv [TIMES]");
	if (!async)
		err(1, "no engine");
	uv_loop_init(&loop);
	uv_poll_init(&loop, &poll, mad_async_poll_fd(async));
	uv_poll_start(&poll, UV_READABLE, readable);
	uv_timer_init(&loop, &timer);
	uv_timer_start(&timer, tick, 0, 100);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&timer, NULL);
	uv_close((uv_handle_t *)&poll, NULL); /* before the engine closes the descriptor */
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	mad_async_free(async);
	mad_rpc_close_port(port);
	return finish(0);
}
