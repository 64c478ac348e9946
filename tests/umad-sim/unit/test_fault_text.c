/* SPDX-License-Identifier: BSD-2-Clause */

/* The text of fault rules: all valid forms, and the errors for others. */
#include "fault_forms.h"
#include "subnet_fixture.h"
#include "test.h"

#include <errno.h>

/* The single rule that a text has added. */
static const struct standing_rule *standing(struct subnet *subnet, const char *text)
{
	rule(subnet, "clear");
	rule(subnet, text);
	assert_int_equal(subnet->fabric.faults->count, 1);
	return subnet->fabric.faults->standing;
}

/* The text fails with this reason, and adds no rule. */
static void refused(struct subnet *subnet, const char *text, const char *reason)
{
	size_t count = subnet->fabric.faults->count;
	struct rule_error error = {""};

	if (fault_apply(&subnet->fabric, text, &error) != -EINVAL)
		fail_msg("\"%s\" is not refused", text);
	if (strcmp(error.text, reason) != 0)
		fail_msg("\"%s\" is refused with %s, not %s", text, error.text, reason);
	assert_int_equal(subnet->fabric.faults->count, count);
	assert_null(subnet->fabric.faults->pending);
}

SUBNET_TEST(each_standing_rule_has_its_kind)
{
	static const struct {
		const char *text;
		enum rule_kind kind;
	} rules[] = {
		{"loss 1%", RULE_LOSS},
		{"duplicate 1%", RULE_DUPLICATE},
		{"corrupt 1%", RULE_CORRUPT},
		{"reorder 1% 2ms", RULE_REORDER},
		{"hop-latency 500ns", RULE_HOP_LATENCY},
		{"slow 5ms", RULE_SLOW},
		{"smp-time 10us", RULE_SMP_TIME},
		{"smp-queue 16", RULE_SMP_QUEUE},
		{"service 20us", RULE_SERVICE},
		{"buffer 4 on beta", RULE_BUFFER},
		{"path-limit 64 on alpha", RULE_PATH_LIMIT},
		{"errors 5 on beta/1", RULE_ERRORS},
		{"fec 1000 on beta/1", RULE_FEC},
		{"fec-mode 2 on beta/1", RULE_FEC_MODE},
		{"width 1x on beta/1", RULE_WIDTH},
		{"speed QDR on beta/1", RULE_SPEED},
		{"counters 32 on alpha", RULE_COUNTERS},
		{"counters 64", RULE_COUNTERS},
		{"silent on beta", RULE_SILENT},
		{"reroute 2s", RULE_REROUTE},
		{"reroute never", RULE_REROUTE_NEVER},
		{"busy 50%", RULE_BUSY},
		{"redirect beta on gamma", RULE_REDIRECT},
		{"clone beta on gamma", RULE_CLONE},
		{"name beta on gamma", RULE_NAME},
		{"lid beta on gamma", RULE_LID},
		{"master on gamma", RULE_MASTER},
	};

	for (size_t i = 0; i < COUNT_OF(rules); i++)
		assert_int_equal(standing(subnet, rules[i].text)->kind, rules[i].kind);
}

SUBNET_TEST(each_passing_rule_leaves_none_standing)
{
	static const char *const rules[] = {"reboot 200ms on beta",
					    "link down on beta/1",
					    "link up on beta/1",
					    "remove on beta",
					    "add on beta",
					    "forget",
					    "clear"};

	for (size_t i = 0; i < COUNT_OF(rules); i++) {
		rule(subnet, rules[i]);
		assert_int_equal(subnet->fabric.faults->count, 0);
	}
}

SUBNET_TEST(an_empty_line_and_a_comment_are_nothing)
{
	rules(subnet, "", "  \t\n", "  # loss 100%");
	assert_int_equal(subnet->fabric.faults->count, 0);
}

SUBNET_TEST(space_is_free)
{
	const struct standing_rule *found = standing(subnet, " \tloss  25%\ton   beta/2 \n");

	assert_int_equal(found->port, port_of(subnet, BETA, 2));
	assert_true(found->chance > 0.2499 && found->chance < 0.2501);
}

SUBNET_TEST(a_chance_is_a_percentage_or_a_fraction)
{
	static const struct {
		const char *text;
		double chance;
	} rules[] = {
		{"loss 0%", 0},   {"loss 100%", 1},    {"loss 0.5%", 0.005},
		{"loss .5", 0.5}, {"loss 0.25", 0.25}, {"loss 1e-3%", 1e-5},
		{"loss 1", 1},
	};

	for (size_t i = 0; i < COUNT_OF(rules); i++) {
		double off = standing(subnet, rules[i].text)->chance - rules[i].chance;

		assert_true(off < 1e-9 && off > -1e-9);
	}
}

