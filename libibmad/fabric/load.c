/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Loads a fabric in ibnetdiscover's format, in one pass. Each line creates a node or port with
 * a claim, i.e. its other end; finally, claims are turned into links.
 */

#include <infiniband/mad_fabric_text.h>

#include "base/export.h"
#include "base/report.h"
#include "fabric/graph.h"
#include "fabric/text_line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NODES     200000
#define MAX_PORTS     2000000
/* At most this many nodes with the claim's GUID are compared. */
#define MAX_SAME_GUID 16

/* A port's other end, as its line says. */
struct claim {
	uint64_t guid;
	unsigned line; /* 0: no line */
	uint8_t type;
	uint8_t number;
};

/* The lines before a node's line, and the node. */
struct block {
	uint64_t system_guid;
	uint64_t guid;      /* from switchguid=, caguid= or rtguid= */
	uint64_t port_guid; /* a switch's port 0 */
	unsigned vendor_id;
	unsigned device_id;
	uint8_t type; /* of the node with "guid"; 0: no such line */
	struct mad_fabric_node *node;
	char description[IB_SMP_DATA_SIZE + 1]; /* from a comment; "": none */
};

struct load {
	struct text_line line;
	struct mad_fabric *fabric;
	struct block block;
	struct claim *claims; /* by port index; NULL: no port */
	size_t claim_size;
	bool has_origin;
	uint64_t origin_guid, origin_port_guid;
};

/* --- parts of a line -------------------------------------------------------------- */

/*
 * These parse the start of a text and move *at past it. After false, *at is undefined (but
 * unchanged by take_word()).
 */

static void take_blanks(const char **at)
{
	*at += strspn(*at, " \t");
}

static bool take_word(const char **at, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*at, word, length) != 0)
		return false;
	*at += length;
	return true;
}

static bool take_decimal(const char **at, unsigned most, unsigned *number)
{
	const char *begin = *at;
	unsigned value = 0;

	for (; **at >= '0' && **at <= '9'; ++*at) {
		value = value * 10 + (unsigned)(**at - '0');
		if (value > most)
			return false;
	}
	*number = value;
	return *at != begin;
}

static bool take_hex(const char **at, uint64_t *number)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	const char *begin = *at, *digit;
	uint64_t value = 0;

	for (; **at && (digit = strchr(digits, **at)); ++*at) {
		size_t index = (size_t)(digit - digits);

		if (value >> 60)
			return false;
		value = value << 4 | (index < 16 ? index : index - 6);
	}
	*number = value;
	return *at != begin;
}

static bool at_end(const char **at)
{
	take_blanks(at);
	return !**at;
}

static bool at_end_or_comment(const char **at)
{
	return at_end(at) || **at == '#';
}

/* Also accepts --grouping's marks for Xsigo devices. */
static bool at_end_of_comment(const char **at)
{
	take_blanks(at);
	take_word(at, "(scp)");
	return at_end_or_comment(at);
}

/* "S-0002c90300f00000" */
static bool take_id(const char **at, unsigned *type, uint64_t *guid)
{
	if (take_word(at, "\"H-"))
		*type = IB_NODE_CA;
	else if (take_word(at, "\"S-"))
		*type = IB_NODE_SWITCH;
	else if (take_word(at, "\"R-"))
		*type = IB_NODE_ROUTER;
	else
		return false;
	return take_hex(at, guid) && take_word(at, "\"");
}

/* Text from a quotation mark to the last one in the line: names may contain quotation marks. */
static bool take_name(const char **at, const char **name, size_t *length)
{
	const char *end;

	if (!take_word(at, "\""))
		return false;
	*name = *at;
	end = strrchr(*at, '"');
	if (!end)
		return false;
	*length = (size_t)(end - *at);
	*at = end + 1;
	return true;
}

/* optional "(2c90300100062)" */
static bool take_guid_of_port(const char **at, uint64_t *guid)
{
	return !take_word(at, "(") || (take_hex(at, guid) && take_word(at, ")"));
}

/* optional "lid 4" or "lmc 0"; leading blanks are optional */
static bool take_value(const char **at, const char *word, unsigned most, unsigned *value)
{
	take_blanks(at);
	return !take_word(at, word) || take_decimal(at, most, value);
}

