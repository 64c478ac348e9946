/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Targets of libibmad, on the simulated fabric of tests/machine in virtual time. The fabric
 * only carries packets: all responses are the target's. It begins and ends with each input.
 */
#ifndef FUZZ_MACHINE_H
#define FUZZ_MACHINE_H

#include "fuzz.h"
#include "machine.h"

#include <infiniband/mad.h>
#include <infiniband/mad_async.h>
#include <stdbool.h>

#define KEPT    256
#define LONGEST 1500

static struct ibmad_port *port __attribute__((unused));
static struct mad_async *async __attribute__((unused));

/* The latest requests that arrived somewhere, whether or not they have ended. */
static struct {
	struct machine_mad mad;
	uint8_t bytes[MACHINE_MAD];
} kept[KEPT];
static unsigned kept_count;

/* A hook of machine_on_arrival(). */
static inline enum machine_verdict keep_request(struct machine_mad *mad, void *arg)
{
	unsigned i = kept_count % KEPT;

	(void)arg;
	if (mad->bytes[3] & IB_MAD_RESPONSE)
		return MACHINE_DROP;
	kept[i].mad = *mad;
	kept[i].mad.bytes = memcpy(kept[i].bytes, mad->bytes, MACHINE_MAD);
	kept_count++;
	return MACHINE_DROP;
}

/* One of the latest requests; NULL if there is none. */
static inline const struct machine_mad *take_kept(struct input *input)
{
	unsigned n = (unsigned)take(input, 1), there = kept_count < KEPT ? kept_count : KEPT;

	return there ? &kept[(kept_count - 1 - n % there) % KEPT].mad : NULL;
}

/* A request of some class, as the input chooses. */
static inline ib_rpc_t make_rpc(unsigned choice)
{
	static const struct {
		int mgmt_class, method, offset, size;
	} kinds[] = {
		{IB_SMI_CLASS, IB_MAD_METHOD_GET, IB_SMP_DATA_OFFS, IB_SMP_DATA_SIZE},
		{IB_SMI_DIRECT_CLASS, IB_MAD_METHOD_SET, IB_SMP_DATA_OFFS, IB_SMP_DATA_SIZE},
		{IB_PERFORMANCE_CLASS, IB_MAD_METHOD_SET, IB_PC_DATA_OFFS, IB_PC_DATA_SZ},
		{IB_SA_CLASS, IB_MAD_METHOD_GET_TABLE, IB_SA_DATA_OFFS, IB_SA_DATA_SIZE},
		{IB_BOARD_MGMT_CLASS, IB_MAD_METHOD_GET, IB_PC_DATA_OFFS, IB_PC_DATA_SZ},
	};
	unsigned i = choice % COUNT(kinds);

	return (ib_rpc_t){.mgtclass = kinds[i].mgmt_class,
			  .method = kinds[i].method,
			  .dataoffs = kinds[i].offset,
			  .datasz = kinds[i].size};
}

/* A leaf of a star; or the switch, by a directed route. */
static inline ib_portid_t to_leaf(unsigned number)
{
	return (ib_portid_t){
		.lid = 10 + (int)number, .qp = 1, .drpath = {.cnt = 1, .p = {0, 1}}};
}

/* A port with one attempt for each request, and an engine. */
static inline void begin(const char *topology, const char *node, machine_arrival_fn *hook)
{
	kept_count = 0;
	machine_start(topology, node);
	machine_on_arrival(hook, NULL);
	check(!mad_port_open(NULL, 0, &port));
	mad_rpc_set_retries(port, 1);
	async = mad_async_create(port);
	check(async != NULL);
}

/* Requests that were submitted arrive, messages can be read. */
static inline void let_arrive(void)
{
	machine_pass(1);
}

/* The program handled all that has come. All requests end, and nothing is left. */
static inline void end(void)
{
	let_arrive();
	check(mad_async_process(async) >= 0);
	mad_async_free(async);
	mad_rpc_close_port(port);
	machine_stop();
}

/* The bytes of a response, in a buffer of LONGEST, for the target to change. */
static inline uint8_t *begin_response(const struct machine_mad *request)
{
	static uint8_t mad[LONGEST];

	memset(mad, 0x5a, sizeof(mad));
	memcpy(mad, request->bytes, MACHINE_MAD);
	mad[3] |= IB_MAD_RESPONSE;
	return mad;
}

static inline void change_bytes(uint8_t *mad, struct input *input)
{
	for (unsigned changes = take(input, 1) % 8; changes; changes--) {
		size_t offset = take(input, 1);

		mad[offset] = (uint8_t)take(input, 1);
	}
}

#endif
