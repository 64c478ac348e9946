/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Requests to the SA on an engine. If the address of the SA is not known, a request waits for a
 * PortInfo, which all requests of the engine share. The PortInfo and the request are requests
 * of the engine, so only the engine waits.
 */

#include "base/export.h"
#include "base/report.h"
#include "calls/engine.h"
#include "sa/sa.h"

#include <errno.h>
#include <stdlib.h>

struct sa_client {
	struct engine_part part;
	struct pool requests;
	struct sa_request *waiting; /* for the PortInfo, the latest first */
	uint64_t reading;           /* the PortInfo's request; 0: there is none */
};

struct sa_request {
	struct pool_entry entry;
	struct sa_request *next; /* in the list of requests that wait */
	uint64_t id;             /* the ID of the request of the engine, unless it waits */
	mad_sa_fn *done;         /* NULL: it is being called back */
	void *arg;
	ib_rpc_t rpc;
	ib_portid_t sa;
	bool fixed; /* the caller has given sa */
	bool waits; /* for the PortInfo */
	bool cancelled;
	bool moved; /* it was cancelled, to be sent to the new address of the SA */
	bool final; /* its completion is that of its latest transmission */
	bool sent;
	unsigned moves;
	struct mad_reply failure; /* of the latest transmission, without its response */
	size_t least;             /* bytes of a record */
	size_t size;
	void *heap; /* a record that does not fit here: */
	uint8_t record[IB_SA_DATA_SIZE];
};

/* --- the client of an engine; the lock is held --------------------------------- */

static struct sa_client *client_of_part(struct engine_part *part)
{
	return list_entry(part, struct sa_client, part);
}

/* A request that waits has no request of its own: the PortInfo belongs to the client. */
static int cancel_all(struct engine_part *part, struct mad_async *engine)
{
	struct sa_client *client = client_of_part(part);
	struct sa_request *request;
	uint32_t place = 0;
	int count = 0;

	while ((request = pool_next(&client->requests, &place))) {
		if (!request->done || request->cancelled)
			continue;
		if (!request->waits && !request->moved && engine_cancel(engine, request->id)) {
			request->final = true; /* it is complete */
			continue;
		}
		request->cancelled = true;
		count++;
	}
	if (client->reading)
		engine_cancel(engine, client->reading);
	return count;
}

static void free_client(struct engine_part *part)
{
	struct sa_client *client = client_of_part(part);

	pool_free(&client->requests);
	free(client);
}

/* The client of an engine that has sent a request. */
static struct sa_client *client_of(struct mad_async *engine)
{
	return client_of_part(engine->sa);
}

/* The client of an engine, which is created for its first request; NULL without memory. */
static struct sa_client *make_client(struct mad_async *engine)
{
	struct sa_client *client;

	if (engine->sa)
		return client_of(engine);
	client = calloc(1, sizeof(*client));
	if (!client)
		return NULL;
	client->part.cancel_all = cancel_all;
	client->part.free = free_client;
	pool_init(&client->requests, sizeof(struct sa_request));
	engine->sa = &client->part;
	return client;
}

/* A request that is zero except for its entry; NULL: no memory. */
static struct sa_request *make_request(struct sa_client *client)
{
	struct sa_request *request = pool_get(&client->requests);

	if (request)
		*request = (struct sa_request){.entry = request->entry};
	return request;
}

/* --- completion; the lock is not held ------------------------------------------ */

static void free_request(struct mad_async *engine, struct sa_request *request)
{
	int cancel_state = engine_reenter(engine);

	free(request->heap);
	pool_put(&client_of(engine)->requests, request);
	engine_leave(engine, cancel_state);
}

/* From now on the request cannot be cancelled. */
static mad_sa_fn *take_callback(struct mad_async *engine, struct sa_request *request,
				bool *cancelled)
{
	int cancel_state = engine_reenter(engine);
	mad_sa_fn *done = request->done;

	request->done = NULL;
	*cancelled = request->cancelled;
	engine_leave(engine, cancel_state);
	return done;
}

