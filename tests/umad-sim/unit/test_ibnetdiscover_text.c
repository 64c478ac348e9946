/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Everything that ibnetdiscover prints as a topology, whatever its version and options: both
 * parsers, topology_read() of umad-sim and mad_fabric_load() of libibmad, load it, as the same
 * fabric.
 */

#include "topologies.h"
#include "test.h"

#include <infiniband/mad_fabric_text.h>

#include <inttypes.h>

static struct graph graph;
static struct mad_fabric *fabric;

static int setup(void)
{
	graph_init(&graph);
	return 0;
}

static int teardown(void)
{
	graph_free(&graph);
	mad_fabric_free(fabric);
	fabric = NULL;
	return 0;
}

FIXTURE(setup, teardown);

/* --- both parsers ----------------------------------------------------------------- */

static void assert_same_port(const struct graph_port *port, const struct mad_fabric_port *other)
{
	assert_int_equal(port->number, other->number);
	assert_int_equal(port->peer == NONE, !other->peer);
	if (port->peer == NONE)
		return;
	assert_int_equal(graph.nodes[graph.ports[port->peer].node].guid,
			 other->peer->node->guid);
	assert_int_equal(graph.ports[port->peer].number, other->peer->number);
	if (other->width)
		assert_int_equal(port->width, other->width);
	if (other->speed) /* MAD_SPEED_SDR is 1 */
		assert_int_equal(port->speed + 1, other->speed);
	if (graph.nodes[port->node].type == NODE_SWITCH)
		return;
	assert_int_equal(port->lid, other->lid);
	assert_int_equal(port->lmc, other->lmc);
	assert_int_equal(port->guid, other->guid);
}

static void assert_same_node(const struct graph_node *node, const struct mad_fabric_node *other)
{
	const struct graph_port *ports = &graph.ports[node->first_port];

	assert_int_equal(node->type, other->type);
	assert_int_equal(node->guid, other->guid);
	assert_int_equal(node->port_count, other->port_count);
	assert_int_equal(node->vendor_id, other->vendor_id);
	assert_int_equal(node->device_id, other->device_id);
	assert_string_equal(node->name, other->description);
	if (other->system_guid || other->vendor_id)
		assert_int_equal(node->system_guid, other->system_guid);
	if (node->type == NODE_SWITCH) {
		assert_int_equal(node->enhanced_port0, other->enhanced_port0);
		assert_int_equal(ports[0].lid, other->lid);
		assert_int_equal(ports[0].lmc, other->lmc);
		assert_int_equal(ports[0].guid, mad_fabric_get_port(other, 0)->guid);
	}
	for (unsigned int i = 1; i <= node->port_count; i++)
		assert_same_port(&ports[i], mad_fabric_get_port(other, i));
}

static void load_with_both(const char *text)
{
	struct topology_error error = {""};
	unsigned int line = 0;
	FILE *file = tmpfile();

	assert_non_null(file);
	fputs(text, file);
	rewind(file);
	if (mad_fabric_load(file, &fabric, &line))
		fail_msg("mad_fabric_load(): line %u of\n%s", line, text);
	fclose(file);
	if (topology_read(&graph, text, strlen(text), "test.net", &error))
		fail_msg("topology_read(): %s in\n%s", error.text, text);
	assert_int_equal(graph.node_count, fabric->node_count);
	for (uint32_t i = 0; i < graph.node_count; i++)
		assert_same_node(&graph.nodes[i], mad_fabric_get_node(fabric, i));
}

/* --- forms of lines ----------------------------------------------------------------- */

/* A switch and a host, with the line of the switch, and of its port 1. */
#define PAIR(header, port)                                              \
	"switchguid=0x10(10)\n" header "\n" port "\ncaguid=0x20\n"      \
	"Ca\t1 \"H-0000000000000020\"\t\t# \"host\"\n"                  \
	"[1](21) \t\"S-0000000000000010\"[1]\t\t# lid 2 lmc 0 \"leaf\"" \
	" lid 1\n"
#define SWITCH "Switch\t4 \"S-0000000000000010\"\t\t"
#define PORT   "[1]\t\"H-0000000000000020\"[1](21) \t\t"
#define LEAF   SWITCH "# \"leaf\" base port 0 lid 1 lmc 0"

