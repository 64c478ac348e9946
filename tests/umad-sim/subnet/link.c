/* SPDX-License-Identifier: BSD-2-Clause */

/* The codes for speeds, widths and rates. */
#include "link.h"

#include <infiniband/mad_link.h>

/* The data rates of a lane in Mbit/s (after 8b/10b or 64b/66b), from the specification's
 * nominal rates, and the bits of the speeds in PortInfo. */
static const struct speed {
	uint32_t mbits;
	uint8_t bit;
	uint8_t ext_bit;
	uint8_t ext2_bit;
} speeds[SPEED_COUNT] = {
	[SDR] = {2500, 1, 0, 0},    [DDR] = {5000, 2, 0, 0},   [QDR] = {10000, 4, 0, 0},
	[FDR10] = {10000, 4, 0, 0}, [FDR] = {14000, 4, 1, 0},  [EDR] = {25000, 4, 2, 0},
	[HDR] = {50000, 4, 4, 0},   [NDR] = {100000, 4, 8, 0}, [XDR] = {200000, 4, 8, 1},
};

uint8_t widths_supported(const struct graph_port *port)
{
	unsigned int lanes = port->width;
	uint8_t bits = 1;

	if (port->widths)
		return port->widths;
	if (lanes == 2)
		return 1 | 16;
	if (lanes >= 4 || lanes == 0)
		bits |= 2;
	if (lanes >= 8)
		bits |= 4;
	if (lanes >= 12)
		bits |= 8;
	return bits;
}

unsigned int widest(unsigned int bits, unsigned int most)
{
	static const unsigned int lanes[] = {12, 8, 4, 2, 1};

	for (unsigned int i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++)
		if (lanes[i] <= most && bits & width_bit(lanes[i]))
			return lanes[i];
	return 0;
}

uint8_t speeds_supported(const struct graph_port *port)
{
	if (port->speeds)
		return port->speeds;
	return port->width ? (uint8_t)(speeds[port->speed].bit * 2 - 1) : 7;
}

uint8_t speed_bit(enum link_speed speed)
{
	return speeds[speed].bit;
}

uint8_t speed_ext_bit(enum link_speed speed)
{
	return speed == XDR ? 0 : speeds[speed].ext_bit;
}

uint8_t speeds_ext_supported(const struct graph_port *port)
{
	uint8_t bit = speeds[port->speed].ext_bit;

	if (port->extended_speeds)
		return port->extended_speeds;
	return bit ? (uint8_t)(bit * 2 - 1) : 0;
}

uint8_t speed_ext2_bit(enum link_speed speed)
{
	return speeds[speed].ext2_bit;
}

uint16_t link_capabilities2(const struct graph_port *port)
{
	unsigned int extended = speeds_ext_supported(port);
	unsigned int bits = 0;

	if (widths_supported(port) & width_bit(2))
		bits |= MAD_PORT_CAP2_LINK_WIDTH_2X;
	if (extended & speed_ext_bit(HDR))
		bits |= MAD_PORT_CAP2_LINK_SPEED_HDR;
	if (extended & speed_ext_bit(NDR))
		bits |= MAD_PORT_CAP2_LINK_SPEED_NDR;
	if (port->speed >= XDR)
		bits |= MAD_PORT_CAP2_EXTENDED_SPEEDS_2 | MAD_PORT_CAP2_LINK_SPEED_XDR;
	return (uint16_t)bits;
}

uint64_t link_mbits(unsigned int lanes, enum link_speed speed)
{
	return (uint64_t)lanes * speeds[speed].mbits;
}

/* The Rate codes of IBA 15.2.5.16, sorted by speed, in Mbit/s. */
static const struct rate {
	uint32_t mbits;
	uint8_t code;
} rates[] = {
	{2500, 2},    {5000, 5},    {10000, 3},   {14000, 11},  {20000, 6},    {25000, 15},
	{28000, 19},  {30000, 4},   {40000, 7},   {50000, 20},  {56000, 12},   {60000, 8},
	{80000, 9},   {100000, 16}, {112000, 13}, {120000, 10}, {168000, 14},  {200000, 17},
	{300000, 18}, {400000, 21}, {600000, 22}, {800000, 23}, {1200000, 24},
};

#define RATE_COUNT (sizeof(rates) / sizeof(rates[0]))

uint8_t rate_code(unsigned int lanes, enum link_speed speed)
{
	uint64_t mbits = link_mbits(lanes, speed);
	uint8_t code = rates[0].code;

	for (unsigned int i = 0; i < RATE_COUNT && rates[i].mbits <= mbits; i++)
		code = rates[i].code;
	return code;
}

static int rank(uint8_t code)
{
	for (unsigned int i = 0; i < RATE_COUNT; i++)
		if (rates[i].code == code)
			return (int)i;
	return -1;
}

int rate_compare(uint8_t a, uint8_t b)
{
	return rank(a) - rank(b);
}

uint8_t slower_rate(uint8_t a, uint8_t b)
{
	return rate_compare(a, b) <= 0 ? a : b;
}