static bool take_lid_and_lmc(const char **at, unsigned *lid, unsigned *lmc)
{
	return take_value(at, "lid ", UINT16_MAX, lid) && take_value(at, "lmc ", 7, lmc);
}

/* --- lines with a number of the node ---------------------------------------------- */

static bool take_assignment(const char *at, const char *word, uint64_t most, uint64_t *number)
{
	/* --grouping puts the chassis in a comment */
	return take_word(&at, word) && take_hex(&at, number) && *number <= most &&
	       at_end_or_comment(&at);
}

static bool read_guid(struct block *block, const char *at, unsigned type)
{
	if (!take_hex(&at, &block->guid))
		return false;
	block->type = (uint8_t)type;
	block->port_guid = block->guid;
	return take_guid_of_port(&at, &block->port_guid) && at_end_or_comment(&at);
}

static bool read_assignment(struct block *block, const char *at)
{
	uint64_t number;

	if (take_word(&at, "switchguid=0x"))
		return read_guid(block, at, IB_NODE_SWITCH);
	if (take_word(&at, "caguid=0x"))
		return read_guid(block, at, IB_NODE_CA);
	if (take_word(&at, "rtguid=0x"))
		return read_guid(block, at, IB_NODE_ROUTER);
	if (take_assignment(at, "vendid=0x", UINT32_MAX, &number))
		block->vendor_id = (unsigned)number;
	else if (take_assignment(at, "devid=0x", UINT16_MAX, &number))
		block->device_id = (unsigned)number;
	else
		return take_assignment(at, "sysimgguid=0x", UINT64_MAX, &block->system_guid);
	return true;
}

/* A description in hex, two digits per byte. */
static bool read_description(struct block *block, const char *at)
{
	size_t length = strlen(at);

	if (!length || length % 2 || length / 2 > IB_SMP_DATA_SIZE)
		return false;
	for (size_t i = 0; i < length; i += 2) {
		const char digits[] = {at[i], at[i + 1], '\0'}, *digit = digits;
		uint64_t byte;

		if (!take_hex(&digit, &byte) || *digit || !byte)
			return false;
		block->description[i / 2] = (char)byte;
	}
	block->description[length / 2] = '\0';
	return true;
}

/* A block's first line ends the previous block. */
static struct block *begin_block(struct load *load)
{
	if (load->block.node)
		load->block = (struct block){.node = NULL};
	return &load->block;
}

/* --- the line of a node ----------------------------------------------------------- */

static int add_loaded_node(struct load *load, unsigned type, uint64_t guid, unsigned ports)
{
	struct block *block = &load->block;
	struct mad_fabric_node *node;
	struct claim *claims;

	if (load->fabric->node_count == MAX_NODES)
		return -EFBIG;
	node = graph_add_node(load->fabric, guid, type, ports);
	if (!node)
		return -ENOMEM;
	node->vendor_id = block->vendor_id;
	node->device_id = (uint16_t)block->device_id;
	node->system_guid = block->system_guid;
	if (type == IB_NODE_SWITCH)
		for (unsigned number = 0; number <= ports; number++)
			graph_port(node, number)->guid = block->type ? block->port_guid : guid;
	block->node = node;
	if (load->fabric->port_count > MAX_PORTS)
		return -EFBIG;
	claims = array_reserve(load->claims, load->fabric->port_count, &load->claim_size,
			       sizeof(struct claim));
	if (!claims && load->fabric->port_count)
		return -ENOMEM;
	load->claims = claims;
	return 0;
}

/* "base port 0 lid 5 lmc 0", each part optional */
static bool take_port0(const char **at, struct mad_fabric_node *node)
{
	struct mad_fabric_port *port = graph_port(node, 0);
	unsigned lid = 0, lmc = 0;

	take_blanks(at);
	node->enhanced_port0 = take_word(at, "enhanced ");
	if (!node->enhanced_port0)
		take_word(at, "base ");
	take_word(at, "port 0");
	if (!take_lid_and_lmc(at, &lid, &lmc))
		return false;
	node->lid = port->lid = (uint16_t)lid;
	node->lmc = port->lmc = (uint8_t)lmc;
	return true;
}

