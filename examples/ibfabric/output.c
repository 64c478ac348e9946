/* SPDX-License-Identifier: BSD-2-Clause */

/* Tables as aligned text, JSON and CSV, and what could not be read. */

#include "ibfabric.h"

#include <errno.h>
#include <stdarg.h>

struct failure {
	struct place place;
	char *text;
};

static struct failure *failures;
static size_t failures_used;

/* --- failures ------------------------------------------------------------------- */

void record_failure(struct place place, const char *format, ...)
{
	va_list args;

	failures = extend(failures, failures_used, sizeof(*failures));
	failures[failures_used].place = place;
	va_start(args, format);
	if (vasprintf(&failures[failures_used++].text, format, args) < 0)
		die("out of memory");
	va_end(args);
}

size_t failure_count(void)
{
	return failures_used;
}

void print_failures(FILE *file, const char *prefix)
{
	char place[PLACE_SIZE];

	for (size_t i = 0; i < failures_used; i++)
		if (failures[i].place.node)
			fprintf(file, "%s%s: %s\n", prefix,
				place_text(failures[i].place, place), failures[i].text);
		else
			fprintf(file, "%s%s\n", prefix, failures[i].text);
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
	fprintf(stderr, "ibfabric: no column %.*s; there are:", (int)length, list);
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

		for (; *at == '#' || *at == '-'; at++)
			*(*at == '#' ? &column->is_number : &column->is_hidden) = true;
		snprintf(column->name, sizeof(column->name), "%.*s", (int)strcspn(at, " "), at);
	}
	for (unsigned i = 0; !settings.columns && i < table->column_count; i++)
		if (settings.json || settings.csv || !table->columns[i].is_hidden)
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

void add(struct table *table, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(table->text, format, args);
	va_end(args);
	fputc('\t', table->text);
}

void add_known(struct table *table, unsigned number)
{
	add(table, number ? "%u" : "", number);
}

void add_place(struct table *table, struct place place)
{
	char name[NAME_SIZE];

	add(table, "%s", place.node ? node_name(place.node, name) : "");
	add(table, place.node ? "0x%016" PRIx64 : "", place.node ? place.node->guid : 0);
	add(table, place.port ? "%u" : "", place.port ? place.port->number : 0);
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
	for (size_t failure = 0; failure < failures_used; failure++) {
		const struct place place = failures[failure].place;
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
		print_csv_cell(failures[failure].text, "\n");
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
	       failures_used ? "false" : "true");
	print_rows(table, print_json_rows);
	puts(",");
	settings.columns = NULL;
	table_begin(&failed, "failures", "node guid #port failure");
	for (size_t i = 0; i < failures_used; i++) {
		add_place(&failed, failures[i].place);
		add(&failed, "%s", failures[i].text);
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
	return failures_used ? EXIT_FAILED : EXIT_CLEAN;
}
