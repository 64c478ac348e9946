/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A fabric as a graph and as text, node-name-maps, and the differences of two fabrics: also if
 * a discovery did not find all nodes.
 */

#include "fabrics.h"

FIXTURE(setup_two_switches, teardown_fabrics);

/* Below the limit. */
static unsigned draw_below(unsigned limit)
{
	return (unsigned)random() % limit;
}

/* --- text --------------------------------------------------------------------------- */

static char *stored;

static FILE *file_with(const char *text, size_t size)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, size, file), size);
	rewind(file);
	return file;
}

static int load_bytes(const char *text, size_t size, unsigned *line)
{
	FILE *file = file_with(text, size);
	int error;

	mad_fabric_free(fabric);
	error = mad_fabric_load(file, &fabric, line);
	fclose(file);
	return error;
}

static void load(const char *text)
{
	unsigned line = 0;
	int error = load_bytes(text, strlen(text), &line);

	if (error)
		fail_msg("error %d in line %u", error, line);
}

/* The stored text, without the line with the date. */
static const char *store(const struct mad_node_names *replaced)
{
	size_t size;
	FILE *file;
	char *line;

	free(stored);
	stored = NULL;
	file = open_memstream(&stored, &size);
	assert_non_null(file);
	assert_int_equal(mad_fabric_store(fabric, file, replaced), 0);
	fclose(file);
	line = strchr(stored, '\n') + 1;
	assert_memory_equal(line, "# Topology file: generated on ", 30);
	memmove(line, strchr(line, '\n') + 1, strlen(strchr(line, '\n') + 1) + 1);
	return stored;
}

static void end_text(void)
{
	free_fabrics();
	free(stored);
	stored = NULL;
}

static int end_plain(void)
{
	end_text();
	return 0;
}

/* A test without a machine. */
#define TEXT_TEST(name) TEST_WITH(name, NULL, end_plain)

static const struct mad_fabric_node *node_at(size_t index)
{
	return mad_fabric_get_node(fabric, index);
}

static const struct mad_fabric_port *port_at(size_t index, unsigned number)
{
	return mad_fabric_get_port(node_at(index), number);
}

#define HEAD  \
	"#\n" \
	"#\n" \
	"# Initiated from node 0000000000000100 port 0000000000000102\n"
#define SWITCH                                                                         \
	"\nvendid=0x2c9\n"                                                             \
	"devid=0xd2f0\n"                                                               \
	"sysimgguid=0x1\n"                                                             \
	"switchguid=0x10(11)\n"                                                        \
	"Switch\t4 \"S-0000000000000010\"\t\t# \"leaf\" enhanced port 0 lid 4 lmc 2\n" \
	"[1]\t\"H-0000000000000100\"[2](102) \t\t# \"host\" lid 8 4xHDR\n"             \
	"[2]\t\"R-0000000000000200\"[1](201) \t\t# \"router\" lid 16 2xNDR\n"
#define CA                                             \
	"\nvendid=0x2c9\n"                             \
	"devid=0x101b\n"                               \
	"sysimgguid=0x2\n"                             \
	"caguid=0x100\n"                               \
	"Ca\t2 \"H-0000000000000100\"\t\t# \"host\"\n" \
	"[2](102) \t\"S-0000000000000010\"[1]\t\t# lid 8 lmc 3 \"leaf\" lid 4 4xHDR\n"
#define ROUTER                                           \
	"\nvendid=0x2c9\n"                               \
	"devid=0x101b\n"                                 \
	"sysimgguid=0x3\n"                               \
	"rtguid=0x200\n"                                 \
	"Rt\t2 \"R-0000000000000200\"\t\t# \"router\"\n" \
	"[1](201) \t\"S-0000000000000010\"[2]\t\t# lid 16 lmc 0 \"leaf\" lid 4 2xNDR\n"
#define LEAF "Switch\t4 \"S-0000000000000010\"\t\t# \"leaf\" base port 0 lid 5 lmc 0\n"

TEXT_TEST(a_fabric_is_loaded_and_stored_the_same)
{
	const struct mad_fabric_node *node;
	const struct mad_fabric_port *end;

	load(HEAD SWITCH CA ROUTER);
	assert_int_equal(fabric->problem_count, 0);
	node = mad_fabric_find_guid(fabric, 0x10);
	assert_non_null(node);
	assert_int_equal(node->type, IB_NODE_SWITCH);
	assert_int_equal(node->vendor_id, 0x2c9);
	assert_int_equal(node->device_id, 0xd2f0);
	assert_int_equal(node->system_guid, 1);
	assert_int_equal(node->port_count, 4);
	assert_string_equal(node->description, "leaf");
	assert_true(node->enhanced_port0);
	assert_int_equal(node->lid, 4);
	assert_int_equal(node->lmc, 2);
	assert_int_equal(mad_fabric_get_port(node, 0)->guid, 0x11);
	assert_ptr_equal(mad_fabric_find_lid(fabric, 7), mad_fabric_get_port(node, 0));
	assert_null(node->node_info);
	end = mad_fabric_get_port(node, 2);
	assert_int_equal(end->width, 2);
	assert_int_equal(end->speed, MAD_SPEED_NDR);
	assert_true(end->rate_gbps == 200);
	assert_int_equal(end->peer->node->type, IB_NODE_ROUTER);
	assert_int_equal(end->peer->number, 1);
	assert_int_equal(end->peer->speed, MAD_SPEED_NDR);
	assert_ptr_equal(end->peer->peer, end);
	node = mad_fabric_find_guid(fabric, 0x100);
	assert_int_equal(node->lid, 8);
	assert_int_equal(node->lmc, 3);
	assert_null(mad_fabric_get_port(node, 1)->peer);
	end = mad_fabric_get_port(node, 2);
	assert_int_equal(end->guid, 0x102);
	assert_int_equal(end->lmc, 3);
	assert_ptr_equal(mad_fabric_find_lid(fabric, 15), end);
	assert_ptr_equal(fabric->origin, end);
	assert_string_equal(store(NULL), HEAD SWITCH CA ROUTER);
}

TEXT_TEST(each_speed_and_width_is_stored_as_it_was)
{
	static const char *const rates[] = {"1xSDR",  "2xDDR",     "4xQDR",  "8xFDR10",
					    "12xFDR", "4xEDR",     "4xHDR",  "4xNDR",
					    "4xXDR",  "?\?\?\?\?", "?\?HDR", "4x?\?\?"};
	static const char alone[] =
		"#\n#\n# Initiated from node 0000000000000001 port 0000000000000002\n"
		"\nvendid=0x0\ndevid=0x0\ncaguid=0x1\n"
		"Ca\t1 \"H-0000000000000001\"\t\t# \"h\"\n";
	char text[2000];

	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		snprintf(text, sizeof(text),
			 "#\n#\n\nvendid=0x0\ndevid=0x0\nswitchguid=0x1(1)\n"
			 "Switch\t2 \"S-0000000000000001\"\t\t# \"s\" base port 0 lid 1 lmc 0\n"
			 "[1]\t\"S-0000000000000001\"[2]\t\t# \"s\" lid 1 %s\n"
			 "[2]\t\"S-0000000000000001\"[1]\t\t# \"s\" lid 1 %s\n",
			 rates[i], rates[i]);
		load(text);
		assert_string_equal(store(NULL), text);
	}
	/* the only port of a host without a link is the origin */
	load(alone);
	assert_string_equal(store(NULL), alone);
	assert_int_equal(fabric->origin->number, 1);
}

static const struct description {
	const char *text;
	size_t node;
	const char *description;
} descriptions[] = {
	{"Ca 1 \"H-1\" # \"a \"b\" # lid 4 [1] 4xHDR\"\n", 0, "a \"b\" # lid 4 [1] 4xHDR"},
	{"Switch 1 \"S-1\" # \"x\" base port 0 lid 7 lmc 0\" base port 0 lid 1 lmc 0\n", 0,
	 "x\" base port 0 lid 7 lmc 0"},
	{"Ca 1 \"H-1\" # "
	 "\"0123456789012345678901234567890123456789012345678901234567890123456789\"\n",
	 0, "0123456789012345678901234567890123456789012345678901234567890123"},
	{"caguid=0x1\r\nCa 1 \"H-1\" # \"n\"\r\n", 0, "n"},
	/* headings of --grouping are skipped */
	{"Chassis 1 (guid 0x2c9)\n# Chassis CAs\nsysimgguid=0x2c9\t\t# Chassis 1\n"
	 "caguid=0x1\nCa 1 \"H-1\" # \"c\"\nNon-Chassis Nodes\n"
	 "switchguid=0x2(2)\t# \nSwitch 8 \"S-2\"\n[1][ext 5] \"S-2\"[2][ext 6]\n"
	 "[2] \"S-2\"[1]\n",
	 0, "c"},
	/* a comment with a description counts for one node */
	{"# NodeDescription 5c7835410d\nCa 1 \"H-1\" # \"n\"\n[1] \"H-2\"[1]\n"
	 "Ca 1 \"H-2\" # \"\\x41\"\n",
	 0, "\\x5A\r"},
	{"# NodeDescription c3a9\nCa 1 \"H-1\" # \"n\"\n\nCa 1 \"H-2\" # \"\\x41\"\n", 1,
	 "\\x41"},
};