SUBNET_TEST(a_time_has_its_unit)
{
	assert_true(standing(subnet, "slow 7ns")->time == 7);
	assert_true(standing(subnet, "slow 1.5us")->time == 1500);
	assert_true(standing(subnet, "slow 0ms")->time == 0);
	assert_true(standing(subnet, "slow 2ms")->time == 2 * MILLISECOND);
	assert_true(standing(subnet, "slow 90s")->time == 90 * SECOND);
}

SUBNET_TEST(a_place_is_all_a_node_or_one_of_its_ports)
{
	const struct standing_rule *found = standing(subnet, "loss 1%");

	assert_int_equal(found->node, NONE);
	assert_int_equal(found->port, NONE);
	found = standing(subnet, "loss 1% on far");
	assert_int_equal(found->node, FAR);
	assert_int_equal(found->port, NONE);
	found = standing(subnet, "loss 1% on far/4");
	assert_int_equal(found->node, FAR);
	assert_int_equal(found->port, port_of(subnet, FAR, 4));
}

SUBNET_TEST(a_node_is_named_by_guid_or_number_too)
{
	assert_int_equal(standing(subnet, "loss 1% on 0x3000")->node, GAMMA);
	assert_int_equal(standing(subnet, "loss 1% on #3/2")->port, port_of(subnet, BETA, 2));
}

SUBNET_TEST(a_node_s_name_may_hold_spaces_and_slashes)
{
	struct graph_node *beta = &subnet->fabric.graph.nodes[BETA];
	struct graph_node *gamma = &subnet->fabric.graph.nodes[GAMMA];

	free(beta->name);
	free(gamma->name);
	beta->name = strdup("node 7/1 mlx5_0");
	gamma->name = strdup("hosts on duty");
	assert_int_equal(standing(subnet, "loss 1% on node 7/1 mlx5_0")->node, BETA);
	assert_int_equal(standing(subnet, "loss 1% on node 7/1 mlx5_0/2")->port,
			 port_of(subnet, BETA, 2));
	assert_int_equal(standing(subnet, "silent on hosts on duty")->node, GAMMA);
	assert_int_equal(standing(subnet, "redirect hosts on duty on alpha")->number,
			 port_of(subnet, GAMMA, 1));
}

SUBNET_TEST(text_behind_a_rule_and_a_hash_is_a_comment)
{
	assert_int_equal(standing(subnet, "loss 1% # a packet in a hundred")->node, NONE);
	assert_int_equal(standing(subnet, "silent on beta # on purpose")->node, BETA);
	assert_int_equal(standing(subnet, "silent on beta #")->node, BETA);
	assert_int_equal(standing(subnet, "loss 1% on beta/2\t#1 # 2")->port,
			 port_of(subnet, BETA, 2));
	assert_int_equal(standing(subnet, "redirect #3 on #4 # on alpha")->node, GAMMA);
	rules(subnet, "clear # all", "after 2s clear # later");
}

SUBNET_TEST(a_hash_in_a_node_s_name_begins_no_comment)
{
	struct graph_node *beta = &subnet->fabric.graph.nodes[BETA];
	struct graph_node *gamma = &subnet->fabric.graph.nodes[GAMMA];

	free(beta->name);
	free(gamma->name);
	beta->name = strdup("rack # 2");
	gamma->name = strdup("rack");
	assert_int_equal(standing(subnet, "silent on rack # 2")->node, BETA);
	assert_int_equal(standing(subnet, "silent on rack # 2 # noted")->node, BETA);
	assert_int_equal(standing(subnet, "silent on rack # 3")->node, GAMMA);
	assert_int_equal(standing(subnet, "loss 1% on rack # 2/1")->port,
			 port_of(subnet, BETA, 1));
}

#define UNKNOWN(word)         "unknown rule: \"" word "\"; umad-sim --help lists them"
#define NO_NODE(name)         "no such node: \"" name "\"; the 5 nodes are \"near\" .. \"gamma\""
#define NO_PORT(name)         "no such port: \"" name "\"; the ports are 1 to 2"
#define NO_WIDTH(text)        "a width must be 1x, 2x, 4x, 8x or 12x: \"" text "\""
#define NO_TIME(text)         "a time needs a unit (ns, us, ms or s), without a space: " text
#define NO_NUMBER(text, form) "expected a number" text "; example: \"" form "\""
#define WHERE(form)           "expected \"on NODE\"; example: \"" form "\""

