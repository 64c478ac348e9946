/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A fabric as a graph and as text, node-name-maps, and the differences of two fabrics: also if
 * a discovery did not find all nodes.
 */

#include "fabrics.h"

FIXTURE(setup_two_switches, teardown_fabrics);

/* --- text --------------------------------------------------------------------------- */

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

static char *stored;

/* The stored text, without the line with the date. */
static const char *store(const struct mad_node_names *replaced)
{
	size_t size;
	FILE *file;
	char *line, *next;

	free(stored);
	file = open_memstream(&stored, &size);
	assert_int_equal(mad_fabric_store(fabric, file, replaced), 0);
	fclose(file);
	line = strchr(stored, '\n') + 1;
	next = strchr(line, '\n') + 1;
	assert_memory_equal(line, "# Topology file: generated on ", 30);
	memmove(line, next, strlen(next) + 1);
	return stored;
}

static const struct mad_fabric_node *node_at(size_t index)
{
	return mad_fabric_get_node(fabric, index);
}

static const struct mad_fabric_port *port_at(size_t index, unsigned number)
{
	return mad_fabric_get_port(node_at(index), number);
}

#define HEAD "#\n#\n# Initiated from node 0000000000000100 port 0000000000000102\n"
#define SWITCH                                                                         \
	"\nvendid=0x2c9\ndevid=0xd2f0\nsysimgguid=0x1\nswitchguid=0x10(11)\n"          \
	"Switch\t4 \"S-0000000000000010\"\t\t# \"leaf\" enhanced port 0 lid 4 lmc 2\n" \
	"[1]\t\"H-0000000000000100\"[2](102) \t\t# \"host\" lid 8 4xHDR\n"             \
	"[2]\t\"R-0000000000000200\"[1](201) \t\t# \"router\" lid 16 2xNDR\n"
#define CA                                                             \
	"\nvendid=0x2c9\ndevid=0x101b\nsysimgguid=0x2\ncaguid=0x100\n" \
	"Ca\t2 \"H-0000000000000100\"\t\t# \"host\"\n"                 \
	"[2](102) \t\"S-0000000000000010\"[1]\t\t# lid 8 lmc 3 \"leaf\" lid 4 4xHDR\n"
#define ROUTER                                                         \
	"\nvendid=0x2c9\ndevid=0x101b\nsysimgguid=0x3\nrtguid=0x200\n" \
	"Rt\t2 \"R-0000000000000200\"\t\t# \"router\"\n"               \
	"[1](201) \t\"S-0000000000000010\"[2]\t\t# lid 16 lmc 0 \"leaf\" lid 4 2xNDR\n"
#define LEAF "Switch\t4 \"S-0000000000000010\"\t\t# \"leaf\" base port 0 lid 5 lmc 0\n"

TEST(a_fabric_is_loaded_and_stored_the_same)
{
	const struct mad_fabric_port *leaf, *end;

	load(HEAD SWITCH CA ROUTER);
	expect_problems("");
	leaf = port_at(0, 0);
	assert_ptr_equal(mad_fabric_find_guid(fabric, 0x10), leaf->node);
	assert_ptr_equal(mad_fabric_find_lid(fabric, 7), leaf);
	assert_int_equal(leaf->guid, 0x11);
	assert_null(leaf->node->node_info);
	end = port_at(0, 2);
	assert_int_equal(end->width, 2);
	assert_int_equal(end->speed, MAD_SPEED_NDR);
	assert_true(end->rate_gbps == 200);
	assert_int_equal(end->peer->node->type, IB_NODE_ROUTER);
	assert_ptr_equal(end->peer->peer, end);
	end = port_at(1, 2);
	assert_null(port_at(1, 1)->peer);
	assert_int_equal(end->node->lid, 8);
	assert_int_equal(end->node->lmc, 3);
	assert_ptr_equal(mad_fabric_find_lid(fabric, 15), end);
	assert_ptr_equal(fabric->origin, end);
	assert_string_equal(store(NULL), HEAD SWITCH CA ROUTER);
}

TEST(each_speed_and_width_is_stored_as_it_was)
{
	static const char *const rates[] = {"1xSDR",  "2xDDR",     "4xQDR",  "8xFDR10",
					    "12xFDR", "4xEDR",     "4xHDR",  "4xNDR",
					    "4xXDR",  "?\?\?\?\?", "?\?HDR", "4x?\?\?"};

	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		append("#\n#\n\nvendid=0x0\ndevid=0x0\nswitchguid=0x1(1)\n"
		       "Switch\t2 \"S-0000000000000001\"\t\t# \"s\" base port 0 lid 1 lmc 0\n"
		       "[1]\t\"S-0000000000000001\"[2]\t\t# \"s\" lid 1 %s\n"
		       "[2]\t\"S-0000000000000001\"[1]\t\t# \"s\" lid 1 %s\n",
		       rates[i], rates[i]);
		load(drafted());
		assert_string_equal(store(NULL), draft.text);
	}
}

static void expect_description(const char *text, const char *description)
{
	load(text);
	assert_string_equal(node_at(0)->description, description);
}

#define LONG "012345678901234567890123456789012345678901234567890123456789012"

