/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Discovers the fabric and reads the error counters of all ports, by LID. Prints the ports that
 * counted errors, the nodes that do not respond, and contradictions in responses. Exits with 1
 * if a request failed.
 *
 *   sweep [MILLISECONDS]      the timeout of an attempt; there are three attempts
 */

#include <infiniband/mad_counters.h>
#include <infiniband/mad_fabric.h>
#include <infiniband/mad_fields.h>

#include <err.h>
#include <errno.h>
#include <time.h>

static struct mad_fabric *fabric;
static unsigned row_count, read_count, faulty_count, failed_count;

/* Port 0 is the node as a whole. */
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

static mad_counters_fn came;

/* Of a switch all ports, of other nodes those that have a link. */
static void read_port(struct mad_async *async, const struct mad_fabric_port *port)
{
	struct mad_counters_options options = {.counters = MAD_COUNTERS_ERRORS, .basic = true};
	ib_portid_t to = {.lid = mad_fabric_port_lid(fabric, port)};

	if (to.lid)
		failed_count += mad_counters_submit(async, &to, port->number, &options, came,
						    (void *)(uintptr_t)port, NULL) != 0;
}

static void came(struct mad_async *async, int error, const struct mad_counters *counters,
		 void *arg)
{
	const struct mad_fabric_port *port = arg;
	const struct mad_fabric_port *next = mad_fabric_port(port->node, port->number + 1u);
	unsigned faults = 0;

	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++)
		faults += mad_counters_value(counters, i) != 0;
	if (error || faults) {
		begin_row(port->node, port->number);
		for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++)
			if (mad_counters_value(counters, i))
				printf("%s %" PRIu64 "  ", mad_counters_info(i)->name,
				       mad_counters_value(counters, i));
		puts(error ? strerror(-error) : "");
	}
	failed_count += error != 0;
	read_count += !error;
	faulty_count += faults != 0;
	if (next && port->node->type == IB_NODE_SWITCH && (!error || port->number > 1))
		read_port(async, next);
}

int main(int argc, char **argv)
{
	struct mad_fabric_options options = {.progress = isatty(2) ? print_progress : NULL};
	int classes[] = {IB_SMI_DIRECT_CLASS, IB_PERFORMANCE_CLASS}, error;
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 2);
	struct mad_async *async = port ? mad_async_create(port) : NULL;
	const struct mad_fabric_failure *failure;
	const struct mad_fabric_oddity *odd;
	const struct mad_fabric_port *each = NULL;
	struct timespec start, end;

	if (argc > 1 && port)
		mad_port_set_timeout(port, atoi(argv[1]));
	clock_gettime(CLOCK_MONOTONIC, &start);
	error = async ? mad_fabric_discover(port, &options, &fabric) : -errno;
	fputs(options.progress ? "\r\033[K" : "", stderr);
	if (error)
		errx(1, "%s", strerror(-error));
	/* of a switch one after the other, which takes less memory, if the first responds */
	while ((each = mad_fabric_next_port(fabric, each)))
		if (each->node->type != IB_NODE_SWITCH || each->number == 1)
			read_port(async, each);
	mad_async_run(async);
	for (size_t i = 0; (failure = mad_fabric_failure(fabric, i)); i++, failed_count++) {
		begin_row(failure->behind ? failure->behind->node : failure->node,
			  failure->behind ? failure->behind->number : failure->modifier);
		printf("%s: %s\n", failure->behind ? "the node behind it" : "discovery",
		       strerror(-failure->error));
	}
	for (size_t i = 0; (odd = mad_fabric_oddity(fabric, i)); i++) {
		begin_row(odd->node, odd->port ? odd->port->number : 0);
		puts(mad_fabric_oddity_text(odd->kind));
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%zu nodes, %u ports read, %u with errors, %u requests failed, %.0f ms\n",
	       mad_fabric_node_count(fabric), read_count, faulty_count, failed_count,
	       1e3 * difftime(end.tv_sec, start.tv_sec) +
		       (double)(end.tv_nsec - start.tv_nsec) / 1e6);
	mad_fabric_free(fabric);
	mad_async_destroy(async);
	mad_rpc_close_port(port);
	return failed_count != 0;
}