TEXT_TEST(names_in_a_text)
{
	for (size_t i = 0; i < sizeof(descriptions) / sizeof(*descriptions); i++) {
		load(descriptions[i].text);
		assert_string_equal(node_at(descriptions[i].node)->description,
				    descriptions[i].description);
	}
	/* the values of one node are not those of the next */
	load("vendid=0x1\ndevid=0x2\nsysimgguid=0x3\ncaguid=0x4\nCa 1 \"H-4\"\nCa 1 \"H-5\"\n");
	assert_int_equal(node_at(0)->vendor_id, 1);
	assert_int_equal(node_at(0)->system_guid, 3);
	assert_int_equal(node_at(1)->vendor_id, 0);
	assert_int_equal(node_at(1)->system_guid, 0);
	/* links without a rate; an origin that is a switch, or not found */
	load("# Initiated from node 0000000000000010 port 0000000000000010\n" LEAF
	     "[1] \"S-10\"[2] # \"leaf\" lid 5\n[2] \"S-10\"[1] # \"leaf\" lid 5\n");
	assert_int_equal(port_at(0, 1)->width, 0);
	assert_ptr_equal(fabric->origin, port_at(0, 0));
	load("# Initiated from node 0000000000000001 port 0000000000000009\nCa 2 \"H-1\"\n");
	assert_null(fabric->origin);
	/* bytes that are not printable are stored as blanks, and in a comment */
	load("# NodeDescription 6109620a7fc3a9226320\nCa 1 \"H-1\"\n");
	assert_non_null(strstr(store(NULL), "# \"a b    \"c \"\n"));
	assert_non_null(strstr(stored, "\n# NodeDescription 6109620a7fc3a9226320\nCa\t1"));
}

TEXT_TEST(a_line_that_is_wrong_is_told)
{
	static const struct {
		const char *text;
		unsigned line;
	} rows[] = {
		{"\n# comment\nnonsense\nmore\n", 3},
		{"[1] \"S-1\"[1]\n", 1},
		{"vendid=0x\n", 1},
		{"vendid=12\n", 1},
		{"devid=0x12345\n", 1},
		{"switchguid=0x12(3\n", 1},
		{"# Initiated from node zero\n", 1},
		{"Switch 256 \"S-1\"\n", 1},
		{"Switch 4 \"H-1\"\n", 1},
		{"Switch 4 \"S-12345678123456781\"\n", 1},
		{"caguid=0x1\nSwitch 4 \"S-1\"\n", 2},
		{"switchguid=0x2(2)\nSwitch 4 \"S-1\"\n", 2},
		{LEAF "[0] \"S-10\"[1]\n", 2},
		{LEAF "[5] \"S-10\"[1]\n", 2},
		{LEAF "[1] \"S-10\"[2]\n[1] \"S-10\"[2]\n", 3},
		{LEAF "[1] \"S-10\"[2] # \"leaf\" lid 5 3xHDR\n", 2},
		{LEAF "[1] \"S-10\"[2] # \"leaf\" lid 5 4xHD\n", 2},
		{LEAF "[1] \"S-10\"[2] # \"leaf\" lid 65536 4xHDR\n", 2},
		{"Switch 4 \"S-1\" # \"s\" base port 0 lid 5 lmc 8\n", 1},
		{"Switch 4 \"S-1\" # \"s\" best port 0 lid 5 lmc 0\n", 1},
		{"Ca 1 \"H-1\" no comment\n", 1},
		{"Switch 4 \"S-1\" # \"s\" base port 0 lid 5 lmc 0 more\n", 1},
		{LEAF "[1] \"S-10\"[2] # \"leaf\" lid 5 4xHDR s=x\n", 2},
		{LEAF "[1] \"S-10\"[2] # \"leaf\" lid 5 4xHDR more\n", 2},
		{"Ca 1 \"H-1\" # \"one mark\n", 1},
		{"Ca 1 \"H-1\" # \"n\" more\n", 1},
		{"# NodeDescription \nCa 1 \"H-1\"\n", 1},
		{"# NodeDescription 616\nCa 1 \"H-1\"\n", 1},
		{"# NodeDescription 6g\nCa 1 \"H-1\"\n", 1},
		{"# NodeDescription 6100\nCa 1 \"H-1\"\n", 1},
		{LEAF "[4] \"S-10\"[1]\n[1] \"H-1\"[1]\n[2] \"H-2\"[1]\n", 3},
		{LEAF "[4] \"S-10\"[5]\n", 2},
		{LEAF "[4] \"H-10\"[1]\n", 2},
		{LEAF "[4] \"S-10\"[1]\n[1] \"H-1\"[1]\n[2] \"H-2\"[1]\n", 3},
		{LEAF "[4] \"S-10\"[5]\n", 2},
		{LEAF "[4] \"H-10\"[1]\n", 2},
		{"", 0},
		{"#\n# Topology\n\n", 0},
	};
	static char text[5000];
	unsigned line = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		line = 4711;
		assert_int_equal(load_bytes(rows[i].text, strlen(rows[i].text), &line),
				 -EBADMSG);
		if (line != rows[i].line)
			fail_msg("%s: line %u", rows[i].text, line);
		assert_null(fabric);
	}
	assert_int_equal(load_bytes("#\n# \0\n", 6, &line), -EBADMSG);
	assert_int_equal(line, 2);
	memset(text, '#', sizeof(text));
	assert_int_equal(load_bytes(text, sizeof(text), NULL), -EBADMSG);
	assert_int_equal(load_bytes(text, 4000, &line), -EBADMSG);
	assert_int_equal(line, 0); /* long enough, but not a node */
}

/* The line "count" times, with other numbers. */
static int load_many(unsigned ports, unsigned count)
{
	size_t size;
	char *text;
	FILE *file = open_memstream(&text, &size);
	int error;

	for (unsigned i = 0; i < count; i++)
		fprintf(file, "Ca %u \"H-%x\"\n", ports, i);
	fclose(file);
	error = load_bytes(text, size, NULL);
	free(text);
	return error;
}

TEXT_TEST(too_many_nodes_or_ports_are_refused)
{
	assert_int_equal(load_many(0, 200000), 0);
	assert_int_equal(load_many(0, 200001), -EFBIG);
	assert_null(fabric);
	assert_int_equal(load_many(255, 7843), 0);
	assert_int_equal(load_many(255, 7844), -EFBIG);
}

/* --- random descriptions -------------------------------------------------------------- */

static void draw_description(char *description)
{
	static const char *const parts[] = {"host",
					    "\xc3\xa9",
					    "\xe6\x97\xa5",
					    "\t",
					    "\r",
					    "\n",
					    "\"",
					    "\\x41",
					    "#",
					    "\x1b[31m",
					    "\x01",
					    "\xff",
					    " ",
					    "'",
					    "[1]",
					    "\" lid 4 4xHDR",
					    "\" base port 0 lid 7 lmc 0"};
	unsigned length = 0;

	for (unsigned i = draw_below(12); i > 0; i--) {
		const char *part = parts[draw_below(sizeof(parts) / sizeof(*parts))];
		char byte[] = {(char)(1 + draw_below(255)), '\0'};

		if (!draw_below(4))
			part = byte;
		if (length + strlen(part) > IB_SMP_DATA_SIZE)
			return;
		strcpy(description + length, part);
		length += (unsigned)strlen(part);
	}
}

TEXT_TEST(random_descriptions_are_stored_and_loaded)
{
	srandom(test_seed());
	for (int i = 0; i < 500; i++) {
		char description[IB_SMP_DATA_SIZE + 1] = "", text[300];
		size_t at = 0;

		draw_description(description);
		if (description[0])
			at = (size_t)sprintf(text, "# NodeDescription ");
		for (const char *byte = description; *byte; byte++)
			at += (size_t)sprintf(text + at, "%02x", (unsigned char)*byte);
		sprintf(text + at, "\n%s", i % 2 ? "Switch 2 \"S-1\"\n" : "Ca 1 \"H-1\"\n");
		load(text);
		assert_string_equal(node_at(0)->description, description);
		mad_fabric_free(previous);
		previous = fabric;
		fabric = previous;
		store(NULL);
		fabric = NULL;
		load(stored);
		assert_string_equal(node_at(0)->description, description);
		assert_int_equal(mad_fabric_compare(previous, fabric, NULL, NULL), 0);
	}
}

/* --- the text of a discovered fabric --------------------------------------------------- */

/* The names of the nodes as stored, in one line. */
static const char *stored_order(void)
{
	static char order[500];
	const char *at = store(NULL);
	size_t length = 0;

	order[0] = '\0';
	while ((at = strchr(at, '\n'))) {
		const char *name = strstr(++at, "# \"");

		if (name && (!strncmp(at, "Ca", 2) || !strncmp(at, "Sw", 2)))
			length += (size_t)sprintf(order + length, "%s%.*s", *order ? " " : "",
						  (int)strcspn(name + 3, "\""), name + 3);
	}
	return order;
}

