/* SPDX-License-Identifier: BSD-2-Clause */

/* Subnet administrator (SA): services that programs registered, until their leases expire (IBA
 * 15.2.5.14). */
#include <stdlib.h>

#include "sa_match.h"
#include "sa_services.h"
#include "settings.h"

enum { /* offsets in a record */
	AT_ID = 0,
	AT_GID = 8,
	AT_PKEY = 24,
	AT_LEASE = 28,
	AT_KEY = 32,
	AT_NAME = 48,
	AT_DATA = 112,
	RECORD_SIZE = 176
};

enum { /* components */
	ID = 1 << 0,
	GID = 1 << 1,
	PKEY = 1 << 2,
	LEASE = 1 << 4,
	KEY = 1 << 5,
	NAME = 1 << 6
};

#define FOREVER UINT32_MAX /* a lease */

struct service {
	struct service *next;
	uint64_t end; /* of the lease; UINT64_MAX: never */
	uint8_t record[RECORD_SIZE];
};

/* Removes services whose leases have expired. */
static void expire(struct sa *sa)
{
	struct service **link = &sa->services;

	while (*link) {
		struct service *service = *link;

		if (service->end > sa->fabric->now) {
			link = &service->next;
			continue;
		}
		*link = service->next;
		free(service);
	}
}

void services_free(struct sa *sa)
{
	while (sa->services) {
		struct service *next = sa->services->next;

		free(sa->services);
		sa->services = next;
	}
}

/*
 * A record as it reads now: with the remaining lease, and the key for trusted requesters only.
 */
static void show(const struct sa_request *request, const struct service *service,
		 uint8_t record[RECORD_SIZE])
{
	memcpy(record, service->record, RECORD_SIZE);
	if (service->end != UINT64_MAX)
		put32(record + AT_LEASE,
		      (uint32_t)((service->end - request->fabric->now + SECOND - 1) / SECOND));
	if (!request->trusted)
		memset(record + AT_KEY, 0, 16);
}

static void walk_services(struct sa_request *request)
{
	expire(request->sa);
	request->mask &= ~(uint64_t)LEASE; /* the lease changes all the time */
	for (struct service *service = request->sa->services; service;
	     service = service->next) {
		uint8_t record[RECORD_SIZE];

		if (!sa_matches(request->type, request->mask, request->record,
				service->record) ||
		    (!request->trusted &&
		     !sa_has_pkey(request->fabric, request->from,
				  (uint16_t)get16(service->record + AT_PKEY))))
			continue;
		show(request, service, record);
		if (!sa_append(request, record))
			return;
	}
}

/* Fills in defaults: the requester's own port, the default partition. */
static void complete(struct sa_request *request)
{
	uint8_t *record = request->record;

	if (!(request->mask & GID)) {
		put64(record + AT_GID, gid_prefix(request->fabric, request->from));
		put64(record + AT_GID + 8, cable(request->fabric, request->from)->guid);
	}
	if (!(request->mask & PKEY))
		put16(record + AT_PKEY, DEFAULT_PKEY);
	if (!(request->mask & LEASE))
		put32(record + AT_LEASE, FOREVER);
	if (!(request->mask & KEY))
		memset(record + AT_KEY, 0, 16);
	put16(record + AT_PKEY + 2, 0);
}

/* Whether the requester may change a service: it has the service's key, or there is none. */
static bool may_change(const struct sa_request *request, const struct service *service)
{
	static const uint8_t none[16];
	const uint8_t *key = service->record + AT_KEY;

	return memcmp(key, none, 16) == 0 || memcmp(key, request->record + AT_KEY, 16) == 0;
}

/* A service is identified by its id, GID and P_Key. */
static struct service *find(const struct sa_request *request)
{
	struct service *service = request->sa->services;

	while (service &&
	       (memcmp(service->record + AT_ID, request->record + AT_ID, 8) != 0 ||
		memcmp(service->record + AT_GID, request->record + AT_GID, 16) != 0 ||
		memcmp(service->record + AT_PKEY, request->record + AT_PKEY, 2) != 0))
		service = service->next;
	return service;
}

static void append(struct sa *sa, struct service *service)
{
	struct service **link = &sa->services;

	while (*link)
		link = &(*link)->next;
	*link = service;
}

static unsigned int announce(struct sa_request *request)
{
	struct service *service;
	uint32_t port;
	uint32_t lease;

	expire(request->sa);
	if (!(request->mask & ID) || !(request->mask & NAME))
		return SA_INSUFFICIENT_COMPONENTS;
	complete(request);
	port = sa_find_gid(request->sa, request->record + AT_GID);
	if (port == NONE)
		return SA_INVALID_GID;
	if (!sa_has_pkey(request->fabric, port, (uint16_t)get16(request->record + AT_PKEY)))
		return SA_INVALID;
	service = find(request);
	if (service && !may_change(request, service))
		return SA_DENIED;
	if (!service) {
		service = calloc(1, sizeof(*service));
		if (!service)
			return SA_NO_RESOURCES;
		append(request->sa, service);
	}
	memcpy(service->record, request->record, RECORD_SIZE);
	lease = get32(service->record + AT_LEASE);
	service->end = lease == FOREVER ? UINT64_MAX : request->fabric->now + lease * SECOND;
	show(request, service, request->record);
	return STATUS_OK;
}

static unsigned int withdraw(struct sa_request *request)
{
	struct service **link = &request->sa->services;
	struct service *service;

	expire(request->sa);
	if (!(request->mask & ID))
		return SA_INSUFFICIENT_COMPONENTS;
	complete(request);
	service = find(request);
	if (!service)
		return SA_NO_RECORDS;
	if (!may_change(request, service))
		return SA_DENIED;
	while (*link != service)
		link = &(*link)->next;
	*link = service->next;
	show(request, service, request->record);
	free(service);
	return STATUS_OK;
}

static const uint16_t service_fields[] = {
	64, 128, 16, 16, 32, 128, 512,                                   /* up to the name */
	8,  8,   8,  8,  8,  8,   8,   8,  8,  8,  8,  8,  8,  8,  8, 8, /* and the data */
	16, 16,  16, 16, 16, 16,  16,  16, 32, 32, 32, 32, 64, 64,
};

const struct record_type service_record = {
	.attribute = IB_SA_ATTR_SERVICERECORD,
	.size = RECORD_SIZE,
	FIELDS(service_fields),
	.walk = walk_services,
	.set = announce,
	.remove = withdraw,
};
