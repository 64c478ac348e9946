/* SPDX-License-Identifier: BSD-2-Clause */

/* Findings, failures, and tables as aligned text, JSON and CSV. */

#include "ibfabric.h"

#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

/* A finding or a failure. */
struct note {
	enum kind kind;
	uint64_t identity; /* of the cause; 0: its own */
	struct place place, peer;
	char *text;
};

struct notes {
	struct note *array;
	size_t count;
};

static struct notes findings, failures;

#define KIND_ROW(constant, severity, name, action) {severity, name, action},
static const struct {
	enum {
		CRITICAL,
		ERROR,
		WARNING
	} severity;
	const char *name, *action;
} kinds[] = {KINDS(KIND_ROW)};

static const char *const severities[] = {"critical", "error", "warning"};
static const char *const colours[] = {"\033[1;31m", "\033[31m", "\033[33m"};

/* --- findings and failures ------------------------------------------------------------ */

static void __attribute__((format(printf, 3, 0)))
add_note(struct notes *notes, struct note note, const char *format, va_list args)
{
	notes->array = extend(notes->array, notes->count, sizeof(note));
	if (vasprintf(&note.text, format, args) < 0)
		die("out of memory");
	notes->array[notes->count++] = note;
}

void record_failure(struct place place, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add_note(&failures, (struct note){.place = place}, format, args);
	va_end(args);
}

void found_of(uint64_t identity, enum kind kind, struct place place, struct place peer,
	      const char *format, ...)
{
	va_list args;

	if ((place.node || peer.node) && !is_selected(place) && !is_selected(peer))
		return;
	va_start(args, format);
	add_note(&findings, (struct note){kind, identity, place, peer, NULL}, format, args);
	va_end(args);
}

bool has_finding(enum kind kind)
{
	size_t i = 0;

	while (i < findings.count && findings.array[i].kind != kind)
		i++;
	return i < findings.count;
}

size_t failure_count(void)
{
	return failures.count;
}

static int compare(const void *a, const void *b)
{
	const struct note *first = a, *second = b;
	int order = (int)first->kind - (int)second->kind;

	if (!order)
		order = (first->identity > second->identity) -
			(first->identity < second->identity);
	if (!order)
		order = compare_places(first->place, second->place);
	if (!order)
		order = compare_places(first->peer, second->peer);
	return order ? order : strcmp(first->text, second->text);
}

/* The worst first. A cause that is seen at several ports is one finding with all of them. */
static void sort_findings(void)
{
	struct note *last = NULL;
	char place[PLACE_SIZE];
	const char *separator = "";
	size_t kept = 0;

	if (findings.count)
		qsort(findings.array, findings.count, sizeof(*findings.array), compare);
	for (size_t i = 0; i < findings.count; i++) {
		const struct note *each = &findings.array[i];

		bool is_at_place = each->place.port || !each->peer.node;

		if (!last || !each->identity || each->kind != last->kind ||
		    each->identity != last->identity) {
			last = &findings.array[kept++];
			*last = *each;
			separator = "; also at ";
			continue;
		}
		if (is_at_place && !each->place.port && each->place.node == last->place.node)
			continue;
		if (asprintf(&last->text, "%s%s%s", last->text, separator,
			     short_place(is_at_place ? each->place : each->peer, place)) < 0)
			die("out of memory");
		separator = ", ";
	}
	findings.count = kept;
}

/* --- lines ------------------------------------------------------------------------------ */

/* The places and the text of a note. */
static void print_note(FILE *file, const struct note *note)
{
	char place[PLACE_SIZE];

	if (note->place.node)
		fputs(place_text(note->place, place), file);
	if (note->peer.node)
		fprintf(file, " to %s", place_text(note->peer, place));
	fprintf(file, "%s%s", note->place.node ? ": " : "", note->text);
}

void print_failures(FILE *file, const char *prefix)
{
	for (size_t i = 0; i < failures.count; i++) {
		fputs(prefix, file);
		print_note(file, &failures.array[i]);
		fputc('\n', file);
	}
}