static const struct form {
	const char *behaviour, *text;
	bool enhanced;
	uint8_t width;
	enum link_speed speed;
} forms[] = {
	{"width_and_speed", PAIR(LEAF, PORT "# \"host\" lid 2 4xHDR"), false, 4, HDR},
	{"the_words_of_full", PAIR(LEAF, PORT "# \"host\" lid 2 4xNDR s=4 w=2 v=4"), false, 4,
	 NDR},
	{"another_comment", PAIR(LEAF " # rack 7", PORT "# \"host\" lid 2 4xFDR # blue"), false,
	 4, FDR},
	{"no_speed_as_in_2009", PAIR(LEAF, PORT "# \"host\" lid 2"), false, 4, SDR},
	{"full_without_speed", PAIR(LEAF, PORT "# \"host\" lid 2 s=1 w=2 v=4"), false, 4, SDR},
	{"an_unknown_width", PAIR(LEAF, PORT "# \"host\" lid 2 ?\?EDR"), false, 4, EDR},
	{"an_unknown_speed", PAIR(LEAF, PORT "# \"host\" lid 2 2x?\?\?"), false, 2, SDR},
	{"an_unknown_link", PAIR(LEAF, PORT "# \"host\" lid 2 ?\?\?\?\?"), false, 4, SDR},
	{"a_device_of_xsigo_in_a_port",
	 PAIR(LEAF, PORT "# \"host\" lid 2 1xSDR s=1 w=1 v=4 (scp)"), false, 1, SDR},
	{"an_enhanced_port_0",
	 PAIR(SWITCH "# \"leaf\" enhanced port 0 lid 1 lmc 0", PORT "# \"host\" lid 2 4xEDR"),
	 true, 4, EDR},
	{"a_base_port_0_with_an_lmc",
	 PAIR(SWITCH "# \"leaf\" base port 0 lid 1 lmc 1", PORT "# \"host\" lid 2 4xEDR"),
	 false, 4, EDR},
	{"no_kind_of_port_0",
	 PAIR(SWITCH "# \"leaf\" port 0 lid 1 lmc 0", PORT "# \"host\" lid 2"), false, 4, SDR},
	{"external_ports",
	 PAIR(LEAF, "[1][ext 36]\t\"H-0000000000000020\"[1](21) \t\t# \"host\" lid 2 4xSDR"),
	 false, 4, SDR},
	{"the_blanks_of_2007",
	 PAIR(LEAF, "[1]     \"H-0000000000000020\"[1](21)     # \"host\" lid 2 4xSDR"), false,
	 4, SDR},
};

static void loads(const void *row)
{
	const struct form *form = row;

	load_with_both(form->text);
	assert_int_equal(graph.node_count, 2);
	assert_int_equal(graph.nodes[0].enhanced_port0, form->enhanced);
	assert_int_equal(graph.ports[1].width, form->width);
	assert_int_equal(graph.ports[1].speed, form->speed);
}

TEST_ROWS(loads, forms);

TEST(lines_of_grouping_are_loaded)
{
	load_with_both("Chassis 1 (guid 0x13970101000000)\nHostname: box\n\n# Spine Nodes\n# "
		       "Line Nodes\n"
		       "# Chassis Switches\nvendid=0x2c9\ndevid=0xc738\n"
		       "sysimgguid=0x2c903000300\t\t# Chassis 1 (ISR9288) slot 2\n"
		       "switchguid=0x10(10)\t# Spine 1 Chip 2\n" LEAF "\n" PORT
		       "# \"host Xsigo\" lid 2 4xSDR (scp)\n"
		       "# Chassis CAs\nNon-Chassis Nodes\n\nsysimgguid=0x20\ncaguid=0x20\n"
		       "Ca\t1 \"H-0000000000000020\"\t\t# \"host Xsigo\" (scp)\n"
		       "[1](21) \t\"S-0000000000000010\"[1][ext 4]\t\t# lid 2 lmc 0 \"leaf\" "
		       "lid 1 4xSDR\n");
	assert_string_equal(graph.nodes[1].name, "host Xsigo");
}

TEST(lines_of_show_are_skipped)
{
	load_with_both(
		"DR path slid 0; dlid 0; 0 -> new Channel Adapter {0000000000000020} portnum "
		"1 lid 0-0 \"\"\n"
		"DR path slid 0; dlid 0; 0,1 -> new Switch {0000000000000010} portnum 0 lid "
		"0-0 \"\"\n" PAIR(LEAF, PORT "# \"host\" lid 2 4xHDR"));
}

TEST(a_ca_may_be_an_hca_and_a_comment_may_be_any_text)
{
	load_with_both("switchguid=0x10(10)\nSwitch 4 \"S-0000000000000010\" # \"leaf\"\n"
		       "[1] \"H-0000000000000020\"[1] # blue\n"
		       "caguid=0x20\nHca 1 \"H-0000000000000020\" # \"host\"\n"
		       "[1](21) \"S-0000000000000010\"[1] # lid 2 lmc 1\n");
	assert_int_equal(graph.ports[graph.nodes[1].first_port + 1].lmc, 1);
}

TEST(a_name_of_a_node_name_map_may_be_long)
{
	char text[2000], name[101];

	memset(name, 'x', 100);
	name[100] = 0;
	snprintf(text, sizeof(text),
		 "switchguid=0x10(10)\n"
		 "Switch 4 \"S-0000000000000010\" # \"%s\" base port 0 lid 0 lmc 0\n",
		 name);
	load_with_both(text);
}

