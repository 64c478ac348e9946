/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * SA requests (IBA 15.2, 15.4) on an engine, and the blocking call.
 *
 * The SA's address is the SM's, from the local PortInfo. It is cached for a second, as another
 * SM may take over. All waiting requests of an engine share one reading, which never leaves the
 * port. Requests whose record needs the port's GID also wait for the NodeInfo, read first.
 */

#include "base/export.h"
#include "base/report.h"
#include "base/reserved.h"
#include "engine/async.h"
#include "sa/sa.h"

#include <infiniband/mad_fields.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

/* Shifted into the status field (IBA 15.2.3). */
#define SA_NO_RECORDS (UMAD_SA_STATUS_NO_RECORDS << 8)
/* How often a request may follow the SA to a new address. */
#define MOVES_MOST    3
#define TRUSTED_US    1000000

/* What a request waits for. */
enum sa_phase {
	NEEDS_GUID, /* NodeInfo: the record needs the port's GID */
	NEEDS_PORT, /* PortInfo: SA address and GID prefix */
	IN_FLIGHT,  /* the response */
	MOVING,     /* until its cancelled request completes; then to the SA's new address */
};

struct sa_client {
	struct list in_flight; /* including those that are moving */
	struct list waiting;   /* need the local port, oldest first */
	uint64_t reading;      /* the SMP to the local port; 0: none */
};

struct sa_request {
	struct engine_operation operation;
	struct list all; /* in one of the client's lists, or alone */
	struct mad_async *engine;
	enum sa_phase phase;
	uint64_t id; /* of the engine's request in flight */
	mad_sa_fn *done;
	void *arg;
	ib_rpc_t rpc;
	ib_portid_t sa;
	bool sa_is_given; /* by the caller */
	unsigned moves_left;
	struct mad_reply failure; /* of the latest transmission, without its response; or 0 */
	size_t least;             /* minimum size of a response record */
	uint8_t *gid;             /* in the record, to be filled with the port's; NULL: none */
	size_t size;              /* of the record */
	uint8_t record[];
};

/* --- queries ----------------------------------------------------------------------- */

static int method_of(const struct mad_sa_query *query)
{
	return query->method ? query->method : IB_MAD_METHOD_GET_TABLE;
}

