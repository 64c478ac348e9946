/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads the two kinds of lines that make a topology: a node's header and a port's line.
 * ibnetdiscover writes names, LIDs and the width and speed of a link as comments. */

#include "read.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LID        0xbfff /* unicast (IBA 4.1.3) */
#define PERMISSIVE_LID 0xffff /* a device without a LID may show this one */
#define MAX_LMC        7

struct composed {
	struct composed *next;
	char bytes[];
};

#define fail(reader, ...) read_fail(reader, (reader)->place, -EINVAL, __VA_ARGS__)

/* Reads "lid 17", if the line has it; false: not a valid LID. */
static bool take_lid(struct text *rest, uint16_t *lid)
{
	uint64_t number;

	skip_blanks(rest);
	if (!take_word(rest, "lid"))
		return true;
	if (!take_number(rest, 10, PERMISSIVE_LID, &number) ||
	    (number > MAX_LID && number != PERMISSIVE_LID))
		return false;
	*lid = number == PERMISSIVE_LID ? 0 : (uint16_t)number;
	return true;
}

static bool take_lmc(struct text *rest, uint8_t *lmc)
{
	uint64_t number;

	skip_blanks(rest);
	if (!take_word(rest, "lmc"))
		return true;
	if (!take_number(rest, 10, MAX_LMC, &number))
		return false;
	*lmc = (uint8_t)number;
	return true;
}

/* "4x" */
static bool take_width(struct text *rest, uint64_t *lanes)
{
	return take_number(rest, 10, 12, lanes) && link_width_exists((unsigned int)*lanes) &&
	       take_char(rest, 'x');
}

/* "4xHDR" in a comment, if the text has it; unknown parts are "?". */
static bool take_link(struct text *rest, struct end *end)
{
	struct text name;
	uint64_t lanes;

	skip_blanks(rest);
	if (!at_digit(rest) && !(rest->length && *rest->bytes == '?'))
		return true;
	if (!take_prefix(rest, "??")) {
		if (!take_width(rest, &lanes))
			return false;
		end->widths = width_bit((unsigned int)lanes);
	}
	if (take_prefix(rest, "???"))
		return true;
	name = take_while(rest, isalnum);
	end->speeds = (uint16_t)(1U << link_speed_parse(name.bytes, name.length));
	return end->speeds != 1U << SPEED_COUNT;
}

/* "s=4 w=2 v=4" of ibnetdiscover --full: LinkSpeedActive, LinkWidthActive, VLCap */
static bool take_full(struct text *rest)
{
	static const char *const words[] = {"s=", "w=", "v="};
	uint64_t ignored;
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++) {
		skip_blanks(rest);
		if (take_prefix(rest, words[i]) && !take_number(rest, 10, UINT8_MAX, &ignored))
			return false;
	}
	return true;
}

/*
 * The end of a comment, or another comment: ibnetdiscover --grouping marks some Xsigo devices.
 */
static bool at_end_of_comment(struct text *rest)
{
	skip_blanks(rest);
	take_word(rest, "(scp)");
	return at_end(rest);
}

/* "active=1xFDR", umad-sim's own word for a degraded link. */
static bool take_active(struct text *rest, struct end *end)
{
	struct text name;
	uint64_t lanes;

	if (!take_prefix(rest, "active=") || !take_width(rest, &lanes))
		return false;
	name = take_while(rest, isalnum);
	end->active_width = (uint8_t)lanes;
	end->active_speed = (uint8_t)link_speed_parse(name.bytes, name.length);
	return end->active_speed != SPEED_COUNT;
}

/* A name inside a module is a node of that module, unless it names another one. */
static int compose_id(struct reader *reader, struct text *id)
{
	size_t length = reader->module.length + 1 + id->length;
	struct composed *composed;

	if (!id->length)
		return fail(reader, "a node without a name");
	if (reader->module.length && !memchr(id->bytes, '#', id->length)) {
		composed = length > MAX_NAME ? NULL : malloc(sizeof(*composed) + length);
		if (!composed && length <= MAX_NAME)
			return -ENOMEM;
		if (composed) {
			memcpy(composed->bytes, reader->module.bytes, reader->module.length);
			composed->bytes[reader->module.length] = '#';
			memcpy(composed->bytes + length - id->length, id->bytes, id->length);
			composed->next = reader->composed;
			reader->composed = composed;
			id->bytes = composed->bytes;
		}
		id->length = length;
	}
	if (id->length > MAX_NAME)
		return fail(reader, "a name of more than %u bytes", MAX_NAME);
	return 0;
}

