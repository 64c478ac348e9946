/* SPDX-License-Identifier: BSD-2-Clause */

/* A server on an engine, requests that come to it, and what its callback received. */
#ifndef TESTS_UNIT_REQUEST_SERVER_FIXTURE_H
#define TESTS_UNIT_REQUEST_SERVER_FIXTURE_H

#define MANY 4
#include "async_fixture.h"

#include <infiniband/mad_server.h>

#define PING_CLASS 0x32
#define PING_OUI   IB_OPENIB_OUI
#define HELD_MAX   2000

static struct mad_server *server;

/* Requests that the callback received. */
static struct mad_request *held[HELD_MAX];
static atomic_uint count;
/* The last callbacks. */
static atomic_uint ends;
static atomic_int end_error;

static inline void hold(struct mad_server *from, struct mad_request *request, int error,
			void *arg)
{
	(void)from;
	(void)arg;
	if (!request) {
		end_error = error;
		ends++;
		return;
	}
	assert_int_equal(error, 0);
	assert_true(count < HELD_MAX);
	held[count] = request;
	count++; /* a thread that sees the new count may read the request */
}

static inline struct mad_server_options ping_options(void)
{
	return (struct mad_server_options){
		.mgmt_class = PING_CLASS,
		.oui = PING_OUI,
		.rmpp_version = 1,
		.methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_GET) |
			    MAD_SERVER_METHOD(IB_MAD_METHOD_SET) |
			    MAD_SERVER_METHOD(IB_MAD_METHOD_SEND) |
			    MAD_SERVER_METHOD(IB_MAD_METHOD_REPORT)},
	};
}

static inline struct mad_server *start(struct mad_server_options options,
				       mad_server_fn *callback, void *arg)
{
	struct mad_server *started = NULL;

	assert_int_equal(mad_server_start(async, &options, callback, arg, &started), 0);
	assert_non_null(started);
	return started;
}

static inline int server_setup(void)
{
	if (async_setup())
		return -1;
	count = 0;
	ends = 0;
	server = start(ping_options(), hold, NULL);
	return 0;
}

/* Stops the server, whose callback is hold(), and waits for its last callback. */
static inline void end_server(void)
{
	unsigned before = ends;

	mad_server_stop(server);
	while (ends == before)
		assert_true(mad_async_process(async) >= 0);
}

/* Replaces the server by one with this limit. */
static inline void restart_with_limit(unsigned limit)
{
	struct mad_server_options options = ping_options();

	end_server();
	options.limit = limit;
	server = start(options, hold, NULL);
}

/* The ID of the agent that is registered for the method of a class; oui 0: of any vendor. */
static inline uint32_t agent_of(uint8_t mgmt_class, uint32_t oui, uint8_t method)
{
	for (unsigned id = 0; id < 32; id++) {
		struct device_agent agent = device_agent(device_fd(), id);

		if (agent.registered && agent.mgmt_class == mgmt_class &&
		    (!oui || agent.oui == oui) && agent.methods[0] >> method & 1)
			return id;
	}
	fail_msg("no agent has class 0x%x method 0x%x", mgmt_class, method);
	return 0;
}

/* A message that comes from the network. */
struct coming {
	uint8_t mgmt_class;
	uint32_t oui;
	uint8_t method;
	uint32_t tid;
	size_t length;
	uint32_t announced; /* by RMPP, which carries the request; 0: it does not */
	uint16_t lid;
	const ib_mad_addr_t *from; /* the sender; NULL: the LID */
	unsigned changed;          /* the offset of a byte to change; 0: none */
	uint32_t status;           /* in the umad header: an errno of the kernel, or 0 */
};

/* A request from LID 9. */
static inline struct coming request_of(uint8_t mgmt_class, uint8_t method)
{
	return (struct coming){.mgmt_class = mgmt_class,
			       .method = method,
			       .tid = 1,
			       .length = IB_MAD_SIZE,
			       .lid = 9};
}

