/* SPDX-License-Identifier: BSD-2-Clause */

/* Servers on an engine: requests come in, are handed to callbacks, and are responded to. */

#include "calls/request_server.h"

#include "base/export.h"
#include "calls/response.h"
#include "mad/mad_wire.h"
#include "mad/mgmt_class.h"

#include <infiniband/mad_server.h>
#include <limits.h>
#include <stdlib.h>

#define LIMIT_DEFAULT      1024
#define LIMIT_MAX          65536
#define BYTES_MAX          (64u << 20)
/* So many BUSY responses wait to be sent; more requests are dropped. */
#define REFUSED_MAX        64
#define BUCKETS_MAX        1024
#define METHODS            128
#define HEADER_SIZE        36 /* of a MAD with an RMPP header */
#define COMMON_HEADER_SIZE 24
#define DATA_OFFSET_MAX    192

struct mad_server {
	struct port_server base;
	struct ibmad_port *port;
	struct mad_async *engine; /* NULL: the server was stopped */
	bool inherited;           /* from the parent, whose agent it is */
	mad_server_fn *callback;
	void *arg;
	bool rmpp;
	unsigned data_offset;
	unsigned limit;
	unsigned open;    /* requests that are queued or held */
	unsigned refused; /* requests that wait for BUSY */
	unsigned users;   /* threads that use the server with the lock dropped */
	bool calling;     /* one of them is in the callback */
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

/* clang's analyzer does not see that list_remove() takes a server out before it is freed. */
static struct mad_server *server_of(struct port_server *base)
{
	return list_entry(base, struct mad_server, base); // NOLINT(clang-analyzer-unix.Malloc)
}

static struct held_request *held_of(struct mad_request *request)
{
	return list_entry(request, struct held_request, request);
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
	list_init(&held->bucket);
	describe(&held->request, held->umad, length, server->data_offset);
	return held;
}

/* It is neither queued nor held any more. */
static void free_request(struct held_request *held)
{
	struct mad_server *server = held->server;

	list_remove(&held->bucket);
	server->open--;
	server->bytes -= held->request.length;
	free(held);
}

/* --- life of a server ----------------------------------------------------------- */

/* Locked, as the last use of a server: frees it if it is stopped and unused. */
static void release(struct mad_server *server)
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
			free_request(held);
		}
	}
}

static void forget_queued(struct mad_server *server)
{
	drop_queued(&server->engine->arrived, server, false);
	drop_queued(&server->engine->refused, server, true);
}

/* Stops a server; the lock is dropped meanwhile. */
static void stop(struct mad_server *server)
{
	struct ibmad_port *port = server->port;
	int agent = server->base.agent;

	if (!server->engine)
		return;
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

	if (server->engine && !server->inherited)
		forget_queued(server);
}

/* What a thread of the parent was changing is left alone, and lost. */
static void forked(struct port_server *base, bool intact)
{
	struct mad_server *server = server_of(base);

	if (!intact)
		server->open++;
	else if (server->engine && !server->inherited)
		forget_queued(server);
	server->inherited = true;
	server->base.agent = -1;
	server->users = 0;
	server->calling = false;
}

/* --- what comes ----------------------------------------------------------------- */

/* Locked. */
static void enqueue(struct list *queue, struct held_request *held)
{
	list_add_last(queue, &held->queue);
	engine_update(held->server->engine, false);
}

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
	enqueue(&server->engine->refused, held);
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
	enqueue(&server->engine->arrived, held);
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
	else if (length < HEADER_SIZE || header->status)
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
	release(server);
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
	release(server);
}

void servers_refuse(struct mad_async *engine, unsigned most)
{
	struct list *first;

	while (most-- && (first = list_pop(&engine->refused)))
		send_busy(engine, list_entry(first, struct held_request, queue));
}

void servers_end(struct mad_async *engine)
{
	struct ibmad_port *port = engine->port;
	struct mad_server *server;
	struct list *entry = port->servers.next;

	while (entry != &port->servers) {
		server = server_of(list_entry(entry, struct port_server, all));
		entry = entry->next;
		if (server->engine != engine)
			continue;
		stop(server);
		release(server);
		entry = port->servers.next; /* the lock was dropped */
	}
}

/* --- starting and stopping ------------------------------------------------------ */

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

/* Classes whose MADs have an RMPP header (IBA 13.6.2), as the kernel knows them. */
static bool may_have_rmpp(int mgmt_class)
{
	return mgmt_class == IB_SA_CLASS || mgmt_class == IB_DEVICE_MGMT_CLASS ||
	       mgmt_class == 0x10 || mgmt_class == 0x12 || mad_is_vendor_range2(mgmt_class);
}

/* Behind what a response's header must have: the common header, the RMPP header, the OUI. */
static unsigned least_offset(const struct mad_server_options *options)
{
	if (mad_is_vendor_range2(options->mgmt_class))
		return IB_VENDOR_RANGE2_DATA_OFFS;
	return options->rmpp_version ? HEADER_SIZE : COMMON_HEADER_SIZE;
}

