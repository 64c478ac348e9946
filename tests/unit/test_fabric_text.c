/* SPDX-License-Identifier: BSD-2-Clause */

/* A fabric as text: load, store, and both; node-name-maps. */

#include "fake_device.h"
#include "test.h"

#include "fabric/graph.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_fabric_text.h>

#include <inttypes.h>

static struct mad_fabric *fabric;
static char *stored;
static struct mad_node_names *names;

static int setup(void)
{
	fabric = NULL;
	stored = NULL;
	return 0;
}

static int teardown(void)
{
	device_fail_malloc(0);
	mad_fabric_free(fabric);
	free(stored);
	return 0;
}

FIXTURE(setup, teardown);

static int load_bytes(const char *text, size_t size, unsigned *line)
{
	FILE *file = tmpfile();
	int err;

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, size, file), size);
	rewind(file);
	mad_fabric_free(fabric);
	err = mad_fabric_load(file, &fabric, line);
	fclose(file);
	return err;
}

static void load(const char *text)
{
	unsigned line = 0;
	int err = load_bytes(text, strlen(text), &line);

	if (err)
		fail_msg("error %d in line %u", err, line);
}

static void is_wrong(const char *text, unsigned expected)
{
	unsigned line = 4711;

	assert_int_equal(load_bytes(text, strlen(text), &line), -EBADMSG);
	assert_int_equal(line, expected);
	assert_null(fabric);
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

static void is_stored_as_it_was(const char *text)
{
	load(text);
	assert_string_equal(store(NULL), text);
}

static void has_oddity(enum mad_fabric_problem_kind kind, unsigned expected)
{
	unsigned count = 0;

	for (size_t i = 0; i < fabric->problem_count; i++)
		count += mad_fabric_get_problem(fabric, i)->kind == kind;
	assert_int_equal(count, expected);
}

/* --- load ------------------------------------------------------------------------- */

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

TEST(a_switch_with_an_enhanced_port_0_is_loaded)
{
	const struct mad_fabric_node *node;

	load(HEAD SWITCH CA ROUTER);
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
}

TEST(a_ca_with_two_ports_and_an_lmc_is_loaded)
{
	const struct mad_fabric_node *node;
	const struct mad_fabric_port *port;

	load(HEAD SWITCH CA ROUTER);
	node = mad_fabric_find_guid(fabric, 0x100);
	assert_non_null(node);
	assert_int_equal(node->type, IB_NODE_CA);
	assert_int_equal(node->lid, 8);
	assert_int_equal(node->lmc, 3);
	assert_null(mad_fabric_get_port(node, 1)->peer);
	port = mad_fabric_get_port(node, 2);
	assert_int_equal(port->guid, 0x102);
	assert_int_equal(port->lid, 8);
	assert_int_equal(port->lmc, 3);
	assert_ptr_equal(mad_fabric_find_lid(fabric, 15), port);
	assert_ptr_equal(fabric->origin, port);
}

TEST(a_link_has_width_speed_and_rate_at_both_ends)
{
	const struct mad_fabric_port *port;

	load(HEAD SWITCH CA ROUTER);
	port = mad_fabric_get_port(mad_fabric_find_guid(fabric, 0x10), 2);
	assert_int_equal(port->width, 2);
	assert_int_equal(port->speed, MAD_SPEED_NDR);
	assert_true(port->rate_gbps == 200);
	assert_int_equal(port->peer->node->type, IB_NODE_ROUTER);
	assert_int_equal(port->peer->number, 1);
	assert_int_equal(port->peer->speed, MAD_SPEED_NDR);
	assert_ptr_equal(port->peer->peer, port);
}

TEST(what_was_loaded_is_stored_the_same)
{
	is_stored_as_it_was(HEAD SWITCH CA ROUTER);
	is_stored_as_it_was("#\n#\n\nvendid=0x0\ndevid=0x0\ncaguid=0x1\n"
			    "Ca\t1 \"H-0000000000000001\"\t\t# \"\"\n");
}

TEST(each_speed_and_width_is_stored_as_it_was)
{
	static const char *const rates[] = {"1xSDR",  "2xDDR",     "4xQDR",  "8xFDR10",
					    "12xFDR", "4xEDR",     "4xHDR",  "4xNDR",
					    "4xXDR",  "?\?\?\?\?", "?\?HDR", "4x?\?\?"};
	char text[2000];

	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		snprintf(text, sizeof(text),
			 "#\n#\n\nvendid=0x0\ndevid=0x0\nswitchguid=0x1(1)\n"
			 "Switch\t2 \"S-0000000000000001\"\t\t# \"s\" base port 0 lid 1 lmc 0\n"
			 "[1]\t\"S-0000000000000001\"[2]\t\t# \"s\" lid 1 %s\n"
			 "[2]\t\"S-0000000000000001\"[1]\t\t# \"s\" lid 1 %s\n",
			 rates[i], rates[i]);
		is_stored_as_it_was(text);
	}
}

