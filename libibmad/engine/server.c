/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Servers on an engine: handle incoming requests of an agent. A request is queued in the engine
 * until passed to the server's callback, then held until the program responds.
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
#define COMMON_HEADER_SIZE 24
#define DATA_OFFSET_MAX    192
/* Limit of a server's open requests, in bytes. */
#define BYTES_MAX          (64u << 20)
/* Limit of a server's queued BUSY responses; beyond it, requests are dropped. */
#define REFUSED_MAX        64
#define BUCKETS            1024

enum server_state {
	SERVER_RUNS,
	SERVER_STOPPED,     /* no more requests; the last callback is still due */
	SERVER_CALLED_LAST, /* last callback made; only held requests remain */
};

struct mad_server {
	struct list all; /* in the port's servers */
	enum server_state state;
	int error; /* for the last callback: 0 or a negative errno */
	int agent; /* -1: unregistered */
	struct ibmad_port *port;
	struct mad_async *engine;
	struct list last; /* in the engine's list while the last callback is due */
	mad_server_fn *callback;
	void *arg;
	bool rmpp;
	unsigned data_offset;
	unsigned limit;
	unsigned open;    /* requests queued or held */
	unsigned refused; /* requests to be refused with BUSY */
	unsigned users;   /* threads using the server without the lock */
	size_t bytes;     /* memory of its requests */
	struct mad_server_stats stats;
	struct list buckets[BUCKETS]; /* requests by TID */
};

struct held_request {
	struct mad_request request;
	struct list queue;  /* in the engine's list */
	struct list bucket; /* in the server's hash table */
	_Alignas(8) uint8_t umad[];
};

static struct mad_server *server_at(struct list *entry)
{
	return list_entry(entry, struct mad_server, all);
}

/* After the caller's last use: frees the server if it has ended and nobody uses it. */
static void server_release(struct mad_server *server)
{
	if (server->state != SERVER_CALLED_LAST || server->open || server->users)
		return;
	list_remove(&server->all);
	free(server);
}

/* --- requests ------------------------------------------------------------------- */

static struct list *bucket_of(struct mad_server *server, const uint8_t *mad)
{
	uint32_t hash = get32(mad, TID_OFFS) * UINT32_C(2654435761);

	return &server->buckets[(hash >> 16) % BUCKETS];
}

static bool same_sender(const ib_mad_addr_t *a, const ib_mad_addr_t *b)
{
	return a->lid == b->lid && a->qpn == b->qpn && !a->grh_present == !b->grh_present &&
	       (!a->grh_present || !memcmp(a->gid, b->gid, sizeof(a->gid)));
}

/*
 * Whether a MAD is a retransmission of an open request: same method, TID, attribute, modifier
 * and sender.
 */
static bool is_known(struct mad_server *server, const struct ib_user_mad *header,
		     const uint8_t *mad)
{
	struct list *bucket = bucket_of(server, mad);

	list_for_each (entry, bucket) {
		struct held_request *held = list_entry(entry, struct held_request, bucket);
		const uint8_t *other = held->request.mad;

		if (other[3] == mad[3] && !memcmp(other + 8, mad + 8, 16) &&
		    same_sender(umad_get_mad_addr(held->umad), &header->addr))
			return true;
	}
	return false;
}

