/* SPDX-License-Identifier: BSD-2-Clause */

/* A fabric in ibnetdiscover's format. */

#include <infiniband/mad_fabric_text.h>

#include "base/export.h"
#include "fabric/scan_order.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

struct output {
	FILE *file;
	const struct mad_node_names *names;
};

/* What the format says of a type of node; a type without a word is not in it. */
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

/* Bytes that are not printable in ASCII become blanks, whatever the locale. */
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

static void print_link(FILE *file, const struct mad_fabric_port *port)
{
	if (port->width)
		fprintf(file, "%ux", port->width);
	else
		fputs("??", file);
	fprintf(file, "%s\n", port->speed ? mad_link_speed_name(port->speed) : "???");
}

/* A switch has its LID at port 0. */
static unsigned lid_of(const struct mad_fabric_port *port)
{
	return port->node->type == IB_NODE_SWITCH ? port->node->lid : port->lid;
}

static void print_port(const struct output *out, const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *peer = port->peer;
	bool of_switch = port->node->type == IB_NODE_SWITCH;

	fprintf(out->file, "[%u]", port->number);
	if (!of_switch)
		fprintf(out->file, "(%" PRIx64 ") ", port->guid);
	fprintf(out->file, "\t\"%c-%016" PRIx64 "\"[%u]", types[peer->node->type].letter,
		peer->node->guid, peer->number);
	if (peer->node->type != IB_NODE_SWITCH)
		fprintf(out->file, "%s(%" PRIx64 ") ", of_switch ? "" : " ", peer->guid);
	fputs("\t\t# ", out->file);
	if (!of_switch)
		fprintf(out->file, "lid %u lmc %u ", port->lid, port->lmc);
	fputc('"', out->file);
	print_name(out, peer->node);
	fprintf(out->file, "\" lid %u ", lid_of(peer));
	print_link(out->file, port);
}

static void print_node(const struct output *out, const struct mad_fabric_node *node)
{
	FILE *file = out->file;

	fprintf(file, "\nvendid=0x%" PRIx32 "\ndevid=0x%x\nsysimgguid=0x%" PRIx64 "\n",
		node->vendor_id, node->device_id, node->system_guid);
	fprintf(file, "%s=0x%" PRIx64, types[node->type].guid, node->guid);
	if (node->type == IB_NODE_SWITCH)
		fprintf(file, "(%" PRIx64 ")", mad_fabric_port(node, 0)->guid);
	fprintf(file, "\n%s\t%u \"%c-%016" PRIx64 "\"\t\t# \"", types[node->type].word,
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
		const struct mad_fabric_port *port = mad_fabric_port(node, number);

		if (port->peer && has_type(port->peer->node))
			print_port(out, port);
	}
}

/* ibnetdiscover prints first what it found last. A fabric that was loaded is in its order. */
static void print_nodes(const struct output *out, const struct mad_fabric *fabric,
			const uint32_t *found)
{
	static const unsigned parts[] = {IB_NODE_SWITCH, IB_NODE_CA, IB_NODE_ROUTER};
	size_t count = mad_fabric_node_count(fabric);

	for (size_t part = 0; part < sizeof(parts) / sizeof(*parts); part++)
		for (size_t i = 0; i < count; i++) {
			const struct mad_fabric_node *node =
				mad_fabric_node(fabric, found ? found[count - 1 - i] : i);

			if (node->type == parts[part])
				print_node(out, node);
		}
}

/* As ctime() has it, whatever the locale. */
static void print_date(FILE *file)
{
	static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
	static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
					 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	time_t now = time(NULL);
	struct tm tm;

	if (localtime_r(&now, &tm))
		fprintf(file, "%s %s %2d %02d:%02d:%02d %d", days[tm.tm_wday],
			months[tm.tm_mon], tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
			tm.tm_year + 1900);
}

static void print_head(FILE *file, const struct mad_fabric *fabric)
{
	const struct mad_fabric_port *origin = mad_fabric_origin(fabric);

	fputs("#\n# Topology file: generated on ", file);
	print_date(file);
	fputs("\n#\n", file);
	if (origin)
		fprintf(file, "# Initiated from node %016" PRIx64 " port %016" PRIx64 "\n",
			origin->node->guid, origin->guid);
}

static bool was_discovered(const struct mad_fabric *fabric)
{
	const struct mad_fabric_node *node = mad_fabric_node(fabric, 0);

	return node && node->node_info;
}

EXPORT int mad_fabric_store(const struct mad_fabric *fabric, FILE *file,
			    const struct mad_node_names *names)
{
	const struct output out = {.file = file, .names = names};
	uint32_t *found = NULL;

	if (!fabric || !file)
		return -EINVAL;
	if (was_discovered(fabric)) {
		found = scan_order(fabric);
		if (!found)
			return -ENOMEM;
	}
	errno = 0;
	print_head(file, fabric);
	print_nodes(&out, fabric, found);
	free(found);
	if (fflush(file) || ferror(file))
		return errno ? -errno : -EIO;
	return 0;
}
