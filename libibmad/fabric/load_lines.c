/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads each line of the format of ibnetdiscover. */

#include "fabric/load_lines.h"

#include "fabric/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NODES 200000
#define MAX_PORTS 2000000

static unsigned type_of_letter(char letter)
{
	return letter == 'H'   ? IB_NODE_CA
	       : letter == 'S' ? IB_NODE_SWITCH
	       : letter == 'R' ? IB_NODE_ROUTER
			       : 0;
}

/* "S-0002c90300f00000" */
static bool take_id(const char **at, unsigned *type, uint64_t *guid)
{
	if (!text_take_word(at, "\""))
		return false;
	*type = type_of_letter(**at);
	++*at;
	return *type && text_take_word(at, "-") && text_take_hex(at, guid) &&
	       text_take_word(at, "\"");
}

/*
 * Text between a quotation mark and the last one of the line, because a name may have quotation
 * marks.
 */
static bool take_name(const char **at, const char **name, size_t *length)
{
	const char *end;

	if (!text_take_word(at, "\""))
		return false;
	*name = *at;
	end = strrchr(*at, '"');
	if (!end)
		return false;
	*length = (size_t)(end - *at);
	*at = end + 1;
	return true;
}

static bool at_end(const char **at)
{
	text_take_blanks(at);
	return !**at;
}

/* "lid 4" or "lmc 0", if the text has it; the blanks before it are optional. */
static bool take_value(const char **at, const char *word, unsigned most, unsigned *value)
{
	text_take_blanks(at);
	return !text_take_word(at, word) || text_take_decimal(at, most, value);
}

static bool take_lid_and_lmc(const char **at, unsigned *lid, unsigned *lmc)
{
	return take_value(at, "lid ", UINT16_MAX, lid) && take_value(at, "lmc ", 7, lmc);
}

/* The end of a comment, or another comment. --grouping marks some devices of Xsigo. */
static bool at_end_of_comment(const char **at)
{
	text_take_blanks(at);
	text_take_word(at, "(scp)");
	return at_end(at) || **at == '#';
}

/* --- lines with a number of the node ---------------------------------------------- */

static bool take_assignment(const char *at, const char *word, uint64_t most, uint64_t *number)
{
	if (!text_take_word(&at, word) || !text_take_hex(&at, number) || *number > most)
		return false;
	text_take_blanks(&at);
	return !*at || *at == '#'; /* --grouping has the chassis here */
}

static int read_guid_line(struct load *load, const char *at, unsigned type)
{
	struct block *block = &load->block;

	if (!text_take_hex(&at, &block->guid))
		return -EBADMSG;
	block->type = (uint8_t)type;
	block->port_guid = block->guid;
	if (*at == '(') {
		at++;
		if (!text_take_hex(&at, &block->port_guid) || !text_take_word(&at, ")"))
			return -EBADMSG;
	}
	text_take_blanks(&at);
	return !*at || *at == '#' ? 0 : -EBADMSG;
}

/* The first line of a block ends the block before. */
static void begin_block(struct load *load)
{
	if (load->block.node)
		load->block = (struct block){.node = NULL};
}

static int read_assignment(struct load *load, const char *at)
{
	struct block *block = &load->block;
	uint64_t number;

	begin_block(load);
	if (text_take_word(&at, "switchguid=0x"))
		return read_guid_line(load, at, IB_NODE_SWITCH);
	if (text_take_word(&at, "caguid=0x"))
		return read_guid_line(load, at, IB_NODE_CA);
	if (text_take_word(&at, "rtguid=0x"))
		return read_guid_line(load, at, IB_NODE_ROUTER);
	if (take_assignment(at, "vendid=0x", UINT32_MAX, &number))
		block->vendor_id = (unsigned)number;
	else if (take_assignment(at, "devid=0x", UINT16_MAX, &number))
		block->device_id = (unsigned)number;
	else if (!take_assignment(at, "sysimgguid=0x", UINT64_MAX, &block->system_guid))
		return -EBADMSG;
	return 0;
}

/* --- the line of a node ----------------------------------------------------------- */

/* Allocates the claims of the ports of a node that was added. */
static int make_claims(struct load *load)
{
	struct claim *claims;

	if (load->fabric->port_count > MAX_PORTS)
		return -EFBIG;
	claims = array_reserve(load->claims, load->fabric->port_count, &load->claim_size,
			       sizeof(struct claim));
	if (!claims && load->fabric->port_count)
		return -ENOMEM;
	load->claims = claims;
	return 0;
}

static int add_node(struct load *load, unsigned type, uint64_t guid, unsigned ports)
{
	struct block *block = &load->block;
	struct mad_fabric_node *node;

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
	return make_claims(load);
}

