/* SPDX-License-Identifier: BSD-2-Clause */

/* Writes a fabric in ibnetdiscover's format. */

#include <infiniband/mad_fabric_text.h>

#include "base/export.h"
#include "base/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* --- the order -------------------------------------------------------------------- */

/*
 * ibnetdiscover's node order, derived from its packets:
 *
 * - Requests form one queue; responses append further requests.
 *
 * - A new node's NodeInfo appends SwitchInfo for a switch, and PortInfo of the port where the
 *   scan begins. Other CA and router ports append nothing.
 * - SwitchInfo appends PortInfo of all ports from 1.
 * - PortInfo of a port with a link appends NodeInfo behind it. If the link may be FDR10,
 *   Mellanox's ExtendedPortInfo comes first, which delays the node.
 */

enum step {
	READ_NODE,
	READ_SWITCH,
	READ_PORT,
	READ_EXTENDED_PORT
};

struct item {
	enum step step;
	/* READ_NODE: leads to the node; READ_SWITCH: any port of it */
	const struct mad_fabric_port *port;
};

struct scan {
	struct item *items; /* queue; nothing is removed */
	size_t first, end;
	bool *found; /* by node index */
	uint32_t *order;
	size_t count; /* in order */
};

/* Whether ibnetdiscover sends ExtendedPortInfo to the device. */
static bool has_extended_port_info(const struct mad_fabric_node *node)
{
	static const uint16_t devices[] = {0xa2d2, 0xc738, 0xc739, 0xc73a, 0xc73b,
					   0xc839, 0xcb20, 0xcf08, 0xcf09, 0xd2f0};
	static const uint16_t of_bull[] = {0x1b02, 0x1b33, 0x1b40, 0x1b41, 0x1b50, 0x1b60,
					   0x1b61, 0x1b73, 0x1b83, 0x1b93, 0x1b94, 0x1ba0,
					   0x1bb4, 0x1bb5, 0x1bc4, 0x1bc5, 0x1bc6, 0x1bd0,
					   0x1bd1, 0x1bd2, 0x1bd3, 0x1bd4, 0x1bd5, 0x1bf0};

	if (node->device_id >= 0x1003 && node->device_id <= 0x101b)
		return true;
	for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++)
		if (devices[i] == node->device_id)
			return true;
	for (size_t i = 0; node->vendor_id == 0x119f && i < sizeof(of_bull) / sizeof(*of_bull);
	     i++)
		if (of_bull[i] == node->device_id)
			return true;
	return false;
}

static void scan_add(struct scan *scan, enum step step, const struct mad_fabric_port *port)
{
	scan->items[scan->end++] = (struct item){step, port};
}

static void scan_found(struct scan *scan, const struct mad_fabric_node *node)
{
	if (scan->found[node->index])
		return;
	scan->found[node->index] = true;
	scan->order[scan->count++] = node->index;
	if (node->type == IB_NODE_SWITCH)
		scan_add(scan, READ_SWITCH, mad_fabric_get_port(node, 0));
}

static void scan_respond(struct scan *scan, struct item item)
{
	const struct mad_fabric_node *node = item.port->node;
	bool may_be_fdr10 = item.port->speed == MAD_SPEED_QDR || /* FDR10 is QDR in PortInfo */
			    item.port->speed == MAD_SPEED_FDR10;

	switch (item.step) {
	case READ_NODE:
		scan_found(scan, item.port->peer->node);
		break;
	case READ_SWITCH:
		for (unsigned number = 1; number <= node->port_count; number++) {
			const struct mad_fabric_port *port = mad_fabric_get_port(node, number);

			if (port->peer)
				scan_add(scan, READ_PORT, port);
		}
		break;
	case READ_PORT:
		scan_add(scan,
			 may_be_fdr10 && has_extended_port_info(node) ? READ_EXTENDED_PORT
								      : READ_NODE,
			 item.port);
		break;
	case READ_EXTENDED_PORT:
		scan_add(scan, READ_NODE, item.port);
		break;
	}
}

