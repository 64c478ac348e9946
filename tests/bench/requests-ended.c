/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * requests-ended COUNT close|cancel: ends many requests in flight to nodes that do not exist,
 * by closing the port or by cancelling all. tests/bench/instructions counts the cost of a
 * request.
 */

#include <infiniband/mad_async.h>

#include <stdlib.h>
#include <string.h>

static int cancelled;

static void count_cancelled(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	(void)async;
	(void)arg;
	cancelled += reply->error == -ECANCELED;
}

int main(int argc, char **argv)
{
	const ib_rpc_t rpc = {.mgtclass = IB_SMI_CLASS,
			      .method = IB_MAD_METHOD_GET,
			      .attr = {.id = IB_ATTR_NODE_INFO},
			      .dataoffs = IB_SMP_DATA_OFFS,
			      .datasz = IB_SMP_DATA_SIZE,
			      .timeout = 600000};
	int count = argc > 2 ? atoi(argv[1]) : 0, classes[] = {IB_SMI_CLASS};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 1);
	struct mad_async *async = port ? mad_async_create(port) : NULL;

	if (!async || !count)
		return 1;
	mad_port_set(port, MAD_PORT_SMP_WINDOW, (unsigned)count);
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, (unsigned)count);
	for (int i = 0; i < count; i++) {
		ib_portid_t to = {.lid = 0x1000 + i % 0x4000};

		mad_async_submit(async, &rpc, &to, NULL, 0, count_cancelled, NULL, NULL);
	}
	if (!strcmp(argv[2], "close"))
		mad_rpc_close_port(port);
	else
		mad_async_cancel(async, MAD_ASYNC_ALL);
	mad_async_wait(async, -1);
	mad_async_free(async);
	if (strcmp(argv[2], "close"))
		mad_rpc_close_port(port);
	return cancelled != count;
}
