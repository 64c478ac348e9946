/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Requests to the SA on an engine, and responses with errors: PortInfos, records, tables. Each
 * request is called back once, and the data of the callback lie within the received message. An
 * input is a list of steps.
 */
#include "fuzz_device.h"

#include <errno.h>
#include <infiniband/mad_errors.h>
#include <infiniband/mad_sa.h>

#define REQUESTS 64
#define LONGEST  1500

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
static const int methods[] = {IB_MAD_METHOD_GET, IB_MAD_METHOD_SET, IB_MAD_METHOD_DELETE,
			      IB_MAD_METHOD_GET_TABLE, IB_MAD_METHOD_GETMULTI};

static struct {
	struct ibmad_port *port;
	struct mad_async *async;
	struct {
		uint64_t id;
		int ends;
		bool cancelled;
	} requests[REQUESTS];
	unsigned count;
} run;

static void ended(struct mad_async *async, const struct mad_sa_response *response, void *arg)
{
	unsigned i = (unsigned)(uintptr_t)arg;
	const struct mad_sa_table *table = response->table;
	volatile uint8_t seen = 0;

	check(async == run.async && response->reply && response->error <= 0);
	check((table != NULL) == !response->error);
	check(!response->error || mad_last_failure()->error == response->error);
	check(!run.requests[i].cancelled || response->error == -ECANCELED);
	for (size_t n = 0; table && n < table->count; n++)
		seen ^= sum(mad_sa_table_record(table, n), table->record_size);
	mad_sa_table_free(response->table);
	(void)seen;
	run.requests[i].ends++;
}

static void submit(struct input *input)
{
	static const uint8_t record[600] = {1};
	uint8_t shape = (uint8_t)take(input, 1);
	ib_portid_t sa = {.lid = 9};
	int method = methods[take(input, 1) % (sizeof(methods) / sizeof(*methods))];
	struct mad_sa_query query = {
		.method = method,
		.attribute =
			attributes[take(input, 1) % (sizeof(attributes) / sizeof(*attributes))],
		.component_mask = shape,
		.timeout_ms = 60000,
		.sa = shape & 1 ? &sa : NULL,
	};

	if (run.count == REQUESTS)
		return;
	if (shape & 2) {
		query.record = record;
		query.record_size =
			method == IB_MAD_METHOD_GETMULTI && shape & 4 ? sizeof(record) : 60;
	}
	check(!mad_sa_submit(run.async, &query, ended, (void *)(uintptr_t)run.count,
			     &run.requests[run.count].id));
	run.count++;
}

/* A response with some changed bytes and of any length. */
static void respond(const struct device_packet *packet, struct input *input)
{
	static uint8_t mad[LONGEST];
	bool is_sa = packet->mad[1] == IB_SA_CLASS;
	uint8_t shape = (uint8_t)take(input, 1);
	size_t length = IB_MAD_SIZE;

	memset(mad, 0x5a, sizeof(mad));
	device_copy_mad(packet, mad);
	mad[3] |= IB_MAD_RESPONSE;
	if (is_sa && shape & 1) { /* a table of any length */
		mad[24] = 1;
		mad[25] = IB_RMPP_TYPE_DATA;
		mad[26] = IB_RMPP_FLAG_ACTIVE;
		mad[45] = (uint8_t)(shape >> 2);
		length = take(input, 2) % LONGEST;
	} else if (!is_sa) { /* the PortInfo has a LID, or none */
		mad_set_field(mad, IB_SMP_DATA_OFFS, IB_PORT_SMLID_F, shape & 3);
	}
	for (unsigned changes = shape & 2 ? take(input, 1) % 8 : 0; changes; changes--) {
		size_t offset = take(input, 1);

		mad[offset] = (uint8_t)take(input, 1);
	}
	device_reply(packet, mad, length);
}

static void step(struct input *input)
{
	const struct device_packet *packet;
	unsigned n;

	switch (take(input, 1) % 7) {
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
		if (!run.count)
			break;
		n = (unsigned)take(input, 1) % run.count;
		if (!mad_async_cancel(run.async, run.requests[n].id))
			run.requests[n].cancelled = true;
		break;
	default:
		check(mad_async_process(run.async) >= 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int classes[] = {IB_SMI_DIRECT_CLASS, IB_SA_CLASS};
	struct input input = {data, size};

	memset(&run, 0, sizeof(run));
	device_setup();
	run.port = mad_rpc_open_port(NULL, 0, classes, 2);
	check(run.port != NULL);
	mad_rpc_set_retries(run.port, 1);
	run.async = mad_async_create(run.port);
	for (int steps = 0; input.size && steps < 200; steps++)
		step(&input);
	check(mad_async_process(run.async) >= 0);
	mad_async_free(run.async);
	for (unsigned i = 0; i < run.count; i++)
		check(run.requests[i].ends == 1);
	mad_rpc_close_port(run.port);
	check(!device_teardown());
	return 0;
}
