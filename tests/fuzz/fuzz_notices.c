/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Notices of any content, decoded and as text; filters, reports and responses of any content
 * for mad_notices_start(). Each report that is confirmed reached the callback. The first byte
 * of an input chooses: even decodes a notice, which is fast, odd runs notices.
 */

#include "fuzz_machine.h"

#include <infiniband/mad_link.h>
#include <infiniband/mad_notice.h>

#define ROUNDS  40
#define FILTERS 3

/* Those that have details; no mutation finds them all. */
static const uint16_t traps[] = {64,  65,  66,  67,  128, 129, 130, 131,
				 144, 145, 256, 257, 258, 259, 1};

static struct {
	struct input *input;
	unsigned handed_out, confirmed, ends;
	uint8_t inform[36]; /* of the latest subscription */
} run;

static void check_text(const struct mad_notice *notice)
{
	char text[MAD_NOTICE_TEXT_SIZE], small[16];
	size_t length = strlen(mad_notice_text(notice, text, sizeof(text)));

	check(length > 0 && length < sizeof(text) - 1);
	mad_notice_text(notice, small, sizeof(small));
	check(!strncmp(text, small, strlen(small)) && strlen(small) < sizeof(small));
}

/* Makes the bytes a generic notice with a known trap's number, or leaves them. */
static void choose_trap(uint8_t *raw, unsigned choice)
{
	if (choice >= COUNT(traps))
		return;
	raw[0] |= 0x80;
	raw[4] = (uint8_t)(traps[choice] >> 8);
	raw[5] = (uint8_t)traps[choice];
}

/* In an allocation of exactly its size. */
static void decode(struct input *input)
{
	unsigned choice = (unsigned)take(input, 1);
	size_t size = 80 - take(input, 1) % 81;
	uint8_t *raw = malloc(size ? size : 1);
	struct mad_notice notice;

	take_bytes(input, raw, size);
	if (size > 5)
		choose_trap(raw, choice);
	check(mad_notice_decode(raw, size, &notice, sizeof(notice)) ==
	      (size < 64 ? -EBADMSG : 0));
	free(raw);
	if (size < 64)
		return;
	check(notice.path_length <= sizeof(notice.path));
	check_text(&notice);
}

static void tell(struct mad_notices *notices, const struct mad_notice *notice, void *arg)
{
	(void)notices;
	(void)arg;
	check_text(notice);
	run.handed_out += notice->kind == MAD_NOTICE_TRAP;
	run.ends += notice->kind == MAD_NOTICE_END;
}

/* A table of two records at most, perhaps with that of the request's subscription. */
static void respond_table(const struct machine_mad *request)
{
	uint8_t *mad = begin_response(request);
	size_t size = (size_t)take(run.input, 1) % 129;

	mad[24] = 1;
	mad[25] = IB_RMPP_TYPE_DATA;
	mad[26] = 7;
	mad[45] = (uint8_t)(7 + take(run.input, 1) % 3);
	take_bytes(run.input, mad + 56, 128);
	if (take(run.input, 1) & 1)
		memcpy(mad + 56 + 24, run.inform, sizeof(run.inform));
	machine_deliver(request, mad, 56 + size, 0);
}

/* The responses of the port and the SA come from the input. */
static enum machine_verdict respond(struct machine_mad *mad, void *arg)
{
	bool is_sa = mad->bytes[1] == IB_SA_CLASS;
	uint8_t data[64] = {0};
	unsigned choice;

