/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shows the two calls that read a whole fabric: mad_fabric_discover() and
 * mad_fabric_counters_read().
 *
 * Discovers the fabric and reads the error counters of all ports, by LID. Prints the ports that
 * counted errors, and the problems that the discovery found. Exits with 1 if a request failed
 * or a port has no LID, with 2 if an argument is wrong.
 *
 *   sweep [MILLISECONDS]      the timeout of an attempt; there are three attempts
 *   -k M_KEY                  the M_Key of the fabric
 *   -l SECONDS                ends after this time, and prints the part that it knows
 */

#include "program.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_fabric_counters.h>
#include <infiniband/mad_fields.h>

#include <err.h>
#include <errno.h>
#include <time.h>

static unsigned row_count, failed_count, faulty_count, unknown_count, limit_ms;
static struct timespec start;

static unsigned elapsed_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned)((now.tv_sec - start.tv_sec) * 1000 +
			  (now.tv_nsec - start.tv_nsec) / 1000000);
}

/* The rest of the time, at least a millisecond; 0: no limit. */
static unsigned left_ms(void)
{
	unsigned elapsed = elapsed_ms();

	return !limit_ms || elapsed < limit_ms ? limit_ms - elapsed * !!limit_ms : 1;
}

static void begin_row(const struct mad_fabric_node *node, unsigned port)
{
	char name[sizeof(node->description)];
	int width = 28;

	mad_printable_text(node->description, name, sizeof(name));
	if (!row_count++)
		printf("%-*s %-18s port\n", width, "node", "GUID");
	printf("%-*s 0x%016" PRIx64 " %4.0u  ", width, name, node->guid, port);
}

static void print_progress(const struct mad_fabric_progress *progress, void *arg)
{
	(void)arg;
	fprintf(stderr, "\r%zu nodes, %zu links\033[K", progress->nodes, progress->links);
}

/* Whether the reading left out a port with counters, because it has no LID. */
static bool lacks_lid(const struct mad_fabric_counters_port *each)
{
	const struct mad_fabric_port *port = each->port;

	if (each->is_latest || port->gmp_lid)
		return false;
	return port->node->type == IB_NODE_SWITCH ? port->number || port->node->enhanced_port0
						  : port->state != MAD_PORT_DOWN;
}

static void print_port(const struct mad_fabric_counters_port *port)
{
	static uint64_t silent; /* the other ports of such a node were not requested */
	unsigned faults = 0;

	for (unsigned i = 0; port->reading && i < MAD_COUNTER_COUNT; i++)
		faults += mad_counters_value(port->reading, i, NULL) != 0;
	if (!port->is_latest || (!port->error && !faults) ||
	    (port->error == -ETIMEDOUT && silent == port->guid))
		return;
	silent = port->error == -ETIMEDOUT ? port->guid : 0;
	begin_row(port->port->node, port->number);
	for (unsigned i = 0; faults && i < MAD_COUNTER_COUNT; i++)
		if (mad_counters_value(port->reading, i, NULL))
			printf("%s %" PRIu64 "  ", mad_counters_info(i)->name,
			       mad_counters_value(port->reading, i, NULL));
	puts(port->error ? strerror(-port->error) : "");
	failed_count += port->error != 0;
	faulty_count += faults != 0;
}

static void print_problems(const struct mad_fabric *fabric)
{
	const struct mad_fabric_problem *problem;
	char text[MAD_FABRIC_PROBLEM_TEXT_SIZE];

	for (size_t i = 0; (problem = mad_fabric_get_problem(fabric, i)); i++) {
		puts(mad_fabric_problem_text(problem, text, sizeof(text)));
		failed_count += problem->error != 0;
	}
}

int main(int argc, char **argv)
{
	struct mad_fabric_options discovery = {.progress = isatty(2) ? print_progress : NULL,
					       .partial = true};
	struct mad_fabric_counters_options options = {.counters = MAD_COUNTERS_ERRORS,
						      .basic = true};
	int option, error;
	struct mad_fabric_counters *counters = mad_fabric_counters_create(NULL);
	const struct mad_fabric_counters_port *each = NULL;
	char text[MAD_ERROR_TEXT_SIZE];
	struct mad_fabric *fabric;
	struct ibmad_port *port;
	int timeout = 0;
	bool valid = true;

	while ((option = getopt(argc, argv, "k:l:")) != -1)
		valid &= option == 'k'   ? read_m_key(optarg, &discovery.m_key)
			 : option == 'l' ? (limit_ms = read_ms(optarg)) != 0
					 : false;
	if (optind < argc)
		timeout = read_number(argv[optind++], 1, 1000000);
	if (!valid || timeout < 0 || optind < argc)
		errx(2, "usage: sweep [-k M_KEY] [-l SECONDS] [MILLISECONDS]");
	if (mad_port_open(NULL, 0, &port) || !counters)
		errx(1, "%s", mad_failure_text(NULL, text, sizeof(text)));
	if (timeout)
		mad_rpc_set_timeout(port, timeout);
	clock_gettime(CLOCK_MONOTONIC, &start);
	discovery.time_limit_ms = limit_ms;
	error = mad_fabric_discover(port, &discovery, &fabric);
	fputs(discovery.progress ? "\r\033[K" : "", stderr);
	if (!error)
		error = mad_fabric_counters_set_fabric(counters, fabric);
	options.time_limit_ms = left_ms();
	if (!error)
		error = mad_fabric_counters_read(port, counters, &options);
	if (error)
		warnx("%s", mad_failure_text(NULL, text, sizeof(text)));
	while ((each = mad_fabric_counters_next(counters, each))) {
		print_port(each);
		unknown_count += lacks_lid(each);
	}
	print_problems(fabric);
	if (unknown_count)
		warnx("%u ports have no LID: their counters were not read", unknown_count);
	printf("%zu nodes, %zu ports read, %u with errors, %u requests failed, %u ms\n",
	       fabric ? fabric->node_count : 0, counters->latest->read, faulty_count,
	       failed_count, elapsed_ms());
	mad_fabric_counters_free(counters);
	mad_fabric_free(fabric);
	mad_rpc_close_port(port);
	return finish(error || failed_count || unknown_count);
}