#define THREE_SWITCHES(speed, device)                                                 \
	"vendid=0x2c9\ndevid=" device "\nSwitch 4 \"a\"\n[1] \"host\" # \"\" 4xEDR\n" \
	"[2] \"b\" # \"\" 4x" speed "\n[3] \"c\" # \"\" 4xEDR\n"                      \
	"vendid=0x2c9\ndevid=0xd2f0\nSwitch 4 \"b\"\n[2] \"h2\" # \"\" 4xEDR\n"       \
	"vendid=0x2c9\ndevid=0xd2f0\nSwitch 4 \"c\"\n[2] \"h3\" # \"\" 4xEDR\n"       \
	"Ca 1 \"host\"\nCa 1 \"h2\"\nCa 1 \"h3\"\n"

static void expect_order(const char *topology, const char *order)
{
	stop();
	start(topology);
	discover(NULL);
	assert_string_equal(stored_order(), order);
}

TEST(nodes_are_stored_the_last_found_first)
{
	expect_order(THREE_SWITCHES("EDR", "0xd2f0"), "c b a h3 h2 host");
	/* the node behind a link that may be FDR10 is found later; not of all devices */
	expect_order(THREE_SWITCHES("QDR", "0xd2f0"), "b c a h2 h3 host");
	expect_order(THREE_SWITCHES("QDR", "0xb924"), "c b a h3 h2 host");
	/* nodes of other types are left out, with their links */
	set_field("h2", IB_ATTR_NODE_INFO, IB_NODE_TYPE_F, 7);
	set_field("h3", IB_ATTR_NODE_INFO, IB_NODE_TYPE_F, 0);
	discover(NULL);
	assert_string_equal(stored_order(), "c b a host");
	assert_null(strstr(stored, "[2]\t\"H-"));
	/* a node to which no link leads is stored */
	forget_odd_nodes();
	set_field("h2", IB_ATTR_NODE_INFO, IB_NODE_LOCAL_PORT_F, 9);
	discover(NULL);
	assert_non_null(strstr(stored_order(), "h2"));
	end_text();
}

/* Nodes to which no link leads are stored, too. */
TEXT_TEST(nodes_without_links_are_stored)
{
	load("# Initiated from node 0000000000000002 port 0000000000000003\n"
	     "Ca 1 \"H-1\" # \"one\"\n\nCa 1 \"H-2\" # \"two\"\n");
	assert_string_equal(stored_order(), "one two");
}

TEST(a_discovered_fabric_is_loaded_the_same)
{
	static const char router[] =
		"Rt 2 \"r\"\n[1] \"s\"[3]\nSwitch 9 \"s\" # \"x\" enhanced port 0 lid 8 lmc 2\n"
		"[1] \"host\" # \"\" 1xEDR\n[4] \"s\"[5]\nCa 2 \"host\"\n[2] \"s\"[7]\n";
	static const char *const topologies[] = {"fat-tree:4,2", "torus:3,2,2",
						 THREE_SWITCHES("FDR10", "0xd2f0"), router};

	for (size_t i = 0; i < 4; i++) {
		stop();
		start_at(topologies[i], i < 2 ? "host-1" : "host");
		mad_fabric_free(previous);
		previous = NULL;
		discover(&(struct mad_fabric_options){.read = MAD_FABRIC_READ_DEFAULT |
							      MAD_FABRIC_READ_MLNX_EXT_PORTS});
		previous = fabric;
		store(NULL);
		fabric = NULL;
		load(stored);
		assert_int_equal(fabric->node_count, previous->node_count);
		for (size_t n = 0; n < previous->node_count; n++) {
			const struct mad_fabric_node *one = mad_fabric_get_node(previous, n);
			const struct mad_fabric_node *same =
				mad_fabric_find_guid(fabric, one->guid);

			assert_string_equal(one->description, same->description);
			assert_int_equal(one->vendor_id, same->vendor_id);
			assert_int_equal(one->device_id, same->device_id);
			assert_int_equal(one->system_guid, same->system_guid);
			assert_int_equal(one->enhanced_port0, same->enhanced_port0);
			assert_int_equal(one->lid, same->lid);
			for (unsigned p = 1; p <= one->port_count; p++) {
				const struct mad_fabric_port *end = mad_fabric_get_port(one, p),
							     *other = mad_fabric_get_port(same,
											  p);

				assert_int_equal(!end->peer, !other->peer);
				if (!end->peer)
					continue;
				assert_int_equal(end->peer->node->guid,
						 other->peer->node->guid);
				assert_int_equal(end->peer->number, other->peer->number);
				assert_int_equal(end->speed, other->speed);
				assert_int_equal(end->width, other->width);
				assert_int_equal(end->guid, other->guid);
				assert_int_equal(end->lid, other->lid);
			}
		}
		assert_int_equal(mad_fabric_compare(previous, fabric, NULL, NULL), 0);
		assert_int_equal(mad_fabric_compare(fabric, previous, NULL, NULL), 0);
	}
	end_text();
}

/* --- names ---------------------------------------------------------------------------- */

static struct mad_node_names *names;

static int load_names(const char *text, size_t size, unsigned *line)
{
	FILE *file = file_with(text, size);
	int error = mad_node_names_load(file, &names, line);

	fclose(file);
	return error;
}

/* The result of the distribution's ibnetdiscover 44 for a map, for the node 0x1234. */
PLAIN_TEST(names_are_read_as_ibnetdiscover_reads_them)
{
	static const struct {
		const char *text, *name;
	} rows[] = {
		{"0x1234 \"one\"", "one"},
		{"0x1234 \"one\" trailing", "one"},
		{"0x1234 \"one\" # comment", "one"},
		{"  0x1234 \"one\"", "one"},
		{"0x1234\t\"one\"", "one"},
		{"0x1234\v\"one\"", "one"},
		{"0x1234 \"one\"\r", "one"},
		{"0x1234 two words", "two words"},
		{"0x1234 'single'", "'single'"},
		{"0x1234 \"no end", "no end"},
		{"0x1234 \"a \\\" b\"", "a \\"},
		{"0x1234 \"a # b\"", "a "},
		{"0x1234 \"a\"b\"", "a"},
		{"0x1234 \"  blanks  \"", "  blanks  "},
		{"0x1234 \" \"", " "},
		{"0x1234 \"t\tb \xc3\xa9 \x01\"", "t\tb \xc3\xa9 \x01"},
		{"0x1234 = \"a\"", "= "},
		{"0x1234 #\"a\"", "a"},
		{"0x1234 # a \"b\"", " a "},
		{"0x1234 \"\"", NULL},
		{"0x1234", NULL},
		{"0x1234#", NULL},
		{"# 0x1234 \"one\"", NULL},
		{"0X1234 \"upper\"", "upper"},
		{"0x00001234 \"zeros\"", "zeros"},
		{"4660 \"decimal\"", "decimal"},
		{"011064 \"octal\"", "octal"},
		{"+0x1234 \"plus\"", "plus"},
		{"-18446744073709546956 \"minus\"", "minus"}, /* minus 2^64 */
		{"0x1234 \"first\"\n0x1234 \"second\"", "first"},
		{"0x1234\n0x1234 \"second\"", "second"},
		{"  # comment\n\n  \t\n0x1234 \"one\"\n", "one"},
		{"0x1 \"a\"\n0x9999 \"b\"\n0x1234 \"one\"\n-5 \"c\"\n", "one"},
		{"0x10000000000000000 \"overflow\"\n0x1234 \"one\"\n", "one"},
		{"", NULL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *name;

		assert_int_equal(load_names(rows[i].text, strlen(rows[i].text), NULL), 0);
		name = mad_node_names_get(names, 0x1234);
		if (rows[i].name && name)
			assert_string_equal(name, rows[i].name);
		else if (rows[i].name || name)
			fail_msg("%s: \"%s\"", rows[i].text, name ? name : "none");
		mad_node_names_free(names);
	}
}

PLAIN_TEST(a_line_of_a_map_that_is_wrong_is_told)
{
	static const char *const wrong[] = {"junk",
					    "1234z \"a\"",
					    "0x \"a\"",
					    "\"0x1234\" \"a\"",
					    "0x1234\"a\"",
					    "0x1234: \"a\"",
					    "\xef\xbb\xbf 0x1234 \"a\"",
					    "00012cd \"a\""};
	static char many[20000];
	char text[100];
	size_t length = 0;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		unsigned line = 0;

		snprintf(text, sizeof(text), "0x1 \"a\"\n%s\nmore\n", wrong[i]);
		assert_int_equal(load_names(text, strlen(text), &line), -EBADMSG);
		assert_int_equal(line, 2);
		assert_null(names);
	}
	assert_int_equal(load_names("0x1 \"a\0\"\n", 9, NULL), -EBADMSG);
	assert_null(mad_node_names_get(NULL, 1));
	mad_node_names_free(NULL);
	/* many names, not in order */
	for (unsigned i = 1000; i > 0; i--)
		length += (size_t)snprintf(many + length, sizeof(many) - length,
					   "0x%x \"n%u\"\n", i * 3, i);
	assert_int_equal(load_names(many, length, NULL), 0);
	for (unsigned i = 0; i < 3003; i++) {
		const char *name = mad_node_names_get(names, i);

		assert_int_equal(name != NULL, i && i % 3 == 0 && i / 3 <= 1000);
		if (name)
			assert_int_equal(atoi(name + 1), i / 3);
	}
	mad_node_names_free(names);
}

