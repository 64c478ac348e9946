/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shows mad_fabric_compare(): two discoveries, and their differences.
 *
 * Discovers the fabric repeatedly, and prints the nodes and links that were added (+), were
 * removed (-) or have changed (*), and what is wrong with the fabric (!).
 *
 *   fabric-diff [SECONDS]      a discovery every so many seconds, 5 by default
 *   -k M_KEY                   the M_Key of the fabric
 *   -l SECONDS                 ends a discovery after this time, with the part that is known
 *
 * Exits with 1 if this node does not respond or the output cannot be written, with 2 if an
 * argument is wrong.
 */

#include "program.h"

#include <infiniband/mad_fabric.h>
#include <infiniband/mad_fields.h>

#include <err.h>
#include <poll.h>

static const char *const words[] = {
	[MAD_FABRIC_NODE_ADDED] = "+ node",   [MAD_FABRIC_NODE_REMOVED] = "- node",
	[MAD_FABRIC_NODE_CHANGED] = "* node", [MAD_FABRIC_LINK_ADDED] = "+ link",
	[MAD_FABRIC_LINK_REMOVED] = "- link", [MAD_FABRIC_LINK_CHANGED] = "* link",
	[MAD_FABRIC_PORT_CHANGED] = "* port",
};

static void print_node(const struct mad_fabric_node *node)
{
	char name[sizeof(node->description)];

	printf(" %s 0x%016" PRIx64, mad_printable_text(node->description, name, sizeof(name)),
	       node->guid);
}

static void print_port(const struct mad_fabric_port *port)
{
	print_node(port->node);
	printf(" port %u", port->number);
}

static void print_number(const char *name, uint64_t before, uint64_t after)
{
	if (before != after)
		printf(" [%s %" PRIu64 ", was %" PRIu64 "]", name, after, before);
}

static void print_guid(const char *name, uint64_t before, uint64_t after)
{
	if (before != after)
		printf(" [%s 0x%016" PRIx64 ", was 0x%016" PRIx64 "]", name, after, before);
}

static void print_node_change(const struct mad_fabric_node *before,
			      const struct mad_fabric_node *after)
{
	if (strcmp(before->description, after->description) != 0) {
		fputs(" [was", stdout);
		print_node(before);
		putchar(']');
	}
	print_number("type", before->type, after->type);
	print_number("ports", before->port_count, after->port_count);
	print_number("LID", before->lid, after->lid);
	print_number("LMC", before->lmc, after->lmc);
	print_guid("system", before->system_guid, after->system_guid);
}

static void print_port_change(const struct mad_fabric_port *before,
			      const struct mad_fabric_port *after)
{
	print_number("state", before->state, after->state);
	print_number("physical state", before->physical_state, after->physical_state);
	print_number("width", before->width, after->width);
	if (before->speed != after->speed)
		printf(" [speed %s, was %s]", mad_link_speed_name(after->speed),
		       mad_link_speed_name(before->speed));
	print_number("MTU", before->mtu, after->mtu);
	print_number("LID", before->lid, after->lid);
	print_number("LMC", before->lmc, after->lmc);
	print_guid("GUID", before->guid, after->guid);
}

static int print_change(const struct mad_fabric_difference *difference, void *arg)
{
	const struct mad_fabric_node *was = difference->before_node;
	const struct mad_fabric_node *now = difference->after_node;
	const struct mad_fabric_port *before = difference->before_port;
	const struct mad_fabric_port *after = difference->after_port;
	const struct mad_fabric_port *port = after ? after : before;

	(void)arg;
	fputs(words[difference->change], stdout);
	if (port)
		print_port(port);
	else
		print_node(now ? now : was);
	if (!port && was && now)
		print_node_change(was, now);
	if (before && after)
		print_port_change(before, after);
	if (port && port->peer) {
		fputs(" to", stdout);
		print_port(port->peer);
		if (before && after && before->peer && after->peer)
			print_port_change(before->peer, after->peer);
	}
	putchar('\n');
	return 0;
}

/* Prints the problems of each discovery: a change may be due to one of them. */
static void print_problems(const struct mad_fabric *fabric)
{
	char text[MAD_FABRIC_PROBLEM_TEXT_SIZE];

	for (size_t i = 0; i < fabric->problem_count; i++)
		printf("! %s\n", mad_fabric_problem_text(mad_fabric_get_problem(fabric, i),
							 text, sizeof(text)));
}

/* Without the fabric if this node does not respond. The previous fabric has names for what
 * died. */
static struct mad_fabric *discover(struct ibmad_port *port, struct mad_fabric_options *options,
				   const struct mad_fabric *previous)
{
	struct mad_fabric *fabric;
	int ret;

	options->previous = previous;
	ret = mad_fabric_discover(port, options, &fabric);
	if (ret)
		warnx("%s", strerror(-ret));
	if (fabric)
		print_problems(fabric);
	return fabric;
}

int main(int argc, char **argv)
{
	static const char usage[] = "usage: fabric-diff [-k M_KEY] [-l SECONDS] [SECONDS]";
	struct mad_fabric_options options = {.partial = true};
	int option;
	struct mad_fabric *before, *after;
	struct ibmad_port *port;
	unsigned pause_ms = 5000;
	bool valid = true;

	while ((option = getopt(argc, argv, "k:l:")) != -1)
		valid &= option == 'k'   ? read_m_key(optarg, &options.m_key)
			 : option == 'l' ? (options.time_limit_ms = read_ms(optarg)) != 0
					 : false;
	if (optind < argc)
		pause_ms = read_ms(argv[optind++]);
	if (!valid || !pause_ms || optind < argc)
		errx(2, "%s", usage);
	setlinebuf(stdout);
	if (mad_port_open(NULL, 0, &port))
		err(1, "no port");
	before = discover(port, &options, NULL);
	if (!before)
		return 1;
	printf("%zu nodes\n", before->node_count);
	while (!ferror(stdout) && poll(NULL, 0, (int)pause_ms) == 0 &&
	       (after = discover(port, &options, before))) {
		mad_fabric_compare(before, after, print_change, NULL);
		mad_fabric_free(before);
		before = after;
	}
	mad_fabric_free(before);
	mad_rpc_close_port(port);
	return finish(1);
}
