/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Walks the whole fabric by directed routes, from node to node, reads every port's counters on
 * the way, and prints what is wrong and how much there is. All of it at once: each answer
 * leads to the next questions, and the library sees to it that no more are under way than the
 * fabric takes. No subnet manager is needed, but for the LIDs by which counters are asked for.
 *
 *   sweep [MILLISECONDS]      how long an attempt may take, of three
 *
 * Exits with 0, with 1 where something did not answer or failed, with 2 where the argument
 * makes no sense.
 */

#define _GNU_SOURCE /* tdestroy() */

#include <infiniband/mad_async.h>

#include <ctype.h>
#include <errno.h>
#include <search.h>
#include <stdbool.h>
#include <time.h>

#define PHYSICAL_LINK_UP 5

struct port {
	struct node *node;
	uint8_t number;
	bool cabled;        /* it is known what is at the other end */
	const char *failed; /* what was asked for in vain */
	int error;
	uint64_t errors; /* that it counted */
};

struct node {
	uint64_t guid;
	ib_dr_path_t route;
	unsigned type, port_count;
	unsigned entry; /* the port by which this node was entered first */
	char name[65];
	struct port ports[]; /* from 0 to port_count */
};

static void *nodes; /* a tree, see tsearch(3) */
static unsigned node_count, switch_count, link_count, counted, unanswered, faulty;
static struct timespec started;

static mad_async_fn counters_came, name_came, port_came, neighbour_came;

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - started.tv_sec) +
	       (double)(now.tv_nsec - started.tv_nsec) * 1e-9;
}

/* On a terminal, and ten times a second. */
static void progress(void)
{
	static double next = 0.1;

	if (seconds() < next || !isatty(STDERR_FILENO))
		return;
	next = seconds() + 0.1;
	fprintf(stderr, "\r%u nodes, %u links, %u ports read\033[K", node_count, link_count,
		counted);
}

static void fail(struct port *port, const char *what, int error)
{
	unanswered++;
	port->failed = what;
	port->error = -error;
}

/* --- questions ------------------------------------------------------------------ */

static void ask_smp(struct mad_async *async, unsigned attribute, unsigned number,
		    const ib_dr_path_t *route, mad_async_fn *came, struct port *port)
{
	const ib_rpc_t rpc = {
		.mgtclass = IB_SMI_DIRECT_CLASS,
		.method = IB_MAD_METHOD_GET,
		.attr = {.id = attribute, .mod = number},
		.dataoffs = IB_SMP_DATA_OFFS,
	};
	const ib_portid_t to = {.drpath = *route};
	int ret = mad_async_submit(async, &rpc, &to, NULL, 0, came, port, NULL);

	if (ret < 0)
		fail(port, "a question", ret);
}

static void ask_counters(struct mad_async *async, uint16_t lid, struct port *port)
{
	const ib_rpc_t rpc = {
		.mgtclass = IB_PERFORMANCE_CLASS,
		.method = IB_MAD_METHOD_GET,
		.attr = {.id = IB_GSI_PORT_COUNTERS},
		.dataoffs = IB_PC_DATA_OFFS,
	};
	const ib_portid_t to = {.lid = lid, .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
	uint8_t data[IB_PC_DATA_SZ] = {0};
	int ret;

	if (!lid)
		return; /* nobody has given it one */
	mad_set_field(data, 0, IB_PC_PORT_SELECT_F, port->number);
	ret = mad_async_submit(async, &rpc, &to, data, sizeof(data), counters_came, port, NULL);
	if (ret < 0)
		fail(port, "PortCounters", ret);
}

/* Goes on through a port. Adapters forward nothing (IBA 14.2.2), but for this one's own. */
static void ask_neighbour(struct mad_async *async, struct port *port)
{
	struct node *node = port->node;
	ib_dr_path_t route = node->route;

	if (port->cabled ||
	    (node->type != IB_NODE_SWITCH && (route.cnt || port->number != node->entry)))
		return;
	if (++route.cnt >= IB_SUBNET_PATH_HOPS_MAX) {
		fail(port, "the route", -ENAMETOOLONG);
		return;
	}
	route.p[route.cnt] = port->number;
	ask_smp(async, IB_ATTR_NODE_INFO, 0, &route, neighbour_came, port);
}

/* Asks a node that was not known before for all there is. */
static void ask_all(struct mad_async *async, struct node *node)
{
	ask_smp(async, IB_ATTR_NODE_DESC, 0, &node->route, name_came, &node->ports[0]);
	for (unsigned i = node->type == IB_NODE_SWITCH ? 0 : 1; i <= node->port_count; i++)
		ask_smp(async, IB_ATTR_PORT_INFO, i, &node->route, port_came, &node->ports[i]);
}

/* --- nodes ---------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	uint64_t one = ((const struct node *)a)->guid, other = ((const struct node *)b)->guid;

	return one < other ? -1 : one > other;
}

static void *or_exit(void *memory)
{
	if (memory)
		return memory;
	perror("sweep");
	exit(1);
}

/* The node of a NodeInfo. Many routes lead to one: it is the GUID that says which it is. */
static struct node *find_node(struct mad_async *async, uint8_t *info, const ib_dr_path_t *route)
{
	unsigned port_count = mad_get_field(info, 0, IB_NODE_NPORTS_F);
	struct node *node =
		or_exit(calloc(1, sizeof(*node) + (port_count + 1) * sizeof(struct port)));
	struct node **found;

	node->guid = mad_get_field64(info, 0, IB_NODE_GUID_F);
	found = or_exit(tsearch(node, &nodes, compare));
	if (*found != node) {
		free(node);
		return *found;
	}
	node->route = *route;
	node->type = mad_get_field(info, 0, IB_NODE_TYPE_F);
	node->port_count = port_count;
	node->entry = mad_get_field(info, 0, IB_NODE_LOCAL_PORT_F);
	snprintf(node->name, sizeof(node->name), "0x%016" PRIx64, node->guid);
	for (unsigned i = 0; i <= port_count; i++)
		node->ports[i] = (struct port){.node = node, .number = (uint8_t)i};
	node_count++;
	switch_count += node->type == IB_NODE_SWITCH;
	ask_all(async, node);
	return node;
}

/* --- answers -------------------------------------------------------------------- */

/* Copies the first bytes of an answer's data; false without them. */
static bool take(const struct mad_reply *reply, struct port *port, const char *what,
		 uint8_t data[IB_SMP_DATA_SIZE])
{
	int error = reply->error;

	progress();
	if (!error && reply->data_size < IB_SMP_DATA_SIZE)
		error = -EBADMSG;
	if (error)
		fail(port, what, error);
	else
		memcpy(data, reply->data, IB_SMP_DATA_SIZE);
	return !error;
}

static void counters_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	uint8_t data[IB_SMP_DATA_SIZE];
	struct port *port = arg;

	(void)async;
	if (!take(reply, port, "PortCounters", data))
		return;
	counted++;
	for (enum MAD_FIELDS field = IB_PC_ERR_SYM_F; field < IB_PC_XMT_BYTES_F; field++)
		if (field != IB_PC_COUNTER_SELECT2_F)
			port->errors += mad_get_field(data, 0, field);
	faulty += port->errors != 0;
}

