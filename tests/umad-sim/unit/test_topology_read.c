/* SPDX-License-Identifier: BSD-2-Clause */

/* Topology files: their meaning, and errors in them. */

#include "topologies.h"
#include "test.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

static struct graph graph;

static int setup(void)
{
	graph_init(&graph);
	return 0;
}

static int teardown(void)
{
	graph_free(&graph);
	return 0;
}

FIXTURE(setup, teardown);

/* As ibnetdiscover prints it. */
static const char discovered[] =
	"#\n# Topology file: generated on Sat Nov 21 10:03:03 2026\n#\n"
	"# Initiated from node 0002c903000a0b10 port 0002c903000a0b11\n\n"
	"vendid=0x2c9\ndevid=0xd2f0\nsysimgguid=0xb8599f0300aa0001\n"
	"switchguid=0xb8599f0300aa0000(b8599f0300aa0000)\n"
	"Switch\t41 \"S-b8599f0300aa0000\"\t\t# \"MF0;sw \"7\":Q/U1\" enhanced port 0 lid 3 "
	"lmc 1\n"
	"[1]\t\"H-0002c903000a0b10\"[1](2c903000a0b11) \t\t# \"host one\" lid 8 4xHDR\n"
	"[41][ext 5]\t\"R-00000000000d0000\"[2](d0009) \t\t# \"gate\" lid 17 2xNDR\n\n"
	"vendid=0x8f1\ndevid=0x1\nrtguid=0xd0000\n"
	"Rt\t2 \"R-00000000000d0000\"\t\t# \"gate\"\n"
	"[2](d0009) \t\"S-b8599f0300aa0000\"[41]\t\t# lid 17 lmc 0 \"MF0;sw \"7\":Q/U1\" lid 3 "
	"2xNDR\n\n"
	"vendid=0x2c9\ndevid=0x101b\nsysimgguid=0x2c903000a0b13\ncaguid=0x2c903000a0b10\n"
	"Ca\t2 \"H-0002c903000a0b10\"\t\t# \"host one\"\n"
	"[1](2c903000a0b11) \t\"S-b8599f0300aa0000\"[1]\t\t# lid 8 lmc 2 \"MF0;sw \"7\":Q/U1\" "
	"lid 3 4xHDR\n";

TEST(the_output_of_ibnetdiscover_is_read_whole)
{
	const struct graph_node *node;
	struct graph again;

	read_text(&graph, discovered);
	assert_int_equal(graph.node_count, 3);
	node = &graph.nodes[0];
	assert_string_equal(node->name, "MF0;sw \"7\":Q/U1");
	assert_int_equal(node->type, NODE_SWITCH);
	assert_int_equal(node->port_count, 41);
	assert_int_equal(node->guid, 0xb8599f0300aa0000);
	assert_int_equal(node->system_guid, 0xb8599f0300aa0001);
	assert_int_equal(node->vendor_id, 0x2c9);
	assert_int_equal(node->device_id, 0xd2f0);
	assert_int_equal(graph.ports[0].lid, 3);
	assert_int_equal(graph.ports[0].lmc, 1);
	node = &graph.nodes[1];
	assert_int_equal(node->type, NODE_ROUTER);
	assert_int_equal(node->system_guid, 0); /* ibnetdiscover prints no 0 */
	assert_int_equal(port(&graph, "gate", 2)->guid, 0xd0009);
	assert_int_equal(port(&graph, "gate", 2)->lid, 17);
	assert_int_equal(port(&graph, "gate", 2)->width, 2);
	assert_int_equal(port(&graph, "gate", 2)->speed, NDR);
	assert_int_equal(port(&graph, "host one", 1)->lid, 8);
	assert_int_equal(port(&graph, "host one", 1)->lmc, 2);
	assert_int_equal(port(&graph, "host one", 2)->peer, NONE);
	assert_cabled(&graph, "host one", 1, "MF0;sw \"7\":Q/U1", 1);
	assert_cabled(&graph, "gate", 2, "#0", 41);
	print_and_read(&graph, &again);
	assert_same(&graph, &again);
	graph_free(&again);
}