static bool are_valid(const struct mad_server_options *options)
{
	int mgmt_class = options->mgmt_class;
	unsigned offset = options->data_offset;

	if (!is_known_class(mgmt_class) || options->limit > LIMIT_MAX ||
	    (!options->methods[0] && !options->methods[1]) ||
	    (offset && (offset < least_offset(options) || offset > DATA_OFFSET_MAX)))
		return false;
	for (unsigned i = 0; i < sizeof(options->reserved) / sizeof(*options->reserved); i++)
		if (options->reserved[i])
			return false;
	if (mad_is_vendor_range2(mgmt_class) ? !options->oui || options->oui > 0xffffff
					     : options->oui)
		return false;
	return options->rmpp_version == 0 ||
	       (options->rmpp_version == RMPP_VERSION && may_have_rmpp(mgmt_class));
}

/* The agent, or a negative errno. */
static int register_agent(const struct link *link, const struct mad_server_options *options)
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
		agent = umad_register_oui(link->fd, mgmt_class, (uint8_t)options->rmpp_version,
					  oui, mask);
	else
		agent = umad_register(link->fd, mgmt_class, class_version(mgmt_class),
				      (uint8_t)options->rmpp_version, mask);
	if (agent >= 0)
		return agent;
	/* all else that the kernel calls invalid was checked */
	if (errno == EINVAL)
		return -EADDRINUSE;
	return errno == EPIPE ? -ENODEV : errno ? -errno : -EIO;
}

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
	server->data_offset = options->data_offset ? options->data_offset
						   : default_offset(options->mgmt_class);
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
	agent = register_agent(&port->core.link, options);
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

	if (!async || !options || !callback || !server || !are_valid(options))
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
	release(server);
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

/* --- responses ------------------------------------------------------------------ */

static bool is_table(const struct mad_request *request)
{
	return request->mgmt_class == IB_SA_CLASS &&
	       (request->method == IB_MAD_METHOD_GET_TABLE ||
		request->method == IB_MAD_METHOD_GET_TRACE_TABLE ||
		request->method == IB_MAD_METHOD_GETMULTI);
}

/* What is to be written of a response: its MAD's length, and whether it goes by RMPP. */
struct outgoing {
	uint8_t *umad;
	size_t length;
	bool by_rmpp;
};

static int measure(struct outgoing *outgoing, const struct mad_request *request,
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
		memset(mad + RMPP_VERSION_OFFS, 0, HEADER_SIZE - RMPP_VERSION_OFFS);
	response_write_header(mad, (uint16_t)status);
	/* last: the data may begin where the header of other MADs of the class has a key */
	if (size)
		memcpy(mad + server->data_offset, data, size);
	if (outgoing->by_rmpp) {
		mad[RMPP_VERSION_OFFS] = RMPP_VERSION;
		mad[RMPP_TYPE_OFFS] = IB_RMPP_TYPE_DATA;
		mad[RMPP_FLAGS_OFFS] = RMPP_RESP_TIME_NONE << 3 | IB_RMPP_FLAG_ACTIVE;
	}
	response_address(outgoing->umad, mad);
	((struct ib_user_mad *)(void *)outgoing->umad)->agent_id = (uint32_t)agent;
	return -link_respond(&server->port->core.link, outgoing->umad, (int)outgoing->length,
			     outgoing->by_rmpp);
}

/* Locked; the lock is dropped meanwhile. */
static int respond(const struct outgoing *outgoing, struct held_request *held, unsigned status,
		   const void *data, size_t size)
{
	struct mad_server *server = held->server;
	struct core *core = &server->port->core;
	int agent = server->base.agent, ret;

	if (!server->engine || server->inherited || core->gone)
		return core->gone ? -core->gone : -ECANCELED;
	server->users++;
	core_unlock(core);
	ret = write_response(outgoing, held, status, data, size, agent);
	core_lock(core);
	server->users--;
	server->stats.responded += !ret;
	server->stats.failed += ret != 0;
	return ret;
}

EXPORT int mad_request_respond(struct mad_request *request, unsigned status, const void *data,
			       size_t size)
{
	_Alignas(8) uint8_t packet[PACKET_SIZE] = {0};
	struct outgoing outgoing = {.umad = packet};
	struct ibmad_port *port;
	int cancel_state, ret;

	if (!request || status > UINT16_MAX || (size && !data) ||
	    request->method == IB_MAD_METHOD_SEND)
		return -EINVAL;
	port = request->server->port;
	ret = measure(&outgoing, request, data, size);
	if (ret)
		return ret;
	if (outgoing.length > IB_MAD_SIZE) {
		outgoing.umad = calloc(1, umad_size() + outgoing.length);
		if (!outgoing.umad)
			return -ENOMEM;
	}
	cancel_state = port_enter(port);
	ret = respond(&outgoing, held_of(request), status, data, size);
	if (!ret) {
		struct mad_server *server = request->server;

		free_request(held_of(request));
		release(server);
	}
	port_leave_last(port, cancel_state);
	if (outgoing.umad != packet)
		free(outgoing.umad);
	return ret;
}

EXPORT void mad_request_drop(struct mad_request *request)
{
	struct mad_server *server;
	struct ibmad_port *port;
	int cancel_state;

	if (!request)
		return;
	server = request->server;
	port = server->port;
	cancel_state = port_enter(port);
	free_request(held_of(request));
	release(server);
	port_leave_last(port, cancel_state);
}
