/* SPDX-License-Identifier: BSD-2-Clause */

/* The fabric: nodes, links, counters, and failures. */
#include "report.h"

#include <ctype.h>
#include <errno.h>
#include <infiniband/mad_counters.h>
#include <infiniband/mad_fabric_text.h>
#include <stdlib.h>
#include <string.h>

#define KINDS    64 /* node types and link types that are counted separately */
#define FAILURES 20 /* failures that are printed separately */

/* The number of things with this text. */
struct tally {
	char text[96];
	size_t count;
};

struct sums {
	unsigned read, failed, with_vl15;
	uint64_t vl15, qp1, rcv_errors, discards, symbol_errors, link_downed;
	char failure[64];
};

static void count(struct tally tallies[KINDS], const char *text)
{
	for (size_t i = 0; i < KINDS; i++) {
		if (tallies[i].count && strcmp(tallies[i].text, text) && i < KINDS - 1)
			continue;
		if (!tallies[i].count)
			snprintf(tallies[i].text, sizeof(tallies[i].text), "%s",
				 i < KINDS - 1 ? text : "others");
		tallies[i].count++;
		return;
	}
}

static void print_tallies(const char *name, const struct tally tallies[KINDS])
{
	for (size_t i = 0; i < KINDS && tallies[i].count; i++)
		fact(i ? "" : name, "%zu: %s", tallies[i].count, tallies[i].text);
}

/* A description without characters that end quotation marks. */
static const char *quoted(const char *description)
{
	static char text[IB_SMP_DATA_SIZE + 3];
	size_t length = 0;

	text[length++] = '"';
	for (; *description && length < sizeof(text) - 2; description++)
		text[length++] = isprint((unsigned char)*description) && *description != '"'
					 ? *description
					 : '?';
	text[length++] = '"';
	text[length] = '\0';
	return text;
}

static void print_nodes(const struct mad_fabric *fabric)
{
	static struct tally kinds[KINDS], hops[KINDS];
	const struct mad_fabric_node *node;
	size_t types[4] = {0};
	char text[96];

	memset(kinds, 0, sizeof(kinds));
	memset(hops, 0, sizeof(hops));
	for (size_t i = 0; (node = mad_fabric_get_node(fabric, i)); i++) {
		types[node->type < 4 ? node->type : 0]++;
		snprintf(text, sizeof(text), "type %u, vendor 0x%06x, device 0x%04x, %u ports",
			 node->type, node->vendor_id, node->device_id, node->port_count);
		count(kinds, text);
		snprintf(text, sizeof(text), "%d hops away", node->route.cnt);
		count(hops, text);
	}
	fact("nodes", "%zu CAs, %zu switches, %zu routers, %zu others", types[IB_NODE_CA],
	     types[IB_NODE_SWITCH], types[IB_NODE_ROUTER], types[0]);
	print_tallies("", kinds);
	print_tallies("", hops);
}

static void print_links(const struct mad_fabric *fabric)
{
	static struct tally kinds[KINDS];
	const struct mad_fabric_port *port = NULL;
	char text[96];

	memset(kinds, 0, sizeof(kinds));
	while ((port = mad_fabric_next_port(fabric, port))) {
		if (!port->peer || port->peer->index < port->index)
			continue;
		snprintf(text, sizeof(text), "%ux %s%s, state %u", port->width,
			 mad_link_speed_name(port->speed),
			 port->width < port->width_possible ||
					 port->speed < port->speed_possible
				 ? ", below what both ends support"
				 : "",
			 port->state);
		count(kinds, text);
	}
	print_tallies("links", kinds);
}

static void print_failures(const struct mad_fabric *fabric)
{
	const struct mad_fabric_problem *problem;
	char text[MAD_FABRIC_PROBLEM_TEXT_SIZE];

	fact("problems", "%zu", fabric->problem_count);
	for (size_t i = 0; i < FAILURES && (problem = mad_fabric_get_problem(fabric, i)); i++) {
		const struct mad_fabric_node *node = problem->node;
		unsigned port = problem->port ? problem->port->number : problem->modifier;

		if (problem->error) {
			wrong("%s %s 0x%016" PRIx64
			      " port %u: attribute 0x%04x, %u requests: %s",
			      problem->kind == MAD_FABRIC_PROBLEM_BEHIND ? "behind" : "at",
			      quoted(node->description), node->guid, port, problem->attribute,
			      problem->count, strerror(-problem->error));
			continue;
		}
		/* names of nodes are in quotation marks, so that they can be made anonymous */
		mad_fabric_problem_text(problem, text, sizeof(text));
		fact("", "%s port %u%s", node ? quoted(node->description) : "", port,
		     strchr(strrchr(text, ')') ? strrchr(text, ')') : text, ':'));
	}
}