TEST(ibsims_files_get_guids_as_ibsim_gives_them)
{
	read_text(&graph, "# a net\nHca\t2 \"a\"\n[2] \"sw1\"[1] # to the other rack\n\n"
			  "Switch 4 \"sw1\"\n[1]\t\"a\"[2]\n[2]\t\"b\"\n\n"
			  "Switch 4 \"sw2\"\nHca 1 \"b\" # \"second\"\n");
	assert_int_equal(graph.nodes[0].guid, 0x100000);
	assert_int_equal(graph.nodes[3].guid, 0x100003);
	assert_int_equal(graph.nodes[1].guid, 0x200000);
	assert_int_equal(graph.nodes[2].guid, 0x200001);
	assert_int_equal(graph.nodes[2].system_guid, 0x200001);
	assert_int_equal(port(&graph, "second", 1)->guid, 0x100004);
	assert_int_equal(port(&graph, "a", 2)->width, 4);
	assert_int_equal(port(&graph, "a", 2)->speed, SDR);
	assert_cabled(&graph, "a", 2, "sw1", 1);
	/* listed at one end only; without a number, the port is the first one */
	assert_cabled(&graph, "second", 1, "sw1", 2);
}

TEST(guids_are_counted_on_from_where_a_file_says)
{
	read_text(&graph,
		  "hcaguids=0x5000\nswitchguids = 16\nvendid=0x2c9\nHca 3 \"a\"\n\n"
		  "Hca 1 \"b\"\n\nhcaguids+16\nHca 1 \"c\"\nSwitch 2 \"s\"\nRt 1 \"r\"\n");
	assert_int_equal(graph.nodes[0].guid, 0x5000);
	assert_int_equal(graph.nodes[1].guid, 0x5004);
	assert_int_equal(graph.nodes[2].guid, 0x5016);
	assert_int_equal(graph.nodes[3].guid, 16);
	assert_int_equal(graph.nodes[4].guid, 0x300000);
	assert_int_equal(graph.nodes[0].vendor_id, 0x2c9);
	assert_int_equal(graph.nodes[1].vendor_id, 0); /* attributes apply to one node only */
}

TEST(a_link_has_the_best_values_that_both_ends_support)
{
	static const struct {
		const char *text;
		uint8_t width, speed;
	} rows[] = {
		{"Hca 1 \"a\"\n[1] \"b\"[1] w=8\nHca 1 \"b\"\n[1] \"a\"[1]\n", 12, SDR},
		{"Hca 1 \"a\"\n[1] \"b\"[1] w=4 s=7\nHca 1 \"b\"\n[1] \"a\"[1] s=3", 8, DDR},
		{"Hca 1 \"a\"\n[1] \"b\" w=16 s=7 e=4\nHca 1 \"b\"\n", 2, HDR},
		{"Hca 1 \"a\"\n[1] \"b\" w=1 e=8 # up\nHca 1 \"b\"\n", 1, NDR},
		{"Hca 1 \"a\"\n[1] \"b\" # \"b\" lid 0 4xFDR10\nHca 1 \"b\"\n", 4, FDR10},
		{"width=3\nspeed=7\nextspeed=2\nHca 1 \"a\"\n[1] \"b\"\nHca 1 \"b\"\n", 4, EDR},
	};
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		read_text(&graph, rows[i].text);
		assert_cabled(&graph, "a", 1, "b", 1);
		assert_int_equal(port(&graph, "a", 1)->width, rows[i].width);
		assert_int_equal(port(&graph, "b", 1)->speed, rows[i].speed);
		graph_free(&graph);
	}
}

