/* SPDX-License-Identifier: BSD-2-Clause */

/* Servers on an engine: requests come in and are handed to callbacks. */

#include "calls/request_server.h"

#include "base/export.h"
#include "calls/held_request.h"
#include "calls/response.h"
#include "calls/server_options.h"
#include "mad/layout.h"

#include <stdlib.h>

#define LIMIT_DEFAULT 1024
#define BYTES_MAX     (64u << 20)
/* So many BUSY responses wait to be sent; more requests are dropped. */
#define REFUSED_MAX   64
#define BUCKETS_MAX   1024

/* clang's analyzer does not see that list_remove() takes a server out before it is freed. */
static struct mad_server *server_of(struct port_server *base)
{
	return list_entry(base, struct mad_server, base); // NOLINT(clang-analyzer-unix.Malloc)
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

/* Whether a request is the same one: method, transaction ID and attribute, from one sender. */
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

static void describe(struct mad_request *request, uint8_t *umad, size_t length,
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

/* A copy of the first "length" bytes of a message; in no queue. */
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
	describe(&held->request, held->umad, length, server->data_offset);
	return held;
}

void held_request_free(struct held_request *held)
{
	struct mad_server *server = held->server;

	list_remove(&held->bucket);
	server->open--;
	server->bytes -= held->request.length;
	free(held);
}

/* --- life of a server ----------------------------------------------------------- */

void server_release(struct mad_server *server)
{
	if (server->engine || server->open || server->refused || server->users)
		return;
	list_remove(&server->base.all);
	free(server);
}

static void drop_queued(struct list *queue, const struct mad_server *server, bool refused)
{
	struct list *next;

	for (struct list *entry = queue->next; entry != queue; entry = next) {
		struct held_request *held = list_entry(entry, struct held_request, queue);

		next = entry->next;
		if (held->server != server)
			continue;
		list_remove(entry);
		held->server->stats.dropped += refused;
		held->server->stats.queued -= !refused;
		if (refused) {
			held->server->refused--;
			free(held);
		} else {
			held_request_free(held);
		}
	}
}

static void forget_queued(struct mad_server *server)
{
	drop_queued(&server->engine->arrived, server, false);
	drop_queued(&server->engine->refused, server, true);
}

/* Stops a server, once; the lock is dropped meanwhile. */
static void stop(struct mad_server *server)
{
	struct ibmad_port *port = server->port;
	int agent = server->base.agent;

	if (!server->inherited) {
		forget_queued(server);
		server->engine->servers--;
		/* without servers and open requests mad_async_run() returns */
		if (server->engine->running)
			reader_wake(&port->reader, &server->engine->runner);
	}
	server->engine = NULL;
	server->base.agent = -1;
	if (agent < 0)
		return;
	server->users++;
	core_unlock(&port->core);
	umad_unregister(port->core.link.fd, agent);
	core_lock(&port->core);
	server->users--;
}

static void fail(struct port_server *base)
{
	struct mad_server *server = server_of(base);

	if (server->engine)
		forget_queued(server);
}

/* What a thread of the parent was changing is left alone, and lost. */
static void forked(struct port_server *base, bool intact)
{
	struct mad_server *server = server_of(base);

	if (!intact)
		server->open++;
	else if (server->engine)
		forget_queued(server);
	server->inherited = true;
	server->base.agent = -1;
	server->users = 0;
	server->calling = false;
}

/* --- what comes ----------------------------------------------------------------- */

/* A Send has no response, and that to a Trap or a Report confirms it. */
static bool can_be_busy(unsigned method)
{
	return method != IB_MAD_METHOD_SEND && method != IB_MAD_METHOD_TRAP &&
	       method != IB_MAD_METHOD_REPORT;
}

static void refuse(struct mad_server *server, const uint8_t *umad, size_t length)
{
	const uint8_t *mad = umad + umad_size();
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

static void keep(struct mad_server *server, const uint8_t *umad, size_t length)
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

static bool receive(struct port_server *base, const uint8_t *umad, int length)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	const uint8_t *mad = umad + umad_size();
	struct mad_server *server = server_of(base);

	if (length >= 24 && header->status && mad[3] & IB_MAD_RESPONSE)
		server->stats.failed++; /* the kernel gives up a response by RMPP */
	else if (length >= 24 && mad[3] & IB_MAD_RESPONSE)
		return false;
	else if (length < RMPP_HEADER_END || header->status)
		server->stats.dropped++;
	else if (is_known(server, header, mad))
		server->stats.duplicates++;
	else if (server->open >= server->limit || (size_t)length > BYTES_MAX - server->bytes)
		refuse(server, umad, (size_t)length);
	else
		keep(server, umad, (size_t)length);
	return true;
}

static const struct port_server_ops server_ops = {
	.received = receive,
	.failed = fail,
	.forked = forked,
};

/* --- processing ----------------------------------------------------------------- */

static void call(struct mad_async *engine, struct held_request *held)
{
	struct mad_server *server = held->server;
	struct ibmad_port *port = engine->port;

	server->stats.queued--;
	server->users++;
	server->calling = true;
	core_unlock(&port->core);
	server->callback(server, &held->request, server->arg);
	core_lock(&port->core);
	server->users--;
	server->calling = false;
	if (!server->engine)
		pthread_cond_broadcast(&engine->changed);
	server_release(server);
}

int servers_call(struct mad_async *engine, unsigned most)
{
	struct list *first;
	int count = 0;

	/* a callback may take its time: another thread leads meanwhile */
	if (!list_is_empty(&engine->arrived))
		reader_pass(&engine->port->reader);
	while (most-- && engine_may_call(engine) && (first = list_pop(&engine->arrived))) {
		call(engine, list_entry(first, struct held_request, queue));
		count++;
	}
	return count;
}

/* Writes a response in place of its request, for an agent. The lock is not held. */
static int respond_in_place(const struct ibmad_port *port, uint8_t *umad, uint16_t status,
			    int agent)
{
	uint8_t *mad = umad_get_mad(umad);

	response_write_header(mad, status);
	response_address(umad, mad);
	((struct ib_user_mad *)(void *)umad)->agent_id = (uint32_t)agent;
	return link_respond(&port->core.link, umad, IB_MAD_SIZE, false);
}

static void send_busy(struct mad_async *engine, struct held_request *held)
{
	struct mad_server *server = held->server;
	struct ibmad_port *port = engine->port;
	int agent = server->base.agent, error;

	server->refused--;
	server->users++;
	core_unlock(&port->core);
	/* an RMPP header does not go back */
	memset(held->umad + umad_size() + RMPP_DATA2_OFFS, 0, server->rmpp ? 4 : 0);
	error = respond_in_place(port, held->umad, IB_MAD_STS_BUSY, agent);
	free(held);
	core_lock(&port->core);
	server->users--;
	server->stats.busy += !error;
	server->stats.failed += error != 0;
	server_release(server);
}

void servers_refuse(struct mad_async *engine, unsigned most)
{
	struct list *first;

	while (most-- && (first = list_pop(&engine->refused)))
		send_busy(engine, list_entry(first, struct held_request, queue));
}

static struct mad_server *any_server(const struct mad_async *engine)
{
	list_for_each (entry, &engine->port->servers) {
		struct mad_server *server =
			server_of(list_entry(entry, struct port_server, all));

		if (server->engine == engine)
			return server;
	}
	return NULL;
}

void servers_end(struct mad_async *engine)
{
	struct mad_server *server;

	while ((server = any_server(engine))) {
		stop(server);
		server_release(server);
	}
}

/* --- starting and stopping ------------------------------------------------------ */

static struct mad_server *new_server(const struct mad_server_options *options)
{
	unsigned limit = options->limit ? options->limit : LIMIT_DEFAULT;
	unsigned buckets = limit < BUCKETS_MAX ? limit : BUCKETS_MAX;
	struct mad_server *server =
		calloc(1, sizeof(*server) + buckets * sizeof(*server->buckets));

