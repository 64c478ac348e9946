/* SPDX-License-Identifier: BSD-2-Clause */

/* check --expect: what differs from a stored fabric, each cause once. */

#include "ibfabric.h"

struct change {
	struct mad_fabric_difference difference;
	bool is_told;
	bool is_between_known; /* of a link between two nodes that both fabrics have */
};

static struct change *changes;
static size_t change_count;

static int collect(const struct mad_fabric_difference *difference, void *arg)
{
	(void)arg;
	changes = reallocarray(changes, change_count + 1, sizeof(*changes));
	if (!changes)
		die("out of memory");
	changes[change_count++] = (struct change){.difference = *difference};
	return 0;
}

static bool is_same_port(const struct mad_fabric_port *a, const struct mad_fabric_port *b)
{
	return a->number == b->number && a->node->guid == b->node->guid;
}

/* The place where a node is connected, for example "leaf-1/3"; "" without a link. */
static char *neighbour(const struct mad_fabric_node *node, char text[PLACE_SIZE])
{
	*text = 0;
	for (unsigned i = 0; i <= node->port_count; i++) {
		const struct mad_fabric_port *port = mad_fabric_get_port(node, i);

		if (port && port->peer)
			return short_place(port->peer, text);
	}
	return text;
}

/* A node that is there in place of another one: with its name, or at its only cable. */
static void pair_nodes(struct change *removed)
{
	const struct mad_fabric_node *before = removed->difference.before_node;
	char was[PLACE_SIZE], is[PLACE_SIZE];

	neighbour(before, was);
	for (size_t i = 0; i < change_count && !removed->is_told; i++) {
		const struct mad_fabric_node *after = changes[i].difference.after_node;

		if (changes[i].difference.change != MAD_FABRIC_NODE_ADDED ||
		    changes[i].is_told || before->type != after->type)
			continue;
		if (strcmp(before->description, after->description) != 0 &&
		    (!*was || strcmp(was, neighbour(after, is)) != 0))
			continue;
		changes[i].is_told = removed->is_told = true;
		found(KIND_NODE_REPLACED, at_node(after), at_node(before),
		      "the second is gone, the first is new");
	}
}

/* Whether a link came or went between two nodes that both fabrics have: other links come and go
 * with their nodes. */
static bool is_between_known(const struct mad_fabric_difference *each)
{
	const struct mad_fabric_port *port =
		each->change == MAD_FABRIC_LINK_ADDED     ? each->after_port
		: each->change == MAD_FABRIC_LINK_REMOVED ? each->before_port
							  : NULL;

	if (!port || !port->peer)
		return false;
	for (size_t i = 0; i < change_count; i++) {
		const struct mad_fabric_difference *other = &changes[i].difference;
		const struct mad_fabric_node *node =
			other->change == MAD_FABRIC_NODE_ADDED     ? other->after_node
			: other->change == MAD_FABRIC_NODE_REMOVED ? other->before_node
								   : NULL;

		if (node &&
		    (node->guid == port->node->guid || node->guid == port->peer->node->guid))
			return false;
	}
	return true;
}

/* The end of a link that another link has, too; NULL: they share none. */
static const struct mad_fabric_port *shared_end(const struct mad_fabric_port *link,
						const struct mad_fabric_port *other)
{
	if (is_same_port(link, other) || is_same_port(link, other->peer))
		return link;
	if (is_same_port(link->peer, other) || is_same_port(link->peer, other->peer))
		return link->peer;
	return NULL;
}

/* A cable whose one end is where it was. */
static void pair_links(struct change *removed)
{
	const struct mad_fabric_port *before = removed->difference.before_port;
	char was[PLACE_SIZE], is[PLACE_SIZE];

	for (size_t i = 0; i < change_count && !removed->is_told; i++) {
		const struct mad_fabric_port *after = changes[i].difference.after_port, *same;

		if (changes[i].difference.change != MAD_FABRIC_LINK_ADDED ||
		    changes[i].is_told || !changes[i].is_between_known ||
		    !(same = shared_end(after, before)))
			continue;
		changes[i].is_told = removed->is_told = true;
		found(KIND_LINK_MOVED, at_port(same), at_port(same->peer),
		      "the cable led to %s, now it leads to %s",
		      short_place(is_same_port(before, same) ? before->peer : before, was),
		      short_place(same->peer, is));
	}
}