TEST(a_degraded_link_keeps_what_both_ends_support)
{
	static const char *const texts[] = {
		"Hca 1 \"a\"\n[1] \"b\" w=3 s=7 e=5 active=1xFDR\nHca 1 \"b\"\n",
		"Hca 1 \"a\"\n[1] \"b\"[1] active=1xFDR # \"b\" lid 1 4xHDR\nHca 1 \"b\"\n",
		("Hca 1 \"a\"\n[1] \"b\" active=1xFDR e=5\n"
		 "Hca 1 \"b\"\n[1] \"a\" e=7 active=1xFDR"),
	};
	struct graph again;
	size_t i;

	for (i = 0; i < COUNT(texts); i++) {
		read_text(&graph, texts[i]);
		assert_int_equal(port(&graph, "a", 1)->width, 4);
		assert_int_equal(port(&graph, "a", 1)->speed, HDR);
		assert_int_equal(port(&graph, "b", 1)->most_width, 1);
		assert_int_equal(port(&graph, "b", 1)->most_speed, FDR);
		print_and_read(&graph, &again);
		assert_same(&graph, &again);
		graph_free(&graph);
		graph_free(&again);
	}
}

TEST(names_within_a_module_are_its_own)
{
	read_text(&graph, "module = \"x\"\nHca 2 \"a\"\n[1] \"b\"[1]\n[2] \"y#a\"[1]\n\n"
			  "Hca 1 \"b\"\n\nmodule=\"y\"\nHca 1 \"a\"\n[1] \"x#a\"[2]\n");
	assert_cabled(&graph, "x#a", 1, "x#b", 1);
	assert_cabled(&graph, "y#a", 1, "x#a", 2);
}

TEST(crlf_blanks_and_a_missing_last_newline_do_no_harm)
{
	read_text(&graph,
		  "\r\n  Switch\t 4   \"s\"  \r\n \t[1]  \"h\" [1] # x\r\nHca 1 \"h\"\r\n"
		  "  [1]\t\"s\"[1]");
	assert_int_equal(graph.node_count, 2);
	assert_string_equal(graph.nodes[0].name, "s");
	assert_cabled(&graph, "s", 1, "h", 1);
}

TEST(a_cable_of_two_cas_is_read_as_ibnetdiscover_prints_it)
{
	read_text(&graph,
		  "Ca\t1 \"H-0000000000000001\"\t\t# \"a\"\n"
		  "[1](11) \t\"H-0000000000000002\"[1] (21) \t\t# lid 1 lmc 0 \"b\" lid 2 "
		  "4xHDR\n\n"
		  "Ca\t1 \"H-0000000000000002\"\t\t# \"b\"\n"
		  "[1](21) \t\"H-0000000000000001\"[1] (11) \t\t# lid 2 lmc 0 \"a\" lid 1 "
		  "4xHDR\n");
	assert_cabled(&graph, "a", 1, "b", 1);
	assert_int_equal(port(&graph, "a", 1)->lid, 1);
	assert_int_equal(port(&graph, "b", 1)->guid, 0x21);
}

TEST(headings_and_console_commands_are_passed_over)
{
	read_text(&graph, "do Attached\nChassis 1 (guid 0x8f10)\nNon-Chassis Nodes\n"
			  "sysimgguid=0x77\t\t# Chassis 1\nHca 1 \"h\"\n");
	assert_int_equal(graph.nodes[0].system_guid, 0x77);
}

