/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * For all input from the device, each request completes once, and the data that a program gets
 * lie within the received message. An input is a list of steps: requests, responses with
 * errors, messages of any bytes, timeouts.
 */
#include "fuzz_device.h"

#include <errno.h>
#include <infiniband/mad_async.h>

#define REQUESTS 64
#define LONGEST  1500
#define LIMIT    1000

static const ib_rpc_t kinds[] = {
	{.mgtclass = IB_SMI_CLASS, .method = IB_MAD_METHOD_GET, .dataoffs = 64, .datasz = 64},
	{.mgtclass = IB_SMI_DIRECT_CLASS,
	 .method = IB_MAD_METHOD_SET,
	 .dataoffs = 64,
	 .datasz = 64},
	{.mgtclass = IB_PERFORMANCE_CLASS,
	 .method = IB_MAD_METHOD_SET,
	 .dataoffs = 64,
	 .datasz = 192},
	{.mgtclass = IB_SA_CLASS,
	 .method = IB_MAD_METHOD_GET_TABLE,
	 .dataoffs = 56,
	 .datasz = 200},
	{.mgtclass = IB_BOARD_MGMT_CLASS,
	 .method = IB_MAD_METHOD_GET,
	 .dataoffs = 64,
	 .datasz = 192},
};

static struct {
	struct ibmad_port *port;
	struct mad_async *async;
	struct {
		uint64_t id;
		int ends;
	} requests[REQUESTS];
	unsigned count;
	struct input *input; /* the response to a blocking request */
} run;

static void ended(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	volatile uint8_t seen;

	check(async == run.async && reply->error <= 0);
	check(reply->length <= LIMIT + IB_MAD_SIZE);
	check((reply->mad != NULL) == (reply->error == 0 || reply->error == -EIO));
	if (reply->mad)
		seen = sum(reply->mad, reply->length);
	if (reply->data) {
		check(reply->data + reply->data_size == reply->mad + reply->length);
		seen = sum(reply->data, reply->data_size);
	}
	(void)seen;
	++*(int *)arg;
}

static ib_portid_t to_lid(int lid)
{
	return (ib_portid_t){.lid = lid, .qp = 1, .drpath.cnt = 1};
}

static ib_rpc_t take_request(struct input *input)
{
	return kinds[take(input, 1) % (sizeof(kinds) / sizeof(*kinds))];
}

static void submit(struct input *input)
{
	static const uint8_t payload[600] = {1};
	ib_rpc_t rpc = take_request(input);
	uint8_t shape = (uint8_t)take(input, 1);
	ib_portid_t to = to_lid(1 + (shape & 3));
	size_t size = (size_t)rpc.datasz;

	if (run.count == REQUESTS)
		return;
	if (rpc.mgtclass == IB_SA_CLASS && shape & 4)
		size = sizeof(payload);
	rpc.timeout = 60000;
	check(!mad_async_submit(run.async, &rpc, &to, payload, size, ended,
				&run.requests[run.count].ends, &run.requests[run.count].id));
	run.count++;
}

/* The response to it, with some changed bytes and of any length. */
static void respond(const struct device_packet *packet, struct input *input)
{
	static uint8_t mad[LONGEST];
	unsigned changes;
	size_t length;

	memset(mad, 0x5a, sizeof(mad));
	device_copy_mad(packet, mad);
	mad[3] |= IB_MAD_RESPONSE;
	length = take(input, 1) & 1 ? take(input, 2) % LONGEST : IB_MAD_SIZE;
	for (changes = take(input, 1) % 8; changes; changes--) {
		size_t offset = take(input, 1);

		mad[offset] = (uint8_t)take(input, 1);
	}
	device_reply(packet, mad, length);
}

/* Any bytes after any header. */
static void come(struct input *input)
{
	static uint8_t mad[LONGEST];
	struct ib_user_mad header;
	size_t length = take(input, 2) % LONGEST;

	take_bytes(input, &header, sizeof(header));
	header.agent_id &= 0xff;
	header.length = 0;
	take_bytes(input, mad, length < 64 ? length : 64);
	device_queue(device_fd(), &header, mad, length);
}

static int respond_blocking(const struct device_packet *packet, void *arg)
{
	(void)arg;
	if (!run.input)
		return 0;
	respond(packet, run.input);
	device_respond(packet, 0, 0, NULL, 0);
	return 0;
}

static void block(struct input *input)
{
	uint8_t data[400] = {2};
	ib_rpc_t rpc = take_request(input);
	ib_portid_t to = to_lid(5);
	ib_rmpp_hdr_t rmpp = {0};

	run.input = input;
	rpc.timeout = 1;
	if (rpc.mgtclass == IB_SA_CLASS) {
		rpc.datasz = sizeof(data);
		mad_rpc_rmpp(run.port, &rpc, &to, &rmpp, data);
	} else {
		mad_rpc(run.port, &rpc, &to, data, data);
	}
	run.input = NULL;
}

static void receive(void)
{
	volatile uint8_t seen;
	void *umad = mad_receive_via(NULL, 0, run.port);

	if (umad)
		seen = sum(umad_get_mad(umad), 24);
	(void)seen;
	mad_free(umad);
}

static void step(struct input *input)
{
	const struct device_packet *packet;

	switch (take(input, 1) % 9) {
	case 0:
	case 1:
		submit(input);
		break;
	case 2:
	case 3:
		packet = take_packet(input);
		if (packet)
			respond(packet, input);
		break;
	case 4:
		packet = take_packet(input);
		if (packet)
			device_time_out(packet);
		break;
	case 5:
		come(input);
		break;
	case 6:
		if (run.count)
			mad_async_cancel(run.async,
					 run.requests[take(input, 1) % run.count].id);
		break;
	case 7:
		block(input);
		break;
	default:
		check(mad_async_process(run.async) >= 0);
		receive();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS,
			 IB_BOARD_MGMT_CLASS};
	struct input input = {data, size};
	struct mad_async_stats stats;

	memset(&run, 0, sizeof(run));
	device_setup();
	device_on_write(respond_blocking, NULL);
	run.port = mad_rpc_open_port(NULL, 0, classes, 5);
	check(run.port != NULL);
	mad_rpc_set_retries(run.port, 1);
	check(!mad_port_set(run.port, MAD_PORT_MAX_RESPONSE, LIMIT));
	run.async = mad_async_create(run.port);
	for (int steps = 0; input.size && steps < 200; steps++)
		step(&input);
	check(mad_async_process(run.async) >= 0);
	check(!mad_async_get_stats(run.async, &stats, sizeof(stats)));
	check(stats.submitted == run.count);
	check(stats.submitted == stats.completed + stats.in_flight + stats.queued);
	mad_async_free(run.async);
	for (unsigned i = 0; i < run.count; i++)
		check(run.requests[i].ends == 1);
	mad_rpc_close_port(run.port);
	check(!device_teardown());
	return 0;
}
