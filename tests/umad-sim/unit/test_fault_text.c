/* SPDX-License-Identifier: BSD-2-Clause */

/* The text of fault rules: all valid forms, and the errors for others. */
#include "subnet_fixture.h"
#include "test.h"

#include <errno.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

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
		{"counters 32 on alpha", RULE_COUNTERS},
		{"counters 64", RULE_COUNTERS},
		{"silent on beta", RULE_SILENT},
		{"reroute 2s", RULE_REROUTE},
		{"reroute never", RULE_REROUTE_NEVER},
		{"busy 50%", RULE_BUSY},
		{"redirect beta on gamma", RULE_REDIRECT},
		{"clone beta on gamma", RULE_CLONE},
	};

	for (size_t i = 0; i < COUNT_OF(rules); i++)
		assert_int_equal(standing(subnet, rules[i].text)->kind, rules[i].kind);
}

SUBNET_TEST(each_passing_rule_leaves_none_standing)
{
	static const char *const rules[] = {"reboot 200ms on beta", "link down on beta/1",
					    "link up on beta/1",    "remove on beta",
					    "add on beta",          "clear"};

	for (size_t i = 0; i < COUNT_OF(rules); i++) {
		rule(subnet, rules[i]);
		assert_int_equal(subnet->fabric.faults->count, 0);
	}
}

SUBNET_TEST(an_empty_line_and_a_comment_are_nothing)
{
	rule(subnet, "");
	rule(subnet, "  \t\n");
	rule(subnet, "  # loss 100%");
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
	found = standing(subnet, "loss 1% on far/6");
	assert_int_equal(found->node, FAR);
	assert_int_equal(found->port, port_of(subnet, FAR, 6));
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

SUBNET_TEST(an_unknown_word_is_refused)
{
	refused(subnet, "lose 1%", "an unknown rule: \"lose 1%\"");
	refused(subnet, "losss 1%", "an unknown rule: \"losss 1%\"");
	refused(subnet, "link sideways on beta", "an unknown rule: \"link sideways on beta\"");
	refused(subnet, "LOSS 1%", "an unknown rule: \"LOSS 1%\"");
}

SUBNET_TEST(a_bad_number_is_refused)
{
	refused(subnet, "loss", "a number is expected: \"\"");
	refused(subnet, "loss -1%", "a number is expected: \"-1%\"");
	refused(subnet, "loss nan", "a number is expected: \"nan\"");
	refused(subnet, "slow on beta", "a number is expected: \"on beta\"");
	refused(subnet, "reorder 1%", "a number is expected: \"\"");
	refused(subnet, "slow 1e300s", "a number is expected: \"1e300s\"");
}

SUBNET_TEST(a_bad_chance_is_refused)
{
	refused(subnet, "loss 5ms", "a chance is a number with %: \" 5ms\"");
	refused(subnet, "loss 101%", "a chance of more than 100%: \" 101%\"");
	refused(subnet, "loss 2", "a chance of more than 100%: \" 2\"");
	refused(subnet, "busy 1percent%", "an unknown unit: \"1percent%\"");
}

SUBNET_TEST(a_bad_time_is_refused)
{
	const char *reason = "a time has one of the units ns, us, ms, s: ";
	char expected[100];

	snprintf(expected, sizeof(expected), "%s\" 5\"", reason);
	refused(subnet, "slow 5", expected);
	snprintf(expected, sizeof(expected), "%s\" 5 ms\"", reason);
	refused(subnet, "slow 5 ms", expected);
	snprintf(expected, sizeof(expected), "%s\" 5min\"", reason);
	refused(subnet, "slow 5min", expected);
	snprintf(expected, sizeof(expected), "%s\" 1e10s\"", reason);
	refused(subnet, "slow 1e10s", expected);
}

SUBNET_TEST(a_bad_length_of_a_queue_is_refused)
{
	refused(subnet, "counters 16 on beta",
		"counters have 32 or 64 bits: \"counters 16 on beta\"");
	refused(subnet, "smp-queue 1.5", "a whole number is expected: \" 1.5\"");
	refused(subnet, "smp-queue 2ms", "a whole number is expected: \" 2ms\"");
	refused(subnet, "smp-queue 1e10", "a whole number is expected: \" 1e10\"");
}

SUBNET_TEST(a_place_that_does_not_exist_is_refused)
{
	refused(subnet, "loss 1% on delta", "no such node: \"delta\"");
	refused(subnet, "loss 1% on", "no such node: \"\"");
	refused(subnet, "loss 1% on delta/1", "no such port: \"delta/1\"");
	refused(subnet, "loss 1% on beta/3", "no such port: \"beta/3\"");
	refused(subnet, "loss 1% on beta/300", "no such port: \"beta/300\"");
	refused(subnet, "loss 1% on beta/-1", "no such port: \"beta/-1\"");
}

SUBNET_TEST(a_port_that_is_no_number_is_refused)
{
	refused(subnet, "loss 1% on beta/1x", "no such port: \"beta/1x\"");
	refused(subnet, "loss 1% on beta/", "no such port: \"beta/\"");
	refused(subnet, "link down on beta/x", "no such port: \"beta/x\"");
}

SUBNET_TEST(port_0_has_no_link_and_is_refused)
{
	refused(subnet, "link down on near/0", "no such port: \"near/0\"");
	refused(subnet, "loss 1% on beta/0", "no such port: \"beta/0\"");
}

SUBNET_TEST(a_rule_for_nodes_takes_no_port)
{
	refused(subnet, "silent on beta/1", "no such node: \"beta/1\"");
	refused(subnet, "slow 1ms on beta/1", "no such node: \"beta/1\"");
}

SUBNET_TEST(a_rule_that_needs_a_place_is_refused_without)
{
	static const char *const rules[] = {"silent",  "reboot 1s", "link down",
					    "link up", "remove",    "add"};

	for (size_t i = 0; i < COUNT_OF(rules); i++)
		refused(subnet, rules[i], "on which node?: \"\"");
}

SUBNET_TEST(a_redirection_needs_both_nodes)
{
	refused(subnet, "redirect", "no such node to redirect to: \"\"");
	refused(subnet, "redirect beta", "no such node to redirect to: \"beta\"");
	refused(subnet, "redirect delta on beta",
		"no such node to redirect to: \"delta on beta\"");
	refused(subnet, "redirect beta on delta", "no such node: \"delta\"");
	refused(subnet, "clone delta on beta", "no such node to clone: \"delta on beta\"");
}

SUBNET_TEST(text_after_a_rule_is_refused)
{
	refused(subnet, "loss 1% beta", "this is too much: \"beta\"");
	refused(subnet, "clear all", "this is too much: \"all\"");
	refused(subnet, "reorder 1% 2ms 3ms", "this is too much: \"3ms\"");
	refused(subnet, "reroute 1s on beta", "this is too much: \"on beta\"");
}

SUBNET_TEST(a_rule_for_later_is_read_now)
{
	refused(subnet, "after 2s lose 1%", "an unknown rule: \"lose 1%\"");
	refused(subnet, "after 2s", "an unknown rule: \"\"");
	refused(subnet, "after loss 1%", "a number is expected: \"loss 1%\"");
	refused(subnet, "after 2s after 2s clear", "an unknown rule: \"after 2s clear\"");
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
	assert_int_equal(strlen(error.text), strlen("an unknown rule: \"\"") + 100);
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
	assert_int_equal(lines, 27);
	free(text);
}
