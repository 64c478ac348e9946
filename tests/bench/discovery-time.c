/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Preloaded in a program that discovers the fabric: writes the seconds of the discovery to the
 * file DISCOVERY_TIME. A discovery is a call of mad_fabric_discover(), or of libibnetdisc's
 * ibnd_discover_fabric() from its first request on: before, the latter opens the port, which
 * mad_fabric_discover() does not.
 */
#include <infiniband/mad_fabric.h>
#include <infiniband/umad.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

/* libibnetdisc's structures are not used here */
typedef void *discover_fn(char *device, int port, ib_portid_t *from, void *config);

EXPORT discover_fn ibnd_discover_fabric;
EXPORT int mad_fabric_discover(struct ibmad_port *port,
			       const struct mad_fabric_options *options,
			       struct mad_fabric **fabric);
EXPORT int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms,
		     int retries);

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* When umad_send() was called first in ibnd_discover_fabric(); or 0. */
static double first_request;

static void write_seconds(double begin)
{
	double seconds = now() - begin;
	const char *path = getenv("DISCOVERY_TIME");
	FILE *file = path ? fopen(path, "w") : NULL;

	if (!file)
		return;
	fprintf(file, "%.6f\n", seconds);
	fclose(file);
}

int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms, int retries)
{
	static __typeof__(umad_send) *next;

	if (first_request <= 0)
		first_request = now();
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "umad_send");
	return next(portid, agentid, umad, length, timeout_ms, retries);
}

int mad_fabric_discover(struct ibmad_port *port, const struct mad_fabric_options *options,
			struct mad_fabric **fabric)
{
	__typeof__(mad_fabric_discover) *next;
	double begin = now();
	int error;

	*(void **)&next = dlsym(RTLD_NEXT, "mad_fabric_discover");
	error = next(port, options, fabric);
	write_seconds(begin);
	return error;
}

void *ibnd_discover_fabric(char *device, int port, ib_portid_t *from, void *config)
{
	discover_fn *next;
	void *fabric;

	first_request = 0;
	*(void **)&next = dlsym(RTLD_NEXT, "ibnd_discover_fabric");
	fabric = next(device, port, from, config);
	write_seconds(first_request);
	return fabric;
}
