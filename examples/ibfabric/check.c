/* SPDX-License-Identifier: BSD-2-Clause */

/* check: what a discovery shows, FEC, names and the subnet managers. */

#include "ibfabric.h"

#include <infiniband/mad_errors.h>

#include <errno.h>
#include <fnmatch.h>

static bool *told;        /* by the index of a port: its link has a finding */
static bool *is_nameless; /* by the index of a node: the description was not read */

static void tell_link(const struct mad_fabric_port *port)
{
	told[port->index] = true;
	if (port->peer)
		told[port->peer->index] = true;
}

/* --- problems of the discovery --------------------------------------------------------- */

/*
 * A silent node without a known GUID may be behind several ports. If a LID that no other node
 * has is forwarded through two ports, they lead to one node, and have the lower identity.
 */
static uint64_t identify(const struct mad_fabric *fabric, const struct mad_fabric_port *port)
{
	static uint64_t of_lid[UINT16_MAX + 1], last;
	static struct attribute *blocks; /* of the forwarding table of this node */
	static const struct mad_fabric_node *node;
	const uint8_t *info = port->node->switch_info;
	unsigned top = info ? (unsigned)mad_read_field(info, 0, IB_SW_LINEAR_FDB_TOP_F) : 0;
	unsigned count = top / IB_SMP_DATA_SIZE + 1;
	uint64_t identity = ++last;

	if (node != port->node) {
		free(blocks);
		blocks = allocate(count, sizeof(*blocks));
		for (unsigned i = 0; i < count; i++)
			blocks[i] = (struct attribute){.port = port, .modifier = i};
		read_attributes(blocks, top ? count : 0, MAD_LINEAR_FORWARDING_TABLE);
		node = port->node;
	}
	for (unsigned lid = 1; lid <= top; lid++) {
		const struct attribute *block = &blocks[lid / IB_SMP_DATA_SIZE];

		if (block->error || block->data[lid % IB_SMP_DATA_SIZE] != port->number ||
		    mad_fabric_find_lid(fabric, lid))
			continue;
		if (!of_lid[lid])
			of_lid[lid] = identity;
		else if (of_lid[lid] < identity)
			identity = of_lid[lid];
	}
	return identity;
}

/* A node behind a port that does not respond: with its name if the stored fabric knows it. */
static void check_silent(const struct mad_fabric *fabric, const struct mad_fabric *before,
			 const struct mad_fabric_problem *problem)
{
	const struct mad_fabric_node *known =
		before && problem->guid ? mad_fabric_find_guid(before, problem->guid) : NULL;

	if (known && problem->count > 1)
		found_of(problem->guid, KIND_NO_RESPONSE, at_node(known),
			 at_port(problem->port),
			 "the node does not respond; %u more port%s lead%s to it",
			 problem->count - 1, problem->count == 2 ? "" : "s",
			 problem->count == 2 ? "s" : "");
	else if (known)
		found_of(problem->guid, KIND_NO_RESPONSE, at_node(known),
			 at_port(problem->port), "the node does not respond");
	else if (problem->port && is_selected(at_port(problem->port)))
		found_of(identify(fabric, problem->port), KIND_NO_RESPONSE,
			 at_port(problem->port), nowhere,
			 "the node at the other end does not respond");
}

