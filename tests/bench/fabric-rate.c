/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * fabric-rate WINDOW COUNT [LID]: prints the number of responses to Get(NodeInfo) a second with
 * WINDOW requests in flight. Without a LID the destination is the node's own SMA, by a directed
 * route of no hops.
 */
#include <infiniband/umad.h>

#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAD_BYTES 256

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int send_one(int port, int agent, uint8_t class, uint16_t lid, uint32_t tid)
{
	uint64_t buffer[(sizeof(struct ib_user_mad) + MAD_BYTES) / 8] = {0};
	uint8_t *mad = umad_get_mad(buffer);
	uint32_t tid_be = htobe32(tid);

	mad[0] = 1;
	mad[1] = class;
	mad[2] = 1;
	mad[3] = 1;
	mad[17] = 0x11;
	memcpy(mad + 12, &tid_be, sizeof(tid_be));
	if (class == 0x81)
		memset(mad + 32, 0xff, 4);
	umad_set_addr(buffer, lid, 0, 0, 0);
	return umad_send(port, agent, buffer, MAD_BYTES, 2000, 0);
}

int main(int argc, char **argv)
{
	uint64_t buffer[(sizeof(struct ib_user_mad) + MAD_BYTES) / 8];
	uint16_t lid = argc > 3 ? (uint16_t)atoi(argv[3]) : 0xffff;
	uint8_t class = argc > 3 ? 0x01 : 0x81;
	uint32_t window = argc > 2 ? (uint32_t)atoi(argv[1]) : 1;
	uint32_t count = argc > 2 ? (uint32_t)atoi(argv[2]) : 1000;
	uint32_t sent = 0;
	uint32_t lost = 0;
	int port = umad_open_port(NULL, 0);
	int agent = port < 0 ? -1 : umad_register(port, class, 1, 0, NULL);
	double start = now();

	if (agent < 0) {
		fprintf(stderr, "no port, or no agent on it\n");
		return 1;
	}
	for (uint32_t got = 0; got < count; got++) {
		int length = MAD_BYTES;

		for (; sent < count && sent - got < window; sent++)
			if (send_one(port, agent, class, lid, sent + 1))
				return 1;
		if (umad_recv(port, buffer, &length, 5000) < 0)
			return 1;
		lost += umad_status(buffer) != 0;
	}
	printf("%8u in flight: %9.0f a second, %u without response\n", window,
	       count / (now() - start), lost);
	umad_close_port(port);
	return 0;
}
