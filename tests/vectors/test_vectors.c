/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The results of rdma-core's libibmad, version 64, for some 23,000 inputs, row by row. The
 * first line of each file describes its columns.
 */

#define OWN_MAIN /* it has arguments */
#include "test.h"

#include <infiniband/mad_fields.h>
#include <infiniband/umad.h>
#include <infiniband/umad_ext.h>
#include <infiniband/umad_str.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* 0: the number is no field. */
static unsigned field_bits(enum MAD_FIELDS field)
{
	const struct mad_field *info = mad_field_info(field);

	return info ? info->bits : 0;
}

#define COLUMNS_MAX 10

static const char *folder;

/* The rows of a file in sequence, split at tabs. */
struct rows {
	FILE *file;
	char *line;
	size_t size;
	char *columns[COLUMNS_MAX];
	int count, number;
};

static struct rows open_rows(const char *name)
{
	struct rows rows = {0};
	char path[1024];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	rows.file = fopen(path, "r");
	assert_non_null(rows.file);
	return rows;
}

static int next_row(struct rows *rows)
{
	char *rest;
	int i;

	do {
		if (getline(&rows->line, &rows->size, rows->file) < 0)
			return 0;
	} while (rows->line[0] == '#' && strncmp(rows->line, "# buffer\t", 9));
	rows->line[strcspn(rows->line, "\n")] = '\0';
	rest = rows->line;
	for (i = 0; i < COLUMNS_MAX; i++)
		rows->columns[i] = rest ? strsep(&rest, "\t") : NULL;
	rows->number++;
	return 1;
}

static void close_rows(struct rows *rows, const char *name)
{
	print_message("%s: %d rows\n", name, rows->number);
	assert_true(rows->number > 0);
	free(rows->line);
	fclose(rows->file);
}

/* Hex digits into bytes. Returns how many. */
static size_t parse_bytes(const char *hex, uint8_t *bytes)
{
	size_t i, count = strlen(hex) / 2;

	for (i = 0; i < count; i++)
		assert_int_equal(sscanf(hex + 2 * i, "%2hhx", &bytes[i]), 1);
	return count;
}

static void format_bytes(const uint8_t *bytes, size_t count, char *hex)
{
	size_t i;

	*hex = '\0';
	for (i = 0; i < count; i++)
		sprintf(hex + 2 * i, "%02x", bytes[i]);
}

/* A text as in the files: in one line. */
static const char *escaped(const char *text)
{
	static char line[32768];
	char *at = line;

	for (; *text; text++) {
		if (*text == '\n' || *text == '\t' || *text == '\\') {
			*at++ = '\\';
			*at++ = (char)(*text == '\n' ? 'n' : *text == '\t' ? 't' : '\\');
		} else {
			*at++ = *text;
		}
	}
	*at = '\0';
	return line;
}

TEST(every_id_has_the_name_that_the_reference_gives_it)
{
	struct rows rows = open_rows("field-names.tsv");
	int id = 0;

	while (next_row(&rows)) {
		const char *name = mad_field_name((enum MAD_FIELDS)id);

		assert_int_equal(atoi(rows.columns[0]), id);
		assert_non_null(name);
		assert_string_equal(name, rows.columns[1]);
		id++;
	}
	assert_int_equal(id, IB_FIELD_LAST_);
	close_rows(&rows, "field-names.tsv");
}

TEST(fields_are_read_as_the_reference_reads_them)
{
	struct rows rows = open_rows("fields-get.tsv");
	uint8_t buffer[4096] = {0}, bytes[512];
	char result[2048];

	while (next_row(&rows)) {
		enum MAD_FIELDS field = (enum MAD_FIELDS)atoi(rows.columns[0]);
		int base;

		if (rows.columns[0][0] == '#') {
			parse_bytes(rows.columns[1], buffer);
			rows.number--;
			continue;
		}
		base = atoi(rows.columns[1]);
		if (!strcmp(rows.columns[2], "mad_get_field")) {
			sprintf(result, "%x", mad_get_field(buffer, base, field));
		} else if (!strcmp(rows.columns[2], "mad_get_field64")) {
			sprintf(result, "%llx",
				(unsigned long long)mad_get_field64(buffer, base, field));
		} else {
			assert_string_equal(rows.columns[2], "mad_get_array");
			mad_get_array(buffer, base, field, bytes);
			format_bytes(bytes, strlen(rows.columns[3]) / 2, result);
		}
		assert_string_equal(result, rows.columns[3]);
	}
	close_rows(&rows, "fields-get.tsv");
}

