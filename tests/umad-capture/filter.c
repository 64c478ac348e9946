/* SPDX-License-Identifier: BSD-2-Clause */

#include "filter.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <infiniband/umad_str.h>

#include "classes.h"
#include "packet_frame.h"
#include "rmpp.h"

#define WORD_BYTES     64
#define DEEPEST        64 /* levels of nested brackets and nots */
#define ATTRIBUTES_END 0x10000U

enum kind {
	KIND_AND,
	KIND_OR,
	KIND_NOT,
	KIND_FLAG,
	KIND_COMPARE
};

enum comparison {
	EQUAL,
	NOT_EQUAL,
	LESS,
	LESS_OR_EQUAL,
	GREATER,
	GREATER_OR_EQUAL
};

/* A packet as the filter sees it. */
struct view {
	const struct packet_record *record;
	struct frame_address address;
	uint8_t mad[MAD_BYTES];
};

struct flag {
	const char *name;
	bool (*is_set)(const struct view *view);
};

struct field {
	const char *name;
	uint64_t (*value)(const struct view *view);
	uint64_t most; /* its largest value */
	/* the text for the value in this packet; NULL: the field has no names */
	const char *(*name_of)(uint8_t mgmt_class, uint16_t value);
};

struct filter {
	enum kind kind;
	struct filter *left, *right;
	const struct flag *flag;
	const struct field *field;
	enum comparison comparison;
	char name[WORD_BYTES]; /* compared as a text; "": the number is compared */
	uint64_t number;
};

/* --- the fields of a packet ------------------------------------------------------- */

static bool is_sent(const struct view *view)
{
	return view->record->sent;
}

static bool is_received(const struct view *view)
{
	return !view->record->sent;
}

static bool is_response(const struct view *view)
{
	return mad_is_response(view->mad);
}

static bool is_request(const struct view *view)
{
	return !mad_is_response(view->mad);
}

static bool is_a_smp(const struct view *view)
{
	return is_smp(view->mad);
}

static bool is_a_gmp(const struct view *view)
{
	return !is_smp(view->mad);
}

static bool is_directed(const struct view *view)
{
	return mad_class_of(view->mad) == CLASS_DIRECTED_SMP;
}

/* The status without the direction bit of directed routes. */
static uint64_t status_of(const struct view *view)
{
	return get16(view->mad + 4) & (is_directed(view) ? 0x7fffU : 0xffffU);
}

static bool is_timeout(const struct view *view)
{
	return record_status(view->record) == ETIMEDOUT;
}

static bool is_error(const struct view *view)
{
	return status_of(view) || record_status(view->record);
}

static bool is_rmpp(const struct view *view)
{
	return class_has_rmpp(view->mad[1]) && view->mad[RMPP_FLAGS] & RMPP_ACTIVE;
}

static bool has_grh(const struct view *view)
{
	return view->address.grh;
}

static const struct flag flags[] = {
	{"sent", is_sent},         {"received", is_received}, {"request", is_request},
	{"response", is_response}, {"smp", is_a_smp},         {"gmp", is_a_gmp},
	{"directed", is_directed}, {"timeout", is_timeout},   {"error", is_error},
	{"rmpp", is_rmpp},         {"grh", has_grh},
};

static uint64_t class_of(const struct view *view)
{
	return mad_class_of(view->mad);
}

static uint64_t method_of(const struct view *view)
{
	return mad_method(view->mad);
}

static uint64_t attribute_of(const struct view *view)
{
	return mad_attribute(view->mad);
}

static uint64_t modifier_of(const struct view *view)
{
	return mad_modifier(view->mad);
}

static uint64_t tid_of(const struct view *view)
{
	return get64(view->mad + 8);
}

/* The LID of the other side: the own LID is in every packet. */
static uint64_t lid_of(const struct view *view)
{
	return view->record->sent ? view->address.dlid : view->address.slid;
}

static uint64_t length_of(const struct view *view)
{
	return view->record->length;
}

static uint64_t process_of(const struct view *view)
{
	return (uint64_t)view->record->process;
}

static const char *name_of_class(uint8_t mgmt_class, uint16_t value)
{
	(void)mgmt_class;
	return umad_class_str((uint8_t)value);
}

static const char *name_of_method(uint8_t mgmt_class, uint16_t value)
{
	return umad_method_str(mgmt_class, (uint8_t)value);
}

static const char *name_of_attribute(uint8_t mgmt_class, uint16_t value)
{
	return umad_attribute_str(mgmt_class, htobe16(value));
}

