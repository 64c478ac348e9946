/* SPDX-License-Identifier: BSD-2-Clause */

/* check: what a discovery shows, and the subnet managers. */

#include "ibfabric.h"

#include <errno.h>
#include <fnmatch.h>

#define LIST_MOST 8 /* places in one line */

static bool *told;        /* by the index of a port: its link has a finding */
static bool *is_nameless; /* by the index of a node: the description was not read */

static void tell_link(const struct mad_fabric_port *port)
{
	told[port->index] = true;
	if (port->peer)
		told[port->peer->index] = true;
}

/* --- nodes that do not respond, and contradictions ------------------------------- */

/* Whether the discovery went on after the error: then the node has a fault. */
static bool is_of_node(int error)
{
	return error == -ETIMEDOUT || error == -EIO || error == -EBADMSG;
}

static bool is_behind(const struct mad_fabric_problem *problem, uint64_t guid)
{
	return problem->kind == MAD_FABRIC_PROBLEM_BEHIND && problem->error == -ETIMEDOUT &&
	       problem->guid == guid && problem->port;
}

/* A node that the stored fabric knows is one finding, behind however many ports it is. */
static void check_silent(const struct mad_fabric *fabric, const struct mad_fabric *before,
			 size_t index)
{
	const struct mad_fabric_problem *each = mad_fabric_get_problem(fabric, index);
	const struct mad_fabric_node *known =
		before && each->guid ? mad_fabric_find_guid(before, each->guid) : NULL;
	char places[LIST_MOST * PLACE_SIZE], place[PLACE_SIZE];
	unsigned count = 0;
	size_t used = 0;

	if (!known) {
		found(KIND_NO_ANSWER, at_port(each->port), nowhere,
		      "the node at the other end does not respond");
		return;
	}
	for (size_t i = 0; i < index; i++)
		if (is_behind(mad_fabric_get_problem(fabric, i), each->guid))
			return;
	for (size_t i = index; i < fabric->problem_count; i++) {
		const struct mad_fabric_problem *other = mad_fabric_get_problem(fabric, i);

		if (is_behind(other, each->guid) && count++ < LIST_MOST)
			used += (size_t)snprintf(places + used, sizeof(places) - used, "%s%s",
						 used ? ", " : "",
						 short_place(other->port, place));
	}
	found(KIND_NO_ANSWER, at_node(known), nowhere, "does not respond behind %s%s", places,
	      count > LIST_MOST ? " and others" : "");
}

static struct place first_place(const struct mad_fabric_problem *problem)
{
	return problem->port   ? at_port(problem->port)
	       : problem->node ? at_node(problem->node)
			       : nowhere;
}

static struct place second_place(const struct mad_fabric_problem *problem)
{
	return problem->other_port   ? at_port(problem->other_port)
	       : problem->other_node ? at_node(problem->other_node)
				     : nowhere;
}

/* A switch whose GUID is there twice is a problem at each of its cables. */
static void check_guid(const struct mad_fabric *fabric, size_t index)
{
	const struct mad_fabric_problem *each = mad_fabric_get_problem(fabric, index);
	unsigned more = 0;

	for (size_t i = 0; i < fabric->problem_count; i++) {
		const struct mad_fabric_problem *other = mad_fabric_get_problem(fabric, i);

		if (other->kind != each->kind || other->guid != each->guid)
			continue;
		if (i < index)
			return;
		more += i > index;
	}
	if (more)
		found(KIND_DUPLICATE_GUID, first_place(each), second_place(each),
		      "the GUID 0x%016" PRIx64 " is there twice, seen at %u more ports",
		      each->guid, more);
	else
		found(KIND_DUPLICATE_GUID, first_place(each), second_place(each),
		      "the GUID 0x%016" PRIx64 " is there twice", each->guid);
}

