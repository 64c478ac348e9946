/* SPDX-License-Identifier: BSD-2-Clause */

/* links, nodes and counters: a line for each cable, node or port. */

#include "ibfabric.h"

#include <errno.h>
#include <math.h>

static const char *const states[] = {"", "Down", "Init", "Armed", "Active"};
static const char *const physical_states[] = {"",         "Sleep",  "Polling",  "Disabled",
					      "Training", "LinkUp", "Recovery", "Test"};

/* Fails if the table is not the whole fabric. */
static int print(struct table *table, const struct mad_fabric *fabric)
{
	table_print(table, fabric);
	return failure_count() ? EXIT_FAILED : EXIT_CLEAN;
}

static const char *state_name(const struct mad_fabric_port *port)
{
	return port->info && port->state < 5 ? states[port->state] : "";
}

static void add_rate(struct table *table, unsigned width, unsigned speed)
{
	if (width)
		add(table, "%ux", width);
	else
		add_nothing(table, 1);
	add(table, "%s", mad_link_speed_name(speed));
	if (width && speed)
		add(table, "%g", mad_link_rate_gbps(width, speed));
	else
		add_nothing(table, 1);
}

static void add_lid(struct table *table, unsigned lid)
{
	if (lid)
		add(table, "%u", lid);
	else
		add_nothing(table, 1);
}

static void add_link(struct table *table, const struct mad_fabric_port *port)
{
	bool is_up = port->state != MAD_PORT_DOWN;

	add_port(table, port);
	add_lid(table, port->gmp_lid);
	add(table, "%s", state_name(port));
	add(table, "%s",
	    port->info && port->physical_state < 8 ? physical_states[port->physical_state]
						   : "");
	add_rate(table, port->width, port->speed);
	add_rate(table, is_up ? port->width_possible : 0, is_up ? port->speed_possible : 0);
	add_lid(table, port->mtu);
	add_port(table, port->peer);
	add_lid(table, port->peer ? port->peer->gmp_lid : 0);
	add(table, "%s", port->peer_error ? strerror(-port->peer_error) : "");
}

int run_links(void)
{
	static const struct column columns[] = {
		{.name = "node"},
		{.name = "guid", .is_hidden = true},
		{.name = "port", .is_number = true},
		{.name = "lid", .is_number = true, .is_hidden = true},
		{.name = "state"},
		{.name = "physical", .is_hidden = true},
		{.name = "width", .is_hidden = false},
		{.name = "speed"},
		{.name = "gbps", .is_number = true},
		{.name = "width_possible", .is_hidden = false},
		{.name = "speed_possible"},
		{.name = "gbps_possible", .is_number = true, .is_hidden = true},
		{.name = "mtu", .is_number = true, .is_hidden = true},
		{.name = "peer"},
		{.name = "peer_guid", .is_hidden = true},
		{.name = "peer_port", .is_number = true},
		{.name = "peer_lid", .is_number = true, .is_hidden = true},
		{.name = "peer_error", .is_hidden = true},
	};
	const struct mad_fabric *fabric = discover(NULL);
	const struct mad_fabric_port **ports = sorted_ports(fabric);
	struct table table;

	check_selection(fabric, NULL);
	table_begin(&table, "links", columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < fabric->port_count; i++) {
		bool is_link = ports[i]->peer || ports[i]->peer_error || ports[i]->error;

		if ((is_link || (settings.all && ports[i]->number)) && is_first_end(ports[i]) &&
		    is_link_selected(ports[i]))
			add_link(&table, ports[i]);
	}
	free(ports);
	return print(&table, fabric);
}

int run_nodes(void)
{
	static const struct column columns[] = {
		{.name = "node"},
		{.name = "guid"},
		{.name = "type"},
		{.name = "lid", .is_number = true},
		{.name = "ports", .is_number = true},
		{.name = "links", .is_number = true},
		{.name = "vendor", .is_hidden = true},
		{.name = "device", .is_number = true},
		{.name = "revision", .is_number = true, .is_hidden = true},
		{.name = "system_guid", .is_hidden = true},
		{.name = "hops", .is_number = true},
		{.name = "description", .is_hidden = true},
	};
	const struct mad_fabric *fabric = discover(NULL);
	const struct mad_fabric_node **nodes = sorted_nodes(fabric);
	char text[NAME_SIZE];
	struct table table;

	check_selection(fabric, NULL);
	table_begin(&table, "nodes", columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < fabric->node_count; i++) {
		const struct mad_fabric_node *node = nodes[i];
		unsigned links = 0;

		if (!is_node_selected(node))
			continue;
		for (unsigned n = 0; n <= node->port_count; n++) {
			const struct mad_fabric_port *port = mad_fabric_get_port(node, n);

			links += port && port->peer;
		}
		add_node(&table, node);
		add(&table, "%s", type_name(node));
		add_lid(&table, node->lid);
		add(&table, "%u", node->port_count);
		add(&table, "%u", links);
		add(&table, "0x%06x", node->vendor_id);
		add(&table, "%u", node->device_id);
		add(&table, "%u", node->revision);
		add_guid(&table, node->system_guid);
		add(&table, "%d", node->route.cnt);
		add(&table, "%s", mad_printable_text(node->description, text, sizeof(text)));
	}
	free(nodes);
	return print(&table, fabric);
}

/* --- counters ----------------------------------------------------------------------- */

#define FIRST_COUNTER 5 /* the columns before */

