/* SPDX-License-Identifier: BSD-2-Clause */

/* Counters: which of them are faults, and the commands counters and reset. */

#include "ibfabric.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <unistd.h>

/* A signal waits for the request in flight: with three attempts less than a second. */
#define RESET_TIMEOUT_MS 300

/*
 * The totals are those that ibqueryerrors comes with. Switches count relayed multicast packets
 * that return to their source as rcv_switch_relay_errors, so that a total tells nothing.
 */
static struct threshold {
	unsigned counter; /* enum mad_counter */
	enum kind kind;
	uint64_t total; /* more since the last clear is a fault */
	uint64_t rise;  /* more between two readings is a fault */
} thresholds[] = {
	{MAD_COUNTER_LINK_DOWNED, KIND_FLAPPING, 10, 0},
	{MAD_COUNTER_SYMBOL_ERRORS, KIND_LINK_ERRORS, 10, 0},
	{MAD_COUNTER_LINK_RECOVERIES, KIND_LINK_ERRORS, 10, 0},
	{MAD_COUNTER_RCV_ERRORS, KIND_LINK_ERRORS, 10, 0},
	{MAD_COUNTER_LOCAL_LINK_INTEGRITY_ERRORS, KIND_LINK_ERRORS, 10, 0},
	{MAD_COUNTER_XMIT_DISCARDS, KIND_DISCARDS, 100, 0},
	{MAD_COUNTER_RCV_REMOTE_PHYSICAL_ERRORS, KIND_REMOTE_ERRORS, 100, 100},
	{MAD_COUNTER_RCV_SWITCH_RELAY_ERRORS, KIND_ROUTING, UINT64_MAX, 100},
	{MAD_COUNTER_XMIT_CONSTRAINT_ERRORS, KIND_PARTITION, 100, 0},
	{MAD_COUNTER_RCV_CONSTRAINT_ERRORS, KIND_PARTITION, 100, 0},
	{MAD_COUNTER_EXCESSIVE_BUFFER_OVERRUN_ERRORS, KIND_BUFFERS, 10, 0},
	{MAD_COUNTER_VL15_DROPPED, KIND_DROPPED_MADS, 100, 100},
	{MAD_COUNTER_QP1_DROPPED, KIND_DROPPED_MADS, 100, 100},
};
#define THRESHOLD_COUNT (sizeof(thresholds) / sizeof(thresholds[0]))

/* --- thresholds ----------------------------------------------------------------------- */

/* A counter by the name of the library or the specification, or the beginning of its name if
 * it is the only one; MAD_COUNTER_COUNT: none. */
static unsigned find_counter(const char *name, size_t length)
{
	unsigned begins = MAD_COUNTER_COUNT, count = 0;

	for (unsigned i = 0; length && i < MAD_COUNTER_COUNT; i++) {
		const struct mad_counter_info *info = mad_counters_info(i);
		bool has_name = strncasecmp(info->name, name, length) == 0;

		if ((has_name && !info->name[length]) ||
		    (strncasecmp(info->field, name, length) == 0 && !info->field[length]))
			return i;
		if (has_name) {
			begins = i;
			count++;
		}
	}
	return count == 1 ? begins : MAD_COUNTER_COUNT;
}

/* NAME=LIMIT or NAME.rise=LIMIT; a limit is a number or "off". Counters that are not errors,
 * such as ibqueryerrors' PortXmitWait, are no faults: the line is skipped. */
static bool read_line(char *line)
{
	char *equals = strchr(line, '='), *end;
	size_t length = equals ? (size_t)(equals - line) : 0;
	bool is_rise = length > 5 && strncmp(equals - 5, ".rise", 5) == 0;
	unsigned counter = find_counter(line, is_rise ? length - 5 : length);
	uint64_t limit = UINT64_MAX;

	errno = 0;
	if (equals && strcmp(equals + 1, "off") != 0) {
		limit = strtoull(equals + 1, &end, 0);
		if (!isdigit((unsigned char)equals[1]) || *end || errno)
			return false;
	}
	for (unsigned i = 0; i < THRESHOLD_COUNT; i++)
		if (thresholds[i].counter == counter)
			*(is_rise ? &thresholds[i].rise : &thresholds[i].total) = limit;
	return counter < MAD_COUNTER_COUNT;
}