TEST(names_may_have_quotation_marks_and_any_word)
{
	load("Ca 1 \"H-1\" # \"a \"b\" # lid 4 [1] 4xHDR\"\n");
	assert_string_equal(mad_fabric_get_node(fabric, 0)->description,
			    "a \"b\" # lid 4 [1] 4xHDR");
	load("Switch 1 \"S-1\" # \"x\" base port 0 lid 7 lmc 0\" base port 0 lid 1 lmc 0\n");
	assert_string_equal(mad_fabric_get_node(fabric, 0)->description,
			    "x\" base port 0 lid 7 lmc 0");
}

TEST(a_long_name_is_cut_off)
{
	load("Ca 1 \"H-1\" # "
	     "\"0123456789012345678901234567890123456789012345678901234567890123456789\"\n");
	assert_string_equal(mad_fabric_get_node(fabric, 0)->description,
			    "0123456789012345678901234567890123456789012345678901234567890123");
}

TEST(comments_are_optional)
{
	load("Switch 2 \"S-1\"\n[1] \"H-2\"[1]\n\nCa 1 \"H-2\"\n[1] \"S-1\"[1]");
	assert_int_equal(fabric->node_count, 2);
	assert_non_null(mad_fabric_get_port(mad_fabric_get_node(fabric, 0), 1)->peer);
}

TEST(lines_may_end_as_on_windows)
{
	load("caguid=0x1\r\nCa 1 \"H-1\" # \"n\"\r\n");
	assert_string_equal(mad_fabric_get_node(fabric, 0)->description, "n");
}

TEST(the_headings_of_grouping_are_skipped)
{
	load("Chassis 1 (guid 0x2c9)\n# Chassis CAs\nsysimgguid=0x2c9\t\t# Chassis 1\n"
	     "caguid=0x1\nCa 1 \"H-1\"\nNon-Chassis Nodes\n"
	     "switchguid=0x2(2)\t# \nSwitch 8 \"S-2\"\n[1][ext 5] \"S-2\"[2][ext 6]\n"
	     "[2] \"S-2\"[1]\n");
	assert_int_equal(fabric->node_count, 2);
	assert_int_equal(mad_fabric_get_node(fabric, 0)->system_guid, 0x2c9);
}

TEST(numbers_of_one_node_are_not_those_of_the_next)
{
	load("vendid=0x1\ndevid=0x2\nsysimgguid=0x3\ncaguid=0x4\nCa 1 \"H-4\"\nCa 1 \"H-5\"\n");
	assert_int_equal(mad_fabric_get_node(fabric, 1)->vendor_id, 0);
	assert_int_equal(mad_fabric_get_node(fabric, 1)->system_guid, 0);
}

TEST(the_only_port_of_a_host_without_a_link_is_the_origin)
{
	static const char text[] =
		"#\n#\n# Initiated from node 0000000000000001 port 0000000000000002\n"
		"\nvendid=0x0\ndevid=0x0\ncaguid=0x1\n"
		"Ca\t1 \"H-0000000000000001\"\t\t# \"h\"\n";

	is_stored_as_it_was(text);
	assert_int_equal(fabric->origin->number, 1);
}

