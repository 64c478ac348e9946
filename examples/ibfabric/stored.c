/* SPDX-License-Identifier: BSD-2-Clause */

/* Stored fabrics: store, diff, and what differs for check --expect, each cause once. */

#include "ibfabric.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

struct mad_fabric *load(const char *path)
{
	FILE *file = strcmp(path, "-") == 0 ? stdin : open_file(path);
	struct mad_fabric *fabric;
	unsigned line = 0;
	int error = mad_fabric_load(file, &fabric, &line);

	if (error == -EBADMSG && line)
		die("%s: line %u is not in the format of store or ibnetdiscover", path, line);
	if (error)
		die("%s: %s", path,
		    error == -EBADMSG ? "the file contains no nodes" : strerror(-error));
	if (file != stdin)
		fclose(file);
	return fabric;
}

/* --- differences -------------------------------------------------------------------- */

struct comparison {
	const struct mad_fabric *before, *after;
	const bool *told;
	bool *gone; /* by the index of a node: it was certainly removed */
};

/* The same port in another fabric, or NULL. */
static const struct mad_fabric_port *find_port(const struct mad_fabric *fabric,
					       const struct mad_fabric_port *port)
{
	const struct mad_fabric_node *node = mad_fabric_find_guid(fabric, port->node->guid);

	return node ? mad_fabric_get_port(node, port->number) : NULL;
}

/* A node that is there in place of another one, at one of its cables; or NULL. */
static const struct mad_fabric_node *find_replaced(const struct mad_fabric_node *node,
						   const struct mad_fabric *own,
						   const struct mad_fabric *other)
{
	for (unsigned i = 0; i <= node->port_count; i++) {
		const struct mad_fabric_port *port = mad_fabric_get_port(node, i), *end;

		end = port && port->peer ? find_port(other, port->peer) : NULL;
		if (end && end->peer && end->peer->node->type == node->type &&
		    !mad_fabric_find_guid(own, end->peer->node->guid))
			return end->peer->node;
	}
	return NULL;
}

/* The same, if the other node has this one in its place, too. */
static const struct mad_fabric_node *find_partner(const struct mad_fabric_node *node,
						  const struct mad_fabric *own,
						  const struct mad_fabric *other)
{
	const struct mad_fabric_node *partner = find_replaced(node, own, other);

	return partner && find_replaced(partner, other, own) == node ? partner : NULL;
}

#define CONNECTION_SIZE (2UL * PLACE_SIZE)

/* Where a node is connected, for example "; it was connected to leaf-1/3". */
static char *connection(const struct mad_fabric_node *node, const struct mad_fabric *other,
			const char *format, char text[CONNECTION_SIZE])
{
	const struct mad_fabric_port *port, *peer = NULL;
	char place[PLACE_SIZE];
	bool is_known = false; /* the peer is in the other fabric, too */

	for (unsigned i = 0; i <= node->port_count && !is_known; i++) {
		port = mad_fabric_get_port(node, i);
		if (!port || !port->peer)
			continue;
		is_known = mad_fabric_find_guid(other, port->peer->node->guid) != NULL;
		if (is_known || !peer)
			peer = port->peer;
	}
	*text = 0;
	if (peer)
		snprintf(text, CONNECTION_SIZE, "%s %s", format,
			 short_place(at_port(peer), place));
	return text;
}

static void report_node(const struct comparison *comparison,
			const struct mad_fabric_node *before,
			const struct mad_fabric_node *after)
{
	char text[CONNECTION_SIZE];
	const struct mad_fabric_node *partner;

	if (!after) {
		if (!find_partner(before, comparison->before, comparison->after))
			found(KIND_NODE_MISSING, at_node(before), nowhere, "is not there%s",
			      connection(before, comparison->after, "; it was connected to",
					 text));
		return;
	}
	partner = find_partner(after, comparison->after, comparison->before);
	if (partner)
		found(KIND_NODE_REPLACED, at_node(after), at_node(partner),
		      "the second is gone, the first is new");
	else
		found(KIND_NODE_NEW, at_node(after), nowhere, "is not in the stored fabric%s",
		      connection(after, comparison->before, "; it is connected to", text));
}

static void report_node_change(const struct mad_fabric_node *before,
			       const struct mad_fabric_node *after)
{
	char was[NAME_SIZE];

	if (strcmp(before->description, after->description) != 0)
		found(KIND_NODE_CHANGED, at_node(after), nowhere, "the name was %s",
		      mad_printable_text(before->description, was, sizeof(was)));
	if (before->port_count != after->port_count)
		found(KIND_NODE_CHANGED, at_node(after), nowhere,
		      "the node had %u ports, now it has %u", before->port_count,
		      after->port_count);
	if (before->system_guid != after->system_guid)
		found(KIND_NODE_CHANGED, at_node(after), nowhere,
		      "the system GUID was 0x%016" PRIx64, before->system_guid);
}

/* The same port in the other fabric, if it has a cable there to a node of both; or NULL. */
static const struct mad_fabric_port *find_moved(const struct mad_fabric_port *port,
						const struct mad_fabric *own,
						const struct mad_fabric *other)
{
	const struct mad_fabric_port *end = find_port(other, port);

	return end && end->peer && mad_fabric_find_guid(own, end->peer->node->guid) ? end
										    : NULL;
}

/* A link that came or went. If one end has another cable in the other fabric, the cable was
 * moved. */
