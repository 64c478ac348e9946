/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * requests-async COUNT: submits Get(NodeInfo) to five LIDs, all at once, and waits for them.
 * tests/bench/instructions counts the cost of a request.
 */

#include <infiniband/mad_async.h>

#include <stdlib.h>

static int completed;

static void count_response(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	(void)async;
	(void)arg;
	completed += !reply->error;
}

int main(int argc, char **argv)
{
	const ib_rpc_t rpc = {.mgtclass = IB_SMI_CLASS,
			      .method = IB_MAD_METHOD_GET,
			      .attr = {.id = IB_ATTR_NODE_INFO},
			      .dataoffs = IB_SMP_DATA_OFFS,
			      .datasz = IB_SMP_DATA_SIZE};
	int count = argc > 1 ? atoi(argv[1]) : 0, classes[] = {IB_SMI_CLASS};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 1);
	struct mad_async *async = port ? mad_async_create(port) : NULL;

	if (!async)
		return 1;
	for (int i = 0; i < count; i++) {
		ib_portid_t to = {.lid = 1 + i % 5};

		mad_async_submit(async, &rpc, &to, NULL, 0, count_response, NULL, NULL);
	}
	mad_async_wait(async, -1);
	mad_async_free(async);
	mad_rpc_close_port(port);
	return completed != count;
}
