/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Calls that only these libraries have: tests/bench/instructions counts the cost of one.
 *
 *   async wait COUNT     submits Get(NodeInfo) to five LIDs, all at once, and waits for them
 *   async close COUNT    ends so many requests in flight to nodes that do not exist, by
 *                        closing the port
 *   async cancel COUNT   the same by cancelling all
 *   async forget COUNT   forgets the counters of nodes that have left the fabric, one by one;
 *                        prints the number of calls
 */

#include <infiniband/mad_async.h>
#include <infiniband/mad_fabric_counters.h>
#include <infiniband/mad_fabric_text.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned ended;

static void end(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	(void)async;
	ended += reply->error == *(const int *)arg;
}

static int send_all(const char *how, unsigned count)
{
	ib_rpc_t rpc = {.mgtclass = IB_SMI_CLASS,
			.method = IB_MAD_METHOD_GET,
			.attr = {.id = IB_ATTR_NODE_INFO},
			.dataoffs = IB_SMP_DATA_OFFS,
			.datasz = IB_SMP_DATA_SIZE};
	int classes[] = {IB_SMI_CLASS}, expected = strcmp(how, "wait") ? -ECANCELED : 0;
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 1);
	struct mad_async *async = port ? mad_async_create(port) : NULL;

	if (!async)
		return 1;
	if (expected) {
		rpc.timeout = 600000;
		mad_port_set(port, MAD_PORT_SMP_WINDOW, count);
		mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, count);
	}
	for (unsigned i = 0; i < count; i++) {
		ib_portid_t to = {.lid = (int)(expected ? 0x1000 + i % 0x4000 : 1 + i % 5)};

		mad_async_submit(async, &rpc, &to, NULL, 0, end, &expected, NULL);
	}
	if (!strcmp(how, "close"))
		mad_rpc_close_port(port);
	else if (expected)
		mad_async_cancel(async, MAD_ASYNC_ALL);
	mad_async_wait(async, -1);
	mad_async_free(async);
	if (strcmp(how, "close"))
		mad_rpc_close_port(port);
	return ended != count;
}

static int forget_all(unsigned count)
{
	struct mad_fabric_counters *counters = mad_fabric_counters_create(NULL);
	struct mad_fabric *fabric = NULL;
	FILE *text = tmpfile();

	if (!text || !counters)
		return 1;
	for (unsigned i = 1; i <= count; i++)
		fprintf(text, "caguid=0x%x\nCa\t1 \"H-%016x\"\t\t# \"node\"\n\n", i, i);
	rewind(text);
	if (mad_fabric_load(text, &fabric, NULL) || fabric->node_count != count ||
	    mad_fabric_counters_set_fabric(counters, fabric) ||
	    mad_fabric_counters_set_fabric(counters, NULL))
		return 1;
	fclose(text);
	mad_fabric_free(fabric);
	for (unsigned i = 1; i <= count; i++)
		ended += !mad_fabric_counters_forget(counters, i);
	mad_fabric_counters_free(counters);
	printf("%u\n", ended);
	return ended != count;
}

int main(int argc, char **argv)
{
	unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 0;

	if (!count)
		return 2;
	return strcmp(argv[1], "forget") ? send_all(argv[1], count) : forget_all(count);
}
