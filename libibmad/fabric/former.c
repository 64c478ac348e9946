/* SPDX-License-Identifier: BSD-2-Clause */

#include "fabric/former.h"

#include "fabric/graph.h"

#include <errno.h>

struct former {
	uint64_t guid; /* 0: not known */
	const char *description;
	size_t number; /* of the node among all that the previous fabric knows */
};

/* The nodes of a fabric have the first numbers, those that did not respond the next ones. */
static struct former former_node(const struct mad_fabric_node *node)
{
	return (struct former){node->guid, node->description, node->index};
}

/* Who was behind a port. */
static struct former find_former(const struct mad_fabric *previous,
				 const struct mad_fabric_port *port)
{
	const struct mad_fabric_node *node = graph_find_node(previous, port->node->guid);
	const struct mad_fabric_port *same = mad_fabric_port(node, port->number);
	const struct mad_fabric_failure *failure;
	size_t index;

	if (!same)
		return (struct former){0};
	if (same->peer)
		return former_node(same->peer->node);
	failure = graph_failure_behind(previous, same, &index);
	if (!failure)
		return (struct former){0};
	node = graph_find_node(previous, failure->guid); /* it may have responded elsewhere */
	if (node)
		return former_node(node);
	return (struct former){failure->guid, failure->description,
			       mad_fabric_node_count(previous) + index};
}

/* Where the index of the node's failure is noted, plus 1; NULL without memory. */
static size_t *note_of(struct mad_fabric_discovery *discovery, const struct former *former)
{
	const struct mad_fabric *previous = discovery->options.previous;

	if (!discovery->former_failures)
		discovery->former_failures = calloc(mad_fabric_node_count(previous) +
							    mad_fabric_failure_count(previous),
						    sizeof(size_t));
	return discovery->former_failures ? &discovery->former_failures[former->number] : NULL;
}

int former_add_failure(struct mad_fabric_discovery *discovery,
		       struct mad_fabric_failure *failure)
{
	struct former former = {0};
	size_t *note, index;
	int err;

	if (discovery->options.previous)
		former = find_former(discovery->options.previous, failure->behind);
	if (!former.guid)
		return graph_add_failure(discovery->fabric, failure, NULL);
	note = note_of(discovery, &former);
	if (!note)
		return -ENOMEM;
	if (*note)
		return graph_add_failure_behind(discovery->fabric, *note - 1, failure->behind);
	failure->guid = former.guid;
	failure->description = graph_store_text(discovery->fabric, former.description);
	if (!failure->description)
		return -ENOMEM;
	err = graph_add_failure(discovery->fabric, failure, &index);
	*note = err ? 0 : index + 1;
	return err;
}