/* As with --node-name-map: the line of a CA or router itself does not have the name. */
TEXT_TEST(names_replace_those_of_switches_and_of_other_ends)
{
	static const char map[] = "0x10 \"S\"\n0x100 \"H\"\n0x200 \"R\"\n";

	load(HEAD SWITCH CA ROUTER);
	assert_int_equal(load_names(map, sizeof(map) - 1, NULL), 0);
	store(names);
	assert_non_null(strstr(stored, "# \"S\" enhanced port 0"));
	assert_non_null(strstr(stored, "[1]\t\"H-0000000000000100\"[2](102) \t\t# \"H\" lid"));
	assert_non_null(strstr(stored, "# \"R\" lid 16"));
	assert_non_null(strstr(stored, "lid 8 lmc 3 \"S\" lid 4"));
	assert_non_null(strstr(stored, "Ca\t2 \"H-0000000000000100\"\t\t# \"host\"\n"));
	assert_non_null(strstr(stored, "Rt\t2 \"R-0000000000000200\"\t\t# \"router\"\n"));
	mad_node_names_free(names);
}

/* --- errors of text -------------------------------------------------------------------- */

TEXT_TEST(errors_of_reading_and_writing_are_returned)
{
	FILE *file = fopen("/dev/full", "w");

	assert_non_null(file);
	load("Ca 1 \"H-1\"\n");
	assert_int_equal(mad_fabric_store(fabric, file, NULL), -ENOSPC);
	assert_int_equal(mad_last_failure()->error, -ENOSPC);
	assert_int_equal(mad_fabric_store(fabric, NULL, NULL), -EINVAL);
	fclose(file);
	file = fopen("/", "r");
	assert_non_null(file);
	mad_fabric_free(fabric);
	assert_int_equal(mad_fabric_load(file, &fabric, NULL), -EISDIR);
	assert_int_equal(mad_node_names_load(file, &names, NULL), -EISDIR);
	assert_null(names);
	fclose(file);
	assert_int_equal(mad_fabric_load(NULL, &fabric, NULL), -EINVAL);
	assert_int_equal(mad_last_failure()->error, -EINVAL);
	assert_int_equal(mad_fabric_load(stdin, NULL, NULL), -EINVAL);
	assert_int_equal(mad_fabric_store(NULL, stdout, NULL), -EINVAL);
	assert_int_equal(mad_node_names_load(stdin, NULL, NULL), -EINVAL);
	assert_int_equal(mad_node_names_load(NULL, &names, NULL), -EINVAL);
}

/* Fails each allocation of a call, until it succeeds. */
#define FAIL_EACH_ALLOCATION(least, call)                                     \
	do {                                                                  \
		int error = -ENOMEM;                                          \
		unsigned n = 0;                                               \
                                                                              \
		while (error) {                                               \
			machine_fail(MACHINE_MALLOC, ++n, ENOMEM);            \
			error = (call);                                       \
			machine_fail(MACHINE_MALLOC, 0, 0);                   \
			assert_true(!error || (error == -ENOMEM && n < 200)); \
		}                                                             \
		assert_true(n > (least));                                     \
	} while (0)

/* With its buffer: the C library allocates it at the first read. */
static FILE *rewound(FILE *file)
{
	rewind(file);
	assert_int_not_equal(getc(file), EOF);
	rewind(file);
	return file;
}

TEST(without_memory_text_is_neither_read_nor_written)
{
	static const char text[] = HEAD SWITCH CA ROUTER, map[] = "0x1 \"a\"\n0x2 \"b\"\n";
	FILE *file = file_with(text, sizeof(text) - 1);
	FILE *out = tmpfile();

	FAIL_EACH_ALLOCATION(3, mad_fabric_load(rewound(file), &fabric, NULL));
	fclose(file);
	discover(NULL);
	putc('\n', out); /* allocates the buffer of the stream */
	FAIL_EACH_ALLOCATION(3, mad_fabric_store(fabric, out, NULL));
	fclose(out);
	file = file_with(map, sizeof(map) - 1);
	FAIL_EACH_ALLOCATION(2, mad_node_names_load(rewound(file), &names, NULL));
	fclose(file);
	mad_node_names_free(names);
	load(text);
	FAIL_EACH_ALLOCATION(3, mad_fabric_compare(fabric, fabric, NULL, NULL));
}

/* --- the graph ------------------------------------------------------------------------- */

TEXT_TEST(no_fabric_has_nothing)
{
	assert_null(mad_fabric_get_node(NULL, 0));
	assert_null(mad_fabric_get_port(NULL, 0));
	assert_null(mad_fabric_next_port(NULL, NULL));
	assert_null(mad_fabric_find_guid(NULL, 1));
	assert_null(mad_fabric_find_port_guid(NULL, 1));
	assert_null(mad_fabric_find_lid(NULL, 1));
	assert_null(mad_fabric_get_problem(NULL, 0));
	mad_fabric_free(NULL);
}

TEXT_TEST(ports_follow_each_other_past_nodes_without_ports)
{
	const struct mad_fabric_port *each = NULL;
	size_t count = 0;

	load("Ca 0 \"H-1\"\nSwitch 0 \"S-2\"\nCa 255 \"H-3\"\nRt 0 \"R-4\"\nSwitch 255 "
	     "\"S-5\"\n"
	     "Ca 0 \"H-6\"\n");
	while ((each = mad_fabric_next_port(fabric, each)))
		assert_int_equal(each->index, count++);
	assert_int_equal(count, 1 + 255 + 256);
	assert_int_equal(fabric->port_count, count);
	assert_null(node_at(6));
	assert_null(port_at(0, 1));
	assert_null(port_at(2, 0));
	assert_null(port_at(2, 256));
	assert_int_equal(port_at(4, 0)->number, 0);
	assert_ptr_equal(port_at(4, 255)->node, node_at(4));
	assert_null(mad_fabric_get_problem(fabric, 0));
	assert_null(fabric->origin);
}

TEXT_TEST(each_of_many_nodes_is_found)
{
	size_t size;
	char *text;
	FILE *file = open_memstream(&text, &size);

	for (unsigned i = 1; i <= 5000; i++)
		fprintf(file,
			"switchguid=0x%x(%x)\nSwitch 1 \"S-%x\" # \"\" base port 0 lid %u lmc "
			"0\n",
			i << 8, i << 8 | 2, i << 8, i);
	fclose(file);
	assert_int_equal(load_bytes(text, size, NULL), 0);
	free(text);
	for (unsigned i = 1; i <= 5000; i++) {
		const struct mad_fabric_node *node = node_at(i - 1);

		assert_ptr_equal(mad_fabric_find_guid(fabric, i << 8), node);
		assert_null(mad_fabric_find_guid(fabric, i << 8 | 2));
		assert_ptr_equal(mad_fabric_find_port_guid(fabric, i << 8 | 2),
				 mad_fabric_get_port(node, 0));
		assert_null(mad_fabric_find_port_guid(fabric, i << 8 | 3));
		assert_ptr_equal(mad_fabric_find_lid(fabric, i), mad_fabric_get_port(node, 0));
	}
	assert_int_equal(fabric->problem_count, 0);
}

#define CABLE_TO_SWITCH(lid, lmc) \
	"(102) \"S-1\"[1] # lid " lid " lmc " lmc " \"s\" lid 3 4xHDR\n"

TEXT_TEST(lids_of_this_subnet_are_found)
{
	load("switchguid=0x1(1)\nSwitch 2 \"S-1\" # \"s\" base port 0 lid 3 lmc 0\n"
	     "[1] \"H-2\"[1](102) # \"c\" lid 8 4xHDR\n"
	     "caguid=0x2\nCa 2 \"H-2\"\n[1]" CABLE_TO_SWITCH(
		     "8", "2") "switchguid=0x5(5)\nSwitch 1 \"S-5\" # \"x\" base port 0 lid "
			       "49153 lmc 0\n"
			       "switchguid=0x6(6)\nSwitch 1 \"S-6\" # \"x\" base port 0 lid "
			       "49151 lmc 7\n");
	assert_ptr_equal(mad_fabric_find_lid(fabric, 3), port_at(0, 0));
	for (unsigned lid = 8; lid < 12; lid++)
		assert_ptr_equal(mad_fabric_find_lid(fabric, lid), port_at(1, 1));
	assert_null(mad_fabric_find_lid(fabric, 0));
	assert_null(mad_fabric_find_lid(fabric, 7));
	assert_null(mad_fabric_find_lid(fabric, 12));
	assert_null(mad_fabric_find_lid(fabric, 1u << 31));
	for (unsigned number = 0; number <= 2; number++)
		assert_int_equal(port_at(0, number)->gmp_lid, 3);
	assert_int_equal(port_at(1, 1)->gmp_lid, 8);
	assert_int_equal(port_at(1, 2)->gmp_lid, 0);
	/* LIDs that no port can have */
	assert_null(mad_fabric_find_lid(fabric, 0xc001));
	assert_null(mad_fabric_find_lid(fabric, 0xc000));
	assert_int_equal(port_at(2, 1)->gmp_lid, 0);
	assert_ptr_equal(mad_fabric_find_lid(fabric, 0xbfff), port_at(3, 0));
	assert_int_equal(fabric->problem_count, 0);
}

