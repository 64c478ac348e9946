/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Any text as a fabric, and as a node-name-map. A fabric that was loaded can be stored; the
 * stored text loads as the same fabric. It can also be stored with other names, or as if it had
 * been discovered.
 */

#include "fuzz.h"

#include "../../libibmad/fabric/graph.h"

#include <infiniband/mad_fabric_text.h>

#include <errno.h>

/* Nodes with one GUID that mad_fabric_load() looks at. */
#define MAX_SAME_GUID 16

static void check_port(const struct mad_fabric *fabric, const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *peer = port->peer;

	check(port->node == mad_fabric_get_node(fabric, port->node->index));
	check(mad_fabric_get_port(port->node, port->number) == port);
	check(port->speed <= MAD_SPEED_XDR && port->width <= 12 && port->lmc <= 7);
	check(!peer || mad_fabric_get_port(peer->node, peer->number) == peer);
}

static void check_same(const struct mad_fabric *a, const struct mad_fabric *b)
{
	const struct mad_fabric_port *one = NULL, *other = NULL;
	const struct mad_fabric_node *x, *y;

	check(a->node_count == b->node_count);
	check(a->port_count == b->port_count);
	while ((one = mad_fabric_next_port(a, one))) {
		other = mad_fabric_next_port(b, other);
		x = one->node;
		y = other->node;
		check(x->guid == y->guid && x->system_guid == y->system_guid);
		check(x->type == y->type && x->enhanced_port0 == y->enhanced_port0);
		check(x->vendor_id == y->vendor_id && x->device_id == y->device_id);
		check(x->lid == y->lid && x->lmc == y->lmc);
		check(one->number == other->number && one->guid == other->guid);
		check(one->width == other->width && one->speed == other->speed);
		check(one->lid == other->lid && one->lmc == other->lmc);
		check(!one->peer == !other->peer);
		check(!one->peer || one->peer->index == other->peer->index);
	}
}

/* fmemopen() takes the address of bytes that it may write, and does not write to them. */
static FILE *open_text(const void *text, size_t size)
{
	union {
		const void *read;
		void *write;
	} bytes = {.read = text};
	FILE *file = fmemopen(bytes.write, size, "r");

	check(file != NULL);
	return file;
}

static char *store(const struct mad_fabric *fabric, const struct mad_node_names *names,
		   size_t *size)
{
	char *text = NULL;
	FILE *file = open_memstream(&text, size);

	check(file && !mad_fabric_store(fabric, file, names));
	fclose(file);
	return text;
}

static struct mad_fabric *load(const void *text, size_t size)
{
	FILE *file = open_text(text, size);
	struct mad_fabric *fabric;
	unsigned line = 0;
	int err = mad_fabric_load(file, &fabric, &line);

	fclose(file);
	check(!err == !!fabric);
	check(!err || err == -EBADMSG);
	check(line <= size);
	return fabric;
}

static struct mad_fabric *store_and_load(const struct mad_fabric *fabric)
{
	struct mad_fabric *again;
	size_t size;
	char *text = store(fabric, NULL, &size);

	again = load(text, size);
	check(again != NULL);
	free(text);
	return again;
}

/* mad_fabric_load() may not find the node that a line names. */
static bool has_too_many_with_one_guid(const struct mad_fabric *fabric)
{
	size_t same = 0;

	for (size_t i = 0; i < fabric->problem_count; i++)
		same += mad_fabric_get_problem(fabric, i)->kind == MAD_FABRIC_PROBLEM_GUID;
	return same >= MAX_SAME_GUID;
}

/* The first store sorts the nodes by type. */
static void check_round_trip(const struct mad_fabric *fabric)
{
	struct mad_fabric *sorted, *again;

	if (has_too_many_with_one_guid(fabric))
		return;
	sorted = store_and_load(fabric);
	again = store_and_load(sorted);
	check(fabric->node_count == sorted->node_count);
	check(fabric->port_count == sorted->port_count);
	check_same(sorted, again);
	mad_fabric_free(sorted);
	mad_fabric_free(again);
}

static void check_store_as_discovered(const struct mad_fabric *fabric,
				      const struct mad_node_names *names)
{
	static const uint8_t info[IB_SMP_DATA_SIZE];
	size_t size, i;

	for (i = 0; i < fabric->node_count; i++)
		graph_node(fabric, i)->node_info = info;
	free(store(fabric, names, &size));
}

static struct mad_node_names *load_names(const uint8_t *data, size_t size)
{
	FILE *file = open_text(data, size);
	struct mad_node_names *names;
	int err = mad_node_names_load(file, &names, NULL);

	fclose(file);
	check(!err == !!names);
	check(!err || err == -EBADMSG);
	return names;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct mad_fabric_port *port = NULL;
	struct mad_node_names *names;
	struct mad_fabric *fabric;

	if (!size) /* fmemopen() may not accept size 0 */
		return 0;
	names = load_names(data, size);
	fabric = load(data, size);
	while ((port = mad_fabric_next_port(fabric, port)))
		check_port(fabric, port);
	if (fabric) {
		check(mad_fabric_compare(fabric, fabric, NULL, NULL) == 0);
		check_round_trip(fabric);
		check_store_as_discovered(fabric, names);
	}
	mad_node_names_free(names);
	mad_fabric_free(fabric);
	return 0;
}