TEST(a_file_may_include_others_beside_it)
{
	char folder[] = "/tmp/topology-XXXXXX", path[64], other[64], want[128];
	struct topology_error error;
	FILE *file;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/a.net", folder);
	snprintf(other, sizeof(other), "%s/b.net", folder);
	file = fopen(path, "w");
	fputs("include b.net\nHca 1 \"h\"\n[1] \"s\"[1]\n", file);
	fclose(file);
	file = fopen(other, "w");
	fputs("Switch 2 \"s\"\n", file);
	fclose(file);
	load(&graph, path);
	assert_cabled(&graph, "h", 1, "s", 1);
	graph_free(&graph);

	/* an error has the name of the included file */
	file = fopen(other, "a");
	fputs("\n[3] \"h\"\n", file);
	fclose(file);
	graph_init(&graph);
	assert_int_equal(topology_load(&graph, path, &error), -EINVAL);
	snprintf(want, sizeof(want), "%s:3: no port 3: the node has 2", other);
	assert_string_equal(error.text, want);
	graph_free(&graph);

	/* a file that includes itself fails */
	file = fopen(other, "w");
	fputs("include \"b.net\"\n", file);
	fclose(file);
	assert_int_equal(topology_load(&graph, path, &error), -EINVAL);
	assert_non_null(
		strstr(error.text, "b.net:1: more than 100 files, or nested more than 8 deep"));
	graph_free(&graph);
	unlink(path);
	unlink(other);
	rmdir(folder);
}