TEST(a_cable_to_oneself_is_an_oddity)
{
	load("Switch 4 \"S-1\"\n[1] \"S-1\"[2]\n[2] \"S-1\"[1]\n[3] \"S-1\"[3]\n");
	has_oddity(MAD_FABRIC_PROBLEM_LOOP, 2);
	assert_int_equal(mad_fabric_get_port(mad_fabric_get_node(fabric, 0), 1)->peer->number,
			 2);
	assert_int_equal(mad_fabric_get_port(mad_fabric_get_node(fabric, 0), 3)->peer->number,
			 3);
}

TEST(a_link_of_one_end_is_an_oddity)
{
	load("Switch 4 \"S-1\"\n[1] \"S-2\"[2]\n\nSwitch 4 \"S-2\"\n");
	has_oddity(MAD_FABRIC_PROBLEM_PEER, 1);
	assert_int_equal(
		mad_fabric_get_port(mad_fabric_get_node(fabric, 0), 1)->peer->node->guid, 2);
	assert_null(mad_fabric_get_port(mad_fabric_get_node(fabric, 1), 2)->peer);
}

TEST(two_nodes_with_one_guid_keep_their_links)
{
	load("Switch 4 \"S-1\"\n[1] \"H-2\"[1]\n[2] \"H-2\"[2]\n\n"
	     "Ca 2 \"H-2\" # \"a\"\n[1] \"S-1\"[1]\n\nCa 2 \"H-2\" # \"b\"\n[2] \"S-1\"[2]\n");
	has_oddity(MAD_FABRIC_PROBLEM_GUID, 1);
	has_oddity(MAD_FABRIC_PROBLEM_PEER, 0);
	assert_string_equal(
		mad_fabric_get_port(mad_fabric_get_node(fabric, 0), 1)->peer->node->description,
		"a");
	assert_string_equal(
		mad_fabric_get_port(mad_fabric_get_node(fabric, 0), 2)->peer->node->description,
		"b");
}

TEST(two_switches_with_one_guid_are_one_oddity)
{
	load("switchguid=0x1(9)\nSwitch 4 \"S-1\"\n\nswitchguid=0x1(9)\nSwitch 4 \"S-1\"\n");
	has_oddity(MAD_FABRIC_PROBLEM_GUID, 1);
	assert_ptr_equal(mad_fabric_find_port_guid(fabric, 9),
			 mad_fabric_get_port(mad_fabric_get_node(fabric, 0), 0));
}