static void check_problem(const struct mad_fabric *fabric, const struct mad_fabric *before,
			  size_t index)
{
	const struct mad_fabric_problem *each = mad_fabric_get_problem(fabric, index);
	struct place place = first_place(each), other = second_place(each);
	char text[MAD_FABRIC_PROBLEM_TEXT_SIZE];

	mad_fabric_problem_text(each, text, sizeof(text));
	switch (each->kind) {
	case MAD_FABRIC_PROBLEM_NODE:
		if (each->node)
			is_nameless[each->node->index] = true;
		if (each->error == -ETIMEDOUT)
			found(KIND_NO_ANSWER, place, nowhere,
			      "%u requests after the first have no response", each->count);
		else if (is_of_node(each->error))
			found(KIND_BAD_ANSWER, nowhere, nowhere, "%s", text);
		break;
	case MAD_FABRIC_PROBLEM_BEHIND:
		if (is_behind(each, each->guid))
			check_silent(fabric, before, index);
		else if (is_of_node(each->error))
			found(KIND_BAD_ANSWER, nowhere, nowhere, "%s", text);
		break;
	case MAD_FABRIC_PROBLEM_GUID:
		check_guid(fabric, index);
		break;
	case MAD_FABRIC_PROBLEM_LID:
		found(KIND_DUPLICATE_LID, place, other, "both have the LID %u",
		      each->port ? each->port->lid : 0);
		break;
	case MAD_FABRIC_PROBLEM_LOOP:
		found(KIND_LOOP, place, other, "the cable leads from the node to itself");
		break;
	case MAD_FABRIC_PROBLEM_LINK:
		if (each->port) {
			tell_link(each->port);
			found(KIND_LINK_MISMATCH, nowhere, nowhere, "%s", text);
		}
		break;
	case MAD_FABRIC_PROBLEM_PEER:
	case MAD_FABRIC_PROBLEM_PORT_COUNT:
	case MAD_FABRIC_PROBLEM_NODE_TYPE:
		found(KIND_CONTRADICTION, nowhere, nowhere, "%s", text);
		break;
	case MAD_FABRIC_PROBLEM_ROUTE_TOO_LONG:
	case MAD_FABRIC_PROBLEM_TOO_MANY:
		break; /* failures */
	}
}

/* --- links ------------------------------------------------------------------------ */

static void decode(const struct mad_fabric_port *port, struct mad_link *link)
{
	const struct mad_fabric_port *zero =
		port->node->type == IB_NODE_SWITCH ? mad_fabric_get_port(port->node, 0) : NULL;

	*link = (struct mad_link){0};
	if (port->info)
		mad_link_decode(link, sizeof(*link), port->info, zero ? zero->info : NULL,
				port->mlnx_ext_info);
}

/* Which end is set to less than both support; "" if none is, so that the link itself is bad. */
static void describe_setting(const struct mad_fabric_port *port, char *text, size_t size)
{
	char place[PLACE_SIZE];
	struct mad_link link;

	decode(port, &link);
	*text = 0;
	if (link.width_enabled < port->width_possible && port->width < port->width_possible)
		snprintf(text, size, ": %s is set to %ux", short_place(port, place),
			 link.width_enabled);
	else if (link.speed_enabled < port->speed_possible &&
		 port->speed < port->speed_possible)
		snprintf(text, size, ": %s is set to %s", short_place(port, place),
			 mad_link_speed_name(link.speed_enabled));
}

static void check_link(const struct mad_fabric_port *port, bool expects_active)
{
	static const char *const states[] = {"?", "Down", "Init", "Armed", "Active"};
	const struct mad_fabric_port *peer = port->peer;
	char setting[2 * PLACE_SIZE];

	if (told[port->index] || !port->width)
		return;
	if (port->width < port->width_possible || port->speed < port->speed_possible) {
		describe_setting(port, setting, sizeof(setting));
		if (!*setting)
			describe_setting(peer, setting, sizeof(setting));
		tell_link(port);
		found(KIND_SLOW_LINK, at_port(port), at_port(peer),
		      "runs at %ux %s, both ends support %ux %s%s", port->width,
		      mad_link_speed_name(port->speed), port->width_possible,
		      mad_link_speed_name(port->speed_possible), setting);
	}
	if (expects_active && port->info && port->state != MAD_PORT_ACTIVE)
		found(KIND_NOT_ACTIVE, at_port(port), at_port(peer), "is in the state %s",
		      states[port->state < 5 ? port->state : 0]);
}

static void check_links(const struct mad_fabric *fabric, bool expects_active)
{
	const struct mad_fabric_port *port = NULL;

	while ((port = mad_fabric_next_port(fabric, port))) {
		if (port->peer && is_first_end(port))
			check_link(port, expects_active);
		else if (!port->peer && port->state == MAD_PORT_DOWN &&
			 (port->physical_state == MAD_PHYSICAL_TRAINING ||
			  port->physical_state == MAD_PHYSICAL_ERROR_RECOVERY))
			found(KIND_NOT_ACTIVE, at_port(port), nowhere,
			      "the link does not come up, although there is a signal");
	}
}