/* "base port 0 lid 5 lmc 0"; each part is optional. */
static bool take_port0(const char **at, struct mad_fabric_node *node)
{
	struct mad_fabric_port *port = graph_port(node, 0);
	unsigned lid = 0, lmc = 0;

	text_take_blanks(at);
	node->enhanced_port0 = text_take_word(at, "enhanced ");
	if (!node->enhanced_port0)
		text_take_word(at, "base ");
	text_take_word(at, "port 0");
	if (!take_lid_and_lmc(at, &lid, &lmc))
		return false;
	node->lid = port->lid = (uint16_t)lid;
	node->lmc = port->lmc = (uint8_t)lmc;
	return true;
}

/* The description of the comment before is exact. Without it, that of the line counts. */
static void set_description(const struct load *load, struct mad_fabric_node *node,
			    const char *name, size_t length)
{
	if (load->block.description[0]) {
		name = load->block.description;
		length = strlen(name);
	}
	if (length >= sizeof(node->description))
		length = sizeof(node->description) - 1;
	memcpy(node->description, name, length);
}

/* The optional text behind the ID: # "leaf-4" base port 0 lid 5 lmc 0 */
static bool take_node_comment(const struct load *load, const char *at,
			      struct mad_fabric_node *node)
{
	const char *name;
	size_t length;

	if (!at_end(&at) && !text_take_word(&at, "#"))
		return false;
	text_take_blanks(&at);
	if (*at != '"') { /* no comment, or any other one */
		set_description(load, node, "", 0);
		return true;
	}
	if (!take_name(&at, &name, &length))
		return false;
	set_description(load, node, name, length);
	if (node->type == IB_NODE_SWITCH && !take_port0(&at, node))
		return false;
	return at_end_of_comment(&at);
}

static int read_node(struct load *load, const char *at, unsigned type)
{
	const struct block *block;
	unsigned ports, id_type;
	uint64_t guid;
	int err;

	begin_block(load);
	block = &load->block;
	text_take_blanks(&at);
	if (!text_take_decimal(&at, UINT8_MAX, &ports))
		return -EBADMSG;
	text_take_blanks(&at);
	if (!take_id(&at, &id_type, &guid) || id_type != type ||
	    (block->type && (block->type != type || block->guid != guid)))
		return -EBADMSG;
	err = add_node(load, type, guid, ports);
	if (err)
		return err;
	return take_node_comment(load, at, block->node) ? 0 : -EBADMSG;
}

/* --- the line of a port ----------------------------------------------------------- */

static bool take_guid_of_port(const char **at, uint64_t *guid)
{
	return !text_take_word(at, "(") || (text_take_hex(at, guid) && text_take_word(at, ")"));
}

/* "4xHDR", if the text has it; unknown parts are "?". */
static bool take_rate(const char **at, struct mad_fabric_port *port)
{
	static const unsigned lanes[] = {1, 2, 4, 8, 12};
	unsigned width = 0, speed = MAD_SPEED_XDR;
	bool known = false;
	size_t length;

	text_take_blanks(at);
	if (**at != '?' && (**at < '0' || **at > '9'))
		return true;
	if (!text_take_word(at, "??")) {
		if (!text_take_decimal(at, UINT8_MAX, &width) || !text_take_word(at, "x"))
			return false;
		for (size_t i = 0; i < sizeof(lanes) / sizeof(*lanes); i++)
			known = known || lanes[i] == width;
		if (!known)
			return false;
	}
	port->width = (uint8_t)width;
	if (text_take_word(at, "???"))
		return true;
	length = strcspn(*at, " \t");
	for (; speed > MAD_SPEED_NONE; speed--) {
		const char *name = mad_link_speed_name(speed);

		if (strlen(name) == length && text_take_word(at, name))
			break;
	}
	if (speed == MAD_SPEED_NONE)
		return false;
	port->speed = (uint8_t)speed;
	port->rate_gbps = mad_link_rate_gbps(width, speed);
	return true;
}

/* "s=4 w=2 v=4" of --full: LinkSpeedActive, LinkWidthActive, VLCap */
static bool take_full(const char **at)
{
	static const char *const words[] = {"s=", "w=", "v="};
	unsigned ignored;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!take_value(at, words[i], UINT8_MAX, &ignored))
			return false;
	return true;
}