/* A table of its own, because the engine frees the reply. */
static int copy_table(const struct mad_reply *reply, size_t least, struct mad_sa_table **table)
{
	struct mad_sa_table *copy = calloc(1, sizeof(*copy));
	int err = -ENOMEM;

	if (copy && !reply->error) {
		copy->message = (struct mad_message){.mad = malloc(reply->length),
						     .length = reply->length};
		if (copy->message.mad) {
			memcpy(copy->message.mad, reply->mad, reply->length);
			err = sa_table_parse(copy, least);
		}
	} else if (copy) {
		err = 0; /* the status says that no record matches */
	}
	if (err) {
		mad_sa_table_free(copy);
		copy = NULL;
	}
	*table = copy;
	return err;
}

static void take_response(const struct sa_request *request, const struct mad_reply *reply,
			  struct mad_sa_response *response)
{
	bool for_table = sa_query_is_for_table(request->rpc.method);

	if (for_table && reply->error == -EIO && reply->status == SA_NO_RECORDS)
		response->error = 0;
	if (response->error)
		return;
	if (for_table) {
		response->error = copy_table(reply, request->least, &response->table);
	} else if (!reply->data || reply->data_size < request->least) {
		response->error = -EBADMSG;
	} else {
		response->record = reply->data;
		response->record_size = reply->data_size;
	}
}

static void complete(struct mad_async *engine, struct sa_request *request,
		     const struct mad_reply *reply)
{
	struct mad_reply told = *reply;
	struct mad_sa_response response = {
		.error = reply->error, .status = reply->status, .reply = &told};
	bool cancelled;
	mad_sa_fn *done = take_callback(engine, request, &cancelled);

	if (cancelled) {
		response = (struct mad_sa_response){.error = -ECANCELED, .reply = &told};
		told = (struct mad_reply){.transmissions = reply->transmissions};
	} else {
		take_response(request, reply, &response);
	}
	told.error = response.error; /* mad_reply_text() has the text */
	done(engine, &response, request->arg);
	free_request(engine, request);
}

static void fail(struct mad_async *engine, struct sa_request *request, int error,
		 unsigned status)
{
	struct mad_reply reply = request->failure;

	/* a request that was sent has its own failure, not that of the PortInfo */
	if (!request->sent)
		reply = (struct mad_reply){.error = error, .status = status};
	complete(engine, request, &reply);
}

/* --- sending; the lock is held ------------------------------------------------- */

static void request_came(struct mad_async *engine, const struct mad_reply *reply, void *arg);
static void port_info_came(struct mad_async *engine, const struct mad_reply *reply, void *arg);

/* Once this has succeeded, another thread may have freed the request. */
static int send_request_unlocking(struct mad_async *engine, struct sa_request *request)
{
	const void *record = request->heap ? request->heap : request->record;

	request->waits = false;
	return engine_submit_unlocking(engine, CALL_SA_SUBMIT, &request->rpc, &request->sa,
				       request->size ? record : NULL, request->size,
				       request_came, request, &request->id);
}

static int read_port_info_unlocking(struct mad_async *engine, struct sa_client *client,
				    int timeout_ms)
{
	const ib_rpc_t rpc = {
		.mgtclass = IB_SMI_DIRECT_CLASS,
		.method = IB_MAD_METHOD_GET,
		.attr = {.id = IB_ATTR_PORT_INFO},
		.dataoffs = IB_SMP_DATA_OFFS,
		.mkey = smp_mkey_get(engine->port),
		.timeout = timeout_ms,
	};
	const ib_portid_t self = {0};

	return engine_submit_unlocking(engine, CALL_SA_SUBMIT, &rpc, &self, NULL, 0,
				       port_info_came, client, &client->reading);
}