TEST(the_first_wrong_line_is_told)
{
	is_wrong("\n# comment\nnonsense\nmore\n", 3);
	is_wrong("[1] \"S-1\"[1]\n", 1);
	is_wrong("vendid=0x\n", 1);
	is_wrong("vendid=12\n", 1);
	is_wrong("devid=0x12345\n", 1);
	is_wrong("switchguid=0x12(3\n", 1);
	is_wrong("# Initiated from node zero\n", 1);
	is_wrong("Switch 256 \"S-1\"\n", 1);
	is_wrong("Switch 4 \"H-1\"\n", 1);
	is_wrong("Switch 4 \"S-12345678123456781\"\n", 1);
	is_wrong("caguid=0x1\nSwitch 4 \"S-1\"\n", 2);
	is_wrong("switchguid=0x2(2)\nSwitch 4 \"S-1\"\n", 2);
	is_wrong(LEAF "[0] \"S-10\"[1]\n", 2);
	is_wrong(LEAF "[5] \"S-10\"[1]\n", 2);
	is_wrong(LEAF "[1] \"S-10\"[2]\n[1] \"S-10\"[2]\n", 3);
	is_wrong(LEAF "[1] \"S-10\"[2] # \"leaf\" lid 5 3xHDR\n", 2);
	is_wrong(LEAF "[1] \"S-10\"[2] # \"leaf\" lid 5 4xHD\n", 2);
	is_wrong(LEAF "[1] \"S-10\"[2] # \"leaf\" lid 65536 4xHDR\n", 2);
	is_wrong("Switch 4 \"S-1\" # \"s\" base port 0 lid 5 lmc 8\n", 1);
	is_wrong("Switch 4 \"S-1\" # \"s\" best port 0 lid 5 lmc 0\n", 1);
	is_wrong("Ca 1 \"H-1\" no comment\n", 1);
	is_wrong("Switch 4 \"S-1\" # \"s\" base port 0 lid 5 lmc 0 more\n", 1);
	is_wrong(LEAF "[1] \"S-10\"[2] # \"leaf\" lid 5 4xHDR s=x\n", 2);
	is_wrong(LEAF "[1] \"S-10\"[2] # \"leaf\" lid 5 4xHDR more\n", 2);
	is_wrong("Ca 1 \"H-1\" # \"one mark\n", 1);
	is_wrong("Ca 1 \"H-1\" # \"n\" more\n", 1);
	is_wrong("# NodeDescription \nCa 1 \"H-1\"\n", 1);
	is_wrong("# NodeDescription 616\nCa 1 \"H-1\"\n", 1);
	is_wrong("# NodeDescription 6g\nCa 1 \"H-1\"\n", 1);
	is_wrong("# NodeDescription 6100\nCa 1 \"H-1\"\n", 1);
}

TEST(a_link_to_a_port_that_there_is_not_is_a_wrong_line)
{
	is_wrong(LEAF "[4] \"S-10\"[1]\n[1] \"H-1\"[1]\n[2] \"H-2\"[1]\n", 3);
	is_wrong(LEAF "[4] \"S-10\"[5]\n", 2);
	is_wrong(LEAF "[4] \"H-10\"[1]\n", 2);
}

TEST(a_file_without_a_node_is_wrong)
{
	is_wrong("", 0);
	is_wrong("#\n# Topology\n\n", 0);
}

TEST(a_zero_byte_and_a_long_line_are_wrong)
{
	static char text[5000];
	unsigned line = 0;

	assert_int_equal(load_bytes("#\n# \0\n", 6, &line), -EBADMSG);
	assert_int_equal(line, 2);
	memset(text, '#', sizeof(text));
	assert_int_equal(load_bytes(text, sizeof(text), NULL), -EBADMSG);
	assert_int_equal(load_bytes(text, 4000, &line), -EBADMSG);
	assert_int_equal(line, 0); /* long enough, but not a node */
}

TEST(too_many_nodes_are_refused)
{
	const size_t length = strlen("Ca 0 \"H-00000\"\n");
	char *text = malloc(200001 * length + 1);
	unsigned line = 0;

	assert_non_null(text);
	for (unsigned i = 0; i < 200001; i++)
		snprintf(text + i * length, length + 1, "Ca 0 \"H-%05x\"\n", i);
	assert_int_equal(load_bytes(text, 200000 * length, NULL), 0);
	assert_int_equal(load_bytes(text, 200001 * length, &line), -EFBIG);
	assert_null(fabric);
	free(text);
}

TEST(too_many_ports_are_refused)
{
	const size_t length = strlen("Ca 255 \"H-0000\"\n");
	char *text = malloc(7844 * length + 1);

	assert_non_null(text);
	for (unsigned i = 0; i < 7844; i++)
		snprintf(text + i * length, length + 1, "Ca 255 \"H-%04x\"\n", i);
	assert_int_equal(load_bytes(text, 7843 * length, NULL), 0);
	assert_int_equal(load_bytes(text, 7844 * length, NULL), -EFBIG);
	free(text);
}

