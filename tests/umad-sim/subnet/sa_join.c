/* SPDX-License-Identifier: BSD-2-Clause */

/* Subnet administrator (SA): join, create and leave multicast groups (IBA 15.2.5.17). */
#include <stdlib.h>

#include "link.h"
#include "sa_groups.h"
#include "sa_match.h"
#include "sa_subscriptions.h"
#include "settings.h"
#include "trees.h"

#define IS_CREATED 66 /* traps (IBA 14.2.5.1) */
#define IS_DELETED 67

static struct member *find_member(const struct group *group, uint32_t port)
{
	struct member *member = group->members;

	while (member && member->port != port)
		member = member->next;
	return member;
}

static bool has_full_member(const struct group *group)
{
	for (const struct member *member = group->members; member; member = member->next)
		if (member->state & FULL_MEMBERS)
			return true;
	return false;
}

/* Whether a group with this MGID may be created (IBA 4.1.1): flags must be 000T; scopes 0 and f
 * are reserved. */
static bool is_creatable(const uint8_t mgid[16])
{
	unsigned int scope = mgid[1] & 0xf;

	return mgid[0] == 0xff && (mgid[1] & 0xe0) == 0 && scope != 0 && scope != 0xf;
}

/* Makes an MGID with the SA's signature that is unique in the subnet (IBA 15.2.5.17). */
static void make_mgid(const struct sa_request *request, uint8_t mgid[16])
{
	unsigned int scope = UMAD_SA_MCM_ADDR_SCOPE_LINK_LOCAL;

	if (request->mask & UMAD_SA_MCM_COMP_MASK_SCOPE)
		scope = request->record[MCM_AT_SCOPE_STATE] >> 4;
	memset(mgid, 0, 16);
	mgid[0] = 0xff;
	mgid[1] = (uint8_t)(0x10 | scope);
	put16(mgid + 2, 0xa01b);
	put64(mgid + 4, gid_prefix(request->fabric, request->from));
	do {
		put32(mgid + 12, ++request->sa->unique);
	} while (group_find(request->sa, mgid));
}

/* What a port supports; port 0 of a switch counts as its best port. */
static void limits_of(const struct fabric *fabric, uint32_t port, uint8_t *mtu, uint8_t *rate)
{
	const struct graph_port *end = cable(fabric, port);
	uint32_t last = port;

	*mtu = fabric->ports[port].mtu;
	*rate = 0;
	if (hardware(fabric, end->node)->type == NODE_SWITCH)
		last += hardware(fabric, end->node)->port_count;
	for (; port <= last; port++) {
		uint8_t code;

		end = cable(fabric, port);
		code = end->width ? rate_code(fabric->ports[port].width,
					      active_speed(fabric, port))
				  : 0;
		if (rate_compare(code, *rate) > 0)
			*rate = code;
	}
}

/* Fills in the requested values, else the best that the creator's port supports. */
static bool choose_values(const struct sa_request *request, uint32_t port, uint8_t *record)
{
	const uint8_t *wanted = request->record;
	uint8_t life = 0;
	uint8_t mtu;
	uint8_t rate;

	limits_of(request->fabric, port, &mtu, &rate);
	if ((request->mask & MCM_LIFE) != MCM_LIFE)
		life = DEFAULT_LIFE;
	if (((request->mask & MCM_MTU) == MCM_MTU && !sa_fit_mtu(wanted[MCM_AT_MTU], &mtu)) ||
	    ((request->mask & MCM_RATE) == MCM_RATE &&
	     !sa_fit_rate(wanted[MCM_AT_RATE], &rate)) ||
	    ((request->mask & MCM_LIFE) == MCM_LIFE &&
	     !sa_fit_life(wanted[MCM_AT_LIFE], &life)))
		return false;
	record[MCM_AT_MTU] = SELECT_EXACTLY | mtu;
	record[MCM_AT_RATE] = SELECT_EXACTLY | rate;
	record[MCM_AT_LIFE] = SELECT_EXACTLY | life;
	return true;
}

/* Creates a group for its first full member. Returns a status. */
static unsigned int create(const struct sa_request *request, uint32_t port,
			   struct group **created)
{
	const uint8_t *wanted = request->record;
	uint8_t record[MCM_SIZE] = {0};
	uint8_t mgid[16];

	if ((request->mask & TO_CREATE) != TO_CREATE)
		return SA_INSUFFICIENT_COMPONENTS;
	if (!(wanted[MCM_AT_SCOPE_STATE] & FULL_MEMBERS))
		return SA_INVALID;
	memcpy(mgid, wanted + MCM_AT_MGID, 16);
	if (!(request->mask & UMAD_SA_MCM_COMP_MASK_MGID) || (!get64(mgid) && !get64(mgid + 8)))
		make_mgid(request, mgid);
	if (!is_creatable(mgid) || !choose_values(request, port, record) ||
	    !sa_has_pkey(request->fabric, port, (uint16_t)get16(wanted + MCM_AT_PKEY)) ||
	    !sa_has_pkey(request->fabric, request->from, (uint16_t)get16(wanted + MCM_AT_PKEY)))
		return SA_INVALID;
	*created = group_add(request->sa, mgid);
	if (!*created)
		return SA_NO_RESOURCES;
	memcpy((*created)->record + MCM_AT_QKEY, wanted + MCM_AT_QKEY, 4);
	(*created)->record[MCM_AT_MTU] = record[MCM_AT_MTU];
	(*created)->record[MCM_AT_CLASS] = wanted[MCM_AT_CLASS];
	memcpy((*created)->record + MCM_AT_PKEY, wanted + MCM_AT_PKEY, 2);
	(*created)->record[MCM_AT_RATE] = record[MCM_AT_RATE];
	(*created)->record[MCM_AT_LIFE] = record[MCM_AT_LIFE];
	memcpy((*created)->record + MCM_AT_SL_FLOW_HOP, wanted + MCM_AT_SL_FLOW_HOP, 3);
	if (request->mask & UMAD_SA_MCM_COMP_MASK_HOP_LIMIT)
		(*created)->record[MCM_AT_SL_FLOW_HOP + 3] = wanted[MCM_AT_SL_FLOW_HOP + 3];
	return STATUS_OK;
}

