/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Servers on an engine: the requests of others that came for a server's agent. A request waits
 * in the engine's list until the server's callback gets it, and is held until the program
 * responds.
 */

#include "base/export.h"
#include "base/report.h"
#include "base/reserved.h"
#include "engine/async.h"
#include "mad/debug.h"
#include "mad/layout.h"

#include <infiniband/mad_server.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#define LIMIT_DEFAULT      1024
#define LIMIT_MAX          65536
#define METHODS            128
#define COMMON_HEADER_SIZE 24
#define DATA_OFFSET_MAX    192
/* The requests of a server at most, in bytes. */
#define BYTES_MAX          (64u << 20)
/* The BUSY responses of a server that wait to be sent at most; then requests are dropped. */
#define REFUSED_MAX        64
#define BUCKETS_MAX        1024

struct mad_server {
	struct list all; /* in the port's */
	int agent;       /* -1: unregistered */
	struct ibmad_port *port;
	struct mad_async *engine;
	bool called_last; /* the last callback has returned: only held requests remain */
	struct list last; /* in the engine's, when the last callback is to come */
	bool ended;       /* no request comes any more */
	int error;        /* ended: 0, or a negative errno */
	mad_server_fn *callback;
	void *arg;
	bool rmpp;
	unsigned data_offset;
	unsigned limit;
	unsigned open;    /* requests that are queued or held */
	unsigned refused; /* requests that wait for BUSY */
	unsigned users;   /* threads that use the server with the lock released */
	size_t bytes;     /* of requests */
	struct mad_server_stats stats;
	unsigned bucket_count;
	struct list buckets[]; /* requests by transaction ID */
};

struct held_request {
	struct mad_request request; /* first */
	struct mad_server *server;
	struct list queue;  /* in the engine's */
	struct list bucket; /* in the server's */
	_Alignas(8) uint8_t umad[];
};

static struct mad_server *server_at(struct list *entry)
{
	return list_entry(entry, struct mad_server, all);
}

/* --- life ----------------------------------------------------------------------- */

/* A server without an agent that holds "limit" requests at most; NULL: no memory. */
static struct mad_server *server_new(unsigned limit)
{
	unsigned buckets = limit < BUCKETS_MAX ? limit : BUCKETS_MAX;
	struct mad_server *server =
		calloc(1, sizeof(*server) + buckets * sizeof(*server->buckets));

	if (!server)
		return NULL;
	server->agent = -1;
	server->limit = limit;
	server->bucket_count = buckets;
	for (unsigned i = 0; i < buckets; i++)
		list_init(&server->buckets[i]);
	return server;
}

/* After the caller's last use of a server: frees the server if it has ended and is unused. */
static void server_release(struct mad_server *server)
{
	if (!server->called_last || server->open || server->refused || server->users)
		return;
	list_remove(&server->all);
	free(server);
}

/* The server of an agent; NULL: none. */
static struct mad_server *server_find(const struct ibmad_port *port, uint32_t agent)
{
	list_for_each (entry, &port->servers)
		if (server_at(entry)->agent >= 0 && (uint32_t)server_at(entry)->agent == agent)
			return server_at(entry);
	return NULL;
}

/* --- requests ------------------------------------------------------------------- */

static struct list *bucket_of(struct mad_server *server, const uint8_t *mad)
{
	uint32_t hash = get32(mad, TID_OFFS) * UINT32_C(2654435761);

	return &server->buckets[(hash >> 16) % server->bucket_count];
}

static bool same_sender(const ib_mad_addr_t *a, const ib_mad_addr_t *b)
{
	return a->lid == b->lid && a->qpn == b->qpn && !a->grh_present == !b->grh_present &&
	       (!a->grh_present || !memcmp(a->gid, b->gid, sizeof(a->gid)));
}

/* Whether a MAD is a retransmission: the same method, ID, attribute, modifier and sender. */
static bool is_same(const struct held_request *held, const struct ib_user_mad *header,
		    const uint8_t *mad)
{
	const struct ib_user_mad *other = (const struct ib_user_mad *)(const void *)held->umad;
	const uint8_t *theirs = held->request.mad;

	return !memcmp(theirs + 8, mad + 8, 16) && theirs[3] == mad[3] &&
	       same_sender(&other->addr, &header->addr);
}

