/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shows mad_notice.h: notices of the fabric as they come, until a signal ends the program.
 *
 * Prints the traps of the fabric and the changes of the local port as they come, a line each.
 * The subnet administrator reports the traps to this program.
 *
 *   watch [CHECK [TRAP ...]]    checks each CHECK seconds, 5 by default, whether the SA has
 *                               forgotten the subscription, and subscribes to the traps with
 *                               these numbers only
 *
 * A SIGINT (Ctrl-C) or SIGTERM ends it: it undoes its subscription then. Exits with 0; with 1
 * if something failed; with 2 if the arguments are wrong.
 */

#include "program.h"

#include <infiniband/mad_notice.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>

#define TRAPS_MOST 16

static struct mad_async *async;

/* The end of the notices. It comes in mad_async_free() after a second signal. */
static struct {
	bool came;
	int error;
} end;

static void stop(int number)
{
	(void)number;
	mad_async_stop(async);
}

static void tell(struct mad_notices *notices, const struct mad_notice *notice, void *arg)
{
	char line[MAD_NOTICE_TEXT_SIZE];

	(void)notices;
	(void)arg;
	printf("%s\n", mad_notice_text(notice, line, sizeof(line)));
	if (fflush(stdout))
		mad_async_stop(async);
	if (notice->kind == MAD_NOTICE_END) {
		end.came = true;
		end.error = notice->error;
	}
}

static int watch(const struct mad_notices_options *options)
{
	struct mad_notices *notices;
	int error = mad_notices_start(async, options, tell, NULL, &notices);

	if (error) {
		fprintf(stderr, "no subscription: %s\n",
			error == -EADDRINUSE ? "another program on this port has one"
					     : strerror(-error));
		return 1;
	}
	if (mad_async_wait(async, -1) == -EINTR && !end.came) { /* a signal */
		mad_notices_stop(notices);
		mad_async_wait(async,
			       -1); /* until the subscription is undone, or another signal */
	}
	return end.error != 0;
}

/* A filter for each trap; how many, or -1. Without any there is no filter, and all traps come.
 */
static int read_filters(char **traps, struct mad_notice_filter filters[TRAPS_MOST])
{
	int count = 0;

	for (; *traps; traps++) {
		int trap = read_number(*traps, 0, 0xffff);

		if (trap < 0 || count == TRAPS_MOST)
			return -1;
		filters[count++] = (struct mad_notice_filter){.by = MAD_NOTICE_BY_TRAP,
							      .trap = (unsigned)trap};
	}
	return count;
}

int main(int argc, char **argv)
{
	int classes[] = {IB_SMI_DIRECT_CLASS, IB_SA_CLASS};
	struct sigaction action = {.sa_handler = stop};
	struct mad_notice_filter filters[TRAPS_MOST];
	struct mad_notices_options options = {.filters = filters};
	unsigned check_ms = argc > 1 ? read_ms(argv[1]) : 5000;
	int failed, count = argc > 2 ? read_filters(argv + 2, filters) : 0;
	struct ibmad_port *port;

	if (!check_ms || check_ms > 86400000 || count < 0) {
		fprintf(stderr, "usage: watch [CHECK [TRAP ...]]\n");
		return 2;
	}
	options.check_ms = check_ms;
	options.filter_count = (unsigned)count;
	port = mad_rpc_open_port(NULL, 0, classes, 2);
	async = port ? mad_async_create(port) : NULL;
	if (!async) {
		perror("mad_rpc_open_port");
		return 1;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	failed = watch(&options);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	mad_async_free(async);
	mad_rpc_close_port(port);
	return finish(failed);
}
