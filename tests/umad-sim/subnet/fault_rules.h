/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Rules for delays and faults. A rule is a line of text, which has the same form on the command
 * line, in a file and at run time:
 *
 *	loss 1% [on NODE[/PORT]]	a packet in a hundred is lost on each of these links
 *	duplicate 1% [on ...]		or arrives twice
 *	corrupt 1% [on ...]		or arrives with some bits changed
 *	reorder 1% 2ms [on ...]		or is delayed by this time, so that others overtake it
 *	hop-latency 500ns [on ...]	the time that a link takes
 *	slow 5ms [on NODE]		the time that a node takes to respond
 *	service 20us [on NODE]		the time that a node's processor takes for a request;
 *					SMPs and GMPs have a processor each
 *	buffer 4 [on NODE]		how many requests wait for a processor, besides the
 *					one that it processes, before more are dropped
 *	smp-time 10us [on NODE]		service for SMPs alone
 *	smp-queue 16 [on NODE]		buffer for SMPs alone
 *	path-limit 64 [on NODE]		how many requests of a host are in flight, before
 *					more are dropped
 *	counters 32 [on NODE]		has the counters of an older performance management
 *					agent: PortCounters alone, without PortXmitWait;
 *					64: and PortCountersExtended without errors
 *	errors 5 [on NODE[/PORT]]	symbol errors a second at both ends of these links
 *	fec 1000 [on NODE[/PORT]]	blocks a second that FEC corrects at both ends of
 *					these links, besides the symbol errors
 *	fec-mode 2 [on NODE[/PORT]]	these ports have PortInfoExtended with this FEC mode
 *					in use and enabled; 0: no FEC
 *	width 1x [on NODE[/PORT]]	these links train with this width at most; the widths
 *					that their ports support and enable do not change
 *	speed FDR [on NODE[/PORT]]	likewise with this speed of a lane at most
 *	silent on NODE			does not respond
 *	busy 50% [on NODE]		responds with status BUSY
 *	redirect NODE on NODE		redirects GMPs to another node
 *	clone NODE on NODE		reports the GUIDs of another node in its NodeInfo
 *	name NODE on NODE		reports the description of another node
 *	lid NODE on NODE		reports the LID of another node in its PortInfo
 *	master on NODE			has IsSM in its PortInfo, and a master's SMInfo
 *	reboot 200ms on NODE		is down for this time, and so are its links
 *	link down|up on NODE/PORT
 *	remove on NODE			removes the node's device from programs
 *	return on NODE			and brings it back; "add" is the same
 *	forget				the built-in SA forgets groups, members, services and
 *					subscriptions, as if it was restarted
 *	clear				ends all rules, also pending ones; links are up and
 *					train again, nodes have power, devices are back
 *	after 2s RULE			the rule, two seconds after it was given, or
 *					after fault_begin()
 *
 * A rule without "on" applies everywhere. The later rule wins. Random choices depend on the
 * fabric's seed, the link or node, and the number of earlier packets there: the same packets in
 * the same order have the same faults.
 */
#ifndef FABRIC_FAULT_RULES_H
#define FABRIC_FAULT_RULES_H

#include "fault_text.h"

/*
 * Applies a rule. Returns 0 (the error has a note on the effect, or no text), -EINVAL (the
 * error has the reason) or -ENOMEM. The text must have no control characters. Ignores an empty
 * line, and text from " #" on unless it is part of a node's name.
 */
int fault_apply(struct fabric *fabric, const char *rule, struct rule_error *error);

/* Likewise for a command, where an empty line or a lone comment is an error. */
int fault_command(struct fabric *fabric, const char *rule, struct rule_error *error);

/* After fault_hold(), the times of "after" rules begin at fault_begin(), which returns 0 or
 * -ENOMEM and has no effect without fault_hold(). */
void fault_hold(struct fabric *fabric);
int fault_begin(struct fabric *fabric);

#endif