/* Whether the query (may be NULL) can be sent. */
static bool is_valid(const struct mad_sa_query *query)
{
	if (!query)
		return false;
	switch (method_of(query)) {
	case IB_MAD_METHOD_GETMULTI: /* only RMPP can carry it */
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
	       is_reserved(query->reserved) && cancel_is_valid(query->cancel) &&
	       (!query->sa || (query->sa->lid > 0 && query->sa->lid <= UINT16_MAX));
}

/* The record's GID that is 0, to be replaced by the port's; NULL: none. */
static uint8_t *own_gid(const struct mad_sa_query *query, uint8_t *record)
{
	static const uint8_t zero[16];
	uint64_t component;
	size_t at;

	if (query->method != IB_MAD_METHOD_SET && query->method != IB_MAD_METHOD_DELETE)
		return NULL;
	if (query->attribute == IB_SA_ATTR_MCRECORD) {
		at = offsetof(struct umad_sa_mcmember_record, portgid);
		component = UMAD_SA_MCM_COMP_MASK_PORT_GID;
	} else if (query->attribute == IB_SA_ATTR_SERVICERECORD) {
		at = offsetof(struct mad_sa_service_record, gid);
		component = MAD_SA_SERVICE_GID;
	} else {
		return NULL;
	}
	if (!(query->component_mask & component) || query->record_size < at + sizeof(zero) ||
	    memcmp(record + at, zero, sizeof(zero)))
		return NULL;
	return record + at;
}

static size_t least_size(const struct mad_sa_query *query)
{
	size_t least = sa_record_size(query->attribute);

	/* MultiPathRecord returns PathRecords */
	if (query->method == IB_MAD_METHOD_GETMULTI)
		return sizeof(struct mad_sa_path_record);
	if (method_of(query) == IB_MAD_METHOD_GET_TABLE && query->record_size > least)
		return query->record_size;
	return least;
}

/* Stores the failure of a call that sent nothing; returns the error. */
static int refuse_query(const struct mad_sa_query *query, int error)
{
	struct mad_failure failure = {.error = error, .mgmt_class = IB_SA_CLASS};

	if (query) {
		failure.method = (unsigned)method_of(query);
		failure.attribute = query->attribute;
	}
	failure_store(&failure);
	return error;
}

/* --- the address of the SA --------------------------------------------------------- */

/* Whether it was read within the last second. Hold the lock. */
static bool address_is_known(const struct ibmad_port *port)
{
	return port->sa.lid && clock_us() - port->sa_read_at <= TRUSTED_US;
}

/*
 * Whether the SA may have moved: no response, or a kernel's response without an agent for the
 * class.
 */
static bool is_doubtful(const struct mad_reply *reply)
{
	return reply->error == -ETIMEDOUT ||
	       (reply->error == -EIO &&
		(reply->status == IB_MAD_STS_METHOD_NOT_SUPPORTED ||
		 reply->status == IB_MAD_STS_METHOD_ATTR_NOT_SUPPORTED));
}

/* --- completion; the lock is not held ---------------------------------------------- */

/* The request must be in no list. If reading the port failed, reply is the SMP's. */
static void complete_request(struct sa_request *request, const struct mad_reply *reply,
			     bool of_port)
{
	struct mad_reply told = *reply, failed;
	struct mad_sa_response response = {.reply = &told};
	bool for_table = request->rpc.method == IB_MAD_METHOD_GET_TABLE ||
			 request->rpc.method == IB_MAD_METHOD_GETMULTI;
	bool is_empty = for_table && reply->error == -EIO && reply->status == SA_NO_RECORDS;

	/* not cancellable from here on */
	if (engine_operation_end(request->engine, &request->operation)) {
		told = (struct mad_reply){.error = -ECANCELED,
					  .transmissions = reply->transmissions};
		of_port = false;
	} else if (is_empty || !reply->error) {
		told.error = sa_table_make(is_empty ? NULL : reply, for_table, request->least,
					   &response.table);
	}
	response.error = told.error;
	response.status = told.status;
	failed = told;
	if (told.error != -EIO)
		failed.status = 0;
	failure_of_reply(&failed, of_port ? IB_SMI_DIRECT_CLASS : IB_SA_CLASS,
			 of_port ? IB_MAD_METHOD_GET : (unsigned)request->rpc.method,
			 of_port ? IB_ATTR_PORT_INFO : request->rpc.attr.id);
	request->done(request->engine, &response, request->arg);
	free(request);
}

/* --- sending; the lock is held ----------------------------------------------------- */

static void request_came(struct mad_async *engine, const struct mad_reply *reply, void *arg);
static void node_info_came(struct mad_async *engine, const struct mad_reply *reply, void *arg);
static void port_info_came(struct mad_async *engine, const struct mad_reply *reply, void *arg);

/* On success, another thread may have freed the request. */
static int send_request_unlocking(struct sa_request *request)
{
	struct mad_async *engine = request->engine;
	int ret;

	request->phase = IN_FLIGHT;
	list_move_last(&engine->sa->in_flight, &request->all);
	ret = engine_submit_unlocking(engine, CALL_SA_SUBMIT, &request->rpc, &request->sa,
				      request->size ? request->record : NULL, request->size,
				      request_came, request, &request->id);
	if (ret)
		list_leave(&request->all);
	return ret;
}

/* Reads what the oldest waiting request needs. No SMP must be in flight. */
static int read_port_unlocking(struct mad_async *engine)
{
	struct sa_client *client = engine->sa;
	const struct sa_request *oldest =
		list_entry(client->waiting.next, struct sa_request, all);
	bool guid = oldest->phase == NEEDS_GUID;

	return engine_read_port_unlocking(
		engine, CALL_SA_SUBMIT, guid ? IB_ATTR_NODE_INFO : IB_ATTR_PORT_INFO,
		smp_mkey_get(engine->port), oldest->rpc.timeout,
		guid ? node_info_came : port_info_came, NULL, &client->reading);
}

/* As send_request_unlocking(): may free the request. */
static int wait_for_port_unlocking(struct sa_request *request)
{
	struct sa_client *client = request->engine->sa;
	int ret;

	list_move_last(&client->waiting, &request->all);
	if (client->reading)
		return 0;
	ret = read_port_unlocking(request->engine);
	if (ret)
		list_leave(&request->all);
	return ret;
}

/* Sends the request, or makes it wait for the local port. */
static int start_request_unlocking(struct sa_request *request)
{
	const struct ibmad_port *port = request->engine->port;

	if (request->phase == NEEDS_GUID || (!request->sa_is_given && !address_is_known(port)))
		return wait_for_port_unlocking(request);
	if (!request->sa_is_given)
		request->sa = port->sa;
	return send_request_unlocking(request);
}

/* --- responses of the SA ------------------------------------------------------------ */

/*
 * After a doubtful failure, a request waits for the current address. A moving one is sent to
 * the new address.
 */
static void request_came(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct sa_request *request = arg;
	struct mad_reply last = *reply;
	bool continues = false;
	int error;

	engine_enter_again(engine);
	if (!request->operation.cancelled && request->phase == MOVING) {
		request->moves_left--;
		request->phase = NEEDS_PORT;
		error = start_request_unlocking(request);
		continues = !error;
		if (error)
			last = request->failure.error ? request->failure
						      : (struct mad_reply){.error = error};
	} else if (!request->operation.cancelled && request->moves_left && is_doubtful(reply)) {
		request->moves_left--;
		request->phase = NEEDS_PORT;
		request->failure = *reply;
		request->failure.mad = request->failure.data = NULL;
		request->failure.length = request->failure.data_size = 0;
		continues = !wait_for_port_unlocking(request);
	}
	if (!continues)
		list_leave(&request->all);
	engine_leave(engine);
	if (!continues)
		complete_request(request, &last, false);
}

/* --- the local port ----------------------------------------------------------------- */

/* The parts of PortInfo that requests need. */
struct local_port {
	int error; /* 0 or the reading's error */
	int no_sa; /* 0 or the error for requests that need the SA's address */
	uint64_t gid_prefix;
};

/* Returns 0 or the completion's error. The request must be in no list. */
static int continue_unlocking(struct sa_request *request, const struct local_port *port)
{
	const ib_portid_t *sa = &request->engine->port->sa;

	if (request->operation.cancelled)
		return -ECANCELED;
	/* the reading was cancelled with others, or began before this request needed it */
	if (port->error == -ECANCELED || (!port->error && request->phase == NEEDS_GUID))
		return wait_for_port_unlocking(request);
	if (port->error)
		return port->error;
	if (!request->sa_is_given) {
		if (port->no_sa)
			return port->no_sa;
		if (request->failure.error && request->sa.lid == sa->lid)
			return request->failure.error;
		request->sa = *sa;
	}
	if (request->gid)
		mad_set_field64(request->gid, 0, IB_GID_PREFIX_F, port->gid_prefix);
	request->gid = NULL;
	return send_request_unlocking(request);
}

/* reply: of the SMP. */
static void continue_all(struct mad_async *engine, const struct mad_reply *reply,
			 const struct local_port *port)
{
	struct list taken, *first;

	engine_enter_again(engine);
	list_init(&taken);
	while ((first = list_pop(&engine->sa->waiting)))
		list_add_last(&taken, first);
	engine->sa->reading = 0;
	while ((first = list_pop(&taken))) {
		struct sa_request *request = list_entry(first, struct sa_request, all);
		struct mad_reply last = {.transmissions = reply->transmissions,
					 .elapsed_ms = reply->elapsed_ms};

		list_init(&request->all);
		last.error = continue_unlocking(request, port);
		if (!last.error)
			continue;
		engine_leave(engine);
		if (last.error == -EIO)
			last.status = reply->status;
		/* a request already sent reports its own failure, not PortInfo's */
		if (request->failure.error)
			complete_request(request, &request->failure, false);
		else
			complete_request(request, &last, last.error == reply->error);
		engine_enter_again(engine);
	}
	engine_leave(engine);
}

static int error_of_smp(const struct mad_reply *reply)
{
	return !reply->error && reply->data_size < IB_SMP_DATA_SIZE ? -EBADMSG : reply->error;
}

static void node_info_came(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct local_port port = {.error = error_of_smp(reply)};

	(void)arg;
	if (!port.error) {
		engine_enter_again(engine);
		engine->sa->reading = 0;
		list_for_each (entry, &engine->sa->waiting) {
			struct sa_request *request = list_entry(entry, struct sa_request, all);

			if (request->phase != NEEDS_GUID)
				continue;
			mad_set_field64(request->gid, 0, IB_GID_GUID_F,
					mad_read_field(reply->data, 0, IB_NODE_PORT_GUID_F));
			request->phase = NEEDS_PORT;
		}
		if (!list_is_empty(&engine->sa->waiting))
			port.error = read_port_unlocking(engine);
		engine_leave(engine);
	}
	if (port.error)
		continue_all(engine, reply, &port);
}

static void port_info_came(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct local_port port = {.error = error_of_smp(reply)};
	ib_portid_t sa = {0};

	(void)arg;
	if (!port.error) {
		port.gid_prefix = mad_read_field(reply->data, 0, IB_PORT_GID_PREFIX_F);
		sa.lid = (int)mad_read_field(reply->data, 0, IB_PORT_SMLID_F);
		sa.sl = (uint8_t)mad_read_field(reply->data, 0, IB_PORT_SMSL_F);
		if (!IB_LID_VALID(sa.lid))
			port.no_sa = -ENXIO;
	}
	if (!port.error && !port.no_sa) {
		address_qp1(&sa);
		engine_enter_again(engine);
		engine->port->sa = sa;
		engine->port->sa_read_at = clock_us();
		/* cancel requests to the old address before they time out */
		list_for_each (entry, &engine->sa->in_flight) {
			struct sa_request *request = list_entry(entry, struct sa_request, all);

			if (request->moves_left && !request->operation.cancelled &&
			    request->sa.lid != sa.lid && !engine_cancel(engine, request->id))
				request->phase = MOVING;
		}
		engine_leave(engine);
	}
	continue_all(engine, reply, &port);
}

/* --- calls -------------------------------------------------------------------------- */

/* A request in flight is completed by request_came(). The last waiting one ends the reading. */
static void cancel_request(struct engine_operation *operation)
{
	struct sa_request *request = list_entry(operation, struct sa_request, operation);
	struct mad_async *engine = request->engine;
	bool waits;

	engine_enter_again(engine);
	waits = request->phase == NEEDS_GUID || request->phase == NEEDS_PORT;
	if (waits) {
		list_leave(&request->all);
		if (list_is_empty(&engine->sa->waiting))
			engine_cancel(engine, engine->sa->reading);
	} else {
		engine_cancel(engine, request->id);
	}
	engine_leave(engine);
	if (waits)
		complete_request(request, &request->failure, false);
}

static struct sa_request *make_request(struct mad_async *engine,
				       const struct mad_sa_query *query, mad_sa_fn *done,
				       void *arg)
{
	struct sa_request *request = malloc(sizeof(*request) + query->record_size);

	if (!request)
		return NULL;
	*request = (struct sa_request){
		.operation.cancel = cancel_request,
		.engine = engine,
		.done = done,
		.arg = arg,
		.rpc = {.mgtclass = IB_SA_CLASS,
			.method = method_of(query),
			.attr = {.id = query->attribute, .mod = query->modifier},
			.dataoffs = IB_SA_DATA_OFFS,
			.datasz = IB_SA_DATA_SIZE,
			.mkey = options_sa_key(engine->port),
			.mask = query->component_mask,
			.timeout = query->timeout_ms},
		.sa_is_given = query->sa,
		.moves_left = query->sa ? 0 : MOVES_MOST,
		.least = least_size(query),
		.size = query->record_size,
	};
	list_init(&request->all);
	if (query->record)
		memcpy(request->record, query->record, query->record_size);
	if (query->sa)
		request->sa = *query->sa;
	request->gid = own_gid(query, request->record);
	request->phase = request->gid ? NEEDS_GUID : NEEDS_PORT;
	return request;
}

/* The first request creates the engine's client. */
static int submit_unlocking(struct sa_request *request, uint64_t *id)
{
	struct mad_async *engine = request->engine;
	bool has_class = handle_agent(&engine->port->handle, IB_SA_CLASS) >= 0;
	int ret;

	if (!engine->sa) {
		engine->sa = calloc(1, sizeof(*engine->sa));
		if (!engine->sa)
			return -ENOMEM;
		list_init(&engine->sa->in_flight);
		list_init(&engine->sa->waiting);
	}
	ret = operation_begin(engine, &request->operation, id);
	if (ret)
		return ret;
	ret = has_class ? start_request_unlocking(request) : -EPROTONOSUPPORT;
	if (!ret)
		return 0;
	operation_end(engine, &request->operation);
	if (ret == -EPROTONOSUPPORT)
		engine_report_class_unlocking(engine, "mad_sa_submit",
					      has_class ? IB_SMI_DIRECT_CLASS : IB_SA_CLASS);
	return ret;
}

/* The query must be valid. */
static int submit_query(struct mad_async *engine, const struct mad_sa_query *query,
			mad_sa_fn *done, void *arg, uint64_t *id)
{
	struct sa_request *request;
	int ret;

	ret = engine_enter(engine);
	if (ret)
		return refuse_query(query, ret);
	request = make_request(engine, query, done, arg);
	ret = request ? submit_unlocking(request, id) : -ENOMEM;
	if (ret) { /* report before the thread can be cancelled again */
		port_unlock(engine->port);
		free(request);
		report_not_made("mad_sa_submit", -ret);
		port_lock(engine->port);
	}
	engine_leave(engine);
	return ret ? refuse_query(query, ret) : 0;
}

EXPORT int mad_sa_submit(struct mad_async *async, const struct mad_sa_query *query,
			 mad_sa_fn *done, void *arg, uint64_t *id)
{
	if (!async || !done || !is_valid(query) || query->time_limit_ms || query->cancel)
		return refuse_query(query, -EINVAL);
	return submit_query(async, query, done, arg, id);
}

/* A request a thread waits for, on its own engine. */
struct blocking_query {
	struct limits limits;
	struct mad_sa_table *table;
	struct mad_failure failure; /* error 0: none */
};

static void limit_reached(struct limits *limits, int error)
{
	(void)error;
	mad_async_cancel(limits->engine, MAD_ASYNC_ALL);
}

static void blocking_done(struct mad_async *engine, const struct mad_sa_response *response,
			  void *arg)
{
	struct blocking_query *blocking = arg;

	(void)engine;
	limits_end(&blocking->limits);
	blocking->table = response->table;
	if (response->error)
		blocking->failure = *mad_last_failure();
	if (response->error == -ECANCELED && blocking->limits.error) {
		blocking->failure.error = blocking->limits.error;
		blocking->failure.kind = MAD_FAILURE_OTHER;
	}
}

/* Not cancellable: that would leak the engine. */
static int run_query(struct ibmad_port *port, const struct mad_sa_query *query,
		     struct blocking_query *blocking)
{
	struct mad_async *engine = mad_async_create(port);
	int error;

	if (!engine)
		return refuse_query(query, -errno);
	error = submit_query(engine, query, blocking_done, blocking, NULL);
	if (!error) {
		/* nobody else processes this engine, so nothing is called back yet */
		engine_enter_again(engine);
		limits_begin(&blocking->limits, engine, query->time_limit_ms, query->cancel,
			     options_m_key(port));
		engine_leave(engine);
		mad_async_wait(engine, -1);
	}
	mad_async_free(engine);
	return error;
}

EXPORT int mad_sa_request(struct ibmad_port *port, const struct mad_sa_query *query,
			  struct mad_sa_table **table)
{
	const struct mad_failure before = *mad_last_failure();
	struct blocking_query blocking = {.limits.reached = limit_reached};
	int error;

	if (table)
		*table = NULL;
	if (!port || !is_valid(query))
		return refuse_query(query, -EINVAL);
	call_begin();
	error = run_query(port, query, &blocking);
	call_end();
	if (error)
		return error;
	/* success leaves the last failure unchanged */
	failure_store(blocking.failure.error ? &blocking.failure : &before);
	if (table)
		*table = blocking.table;
	else
		mad_sa_table_free(blocking.table);
	return blocking.failure.error;
}
