/* SPDX-License-Identifier: BSD-2-Clause */

/* The checks of write(). The preloaded library makes them to return errors at once, the fabric
 * makes them again because it does not trust programs. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "protocol.h"

#define MAD_HEADER  24
#define RMPP_HEADER 36
#define RMPP_FLAGS  26
#define CLASS_SA    0x03

#define TRAP_REPRESS 0x07

#define CLASS_DIRECTED 0x81
#define RESPONSE       0x80 /* the direction bit, in the upper byte of the status */
#define HOP_POINTER    6
#define HOP_COUNT      7
#define DR_SLID        32
#define INITIAL_PATH   128
#define MOST_HOPS      64 /* paths are shorter */

/* Offset of a class's data, as far as write() needs it (kernel: ib_get_mad_data_offset()). */
static uint64_t data_offset(uint8_t class)
{
	if (class == CLASS_SA)
		return 56;
	if (class == 0x06 || class == 0x10 || class == 0x12)
		return 64;
	if (class >= 0x30 && class <= 0x4f)
		return 40;
	return MAD_HEADER;
}

/*
 * The kernel's SMI sends a directed request only if its path begins with the port and its hop
 * pointer is at the beginning or the end of the path (IBA 14.2.2.2). The kernel pads a short
 * SMP with zeros.
 */
static bool smi_sends(uint32_t port, const uint8_t *mad, uint64_t length)
{
	unsigned int pointer = mad[HOP_POINTER];
	unsigned int count = mad[HOP_COUNT];
	uint8_t first = length > INITIAL_PATH + 1 ? mad[INITIAL_PATH + 1] : 0;

	if (mad[1] != CLASS_DIRECTED || mad[4] & RESPONSE ||
	    (mad[DR_SLID] & mad[DR_SLID + 1]) != 0xff)
		return true;
	if (count >= MOST_HOPS || pointer > count + 1)
		return false;
	if (count == 0 || port == 0)
		return true;
	return pointer == 0 ? first == port : pointer >= count;
}

int check_write(const struct shared *shared, const uint8_t *packet, uint64_t count)
{
	uint64_t header = atomic_load(&shared->pkey_layout) ? HEADER_BYTES : OLD_HEADER_BYTES;
	const uint8_t *mad = packet + header;
	uint32_t agent;
	uint32_t state;

	if (count < header + RMPP_HEADER)
		return -EINVAL;
	memcpy(&agent, packet, sizeof(agent));
	if (agent >= AGENTS_PER_HANDLE)
		return -EINVAL;
	state = atomic_load(&shared->gone) ? 0 : atomic_load(&shared->agents[agent]);
	if (!state)
		return -EIO;
	if (count < header + data_offset(mad[1]))
		return -EINVAL;
	if (count > header + SINGLE_MAD_BYTES &&
	    (!(state & AGENT_RMPP) || data_offset(mad[1]) == MAD_HEADER ||
	     !(mad[RMPP_FLAGS] & 1)))
		return -EINVAL;
	return smi_sends(atomic_load(&shared->smi_port), mad, count - header) ? 0 : -EINVAL;
}

uint64_t transaction_of(const struct shared *shared, const uint8_t *packet)
{
	const uint8_t *mad =
		packet + (atomic_load(&shared->pkey_layout) ? HEADER_BYTES : OLD_HEADER_BYTES);
	uint32_t agent;
	uint32_t tid;

	memcpy(&agent, packet, sizeof(agent));
	tid = (uint32_t)mad[12] << 24 | (uint32_t)mad[13] << 16 | (uint32_t)mad[14] << 8 |
	      mad[15];
	if (mad[3] & 0x80 || mad[3] == TRAP_REPRESS)
		return 0;
	if (!(atomic_load(&shared->agents[agent]) & AGENT_RMPP) &&
	    (mad[1] == CLASS_SA || (mad[1] >= 0x30 && mad[1] <= 0x4f)) && mad[RMPP_FLAGS] & 1)
		return 0;
	return transaction_key(agent, mad[1], tid);
}