	(void)arg;
	if (mad->bytes[3] & IB_MAD_RESPONSE) {
		run.confirmed +=
			mad->bytes[3] == IB_MAD_METHOD_REPORT_RESPONSE && !mad->bytes[5];
		return MACHINE_PASS;
	}
	choice = (unsigned)take(run.input, 1);
	if (mad->bytes[3] == IB_MAD_METHOD_GET_TABLE && choice & 1) {
		respond_table(mad);
		return MACHINE_DROP;
	}
	if (mad->bytes[3] == IB_MAD_METHOD_SET)
		memcpy(run.inform, mad->bytes + 56, sizeof(run.inform));
	if (!is_sa && choice & 1) {
		mad_set_field(data, 0, IB_PORT_STATE_F, MAD_PORT_ACTIVE);
		mad_set_field(data, 0, IB_PORT_LID_F, 2);
		mad_set_field(data, 0, IB_PORT_SMLID_F, 1 + (choice >> 6) % 3);
	} else {
		take_bytes(run.input, data, sizeof(data));
	}
	if (choice & 2)
		return MACHINE_DROP;
	if (is_sa && choice & 4)
		return machine_reply(mad, (uint16_t)(choice >> 4), 0, NULL, 0);
	return machine_reply(mad, (uint16_t)(choice & 8), is_sa ? 56 : 64, data, sizeof(data));
}

static void report(void)
{
	static const uint8_t lids[] = {1, 2, 3, 11, 99};
	struct ib_user_mad header = {.agent_id = (uint32_t)take(run.input, 1) % 8};
	uint8_t mad[IB_MAD_SIZE] = {1, IB_SA_CLASS, 2, IB_MAD_METHOD_REPORT};
	size_t length = (size_t)take(run.input, 1) + 1;

	header.status = take(run.input, 1) == 1 ? 110 : 0;
	header.addr.lid = htobe16(lids[take(run.input, 1) % COUNT(lids)]);
	header.addr.qpn = htobe32(1);
	if (take(run.input, 1) & 1)
		take_bytes(run.input, mad + 3, 33);
	else
		mad[17] = IB_SA_ATTR_NOTICE;
	take_bytes(run.input, mad + 8, 8);
	take_bytes(run.input, mad + 56, 80);
	choose_trap(mad + 56, (unsigned)take(run.input, 1));
	machine_receive(&header, mad, length > 200 ? IB_MAD_SIZE : length);
}

/* Whether the filters are valid is not known here. */
static unsigned take_filters(struct mad_notice_filter filters[FILTERS])
{
	unsigned count = (unsigned)take(run.input, 1) % (FILTERS + 1);

	for (unsigned i = 0; i < count; i++) {
		filters[i] = (struct mad_notice_filter){
			.vendor = take(run.input, 1) & 1,
			.by = (unsigned)take(run.input, 1) & 0x3f,
			.type = (unsigned)take(run.input, 3) & 0x1ffff,
			.trap = (unsigned)take(run.input, 3) & 0x1ffff,
			.producer = (unsigned)take(run.input, 4) & 0x1ffffff,
			.lid_begin = (unsigned)take(run.input, 3) & 0x1ffff,
			.lid_end = (unsigned)take(run.input, 3) & 0x1ffff};
		take_bytes(run.input, filters[i].gid, sizeof(filters[i].gid));
	}
	return count;
}

static void run_notices(void)
{
	struct mad_notice_filter filters[FILTERS];
	const struct mad_notices_options options = {.filters = filters,
						    .filter_count = take_filters(filters),
						    .limit = 8,
						    .poll_ms = 1,
						    .check_ms = 1};
	struct mad_notices_stats stats;
	struct mad_notices *notices;
	int ret;

	begin("star:1", NULL, respond);
	mad_rpc_set_timeout(port, 1);
	ret = mad_notices_start(async, &options, tell, NULL, &notices);
	check(!ret || (ret == -EINVAL && options.filter_count));
	for (unsigned i = 0; !ret && i < ROUNDS && run.input->size; i++) {
		report();
		machine_pass(1 + (int64_t)take(run.input, 1) * 16);
		check(mad_async_process(async) >= 0);
	}
	if (!ret) {
		let_arrive();
		mad_notices_get_stats(notices, &stats, sizeof(stats));
		check(stats.reports == run.handed_out);
		check(stats.confirmed <= stats.reports + stats.duplicates + stats.malformed);
		check(run.confirmed <= stats.confirmed);
	}
	end();
	check(run.ends == !ret);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};

	if (!(take(&input, 1) & 1)) {
		decode(&input);
		return 0;
	}
	run.input = &input;
	run.handed_out = run.confirmed = run.ends = 0;
	run_notices();
	return 0;
}