/* The optional text behind the other end: # lid 14 lmc 0 "leaf-4" lid 5 4xHDR */
static bool take_port_comment(const char *at, struct mad_fabric_port *port)
{
	unsigned lid = 0, lmc = 0, peer_lid;
	const char *name;
	size_t length;

	if (!at_end(&at) && !text_take_word(&at, "#"))
		return false;
	text_take_blanks(&at);
	if (*at != '"' && strncmp(at, "lid ", 4) != 0) /* no comment, or any other one */
		return true;
	if (!take_lid_and_lmc(&at, &lid, &lmc))
		return false;
	if (port->node->type != IB_NODE_SWITCH) {
		port->lid = (uint16_t)lid;
		port->lmc = (uint8_t)lmc;
	}
	text_take_blanks(&at);
	if (*at == '"' && !take_name(&at, &name, &length))
		return false;
	return take_value(&at, "lid ", UINT16_MAX, &peer_lid) && take_rate(&at, port) &&
	       take_full(&at) && at_end_of_comment(&at);
}

/* "2][ext 5]": the second part only if chassis are known. */
static bool take_port_number(const char **at, unsigned *number)
{
	unsigned external;

	if (!text_take_decimal(at, UINT8_MAX, number) || !*number || !text_take_word(at, "]"))
		return false;
	return !text_take_word(at, "[ext ") ||
	       (text_take_decimal(at, UINT8_MAX, &external) && text_take_word(at, "]"));
}

/* "2](2c90300100062)" */
static struct mad_fabric_port *take_port(const char **at, const struct mad_fabric_node *node)
{
	struct mad_fabric_port *port;
	unsigned number;
	uint64_t guid = 0;

	if (!take_port_number(at, &number))
		return NULL;
	port = graph_port(node, number);
	if (!port || !take_guid_of_port(at, &guid))
		return NULL;
	if (node->type != IB_NODE_SWITCH)
		port->guid = guid;
	return port;
}

static int read_port(struct load *load, const char *at)
{
	struct mad_fabric_port *port;
	struct claim *claim;
	unsigned type, number;
	uint64_t guid, port_guid;

	if (!load->block.node)
		return -EBADMSG;
	port = take_port(&at, load->block.node);
	if (!port)
		return -EBADMSG;
	claim = &load->claims[port->index];
	text_take_blanks(&at);
	if (claim->line || !take_id(&at, &type, &guid) || !text_take_word(&at, "[") ||
	    !take_port_number(&at, &number))
		return -EBADMSG;
	text_take_blanks(&at);
	if (!take_guid_of_port(&at, &port_guid) || !take_port_comment(at, port))
		return -EBADMSG;
	*claim = (struct claim){.guid = guid,
				.line = load->line.number,
				.type = (uint8_t)type,
				.number = (uint8_t)number};
	return 0;
}

/* --- the file --------------------------------------------------------------------- */

/* The bytes of a description in hex, two digits each. */
static int read_description(struct load *load, const char *at)
{
	char *description = load->block.description;
	size_t length = strlen(at);

	if (!length || length % 2 || length / 2 > IB_SMP_DATA_SIZE)
		return -EBADMSG;
	for (size_t i = 0; i < length; i += 2) {
		const char digits[] = {at[i], at[i + 1], '\0'}, *digit = digits;
		uint64_t byte;

		if (!text_take_hex(&digit, &byte) || *digit || !byte)
			return -EBADMSG;
		description[i / 2] = (char)byte;
	}
	description[length / 2] = '\0';
	return 0;
}

static int read_comment(struct load *load, const char *at)
{
	const char *description = at;

	if (text_take_word(&description, "# NodeDescription ")) {
		begin_block(load);
		return read_description(load, description);
	}
	if (!text_take_word(&at, "# Initiated from node "))
		return 0;
	load->has_origin = text_take_hex(&at, &load->origin_guid) &&
			   text_take_word(&at, " port ") &&
			   text_take_hex(&at, &load->origin_port_guid) && at_end(&at);
	return load->has_origin ? 0 : -EBADMSG;
}

static int read_line(struct load *load)
{
	const char *at = load->line.text;

	if (at_end(&at))
		return 0;
	if (*at == '#')
		return read_comment(load, at);
	if (text_take_word(&at, "["))
		return read_port(load, at);
	if (text_take_word(&at, "Switch"))
		return read_node(load, at, IB_NODE_SWITCH);
	if (text_take_word(&at, "Ca") || text_take_word(&at, "Hca"))
		return read_node(load, at, IB_NODE_CA);
	if (text_take_word(&at, "Rt"))
		return read_node(load, at, IB_NODE_ROUTER);
	/* headings of --grouping, lines of --show */
	if (text_take_word(&at, "Chassis ") || text_take_word(&at, "Non-Chassis Nodes") ||
	    text_take_word(&at, "Hostname: ") || text_take_word(&at, "DR path "))
		return 0;
	return read_assignment(load, at);
}

int load_read_lines(struct load *load)
{
	int ret;

	while ((ret = text_line_read(&load->line)) > 0) {
		ret = read_line(load);
		if (ret)
			return ret;
	}
	return ret;
}
