/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What the parts of the subnet administration share: a request on its way to an answer, and the
 * types of records.
 *
 * The specification numbers the components of a record in the order in which its fields stand,
 * reserved ones among them (IBA 15.2.5): a list of the fields' widths says where each is.
 */
#ifndef FABRIC_SA_PARTS_H
#define FABRIC_SA_PARTS_H

#include "classes.h"
#include "query.h"

#define SA_HEADER    56 /* MAD, RMPP and SA headers (IBA 15.2.1.1) */
#define MAX_RECORDS  1000000
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define COMPONENT(number) (1ULL << (number))

enum sa_status { /* IBA 15.2.3: the class-specific part of MAD status */
	SA_NO_RESOURCES = 0x0100,
	SA_INVALID = 0x0200,
	SA_NO_RECORDS = 0x0300,
	SA_TOO_MANY_RECORDS = 0x0400,
	SA_INVALID_GID = 0x0500,
	SA_INSUFFICIENT_COMPONENTS = 0x0600,
	SA_DENIED = 0x0700
};

struct sa_request;

struct record_type {
	uint16_t attribute;
	uint16_t size; /* bytes */
	uint16_t component_count;
	const uint16_t *widths; /* of the components, in bits */
	/* offers all records that there are to sa_offer() (sa_match.h), or those that fit to
	 * sa_append() */
	void (*walk)(struct sa_request *request);
	/* Set and Delete: a status; the record in the request becomes the answer. NULL:
	 * unsupported */
	unsigned int (*set)(struct sa_request *request);
	unsigned int (*remove)(struct sa_request *request);
};

struct sa_request {
	struct sa *sa;
	struct fabric *fabric;
	const struct record_type *type;
	uint64_t mask;     /* the components that are still to be compared */
	uint32_t from;     /* who asks: an end port, */
	uint16_t from_lid; /* and the LID that it asked from */
	bool trusted;      /* it knows an SM_Key (IBA 15.4.1) */
	bool table;        /* GetTable */
	uint8_t mad[MAD_BYTES];
	uint8_t *record;     /* the one in the MAD */
	unsigned int status; /* what stopped the walk */
	uint8_t *answer;     /* header and the records so far */
	size_t room;         /* bytes of it */
	uint32_t count;      /* of records */
};

struct sa {
	struct fabric *fabric;
	/* sa.h: sa_send_fn */
	void (*send)(void *context, uint16_t lid, const uint8_t mad[MAD_BYTES]);
	void *context;
	uint32_t *by_guid; /* a hash table of end ports; NULL: nobody asked yet */
	uint32_t by_guid_mask;
	struct group *groups; /* in the order of their creation */
	struct service *services;
	struct subscription *subscriptions;
	uint64_t transaction; /* of the last Report */
	uint32_t unique;      /* of the last MGID made here, */
	uint32_t last_alias;  /* and of the last GUID */
	bool mlid_used[MLID_COUNT];
};

/* A list of widths is all components of its type. */
#define FIELDS(list) .component_count = COUNT(list), .widths = (list)

extern const struct record_type node_record, port_info_record, switch_info_record,
	sm_info_record, link_record, guid_info_record, pkey_record, sl_to_vl_record,
	vl_arbitration_record, linear_record, multicast_record, path_record, member_record,
	service_record, inform_info_record;

/* A record for the answer; false: no more are wanted. */
bool sa_append(struct sa_request *request, const uint8_t *record);

/* The records of one type stand this far apart: what AttributeOffset says, times 8 bytes. */
size_t sa_stride(const struct record_type *type);

#endif
