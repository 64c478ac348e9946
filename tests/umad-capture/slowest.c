/* SPDX-License-Identifier: BSD-2-Clause */

#include "slowest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int slowest_init(struct slowest *slowest, unsigned wanted)
{
	*slowest = (struct slowest){.wanted = wanted};
	slowest->lines = calloc(wanted + 1UL, sizeof(*slowest->lines));
	return slowest->lines ? 0 : -ENOMEM;
}

void slowest_free(struct slowest *slowest)
{
	for (unsigned i = 0; i < slowest->count; i++)
		free(slowest->lines[i].text);
	free(slowest->lines);
	*slowest = (struct slowest){0};
}

static char *make_text(const struct packet_record *record,
		       const struct summary_exchange *exchange)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	summary_print(out, record, exchange);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

int slowest_note(struct slowest *slowest, const struct packet_record *record,
		 const struct summary_exchange *exchange)
{
	unsigned place = slowest->count;
	char *text;

	while (place && slowest->lines[place - 1].round_trip < exchange->round_trip)
		place--;
	if (exchange->round_trip < 0 || place == slowest->wanted)
		return 0;
	text = make_text(record, exchange);
	if (!text)
		return -ENOMEM;
	if (slowest->count == slowest->wanted)
		free(slowest->lines[--slowest->count].text);
	memmove(&slowest->lines[place + 1], &slowest->lines[place],
		(slowest->count - place) * sizeof(*slowest->lines));
	slowest->lines[place] = (struct slowest_line){exchange->round_trip, text};
	slowest->count++;
	return 0;
}

void slowest_print(FILE *out, const struct slowest *slowest)
{
	for (unsigned i = 0; i < slowest->count; i++)
		fputs(slowest->lines[i].text, out);
}