static struct column columns[FIRST_COUNTER + MAD_COUNTER_COUNT] = {
	{.name = "node"},
	{.name = "guid", .is_hidden = true},
	{.name = "port", .is_number = true},
	{.name = "peer", .is_hidden = true},
	{.name = "peer_port", .is_number = true, .is_hidden = true},
};

/* A text shows these, and those of --top and --columns. */
static const uint64_t shown =
	MAD_COUNTER_BIT(MAD_COUNTER_XMIT_BYTES) | MAD_COUNTER_BIT(MAD_COUNTER_RCV_BYTES) |
	MAD_COUNTER_BIT(MAD_COUNTER_XMIT_WAIT_TICKS) |
	MAD_COUNTER_BIT(MAD_COUNTER_SYMBOL_ERRORS) | MAD_COUNTER_BIT(MAD_COUNTER_LINK_DOWNED) |
	MAD_COUNTER_BIT(MAD_COUNTER_RCV_ERRORS) | MAD_COUNTER_BIT(MAD_COUNTER_XMIT_DISCARDS);

struct row {
	const struct mad_fabric_port *port;
	double value; /* of the counter of --top */
};

/* The value or the rate of a counter; NAN: not known. */
static double get_value(const struct mad_fabric_counters_port *each, unsigned counter)
{
	if (!each->reading || !(each->reading->present & MAD_COUNTER_BIT(counter)))
		return NAN;
	if (settings.interval_ms)
		return mad_counters_tracker_rate(each->tracker, counter, MAD_RATE_LATEST);
	return (double)mad_counters_value(each->reading, counter, NULL);
}

static void add_counters(struct table *table, const struct mad_fabric_counters_port *each,
			 uint64_t wanted)
{
	const struct mad_fabric_port *port = each->port, *peer = port->peer;
	char name[NAME_SIZE];

	add_port(table, port);
	add(table, "%s", peer ? node_name(peer->node, name) : "");
	add_port_number(table, peer);
	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++) {
		if (!(wanted & MAD_COUNTER_BIT(i)))
			continue;
		if (isnan(get_value(each, i)))
			add_nothing(table, 1);
		else if (settings.interval_ms)
			add(table, "%.6g", get_value(each, i));
		else
			add(table, "%" PRIu64, mad_counters_value(each->reading, i, NULL));
	}
}

static int compare_rows(const void *a, const void *b)
{
	const struct row *first = a, *second = b;

	if (first->value != second->value)
		return (first->value < second->value) - (first->value > second->value);
	return compare_ports(first->port, second->port);
}

/* The counters of --columns and --top. */
static uint64_t find_wanted(unsigned *top)
{
	uint64_t wanted = MAD_COUNTERS_DEFAULT;

	*top = MAD_COUNTER_COUNT;
	if (settings.top) {
		*top = find_counter(settings.top_counter, strlen(settings.top_counter));
		if (*top == MAD_COUNTER_COUNT)
			die("no counter, or several counters, are %s", settings.top_counter);
		wanted |= MAD_COUNTER_BIT(*top);
	}
	if (settings.all)
		wanted = MAD_COUNTERS_ALL;
	for (unsigned i = 0; settings.columns && i < MAD_COUNTER_COUNT; i++) {
		const char *name = mad_counters_info(i)->name;
		const char *at = strstr(settings.columns, name);

		if (at && (at == settings.columns || at[-1] == ',') &&
		    (!at[strlen(name)] || at[strlen(name)] == ','))
			wanted |= MAD_COUNTER_BIT(i);
	}
	return wanted;
}

int run_counters(void)
{
	const struct mad_fabric *fabric;
	struct mad_fabric_counters *counters;
	const struct mad_fabric_counters_port *each = NULL;
	const struct mad_fabric_port **ports;
	unsigned top, column_count = FIRST_COUNTER;
	uint64_t wanted = find_wanted(&top);
	size_t count = 0, shown_count;
	struct table table;
	struct row *rows;

	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++)
		if (wanted & MAD_COUNTER_BIT(i))
			columns[column_count++] = (struct column){
				.name = mad_counters_info(i)->name,
				.is_number = true,
				.is_hidden = i != top && (top < MAD_COUNTER_COUNT ||
							  !(shown & MAD_COUNTER_BIT(i)))};
	table_begin(&table, "counters", columns, column_count);
	fabric = discover(NULL);
	check_selection(fabric, NULL);
	counters = read_counters(fabric, wanted, false);
	ports = sorted_ports(fabric);
	rows = allocate(fabric->port_count, sizeof(*rows));
	for (size_t i = 0; i < fabric->port_count; i++) {
		each = mad_fabric_counters_find(counters, ports[i]->node->guid,
						ports[i]->number);
		if (!is_selected(ports[i]) || !each || !each->reading || each->error)
			continue;
		rows[count].port = ports[i];
		if (top < MAD_COUNTER_COUNT) {
			rows[count].value = get_value(each, top);
			if (isnan(rows[count].value))
				rows[count].value = -1;
		}
		count++;
	}
	if (top < MAD_COUNTER_COUNT)
		qsort(rows, count, sizeof(*rows), compare_rows);
	shown_count = settings.top && settings.top < count ? settings.top : count;
	for (size_t i = 0; i < shown_count; i++)
		add_counters(&table,
			     mad_fabric_counters_find(counters, rows[i].port->node->guid,
						      rows[i].port->number),
			     wanted);
	free(rows);
	free(ports);
	mad_fabric_counters_free(counters);
	return print(&table, fabric);
}
