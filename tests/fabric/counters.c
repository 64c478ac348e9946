/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * counters ROUNDS RATE TIME_LIMIT_MS [COMMAND]
 *
 * Discovers the fabric, runs a command by sh, and reads the counters of all ports, in each
 * round; RATE is the number of requests a second while it reads, or 0. Prints how each reading
 * ended and what it had, and at the end the events. Exits with 1 if a total falls, differs from
 * that of a tracker of the port's own, or grows faster than a link.
 */

#include <infiniband/mad_fabric_counters.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PORTS         1000
/* of 4x HDR, with a tenth for the times of responses */
#define FASTEST_BYTES (1.1 * 200e9 / 8)

static struct followed {
	uint64_t guid;
	unsigned number;
	uint64_t totals[MAD_COUNTER_COUNT];
	struct mad_counters_tracker *tracker;
} followed[PORTS];
static unsigned count, wrong;

static struct followed *find(const struct mad_fabric_counters_port *port)
{
	for (unsigned i = 0; i < count; i++)
		if (followed[i].guid == port->guid && followed[i].number == port->number)
			return &followed[i];
	if (count == PORTS)
		exit(2);
	followed[count].guid = port->guid;
	followed[count].number = port->number;
	followed[count].tracker = mad_counters_tracker_create(0);
	return followed[count].tracker ? &followed[count++] : NULL;
}

static void complain(const struct mad_fabric_counters_port *port, const char *what,
		     unsigned counter)
{
	printf("WRONG: 0x%016" PRIx64 "/%u: %s: %s\n", port->guid, port->number, what,
	       mad_counters_info(counter)->name);
	wrong++;
}

static void follow(const struct mad_fabric_counters_port *port)
{
	struct followed *known = find(port);
	const struct mad_counters_totals *own;

	if (!known)
		exit(2);
	if (port->is_latest && !port->error)
		mad_counters_tracker_add(known->tracker, port->reading);
	own = mad_counters_tracker_totals(known->tracker);
	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++) {
		uint64_t total = mad_counters_value(&port->totals->total, i, NULL);

		if (total < known->totals[i])
			complain(port, "the total falls", i);
		if (total != mad_counters_value(&own->total, i, NULL))
			complain(port, "another total", i);
		if (i <= MAD_COUNTER_RCV_BYTES &&
		    mad_counters_tracker_rate(port->tracker, i, MAD_RATE_LATEST) >
			    FASTEST_BYTES)
			complain(port, "too fast", i);
		known->totals[i] = total;
	}
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Returns the error of the reading. */
static int read_once(struct ibmad_port *port, struct mad_fabric_counters *counters,
		     const struct mad_fabric_counters_options *options, const char *command,
		     unsigned rate)
{
	const struct mad_fabric_counters_summary *latest = counters->latest;
	double start;
	int error;

	if (command && system(command) != 0)
		exit(2);
	start = seconds();
	mad_port_set(port, MAD_PORT_RATE, rate);
	error = mad_fabric_counters_read(port, counters, options);
	mad_port_set(port, MAD_PORT_RATE, 0);
	printf("read %zu of %zu ports: %s after %.3f s\n", latest->read, latest->wanted,
	       error ? strerror(-error) : "success", seconds() - start);
	fflush(stdout);
	return error;
}

int main(int argc, char **argv)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_PERFORMANCE_CLASS}, error = 0;
	struct mad_fabric_counters *counters = mad_fabric_counters_create(NULL);
	const struct mad_fabric_options discovery = {.partial = true};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 3);
	struct mad_fabric_counters_options options = {.check_guid = true};
	const struct mad_fabric_counters_port *each = NULL;
	struct mad_fabric *fabric, *former = NULL;
	uint64_t restarts = 0, resets = 0, readings = 0;

	if (argc < 4 || !port || !counters)
		return 2;
	options.time_limit_ms = (unsigned)atoi(argv[3]);
	mad_rpc_set_timeout(port, 50);
	for (int round = 0; round < atoi(argv[1]); round++) {
		if (mad_fabric_discover(port, &discovery, &fabric) && !fabric)
			return 2;
		if (mad_fabric_counters_set_fabric(counters, fabric))
			return 2;
		mad_fabric_free(former);
		former = fabric;
		error = read_once(port, counters, &options, argv[4], (unsigned)atoi(argv[2]));
		while ((each = mad_fabric_counters_next(counters, each)))
			if (each->totals && fabric->port_count < PORTS)
				follow(each);
	}
	while ((each = mad_fabric_counters_next(counters, each))) {
		restarts += each->totals ? each->totals->restarts : 0;
		resets += each->totals ? each->totals->resets : 0;
		readings += each->totals ? each->totals->readings : 0;
	}
	printf("%" PRIu64 " readings, %" PRIu64 " restarts, %" PRIu64 " resets\n", readings,
	       restarts, resets);
	for (unsigned i = 0; i < count; i++)
		mad_counters_tracker_free(followed[i].tracker);
	mad_fabric_counters_free(counters);
	mad_fabric_free(former);
	mad_rpc_close_port(port);
	return wrong || error;
}
