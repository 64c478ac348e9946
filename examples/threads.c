/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shows that any number of threads can use one port.
 *
 * Several threads use one port at once: each reads the error counters of all ports with a link
 * with blocking calls, and one thread discovers the fabric again meanwhile.
 *
 *   threads [COUNT]
 *
 * Exits with 0, or with 1 if something failed.
 */

#include "program.h"

#include <infiniband/mad_counters.h>
#include <infiniband/mad_fabric.h>

#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define MOST 64

static struct ibmad_port *port;
static struct mad_fabric *fabric; /* any number of threads may read it */
static atomic_uint read_count, failed_count;

static void *read_counters(void *arg)
{
	struct mad_counters_options options = {.counters = MAD_COUNTERS_ERRORS};
	const struct mad_fabric_port *each = NULL;
	struct mad_counters counters;

	(void)arg;
	while ((each = mad_fabric_next_port(fabric, each))) {
		ib_portid_t to = {.lid = each->gmp_lid};

		if (!each->peer)
			continue;
		if (!to.lid || mad_counters_read(port, &to, each->number, &options, &counters,
						 sizeof(counters)))
			failed_count++;
		else
			read_count++;
	}
	return NULL;
}

static void *discover_again(void *arg)
{
	struct mad_fabric *again;
	int error = mad_fabric_discover(port, NULL, &again);

	(void)arg;
	if (error)
		errx(1, "%s", strerror(-error));
	printf("%zu nodes\n", again->node_count);
	mad_fabric_free(again);
	return NULL;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? read_number(argv[1], 1, MOST) : 4, error;
	pthread_t threads[MOST];

	if (count < 0 || argc > 2)
		errx(2, "usage: threads [COUNT]");
	error = mad_port_open(NULL, 0, &port);
	error = error ? error : mad_fabric_discover(port, NULL, &fabric);
	if (error)
		errx(1, "%s", strerror(-error));
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, i ? read_counters : discover_again, NULL))
			errx(1, "no thread");
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	printf("%u ports read, %u failed\n", read_count, failed_count);
	mad_fabric_free(fabric);
	mad_rpc_close_port(port);
	return finish(failed_count != 0);
}