TEST(loading_fails_without_memory_and_leaks_nothing)
{
	static const char text[] = HEAD SWITCH CA ROUTER;
	int err = -ENOMEM, failures = 0;

	for (unsigned n = 1; err && n < 100; n++) {
		FILE *file = fmemopen((void *)(uintptr_t)text, sizeof(text) - 1, "r");

		assert_non_null(file);
		assert_int_not_equal(getc(file), EOF); /* allocates the buffer */
		rewind(file);
		device_fail_malloc(n);
		err = mad_fabric_load(file, &fabric, NULL);
		device_fail_malloc(0);
		fclose(file);
		failures += err == -ENOMEM;
		assert_true(!err || err == -ENOMEM);
		assert_true(!err || !fabric);
	}
	assert_int_equal(err, 0);
	assert_true(failures > 3);
}

TEST(wrong_arguments_are_refused)
{
	assert_int_equal(mad_fabric_load(NULL, &fabric, NULL), -EINVAL);
	assert_int_equal(mad_last_failure()->error, -EINVAL);
	assert_int_equal(mad_fabric_load(stdin, NULL, NULL), -EINVAL);
	assert_int_equal(mad_fabric_store(NULL, stdout, NULL), -EINVAL);
	load("Ca 1 \"H-1\"\n");
	assert_int_equal(mad_fabric_store(fabric, NULL, NULL), -EINVAL);
	assert_int_equal(mad_node_names_load(stdin, NULL, NULL), -EINVAL);
	assert_int_equal(mad_node_names_load(NULL, &names, NULL), -EINVAL);
}

TEST(errors_of_reading_and_writing_are_returned)
{
	FILE *file = fopen("/dev/full", "w");

	assert_non_null(file);
	load("Ca 1 \"H-1\"\n");
	assert_int_equal(mad_fabric_store(fabric, file, NULL), -ENOSPC);
	assert_int_equal(mad_last_failure()->error, -ENOSPC);
	fclose(file);
	file = fopen("/", "r");
	assert_non_null(file);
	mad_fabric_free(fabric);
	assert_int_equal(mad_fabric_load(file, &fabric, NULL), -EISDIR);
	fclose(file);
}

/* --- store: a fabric that was discovered ---------------------------------------------- */

static uint8_t info[IB_SMP_DATA_SIZE];

static struct mad_fabric_node *add(uint64_t guid, unsigned type, unsigned ports,
				   unsigned device)
{
	struct mad_fabric_node *node = graph_add_node(fabric, guid, type, ports);

	assert_non_null(node);
	node->node_info = info;
	node->device_id = (uint16_t)device;
	snprintf(node->description, sizeof(node->description), "n%" PRIx64, guid);
	for (unsigned i = 1; i <= ports; i++)
		graph_port(node, i)->guid = type == IB_NODE_SWITCH ? guid : guid + i;
	return node;
}

static void join(struct mad_fabric_node *one, unsigned port, struct mad_fabric_node *other,
		 unsigned other_port, unsigned speed)
{
	struct mad_fabric_port *a = graph_port(one, port), *b = graph_port(other, other_port);

	graph_link(a, b);
	a->width = b->width = 4;
	a->speed = b->speed = (uint8_t)speed;
}

/* The GUIDs of the nodes as stored, in one line. */
static const char *stored_order(void)
{
	static char order[500];
	const char *at = store(NULL);

	order[0] = '\0';
	while ((at = strstr(at, "guid=0x"))) {
		at += 7;
		if (strncmp(at - 13, "sysimgguid", 10) == 0 || at[-8] == 'g')
			continue;
		snprintf(order + strlen(order), sizeof(order) - strlen(order), "%s%.*s",
			 *order ? " " : "", (int)strspn(at, "0123456789abcdef"), at);
	}
	return order;
}

