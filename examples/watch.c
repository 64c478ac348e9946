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

#include <infiniband/mad_errors.h>
#include <infiniband/mad_notice.h>

#include <signal.h>

#define TRAPS_MOST 16

static struct mad_async *async;
static struct mad_notices *notices; /* NULL: they have ended */
static int end_error;

static void stop(int number)
{
	(void)number;
	mad_async_stop(async);
}

static void tell(struct mad_notices *from, const struct mad_notice *notice, void *arg)
{
	char line[MAD_NOTICE_TEXT_SIZE];

	(void)from;
	(void)arg;
	printf("%s\n", mad_notice_text(notice, line, sizeof(line)));
	if (fflush(stdout))
		mad_async_stop(async);
	if (notice->kind == MAD_NOTICE_END) {
		notices = NULL;
		end_error = notice->error;
	}
}

static int watch(const struct mad_notices_options *options)
{
	char text[MAD_ERROR_TEXT_SIZE];

	if (mad_notices_start(async, options, tell, NULL, &notices)) {
		fprintf(stderr, "no subscription: %s\n",
			mad_failure_text(NULL, text, sizeof(text)));
		return 1;
	}
	mad_async_wait(async, -1); /* until a signal */
	mad_notices_stop(notices);
	mad_async_wait(async, -1); /* until the subscription is undone, or another signal */
	return end_error != 0;
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
	async = mad_port_open(NULL, 0, &port) ? NULL : mad_async_create(port);
	if (!async) {
		perror("mad_port_open");
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
