/* SPDX-License-Identifier: BSD-2-Clause */

/* Subnet administrator (SA): which records a request selects, by component mask, GIDs, LIDs
 * and P_Keys. */
#include <stdlib.h>

#include "link.h"
#include "sa_match.h"
#include "settings.h"

/* Bit 0 is the most significant bit of a record's first byte. */
static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned int at, unsigned int width)
{
	unsigned int end = at + width;

	if (at % 8 == 0 && width % 8 == 0)
		return memcmp(a + at / 8, b + at / 8, width / 8) == 0;
	while (at < end) {
		unsigned int stop = at / 8 * 8 + 8 < end ? at / 8 * 8 + 8 : end;
		unsigned int bits = (0xffU >> at % 8) & (0xffU << (at / 8 * 8 + 8 - stop));

		if ((a[at / 8] ^ b[at / 8]) & bits)
			return false;
		at = stop;
	}
	return true;
}

bool sa_matches(const struct record_type *type, uint64_t mask, const uint8_t *wanted,
		const uint8_t *record)
{
	unsigned int at = 0;

	for (unsigned int i = 0; i < type->component_count && mask >> i; i++) {
		if (mask & COMPONENT(i) && !same_bits(wanted, record, at, type->widths[i]))
			return false;
		at += type->widths[i];
	}
	return true;
}

bool sa_offer(struct sa_request *request, const uint8_t *record)
{
	if (!sa_matches(request->type, request->mask, request->record, record))
		return true;
	return sa_append(request, record);
}

bool sa_in_subnet(const struct fabric *fabric, uint32_t port)
{
	const struct port *state = &fabric->ports[port];

	return state->lid && !state->powered_off && link_is_up(fabric, port) &&
	       end_port(fabric, port) == port;
}

void sa_each_end_port(struct sa_request *request,
		      bool (*visit)(struct sa_request *request, uint32_t port))
{
	struct fabric *fabric = request->fabric;

	/* any of a port's LIDs selects it, but its records have the first */
	if (request->mask & COMPONENT(0)) {
		uint32_t owner = lid_owner(fabric, (uint16_t)get16(request->record));

		request->mask &= ~COMPONENT(0);
		if (owner != NONE && sa_in_subnet(fabric, owner))
			visit(request, owner);
		return;
	}
	for (uint32_t port = 0; port < fabric->graph.port_count; port++)
		if (sa_in_subnet(fabric, port) && !visit(request, port))
			return;
}

static uint32_t slot_of(const struct sa *sa, uint64_t guid)
{
	return (uint32_t)fabric_hash(sa->fabric, 'g', guid, 0) & sa->by_guid_mask;
}

/* The table is at most half full. */
static bool make_table(struct sa *sa)
{
	const struct graph *graph = &sa->fabric->graph;
	uint32_t size = 16;
	uint32_t count = 0;

	for (uint32_t i = 0; i < graph->port_count; i++)
		count += graph->ports[i].guid != 0;
	while (size < count * 2)
		size *= 2;
	sa->by_guid = malloc(size * sizeof(*sa->by_guid));
	if (!sa->by_guid)
		return false;
	for (uint32_t i = 0; i < size; i++)
		sa->by_guid[i] = NONE;
	sa->by_guid_mask = size - 1;
	for (uint32_t i = 0; i < graph->port_count; i++) {
		uint32_t slot = slot_of(sa, graph->ports[i].guid);

		if (!graph->ports[i].guid)
			continue;
		while (sa->by_guid[slot] != NONE)
			slot = (slot + 1) & sa->by_guid_mask;
		sa->by_guid[slot] = i;
	}
	return true;
}

uint32_t sa_find_guid(struct sa *sa, uint64_t guid)
{
	uint32_t slot;

	if (!sa->by_guid && !make_table(sa))
		return NONE;
	slot = slot_of(sa, guid);
	while (sa->by_guid[slot] != NONE && cable(sa->fabric, sa->by_guid[slot])->guid != guid)
		slot = (slot + 1) & sa->by_guid_mask;
	return sa->by_guid[slot];
}

/* The port that has the GUID as an additional one. Only ports with settings have such GUIDs,
 * and those are few. */
static uint32_t find_alias(const struct fabric *fabric, uint64_t guid)
{
	for (uint32_t port = 0; guid && port < fabric->graph.port_count; port++) {
		const struct port_settings *settings = fabric->ports[port].settings;

		for (unsigned int i = 1; settings && i < guid_capacity(fabric, port); i++)
			if (settings->guids[i] == guid)
				return port;
	}
	return NONE;
}