static bool is_known(struct mad_server *server, const struct ib_user_mad *header,
		     const uint8_t *mad)
{
	struct list *bucket = bucket_of(server, mad);

	list_for_each (entry, bucket)
		if (is_same(list_entry(entry, struct held_request, bucket), header, mad))
			return true;
	return false;
}

static void describe_request(struct mad_request *request, uint8_t *umad, size_t length,
			     unsigned data_offset)
{
	const ib_mad_addr_t *from = umad_get_mad_addr(umad);
	const uint8_t *mad = umad_get_mad(umad);

	request->mad = mad;
	request->length = length;
	if (length > data_offset) {
		request->data = mad + data_offset;
		request->data_size = length - data_offset;
	}
	request->mgmt_class = mad[1];
	request->method = mad[3];
	request->tid = (uint64_t)get32(mad, 8) << 32 | get32(mad, TID_OFFS);
	request->attribute = get16(mad, 16);
	request->modifier = get32(mad, 20);
	request->from.lid = be16toh(from->lid);
	request->from.qp = be32toh(from->qpn);
	request->from.qkey = is_smp_class(mad[1]) ? 0 : IB_DEFAULT_QP1_QKEY;
	request->from.sl = from->sl;
	request->from.pkey_idx = (unsigned)umad_get_pkey(umad);
	request->from.grh_present = from->grh_present;
	if (from->grh_present)
		memcpy(request->from.gid, from->gid, sizeof(from->gid));
}

/* A copy of the first "length" bytes of a message; in no list. */
static struct held_request *new_request(struct mad_server *server, const uint8_t *umad,
					size_t length)
{
	size_t size = umad_size() + length, room = size < PACKET_SIZE ? PACKET_SIZE : size;
	struct held_request *held = calloc(1, sizeof(*held) + room);

	if (!held)
		return NULL;
	memcpy(held->umad, umad, size);
	held->server = server;
	held->request.server = server;
	describe_request(&held->request, held->umad, length, server->data_offset);
	return held;
}

/* Frees a request that is neither queued nor held any more. */
static void held_request_free(struct held_request *held)
{
	struct mad_server *server = held->server;

	list_remove(&held->bucket);
	server->open--;
	server->bytes -= held->request.length;
	free(held);
}

/* --- the end -------------------------------------------------------------------- */

static void drop_request(struct held_request *held, bool refused)
{
	struct mad_server *server = held->server;

	list_remove(&held->queue);
	if (refused) {
		server->stats.dropped++;
		server->refused--;
		free(held);
	} else {
		server->stats.queued--;
		held_request_free(held);
	}
}

static void drop_requests(struct list *queue, const struct mad_server *server, bool refused)
{
	struct list *next;

	for (struct list *entry = queue->next; entry != queue; entry = next) {
		struct held_request *held = list_entry(entry, struct held_request, queue);

		next = entry->next;
		if (held->server == server)
			drop_request(held, refused);
	}
}

/* Drops the requests that no callback got. No others come. */
static void server_close(struct mad_server *server)
{
	server->ended = true;
	drop_requests(&server->engine->arrived, server, false);
	drop_requests(&server->engine->refused, server, true);
}

/* The same; then the engine calls back for the last time, with the error. */
static void server_end(struct mad_server *server, int error)
{
	if (server->ended)
		return;
	server_close(server);
	server->error = error;
	list_add_last(&server->engine->ended, &server->last);
}

void servers_end(struct ibmad_port *port, int error)
{
	list_for_each (entry, &port->servers)
		server_end(server_at(entry), error);
}

void servers_inherit(struct ibmad_port *port)
{
	list_for_each (entry, &port->servers)
		server_at(entry)->agent = -1;
	servers_end(port, -ECANCELED);
}

/* --- messages ------------------------------------------------------------------- */

/* A Send has no response. The response to a Trap or a Report says that it was received. */
static bool can_be_busy(unsigned method)
{
	return method != IB_MAD_METHOD_SEND && method != IB_MAD_METHOD_TRAP &&
	       method != IB_MAD_METHOD_REPORT;
}

