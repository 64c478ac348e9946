/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * lasting: keeps two memberships and a subscription, and prints a line for each change, with
 * the time in seconds since the epoch. A SIGTERM ends them.
 *
 * lasting list: prints the groups of which the port is a member, and the number of its
 * subscriptions, as the SA has them.
 */

#include <infiniband/mad_notice.h>
#include <infiniband/mad_sa.h>

#include <arpa/inet.h>
#include <err.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define BROADCAST "ff12:401b:ffff::ffff:ffff"
#define OWN       "ff12:401b:ffff::1234"

static struct mad_async *async;
static int failed;

static void stop(int number)
{
	(void)number;
	mad_async_stop(async);
}

static __attribute__((format(printf, 1, 2))) void say(const char *format, ...)
{
	struct timespec now;
	va_list args;

	clock_gettime(CLOCK_REALTIME, &now);
	printf("%lld.%03ld ", (long long)now.tv_sec, now.tv_nsec / 1000000);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

static double seconds(uint64_t begin_us, uint64_t end_us)
{
	return (double)(end_us - begin_us) / 1e6;
}

static void tell_membership(struct mad_membership *membership,
			    const struct mad_membership_state *state, void *arg)
{
	static const char *const kinds[] = {"joined", "failed", "end"};

	(void)membership;
	say("%s: %s: error %d, status 0x%x, gap %.1f s%s", (const char *)arg,
	    kinds[state->kind], state->error, state->status,
	    seconds(state->gap_begin_us, state->gap_end_us),
	    state->changed ? ", another record" : "");
	if (state->kind == MAD_MEMBERSHIP_END && state->error)
		failed = 1;
}

static void tell_notice(struct mad_notices *notices, const struct mad_notice *notice, void *arg)
{
	char line[MAD_NOTICE_TEXT_SIZE];

	(void)notices;
	(void)arg;
	say("%s", mad_notice_text(notice, line, sizeof(line)));
	if (notice->kind == MAD_NOTICE_END && notice->error)
		failed = 1;
}

static void start(const char *mgid, uint64_t mask, struct mad_membership **membership)
{
	struct umad_sa_mcmember_record member = {.qkey = htobe32(0xb1b),
						 .pkey = htobe16(0xffff)};
	const struct mad_membership_options options = {
		.member = &member,
		.component_mask = mask,
		.join_state = UMAD_SA_MCM_JOIN_STATE_FULL_MEMBER,
	};

	inet_pton(AF_INET6, mgid, member.mgid);
	if (mad_membership_start(async, &options, tell_membership, (void *)(uintptr_t)mgid,
				 membership))
		errx(1, "no membership");
}

static void keep(void)
{
	const uint64_t new_group = UMAD_SA_MCM_COMP_MASK_QKEY | UMAD_SA_MCM_COMP_MASK_PKEY |
				   UMAD_SA_MCM_COMP_MASK_SL | UMAD_SA_MCM_COMP_MASK_FLOW_LABEL |
				   UMAD_SA_MCM_COMP_MASK_TCLASS;
	struct mad_membership *broadcast, *own;
	struct mad_notices *notices;

	start(BROADCAST, 0, &broadcast);
	start(OWN, new_group, &own);
	if (mad_notices_start(async, NULL, tell_notice, NULL, &notices))
		errx(1, "no subscription");
	mad_async_wait(async, -1); /* until the signal */
	mad_membership_stop(broadcast);
	mad_membership_stop(own);
	mad_notices_stop(notices);
	mad_async_wait(async, -1);
}

static void list(struct ibmad_port *port)
{
	struct umad_sa_mcmember_record member = {.qkey = 0};
	struct mad_sa_inform_info_record inform = {.number = 0};
	struct mad_sa_query members = {.method = 0};
	const struct mad_sa_query subscriptions = {
		.attribute = IB_SA_ATTR_INFORMINFORECORD,
		.component_mask = MAD_SA_INFORM_RECORD_SUBSCRIBER_GID,
		.record = &inform,
		.record_size = offsetof(struct mad_sa_inform_info_record, pad),
	};
	char mgid[INET6_ADDRSTRLEN];
	struct mad_sa_table *table;
	ibmad_gid_t gid;

	if (ib_resolve_self_via(NULL, NULL, &gid, port))
		errx(1, "the GID is not known");
	memcpy(member.portgid, gid, sizeof(gid));
	memcpy(inform.subscriber_gid, gid, sizeof(gid));
	mad_sa_member_query(&members, IB_MAD_METHOD_GET_TABLE, &member, 0);
	if (mad_sa_request(port, &members, &table))
		errx(1, "the SA does not list the members");
	for (size_t i = 0; i < table->count; i++)
		printf("%s\n",
		       inet_ntop(AF_INET6, mad_sa_table_record(table, i), mgid, sizeof(mgid)));
	mad_sa_table_free(table);
	if (mad_sa_request(port, &subscriptions, &table))
		errx(1, "the SA does not list the subscriptions");
	printf("%zu subscriptions\n", table->count);
	mad_sa_table_free(table);
}

int main(int argc, char **argv)
{
	int classes[] = {IB_SMI_DIRECT_CLASS, IB_SA_CLASS};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 2);

	async = port ? mad_async_create(port) : NULL;
	if (!async)
		err(1, "mad_rpc_open_port");
	signal(SIGTERM, stop);
	if (argc > 1 && !strcmp(argv[1], "list"))
		list(port);
	else
		keep();
	mad_async_free(async);
	mad_rpc_close_port(port);
	return failed;
}