TEST(names_in_a_text)
{
	expect_description("Ca 1 \"H-1\" # \"a \"b\" # lid 4 [1] 4xHDR\"\n",
			   "a \"b\" # lid 4 [1] 4xHDR");
	expect_description(
		"Switch 1 \"S-1\" # \"x\" base port 0 lid 7 lmc 0\" base port 0 lid 1 lmc 0\n",
		"x\" base port 0 lid 7 lmc 0");
	expect_description("Ca 1 \"H-1\" # \"" LONG "345\"\n", LONG "3");
	expect_description("caguid=0x1\r\nCa 1 \"H-1\" # \"n\"\r\n", "n");
	/* headings of --grouping are skipped */
	expect_description(
		"Chassis 1 (guid 0x2c9)\n# Chassis CAs\nsysimgguid=0x2c9\t\t# Chassis 1\n"
		"caguid=0x1\nCa 1 \"H-1\" # \"c\"\nNon-Chassis Nodes\n"
		"switchguid=0x2(2)\t# \nSwitch 8 \"S-2\"\n[1][ext 5] \"S-2\"[2][ext 6]\n"
		"[2] \"S-2\"[1]\n",
		"c");
	/* a comment with a description counts for one node */
	expect_description("# NodeDescription 09\nCa 1 \"H-1\" # \"n\"\n", "\t");
	expect_description(
		"# NodeDescription 5c7835410d\nCa 1 \"H-1\" # \"n\"\n[1] \"H-2\"[1]\n"
		"Ca 1 \"H-2\" # \"\\x41\"\n",
		"\\x5A\r");
	assert_string_equal(node_at(1)->description, "\\x41");
	/* bytes that are not printable are stored as blanks, and in a comment */
	load("# NodeDescription 6109620a7fc3a9226320\nCa 1 \"H-1\"\n"
	     "# NodeDescription 7f\nSwitch 1 \"S-2\"\n");
	assert_non_null(strstr(store(NULL), "# \"a b    \"c \"\n"));
	assert_non_null(strstr(stored, "\n# NodeDescription 6109620a7fc3a9226320\nCa\t1"));
	assert_non_null(strstr(stored, "\n# NodeDescription 7f\nSwitch\t1"));
}

#define ALONE                                                                    \
	"#\n#\n# Initiated from node 0000000000000001 port 0000000000000002\n\n" \
	"vendid=0x0\ndevid=0x0\ncaguid=0x1\nCa\t1 \"H-0000000000000001\"\t\t# \"h\"\n"

TEST(a_text_may_lack_parts)
{
	/* the values of one node are not those of the next */
	load("vendid=0x1\ndevid=0x2\nsysimgguid=0x3\ncaguid=0x4\nCa 1 \"H-4\"\nCa 1 \"H-5\"\n");
	assert_int_equal(node_at(0)->system_guid, 3);
	assert_int_equal(node_at(1)->vendor_id, 0);
	assert_int_equal(node_at(1)->system_guid, 0);
	/* links without a rate; the origin is a switch, not found, or has no link */
	load("# Initiated from node 0000000000000010 port 0000000000000010\n" LEAF
	     "[1] \"S-10\"[2] # \"leaf\" lid 5\n[2] \"S-10\"[1] # \"leaf\" lid 5\n");
	assert_int_equal(port_at(0, 1)->width, 0);
	assert_ptr_equal(fabric->origin, port_at(0, 0));
	load("# Initiated from node 0000000000000001 port 0000000000000009\nCa 2 \"H-1\"\n");
	assert_null(fabric->origin);
	load(ALONE);
	assert_ptr_equal(fabric->origin, port_at(0, 1));
	assert_string_equal(store(NULL), ALONE);
}

static unsigned wrong_line(const char *text)
{
	unsigned line = 4711;

	assert_int_equal(load_bytes(text, strlen(text), &line), -EBADMSG);
	assert_null(fabric);
	return line;
}

/* Each of the lines is wrong as the line with this number, behind the text. */
static void expect_wrong_lines(unsigned number, const char *before, const char *lines)
{
	for (; *lines; lines = strchr(lines, '\n') + 1) {
		append("%s%.*s\n", before, (int)strcspn(lines, "\n"), lines);
		if (wrong_line(drafted()) != number)
			fail_msg("%s", draft.text);
	}
}

TEST(a_line_that_is_wrong_is_told)
{
	unsigned line;

	expect_wrong_lines(
		1, "",
		"[1] \"S-1\"[1]\nvendid=0x\nvendid=12\ndevid=0x12345\nswitchguid=0x12(3\n"
		"# Initiated from node zero\nSwitch 256 \"S-1\"\nSwitch 4 \"H-1\"\n"
		"Switch 4 \"S-12345678123456781\"\nCa 1 \"H-1\" no comment\n"
		"Switch 4 \"S-1\" # \"s\" base port 0 lid 5 lmc 8\n"
		"Switch 4 \"S-1\" # \"s\" best port 0 lid 5 lmc 0\n"
		"Switch 4 \"S-1\" # \"s\" base port 0 lid 5 lmc 0 more\n"
		"Ca 1 \"H-1\" # \"one mark\nCa 1 \"H-1\" # \"n\" more\n# NodeDescription \n"
		"# NodeDescription 616\n# NodeDescription 6g\n# NodeDescription 6100\n");
	expect_wrong_lines(2, "caguid=0x1\n", "Switch 4 \"S-1\"\n");
	expect_wrong_lines(2, "switchguid=0x2(2)\n", "Switch 4 \"S-1\"\n");
	expect_wrong_lines(
		2, LEAF,
		"[0] \"S-10\"[1]\n[5] \"S-10\"[1]\n[4] \"S-10\"[5]\n[4] \"H-10\"[1]\n"
		"[1] \"S-10\"[2] # \"leaf\" lid 5 3xHDR\n"
		"[1] \"S-10\"[2] # \"leaf\" lid 5 4xHD\n"
		"[1] \"S-10\"[2] # \"leaf\" lid 65536 4xHDR\n"
		"[1] \"S-10\"[2] # \"leaf\" lid 5 4xHDR s=x\n"
		"[1] \"S-10\"[2] # \"leaf\" lid 5 4xHDR more\n");
	expect_wrong_lines(3, LEAF "[1] \"S-10\"[2]\n", "[1] \"S-10\"[2]\n");
	/* the first of several, in the order of the file */
	assert_int_equal(wrong_line("\n# comment\nnonsense\nmore\n"), 3);
	assert_int_equal(wrong_line(LEAF "[4] \"H-2\"[1]\n[1] \"H-1\"[1]\n"), 2);
	assert_int_equal(wrong_line(LEAF "[1] \"H-2\"[1]\n[4] \"H-1\"[1]\n"), 2);
	assert_int_equal(wrong_line(LEAF "[4] \"S-10\"[1]\n[1] \"H-1\"[1]\n"), 3);
	/* without a node; "#" 4000 times is not too long a line */
	assert_int_equal(wrong_line(""), 0);
	assert_int_equal(wrong_line("#\n# Topology\n\n"), 0);
	append("%04000d", 0);
	memset(draft.text, '#', 4000);
	assert_int_equal(wrong_line(drafted()), 0);
	append("#%04999d", 0);
	assert_int_equal(wrong_line(drafted()), 1);
	assert_int_equal(load_bytes("#\n# \0\n", 6, &line), -EBADMSG);
	assert_int_equal(line, 2);
	assert_int_equal(load_bytes("", 0, NULL), -EBADMSG);
}

