/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shows memberships in multicast groups that last (mad_sa.h).
 *
 * Joins a multicast group, prints what the subnet administrator (SA) has granted, and leaves
 * the group. The default is the group of IPoIB broadcasts.
 *
 *   join [MGID [SECONDS]]     leaves after SECONDS; until then, the membership lasts although
 *                             subnet managers are restarted
 *
 * Exits with 0, with 1 if the SA refused or did not respond, with 2 for wrong arguments.
 */

#include "program.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_sa.h>

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>

static struct mad_async *async;
static const char *mgid = "ff12:401b:ffff::ffff:ffff";
static unsigned seconds;
static bool ended, failed;

/* A SIGALRM after SECONDS, or Ctrl-C. */
static void stop(int number)
{
	(void)number;
	mad_async_stop(async);
}

static void print_record(const struct umad_sa_mcmember_record *record)
{
	uint8_t sl;

	umad_sa_mcm_get_sl_flow_hop(record->sl_flow_hop, &sl, NULL, NULL);
	printf("%s: MLID 0x%04x, Q_Key 0x%08x, P_Key 0x%04x\n", mgid, be16toh(record->mlid),
	       be32toh(record->qkey), be16toh(record->pkey));
	printf("MTU %u bytes, rate %g Gb/s, SL %u\n", mad_link_mtu(record->mtu & 0x3f),
	       mad_sa_rate_gbps(record->rate), sl);
}

static void print_failure(void)
{
	char text[MAD_ERROR_TEXT_SIZE];

	warnx("%s: %s", mgid, mad_failure_text(NULL, text, sizeof(text)));
}

static void tell(struct mad_membership *membership, const struct mad_membership_state *state,
		 void *arg)
{
	(void)arg;
	switch (state->kind) {
	case MAD_MEMBERSHIP_JOINED:
		if (state->gap_end_us)
			printf("joined again: packets of the last %.1f s may be lost\n",
			       (double)(state->gap_end_us - state->gap_begin_us) / 1e6);
		print_record(state->record);
		fflush(stdout);
		if (!seconds)
			mad_membership_stop(membership);
		break;
	case MAD_MEMBERSHIP_FAILED:
		print_failure();
		if (!state->record) { /* the port was never a member */
			failed = true;
			mad_membership_stop(membership);
		}
		break;
	case MAD_MEMBERSHIP_END:
		ended = true;
		if (state->error)
			print_failure();
		failed |= state->error != 0;
		break;
	}
}

int main(int argc, char **argv)
{
	struct umad_sa_mcmember_record member = {.qkey = 0};
	const struct mad_membership_options options = {
		.member = &member, .join_state = UMAD_SA_MCM_JOIN_STATE_FULL_MEMBER};
	struct sigaction action = {.sa_handler = stop};
	struct mad_membership *membership;
	struct ibmad_port *port;

	mgid = argc > 1 ? argv[1] : mgid;
	seconds = argc > 2 ? (read_ms(argv[2]) + 999) / 1000 : 0; /* alarm(2) has whole ones */
	if (argc > 3 || (argc > 2 && !seconds) || inet_pton(AF_INET6, mgid, member.mgid) != 1)
		errx(2, "usage: join [MGID [SECONDS]]");
	async = mad_port_open(NULL, 0, &port) ? NULL : mad_async_create(port);
	if (!async)
		err(1, "mad_port_open");
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	alarm(seconds);
	if (mad_membership_start(async, &options, tell, NULL, &membership)) {
		print_failure();
		return 1;
	}
	if (mad_async_wait(async, -1) == -EINTR && !ended) { /* a signal */
		mad_membership_stop(membership);
		mad_async_wait(async, -1); /* until the port has left the group */
	}
	mad_async_free(async);
	mad_rpc_close_port(port);
	return finish(failed);
}