/* Copies the first "length" bytes of a message; adds it to no list. */
static struct held_request *held_request_new(struct mad_server *server, const uint8_t *umad,
					     size_t length)
{
	size_t size = umad_size() + length, room = size < PACKET_SIZE ? PACKET_SIZE : size;
	struct held_request *held = calloc(1, sizeof(*held) + room);
	struct mad_request *request;
	const ib_mad_addr_t *from;
	const uint8_t *mad;

	if (!held)
		return NULL;
	memcpy(held->umad, umad, size);
	from = umad_get_mad_addr(held->umad);
	mad = umad_get_mad(held->umad);
	request = &held->request;
	request->server = server;
	request->mad = mad;
	request->length = length;
	if (length > server->data_offset) {
		request->data = mad + server->data_offset;
		request->data_size = length - server->data_offset;
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
	request->from.pkey_idx = (unsigned)umad_get_pkey(held->umad);
	request->from.grh_present = from->grh_present;
	if (from->grh_present)
		memcpy(request->from.gid, from->gid, sizeof(from->gid));
	return held;
}

/* Frees a request that is neither queued nor held any more. */
static void held_request_free(struct held_request *held)
{
	struct mad_server *server = held->request.server;

	list_remove(&held->bucket);
	server->open--;
	server->bytes -= held->request.length;
	free(held);
}

/* --- the end -------------------------------------------------------------------- */

/* Drops requests not called back yet, and accepts no more. */
static void server_close(struct mad_server *server)
{
	struct list *queues[] = {&server->engine->arrived, &server->engine->refused};
	struct list *next;

	server->state = SERVER_STOPPED;
	for (unsigned i = 0; i < 2; i++)
		for (struct list *entry = queues[i]->next; entry != queues[i]; entry = next) {
			struct held_request *held =
				list_entry(entry, struct held_request, queue);

			next = entry->next;
			if (held->request.server != server)
				continue;
			list_remove(entry);
			if (queues[i] == &server->engine->arrived) {
				server->stats.queued--;
				held_request_free(held);
			} else {
				server->stats.dropped++;
				server->refused--;
				free(held);
			}
		}
}

/* As server_close(), and schedules the last callback with the error. */
static void server_end(struct mad_server *server, int error)
{
	if (server->state != SERVER_RUNS)
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

/* Sends have no response. A response to a Trap or Report only confirms receipt. */
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
		held = held_request_new(server, umad,
					length < IB_MAD_SIZE ? length : IB_MAD_SIZE);
	if (!held) {
		server->stats.dropped++;
		return;
	}
	server->refused++;
	list_add_last(&server->engine->refused, &held->queue);
}

static void keep_request(struct mad_server *server, const uint8_t *umad, size_t length)
{
	struct held_request *held = held_request_new(server, umad, length);

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

bool servers_receive(struct ibmad_port *port, const uint8_t *umad, int length)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	const uint8_t *mad = packet_mad(umad);
	struct mad_server *server = NULL;
	bool runs, response;

	list_for_each (entry, &port->servers)
		if ((int64_t)server_at(entry)->agent == header->agent_id)
			server = server_at(entry);
	if (!server)
		return false;
	runs = server->state == SERVER_RUNS;
	response = runs && length >= COMMON_HEADER_SIZE && is_response(mad);
	if (response && !header->status)
		return false;
	if (response)
		server->stats.failed++; /* the kernel gave up on an RMPP response */
	else if (!runs || length < RMPP_HEADER_END || header->status ||
		 (server->rmpp && rmpp_is_short(mad, length)))
		server->stats.dropped++;
	else if (is_known(server, header, mad))
		server->stats.duplicates++;
	else if (server->open >= server->limit || (size_t)length > BYTES_MAX - server->bytes)
		refuse_request(server, umad, (size_t)length);
	else
		keep_request(server, umad, (size_t)length);
	engine_wake(server->engine);
	return true;
}

/* --- starting and stopping ------------------------------------------------------ */

static unsigned data_offset_of(const struct mad_server_options *options)
{
	if (options->data_offset)
		return options->data_offset;
	if (options->mgmt_class == IB_SA_CLASS)
		return IB_SA_DATA_OFFS;
	if (mad_is_vendor_range2(options->mgmt_class))
		return IB_VENDOR_RANGE2_DATA_OFFS;
	if (mad_is_vendor_range1(options->mgmt_class))
		return IB_VENDOR_RANGE1_DATA_OFFS;
	return IB_SMP_DATA_OFFS;
}

static bool are_server_options(const struct mad_server_options *options)
{
	int mgmt_class = options->mgmt_class;
	bool has_oui = mad_is_vendor_range2(mgmt_class);
	/* in these classes, the kernel knows that MADs have an RMPP header (IBA 13.6.2) */
	bool may_have_rmpp = mgmt_class == IB_SA_CLASS || mgmt_class == IB_DEVICE_MGMT_CLASS ||
			     mgmt_class == 0x10 || mgmt_class == 0x12 || has_oui;
	/* data may start after the common header, RMPP header and OUI */
	unsigned least_offset = has_oui                 ? IB_VENDOR_RANGE2_DATA_OFFS
				: options->rmpp_version ? RMPP_HEADER_END
							: COMMON_HEADER_SIZE;

	if (!is_known_class(mgmt_class) || options->limit > LIMIT_MAX ||
	    (!options->methods[0] && !options->methods[1]) || !is_reserved(options->reserved))
		return false;
	if (options->data_offset &&
	    (options->data_offset < least_offset || options->data_offset > DATA_OFFSET_MAX))
		return false;
	if (has_oui ? !options->oui || options->oui > 0xffffff : options->oui)
		return false;
	return !options->rmpp_version ||
	       (options->rmpp_version == RMPP_VERSION && may_have_rmpp);
}

/* Returns the agent's ID or a negative errno. */
static int register_agent(const struct handle *handle, const struct mad_server_options *options)
{
	long mask[16 / sizeof(long)];
	int agent;

	for (unsigned i = 0; i < 16 / sizeof(long); i++)
		mask[i] = (long)(options->methods[i * sizeof(long) / 8] >>
				 i * sizeof(long) * 8 % 64);
	errno = 0;
	agent = handle_register(handle, options->mgmt_class, (uint8_t)options->rmpp_version,
				mask, options->oui);
	if (agent >= 0)
		return agent;
	/* are_server_options() has ruled out the kernel's other reasons for EINVAL */
	if (errno == EINVAL)
		return -EADDRINUSE;
	return errno == EPIPE ? -ENODEV : errno ? -errno : -EIO;
}

EXPORT int mad_server_start(struct mad_async *async, const struct mad_server_options *options,
			    mad_server_fn *callback, void *arg, struct mad_server **server)
{
	struct mad_server *started;
	int ret;

	if (!async || !options || !callback || !server || !are_server_options(options))
		return failure_of_call(0, -EINVAL);
	started = calloc(1, sizeof(*started));
	if (!started)
		return failure_of_call(0, -ENOMEM);
	started->port = async->port;
	started->engine = async;
	started->callback = callback;
	started->arg = arg;
	started->rmpp = options->rmpp_version != 0;
	started->data_offset = data_offset_of(options);
	started->limit = options->limit ? options->limit : LIMIT_DEFAULT;
	for (unsigned i = 0; i < BUCKETS; i++)
		list_init(&started->buckets[i]);
	ret = engine_enter(async);
	if (!ret) {
		*server = started; /* before the first callback */
		ret = async->port->state == PORT_INHERITED ? -ECANCELED
							   : engine_why_ended(async);
		/* nothing is read for the agent until the lock is released */
		if (!ret)
			ret = register_agent(&async->port->handle, options);
		if (ret >= 0) {
			started->agent = ret;
			list_add_last(&async->port->servers, &started->all);
			async->servers++;
			ret = 0;
		}
		engine_leave(async);
	}
	if (ret) {
		*server = NULL;
		free(started);
		failure_refuse_call(MAD_FAILURE_REGISTER, options->mgmt_class, -ret);
	}
	return ret;
}

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

	if (!server)
		return;
	engine = server->engine;
	if (engine_enter(engine))
		return;
	if (server->state == SERVER_RUNS) {
		/* the last callback may start another server for the same methods */
		server_close(server);
		unregister_unlocking(server);
		list_add_last(&engine->ended, &server->last);
		engine_wake(engine);
	}
	engine_leave(engine);
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

	if (!server || !stats)
		return failure_of_call(0, -EINVAL);
	if (port_enter(server->port))
		return failure_of_call(0, -ECANCELED);
	now = server_stats(server);
	port_leave(server->port);
	memset(stats, 0, size);
	memcpy(stats, &now, size < sizeof(now) ? size : sizeof(now));
	return 0;
}