/* Host 1 at switch a. Switch a has b and c, with hosts 2 and 3. The discovery order differs. */
static void make_small_fabric(unsigned speed_of_b, unsigned device)
{
	struct mad_fabric_node *c, *b, *a, *h1, *h2, *h3;

	fabric = graph_create();
	assert_non_null(fabric);
	h1 = add(0x100, IB_NODE_CA, 2, 0);
	c = add(0xc, IB_NODE_SWITCH, 4, 0);
	h3 = add(0x300, IB_NODE_CA, 2, 0);
	b = add(0xb, IB_NODE_SWITCH, 4, 0);
	h2 = add(0x200, IB_NODE_CA, 2, 0);
	a = add(0xa, IB_NODE_SWITCH, 4, device);
	join(h1, 1, a, 1, MAD_SPEED_HDR);
	join(a, 2, b, 1, speed_of_b);
	join(a, 3, c, 1, MAD_SPEED_HDR);
	join(b, 2, h2, 1, MAD_SPEED_HDR);
	join(c, 2, h3, 1, MAD_SPEED_HDR);
	graph_set_origin(fabric, graph_port(h1, 1));
	assert_int_equal(graph_finish(fabric), 0);
}

TEST(nodes_are_stored_the_last_found_first_whatever_their_index)
{
	make_small_fabric(MAD_SPEED_HDR, 0xd2f0);
	assert_string_equal(stored_order(), "c b a 300 200 100");
}

TEST(a_node_behind_a_link_that_may_be_fdr10_is_found_later)
{
	make_small_fabric(MAD_SPEED_QDR, 0xd2f0);
	assert_string_equal(stored_order(), "b c a 200 300 100");
	mad_fabric_free(fabric);
	make_small_fabric(MAD_SPEED_QDR, 0xb924); /* a device without ExtendedPortInfo */
	assert_string_equal(stored_order(), "c b a 300 200 100");
}

TEST(nodes_that_no_link_leads_to_are_stored)
{
	fabric = graph_create();
	add(1, IB_NODE_CA, 1, 0);
	add(2, IB_NODE_CA, 1, 0);
	graph_set_origin(fabric, graph_port(graph_find_node(fabric, 2), 1));
	assert_int_equal(graph_finish(fabric), 0);
	assert_string_equal(stored_order(), "1 2");
}

TEST(nodes_of_unknown_types_are_left_out)
{
	struct mad_fabric_node *one;

	fabric = graph_create();
	one = add(1, IB_NODE_SWITCH, 2, 0);
	join(one, 1, add(2, 7, 2, 0), 1, MAD_SPEED_HDR);
	join(one, 2, add(3, 0, 2, 0), 1, MAD_SPEED_HDR);
	assert_int_equal(graph_finish(fabric), 0);
	assert_string_equal(stored_order(), "1");
	assert_null(strstr(stored, "[1]"));
}

TEST(bytes_that_are_not_printable_are_stored_as_blanks_and_in_a_comment)
{
	struct mad_fabric_node *node;

	fabric = graph_create();
	node = add(1, IB_NODE_CA, 1, 0);
	strcpy(node->description, "a\tb\n\x7f\xc3\xa9\"c ");
	assert_int_equal(graph_finish(fabric), 0);
	assert_non_null(strstr(store(NULL), "# \"a b    \"c \"\n"));
	assert_non_null(strstr(stored, "\n# NodeDescription 6109620a7fc3a9226320\nCa\t1"));
	load(stored);
	assert_string_equal(mad_fabric_get_node(fabric, 0)->description,
			    "a\tb\n\x7f\xc3\xa9\"c ");
}

TEST(a_comment_with_a_description_counts_for_one_node)
{
	load("# NodeDescription 5c7835410d\nCa 1 \"H-1\" # \"n\"\n[1] \"H-2\"[1]\n"
	     "# NodeDescription c3a9\nCa 1 \"H-2\"\n\nCa 1 \"H-3\" # \"\\x41\"\n");
	assert_string_equal(mad_fabric_get_node(fabric, 0)->description, "\\x5A\r");
	assert_string_equal(mad_fabric_get_node(fabric, 1)->description, "\xc3\xa9");
	assert_string_equal(mad_fabric_get_node(fabric, 2)->description, "\\x41");
}

/* --- both --------------------------------------------------------------------------- */

#define RANDOM_FABRICS 200

static unsigned state;

