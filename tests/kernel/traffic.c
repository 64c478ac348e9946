/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * traffic server | client: GMPs and RMPP messages from the first port to the second, and a
 * response to each. The client sends the next request after the response, so that the MADs have
 * one order. The server prints "ready", and ends after the last response.
 */
#include "check.h"
#include "mads.h"

#include <stdio.h>
#include <string.h>

#define LARGEST  (80 * SEGMENT)
#define STATUS   4
#define ATTR     16
#define MODIFIER 20

/* Bytes of data of each request; 0: a GMP without RMPP. */
static const size_t requests[] = {
	0, 0, 0, 0, 1, SEGMENT - 1, SEGMENT, SEGMENT + 1, 0, 5 * SEGMENT - 3, LARGEST, 0, 0,
};
#define REQUESTS (sizeof(requests) / sizeof(requests[0]))

static void run_client(void)
{
	int fd = open_port(&here);
	int agent = client(fd, 1);
	void *umad = new_umad(DATA + LARGEST);
	struct ib_user_mad *header = umad;
	uint8_t *mad = umad_get_mad(umad);

	for (uint32_t tid = 0; tid < REQUESTS; tid++) {
		size_t data = requests[tid];
		size_t length = data ? DATA + data : MAD;

		memset(mad, 0, DATA + LARGEST);
		set_mad(umad, METHOD_ANY, tid);
		if (data)
			set_rmpp(umad);
		mad[ATTR + 1] = (uint8_t)(0x10 + tid);
		mad[MODIFIER + 3] = (uint8_t)tid;
		fill(umad, DATA, length);
		if (tid % 2)
			set_grh(umad, &there);
		else
			set_destination(umad, &there);
		if (header->addr.grh_present) {
			header->addr.traffic_class = (uint8_t)(8 * tid);
			header->addr.hop_limit = (uint8_t)(64 - tid);
		}
		send_mad(fd, agent, umad, length, 60000, 0);
		expect_equal(receive_mad(fd, umad, DATA + LARGEST, agent), length);
		expect_equal(umad_status(umad), 0);
		expect_equal(tid_of(umad), tid);
	}
}

static void run_server(void)
{
	int fd = open_port(&there);
	int agent = server(fd, METHOD_ANY, 1);
	void *umad = new_umad(DATA + LARGEST);
	uint8_t *mad = umad_get_mad(umad);

	puts("ready");
	fflush(stdout);
	for (uint32_t tid = 0; tid < REQUESTS; tid++) {
		int length = receive_mad(fd, umad, DATA + LARGEST, agent);

		expect_equal(tid_of(umad), tid);
		make_response(umad);
		if (!requests[tid])
			mad[STATUS + 1] = (uint8_t)(4 * (tid % 8));
		send_mad(fd, agent, umad, (size_t)length, 0, 0);
	}
}

int main(int argc, char **argv)
{
	find_ports();
	if (argc == 2 && !strcmp(argv[1], "server")) {
		run_server();
	} else if (argc == 2 && !strcmp(argv[1], "client")) {
		run_client();
	} else {
		fputs("usage: traffic server | client\n", stderr);
		return 2;
	}
	return 0;
}