/* Whether a port can join a group, by its rate, MTU and partition. */
static bool can_join(const struct sa_request *request, uint32_t port, const struct group *group)
{
	uint16_t pkey = (uint16_t)get16(group->record + MCM_AT_PKEY);
	uint8_t mtu;
	uint8_t rate;

	limits_of(request->fabric, port, &mtu, &rate);
	return mtu >= (group->record[MCM_AT_MTU] & 0x3f) &&
	       rate_compare(rate, group->record[MCM_AT_RATE] & 0x3f) >= 0 &&
	       sa_has_pkey(request->fabric, port, pkey) &&
	       sa_has_pkey(request->fabric, request->from, pkey);
}

/* Who may change a membership: its port, trusted requesters and, with ProxyJoin, others (IBA
 * 15.2.5.17). */
static bool may_change(const struct sa_request *request, const struct group *group,
		       const struct member *member)
{
	uint16_t pkey = (uint16_t)get16(group->record + MCM_AT_PKEY);

	return request->trusted || member->port == request->from ||
	       (member->proxy && sa_has_pkey(request->fabric, request->from, pkey));
}

static unsigned int add_member(struct sa_request *request, struct group *group, uint32_t port)
{
	struct member *member = find_member(group, port);

	if (member && !may_change(request, group, member))
		return SA_DENIED;
	if (!member) {
		member = calloc(1, sizeof(*member));
		if (!member || tree_join(request->fabric, mlid_of(group), port)) {
			free(member);
			return SA_NO_RESOURCES;
		}
		memcpy(member->gid, request->record + MCM_AT_PORT_GID, 16);
		member->port = port;
		member->proxy = port != request->from;
		member->next = group->members;
		group->members = member;
	}
	member->state |= request->record[MCM_AT_SCOPE_STATE] & 0xf;
	group_show_member(group, member, request->record);
	return STATUS_OK;
}

/* Whether a request names a membership: its port and the other components. */
static unsigned int check_member(const struct sa_request *request, uint64_t needed)
{
	if ((request->mask & needed) != needed)
		return SA_INSUFFICIENT_COMPONENTS;
	if (!(request->record[MCM_AT_SCOPE_STATE] & 0xf))
		return SA_INVALID;
	return STATUS_OK;
}

unsigned int group_join(struct sa_request *request)
{
	struct group *group = NULL;
	bool created = false;
	unsigned int status;
	uint32_t port;

	status = check_member(request, UMAD_SA_MCM_COMP_MASK_PORT_GID |
					       UMAD_SA_MCM_COMP_MASK_JOIN_STATE);
	if (status)
		return status;
	port = sa_find_gid(request->sa, request->record + MCM_AT_PORT_GID);
	if (port == NONE)
		return SA_INVALID_GID;
	if (request->mask & UMAD_SA_MCM_COMP_MASK_MGID)
		group = group_find(request->sa, request->record + MCM_AT_MGID);
	if (!group) {
		status = create(request, port, &group);
		created = status == STATUS_OK;
	} else if (!group_fits(request, group) || !can_join(request, port, group)) {
		status = SA_INVALID;
	}
	if (!status)
		status = add_member(request, group, port);
	if (created && status)
		group_remove(request->sa, group);
	else if (created)
		sa_gid_event(request->sa, IS_CREATED, group->record + MCM_AT_MGID);
	return status;
}

static void remove_member(struct fabric *fabric, struct group *group, struct member *member)
{
	struct member **link = &group->members;

	tree_leave(fabric, mlid_of(group), member->port);
	while (*link != member)
		link = &(*link)->next;
	*link = member->next;
	free(member);
}

/* Deletes a group without full members, even if it has other ones. */
static void remove_if_deserted(struct sa *sa, struct group *group)
{
	uint8_t mgid[16];

	if (group->permanent || has_full_member(group))
		return;
	memcpy(mgid, group->record + MCM_AT_MGID, sizeof(mgid));
	group_remove(sa, group);
	sa_gid_event(sa, IS_DELETED, mgid);
}

/* The response is the record with the JoinState that was removed. */
unsigned int group_leave(struct sa_request *request)
{
	uint8_t left = request->record[MCM_AT_SCOPE_STATE] & 0xf;
	struct member *member;
	struct group *group;
	unsigned int status;
	uint32_t port;

	status = check_member(request, UMAD_SA_MCM_COMP_MASK_MGID |
					       UMAD_SA_MCM_COMP_MASK_PORT_GID |
					       UMAD_SA_MCM_COMP_MASK_JOIN_STATE);
	if (status)
		return status;
	port = sa_find_gid(request->sa, request->record + MCM_AT_PORT_GID);
	group = group_find(request->sa, request->record + MCM_AT_MGID);
	member = group && port != NONE ? find_member(group, port) : NULL;
	if (!member || left & ~member->state)
		return SA_INVALID;
	if (!may_change(request, group, member))
		return SA_DENIED;
	group_show_member(group, member, request->record);
	request->record[MCM_AT_SCOPE_STATE] =
		(uint8_t)((group->record[MCM_AT_SCOPE_STATE] & 0xf0) | left);
	member->state &= (uint8_t)~left;
	if (!member->state)
		remove_member(request->fabric, group, member);
	remove_if_deserted(request->sa, group);
	return STATUS_OK;
}