TEST(each_error_is_told_with_its_line)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{"", "test.net:0: the file has no node"},
		{"# nothing\n\n", "test.net:2: the file has no node"},
		{"hello\n", "test.net:1: not a node, a port or a known attribute"},
		{"vendid\n", "test.net:1: not a node, a port or"},
		{"foo=3\n", "test.net:1: not a node, a port or"},
		{"vendid=\n", "test.net:1: vendid must be a number up to 0xffffff"},
		{"vendid=0x1000000\n", "test.net:1: vendid must be a number"},
		{"\ndevid=0x10000\n", "test.net:2: devid must be a number"},
		{"devid=-1\n", "test.net:1: devid must be a number"},
		{"caguid=0x10000000000000000\n", "test.net:1: caguid must be a number"},
		{"caguid=0x1g\n", "test.net:1: caguid must be a number"},
		{"switchguid=0x1(\n", "test.net:1: switchguid must be a number"},
		{"module = x\n", "test.net:1: expected a module's name"},
		{"module = \"\n", "test.net:1: expected a module's name"},
		{"Switch\n", "test.net:1: expected a number of ports from 1 to 254"},
		{"Switch x \"s\"\n", "test.net:1: expected a number of ports"},
		{"Switch 0 \"s\"\n", "test.net:1: expected a number of ports"},
		{"Switch 255 \"s\"\n", "test.net:1: expected a number of ports"},
		{"Switch 4294967297 \"s\"\n", "test.net:1: expected a number of ports"},
		{"Switch 4 s\n", "test.net:1: expected a name in quotes"},
		{"Switch 4 \"s\n", "test.net:1: expected a name in quotes"},
		{"Switch 4 \"\"\n", "test.net:1: a node without a name"},
		{"Switch 4 \"s\" x\n", "test.net:1: unexpected after a node's name: \"x\""},
		{"Switch 4 \"s\" # \"s\n", "test.net:1: a closing quote is missing"},
		{"Switch 4 \"s\" # \"s\" best port 0 lid 1 lmc 0\n",
		 "test.net:1: unexpected after a node's name: \"best port 0 lid 1 lmc 0\""},
		{"Ca 4 \"s\" # \"s\" lid 1\n", "test.net:1: unexpected after a node's name"},
		{"Switch 4 \"s\" # \"s\" lid 49152 lmc 0\n",
		 "test.net:1: expected a LID from 0 to 49151"},
		{"Switch 4 \"s\" # \"s\" lid 1 lmc 8\n",
		 "test.net:1: expected an LMC from 0 to 7"},
		{"caguid=0\nCa 1 \"a\"\n", "test.net:2: not a GUID"},
		{"caguid=0xffffffffffffffff\nCa 1 \"a\"\n", "test.net:2: not a GUID"},
		{"[1] \"a\"\n", "test.net:1: a port before the first node"},
		{"Ca 1 \"a\"\n[0] \"a\"\n", "test.net:2: no port 0: the node has 1"},
		{"Ca 1 \"a\"\n[2] \"a\"\n", "test.net:2: no port 2: the node has 1"},
		{"Ca 1 \"a\"\n[300] \"a\"\n",
		 "test.net:2: expected a port from 1 to 254 in brackets"},
		{"Ca 1 \"a\"\n[1 \"a\"\n", "test.net:2: expected a port from"},
		{"Ca 1 \"a\"\n[1](xyz) \"a\"\n", "test.net:2: expected a port from"},
		{"Ca 1 \"a\"\n[1] a\n", "test.net:2: expected a name in quotes"},
		{"Ca 1 \"a\"\n[1] \"a\"[\n", "test.net:2: expected the other end's port"},
		{"Ca 1 \"a\"\n[1] \"a\"[1] w=0\n", "test.net:2: expected w=WIDTHS, s=SPEEDS, "
						   "e=EXTENDED or active=1xFDR: \"w=0\""},
		{"Ca 1 \"a\"\n[1] \"a\"[1] q=1\n", "test.net:2: expected w=WIDTHS"},
		{"Ca 1 \"a\"\n[1] \"b\"[1] active=1x\nCa 1 \"b\"\n",
		 "test.net:2: expected w=WIDTHS"},
		{"Ca 1 \"a\"\n[1] \"b\"[1] active=3xSDR\nCa 1 \"b\"\n",
		 "test.net:2: expected w=WIDTHS"},
		{"Ca 1 \"a\"\n[1] \"b\"[1] active=1xHDR\nCa 1 \"b\"\n",
		 "test.net:2: active=1xHDR exceeds the link's 4xSDR"},
		{"Ca 1 \"a\"\n[1] \"b\" active=1xSDR\nCa 1 \"b\"\n[1] \"a\" active=2xSDR\n",
		 "test.net:4: active=2xSDR, but the other end says active=1xSDR"},
		{"Ca 1 \"a\"\n[1] \"a\"[1] # lid x\n", "test.net:2: expected a LID from 0"},
		{"Ca 1 \"a\"\n[1] \"a\"[1] # \"a\n", "test.net:2: a closing quote is missing"},
		{"Ca 1 \"a\"\n[1] \"a\"[1] # \"a\" lid 1 4xBDR\n",
		 "test.net:2: expected a width and speed"},
		{"Ca 1 \"a\"\n[1] \"a\"[1] # \"a\" lid 1 3xSDR\n",
		 "test.net:2: expected a width and speed"},
		{"Ca 1 \"a\"\n[1] \"a\"[1] # \"a\" lid 1 4xSDR s=1 w=2 and more\n",
		 "test.net:2: unexpected after the other end's name: \"and more\""},
		{"Ca 1 \"a\"\n[1] \"a\"[1]\n", "test.net:2: a cable from a port to itself"},
		{"Ca 2 \"a\"\n[1] \"b\"[1]\n", "test.net:2: no node \"b\""},
		{"Ca 2 \"a\"\n[1] \"a\"[3]\n", "test.net:2: no port 3 on \"a\", which has 2"},
		{"Ca 2 \"a\"\n[1] \"a\"[0]\n", "test.net:2: no port 0 on \"a\", which has 2"},
		{"Ca 2 \"a\"\n[1] \"a\"[2]\n[1] \"a\"[2]\n",
		 "test.net:3: port 1 is cabled twice"},
		{"Ca 1 \"a\"\n[1] \"b\"\nCa 1 \"b\"\nCa 1 \"c\"\n[1] \"b\"\n",
		 "test.net:5: port 1 of \"b\" is already cabled to port 1 of \"a\""},
		{"Ca 1 \"a\"\n[1] \"b\"\nCa 1 \"b\"\n[1] \"c\"\nCa 1 \"c\"\n",
		 "test.net:4: port 1 of \"b\" is already cabled to port 1 of \"a\""},
		{"Ca 1 \"a\"\nCa 1 \"b\"\nCa 1 \"a\"\n",
		 "test.net:3: \"a\" is already a node, in line 1"},
		{"switchguid=5\nSwitch 1 \"S-0000000000000007\"\n",
		 "test.net:2: switchguid=0x5, but the node is \"S-0000000000000007\""},
		{"caguid=0x5\nCa 1 \"H-0000000000000005\"\ncaguid=0x6\n"
		 "Ca 1 \"H-0000000000000008\"\n",
		 "test.net:4: caguid=0x6, but the node is \"H-0000000000000008\""},
		{"rtguid=5\nRt 1 \"R-ffffffffffffffff\"\n",
		 "test.net:2: rtguid=0x5, but the node is \"R-ffffffffffffffff\""},
		{"caguid=5\nCa 1 \"a\"\ncaguid=5\nCa 1 \"b\"\n",
		 "test.net:4: GUID 0x5 is already that of \"a\""},
		{"caguid=5\nCa 1 \"a\"\n[1] \"s\"\nswitchguid=6\n\nSwitch 1 \"s\"\n",
		 "test.net:6: GUID 0x6 is already that of \"a\""},
		{"Ca 1 \"a\"\n[1](9) \"b\"\nCa 1 \"b\"\n[1](9) \"a\"\n",
		 "test.net:4: GUID 0x9 is already that of \"a\""},
		{"Ca 1 \"a\"\n[1](9) \"b\"\nCa 1 \"b\"\n[1] \"a\"[1](8)\n",
		 "test.net:4: port GUID 8, but line 2 says 9"},
		{"Ca 1 \"a\"\n[1] \"b\" # lid 1 lmc 0 \"b\" lid 2\nCa 1 \"b\"\n[1] \"a\" # lid "
		 "3\n",
		 "test.net:2: LID 2 of \"b\", but 3 in another line"},
		{"Ca 1 \"a\"\n[1] \"b\" w=2\nCa 1 \"b\"\n[1] \"a\" w=1\n",
		 "test.net:2: the width differs from that of the other end, line 4"},
		{"Ca 1 \"a\"\n[1] \"b\" w=2 active=1xSDR\nCa 1 \"b\"\n",
		 "test.net:2: w=, s= or e= of an end excludes active=1xSDR"},
		{"Ca 1 \"a\"\n[1] \"b\" active=4xFDR\nCa 1 \"b\"\n[1] \"a\" e=6\n",
		 "test.net:2: w=, s= or e= of an end excludes active=4xFDR"},
		{"Ca 1 \"a\"\n[1] \"b\" s=5 # \"b\" lid 1 4xDDR\nCa 1 \"b\"\n",
		 "test.net:2: w=, s= or e= of an end excludes a link of 4xDDR"},
		{"Ca 1 \"a\"\n[1] \"b\" # \"b\" lid 1 2xHDR\nCa 1 \"b\"\n[1] \"a\" w=3 # \"a\" "
		 "lid 2 2xHDR\n",
		 "test.net:2: w=, s= or e= of an end excludes a link of 2xHDR"},
		{"Ca 1 \"a\"\n[1] \"b\" # \"b\" lid 1 4xSDR\nCa 1 \"b\"\n[1] \"a\" # \"a\" lid "
		 "1 4xDDR",
		 "test.net:2: the speed differs from that of the other end, line 4"},
		{"Ca 1 \"a\"\ninclude nowhere.net\n",
		 "test.net:2: \"nowhere.net\": No such file or directory"},
		{"include\n", "test.net:1: expected the name of a file"},
		{"include /dev/zero\n", "test.net:1: \"/dev/zero\": Invalid argument"},
	};
	struct topology_error error;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		graph_init(&graph);
		assert_int_equal(topology_read(&graph, rows[i].text, strlen(rows[i].text),
					       "test.net", &error),
				 -EINVAL);
		if (strncmp(error.text, rows[i].error, strlen(rows[i].error)))
			fail_msg("%s\nwanted: %s", error.text, rows[i].error);
		graph_free(&graph);
	}
}

