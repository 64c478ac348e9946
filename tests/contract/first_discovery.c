/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A program that discovers a fabric, reads counters, and compares fabrics needs no cast. It
 * compiles in C and in C++ with all warnings.
 */

#include <infiniband/mad_counters.h>
#include <infiniband/mad_fabric_text.h>

static void counters_came(struct mad_async *async, int error,
			  const struct mad_counters *counters, void *arg)
{
	const struct mad_counter_info *info;

	(void)async;
	(void)arg;
	for (unsigned i = 0; !error && (info = mad_counters_info(i)); i++)
		if (counters->present & MAD_COUNTER_BIT(i))
			printf("%s %" PRIu64 "\n", info->name,
			       mad_counters_value(counters, i, NULL));
}

static int print_change(const struct mad_fabric_difference *difference, void *arg)
{
	(void)arg;
	printf("%d\n", difference->change);
	return 0;
}

static void print_progress(const struct mad_fabric_progress *progress, void *arg)
{
	(void)arg;
	fprintf(stderr, "%zu nodes\n", progress->nodes);
}

static void discovered(struct mad_async *async, int error, struct mad_fabric *fabric, void *arg)
{
	const struct mad_fabric_port *port = NULL;
	char text[MAD_FABRIC_PROBLEM_TEXT_SIZE];
	const struct mad_fabric_node *node;
	struct mad_counters_options options;
	ib_portid_t to;

	(void)arg;
	if (error)
		return;
	memset(&options, 0, sizeof(options));
	options.counters = MAD_COUNTERS_ERRORS | MAD_COUNTER_BIT(MAD_COUNTER_XMIT_BYTES);
	memset(&to, 0, sizeof(to));
	while ((port = mad_fabric_next_port(fabric, port))) {
		to.lid = port->gmp_lid;
		mad_counters_submit(async, &to, port->number, &options, counters_came, NULL,
				    NULL);
	}
	for (size_t i = 0; (node = mad_fabric_get_node(fabric, i)); i++)
		if (mad_fabric_get_port(node, 1))
			puts(node->description);
	for (size_t i = 0; i < fabric->problem_count; i++)
		puts(mad_fabric_problem_text(mad_fabric_get_problem(fabric, i), text,
					     sizeof(text)));
	mad_fabric_compare(fabric, fabric, print_change, NULL);
	mad_fabric_store(fabric, stdout, NULL);
	mad_fabric_free(fabric);
}

int main(void)
{
	int classes[] = {IB_SMI_DIRECT_CLASS, IB_PERFORMANCE_CLASS};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 2);
	struct mad_async *async = mad_async_create(port);
	struct mad_fabric_options options;

	memset(&options, 0, sizeof(options));
	options.read = MAD_FABRIC_READ_DEFAULT | MAD_FABRIC_READ_MLNX_EXT_PORTS;
	options.progress = print_progress;
	if (mad_fabric_submit(async, &options, discovered, NULL, NULL))
		return 1;
	mad_async_wait(async, -1);
	mad_async_free(async);
	mad_rpc_close_port(port);
	return 0;
}
