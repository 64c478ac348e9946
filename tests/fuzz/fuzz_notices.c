/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Notices of any content, decoded and as text; reports and responses of any content for
 * mad_notices_start(), on the fake device. Each report that is confirmed reached the callback.
 */

#include "fake_device.h"
#include "fuzz.h"

#include <infiniband/mad_link.h>
#include <infiniband/mad_notice.h>

#define ROUNDS 40

static struct {
	struct input *input;
	unsigned handed_out, confirmed, ends;
} run;

static void check_text(const struct mad_notice *notice)
{
	char text[MAD_NOTICE_TEXT_SIZE], small[16];
	size_t length = strlen(mad_notice_text(notice, text, sizeof(text)));

	check(length > 0 && length < sizeof(text) - 1);
	mad_notice_text(notice, small, sizeof(small));
	check(!strncmp(text, small, strlen(small)) && strlen(small) < sizeof(small));
}

static void tell(struct mad_notices *notices, const struct mad_notice *notice, void *arg)
{
	(void)notices;
	(void)arg;
	check_text(notice);
	run.handed_out += notice->kind == MAD_NOTICE_TRAP;
	run.ends += notice->kind == MAD_NOTICE_END;
}

/* The responses of the port and the SA come from the input. */
static int respond(const struct device_packet *packet, void *arg)
{
	uint8_t data[64];
	unsigned choice;

	(void)arg;
	if (packet->mad[3] & IB_MAD_RESPONSE) {
		run.confirmed += packet->mad[5] == 0;
		return 0;
	}
	choice = (unsigned)take(run.input, 1);
	if (packet->mad[1] == IB_SMI_DIRECT_CLASS && choice & 1) {
		memset(data, 0, sizeof(data));
		mad_set_field(data, 0, IB_PORT_STATE_F, MAD_PORT_ACTIVE);
		mad_set_field(data, 0, IB_PORT_LID_F, 2);
		mad_set_field(data, 0, IB_PORT_SMLID_F, 1 + (choice >> 6));
	} else {
		take_bytes(run.input, data, sizeof(data));
	}
	if (choice & 2)
		device_time_out(packet);
	else if (packet->mad[1] == IB_SA_CLASS && choice & 4)
		device_respond(packet, (uint16_t)(choice >> 4), 0, NULL, 0);
	else
		device_respond(packet, (uint16_t)(choice & 8), packet->mad[1] == 3 ? 56 : 64,
			       data, sizeof(data));
	return 0;
}

static void report(void)
{
	struct ib_user_mad header = {.agent_id = (uint32_t)take(run.input, 1) % 4};
	uint8_t mad[256] = {1, IB_SA_CLASS, 2, IB_MAD_METHOD_REPORT};
	size_t length = (size_t)take(run.input, 1) + 1;

	header.status = take(run.input, 1) == 1 ? 110 : 0;
	header.addr.lid = htobe16((uint16_t)take(run.input, 1));
	take_bytes(run.input, mad + 3, 33);
	take_bytes(run.input, mad + 56, 80);
	device_queue(device_fd(), &header, mad, length > 200 ? 256 : length);
}

static void run_notices(void)
{
	int classes[] = {IB_SMI_DIRECT_CLASS, IB_SA_CLASS};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 2);
	struct mad_async *async = mad_async_create(port);
	const struct mad_notices_options options = {.limit = 8, .poll_ms = 1, .renew_ms = 1};
	struct mad_notices_stats stats;
	struct mad_notices *notices;

	mad_rpc_set_timeout(port, 1);
	mad_rpc_set_retries(port, 1);
	device_on_write(respond, NULL);
	check(!mad_notices_start(async, &options, tell, NULL, &notices));
	for (unsigned i = 0; i < ROUNDS && run.input->size; i++) {
		report();
		check(mad_async_process(async) >= 0);
	}
	mad_notices_get_stats(notices, &stats, sizeof(stats));
	check(stats.reports == run.handed_out);
	check(stats.confirmed <= stats.reports + stats.duplicates + stats.malformed);
	mad_async_destroy(async);
	check(run.ends == 1);
	mad_rpc_close_port(port);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct mad_notice notice;

	if (!mad_notice_decode(data, size, &notice))
		check_text(&notice);
	run.input = &input;
	run.handed_out = run.confirmed = run.ends = 0;
	check(!device_setup(NULL));
	run_notices();
	check(!device_teardown(NULL));
	return 0;
}
