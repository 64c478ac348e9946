/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads the ports of a node, one after the other. */

#include "counters/fabric_reading.h"

#include <infiniband/mad_fields.h>
#include <errno.h>
#include <stdlib.h>

/* A node that does not respond so often in succession is given up, at first after once. */
#define SILENT_MOST 2

static void next_port(struct walk *walk);
static int begin_memory(struct walk *walk);

/* The error with which a request ends the reading, because further requests would fail; or 0.
 */
static int ends_all(int error)
{
	return error == -ENOMEM || error == -EPROTONOSUPPORT ? error : limits_ends_all(error);
}

/* --- ports ------------------------------------------------------------------------ */

static bool is_wanted(const struct fabric_reading *reading, const struct mad_fabric_port *port)
{
	const struct mad_fabric_counters_options *options = &reading->options;
	bool is_switch = port->node->type == IB_NODE_SWITCH;

	if (is_switch && !port->number &&
	    (!port->node->enhanced_port0 || options->leave_out & MAD_FABRIC_COUNTERS_NO_PORT0))
		return false;
	if (options->leave_out &
	    (is_switch ? MAD_FABRIC_COUNTERS_NO_SWITCHES : MAD_FABRIC_COUNTERS_NO_OTHERS))
		return false;
	if (options->leave_out & MAD_FABRIC_COUNTERS_NO_DOWN && port->state == MAD_PORT_DOWN)
		return false;
	if (!port->gmp_lid)
		return false;
	return !options->filter || options->filter(port, options->filter_arg);
}

/* The next wanted port of a node from a number on; NULL after the last one. */
static const struct mad_fabric_port *find_port(const struct fabric_reading *reading,
					       const struct counted_node *node, unsigned number)
{
	for (; number <= node->in_fabric->port_count; number++) {
		const struct mad_fabric_port *port =
			mad_fabric_get_port(node->in_fabric, number);

		if (port && is_wanted(reading, port))
			return port;
	}
	return NULL;
}

/* Stores the result of the present port. */
static void store(struct walk *walk, int error, const struct mad_counters *counters)
{
	struct fabric_reading *reading = walk->reading;
	struct mad_fabric_counters_summary *summary = &reading->counters->summary;
	int ret = record_store(reading->counters, walk->node, walk->number, error, counters);

	summary->wanted++;
	if (error || ret)
		summary->failed++;
	else
		summary->read++;
	if (ret)
		reading_end(reading, ret);
	else if (walk->node->records[walk->number]->events &
		 (MAD_COUNTERS_RESET | MAD_COUNTERS_RESTARTED | MAD_COUNTERS_REPLACED))
		walk->is_changed = true;
}

/* Whether the node refuses what it had when an earlier reading read its ClassPortInfo. */
static bool is_outdated(const struct walk *walk, const struct mad_counters *counters)
{
	return walk->node->known && counters->odd & MAD_COUNTERS_ODD_CAPABILITY &&
	       !(walk->node->abilities.refused & 1U << SOURCE_EXTENDED);
}

/* Reads the present port again, and ClassPortInfo before. */
static void begin_again(struct walk *walk)
{
	walk->node->known = false;
	mad_counters_node_free(walk->memory);
	if (begin_memory(walk) < 0)
		reading_end(walk->reading, -ENOMEM);
	next_port(walk);
}

static void counters_came(struct mad_async *async, int error,
			  const struct mad_counters *counters, void *arg)
{
	struct walk *walk = arg;
	struct fabric_reading *reading = walk->reading;

	(void)async;
	list_leave(&walk->entry);
	reading->counters->summary.requests += counters->requests;
	if (ends_all(error))
		reading_end(reading, ends_all(error));
	if (error == -ETIMEDOUT) {
		walk->silent++;
		if (!walk->responds || walk->silent == SILENT_MOST)
			walk->error = error;
	} else {
		walk->silent = 0;
		walk->responds = true;
	}
	if (!error && is_outdated(walk, counters)) {
		begin_again(walk);
		return;
	}
	store(walk, ends_all(error) ? reading->error : error, counters);
	walk->number++;
	next_port(walk);
}

static int submit_port(struct walk *walk, const struct mad_fabric_port *port)
{
	struct fabric_reading *reading = walk->reading;
	const struct mad_counters_options options = {
		.counters = reading->options.counters,
		.node = walk->memory,
		.timeout_ms = reading->options.timeout_ms,
		.basic = reading->options.basic,
	};
	const ib_portid_t to = {.lid = port->gmp_lid};

	return mad_counters_submit(reading->async, &to, port->number, &options, counters_came,
				   walk, &walk->id);
}