static void refuse_request(struct mad_server *server, const uint8_t *umad, size_t length)
{
	const uint8_t *mad = packet_mad(umad);
	struct held_request *held = NULL;

	if (can_be_busy(mad[3]) && server->refused < REFUSED_MAX)
		held = new_request(server, umad, length < IB_MAD_SIZE ? length : IB_MAD_SIZE);
	if (!held) {
		server->stats.dropped++;
		return;
	}
	server->refused++;
	list_add_last(&server->engine->refused, &held->queue);
}

static void keep_request(struct mad_server *server, const uint8_t *umad, size_t length)
{
	struct held_request *held = new_request(server, umad, length);

	if (!held) {
		server->stats.dropped++;
		return;
	}
	list_add_last(bucket_of(server, held->request.mad), &held->bucket);
	server->open++;
	server->bytes += length;
	server->stats.received++;
	server->stats.queued++;
	list_add_last(&server->engine->arrived, &held->queue);
}

/* Takes a message for the server's agent. false: it is a response, and for the inbox. */
static bool server_receive(struct mad_server *server, const uint8_t *umad, int length)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	const uint8_t *mad = packet_mad(umad);
	bool response = !server->ended && length >= 24 && is_response(mad);

	if (response && !header->status)
		return false;
	if (response)
		server->stats.failed++; /* the kernel has given up a response by RMPP */
	else if (server->ended || length < RMPP_HEADER_END || header->status ||
		 (server->rmpp && rmpp_is_short(mad, length)))
		server->stats.dropped++;
	else if (is_known(server, header, mad))
		server->stats.duplicates++;
	else if (server->open >= server->limit || (size_t)length > BYTES_MAX - server->bytes)
		refuse_request(server, umad, (size_t)length);
	else
		keep_request(server, umad, (size_t)length);
	return true;
}

bool servers_receive(struct ibmad_port *port, const uint8_t *umad, int length)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	struct mad_server *server = server_find(port, header->agent_id);

	if (!server || !server_receive(server, umad, length))
		return false;
	engine_wake(server->engine);
	return true;
}

/* --- options -------------------------------------------------------------------- */

static unsigned default_offset(int mgmt_class)
{
	if (mgmt_class == IB_SA_CLASS)
		return IB_SA_DATA_OFFS;
	if (mad_is_vendor_range2(mgmt_class))
		return IB_VENDOR_RANGE2_DATA_OFFS;
	if (mad_is_vendor_range1(mgmt_class))
		return IB_VENDOR_RANGE1_DATA_OFFS;
	return IB_SMP_DATA_OFFS;
}

static unsigned data_offset_of(const struct mad_server_options *options)
{
	return options->data_offset ? options->data_offset
				    : default_offset(options->mgmt_class);
}

/* Whether the kernel knows that MADs of the class have an RMPP header (IBA 13.6.2). */
static bool may_have_rmpp(int mgmt_class)
{
	return mgmt_class == IB_SA_CLASS || mgmt_class == IB_DEVICE_MGMT_CLASS ||
	       mgmt_class == 0x10 || mgmt_class == 0x12 || mad_is_vendor_range2(mgmt_class);
}

/* Where data may begin: after the common header, the RMPP header and the OUI. */
static unsigned least_offset(const struct mad_server_options *options)
{
	if (mad_is_vendor_range2(options->mgmt_class))
		return IB_VENDOR_RANGE2_DATA_OFFS;
	return options->rmpp_version ? RMPP_HEADER_END : COMMON_HEADER_SIZE;
}

static bool are_valid(const struct mad_server_options *options)
{
	int mgmt_class = options->mgmt_class;
	unsigned offset = options->data_offset;

	if (!is_known_class(mgmt_class) || options->limit > LIMIT_MAX ||
	    (!options->methods[0] && !options->methods[1]) ||
	    (offset && (offset < least_offset(options) || offset > DATA_OFFSET_MAX)))
		return false;
	if (!is_reserved(options->reserved))
		return false;
	if (mad_is_vendor_range2(mgmt_class) ? !options->oui || options->oui > 0xffffff
					     : options->oui)
		return false;
	return options->rmpp_version == 0 ||
	       (options->rmpp_version == RMPP_VERSION && may_have_rmpp(mgmt_class));
}

