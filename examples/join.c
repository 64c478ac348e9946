/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Joins a multicast group, prints what the subnet administrator (SA) has granted, and leaves
 * the group. The default is the group of IPoIB broadcasts.
 *
 *   join [MGID [SECONDS]]     waits SECONDS before it leaves
 *
 * Exits with 0, with 1 if the SA refused or did not respond, with 2 for wrong arguments.
 */

#include <infiniband/mad_errors.h>
#include <infiniband/mad_sa.h>

#include <err.h>

static void print_member(const struct umad_sa_mcmember_record *member)
{
	char mgid[INET6_ADDRSTRLEN];
	uint8_t sl;

	umad_sa_mcm_get_sl_flow_hop(member->sl_flow_hop, &sl, NULL, NULL);
	printf("%s: MLID 0x%04x, Q_Key 0x%08x, P_Key 0x%04x\n",
	       inet_ntop(AF_INET6, member->mgid, mgid, sizeof(mgid)), be16toh(member->mlid),
	       be32toh(member->qkey), be16toh(member->pkey));
	printf("MTU %u bytes, rate %g Gb/s, SL %u\n", mad_sa_mtu(member->mtu),
	       mad_sa_rate_gbps(member->rate), sl);
}

int main(int argc, char **argv)
{
	const char *mgid = argc > 1 ? argv[1] : "ff12:401b:ffff::ffff:ffff";
	int classes[] = {IB_SMI_DIRECT_CLASS, IB_SA_CLASS};
	struct umad_sa_mcmember_record member = {.qkey = 0};
	char text[MAD_ERROR_TEXT_SIZE];
	struct ibmad_port *port;

	if (argc > 3 || inet_pton(AF_INET6, mgid, member.mgid) != 1)
		errx(2, "usage: join [MGID [SECONDS]]");
	port = mad_rpc_open_port(NULL, 0, classes, 2);
	if (!port)
		err(1, "mad_rpc_open_port");
	if (mad_sa_join(port, NULL, &member, UMAD_SA_MCM_JOIN_STATE_FULL_MEMBER))
		errx(1, "%s: %s", mgid, mad_last_failure_text(text, sizeof(text)));
	print_member(&member);
	sleep(argc > 2 ? (unsigned)atoi(argv[2]) : 0);
	if (mad_sa_leave(port, NULL, &member, UMAD_SA_MCM_JOIN_STATE_FULL_MEMBER))
		errx(1, "leaving: %s", mad_last_failure_text(text, sizeof(text)));
	mad_rpc_close_port(port);
	return 0;
}
