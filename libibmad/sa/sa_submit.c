/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Requests to the SA on an engine. If the address of the SA is not known, a request waits for a
 * PortInfo, which all requests of the engine share. A request that needs the GID of the port
 * also waits for a NodeInfo, which is read first. These SMPs and the request are requests of
 * the engine, so only the engine waits.
 */

#include "base/export.h"
#include "base/report.h"
#include "engine/async.h"
#include "sa/sa.h"

#include <infiniband/mad_fields.h>
#include <errno.h>
#include <stdlib.h>

struct sa_client {
	struct list sent;    /* requests in flight */
	struct list waiting; /* requests that wait for the local port, the oldest one first */
	uint64_t reading;    /* the request of the SMP; 0: none is in flight */
	bool has_guid;       /* the NodeInfo was read before the PortInfo */
	uint64_t guid;
};

struct sa_request {
	struct engine_operation operation;
	struct list all; /* in a list of the client, or alone */
	struct mad_async *engine;
	uint64_t id; /* the ID of the request of the engine, unless it waits */
	mad_sa_fn *done;
	void *arg;
	ib_rpc_t rpc;
	ib_portid_t sa;
	bool fixed; /* the caller has given sa */
	bool waits; /* for the local port */
	bool moved; /* it was cancelled, to be sent to the new address of the SA */
	bool sent;
	unsigned moves;
	struct mad_reply failure; /* of the latest transmission, without its response */
	size_t least;             /* bytes of a record in the response */
	uint8_t *gid; /* in the record, to be filled with that of the port; NULL: it is not */
	size_t size;  /* of the record */
	uint8_t record[];
};

/* --- completion; the lock is not held ------------------------------------------ */

/* From now on the request cannot be cancelled. */
static bool end(struct sa_request *request)
{
	int cancel_state = engine_enter_again(request->engine);
	bool cancelled = operation_end(request->engine, &request->operation);

	list_leave(&request->all);
	engine_leave(request->engine, cancel_state);
	return cancelled;
}

static void take_response(const struct sa_request *request, const struct mad_reply *reply,
			  struct mad_sa_response *response)
{
	bool for_table = sa_query_is_for_table(request->rpc.method);
	bool is_empty = for_table && reply->error == -EIO && reply->status == SA_NO_RECORDS;

	if (is_empty || !reply->error)
		response->error = sa_table_make(is_empty ? NULL : reply, for_table,
						request->least, &response->table);
}

/* The failure of the request, or of the SMP to the local port for it. */
static void store_failure(const struct sa_request *request, const struct mad_reply *told,
			  bool of_port)
{
	const struct mad_failure failure = {
		.error = told->error,
		.mgmt_class = of_port ? IB_SMI_DIRECT_CLASS : IB_SA_CLASS,
		.method = of_port ? IB_MAD_METHOD_GET : (unsigned)request->rpc.method,
		.attribute = of_port ? IB_ATTR_PORT_INFO : request->rpc.attr.id,
		.status = told->error == -EIO ? told->status : 0,
		.transmissions = told->transmissions,
		.elapsed_ms = told->elapsed_ms,
	};

	if (told->error)
		failure_store(&failure);
}

static void complete(struct sa_request *request, const struct mad_reply *reply, bool of_port)
{
	struct mad_reply told = *reply;
	struct mad_sa_response response = {
		.error = reply->error, .status = reply->status, .reply = &told};
	bool cancelled = end(request);

	if (cancelled) {
		response = (struct mad_sa_response){.error = -ECANCELED, .reply = &told};
		told = (struct mad_reply){.transmissions = reply->transmissions};
	} else {
		take_response(request, reply, &response);
	}
	told.error = response.error; /* mad_failure_text() has the text */
	store_failure(request, &told, of_port && !cancelled);
	request->done(request->engine, &response, request->arg);
	free(request);
}