/* Registers the agent: its ID, or a negative errno. */
static int register_agent(const struct handle *handle, const struct mad_server_options *options)
{
	long mask[16 / sizeof(long)] = {0};
	uint8_t oui[3] = {(uint8_t)(options->oui >> 16), (uint8_t)(options->oui >> 8),
			  (uint8_t)options->oui};
	int mgmt_class = options->mgmt_class, agent;

	for (unsigned i = 0; i < METHODS; i++)
		if (options->methods[i / 64] >> i % 64 & 1)
			mask[i / (8 * sizeof(long))] |= (long)(1UL << i % (8 * sizeof(long)));
	errno = 0;
	if (mad_is_vendor_range2(mgmt_class))
		agent = umad_register_oui(handle->fd, mgmt_class,
					  (uint8_t)options->rmpp_version, oui, mask);
	else
		agent = umad_register(handle->fd, mgmt_class, class_version(mgmt_class),
				      (uint8_t)options->rmpp_version, mask);
	if (agent >= 0)
		return agent;
	/* are_valid() has checked all other causes of EINVAL in the kernel */
	if (errno == EINVAL)
		return -EADDRINUSE;
	return errno == EPIPE ? -ENODEV : errno ? -errno : -EIO;
}

/* --- starting and stopping ------------------------------------------------------ */

/* The lock is held. */
static int start_server(struct mad_async *engine, const struct mad_server_options *options,
			struct mad_server *server)
{
	struct ibmad_port *port = engine->port;
	int agent;

	agent = port->state == PORT_INHERITED ? -ECANCELED : engine_why_ended(engine);
	if (agent)
		return agent;
	/* nothing is read for the agent before the lock is released */
	agent = register_agent(&port->handle, options);
	if (agent < 0)
		return agent;
	server->agent = agent;
	server->engine = engine;
	server->port = port;
	list_add_last(&port->servers, &server->all);
	engine->servers++;
	return 0;
}

EXPORT int mad_server_start(struct mad_async *async, const struct mad_server_options *options,
			    mad_server_fn *callback, void *arg, struct mad_server **server)
{
	struct mad_server *started;
	int cancel_state, ret;

	if (!async || !options || !callback || !server || !are_valid(options))
		return failure_of_call(0, -EINVAL);
	started = server_new(options->limit ? options->limit : LIMIT_DEFAULT);
	if (!started)
		return failure_of_call(0, -ENOMEM);
	started->rmpp = options->rmpp_version != 0;
	started->data_offset = data_offset_of(options);
	started->callback = callback;
	started->arg = arg;
	ret = engine_enter(async, &cancel_state);
	if (!ret) {
		*server = started; /* before the first callback */
		ret = start_server(async, options, started);
		engine_leave(async, cancel_state);
	}
	if (ret) {
		*server = NULL;
		free(started);
		failure_refuse_call(MAD_FAILURE_REGISTER, options->mgmt_class, -ret);
	}
	return ret;
}

/* Unregisters the agent, if it is still registered. */
static void unregister_unlocking(struct mad_server *server)
{
	struct ibmad_port *port = server->port;
	int agent = server->agent;

	server->agent = -1;
	if (agent < 0)
		return;
	server->users++;
	port_unlock(port);
	umad_unregister(port->handle.fd, agent);
	port_lock(port);
	server->users--;
}

void servers_unregister(struct ibmad_port *port)
{
	list_for_each (entry, &port->servers) {
		if (server_at(entry)->agent >= 0)
			umad_unregister(port->handle.fd, server_at(entry)->agent);
		server_at(entry)->agent = -1;
	}
}

EXPORT void mad_server_stop(struct mad_server *server)
{
	struct mad_async *engine;
	int cancel_state;

	if (!server)
		return;
	engine = server->engine;
	if (engine_enter(engine, &cancel_state))
		return;
	if (!server->ended) {
		/* the last callback may start another server for the same methods */
		server_close(server);
		unregister_unlocking(server);
		list_add_last(&engine->ended, &server->last);
		engine_wake(engine);
	}
	engine_leave(engine, cancel_state);
}

struct mad_server_stats server_stats(const struct mad_server *server)
{
	struct mad_server_stats stats = server->stats;

	stats.held = server->open - stats.queued;
	return stats;
}