/* --- callbacks ------------------------------------------------------------------ */

static void call_server_last_unlocking(struct mad_async *engine, struct mad_server *server)
{
	unregister_unlocking(server);
	engine_callback_begin_unlocking(engine);
	server->callback(server, NULL, failure_of_call(0, server->error), server->arg);
	engine_callback_end(engine);
	engine->servers--;
	server->state = SERVER_CALLED_LAST;
	server_release(server);
}

int servers_call_unlocking(struct mad_async *engine)
{
	struct mad_server *server;
	struct held_request *held;
	struct list *first;
	int count;

	for (count = 0; count < BATCH && !engine_is_stopped(engine); count++) {
		first = list_pop(&engine->arrived);
		if (!first) {
			first = list_pop(&engine->ended);
			if (!first)
				break;
			call_server_last_unlocking(engine,
						   list_entry(first, struct mad_server, last));
			continue;
		}
		held = list_entry(first, struct held_request, queue);
		server = held->request.server;
		server->stats.queued--;
		server->users++;
		engine_callback_begin_unlocking(engine);
		debug_received("mad_server_start", held->umad, umad_get_mad(held->umad));
		server->callback(server, &held->request, 0, server->arg);
		engine_callback_end(engine);
		server->users--;
		server_release(server);
	}
	return count;
}

void servers_end_unlocking(struct mad_async *engine)
{
	struct list *first;

	list_for_each (entry, &engine->port->servers)
		if (server_at(entry)->engine == engine)
			server_end(server_at(entry), -ECANCELED);
	while (engine->servers)
		if ((first = list_pop(&engine->ended)))
			call_server_last_unlocking(engine,
						   list_entry(first, struct mad_server, last));
		else /* another thread is in mad_server_stop() */
			pthread_cond_wait(&engine->changed, &engine->port->lock);
}

/* --- responses ------------------------------------------------------------------ */

