/* SPDX-License-Identifier: BSD-2-Clause */

/* Subnet administrator (SA): subscriptions to notices, and the Reports to subscribers (IBA
 * 13.4.8.3, 13.4.11). */
#include <stdlib.h>

#include "sa_match.h"
#include "sa_subscriptions.h"
#include "wire.h"

enum { /* offsets in InformInfo (IBA 13.4.8.3) */
	AT_GID = 0,
	AT_LID_BEGIN = 16,
	AT_LID_END = 18,
	AT_IS_GENERIC = 22,
	AT_SUBSCRIBE = 23,
	AT_TYPE = 24,
	AT_TRAP = 26,
	AT_QP = 28,
	AT_PRODUCER = 33,
	INFORM_SIZE = 36
};

enum { /* offsets in a Notice, which the issuer's GID follows (IBA 13.4.8.2) */
	NOTICE_TYPE = 0,
	NOTICE_PRODUCER = 1,
	NOTICE_TRAP = 4,
	NOTICE_LID = 6,
	NOTICE_DETAILS = 10,
	NOTICE_GID = 64,
	NOTICE_SIZE = 80
};

#define NOTICE            0x0002 /* the attribute */
#define GENERIC           0x80
#define SUBNET_MANAGEMENT 3 /* the type of traps 64 - 67 */
#define CLASS_MANAGER     4 /* and their producer type */
#define ALL_LIDS          0xffff
#define ALL_TYPES         0xffff
#define ALL_TRAPS         0xffff
#define ALL_PRODUCERS     0xffffff
#define AT_INFORM         24 /* offset in InformInfoRecord */
#define TRAP_NOTICE       64 /* offset of the Notice in a trap */

struct subscription {
	struct subscription *next;
	uint32_t port;
	uint16_t lid;
	uint16_t number; /* SubscriberEnum */
	uint8_t inform[INFORM_SIZE];
};

void subscriptions_free(struct sa *sa)
{
	while (sa->subscriptions) {
		struct subscription *next = sa->subscriptions->next;

		free(sa->subscriptions);
		sa->subscriptions = next;
	}
}

/* The response time and reserved bytes do not count. */
static bool same(const uint8_t *a, const uint8_t *b)
{
	return memcmp(a, b, AT_LID_END + 2) == 0 && a[AT_IS_GENERIC] == b[AT_IS_GENERIC] &&
	       memcmp(a + AT_TYPE, b + AT_TYPE, AT_QP + 3 - AT_TYPE) == 0 &&
	       memcmp(a + AT_PRODUCER, b + AT_PRODUCER, 3) == 0;
}

/* The requester's subscription in the list, or the end of the list. */
static struct subscription **find(struct sa_request *request)
{
	struct subscription **link = &request->sa->subscriptions;

	while (*link && ((*link)->port != request->from || (*link)->lid != request->from_lid ||
			 !same((*link)->inform, request->record)))
		link = &(*link)->next;
	return link;
}

/* The lowest number not used by another subscription of the port. */
static uint16_t next_number(const struct sa *sa, uint32_t port)
{
	const struct subscription *subscription = sa->subscriptions;
	uint16_t number = 0;

	while (subscription) {
		if (subscription->port == port && subscription->number == number) {
			number++;
			subscription = sa->subscriptions;
		} else {
			subscription = subscription->next;
		}
	}
	return number;
}

unsigned int subscribe(struct sa_request *request)
{
	struct subscription **link = find(request);
	struct subscription *subscription = *link;

	switch (request->record[AT_SUBSCRIBE]) {
	case 0:
		if (!subscription)
			return SA_INVALID;
		*link = subscription->next;
		free(subscription);
		return STATUS_OK;
	case 1:
		if (subscription)
			return STATUS_OK;
		subscription = calloc(1, sizeof(*subscription));
		if (!subscription)
			return SA_NO_RESOURCES;
		subscription->port = request->from;
		subscription->lid = request->from_lid;
		subscription->number = next_number(request->sa, request->from);
		memcpy(subscription->inform, request->record, INFORM_SIZE);
		*link = subscription;
		return STATUS_OK;
	default:
		return SA_INVALID;
	}
}

