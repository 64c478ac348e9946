/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shows how a program that runs for long ends: a membership in a multicast group, a server and
 * notices on one engine, until SIGINT or SIGTERM. A second signal ends it at once.
 *
 *   service
 *
 * Exits with 0, with 1 if something failed, with 2 for wrong arguments.
 */

#include "program.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_notice.h>
#include <infiniband/mad_sa.h>
#include <infiniband/mad_server.h>

#include <err.h>
#include <errno.h>
#include <signal.h>

static struct mad_async *async;
static struct mad_membership *membership;
static struct mad_notices *notices;
static struct mad_server *server;
static bool failed;

static void stop(int number)
{
	(void)number;
	mad_async_stop(async); /* async-signal-safe */
}

static void tell(const char *who, const char *what, int error)
{
	char text[MAD_ERROR_TEXT_SIZE];

	failed |= error != 0;
	printf("%s: %s%s%s\n", who, what, error ? ": " : "",
	       error ? mad_failure_text(NULL, text, sizeof(text)) : "");
	fflush(stdout);
}

/* After its last callback an object does not exist, and to stop NULL is a no-op. */
static void membership_changed(struct mad_membership *ended,
			       const struct mad_membership_state *state, void *arg)
{
	(void)ended, (void)arg;
	tell("membership", state->kind == MAD_MEMBERSHIP_END ? "end" : "joined", state->error);
	if (state->kind == MAD_MEMBERSHIP_END)
		membership = NULL;
}

static void notice_came(struct mad_notices *ended, const struct mad_notice *notice, void *arg)
{
	(void)ended, (void)arg;
	if (notice->kind == MAD_NOTICE_SUBSCRIPTION)
		tell("notices", "subscribed", notice->error);
	if (notice->kind != MAD_NOTICE_END)
		return;
	tell("notices", "end", notice->error);
	notices = NULL;
}

static void request_came(struct mad_server *ended, struct mad_request *request, int error,
			 void *arg)
{
	(void)ended, (void)arg;
	if (request) {
		if (mad_request_respond(request, 0, NULL, 0) < 0)
			mad_request_free(request);
		return;
	}
	tell("server", "end", error);
	server = NULL;
}

static int start(void)
{
	struct umad_sa_mcmember_record group = {.qkey = 0};
	const struct mad_membership_options member = {
		.member = &group, .join_state = UMAD_SA_MCM_JOIN_STATE_FULL_MEMBER};
	const struct mad_server_options ping = {
		.mgmt_class = IB_VENDOR_OPENIB_PING_CLASS,
		.oui = IB_OPENIB_OUI,
		.methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_GET)},
	};
	int error;

	inet_pton(AF_INET6, "ff12:401b:ffff::ffff:ffff", group.mgid); /* IPoIB's broadcasts */
	error = mad_membership_start(async, &member, membership_changed, NULL, &membership);
	if (!error)
		error = mad_notices_start(async, NULL, notice_came, NULL, &notices);
	if (!error)
		error = mad_server_start(async, &ping, request_came, NULL, &server);
	return error;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = stop};
	struct ibmad_port *port;
	int error;

	(void)argv;
	if (argc > 1)
		errx(2, "usage: service");
	error = mad_port_open(NULL, 0, &port);
	if (error || !(async = mad_async_create(port)))
		errx(1, "no port, or no engine");
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	error = start();
	if (error)
		tell("service", "not started", error);
	else
		mad_async_wait(async, -1); /* until a signal */
	/* begin all ends, then wait for the last callbacks */
	mad_server_stop(server);
	mad_notices_stop(notices);
	mad_membership_stop(membership);
	mad_async_wait(async, 5000); /* a second signal ends it, too */
	mad_async_free(async);       /* makes the last callbacks that have not come */
	mad_rpc_close_port(port);
	return finish(failed);
}
