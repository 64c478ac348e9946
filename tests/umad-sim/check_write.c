/* SPDX-License-Identifier: BSD-2-Clause */

/* The checks of write(). The preloaded library makes them to return errors at once; the fabric
 * makes them again because it does not trust the programs. */
#include <errno.h>
#include <string.h>

#include "protocol.h"

#define MAD_HEADER  24
#define RMPP_HEADER 36
#define RMPP_FLAGS  26
#define CLASS_SA    0x03

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
	return 0;
}
