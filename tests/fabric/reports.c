/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Reports at 1,000 a second, and as fast as possible: run by umad-sim on host-1 and host-2.
 * The second port acts as an SM that reports to the first port, which has subscribed. Each
 * confirmed report was delivered exactly once.
 */
#include <infiniband/mad_notice.h>
#include <infiniband/mad_sa.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REPORTS 3000
#define STORM   20000
/* reports of the storm in flight */
#define WINDOW  4000

static char first_port[] = "mlx5_0", second_port[] = "mlx5_1";
static struct mad_async *watching, *reporting;
static atomic_bool ended, accepted;
static atomic_uint handed_out[REPORTS + STORM];
static bool confirmed[REPORTS + STORM];
static unsigned unconfirmed;

static void wrong(const char *what)
{
	printf("WRONG: %s\n", what);
	exit(1);
}

/* The report's number is in its capability mask. */
static void tell(struct mad_notices *notices, const struct mad_notice *notice, void *arg)
{
	(void)notices;
	(void)arg;
	if (notice->kind == MAD_NOTICE_SUBSCRIPTION && !notice->error)
		accepted = true;
	if (notice->kind == MAD_NOTICE_END)
		ended = true;
	if (notice->kind == MAD_NOTICE_TRAP && notice->trap == 144 &&
	    notice->capability_mask < REPORTS + STORM)
		handed_out[notice->capability_mask]++;
}

static void *process(void *arg)
{
	const struct timespec pause = {.tv_nsec = 200000};

	(void)arg;
	while (!ended)
		if (mad_async_process(watching) <= 0)
			nanosleep(&pause, NULL);
	return NULL;
}

static void came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	(void)async;
	if (reply->error)
		unconfirmed++;
	else
		*(bool *)arg = true;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void report(int lid, unsigned first, unsigned count)
{
	const ib_rpc_t rpc = {.mgtclass = IB_SA_CLASS,
			      .method = IB_MAD_METHOD_REPORT,
			      .attr = {.id = IB_SA_ATTR_NOTICE},
			      .dataoffs = IB_SA_DATA_OFFS,
			      /* on a slow machine, too, no attempt ends: the next one may
			       * have another ID, by which the subscriber knows a report */
			      .timeout = 5000};
	const ib_portid_t to = {.lid = lid};
	unsigned before = unconfirmed, lost = 0, twice = 0, done = 0;
	double start = now(), took;

	for (unsigned i = first; i < first + count; i++) {
		uint8_t notice[80] = {0x84, 0, 0, 1, 0, 144};

		notice[16] = (uint8_t)(i >> 24);
		notice[17] = (uint8_t)(i >> 16);
		notice[18] = (uint8_t)(i >> 8);
		notice[19] = (uint8_t)i;
		if (mad_async_submit(reporting, &rpc, &to, notice, sizeof(notice), came,
				     &confirmed[i], NULL))
			wrong("a report cannot be sent");
	}
	mad_async_wait(reporting, -1);
	took = now() - start;
	for (unsigned i = first; i < first + count; i++) {
		done += confirmed[i];
		lost += confirmed[i] && !handed_out[i];
		twice += handed_out[i] > 1;
	}
	printf("%u reports in %.2f s (%.0f a second): %u confirmed, %u not; "
	       "%u confirmed and lost, %u handed out twice\n",
	       count, took, count / took, done, unconfirmed - before, lost, twice);
	if (lost || twice || !done)
		wrong("reports were lost or repeated");
}

int main(void)
{
	int classes[] = {IB_SMI_DIRECT_CLASS, IB_SA_CLASS};
	struct ibmad_port *one = mad_rpc_open_port(first_port, 1, classes, 2);
	struct ibmad_port *two = mad_rpc_open_port(second_port, 1, classes, 2);
	struct mad_notices *notices;
	struct mad_notices_stats stats;
	uint8_t info[IB_SMP_DATA_SIZE];
	ib_portid_t self = {0};
	pthread_t loop;
	int lid;

	if (!one || !two || !smp_query_via(info, &self, IB_ATTR_PORT_INFO, 0, 0, one))
		wrong("no ports");
	lid = (int)mad_get_field(info, 0, IB_PORT_LID_F);
	watching = mad_async_create(one);
	reporting = mad_async_create(two);
	mad_rpc_set_retries(two, 5);
	if (mad_notices_start(watching, NULL, tell, NULL, &notices) ||
	    pthread_create(&loop, NULL, process, NULL))
		wrong("no notices");
	while (!accepted)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);

	mad_port_set(two, MAD_PORT_RATE, 1300); /* in practice, at most 1,000 are sent */
	mad_port_set(two, MAD_PORT_GMP_WINDOW, 1000);
	mad_port_set(two, MAD_PORT_DESTINATION_LIMIT, 1000);
	report(lid, 0, REPORTS);
	mad_port_set(two, MAD_PORT_RATE, 0);
	mad_port_set(two, MAD_PORT_GMP_WINDOW, WINDOW);
	mad_port_set(two, MAD_PORT_DESTINATION_LIMIT, WINDOW);
	report(lid, REPORTS, STORM);

	mad_notices_get_stats(notices, &stats, sizeof(stats));
	printf("the subscriber: %llu handed out, %llu confirmed, %llu repeated, %llu dropped\n",
	       (unsigned long long)stats.reports, (unsigned long long)stats.confirmed,
	       (unsigned long long)stats.duplicates, (unsigned long long)stats.dropped);
	mad_notices_stop(notices);
	pthread_join(loop, NULL);
	mad_async_free(watching);
	mad_async_free(reporting);
	mad_rpc_close_port(one);
	mad_rpc_close_port(two);
	return 0;
}