static void report_link(const struct mad_fabric_port *port, const struct mad_fabric *own,
			const struct mad_fabric *other, bool is_new)
{
	const struct mad_fabric_port *end, *far_end;
	char was[PLACE_SIZE], is[PLACE_SIZE];

	if (!is_first_end(port))
		port = port->peer;
	far_end = port->peer;
	end = find_moved(port, own, other);
	if (!end) {
		far_end = port;
		end = find_moved(port->peer, own, other);
	}
	if (!end)
		found(is_new ? KIND_LINK_NEW : KIND_LINK_MISSING, at_port(port),
		      at_port(port->peer),
		      is_new ? "the link is not in the stored fabric"
			     : "the link is not there");
	else if (!is_new)
		found(KIND_LINK_MOVED, at_port(end), at_port(end->peer),
		      "the cable led to %s, now it leads to %s",
		      short_place(at_port(far_end), was), short_place(at_port(end->peer), is));
}

static int mark_gone(const struct mad_fabric_difference *each, void *arg)
{
	const struct comparison *comparison = arg;

	if (each->change == MAD_FABRIC_NODE_REMOVED)
		comparison->gone[each->before_node->index] = true;
	return 0;
}

/* A link of a node that came or went is a part of that. */
static int report(const struct mad_fabric_difference *each, void *arg)
{
	const struct comparison *comparison = arg;
	const struct mad_fabric_port *before = each->before_port, *after = each->after_port;

	switch (each->change) {
	case MAD_FABRIC_NODE_REMOVED:
	case MAD_FABRIC_NODE_ADDED:
		report_node(comparison, each->before_node, each->after_node);
		break;
	case MAD_FABRIC_NODE_CHANGED:
		report_node_change(each->before_node, each->after_node);
		break;
	case MAD_FABRIC_LINK_REMOVED:
		if (before->peer && !comparison->gone[before->node->index] &&
		    !comparison->gone[before->peer->node->index])
			report_link(before, comparison->before, comparison->after, false);
		break;
	case MAD_FABRIC_LINK_ADDED:
		if (after->peer &&
		    mad_fabric_find_guid(comparison->before, after->node->guid) &&
		    mad_fabric_find_guid(comparison->before, after->peer->node->guid))
			report_link(after, comparison->after, comparison->before, true);
		break;
	case MAD_FABRIC_LINK_CHANGED:
		if (!comparison->told[after->index] &&
		    (before->width != after->width || before->speed != after->speed))
			found(KIND_LINK_CHANGED, at_port(after), at_port(after->peer),
			      "ran at %ux %s, now at %ux %s", before->width,
			      mad_link_speed_name(before->speed), after->width,
			      mad_link_speed_name(after->speed));
		break;
	case MAD_FABRIC_PORT_CHANGED:
		if (before->guid && after->guid && before->guid != after->guid)
			found(KIND_PORT_CHANGED, at_port(after), nowhere,
			      "the GUID of the port was 0x%016" PRIx64
			      ", now it is 0x%016" PRIx64,
			      before->guid, after->guid);
		break;
	}
	return 0;
}

void report_differences(const struct mad_fabric *before, const struct mad_fabric *after,
			const bool *told)
{
	struct comparison comparison = {before, after, told,
					allocate(before->node_count, sizeof(bool))};

	if (mad_fabric_compare(before, after, mark_gone, &comparison) < 0 ||
	    mad_fabric_compare(before, after, report, &comparison) < 0)
		die("out of memory");
	free(comparison.gone);
}

/* --- the commands ------------------------------------------------------------------- */

int run_diff(void)
{
	const char *path = settings.arguments[0];
	struct mad_fabric *before, *after;

	if (!path || (settings.arguments[1] && settings.arguments[2]))
		die("diff: expected one or two files; see ibfabric diff --help");
	before = load(path);
	path = settings.arguments[1];
	settings.arguments += path ? 2 : 1;
	after = path ? load(path) : discover(before);
	report_differences(before, after, allocate(after->port_count, sizeof(bool)));
	return print_findings(after);
}

int run_store(void)
{
	const char *path = settings.arguments[0];
	int error, descriptor = -1;
	FILE *file = stdout;
	struct mad_fabric *fabric;
	char *name = NULL;

	if (path && settings.arguments[1])
		die("store: more than one file given; see ibfabric store --help");
	settings.arguments += path != NULL;
	fabric = discover(NULL);
	if (path && is_over())
		die("%s is not written: %s ended the discovery", path, why_over());
	/* the file is replaced when the new one is written as a whole */
	if (path && asprintf(&name, "%s.XXXXXX", path) < 0)
		die("out of memory");
	if (path && ((descriptor = mkstemp(name)) < 0 || !(file = fdopen(descriptor, "w"))))
		die("%s: %s", name, strerror(errno));
	error = mad_fabric_store(fabric, file, NULL);
	print_failures(file, "# not known: ");
	if (path) {
		fchmod(descriptor, 0644);
		if (fflush(file) || fsync(descriptor) || ferror(file) || rename(name, path))
			error = -errno;
	}
	if (error && name)
		unlink(name);
	if (error && path)
		die("%s: %s", path, strerror(-error));
	print_failures(stderr, "ibfabric: not known: ");
	return failure_count() ? EXIT_FAILED : EXIT_CLEAN;
}
