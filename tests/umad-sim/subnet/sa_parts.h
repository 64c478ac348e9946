/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What the parts of the subnet administrator share: the state of a request, and the types of
 * records.
 *
 * The specification numbers the components of a record in the order of its fields, including
 * reserved ones (IBA 15.2.5), so a list of the fields' widths gives the position of each.
 */
#ifndef FABRIC_SA_PARTS_H
#define FABRIC_SA_PARTS_H

#include "classes.h"
#include "query.h"

#define SA_HEADER    56 /* MAD, RMPP and SA headers (IBA 15.2.1.1) */
#define MAX_RECORDS  1000000
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define COMPONENT(number) (1ULL << (number))

enum sa_status { /* IBA 15.2.3: class-specific part of the MAD status */
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
	/* calls sa_offer() (sa_match.h) for all records, or sa_append() for those that match */
	void (*walk)(struct sa_request *request);
	/* Set and Delete: return a status; the record in the request becomes the response.
	 * NULL: unsupported */
	unsigned int (*set)(struct sa_request *request);
	unsigned int (*remove)(struct sa_request *request);
};

struct sa_request {
	struct sa *sa;
	struct fabric *fabric;
	const struct record_type *type;
	uint64_t mask;     /* components not compared yet */
	uint32_t from;     /* the requester: its end port */
	uint16_t from_lid; /* its LID */
	bool trusted;      /* the requester has an SM_Key (IBA 15.4.1) */
	bool table;        /* GetTable */
	uint8_t mad[MAD_BYTES];
	uint8_t *record;     /* in the request */
	unsigned int status; /* the error that ended the search */
	uint8_t *response;   /* header and records so far */
	size_t room;         /* allocated bytes of it */
	uint32_t count;      /* number of records */
};

struct sa {
	struct fabric *fabric;
	/* sa_send_fn of sa.h */
	void (*send)(void *context, uint16_t lid, const uint8_t mad[MAD_BYTES]);
	void *context;
	uint32_t *by_guid; /* a hash table of end ports; NULL: not needed yet */
	uint32_t by_guid_mask;
	struct group *groups; /* in the order of creation */
	struct service *services;
	struct subscription *subscriptions;
	uint64_t transaction; /* TID of the last Report */
	uint32_t unique;      /* in the last MGID that the SA made */
	uint32_t last_alias;  /* in the last GUID that the SA assigned */
	bool mlid_used[MLID_COUNT];
};

/* The list of widths covers all components of the type. */
#define FIELDS(list) .component_count = COUNT(list), .widths = (list)

extern const struct record_type node_record, port_info_record, switch_info_record,
	sm_info_record, link_record, guid_info_record, pkey_record, sl_to_vl_record,
	vl_arbitration_record, linear_record, multicast_record, path_record, member_record,
	service_record, inform_info_record;

/* Adds a record to the response; false if no more records are needed. */
bool sa_append(struct sa_request *request, const uint8_t *record);

/* The distance between two records of a type: AttributeOffset times 8 bytes. */
size_t sa_stride(const struct record_type *type);

#endif