uint32_t sa_find_any_guid(struct sa *sa, uint64_t guid)
{
	uint32_t port = sa_find_guid(sa, guid);

	return port == NONE ? find_alias(sa->fabric, guid) : port;
}

/* Each GUID of a port gives it two GIDs, with the subnet's prefix and a link-local one (IBA
 * 4.1.1). */
uint32_t sa_find_gid(struct sa *sa, const uint8_t gid[16])
{
	uint32_t port = sa_find_any_guid(sa, get64(gid + 8));

	if (port == NONE || !sa_in_subnet(sa->fabric, port) ||
	    (get64(gid) != DEFAULT_PREFIX && get64(gid) != gid_prefix(sa->fabric, port)))
		return NONE;
	return port;
}

#define PKEY_TABLE_SIZE 128
#define FULL_MEMBER     0x8000

static bool same_partition(uint16_t a, uint16_t b)
{
	return (a & 0x7fff) != 0 && ((a ^ b) & 0x7fff) == 0;
}

/* The P_Key for a partition, preferably with full membership; 0: none. */
static uint16_t membership(const struct fabric *fabric, uint32_t port, uint16_t pkey)
{
	uint16_t best = 0;

	for (unsigned int i = 0; i < PKEY_TABLE_SIZE && !(best & FULL_MEMBER); i++)
		if (same_partition(pkey_at(fabric, port, i), pkey))
			best = pkey_at(fabric, port, i);
	return best;
}

bool sa_has_pkey(const struct fabric *fabric, uint32_t port, uint16_t pkey)
{
	return membership(fabric, port, pkey) != 0;
}

/* Two limited members of a partition cannot communicate (IBA 10.9.3). */
uint16_t sa_shared_pkey(const struct fabric *fabric, uint32_t a, uint32_t b, uint16_t wanted)
{
	for (unsigned int i = 0; i < PKEY_TABLE_SIZE; i++) {
		uint16_t own = wanted ? membership(fabric, a, wanted) : pkey_at(fabric, a, i);
		uint16_t other = own ? membership(fabric, b, own) : 0;

		if (other && (own | other) & FULL_MEMBER)
			return (uint16_t)(own & (other | 0x7fff));
		if (wanted)
			return 0;
	}
	return 0;
}

enum {
	GREATER,
	LESS,
	EXACTLY
};

#define LONGEST_LIFE 63

bool sa_fit_mtu(uint8_t selected, uint8_t *mtu)
{
	uint8_t value = selected & 0x3f;

	switch (selected >> 6) {
	case GREATER:
		return *mtu > value;
	case LESS:
		if (*mtu >= value)
			*mtu = value ? (uint8_t)(value - 1) : 0;
		return *mtu != 0;
	case EXACTLY:
		if (*mtu < value)
			return false;
		*mtu = value;
		return value != 0;
	default:
		return true;
	}
}

/* The next lower rate; 0: none. */
static uint8_t rate_below(uint8_t rate)
{
	uint8_t best = 0;

	for (uint8_t code = 0; code < 64; code++)
		if (rate_compare(code, 0) > 0 && rate_compare(code, rate) < 0 &&
		    rate_compare(code, best) > 0)
			best = code;
	return best;
}

bool sa_fit_rate(uint8_t selected, uint8_t *rate)
{
	uint8_t value = selected & 0x3f;

	switch (selected >> 6) {
	case GREATER:
		return rate_compare(*rate, value) > 0;
	case LESS:
		if (rate_compare(*rate, value) >= 0)
			*rate = rate_below(value);
		return *rate != 0;
	case EXACTLY:
		/* an unknown code counts as slower than all others, as 0 does */
		if (rate_compare(*rate, value) < 0 || rate_compare(value, 0) == 0)
			return false;
		*rate = value;
		return true;
	default:
		return true;
	}
}

/* The lifetime is a maximum: a packet with a shorter lifetime satisfies a longer one. */
bool sa_fit_life(uint8_t selected, uint8_t *life)
{
	uint8_t value = selected & 0x3f;

	switch (selected >> 6) {
	case GREATER:
		if (*life <= value)
			*life = (uint8_t)(value + 1);
		return *life <= LONGEST_LIFE;
	case LESS:
		return *life < value;
	case EXACTLY:
		if (*life > value)
			return false;
		*life = value;
		return true;
	default:
		return true;
	}
}