/* Puts the request on the list of those that wait for the PortInfo. */
static int wait_for_address_unlocking(struct mad_async *engine, struct sa_client *client,
				      struct sa_request *request)
{
	int ret = 0;

	request->waits = true;
	request->next = client->waiting;
	client->waiting = request;
	if (!client->reading)
		ret = read_port_info_unlocking(engine, client, request->rpc.timeout);
	if (ret)
		client->waiting = request->next;
	return ret;
}

static int start_unlocking(struct mad_async *engine, struct sa_client *client,
			   struct sa_request *request)
{
	if (request->fixed || sa_address_known(engine->port, &request->sa))
		return send_request_unlocking(engine, request);
	return wait_for_address_unlocking(engine, client, request);
}

/* --- events ---------------------------------------------------------------------- */

/*
 * Continues a request that has waited for the PortInfo. Returns 0, or the error of the
 * completion. If the cancel of a request has cancelled the read, the other requests wait for
 * another read.
 */
static int resume(struct mad_async *engine, struct sa_request *request, int error,
		  const ib_portid_t *sa)
{
	int cancel_state, ret = error;
	struct sa_client *client;

	cancel_state = engine_reenter(engine);
	client = client_of(engine);
	if (request->cancelled) {
		ret = -ECANCELED;
	} else if (error == -ECANCELED) {
		ret = wait_for_address_unlocking(engine, client, request);
	} else if (!error && request->sent && request->sa.lid == sa->lid) {
		ret = request->failure.error;
	} else if (!error) {
		request->sa = *sa;
		ret = send_request_unlocking(engine, request);
	}
	engine_leave(engine, cancel_state);
	return ret;
}

/* Returns the requests that wait, the oldest one first, and removes them from the client. */
static struct sa_request *take_waiting(struct mad_async *engine, struct sa_client *client)
{
	struct sa_request *list = NULL, *request;
	int cancel_state = engine_reenter(engine);

	while ((request = client->waiting)) {
		client->waiting = request->next;
		request->next = list;
		list = request;
	}
	client->reading = 0;
	engine_leave(engine, cancel_state);
	return list;
}

/* Sends the requests to the previous address again, before they time out. */
static void move_others(struct mad_async *engine, struct sa_client *client,
			const ib_portid_t *sa)
{
	int cancel_state = engine_reenter(engine);
	struct sa_request *request;
	uint32_t place = 0;

	while ((request = pool_next(&client->requests, &place)))
		if (request->done && !request->waits && !request->fixed &&
		    !request->cancelled && !request->final && request->sa.lid != sa->lid &&
		    request->moves < SA_MOVES_MOST && !engine_cancel(engine, request->id))
			request->moved = true;
	engine_leave(engine, cancel_state);
}

static void port_info_came(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct sa_request *request = take_waiting(engine, arg), *next;
	int error = reply->error, ret;
	ib_portid_t sa;

	if (!error && reply->data_size < IB_SMP_DATA_SIZE)
		error = -EBADMSG;
	if (!error)
		error = sa_address_learn(engine->port, reply->data, &sa);
	if (!error)
		move_others(engine, arg, &sa);
	for (; request; request = next) {
		next = request->next;
		ret = resume(engine, request, error, &sa);
		if (ret)
			fail(engine, request, ret, ret == -EIO ? reply->status : 0);
	}
}

/* After a failure of the SA, a request waits for the present address of the SA. */
static bool follow(struct mad_async *engine, struct sa_request *request,
		   const struct mad_reply *reply)
{
	bool waits = false;
	int cancel_state;

	if (request->fixed || request->moves == SA_MOVES_MOST ||
	    !sa_address_is_doubtful(reply->error, reply->status))
		return false;
	cancel_state = engine_reenter(engine);
	if (!request->cancelled && !request->final) {
		request->moves++;
		request->sent = true;
		request->failure = *reply;
		request->failure.mad = request->failure.data = NULL;
		request->failure.length = request->failure.data_size = 0;
		waits = !wait_for_address_unlocking(engine, client_of(engine), request);
	}
	engine_leave(engine, cancel_state);
	return waits;
}

