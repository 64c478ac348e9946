/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Reports of an SA, at a rate: subscribes to the notices of one vendor, sends COUNT traps of
 * that vendor to the SM, RATE a second, and counts the reports of the SA.
 *
 *   traps COUNT RATE
 *
 * Exits with 0 if each trap was reported and handed out once, and each report was confirmed;
 * otherwise with 1.
 */

#include <infiniband/mad_notice.h>
#include <infiniband/mad_sa.h>

#include <err.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define VENDOR        0x00abcd
#define DEVICE        0x1234
#define INFORMATIONAL 4
#define NUMBER_OFFS   10 /* of the data in a Notice */
#define PATIENCE_MS   10000

static unsigned count, reported, twice;
static bool *came, accepted, ended;

/* The trap's number is in its data. */
static void tell(struct mad_notices *notices, const struct mad_notice *notice, void *arg)
{
	uint32_t number;

	(void)notices;
	(void)arg;
	if (notice->kind == MAD_NOTICE_SUBSCRIPTION && notice->error)
		errx(1, "the subscription failed");
	accepted |= notice->kind == MAD_NOTICE_SUBSCRIPTION;
	ended |= notice->kind == MAD_NOTICE_END;
	if (notice->kind != MAD_NOTICE_TRAP || notice->trap != DEVICE)
		return;
	memcpy(&number, notice->raw + NUMBER_OFFS, sizeof(number));
	if (number >= count)
		return;
	reported += !came[number];
	twice += came[number];
	came[number] = true;
}

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static void send_trap(struct ibmad_port *port, int lid, ib_portid_t *sm, uint32_t number)
{
	uint8_t notice[IB_SMP_DATA_SIZE] = {INFORMATIONAL, 0, 0xab, 0xcd, 0x12, 0x34};
	ib_rpc_t rpc = {.mgtclass = IB_SMI_CLASS,
			.method = IB_MAD_METHOD_TRAP,
			.attr = {.id = IB_SA_ATTR_NOTICE},
			.dataoffs = IB_SMP_DATA_OFFS,
			.datasz = IB_SMP_DATA_SIZE,
			.trid = number + 1};

	notice[6] = (uint8_t)(lid >> 8);
	notice[7] = (uint8_t)lid;
	memcpy(notice + NUMBER_OFFS, &number, sizeof(number));
	if (mad_send_via(&rpc, sm, NULL, notice, port) < 0)
		err(1, "mad_send_via");
}

int main(int argc, char **argv)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS};
	const struct mad_notice_filter filter = {
		.vendor = 1, .by = MAD_NOTICE_BY_PRODUCER, .producer = VENDOR};
	const struct mad_notices_options options = {.filters = &filter, .filter_count = 1};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 3);
	struct mad_async *async = port ? mad_async_create(port) : NULL;
	struct mad_notices_stats stats;
	struct mad_notices *notices;
	unsigned sent = 0, rate;
	int64_t start, took;
	ib_portid_t sm, self;

	if (!async || argc != 3 || ib_resolve_smlid_via(&sm, 0, port) ||
	    ib_resolve_self_via(&self, NULL, NULL, port))
		errx(1, "no port, or wrong arguments");
	count = (unsigned)atoi(argv[1]);
	rate = (unsigned)atoi(argv[2]);
	came = calloc(count, sizeof(*came));
	if (!came || !rate || mad_notices_start(async, &options, tell, NULL, &notices))
		errx(1, "no notices");
	while (!accepted)
		mad_async_wait(async, 10);
	start = now_us();
	while (sent < count) {
		if (now_us() - start >= sent * INT64_C(1000000) / rate)
			send_trap(port, self.lid, &sm, sent++);
		else
			mad_async_wait(async, 1);
	}
	took = now_us() - start;
	for (int i = 0; i < PATIENCE_MS / 10 && reported < count; i++)
		mad_async_wait(async, 10);
	mad_notices_get_stats(notices, &stats, sizeof(stats));
	printf("%u traps in %.2f s (%.0f a second): %u reported, %u handed out twice; %llu "
	       "confirmed, %llu repeated, %llu dropped\n",
	       sent, (double)took / 1e6, sent / ((double)took / 1e6), reported, twice,
	       (unsigned long long)stats.confirmed, (unsigned long long)stats.duplicates,
	       (unsigned long long)stats.dropped);
	mad_notices_stop(notices);
	while (!ended)
		mad_async_wait(async, 10);
	mad_async_free(async);
	mad_rpc_close_port(port);
	free(came);
	return reported != count || twice || stats.confirmed < count;
}