/* Optional text after the ID: # "leaf-4" base port 0 lid 5 lmc 0 */
static bool take_node_comment(const struct load *load, const char *at,
			      struct mad_fabric_node *node)
{
	const char *name = "";
	size_t length = 0;
	bool has_name;

	if (!at_end(&at) && !take_word(&at, "#"))
		return false;
	take_blanks(&at);
	has_name = *at == '"'; /* otherwise no comment, or some other one */
	if (has_name && !take_name(&at, &name, &length))
		return false;
	if (load->block.description[0]) { /* exact */
		name = load->block.description;
		length = strlen(name);
	}
	if (length >= sizeof(node->description))
		length = sizeof(node->description) - 1;
	memcpy(node->description, name, length);
	if (has_name && node->type == IB_NODE_SWITCH && !take_port0(&at, node))
		return false;
	return !has_name || at_end_of_comment(&at);
}

static int read_node(struct load *load, const char *at, unsigned type)
{
	const struct block *block = begin_block(load);
	unsigned ports, id_type;
	uint64_t guid;
	int err;

	take_blanks(&at);
	if (!take_decimal(&at, UINT8_MAX, &ports))
		return -EBADMSG;
	take_blanks(&at);
	if (!take_id(&at, &id_type, &guid) || id_type != type ||
	    (block->type && (block->type != type || block->guid != guid)))
		return -EBADMSG;
	err = add_loaded_node(load, type, guid, ports);
	if (err)
		return err;
	return take_node_comment(load, at, block->node) ? 0 : -EBADMSG;
}

/* --- the line of a port ----------------------------------------------------------- */

/* optional "4xHDR"; "?" for unknown parts */
static bool take_rate(const char **at, struct mad_fabric_port *port)
{
	unsigned width = 0, speed = MAD_SPEED_XDR;
	size_t length;

	take_blanks(at);
	if (**at != '?' && (**at < '0' || **at > '9'))
		return true;
	if (!take_word(at, "??")) {
		if (!take_decimal(at, UINT8_MAX, &width) || !take_word(at, "x"))
			return false;
		if (width != 1 && width != 2 && width != 4 && width != 8 && width != 12)
			return false;
	}
	port->width = (uint8_t)width;
	if (take_word(at, "???"))
		return true;
	length = strcspn(*at, " \t");
	for (; speed > MAD_SPEED_NONE; speed--) {
		const char *name = mad_link_speed_name(speed);

		if (strlen(name) == length && take_word(at, name))
			break;
	}
	if (speed == MAD_SPEED_NONE)
		return false;
	port->speed = (uint8_t)speed;
	port->rate_gbps = mad_link_rate_gbps(width, speed);
	return true;
}

/* Optional text after the other end: # lid 14 lmc 0 "leaf-4" lid 5 4xHDR */
static bool take_port_comment(const char *at, struct mad_fabric_port *port)
{
	unsigned lid = 0, lmc = 0, ignored;
	const char *name;
	size_t length;

	if (!at_end(&at) && !take_word(&at, "#"))
		return false;
	take_blanks(&at);
	if (*at != '"' && strncmp(at, "lid ", 4) != 0) /* no comment, or some other one */
		return true;
	if (!take_lid_and_lmc(&at, &lid, &lmc))
		return false;
	if (port->node->type != IB_NODE_SWITCH) {
		port->lid = (uint16_t)lid;
		port->lmc = (uint8_t)lmc;
	}
	take_blanks(&at);
	if (*at == '"' && !take_name(&at, &name, &length))
		return false;
	/* --full appends "s=4 w=2 v=4": LinkSpeedActive, LinkWidthActive, VLCap */
	return take_value(&at, "lid ", UINT16_MAX, &ignored) && take_rate(&at, port) &&
	       take_value(&at, "s=", UINT8_MAX, &ignored) &&
	       take_value(&at, "w=", UINT8_MAX, &ignored) &&
	       take_value(&at, "v=", UINT8_MAX, &ignored) && at_end_of_comment(&at);
}