/* --- names -------------------------------------------------------------------------- */

/* Names of devices that nobody has named, or of hosts without a host name. */
static bool is_factory_name(const char *name)
{
	static const char *const patterns[] = {
		"MT[0-9][0-9]*Mellanox Technologies*",
		"*nfiniscale*Mellanox Technologies*",
		"SwitchX*Mellanox Technologies*",
		"Switch[- ]IB*Mellanox Technologies*",
		"Quantum*Mellanox Technologies*",
		"MF0;switch-[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]:*",
		"localhost",
		"localhost [mH]*",
		"(none)*",
	};

	for (unsigned i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		if (fnmatch(patterns[i], name, 0) == 0)
			return true;
	return false;
}

/* The nodes of the aggregation protocol of switches: one a switch, all with one name. */
static bool is_part_of_switch(const char *name)
{
	return fnmatch("*Mellanox Technologies Aggregation Node*", name, 0) == 0;
}

static int compare_names(const void *a, const void *b)
{
	const struct mad_fabric_node *first = *(const struct mad_fabric_node *const *)a;
	const struct mad_fabric_node *second = *(const struct mad_fabric_node *const *)b;
	char name_a[NAME_SIZE], name_b[NAME_SIZE];
	int order = strcmp(node_name(first, name_a), node_name(second, name_b));

	return order ? order : compare_nodes(first, second);
}

static void check_name(const struct mad_fabric_node **nodes, size_t count)
{
	char name[NAME_SIZE];

	node_name(nodes[0], name);
	if (is_part_of_switch(name))
		return;
	if (!nodes[0]->description[strspn(nodes[0]->description, " ")] &&
	    !has_own_name(nodes[0])) {
		if (!is_nameless[nodes[0]->index])
			found(KIND_FACTORY_NAME, at_node(nodes[0]), nowhere,
			      "the node has no name");
	} else if (is_factory_name(name)) {
		for (size_t i = 0; i < count; i++)
			found(KIND_FACTORY_NAME, at_node(nodes[i]), nowhere,
			      "the name is that of an unnamed device");
	} else {
		for (size_t i = 1; i < count; i++)
			found(KIND_DUPLICATE_NAME, at_node(nodes[0]), at_node(nodes[i]),
			      "both have this name");
	}
}

static void check_names(const struct mad_fabric *fabric)
{
	const struct mad_fabric_node **nodes = sorted_nodes(fabric);
	char first[NAME_SIZE], next[NAME_SIZE];
	size_t begin = 0;

	qsort(nodes, fabric->node_count, sizeof(void *), compare_names);
	for (size_t i = 1; i <= fabric->node_count; i++) {
		if (i < fabric->node_count &&
		    strcmp(node_name(nodes[begin], first), node_name(nodes[i], next)) == 0)
			continue;
		check_name(nodes + begin, i - begin);
		begin = i;
	}
	free(nodes);
}

/* --- subnet managers ---------------------------------------------------------------- */

#define SM_MASTER 3 /* SMInfo:SMState */

struct manager {
	const struct mad_fabric_port *port;
	int error;
	unsigned state, priority;
};

static void sm_info_read(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct manager *manager = arg;

	(void)async;
	manager->error = reply->error;
	if (reply->error)
		return;
	manager->state = (unsigned)mad_read_field(reply->data, 0, IB_SMINFO_STATE_F);
	manager->priority = (unsigned)mad_read_field(reply->data, 0, IB_SMINFO_PRIO_F);
}

/* By the route of the discovery, which needs no LID, if it leads to this very port. */
static void request_sm_info(struct mad_async *async, struct manager *manager)
{
	const struct mad_fabric_port *port = manager->port;
	ib_portid_t to = {0};

	if (port->node->type == IB_NODE_SWITCH || port->number == port->node->entry_port ||
	    !port->gmp_lid)
		to.drpath = port->node->route;
	else
		to.lid = port->gmp_lid;
	manager->error = mad_async_get(async, &to, MAD_SM_INFO, 0, sm_info_read, manager, NULL);
}

/* The ports with a subnet manager, and its state. */
static struct manager *read_managers(const struct mad_fabric *fabric, size_t *count)
{
	struct mad_async *async = mad_async_create(ibmad_port);
	const struct mad_fabric_port *port = NULL;
	struct manager *managers;
	size_t used = 0;

	for (*count = 0; (port = mad_fabric_next_port(fabric, port));)
		*count += (port->capability_mask & MAD_PORT_CAP_SM) != 0;
	managers = allocate(*count + 1, sizeof(*managers));
	while ((port = mad_fabric_next_port(fabric, port)))
		if (port->capability_mask & MAD_PORT_CAP_SM) {
			managers[used].port = port;
			managers[used].error = -ECANCELED;
			if (async)
				request_sm_info(async, &managers[used]);
			used++;
		}
	while (async && mad_async_wait(async, 100) == -ETIMEDOUT && !cancelled.is_set &&
	       left_ms() != 1)
		;
	mad_async_free(async);
	for (size_t i = 0; i < *count; i++)
		if (managers[i].error)
			record_failure(NULL, managers[i].port,
				       "the state of its subnet manager could not be read: %s",
				       error_text(managers[i].error));
	return managers;
}

/* Ports that another subnet manager has configured than the master. */
static void check_sm_lids(const struct mad_fabric *fabric, const struct mad_fabric_port *master)
{
	const struct mad_fabric_port *port = NULL, *first = NULL;
	unsigned count = 0, lids = 1U << master->lmc;

	while (master->lid && (port = mad_fabric_next_port(fabric, port))) {
		bool has_lid =
			port->node->type == IB_NODE_SWITCH ? !port->number : port->peer != NULL;

		if (!has_lid || !port->info || port->state < MAD_PORT_ARMED ||
		    (port->sm_lid >= master->lid && port->sm_lid < master->lid + lids))
			continue;
		if (!count++)
			first = port;
	}
	if (count)
		found(KIND_OTHER_SM, at_port(first), at_port(master),
		      "%u port%s the LID %u for the subnet manager, which has the LID %u",
		      count, count == 1 ? " has" : "s have", first->sm_lid, master->lid);
}

static void check_managers(const struct mad_fabric *fabric)
{
	const struct manager *masters[2] = {NULL};
	size_t count, silent = 0, master_count = 0;
	struct manager *managers = read_managers(fabric, &count);

	for (size_t i = 0; i < count; i++) {
		silent += managers[i].error != 0;
		if (managers[i].error || managers[i].state != SM_MASTER)
			continue;
		if (master_count++ < 2)
			masters[master_count - 1] = &managers[i];
	}
	if (master_count > 1)
		found(KIND_TWO_MASTERS, at_port(masters[0]->port), at_port(masters[1]->port),
		      "%zu subnet managers are master, these with the priorities %u and %u",
		      master_count, masters[0]->priority, masters[1]->priority);
	else if (master_count == 1)
		check_sm_lids(fabric, masters[0]->port);
	else if (has_finding(KIND_NO_ANSWER) || silent)
		record_failure(
			NULL, NULL,
			"no master subnet manager was seen; it may be on or behind a node "
			"that does not respond");
	else if (!failure_count())
		found(KIND_NO_SM, nowhere, nowhere, "no subnet manager is master%s",
		      count ? ": all are standby or inactive" : "");
	free(managers);
}

/* --- the command -------------------------------------------------------------------- */

static void check_all_counters(const struct mad_fabric *fabric)
{
	uint64_t wanted = MAD_COUNTERS_ERRORS;
	struct mad_fabric_counters *counters;

	if (settings.fec)
		wanted |= MAD_COUNTER_BIT(MAD_COUNTER_FEC_UNCORRECTABLE_BLOCKS);
	counters = read_counters(fabric, wanted, false);
	check_counters(counters, fabric);
	mad_fabric_counters_free(counters);
}

int run_check(void)
{
	struct mad_fabric *before = settings.expect ? load(settings.expect) : NULL;
	struct mad_fabric *fabric = discover(before);

	check_selection(fabric, before);
	told = allocate(fabric->port_count, sizeof(*told));
	is_nameless = allocate(fabric->node_count, sizeof(*is_nameless));
	for (size_t i = 0; i < fabric->problem_count; i++)
		check_problem(fabric, before, i);
	check_managers(fabric);
	check_links(fabric, !has_finding(KIND_NO_SM));
	check_names(fabric);
	if (!cancelled.is_set)
		check_all_counters(fabric);
	if (before)
		check_expected(before, fabric, told);
	print_findings(fabric);
	free(told);
	free(is_nameless);
	return finding_count() ? EXIT_FOUND : failure_count() ? EXIT_FAILED : EXIT_CLEAN;
}
