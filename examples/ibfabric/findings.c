/* SPDX-License-Identifier: BSD-2-Clause */

/* What check and diff have found, the worst first. */

#include "ibfabric.h"

#include <stdarg.h>
#include <unistd.h>

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

#define KIND_ROW(constant, severity, name, action) {severity, name, action},
static const struct {
	enum severity severity;
	const char *name, *action;
} kinds[] = {KINDS(KIND_ROW)};

static struct finding *findings;
static size_t findings_used;

void found(enum kind kind, struct place place, struct place peer, const char *format, ...)
{
	va_list args;

	if ((place.node || peer.node) && !is_selected(place) && !is_selected(peer))
		return;
	findings = extend(findings, findings_used, sizeof(*findings));
	findings[findings_used] = (struct finding){.kind = kind, .place = place, .peer = peer};
	va_start(args, format);
	if (vasprintf(&findings[findings_used++].text, format, args) < 0)
		die("out of memory");
	va_end(args);
}

bool has_finding(enum kind kind)
{
	size_t i = 0;

	while (i < findings_used && findings[i].kind != kind)
		i++;
	return i < findings_used;
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

static void print_lines(const struct mad_fabric *fabric)
{
	const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
	bool has_colour = isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && terminal &&
			  strcmp(terminal, "dumb") != 0;
	char place[PLACE_SIZE];

	for (size_t i = 0; i < findings_used; i++) {
		const struct finding *each = &findings[i];
		enum severity severity = kinds[each->kind].severity;

		printf("%s%s%s %s: ", has_colour ? severities[severity].colour : "",
		       severities[severity].name, has_colour ? "\033[0m" : "",
		       kinds[each->kind].name);
		if (each->place.node)
			fputs(place_text(each->place, place), stdout);
		if (each->peer.node)
			printf(" to %s", place_text(each->peer, place));
		printf("%s%s; %s\n", each->place.node ? ": " : "", each->text,
		       kinds[each->kind].action);
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

int print_findings(const struct mad_fabric *fabric)
{
	struct table table;

	if (findings_used)
		qsort(findings, findings_used, sizeof(*findings), compare);
	if (settings.json || settings.csv) {
		table_begin(
			&table, "findings",
			"severity kind node guid #port peer peer_guid #peer_port text action");
		for (size_t i = 0; i < findings_used; i++) {
			const struct finding *each = &findings[i];

			add(&table, "%s\t%s", severities[kinds[each->kind].severity].name,
			    kinds[each->kind].name);
			add_place(&table, each->place);
			add_place(&table, each->peer);
			add(&table, "%s\t%s", each->text, kinds[each->kind].action);
		}
		table_print(&table, fabric);
	} else {
		print_lines(fabric);
	}
	return findings_used ? EXIT_FOUND : failure_count() ? EXIT_FAILED : EXIT_CLEAN;
}
