/* SPDX-License-Identifier: BSD-2-Clause */

/* Blocking requests to the SA (IBA 15.2, 15.4). */

#include "sa/sa.h"

#include "base/export.h"
#include "base/report.h"
#include "calls/options.h"
#include "mad/layout.h"

#include <errno.h>

bool sa_query_is_for_table(int method)
{
	return method == IB_MAD_METHOD_GET_TABLE || method == IB_MAD_METHOD_GETMULTI;
}

bool sa_query_is_valid(const struct mad_sa_query *query, int method)
{
	switch (method) {
	case IB_MAD_METHOD_GETMULTI: /* RMPP can carry it */
		break;
	case IB_MAD_METHOD_GET:
	case IB_MAD_METHOD_SET:
	case IB_MAD_METHOD_GET_TABLE:
	case IB_MAD_METHOD_DELETE:
		if (query->record_size > IB_SA_DATA_SIZE)
			return false;
		break;
	default:
		return false;
	}
	return query->attribute <= UINT16_MAX && !query->record == !query->record_size &&
	       (!query->sa || (query->sa->lid > 0 && query->sa->lid <= UINT16_MAX));
}

void sa_query_rpc(const struct ibmad_port *port, const struct mad_sa_query *query, int method,
		  ib_rpc_t *rpc)
{
	*rpc = (ib_rpc_t){
		.mgtclass = IB_SA_CLASS,
		.method = method,
		.attr = {.id = query->attribute, .mod = query->modifier},
		.dataoffs = IB_SA_DATA_OFFS,
		.datasz = IB_SA_DATA_SIZE,
		.mkey = options_sa_key(port),
		.mask = query->component_mask,
		.timeout = query->timeout_ms,
	};
}

size_t sa_query_least(const struct mad_sa_query *query, int method)
{
	size_t least = sa_record_size(query->attribute);

	/* the response to a MultiPathRecord has PathRecords */
	if (method == IB_MAD_METHOD_GETMULTI)
		return sizeof(struct mad_sa_path_record);
	return least > query->record_size ? least : query->record_size;
}

int sa_query_fail(const struct mad_sa_query *query, int method, int error)
{
	struct mad_failure failure = {
		.error = error, .mgmt_class = IB_SA_CLASS, .method = (unsigned)method};

	if (query) {
		failure.attribute = query->attribute;
		failure.status = error == -EIO ? query->status : 0;
	}
	failure_store(&failure);
	return error;
}

/* --- blocking requests ---------------------------------------------------------- */

/* The destination of the next transmission. Returns 0 or a negative errno. */
static int address(const struct ibmad_port *port, const struct mad_sa_query *query,
		   bool read_again, ib_portid_t *sa)
{
	if (query->sa) {
		*sa = *query->sa;
		return 0;
	}
	if (!read_again && sa_address_known(port, sa))
		return 0;
	return sa_address_read(port, query->timeout_ms, sa);
}

/*
 * Sends a request. If the SA has another address, sends it there, too. If there is no other SA,
 * the call fails with the failure of the request, not that of the PortInfo.
 */
static int request_response(const struct ibmad_port *port, struct mad_sa_query *query,
			    int method, struct mad_message *response)
{
	struct mad_failure failure;
	ib_portid_t sa, to;
	unsigned moves = 0;
	ib_rpc_t rpc;
	int err = address(port, query, false, &sa);

	if (err) {
		query->status = mad_last_failure()->status;
		return err;
	}
	do {
		sa_query_rpc(port, query, method, &rpc);
		to = sa;
		err = mad_rpc_message(port, &rpc, &to, query->record, query->record_size,
				      response);
		query->status = rpc.rstatus;
		failure = *mad_last_failure();
		if (query->sa || moves++ == SA_MOVES_MOST ||
		    !sa_address_is_doubtful(err, query->status))
			break;
		to = sa;
	} while (!address(port, query, true, &sa) && sa.lid != to.lid);
	if (err)
		failure_store(&failure);
	return err;
}

static bool begin(const struct ibmad_port *port, struct mad_sa_query *query, int method)
{
	if (!port || !query || !sa_query_is_valid(query, method))
		return false;
	query->status = 0;
	return true;
}

static int get_record(const struct ibmad_port *port, struct mad_sa_query *query, int method,
		      void *record, size_t size)
{
	const struct mad_failure before = *mad_last_failure();
	struct mad_message response = {0};
	int err;

	if (!begin(port, query, method) || size > IB_SA_DATA_SIZE || (!record && size))
		return sa_query_fail(query, method, -EINVAL);
	err = request_response(port, query, method, &response);
	if (err)
		return err;
	if (response.length < IB_SA_DATA_OFFS + size)
		err = sa_query_fail(query, method, -EBADMSG);
	else if (size)
		memcpy(record, response.mad + IB_SA_DATA_OFFS, size);
	mad_message_free(&response);
	if (!err)
		failure_store(&before);
	return err;
}

EXPORT int mad_sa_get(const struct ibmad_port *port, struct mad_sa_query *query, void *record,
		      size_t size)
{
	if (!record)
		return sa_query_fail(query, IB_MAD_METHOD_GET, -EINVAL);
	return get_record(port, query, IB_MAD_METHOD_GET, record, size);
}

