/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * For all input from the kernel, each request completes once, and the data that a program gets
 * lie within the received message. An input is a list of steps: requests, some of them to the
 * SA (mad_sa.h), responses with errors, messages of any bytes, timeouts.
 */
#include "fuzz_machine.h"

#include <errno.h>
#include <infiniband/mad_errors.h>
#include <infiniband/mad_sa.h>

#define REQUESTS 64
#define LIMIT    1000

static struct {
	struct {
		uint64_t id;
		int ends;
		bool cancelled;
	} requests[REQUESTS];
	unsigned count, plain; /* the latter are none of queries */
	struct input *input;   /* the response to a blocking request */
} run;

/* --- requests -------------------------------------------------------------------- */

static void ended(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	unsigned n = (unsigned)(uintptr_t)arg;

	check(engine == async && reply->error <= 0);
	check(!run.requests[n].cancelled || reply->error == -ECANCELED);
	check(reply->length <= LIMIT + IB_MAD_SIZE);
	check((reply->mad != NULL) == (reply->error == 0 || reply->error == -EIO));
	if (reply->mad)
		read_all(reply->mad, reply->length);
	if (reply->data) {
		check(reply->data + reply->data_size == reply->mad + reply->length);
		read_all(reply->data, reply->data_size);
	}
	run.requests[n].ends++;
}

static void submit(struct input *input)
{
	static const uint8_t payload[600] = {1};
	ib_rpc_t rpc = make_rpc((unsigned)take(input, 1));
	uint8_t shape = (uint8_t)take(input, 1);
	ib_portid_t to = to_leaf(1 + (shape & 3));
	size_t size = (size_t)rpc.datasz;

	if (rpc.mgtclass == IB_SA_CLASS && shape & 4)
		size = sizeof(payload);
	rpc.timeout = 60000;
	check(!mad_async_submit(async, &rpc, &to, payload, size, ended,
				(void *)(uintptr_t)run.count, &run.requests[run.count].id));
	run.count++;
	run.plain++;
}

static void sa_ended(struct mad_async *engine, const struct mad_sa_response *response,
		     void *arg)
{
	const struct mad_sa_table *table = response->table;
	unsigned n = (unsigned)(uintptr_t)arg;

	check(engine == async && response->reply && response->error <= 0);
	check((table != NULL) == !response->error);
	check(!response->error || mad_last_failure()->error == response->error);
	check(!run.requests[n].cancelled || response->error == -ECANCELED);
	for (size_t i = 0; table && i < table->count; i++)
		read_all(mad_sa_table_record(table, i), table->record_size);
	mad_sa_table_free(response->table);
	run.requests[n].ends++;
}

static void submit_query(struct input *input)
{
	static const unsigned attributes[] = {
		IB_SA_ATTR_NODERECORD,
		IB_SA_ATTR_PORTINFORECORD,
		IB_SA_ATTR_PATHRECORD,
		IB_SA_ATTR_MCRECORD,
		IB_SA_ATTR_SERVICERECORD,
		IB_SA_ATTR_MULTIPATH,
		IB_SA_ATTR_INFORMINFO,
		IB_SA_ATTR_LINKRECORD,
		IB_SA_ATTR_VLARBTABLERECORD,
		IB_SA_ATTR_INFORMINFORECORD,
		0x7777,
	};
	static const int methods[] = {IB_MAD_METHOD_GET, IB_MAD_METHOD_SET,
				      IB_MAD_METHOD_DELETE, IB_MAD_METHOD_GET_TABLE,
				      IB_MAD_METHOD_GETMULTI};
	static const ib_portid_t sa = {.lid = 11};
	static const uint8_t record[600] = {1};
	uint8_t shape = (uint8_t)take(input, 1);
	int method = methods[take(input, 1) % COUNT(methods)];
	struct mad_sa_query query = {
		.method = method,
		.attribute = attributes[take(input, 1) % COUNT(attributes)],
		.component_mask = shape,
		.timeout_ms = 60000,
		.sa = shape & 1 ? &sa : NULL,
	};

	if (shape & 2) {
		query.record = record;
		query.record_size =
			method == IB_MAD_METHOD_GETMULTI && shape & 4 ? sizeof(record) : 60;
	}
	check(!mad_sa_submit(async, &query, sa_ended, (void *)(uintptr_t)run.count,
			     &run.requests[run.count].id));
	run.count++;
}