EXPORT int mad_server_get_stats(struct mad_server *server, struct mad_server_stats *stats,
				size_t size)
{
	struct mad_server_stats now;
	int cancel_state;

	if (!server || !stats)
		return failure_of_call(0, -EINVAL);
	if (port_enter(server->port, &cancel_state))
		return failure_of_call(0, -ECANCELED);
	now = server_stats(server);
	port_leave(server->port, cancel_state);
	memset(stats, 0, size);
	memcpy(stats, &now, size < sizeof(now) ? size : sizeof(now));
	return 0;
}

/* --- callbacks ------------------------------------------------------------------ */

static void call_unlocking(struct mad_async *engine, struct held_request *held)
{
	struct mad_server *server = held->server;
	struct ibmad_port *port = engine->port;

	server->stats.queued--;
	server->users++;
	engine->calling++;
	port_unlock(port);
	debug_received("mad_server_start", held->umad, umad_get_mad(held->umad));
	server->callback(server, &held->request, 0, server->arg);
	port_lock(port);
	engine->calling--;
	server->users--;
	server_release(server);
}

static void call_last_unlocking(struct mad_async *engine, struct mad_server *server)
{
	struct ibmad_port *port = engine->port;

	unregister_unlocking(server);
	engine->calling++;
	port_unlock(port);
	server->callback(server, NULL, failure_of_call(0, server->error), server->arg);
	port_lock(port);
	engine->calling--;
	engine->servers--;
	server->called_last = true;
	server_release(server);
}

int servers_call_unlocking(struct mad_async *engine)
{
	struct list *first;
	unsigned count;

	for (count = 0; count < BATCH && !engine_is_stopped(engine); count++)
		if ((first = list_pop(&engine->arrived)))
			call_unlocking(engine, list_entry(first, struct held_request, queue));
		else if ((first = list_pop(&engine->ended)))
			call_last_unlocking(engine, list_entry(first, struct mad_server, last));
		else
			break;
	return (int)count;
}

/* The engine's servers without a last callback end. */
static void end_servers(struct mad_async *engine)
{
	list_for_each (entry, &engine->port->servers) {
		struct mad_server *server = list_entry(entry, struct mad_server, all);

		if (server->engine == engine && !server->called_last)
			server_end(server, -ECANCELED);
	}
}

void servers_end_unlocking(struct mad_async *engine)
{
	struct list *first;

	end_servers(engine);
	while ((first = list_pop(&engine->ended)))
		call_last_unlocking(engine, list_entry(first, struct mad_server, last));
}

/* Writes a response in place of its request, for an agent. The lock is not held. */
static int respond_in_place(const struct ibmad_port *port, uint8_t *umad, uint16_t status,
			    int agent)
{
	uint8_t *mad = umad_get_mad(umad);

	response_write_header(mad, status);
	response_address(umad, mad);
	debug_sent("mad_server_start", umad, mad);
	((struct ib_user_mad *)(void *)umad)->agent_id = (uint32_t)agent;
	return handle_respond(&port->handle, umad, IB_MAD_SIZE, false);
}

static void send_busy_unlocking(struct mad_async *engine, struct held_request *held)
{
	struct mad_server *server = held->server;
	struct ibmad_port *port = engine->port;
	int agent = server->agent, error;

	server->refused--;
	server->users++;
	port_unlock(port);
	/* the response has no RMPP header: the rest of it */
	memset(held->umad + umad_size() + RMPP_DATA2_OFFS, 0, server->rmpp ? 4 : 0);
	error = respond_in_place(port, held->umad, IB_MAD_STS_BUSY, agent);
	free(held);
	port_lock(port);
	server->users--;
	server->stats.busy += !error;
	server->stats.failed += error != 0;
	server_release(server);
}

void servers_refuse_unlocking(struct mad_async *engine)
{
	struct list *first;

	for (unsigned i = 0; i < BATCH && (first = list_pop(&engine->refused)); i++)
		send_busy_unlocking(engine, list_entry(first, struct held_request, queue));
}

/* --- responses ------------------------------------------------------------------ */

static struct held_request *held_of(struct mad_request *request)
{
	return list_entry(request, struct held_request, request);
}

static bool is_table(const struct mad_request *request)
{
	return request->mgmt_class == IB_SA_CLASS &&
	       (request->method == IB_MAD_METHOD_GET_TABLE ||
		request->method == IB_MAD_METHOD_GET_TRACE_TABLE ||
		request->method == IB_MAD_METHOD_GETMULTI);
}