static void scan_fabric(struct scan *scan, const struct mad_fabric *fabric)
{
	const struct mad_fabric_port *origin = fabric->origin;

	if (origin) {
		scan_found(scan, origin->node);
		if (origin->node->type != IB_NODE_SWITCH && origin->peer)
			scan_add(scan, READ_PORT, origin);
	}
	while (scan->first < scan->end)
		scan_respond(scan, scan->items[scan->first++]);
	for (size_t i = 0; i < fabric->node_count; i++)
		if (!scan->found[i])
			scan->order[scan->count++] = (uint32_t)i;
}

/*
 * Returns all mad_fabric:node_count node indexes: those ibnetdiscover finds from the origin,
 * then the others. Use free(); NULL on OOM.
 */
static uint32_t *scan_order(const struct mad_fabric *fabric)
{
	/* a port with a peer is queued at most three times, a switch's port 0 once */
	struct scan scan = {.items = calloc(fabric->port_count + 1, 3 * sizeof(struct item)),
			    .found = calloc(fabric->node_count, sizeof(bool)),
			    .order = calloc(fabric->node_count, sizeof(uint32_t))};
	bool ok = scan.items && scan.found && scan.order;

	if (ok)
		scan_fabric(&scan, fabric);
	else
		free(scan.order);
	free(scan.items);
	free(scan.found);
	return ok ? scan.order : NULL;
}

/* --- the text --------------------------------------------------------------------- */

struct output {
	FILE *file;
	const struct mad_node_names *names;
};

/* The format's words for each node type; other types cannot be stored. */
static const struct {
	const char *word;
	char letter;
	const char *guid;
} types[] = {
	[IB_NODE_CA] = {"Ca", 'H', "caguid"},
	[IB_NODE_SWITCH] = {"Switch", 'S', "switchguid"},
	[IB_NODE_ROUTER] = {"Rt", 'R', "rtguid"},
};

static bool has_type(const struct mad_fabric_node *node)
{
	return node->type < sizeof(types) / sizeof(*types) && types[node->type].word;
}

/* Replaces bytes that are not printable ASCII by blanks, whatever the locale. */
static void print_description(FILE *file, const struct mad_fabric_node *node)
{
	for (const char *c = node->description; *c; c++)
		putc(*c >= ' ' && *c <= '~' ? *c : ' ', file);
}

static void print_name(const struct output *out, const struct mad_fabric_node *node)
{
	const char *name = mad_node_names_get(out->names, node->guid);

	if (name)
		fputs(name, out->file);
	else
		print_description(out->file, node);
}

/* A comment with the description's exact bytes, if the node's line lacks any. */
static void print_exact_description(const struct output *out,
				    const struct mad_fabric_node *node)
{
	bool is_replaced =
		node->type == IB_NODE_SWITCH && mad_node_names_get(out->names, node->guid);
	const char *at = node->description;

	while (*at >= ' ' && *at <= '~')
		at++;
	if (!*at || is_replaced)
		return;
	fputs("# NodeDescription ", out->file);
	for (at = node->description; *at; at++)
		fprintf(out->file, "%02x", (uint8_t)*at);
	putc('\n', out->file);
}

static void print_port(const struct output *out, const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *peer = port->peer;
	bool of_switch = port->node->type == IB_NODE_SWITCH;
	bool to_switch = peer->node->type == IB_NODE_SWITCH;
	/* a switch's LID is at port 0 */
	unsigned peer_lid = to_switch ? peer->node->lid : peer->lid;

	fprintf(out->file, "[%u]", port->number);
	if (!of_switch)
		fprintf(out->file, "(%" PRIx64 ") ", port->guid);
	fprintf(out->file, "\t\"%c-%016" PRIx64 "\"[%u]", types[peer->node->type].letter,
		peer->node->guid, peer->number);
	if (!to_switch)
		fprintf(out->file, "%s(%" PRIx64 ") ", of_switch ? "" : " ", peer->guid);
	fputs("\t\t# ", out->file);
	if (!of_switch)
		fprintf(out->file, "lid %u lmc %u ", port->lid, port->lmc);
	fputc('"', out->file);
	print_name(out, peer->node);
	fprintf(out->file, "\" lid %u ", peer_lid);
	if (port->width)
		fprintf(out->file, "%ux", port->width);
	else
		fputs("??", out->file);
	fprintf(out->file, "%s\n", port->speed ? mad_link_speed_name(port->speed) : "???");
}

