/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Counters of a port, for tests/differential/counters.
 *
 *   counters fill LID PORT BITS SEED   sets each counter to a number of up to so many bits
 *   counters print LID PORT            prints what mad_counters_read() reads, a line for each:
 *                                      the field's name and the number on the wire
 *   counters requests LID COUNT        reads ports 1 to COUNT at once; prints how many MADs
 * that took
 */

#include <infiniband/mad_counters.h>
#include <infiniband/mad_fields.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define SPEEDS_BITS 5

static struct ibmad_port *port;
static ib_portid_t node;

static int fail(const char *what, int error)
{
	fprintf(stderr, "%s: %s\n", what, strerror(-error));
	return 1;
}

/* Random values for the fields of an attribute that are numbers, without the selects. */
static bool fill_attribute(const char *name, unsigned id, unsigned number, unsigned bits)
{
	ib_rpc_t rpc = {.mgtclass = IB_PERFORMANCE_CLASS,
			.method = IB_MAD_METHOD_SET,
			.attr.id = id,
			.dataoffs = IB_PC_DATA_OFFS,
			.datasz = IB_PC_DATA_SZ};
	uint8_t data[IB_PC_DATA_SZ] = {0};
	enum MAD_FIELDS field = IB_NO_FIELD;
	ib_portid_t to = node;

	while ((field = mad_field_next(name, field)) != IB_NO_FIELD) {
		uint64_t value = ((uint64_t)random() << 31 | (uint64_t)random()) &
				 ((UINT64_C(1) << bits) - 1);

		if (strstr(mad_field_name(field), "Select"))
			value = UINT64_MAX;
		mad_set_field64(data, 0, field, value);
	}
	mad_set_field(data, 0, IB_PC_PORT_SELECT_F, number);
	to.qp = 1;
	to.qkey = IB_DEFAULT_QP1_QKEY;
	return mad_rpc(port, &rpc, &to, data, data) != NULL;
}

static int fill(unsigned number, unsigned bits)
{
	bool extended =
		fill_attribute("PortCountersExtended", IB_GSI_PORT_COUNTERS_EXT, number, bits);

	/* an older agent has only these */
	if (!fill_attribute("PortCounters", IB_GSI_PORT_COUNTERS, number, bits))
		return fail("PortCounters", -errno);
	fill_attribute("PortRcvErrorDetails", IB_GSI_PORT_RCV_ERROR_DETAILS, number, bits);
	fill_attribute("PortXmitDiscardDetails", IB_GSI_PORT_XMIT_DISCARD_DETAILS, number,
		       bits);
	/* perfquery's output of this attribute ends early if the numbers are long */
	fill_attribute("PortExtendedSpeedsCounters", IB_GSI_PORT_EXT_SPEEDS_COUNTERS, number,
		       bits < SPEEDS_BITS ? bits : SPEEDS_BITS);
	/* read again, because both attributes show the same counters */
	if (extended)
		fill_attribute("PortCountersExtended", IB_GSI_PORT_COUNTERS_EXT, number, bits);
	return 0;
}

static int print(unsigned number)
{
	struct mad_counters_options options = {.counters = MAD_COUNTERS_ALL};
	const struct mad_counter_info *info;
	struct mad_counters counters;
	int error =
		mad_counters_read(port, &node, number, &options, &counters, sizeof(counters));

	if (error)
		return fail("mad_counters_read", error);
	for (unsigned i = 0; (info = mad_counters_info(i)); i++)
		if (counters.present & MAD_COUNTER_BIT(i))
			printf("%s %" PRIu64 "\n", info->field,
			       mad_counters_value(&counters, i, NULL) / info->multiplier);
	return 0;
}

static unsigned failed;

static void came(struct mad_async *async, int error, const struct mad_counters *counters,
		 void *arg)
{
	(void)async;
	(void)arg;
	failed += error || !counters->present;
}

static int count_requests(unsigned ports)
{
	struct mad_counters_options options = {.node = mad_counters_node_create()};
	struct mad_async *async = mad_async_create(port);
	struct mad_async_stats stats;

	for (unsigned i = 1; i <= ports; i++) {
		int error = mad_counters_submit(async, &node, i, &options, came, NULL, NULL);

		if (error)
			return fail("mad_counters_submit", error);
	}
	mad_async_wait(async, -1);
	mad_async_get_stats(async, &stats, sizeof(stats));
	printf("%" PRIu64 "\n", stats.submitted);
	mad_async_free(async);
	mad_counters_node_free(options.node);
	return failed != 0;
}

int main(int argc, char **argv)
{
	int classes[] = {IB_PERFORMANCE_CLASS};
	unsigned number;

	if (argc < 4 || (!strcmp(argv[1], "fill") && argc != 6)) {
		fprintf(stderr, "usage: counters fill|print|requests LID PORT [BITS SEED]\n");
		return 2;
	}
	node.lid = atoi(argv[2]);
	number = (unsigned)atoi(argv[3]);
	port = mad_rpc_open_port(NULL, 0, classes, 1);
	if (!port)
		return fail("mad_rpc_open_port", -errno);
	if (!strcmp(argv[1], "fill")) {
		srandom((unsigned)atoi(argv[5]));
		return fill(number, (unsigned)atoi(argv[4]));
	}
	return strcmp(argv[1], "print") ? count_requests(number) : print(number);
}
