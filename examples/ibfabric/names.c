/* SPDX-License-Identifier: BSD-2-Clause */

/* Places: the names that are shown, the order of nodes and ports, and selections. */

#include "ibfabric.h"

#include "../program.h"

#include <errno.h>
#include <fnmatch.h>

const struct place nowhere;
static struct mad_node_names *names;

struct place at_port(const struct mad_fabric_port *port)
{
	return (struct place){port ? port->node : NULL, port};
}

struct place at_node(const struct mad_fabric_node *node)
{
	return (struct place){node, NULL};
}

/* --- names ------------------------------------------------------------------------ */

void load_names(const char *path)
{
	unsigned line = 0;
	FILE *file = path ? open_file(path) : fopen(MAD_NODE_NAMES_PATH, "re");
	int error = file ? mad_node_names_load(file, &names, &line) : 0;

	if (error == -EBADMSG)
		die("%s: line %u: expected a GUID and a quoted name",
		    path ? path : MAD_NODE_NAMES_PATH, line);
	if (error)
		die("%s: %s", path ? path : MAD_NODE_NAMES_PATH, strerror(-error));
	if (file)
		fclose(file);
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

char *place_text(struct place place, char text[PLACE_SIZE])
{
	char name[NAME_SIZE], port[16] = "";

	if (place.port)
		snprintf(port, sizeof(port), " port %u", place.port->number);
	snprintf(text, PLACE_SIZE, "%s%s (0x%016" PRIx64 ")", node_name(place.node, name), port,
		 place.node->guid);
	return text;
}

char *short_place(struct place place, char text[PLACE_SIZE])
{
	char name[NAME_SIZE];

	if (place.port)
		snprintf(text, PLACE_SIZE, "%s/%u", node_name(place.node, name),
			 place.port->number);
	else
		node_name(place.node, text);
	return text;
}

const char *state_name(const struct mad_fabric_port *port)
{
	static const char *const states[] = {"", "Down", "Init", "Armed", "Active"};

	return port->info && port->state < 5 ? states[port->state] : "";
}

/* --- order ------------------------------------------------------------------------ */

int compare_places(struct place a, struct place b)
{
	char name_a[NAME_SIZE], name_b[NAME_SIZE];
	int order;

	if (!a.node || !b.node)
		return (a.node != NULL) - (b.node != NULL);
	if (a.node != b.node) {
		order = (a.node->type != IB_NODE_SWITCH) - (b.node->type != IB_NODE_SWITCH);
		if (!order)
			order = strverscmp(node_name(a.node, name_a),
					   node_name(b.node, name_b));
		if (!order)
			order = (a.node->guid > b.node->guid) - (a.node->guid < b.node->guid);
		if (order)
			return order;
	}
	return a.port && b.port ? a.port->number - b.port->number : 0;
}

static int compare_nodes(const void *a, const void *b)
{
	return compare_places(at_node(*(const struct mad_fabric_node *const *)a),
			      at_node(*(const struct mad_fabric_node *const *)b));
}

const struct mad_fabric_node **sorted_nodes(const struct mad_fabric *fabric)
{
	const struct mad_fabric_node **nodes = allocate(fabric->node_count, sizeof(void *));

	for (size_t i = 0; i < fabric->node_count; i++)
		nodes[i] = mad_fabric_get_node(fabric, i);
	qsort(nodes, fabric->node_count, sizeof(void *), compare_nodes);
	return nodes;
}

const struct mad_fabric_port **sorted_ports(const struct mad_fabric *fabric)
{
	const struct mad_fabric_node **nodes = sorted_nodes(fabric);
	const struct mad_fabric_port **ports = allocate(fabric->port_count, sizeof(void *));
	size_t count = 0;

	for (size_t i = 0; i < fabric->node_count; i++)
		for (unsigned number = 0; number <= nodes[i]->port_count; number++) {
			const struct mad_fabric_port *port =
				mad_fabric_get_port(nodes[i], number);

			if (port && count < fabric->port_count)
				ports[count++] = port;
		}
	free(nodes);
	return ports;
}

bool is_first_end(const struct mad_fabric_port *port)
{
	return !port->peer || port->peer->peer != port ||
	       compare_places(at_port(port), at_port(port->peer)) <= 0;
}

/* --- selections --------------------------------------------------------------------- */

/* Of a CA or router: whether the port, or a port of the node, has the GUID. */
static bool has_port_guid(struct place place, uint64_t guid)
{
	const struct mad_fabric_port *port;

	for (unsigned i = 1; i <= place.node->port_count; i++) {
		port = mad_fabric_get_port(place.node, i);
		if (port && port->guid == guid && (!place.port || place.port == port))
			return place.node->type != IB_NODE_SWITCH;
	}
	return false;
}

/* Whether a text is the GUID of the place, or its name, or a pattern of names. */
static bool is_name_of(const char *pattern, struct place place)
{
	char name[NAME_SIZE], *end;
	uint64_t guid = strtoull(pattern, &end, 16);

	if (strncmp(pattern, "0x", 2) == 0 && !*end)
		return guid == place.node->guid || has_port_guid(place, guid);
	return fnmatch(pattern, node_name(place.node, name), 0) == 0;
}

/* A node matches a port's text, too. */
static bool matches(const char *argument, struct place place)
{
	const char *slash = strrchr(argument, '/');
	char pattern[NAME_SIZE];
	int number;

	if (is_name_of(argument, place))
		return true;
	if (!slash || (number = read_number(slash + 1, 0, place.node->port_count)) < 0)
		return false;
	snprintf(pattern, sizeof(pattern), "%.*s", (int)(slash - argument), argument);
	return (!place.port || place.port->number == number) && is_name_of(pattern, place);
}

bool is_selected(struct place place)
{
	char *const *argument = settings.arguments;

	if (!place.node ||
	    (place.node->type == IB_NODE_SWITCH ? settings.only_hosts : settings.only_switches))
		return false;
	while (*argument && !matches(*argument, place))
		argument++;
	return *argument || !*settings.arguments;
}

bool is_link_selected(const struct mad_fabric_port *port)
{
	return port && (is_selected(at_port(port)) || is_selected(at_port(port->peer)));
}

static bool is_in(const struct mad_fabric *fabric, const char *argument)
{
	const struct mad_fabric_port *port = NULL;

	while (fabric && (port = mad_fabric_next_port(fabric, port)))
		if (matches(argument, at_port(port)))
			return true;
	return false;
}

void check_selection(const struct mad_fabric *fabric, const struct mad_fabric *before)
{
	for (char *const *argument = settings.arguments; *argument; argument++)
		if (!is_in(fabric, *argument) && !is_in(before, *argument))
			die("no node or port matches %s", *argument);
}