void load_thresholds(const char *path)
{
	FILE *file = open_file(path);
	unsigned number = 0;
	char line[256];

	while (fgets(line, sizeof(line), file)) {
		size_t used = 0;

		number++;
		/* the line without its comment and its blanks */
		for (size_t i = 0; line[i] && line[i] != '#'; i++)
			if (!isspace((unsigned char)line[i]))
				line[used++] = line[i];
		line[used] = 0;
		if (used && !read_line(line))
			die("%s: line %u: unknown counter, or not COUNTER=NUMBER", path,
			    number);
	}
	if (ferror(file))
		die("%s: %s", path, strerror(errno));
	fclose(file);
}

/* --- faults: one finding a link and cause ----------------------------------------------- */

#define KIND_BIT(kind) (UINT64_C(1) << (kind))
/* What a link that goes down causes: packets that wait for it are discarded. */
#define DOWN_BITS \
	(KIND_BIT(KIND_FLAPPING) | KIND_BIT(KIND_LINK_ERRORS) | KIND_BIT(KIND_DISCARDS))

static struct mad_fabric_counters *counters;
/* by the index of a port: kinds of its faults, and whether its link went down meanwhile */
static uint64_t *faults;
static bool *went_down;

/* Whether a counter of a port is a fault. */
static bool is_fault(const struct mad_fabric_counters_port *each, const struct threshold *limit,
		     uint64_t *total, uint64_t *rise)
{
	*total = mad_counters_value(each->reading, limit->counter, NULL);
	*rise = each->totals ? mad_counters_value(&each->totals->total, limit->counter, NULL)
			     : 0;
	return *total > limit->total || *rise > limit->rise;
}

void judge_counters(const struct mad_fabric *fabric)
{
	const struct mad_fabric_counters_port *each = NULL;
	uint64_t total, rise;

	faults = allocate(fabric->port_count, sizeof(*faults));
	went_down = allocate(fabric->port_count, sizeof(*went_down));
	counters = read_counters(fabric, MAD_COUNTERS_ERRORS);
	while ((each = mad_fabric_counters_next(counters, each)))
		for (unsigned i = 0; each->port && each->reading && i < THRESHOLD_COUNT; i++)
			if (is_fault(each, &thresholds[i], &total, &rise)) {
				faults[each->port->index] |= KIND_BIT(thresholds[i].kind);
				if (rise && thresholds[i].kind == KIND_FLAPPING)
					went_down[each->port->index] = true;
			}
}

/* "at leaf-1/3 symbol_errors +50 (78), ..." */
static void describe(FILE *text, const struct mad_fabric_port *port, uint64_t kinds)
{
	const struct mad_fabric_counters_port *each;
	char place[PLACE_SIZE];
	const char *separator = "";
	uint64_t total, rise;

	each = mad_fabric_counters_find(counters, port->node->guid, port->number);
	if (!each || !each->reading || !(faults[port->index] & kinds))
		return;
	fprintf(text, "%sat %s ", ftell(text) ? ", " : "", short_place(at_port(port), place));
	for (unsigned i = 0; i < THRESHOLD_COUNT; i++) {
		const struct threshold *limit = &thresholds[i];

		if (!(kinds & KIND_BIT(limit->kind)) || !is_fault(each, limit, &total, &rise))
			continue;
		fprintf(text, "%s%s", separator, mad_counters_info(limit->counter)->name);
		if (rise)
			fprintf(text, " +%" PRIu64 " (%" PRIu64, rise, total);
		else
			fprintf(text, " %" PRIu64, total);
		if (each->reading->at_maximum & MAD_COUNTER_BIT(limit->counter))
			fputs(", at its maximum", text);
		fputs(rise ? ")" : "", text);
		separator = ", ";
	}
}

/* The faults of these kinds at both ends of a link; free() it. */
char *describe_faults(const struct mad_fabric_port *port, uint64_t kinds)
{
	size_t size;
	char *memory;
	FILE *text = open_text(&memory, &size);

	describe(text, port, kinds);
	if (port->peer && port->peer != port)
		describe(text, port->peer, kinds);
	close_text(text);
	return memory;
}

/* If all links of a node went down, and they are several, they are one finding. A node that
 * restarts has its counters at 0: the other ends count. */