/* The LID of a port that is not linked here may be of another subnet. */
TEST(a_lid_of_another_subnet_is_not_found)
{
	stop();
	start("Ca 1 \"host\"\n[1] \"s\"[1]\nSwitch 4 \"s\"\n[2] \"two\"[1]\nCa 2 \"two\"\n"
	      "[2] \"t\"[1]\nSwitch 2 \"t\"\n");
	add_oddity((struct oddity){.node = "two",
				   .attribute = IB_ATTR_PORT_INFO,
				   .first = 2,
				   .last = 2,
				   .field = IB_PORT_LID_F,
				   .value = machine_lid("s")});
	discover(NULL);
	assert_int_equal(port_of("two", 2)->lid, machine_lid("s"));
	assert_ptr_equal(mad_fabric_find_lid(fabric, machine_lid("s")), port_of("s", 0));
	assert_int_equal(port_of("two", 2)->gmp_lid, 0);
	assert_int_equal(fabric->problem_count, 0);
}

static void expect_text(const struct mad_fabric_problem *problem, const char *expected)
{
	char text[MAD_FABRIC_PROBLEM_TEXT_SIZE], cut[10];

	assert_ptr_equal(mad_fabric_problem_text(problem, text, sizeof(text)), text);
	assert_string_equal(text, expected);
	mad_fabric_problem_text(problem, cut, sizeof(cut));
	assert_int_equal(strlen(cut), sizeof(cut) - 1);
	assert_memory_equal(cut, expected, sizeof(cut) - 1);
	mad_fabric_problem_text(problem, cut, 0);
}

#define S1 "(0x0000000000000001)"
#define S2 "(0x0000000000000002)"

/* The problems of a loaded fabric, and their texts. */
static const struct odd_text {
	const char *behaviour, *text;
	enum mad_fabric_problem_kind kind;
	size_t count;
	const char *problem; /* the first one */
} odd_texts[] = {
	{"a_cable_to_oneself",
	 "Switch 4 \"S-1\"\n[1] \"S-1\"[2]\n[2] \"S-1\"[1]\n[3] \"S-1\"[3]\n",
	 MAD_FABRIC_PROBLEM_LOOP, 2,
	 S1 " port 1 and " S1 " port 2: cable from the node to itself"},
	{"a_link_of_one_end", "Switch 4 \"S-1\"\n[1] \"S-2\"[2]\n\nSwitch 4 \"S-2\"\n",
	 MAD_FABRIC_PROBLEM_PEER, 1, NULL},
	{"two_nodes_with_one_guid_keep_their_links",
	 "Switch 4 \"S-1\"\n[1] \"H-2\"[1]\n[2] \"H-2\"[2]\n\n"
	 "Ca 2 \"H-2\" # \"a\"\n[1] \"S-1\"[1]\n\nCa 2 \"H-2\" # \"b\"\n[2] \"S-1\"[2]\n",
	 MAD_FABRIC_PROBLEM_GUID, 1, NULL},
	{"two_switches_with_one_guid",
	 "switchguid=0x1(9)\nSwitch 4 \"S-1\"\n\nswitchguid=0x1(9)\nSwitch 4 \"S-1\"\n",
	 MAD_FABRIC_PROBLEM_GUID, 1, NULL},
	{"one_lid_twice",
	 "Switch 1 \"S-1\" # \"\" base port 0 lid 9 lmc 0\nSwitch 1 \"S-2\" # \"\" base port 0 "
	 "lid 8 lmc 1\n",
	 MAD_FABRIC_PROBLEM_LID, 1, NULL},
	{"one_port_guid_twice",
	 "switchguid=0x1(4d)\nSwitch 1 \"S-1\"\nswitchguid=0x2(4d)\nSwitch 1 \"S-2\"\n",
	 MAD_FABRIC_PROBLEM_GUID, 1, NULL},
};

static void load_odd_text(const void *row)
{
	const struct odd_text *odd = row;
	const struct mad_fabric_problem *problem;

	load(odd->text);
	assert_int_equal(fabric->problem_count, odd->count);
	assert_int_equal(problems(odd->kind), odd->count);
	problem = mad_fabric_get_problem(fabric, 0);
	if (odd->problem)
		expect_text(problem, odd->problem);
	if (odd->kind == MAD_FABRIC_PROBLEM_PEER) {
		assert_int_equal(port_at(0, 1)->peer->node->guid, 2);
		assert_null(port_at(1, 2)->peer);
	} else if (odd->kind == MAD_FABRIC_PROBLEM_GUID && fabric->node_count == 3) {
		assert_string_equal(port_at(0, 1)->peer->node->description, "a");
		assert_string_equal(port_at(0, 2)->peer->node->description, "b");
		assert_ptr_equal(mad_fabric_find_guid(fabric, 2), node_at(1));
		assert_int_equal(problem->guid, 2);
	}
}

TEST_ROWS(load_odd_text, odd_texts);

