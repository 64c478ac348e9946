/* SPDX-License-Identifier: BSD-2-Clause */

/* What check has found: the kinds, the worst first, and their output. */

#include "ibfabric.h"

#include <stdarg.h>

struct finding {
	enum kind kind;
	struct place place, peer;
	char *text;
};

enum severity {
	CRITICAL,
	ERROR,
	WARNING
};

static const struct {
	const char *name, *colour;
} severities[] = {
	[CRITICAL] = {"critical", "\033[1;31m"},
	[ERROR] = {"error", "\033[31m"},
	[WARNING] = {"warning", "\033[33m"},
};

#define CABLE    "reseat or clean the cable, then replace it"
#define INTENDED "if this is intended, store the fabric again"

static const struct {
	const char *name;
	enum severity severity;
	const char *action;
} kinds[] = {
	[KIND_NO_SM] = {"no-sm", CRITICAL, "start a subnet manager"},
	[KIND_TWO_MASTERS] = {"two-masters", CRITICAL,
			      "stop one subnet manager; give both the same SM_Key"},
	[KIND_DUPLICATE_GUID] = {"duplicate-guid", CRITICAL,
				 "burn the GUIDs of the label into one of the two"},
	[KIND_DUPLICATE_LID] = {"duplicate-lid", CRITICAL,
				"restart the subnet manager, so that it assigns LIDs again"},
	[KIND_NO_ANSWER] = {"no-answer", ERROR,
			    "look at its power, firmware and M_Key; restart it"},
	[KIND_BAD_ANSWER] = {"bad-answer", ERROR, "update its firmware"},
	[KIND_NODE_MISSING] = {"node-missing", ERROR, "look at its power and its cables"},
	[KIND_LINK_MISSING] = {"link-missing", ERROR, "look at the cable and both ports"},
	[KIND_LINK_MOVED] = {"link-moved", ERROR,
			     "put the cable back, or store the fabric again"},
	[KIND_CONTRADICTION] = {"contradiction", ERROR,
				"repeat the check; was a cable moved just now?"},
	[KIND_LOOP] = {"loop", ERROR, "remove the cable, or connect its other end"},
	[KIND_RESTARTED] = {"restarted", ERROR, "look at its power and its log"},
	[KIND_FLAPPING] = {"flapping", ERROR, CABLE},
	[KIND_LINK_ERRORS] = {"link-errors", ERROR, CABLE},
	[KIND_SLOW_LINK] = {"slow-link", ERROR, CABLE},
	[KIND_NOT_ACTIVE] = {"not-active", ERROR, "look at the log of the subnet manager"},
	[KIND_LINK_MISMATCH] = {"link-mismatch", ERROR,
				"repeat the check; then reset one of the ports"},
	[KIND_OTHER_SM] = {"other-sm", ERROR, "restart the subnet manager"},
	[KIND_DISCARDS] = {"discards", WARNING,
			   "look for congestion: ibfabric counters --top 20 xmit_wait"},
	[KIND_BUFFERS] = {"buffer-overruns", WARNING,
			  "look at the buffers and the length of the cable"},
	[KIND_ROUTING] = {"relay-errors", WARNING, "look at the routes and multicast groups"},
	[KIND_PARTITION] = {"partition-errors", WARNING,
			    "look at the partitions (P_Keys) of the two ends"},
	[KIND_DROPPED_MADS] = {"dropped-mads", WARNING,
			       "look for programs that send many MADs"},
	[KIND_REMOTE_ERRORS] = {"remote-errors", WARNING,
				"the fault is at another link: look for link-errors"},
	[KIND_DUPLICATE_NAME] = {"duplicate-name", WARNING, "give one of them another name"},
	[KIND_FACTORY_NAME] = {"factory-name", WARNING, "give it a name"},
	[KIND_NODE_REPLACED] = {"node-replaced", WARNING, INTENDED},
	[KIND_NODE_NEW] = {"node-new", WARNING, INTENDED},
	[KIND_NODE_CHANGED] = {"node-changed", WARNING, INTENDED},
	[KIND_LINK_NEW] = {"link-new", WARNING, INTENDED},
	[KIND_LINK_CHANGED] = {"link-changed", WARNING, INTENDED},
	[KIND_PORT_CHANGED] = {"port-changed", WARNING, INTENDED},
};

