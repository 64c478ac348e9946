/* SPDX-License-Identifier: BSD-2-Clause */

/* Views: the nodes that a program is attached to, kept up to date as the fabric changes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "remove_tree.h"
#include "view.h"

static void view_free(struct view *view)
{
	free(view->nodes);
	free(view->ports);
	free(view);
}

void views_free(struct view *views)
{
	while (views) {
		struct view *next = views->next;

		view_free(views);
		views = next;
	}
}

struct view *view_by_number(struct view *views, uint32_t number)
{
	while (views && views->number != number)
		views = views->next;
	return views;
}

static int add_node(const struct fabric *fabric, struct view *view, const char *name)
{
	uint32_t node = graph_find(&fabric->graph, name);
	uint32_t *more;

	if (node == NONE)
		return -ENOENT;
	more = realloc(view->nodes, (view->node_count + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	view->nodes = more;
	view->nodes[view->node_count++] = node;
	return 0;
}

/* First tries "NODE" as a whole, since a name may have commas, then its parts. */
static int read_nodes(const struct fabric *fabric, struct view *view, const char *nodes,
		      char *why)
{
	int error = add_node(fabric, view, nodes);
	const char *name = nodes;

	while (error == -ENOENT) {
		size_t length = strcspn(name, ",");
		char part[MAX_NAME + 1];

		if (!length) {
			snprintf(why, 256, "empty node name in \"%.200s\"", nodes);
			return -ENOENT;
		}
		snprintf(part, sizeof(part), "%.*s", (int)length, name);
		error = length > MAX_NAME ? -ENOENT : add_node(fabric, view, part);
		if (error == -ENOENT)
			snprintf(why, 256, "no node \"%s\"", part);
		if (error)
			return error;
		name += length;
		if (*name++ != ',')
			return 0;
		error = -ENOENT;
	}
	return error;
}

int view_check_nodes(const struct fabric *fabric, const char *nodes, char *why)
{
	struct view view = {0};
	int error = read_nodes(fabric, &view, nodes, why);

	free(view.nodes);
	return error;
}

static int add_ports(const struct fabric *fabric, struct view *view)
{
	for (unsigned int device = 0; device < view->node_count; device++) {
		const struct graph_node *node = hardware(fabric, view->nodes[device]);
		bool of_switch = node->type == NODE_SWITCH;
		unsigned int first = of_switch ? 0 : 1;
		unsigned int last = of_switch ? 0 : node->port_count;
		struct view_port *more =
			realloc(view->ports, (view->port_count + last + 1) * sizeof(*more));

		if (!more)
			return -ENOMEM;
		view->ports = more;
		for (unsigned int number = first; number <= last; number++)
			view->ports[view->port_count++] = (struct view_port){
				.port = node->first_port + number, .device = device};
	}
	return 0;
}

static bool same_nodes(const struct view *a, const struct view *b)
{
	return a->node_count == b->node_count && a->node_count &&
	       memcmp(a->nodes, b->nodes, a->node_count * sizeof(*a->nodes)) == 0;
}

static void write_all(struct fabric *fabric, struct view *view)
{
	view->error = 0;
	view_write_classes(view);
	for (unsigned int device = 0; device < view->node_count; device++) {
		view_write_device(fabric, view, device);
		view_show_device(view, device, !fabric->nodes[view->nodes[device]].removed);
	}
	view_write_counters(fabric, view, true);
}

static int write_view(struct fabric *fabric, struct view *view)
{
	if (mkdir(view->folder, 0700))
		return -errno;
	write_all(fabric, view);
	return view->error;
}

const struct view *views_incomplete(const struct view *views)
{
	while (views && !views->error)
		views = views->next;
	return views;
}

void views_repair(struct fabric *fabric, struct view *views)
{
	for (struct view *view = views; view; view = view->next) {
		if (!view->error)
			continue;
		view->repairing = true;
		write_all(fabric, view);
		view->repairing = false;
	}
}

int view_find(struct fabric *fabric, struct view **views, const char *folder, const char *nodes,
	      struct view **found, char *why)
{
	struct view *view = calloc(1, sizeof(*view));
	int error;

	if (!view)
		return -ENOMEM;
	error = read_nodes(fabric, view, nodes, why);
	for (struct view *other = *views; !error && other; other = other->next)
		if (same_nodes(other, view)) {
			view_free(view);
			*found = other;
			return 0;
		}
	view->number = *views ? (*views)->number + 1 : 1;
	snprintf(view->folder, sizeof(view->folder), "%s/view-%u", folder, view->number);
	if (!error)
		error = add_ports(fabric, view);
	if (!error) {
		error = write_view(fabric, view);
		if (error)
			remove_tree(view->folder);
	}
	if (error) {
		view_free(view);
		return error;
	}
	view->next = *views;
	*views = view;
	*found = view;
	return 0;
}

void views_port_changed(struct fabric *fabric, struct view *views, uint32_t port)
{
	for (struct view *view = views; view; view = view->next)
		for (unsigned int i = 0; i < view->port_count; i++)
			if (view->ports[i].port == port)
				view_write_port(fabric, view, &view->ports[i], false);
}

void views_device_changed(struct view *views, uint32_t node, bool present)
{
	for (struct view *view = views; view; view = view->next)
		for (unsigned int device = 0; device < view->node_count; device++)
			if (view->nodes[device] == node)
				view_show_device(view, device, present);
}