static void print_lines(const struct mad_fabric *fabric)
{
	const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
	bool has_colour = isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && terminal &&
			  strcmp(terminal, "dumb") != 0;

	for (size_t i = 0; i < findings.count; i++) {
		enum kind kind = findings.array[i].kind;

		printf("%s%s%s %s: ", has_colour ? colours[kinds[kind].severity] : "",
		       severities[kinds[kind].severity], has_colour ? "\033[0m" : "",
		       kinds[kind].name);
		print_note(stdout, &findings.array[i]);
		printf("; %s\n", kinds[kind].action);
	}
	print_failures(stdout, "not known: ");
	printf("%zu nodes, %zu ports: ", fabric->node_count, fabric->port_count);
	if (findings.count)
		printf("%zu finding%s", findings.count, findings.count == 1 ? "" : "s");
	else
		fputs(failures.count ? "no findings in what was read" : "clean", stdout);
	if (failures.count)
		printf(", %zu not known", failures.count);
	putchar('\n');
}

int print_findings(const struct mad_fabric *fabric)
{
	struct table table;

	sort_findings();
	if (settings.json || settings.csv) {
		table_begin(
			&table, "findings",
			"severity kind node guid #port peer peer_guid #peer_port text action");
		for (size_t i = 0; i < findings.count; i++) {
			const struct note *each = &findings.array[i];

			add(&table, "%s\t%s", severities[kinds[each->kind].severity],
			    kinds[each->kind].name);
			add_place(&table, each->place);
			add_place(&table, each->peer);
			add(&table, "%s\t%s", each->text, kinds[each->kind].action);
		}
		table_print(&table, fabric);
	} else {
		print_lines(fabric);
	}
	return findings.count ? EXIT_FOUND : failures.count ? EXIT_FAILED : EXIT_CLEAN;
}

int end_output(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "ibfabric: the output could not be written: %s\n", strerror(errno));
	return EXIT_FAILED;
}

/* --- columns and cells ------------------------------------------------------------ */

/* The column whose name is the beginning of a list; exits if there is none. */
static unsigned find_column(const struct table *table, const char *list, size_t length)
{
	for (unsigned i = 0; i < table->column_count; i++)
		if (strlen(table->columns[i].name) == length &&
		    strncmp(table->columns[i].name, list, length) == 0)
			return i;
	fprintf(stderr, "ibfabric: unknown column %.*s; the columns are:", (int)length, list);
	for (unsigned i = 0; i < table->column_count; i++)
		fprintf(stderr, " %s", table->columns[i].name);
	fputc('\n', stderr);
	exit(EXIT_FAILED);
}

void table_begin(struct table *table, const char *name, const char *columns)
{
	*table = (struct table){.name = name};
	for (const char *at = columns; *at; at += strcspn(at, " "), at += *at == ' ') {
		struct column *column = &table->columns[table->column_count++];

		for (; *at == '#'; at++)
			column->is_number = true;
		for (; *at == '-'; at++)
			column->hidden++;
		snprintf(column->name, sizeof(column->name), "%.*s", (int)strcspn(at, " "), at);
	}
	for (unsigned i = 0; !settings.columns && i < table->column_count; i++)
		if (table->columns[i].hidden <= (settings.json || settings.csv))
			table->shown[table->shown_count++] = i;
	for (const char *at = settings.columns; at && *at; at += *at == ',') {
		size_t length = strcspn(at, ",");
		unsigned column = find_column(table, at, length);

		if (table->shown_count < COLUMNS_MOST)
			table->shown[table->shown_count++] = column;
		at += length;
	}
	table->text = open_text(&table->memory, &table->size);
	for (unsigned i = 0; i < table->column_count; i++)
		add(table, "%s", table->columns[i].name);
}

void add_if(struct table *table, bool is_known, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (is_known)
		vfprintf(table->text, format, args);
	va_end(args);
	fputc('\t', table->text);
}

void add_place(struct table *table, struct place place)
{
	char name[NAME_SIZE];

	add(table, "%s", place.node ? node_name(place.node, name) : "");
	add_if(table, place.node, "0x%016" PRIx64, place.node ? place.node->guid : 0);
	add_if(table, place.port, "%u", place.port ? place.port->number : 0);
}

/* --- the three forms --------------------------------------------------------------- */