/* "2][ext 5]"; the second part only with known chassis */
static bool take_port_number(const char **at, unsigned *number)
{
	unsigned external;

	if (!take_decimal(at, UINT8_MAX, number) || !*number || !take_word(at, "]"))
		return false;
	return !take_word(at, "[ext ") ||
	       (take_decimal(at, UINT8_MAX, &external) && take_word(at, "]"));
}

/* [2](2c90300100062) 	"S-0002c90300f00000"[7]		# and a comment */
static bool read_port_line(struct load *load, const char *at)
{
	const struct mad_fabric_node *node = load->block.node;
	struct mad_fabric_port *port;
	struct claim *claim;
	unsigned type, number;
	uint64_t guid = 0, ignored;

	if (!node || !take_port_number(&at, &number))
		return false;
	port = graph_port(node, number);
	if (!port || !take_guid_of_port(&at, &guid))
		return false;
	if (node->type != IB_NODE_SWITCH)
		port->guid = guid;
	claim = &load->claims[port->index];
	take_blanks(&at);
	if (claim->line || !take_id(&at, &type, &guid) || !take_word(&at, "[") ||
	    !take_port_number(&at, &number))
		return false;
	take_blanks(&at);
	if (!take_guid_of_port(&at, &ignored) || !take_port_comment(at, port))
		return false;
	*claim = (struct claim){.guid = guid,
				.line = load->line.number,
				.type = (uint8_t)type,
				.number = (uint8_t)number};
	return true;
}

/* --- each line -------------------------------------------------------------------- */

static bool read_comment(struct load *load, const char *at)
{
	if (take_word(&at, "# NodeDescription "))
		return read_description(begin_block(load), at);
	if (!take_word(&at, "# Initiated from node "))
		return true;
	load->has_origin = take_hex(&at, &load->origin_guid) && take_word(&at, " port ") &&
			   take_hex(&at, &load->origin_port_guid) && at_end(&at);
	return load->has_origin;
}

static int read_line(struct load *load)
{
	const char *at = load->line.text;

	if (at_end(&at))
		return 0;
	if (*at == '#')
		return read_comment(load, at) ? 0 : -EBADMSG;
	if (take_word(&at, "["))
		return read_port_line(load, at) ? 0 : -EBADMSG;
	if (take_word(&at, "Switch"))
		return read_node(load, at, IB_NODE_SWITCH);
	if (take_word(&at, "Ca") || take_word(&at, "Hca"))
		return read_node(load, at, IB_NODE_CA);
	if (take_word(&at, "Rt"))
		return read_node(load, at, IB_NODE_ROUTER);
	/* --grouping's headings, --show's lines */
	if (take_word(&at, "Chassis ") || take_word(&at, "Non-Chassis Nodes") ||
	    take_word(&at, "Hostname: ") || take_word(&at, "DR path "))
		return 0;
	return read_assignment(begin_block(load), at) ? 0 : -EBADMSG;
}

/* --- links ------------------------------------------------------------------------ */

static bool claims_back(const struct load *load, const struct mad_fabric_port *port,
			const struct mad_fabric_port *other)
{
	const struct claim *claim = &load->claims[other->index];

	return claim->line && claim->guid == port->node->guid &&
	       claim->type == port->node->type && claim->number == port->number;
}

/* The port a claim refers to. Of nodes sharing a GUID, the first that claims the same link. */
static struct mad_fabric_port *claimed_port(const struct load *load,
					    const struct mad_fabric_port *port)
{
	const struct claim *claim = &load->claims[port->index];
	const struct mad_fabric_node *first = graph_find_node(load->fabric, claim->guid);
	const struct graph_node *node = first ? graph_node_of(first) : NULL;
	struct mad_fabric_port *found = NULL;

	for (unsigned tried = 0; node && tried < MAX_SAME_GUID; node = node->next_guid) {
		struct mad_fabric_port *other;

		if (node->node.guid != claim->guid)
			continue;
		tried++;
		other = graph_port(&node->node, claim->number);
		if (node->node.type != claim->type || !other)
			continue;
		if (claims_back(load, port, other))
			return other;
		if (!found)
			found = other;
	}
	return found;
}

