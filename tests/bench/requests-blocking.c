/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * requests-blocking COUNT: sends Get(NodeInfo) to a LID, one after another. All calls are those
 * of rdma-core. tests/bench/instructions counts the cost of a request.
 */

#include <infiniband/mad.h>

#include <stdlib.h>

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 0, classes[] = {IB_SMI_CLASS}, failed = 0;
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 1);
	ib_portid_t to = {.lid = 2};
	uint8_t info[IB_SMP_DATA_SIZE];

	if (!port)
		return 1;
	for (int i = 0; i < count; i++)
		failed += !smp_query_via(info, &to, IB_ATTR_NODE_INFO, 0, 0, port);
	mad_rpc_close_port(port);
	return failed != 0;
}