TEST(a_name_that_looks_like_another_guid_is_only_a_name_without_a_guid)
{
	static const char *const texts[] = {
		"Ca 1 \"H-0000000000000009\"\n",
		"hcaguids=4\nCa 1 \"H-0000000000000009\"\n",
		"caguid=4\nCa 1 \"S-0000000000000009\"\n",
		"caguid=4\nCa 1 \"H-000000000000009\"\n",
		"caguid=4\nCa 1 \"H-000000000000000x\"\n",
		"switchguid=4\nCa 1 \"H-0000000000000009\"\n",
		"caguid=4\nCa 1 \"a\"\nCa 1 \"H-0000000000000009\"\n",
	};
	size_t i;

	for (i = 0; i < COUNT(texts); i++) {
		read_text(&graph, texts[i]);
		graph_free(&graph);
	}
}

TEST(bytes_that_are_no_text_are_refused_and_not_shown)
{
	struct topology_error error;

	assert_int_equal(topology_read(&graph, "\nCa 1 \"a\0\"\n", 11, "n", &error), -EINVAL);
	assert_string_equal(error.text, "n:2: not a text file: it contains a zero byte");
	assert_int_equal(
		topology_read(&graph, "Ca 1 \"a\"\n[1] \"\033[2J\"\n", 20, "n", &error),
		-EINVAL);
	assert_string_equal(error.text, "n:2: no node \"?[2J\"");
}