/* A response that is to be written. */
struct outgoing {
	uint8_t *umad;
	size_t length; /* of the MAD */
	bool by_rmpp;
};

static int measure_response(struct outgoing *outgoing, const struct mad_request *request,
			    const void *data, size_t size)
{
	const struct mad_server *server = request->server;

	outgoing->by_rmpp = server->rmpp && data &&
			    (is_table(request) || size > IB_MAD_SIZE - server->data_offset);
	outgoing->length = outgoing->by_rmpp ? server->data_offset + size : IB_MAD_SIZE;
	if (size > INT_MAX - 2 * PACKET_SIZE ||
	    (data && size > outgoing->length - server->data_offset))
		return -EMSGSIZE;
	return 0;
}

static int write_response(const struct outgoing *outgoing, const struct held_request *held,
			  unsigned status, const void *data, size_t size, int agent)
{
	const struct mad_server *server = held->server;
	uint8_t *mad = umad_get_mad(outgoing->umad);
	size_t head = umad_size() + (data ? server->data_offset : IB_MAD_SIZE);

	memcpy(outgoing->umad, held->umad, head);
	if (server->rmpp)
		memset(mad + RMPP_VERSION_OFFS, 0, RMPP_HEADER_END - RMPP_VERSION_OFFS);
	response_write_header(mad, (uint16_t)status);
	/* last: the data may begin where the header of other MADs of the class has a key */
	if (size)
		memcpy(mad + server->data_offset, data, size);
	if (outgoing->by_rmpp)
		rmpp_mark(mad);
	response_address(outgoing->umad, mad);
	debug_sent("mad_request_respond", outgoing->umad, mad);
	((struct ib_user_mad *)(void *)outgoing->umad)->agent_id = (uint32_t)agent;
	return -handle_respond(&server->port->handle, outgoing->umad, (int)outgoing->length,
			       outgoing->by_rmpp);
}

static int respond_unlocking(const struct outgoing *outgoing, struct held_request *held,
			     unsigned status, const void *data, size_t size)
{
	struct mad_server *server = held->server;
	struct ibmad_port *port = server->port;
	int agent = server->agent, ret;

	if (server->ended || port->error)
		return port->error ? -port->error : -ECANCELED;
	server->users++;
	port_unlock(port);
	ret = write_response(outgoing, held, status, data, size, agent);
	port_lock(port);
	server->users--;
	server->stats.responded += !ret;
	server->stats.failed += ret != 0;
	return ret;
}

static void release_request(struct mad_request *request)
{
	struct mad_server *server = request->server;

	held_request_free(held_of(request));
	server_release(server);
}

static int respond_to(struct mad_request *request, unsigned status, const void *data,
		      size_t size)
{
	_Alignas(8) uint8_t packet[PACKET_SIZE] = {0};
	struct outgoing outgoing = {.umad = packet};
	struct ibmad_port *port = request->server->port;
	int cancel_state, ret;

	ret = measure_response(&outgoing, request, data, size);
	if (ret)
		return ret;
	if (outgoing.length > IB_MAD_SIZE) {
		outgoing.umad = calloc(1, umad_size() + outgoing.length);
		if (!outgoing.umad)
			return -ENOMEM;
	}
	ret = port_enter(port, &cancel_state);
	if (!ret) {
		ret = respond_unlocking(&outgoing, held_of(request), status, data, size);
		if (!ret)
			release_request(request);
		port_leave(port, cancel_state);
	}
	if (outgoing.umad != packet)
		free(outgoing.umad);
	return ret;
}

EXPORT int mad_request_respond(struct mad_request *request, unsigned status, const void *data,
			       size_t size)
{
	int mgmt_class;

	if (!request || status > UINT16_MAX || (size && !data) ||
	    request->method == IB_MAD_METHOD_SEND)
		return failure_of_call(0, -EINVAL);
	mgmt_class = (int)request->mgmt_class; /* success frees the request */
	return failure_of_call(mgmt_class, respond_to(request, status, data, size));
}

EXPORT void mad_request_free(struct mad_request *request)
{
	struct ibmad_port *port;
	int cancel_state;

	if (!request)
		return;
	port = request->server->port;
	if (port_enter(port, &cancel_state))
		return;
	release_request(request);
	port_leave(port, cancel_state);
}
