/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * hooked COUNT
 *
 * Reads NodeInfo of LID 1 COUNT times, with a packet hook. Prints how many packets the hook was
 * called for; then removes the hook and reads once more.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#include <infiniband/mad.h>
#include <infiniband/umad_ext.h>

static void count_packet(const struct umad_packet_info *packet, void *user)
{
	int *packets = user;

	if (packet->length == 256)
		++*packets;
}

int main(int argc, char **argv)
{
	int classes[] = {IB_SMI_CLASS}, packets = 0, count = argc == 2 ? atoi(argv[1]) : 0;
	struct ibmad_port *port;
	uint8_t data[IB_SMP_DATA_SIZE];

	umad_set_packet_hook(count_packet, &packets);
	port = mad_rpc_open_port(NULL, 0, classes, 1);
	if (!port)
		err(1, "mad_rpc_open_port");
	for (int i = 0; i <= count; i++) {
		if (i == count) {
			printf("%d\n", packets);
			umad_set_packet_hook(NULL, NULL);
			packets = 0;
		}
		if (!smp_query_via(data, &(ib_portid_t){.lid = 1}, IB_ATTR_NODE_INFO, 0, 0,
				   port))
			err(1, "smp_query_via");
	}
	mad_rpc_close_port(port);
	return packets != 0;
}