static int link_claimed_port(struct load *load, struct mad_fabric_port *port)
{
	struct mad_fabric_port *other = claimed_port(load, port);
	struct mad_fabric_problem problem = {.port = port, .other_port = other};

	if (!other)
		return -EBADMSG;
	port->peer = other;
	if (!claims_back(load, port, other))
		problem.kind = MAD_FABRIC_PROBLEM_PEER;
	else if (other->node == port->node && other->number >= port->number)
		problem.kind = MAD_FABRIC_PROBLEM_LOOP;
	else
		return 0;
	return graph_add_problem(load->fabric, &problem, NULL);
}

/* Sets *wrong to the first line whose claim refers to no port. */
static int link_claimed_ports(struct load *load, unsigned *wrong)
{
	struct mad_fabric_port *port = NULL;

	*wrong = 0;
	while (load->claims && (port = graph_next_port(load->fabric, port))) {
		unsigned line = load->claims[port->index].line;
		int err = line ? link_claimed_port(load, port) : 0;

		if (err && err != -EBADMSG)
			return err;
		if (err && (!*wrong || line < *wrong))
			*wrong = line;
	}
	return *wrong ? -EBADMSG : 0;
}

/* --- what follows from the whole --------------------------------------------------- */

/* A CA's or router's LID is that of its first port with a link. */
static void set_entry_port(struct mad_fabric_node *node)
{
	for (unsigned number = 1; number <= node->port_count; number++) {
		const struct mad_fabric_port *port = graph_port(node, number);

		if (!port->peer)
			continue;
		node->entry_port = (uint8_t)number;
		node->lid = port->lid;
		node->lmc = port->lmc;
		return;
	}
}

static struct mad_fabric_port *find_origin(const struct load *load)
{
	struct mad_fabric_node *node = graph_find_node(load->fabric, load->origin_guid);

	if (!node)
		return NULL;
	if (node->type == IB_NODE_SWITCH)
		return graph_port(node, 0);
	for (unsigned number = 1; number <= node->port_count; number++)
		if (graph_port(node, number)->guid == load->origin_port_guid)
			return graph_port(node, number);
	/* A single port without a link has no line. */
	if (node->port_count != 1 || graph_port(node, 1)->guid)
		return NULL;
	graph_port(node, 1)->guid = load->origin_port_guid;
	return graph_port(node, 1);
}

static int load_finish(struct load *load)
{
	for (size_t i = 0; i < load->fabric->node_count; i++) {
		struct mad_fabric_node *node = graph_node(load->fabric, i);
		const struct mad_fabric_problem twice = {
			.kind = MAD_FABRIC_PROBLEM_GUID,
			.node = node,
			.other_node = graph_find_node(load->fabric, node->guid),
			.guid = node->guid};

		if (node->type != IB_NODE_SWITCH)
			set_entry_port(node);
		if (twice.other_node != node && graph_add_problem(load->fabric, &twice, NULL))
			return -ENOMEM;
	}
	if (load->has_origin)
		load->fabric->origin = find_origin(load);
	return graph_finish(load->fabric);
}

/* For -EBADMSG, sets *wrong to the line; 0: no node in the file. */
static int load_fabric(struct load *load, unsigned *wrong)
{
	int ret = 0;

	while (!ret && (ret = text_line_read(&load->line)) > 0)
		ret = read_line(load);
	*wrong = load->line.number;
	if (ret)
		return ret;
	*wrong = 0;
	if (!load->fabric->node_count)
		return -EBADMSG;
	ret = link_claimed_ports(load, wrong);
	return ret ? ret : load_finish(load);
}

EXPORT int mad_fabric_load(FILE *file, struct mad_fabric **fabric, unsigned *line)
{
	struct load load = {.line.file = file};
	unsigned wrong;
	int err;

	if (fabric)
		*fabric = NULL;
	if (!file || !fabric)
		return failure_of_call(0, -EINVAL);
	load.fabric = graph_create();
	if (!load.fabric)
		return failure_of_call(0, -ENOMEM);
	err = load_fabric(&load, &wrong);
	free(load.claims);
	if (!err) {
		*fabric = load.fabric;
		return 0;
	}
	if (line && err == -EBADMSG)
		*line = wrong;
	mad_fabric_free(load.fabric);
	return failure_of_call(0, err);
}