EXPORT int mad_sa_set(const struct ibmad_port *port, struct mad_sa_query *query, void *record,
		      size_t size)
{
	return get_record(port, query, IB_MAD_METHOD_SET, record, size);
}

EXPORT int mad_sa_delete(const struct ibmad_port *port, struct mad_sa_query *query,
			 void *record, size_t size)
{
	return get_record(port, query, IB_MAD_METHOD_DELETE, record, size);
}

static int fill_table(const struct ibmad_port *port, struct mad_sa_query *query, int method,
		      struct mad_sa_table *table)
{
	int err = request_response(port, query, method, &table->message);

	if (err == -EIO && query->status == SA_NO_RECORDS)
		return 0;
	if (err)
		return err;
	err = sa_table_parse(table, sa_query_least(query, method));
	return err ? sa_query_fail(query, method, err) : 0;
}

static int get_table(const struct ibmad_port *port, struct mad_sa_query *query, int method,
		     struct mad_sa_table **table)
{
	const struct mad_failure before = *mad_last_failure();
	struct mad_sa_table *filled;
	int err;

	if (table)
		*table = NULL;
	if (!table || !begin(port, query, method))
		return sa_query_fail(query, method, -EINVAL);
	filled = calloc(1, sizeof(*filled));
	if (!filled)
		return sa_query_fail(query, method, -ENOMEM);
	err = fill_table(port, query, method, filled);
	if (err) {
		mad_sa_table_free(filled);
		return err;
	}
	failure_store(&before);
	*table = filled;
	return 0;
}

EXPORT int mad_sa_get_table(const struct ibmad_port *port, struct mad_sa_query *query,
			    struct mad_sa_table **table)
{
	return get_table(port, query, IB_MAD_METHOD_GET_TABLE, table);
}

EXPORT int mad_sa_get_multi(const struct ibmad_port *port, struct mad_sa_query *query,
			    struct mad_sa_table **table)
{
	return get_table(port, query, IB_MAD_METHOD_GETMULTI, table);
}

/* --- calls of rdma-core, whose response is one MAD -------------------------------- */

/* Components of a PathRecord (IBA 15.2.5.16) and of a NodeRecord (15.2.5.2). */
#define PATH_DGID      (1u << 2)
#define PATH_SGID      (1u << 3)
#define NODE_PORT_GUID (1u << 8)

EXPORT uint8_t *sa_rpc_call(const struct ibmad_port *srcport, void *rcvbuf, ib_portid_t *portid,
			    ib_sa_call_t *sa, unsigned timeout)
{
	ib_rpc_t rpc = {
		.mgtclass = IB_SA_CLASS,
		.dataoffs = IB_SA_DATA_OFFS,
		.datasz = IB_SA_DATA_SIZE,
		.mkey = options_sa_key(srcport),
		.timeout = (int)timeout,
	};
	uint8_t *response;

	if (!portid || portid->lid <= 0 || !sa) {
		report("sa_rpc_call", "the subnet administrator needs a LID");
		failure_refuse(IB_SA_CLASS, EINVAL);
		return NULL;
	}
	rpc.method = (int)sa->method;
	rpc.attr.id = sa->attrid;
	rpc.attr.mod = sa->mod;
	rpc.mask = sa->mask;
	rpc.trid = sa->trid;
	address_qp1(portid);
	response = mad_rpc_rmpp(srcport, &rpc, portid, NULL, rcvbuf);
	sa->recsz = rpc.recsz;
	return response;
}

EXPORT int ib_path_query_via(const struct ibmad_port *srcport, ibmad_gid_t srcgid,
			     ibmad_gid_t destgid, ib_portid_t *sm_id, void *buf)
{
	ib_sa_call_t sa = {
		.method = IB_MAD_METHOD_GET,
		.attrid = IB_SA_ATTR_PATHRECORD,
		.mask = PATH_DGID | PATH_SGID,
	};

	if (!srcgid || !destgid || !buf) {
		failure_refuse(IB_SA_CLASS, EINVAL);
		return -1;
	}
	memset(buf, 0, IB_SA_PR_RECSZ);
	mad_encode_field(buf, IB_SA_PR_DGID_F, destgid);
	mad_encode_field(buf, IB_SA_PR_SGID_F, srcgid);
	if (!sa_rpc_call(srcport, buf, sm_id, &sa, 0)) {
		report("ib_path_query_via", "the query for a path record failed");
		return -1;
	}
	return (int)mad_get_field(buf, 0, IB_SA_PR_DLID_F);
}

EXPORT int ib_node_query_via(const struct ibmad_port *srcport, uint64_t guid,
			     ib_portid_t *sm_id, void *buf)
{
	ib_sa_call_t sa = {
		.method = IB_MAD_METHOD_GET,
		.attrid = IB_SA_ATTR_NODERECORD,
		.mask = NODE_PORT_GUID,
	};

	if (!buf) {
		failure_refuse(IB_SA_CLASS, EINVAL);
		return -1;
	}
	memset(buf, 0, IB_SA_NR_RECSZ);
	mad_encode_field(buf, IB_SA_NR_PORT_GUID_F, &guid);
	if (!sa_rpc_call(srcport, buf, sm_id, &sa, 0)) {
		report("ib_node_query_via", "the query for a node record failed");
		return -1;
	}
	return 0;
}