SUBNET_TEST(other_texts_are_refused_with_a_reason)
{
	static const char *const refusals[][2] = {
		/* the text without its comment */
		{"loss 2% on delta # oops", NO_NODE("delta")},
		{"silent # on beta", WHERE("silent on NODE")},
		/* words */
		{"lose 1%", UNKNOWN("lose 1%")},
		{"losss 1%", UNKNOWN("losss 1%")},
		{"link sideways on beta", UNKNOWN("link sideways on beta")},
		{"LOSS 1%", UNKNOWN("LOSS 1%")},
		/* no control characters: U+009B is one, \u00e9 and \u065b are not */
		{"lose \033[31m\a", UNKNOWN("lose ?[31m?")},
		{"lose \302\233x\303\251\331\233", UNKNOWN("lose ??x\303\251\331\233")},
		/* numbers */
		{"loss", NO_NUMBER("", "loss 1%")},
		{"loss -1%", NO_NUMBER(": \"-1%\"", "loss 1%")},
		{"loss nan", NO_NUMBER(": \"nan\"", "loss 1%")},
		{"slow on beta", NO_NUMBER(": \"on beta\"", "slow 5ms")},
		{"reorder 1%", NO_NUMBER("", "reorder 1% 2ms")},
		{"slow 1e300s", NO_NUMBER(": \"1e300s\"", "slow 5ms")},
		{"loss 5ms on beta", "a chance must be a number with %: \"5ms\""},
		{"loss 101%", "a chance of more than 100%: \"101%\""},
		{"busy 1percent%", "unknown unit: \"1percent%\"; example: \"busy 50%\""},
		{"loss 2 on beta",
		 "a chance without % must be from 0 to 1: \"2\"; in percent, write \"2%\""},
		{"slow 5", NO_TIME("\"5\"")},
		{"slow 5 ms", NO_TIME("\"5\"")},
		{"slow 5min", NO_TIME("\"5min\"")},
		{"slow 1e10s", NO_TIME("\"1e10s\"")},
		{"counters 16 on beta", "counters have 32 or 64 bits, not 16"},
		{"smp-queue 1.5", "expected a whole number: \"1.5\""},
		{"smp-queue 2ms", "expected a whole number: \"2ms\""},
		{"smp-queue 1e10", "expected a whole number: \"1e10\""},
		/* widths and speeds */
		{"width 1", NO_WIDTH("1")},
		{"width 3x", NO_WIDTH("3x")},
		{"width 0x", NO_WIDTH("0x")},
		{"width 16x", NO_WIDTH("16x")},
		{"width 1xSDR", NO_WIDTH("1xSDR")},
		{"width x", NO_WIDTH("x")},
		{"width on", NO_WIDTH("on")},
		{"width", "expected a width; example: \"width 1x on NODE/PORT\""},
		{"speed 1x on beta/1",
		 "a speed must be SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR: \"1x\""},
		{"speed", "expected a speed; example: \"speed FDR on NODE/PORT\""},
		{"width 8x on beta/1", "this port's link is only 4xEDR"},
		{"speed HDR on beta/1", "this port's link is only 4xEDR"},
		/* places */
		{"loss 1% on delta", NO_NODE("delta")},
		{"loss 1% on", "expected a node; example: \"loss 1%\""},
		{"loss 1% on delta/1", NO_NODE("delta/1")},
		{"link down on beta/3", NO_PORT("beta/3")},
		{"link down on beta/300", NO_PORT("beta/300")},
		{"link down on beta/-1", NO_PORT("beta/-1")},
		{"link down on beta/1x", NO_PORT("beta/1x")},
		{"link down on beta/", NO_PORT("beta/")},
		{"link down on beta/x", NO_PORT("beta/x")},
		{"link down on beta/0", NO_PORT("beta/0")},
		{"loss 1% on near/0", "no such port: \"near/0\"; the ports are 1 to 6"},
		{"link down on near/5", "the port has no cable: \"near/5\""},
		{"loss 1% on far/6", "the port has no cable: \"far/6\""},
		{"after 1s width 1x on far/6", "the port has no cable: \"far/6\""},
		{"silent on beta/1", "this rule is for nodes, not ports: \"beta/1\"; "
				     "example: \"silent on NODE\""},
		{"slow 1ms on beta/1", "this rule is for nodes, not ports: \"beta/1\"; "
				       "example: \"slow 5ms\""},
		{"silent", WHERE("silent on NODE")},
		{"reboot 1s", WHERE("reboot 200ms on NODE")},
		{"link down", WHERE("link down on NODE/PORT")},
		{"link up", WHERE("link up on NODE/PORT")},
		{"remove", WHERE("remove on NODE")},
		{"add", WHERE("return on NODE")},
		/* two nodes */
		{"redirect", "expected two nodes; example: \"redirect NODE on NODE\""},
		{"redirect beta",
		 "expected two nodes: \"beta\"; example: \"redirect NODE on NODE\""},
		{"clone beta", "expected two nodes: \"beta\"; example: \"clone NODE on NODE\""},
		{"redirect delta on beta", "no such node to redirect to: \"delta\"; the 5 "
					   "nodes are \"near\" .. \"gamma\""},
		{"redirect beta on delta", NO_NODE("delta")},
		{"clone delta on beta",
		 "no such node to clone: \"delta\"; the 5 nodes are \"near\" .. \"gamma\""},
		/* text after a rule */
		{"loss 1% beta", "expected \"on\": \"beta\"; example: \"loss 1%\""},
		{"clear all", "unexpected after this rule: \"all\"; example: \"clear\""},
		{"reorder 1% 2ms 3ms", "expected \"on\": \"3ms\"; example: \"reorder 1% 2ms\""},
		{"reroute 1s on beta",
		 "unexpected after this rule: \"on beta\"; example: \"reroute 50ms\""},
		/* a rule for later is read now */
		{"after 2s lose 1%", UNKNOWN("lose 1%")},
		{"after 2s", "expected a rule; example: \"after 2s RULE\""},
		{"after loss 1%", NO_NUMBER(": \"loss 1%\"", "after 2s RULE")},
		{"after 2s after 2s clear", UNKNOWN("after 2s clear")},
	};

	for (size_t i = 0; i < COUNT_OF(refusals); i++)
		refused(subnet, refusals[i][0], refusals[i][1]);
}

