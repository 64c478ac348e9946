/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads the text of a filter. */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "filter.h"
#include "filter_parts.h"

#define DEEPEST 64 /* levels of nested brackets and nots */

struct reader {
	const char *text;
	size_t at;             /* position of the next word, or of blanks before it */
	size_t word_at;        /* position of this word */
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
	return isalnum((unsigned char)character) || character == '_' || character == '-' ||
	       character == '.';
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
		fail(reader, "word too long");
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

static struct filter *node(struct reader *reader, enum filter_kind kind, struct filter *left,
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

static bool read_comparison(struct reader *reader, enum filter_comparison *comparison)
{
	static const struct {
		const char *sign;
		enum filter_comparison comparison;
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

/* Whether any class has this name. */
static bool is_known_name(const struct filter_field *field, const char *name)
{
	for (unsigned int class = 1; class < 256; class ++)
		for (unsigned int value = 0; value < field->values; value++)
			if (filter_same_name(field->name_of((uint8_t) class, (uint16_t)value),
					     name))
				return true;
	return false;
}

/* A time such as 500us, in ns. */
static void read_time(struct reader *reader, struct filter *filter)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	double number = -1;
	char *unit = reader->word;

	if (isdigit((unsigned char)reader->word[0]) && !strpbrk(reader->word, "xX"))
		number = strtod(reader->word, &unit);
	if (number < 0)
		fail(reader, "expected a time such as 1ms");
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(unit, units[i].name) && number * units[i].ns < 1e18) {
			filter->number = (uint64_t)(number * units[i].ns);
			return;
		}
	fail(reader, "a time needs a unit: ns, us, ms or s");
}

static void read_number_or_name(struct reader *reader, struct filter *filter)
{
	bool has_names = filter->field->name_of != NULL;
	char *end;

	errno = 0;
	filter->number = strtoull(reader->word, &end, 0);
	if (!reader->word[0] || !is_word_part(reader->word[0]) || reader->word[0] == '-')
		fail(reader, "expected a value");
	else if (errno)
		fail(reader, "number too large");
	else if (*end && (isdigit((unsigned char)reader->word[0]) || !has_names))
		fail(reader, "not a number");
	else if (*end && !is_known_name(filter->field, reader->word))
		fail(reader, "unknown name");
	else if (!*end && filter->number > filter->field->most)
		fail(reader, "value too large for this field");
	else if (*end && filter->comparison > NOT_EQUAL)
		fail(reader, "names can only be compared with = and !=");
	else if (*end)
		strcpy(filter->name, reader->word);
}

static struct filter *read_value(struct reader *reader, struct filter *filter)
{
	if (filter->field->is_time)
		read_time(reader, filter);
	else
		read_number_or_name(reader, filter);
	if (!reader->failed)
		next_word(reader);
	if (!reader->failed)
		return filter;
	filter_free(filter);
	return NULL;
}

static struct filter *read_term(struct reader *reader)
{
	const struct filter_flag *flag = filter_find_flag(reader->word);
	const struct filter_field *field = filter_find_field(reader->word);
	struct filter *filter;

	if (!flag && !field)
		return fail(reader, reader->word[0] ? "unknown word in the filter"
						    : "the filter is incomplete");
	filter = node(reader, flag ? FILTER_FLAG : FILTER_COMPARE, NULL, NULL);
	if (!filter)
		return NULL;
	filter->flag = flag;
	filter->field = field;
	next_word(reader);
	if (flag)
		return filter;
	read_comparison(reader, &filter->comparison);
	return read_value(reader, filter);
}

static struct filter *read_or(struct reader *reader);

static struct filter *read_not(struct reader *reader)
{
	struct filter *inner;

	if (++reader->depth > DEEPEST)
		return fail(reader, "nested too deep");
	if (is_word(reader, "not", "!")) {
		next_word(reader);
		inner = read_not(reader);
		inner = inner ? node(reader, FILTER_NOT, inner, NULL) : NULL;
	} else if (is_word(reader, "(", NULL)) {
		next_word(reader);
		inner = read_or(reader);
		if (inner && !is_word(reader, ")", NULL)) {
			filter_free(inner);
			inner = fail(reader, "expected a closing bracket");
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
		left = node(reader, FILTER_AND, left, right);
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
		left = node(reader, FILTER_OR, left, right);
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
		filter = fail(&reader, "expected \"and\" or \"or\"");
	}
	return filter;
}