static int read_id(struct reader *reader, struct text *rest, struct text *id)
{
	if (!take_quoted(rest, false, id))
		return fail(reader, "expected a name in quotes");
	return compose_id(reader, id);
}

static int remember(struct reader *reader, struct text id)
{
	if (reader->node >= reader->record_room) {
		uint32_t room = reader->record_room ? reader->record_room * 2 : 64;
		struct record *grown = realloc(reader->records, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		reader->records = grown;
		reader->record_room = room;
	}
	reader->records[reader->node] = (struct record){id, reader->place};
	return 0;
}

/* Gives the new node the attributes that precede it, and clears them. GUIDs are incremented as
 * in ibsim. */
static void describe(struct reader *reader, enum node_type type)
{
	struct graph_node *node = &reader->graph->nodes[reader->node];
	uint64_t ports = type == NODE_SWITCH ? 0 : node->port_count;

	node->vendor_id = (uint32_t)reader->vendor_id;
	node->device_id = (uint16_t)reader->device_id;
	/* ibnetdiscover prints vendid and a GUID for each node, but no sysimgguid of 0 */
	if (reader->system_guid_told || (reader->vendor_told && reader->guid_told[type]))
		node->system_guid = reader->system_guid;
	if (reader->own_port_guid && type == NODE_SWITCH)
		reader->graph->ports[node->first_port].guid = reader->own_port_guid;
	reader->vendor_id = reader->device_id = 0;
	reader->system_guid = reader->own_port_guid = 0;
	reader->system_guid_told = reader->vendor_told = false;
	memset(reader->guid_told, 0, sizeof(reader->guid_told));
	reader->next_guid[type] = node->guid + 1 + ports;
	memset(reader->told, 0, sizeof(reader->told));
}

/* ibnetdiscover's ids contain the node's GUID, as in "S-0002c90300f00030". */
static int judge_id(struct reader *reader, enum node_type type, struct text id)
{
	static const struct {
		char letter;
		const char *key;
	} types[] = {
		[NODE_CA] = {'H', "caguid"},
		[NODE_SWITCH] = {'S', "switchguid"},
		[NODE_ROUTER] = {'R', "rtguid"},
	};
	struct text digits = id;
	uint64_t guid;

	if (!reader->guid_told[type] || id.length != 18 ||
	    !take_char(&digits, types[type].letter) || !take_char(&digits, '-') ||
	    !take_number(&digits, 16, UINT64_MAX, &guid) || digits.length ||
	    guid == reader->next_guid[type])
		return 0;
	return fail(reader, "%s=0x%llx, but the node is " SHOW, types[type].key,
		    (unsigned long long)reader->next_guid[type], SHOWN(id));
}

static int add_node(struct reader *reader, enum node_type type, uint64_t ports, struct text id,
		    struct text name)
{
	uint64_t guid = reader->next_guid[type];
	char terminated[MAX_NAME + 1];
	int ret;

	/* a name from ibnetdiscover --node-name-map may be longer than a NodeDescription */
	if (name.length > MAX_NAME)
		name.length = MAX_NAME;
	if (!guid || guid > UINT64_MAX - 2ULL * MAX_PORTS)
		return fail(reader, "not a GUID: 0x%llx", (unsigned long long)guid);
	memcpy(terminated, name.bytes, name.length);
	terminated[name.length] = 0;
	ret = judge_id(reader, type, id);
	if (ret)
		return ret;
	ret = graph_add(reader->graph, type, guid, terminated, (unsigned int)ports,
			&reader->node);
	if (ret == -E2BIG)
		return fail(reader, "more than %u nodes or %u ports", MAX_NODES,
			    MAX_GRAPH_PORTS);
	if (ret)
		return ret;
	describe(reader, type);
	return remember(reader, id);
}

/* After a switch's name: "base port 0 lid 3 lmc 0"; each part is optional. */
static int read_own_port(struct reader *reader, struct text *rest)
{
	struct graph_node *node = &reader->graph->nodes[reader->node];
	struct graph_port *port = &reader->graph->ports[node->first_port];
	bool enhanced, base;

	skip_blanks(rest);
	enhanced = take_word(rest, "enhanced");
	base = !enhanced && take_word(rest, "base");
	if (take_word(rest, "port"))
		take_word(rest, "0");
	if (!take_lid(rest, &port->lid))
		return fail(reader, "expected a LID from 0 to %u", MAX_LID);
	if (!take_lmc(rest, &port->lmc))
		return fail(reader, "expected an LMC from 0 to %u", MAX_LMC);
	/* only an enhanced port 0 can have an LMC (IBA 14.2.5.6) */
	node->enhanced_port0 = enhanced || (!base && port->lmc);
	return 0;
}

/* "leaf" base port 0 lid 3 lmc 0 */
static int read_node_comment(struct reader *reader, struct text *rest)
{
	int ret = 0;

	if (reader->graph->nodes[reader->node].type == NODE_SWITCH)
		ret = read_own_port(reader, rest);
	if (!ret && !at_end_of_comment(rest))
		ret = fail(reader, "unexpected after a node's name: " SHOW, SHOWN(*rest));
	return ret;
}

/* After the first word: 8 "S-0000000000200000" # "name" ... */
int read_header(struct reader *reader, enum node_type type, struct text *rest)
{
	struct text id, name;
	uint64_t ports;
	bool described;
	int ret;

	reader->node = NONE;
	if (!take_number(rest, 10, MAX_PORTS, &ports) || !ports)
		return fail(reader, "expected a number of ports from 1 to %u", MAX_PORTS);
	skip_blanks(rest);
	ret = read_id(reader, rest, &id);
	if (ret)
		return ret;
	if (!at_end(rest))
		return fail(reader, "unexpected after a node's name: " SHOW, SHOWN(*rest));
	name = id;
	described = rest->length && *rest->bytes == '"';
	if (described && !take_quoted(rest, true, &name))
		return fail(reader, "a closing quote is missing");
	ret = add_node(reader, type, ports, id, name);
	return ret || !described ? ret : read_node_comment(reader, rest);
}

/* The widths, speeds and extended speeds that the port supports. ibsim enables them. */
static int read_options(struct reader *reader, struct text *rest, struct end *end)
{
	uint64_t widths = reader->widths, speeds = reader->speeds;
	uint64_t extended = reader->extended_speeds;
	struct graph_port *port = &reader->graph->ports[end->port];
	bool valid = true;

	for (skip_blanks(rest); rest->length && *rest->bytes != '#'; skip_blanks(rest)) {
		struct text option = *rest;
		char key = *rest->bytes;

		if (key == 'a' && take_active(rest, end))
			continue;
		*rest = option;
		drop(rest, 1);
		valid = take_char(rest, '=');
		if (valid && key == 'w')
			valid = take_number(rest, 0, 31, &widths) && widths;
		else if (valid && key == 's')
			valid = take_number(rest, 0, 7, &speeds) && speeds;
		else if (valid && key == 'e')
			valid = take_number(rest, 0, 15, &extended);
		else
			valid = false;
		if (!valid)
			return fail(reader,
				    "expected w=WIDTHS, s=SPEEDS, e=EXTENDED or "
				    "active=1xFDR: " SHOW,
				    SHOWN(option));
	}
	port->widths = end->widths = (uint8_t)widths;
	port->speeds = (uint8_t)speeds;
	port->extended_speeds = (uint8_t)extended;
	end->speeds = (uint16_t)(speeds | extended << FDR);
	return 0;
}

/* "Hca1" lid 1 4xQDR; for a port that is not a switch's: lid 1 lmc 0 "Switch1" lid 3 4xSDR.
 * Each part is optional. */
static int read_port_comment(struct reader *reader, struct text *rest, struct end *end)
{
	struct graph_port own = {0};
	struct text name;
	bool valid;

	if (*rest->bytes != '"' && !(rest->length > 4 && !memcmp(rest->bytes, "lid ", 4)))
		return 0; /* any other comment */
	valid = take_lid(rest, &own.lid) && take_lmc(rest, &own.lmc);
	skip_blanks(rest);
	if (valid && rest->length && *rest->bytes == '"') {
		if (!take_quoted(rest, true, &name))
			return fail(reader, "a closing quote is missing");
		valid = take_lid(rest, &end->peer_lid);
	}
	if (!valid)
		return fail(reader, "expected a LID from 0 to %u or an LMC from 0 to %u",
			    MAX_LID, MAX_LMC);
	if (!take_link(rest, end))
		return fail(reader, "expected a width and speed such as 4xHDR");
	if (!take_full(rest) || !at_end_of_comment(rest))
		return fail(reader, "unexpected after the other end's name: " SHOW,
			    SHOWN(*rest));
	if (reader->graph->nodes[reader->node].type != NODE_SWITCH) {
		reader->graph->ports[end->port].lid = own.lid;
		reader->graph->ports[end->port].lmc = own.lmc;
	}
	return 0;
}

/* Reads a port's number, GUID, and the number printed on the chassis: [1](2c903000a0b11)[ext
 * 7]. A blank precedes the GUID if the line is a CA's and the port is one of another CA. */
static bool take_port(struct text *rest, uint64_t *number, uint64_t *guid)
{
	uint64_t ignored;

	if (rest->length && *rest->bytes == '[' &&
	    !take_enclosed(rest, "[]", 10, MAX_PORTS, number))
		return false;
	skip_blanks(rest);
	if (rest->length && *rest->bytes == '(' &&
	    !take_enclosed(rest, "()", 16, UINT64_MAX, guid))
		return false;
	return !take_prefix(rest, "[ext ") ||
	       (take_number(rest, 10, UINT32_MAX, &ignored) && take_char(rest, ']'));
}

static int add_end(struct reader *reader, const struct end *end)
{
	if (reader->end_count == reader->end_room) {
		uint32_t room = reader->end_room ? reader->end_room * 2 : 64;
		struct end *grown = realloc(reader->ends, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		reader->ends = grown;
		reader->end_room = room;
	}
	reader->ends[reader->end_count++] = *end;
	return 0;
}

static int own_port(struct reader *reader, uint64_t number, struct end *end)
{
	const struct graph_node *node = &reader->graph->nodes[reader->node];
	struct graph_port *ports = reader->graph->ports;

	if (!number || number > node->port_count)
		return fail(reader, "no port %u: the node has %u", (unsigned int)number,
			    node->port_count);
	if (reader->told[number])
		return fail(reader, "port %u is cabled twice", (unsigned int)number);
	reader->told[number] = true;
	end->port = node->first_port + (uint32_t)number;
	if (node->type != NODE_SWITCH && end->guid)
		ports[end->port].guid = end->guid;
	return 0;
}

int read_port(struct reader *reader, struct text *rest)
{
	struct end end = {.place = reader->place};
	uint64_t number = 0, peer_number = 1;
	int ret;

	if (reader->node == NONE)
		return fail(reader, "a port before the first node");
	if (!take_port(rest, &number, &end.guid))
		return fail(reader, "expected a port from 1 to %u in brackets", MAX_PORTS);
	ret = own_port(reader, number, &end);
	if (ret)
		return ret;
	skip_blanks(rest);
	ret = read_id(reader, rest, &end.peer);
	if (ret)
		return ret;
	skip_blanks(rest);
	if (!take_port(rest, &peer_number, &end.peer_guid))
		return fail(reader, "expected the other end's port, from 1 to %u", MAX_PORTS);
	end.peer_number = (uint16_t)peer_number;
	ret = read_options(reader, rest, &end);
	if (!ret && at_end(rest) && rest->length)
		ret = read_port_comment(reader, rest, &end);
	return ret ? ret : add_end(reader, &end);
}

void read_forget(struct reader *reader)
{
	while (reader->composed) {
		struct composed *next = reader->composed->next;

		free(reader->composed);
		reader->composed = next;
	}
}