TEST(fields_are_written_as_the_reference_writes_them)
{
	struct rows rows = open_rows("fields-get.tsv");
	uint8_t original[4096] = {0}, buffer[4096], bytes[512];
	size_t size, i;

	while (next_row(&rows) && rows.columns[0][0] != '#')
		;
	size = parse_bytes(rows.columns[1], original);
	close_rows(&rows, "the buffer");

	rows = open_rows("fields-set.tsv");
	while (next_row(&rows)) {
		enum MAD_FIELDS field = (enum MAD_FIELDS)atoi(rows.columns[0]);
		int base = atoi(rows.columns[1]);
		char differences[4096] = "", *at = differences;

		memcpy(buffer, original, sizeof(buffer));
		if (!strcmp(rows.columns[2], "mad_set_field")) {
			mad_set_field(buffer, base, field,
				      (uint32_t)strtoul(rows.columns[3], NULL, 16));
		} else if (!strcmp(rows.columns[2], "mad_set_field64")) {
			mad_set_field64(buffer, base, field,
					strtoull(rows.columns[3], NULL, 16));
		} else {
			assert_string_equal(rows.columns[2], "mad_set_array");
			parse_bytes(rows.columns[3], bytes);
			mad_set_array(buffer, base, field, bytes);
		}
		for (i = 0; i < size; i++)
			if (buffer[i] != original[i])
				at += sprintf(at, "%zu:%02x ", i, buffer[i]);
		assert_string_equal(differences, rows.columns[4]);
		assert_memory_equal(buffer + size, original + size, sizeof(buffer) - size);
	}
	close_rows(&rows, "fields-set.tsv");
}

/* A little-endian 64-bit number, as mad_decode_field() gives a field of that width. */
static void set_number(uint8_t *value, const uint8_t *bytes, unsigned bits)
{
	uint64_t number;
	uint32_t word;

	memcpy(&number, bytes, sizeof(number));
	number = le64toh(number);
	word = (uint32_t)number;
	if (bits > 32)
		memcpy(value, &number, sizeof(number));
	else
		memcpy(value, &word, sizeof(word));
}

/* --- what is printed ------------------------------------------------------------ */

/* The end of a page; the next page is not mapped: a write behind a buffer crashes. */
static char *page_end;

static void ignore_warning(enum umad_log_level level, const char *text, void *user)
{
	(void)level;
	(void)text;
	(void)user;
}

static int begin(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	page_end = pages + page;
	umad_set_log_hook(ignore_warning, NULL);
	return pages == MAP_FAILED || mprotect(page_end, page, PROT_NONE) ? -1 : 0;
}

GROUP(begin, NULL);

/* What prints a value: a printer; or mad_dump_val() or mad_dump_field(), for a field. */
struct printer {
	ib_mad_dump_fn *print;
	char *(*print_field)(enum MAD_FIELDS field, char *buf, int bufsz, void *val);
	enum MAD_FIELDS field;
	int size; /* of the value */
};

static bool print(const struct printer *printer, char *buf, int bufsz, void *value)
{
	if (!printer->print)
		return printer->print_field(printer->field, buf, bufsz, value);
	printer->print(buf, bufsz, value, printer->size);
	return true;
}

/*
 * In any buffer, there is the beginning of the whole text, whose last line may end early, and
 * nothing else changes. mad_dump_field() may refuse to print.
 */
static void keeps_to_any_buffer(struct printer printer, void *value)
{
	static char whole[16384];
	int most;

	print(&printer, whole, sizeof(whole), value);
	most = (int)strnlen(whole, 600) + 2;
	for (int bufsz = -1; bufsz <= most; bufsz++) {
		char *buf = page_end - (bufsz < 0 ? 0 : bufsz);
		size_t length;

		memset(page_end - most - 1, 'x', (size_t)most + 1);
		if (!print(&printer, buf, bufsz, value))
			continue;
		assert_int_equal(buf[-1], 'x');
		length = bufsz > 0 ? strnlen(buf, (size_t)bufsz) : 0;
		assert_true(bufsz <= 0 || length < (size_t)bufsz);
		length -= length && buf[length - 1] == '\n';
		if (length && strncmp(buf, whole, length) != 0)
			fail_msg("%d bytes of \"%s\": \"%s\"", bufsz, whole, buf);
	}
	print(&printer, page_end, INT32_MIN, value);
}