static int load_many(unsigned ports, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		append("Ca %u \"H-%x\"\n", ports, i);
	return load_bytes(draft.text, strlen(drafted()), NULL);
}

TEST(too_many_nodes_or_ports_are_refused)
{
	assert_int_equal(load_many(0, 200000), 0);
	assert_int_equal(load_many(0, 200001), -EFBIG);
	assert_null(fabric);
	assert_int_equal(load_many(255, 7843), 0);
	assert_int_equal(load_many(255, 7844), -EFBIG);
}

/* --- the text of a discovered fabric --------------------------------------------------- */

/* Expects these names of nodes in the stored text. */
static void expect_order(const char *order)
{
	const char *at = store(NULL);

	while ((at = strchr(at, '\n'))) {
		const char *name = strstr(++at, "# \"");

		if (name && (!strncmp(at, "Ca\t", 3) || !strncmp(at, "Switch\t", 7)))
			append("%.*s ", (int)strcspn(name + 3, "\""), name + 3);
	}
	assert_string_equal(drafted(), order);
}

#define THREE_SWITCHES(speed, device)                                                 \
	"vendid=0x2c9\ndevid=" device "\nSwitch 4 \"a\"\n[1] \"host\" # \"\" 4xEDR\n" \
	"[2] \"b\" # \"\" 4x" speed "\n[3] \"c\" # \"\" 4xEDR\n"                      \
	"vendid=0x2c9\ndevid=0xd2f0\nSwitch 4 \"b\"\n[2] \"h2\" # \"\" 4xEDR\n"       \
	"vendid=0x2c9\ndevid=0xd2f0\nSwitch 4 \"c\"\n[2] \"h3\" # \"\" 4xEDR\n"       \
	"Ca 1 \"host\"\nCa 1 \"h2\"\nCa 1 \"h3\"\n"

static void discover_order(const char *topology, const char *order)
{
	restart(topology);
	discover(NULL);
	expect_order(order);
}

TEST(nodes_are_stored_the_last_found_first)
{
	discover_order(THREE_SWITCHES("EDR", "0xd2f0"), "c b a h3 h2 host ");
	/* the node behind a link that may be FDR10 is found later; not of all devices */
	discover_order(THREE_SWITCHES("QDR", "0xd2f0"), "b c a h2 h3 host ");
	discover_order(THREE_SWITCHES("QDR", "0xb924"), "c b a h3 h2 host ");
	/* nodes of other types are left out, with their links */
	set_field("h2", IB_ATTR_NODE_INFO, IB_NODE_TYPE_F, 7);
	set_field("h3", IB_ATTR_NODE_INFO, IB_NODE_TYPE_F, 0);
	discover(NULL);
	expect_order("c b a host ");
	assert_null(strstr(stored, "[2]\t\"H-"));
	/* nodes to which no link leads are stored */
	forget_odd_nodes();
	set_field("h2", IB_ATTR_NODE_INFO, IB_NODE_LOCAL_PORT_F, 9);
	discover(NULL);
	assert_non_null(strstr(store(NULL), "# \"h2\"\n"));
	load("# Initiated from node 0000000000000002 port 0000000000000003\n"
	     "Ca 1 \"H-1\" # \"one\"\n\nCa 1 \"H-2\" # \"two\"\n");
	expect_order("one two ");
}

