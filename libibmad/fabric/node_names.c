/* SPDX-License-Identifier: BSD-2-Clause */

/* Node names by GUID, from a node-name-map. */

#include <infiniband/mad_fabric_text.h>

#include "base/export.h"
#include "base/report.h"
#include "fabric/graph.h"
#include "fabric/text_line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\v\f\r"

struct entry {
	uint64_t guid;
	size_t order; /* in the file */
	char *name;
};

struct mad_node_names {
	struct entry *entries; /* by GUID, then file order */
	size_t count;
	size_t size;
};

/* Like strtoull(), but a blank or # must follow. */
static bool take_guid(char **at, uint64_t *guid)
{
	char *end;

	*guid = strtoull(*at, &end, 0);
	if (end == *at || (*end && !strchr(BLANKS "#", *end)))
		return false;
	*at = end;
	return true;
}

static int add_name(struct mad_node_names *names, uint64_t guid, const char *name,
		    size_t length)
{
	struct entry *entries = array_reserve(names->entries, names->count + 1, &names->size,
					      sizeof(struct entry));
	struct entry *entry;

	if (!entries)
		return -ENOMEM;
	names->entries = entries;
	entry = &entries[names->count];
	*entry = (struct entry){.guid = guid, .order = names->count};
	entry->name = strndup(name, length);
	if (!entry->name)
		return -ENOMEM;
	names->count++;
	return 0;
}

static int read_name(struct mad_node_names *names, char *text)
{
	uint64_t guid;
	size_t length;

	text += strspn(text, BLANKS);
	if (!*text || *text == '#')
		return 0;
	if (!take_guid(&text, &guid))
		return -EBADMSG;
	text += strspn(text, BLANKS);
	text += strspn(text, "\"#");
	length = strcspn(text, "\"#");
	return length ? add_name(names, guid, text, length) : 0;
}

static int compare_names(const void *one, const void *other)
{
	const struct entry *a = one, *b = other;

	if (a->guid != b->guid)
		return a->guid < b->guid ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

EXPORT int mad_node_names_load(FILE *file, struct mad_node_names **names, unsigned *wrong_line)
{
	struct text_line line = {.file = file};
	int ret = 0;

	if (names)
		*names = NULL;
	if (!file || !names)
		return failure_of_call(0, -EINVAL);
	*names = calloc(1, sizeof(**names));
	if (!*names)
		return failure_of_call(0, -ENOMEM);
	while (!ret && (ret = text_line_read(&line)) > 0)
		ret = read_name(*names, line.text);
	if (ret) {
		if (wrong_line && ret == -EBADMSG)
			*wrong_line = line.number;
		mad_node_names_free(*names);
		*names = NULL;
		return failure_of_call(0, ret);
	}
	if ((*names)->count)
		qsort((*names)->entries, (*names)->count, sizeof(struct entry), compare_names);
	return 0;
}

EXPORT const char *mad_node_names_get(const struct mad_node_names *names, uint64_t guid)
{
	size_t first = 0, end = names ? names->count : 0;

	/* first entry with this or a higher GUID */
	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (names->entries[middle].guid < guid)
			first = middle + 1;
		else
			end = middle;
	}
	if (!names || first == names->count || names->entries[first].guid != guid)
		return NULL;
	return names->entries[first].name;
}

EXPORT void mad_node_names_free(struct mad_node_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->count; i++)
		free(names->entries[i].name);
	free(names->entries);
	free(names);
}