TEST(names_and_lines_may_be_long_up_to_a_limit)
{
	static char text[1 << 20];
	struct topology_error error;
	size_t length;

	length = (size_t)snprintf(text, sizeof(text), "Ca 1 \"%064d\"\n", 1);
	read_bytes(&graph, text, length);
	assert_int_equal(strlen(graph.nodes[0].name), MAX_NAME);
	graph_free(&graph);
	length = (size_t)snprintf(text, sizeof(text), "Ca 1 \"%065d\"\n", 1);
	assert_int_equal(topology_read(&graph, text, length, "n", &error), -EINVAL);
	assert_string_equal(error.text, "n:1: a name of more than 64 bytes");
	/* with a node-name-map, ibnetdiscover prints names of any length */
	length = (size_t)snprintf(text, sizeof(text), "Ca 1 \"a\" # \"%065d\"\n", 1);
	read_bytes(&graph, text, length);
	assert_int_equal(strlen(graph.nodes[0].name), MAX_NAME);
	graph_free(&graph);
	memset(text, '"', sizeof(text));
	memcpy(text, "\nCa 1 ", 6);
	assert_int_equal(topology_read(&graph, text, sizeof(text), "n", &error), -EINVAL);
	assert_string_equal(error.text, "n:2: a node without a name");
	memset(text + 6, 'x', sizeof(text) - 6);
	assert_int_equal(topology_read(&graph, text, sizeof(text), "n", &error), -EINVAL);
	memset(text, '#', sizeof(text));
	memcpy(text + sizeof(text) - 10, "\nCa 1 \"a\"\n", 10);
	read_bytes(&graph, text, sizeof(text));
}

TEST(too_many_nodes_are_refused_and_many_are_read_in_no_time)
{
	size_t room = (MAX_NODES + 1) * 20, length = 0;
	char *text = malloc(room);
	struct topology_error error;
	clock_t start = clock();
	unsigned int i;

	assert_non_null(text);
	graph_init(&graph);
	for (i = 0; i <= MAX_NODES; i++)
		length += (size_t)snprintf(text + length, room - length, "Ca 1 \"h%u\"\n", i);
	assert_int_equal(topology_read(&graph, text, length, "n", &error), -EINVAL);
	assert_string_equal(error.text, "n:200001: more than 200000 nodes or 16777216 ports");
	graph_free(&graph);
	length = (size_t)((char *)memrchr(text, 'C', length) - text);
	read_bytes(&graph, text, length);
	assert_int_equal(graph.node_count, MAX_NODES);
	graph_free(&graph);
	free(text);
	assert_true(clock() - start < 60 * CLOCKS_PER_SEC);
}