/*
 * The rows were made with a buffer of 256 bytes, which mad_dump_array() overran. Here these
 * texts have a buffer that is large enough.
 */
static int room_for(const char *text)
{
	return strchr(text, '\\') || strlen(text) < 256 ? 256 : 8192;
}

TEST(values_print_as_the_reference_prints_them)
{
	struct rows rows = open_rows("dump-val.tsv");
	uint8_t bytes[512], value[512] __attribute__((aligned(8)));
	char text[8192];

	while (next_row(&rows)) {
		enum MAD_FIELDS field = (enum MAD_FIELDS)atoi(rows.columns[0]);
		size_t count = parse_bytes(rows.columns[1], bytes);

		memset(value, 0, sizeof(value));
		memcpy(value, bytes, count);
		/* an OUI is printed as its bytes in memory, whatever their value as a number */
		if (field_bits(field) <= 64 && field != IB_VEND2_OUI_F)
			set_number(value, bytes, field_bits(field));
		memset(text, 'x', sizeof(text));
		assert_ptr_equal(mad_dump_val(field, text, room_for(rows.columns[2]), value),
				 text);
		/* a number of more than 8 bytes prints nothing */
		assert_string_equal(escaped(text), rows.columns[2]);
		keeps_to_any_buffer(
			(struct printer){.print_field = mad_dump_val, .field = field}, value);
		memset(text, 'x', sizeof(text));
		assert_ptr_equal(mad_dump_field(field, text, room_for(rows.columns[3]), value),
				 text);
		assert_string_equal(escaped(text), rows.columns[3]);
		keeps_to_any_buffer(
			(struct printer){.print_field = mad_dump_field, .field = field}, value);
	}
	close_rows(&rows, "dump-val.tsv");
}

TEST(attributes_print_as_the_reference_prints_them)
{
	struct rows rows = open_rows("dump-attribute.tsv");
	uint8_t data[1024];
	char text[8192];

	while (next_row(&rows)) {
		ib_mad_dump_fn *printer =
			(ib_mad_dump_fn *)dlsym(RTLD_DEFAULT, rows.columns[0]);
		int valsz = atoi(rows.columns[1]);

		assert_non_null(printer);
		memset(data, 0, sizeof(data));
		parse_bytes(rows.columns[3], data);
		memset(text, 'x', sizeof(text));
		printer(text, atoi(rows.columns[2]), data, valsz);
		assert_string_equal(escaped(text), rows.columns[4]);
		keeps_to_any_buffer((struct printer){.print = printer, .size = valsz}, data);
	}
	close_rows(&rows, "dump-attribute.tsv");
}

/* The next word of a column, as a hex number or as bytes. */
static char *word(char **rest)
{
	char *text = strsep(rest, " ");

	assert_non_null(text);
	return text;
}

static unsigned long long hex(char **rest)
{
	return strtoull(word(rest), NULL, 16);
}

static int decimal(char **rest)
{
	return atoi(word(rest));
}

TEST(packets_are_built_as_the_reference_builds_them)
{
	struct rows rows = open_rows("encode.tsv");

	while (next_row(&rows)) {
		uint8_t umad[sizeof(struct ib_user_mad) + IB_MAD_SIZE] = {0};
		char built[2 * sizeof(umad) + 1], length[16];
		uint8_t payload[IB_MAD_SIZE] = {0};
		ib_rmpp_hdr_t rmpp = {0};
		ib_portid_t to = {0};
		ib_rpc_cc_t rpc = {0};
		char *rest = rows.columns[0];

		rpc.mgtclass = (int)hex(&rest);
		rpc.method = (int)hex(&rest);
		rpc.attr.id = (unsigned)hex(&rest);
		rpc.attr.mod = (unsigned)hex(&rest);
		rpc.rstatus = (uint32_t)hex(&rest);
		rpc.dataoffs = decimal(&rest);
		rpc.datasz = decimal(&rest);
		rpc.mkey = hex(&rest);
		rpc.trid = hex(&rest);
		rpc.mask = hex(&rest);
		rpc.oui = (uint32_t)hex(&rest);
		rpc.cckey = hex(&rest);

		rest = rows.columns[1];
		to.lid = decimal(&rest);
		to.drpath.cnt = decimal(&rest);
		parse_bytes(word(&rest), to.drpath.p);
		to.drpath.drslid = (uint16_t)hex(&rest);
		to.drpath.drdlid = (uint16_t)hex(&rest);
		to.grh_present = decimal(&rest);
		parse_bytes(word(&rest), to.gid);
		to.qp = (uint32_t)hex(&rest);
		to.qkey = (uint32_t)hex(&rest);
		to.sl = (uint8_t)decimal(&rest);
		to.pkey_idx = (unsigned)decimal(&rest);

		rest = rows.columns[2];
		if (strcmp(rest, "-")) {
			rmpp.type = (int)hex(&rest);
			rmpp.flags = (int)hex(&rest);
			rmpp.status = decimal(&rest);
			rmpp.d1.u = (uint32_t)hex(&rest);
			rmpp.d2.u = (uint32_t)hex(&rest);
		}
		if (strcmp(rows.columns[3], "-"))
			parse_bytes(rows.columns[3], payload);

		sprintf(length, "%d",
			mad_build_pkt(umad, (ib_rpc_t *)&rpc, &to,
				      strcmp(rows.columns[2], "-") ? &rmpp : NULL,
				      strcmp(rows.columns[3], "-") ? payload : NULL));
		assert_string_equal(length, rows.columns[4]);
		format_bytes(umad, sizeof(umad), built);
		assert_string_equal(built, rows.columns[5]);
	}
	close_rows(&rows, "encode.tsv");
}

