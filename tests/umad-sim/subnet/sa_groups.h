/* SPDX-License-Identifier: BSD-2-Clause */

/* MCMemberRecords (IBA 15.2.5.17), for queries and for changes. */
#ifndef FABRIC_SA_GROUPS_H
#define FABRIC_SA_GROUPS_H

#include <infiniband/umad_sa_mcm.h>

#include "sa_parts.h"

enum { /* offsets in a record */
	MCM_AT_MGID = 0,
	MCM_AT_PORT_GID = 16,
	MCM_AT_QKEY = 32,
	MCM_AT_MLID = 36,
	MCM_AT_MTU = 38,
	MCM_AT_CLASS = 39,
	MCM_AT_PKEY = 40,
	MCM_AT_RATE = 42,
	MCM_AT_LIFE = 43,
	MCM_AT_SL_FLOW_HOP = 44,
	MCM_AT_SCOPE_STATE = 48,
	MCM_AT_PROXY = 49,
	MCM_SIZE = 52
};

#define PROXY 0x80

#define MCM_MTU  (UMAD_SA_MCM_COMP_MASK_MTU_SEL | UMAD_SA_MCM_COMP_MASK_MTU)
#define MCM_RATE (UMAD_SA_MCM_COMP_MASK_RATE_SEL | UMAD_SA_MCM_COMP_MASK_RATE)
#define MCM_LIFE (UMAD_SA_MCM_COMP_MASK_LIFE_TIME_SEL | UMAD_SA_MCM_COMP_MASK_LIFE_TIME)
#define OF_MEMBER                                                            \
	(UMAD_SA_MCM_COMP_MASK_PORT_GID | UMAD_SA_MCM_COMP_MASK_JOIN_STATE | \
	 UMAD_SA_MCM_COMP_MASK_PROXY_JOIN)
#define TO_CREATE                                                    \
	(UMAD_SA_MCM_COMP_MASK_QKEY | UMAD_SA_MCM_COMP_MASK_TCLASS | \
	 UMAD_SA_MCM_COMP_MASK_PKEY | UMAD_SA_MCM_COMP_MASK_SL |     \
	 UMAD_SA_MCM_COMP_MASK_FLOW_LABEL)

#define FULL_MEMBERS \
	(UMAD_SA_MCM_JOIN_STATE_FULL_MEMBER | UMAD_SA_MCM_JOIN_STATE_SEND_ONLY_FULL_MEMBER)

#define DEFAULT_LIFE 18 /* 4.096 us * 2^18: a second */
#define DEFAULT_RATE 3  /* 10 Gb/s, and 2048 bytes: every port supports them */
#define MTU_2048     4

struct member {
	struct member *next;
	uint32_t port;
	uint8_t gid[16]; /* the GID with which it joined */
	uint8_t state;   /* JoinState */
	bool proxy;      /* joined by another port */
};

struct group {
	struct group *next;
	struct member *members;
	bool permanent;
	uint8_t record[52]; /* the group's MCMemberRecord, with the member's part empty */
};

static inline uint16_t mlid_of(const struct group *group)
{
	return (uint16_t)get16(group->record + MCM_AT_MLID);
}

int groups_start(struct sa *sa);
struct group *group_find(struct sa *sa, const uint8_t mgid[16]);
struct group *group_find_lid(struct sa *sa, uint16_t mlid);
void groups_free(struct sa *sa);

/* Adds a group at the end, with the lowest free MLID; NULL if there is none, or on OOM. */
struct group *group_add(struct sa *sa, const uint8_t mgid[16]);
void group_remove(struct sa *sa, struct group *group);

/* Whether a group matches a request's components that concern groups. */
bool group_fits(const struct sa_request *request, const struct group *group);

/* Stores a group's record with the part of a member. */
void group_show_member(const struct group *group, const struct member *member,
		       uint8_t record[MCM_SIZE]);

/* Handle Set and Delete, in sa_join.c. */
unsigned int group_join(struct sa_request *request);
unsigned int group_leave(struct sa_request *request);

#endif