static const struct field fields[] = {
	{"class", class_of, 0xff, name_of_class},
	{"method", method_of, 0xff, name_of_method},
	{"attribute", attribute_of, 0xffff, name_of_attribute},
	{"modifier", modifier_of, 0xffffffff, NULL},
	{"status", status_of, 0xffff, NULL},
	{"lid", lid_of, 0xffff, NULL},
	{"tid", tid_of, UINT64_MAX, NULL},
	{"length", length_of, UINT32_MAX, NULL},
	{"process", process_of, INT32_MAX, NULL},
};

/* --- matching ------------------------------------------------------------------- */

/* Texts have blanks ("Class Port Info"); words of the filter do not. */
static bool same_name(const char *text, const char *word)
{
	for (; *text; text++) {
		if (*text == ' ')
			continue;
		if (tolower((unsigned char)*text) != tolower((unsigned char)*word))
			return false;
		word++;
	}
	return !*word;
}

static bool compare(const struct filter *filter, const struct view *view)
{
	uint64_t value = filter->field->value(view);
	bool same;

	if (filter->name[0]) {
		same = same_name(filter->field->name_of(view->mad[1], (uint16_t)value),
				 filter->name);
		return same == (filter->comparison == EQUAL);
	}
	switch (filter->comparison) {
	case NOT_EQUAL:
		return value != filter->number;
	case LESS:
		return value < filter->number;
	case LESS_OR_EQUAL:
		return value <= filter->number;
	case GREATER:
		return value > filter->number;
	case GREATER_OR_EQUAL:
		return value >= filter->number;
	default:
		return value == filter->number;
	}
}

static bool match(const struct filter *filter, const struct view *view)
{
	switch (filter->kind) {
	case KIND_AND:
		return match(filter->left, view) && match(filter->right, view);
	case KIND_OR:
		return match(filter->left, view) || match(filter->right, view);
	case KIND_NOT:
		return !match(filter->left, view);
	case KIND_FLAG:
		return filter->flag->is_set(view);
	default:
		return compare(filter, view);
	}
}

bool filter_match(const struct filter *filter, const struct packet_record *record)
{
	struct view view = {.record = record, .address = packet_address(record)};

	record_beginning(record, view.mad);
	return match(filter, &view);
}

void filter_free(struct filter *filter)
{
	if (!filter)
		return;
	filter_free(filter->left);
	filter_free(filter->right);
	free(filter);
}

/* --- reading -------------------------------------------------------------------- */

struct reader {
	const char *text;
	size_t at;             /* the position of the next word, or of blanks before it */
	size_t word_at;        /* the position of this word */
	char word[WORD_BYTES]; /* "": the end */
	unsigned int depth;
	struct filter_error *error;
	bool failed;
};

static struct filter *fail(struct reader *reader, const char *what)
{
	if (!reader->failed) {
		reader->failed = true;
		reader->error->at = reader->word_at;
		snprintf(reader->error->text, sizeof(reader->error->text), "%s", what);
	}
	return NULL;
}

static bool is_word_part(char character)
{
	return isalnum((unsigned char)character) || character == '_' || character == '-';
}

static void next_word(struct reader *reader)
{
	const char *text = reader->text;
	size_t length = 0;

	while (isspace((unsigned char)text[reader->at]))
		reader->at++;
	reader->word_at = reader->at;
	while (is_word_part(text[reader->at + length]))
		length++;
	if (!length && text[reader->at])
		length = strchr("=!<>&|", text[reader->at]) &&
					 strchr("=&|", text[reader->at + 1]) &&
					 text[reader->at + 1]
				 ? 2
				 : 1;
	if (length >= WORD_BYTES) {
		fail(reader, "this word is too long");
		length = 0;
	}
	memcpy(reader->word, text + reader->at, length);
	reader->word[length] = '\0';
	reader->at += length;
}

static bool is_word(const struct reader *reader, const char *word, const char *sign)
{
	return !strcasecmp(reader->word, word) || (sign && !strcmp(reader->word, sign));
}

static struct filter *node(struct reader *reader, enum kind kind, struct filter *left,
			   struct filter *right)
{
	struct filter *filter = calloc(1, sizeof(*filter));

	if (!filter || reader->failed) {
		free(filter);
		filter_free(left);
		filter_free(right);
		return fail(reader, "out of memory");
	}
	filter->kind = kind;
	filter->left = left;
	filter->right = right;
	return filter;
}