SUBNET_TEST(a_link_cannot_train_with_more_than_it_has)
{
	assert_int_equal(standing(subnet, "width 4x on beta/1")->number, 4);
	assert_int_equal(standing(subnet, "speed EDR on beta/1")->number, EDR);
	assert_int_equal(standing(subnet, "speed XDR")->number, XDR);
}

SUBNET_TEST(a_rule_for_the_links_of_a_node_without_cables_is_refused)
{
	struct graph_port *gamma = &subnet->fabric.graph.ports[port_of(subnet, GAMMA, 1)];

	rule(subnet, "link down on gamma");
	subnet->fabric.graph.ports[gamma->peer].peer = NONE;
	gamma->peer = NONE;
	refused(subnet, "link down on gamma", "the node has no cable: \"gamma\"");
	refused(subnet, "loss 1% on gamma", "the node has no cable: \"gamma\"");
	rule(subnet, "silent on gamma");
}

/* The note about a rule; empty: none. */
static const char *note_on(struct subnet *subnet, const char *text)
{
	static struct rule_error error;

	assert_int_equal(fault_apply(&subnet->fabric, text, &error), 0);
	return error.text;
}

SUBNET_TEST(a_rule_that_silences_the_subnet_manager_says_so)
{
	static const char expected[] =
		"this silences the subnet manager and the SA, too: they are on \"alpha\"";

	assert_string_equal(note_on(subnet, "silent on alpha"), expected);
	assert_string_equal(note_on(subnet, "after 1s silent on alpha"), expected);
	assert_string_equal(note_on(subnet, "silent on beta"), "");
	assert_string_equal(note_on(subnet, "busy 50% on alpha"), "");
}

BARE_TEST(without_a_subnet_manager_there_is_no_such_note)
{
	assert_string_equal(note_on(subnet, "silent on alpha"), "");
}

SUBNET_TEST(a_rule_for_later_is_pending)
{
	rule(subnet, "after 2s loss 1%");
	assert_non_null(subnet->fabric.faults->pending);
	assert_int_equal(subnet->fabric.faults->count, 0);
}

SUBNET_TEST(a_long_text_is_quoted_in_part)
{
	struct rule_error error;
	char text[1000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(fault_apply(&subnet->fabric, text, &error), -EINVAL);
	assert_int_equal(strlen(error.text),
			 strlen("unknown rule: \"\"; umad-sim --help lists them") + 100);
}

/* The text with NODE and PORT replaced by existing ones. */
static void fill_in(char *text)
{
	for (char *word = strstr(text, "NODE"); word; word = strstr(word, "NODE"))
		memcpy(word, "near", 4);
	for (char *word = strstr(text, "PORT"); word; word = strstr(word, "PORT"))
		memcpy(word, "4   ", 4);
}

SUBNET_TEST(each_line_of_help_begins_with_a_rule)
{
	struct rule_error error = {""};
	char *text = NULL, *line, *next;
	size_t length, lines = 0;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(out);
	fault_print_rules(out);
	fclose(out);
	for (line = text; *line; line = next, lines++) {
		next = strchr(line, '\n') + 1;
		next[-1] = '\0';
		assert_memory_equal(line, "  ", 2);
		assert_in_range(strlen(line), 30, 85);
		line[25] = '\0'; /* the rest is the description */
		fill_in(line + 2);
		if (!strstr(line, "RULE") &&
		    fault_apply(&subnet->fabric, line + 2, &error) != 0)
			fail_msg("\"%s\": %s", line, error.text);
	}
	assert_int_equal(lines, 34);
	free(text);
}
