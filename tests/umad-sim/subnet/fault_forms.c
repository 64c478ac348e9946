/* SPDX-License-Identifier: BSD-2-Clause */

/* The table of the rules. */
#include "fault_forms.h"

const struct fault_form fault_forms[] = {
	{"loss", RULE_LOSS, WITH_CHANCE | MAY_NAME_PORT, "loss 1%",
	 "one packet in a hundred is lost on each link"},
	{"duplicate", RULE_DUPLICATE, WITH_CHANCE | MAY_NAME_PORT, "duplicate 1%",
	 "one packet in a hundred is delivered twice"},
	{"corrupt", RULE_CORRUPT, WITH_CHANCE | MAY_NAME_PORT, "corrupt 1%",
	 "some bits of one byte change in one packet in a hundred"},
	{"reorder", RULE_REORDER, WITH_CHANCE | WITH_TIME | MAY_NAME_PORT, "reorder 1% 2ms",
	 "one packet in a hundred is delayed, others overtake it"},
	{"hop-latency", RULE_HOP_LATENCY, WITH_TIME | MAY_NAME_PORT, "hop-latency 500ns",
	 "the time that each link takes"},
	{"slow", RULE_SLOW, WITH_TIME, "slow 5ms", "the time before a node sends a response"},
	{"smp-time", RULE_SMP_TIME, WITH_TIME, "smp-time 10us", "service for SMPs only"},
	{"smp-queue", RULE_SMP_QUEUE, WITH_NUMBER, "smp-queue 16", "buffer for SMPs only"},
	{"service", RULE_SERVICE, WITH_TIME, "service 20us",
	 "the time that a node's processor takes for each request"},
	{"buffer", RULE_BUFFER, WITH_NUMBER, "buffer 4",
	 "requests that wait for the processor; more are dropped"},
	{"counters", RULE_COUNTERS, WITH_NUMBER, "counters 32",
	 "an older PMA: PortCounters only; 64: those without errors"},
	{"errors", RULE_ERRORS, WITH_NUMBER | MAY_NAME_PORT, "errors 5",
	 "symbol errors a second on each link"},
	{"fec-mode", RULE_FEC_MODE, WITH_NUMBER | MAY_NAME_PORT, "fec-mode 2",
	 "ports have PortInfoExtended, and this FECModeActive"},
	{"fec", RULE_FEC, WITH_NUMBER | MAY_NAME_PORT, "fec 1000",
	 "blocks a second that FEC corrects on each link"},
	{"width", RULE_WIDTH, WITH_WIDTH | MAY_NAME_PORT, "width 1x on NODE/PORT",
	 "the link trains with this width at most"},
	{"speed", RULE_SPEED, WITH_SPEED | MAY_NAME_PORT, "speed FDR on NODE/PORT",
	 "the link trains with this speed at most"},
	{"path-limit", RULE_PATH_LIMIT, WITH_NUMBER, "path-limit 64",
	 "requests of a host in flight; more are dropped"},
	{"silent", RULE_SILENT, MUST_SAY_WHERE, "silent on NODE",
	 "the node does not respond, but forwards packets"},
	{"reroute never", RULE_REROUTE_NEVER, EVERYWHERE, "reroute never",
	 "the subnet manager keeps the routes when links go down"},
	{"reroute", RULE_REROUTE, WITH_TIME | EVERYWHERE, "reroute 50ms",
	 "the time until the subnet manager has new routes"},
	{"busy", RULE_BUSY, WITH_CHANCE, "busy 50%", "the node responds with status BUSY"},
	{"redirect", RULE_REDIRECT, WITH_NODE | MUST_SAY_WHERE, "redirect NODE on NODE",
	 "the second node redirects GMPs to the first one"},
	{"clone", RULE_CLONE, WITH_NODE | MUST_SAY_WHERE, "clone NODE on NODE",
	 "the second node has the GUIDs of the first one"},
	{"name", RULE_NAME, WITH_NODE | MUST_SAY_WHERE, "name NODE on NODE",
	 "the second node has the description of the first one"},
	{"lid", RULE_LID, WITH_NODE | MUST_SAY_WHERE, "lid NODE on NODE",
	 "the second node reports the LID of the first one"},
	{"master", RULE_MASTER, MUST_SAY_WHERE, "master on NODE",
	 "the node claims to have a master subnet manager, too"},
	{"reboot", RULE_REBOOT, WITH_TIME | MUST_SAY_WHERE, "reboot 200ms on NODE",
	 "the node has no power for this time"},
	{"link down", RULE_LINK_DOWN, MUST_SAY_WHERE | MAY_NAME_PORT, "link down on NODE/PORT",
	 "unplugs a cable; without a port, all of the node"},
	{"link up", RULE_LINK_UP, MUST_SAY_WHERE | MAY_NAME_PORT, "link up on NODE/PORT",
	 "plugs the cable in again"},
	{"remove", RULE_REMOVE, MUST_SAY_WHERE, "remove on NODE",
	 "removes the device of a node from its programs"},
	{"return", RULE_ADD, MUST_SAY_WHERE, "return on NODE", "adds the device again"},
	{"add", RULE_ADD, MUST_SAY_WHERE, NULL, NULL}, /* another word for "return" */
	{"forget", RULE_FORGET, EVERYWHERE, "forget",
	 "the SA forgets its members and subscribers, as if restarted"},
	{"clear", RULE_CLEAR, EVERYWHERE, "clear", "ends all rules"},
	{NULL, RULE_CLEAR, 0, NULL, NULL},
};

void fault_print_rules(FILE *out)
{
	for (const struct fault_form *form = fault_forms; form->word; form++)
		if (form->example)
			fprintf(out, "  %-23s %s\n", form->example, form->meaning);
	fprintf(out, "  %-23s %s\n", "after 2s RULE", "the rule, two seconds later");
}