static bool read_comparison(struct reader *reader, enum comparison *comparison)
{
	static const struct {
		const char *sign;
		enum comparison comparison;
	} signs[] = {{"=", EQUAL},          {"==", EQUAL}, {"!=", NOT_EQUAL},
		     {"<=", LESS_OR_EQUAL}, {"<", LESS},   {">=", GREATER_OR_EQUAL},
		     {">", GREATER}};

	*comparison = EQUAL;
	for (unsigned int i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (!strcmp(reader->word, signs[i].sign)) {
			*comparison = signs[i].comparison;
			next_word(reader);
			return true;
		}
	return false;
}

/* Whether any class has the name. */
static bool is_known_name(const struct field *field, const char *name)
{
	for (unsigned int class = 1; class < 256; class ++)
		for (unsigned int value = 0;
		     value < (field->name_of == name_of_attribute ? ATTRIBUTES_END : 256);
		     value++)
			if (same_name(field->name_of((uint8_t) class, (uint16_t)value), name))
				return true;
	return false;
}

static struct filter *read_value(struct reader *reader, struct filter *filter)
{
	char *end;

	errno = 0;
	filter->number = strtoull(reader->word, &end, 0);
	if (!reader->word[0] || !is_word_part(reader->word[0]) || reader->word[0] == '-')
		fail(reader, "a value is missing here");
	else if (errno)
		fail(reader, "this number is too large");
	else if (*end && (isdigit((unsigned char)reader->word[0]) || !filter->field->name_of))
		fail(reader, "this is no number");
	else if (*end && !is_known_name(filter->field, reader->word))
		fail(reader, "there is no such name");
	else if (!*end && filter->number > filter->field->most)
		fail(reader, "the field has no value as large as this");
	else if (*end && filter->comparison > NOT_EQUAL)
		fail(reader, "names are the same or not: no other comparison makes sense");
	else if (*end)
		strcpy(filter->name, reader->word);
	if (!reader->failed)
		next_word(reader);
	if (!reader->failed)
		return filter;
	filter_free(filter);
	return NULL;
}

static struct filter *read_term(struct reader *reader)
{
	struct filter *filter;

	for (unsigned int i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (is_word(reader, flags[i].name, NULL)) {
			filter = node(reader, KIND_FLAG, NULL, NULL);
			if (!filter)
				return NULL;
			filter->flag = &flags[i];
			next_word(reader);
			return filter;
		}
	for (unsigned int i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (is_word(reader, fields[i].name, NULL)) {
			filter = node(reader, KIND_COMPARE, NULL, NULL);
			if (!filter)
				return NULL;
			filter->field = &fields[i];
			next_word(reader);
			read_comparison(reader, &filter->comparison);
			return read_value(reader, filter);
		}
	return fail(reader, reader->word[0] ? "this is no part of a filter"
					    : "the filter ends too early");
}

static struct filter *read_or(struct reader *reader);

static struct filter *read_not(struct reader *reader)
{
	struct filter *inner;

	if (++reader->depth > DEEPEST)
		return fail(reader, "this is too deep");
	if (is_word(reader, "not", "!")) {
		next_word(reader);
		inner = read_not(reader);
		inner = inner ? node(reader, KIND_NOT, inner, NULL) : NULL;
	} else if (is_word(reader, "(", NULL)) {
		next_word(reader);
		inner = read_or(reader);
		if (inner && !is_word(reader, ")", NULL)) {
			filter_free(inner);
			inner = fail(reader, "a closing bracket is missing here");
		} else if (inner) {
			next_word(reader);
		}
	} else {
		inner = read_term(reader);
	}
	reader->depth--;
	return inner;
}

static struct filter *read_and(struct reader *reader)
{
	struct filter *left = read_not(reader), *right;

	while (left && is_word(reader, "and", "&&")) {
		next_word(reader);
		right = read_not(reader);
		if (!right) {
			filter_free(left);
			return NULL;
		}
		left = node(reader, KIND_AND, left, right);
	}
	return left;
}

static struct filter *read_or(struct reader *reader)
{
	struct filter *left = read_and(reader), *right;

	while (left && is_word(reader, "or", "||")) {
		next_word(reader);
		right = read_and(reader);
		if (!right) {
			filter_free(left);
			return NULL;
		}
		left = node(reader, KIND_OR, left, right);
	}
	return left;
}

struct filter *filter_read(const char *text, struct filter_error *error)
{
	struct reader reader = {.text = text, .error = error};
	struct filter *filter;

	next_word(&reader);
	filter = read_or(&reader);
	if (filter && (reader.word[0] || reader.failed)) {
		filter_free(filter);
		filter = fail(&reader, "\"and\" or \"or\" is missing here");
	}
	return filter;
}
