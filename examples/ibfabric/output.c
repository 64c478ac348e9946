/* SPDX-License-Identifier: BSD-2-Clause */

/* Tables as aligned text, JSON or CSV, and what could not be looked at. */

#include "ibfabric.h"

#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

struct failure {
	const struct mad_fabric_node *node;
	const struct mad_fabric_port *port;
	char *text;
};

static struct failure *failures;
static size_t failures_used;

/* --- failures ------------------------------------------------------------------- */

void record_failure(const struct mad_fabric_node *node, const struct mad_fabric_port *port,
		    const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		die("out of memory");
	va_end(args);
	failures = reallocarray(failures, failures_used + 1, sizeof(*failures));
	if (!failures)
		die("out of memory");
	failures[failures_used++] = (struct failure){node, port, text};
}

size_t failure_count(void)
{
	return failures_used;
}

void print_failures(FILE *file, const char *prefix)
{
	char place[PLACE_SIZE];

	for (size_t i = 0; i < failures_used; i++) {
		const struct failure *failure = &failures[i];

		fputs(prefix, file);
		if (failure->port)
			fprintf(file, "%s: ", place_of_port(failure->port, place));
		else if (failure->node)
			fprintf(file, "%s: ", place_of_node(failure->node, place));
		fprintf(file, "%s\n", failure->text);
	}
}

int end_output(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "ibfabric: the output could not be written: %s\n", strerror(errno));
	return EXIT_FAILED;
}

bool wants_colour(void)
{
	const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");

	return isatty(1) && !(no && *no) && terminal && strcmp(terminal, "dumb") != 0;
}

/* --- cells ----------------------------------------------------------------------- */

void table_begin(struct table *table, const char *name, const struct column *columns,
		 unsigned column_count)
{
	*table = (struct table){.name = name, .columns = columns, .column_count = column_count};
	table->cells = open_memstream(&table->memory, &table->size);
	if (!table->cells)
		die("out of memory");
	for (char *at = settings.columns; at && *at;) {
		size_t length = strcspn(at, ",");
		unsigned i = 0;

		while (i < column_count && (strlen(columns[i].name) != length ||
					    strncmp(columns[i].name, at, length) != 0))
			i++;
		if (i == column_count) {
			fprintf(stderr, "ibfabric: no column %.*s; there are:", (int)length,
				at);
			for (i = 0; i < column_count; i++)
				fprintf(stderr, " %s", columns[i].name);
			fputc('\n', stderr);
			exit(EXIT_FAILED);
		}
		at += length + (at[length] == ',');
	}
}

/* An empty text is "not known": null in JSON. */
void add(struct table *table, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(table->cells, format, args);
	va_end(args);
	fputc(0, table->cells);
}

void add_nothing(struct table *table, unsigned cells)
{
	while (cells--)
		fputc(0, table->cells);
}

void add_guid(struct table *table, uint64_t guid)
{
	if (guid)
		add(table, "0x%016" PRIx64, guid);
	else
		add_nothing(table, 1);
}

void add_node(struct table *table, const struct mad_fabric_node *node)
{
	char name[NAME_SIZE];

	if (!node) {
		add_nothing(table, 2);
		return;
	}
	add(table, "%s", node_name(node, name));
	add_guid(table, node->guid);
}

void add_port(struct table *table, const struct mad_fabric_port *port)
{
	add_node(table, port ? port->node : NULL);
	add_port_number(table, port);
}

void add_port_number(struct table *table, const struct mad_fabric_port *port)
{
	if (port)
		add(table, "%u", port->number);
	else
		add_nothing(table, 1);
}

/* --- the three forms --------------------------------------------------------------- */

void print_json_text(const char *text)
{
	putchar('"');
	for (; *text; text++)
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			printf("\\u%04x", *text);
		else
			putchar(*text);
	putchar('"');
}

static void print_csv_text(const char *text)
{
	if (!strpbrk(text, "\",\r\n")) {
		fputs(text, stdout);
		return;
	}
	putchar('"');
	for (; *text; text++) {
		if (*text == '"')
			putchar('"');
		putchar(*text);
	}
	putchar('"');
}

/* The columns that are shown, in their order. */
static unsigned choose(const struct table *table, unsigned chosen[COLUMNS_MOST])
{
	unsigned count = 0;

	for (unsigned i = 0; !settings.columns && i < table->column_count; i++)
		if (settings.form != FORM_TEXT || !table->columns[i].is_hidden)
			chosen[count++] = i;
	for (const char *at = settings.columns; at && *at && count < COLUMNS_MOST;) {
		size_t length = strcspn(at, ",");

		for (unsigned i = 0; i < table->column_count; i++)
			if (strlen(table->columns[i].name) == length &&
			    strncmp(table->columns[i].name, at, length) == 0)
				chosen[count++] = i;
		at += length + (at[length] == ',');
	}
	return count;
}

bool is_column_shown(const struct table *table, const char *name)
{
	unsigned chosen[COLUMNS_MOST], count = choose(table, chosen);

	for (unsigned i = 0; i < count; i++)
		if (strcmp(table->columns[chosen[i]].name, name) == 0)
			return true;
	return false;
}

/* The cells of the row that begins at "at"; returns the next row. */
static const char *split_row(const struct table *table, const char *at,
			     const char *cells[COLUMNS_MOST])
{
	for (unsigned i = 0; i < table->column_count; i++) {
		cells[i] = at;
		at += strlen(at) + 1;
	}
	return at;
}