static void check_problem(const struct mad_fabric *fabric, const struct mad_fabric *before,
			  const struct mad_fabric_problem *problem)
{
	static const struct {
		enum kind kind;
		const char *text;
	} others[] = {
		[MAD_FABRIC_PROBLEM_PEER] = {KIND_CONTRADICTION,
					     "the two ports disagree about their link"},
		[MAD_FABRIC_PROBLEM_PORT_COUNT] = {KIND_CONTRADICTION,
						   "the number of ports is impossible"},
		[MAD_FABRIC_PROBLEM_NODE_TYPE] = {KIND_CONTRADICTION,
						  "the node is not a CA, switch or router"},
		[MAD_FABRIC_PROBLEM_LOOP] = {KIND_LOOP,
					     "the cable leads from the node to itself"},
		[MAD_FABRIC_PROBLEM_LINK] = {KIND_LINK_MISMATCH,
					     "the two ends differ in state, width, speed or "
					     "MTU"},
	};
	struct place place = problem->port ? at_port(problem->port) : at_node(problem->node);
	struct place other = problem->other_port ? at_port(problem->other_port)
						 : at_node(problem->other_node);
	bool is_node = problem->kind == MAD_FABRIC_PROBLEM_NODE;
	char text[MAD_ERROR_TEXT_SIZE] = "malformed";

	if (problem->error == -EIO)
		mad_status_text(IB_SMI_DIRECT_CLASS, problem->status, text, sizeof(text));
	switch (problem->kind) {
	case MAD_FABRIC_PROBLEM_NODE:
	case MAD_FABRIC_PROBLEM_BEHIND:
		if (is_node && problem->node)
			is_nameless[problem->node->index] = true;
		if (problem->error == -EIO || problem->error == -EBADMSG)
			found(KIND_BAD_RESPONSE, place, nowhere, "bad response%s: %s",
			      is_node ? "" : " from the node at the other end", text);
		else if (problem->error == -ETIMEDOUT && is_node)
			found(KIND_NO_RESPONSE, place, nowhere,
			      "no response to %u requests after the first", problem->count);
		else if (problem->error == -ETIMEDOUT)
			check_silent(fabric, before, problem);
		break;
	case MAD_FABRIC_PROBLEM_GUID:
		found_of(problem->guid, KIND_DUPLICATE_GUID, place, other,
			 "the GUID 0x%016" PRIx64 " appears twice", problem->guid);
		break;
	case MAD_FABRIC_PROBLEM_LID:
		found(KIND_DUPLICATE_LID, place, other, "both have the LID %u",
		      problem->port ? problem->port->lid : 0);
		break;
	case MAD_FABRIC_PROBLEM_ROUTE_TOO_LONG: /* failures */
	case MAD_FABRIC_PROBLEM_TOO_MANY:
		break;
	default:
		if (problem->kind == MAD_FABRIC_PROBLEM_LINK && problem->port)
			tell_link(problem->port);
		found(others[problem->kind].kind, place, other, "%s",
		      others[problem->kind].text);
	}
}

/* --- links ------------------------------------------------------------------------ */

/* The port whose capabilities are those of a port. */
static const struct mad_fabric_port *end_port(const struct mad_fabric_port *port)
{
	return port->node->type == IB_NODE_SWITCH ? mad_fabric_get_port(port->node, 0) : port;
}

/* Whether an end is set to less than both support; otherwise the link itself is bad. */
static bool describe_setting(const struct mad_fabric_port *port, char *text, size_t size)
{
	const struct mad_fabric_port *end = end_port(port);
	struct mad_link link = {0};
	char place[PLACE_SIZE];

	if (port->info)
		mad_link_decode(&link, sizeof(link), port->info,
				end && end != port ? end->info : NULL, port->mlnx_ext_info);
	if (link.width_enabled < port->width_possible && port->width < port->width_possible)
		snprintf(text, size, ": %s is set to %ux", short_place(at_port(port), place),
			 link.width_enabled);
	else if (link.speed_enabled < port->speed_possible &&
		 port->speed < port->speed_possible)
		snprintf(text, size, ": %s is set to %s", short_place(at_port(port), place),
			 mad_link_speed_name(link.speed_enabled));
	return *text;
}

static void check_link(const struct mad_fabric_port *port, bool expects_active)
{
	char setting[2 * PLACE_SIZE] = "";

	if (told[port->index] || !port->width)
		return;
	if (port->width < port->width_possible || port->speed < port->speed_possible) {
		if (!describe_setting(port, setting, sizeof(setting)))
			describe_setting(port->peer, setting, sizeof(setting));
		tell_link(port);
		found(KIND_SLOW_LINK, at_port(port), at_port(port->peer),
		      "runs at %ux %s, both ends support %ux %s%s", port->width,
		      mad_link_speed_name(port->speed), port->width_possible,
		      mad_link_speed_name(port->speed_possible), setting);
	}
	if (expects_active && port->info && port->state != MAD_PORT_ACTIVE)
		found(KIND_NOT_ACTIVE, at_port(port), at_port(port->peer), "is in state %s",
		      state_name(port));
}

static void check_links(const struct mad_fabric *fabric, bool expects_active)
{
	const struct mad_fabric_port *port = NULL;

	while ((port = mad_fabric_next_port(fabric, port)))
		if (port->peer && is_first_end(port))
			check_link(port, expects_active);
		else if (!port->peer && port->state == MAD_PORT_DOWN &&
			 (port->physical_state == MAD_PHYSICAL_TRAINING ||
			  port->physical_state == MAD_PHYSICAL_ERROR_RECOVERY))
			found(KIND_NOT_ACTIVE, at_port(port), nowhere,
			      "the link does not come up, although there is a signal");
}

/* --- forward error correction ---------------------------------------------------------- */

