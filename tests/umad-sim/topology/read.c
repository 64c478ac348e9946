/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Reads topology files in the formats of ibnetdiscover and of ibsim, which have the same
 * structure: attributes of a node, its header line, one line for each cabled port. lines.c
 * reads the last two; cables.c uses what a line says about another node.
 */

#include "read.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_DEPTH    8
#define MAX_INCLUDES 100
#define MAX_INCLUDED (1U << 30) /* bytes, of all files */

/* The first GUIDs of ibsim, except that ibsim starts routers at 0, which is not a GUID. */
#define FIRST_CA     0x100000
#define FIRST_SWITCH 0x200000
#define FIRST_ROUTER 0x300000

#define fail(reader, ...) read_fail(reader, (reader)->place, -EINVAL, __VA_ARGS__)

int read_fail(struct reader *reader, struct place place, int ret, const char *format, ...)
{
	char reason[sizeof(reader->error->text)];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	return topology_fail(reader->error, ret, "%.100s:%u: %s",
			     reader->sources[place.file].name, place.line, reason);
}

static int read_source(struct reader *reader, uint32_t source, struct text all);

/* Where a key's number is stored, and its maximum. */
struct attribute {
	const char *key;
	uint64_t most;
	size_t offset; /* of an uint64_t of the reader */
};

#define AT(member) offsetof(struct reader, member)
static const struct attribute attributes[] = {
	{"vendid", 0xffffff, AT(vendor_id)},
	{"devid", 0xffff, AT(device_id)},
	{"sysimgguid", UINT64_MAX, AT(system_guid)},
	{"caguid", UINT64_MAX, AT(next_guid[NODE_CA])},
	{"switchguid", UINT64_MAX, AT(next_guid[NODE_SWITCH])},
	{"rtguid", UINT64_MAX, AT(next_guid[NODE_ROUTER])},
	/* ibsim's own keys: the next GUIDs; width and speed of links whose lines give none */
	{"hcaguids", UINT64_MAX, AT(next_guid[NODE_CA])},
	{"switchguids", UINT64_MAX, AT(next_guid[NODE_SWITCH])},
	{"width", 31, AT(widths)},
	{"speed", 7, AT(speeds)},
	{"extspeed", 15, AT(extended_speeds)},
};

static const struct attribute *find_attribute(struct text key)
{
	size_t i;

	for (i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) {
		if (strlen(attributes[i].key) == key.length &&
		    !memcmp(attributes[i].key, key.bytes, key.length))
			return &attributes[i];
	}
	return NULL;
}

/* A node's own GUID; ibsim's keys for the next GUIDs end with "s". */
static void note_guid(struct reader *reader, const struct attribute *attribute)
{
	enum node_type type;

	for (type = NODE_CA; type <= NODE_ROUTER; type++)
		if (attribute->offset == AT(next_guid) + type * sizeof(uint64_t))
			reader->guid_told[type] =
				attribute->key[strlen(attribute->key) - 1] != 's';
}

/* module = "east" */
static int read_module(struct reader *reader, struct text *rest)
{
	if (!take_quoted(rest, false, &reader->module) || reader->module.length > MAX_NAME ||
	    !at_end(rest))
		return fail(reader, "expected a module's name in quotes");
	reader->node = NONE;
	return 0;
}

/* Reads key=number; a switch's GUID has port 0's in parentheses. key+number adds to the last
 * GUID. */
static int read_attribute(struct reader *reader, struct text *rest)
{
	struct text key = take_while(rest, isalpha);
	const struct attribute *attribute = find_attribute(key);
	bool module =
		key.length == strlen("module") && !memcmp(key.bytes, "module", key.length);
	uint64_t number, *value, own = 0;
	bool sum;

	skip_blanks(rest);
	sum = attribute && take_char(rest, '+');
	if ((!attribute && !module) || (!take_char(rest, '=') && !sum))
		return fail(reader, "not a node, a port or a known attribute");
	skip_blanks(rest);
	if (module)
		return read_module(reader, rest);
	value = (uint64_t *)(void *)((char *)reader + attribute->offset);
	if (!take_number(rest, 0, sum ? attribute->most - *value : attribute->most, &number) ||
	    (rest->length && *rest->bytes == '(' &&
	     !take_enclosed(rest, "()", 16, UINT64_MAX, &own)) ||
	    !at_end(rest))
		return fail(reader, "%s must be a number up to 0x%llx", attribute->key,
			    (unsigned long long)attribute->most);
	*value = sum ? *value + number : number;
	note_guid(reader, attribute);
	if (own && attribute->offset == AT(next_guid[NODE_SWITCH]))
		reader->own_port_guid = own;
	if (attribute->offset == AT(system_guid))
		reader->system_guid_told = true;
	if (attribute->offset == AT(vendor_id))
		reader->vendor_told = true;
	return 0;
}

static int add_source(struct reader *reader, char *name, char *text)
{
	size_t size = (reader->source_count + 1) * sizeof(*reader->sources);
	struct source *grown = realloc(reader->sources, size);

	if (!grown) {
		free(name);
		free(text);
		return -ENOMEM;
	}
	reader->sources = grown;
	grown[reader->source_count++] = (struct source){name, text};
	return 0;
}

