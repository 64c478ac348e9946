/* SPDX-License-Identifier: BSD-2-Clause */

/* Multicast groups and services (IBA 15.2.5.14, 15.2.5.17). */

#include "base/export.h"
#include "sa/sa.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_sa.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#define DEFAULT_PKEY 0xffff
#define NO_END       UINT32_MAX /* of a lease */

static bool is_zero(const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	while (size && !*at) {
		at++;
		size--;
	}
	return !size;
}

/* Replaces zeros by the port's own GID: 0, or a negative errno. */
static int complete_gid(const struct ibmad_port *port, uint8_t gid[16])
{
	ibmad_gid_t own;

	if (!is_zero(gid, sizeof(own)))
		return 0;
	if (ib_resolve_self_via(NULL, NULL, &own, port))
		return mad_last_failure()->error;
	memcpy(gid, own, sizeof(own));
	return 0;
}

/* --- groups --------------------------------------------------------------------- */

EXPORT void mad_sa_member_fill_query(struct mad_sa_query *query,
				     struct umad_sa_mcmember_record *member,
				     unsigned join_state)
{
	umad_sa_mcm_set_join_state(member, (uint8_t)join_state);
	query->attribute = IB_SA_ATTR_MCRECORD;
	query->modifier = 0;
	query->component_mask |= UMAD_SA_MCM_COMP_MASK_MGID | UMAD_SA_MCM_COMP_MASK_PORT_GID |
				 UMAD_SA_MCM_COMP_MASK_JOIN_STATE;
	query->record = member;
	query->record_size = offsetof(struct umad_sa_mcmember_record, pad);
}

typedef int call_fn(const struct ibmad_port *port, struct mad_sa_query *query, void *record,
		    size_t size);

static int change_member(call_fn *call, const struct ibmad_port *port,
			 struct mad_sa_query *query, struct umad_sa_mcmember_record *member,
			 unsigned join_state)
{
	struct mad_sa_query own = {0};
	int err;

	if (!query)
		query = &own;
	query->status = 0;
	if (!port || !member || !join_state || join_state > 0xf)
		return sa_query_fail(NULL, 0, -EINVAL);
	err = complete_gid(port, member->portgid);
	if (err)
		return err;
	mad_sa_member_fill_query(query, member, join_state);
	return call(port, query, member, query->record_size);
}

EXPORT int mad_sa_join(const struct ibmad_port *port, struct mad_sa_query *query,
		       struct umad_sa_mcmember_record *member, unsigned join_state)
{
	return change_member(mad_sa_set, port, query, member, join_state);
}

EXPORT int mad_sa_leave(const struct ibmad_port *port, struct mad_sa_query *query,
			struct umad_sa_mcmember_record *member, unsigned join_state)
{
	return change_member(mad_sa_delete, port, query, member, join_state);
}

/* --- services ------------------------------------------------------------------- */

EXPORT void mad_sa_service_fill_query(struct mad_sa_query *query,
				      const struct mad_sa_service_record *service)
{
	uint64_t mask = 0;
	unsigned i;

	mask |= service->id ? MAD_SA_SERVICE_ID : 0;
	mask |= is_zero(service->gid, sizeof(service->gid)) ? 0 : MAD_SA_SERVICE_GID;
	mask |= service->pkey ? MAD_SA_SERVICE_PKEY : 0;
	mask |= service->lease ? MAD_SA_SERVICE_LEASE : 0;
	mask |= is_zero(service->key, sizeof(service->key)) ? 0 : MAD_SA_SERVICE_KEY;
	mask |= service->name[0] ? MAD_SA_SERVICE_NAME : 0;
	for (i = 0; i < 30; i++)
		mask |= MAD_SA_SERVICE_DATA8(i); /* and the next values */
	query->attribute = IB_SA_ATTR_SERVICERECORD;
	query->modifier = 0;
	query->component_mask = mask;
	query->record = service;
	query->record_size = sizeof(*service);
}

static int complete_service(const struct ibmad_port *port,
			    struct mad_sa_service_record *service)
{
	if (!service->pkey)
		service->pkey = htobe16(DEFAULT_PKEY);
	return complete_gid(port, service->gid);
}

EXPORT int mad_sa_service_set(const struct ibmad_port *port, struct mad_sa_query *query,
			      struct mad_sa_service_record *service)
{
	struct mad_sa_query own = {0};
	int err;

	if (!query)
		query = &own;
	query->status = 0;
	if (!port || !service || !service->id || !service->name[0])
		return sa_query_fail(NULL, 0, -EINVAL);
	err = complete_service(port, service);
	if (err)
		return err;
	if (!service->lease)
		service->lease = htobe32(NO_END);
	mad_sa_service_fill_query(query, service);
	return mad_sa_set(port, query, service, sizeof(*service));
}

/* The components that identify a service, and the key. */
static int delete_one(const struct ibmad_port *port, struct mad_sa_query *query,
		      struct mad_sa_service_record *service)
{
	mad_sa_service_fill_query(query, service);
	query->component_mask &= MAD_SA_SERVICE_ID | MAD_SA_SERVICE_GID | MAD_SA_SERVICE_PKEY |
				 MAD_SA_SERVICE_KEY | MAD_SA_SERVICE_NAME;
	return mad_sa_delete(port, query, service, sizeof(*service));
}

/* The services of a GID with a name. The SA does not show their keys. */
static int delete_named(const struct ibmad_port *port, struct mad_sa_query *query,
			struct mad_sa_service_record *service)
{
	struct mad_sa_table *table;
	size_t i;
	int err;

	mad_sa_service_fill_query(query, service);
	query->component_mask &= MAD_SA_SERVICE_GID | MAD_SA_SERVICE_NAME;
	err = mad_sa_get_table(port, query, &table);
	if (!err && !mad_sa_table_count(table)) {
		query->status = SA_NO_RECORDS;
		err = sa_query_fail(query, IB_MAD_METHOD_GET_TABLE, -EIO);
	}
	for (i = 0; !err && i < mad_sa_table_count(table); i++) {
		struct mad_sa_service_record found;

		memcpy(&found, mad_sa_table_record(table, i), sizeof(found));
		memcpy(found.key, service->key, sizeof(found.key));
		err = delete_one(port, query, &found);
		if (!err)
			*service = found;
	}
	mad_sa_table_free(table);
	return err;
}

EXPORT int mad_sa_service_delete(const struct ibmad_port *port, struct mad_sa_query *query,
				 struct mad_sa_service_record *service)
{
	struct mad_sa_query own = {0};
	int err;

	if (!query)
		query = &own;
	query->status = 0;
	if (!port || !service || (!service->id && !service->name[0]))
		return sa_query_fail(NULL, 0, -EINVAL);
	err = complete_service(port, service);
	if (err)
		return err;
	return service->id ? delete_one(port, query, service)
			   : delete_named(port, query, service);
}