static inline struct coming ping_request(uint32_t tid)
{
	struct coming coming = request_of(PING_CLASS, IB_MAD_METHOD_GET);

	coming.oui = PING_OUI;
	coming.tid = tid;
	return coming;
}

/* The device receives the message. */
static inline void come(struct coming coming)
{
	struct ib_user_mad header = {
		.agent_id = agent_of(coming.mgmt_class, coming.oui,
				     coming.method & ~IB_MAD_RESPONSE & 0xff),
		.status = coming.status,
	};
	uint8_t *mad = __real_calloc(1, coming.length + IB_MAD_SIZE);
	const uint8_t start_of[] = {1, coming.mgmt_class, 1, coming.method};

	memcpy(mad, start_of, sizeof(start_of));
	coming.tid = htobe32(coming.tid);
	memcpy(mad + 12, &coming.tid, sizeof(coming.tid));
	mad[17] = 0x42;
	mad[23] = 0x17;
	/* the end of the RMPP header, and the byte after it */
	memset(mad + 32, 0x99, 5);
	mad[37] = (uint8_t)(coming.oui >> 16);
	mad[38] = (uint8_t)(coming.oui >> 8);
	mad[39] = (uint8_t)coming.oui;
	if (coming.announced) {
		mad[24] = 1;
		mad[25] = IB_RMPP_TYPE_DATA;
		mad[26] = IB_RMPP_FLAG_ACTIVE | IB_RMPP_FLAG_FIRST;
		coming.announced = htobe32(coming.announced);
		memcpy(mad + 32, &coming.announced, sizeof(coming.announced));
	}
	mad[coming.length - 1] = 0x77;
	mad[coming.changed] ^= coming.changed ? 0x55 : 0;
	header.addr.lid = htobe16(coming.lid);
	header.addr.qpn = htobe32(1);
	header.addr.sl = 4;
	header.addr.pkey_index = 1;
	if (coming.from)
		header.addr = *coming.from;
	device_queue(device_fd(), &header, mad, coming.length);
	free(mad);
}

static inline void come_many(uint32_t first, uint32_t number)
{
	for (uint32_t i = 0; i < number; i++)
		come(ping_request(first + i));
}

/* Processes the engine until all messages that came are handled. */
static inline void process(void)
{
	for (unsigned i = 0; i < 100; i++)
		assert_true(mad_async_process(async) >= 0);
}

static inline struct mad_server_stats server_stats(void)
{
	struct mad_server_stats stats;

	assert_int_equal(mad_server_get_stats(server, &stats, sizeof(stats)), 0);
	return stats;
}

static inline const uint8_t *last_written(void)
{
	return device_packet(device_written() - 1)->mad;
}

/* The response has the request's bytes after the RMPP header, but not the RMPP header. */
static inline void expect_no_rmpp_header(const uint8_t *mad)
{
	const uint8_t zeros[12] = {0}, behind[] = {0x99, 0x00, 0x14, 0x05};

	assert_memory_equal(mad + 24, zeros, sizeof(zeros));
	assert_memory_equal(mad + 36, behind, sizeof(behind));
}

/* --- two servers, two engines ---------------------------------------------------------- */

/*
 * The server has a limit of three requests, and five requests come. Another engine's thread
 * reads them, so three are queued for the callback, and two for BUSY.
 */
static inline void queue_and_refuse(struct mad_async *other)
{
	restart_with_limit(3);
	come_many(1, 5);
	mad_async_process(other);
	assert_int_equal(server_stats().queued, 3);
}

static inline struct mad_server *start_second(mad_server_fn *callback)
{
	struct mad_server_options options = ping_options();

	options.oui = 0x123456;
	return start(options, callback, NULL);
}

static inline void come_to_second(uint32_t tid)
{
	struct coming coming = ping_request(tid);

	coming.oui = 0x123456;
	come(coming);
}

#endif