/* PortInfoExtended (IBA 14.2.5.19): the mode in use, then the supported and the enabled ones
 * of each speed from FDR to NDR. The bit of a mode is its number; 0 is no FEC. */
#define FEC_IS_KNOWN(data)         ((data)[3] & 1)
#define FEC_ACTIVE(data)           ((data)[5])
#define FEC_SUPPORTED(data, speed) ((unsigned)(data)[4 * ((speed)-MAD_SPEED_FDR) + 7] & ~1U)
#define FEC_ENABLED(data, speed)   ((unsigned)(data)[4 * ((speed)-MAD_SPEED_FDR) + 9] & ~1U)

static bool has_fec(const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *end = end_port(port);

	return port->speed >= MAD_SPEED_FDR && port->speed <= MAD_SPEED_NDR && end &&
	       end->info && end->capability_mask & MAD_PORT_CAP_CAPABILITY_MASK2 &&
	       mad_read_field(end->info, 0, IB_PORT_CAPMASK2_F) &
		       MAD_PORT_CAP2_PORT_INFO_EXTENDED;
}

static const char *fec_name(unsigned mode)
{
	static const char *const modes[] = {"no FEC", "Firecode FEC", "RS-FEC",
					    "low-latency RS-FEC"};

	return mode < sizeof(modes) / sizeof(modes[0]) ? modes[mode] : "another FEC";
}

static void check_fec_of_link(const struct attribute *one, const struct attribute *other)
{
	unsigned speed = one->port->speed;
	bool is_on = FEC_ENABLED(one->data, speed),
	     other_is_on = FEC_ENABLED(other->data, speed);

	if (one->error || other->error || !FEC_IS_KNOWN(one->data) ||
	    !FEC_IS_KNOWN(other->data) || !FEC_SUPPORTED(one->data, speed) ||
	    !FEC_SUPPORTED(other->data, speed))
		return;
	if (FEC_ACTIVE(one->data) != FEC_ACTIVE(other->data))
		found(KIND_FEC_MISMATCH, at_port(one->port), at_port(other->port),
		      "the first has %s, the second %s", fec_name(FEC_ACTIVE(one->data)),
		      fec_name(FEC_ACTIVE(other->data)));
	else if (is_on != other_is_on)
		found(KIND_FEC_MISMATCH, at_port(one->port), at_port(other->port),
		      "FEC is switched off at the %s, although both support it",
		      is_on ? "second" : "first");
}