static void print_node(const struct output *out, const struct mad_fabric_node *node)
{
	FILE *file = out->file;

	fprintf(file, "\nvendid=0x%" PRIx32 "\ndevid=0x%x\n", node->vendor_id, node->device_id);
	if (node->system_guid)
		fprintf(file, "sysimgguid=0x%" PRIx64 "\n", node->system_guid);
	fprintf(file, "%s=0x%" PRIx64, types[node->type].guid, node->guid);
	if (node->type == IB_NODE_SWITCH)
		fprintf(file, "(%" PRIx64 ")", mad_fabric_get_port(node, 0)->guid);
	putc('\n', file);
	print_exact_description(out, node);
	fprintf(file, "%s\t%u \"%c-%016" PRIx64 "\"\t\t# \"", types[node->type].word,
		node->port_count, types[node->type].letter, node->guid);
	if (node->type == IB_NODE_SWITCH) {
		print_name(out, node);
		fprintf(file, "\" %s port 0 lid %u lmc %u\n",
			node->enhanced_port0 ? "enhanced" : "base", node->lid, node->lmc);
	} else {
		print_description(file, node);
		fputs("\"\n", file);
	}
	for (unsigned number = 1; number <= node->port_count; number++) {
		const struct mad_fabric_port *port = mad_fabric_get_port(node, number);

		if (port->peer && has_type(port->peer->node))
			print_port(out, port);
	}
}

/* ibnetdiscover prints nodes in reverse order, as a loaded fabric has them. */
static void print_nodes(const struct output *out, const struct mad_fabric *fabric,
			const uint32_t *found)
{
	static const unsigned parts[] = {IB_NODE_SWITCH, IB_NODE_CA, IB_NODE_ROUTER};
	size_t count = fabric->node_count;

	for (size_t part = 0; part < sizeof(parts) / sizeof(*parts); part++)
		for (size_t i = 0; i < count; i++) {
			const struct mad_fabric_node *node =
				mad_fabric_get_node(fabric, found ? found[count - 1 - i] : i);

			if (node->type == parts[part])
				print_node(out, node);
		}
}

static void print_head(FILE *file, const struct mad_fabric *fabric)
{
	const struct mad_fabric_port *origin = fabric->origin;
	time_t now = time(NULL);
	char date[26]; /* "Thu Jan  1 00:00:00 1970\n" in any locale */

	fprintf(file, "#\n# Topology file: generated on %s#\n",
		ctime_r(&now, date) ? date : "\n");
	if (origin)
		fprintf(file, "# Initiated from node %016" PRIx64 " port %016" PRIx64 "\n",
			origin->node->guid, origin->guid);
}

EXPORT int mad_fabric_store(const struct mad_fabric *fabric, FILE *file,
			    const struct mad_node_names *names)
{
	const struct output out = {.file = file, .names = names};
	const struct mad_fabric_node *first = mad_fabric_get_node(fabric, 0);
	uint32_t *found = NULL;

	if (!fabric || !file)
		return failure_of_call(0, -EINVAL);
	if (first && first->node_info) { /* discovered, not loaded */
		found = scan_order(fabric);
		if (!found)
			return failure_of_call(0, -ENOMEM);
	}
	errno = 0;
	print_head(file, fabric);
	print_nodes(&out, fabric, found);
	free(found);
	if (fflush(file) || ferror(file))
		return failure_of_call(0, errno ? -errno : -EIO);
	return 0;
}
