/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shows both sides of a class of its own: a server on an engine (mad_server.h), and a client.
 *
 * Tests whether a program on another host responds, and how long that takes. The request is of
 * a vendor's class, that of ibping: either side may be ibping.
 *
 *   ping -s NAME        the server: responds with its name until it gets a SIGINT or SIGTERM
 *   ping LID [COUNT]    the client: sends requests to the server at that LID
 *
 * Exits with 0; with 1 if something failed or a request got no response; with 2 if the
 * arguments are wrong.
 */

#include "program.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_fields.h>
#include <infiniband/mad_server.h>

#include <limits.h>
#include <signal.h>
#include <time.h>

#define CLASS IB_VENDOR_OPENIB_PING_CLASS
#define OUI   IB_OPENIB_OUI

static struct mad_async *async;

static void stop(int number)
{
	(void)number;
	mad_async_stop(async);
}

/* --- the server ----------------------------------------------------------------- */

struct service {
	struct mad_server *server; /* NULL: it has ended */
	const char *name;
	unsigned count;
	int error; /* why it has ended */
};

/* The callback of the server. */
static void respond(struct mad_server *server, struct mad_request *request, int error,
		    void *arg)
{
	struct service *service = arg;
	char text[MAD_ERROR_TEXT_SIZE];

	(void)server;
	if (!request) { /* the last callback */
		service->server = NULL;
		service->error = error;
	} else if (!mad_request_respond(request, 0, service->name, strlen(service->name))) {
		service->count++;
	} else {
		fprintf(stderr, "LID %d gets no response: %s\n", request->from.lid,
			mad_failure_text(NULL, text, sizeof(text)));
		mad_request_free(request);
	}
}

/* Until a signal comes, or the device is gone. */
static void serve_all(struct service *service)
{
	struct sigaction action = {.sa_handler = stop};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	mad_async_wait(async, -1);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	mad_server_stop(service->server);
	mad_async_wait(async, -1); /* until the last callback */
}

static int serve(const char *name)
{
	const struct mad_server_options options = {
		.mgmt_class = CLASS,
		.oui = OUI,
		.methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_GET)},
	};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, NULL, 0);
	struct service service = {.name = name};
	char text[MAD_ERROR_TEXT_SIZE];

	async = port ? mad_async_create(port) : NULL;
	if (!async) {
		perror("mad_rpc_open_port");
		return 1;
	}
	service.error = mad_server_start(async, &options, respond, &service, &service.server);
	if (!service.error) {
		printf("%s serves\n", name);
		fflush(stdout);
		serve_all(&service);
	}
	if (service.error)
		fprintf(stderr, "%s\n", mad_failure_text(NULL, text, sizeof(text)));
	printf("%s responded to %u requests\n", name, service.count);
	mad_async_free(async);
	mad_rpc_close_port(port);
	return service.error != 0;
}

/* --- the client ----------------------------------------------------------------- */

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static int ask(struct ibmad_port *port, ib_portid_t *to)
{
	ib_vendor_call_t call = {
		.method = IB_MAD_METHOD_GET,
		.mgmt_class = CLASS,
		.oui = OUI,
	};
	char data[IB_VENDOR_RANGE2_DATA_SIZE + 1] = {0}, text[MAD_ERROR_TEXT_SIZE];
	double start = now_us();

	if (!ib_vendor_call_via(data, to, &call, port)) {
		printf("LID %d: %s\n", to->lid, mad_failure_text(NULL, text, sizeof(text)));
		return 1;
	}
	/* another node's text: without bytes that control a terminal */
	mad_printable_text(data, data, sizeof(data));
	printf("LID %d is %s, %.0f us\n", to->lid, data, now_us() - start);
	return 0;
}

static int ping(int lid, int count)
{
	int class = CLASS, failed = 0;
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, &class, 1);
	ib_portid_t to = {.lid = lid};

	if (!port) {
		perror("mad_rpc_open_port");
		return 1;
	}
	for (int i = 0; i < count; i++)
		failed |= ask(port, &to);
	mad_rpc_close_port(port);
	return failed;
}

int main(int argc, char **argv)
{
	int lid = argc > 1 ? read_number(argv[1], 1, UINT16_MAX) : -1;
	int count = argc > 2 ? read_number(argv[2], 1, INT_MAX) : 1;

	if (argc == 3 && !strcmp(argv[1], "-s"))
		return finish(serve(argv[2]));
	if ((argc == 2 || argc == 3) && IB_LID_VALID(lid) && count > 0)
		return finish(ping(lid, count));
	fprintf(stderr, "usage: ping -s NAME\n       ping LID [COUNT]\n");
	return 2;
}
