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

static uint8_t image[1024];
static char text[16384];
static volatile uint64_t sink;

/* Calls of one round; the result is per call. */
static unsigned long get_fields(void)
{
	unsigned long calls = 0;
	int field;

	for (field = IB_PORT_GID_PREFIX_F + 1; field < IB_PORT_LAST_F; field++, calls++)
		sink += mad_get_field(image, 0, (enum MAD_FIELDS)field);
	return calls;
}

static unsigned long set_fields(void)
{
	unsigned long calls = 0;
	int field;

	for (field = IB_PORT_GID_PREFIX_F + 1; field < IB_PORT_LAST_F; field++, calls++)
		mad_set_field(image, 0, (enum MAD_FIELDS)field, 1);
	return calls;
}

static unsigned long decode_fields(void)
{
	unsigned long calls = 0;
	uint64_t value;
	int field;

	for (field = IB_PORT_FIRST_F; field < IB_PORT_LAST_F; field++, calls++) {
		mad_decode_field(image, (enum MAD_FIELDS)field, &value);
		sink += value;
	}
	return calls;
}

static unsigned long build_packet(void)
{
	static uint8_t umad[sizeof(struct ib_user_mad) + IB_MAD_SIZE];
	ib_rpc_t rpc = {.mgtclass = IB_SMI_DIRECT_CLASS,
			.method = IB_MAD_METHOD_GET,
			.attr = {.id = IB_ATTR_NODE_INFO},
			.dataoffs = IB_SMP_DATA_OFFS,
			.datasz = IB_SMP_DATA_SIZE,
			.trid = 7};
	ib_portid_t to = {.drpath = {.cnt = 3, .p = {0, 1, 2, 3}}};

	sink += (uint64_t)mad_build_pkt(umad, &rpc, &to, NULL, NULL);
	return 1;
}

static unsigned long dump_portinfo(void)
{
	mad_dump_portinfo(text, sizeof(text), image, IB_SMP_DATA_SIZE);
	return 1;
}

static unsigned long dump_perfcounters_ext(void)
{
	mad_dump_perfcounters_ext(text, sizeof(text), image, IB_PC_DATA_SZ);
	return 1;
}

/* A device that accepts every write and always has data to read. */
static int device;
static uint8_t message[sizeof(struct ib_user_mad) + IB_MAD_SIZE];

static unsigned long send_mad(void)
{
	sink += (uint64_t)umad_send(device, 0, message, IB_MAD_SIZE, 100, 0);
	return 1;
}

static unsigned long receive_mad(void)
{
	int length = IB_MAD_SIZE;

	sink += (uint64_t)umad_recv(device, message, &length, 0);
	return 1;
}

static const struct {
	const char *name;
	unsigned long (*work)(void);
} kinds[] = {
	{"get", get_fields},         {"set", set_fields},
	{"decode", decode_fields},   {"build", build_packet},
	{"portinfo", dump_portinfo}, {"perfcounters_ext", dump_perfcounters_ext},
	{"send", send_mad},          {"recv", receive_mad},
};

/* bench_fields KIND ROUNDS: prints how many calls were made. */
int main(int argc, char **argv)
{
	unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 0) : 0, calls = 0;
	size_t i;

	device = open("/dev/zero", O_RDWR);
	for (i = 0; i < sizeof(image); i++)
		image[i] = (uint8_t)(i * 37 + 11);
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (argc < 2 || strcmp(argv[1], kinds[i].name))
			continue;
		while (rounds--)
			calls += kinds[i].work();
	}
	printf("%lu\n", calls);
	return 0;
}