TEST(addresses_read_and_print_as_the_references)
{
	struct rows rows = open_rows("portid.tsv");

	while (next_row(&rows)) {
		char text[512], hops[256] = "";
		ib_portid_t portid = {0};
		int count;

		if (!strcmp(rows.columns[0], "portid2str")) {
			portid.lid = atoi(rows.columns[1]);
			portid.grh_present = atoi(rows.columns[2]);
			parse_bytes(rows.columns[3], portid.gid);
			portid.drpath.cnt = atoi(rows.columns[4]);
			parse_bytes(rows.columns[5], portid.drpath.p);
			portid.drpath.drslid = (uint16_t)atoi(rows.columns[6]);
			portid.drpath.drdlid = (uint16_t)atoi(rows.columns[7]);
			assert_string_equal(portid2str(&portid), rows.columns[8]);
			continue;
		}
		assert_string_equal(rows.columns[0], "str2drpath");
		count = str2drpath(&portid.drpath, rows.columns[1], atoi(rows.columns[2]),
				   atoi(rows.columns[3]));
		assert_int_equal(count, atoi(rows.columns[4]));
		if (count >= 0)
			format_bytes(portid.drpath.p, (size_t)count + 1, hops);
		assert_string_equal(hops, rows.columns[5]);
		assert_string_equal(drpath2str(&portid.drpath, text, sizeof(text)),
				    rows.columns[6]);
	}
	close_rows(&rows, "portid.tsv");
}

static const char *text_of(const char *function, unsigned first, unsigned second)
{
	if (!strcmp(function, "umad_class_str"))
		return umad_class_str((uint8_t)first);
	if (!strcmp(function, "umad_method_str"))
		return umad_method_str((uint8_t)first, (uint8_t)second);
	if (!strcmp(function, "umad_attribute_str"))
		return umad_attribute_str((uint8_t)first, htobe16((uint16_t)second));
	if (!strcmp(function, "umad_common_mad_status_str"))
		return umad_common_mad_status_str(htobe16((uint16_t)first));
	assert_string_equal(function, "umad_sa_mad_status_str");
	return umad_sa_mad_status_str(htobe16((uint16_t)first));
}

TEST(classes_methods_attributes_and_statuses_have_the_texts_of_the_reference)
{
	struct rows rows = open_rows("strings.tsv");
	unsigned first, second = 0;

	while (next_row(&rows)) {
		assert_true(sscanf(rows.columns[1], "%u %u", &first, &second) >= 1);
		assert_string_equal(text_of(rows.columns[0], first, second), rows.columns[2]);
	}
	close_rows(&rows, "strings.tsv");
	for (unsigned number = 0; number < 256 * 65536; number += number < 9 << 16 ? 1 : 251) {
		assert_non_null(umad_attribute_str(number >> 16 & 0xff, number & 0xffff));
		assert_non_null(umad_method_str(number >> 16 & 0xff, number & 0xff));
		assert_non_null(umad_common_mad_status_str(number & 0xffff));
		assert_non_null(umad_sa_mad_status_str(number & 0xffff));
	}
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	folder = argv[1];
	return run_all_tests();
}