static unsigned draw(unsigned below)
{
	state = state * 1103515245u + 12345u;
	return (state >> 16) % below;
}

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

	for (unsigned i = draw(12); i > 0; i--) {
		const char *part = parts[draw(sizeof(parts) / sizeof(*parts))];
		char byte[] = {(char)(1 + draw(255)), '\0'};

		if (!draw(4))
			part = byte;
		if (length + strlen(part) > IB_SMP_DATA_SIZE)
			return;
		strcpy(description + length, part);
		length += (unsigned)strlen(part);
	}
}

static void draw_node(uint64_t guid)
{
	unsigned type = draw(3) ? 1 + draw(3) : (unsigned)IB_NODE_SWITCH;
	struct mad_fabric_node *node = add(guid << 8, type, 1 + draw(6), draw(0x10000));
	struct mad_fabric_port *port0 = graph_port(node, 0);

	memset(node->description, 0, sizeof(node->description));
	draw_description(node->description);
	node->vendor_id = draw(0x1000000);
	node->system_guid = draw(1000);
	if (!port0)
		return;
	node->enhanced_port0 = draw(2);
	port0->guid = node->guid;
	node->lid = port0->lid = (uint16_t)(guid * 8);
	node->lmc = port0->lmc = (uint8_t)draw(4);
}

static struct mad_fabric_port *draw_port(unsigned nodes)
{
	struct mad_fabric_node *node = graph_node(fabric, draw(nodes));

	return graph_port(node, 1 + draw(node->port_count));
}

static void set_lid(struct mad_fabric_port *port)
{
	struct mad_fabric_node *node = graph_node(fabric, port->node->index);

	if (node->type == IB_NODE_SWITCH)
		return;
	port->lid = (uint16_t)(port->guid / 0x100 * 8 + port->number);
	if (!node->entry_port || port->number < node->entry_port) {
		node->entry_port = port->number;
		node->lid = port->lid;
	}
}

static void draw_link(unsigned nodes)
{
	struct mad_fabric_port *one = draw_port(nodes), *other = draw_port(nodes);

	if (one->peer || other->peer || one == other)
		return;
	graph_link(one, other);
	one->width = other->width = draw(2) ? 4 : 0;
	one->speed = other->speed = (uint8_t)draw(MAD_SPEED_XDR + 1);
	set_lid(one);
	set_lid(other);
}

static void same_links(const struct mad_fabric_node *node, const struct mad_fabric_node *same)
{
	for (unsigned number = 1; number <= node->port_count; number++) {
		const struct mad_fabric_port *one = mad_fabric_get_port(node, number);
		const struct mad_fabric_port *other = mad_fabric_get_port(same, number);

		assert_int_equal(!one->peer, !other->peer);
		if (!one->peer)
			continue;
		assert_int_equal(one->peer->node->guid, other->peer->node->guid);
		assert_int_equal(one->peer->number, other->peer->number);
		assert_int_equal(one->guid, other->guid);
		assert_int_equal(one->lid, other->lid);
		assert_int_equal(one->width, other->width);
		assert_int_equal(one->speed, other->speed);
	}
}

static void same_nodes(const struct mad_fabric *one, const struct mad_fabric *other)
{
	assert_int_equal(one->node_count, other->node_count);
	for (size_t i = 0; i < one->node_count; i++) {
		const struct mad_fabric_node *node = mad_fabric_get_node(one, i);
		const struct mad_fabric_node *same = mad_fabric_find_guid(other, node->guid);

		assert_non_null(same);
		assert_string_equal(node->description, same->description);
		assert_int_equal(node->vendor_id, same->vendor_id);
		assert_int_equal(node->device_id, same->device_id);
		assert_int_equal(node->lid, same->lid);
		assert_int_equal(node->enhanced_port0, same->enhanced_port0);
		assert_int_equal(node->port_count, same->port_count);
		same_links(node, same);
	}
}