/* Sends a request to the new address. Returns 0, or the error of the completion. */
static int move(struct mad_async *engine, struct sa_request *request)
{
	int cancel_state = engine_reenter(engine), ret = -ECANCELED;

	request->moved = false;
	if (!request->cancelled && !request->final) {
		request->moves++;
		ret = start_unlocking(engine, client_of(engine), request);
	}
	engine_leave(engine, cancel_state);
	return ret;
}

static void request_came(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct sa_request *request = arg;
	int error;

	if (request->moved) {
		error = move(engine, request);
		if (error)
			fail(engine, request, error, 0);
	} else if (!follow(engine, request, reply)) {
		complete(engine, request, reply);
	}
}

/* --- calls ----------------------------------------------------------------------- */

static int fill_request(struct mad_async *engine, struct sa_request *request, int method,
			const struct mad_sa_query *query)
{
	void *record = request->record;

	if (query->record_size > sizeof(request->record))
		record = request->heap = malloc(query->record_size);
	if (!record)
		return -ENOMEM;
	if (query->record)
		memcpy(record, query->record, query->record_size);
	request->size = query->record_size;
	request->least = sa_query_is_for_table(method) ? sa_query_least(query, method)
						       : sa_record_size(query->attribute);
	sa_query_rpc(engine->port, query, method, &request->rpc);
	if (query->sa) {
		request->sa = *query->sa;
		request->fixed = true;
	}
	return 0;
}

EXPORT int mad_sa_submit(struct mad_async *async, int method, const struct mad_sa_query *query,
			 mad_sa_fn *done, void *arg, uint64_t *id)
{
	struct sa_request *request = NULL;
	struct sa_client *client;
	int cancel_state, ret, mgmt_class = IB_SA_CLASS;

	if (!async || !query || !done || !sa_query_is_valid(query, method))
		return -EINVAL;
	ret = engine_enter(async, &cancel_state);
	if (ret)
		return ret;
	client = make_client(async);
	if (client)
		request = make_request(client);
	ret = request ? fill_request(async, request, method, query) : -ENOMEM;
	if (!ret) {
		request->done = done;
		request->arg = arg;
		if (id)
			*id = pool_id(&request->entry);
		ret = -EPROTONOSUPPORT;
		if (handle_agent(&async->port->handle, IB_SA_CLASS) >= 0)
			ret = start_unlocking(async, client, request);
	}
	if (ret && request) {
		mgmt_class = request->waits ? IB_SMI_DIRECT_CLASS : IB_SA_CLASS;
		free(request->heap);
		pool_put(&client->requests, request);
	}
	if (ret == -EPROTONOSUPPORT)
		engine_report_class_unlocking(async, "mad_sa_submit", mgmt_class);
	engine_leave(async, cancel_state);
	if (ret)
		report_not_made("mad_sa_submit", -ret);
	return ret;
}

EXPORT int mad_sa_cancel(struct mad_async *async, uint64_t id)
{
	struct sa_request *request = NULL;
	struct sa_client *client;
	int cancel_state, ret = -ENOENT;

	if (!async)
		return -EINVAL;
	if (engine_enter(async, &cancel_state))
		return -ECANCELED;
	client = async->sa ? client_of(async) : NULL;
	if (client)
		request = pool_find(&client->requests, id);
	if (request && request->done && !request->cancelled) {
		ret = 0;
		request->cancelled = true;
		if (!request->waits) {
			/* it may be complete, and is called back soon */
			engine_cancel(async, request->id);
		} else if (client->reading) {
			engine_cancel(async, client->reading);
		}
	}
	engine_leave(async, cancel_state);
	return ret;
}
