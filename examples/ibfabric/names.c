/* SPDX-License-Identifier: BSD-2-Clause */

/* The names of nodes, and the order in which nodes and ports are shown. */

#include "ibfabric.h"

#include <errno.h>

static struct mad_node_names *names;

void load_names(const char *path)
{
	unsigned line = 0;
	FILE *file = fopen(path ? path : MAD_NODE_NAMES_PATH, "re");
	int error;

	if (!file && !path)
		return;
	if (!file)
		die("%s: %s", path, strerror(errno));
	error = mad_node_names_load(file, &names, &line);
	fclose(file);
	if (error == -EBADMSG)
		die("%s: line %u is not a GUID and a name", path ? path : MAD_NODE_NAMES_PATH,
		    line);
	if (error)
		die("%s: %s", path ? path : MAD_NODE_NAMES_PATH, strerror(-error));
}

bool has_own_name(const struct mad_fabric_node *node)
{
	return mad_node_names_get(names, node->guid) != NULL;
}

char *node_name(const struct mad_fabric_node *node, char name[NAME_SIZE])
{
	const char *own = mad_node_names_get(names, node->guid);

	mad_printable_text(own ? own : node->description, name, NAME_SIZE);
	if (!name[strspn(name, " ")])
		snprintf(name, NAME_SIZE, "0x%016" PRIx64, node->guid);
	return name;
}

const char *type_name(const struct mad_fabric_node *node)
{
	return node->type == IB_NODE_SWITCH   ? "switch"
	       : node->type == IB_NODE_ROUTER ? "router"
	       : node->type == IB_NODE_CA     ? "host"
					      : "unknown";
}

char *place_of_port(const struct mad_fabric_port *port, char place[PLACE_SIZE])
{
	char name[NAME_SIZE];

	snprintf(place, PLACE_SIZE, "%s port %u (0x%016" PRIx64 ")",
		 node_name(port->node, name), port->number, port->node->guid);
	return place;
}

char *place_of_node(const struct mad_fabric_node *node, char place[PLACE_SIZE])
{
	char name[NAME_SIZE];

	snprintf(place, PLACE_SIZE, "%s (0x%016" PRIx64 ")", node_name(node, name), node->guid);
	return place;
}

char *short_place(const struct mad_fabric_port *port, char place[PLACE_SIZE])
{
	char name[NAME_SIZE];

	snprintf(place, PLACE_SIZE, "%s/%u", node_name(port->node, name), port->number);
	return place;
}

/* Switches first; then by name, in which numbers count as numbers. */
int compare_nodes(const struct mad_fabric_node *a, const struct mad_fabric_node *b)
{
	char name_a[NAME_SIZE], name_b[NAME_SIZE];
	int order = (a->type != IB_NODE_SWITCH) - (b->type != IB_NODE_SWITCH);

	if (!order)
		order = strverscmp(node_name(a, name_a), node_name(b, name_b));
	return order ? order : (a->guid > b->guid) - (a->guid < b->guid);
}

int compare_ports(const struct mad_fabric_port *a, const struct mad_fabric_port *b)
{
	int order = a->node == b->node ? 0 : compare_nodes(a->node, b->node);

	return order ? order : (a->number > b->number) - (a->number < b->number);
}

static int compare_node_pointers(const void *a, const void *b)
{
	return compare_nodes(*(const struct mad_fabric_node *const *)a,
			     *(const struct mad_fabric_node *const *)b);
}

const struct mad_fabric_node **sorted_nodes(const struct mad_fabric *fabric)
{
	const struct mad_fabric_node **nodes = allocate(fabric->node_count, sizeof(void *));

	for (size_t i = 0; i < fabric->node_count; i++)
		nodes[i] = mad_fabric_get_node(fabric, i);
	qsort(nodes, fabric->node_count, sizeof(void *), compare_node_pointers);
	return nodes;
}

const struct mad_fabric_port **sorted_ports(const struct mad_fabric *fabric)
{
	const struct mad_fabric_node **nodes = sorted_nodes(fabric);
	const struct mad_fabric_port **ports = allocate(fabric->port_count, sizeof(void *));
	size_t count = 0;

	for (size_t i = 0; i < fabric->node_count; i++)
		for (unsigned n = 0; n <= nodes[i]->port_count; n++) {
			const struct mad_fabric_port *port = mad_fabric_get_port(nodes[i], n);

			if (port && count < fabric->port_count)
				ports[count++] = port;
		}
	free(nodes);
	if (count < fabric->port_count)
		die("the fabric has ports without numbers");
	return ports;
}
