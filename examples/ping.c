/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Asks a program on another host whether it is there, and how long that takes: a request of a
 * vendor's class, of which both sides agree what it means. It is that of ibping, so either side
 * may be that program.
 *
 *   ping -s NAME        the server: answers with its name till it gets a SIGINT or SIGTERM
 *   ping LID [COUNT]    the client: asks the server at that LID
 *
 * Exits with 0, with 1 where something failed or stayed unanswered, with 2 where the arguments
 * make no sense.
 */

#include <infiniband/mad.h>
#include <infiniband/umad.h>

#include <errno.h>
#include <signal.h>
#include <time.h>

#define CLASS         IB_VENDOR_OPENIB_PING_CLASS
#define OUI           IB_OPENIB_OUI
#define LOOK_UP_MS    500
#define BITS_PER_LONG (8 * sizeof(long))

static volatile sig_atomic_t stopped;

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

/* --- the server ----------------------------------------------------------------- */

static int answer(struct ibmad_port *port, void *umad, const char *name)
{
	uint8_t *data = (uint8_t *)umad_get_mad(umad) + IB_VENDOR_RANGE2_DATA_OFFS;

	snprintf((char *)data, IB_VENDOR_RANGE2_DATA_SIZE, "%s", name);
	if (!mad_respond_via(umad, NULL, 0, port))
		return 0;
	perror("mad_respond_via"); /* this one; the next may go well */
	return 1;
}

static int serve(const char *name)
{
	long methods[16 / sizeof(long)] = {0};
	struct sigaction action = {.sa_handler = stop};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, NULL, 0);
	unsigned count = 0;
	void *umad;

	/* Without SA_RESTART: a signal ends the wait for a request. */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	methods[IB_MAD_METHOD_GET / BITS_PER_LONG] = 1L << IB_MAD_METHOD_GET % BITS_PER_LONG;
	if (!port || mad_register_server_via(CLASS, 0, methods, OUI, port) < 0) {
		perror("mad_register_server_via");
		return 1;
	}
	printf("%s answers\n", name);
	fflush(stdout);
	while (!stopped) {
		umad = mad_receive_via(NULL, LOOK_UP_MS, port);
		if (umad) {
			count += !answer(port, umad, name);
			mad_free(umad);
		} else if (errno != ETIMEDOUT && errno != EINTR) {
			perror("mad_receive_via");
			break;
		}
	}
	printf("%s answered %u requests\n", name, count);
	mad_rpc_close_port(port);
	return !stopped;
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
	char data[IB_VENDOR_RANGE2_DATA_SIZE] = {0};
	double start = now_us();

	if (!ib_vendor_call_via(data, to, &call, port)) {
		printf("LID %d: %s\n", to->lid, strerror(errno));
		return 1;
	}
	printf("LID %d is %.*s, %.0f us\n", to->lid, (int)sizeof(data), data, now_us() - start);
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
	int lid = argc > 1 ? atoi(argv[1]) : 0, count = argc > 2 ? atoi(argv[2]) : 1;

	if (argc == 3 && !strcmp(argv[1], "-s"))
		return serve(argv[2]);
	if ((argc == 2 || argc == 3) && IB_LID_VALID(lid) && count > 0)
		return ping(lid, count);
	fprintf(stderr, "usage: ping -s NAME\n       ping LID [COUNT]\n");
	return 2;
}
