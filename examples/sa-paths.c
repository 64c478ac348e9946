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

static void print_failure(const struct mad_sa_node_record *node, const char *why)
{
	failed_count++;
	print_name(node);
	printf("LID %5u: %s\n", be16toh(node->lid), why);
}

static void path_came(struct mad_async *async, const struct mad_sa_response *response,
		      void *arg)
{
	const struct mad_sa_path_record *path = response->record;
	const struct mad_sa_node_record *node = arg;
	char text[MAD_ERROR_TEXT_SIZE];

	(void)async;
	if (response->error) {
		print_failure(node, mad_reply_text(response->reply, text, sizeof(text)));
		return;
	}
	path_count++;
	print_name(node);
	printf("LID %5u  %4g Gb/s  MTU %4u  SL %2u  %g us\n", be16toh(path->dlid),
	       mad_sa_rate_gbps(path->rate), mad_sa_mtu(path->mtu), be16toh(path->qos_sl) & 0xf,
	       mad_sa_lifetime_us(path->pkt_life));
}

static void submit(struct mad_async *async, unsigned slid, struct mad_sa_node_record *node)
{
	struct mad_sa_path_record path = {
		.slid = htobe16((uint16_t)slid), .dlid = node->lid, .reversible_num = 1};
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_PATHRECORD,
				     .component_mask = MAD_SA_PATH_SLID | MAD_SA_PATH_DLID |
						       MAD_SA_PATH_NUMB_PATH,
				     .record = &path,
				     .record_size = sizeof(path)};
	int error = mad_sa_submit(async, IB_MAD_METHOD_GET, &query, path_came, node, NULL);

	if (error)
		print_failure(node, strerror(-error));
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
	int classes[] = {IB_SMI_DIRECT_CLASS, IB_SA_CLASS};
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
	port = mad_rpc_open_port(NULL, 0, classes, 2);
	async = port ? mad_async_create(port) : NULL;
	if (!async || ib_resolve_self_via(&self, NULL, NULL, port))
		err(1, "this port");
	if (mad_sa_get_table(port, &all, &nodes))
		errx(1, "the nodes: %s", mad_last_failure_text(text, sizeof(text)));
	for (size_t i = 0; i < mad_sa_table_count(nodes); i++) {
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