	if (!server)
		return NULL;
	server->base.ops = &server_ops;
	server->limit = limit;
	server->rmpp = options->rmpp_version != 0;
	server->data_offset = server_data_offset(options);
	server->bucket_count = buckets;
	for (unsigned i = 0; i < buckets; i++)
		list_init(&server->buckets[i]);
	return server;
}

/* Locked. */
static int start(struct mad_async *engine, const struct mad_server_options *options,
		 struct mad_server *server)
{
	struct ibmad_port *port = engine->port;
	int agent;

	if (port->core.gone || engine->ending || port->inherited)
		return port->core.gone ? -port->core.gone : -ECANCELED;
	/* nothing is read for the agent before the lock is released */
	agent = server_register(&port->core.link, options);
	if (agent < 0)
		return agent;
	server->base.agent = agent;
	server->engine = engine;
	server->port = port;
	list_add_last(&port->servers, &server->base.all);
	engine->servers++;
	return 0;
}

EXPORT int mad_server_start(struct mad_async *async, const struct mad_server_options *options,
			    mad_server_fn *callback, void *arg, struct mad_server **server)
{
	struct mad_server *started;
	int cancel_state, ret;

	if (!async || !options || !callback || !server || !server_options_are_valid(options))
		return -EINVAL;
	started = new_server(options);
	if (!started)
		return -ENOMEM;
	started->callback = callback;
	started->arg = arg;
	cancel_state = engine_enter(async);
	*server = started; /* before the first callback */
	ret = start(async, options, started);
	engine_leave(async, cancel_state);
	if (ret) {
		*server = NULL;
		free(started);
	}
	return ret;
}

EXPORT void mad_server_stop(struct mad_server *server)
{
	struct mad_async *engine;
	struct ibmad_port *port;
	int cancel_state;

	if (!server)
		return;
	port = server->port;
	cancel_state = port_enter(port);
	engine = server->engine;
	if (engine) {
		engine->users++;
		server->users++;
		stop(server);
		while (server->calling && !engine_is_processor(engine))
			pthread_cond_wait(&engine->changed, &port->core.lock);
		server->users--;
		engine->users--;
		pthread_cond_broadcast(&engine->changed);
	}
	server_release(server);
	port_leave_last(port, cancel_state);
}

void server_count(const struct mad_server *server, struct mad_server_stats *stats)
{
	*stats = server->stats;
	stats->held = server->open - server->stats.queued;
}

EXPORT int mad_server_get_stats(struct mad_server *server, struct mad_server_stats *stats,
				size_t size)
{
	struct mad_server_stats now;
	int cancel_state;

	if (!server || !stats)
		return -EINVAL;
	cancel_state = port_enter(server->port);
	server_count(server, &now);
	port_leave(server->port, cancel_state);
	memset(stats, 0, size);
	memcpy(stats, &now, size < sizeof(now) ? size : sizeof(now));
	return 0;
}