/* The local port's SMP has failed, or the request can no longer be sent. */
static void fail(struct sa_request *request, int error, const struct mad_reply *of_port)
{
	struct mad_reply reply = {.error = error};

	/* a request that was sent has its own failure, not that of the PortInfo */
	if (request->sent) {
		complete(request, &request->failure, false);
		return;
	}
	if (of_port) {
		reply.status = error == -EIO ? of_port->status : 0;
		reply.transmissions = of_port->transmissions;
		reply.elapsed_ms = of_port->elapsed_ms;
	}
	complete(request, &reply, of_port && of_port->error == error);
}

/* --- sending; the lock is held ------------------------------------------------- */

static void request_came(struct mad_async *engine, const struct mad_reply *reply, void *arg);
static void node_info_came(struct mad_async *engine, const struct mad_reply *reply, void *arg);
static void port_info_came(struct mad_async *engine, const struct mad_reply *reply, void *arg);

/* Once this has succeeded, another thread may have freed the request. */
static int send_request_unlocking(struct sa_request *request)
{
	struct mad_async *engine = request->engine;
	int ret;

	list_move_last(&engine->sa->sent, &request->all);
	ret = engine_submit_unlocking(engine, CALL_SA_SUBMIT, &request->rpc, &request->sa,
				      request->size ? request->record : NULL, request->size,
				      request_came, request, &request->id);
	if (ret)
		list_leave(&request->all);
	return ret;
}

/* No SMP is in flight. */
static int read_port_unlocking(struct mad_async *engine, unsigned attribute, int timeout_ms)
{
	const ib_rpc_t rpc = {
		.mgtclass = IB_SMI_DIRECT_CLASS,
		.method = IB_MAD_METHOD_GET,
		.attr = {.id = attribute},
		.dataoffs = IB_SMP_DATA_OFFS,
		.mkey = smp_mkey_get(engine->port),
		.timeout = timeout_ms,
	};
	const ib_portid_t self = {0};

	return engine_submit_unlocking(engine, CALL_SA_SUBMIT, &rpc, &self, NULL, 0,
				       attribute == IB_ATTR_NODE_INFO ? node_info_came
								      : port_info_came,
				       engine->sa, &engine->sa->reading);
}

static int wait_for_port_unlocking(struct sa_request *request)
{
	struct sa_client *client = request->engine->sa;
	int ret = 0;

	request->waits = true;
	list_move_last(&client->waiting, &request->all);
	if (!client->reading) {
		client->has_guid = false;
		ret = read_port_unlocking(request->engine,
					  request->gid ? IB_ATTR_NODE_INFO : IB_ATTR_PORT_INFO,
					  request->rpc.timeout);
		/* without an error, another thread may have freed the request */
		if (ret)
			list_leave(&request->all);
	}
	return ret;
}

static int start_unlocking(struct sa_request *request)
{
	if (!request->gid &&
	    (request->fixed || sa_address_known(request->engine->port, &request->sa))) {
		request->waits = false;
		return send_request_unlocking(request);
	}
	return wait_for_port_unlocking(request);
}

/* --- events ---------------------------------------------------------------------- */

/* The local port, as its SMPs say. */
struct local_port {
	bool has_guid; /* the NodeInfo was read */
	uint64_t guid, prefix;
	ib_portid_t sa;
	int no_sa; /* 0, or the error for requests that need the address */
};

static void fill_gid(uint8_t *gid, const struct local_port *port)
{
	mad_set_field64(gid, 0, IB_GID_PREFIX_F, port->prefix);
	mad_set_field64(gid, 0, IB_GID_GUID_F, port->guid);
}

/*
 * Continues a request that has waited for the local port. Returns 0, or the error of the
 * completion. If the read was cancelled together with other requests, the request waits for
 * another read. So does a request that needs the GUID, and began to wait after the NodeInfo.
 */