static void name_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct node *node = ((struct port *)arg)->node;

	(void)async;
	if (!take(reply, arg, "NodeDescription", (uint8_t *)node->name))
		return;
	for (char *at = node->name; *at; at++)
		if (!isprint((unsigned char)*at))
			*at = '?';
}

static void port_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	uint8_t info[IB_SMP_DATA_SIZE];
	struct port *port = arg;
	struct node *node = port->node;
	uint16_t lid;

	if (!take(reply, port, "PortInfo", info))
		return;
	lid = (uint16_t)mad_get_field(info, 0, IB_PORT_LID_F);
	if (!port->number) /* a switch has one LID, that of its port 0 */
		for (unsigned i = 1; i <= node->port_count; i++)
			ask_counters(async, lid, &node->ports[i]);
	else if (mad_get_field(info, 0, IB_PORT_PHYS_STATE_F) == PHYSICAL_LINK_UP) {
		if (node->type != IB_NODE_SWITCH)
			ask_counters(async, lid, port);
		ask_neighbour(async, port);
	}
}

static void neighbour_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	uint8_t info[IB_SMP_DATA_SIZE];
	struct port *port = arg;
	ib_dr_path_t route = port->node->route;
	struct node *node;
	unsigned entry;

	if (!take(reply, port, "the node behind it", info))
		return;
	route.p[++route.cnt] = port->number;
	node = find_node(async, info, &route);
	link_count += !port->cabled; /* it may have been met from its other end, too */
	port->cabled = true;
	entry = mad_get_field(info, 0, IB_NODE_LOCAL_PORT_F);
	if (entry <= node->port_count)
		node->ports[entry].cabled = true;
}

/* --- what has come of it -------------------------------------------------------- */

static void print_node(const void *place, VISIT visit, int depth)
{
	const struct node *node = *(struct node *const *)place;

	(void)depth;
	if (visit != postorder && visit != leaf)
		return;
	for (unsigned i = 0; i <= node->port_count; i++) {
		const struct port *port = &node->ports[i];

		if (port->failed)
			printf("%s port %u: %s: %s\n", node->name, i, port->failed,
			       strerror(port->error));
		if (port->errors)
			printf("%s port %u: %" PRIu64 " errors\n", node->name, i, port->errors);
	}
}

static void print_all(struct mad_async *async)
{
	struct mad_async_stats stats;

	mad_async_get_stats(async, &stats, sizeof(stats));
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
	twalk(nodes, print_node);
	printf("%u nodes, %u of them switches, %u links, %u ports read, %u with errors\n"
	       "%" PRIu64 " MADs in %.3f s, %u questions unanswered\n",
	       node_count, switch_count, link_count, counted, faulty, stats.sent, seconds(),
	       unanswered);
}

int main(int argc, char **argv)
{
	int classes[] = {IB_SMI_DIRECT_CLASS, IB_PERFORMANCE_CLASS};
	uint8_t info[IB_SMP_DATA_SIZE] = {0};
	ib_portid_t self = {0};
	struct ibmad_port *port;
	struct mad_async *async;

	if (argc > 2 || (argc == 2 && atoi(argv[1]) <= 0)) {
		fprintf(stderr, "usage: sweep [MILLISECONDS]\n");
		return 2;
	}
	clock_gettime(CLOCK_MONOTONIC, &started);
	port = mad_rpc_open_port(NULL, 0, classes, 2);
	async = port ? mad_async_create(port) : NULL;
	if (!async) {
		perror("mad_rpc_open_port");
		return 1;
	}
	if (argc == 2)
		mad_port_set_timeout(port, atoi(argv[1]));
	if (!smp_query_via(info, &self, IB_ATTR_NODE_INFO, 0, 0, port)) {
		perror("NodeInfo of this node");
		return 1;
	}
	find_node(async, info, &self.drpath);
	mad_async_run(async);
	print_all(async);
	mad_async_destroy(async);
	mad_rpc_close_port(port);
	tdestroy(nodes, free);
	return unanswered != 0;
}
