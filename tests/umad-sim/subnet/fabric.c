/* SPDX-License-Identifier: BSD-2-Clause */

/* The subnet in memory: its LIDs, and small functions on its state. */
#include "fabric.h"

void set_lid(struct fabric *fabric, uint32_t port, uint16_t lid, uint8_t lmc)
{
	struct port *state = &fabric->ports[port];

	for (uint32_t i = state->lid; state->lid && i < state->lid + (1U << state->lmc); i++)
		if (i < LID_COUNT && fabric->lids[i] == port)
			fabric->lids[i] = NONE;
	state->lid = lid;
	state->lmc = lmc;
	for (uint32_t i = lid; lid && i < lid + (1U << lmc) && i < LID_COUNT; i++)
		fabric->lids[i] = port;
}

/* splitmix64's finalizer: every bit of the input reaches every bit of the result. */
static uint64_t mix(uint64_t value)
{
	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
	return value ^ (value >> 31);
}

uint64_t fabric_hash(const struct fabric *fabric, uint64_t what, uint64_t a, uint64_t b)
{
	uint64_t value = mix(fabric->seed + 0x9e3779b97f4a7c15ULL);

	value = mix(value ^ what);
	value = mix(value + a * 0x9e3779b97f4a7c15ULL);
	return mix(value + b * 0xd1342543de82ef95ULL);
}