/* In characters of UTF-8. */
static unsigned text_width(const char *text)
{
	unsigned width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void print_aligned(const char *text, unsigned width, bool right, bool last)
{
	unsigned own = text_width(text), blanks = width > own ? width - own : 0;

	printf("%*s%s", right ? (int)blanks : 0, "", text);
	if (!last)
		printf("%*s", (right ? 0 : (int)blanks) + 2, "");
}

static void print_text(const struct table *table, const unsigned *chosen, unsigned count)
{
	const char *cells[COLUMNS_MOST], *at = table->memory;
	unsigned widths[COLUMNS_MOST];

	for (unsigned i = 0; i < count; i++)
		widths[i] = text_width(table->columns[chosen[i]].name);
	for (size_t row = 0; row < table->row_count; row++) {
		at = split_row(table, at, cells);
		for (unsigned i = 0; i < count; i++)
			if (widths[i] < text_width(cells[chosen[i]]))
				widths[i] = text_width(cells[chosen[i]]);
	}
	for (unsigned i = 0; table->row_count && i < count; i++)
		print_aligned(table->columns[chosen[i]].name, widths[i],
			      table->columns[chosen[i]].is_number, i + 1 == count);
	if (table->row_count)
		putchar('\n');
	at = table->memory;
	for (size_t row = 0; row < table->row_count; row++) {
		at = split_row(table, at, cells);
		for (unsigned i = 0; i < count; i++)
			print_aligned(*cells[chosen[i]] ? cells[chosen[i]] : "-", widths[i],
				      table->columns[chosen[i]].is_number, i + 1 == count);
		putchar('\n');
	}
	print_failures(stdout, "not known: ");
}

static void print_json_cell(const struct column *column, const char *cell)
{
	if (!*cell)
		fputs("null", stdout);
	else if (column->is_number)
		fputs(cell, stdout);
	else
		print_json_text(cell);
}

static void print_json(const struct table *table, const struct mad_fabric *fabric,
		       const unsigned *chosen, unsigned count)
{
	const char *cells[COLUMNS_MOST], *at = table->memory;
	char name[NAME_SIZE];

	printf("{\n\"program\": \"ibfabric\",\n\"schema\": 1,\n\"command\": \"%s\",\n",
	       settings.command);
	if (fabric)
		printf("\"fabric\": {\"nodes\": %zu, \"ports\": %zu},\n", fabric->node_count,
		       fabric->port_count);
	printf("\"complete\": %s,\n\"%s\": [", failures_used ? "false" : "true", table->name);
	for (size_t row = 0; row < table->row_count; row++) {
		at = split_row(table, at, cells);
		fputs(row ? ",\n{" : "\n{", stdout);
		for (unsigned i = 0; i < count; i++) {
			const struct column *column = &table->columns[chosen[i]];

			printf("%s\"%s\": ", i ? ", " : "", column->name);
			print_json_cell(column, cells[chosen[i]]);
		}
		putchar('}');
	}
	fputs("\n],\n\"failures\": [", stdout);
	for (size_t i = 0; i < failures_used; i++) {
		const struct mad_fabric_port *port = failures[i].port;
		const struct mad_fabric_node *node = port ? port->node : failures[i].node;

		fputs(i ? ",\n{\"node\": " : "\n{\"node\": ", stdout);
		if (node) {
			print_json_text(node_name(node, name));
			printf(", \"guid\": \"0x%016" PRIx64 "\", \"port\": ", node->guid);
		} else {
			fputs("null, \"guid\": null, \"port\": ", stdout);
		}
		if (port)
			printf("%u", port->number);
		else
			fputs("null", stdout);
		fputs(", \"failure\": ", stdout);
		print_json_text(failures[i].text);
		putchar('}');
	}
	fputs("\n]\n}\n", stdout);
}

/* The cell of a failure in a column of CSV. */
static void print_csv_failure(const struct column *column, const struct failure *failure)
{
	const struct mad_fabric_port *port = failure->port;
	const struct mad_fabric_node *node = port ? port->node : failure->node;
	char name[NAME_SIZE];

	if (node && strcmp(column->name, "node") == 0)
		print_csv_text(node_name(node, name));
	else if (node && strcmp(column->name, "guid") == 0)
		printf("0x%016" PRIx64, node->guid);
	else if (port && strcmp(column->name, "port") == 0)
		printf("%u", port->number);
}

/* The last column is "failure": empty, or what a row would have had. */
static void print_csv(const struct table *table, const unsigned *chosen, unsigned count)
{
	const char *cells[COLUMNS_MOST], *at = table->memory;

	for (unsigned i = 0; i < count; i++)
		printf("%s,", table->columns[chosen[i]].name);
	puts("failure");
	for (size_t row = 0; row < table->row_count; row++) {
		at = split_row(table, at, cells);
		for (unsigned i = 0; i < count; i++) {
			print_csv_text(cells[chosen[i]]);
			putchar(',');
		}
		putchar('\n');
	}
	for (size_t i = 0; i < failures_used; i++) {
		for (unsigned c = 0; c < count; c++) {
			print_csv_failure(&table->columns[chosen[c]], &failures[i]);
			putchar(',');
		}
		print_csv_text(failures[i].text);
		putchar('\n');
	}
}

void table_print(struct table *table, const struct mad_fabric *fabric)
{
	unsigned chosen[COLUMNS_MOST], count = choose(table, chosen);
	size_t cells = 0;

	if (fclose(table->cells))
		die("out of memory");
	for (size_t i = 0; i < table->size; i++)
		cells += !table->memory[i];
	table->row_count = cells / table->column_count;
	if (settings.form == FORM_JSON)
		print_json(table, fabric, chosen, count);
	else if (settings.form == FORM_CSV)
		print_csv(table, chosen, count);
	else
		print_text(table, chosen, count);
	free(table->memory);
}