/* Writes the response in umad and counts it. Returns 0 or an errno. */
static int send_response_unlocking(struct mad_server *server, const char *call, uint8_t *umad,
				   size_t length, bool by_rmpp)
{
	uint8_t *mad = umad_get_mad(umad);
	int error;

	response_address(umad, mad);
	((struct ib_user_mad *)(void *)umad)->agent_id = (uint32_t)server->agent;
	server->users++;
	port_unlock(server->port);
	debug_sent(call, umad, mad);
	error = handle_respond(&server->port->handle, umad, (int)length, by_rmpp);
	port_lock(server->port);
	server->users--;
	server->stats.failed += error != 0;
	return error;
}

void servers_refuse_unlocking(struct mad_async *engine)
{
	struct list *first;

	for (unsigned i = 0; i < BATCH && (first = list_pop(&engine->refused)); i++) {
		struct held_request *held = list_entry(first, struct held_request, queue);
		struct mad_server *server = held->request.server;
		uint8_t *mad = umad_get_mad(held->umad);

		/* the response overwrites the request */
		server->refused--;
		response_write_header(mad, IB_MAD_STS_BUSY);
		if (server->rmpp) /* the response has no RMPP header: clear the rest */
			memset(mad + RMPP_DATA2_OFFS, 0, 4);
		server->stats.busy += !send_response_unlocking(server, "mad_server_start",
							       held->umad, IB_MAD_SIZE, false);
		free(held);
		server_release(server);
	}
}

static bool is_table(const struct mad_request *request)
{
	return request->mgmt_class == IB_SA_CLASS &&
	       (request->method == IB_MAD_METHOD_GET_TABLE ||
		request->method == IB_MAD_METHOD_GET_TRACE_TABLE ||
		request->method == IB_MAD_METHOD_GETMULTI);
}

static void build_response(uint8_t *umad, const struct held_request *held, bool by_rmpp,
			   unsigned status, const void *data, size_t size)
{
	const struct mad_server *server = held->request.server;
	uint8_t *mad = umad_get_mad(umad);

	memcpy(umad, held->umad, umad_size() + (data ? server->data_offset : IB_MAD_SIZE));
	if (server->rmpp)
		memset(mad + RMPP_VERSION_OFFS, 0, RMPP_HEADER_END - RMPP_VERSION_OFFS);
	response_write_header(mad, (uint16_t)status);
	/* last: the data may overlap the place of a key in the class's other MADs */
	if (size)
		memcpy(mad + server->data_offset, data, size);
	if (by_rmpp)
		rmpp_mark(mad);
}

static void release_request(struct held_request *held)
{
	struct mad_server *server = held->request.server;

	held_request_free(held);
	server_release(server);
}

EXPORT int mad_request_respond(struct mad_request *request, unsigned status, const void *data,
			       size_t size)
{
	_Alignas(8) uint8_t packet[PACKET_SIZE] = {0};
	int mgmt_class, ret;
	struct held_request *held;
	struct mad_server *server;
	uint8_t *umad = packet;
	size_t length;
	bool by_rmpp;

	if (!request || status > UINT16_MAX || (size && !data) ||
	    request->method == IB_MAD_METHOD_SEND)
		return failure_of_call(0, -EINVAL);
	held = list_entry(request, struct held_request, request);
	server = request->server;
	mgmt_class = (int)request->mgmt_class; /* success frees the request */
	by_rmpp = server->rmpp && data &&
		  (is_table(request) || size > IB_MAD_SIZE - server->data_offset);
	length = by_rmpp ? server->data_offset + size : IB_MAD_SIZE;
	if (size > INT_MAX - 2 * PACKET_SIZE || (data && size > length - server->data_offset))
		return failure_of_call(mgmt_class, -EMSGSIZE);
	if (length > IB_MAD_SIZE)
		umad = calloc(1, umad_size() + length);
	if (!umad)
		return failure_of_call(mgmt_class, -ENOMEM);
	build_response(umad, held, by_rmpp, status, data, size);
	ret = port_enter(server->port);
	if (!ret) {
		struct ibmad_port *port = server->port;

		if (port->error)
			ret = -port->error;
		else if (server->state != SERVER_RUNS)
			ret = -ECANCELED;
		else
			ret = -send_response_unlocking(server, "mad_request_respond", umad,
						       length, by_rmpp);
		if (!ret) {
			server->stats.responded++;
			release_request(held);
		}
		port_leave(port);
	}
	if (umad != packet)
		free(umad);
	return failure_of_call(mgmt_class, ret);
}

EXPORT void mad_request_free(struct mad_request *request)
{
	struct ibmad_port *port;

	if (!request)
		return;
	port = request->server->port;
	if (port_enter(port))
		return;
	release_request(list_entry(request, struct held_request, request));
	port_leave(port);
}
