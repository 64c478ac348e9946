/* SPDX-License-Identifier: BSD-2-Clause */

/* Subnet administrator (SA): PathRecords, computed from the routes that packets take (IBA
 * 15.2.5.16). */
#include "link.h"
#include "routes.h"
#include "sa_groups.h"
#include "sa_match.h"
#include "wire.h"

#define MAX_HOPS    64
#define PORT_0_RATE 3  /* 10 Gb/s: from a switch to itself */
#define FASTEST     24 /* the highest rate code */
#define LONGEST     19 /* LifeTimeValue; from 20 on packets never expire (IBA 14.2.5.4) */

enum { /* components */
	SERVICE_ID = 0x3,
	DGID = 1 << 2,
	SGID = 1 << 3,
	DLID = 1 << 4,
	SLID = 1 << 5,
	RAW = 1 << 6,
	FLOW_LABEL = 1 << 8,
	TRAFFIC_CLASS = 1 << 10,
	REVERSIBLE = 1 << 11,
	NUMBER = 1 << 12,
	PKEY = 1 << 13,
	QOS_CLASS = 1 << 14,
	SL = 1 << 15,
	MTU = 0x3 << 16, /* with the selectors */
	RATE = 0x3 << 18,
	LIFE = 0x3 << 20
};

enum { /* offsets in a record */
	AT_DGID = 8,
	AT_SGID = 24,
	AT_DLID = 40,
	AT_SLID = 42,
	AT_FLOW = 44,
	AT_CLASS = 48,
	AT_NUMBER = 49,
	AT_PKEY = 50,
	AT_QOS = 52,
	AT_MTU = 54,
	AT_RATE = 55,
	AT_LIFE = 56,
	PATH_SIZE = 64
};

struct ends {
	uint32_t from;
	uint32_t to;
	uint16_t slid;
	uint16_t dlid;
};

struct quality {
	uint8_t mtu;
	uint8_t rate;
	uint8_t life;
};

static bool both(const struct sa_request *request, uint64_t components)
{
	return (request->mask & components) == components;
}

/* A packet's lifetime is the sum over the switches on its route, 2^LifeTimeValue units each. */
static uint8_t life_of(uint64_t units)
{
	uint8_t life = 0;

	while (life < LONGEST && 1ULL << life < units)
		life++;
	return life;
}

/* The values of a port: for a path without links. */
static struct quality quality_at(const struct fabric *fabric, uint32_t port)
{
	const struct graph_port *end = cable(fabric, port);

	return (struct quality){
		.mtu = fabric->ports[port].mtu,
		.rate = end->width ? rate_code(fabric->ports[port].width,
					       active_speed(fabric, port))
				   : PORT_0_RATE,
	};
}

/* False if there is no route, or one of its links is down. */
static bool measure(struct fabric *fabric, const struct ends *ends, struct quality *quality)
{
	uint32_t hops[MAX_HOPS];
	int count = route_trace(fabric, ends->from, ends->dlid, hops, MAX_HOPS);
	uint64_t units = 0;

	*quality = quality_at(fabric, ends->from);
	if (count > 0)
		quality->rate = FASTEST;
	for (int i = 0; i < count; i++) {
		const struct graph_port *out = cable(fabric, hops[i]);
		const struct graph_node *next =
			hardware(fabric, cable(fabric, out->peer)->node);
		uint8_t mtu = fabric->ports[hops[i]].mtu;

		if (!link_is_up(fabric, hops[i]) || !link_is_up(fabric, out->peer))
			return false;
		if (fabric->ports[out->peer].mtu < mtu)
			mtu = fabric->ports[out->peer].mtu;
		if (mtu < quality->mtu)
			quality->mtu = mtu;
		quality->rate =
			slower_rate(quality->rate, rate_code(fabric->ports[hops[i]].width,
							     active_speed(fabric, hops[i])));
		if (next->type == NODE_SWITCH)
			units += 1ULL
				 << (fabric->nodes[cable(fabric, out->peer)->node].life_time &
				     0x1f);
	}
	quality->life = life_of(units);
	return count >= 0;
}

static bool fit(const struct sa_request *request, struct quality *quality)
{
	const uint8_t *wanted = request->record;

	return (!both(request, MTU) || sa_fit_mtu(wanted[AT_MTU], &quality->mtu)) &&
	       (!both(request, RATE) || sa_fit_rate(wanted[AT_RATE], &quality->rate)) &&
	       (!both(request, LIFE) || sa_fit_life(wanted[AT_LIFE], &quality->life));
}