/* Names are relative to the folder of the including file. */
static char *beside(const char *file, struct text name)
{
	const char *slash = strrchr(file, '/');
	size_t folder = *name.bytes == '/' || !slash ? 0 : (size_t)(slash - file) + 1;
	char *path = malloc(folder + name.length + 1);

	if (!path)
		return NULL;
	memcpy(path, file, folder);
	memcpy(path + folder, name.bytes, name.length);
	path[folder + name.length] = 0;
	return path;
}

/* Only regular files: reading must not block. */
static int slurp_regular(const char *path, size_t limit, struct text *all, char **bytes)
{
	struct stat status;

	if (stat(path, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EINVAL;
	return topology_slurp(path, limit, bytes, &all->length);
}

static int include(struct reader *reader, struct text name)
{
	struct place place = reader->place;
	char *path = beside(reader->sources[place.file].name, name), *bytes = NULL;
	struct text all = {0};
	int ret;

	if (!path)
		return -ENOMEM;
	ret = slurp_regular(path, MAX_INCLUDED - reader->included, &all, &bytes);
	if (ret) {
		free(path);
		return fail(reader, SHOW ": %s", SHOWN(name), strerror(-ret));
	}
	all.bytes = bytes;
	reader->included += all.length;
	ret = add_source(reader, path, bytes);
	if (ret)
		return ret;
	reader->depth++;
	ret = read_source(reader, reader->source_count - 1, all);
	reader->depth--;
	reader->place = place;
	return ret;
}

/* include "other.net"; quotes and brackets are optional */
static int read_include(struct reader *reader, struct text name)
{
	while (name.length &&
	       (name.bytes[name.length - 1] == ' ' || name.bytes[name.length - 1] == '\t'))
		name.length--;
	if (name.length > 1 && ((*name.bytes == '"' && name.bytes[name.length - 1] == '"') ||
				(*name.bytes == '<' && name.bytes[name.length - 1] == '>'))) {
		drop(&name, 1);
		name.length--;
	}
	if (!name.length || name.length > 4000)
		return fail(reader, "expected the name of a file");
	if (reader->depth == MAX_DEPTH || reader->source_count > MAX_INCLUDES)
		return fail(reader, "more than %u files, or nested more than %u deep",
			    MAX_INCLUDES, MAX_DEPTH);
	return include(reader, name);
}

static int read_line(struct reader *reader, struct text line)
{
	skip_blanks(&line);
	if (!line.length || *line.bytes == '#')
		return 0;
	if (*line.bytes == '[')
		return read_port(reader, &line);
	if (take_word(&line, "Ca") || take_word(&line, "Hca"))
		return read_header(reader, NODE_CA, &line);
	if (take_word(&line, "Switch"))
		return read_header(reader, NODE_SWITCH, &line);
	if (take_word(&line, "Rt"))
		return read_header(reader, NODE_ROUTER, &line);
	if (take_word(&line, "include"))
		return read_include(reader, line);
	/* headings of ibnetdiscover --grouping, lines of its --show; commands of ibsim's
	 * console
	 */
	if (take_word(&line, "Chassis") || take_word(&line, "Non-Chassis") ||
	    take_word(&line, "Hostname:") || take_word(&line, "DR") || take_word(&line, "do"))
		return 0;
	return read_attribute(reader, &line);
}

static int read_source(struct reader *reader, uint32_t source, struct text all)
{
	int ret = 0;

	reader->place = (struct place){source, 0};
	while (all.length && !ret) {
		const char *end = memchr(all.bytes, '\n', all.length);
		struct text line = {all.bytes, end ? (size_t)(end - all.bytes) : all.length};

		reader->place.line++;
		drop(&all, line.length + (end != NULL));
		if (memchr(line.bytes, 0, line.length))
			return fail(reader, "not a text file: it contains a zero byte");
		if (line.length && line.bytes[line.length - 1] == '\r')
			line.length--;
		ret = read_line(reader, line);
	}
	return ret;
}

static void release(struct reader *reader)
{
	uint32_t i;

	for (i = 0; i < reader->source_count; i++) {
		free(reader->sources[i].name);
		free(reader->sources[i].text);
	}
	free(reader->sources);
	free(reader->records);
	free(reader->ends);
	read_forget(reader);
}

int topology_read(struct graph *graph, const char *text, size_t length, const char *file,
		  struct topology_error *error)
{
	struct reader reader = {.graph = graph,
				.error = error,
				.node = NONE,
				.next_guid = {[NODE_CA] = FIRST_CA,
					      [NODE_SWITCH] = FIRST_SWITCH,
					      [NODE_ROUTER] = FIRST_ROUTER}};
	char *name = strdup(file);
	int ret = name ? add_source(&reader, name, NULL) : -ENOMEM;

	if (!ret)
		ret = read_source(&reader, 0, (struct text){text, length});
	if (!ret && !graph->node_count)
		ret = fail(&reader, "the file has no node");
	if (!ret)
		ret = cables_join(&reader);
	if (ret == -ENOMEM)
		topology_fail(error, ret, "%s: %s", file, strerror(ENOMEM));
	release(&reader);
	return ret;
}
