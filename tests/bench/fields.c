/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Does one kind of work many times: tests/bench/instructions counts the cost of a call. The
 * library is the libibmad.so.5 that the loader finds.
 */

#include <infiniband/mad.h>
#include <infiniband/umad.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint8_t image[1024], message[sizeof(struct ib_user_mad) + IB_MAD_SIZE];
static char text[16384];
static volatile uint64_t sink;
static int device; /* accepts every write, and always has data to read */

/* A kind of work once. Returns its calls; 0: there is no such kind. */
static unsigned work(const char *kind)
{
	ib_rpc_t rpc = {.mgtclass = IB_SMI_DIRECT_CLASS,
			.method = IB_MAD_METHOD_GET,
			.attr = {.id = IB_ATTR_NODE_INFO},
			.dataoffs = IB_SMP_DATA_OFFS,
			.datasz = IB_SMP_DATA_SIZE,
			.trid = 7};
	ib_portid_t to = {.drpath = {.cnt = 3, .p = {0, 1, 2, 3}}};
	int field, first = IB_PORT_GID_PREFIX_F + 1, length = IB_MAD_SIZE;
	uint64_t value;

	if (!strcmp(kind, "get")) {
		for (field = first; field < IB_PORT_LAST_F; field++)
			sink += mad_get_field(image, 0, (enum MAD_FIELDS)field);
		return IB_PORT_LAST_F - (unsigned)first;
	}
	if (!strcmp(kind, "set")) {
		for (field = first; field < IB_PORT_LAST_F; field++)
			mad_set_field(image, 0, (enum MAD_FIELDS)field, 1);
		return IB_PORT_LAST_F - (unsigned)first;
	}
	if (!strcmp(kind, "decode")) {
		for (field = IB_PORT_FIRST_F; field < IB_PORT_LAST_F; field++) {
			mad_decode_field(image, (enum MAD_FIELDS)field, &value);
			sink += value;
		}
		return IB_PORT_LAST_F - IB_PORT_FIRST_F;
	}
	if (!strcmp(kind, "build"))
		sink += (uint64_t)mad_build_pkt(message, &rpc, &to, NULL, NULL);
	else if (!strcmp(kind, "portinfo"))
		mad_dump_portinfo(text, sizeof(text), image, IB_SMP_DATA_SIZE);
	else if (!strcmp(kind, "perfcounters_ext"))
		mad_dump_perfcounters_ext(text, sizeof(text), image, IB_PC_DATA_SZ);
	else if (!strcmp(kind, "send"))
		sink += (uint64_t)umad_send(device, 0, message, IB_MAD_SIZE, 100, 0);
	else if (!strcmp(kind, "recv"))
		sink += (uint64_t)umad_recv(device, message, &length, 0);
	else
		return 0;
	return 1;
}

/* fields KIND ROUNDS: prints how many calls were made. */
int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 0;
	unsigned calls = 0;

	device = open("/dev/zero", O_RDWR);
	for (size_t i = 0; i < sizeof(image); i++)
		image[i] = (uint8_t)(i * 37 + 11);
	while (rounds-- > 0)
		calls += work(argv[1]);
	printf("%u\n", calls);
	return 0;
}