static void put_quality(const struct quality *quality, uint8_t *record)
{
	record[AT_MTU] = SELECT_EXACTLY | quality->mtu;
	record[AT_RATE] = SELECT_EXACTLY | quality->rate;
	record[AT_LIFE] = SELECT_EXACTLY | quality->life;
}

/* Components that the requester chooses and every path supports. */
static void put_choices(const struct sa_request *request, uint8_t *record)
{
	const uint8_t *wanted = request->record;

	if (both(request, SERVICE_ID))
		memcpy(record, wanted, 8);
	if (request->mask & FLOW_LABEL)
		put32(record + AT_FLOW, get32(wanted + AT_FLOW) & 0x0fffff00);
	if (request->mask & TRAFFIC_CLASS)
		record[AT_CLASS] = wanted[AT_CLASS];
	if (request->mask & QOS_CLASS)
		put16(record + AT_QOS, get16(wanted + AT_QOS) & 0xfff0);
	if (request->mask & SL)
		record[AT_QOS + 1] |= wanted[AT_QOS + 1] & 0xf;
}

/* A GID stays as requested: with the subnet's prefix or the link-local one, of the port's own
 * GUID or an additional one. */
static void put_gid(const struct sa_request *request, uint64_t component, unsigned int at,
		    uint32_t port, uint8_t *record)
{
	if (request->mask & component)
		memcpy(record + at, request->record + at, 16);
	else
		port_gid(request->fabric, port, record + at);
}

/* Adds a path; false if no more paths are needed. */
static bool offer_path(struct sa_request *request, const struct ends *ends, bool *made)
{
	struct fabric *fabric = request->fabric;
	const struct ends back = {ends->to, ends->from, ends->dlid, ends->slid};
	uint8_t record[PATH_SIZE] = {0};
	struct quality quality;
	struct quality quality_back;
	bool reversible;
	uint16_t wanted, pkey;

	*made = false;
	wanted = request->mask & PKEY ? (uint16_t)get16(request->record + AT_PKEY) : 0;
	if (request->mask & PKEY && !(wanted & 0x7fff))
		return true; /* no partition has this P_Key (IBA 10.9.3) */
	pkey = sa_shared_pkey(fabric, ends->from, ends->to, wanted);
	if (!pkey || !measure(fabric, ends, &quality) || !fit(request, &quality))
		return true;
	reversible = measure(fabric, &back, &quality_back);
	if (request->mask & REVERSIBLE && request->record[AT_NUMBER] & 0x80 && !reversible)
		return true;
	put_choices(request, record);
	put_gid(request, DGID, AT_DGID, ends->to, record);
	put_gid(request, SGID, AT_SGID, ends->from, record);
	put16(record + AT_DLID, ends->dlid);
	put16(record + AT_SLID, ends->slid);
	record[AT_NUMBER] = reversible ? 0x80 : 0;
	put16(record + AT_PKEY, pkey);
	put_quality(&quality, record);
	*made = true;
	return sa_append(request, record);
}

/* The paths from one port to another: enough pairs of LIDs to use each LID. */
static bool offer_pair(struct sa_request *request, uint32_t from, uint32_t to,
		       unsigned int number)
{
	const struct port *source = &request->fabric->ports[from];
	const struct port *sink = &request->fabric->ports[to];
	unsigned int slids = request->mask & SLID ? 1 : 1U << source->lmc;
	unsigned int dlids = request->mask & DLID ? 1 : 1U << sink->lmc;
	unsigned int pairs = slids > dlids ? slids : dlids;

	for (unsigned int i = 0; i < pairs && number; i++) {
		struct ends ends = {from, to, (uint16_t)(source->lid + (i & (slids - 1))),
				    (uint16_t)(sink->lid + (i & (dlids - 1)))};
		bool made;

		if (request->mask & SLID)
			ends.slid = (uint16_t)get16(request->record + AT_SLID);
		if (request->mask & DLID)
			ends.dlid = (uint16_t)get16(request->record + AT_DLID);
		if (!offer_path(request, &ends, &made))
			return false;
		number -= made;
	}
	return true;
}

/* Finds the port that a GID, a LID or both name (NONE if neither is given); false if there is
 * none. */
static bool find_end(struct sa_request *request, uint64_t gid, unsigned int at_gid,
		     uint64_t lid, unsigned int at_lid, uint32_t *port)
{
	uint32_t owner;

	*port = NONE;
	if (request->mask & gid) {
		*port = sa_find_gid(request->sa, request->record + at_gid);
		if (*port == NONE) {
			request->status = SA_INVALID_GID;
			return false;
		}
	}
	if (!(request->mask & lid))
		return true;
	owner = lid_owner(request->fabric, (uint16_t)get16(request->record + at_lid));
	if (owner == NONE || (*port != NONE && *port != owner) ||
	    !sa_in_subnet(request->fabric, owner))
		return false;
	*port = owner;
	return true;
}