TEXT_TEST(the_text_of_a_problem_has_both_places)
{
	static const struct {
		unsigned attribute;
		int error;
		const char *text;
	} failed[] = {
		{IB_ATTR_NODE_INFO, -ETIMEDOUT, S2 ": NodeInfo: no response"},
		{IB_ATTR_NODE_DESC, -EBADMSG, S2 ": NodeDescription: malformed response"},
		{IB_ATTR_SWITCH_INFO, -ENETDOWN, S2 ": SwitchInfo: Network is down"},
		{IB_ATTR_PORT_INFO, -ETIMEDOUT, S2 ": PortInfo: no response"},
		{IB_ATTR_MLNX_EXT_PORT_INFO, -ETIMEDOUT, S2 ": ExtendedPortInfo: no response"},
		{1, -ETIMEDOUT, S2 ": an attribute: no response"},
	};
	char texts[MAD_FABRIC_PROBLEM_LINK + 2][MAD_FABRIC_PROBLEM_TEXT_SIZE];
	struct mad_fabric_problem problem = {.kind = MAD_FABRIC_PROBLEM_LINK};

	load("# NodeDescription 6c6561660a31\nSwitch 255 \"S-1\"\n[1] \"H-2\"[2](9)\n\n"
	     "Ca 2 \"H-2\"\n[2](9) \"S-1\"[1] # lid 9 lmc 0 \"s\" lid 3 4xHDR\n"
	     "Switch 255 \"S-3\" # "
	     "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"\n");
	problem.node = node_at(0);
	problem.port = port_at(0, 1);
	problem.other_node = node_at(1);
	problem.other_port = port_at(1, 2);
	expect_text(&problem, "leaf?1 " S1 " port 1 and " S2 " port 2: "
			      "the ends of the link differ in state, width, speed or MTU");
	problem.kind = MAD_FABRIC_PROBLEM_LID;
	expect_text(&problem, "leaf?1 " S1 " port 1 and " S2 " port 2: one LID twice: 9");
	problem.kind = MAD_FABRIC_PROBLEM_GUID;
	problem.guid = 2;
	expect_text(&problem, "behind leaf?1 " S1 " port 1 and " S2 " port 2: one GUID twice: "
			      "0x0000000000000002");
	problem = (struct mad_fabric_problem){.kind = MAD_FABRIC_PROBLEM_NODE_TYPE,
					      .node = node_at(1),
					      .other_node = node_at(0),
					      .other_port = port_at(0, 2)};
	expect_text(&problem,
		    S2 ", behind leaf?1 " S1 " port 2: neither CA, switch nor router");
	for (size_t i = 0; i < sizeof(failed) / sizeof(*failed); i++) {
		problem = (struct mad_fabric_problem){.kind = MAD_FABRIC_PROBLEM_NODE,
						      .node = node_at(1),
						      .description = "",
						      .attribute = failed[i].attribute,
						      .error = failed[i].error,
						      .count = 1};
		expect_text(&problem, failed[i].text);
	}
	/* each kind has a text of its own */
	problem = (struct mad_fabric_problem){.node = node_at(1)};
	for (int i = MAD_FABRIC_PROBLEM_PEER; i <= MAD_FABRIC_PROBLEM_LINK + 1; i++) {
		problem.kind = (enum mad_fabric_problem_kind)i;
		mad_fabric_problem_text(&problem, texts[i], sizeof(texts[i]));
		for (int j = MAD_FABRIC_PROBLEM_PEER; j < i; j++)
			assert_string_not_equal(texts[i], texts[j]);
	}
	assert_string_equal(texts[MAD_FABRIC_PROBLEM_LINK + 1], S2 ": ?");
	assert_string_equal(mad_fabric_problem_text(NULL, texts[0], sizeof(texts[0])), "");
	/* the longest texts fit */
	problem = (struct mad_fabric_problem){.kind = MAD_FABRIC_PROBLEM_LINK,
					      .node = node_at(2),
					      .port = port_at(2, 255),
					      .other_node = node_at(2),
					      .other_port = port_at(2, 254)};
	mad_fabric_problem_text(&problem, texts[0], sizeof(texts[0]));
	assert_string_equal(texts[0] + strlen(texts[0]) - 3, "MTU");
	problem = (struct mad_fabric_problem){.kind = MAD_FABRIC_PROBLEM_BEHIND,
					      .error = -EIO,
					      .status = 0x1c,
					      .node = node_at(2),
					      .port = port_at(2, 255),
					      .guid = 1,
					      .description = node_at(2)->description,
					      .count = UINT32_MAX};
	mad_fabric_problem_text(&problem, texts[0], sizeof(texts[0]));
	assert_string_equal(texts[0] + strlen(texts[0]) - 8, "modifier");
}

#define LEFT  "left (0x0000000000200000)"
#define RIGHT "right (0x0000000000200001)"

TEST(the_text_of_a_failure_has_what_failed)
{
	const struct mad_fabric_options partial = {.partial = true};

	machine_rule("silent on far");
	discover(NULL);
	expect_text(mad_fabric_get_problem(fabric, 0),
		    "the node behind " RIGHT " port 1: no response");
	machine_rule("clear");
	discover_again();
	machine_rule("silent on right");
	discover_again();
	expect_text(mad_fabric_get_problem(fabric, 0),
		    RIGHT " behind " LEFT " port 2 and 1 more: no response");
	machine_rule("clear");
	add_oddity((struct oddity){.node = "left",
				   .attribute = IB_ATTR_PORT_INFO,
				   .first = 4,
				   .last = 5,
				   .status = 0x1c});
	discover(NULL);
	expect_text(mad_fabric_get_problem(fabric, 0),
		    LEFT " port 4: PortInfo: invalid value in the attribute or its modifier, "
			 "2 requests in all");
	forget_odd_nodes();
	mad_fabric_free(fabric);
	machine_fail(MACHINE_WRITE, 4, ENETUNREACH);
	assert_int_equal(mad_fabric_discover(port, &partial, &fabric), -ENETDOWN);
	assert_int_equal(mad_fabric_get_problem(fabric, 0)->error, -ENETDOWN);
}

/* --- comparison ----------------------------------------------------------------------- */

static char seen[1000];
static unsigned counts[MAD_FABRIC_PORT_CHANGED + 1];
static int stop_after;

/* "-N name" for a node that was removed, "~L name/port" for a link that has changed, ... */
static int note_change(const struct mad_fabric_difference *difference, void *arg)
{
	static const char *const kinds[] = {"+N", "-N", "~N", "+L", "-L", "~L", "~P"};
	const struct mad_fabric_port *end =
		difference->before_port ? difference->before_port : difference->after_port;
	const struct mad_fabric_node *node = end                      ? end->node
					     : difference->after_node ? difference->after_node
								      : difference->before_node;
	size_t at = strlen(seen);

	assert_ptr_equal(arg, seen);
	counts[difference->change]++;
	at += (size_t)snprintf(seen + at, sizeof(seen) - at, "%s%s %s", at ? " " : "",
			       kinds[difference->change], node->description);
	if (end)
		snprintf(seen + at, sizeof(seen) - at, "/%u", end->number);
	return --stop_after == 0 ? -42 : 0;
}

static const char *compare(const struct mad_fabric *one, const struct mad_fabric *other)
{
	seen[0] = '\0';
	stop_after = 0;
	memset(counts, 0, sizeof(counts));
	assert_true(mad_fabric_compare(one, other, note_change, seen) >= 0);
	return seen;
}

#define SW(links)       "Switch 4 \"S-1\" # \"s\" base port 0 lid 1 lmc 0\n" links
#define TO(n, id, rate) "[" n "] \"H-" id "\"[1] # \"x\" lid 5 " rate "\n"
#define HOST(id, n, rate)                                                                     \
	"Ca 1 \"H-" id "\" # \"h" id "\"\n[1] \"S-1\"[" n "] # lid 5 lmc 0 \"s\" lid 1 " rate \
	"\n"
#define TWO_HOSTS                                       \
	SW(TO("1", "2", "4xHDR") TO("2", "3", "4xHDR")) \
	HOST("2", "1", "4xHDR") HOST("3", "2", "4xHDR")
#define THREE_HOSTS                                                           \
	SW(TO("1", "2", "4xHDR") TO("2", "3", "4xHDR") TO("3", "4", "4xHDR")) \
	HOST("2", "1", "4xHDR") HOST("3", "2", "4xHDR") HOST("4", "3", "4xHDR")
#define TWIN                                                                  \
	SW(TO("1", "2", "4xHDR") TO("2", "3", "4xHDR") TO("3", "2", "4xHDR")) \
	HOST("2", "1", "4xHDR") HOST("3", "2", "4xHDR") HOST("2", "3", "4xHDR")
#define ONE_HOST SW(TO("2", "3", "4xHDR")) HOST("3", "2", "4xHDR")

static const struct pair_of_texts {
	const char *behaviour, *before, *after, *changes;
} pairs[] = {
	{"the_same_fabric", TWO_HOSTS, TWO_HOSTS, ""},
	{"the_order_of_nodes_is_no_change", TWO_HOSTS,
	 HOST("3", "2", "4xHDR") HOST("2", "1", "4xHDR")
		 SW(TO("1", "2", "4xHDR") TO("2", "3", "4xHDR")),
	 ""},
	{"a_node_comes_with_its_link", TWO_HOSTS, THREE_HOSTS, "+L s/3 +N h4"},
	{"a_node_goes_with_its_link", THREE_HOSTS, TWO_HOSTS, "-N h4 -L s/3"},
	{"a_cable_that_is_moved", TWO_HOSTS,
	 SW(TO("4", "2", "4xHDR") TO("2", "3", "4xHDR")) HOST("2", "4", "4xHDR")
		 HOST("3", "2", "4xHDR"),
	 "-L s/1 +L s/4"},
	{"a_link_that_is_narrower_has_changed_once", TWO_HOSTS,
	 SW(TO("1", "2", "1xHDR") TO("2", "3", "4xHDR")) HOST("2", "1", "1xHDR")
		 HOST("3", "2", "4xHDR"),
	 "~L s/1"},
	{"another_name_and_lid",
	 "Switch 1 \"S-1\" # \"s\" base port 0 lid 3 lmc 0\nCa 1 \"H-2\" # \"a\"\n",
	 "Switch 1 \"S-1\" # \"s\" base port 0 lid 4 lmc 0\nCa 1 \"H-2\" # \"b\"\n",
	 "~N s ~N b"},
	{"what_was_not_read_is_not_compared",
	 "Switch 1 \"S-1\" # \"s\" base port 0 lid 3 lmc 0\nCa 1 \"H-2\" # \"a\"\n",
	 "Switch 1 \"S-1\"\nCa 1 \"H-2\"\n", ""},
	{"of_nodes_with_one_guid_the_first_one_is_compared", TWIN, TWO_HOSTS, ""},
	{"a_twin_that_comes", TWO_HOSTS, TWIN, ""},
	{"a_removed_node_with_a_twin_is_removed_once", TWIN, ONE_HOST, "-N h2 -L s/1"},
};

static void compare_texts(const void *row)
{
	const struct pair_of_texts *pair = row;

	load(pair->before);
	previous = fabric;
	fabric = NULL;
	load(pair->after);
	assert_string_equal(compare(previous, fabric), pair->changes);
	assert_int_equal(mad_fabric_compare(previous, previous, NULL, NULL), 0);
}

TEST_ROWS(compare_texts, pairs);

TEXT_TEST(the_callee_can_end_a_comparison)
{
	load(TWO_HOSTS);
	previous = fabric;
	fabric = NULL;
	load("Switch 1 \"S-9\"\n");
	seen[0] = '\0';
	stop_after = 2;
	assert_int_equal(mad_fabric_compare(previous, fabric, note_change, seen), -42);
	assert_int_equal(stop_after, 0);
	assert_int_equal(mad_fabric_compare(NULL, fabric, note_change, seen), -EINVAL);
	assert_int_equal(mad_fabric_compare(fabric, NULL, note_change, seen), -EINVAL);
}

/* --- what is certain -------------------------------------------------------------------- */

/* A host at each of five switches; "two" has a port in another subnet. */
#define TREE_WITH(s1, s2)                                                                  \
	"Ca 1 \"host\"\n[1] \"root\"[1]\nSwitch 9 \"root\"\n[2] \"h0\"\n[3] \"s1\"[1]\n"   \
	"[4] \"s2\"[1]\n[5] \"s3\"[1]\n[6] \"s4\"[1]\n[7] \"two\"[1]\nCa 1 \"h0\"\n"       \
	"Switch 4 \"s1\"\n[2] \"h1\"\n" s1 "Switch 4 \"s2\"\n" s2 "Switch 4 \"s3\"\n"      \
	"[2] \"h3\"\nSwitch 4 \"s4\"\n[2] \"h4\"\nCa 1 \"h1\"\nCa 1 \"h2\"\nCa 1 \"h3\"\n" \
	"Ca 1 \"h4\"\nCa 2 \"two\"\n[2] \"island\"[1]\nSwitch 2 \"island\"\n"
#define TREE                TREE_WITH("", "[2] \"h2\"\n")
#define TREE_WITH_NEW_CABLE TREE_WITH("[3] \"h2\"\n", "")

static const struct change {
	const char *behaviour, *topology, *later; /* NULL: the same */
	const char *rules[2], *later_rules[2];
	struct mad_fabric_options options, later_options;
	const char *changes; /* NULL: nothing is removed or added */
	size_t found;        /* later; 0: any number */
	const char *clone, *of;
} changes[] = {
	{.behaviour = "one_of_two_links_goes",
	 TWO_SWITCHES,
	 .later_rules = {"link down on left/2"},
	 .changes = "-L left/2"},
	{.behaviour = "a_host_goes",
	 TWO_SWITCHES,
	 .later_rules = {"link down on far"},
	 .changes = "-N far -L right/1"},
	{.behaviour = "a_link_trains_with_less",
	 TWO_SWITCHES,
	 .later_rules = {"width 1x on left/2"},
	 .changes = "~L left/2"},
	{.behaviour = "a_silent_switch_with_a_link_that_goes",
	 TWO_SWITCHES,
	 .later_rules = {"silent on right", "link down on left/2"},
	 .changes = "-L left/2"},
	{.behaviour = "nodes_beyond_max_nodes",
	 TREE,
	 .later_options = {.max_nodes = 5},
	 .found = 5},
	{.behaviour = "nodes_beyond_max_hops",
	 TREE,
	 .later_options = {.max_hops = 2},
	 .found = 8},
	{.behaviour = "nodes_beyond_max_hops_without_ports",
	 TREE,
	 .later_options = {.max_hops = 2, .read = MAD_FABRIC_READ_NODES}},
	{.behaviour = "what_is_behind_a_silent_switch",
	 TREE,
	 .later_rules = {"silent on s2"},
	 .found = 10},
	{.behaviour = "hosts_of_a_switch_with_another_s_guid", TREE, .clone = "s1", .of = "s2"},
	{.behaviour = "hosts_of_another_switch_with_a_guid", TREE, .clone = "s4", .of = "s1"},
	{.behaviour = "a_host_with_another_s_guid", TREE, .clone = "h1", .of = "h2"},
	{.behaviour = "a_host_goes_while_another_is_silent",
	 TREE,
	 .later_rules = {"silent on h1", "link down on h2"},
	 .changes = "-N h2 -L s2/2"},
	{.behaviour = "a_host_goes_while_another_never_responded",
	 TREE,
	 .rules = {"silent on h1"},
	 .later_rules = {"link down on h2"},
	 .changes = "-N h2 -L s2/2"},
	{.behaviour = "a_link_goes_beyond_which_nothing_is_known",
	 TREE,
	 .options = {.max_hops = 2},
	 .later_options = {.max_hops = 2},
	 .later_rules = {"link down on root/4"},
	 .changes = "-L root/4"},
	{.behaviour = "a_port_of_a_host_that_is_up_hides_nothing",
	 TREE,
	 .later_rules = {"link down on h2"},
	 .changes = "-N h2 -L s2/2"},
	{.behaviour = "a_new_cable_to_a_silent_node",
	 TREE,
	 .later = TREE_WITH_NEW_CABLE,
	 .later_rules = {"silent on h2"},
	 .changes = "-L s2/2 ~P s1/3",
	 .found = 11},
};

static void apply(const char *const *rules)
{
	for (int i = 0; i < 2 && rules[i]; i++)
		machine_rule("%s", rules[i]);
}

static void expect_changes(const void *row)
{
	const struct change *change = row;
	struct mad_fabric_options later = change->later_options;

	stop();
	start(change->topology);
	mad_rpc_set_timeout(port, 20);
	apply(change->rules);
	discover(&change->options);
	previous = fabric;
	fabric = NULL;
	if (change->later) {
		stop();
		start(change->later);
	}
	apply(change->later_rules);
	if (change->clone)
		set_field(change->clone, IB_ATTR_NODE_INFO, IB_NODE_GUID_F,
			  guid_of(change->of));
	later.timeout_ms = 20;
	discover(&later);
	if (change->found)
		assert_int_equal(fabric->node_count, change->found);
	for (int turn = 0; turn < 2; turn++) {
		compare(turn ? fabric : previous, turn ? previous : fabric);
		if (!change->changes)
			assert_int_equal(counts[MAD_FABRIC_NODE_ADDED] +
						 counts[MAD_FABRIC_NODE_REMOVED] +
						 counts[MAD_FABRIC_LINK_ADDED] +
						 counts[MAD_FABRIC_LINK_REMOVED],
					 0);
		else if (!turn)
			assert_string_equal(seen, change->changes);
		else
			assert_int_equal(counts[MAD_FABRIC_NODE_ADDED],
					 strstr(change->changes, "-N") != NULL);
	}
}

TEST_ROWS(expect_changes, changes);

TEST(a_port_without_a_link_can_change)
{
	discover(NULL);
	add_oddity((struct oddity){.node = "left",
				   .attribute = IB_ATTR_PORT_INFO,
				   .first = 4,
				   .last = 4,
				   .field = IB_PORT_PHYS_STATE_F,
				   .value = MAD_PHYSICAL_DISABLED});
	discover_again();
	assert_string_equal(compare(previous, fabric), "~P left/4");
	/* and one end of a link alone */
	forget_odd_nodes();
	set_field("far", IB_ATTR_PORT_INFO, IB_PORT_STATE_F, MAD_PORT_ARMED);
	discover_again();
	discover_again();
	forget_odd_nodes();
	discover_again();
	assert_string_equal(compare(previous, fabric), "~L right/1");
}

TEST(nodes_of_a_cut_ring_beyond_63_hops_are_not_removed)
{
	char text[8000];
	size_t at = (size_t)snprintf(text, sizeof(text), "Ca 1 \"host\"\n[1] \"s0\"[1]\n");

	for (unsigned i = 0; i < 120; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "Switch 4 \"s%u\"\n[2] \"s%u\"[3]\n", i, (i + 1) % 120);
	stop();
	start(text);
	assert_int_equal(discover(NULL), 121);
	machine_rule("link down on s0/3");
	discover_again();
	assert_int_equal(fabric->node_count, 64);
	compare(previous, fabric);
	assert_int_equal(counts[MAD_FABRIC_NODE_REMOVED], 0);
	assert_int_equal(counts[MAD_FABRIC_LINK_REMOVED], 1);
	compare(fabric, previous);
	assert_int_equal(counts[MAD_FABRIC_NODE_ADDED], 0);
	assert_int_equal(counts[MAD_FABRIC_LINK_ADDED], 1);
}

/* --- random changes and limits ---------------------------------------------------------- */

#define ROUNDS   15
#define SWITCHES 8
#define MOST     64 /* nodes */

/* The true fabrics of the two discoveries; a node has the same number in both. */
struct real_node {
	bool is_switch, silent, exists; /* exists: a route leads to the node */
	unsigned ports;
	int clone_of; /* -1: none */
	struct real_end {
		int node; /* -1: no cable */
		unsigned port;
	} ends[9];
};

static struct real {
	struct real_node nodes[MOST];
	int count;
} real, reals[2];

static int add_real(bool is_switch, unsigned ports)
{
	struct real_node *node = &real.nodes[real.count];

	assert_true(real.count < MOST);
	*node = (struct real_node){.is_switch = is_switch, .ports = ports, .clone_of = -1};
	for (unsigned n = 0; n < 9; n++)
		node->ends[n].node = -1;
	return real.count++;
}

static void join(int one, unsigned number, int other, unsigned other_number)
{
	real.nodes[one].ends[number] = (struct real_end){other, other_number};
	real.nodes[other].ends[other_number] = (struct real_end){one, number};
}

static void cut(int node, unsigned number)
{
	struct real_end *end = &real.nodes[node].ends[number];

	if (end->node < 0)
		return;
	real.nodes[end->node].ends[end->port].node = -1;
	end->node = -1;
}

/* A port without a cable; 0: none. */
static unsigned free_port(int node)
{
	for (unsigned n = 1; n <= real.nodes[node].ports; n++)
		if (real.nodes[node].ends[n].node < 0)
			return n;
	return 0;
}

static void try_cable(int one, int other)
{
	unsigned at = free_port(one), other_at = free_port(other);

	if (one != other && at && other_at)
		join(one, at, other, other_at);
}

static int draw_switch(void)
{
	return 1 + (int)draw_below(SWITCHES);
}

static int draw_node(void)
{
	return 1 + (int)draw_below((unsigned)real.count - 1);
}

static void draw_fabric(void)
{
	real.count = 0;
	add_real(false, 1);
	for (unsigned i = 0; i < SWITCHES; i++)
		add_real(true, 8);
	try_cable(0, 1);
	for (unsigned i = 1; i < SWITCHES; i++)
		try_cable(1 + (int)i, 1 + (int)draw_below(i));
	for (unsigned i = draw_below(6); i > 0; i--)
		try_cable(draw_switch(), draw_switch());
	for (unsigned i = 4 + draw_below(8); i > 0; i--) {
		int host = add_real(false, 1 + draw_below(2));

		try_cable(host, draw_switch());
		if (!draw_below(3))
			try_cable(host, draw_switch());
	}
}

/* Moves a cable to a port that had none in the first fabric. */
static void move_one(void)
{
	int node = draw_node(), target = draw_switch();
	unsigned number = 1 + draw_below(real.nodes[node].ports), at = free_port(target);

	if (!at || node == target || reals[0].nodes[target].ends[at].node >= 0)
		return;
	cut(node, number);
	join(node, number, target, at);
}

static void change_fabric(bool with_moves)
{
	for (unsigned i = draw_below(4); i > 0; i--) {
		int node = draw_node();

		switch (draw_below(with_moves ? 4 : 3)) {
		case 0:
			cut(node, 1 + draw_below(real.nodes[node].ports));
			break;
		case 1:
			for (unsigned n = 1; n <= real.nodes[node].ports; n++)
				cut(node, n);
			break;
		case 2:
			try_cable(add_real(false, 1), draw_switch());
			break;
		default:
			move_one();
		}
	}
}

static void silence_some(void)
{
	for (unsigned i = draw_below(3); i > 0; i--)
		real.nodes[draw_node()].silent ^= true;
}

/* A switch or a host gets the GUID of another one. */
static void share_a_guid(void)
{
	int number = draw_node(), other_number = draw_node();
	struct real_node *one = &real.nodes[number], *other = &real.nodes[other_number];

	/* the GUID of a silent node is not known */
	if (one == other || one->silent || other->silent ||
	    one->is_switch != other->is_switch || other->clone_of >= 0 ||
	    (!one->is_switch && one->ports + other->ports > 2))
		return;
	one->clone_of = other_number;
}

static void find_what_exists(void)
{
	int queue[MOST], queued = 1;

	for (int i = 0; i < real.count; i++)
		real.nodes[i].exists = !i;
	queue[0] = 0;
	for (int i = 0; i < queued; i++) {
		const struct real_node *node = &real.nodes[queue[i]];

		for (unsigned n = 1; n <= node->ports; n++) {
			int other = node->ends[n].node;

			if (other < 0 || real.nodes[other].exists ||
			    (queue[i] && !node->is_switch))
				continue;
			real.nodes[other].exists = true;
			queue[queued++] = other;
		}
	}
}

static void name_real(char name[8], int node)
{
	snprintf(name, 8, node ? "n%d" : "host", node);
}

/* A machine with the fabric, and a discovery. */
static void discover_real(struct real *kept, struct mad_fabric_options options)
{
	char text[9000], name[8], other[8];
	size_t at = 0;

	find_what_exists();
	*kept = real;
	for (int i = 0; i < real.count; i++) {
		const struct real_node *node = &real.nodes[i];

		name_real(name, i);
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s %u \"%s\"\n",
				       node->is_switch ? "Switch" : "Ca", node->ports, name);
		for (unsigned n = 1; n <= node->ports; n++) {
			name_real(other, node->ends[n].node);
			if (node->ends[n].node > i)
				at += (size_t)snprintf(text + at, sizeof(text) - at,
						       "[%u] \"%s\"[%u]\n", n, other,
						       node->ends[n].port);
		}
	}
	stop();
	start(text);
	for (int i = 0; i < real.count; i++) {
		name_real(name, i);
		if (real.nodes[i].silent)
			machine_rule("silent on %s", name);
		if (real.nodes[i].clone_of < 0)
			continue;
		name_real(other, real.nodes[i].clone_of);
		set_field(truth.nodes[graph_find(&truth, name)].name, IB_ATTR_NODE_INFO,
			  IB_NODE_GUID_F, guid_of(other));
	}
	options.timeout_ms = 20;
	mad_rpc_set_retries(port, 1);
	discover(&options);
}