/* In characters of UTF-8. */
static int text_width(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void print_text(const struct table *table, char **cells, size_t row_count)
{
	int widths[COLUMNS_MOST] = {0};

	if (row_count == 1)
		return;
	for (size_t i = 0; i < row_count * table->column_count; i++)
		if (widths[i % table->column_count] < text_width(cells[i]))
			widths[i % table->column_count] = text_width(cells[i]);
	for (size_t row = 0; row < row_count; row++) {
		for (unsigned i = 0; i < table->shown_count; i++) {
			unsigned column = table->shown[i];
			const char *cell = cells[row * table->column_count + column];
			int blanks = widths[column] - text_width(*cell ? cell : "-");
			bool is_number = table->columns[column].is_number;

			printf("%*s%s", is_number ? blanks : 0, "", *cell ? cell : "-");
			if (i + 1 < table->shown_count)
				printf("%*s", is_number ? 2 : blanks + 2, "");
		}
		putchar('\n');
	}
}

static void print_csv_cell(const char *text, const char *end)
{
	bool is_quoted = strpbrk(text, "\",\r\n") != NULL;

	fputs(is_quoted ? "\"" : "", stdout);
	for (; *text; text++) {
		if (*text == '"')
			putchar('"');
		putchar(*text);
	}
	printf(is_quoted ? "\"%s" : "%s", end);
}

/* The last column is "failure": empty, or what a row would have had. */
static void print_csv(const struct table *table, char **cells, size_t row_count)
{
	for (size_t row = 0; row < row_count; row++, cells += table->column_count) {
		for (unsigned i = 0; i < table->shown_count; i++)
			print_csv_cell(cells[table->shown[i]], ",");
		puts(row ? "" : "failure");
	}
	for (size_t failure = 0; failure < failures.count; failure++) {
		const struct place place = failures.array[failure].place;
		char name[NAME_SIZE];

		for (unsigned i = 0; i < table->shown_count; i++) {
			const char *column = table->columns[table->shown[i]].name;

			if (place.node && strcmp(column, "node") == 0)
				print_csv_cell(node_name(place.node, name), "");
			else if (place.node && strcmp(column, "guid") == 0)
				printf("0x%016" PRIx64, place.node->guid);
			else if (place.port && strcmp(column, "port") == 0)
				printf("%u", place.port->number);
			putchar(',');
		}
		print_csv_cell(failures.array[failure].text, "\n");
	}
}

static void print_json_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('"');
}

static void print_json_rows(const struct table *table, char **cells, size_t row_count)
{
	printf("\"%s\": [", table->name);
	for (size_t row = 1; row < row_count; row++) {
		cells += table->column_count;
		for (unsigned i = 0; i < table->shown_count; i++) {
			const struct column *column = &table->columns[table->shown[i]];
			const char *cell = cells[table->shown[i]];

			printf("%s\"%s\": ", i ? ", " : row > 1 ? ",\n{" : "\n{", column->name);
			if (!*cell || column->is_number)
				fputs(*cell ? cell : "null", stdout);
			else
				print_json_text(cell);
		}
		putchar('}');
	}
	fputs("\n]", stdout);
}

/* Ends the table. The first row has the names of the columns. */
static void print_rows(struct table *table,
		       void (*print)(const struct table *table, char **cells, size_t row_count))
{
	size_t count = 0, used = 0;
	char **cells;

	close_text(table->text);
	for (size_t i = 0; i < table->size; i++)
		count += table->memory[i] == '\t';
	cells = allocate(count, sizeof(*cells));
	for (char *at = table->memory; used < count; at += strlen(at) + 1) {
		at[strcspn(at, "\t")] = 0;
		cells[used++] = at;
	}
	print(table, cells, count / table->column_count);
	free(cells);
	free(table->memory);
}

static void print_json(struct table *table, const struct mad_fabric *fabric)
{
	struct table failed;

	printf("{\n\"program\": \"ibfabric\",\n\"schema\": 1,\n\"command\": \"%s\",\n"
	       "\"fabric\": {\"nodes\": %zu, \"ports\": %zu},\n\"complete\": %s,\n",
	       settings.command, fabric->node_count, fabric->port_count,
	       failures.count ? "false" : "true");
	print_rows(table, print_json_rows);
	puts(",");
	settings.columns = NULL;
	table_begin(&failed, "failures", "node guid #port failure");
	for (size_t i = 0; i < failures.count; i++) {
		add_place(&failed, failures.array[i].place);
		add(&failed, "%s", failures.array[i].text);
	}
	print_rows(&failed, print_json_rows);
	puts("\n}");
}

int table_print(struct table *table, const struct mad_fabric *fabric)
{
	if (settings.json) {
		print_json(table, fabric);
	} else if (settings.csv) {
		print_rows(table, print_csv);
	} else {
		print_rows(table, print_text);
		print_failures(stdout, "not known: ");
	}
	return failures.count ? EXIT_FAILED : EXIT_CLEAN;
}
