/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Discovers the fabric and reads the error counters of all ports. Prints the ports that counted
 * errors, and what does not respond. Counters are read by LID: a subnet manager gives LIDs.
 *
 *   sweep [MILLISECONDS]      the timeout of an attempt; there are three attempts
 *
 * Exits with 0, or with 1 if something did not respond or failed.
 */

#include <infiniband/mad_counters.h>
#include <infiniband/mad_fabric.h>

#include <ctype.h>
#include <time.h>

static struct mad_counters_node **nodes; /* by the index of the node; NULL: it has failed */
static unsigned read_count, faulty_count, failed_count;

static void print_port(const struct mad_fabric_node *node, unsigned number)
{
	for (const char *at = node->description; *at; at++)
		putchar(isprint((unsigned char)*at) ? *at : '?');
	printf(" 0x%016" PRIx64 " port %u: ", node->guid, number);
}

static void print_progress(const struct mad_fabric_progress *progress, void *arg)
{
	(void)arg;
	fprintf(stderr, "\r%zu nodes, %zu links\033[K", progress->nodes, progress->links);
}

static void counters_read(struct mad_async *async, int error,
			  const struct mad_counters *counters, void *arg)
{
	const struct mad_fabric_port *port = arg;
	struct mad_counters_node **node = &nodes[port->node->index];
	bool faulty = false;

	(void)async;
	failed_count += error != 0;
	read_count += !error;
	if (error && *node) { /* once for a node */
		print_port(port->node, port->number);
		printf("counters: %s\n", strerror(-error));
		mad_counters_node_free(*node);
		*node = NULL;
	}
	for (unsigned i = 0; i < MAD_COUNTER_COUNT && !error; i++) {
		uint64_t value = mad_counters_value(counters, i);

		if (!value || !(MAD_COUNTERS_ERRORS & MAD_COUNTER_BIT(i)))
			continue;
		print_port(port->node, port->number);
		printf("%s %" PRIu64 "\n", mad_counters_info(i)->name, value);
		faulty = true;
	}
	faulty_count += faulty;
}

/* All ports of switches, and the ports of other nodes that have a link. */
static void read_counters(struct mad_async *async, const struct mad_fabric *fabric)
{
	struct mad_counters_options options = {.counters = MAD_COUNTERS_ERRORS, .basic = true};
	const struct mad_fabric_port *port = NULL;

	while ((port = mad_fabric_next_port(fabric, port))) {
		bool of_switch = port->node->type == IB_NODE_SWITCH;
		ib_portid_t to = {.lid = of_switch ? port->node->lid : port->lid};

		if (!to.lid || !port->number || (!of_switch && !port->peer))
			continue;
		if (!nodes[port->node->index])
			nodes[port->node->index] = mad_counters_node_create();
		options.node = nodes[port->node->index];
		failed_count +=
			mad_counters_submit(async, &to, port->number, &options, counters_read,
					    (void *)(uintptr_t)port) != 0;
	}
	mad_async_run(async);
}

int main(int argc, char **argv)
{
	struct mad_fabric_options options = {.progress = isatty(2) ? print_progress : NULL};
	int classes[] = {IB_SMI_DIRECT_CLASS, IB_PERFORMANCE_CLASS};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 2);
	const struct mad_fabric_failure *failure;
	struct mad_async *async;
	struct mad_fabric *fabric;
	struct timespec start, end;

	clock_gettime(CLOCK_MONOTONIC, &start);
	if (argc > 1)
		mad_port_set_timeout(port, atoi(argv[1]));
	async = mad_async_create(port);
	if (!async || mad_fabric_discover(port, &options, &fabric)) {
		fprintf(stderr, "sweep: this node does not respond\n");
		return 1;
	}
	nodes = calloc(mad_fabric_node_count(fabric), sizeof(*nodes));
	read_counters(async, fabric);
	for (size_t i = 0; (failure = mad_fabric_failure(fabric, i)); i++, failed_count++) {
		print_port(failure->behind ? failure->behind->node : failure->node,
			   failure->behind ? failure->behind->number : failure->modifier);
		printf("%s: %s\n", failure->behind ? "the node behind it" : "discovery",
		       strerror(-failure->error));
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%zu nodes, %u ports read, %u with errors, %u requests failed, %ld ms\n",
	       mad_fabric_node_count(fabric), read_count, faulty_count, failed_count,
	       (end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000);
	mad_fabric_free(fabric);
	mad_async_destroy(async);
	mad_rpc_close_port(port);
	return failed_count != 0;
}
