/* SPDX-License-Identifier: BSD-2-Clause */

/* An expression in memory: built by filter_read.c, evaluated by filter.c. */
#ifndef UMAD_CAPTURE_FILTER_PARTS_H
#define UMAD_CAPTURE_FILTER_PARTS_H

#include "packet_frame.h"

#define WORD_BYTES 64

enum filter_kind {
	FILTER_AND,
	FILTER_OR,
	FILTER_NOT,
	FILTER_FLAG,
	FILTER_COMPARE
};

enum filter_comparison {
	EQUAL,
	NOT_EQUAL,
	LESS,
	LESS_OR_EQUAL,
	GREATER,
	GREATER_OR_EQUAL
};

/* A packet as the filter sees it. */
struct filter_view {
	const struct packet_record *record;
	int64_t round_trip; /* ns; -1: not known */
	struct frame_address address;
	uint8_t mad[MAD_BYTES];
};

struct filter_flag {
	const char *name;
	bool (*is_set)(const struct filter_view *view);
};

struct filter_field {
	const char *name;
	uint64_t (*value)(const struct filter_view *view);
	uint64_t most; /* its largest value */
	/* text for the value in this packet; NULL: the field has no names */
	const char *(*name_of)(uint8_t mgmt_class, uint16_t value);
	unsigned values; /* of a field with names: how many values there are */
	/* whether the packet has the field; NULL: every packet does */
	bool (*is_present)(const struct filter_view *view);
	bool is_time; /* numbers have a unit; the value is in ns */
};

struct filter {
	enum filter_kind kind;
	struct filter *left, *right;
	const struct filter_flag *flag;
	const struct filter_field *field;
	enum filter_comparison comparison;
	char name[WORD_BYTES]; /* to compare as text; "": compare the number */
	uint64_t number;
};

/* Finds by name, ignoring case; NULL if there is none. */
const struct filter_flag *filter_find_flag(const char *name);
const struct filter_field *filter_find_field(const char *name);

/* Texts contain blanks ("Class Port Info"), words of a filter do not. */
bool filter_same_name(const char *text, const char *word);

#endif