TEST(a_fabric_that_is_stored_and_loaded_is_the_same)
{
	unsigned seed = test_seed();

	for (unsigned i = 0; i < RANDOM_FABRICS; i++) {
		struct mad_fabric *made;
		unsigned nodes;

		state = seed + i;
		nodes = 1 + draw(12);
		made = fabric = graph_create();
		for (unsigned j = 1; j <= nodes; j++)
			draw_node(j);
		for (unsigned j = draw(30); j > 0; j--)
			draw_link(nodes);
		graph_set_origin(fabric, graph_port(graph_node(fabric, 0), 1));
		assert_int_equal(graph_finish(fabric), 0);
		store(NULL);
		fabric = NULL;
		load(stored);
		same_nodes(made, fabric);
		assert_int_equal(mad_fabric_compare(made, fabric, NULL, NULL), 0);
		assert_int_equal(mad_fabric_compare(fabric, made, NULL, NULL), 0);
		mad_fabric_free(made);
		mad_fabric_free(fabric);
		fabric = NULL;
	}
}

TEST(storing_fails_without_memory)
{
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	make_small_fabric(MAD_SPEED_HDR, 0);
	for (unsigned n = 1; n <= 3; n++) {
		device_fail_malloc(n);
		assert_int_equal(mad_fabric_store(fabric, file, NULL), -ENOMEM);
		device_fail_malloc(0);
	}
	fclose(file);
	assert_int_equal(size, 0);
	free(text);
}

/* --- names ---------------------------------------------------------------------------- */

static int load_names(const char *text, size_t size, unsigned *line)
{
	FILE *file = tmpfile();
	int err;

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, size, file), size);
	rewind(file);
	err = mad_node_names_load(file, &names, line);
	fclose(file);
	return err;
}

/* The result of the distribution's ibnetdiscover 44 for a map, for the node 0x1234. */
TEST(names_are_read_as_ibnetdiscover_reads_them)
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
	char text[100];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		unsigned line = 0;

		snprintf(text, sizeof(text), "0x1 \"a\"\n%s\nmore\n", wrong[i]);
		assert_int_equal(load_names(text, strlen(text), &line), -EBADMSG);
		assert_int_equal(line, 2);
		assert_null(names);
	}
	assert_int_equal(load_names("0x1 \"a\0\"\n", 9, NULL), -EBADMSG);
}

TEST(loading_names_fails_without_memory_and_leaks_nothing)
{
	char text[] = "0x1 \"a\"\n0x2 \"b\"\n";
	int err = -ENOMEM;
	unsigned n;

	for (n = 1; err && n < 100; n++) {
		FILE *file = fmemopen(text, strlen(text), "r");

		assert_non_null(file);
		assert_int_not_equal(getc(file), EOF); /* allocates the buffer */
		rewind(file);
		device_fail_malloc(n);
		err = mad_node_names_load(file, &names, NULL);
		device_fail_malloc(0);
		fclose(file);
		assert_true(!err || (err == -ENOMEM && !names));
	}
	assert_int_equal(err, 0);
	assert_true(n > 3);
	mad_node_names_free(names);
}

TEST(an_error_of_reading_names_is_returned)
{
	FILE *file = fopen("/", "r");

	assert_non_null(file);
	assert_int_equal(mad_node_names_load(file, &names, NULL), -EISDIR);
	assert_null(names);
	fclose(file);
}

TEST(no_names_have_no_name)
{
	assert_null(mad_node_names_get(NULL, 1));
	mad_node_names_free(NULL);
}

TEST(many_names_are_found)
{
	static char text[20000];
	size_t length = 0;

	for (unsigned i = 1000; i > 0; i--)
		length += (size_t)snprintf(text + length, sizeof(text) - length,
					   "0x%x \"n%u\"\n", i * 3, i);
	assert_int_equal(load_names(text, length, NULL), 0);
	for (unsigned i = 0; i < 3003; i++) {
		const char *name = mad_node_names_get(names, i);

		if (i && i % 3 == 0 && i / 3 <= 1000)
			assert_int_equal(atoi(name + 1), i / 3);
		else
			assert_null(name);
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