/* --- NodeInfo --------------------------------------------------------------------- */

static void node_info_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct walk *walk = arg;
	int error = reply->error;

	(void)async;
	list_leave(&walk->entry);
	if (!error && reply->data_size < IB_SMP_DATA_SIZE)
		error = -EBADMSG;
	if (!error && mad_read_field(reply->data, 0, IB_NODE_GUID_F) != walk->node->guid)
		error = -ESTALE;
	if (ends_all(error))
		reading_end(walk->reading, ends_all(error));
	walk->error = error;
	walk->status = error == -EIO ? reply->status : 0;
	walk->responds = !error;
	next_port(walk);
}

static int submit_node_info(struct walk *walk, const struct mad_fabric_port *port)
{
	struct fabric_reading *reading = walk->reading;
	const ib_rpc_t rpc = {
		.mgtclass = IB_SMI_CLASS,
		.method = IB_MAD_METHOD_GET,
		.attr = {.id = IB_ATTR_NODE_INFO},
		.dataoffs = IB_SMP_DATA_OFFS,
		.mkey = reading->options.m_key,
		.timeout = reading->options.timeout_ms,
	};
	const ib_portid_t to = {.lid = port->gmp_lid};
	int error = mad_async_submit(reading->async, &rpc, &to, NULL, 0, node_info_came, walk,
				     &walk->id);

	reading->counters->summary.requests += !error;
	return error;
}

/* --- nodes ------------------------------------------------------------------------ */

/* What is known of the node's attributes. The ClassPortInfo of a port is that of its node. */
static int begin_memory(struct walk *walk)
{
	struct abilities *abilities = &walk->node->abilities;

	if (!walk->node->known && walk->reading->options.basic)
		return 0;
	walk->memory = mad_counters_node_create();
	if (!walk->memory)
		return -ENOMEM;
	if (!walk->node->known)
		return 0;
	node_learn(walk->memory, abilities);
	return 0;
}

static void end_memory(struct walk *walk)
{
	struct counted_node *node = walk->node;

	if (!walk->memory)
		return;
	node->known = node_recall(walk->memory, &node->abilities) && !walk->is_changed;
	mad_counters_node_free(walk->memory);
}

/* Requests the port, or NodeInfo before the first port of its node. */
static int submit(struct walk *walk, const struct mad_fabric_port *port)
{
	int error;

	if (walk->reading->options.check_guid && !walk->responds)
		error = submit_node_info(walk, port);
	else
		error = submit_port(walk, port);
	if (!error)
		list_add_last(&walk->reading->walks, &walk->entry);
	return error;
}

static bool request_next(struct walk *walk)
{
	struct fabric_reading *reading = walk->reading;
	const struct mad_fabric_port *port;

	while ((port = find_port(reading, walk->node, walk->number))) {
		int error = reading->error ? reading->error : walk->error;

		walk->number = port->number;
		if (!error)
			error = submit(walk, port);
		if (!error)
			return true;
		if (ends_all(error))
			reading_end(reading, ends_all(error));
		store(walk, reading->error ? reading->error : error,
		      &(struct mad_counters){.status = walk->status});
		walk->number++;
	}
	return false;
}

static struct walk *get_walk(struct fabric_reading *reading)
{
	struct list *entry = list_pop(&reading->free);

	return entry ? list_entry(entry, struct walk, entry) : malloc(sizeof(struct walk));
}

bool walk_begin(struct fabric_reading *reading, struct counted_node *node)
{
	struct walk unsent, *walk = NULL;
	int error = reading->error;

	if (!node->in_fabric || !find_port(reading, node, 0))
		return false;
	if (!error)
		walk = get_walk(reading);
	if (!walk)
		walk = &unsent;
	*walk = (struct walk){.reading = reading, .node = node};
	list_init(&walk->entry);
	if (!error && (walk == &unsent || begin_memory(walk) < 0))
		reading_end(reading, -ENOMEM);
	if (request_next(walk))
		return true;
	end_memory(walk);
	if (walk != &unsent)
		list_add_first(&reading->free, &walk->entry);
	return false;
}

static void next_port(struct walk *walk)
{
	struct fabric_reading *reading = walk->reading;

	if (request_next(walk))
		return;
	end_memory(walk);
	list_add_first(&reading->free, &walk->entry);
	reading->active--;
	reading_proceed(reading);
}