static void check_fec(const struct mad_fabric *fabric)
{
	const struct mad_fabric_port *port = NULL;
	struct attribute *ends = NULL; /* two for each link */
	size_t count = 0;

	while ((port = mad_fabric_next_port(fabric, port))) {
		if (!port->peer || !is_first_end(port) || !is_link_selected(port) ||
		    !has_fec(port) || !has_fec(port->peer))
			continue;
		ends = extend(ends, count, sizeof(*ends));
		ends[count++] = (struct attribute){.port = port, .modifier = port->number};
		ends = extend(ends, count, sizeof(*ends));
		ends[count++] =
			(struct attribute){.port = port->peer, .modifier = port->peer->number};
	}
	read_attributes(ends, count, MAD_PORT_INFO_EXTENDED);
	for (size_t i = 0; i < count; i += 2)
		check_fec_of_link(&ends[i], &ends[i + 1]);
	for (size_t i = 0; i < count; i++)
		if (ends[i].error)
			record_failure(at_port(ends[i].port),
				       "its FEC modes could not be read: %s",
				       error_text(ends[i].error));
	free(ends);
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

static int compare_names(const void *a, const void *b)
{
	const struct mad_fabric_node *first = *(const struct mad_fabric_node *const *)a;
	const struct mad_fabric_node *second = *(const struct mad_fabric_node *const *)b;
	char name_a[NAME_SIZE], name_b[NAME_SIZE];
	int order = strcmp(node_name(first, name_a), node_name(second, name_b));

	return order ? order : compare_places(at_node(first), at_node(second));
}

static void check_names(const struct mad_fabric *fabric)
{
	const struct mad_fabric_node **nodes = sorted_nodes(fabric);
	char first[NAME_SIZE] = "", name[NAME_SIZE];
	size_t begin = 0;

	qsort(nodes, fabric->node_count, sizeof(void *), compare_names);
	for (size_t i = 0; i < fabric->node_count; i++) {
		if (strcmp(node_name(nodes[i], name), first) != 0) {
			strcpy(first, name);
			begin = i;
		}
		/* each switch has one of these nodes */
		if (fnmatch("*Mellanox Technologies Aggregation Node*", name, 0) == 0 ||
		    is_nameless[nodes[i]->index])
			continue;
		if (!nodes[i]->description[strspn(nodes[i]->description, " ")] &&
		    !has_own_name(nodes[i]))
			found(KIND_FACTORY_NAME, at_node(nodes[i]), nowhere,
			      "the node has no name");
		else if (is_factory_name(name))
			found(KIND_FACTORY_NAME, at_node(nodes[i]), nowhere,
			      "the name is that of an unnamed device");
		else if (i > begin)
			found(KIND_DUPLICATE_NAME, at_node(nodes[begin]), at_node(nodes[i]),
			      "both have this name");
	}
	free(nodes);
}

/* --- subnet managers ---------------------------------------------------------------- */

#define SM_MASTER 3 /* SMInfo:SMState */

/* Ports that another subnet manager has configured than the master. */
static void check_sm_lids(const struct mad_fabric *fabric, const struct mad_fabric_port *master)
{
	const struct mad_fabric_port *port = NULL, *first = NULL;
	unsigned count = 0;

	while (master->lid && (port = mad_fabric_next_port(fabric, port))) {
		bool has_lid =
			port->node->type == IB_NODE_SWITCH ? !port->number : port->peer != NULL;

		if (!has_lid || !port->info || port->state < MAD_PORT_ARMED ||
		    port->sm_lid >> master->lmc == master->lid >> master->lmc)
			continue;
		if (!count++)
			first = port;
	}
	if (count)
		found(KIND_OTHER_SM, at_port(first), at_port(master),
		      "%u port%s the SM LID %u, but the LID of the master is %u", count,
		      count == 1 ? " has" : "s have", first->sm_lid, master->lid);
}

static void check_managers(const struct mad_fabric *fabric)
{
	const struct mad_fabric_port *port = NULL, *masters[2] = {NULL};
	struct attribute *managers = NULL;
	unsigned priorities[2] = {0};
	size_t count = 0, master_count = 0, silent_count = 0;

	while ((port = mad_fabric_next_port(fabric, port)))
		if (port->capability_mask & MAD_PORT_CAP_SM) {
			managers = extend(managers, count, sizeof(*managers));
			managers[count++] = (struct attribute){.port = port};
		}
	read_attributes(managers, count, MAD_SM_INFO);
	for (size_t i = 0; i < count; i++)
		if (managers[i].error == -ETIMEDOUT && ++silent_count)
			found_of(managers[i].port->node->guid, KIND_NO_RESPONSE,
				 at_port(managers[i].port), nowhere,
				 "the subnet manager does not respond");
		else if (managers[i].error && ++silent_count)
			record_failure(at_port(managers[i].port),
				       "the state of its subnet manager could not be read: %s",
				       error_text(managers[i].error));
		else if (mad_read_field(managers[i].data, 0, IB_SMINFO_STATE_F) == SM_MASTER &&
			 master_count++ < 2) {
			masters[master_count - 1] = managers[i].port;
			priorities[master_count - 1] =
				(unsigned)mad_read_field(managers[i].data, 0, IB_SMINFO_PRIO_F);
		}
	free(managers);
	if (master_count > 1)
		found(KIND_TWO_MASTERS, at_port(masters[0]), at_port(masters[1]),
		      "%zu subnet managers are master, these two with priorities %u and %u",
		      master_count, priorities[0], priorities[1]);
	else if (master_count == 1)
		check_sm_lids(fabric, masters[0]);
	else if (has_finding(KIND_NO_RESPONSE) || silent_count)
		record_failure(nowhere, "no master subnet manager was seen; it may be on or "
					"behind a node that does not respond");
	else if (!failure_count())
		found(KIND_NO_SM, nowhere, nowhere, "no subnet manager is master%s",
		      count ? ": all are standby or inactive" : "");
}

/* --- the command -------------------------------------------------------------------- */

int run_check(void)
{
	struct mad_fabric *before = settings.expect ? load(settings.expect) : NULL;
	struct mad_fabric *fabric = discover(before);

	told = allocate(fabric->port_count, sizeof(*told));
	is_nameless = allocate(fabric->node_count, sizeof(*is_nameless));
	for (size_t i = 0; i < fabric->problem_count; i++)
		check_problem(fabric, before, mad_fabric_get_problem(fabric, i));
	check_managers(fabric);
	check_links(fabric, !has_finding(KIND_NO_SM));
	check_fec(fabric);
	check_names(fabric);
	check_counters(fabric);
	if (before)
		report_differences(before, fabric, told);
	return print_findings(fabric);
}
