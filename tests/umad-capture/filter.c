/* SPDX-License-Identifier: BSD-2-Clause */

#include "filter.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <infiniband/umad_str.h>

#include "attribute_name.h"
#include "classes.h"
#include "filter_parts.h"
#include "rmpp.h"

/* --- the fields of a packet ------------------------------------------------------- */

static bool is_sent(const struct filter_view *view)
{
	return view->record->sent;
}

static bool is_received(const struct filter_view *view)
{
	return !view->record->sent;
}

static bool is_response(const struct filter_view *view)
{
	return mad_is_response(view->mad);
}

static bool is_request(const struct filter_view *view)
{
	return !mad_is_response(view->mad);
}

static bool is_a_smp(const struct filter_view *view)
{
	return is_smp(view->mad);
}

static bool is_a_gmp(const struct filter_view *view)
{
	return !is_smp(view->mad);
}

static bool is_directed(const struct filter_view *view)
{
	return mad_class_of(view->mad) == CLASS_DIRECTED_SMP;
}

/* The status without the direction bit of directed routes. */
static uint64_t status_of(const struct filter_view *view)
{
	return get16(view->mad + 4) & (is_directed(view) ? 0x7fffU : 0xffffU);
}

static bool is_timeout(const struct filter_view *view)
{
	return record_status(view->record) == ETIMEDOUT;
}

static bool is_error(const struct filter_view *view)
{
	return status_of(view) || record_status(view->record);
}

static bool is_rmpp(const struct filter_view *view)
{
	return class_has_rmpp(view->mad[1]) && view->mad[RMPP_FLAGS] & RMPP_ACTIVE;
}

static bool has_grh(const struct filter_view *view)
{
	return view->address.grh;
}

static const struct filter_flag flags[] = {
	{"sent", is_sent},         {"received", is_received}, {"request", is_request},
	{"response", is_response}, {"smp", is_a_smp},         {"gmp", is_a_gmp},
	{"directed", is_directed}, {"timeout", is_timeout},   {"error", is_error},
	{"rmpp", is_rmpp},         {"grh", has_grh},
};

static uint64_t class_of(const struct filter_view *view)
{
	return mad_class_of(view->mad);
}

static uint64_t method_of(const struct filter_view *view)
{
	return mad_method(view->mad);
}

static uint64_t attribute_of(const struct filter_view *view)
{
	return mad_attribute(view->mad);
}

static uint64_t modifier_of(const struct filter_view *view)
{
	return mad_modifier(view->mad);
}

static uint64_t tid_of(const struct filter_view *view)
{
	return get64(view->mad + 8);
}

/* The other side's LID; the own LID is in every packet. */
static uint64_t lid_of(const struct filter_view *view)
{
	return view->record->sent ? view->address.dlid : view->address.slid;
}

static uint64_t length_of(const struct filter_view *view)
{
	return view->record->length;
}

static uint64_t process_of(const struct filter_view *view)
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

static uint64_t time_of(const struct filter_view *view)
{
	return (uint64_t)view->round_trip;
}

static bool has_time(const struct filter_view *view)
{
	return view->round_trip >= 0;
}

static const struct filter_field fields[] = {
	{"class", class_of, 0xff, name_of_class, 256, NULL, false},
	{"method", method_of, 0xff, name_of_method, 256, NULL, false},
	{"attribute", attribute_of, 0xffff, attribute_name, 0x10000, NULL, false},
	{"modifier", modifier_of, 0xffffffff, NULL, 0, NULL, false},
	{"status", status_of, 0xffff, NULL, 0, NULL, false},
	{"lid", lid_of, 0xffff, NULL, 0, NULL, false},
	{"tid", tid_of, UINT64_MAX, NULL, 0, NULL, false},
	{"length", length_of, UINT32_MAX, NULL, 0, NULL, false},
	{"process", process_of, INT32_MAX, NULL, 0, NULL, false},
	{"time", time_of, INT64_MAX, NULL, 0, has_time, true},
};

const struct filter_flag *filter_find_flag(const char *name)
{
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (!strcasecmp(name, flags[i].name))
			return &flags[i];
	return NULL;
}

const struct filter_field *filter_find_field(const char *name)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (!strcasecmp(name, fields[i].name))
			return &fields[i];
	return NULL;
}

/* --- matching ------------------------------------------------------------------- */

bool filter_same_name(const char *text, const char *word)
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

static bool compare(const struct filter *filter, const struct filter_view *view)
{
	uint64_t value;
	bool same;

	if (filter->field->is_present && !filter->field->is_present(view))
		return false;
	value = filter->field->value(view);
	if (filter->name[0]) {
		same = filter_same_name(filter->field->name_of(view->mad[1], (uint16_t)value),
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

static bool match(const struct filter *filter, const struct filter_view *view)
{
	switch (filter->kind) {
	case FILTER_AND:
		return match(filter->left, view) && match(filter->right, view);
	case FILTER_OR:
		return match(filter->left, view) || match(filter->right, view);
	case FILTER_NOT:
		return !match(filter->left, view);
	case FILTER_FLAG:
		return filter->flag->is_set(view);
	default:
		return compare(filter, view);
	}
}

bool filter_match(const struct filter *filter, const struct packet_record *record,
		  int64_t round_trip)
{
	struct filter_view view = {
		.record = record, .round_trip = round_trip, .address = packet_address(record)};

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