TEST(a_discovered_fabric_is_loaded_the_same)
{
	static const char routers[] =
		"Rt 2 \"r\"\n[1] \"s\"[3]\nSwitch 9 \"s\" # \"x\" enhanced port 0 lid 8 lmc 2\n"
		"[1] \"host\" # \"\" 1xEDR\n[4] \"s\"[5]\nCa 2 \"host\"\n[2] \"s\"[7]\n";
	const char *const topologies[] = {"fat-tree:4,2", "torus:3,2,2",
					  THREE_SWITCHES("FDR10", "0xd2f0"), routers};
	const struct mad_fabric_options options = {.read = MAD_FABRIC_READ_DEFAULT |
							   MAD_FABRIC_READ_MLNX_EXT_PORTS};

	for (size_t i = 0; i < 4; i++) {
		stop();
		start_at(topologies[i], i < 2 ? "host-1" : "host");
		discover(&options);
		append("%s", store(NULL));
		keep_fabric();
		load(stored);
		assert_string_equal(store(NULL), drafted());
		assert_int_equal(mad_fabric_compare(previous, fabric, NULL, NULL), 0);
		assert_int_equal(mad_fabric_compare(fabric, previous, NULL, NULL), 0);
	}
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

/* Expects the names of the GUIDs from 1 on; "-": none. */
static void expect_names(const char *map, unsigned count, const char *expected)
{
	assert_int_equal(load_names(map, strlen(map), NULL), 0);
	for (unsigned guid = 1; guid <= count; guid++) {
		const char *name = mad_node_names_get(names, guid);

		append("%s|", name ? name : "-");
	}
	assert_string_equal(drafted(), expected);
	mad_node_names_free(names);
}

/* The names that the distribution's ibnetdiscover 44 reads. */
TEST(names_are_read_as_ibnetdiscover_reads_them)
{
	expect_names("0x1 \"one\"\n0x2 \"one\" trailing\n0x3 \"one\" # comment\n0x4\t\"one\"\n"
		     "0x5\v\"one\"\n0x6 \"one\"\r\n  0x7 \"one\"\n  # comment\n\n  \t\n0x8 "
		     "\"one\"\n",
		     8, "one|one|one|one|one|one|one|one|");
	expect_names(
		"0x1 two words\n0x2 'single'\n0x3 \"no end\n0x4 \"a \\\" b\"\n0x5 \"a # b\"\n"
		"0x6 \"a\"b\"\n0x7 \"  blanks  \"\n0x8 \" \"\n0x9 \"t\tb \xc3\xa9 \x01\"\n",
		9, "two words|'single'|no end|a \\|a |a|  blanks  | |t\tb \xc3\xa9 \x01|");
	expect_names(
		"0x1 = \"a\"\n0x2 #\"a\"\n0x3 # a \"b\"\n0x4 \"\"\n0x5\n0x6#\n# 0x7 \"one\"\n"
		"0x8 \"first\"\n0x8 \"second\"\n0x9\n0x9 \"second\"",
		9, "= |a| a |-|-|-|-|first|second|");
	/* -2^64 + 6 is 6 */
	expect_names(
		"0X1 \"upper\"\n0x00002 \"zeros\"\n3 \"decimal\"\n+0x4 \"plus\"\n-3 \"minus\"\n"
		"0x10000000000000000 \"overflow\"\n-18446744073709551610 \"six\"\n010 "
		"\"octal\"\n",
		8, "upper|zeros|decimal|plus|-|six|-|octal|");
	expect_names("", 1, "-|");
}

TEST(a_line_of_a_map_that_is_wrong_is_told)
{
	static const char *const wrong[] = {"junk",
					    "1234z \"a\"",
					    "0x \"a\"",
					    "\"0x1234\" \"a\"",
					    "0x1234\"a\"",
					    "0x1234: \"a\"",
					    "\xef\xbb\xbf 0x1234 \"a\"",
					    "00012cd \"a\""};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		unsigned line = 0;

		append("0x1 \"a\"\n%s\nmore\n", wrong[i]);
		assert_int_equal(load_names(draft.text, strlen(drafted()), &line), -EBADMSG);
		assert_int_equal(line, 2);
		assert_null(names);
	}
	assert_int_equal(load_names("0x1 \"a\0\"\n", 9, NULL), -EBADMSG);
}

TEST(each_of_many_names_is_found)
{
	for (unsigned i = 1000; i > 0; i--)
		append("0x%x \"n%u\"\n", i * 3, i * 3);
	assert_int_equal(load_names(draft.text, strlen(drafted()), NULL), 0);
	for (unsigned i = 0; i < 3003; i++) {
		const char *name = mad_node_names_get(names, i);

		assert_int_equal(name ? atoi(name + 1) : 0, i % 3 || i > 3000 ? 0 : i);
	}
	mad_node_names_free(names);
}

/* As with --node-name-map: the line of a CA or router itself does not have the name. */
TEST(names_replace_those_of_switches_and_of_other_ends)
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