static void check_restart(const struct mad_fabric_node *node)
{
	const struct mad_fabric_port *port;
	unsigned links = 0;

	for (unsigned i = 0; i <= node->port_count; i++) {
		port = mad_fabric_get_port(node, i);
		if (port && port->peer && !went_down[port->index] &&
		    !went_down[port->peer->index])
			return;
		links += port && port->peer;
	}
	if (links < 2)
		return;
	found(KIND_RESTARTED, at_node(node), nowhere, "all its %u links went down", links);
	for (unsigned i = 0; i <= node->port_count; i++) {
		port = mad_fabric_get_port(node, i);
		if (port && port->peer) {
			faults[port->index] &= ~DOWN_BITS;
			faults[port->peer->index] &= ~DOWN_BITS;
		}
	}
}

static void report_port(const struct mad_fabric_port *port)
{
	uint64_t kinds = faults[port->index] | (port->peer ? faults[port->peer->index] : 0);

	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		uint64_t together = kind == KIND_FLAPPING ? DOWN_BITS : KIND_BIT(kind);
		char *text;

		if (!(kinds & KIND_BIT(kind)))
			continue;
		kinds &= ~together;
		text = describe_faults(port, together);
		found(kind, at_port(port), at_port(port->peer), "%s", text);
		free(text);
	}
}

void check_counters(const struct mad_fabric *fabric)
{
	const struct mad_fabric_port *port = NULL;

	judge_counters(fabric);
	for (size_t i = 0; settings.interval_ms && i < fabric->node_count; i++)
		check_restart(mad_fabric_get_node(fabric, i));
	while ((port = mad_fabric_next_port(fabric, port)))
		if (is_first_end(port))
			report_port(port);
}

/* --- the command counters ----------------------------------------------------------------- */

#define FIRST_COLUMNS "node -guid #port -peer #-peer_port"
#define FIRST_COUNTER 5 /* of the columns */

struct row {
	const struct mad_fabric_port *port;
	double value; /* of the counter of --top */
};

/* The value or the rate of a counter; NAN: not known. */
static double get_value(const struct mad_fabric_counters_port *each, unsigned counter)
{
	if (!(each->reading->present & MAD_COUNTER_BIT(counter)))
		return NAN;
	if (settings.interval_ms)
		return mad_counters_tracker_rate(each->tracker, counter, MAD_RATE_LATEST);
	return (double)mad_counters_value(each->reading, counter, NULL);
}

static void add_counters(struct table *table, const struct mad_fabric_port *port)
{
	const struct mad_fabric_counters_port *each =
		mad_fabric_counters_find(counters, port->node->guid, port->number);
	char name[NAME_SIZE];

	add_place(table, at_port(port));
	add(table, "%s", port->peer ? node_name(port->peer->node, name) : "");
	add_if(table, port->peer, "%u", port->peer ? port->peer->number : 0);
	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++)
		if (isnan(get_value(each, i)))
			add(table, "%s", "");
		else if (settings.interval_ms)
			add(table, "%.6g", get_value(each, i));
		else
			add(table, "%" PRIu64, mad_counters_value(each->reading, i, NULL));
}

/* The highest values first; what is not known last. */
static int compare_rows(const void *a, const void *b)
{
	const struct row *first = a, *second = b;

	if (first->value != second->value)
		return (first->value < second->value) - (first->value > second->value);
	return compare_places(at_port(first->port), at_port(second->port));
}