/* --- random fabrics ------------------------------------------------------------------- */

/* A switch with a CA or router at some of its ports, as a version and its options print it. */
struct random_text {
	FILE *file;
	bool indented, windows, full, grouped, no_speed, hca;
	unsigned int leaves; /* bits */
	bool router[9];
};

static bool maybe(void)
{
	return rand() & 1;
}

static void put(const struct random_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void put(const struct random_text *text, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (text->indented)
		fputs("          ", text->file);
	vfprintf(text->file, format, arguments);
	fputs(text->windows ? "\r\n" : "\n", text->file);
	va_end(arguments);
}

static void put_head(const struct random_text *text)
{
	if (maybe())
		put(text, "vendid=0x%x", rand() & 0xffffff);
	if (maybe())
		put(text, "devid=0x%x", rand() & 0xffff);
	if (maybe())
		put(text, "sysimgguid=0x%x%s", rand(), text->grouped ? "\t\t# Chassis 1" : "");
}

/* Each end of a link prints its own rate; both are the same. */
static const char *rate_of(const struct random_text *text, unsigned int leaf)
{
	static const char *const rates[] = {"1xSDR",  "4xDDR",  "8xQDR",   "4xFDR10",
					    "12xFDR", "4xEDR",  "2xHDR",   "4xNDR",
					    "4xXDR",  "?\?SDR", "2x?\?\?", "?\?\?\?\?"};

	return text->no_speed ? "" : rates[leaf * 7 % COUNT(rates)];
}

static const char *full_of(const struct random_text *text)
{
	return text->full ? " s=4 w=16 v=4" : "";
}

static void put_switch(const struct random_text *text, unsigned int lmc)
{
	put_head(text);
	put(text, "switchguid=0x10(%x)%s", maybe() ? 16 : 17, text->grouped ? "\t# " : "");
	put(text,
	    "Switch\t8 \"S-0000000000000010\"\t\t# \"a \"switch\"\" %s port 0 lid 64 lmc %u",
	    maybe() ? "enhanced" : "base", lmc);
	for (unsigned int i = 1; i <= 8; i++)
		if (text->leaves >> i & 1)
			put(text,
			    "[%u]%s\t\"%c-000000000000%u000\"[1](%u001) \t\t# \"leaf %u\" lid "
			    "%u %s%s",
			    i, text->grouped ? "[ext 5]" : "", text->router[i] ? 'R' : 'H', i,
			    i, i, i * 8, rate_of(text, i), full_of(text));
}

static void put_leaf(const struct random_text *text, unsigned int i, unsigned int lmc)
{
	bool router = text->router[i];

	put_head(text);
	put(text, "%sguid=0x%u000", router ? "rt" : "ca", i);
	put(text, "%s\t2 \"%c-000000000000%u000\"\t\t# \"leaf %u\"%s",
	    router      ? "Rt"
	    : text->hca ? "Hca"
			: "Ca",
	    router ? 'R' : 'H', i, i, text->grouped && !router ? " (scp)" : "");
	put(text,
	    "[1](%u001) \t\"S-0000000000000010\"[%u]%s\t\t# lid %u lmc %u \"a \"switch\"\" lid "
	    "64 %s%s",
	    i, i, text->grouped ? "[ext 5]" : "", i * 8, lmc, rate_of(text, i), full_of(text));
}

static void load_random(unsigned int seed)
{
	struct random_text text = {0};
	size_t size;
	char *bytes;

	srand(seed);
	text.indented = maybe();
	text.windows = maybe();
	text.full = maybe();
	text.grouped = maybe();
	text.no_speed = maybe();
	text.hca = maybe();
	text.leaves = (unsigned int)rand() & 0x1fe;
	text.file = open_memstream(&bytes, &size);
	assert_non_null(text.file);
	for (unsigned int i = 1; i <= 8; i++)
		text.router[i] = maybe();
	if (maybe())
		put(&text,
		    "DR path slid 0; dlid 0; 0 -> new Switch {0000000000000010} portnum 0 "
		    "lid 0-0 \"\"");
	if (text.grouped)
		put(&text, "Chassis 1 (guid 0x10)\n\nHostname: h");
	put_switch(&text, (unsigned int)rand() & 3);
	for (unsigned int i = 1; i <= 8; i++)
		if (text.leaves >> i & 1)
			put_leaf(&text, i, (unsigned int)rand() & 3);
	fclose(text.file);
	load_with_both(bytes);
	free(bytes);
}

TEST(random_fabrics_of_any_version_and_option_are_the_same_for_both)
{
	unsigned int seed = test_seed();

	for (unsigned int i = 0; i < 500; i++) {
		load_random(seed + i);
		teardown();
		setup();
	}
}