static struct mad_fabric_options draw_limits(bool limited)
{
	struct mad_fabric_options options = {0};

	if (limited && !draw_below(3))
		options.max_hops = 1 + draw_below(5);
	if (limited && !draw_below(3))
		options.max_nodes = 1 + draw_below(15);
	return options;
}

/* Switches have GUIDs from 0x200000 on, in their order; a CA has one for each port, too. */
static uint64_t guid_in(const struct real *fabric_then, int node)
{
	uint64_t switches = 0x200000, hosts = 0x100000;
	int original = fabric_then->nodes[node].clone_of;

	if (original >= 0)
		return guid_in(fabric_then, original);
	for (int i = 0; i < node; i++)
		if (fabric_then->nodes[i].is_switch)
			switches++;
		else
			hosts += 1 + fabric_then->nodes[i].ports;
	return fabric_then->nodes[node].is_switch ? switches : hosts;
}

/* Whether a node with this GUID in the one fabric exists in the other one. */
static bool survives(const struct real *one, const struct real *other, uint64_t guid)
{
	for (int i = 0; i < one->count && i < other->count; i++)
		if (one->nodes[i].exists && other->nodes[i].exists && guid_in(one, i) == guid)
			return true;
	return false;
}

static bool is_cable(const struct real *fabric_then, int node, unsigned number,
		     struct real_end end)
{
	const struct real_end *link = &fabric_then->nodes[node].ends[number];