static void report_node_change(const struct mad_fabric_node *before,
			       const struct mad_fabric_node *after)
{
	char was[NAME_SIZE], text[2 * NAME_SIZE];
	size_t used = 0;

	if (strcmp(before->description, after->description) != 0)
		used += (size_t)snprintf(
			text, sizeof(text), ", the name was %s",
			mad_printable_text(before->description, was, sizeof(was)));
	if (before->port_count != after->port_count)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 ", the node had %u ports, now it has %u",
					 before->port_count, after->port_count);
	if (before->system_guid != after->system_guid)
		snprintf(text + used, sizeof(text) - used,
			 ", the system GUID was 0x%016" PRIx64, before->system_guid);
	else if (!used)
		return; /* the subnet manager chooses LIDs */
	found(KIND_NODE_CHANGED, at_node(after), nowhere, "%s", text + 2);
}

static void report_rate(const struct mad_fabric_port *before,
			const struct mad_fabric_port *after, const bool *told)
{
	if (told[after->index])
		return; /* that finding has the rate */
	if (before->width != after->width || before->speed != after->speed)
		found(KIND_LINK_CHANGED, at_port(after),
		      after->peer ? at_port(after->peer) : nowhere,
		      "ran at %ux %s, now at %ux %s", before->width,
		      mad_link_speed_name(before->speed), after->width,
		      mad_link_speed_name(after->speed));
}

static void report_link(const struct change *change, enum kind kind,
			const struct mad_fabric_port *port, const char *text)
{
	if (!change->is_between_known)
		return;
	if (!is_first_end(port))
		port = port->peer;
	found(kind, at_port(port), at_port(port->peer), "%s", text);
}

static void report_change(const struct change *change, const bool *told)
{
	const struct mad_fabric_difference *each = &change->difference;
	const struct mad_fabric_port *before = each->before_port, *after = each->after_port;
	char place[PLACE_SIZE];

	switch (each->change) {
	case MAD_FABRIC_NODE_REMOVED:
		neighbour(each->before_node, place);
		found(KIND_NODE_MISSING, at_node(each->before_node), nowhere,
		      *place ? "is not there; it was connected to %s" : "is not there%s",
		      place);
		break;
	case MAD_FABRIC_NODE_ADDED:
		neighbour(each->after_node, place);
		found(KIND_NODE_NEW, at_node(each->after_node), nowhere,
		      "is not in the stored fabric%s%s", *place ? "; it is connected to " : "",
		      place);
		break;
	case MAD_FABRIC_NODE_CHANGED:
		report_node_change(each->before_node, each->after_node);
		break;
	case MAD_FABRIC_LINK_REMOVED:
		report_link(change, KIND_LINK_MISSING, before, "the link is not there");
		break;
	case MAD_FABRIC_LINK_ADDED:
		report_link(change, KIND_LINK_NEW, after,
			    "the link is not in the stored fabric");
		break;
	case MAD_FABRIC_LINK_CHANGED:
		report_rate(before, after, told);
		break;
	case MAD_FABRIC_PORT_CHANGED:
		if (before->guid && after->guid && before->guid != after->guid)
			found(KIND_PORT_CHANGED, at_port(after), nowhere,
			      "the GUID of the port was 0x%016" PRIx64
			      ", now it is 0x%016" PRIx64,
			      before->guid, after->guid);
		break;
	}
}

void check_expected(const struct mad_fabric *before, const struct mad_fabric *fabric,
		    const bool *told)
{
	int error = mad_fabric_compare(before, fabric, collect, NULL);

	if (error < 0)
		die("%s", strerror(-error));
	for (size_t i = 0; i < change_count; i++)
		changes[i].is_between_known = is_between_known(&changes[i].difference);
	for (size_t i = 0; i < change_count; i++)
		if (changes[i].difference.change == MAD_FABRIC_NODE_REMOVED)
			pair_nodes(&changes[i]);
	for (size_t i = 0; i < change_count; i++)
		if (changes[i].difference.change == MAD_FABRIC_LINK_REMOVED &&
		    changes[i].is_between_known)
			pair_links(&changes[i]);
	for (size_t i = 0; i < change_count; i++)
		if (!changes[i].is_told)
			report_change(&changes[i], told);
	free(changes);
}
