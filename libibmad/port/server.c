/* SPDX-License-Identifier: BSD-2-Clause */

#include "port/server.h"

#include "mad/layout.h"

#include <infiniband/umad.h>
#include <errno.h>
#include <stdlib.h>

/* The requests of a server at most, in bytes. */
#define BYTES_MAX   (64u << 20)
/* The BUSY responses of a server that wait to be sent at most; then requests are dropped. */
#define REFUSED_MAX 64
#define BUCKETS_MAX 1024

static struct mad_server *server_at(struct list *entry)
{
	return list_entry(entry, struct mad_server, all);
}

/* --- life ----------------------------------------------------------------------- */

struct mad_server *server_new(unsigned limit)
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

void server_release(struct mad_server *server)
{
	if (server->listener || server->open || server->refused || server->users)
		return;
	list_remove(&server->all);
	free(server);
}

struct mad_server *server_find(const struct list *servers, uint32_t agent)
{
	list_for_each (entry, servers)
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

/* --- the end -------------------------------------------------------------------- */

static void drop(struct held_request *held, bool refused)
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

static void drop_all(struct list *queue, const struct mad_server *server, bool refused)
{
	struct list *next;

	for (struct list *entry = queue->next; entry != queue; entry = next) {
		struct held_request *held = list_entry(entry, struct held_request, queue);

		next = entry->next;
		if (held->server == server)
			drop(held, refused);
	}
}

void server_close(struct mad_server *server)
{
	server->ended = true;
	drop_all(&server->listener->arrived, server, false);
	drop_all(&server->listener->refused, server, true);
}

void server_end(struct mad_server *server, int error)
{
	if (server->ended)
		return;
	server_close(server);
	server->error = error;
	list_add_last(&server->listener->ended, &server->last);
}

void servers_end(const struct list *servers, int error)
{
	list_for_each (entry, servers)
		server_end(server_at(entry), error);
}

void servers_inherit(const struct list *servers)
{
	list_for_each (entry, servers)
		server_at(entry)->agent = -1;
	servers_end(servers, -ECANCELED);
}

/* --- messages ------------------------------------------------------------------- */

/* A Send has no response. The response to a Trap or a Report says that it was received. */
static bool can_be_busy(unsigned method)
{
	return method != IB_MAD_METHOD_SEND && method != IB_MAD_METHOD_TRAP &&
	       method != IB_MAD_METHOD_REPORT;
}

static void refuse(struct mad_server *server, const uint8_t *umad, size_t length)
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
	list_add_last(&server->listener->refused, &held->queue);
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
	list_add_last(&server->listener->arrived, &held->queue);
}

bool server_receive(struct mad_server *server, const uint8_t *umad, int length)
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
		refuse(server, umad, (size_t)length);
	else
		keep(server, umad, (size_t)length);
	return true;
}