	return node < fabric_then->count && end.node < fabric_then->count &&
	       fabric_then->nodes[node].exists && fabric_then->nodes[end.node].exists &&
	       link->node == end.node && link->port == end.port;
}

static bool link_survives(const struct real *one, const struct real *other,
			  const struct mad_fabric_port *end)
{
	for (int i = 0; i < one->count; i++) {
		struct real_end far = end->number > one->nodes[i].ports
					      ? (struct real_end){-1, 0}
					      : one->nodes[i].ends[end->number];

		if (far.node >= 0 && far.port == end->peer->number &&
		    guid_in(one, i) == end->node->guid &&
		    guid_in(one, far.node) == end->peer->node->guid &&
		    is_cable(one, i, end->number, far) && is_cable(other, i, end->number, far))
			return true;
	}
	return false;
}

static int check_claim(const struct mad_fabric_difference *difference, void *arg)
{
	const struct real *old = &reals[0], *new = &reals[1];

	(void)arg;
	counts[difference->change]++;
	switch (difference->change) {
	case MAD_FABRIC_NODE_REMOVED:
		assert_false(survives(old, new, difference->before_node->guid));
		break;
	case MAD_FABRIC_NODE_ADDED:
		assert_false(survives(new, old, difference->after_node->guid));
		break;
	case MAD_FABRIC_LINK_REMOVED:
		assert_false(link_survives(old, new, difference->before_port));
		break;
	case MAD_FABRIC_LINK_ADDED:
		assert_false(link_survives(new, old, difference->after_port));
		break;
	default:
		break;
	}
	return 0;
}

/* The numbers of nodes and links that exist in the one fabric only. */
static void expect_all(const struct real *one, const struct real *other, unsigned nodes,
		       unsigned links)
{
	for (int i = 0; i < one->count; i++) {
		nodes -= one->nodes[i].exists && !(i < other->count && other->nodes[i].exists);
		for (unsigned n = 1; one->nodes[i].exists && n <= one->nodes[i].ports; n++) {
			struct real_end far = one->nodes[i].ends[n];

			/* each cable once; not the cable to another subnet */
			links -= far.node > i && one->nodes[far.node].exists &&
				 !is_cable(other, i, n, far);
		}
	}
	assert_int_equal(nodes, 0);
	assert_int_equal(links, 0);
}

TEST(nothing_that_exists_is_called_removed_or_added)
{
	srandom(test_seed());
	for (unsigned i = 0; i < ROUNDS; i++) {
		bool silent = !draw_below(3), limited = !draw_below(2), shared = !draw_below(3);

		draw_fabric();
		if (silent)
			silence_some();
		if (shared && draw_below(2))
			share_a_guid();
		discover_real(&reals[0], draw_limits(limited));
		mad_fabric_free(previous);
		previous = fabric;
		fabric = NULL;
		change_fabric(!silent);
		if (silent)
			silence_some();
		if (shared)
			share_a_guid();
		discover_real(&reals[1], draw_limits(limited));
		memset(counts, 0, sizeof(counts));
		assert_true(mad_fabric_compare(previous, fabric, check_claim, NULL) >= 0);
		if (silent || limited || shared)
			continue;
		/* all is known, and so are all changes */
		expect_all(&reals[0], &reals[1], counts[MAD_FABRIC_NODE_REMOVED],
			   counts[MAD_FABRIC_LINK_REMOVED]);
		expect_all(&reals[1], &reals[0], counts[MAD_FABRIC_NODE_ADDED],
			   counts[MAD_FABRIC_LINK_ADDED]);
	}
}