static int resume(struct sa_request *request, int error, const struct local_port *port)
{
	struct mad_async *engine = request->engine;
	int cancel_state = engine_enter_again(engine), ret = error;

	request->waits = false;
	if (request->operation.cancelled) {
		ret = -ECANCELED;
	} else if (error == -ECANCELED || (!error && request->gid && !port->has_guid)) {
		ret = wait_for_port_unlocking(request);
	} else if (!error && !request->fixed && port->no_sa) {
		ret = port->no_sa;
	} else if (!error && request->sent && request->sa.lid == port->sa.lid) {
		ret = request->failure.error;
	} else if (!error) {
		if (request->gid)
			fill_gid(request->gid, port);
		request->gid = NULL;
		if (!request->fixed)
			request->sa = port->sa;
		ret = send_request_unlocking(request);
	}
	engine_leave(engine, cancel_state);
	return ret;
}

/* Moves the requests that wait to a list of the caller. */
static void take_waiting(struct mad_async *engine, struct list *taken)
{
	int cancel_state = engine_enter_again(engine);
	struct list *first;

	list_init(taken);
	while ((first = list_pop(&engine->sa->waiting)))
		list_add_last(taken, first);
	engine->sa->reading = 0;
	engine_leave(engine, cancel_state);
}

static void resume_all(struct mad_async *engine, const struct mad_reply *reply, int error,
		       const struct local_port *port)
{
	struct list taken, *first;

	take_waiting(engine, &taken);
	while ((first = list_pop(&taken))) {
		struct sa_request *request = list_entry(first, struct sa_request, all);
		int ret;

		list_init(&request->all);
		ret = resume(request, error, port);
		if (ret)
			fail(request, ret, reply);
	}
}

/* Sends the requests to the previous address again, before they time out. */
static void move_others(struct mad_async *engine, const ib_portid_t *sa)
{
	int cancel_state = engine_enter_again(engine);

	list_for_each (entry, &engine->sa->sent) {
		struct sa_request *request = list_entry(entry, struct sa_request, all);

		if (!request->fixed && !request->operation.cancelled &&
		    request->sa.lid != sa->lid && request->moves < SA_MOVES_MOST &&
		    !engine_cancel(engine, request->id))
			request->moved = true;
	}
	engine_leave(engine, cancel_state);
}

static int error_of_smp(const struct mad_reply *reply)
{
	return !reply->error && reply->data_size < IB_SMP_DATA_SIZE ? -EBADMSG : reply->error;
}

static void node_info_came(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct sa_client *client = arg;
	int error = error_of_smp(reply), cancel_state;

	if (!error) {
		cancel_state = engine_enter_again(engine);
		client->has_guid = true;
		client->guid = mad_read_field(reply->data, 0, IB_NODE_PORT_GUID_F);
		error = read_port_unlocking(engine, IB_ATTR_PORT_INFO, 0);
		engine_leave(engine, cancel_state);
	}
	if (error)
		resume_all(engine, reply, error, NULL);
}

static void port_info_came(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	const struct sa_client *client = arg;
	struct local_port port = {.has_guid = client->has_guid, .guid = client->guid};
	int error = error_of_smp(reply);

	if (!error) {
		port.prefix = mad_read_field(reply->data, 0, IB_PORT_GID_PREFIX_F);
		port.no_sa = sa_address_learn(engine->port, reply->data, &port.sa);
		if (!port.no_sa)
			move_others(engine, &port.sa);
	}
	resume_all(engine, reply, error, &port);
}

/* After a failure of the SA, a request waits for the present address of the SA. */
static bool follow(struct sa_request *request, const struct mad_reply *reply)
{
	struct mad_async *engine = request->engine;
	bool waits = false;
	int cancel_state;

	if (request->fixed || request->moves == SA_MOVES_MOST ||
	    !sa_address_is_doubtful(reply->error, reply->status))
		return false;
	cancel_state = engine_enter_again(engine);
	if (!request->operation.cancelled) {
		request->moves++;
		request->sent = true;
		request->failure = *reply;
		request->failure.mad = request->failure.data = NULL;
		request->failure.length = request->failure.data_size = 0;
		waits = !wait_for_port_unlocking(request);
	}
	engine_leave(engine, cancel_state);
	return waits;
}

