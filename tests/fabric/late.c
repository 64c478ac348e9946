/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * late COUNT exit|close
 *
 * Sends COUNT requests to the port's own SMA and ends, with or without closing the handle,
 * without waiting for the responses.
 */

#include <infiniband/umad.h>
#include <stdlib.h>
#include <string.h>

static int send_node_info(int port, int agent, int tid)
{
	uint8_t umad[sizeof(struct ib_user_mad) + 256] = {0}, *mad = umad_get_mad(umad);

	mad[0] = 1;    /* base version */
	mad[1] = 0x81; /* SMPs with a directed route */
	mad[2] = 1;
	mad[3] = 1; /* Get */
	mad[15] = (uint8_t)tid;
	mad[17] = 0x11; /* NodeInfo */
	memset(mad + 32, 0xff, 4);
	umad_set_addr(umad, 0xffff, 0, 0, 0);
	return umad_send(port, agent, umad, 256, 1000, 0);
}

int main(int argc, char **argv)
{
	int port, agent;

	if (argc != 3 || (port = umad_open_port(NULL, 0)) < 0)
		return 1;
	agent = umad_register(port, 0x81, 1, 0, NULL);
	for (int i = 1; i <= atoi(argv[1]); i++)
		if (send_node_info(port, agent, i))
			return 1;
	return strcmp(argv[2], "close") ? 0 : umad_close_port(port);
}
