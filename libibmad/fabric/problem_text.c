/* SPDX-License-Identifier: BSD-2-Clause */

/* Describes a fabric's problems. */

#include "base/export.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_fabric.h>
#include <infiniband/mad_fields.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* "leaf-4 (0x0002c90300f00030)" */
#define NAME_SIZE  (IB_SMP_DATA_SIZE + sizeof(" (0x0123456789abcdef)"))
/* "behind leaf-4 (0x0002c90300f00030) port 1" */
#define PLACE_SIZE (NAME_SIZE + sizeof("behind ") + sizeof(" port 255"))

static const char *put_name(const char *description, uint64_t guid, char *text)
{
	char printable[IB_SMP_DATA_SIZE + 1];

	mad_printable_text(description, printable, sizeof(printable));
	snprintf(text, NAME_SIZE, "%s%s(0x%016" PRIx64 ")", printable, *printable ? " " : "",
		 guid);
	return text;
}

static const char *put_place(const struct mad_fabric_node *node,
			     const struct mad_fabric_port *port, bool behind, char *text)
{
	size_t length;

	if (!node)
		return strcpy(text, "an unknown place");
	length = behind ? strlen(strcpy(text, "behind ")) : 0;
	put_name(node->description, node->guid, text + length);
	length = strlen(text);
	if (port)
		snprintf(text + length, PLACE_SIZE - length, " port %u", port->number);
	return text;
}

/* A GUID belongs to the port or its node, or to a node behind the port. */
static bool is_behind(const struct mad_fabric_problem *problem,
		      const struct mad_fabric_port *port)
{
	return problem->kind == MAD_FABRIC_PROBLEM_GUID && port &&
	       port->guid != problem->guid && port->node->guid != problem->guid;
}

static const char *error_text(const struct mad_fabric_problem *problem, char *text, size_t size)
{
	if (problem->error == -ETIMEDOUT)
		return "no response";
	if (problem->error == -EIO && problem->status)
		return mad_status_text(IB_SMI_DIRECT_CLASS, problem->status, text, size);
	if (problem->error == -EBADMSG)
		return "malformed response";
	return strerror(-problem->error);
}

static const char *attribute_text(const struct mad_fabric_problem *problem)
{
	switch (problem->attribute) {
	case IB_ATTR_NODE_INFO:
		return "NodeInfo";
	case IB_ATTR_NODE_DESC:
		return "NodeDescription";
	case IB_ATTR_SWITCH_INFO:
		return "SwitchInfo";
	case IB_ATTR_PORT_INFO:
		return "PortInfo";
	case IB_ATTR_MLNX_EXT_PORT_INFO:
		return "ExtendedPortInfo";
	default:
		return "an attribute";
	}
}

static void failure_text(const struct mad_fabric_problem *problem, char *buf, size_t size)
{
	char where[PLACE_SIZE], who[PLACE_SIZE] = "the node", status[MAD_ERROR_TEXT_SIZE];
	char more[32] = "";
	const char *error = error_text(problem, status, sizeof(status));

	put_place(problem->node, problem->port, false, where);
	if (problem->kind == MAD_FABRIC_PROBLEM_NODE) {
		if (problem->count > 1)
			snprintf(more, sizeof(more), ", %u requests in all", problem->count);
		snprintf(buf, size, "%s: %s: %s%s", where, attribute_text(problem), error,
			 more);
		return;
	}
	if (problem->guid)
		put_name(problem->description, problem->guid, who);
	if (problem->count > 1)
		snprintf(more, sizeof(more), " and %u more", problem->count - 1);
	snprintf(buf, size, "%s behind %s%s: %s", who, where, more, error);
}

/* Problems other than failures. */
static const char *kind_text(enum mad_fabric_problem_kind kind)
{
	static const char *const texts[] = {
		[MAD_FABRIC_PROBLEM_PEER] = "the ports disagree about their link",
		[MAD_FABRIC_PROBLEM_GUID] = "one GUID twice",
		[MAD_FABRIC_PROBLEM_PORT_COUNT] = "impossible number of ports",
		[MAD_FABRIC_PROBLEM_NODE_TYPE] = "neither CA, switch nor router",
		[MAD_FABRIC_PROBLEM_LOOP] = "cable from the node to itself",
		[MAD_FABRIC_PROBLEM_LID] = "one LID twice",
		[MAD_FABRIC_PROBLEM_ROUTE_TOO_LONG] = "the fabric goes on, beyond 63 hops",
		[MAD_FABRIC_PROBLEM_TOO_MANY] =
			"the fabric goes on, with too many nodes or ports",
		[MAD_FABRIC_PROBLEM_LINK] =
			"the ends of the link differ in state, width, speed or MTU",
	};
	bool is_known = (unsigned)kind < sizeof(texts) / sizeof(*texts) && texts[kind];

	return is_known ? texts[kind] : "?";
}

/* The duplicate GUID or LID. */
static void twice_text(const struct mad_fabric_problem *problem, char *text, size_t size)
{
	text[0] = '\0';
	if (problem->kind == MAD_FABRIC_PROBLEM_GUID)
		snprintf(text, size, ": 0x%016" PRIx64, problem->guid);
	else if (problem->kind == MAD_FABRIC_PROBLEM_LID && problem->port &&
		 problem->other_port)
		snprintf(text, size, ": %u",
			 (unsigned)(problem->port->lid > problem->other_port->lid
					    ? problem->port->lid
					    : problem->other_port->lid));
}

/* Whether the other port leads to the node. */
static bool is_of_node(enum mad_fabric_problem_kind kind)
{
	return kind == MAD_FABRIC_PROBLEM_NODE_TYPE || kind == MAD_FABRIC_PROBLEM_PORT_COUNT;
}

EXPORT char *mad_fabric_problem_text(const struct mad_fabric_problem *problem, char *buf,
				     size_t size)
{
	char one[PLACE_SIZE], other[PLACE_SIZE], twice[32];

	if (!size)
		return buf;
	buf[0] = '\0';
	if (!problem)
		return buf;
	if (problem->error) {
		failure_text(problem, buf, size);
		return buf;
	}
	put_place(problem->node, problem->port, is_behind(problem, problem->port), one);
	if (problem->other_node)
		put_place(problem->other_node, problem->other_port,
			  is_behind(problem, problem->other_port), other);
	twice_text(problem, twice, sizeof(twice));
	snprintf(buf, size, "%s%s%s: %s%s", one,
		 !problem->other_node        ? ""
		 : is_of_node(problem->kind) ? ", behind "
					     : " and ",
		 problem->other_node ? other : "", kind_text(problem->kind), twice);
	return buf;
}