struct discovered {
	struct mad_fabric *fabric;
	int error;
};

static void done(struct mad_async *async, int error, struct mad_fabric *fabric, void *arg)
{
	struct discovered *discovered = arg;

	(void)async;
	discovered->error = error;
	discovered->fabric = fabric;
}

static struct mad_fabric *discover(struct site *site)
{
	const struct mad_fabric_options options = {.read = MAD_FABRIC_READ_DEFAULT |
							   MAD_FABRIC_READ_MLNX_EXT_PORTS};
	struct discovered discovered = {0};
	uint64_t started = clock_ms();
	int error = mad_fabric_submit(site->async, &options, done, &discovered, NULL);

	if (!error)
		mad_async_wait(site->async, -1);
	if (error || discovered.error) {
		wrong("discovery: %s", strerror(-(error ? error : discovered.error)));
		return NULL;
	}
	fact("took", "%" PRIu64 " ms", clock_ms() - started);
	print_flow(site);
	return discovered.fabric;
}

static void counted(struct mad_async *async, int error, const struct mad_counters *counters,
		    void *arg)
{
	struct sums *sums = arg;

	(void)async;
	if (error) {
		if (!sums->failed++)
			snprintf(sums->failure, sizeof(sums->failure), "%s", strerror(-error));
		return;
	}
	sums->read++;
	sums->with_vl15 += counters->vl15_dropped != 0;
	sums->vl15 += counters->vl15_dropped;
	sums->qp1 += counters->qp1_dropped;
	sums->rcv_errors += counters->rcv_errors;
	sums->discards += counters->xmit_discards;
	sums->symbol_errors += counters->symbol_errors;
	sums->link_downed += counters->link_downed;
}

/* PortCounters of each port with a link. */
static void count_errors(struct site *site, const struct mad_fabric *fabric, struct sums *sums)
{
	struct mad_counters_options options = {.counters = MAD_COUNTERS_ERRORS, .basic = true};
	const struct mad_fabric_port *port = NULL;

	memset(sums, 0, sizeof(*sums));
	while ((port = mad_fabric_next_port(fabric, port))) {
		ib_portid_t to = {.lid = port->gmp_lid};

		if (port->peer && to.lid &&
		    mad_counters_submit(site->async, &to, port->number, &options, counted, sums,
					NULL))
			sums->failed++;
	}
	mad_async_wait(site->async, -1);
	fact("counters",
	     "%u ports: VL15Dropped %" PRIu64 " (at %u ports), PortRcvErrors %" PRIu64
	     ", PortXmitDiscards %" PRIu64 ", SymbolErrors %" PRIu64 ", LinkDowned %" PRIu64,
	     sums->read, sums->vl15, sums->with_vl15, sums->rcv_errors, sums->discards,
	     sums->symbol_errors, sums->link_downed);
	if (sums->failed)
		wrong("counters of %u ports were not read: %s", sums->failed, sums->failure);
	print_flow(site);
}

static void write_files(const struct mad_fabric *fabric, const char *store, const char *names)
{
	FILE *file = store ? fopen(store, "w") : NULL;
	const struct mad_fabric_node *node;

	if (file && mad_fabric_store(fabric, file, NULL))
		wrong("the fabric cannot be stored");
	if (file)
		fclose(file);
	file = names ? fopen(names, "w") : NULL;
	for (size_t i = 0; file && (node = mad_fabric_get_node(fabric, i)); i++)
		fprintf(file, "%s\n", node->description);
	if (file)
		fclose(file);
}

void measure_fabric(struct site *site, const char *store, const char *names)
{
	struct mad_fabric *fabric;
	struct sums before, after;

	part("fabric: discovery");
	fabric = discover(site);
	if (!fabric)
		return;
	print_nodes(fabric);
	print_links(fabric);
	print_failures(fabric);
	part("fabric: counters before a second discovery");
	count_errors(site, fabric, &before);
	mad_fabric_free(fabric);
	part("fabric: second discovery");
	fabric = discover(site);
	if (!fabric)
		return;
	part("fabric: counters after it");
	count_errors(site, fabric, &after);
	if (after.vl15 > before.vl15)
		wrong("VL15Dropped has grown by %" PRIu64, after.vl15 - before.vl15);
	write_files(fabric, store, names);
	mad_fabric_free(fabric);
}
