/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shows mad_sa.h: a table of the SA, and many requests to the SA at once.
 *
 * Prints the paths from this port to all nodes of the subnet, or to those whose names are
 * given, as the subnet administrator (SA) knows them. The requests for paths are in flight
 * together.
 *
 *   sa-paths
 *   sa-paths host-3 spine-1
 *   sa-paths -t 60000      the time for the table of nodes, in milliseconds
 *
 * The table has to come within one attempt, and the default is 1 s. The kernel of the SA waits
 * 2 s before it sends again a segment that a link lost.
 *
 * Exits with 0, or with 1 if something did not respond or a node has no path.
 */

#include "program.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_fields.h>
#include <infiniband/mad_sa.h>

#include <err.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define NAME_SIZE 64 /* of a NodeDescription */

static unsigned path_count, failed_count;

/* Another node's text: without bytes that control a terminal. */
static void print_name(const struct mad_sa_node_record *node)
{
	char name[NAME_SIZE + 1] = {0};

	memcpy(name, node->node_description, NAME_SIZE);
	printf("%-20s ", mad_printable_text(name, name, sizeof(name)));
}

static void print_failure(const struct mad_sa_node_record *node)
{
	char text[MAD_ERROR_TEXT_SIZE];

	failed_count++;
	print_name(node);
	printf("LID %5u: %s\n", be16toh(node->lid), mad_failure_text(NULL, text, sizeof(text)));
}

static void path_came(struct mad_async *async, const struct mad_sa_response *response,
		      void *arg)
{
	const struct mad_sa_path_record *path = mad_sa_table_record(response->table, 0);
	const struct mad_sa_node_record *node = arg;

	(void)async;
	if (!path) {
		print_failure(node);
		return;
	}
	path_count++;
	print_name(node);
	printf("LID %5u  %4g Gb/s  MTU %4u  SL %2u  %g us\n", be16toh(path->dlid),
	       mad_sa_rate_gbps(path->rate), mad_link_mtu(path->mtu & 0x3f),
	       be16toh(path->qos_sl) & 0xf, mad_sa_lifetime_us(path->pkt_life));
	mad_sa_table_free(response->table);
}

static void submit(struct mad_async *async, unsigned slid, struct mad_sa_node_record *node)
{
	struct mad_sa_path_record path = {
		.slid = htobe16((uint16_t)slid), .dlid = node->lid, .reversible_num = 1};
	struct mad_sa_query query = {.method = IB_MAD_METHOD_GET,
				     .attribute = IB_SA_ATTR_PATHRECORD,
				     .component_mask = MAD_SA_PATH_SLID | MAD_SA_PATH_DLID |
						       MAD_SA_PATH_NUMB_PATH,
				     .record = &path,
				     .record_size = sizeof(path)};

	if (mad_sa_submit(async, &query, path_came, node, NULL))
		print_failure(node);
}

static bool is_wanted(const struct mad_sa_node_record *node, char **names)
{
	bool all = !*names;

	for (; *names; names++)
		if (!strncmp(*names, (const char *)node->node_description, NAME_SIZE))
			return true;
	return all;
}

int main(int argc, char **argv)
{
	struct mad_async *async;
	struct ibmad_port *port;
	char text[MAD_ERROR_TEXT_SIZE];
	struct mad_sa_table *nodes;
	ib_portid_t self;
	struct mad_sa_query all = {.attribute = IB_SA_ATTR_NODERECORD};
	int option;

	while ((option = getopt(argc, argv, "t:")) != -1) {
		all.timeout_ms = option == 't' ? read_number(optarg, 1, 1000000) : -1;
		if (all.timeout_ms < 0)
			errx(2, "usage: sa-paths [-t MILLISECONDS] [NAME ...]");
	}
	async = mad_port_open(NULL, 0, &port) ? NULL : mad_async_create(port);
	if (!async || ib_resolve_self_via(&self, NULL, NULL, port))
		err(1, "this port");
	if (mad_sa_request(port, &all, &nodes))
		errx(1, "the nodes: %s", mad_failure_text(NULL, text, sizeof(text)));
	for (size_t i = 0; i < nodes->count; i++) {
		struct mad_sa_node_record *node = mad_sa_table_record(nodes, i);

		if (is_wanted(node, argv + optind))
			submit(async, (unsigned)self.lid, node);
	}
	mad_async_wait(async, -1);
	printf("%u paths, %u without\n", path_count, failed_count);
	mad_sa_table_free(nodes);
	mad_async_free(async);
	mad_rpc_close_port(port);
	return finish(failed_count != 0);
}
