/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A text up to a NUL byte is a filter of umad-capture, the bytes behind it are a packet. A text
 * that is rejected has a reason and a position within the text. If the text is accepted, the
 * packet matches it or its negation.
 */
#include "fuzz.h"

#include "filter.h"

#include <stdio.h>

static struct packet_record *make_packet(const uint8_t *data, size_t size)
{
	struct packet_record *record = calloc(1, sizeof(*record) + size);

	if (size) {
		memcpy(record->header, data,
		       size < sizeof(record->header) ? size : sizeof(record->header));
		memcpy(record + 1, data, size);
	}
	record->length = (uint32_t)size;
	record->size = (uint32_t)(sizeof(*record) + size);
	record->sent = size && data[0] & 1;
	return record;
}

/* Any time, or none, for a packet that was received. */
static int64_t round_trip_of(const struct packet_record *record)
{
	return record->sent || record->length < 2 ? -1 : (int64_t)record->length * 1000;
}

static void check_negation(const char *text, const struct packet_record *record, bool matched)
{
	char *negation = malloc(strlen(text) + sizeof("not ()"));
	struct filter_error error;
	struct filter *filter;

	sprintf(negation, "not (%s)", text);
	filter = filter_read(negation, &error);
	if (filter) /* the negation may be too deep */
		check(filter_match(filter, record, round_trip_of(record)) != matched);
	filter_free(filter);
	free(negation);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = take_text(&(struct input){data, size});
	size_t length = strlen(text);
	struct packet_record *record = make_packet(data + length, size - length);
	struct filter_error error = {0};
	struct filter *filter = filter_read(text, &error);

	if (filter) {
		check_negation(text, record,
			       filter_match(filter, record, round_trip_of(record)));
	} else {
		check(error.at <= length);
		check(error.text[0] && memchr(error.text, 0, sizeof(error.text)));
	}
	filter_free(filter);
	free(record);
	free(text);
	return 0;
}