/* The path to a group has the values with which the group was created. */
static void offer_group(struct sa_request *request, const struct group *group, uint32_t from)
{
	const uint8_t *of_group = group->record;
	struct quality quality = {of_group[MCM_AT_MTU] & 0x3f, of_group[MCM_AT_RATE] & 0x3f,
				  of_group[MCM_AT_LIFE] & 0x3f};
	uint8_t record[PATH_SIZE] = {0};

	if (!sa_has_pkey(request->fabric, from, (uint16_t)get16(of_group + MCM_AT_PKEY)) ||
	    !fit(request, &quality))
		return;
	put_choices(request, record);
	memcpy(record + AT_DGID, of_group, 16);
	put_gid(request, SGID, AT_SGID, from, record);
	memcpy(record + AT_DLID, of_group + MCM_AT_MLID, 2);
	put16(record + AT_SLID, request->fabric->ports[from].lid);
	put32(record + AT_FLOW, get32(of_group + MCM_AT_SL_FLOW_HOP) & 0x0fffffff);
	record[AT_CLASS] = of_group[MCM_AT_CLASS];
	record[AT_NUMBER] = 0x80;
	memcpy(record + AT_PKEY, of_group + MCM_AT_PKEY, 2);
	record[AT_QOS + 1] =
		(uint8_t)((record[AT_QOS + 1] & 0xf0) | of_group[MCM_AT_SL_FLOW_HOP] >> 4);
	put_quality(&quality, record);
	sa_append(request, record);
}

static bool to_group(struct sa_request *request, uint32_t from)
{
	const uint8_t *dgid = request->record + AT_DGID;
	unsigned int dlid = get16(request->record + AT_DLID);
	struct group *group;

	if (request->mask & DGID && dgid[0] == 0xff)
		group = group_find(request->sa, dgid);
	else if (request->mask & DLID && dlid >= MLID_FIRST && dlid != PERMISSIVE_LID)
		group = group_find_lid(request->sa, (uint16_t)dlid);
	else
		return false;
	if (group && (!(request->mask & DLID) || get16(group->record + MCM_AT_MLID) == dlid))
		offer_group(request, group, from == NONE ? request->from : from);
	return true;
}

static uint64_t end_count(const struct fabric *fabric)
{
	uint64_t count = 0;

	for (uint32_t port = 0; port < fabric->graph.port_count; port++)
		count += sa_in_subnet(fabric, port);
	return count;
}

static bool walk_from(struct sa_request *request, uint32_t from, uint32_t to,
		      unsigned int number)
{
	if (to != NONE)
		return offer_pair(request, from, to, number);
	for (to = 0; to < request->fabric->graph.port_count; to++)
		if (sa_in_subnet(request->fabric, to) && !offer_pair(request, from, to, number))
			return false;
	return true;
}

static void walk_paths(struct sa_request *request)
{
	unsigned int number = request->table ? 127 : 1;
	uint32_t from;
	uint32_t to;

	if (request->mask & NUMBER && request->table)
		number = request->record[AT_NUMBER] & 0x7f;
	if (!number || (request->mask & RAW && request->record[AT_FLOW] & 0x80)) {
		request->status = SA_INVALID;
		return;
	}
	if (!find_end(request, SGID, AT_SGID, SLID, AT_SLID, &from) ||
	    to_group(request, from) || !find_end(request, DGID, AT_DGID, DLID, AT_DLID, &to))
		return;
	if (from != NONE) {
		walk_from(request, from, to, number);
		return;
	}
	if (request->table && to == NONE) {
		uint64_t ends = end_count(request->fabric);

		if (ends * ends > MAX_RECORDS) {
			request->status = SA_NO_RESOURCES;
			return;
		}
	}
	for (from = 0; from < request->fabric->graph.port_count; from++)
		if (sa_in_subnet(request->fabric, from) &&
		    !walk_from(request, from, to, number))
			return;
}

static const uint16_t path_fields[] = {32, 32, 128, 128, 16, 16, 1, 3, 20, 8, 8, 1,
				       7,  16, 12,  4,   2,  6,  2, 6, 2,  6, 8};

const struct record_type path_record = {
	.attribute = IB_SA_ATTR_PATHRECORD,
	.size = PATH_SIZE,
	FIELDS(path_fields),
	.walk = walk_paths,
};
