/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Asks the subnet's administration for all paths from this port, or for those to one GID. The
 * table comes in as many MADs as it takes (RMPP); the library puts them together.
 *
 *   sa-paths
 *   sa-paths fe80::2:c903:10:11
 *
 * Exits with 0, with 1 where there was no answer, with 2 where the question makes no sense.
 */

#include <infiniband/mad.h>
#include <infiniband/mad_sa.h>

static void print_path(void *path)
{
	char text[INET6_ADDRSTRLEN];
	ibmad_gid_t to;

	mad_get_array(path, 0, IB_SA_PR_DGID_F, to);
	printf("LID %5u to LID %5u, SL %2u, %s\n", mad_get_field(path, 0, IB_SA_PR_SLID_F),
	       mad_get_field(path, 0, IB_SA_PR_DLID_F), mad_get_field(path, 0, IB_SA_PR_SL_F),
	       inet_ntop(AF_INET6, to, text, sizeof(text)));
}

int main(int argc, char **argv)
{
	int classes[] = {IB_SMI_DIRECT_CLASS, IB_SA_CLASS}, ret;
	struct mad_sa_table *table;
	struct ibmad_port *port;
	ibmad_gid_t here, there;
	ib_portid_t self;

	if (argc > 2 || (argc == 2 && inet_pton(AF_INET6, argv[1], there) != 1)) {
		fprintf(stderr, "usage: sa-paths [GID]\n");
		return 2;
	}
	port = mad_rpc_open_port(NULL, 0, classes, 2);
	if (!port) {
		perror("mad_rpc_open_port");
		return 1;
	}
	if (ib_resolve_self_via(&self, NULL, &here, port) < 0) {
		perror("this port's GID");
		return 1;
	}
	ret = mad_sa_path_records(port, here, argc == 2 ? there : NULL, &table);
	if (ret < 0) {
		fprintf(stderr, "the SA: %s\n", strerror(-ret));
		return 1;
	}
	for (size_t i = 0; i < mad_sa_table_count(table); i++)
		print_path(mad_sa_table_record(table, i));
	printf("paths: %zu\n", mad_sa_table_count(table));
	mad_sa_table_free(table);
	mad_rpc_close_port(port);
	return 0;
}