TEST(errors_of_reading_and_writing_are_returned)
{
	FILE *full = fopen("/dev/full", "w"), *folder = fopen("/", "r");

	load("Ca 1 \"H-1\"\n");
	assert_int_equal(mad_fabric_store(fabric, full, NULL), -ENOSPC);
	assert_int_equal(mad_last_failure()->error, -ENOSPC);
	mad_fabric_free(fabric);
	assert_int_equal(mad_fabric_load(folder, &fabric, NULL), -EISDIR);
	assert_int_equal(mad_node_names_load(folder, &names, NULL), -EISDIR);
	assert_null(names);
	assert_int_equal(mad_fabric_load(NULL, &fabric, NULL), -EINVAL);
	assert_int_equal(mad_last_failure()->error, -EINVAL);
	assert_int_equal(mad_fabric_load(stdin, NULL, NULL), -EINVAL);
	assert_int_equal(mad_fabric_store(NULL, stdout, NULL), -EINVAL);
	assert_int_equal(mad_node_names_load(stdin, NULL, NULL), -EINVAL);
	assert_int_equal(mad_node_names_load(NULL, &names, NULL), -EINVAL);
	load("Ca 1 \"H-1\"\n");
	assert_int_equal(mad_fabric_store(fabric, NULL, NULL), -EINVAL);
	fclose(full);
	fclose(folder);
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

TEST(no_fabric_has_nothing)
{
	assert_null(mad_fabric_get_node(NULL, 0));
	assert_null(mad_fabric_get_port(NULL, 0));
	assert_null(mad_fabric_next_port(NULL, NULL));
	assert_null(mad_fabric_find_guid(NULL, 1));
	assert_null(mad_fabric_find_port_guid(NULL, 1));
	assert_null(mad_fabric_find_lid(NULL, 1));
	assert_null(mad_fabric_get_problem(NULL, 0));
	assert_null(mad_node_names_get(NULL, 1));
	mad_node_names_free(NULL);
	mad_fabric_free(NULL);
}

TEST(ports_follow_each_other_past_nodes_without_ports)
{
	const struct mad_fabric_port *each = NULL;
	size_t count = 0;

	load("Ca 0 \"H-1\"\nSwitch 0 \"S-2\"\nCa 255 \"H-3\"\nRt 0 \"R-4\"\n"
	     "Switch 255 \"S-5\"\nCa 0 \"H-6\"\n");
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

TEST(each_of_many_nodes_is_found)
{
	for (unsigned i = 1; i <= 5000; i++)
		append("switchguid=0x%x(%x)\nSwitch 1 \"S-%x\" # \"\" port 0 lid %u\n", i << 8,
		       i << 8 | 2, i << 8, i);
	load(drafted());
	expect_problems("");
	for (unsigned i = 1; i <= 5000; i++) {
		assert_ptr_equal(mad_fabric_find_guid(fabric, i << 8), node_at(i - 1));
		assert_null(mad_fabric_find_guid(fabric, i << 8 | 2));
		assert_ptr_equal(mad_fabric_find_port_guid(fabric, i << 8 | 2),
				 port_at(i - 1, 0));
		assert_null(mad_fabric_find_port_guid(fabric, i << 8 | 3));
		assert_ptr_equal(mad_fabric_find_lid(fabric, i), port_at(i - 1, 0));
	}
}

TEST(lids_of_this_subnet_are_found)
{
	load("Switch 2 \"S-1\" # \"s\" base port 0 lid 3 lmc 0\n[1] \"H-2\"[1](102)\n"
	     "Ca 2 \"H-2\"\n[1](102) \"S-1\"[1] # lid 8 lmc 2 \"s\" lid 3 4xHDR\n"
	     "Switch 1 \"S-5\" # \"x\" base port 0 lid 49153 lmc 0\n"
	     "Switch 1 \"S-6\" # \"x\" base port 0 lid 49151 lmc 7\n");
	expect_problems("");
	assert_ptr_equal(mad_fabric_find_lid(fabric, 3), port_at(0, 0));
	for (unsigned lid = 7; lid <= 12; lid++)
		assert_ptr_equal(mad_fabric_find_lid(fabric, lid),
				 lid >= 8 && lid < 12 ? port_at(1, 1) : NULL);
	assert_null(mad_fabric_find_lid(fabric, 0));
	for (unsigned number = 0; number <= 2; number++)
		assert_int_equal(port_at(0, number)->gmp_lid, 3);
	assert_int_equal(port_at(1, 1)->gmp_lid, 8);
	assert_int_equal(node_at(1)->lid, 8);
	assert_int_equal(port_at(1, 2)->gmp_lid, 0);
	/* LIDs that no port can have */
	assert_int_equal(port_at(2, 1)->gmp_lid, 0);
	assert_ptr_equal(mad_fabric_find_lid(fabric, 0xbfff), port_at(3, 0));
	assert_null(mad_fabric_find_lid(fabric, 0xc000));
	assert_null(mad_fabric_find_lid(fabric, 0xc001));
	assert_null(mad_fabric_find_lid(fabric, 1u << 31));
	/* the LID of a port that is not linked here may be of another subnet */
	restart("Ca 1 \"host\"\n[1] \"s\"[1]\nSwitch 4 \"s\"\n[2] \"two\"[1]\nCa 2 \"two\"\n"
		"[2] \"t\"[1]\nSwitch 2 \"t\"\n");
	set_field("two", IB_ATTR_PORT_INFO, IB_PORT_LID_F, machine_lid("s"));
	net.oddities[0].first = net.oddities[0].last = 2;
	discover(NULL);
	expect_problems("");
	assert_int_equal(port_of("two", 2)->lid, machine_lid("s"));
	assert_ptr_equal(mad_fabric_find_lid(fabric, machine_lid("s")), port_of("s", 0));
	assert_int_equal(port_of("two", 2)->gmp_lid, 0);
}

TEST(a_loaded_fabric_may_contradict_itself)
{
	load("Switch 4 \"S-1\" # \"s\"\n[1] \"S-1\"[2]\n[2] \"S-1\"[1]\n[3] \"S-1\"[3]\n");
	expect_problems("s port 1 and s port 2: cable from the node to itself; "
			"s port 3 and s port 3: cable from the node to itself");
	load("switchguid=0x1(9)\nSwitch 4 \"S-1\" # \"s\"\nswitchguid=0x1(9)\nSwitch 4 "
	     "\"S-1\"\n");
	expect_problems("(0x0000000000000001) and s: one GUID twice: 0x0000000000000001");
	load("switchguid=0x1(4d)\nSwitch 1 \"S-1\" # \"s\"\nswitchguid=0x2(4d)\nSwitch 1 "
	     "\"S-2\"\n");
	expect_problems("(0x0000000000000002) port 0 and s port 0: one GUID twice: "
			"0x000000000000004d");
	load("Switch 1 \"S-1\" # \"s\" port 0 lid 9\nSwitch 1 \"S-2\" # \"t\" port 0 lid 8 lmc "
	     "1\n");
	expect_problems("t port 0 and s port 0: one LID twice: 9");
	load("Switch 4 \"S-1\" # \"s\"\n[1] \"S-2\"[2]\nSwitch 4 \"S-2\" # \"t\"\n");
	expect_problems("s port 1 and t port 2: the ports disagree about their link");
	assert_ptr_equal(port_at(0, 1)->peer, port_at(1, 2));
	assert_null(port_at(1, 2)->peer);
	/* two nodes with one GUID keep their links */
	load("Switch 4 \"S-1\"\n[1] \"H-2\"[1]\n[2] \"H-2\"[2]\nCa 2 \"H-2\" # \"a\"\n"
	     "[1] \"S-1\"[1]\nCa 2 \"H-2\" # \"b\"\n[2] \"S-1\"[2]\n");
	expect_problems("b and a: one GUID twice: 0x0000000000000002");
	assert_ptr_equal(port_at(0, 1)->peer, port_at(1, 1));
	assert_ptr_equal(port_at(0, 2)->peer, port_at(2, 2));
	assert_ptr_equal(mad_fabric_find_guid(fabric, 2), node_at(1));
}

static void expect_text(const struct mad_fabric_problem *problem, const char *expected)
{
	char text[MAD_FABRIC_PROBLEM_TEXT_SIZE], cut[10];

	assert_ptr_equal(mad_fabric_problem_text(problem, text, sizeof(text)), text);
	assert_string_equal(text, expected);
	mad_fabric_problem_text(problem, cut, sizeof(cut));
	text[sizeof(cut) - 1] = '\0';
	assert_string_equal(cut, text);
	mad_fabric_problem_text(problem, cut, 0);
}

#define X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X   X64 " (0x0000000000000002)"

/* The longest ones, and those that no other test has. */
TEST(texts_of_problems)
{
	struct mad_fabric_problem problem = {.kind = MAD_FABRIC_PROBLEM_TOO_MANY};

	load("# NodeDescription 6c6561660a31\nSwitch 255 \"S-1\"\n"
	     "Switch 255 \"S-2\" # \"" X64 "\"\n");
	expect_text(&problem,
		    "an unknown place: the fabric goes on, with too many nodes or ports");
	problem = (struct mad_fabric_problem){MAD_FABRIC_PROBLEM_NODE, -EBADMSG, node_at(0),
					      .attribute = IB_ATTR_NODE_INFO};
	expect_text(&problem, "leaf?1 (0x0000000000000001): NodeInfo: malformed response");
	problem.error = -ENETDOWN;
	problem.attribute = IB_ATTR_SWITCH_INFO;
	expect_text(&problem, "leaf?1 (0x0000000000000001): SwitchInfo: Network is down");
	problem.attribute = 1;
	expect_text(&problem, "leaf?1 (0x0000000000000001): an attribute: Network is down");
	problem = (struct mad_fabric_problem){.kind = MAD_FABRIC_PROBLEM_LINK,
					      .node = node_at(1),
					      .port = port_at(1, 255),
					      .other_node = node_at(1),
					      .other_port = port_at(1, 254)};
	expect_text(&problem, X " port 255 and " X " port 254: the ends of the link differ in "
				"state, width, speed or MTU");
	problem.kind = MAD_FABRIC_PROBLEM_LID;
	problem.port = NULL;
	expect_text(&problem, X " and " X " port 254: one LID twice");
	problem.kind = MAD_FABRIC_PROBLEM_LINK + 1;
	expect_text(&problem, X " and " X " port 254: ?");
	problem = (struct mad_fabric_problem){MAD_FABRIC_PROBLEM_BEHIND,
					      -EIO,
					      node_at(1),
					      port_at(1, 255),
					      .guid = 2,
					      .description = X64,
					      .status = 0x1c,
					      .count = UINT32_MAX};
	expect_text(&problem, X " behind " X " port 255 and 4294967294 more: invalid value in "
				"the attribute or its modifier");
	expect_text(NULL, "");
}

/* --- comparison ----------------------------------------------------------------------- */

/* "-N name" for a node that was removed, "~L name/port" for a link that has changed, ... */
static int note_change(const struct mad_fabric_difference *difference, void *arg)
{
	static const char *const kinds[] = {"+N", "-N", "~N", "+L", "-L", "~L", "~P"};
	const struct mad_fabric_port *end =
		difference->before_port ? difference->before_port : difference->after_port;
	const struct mad_fabric_node *node =
		difference->before_node ? difference->before_node : difference->after_node;
	int *left = arg;

	append(draft.length ? " %s %s" : "%s %s", kinds[difference->change], node->description);
	if (end)
		append("/%u", end->number);
	return --*left == 0 ? -42 : 0;
}

static const char *compare(const struct mad_fabric *one, const struct mad_fabric *other)
{
	int left = 0;

	assert_true(mad_fabric_compare(one, other, note_change, &left) >= 0);
	return drafted();
}

#define AT(number, id)   "[" number "] \"H-" id "\"[1]\n"
#define SW(links)        "Switch 4 \"S-1\" # \"s\"\n" links
#define HOST(id, number) "Ca 1 \"H-" id "\" # \"h" id "\"\n[1] \"S-1\"[" number "]\n"
#define ONE_HOST         SW(AT("2", "3")) HOST("3", "2")
#define TWO_HOSTS        SW(AT("1", "2") AT("2", "3")) HOST("2", "1") HOST("3", "2")
#define OTHER_ORDER      HOST("3", "2") HOST("2", "1") SW(AT("1", "2") AT("2", "3"))
#define MOVED            SW(AT("4", "2") AT("2", "3")) HOST("2", "4") HOST("3", "2")
#define TWINS \
	SW(AT("1", "2") AT("2", "3") AT("3", "2")) HOST("2", "1") HOST("3", "2") HOST("2", "3")
#define NAMES(lid, name) \
	"Switch 1 \"S-1\" # \"s\" base port 0 " lid "\nCa 1 \"H-2\" # \"" name "\"\n"

static const struct pair_of_texts {
	const char *behaviour, *before, *after, *changes;
} pairs[] = {
	{"the_order_of_nodes_is_no_change", TWO_HOSTS, OTHER_ORDER, ""},
	{"a_cable_that_is_moved", TWO_HOSTS, MOVED, "-L s/1 +L s/4"},
	{"another_name_and_lid", NAMES("lid 3", "a"), NAMES("lid 4", "b"), "~N s ~N a"},
	{"what_was_not_read_is_not_compared", NAMES("lid 3", "a"), NAMES("", ""), ""},
	{"of_nodes_with_one_guid_the_first_one_is_compared", TWINS, TWO_HOSTS, ""},
	{"a_twin_that_comes", TWO_HOSTS, TWINS, ""},
	{"a_removed_node_with_a_twin_is_removed_once", TWINS, ONE_HOST, "-N h2 -L s/1"},
};

static void compare_texts(const void *row)
{
	const struct pair_of_texts *pair = row;

	load(pair->before);
	keep_fabric();
	load(pair->after);
	assert_string_equal(compare(previous, fabric), pair->changes);
	assert_string_equal(compare(previous, previous), "");
}

TEST_ROWS(compare_texts, pairs);

TEST(the_callee_can_end_a_comparison)
{
	int left = 2;

	load(TWO_HOSTS);
	keep_fabric();
	load("Switch 1 \"S-9\"\n");
	assert_int_equal(mad_fabric_compare(previous, fabric, note_change, &left), -42);
	assert_string_equal(drafted(), "-N s -N h2");
	assert_int_equal(mad_fabric_compare(NULL, fabric, note_change, &left), -EINVAL);
	assert_int_equal(mad_fabric_compare(fabric, NULL, note_change, &left), -EINVAL);
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
	const char *behaviour, *topology;
	const char *changes;           /* "": nothing is removed or added */
	size_t found;                  /* nodes of the later discovery; 0: any number */
	const char *rule, *other_rule; /* before the later discovery */
	const char *later;             /* topology; NULL: the same */
	unsigned max_hops, later_max_hops, later_max_nodes, later_read;
	const char *clone, *of; /* later, clone has of's NodeGUID */
} changes[] = {
	{"a_host_goes", TWO_SWITCHES, "-N far -L right/1", 3, .rule = "link down on far"},
	{"a_link_trains_with_less", TWO_SWITCHES, "~L left/2", 4, .rule = "width 1x on left/2"},
	{"a_silent_switch_with_a_link_that_goes", TWO_SWITCHES, "-L left/2", 2,
	 .rule = "silent on right", .other_rule = "link down on left/2"},
	{"nodes_beyond_max_nodes", TREE, "", 5, .later_max_nodes = 5},
	{"nodes_beyond_max_hops", TREE, "", 8, .later_max_hops = 2},
	{"nodes_beyond_max_hops_without_ports", TREE, "", 8, .later_max_hops = 2,
	 .later_read = MAD_FABRIC_READ_NODES},
	{"what_is_behind_a_silent_switch", TREE, "", 10, .rule = "silent on s2"},
	{"hosts_of_a_switch_with_another_s_guid", TREE, "", 0, .clone = "s1", .of = "s2"},
	{"hosts_of_another_switch_with_a_guid", TREE, "", 0, .clone = "s4", .of = "s1"},
	{"a_host_with_another_s_guid", TREE, "", 0, .clone = "h1", .of = "h2"},
	{"a_host_goes_while_another_is_silent", TREE, "-N h2 -L s2/2", 0,
	 .rule = "silent on h1", .other_rule = "link down on h2"},
	{"a_link_goes_beyond_which_nothing_is_known", TREE, "-L root/4", 0,
	 .rule = "link down on root/4", .max_hops = 2, .later_max_hops = 2},
	{"a_new_cable_to_a_silent_node", TREE, "-L s2/2 ~P s1/3", 11, .rule = "silent on h2",
	 .later = TREE_WITH_NEW_CABLE},
};

static void expect_changes(const void *row)
{
	const struct change *change = row;
	const char *back;

	restart(change->topology);
	mad_rpc_set_timeout(port, 20);
	discover(DISCOVERY(.max_hops = change->max_hops));
	keep_fabric();
	if (change->later)
		restart(change->later);
	if (change->rule)
		machine_rule("%s", change->rule);
	if (change->other_rule)
		machine_rule("%s", change->other_rule);
	if (change->clone)
		set_field(change->clone, IB_ATTR_NODE_INFO, IB_NODE_GUID_F,
			  guid_of(change->of));
	discover(DISCOVERY(.max_hops = change->later_max_hops,
			   .max_nodes = change->later_max_nodes, .read = change->later_read,
			   .timeout_ms = 20));
	if (change->found)
		assert_int_equal(fabric->node_count, change->found);
	if (*change->changes)
		assert_string_equal(compare(previous, fabric), change->changes);
	else
		assert_null(strpbrk(compare(previous, fabric), "+-"));
	back = compare(fabric, previous);
	assert_int_equal(strstr(back, "+N") != NULL, strstr(change->changes, "-N") != NULL);
	assert_int_equal(strstr(back, "+L") != NULL, strstr(change->changes, "-L") != NULL);
	assert_null(strchr(back, '-'));
}

TEST_ROWS(expect_changes, changes);

TEST(a_port_and_one_end_of_a_link_can_change)
{
	discover(NULL);
	add_oddity((struct oddity){PORT_INFO("left", 4), .field = IB_PORT_PHYS_STATE_F,
				   .value = MAD_PHYSICAL_DISABLED});
	discover_again();
	assert_string_equal(compare(previous, fabric), "~P left/4");
	forget_odd_nodes();
	set_field("far", IB_ATTR_PORT_INFO, IB_PORT_STATE_F, MAD_PORT_ARMED);
	discover(NULL);
	forget_odd_nodes();
	discover_again();
	assert_string_equal(compare(previous, fabric), "~L right/1");
}

/* --- random changes and limits ---------------------------------------------------------- */

#define ROUNDS 15

/* All of the two fabrics; the discoveries that are compared may lack nodes. */
static struct mad_fabric *whole[2];
static unsigned twin, twin_of; /* a node that shows another one's NodeGUID; 0: none */
static unsigned claims;        /* nodes and links that were removed or added */

static uint64_t drawn_guid(unsigned node)
{
	return truth.nodes[node].guid;
}

static bool has_link(const struct mad_fabric *in, const struct mad_fabric_port *end)
{
	const struct mad_fabric_port *same =
		mad_fabric_get_port(mad_fabric_find_guid(in, end->node->guid), end->number);

	return same && same->peer && same->peer->node->guid == end->peer->node->guid &&
	       same->peer->number == end->peer->number;
}

static bool has_node(const struct mad_fabric *in, uint64_t guid)
{
	return mad_fabric_find_guid(in, guid);
}

/* The number of nodes and links of the one fabric that the other one lacks. */
static unsigned differences(const struct mad_fabric *in, const struct mad_fabric *other)
{
	const struct mad_fabric_port *end = NULL;
	unsigned count = 0;

	for (size_t i = 0; i < in->node_count; i++)
		count += !has_node(other, mad_fabric_get_node(in, i)->guid);
	while ((end = mad_fabric_next_port(in, end)))
		count += end->peer && end->index < end->peer->index && !has_link(other, end);
	return count;
}

static int check_claim(const struct mad_fabric_difference *difference, void *arg)
{
	bool removed = difference->before_node;
	const struct mad_fabric *in = whole[!removed], *other = whole[removed];
	const struct mad_fabric_node *node =
		removed ? difference->before_node : difference->after_node;
	const struct mad_fabric_port *end =
		removed ? difference->before_port : difference->after_port;

	(void)arg;
	if (difference->before_node && difference->after_node)
		return 0; /* what has changed is in both */
	claims++;
	if (end)
		assert_false(has_link(in, end) && has_link(other, end));
	else
		assert_false(has_node(other, node->guid));
	if (!end && twin && node->guid == drawn_guid(twin_of))
		assert_false(has_node(in, drawn_guid(twin)) &&
			     has_node(other, drawn_guid(twin)));
	return 0;
}

/* Cables are removed, added, or moved to a port that had none. */
static void change_fabric(bool with_moves)
{
	for (unsigned i = draw(4); i > 0; i--) {
		struct cable *cable = &drawn.cables[draw(drawn.count)];
		unsigned target = draw_switch();

		switch (draw(with_moves ? 3 : 2)) {
		case 0:
			*cable = drawn.cables[--drawn.count];
			break;
		case 1:
			draw_cable(target, draw(DRAWN_NODES));
			break;
		default:
			if (!cable->one || cable->other == target)
				break;
			cable->one = target;
			cable->number = ++drawn.used[target];
		}
	}
}

/* A switch or a host with one port may show the GUID of another one. */
static void draw_twin(void)
{
	twin = 1 + draw(DRAWN_NODES - 1);
	twin_of = 1 + draw(DRAWN_NODES - 1);
	if (twin == twin_of || is_drawn_switch(twin) != is_drawn_switch(twin_of) ||
	    drawn_ports(twin) == 2 || drawn_ports(twin_of) == 2)
		twin = 0;
}

/* Discovers the fabric that was drawn, first all of it. */
static void discover_drawn(unsigned turn, bool silent, bool limited, bool with_twin)
{
	struct mad_fabric_options options = {.timeout_ms = 20};

	start_drawn();
	discover(NULL);
	whole[turn] = fabric;
	fabric = NULL;
	for (unsigned i = silent ? draw(4) : 0; i > 0; i--) {
		unsigned node = 1 + draw(DRAWN_NODES - 1);

		/* the GUID of a silent node is not known */
		if (node != twin && node != twin_of)
			machine_rule("silent on n%u", node);
	}
	if (with_twin)
		set_field(truth.nodes[twin].name, IB_ATTR_NODE_INFO, IB_NODE_GUID_F,
			  drawn_guid(twin_of));
	if (limited && !draw(3))
		options.max_hops = 1 + draw(5);
	if (limited && !draw(3))
		options.max_nodes = 1 + draw(15);
	mad_rpc_set_retries(port, 1);
	discover(&options);
}

TEST(nothing_that_exists_is_called_removed_or_added)
{
	srandom(test_seed());
	for (unsigned i = 0; i < ROUNDS; i++) {
		bool silent = !draw(3), limited = !draw(2);

		twin = 0;
		if (!draw(3))
			draw_twin();
		draw_fabric();
		discover_drawn(0, silent, limited, twin && draw(2));
		keep_fabric();
		change_fabric(!silent);
		discover_drawn(1, silent, limited, twin);
		claims = 0;
		assert_true(mad_fabric_compare(previous, fabric, check_claim, NULL) >= 0);
		if (!silent && !limited && !twin)
			assert_int_equal(claims, differences(whole[0], whole[1]) +
							 differences(whole[1], whole[0]));
		mad_fabric_free(whole[0]);
		mad_fabric_free(whole[1]);
	}
}
