/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shows mad_fabric_counters.h: one object adds up the counters of all ports.
 *
 * Prints the counters of all ports for Prometheus, once or every SECONDS: export-counters
 * [SECONDS]. The totals go on when the fabric changes, a node restarts, or another program
 * resets counters. A total is left out while it is not known.
 */

#include "program.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_fabric_counters.h>

#include <err.h>
#include <poll.h>

#define PORT "{guid=\"0x%016" PRIx64 "\",port=\"%u\"}"

static struct mad_fabric_counters *counters;
static struct mad_fabric *fabric;
static bool failed; /* the latest attempt to read the fabric */

/* Whether the latest attempt has read the port. */
static bool is_up(const struct mad_fabric_counters_port *each)
{
	return !failed && each->is_latest && !each->error;
}

/* A total is known if the latest attempt has read its counter. */
static void print_total(unsigned counter)
{
	const struct mad_counter_info *info = mad_counters_info(counter);
	const struct mad_fabric_counters_port *each = NULL;

	printf("# TYPE infiniband_port_%s_total counter\n", info->name);
	while ((each = mad_fabric_counters_next(counters, each)))
		if (is_up(each) && each->totals &&
		    each->totals->total.present & each->reading->present &
			    MAD_COUNTER_BIT(counter))
			printf("infiniband_port_%s_total" PORT " %" PRIu64 "\n", info->name,
			       each->guid, each->number,
			       mad_counters_value(&each->totals->total, counter, NULL));
}

/* Of the ports with a link, and of those that were read once. */
static void print_up(void)
{
	const struct mad_fabric_counters_port *each = NULL;

	puts("# TYPE infiniband_port_counters_up gauge");
	while ((each = mad_fabric_counters_next(counters, each)))
		if (each->time_us || (each->port && each->port->peer))
			printf("infiniband_port_counters_up" PORT " %d\n", each->guid,
			       each->number, is_up(each));
}

static int read_fabric(struct ibmad_port *port)
{
	const struct mad_fabric_options options = {.previous = fabric, .time_limit_ms = 60000};
	struct mad_fabric *found;
	int error = mad_fabric_discover(port, &options, &found);

	if (!error)
		error = mad_fabric_counters_set_fabric(counters, found);
	mad_fabric_free(error ? found : fabric);
	fabric = error ? fabric : found;
	return error ? error : mad_fabric_counters_read(port, counters, NULL);
}

int main(int argc, char **argv)
{
	struct ibmad_port *port;
	int error, no_port = mad_port_open(NULL, 0, &port);
	unsigned pause_ms = argc > 1 ? read_ms(argv[1]) : 0;
	char text[MAD_ERROR_TEXT_SIZE];

	if (argc > 2 || (argc > 1 && !pause_ms))
		errx(2, "usage: export-counters [SECONDS]");
	counters = mad_fabric_counters_create(
		&(struct mad_fabric_counters_settings){.flags = MAD_COUNTERS_FROM_DEVICE});
	do {
		error = !no_port && counters ? read_fabric(port) : -1;
		failed = error != 0;
		if (error)
			warnx("%s", mad_failure_text(NULL, text, sizeof(text)));
		for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++)
			if (MAD_COUNTERS_DEFAULT & MAD_COUNTER_BIT(i))
				print_total(i);
		print_up();
		fflush(stdout);
	} while (port && counters && pause_ms && !ferror(stdout) &&
		 !poll(NULL, 0, (int)pause_ms));
	mad_fabric_counters_free(counters);
	mad_fabric_free(fabric);
	mad_rpc_close_port(port);
	return finish(error != 0);
}
