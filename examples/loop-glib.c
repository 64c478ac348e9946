/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shows an engine in an event loop of GLib.
 *
 * An event loop of GLib: discovers the fabric every 100 ms while the loop does other work, too,
 * and prints what it found.
 *
 *   loop-glib [TIMES]
 *
 * Exits with 0, or with 1 if something failed.
 */

#include "program.h"

#include <infiniband/mad_fabric.h>

#include <err.h>
#include <errno.h>
#include <glib-unix.h>
#include <string.h>

static int times = 3;
static GMainLoop *loop;

static void discovered(struct mad_async *async, int error, struct mad_fabric *fabric, void *arg)
{
	(void)async;
	(void)arg;
	if (error)
		errx(1, "%s", strerror(-error));
	printf("%zu nodes\n", fabric->node_count);
	mad_fabric_free(fabric);
	if (--times <= 0)
		g_main_loop_quit(loop);
}

/* Something to do for the engine. */
static gboolean readable(gint fd, GIOCondition condition, gpointer async)
{
	int error = mad_async_process(async);

	(void)fd;
	(void)condition;
	if (error < 0)
		errx(1, "%s", strerror(-error));
	return G_SOURCE_CONTINUE;
}

static gboolean tick(gpointer async)
{
	int error = mad_fabric_submit(async, NULL, discovered, NULL, NULL);

	if (error)
		errx(1, "%s", strerror(-error));
	return G_SOURCE_CONTINUE;
}

int main(int argc, char **argv)
{
	struct ibmad_port *port;
	struct mad_async *async = mad_port_open(NULL, 0, &port) ? NULL : mad_async_create(port);
	guint engine, timer;

	if (argc > 1)
		times = read_number(argv[1], 1, 1000000);
	if (times < 0 || argc > 2)
		errx(2, "usage: loop-glib [TIMES]");
	if (!async)
		err(1, "no engine");
	loop = g_main_loop_new(NULL, FALSE);
	engine = g_unix_fd_add(mad_async_poll_fd(async), G_IO_IN, readable, async);
	timer = g_timeout_add(100, tick, async);
	g_main_loop_run(loop);
	g_source_remove(timer);
	g_source_remove(engine); /* before the engine closes the descriptor */
	g_main_loop_unref(loop);
	mad_async_free(async);
	mad_rpc_close_port(port);
	return finish(0);
}