static void cancel(unsigned n)
{
	if (!mad_async_cancel(async, run.requests[n].id))
		run.requests[n].cancelled = true;
}

/* --- messages -------------------------------------------------------------------- */

/* The response to it, with some changed bytes and of any length. */
static void respond(const struct machine_mad *request, struct input *input)
{
	uint8_t *mad = begin_response(request), shape = (uint8_t)take(input, 1);
	size_t length = shape & 1 ? take(input, 2) % LONGEST : IB_MAD_SIZE;

	if (shape & 2 && mad[1] == IB_SA_CLASS) { /* a table of records */
		mad[24] = 1;
		mad[25] = IB_RMPP_TYPE_DATA;
		mad[26] = IB_RMPP_FLAG_ACTIVE;
		mad[45] = (uint8_t)(shape >> 2);
	} else if (shape & 2) { /* a PortInfo that knows the SM, or not */
		mad_set_field(mad, IB_SMP_DATA_OFFS, IB_PORT_SMLID_F, shape >> 2 & 3);
	}
	change_bytes(mad, input);
	machine_deliver(request, mad, length, 0);
}

/* Any bytes after any header, or the response to a request, which may have ended. */
static void come(struct input *input)
{
	static uint8_t mad[LONGEST];
	struct ib_user_mad header;
	const struct machine_mad *request;
	size_t length = take(input, 2) % LONGEST;

	take_bytes(input, &header, sizeof(header));
	header.agent_id &= 0xff;
	take_bytes(input, mad, length < 64 ? length : 64);
	request = header.retries & 1 ? take_kept(input) : NULL;
	machine_receive(&header, request ? begin_response(request) : mad, length);
}

/* A blocking request has its response at once, and a right one if the first was useless. */
static enum machine_verdict respond_blocking(struct machine_mad *mad, void *arg)
{
	if (!run.input || mad->bytes[3] & IB_MAD_RESPONSE)
		return keep_request(mad, arg);
	respond(mad, run.input);
	machine_deliver(mad, begin_response(mad), IB_MAD_SIZE, 1);
	return MACHINE_DROP;
}

static void block(struct input *input)
{
	uint8_t data[400] = {2};
	ib_rpc_t rpc = make_rpc((unsigned)take(input, 1));
	ib_portid_t to = to_leaf(5);
	ib_rmpp_hdr_t rmpp = {0};

	run.input = input;
	rpc.timeout = 1;
	if (rpc.mgtclass == IB_SA_CLASS) {
		rpc.datasz = sizeof(data);
		mad_rpc_rmpp(port, &rpc, &to, &rmpp, data);
	} else {
		mad_rpc(port, &rpc, &to, data, data);
	}
	run.input = NULL;
}

static void receive(void)
{
	void *umad = mad_receive_via(NULL, 0, port);

	if (umad)
		read_all(umad_get_mad(umad), 24);
	mad_free(umad);
}

/* --- steps ----------------------------------------------------------------------- */

static void step(struct input *input)
{
	const struct machine_mad *request;

	let_arrive();
	switch (take(input, 1) % 10) {
	case 0:
	case 1:
		if (run.count < REQUESTS)
			submit(input);
		break;
	case 2:
	case 3:
		request = take_kept(input);
		if (request)
			respond(request, input);
		break;
	case 4:
		request = take_kept(input);
		if (request)
			machine_deliver(request, NULL, 0, 0); /* a timeout */
		break;
	case 5:
		come(input);
		break;
	case 6:
		if (run.count)
			cancel((unsigned)take(input, 1) % run.count);
		break;
	case 7:
		block(input);
		break;
	case 8:
		check(mad_async_process(async) >= 0);
		receive();
		break;
	default:
		if (run.count < REQUESTS)
			submit_query(input);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct mad_async_stats stats;

	memset(&run, 0, sizeof(run));
	begin("star:5", NULL, respond_blocking);
	check(!mad_port_set(port, MAD_PORT_MAX_RESPONSE, LIMIT));
	for (int steps = 0; input.size && steps < 200; steps++)
		step(&input);
	let_arrive();
	check(mad_async_process(async) >= 0);
	check(!mad_async_get_stats(async, &stats, sizeof(stats)));
	check(stats.submitted >= run.plain);
	check(stats.submitted == stats.completed + stats.in_flight + stats.queued);
	end();
	for (unsigned i = 0; i < run.count; i++)
		check(run.requests[i].ends == 1);
	return 0;
}