static void walk_subscriptions(struct sa_request *request)
{
	const struct subscription *subscription = request->sa->subscriptions;

	for (; subscription; subscription = subscription->next) {
		uint8_t record[AT_INFORM + INFORM_SIZE] = {0};

		port_gid(request->fabric, subscription->port, record);
		put16(record + 16, subscription->number);
		memcpy(record + AT_INFORM, subscription->inform, INFORM_SIZE);
		if (!sa_offer(request, record))
			return;
	}
}

static uint32_t get24(const uint8_t *at)
{
	return get32(at) >> 8;
}

/* Compares the issuer's GID or, if the subscription has none, its LIDs. */
static bool wants_issuer(const uint8_t *inform, const uint8_t *notice)
{
	unsigned int lid = get16(notice + NOTICE_LID);
	unsigned int begin = get16(inform + AT_LID_BEGIN);
	unsigned int end = get16(inform + AT_LID_END);

	if (get64(inform + AT_GID) || get64(inform + AT_GID + 8))
		return memcmp(inform + AT_GID, notice + NOTICE_GID, 16) == 0;
	return begin == ALL_LIDS || lid == begin || (lid > begin && lid <= end);
}

static bool wants(const uint8_t *inform, const uint8_t *notice)
{
	unsigned int type = get16(inform + AT_TYPE);
	unsigned int trap = get16(inform + AT_TRAP);
	uint32_t producer = get32(inform + AT_PRODUCER - 1) & 0xffffff;

	return (inform[AT_IS_GENERIC] != 0) == ((notice[NOTICE_TYPE] & GENERIC) != 0) &&
	       (type == ALL_TYPES || type == (notice[NOTICE_TYPE] & 0x7fU)) &&
	       (trap == ALL_TRAPS || trap == get16(notice + NOTICE_TRAP)) &&
	       (producer == ALL_PRODUCERS || producer == get24(notice + NOTICE_PRODUCER)) &&
	       wants_issuer(inform, notice);
}

static void report(struct sa *sa, const uint8_t notice[NOTICE_SIZE])
{
	const struct subscription *next;
	const struct subscription *subscription = sa->subscriptions;

	for (; subscription; subscription = next) {
		uint8_t mad[MAD_BYTES] = {1, CLASS_SA, 2, METHOD_REPORT};

		next = subscription->next;
		if (!wants(subscription->inform, notice))
			continue;
		put64(mad + 8, ++sa->transaction);
		put16(mad + 16, NOTICE);
		memcpy(mad + SA_HEADER, notice, NOTICE_SIZE);
		sa->send(sa->context, subscription->lid, mad);
	}
}

void sa_gid_event(struct sa *sa, unsigned int trap, const uint8_t gid[16])
{
	uint32_t issuer = sa->fabric->sm_port;
	uint8_t notice[NOTICE_SIZE] = {GENERIC | SUBNET_MANAGEMENT, 0, 0, CLASS_MANAGER};

	put16(notice + NOTICE_TRAP, trap);
	memcpy(notice + NOTICE_DETAILS + 6, gid, 16);
	if (issuer != NONE) {
		put16(notice + NOTICE_LID, sa->fabric->ports[issuer].lid);
		port_gid(sa->fabric, issuer, notice + NOTICE_GID);
	}
	report(sa, notice);
}

void sa_forward_trap(struct sa *sa, const uint8_t trap[MAD_BYTES])
{
	uint8_t notice[NOTICE_SIZE] = {0};
	uint32_t issuer;

	memcpy(notice, trap + TRAP_NOTICE, NOTICE_GID);
	issuer = lid_owner(sa->fabric, (uint16_t)get16(notice + NOTICE_LID));
	if (issuer != NONE)
		port_gid(sa->fabric, issuer, notice + NOTICE_GID);
	report(sa, notice);
}

static const uint16_t inform_fields[] = {128, 16, 48, 128, 16, 16, 16, 8,
					 8,   16, 16, 24,  3,  5,  8,  24};

const struct record_type inform_info_record = {
	.attribute = IB_SA_ATTR_INFORMINFORECORD,
	.size = AT_INFORM + INFORM_SIZE,
	FIELDS(inform_fields),
	.walk = walk_subscriptions,
};
