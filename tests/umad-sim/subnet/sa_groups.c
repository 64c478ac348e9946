/* SPDX-License-Identifier: BSD-2-Clause */

/* Subnet administrator (SA): multicast groups, and how they are found (IBA 15.2.5.17). */
#include <errno.h>
#include <stdlib.h>

#include "link.h"
#include "sa_groups.h"
#include "sa_match.h"
#include "trees.h"

struct group *group_find(struct sa *sa, const uint8_t mgid[16])
{
	struct group *group = sa->groups;

	while (group && memcmp(group->record + MCM_AT_MGID, mgid, 16) != 0)
		group = group->next;
	return group;
}

struct group *group_find_lid(struct sa *sa, uint16_t mlid)
{
	struct group *group = sa->groups;

	while (group && get16(group->record + MCM_AT_MLID) != mlid)
		group = group->next;
	return group;
}

struct group *group_add(struct sa *sa, const uint8_t mgid[16])
{
	struct group **end = &sa->groups;
	unsigned int place = 0;
	struct group *group;

	while (place < MLID_COUNT && sa->mlid_used[place])
		place++;
	group = place < MLID_COUNT ? calloc(1, sizeof(*group)) : NULL;
	if (!group)
		return NULL;
	memcpy(group->record + MCM_AT_MGID, mgid, 16);
	put16(group->record + MCM_AT_MLID, MLID_FIRST + place);
	group->record[MCM_AT_SCOPE_STATE] = (uint8_t)(mgid[1] << 4);
	sa->mlid_used[place] = true;
	while (*end)
		end = &(*end)->next;
	*end = group;
	return group;
}

static void free_group(struct group *group)
{
	while (group->members) {
		struct member *next = group->members->next;

		free(group->members);
		group->members = next;
	}
	free(group);
}

void group_remove(struct sa *sa, struct group *group)
{
	struct group **link = &sa->groups;

	while (*link != group)
		link = &(*link)->next;
	*link = group->next;
	sa->mlid_used[mlid_of(group) - MLID_FIRST] = false;
	for (const struct member *member = group->members; member; member = member->next)
		tree_leave(sa->fabric, mlid_of(group), member->port);
	free_group(group);
}

/* The IPv4 broadcast group of the default partition (RFC 4391, 4). */
int groups_start(struct sa *sa)
{
	static const uint8_t broadcast[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0,    0,
					      0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff};
	struct group *group = group_add(sa, broadcast);

	if (!group)
		return -ENOMEM;
	group->permanent = true;
	put32(group->record + MCM_AT_QKEY, 0x0b1b);
	group->record[MCM_AT_MTU] = SELECT_EXACTLY | MTU_2048;
	put16(group->record + MCM_AT_PKEY, DEFAULT_PKEY);
	group->record[MCM_AT_RATE] = SELECT_EXACTLY | DEFAULT_RATE;
	group->record[MCM_AT_LIFE] = SELECT_EXACTLY | DEFAULT_LIFE;
	return 0;
}

void groups_free(struct sa *sa)
{
	while (sa->groups) {
		struct group *next = sa->groups->next;

		free_group(sa->groups);
		sa->groups = next;
	}
}

void group_show_member(const struct group *group, const struct member *member,
		       uint8_t record[MCM_SIZE])
{
	memcpy(record, group->record, MCM_SIZE);
	memcpy(record + MCM_AT_PORT_GID, member->gid, 16);
	record[MCM_AT_SCOPE_STATE] |= member->state;
	record[MCM_AT_PROXY] = member->proxy ? PROXY : 0;
}

/*
 * Whether the selector and value in the request select a group's value; "best" selects nothing.
 */
static bool selects(const struct sa_request *request, uint64_t components, unsigned int at,
		    const struct group *group, int (*compare)(uint8_t a, uint8_t b))
{
	uint8_t wanted = request->record[at];
	int order;

	if ((request->mask & components) != components)
		return true;
	order = compare(group->record[at] & 0x3f, wanted & 0x3f);
	switch (wanted >> 6) {
	case 0:
		return order > 0;
	case 1:
		return order < 0;
	case 2:
		return order == 0;
	default:
		return true;
	}
}

static int compare_numbers(uint8_t a, uint8_t b)
{
	return a - b;
}

bool group_fits(const struct sa_request *request, const struct group *group)
{
	return sa_matches(request->type,
			  request->mask &
				  ~(uint64_t)(MCM_MTU | MCM_RATE | MCM_LIFE | OF_MEMBER),
			  request->record, group->record) &&
	       selects(request, MCM_MTU, MCM_AT_MTU, group, compare_numbers) &&
	       selects(request, MCM_RATE, MCM_AT_RATE, group, rate_compare) &&
	       selects(request, MCM_LIFE, MCM_AT_LIFE, group, compare_numbers);
}

static bool fits_member(const struct sa_request *request, const struct member *member)
{
	const uint8_t *wanted = request->record;

	if (request->mask & UMAD_SA_MCM_COMP_MASK_PORT_GID &&
	    memcmp(wanted + MCM_AT_PORT_GID, member->gid, 16) != 0)
		return false;
	if (!request->trusted)
		return true;
	if (request->mask & UMAD_SA_MCM_COMP_MASK_JOIN_STATE &&
	    !(wanted[MCM_AT_SCOPE_STATE] & member->state))
		return false;
	return !(request->mask & UMAD_SA_MCM_COMP_MASK_PROXY_JOIN) ||
	       (wanted[MCM_AT_PROXY] & PROXY) == (member->proxy ? PROXY : 0);
}

/* An untrusted requester sees the groups in its own partitions, but not their members (IBA
 * 15.4.1.2): PortGID, JoinState and ProxyJoin are 0. */
static bool offer_group(struct sa_request *request, const struct group *group)
{
	uint16_t pkey = (uint16_t)get16(group->record + MCM_AT_PKEY);

	if (!group_fits(request, group) ||
	    (!request->trusted && !sa_has_pkey(request->fabric, request->from, pkey)))
		return true;
	if (!(request->mask & OF_MEMBER) && (!request->trusted || !group->members))
		return sa_append(request, group->record);
	for (const struct member *member = group->members; member; member = member->next) {
		uint8_t record[MCM_SIZE];

		if (!fits_member(request, member))
			continue;
		if (!request->trusted)
			return sa_append(request, group->record);
		group_show_member(group, member, record);
		if (!sa_append(request, record))
			return false;
	}
	return true;
}

static void walk_groups(struct sa_request *request)
{
	/* wildcards for an untrusted requester */
	if (!request->trusted)
		request->mask &= ~(uint64_t)(UMAD_SA_MCM_COMP_MASK_JOIN_STATE |
					     UMAD_SA_MCM_COMP_MASK_PROXY_JOIN);
	for (const struct group *group = request->sa->groups; group; group = group->next)
		if (!offer_group(request, group))
			return;
}

static const uint16_t member_fields[] = {128, 128, 32, 16, 2,  6, 8, 16, 2,
					 6,   2,   6,  4,  20, 8, 4, 4,  1};

const struct record_type member_record = {
	.attribute = IB_SA_ATTR_MCRECORD,
	.size = MCM_SIZE,
	FIELDS(member_fields),
	.walk = walk_groups,
	.set = group_join,
	.remove = group_leave,
};
