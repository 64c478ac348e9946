/* SPDX-License-Identifier: BSD-2-Clause */

/* Questions to subnet administration (IBA 15.2), and its tables. */

#include "classes/sa_table.h"

#include "base/export.h"
#include "mad/gmp.h"
#include "mad/mad_wire.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

/* Of the header (IBA 13.6.2.1, 15.2.1.1). */
#define ATTRIBUTE_OFFSET_OFFS 44
#define ATTRIBUTE_OFFSET_UNIT 8

/* ERR_NO_RECORDS (IBA 15.2.3) in the status field. */
#define NO_RECORDS (UMAD_SA_STATUS_NO_RECORDS << 8)

/* Bytes of each attribute's record without padding (IBA 15.2.5); others are not checked. */
static size_t record_size(unsigned attribute)
{
	switch (attribute) {
	case IB_SA_ATTR_NODERECORD:
		return IB_SA_NR_RECSZ;
	case IB_SA_ATTR_PORTINFORECORD:
		return offsetof(struct mad_sa_port_info_record, pad);
	case IB_SA_ATTR_LINKRECORD:
		return offsetof(struct mad_sa_link_record, pad);
	case IB_SA_ATTR_GUIDINFORECORD:
		return IB_SA_GIR_RECSZ;
	case IB_SA_ATTR_SERVICERECORD:
		return SERVICE_RECORD_SIZE;
	case IB_SA_ATTR_PATHRECORD:
		return IB_SA_PR_RECSZ;
	case IB_SA_ATTR_MCRECORD:
		return offsetof(struct umad_sa_mcmember_record, pad);
	case IB_SA_ATTR_INFORMINFORECORD:
		return offsetof(struct mad_sa_inform_info_record, pad);
	}
	return 0;
}

/* --- asking --------------------------------------------------------------------- */

/* Where the question goes; 0 or a negative errno. */
static int address_sa(const struct ibmad_port *port, const struct mad_sa_query *query,
		      ib_portid_t *sa)
{
	if (!query->sa) {
		if (ib_resolve_smlid_via(sa, query->timeout_ms, port))
			return -errno;
	} else {
		*sa = *query->sa;
		if (sa->lid <= 0)
			return -EINVAL;
	}
	address_qp1(sa);
	return 0;
}

static int ask(const struct ibmad_port *port, struct mad_sa_query *query, int method,
	       struct mad_message *response)
{
	ib_rpc_t rpc = {
		.mgtclass = IB_SA_CLASS,
		.method = method,
		.attr = {.id = query->attribute, .mod = query->modifier},
		.dataoffs = IB_SA_DATA_OFFS,
		.datasz = IB_SA_DATA_SIZE,
		.mkey = sa_key_get(port),
		.mask = query->component_mask,
		.timeout = query->timeout_ms,
	};
	ib_portid_t sa;
	int err = address_sa(port, query, &sa);

	if (err)
		return err;
	err = mad_rpc_message(port, &rpc, &sa, query->record, query->record_size, response);
	query->status = rpc.rstatus;
	return err;
}

/* A record and its size go together. */
static bool is_query(const struct ibmad_port *port, struct mad_sa_query *query)
{
	if (!port || !query || query->attribute > UINT16_MAX ||
	    query->record_size > IB_SA_DATA_SIZE || !query->record != !query->record_size)
		return false;
	query->status = 0;
	return true;
}

EXPORT int mad_sa_get(const struct ibmad_port *port, struct mad_sa_query *query, void *record,
		      size_t size)
{
	struct mad_message response = {0};
	int err;

	if (!is_query(port, query) || !record || size > IB_SA_DATA_SIZE)
		return -EINVAL;
	err = ask(port, query, IB_MAD_METHOD_GET, &response);
	if (err)
		return err;
	if (response.length < IB_SA_DATA_OFFS + size)
		err = -EBADMSG;
	else
		memcpy(record, response.mad + IB_SA_DATA_OFFS, size);
	mad_message_free(&response);
	return err;
}

/* --- tables --------------------------------------------------------------------- */

/* Whether RMPP carried it: otherwise nobody has said where the data ends. */
static bool is_table(const struct mad_message *message)
{
	return message->length >= IB_SA_DATA_OFFS &&
	       message->mad[RMPP_TYPE_OFFS] == IB_RMPP_TYPE_DATA &&
	       message->mad[RMPP_FLAGS_OFFS] & IB_RMPP_FLAG_ACTIVE;
}

int sa_table_parse(struct mad_sa_table *table, size_t least)
{
	const uint8_t *mad = table->message.mad;
	size_t data;

	if (!is_table(&table->message))
		return -EBADMSG;
	data = table->message.length - IB_SA_DATA_OFFS;
	if (!data)
		return 0; /* the AttributeOffset means nothing then */
	table->record_size = (size_t)get16(mad, ATTRIBUTE_OFFSET_OFFS) * ATTRIBUTE_OFFSET_UNIT;
	if (!table->record_size || table->record_size < least)
		return -EPROTO;
	table->count = data / table->record_size; /* what is left over is padding */
	return 0;
}

static int fill_table(const struct ibmad_port *port, struct mad_sa_query *query,
		      struct mad_sa_table *table)
{
	size_t least = record_size(query->attribute);
	int err = ask(port, query, IB_MAD_METHOD_GET_TABLE, &table->message);

	if (err == -EIO && query->status == NO_RECORDS)
		return 0;
	if (err)
		return err;
	return sa_table_parse(table, least > query->record_size ? least : query->record_size);
}

EXPORT int mad_sa_get_table(const struct ibmad_port *port, struct mad_sa_query *query,
			    struct mad_sa_table **table)
{
	struct mad_sa_table *filled;
	int err;

	if (!table)
		return -EINVAL;
	*table = NULL;
	if (!is_query(port, query))
		return -EINVAL;
	filled = calloc(1, sizeof(*filled));
	if (!filled)
		return -ENOMEM;
	err = fill_table(port, query, filled);
	if (err) {
		mad_sa_table_free(filled);
		return err;
	}
	*table = filled;
	return 0;
}

EXPORT size_t mad_sa_table_count(const struct mad_sa_table *table)
{
	return table ? table->count : 0;
}

EXPORT size_t mad_sa_table_record_size(const struct mad_sa_table *table)
{
	return table ? table->record_size : 0;
}

EXPORT void *mad_sa_table_record(const struct mad_sa_table *table, size_t index)
{
	if (!table || index >= table->count)
		return NULL;
	return table->message.mad + IB_SA_DATA_OFFS + index * table->record_size;
}

EXPORT void mad_sa_table_free(struct mad_sa_table *table)
{
	if (!table)
		return;
	mad_message_free(&table->message);
	free(table);
}