/* Sends a request to the new address. Returns 0, or the error of the completion. */
static int move(struct sa_request *request)
{
	struct mad_async *engine = request->engine;
	int cancel_state = engine_enter_again(engine), ret = -ECANCELED;

	request->moved = false;
	if (!request->operation.cancelled) {
		request->moves++;
		ret = start_unlocking(request);
	}
	engine_leave(engine, cancel_state);
	return ret;
}

static void request_came(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct sa_request *request = arg;
	int error;

	(void)engine;
	if (request->moved) {
		error = move(request);
		if (error)
			fail(request, error, NULL);
	} else if (!follow(request, reply)) {
		complete(request, reply, false);
	}
}

/* A request in flight is called back when it has ended. The last one that waits ends the read.
 */
static void cancel(struct engine_operation *operation)
{
	struct sa_request *request = list_entry(operation, struct sa_request, operation);
	struct mad_async *engine = request->engine;
	int cancel_state = engine_enter_again(engine);
	bool waits = request->waits;

	list_leave(&request->all);
	if (!waits)
		engine_cancel(engine, request->id);
	else if (list_is_empty(&engine->sa->waiting))
		engine_cancel(engine, engine->sa->reading);
	engine_leave(engine, cancel_state);
	if (waits)
		complete(request, &request->failure, false);
}

/* --- calls ----------------------------------------------------------------------- */

static struct sa_request *make_request(struct mad_async *engine,
				       const struct mad_sa_query *query, mad_sa_fn *done,
				       void *arg)
{
	struct sa_request *request = malloc(sizeof(*request) + query->record_size);

	if (!request)
		return NULL;
	*request = (struct sa_request){
		.operation.cancel = cancel,
		.engine = engine,
		.done = done,
		.arg = arg,
		.fixed = query->sa,
		.least = sa_query_least(query),
		.size = query->record_size,
	};
	list_init(&request->all);
	if (query->record)
		memcpy(request->record, query->record, query->record_size);
	request->gid = sa_query_own_gid(query, request->record);
	sa_query_rpc(engine->port, query, &request->rpc);
	if (query->sa)
		request->sa = *query->sa;
	return request;
}

/* Makes the client of an engine for its first request. */
static int make_client(struct mad_async *engine)
{
	if (!engine->sa) {
		engine->sa = calloc(1, sizeof(*engine->sa));
		if (!engine->sa)
			return -ENOMEM;
		list_init(&engine->sa->sent);
		list_init(&engine->sa->waiting);
	}
	return 0;
}

/* If it fails, request->waits is set if the class of SMPs is missing. */
static int submit_unlocking(struct sa_request *request, uint64_t *id)
{
	struct mad_async *engine = request->engine;
	int ret = make_client(engine);

	if (!ret)
		ret = operation_begin(engine, &request->operation, id);
	if (ret)
		return ret;
	ret = handle_agent(&engine->port->handle, IB_SA_CLASS) < 0 ? -EPROTONOSUPPORT
								   : start_unlocking(request);
	if (ret)
		operation_end(engine, &request->operation);
	return ret;
}

EXPORT int mad_sa_submit(struct mad_async *async, const struct mad_sa_query *query,
			 mad_sa_fn *done, void *arg, uint64_t *id)
{
	struct sa_request *request;
	int cancel_state, ret;

	if (!async || !done || !sa_query_is_valid(query) || query->time_limit_ms ||
	    query->cancel)
		return sa_query_fail(query, -EINVAL);
	ret = engine_enter(async, &cancel_state);
	if (ret)
		return sa_query_fail(query, ret);
	request = make_request(async, query, done, arg);
	ret = request ? submit_unlocking(request, id) : -ENOMEM;
	if (ret == -EPROTONOSUPPORT)
		engine_report_class_unlocking(async, "mad_sa_submit",
					      request->waits ? IB_SMI_DIRECT_CLASS
							     : IB_SA_CLASS);
	engine_leave(async, cancel_state);
	if (!ret)
		return 0;
	free(request);
	report_not_made("mad_sa_submit", -ret);
	return sa_query_fail(query, ret);
}