int run_counters(void)
{
	static const uint64_t in_text = MAD_COUNTER_BIT(MAD_COUNTER_XMIT_BYTES) |
					MAD_COUNTER_BIT(MAD_COUNTER_RCV_BYTES) |
					MAD_COUNTER_BIT(MAD_COUNTER_XMIT_WAIT_TICKS) |
					MAD_COUNTER_BIT(MAD_COUNTER_SYMBOL_ERRORS) |
					MAD_COUNTER_BIT(MAD_COUNTER_LINK_DOWNED) |
					MAD_COUNTER_BIT(MAD_COUNTER_RCV_ERRORS) |
					MAD_COUNTER_BIT(MAD_COUNTER_XMIT_DISCARDS);
	unsigned top = MAD_COUNTER_COUNT;
	char columns[FIRST_COUNTER + COLUMNS_MOST * COLUMN_SIZE] = FIRST_COLUMNS;
	const struct mad_fabric_port **ports;
	const struct mad_fabric *fabric;
	struct table table;
	uint64_t wanted;
	size_t count = 0;
	struct row *rows;

	if (settings.top) {
		top = find_counter(settings.top_counter, strlen(settings.top_counter));
		if (top == MAD_COUNTER_COUNT)
			die("--top: %s is not the name of a counter, or matches several",
			    settings.top_counter);
	}
	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++) {
		bool is_shown = settings.top ? i == top : (in_text & MAD_COUNTER_BIT(i)) != 0;
		bool is_usual = (MAD_COUNTERS_DEFAULT & MAD_COUNTER_BIT(i)) != 0;

		sprintf(columns + strlen(columns), " #%s%s",
			is_shown   ? ""
			: is_usual ? "-"
				   : "--",
			mad_counters_info(i)->name);
	}
	table_begin(&table, "counters", columns);
	wanted = settings.top ? MAD_COUNTER_BIT(top) : 0;
	for (unsigned i = 0; i < table.shown_count; i++)
		if (table.shown[i] >= FIRST_COUNTER)
			wanted |= MAD_COUNTER_BIT(table.shown[i] - FIRST_COUNTER);
	fabric = discover(NULL);
	counters = read_counters(fabric, wanted);
	ports = sorted_ports(fabric);
	rows = allocate(fabric->port_count, sizeof(*rows));
	for (size_t i = 0; i < fabric->port_count; i++) {
		const struct mad_fabric_counters_port *each = mad_fabric_counters_find(
			counters, ports[i]->node->guid, ports[i]->number);

		if (!is_selected(at_port(ports[i])) || !each || !each->reading || each->error)
			continue;
		rows[count] = (struct row){ports[i], settings.top ? get_value(each, top) : 0};
		if (isnan(rows[count].value))
			rows[count].value = -1;
		count++;
	}
	if (settings.top)
		qsort(rows, count, sizeof(*rows), compare_rows);
	for (size_t i = 0; i < count && (!settings.top || i < settings.top); i++)
		add_counters(&table, rows[i].port);
	return table_print(&table, fabric);
}

/* --- the command reset ---------------------------------------------------------------------
 */

static bool is_confirmed(size_t count)
{
	char answer[16];

	if (settings.yes)
		return true;
	if (!isatty(STDIN_FILENO))
		die("reset: standard input is not a terminal; use --yes to clear without "
		    "confirmation");
	fprintf(stderr, "Clear the counters of %zu ports? [y/N] ", count);
	return fgets(answer, sizeof(answer), stdin) && (*answer == 'y' || *answer == 'Y');
}

static int reset_port(const struct mad_fabric_port *port)
{
	const struct mad_counters_options options = {.counters = MAD_COUNTERS_DEFAULT,
						     .timeout_ms = RESET_TIMEOUT_MS};
	ib_portid_t to = {.lid = port->gmp_lid};

	return port->gmp_lid ? mad_counters_reset(ibmad_port, &to, port->number, &options)
			     : -EADDRNOTAVAIL;
}

int run_reset(void)
{
	const struct mad_fabric_node *silent = NULL;
	const struct mad_fabric_port **ports;
	const struct mad_fabric *fabric;
	size_t wanted = 0, i;
	struct table table;

	if (!settings.arguments[0] && !settings.only_hosts && !settings.only_switches)
		die("reset: no ports selected; use '*' for all, or see ibfabric reset --help");
	table_begin(&table, "ports", "node guid #port result");
	fabric = discover(NULL);
	ports = sorted_ports(fabric);
	for (i = 0; i < fabric->port_count; i++)
		if (is_selected(at_port(ports[i])) && has_counters(ports[i]))
			ports[wanted++] = ports[i];
	if (!wanted)
		die("reset: none of the selected ports has counters");
	if (!is_confirmed(wanted))
		die("reset: cancelled, no counters were cleared");
	for (i = 0; i < wanted && !is_over(); i++) {
		int error = ports[i]->node == silent ? -ETIMEDOUT : reset_port(ports[i]);

		show_progress("%zu of %zu ports", i + 1, wanted);
		if (!error) {
			add_place(&table, at_port(ports[i]));
			add(&table, "cleared");
		} else if (error != -ETIMEDOUT) {
			record_failure(at_port(ports[i]), "the counters were not cleared: %s",
				       error == -EADDRNOTAVAIL ? "the port has no LID"
							       : error_text(error));
		} else if (ports[i]->node != silent) { /* one failure for the node */
			silent = ports[i]->node;
			record_failure(at_node(silent),
				       "the counters were not cleared: no response");
		}
	}
	end_progress();
	if (i < wanted)
		record_failure(nowhere, "%s: %zu ports were not cleared", why_over(),
			       wanted - i);
	return table_print(&table, fabric);
}