_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == KIND_COUNT, "a kind has no name");

const struct place nowhere;
static struct finding *findings;
static size_t findings_used, findings_size;

struct place at_port(const struct mad_fabric_port *port)
{
	return (struct place){port->node, port};
}

struct place at_node(const struct mad_fabric_node *node)
{
	return (struct place){node, NULL};
}

static bool is_place_selected(struct place place)
{
	return place.port ? is_selected(place.port)
			  : place.node && is_node_selected(place.node);
}

void found(enum kind kind, struct place place, struct place peer, const char *format, ...)
{
	va_list args;
	char *text;

	if ((place.node || peer.node) && !is_place_selected(place) && !is_place_selected(peer))
		return;
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		die("out of memory");
	va_end(args);
	if (findings_used == findings_size) {
		findings_size = findings_size * 2 + 64;
		findings = reallocarray(findings, findings_size, sizeof(*findings));
		if (!findings)
			die("out of memory");
	}
	findings[findings_used++] = (struct finding){kind, place, peer, text};
}

size_t finding_count(void)
{
	return findings_used;
}

bool has_finding(enum kind kind)
{
	for (size_t i = 0; i < findings_used; i++)
		if (findings[i].kind == kind)
			return true;
	return false;
}

static int compare_places(struct place a, struct place b)
{
	int order;

	if (!a.node || !b.node)
		return (a.node != NULL) - (b.node != NULL);
	order = compare_nodes(a.node, b.node);
	if (order || !a.port || !b.port)
		return order;
	return a.port->number - b.port->number;
}

static int compare(const void *a, const void *b)
{
	const struct finding *first = a, *second = b;
	int order = (int)first->kind - (int)second->kind;

	if (!order)
		order = compare_places(first->place, second->place);
	if (!order)
		order = compare_places(first->peer, second->peer);
	return order ? order : strcmp(first->text, second->text);
}

static char *place_text(struct place place, char text[PLACE_SIZE])
{
	return place.port ? place_of_port(place.port, text) : place_of_node(place.node, text);
}

static void print_lines(const struct mad_fabric *fabric)
{
	bool colour = wants_colour();
	char place[PLACE_SIZE], peer[PLACE_SIZE];

	for (size_t i = 0; i < findings_used; i++) {
		const struct finding *each = &findings[i];
		enum severity severity = kinds[each->kind].severity;

		printf("%s%s%s %s: ", colour ? severities[severity].colour : "",
		       severities[severity].name, colour ? "\033[0m" : "",
		       kinds[each->kind].name);
		if (each->place.node)
			printf("%s%s%s: ", place_text(each->place, place),
			       each->peer.node ? " to " : "",
			       each->peer.node ? place_text(each->peer, peer) : "");
		printf("%s; %s\n", each->text, kinds[each->kind].action);
	}
	print_failures(stdout, "not known: ");
	printf("%zu nodes, %zu ports: ", fabric->node_count, fabric->port_count);
	if (findings_used)
		printf("%zu finding%s", findings_used, findings_used == 1 ? "" : "s");
	else
		fputs(failure_count() ? "no finding in what was read" : "clean", stdout);
	if (failure_count())
		printf(", %zu not known", failure_count());
	putchar('\n');
}

void print_findings(const struct mad_fabric *fabric)
{
	static const struct column columns[] = {
		{.name = "severity"},   {.name = "kind"},
		{.name = "node"},       {.name = "guid"},
		{.name = "port", true}, {.name = "peer"},
		{.name = "peer_guid"},  {.name = "peer_port", true},
		{.name = "text"},       {.name = "action"},
	};
	struct table table;

	if (findings_used)
		qsort(findings, findings_used, sizeof(*findings), compare);
	if (settings.form == FORM_TEXT) {
		print_lines(fabric);
		return;
	}
	table_begin(&table, "findings", columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < findings_used; i++) {
		const struct finding *each = &findings[i];

		add(&table, "%s", severities[kinds[each->kind].severity].name);
		add(&table, "%s", kinds[each->kind].name);
		add_node(&table, each->place.node);
		add_port_number(&table, each->place.port);
		add_node(&table, each->peer.node);
		add_port_number(&table, each->peer.port);
		add(&table, "%s", each->text);
		add(&table, "%s", kinds[each->kind].action);
	}
	table_print(&table, fabric);
}
