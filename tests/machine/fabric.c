/* SPDX-License-Identifier: BSD-2-Clause */

/* The simulated fabric of the machine: its start and end, rules, packets. */

#include "internal.h"
#include "virtual.h"

#include "counters.h"
#include "fault_rules.h"
#include "node.h"
#include "remove_tree.h"
#include "server.h"
#include "timers.h"
#include "topology.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define HOST_LID   1
#define SM_LID     2
#define SWITCH_LID 3
#define FIRST_LID  11

static struct server *server;
/*
 * The program's sysfs. Writing its files takes most of the time of a short test, so they are
 * used again by the next test on the same topology, unless one was changed.
 */
static struct view *view;
static char folder[64];
static char view_of[128]; /* topology and nodes */
static bool view_changed;
static pid_t owner;
static void (*write_port)(struct fabric *fabric, uint32_t port);
static void (*write_device)(struct fabric *fabric, uint32_t node, bool present);
static machine_arrival_fn *on_arrival;
static void *on_arrival_arg;
static uint64_t *arrivals; /* requests, by node */
static int open_fds;

struct fabric *fabric_of_machine(void)
{
	return &server->fabric;
}

/* --- time ----------------------------------------------------------------------- */

static void set_time(uint64_t ns)
{
	server->fabric.now = ns;
}

static uint64_t next(void)
{
	return timers_next(&server->fabric);
}

static void run(void)
{
	while (timers_run(&server->fabric, 1000))
		;
}

int64_t machine_us(void)
{
	return (int64_t)(virtual_ns() / 1000);
}

void machine_pass(int64_t us)
{
	struct timespec time = {(time_t)(us / 1000000), (long)(us % 1000000 * 1000)};

	nanosleep(&time, NULL);
}

/* --- packets -------------------------------------------------------------------- */

static bool is_host(uint32_t node)
{
	for (unsigned i = 0; i < view->node_count; i++)
		if (view->nodes[i] == node)
			return true;
	return false;
}

static void arrived(struct fabric *fabric, uint32_t port, struct packet *packet)
{
	uint32_t node = cable(fabric, port)->node;
	struct machine_mad mad = {
		.node = hardware(fabric, node)->name,
		.at_host = is_host(node),
		.bytes = packet->mad,
		.slid = packet->slid,
		.dlid = packet->dlid,
		.sl = packet->sl,
		.qp = packet->qp,
		.qkey = packet->qkey,
		.pkey = packet->pkey,
		.grh = packet->grh,
		.sgid = packet->sgid,
		.dgid = packet->dgid,
		.count = arrivals[node],
		.us = machine_us(),
	};
	enum machine_verdict verdict = MACHINE_PASS;

	if (!mad_is_response(packet->mad))
		arrivals[node]++;
	if (on_arrival)
		verdict = on_arrival(&mad, on_arrival_arg);
	packet->slid = mad.slid;
	packet->grh = mad.grh;
	if (verdict == MACHINE_REPLY)
		wire_reply(fabric, port, packet);
	else if (verdict == MACHINE_PASS)
		node_receive(fabric, port, packet);
}

enum machine_verdict machine_reply(struct machine_mad *mad, uint16_t status, size_t offset,
				   const void *data, size_t size)
{
	bool directed = mad->bytes[1] == 0x81;

	/* a Set has a GetResp, too */
	mad->bytes[3] = mad->bytes[3] == METHOD_SET ? METHOD_GET | METHOD_RESPONSE
						    : mad->bytes[3] | METHOD_RESPONSE;
	put16(mad->bytes + 4, status | (directed ? 0x8000 : 0));
	if (size)
		memcpy(mad->bytes + offset, data, size);
	return MACHINE_REPLY;
}

void machine_on_arrival(machine_arrival_fn *hook, void *arg)
{
	virtual_lock();
	on_arrival = hook;
	on_arrival_arg = arg;
	virtual_unlock();
}

unsigned machine_requests(const char *node)
{
	const struct graph *graph = &server->fabric.graph;
	uint64_t sum = 0;

	virtual_lock();
	for (uint32_t i = 0; i < graph->node_count; i++)
		if (node ? !strcmp(graph->nodes[i].name, node) : !is_host(i))
			sum += arrivals[i];
	virtual_unlock();
	return (unsigned)sum;
}

static uint32_t port_of(const char *node)
{
	const struct graph *graph = &server->fabric.graph;
	uint32_t found = graph_find(graph, node);

	if (found == NONE)
		fail_msg("no node \"%s\"", node);
	return graph_port(graph, found, graph->nodes[found].type == NODE_SWITCH ? 0 : 1);
}

struct own_mad {
	struct timer timer;
	struct packet packet;
};

static void send_own(struct fabric *fabric, struct timer *timer)
{
	wire_send(fabric, &((struct own_mad *)timer)->packet);
	free(timer);
}

static void drop_own(struct timer *timer)
{
	free(timer);
}

void machine_send(const char *node, const uint8_t bytes[MACHINE_MAD], int64_t after)
{
	struct fabric *fabric = &server->fabric;
	struct own_mad *own;
	bool smp = bytes[1] == 0x01 || bytes[1] == 0x81;

	virtual_lock();
	own = calloc(1, sizeof(*own));
	own->timer = (struct timer){.run = send_own, .drop = drop_own};
	own->packet = (struct packet){
		.from = port_of(node),
		.source_qp = !smp,
		.qp = !smp,
		.qkey = smp ? 0 : WELL_KNOWN_QKEY,
		.slid = fabric->ports[port_of(node)].lid,
		.dlid = fabric->ports[view->ports[0].port].lid,
		.pkey = DEFAULT_PKEY,
	};
	memcpy(own->packet.mad, bytes, MACHINE_MAD);
	if (timer_set(fabric, &own->timer, fabric->now + (uint64_t)after * MICROSECOND))
		abort();
	virtual_unlock();
}

struct delivery {
	struct timer timer;
	struct packet packet;
	size_t length;
	uint8_t bytes[];
};

static void deliver(struct fabric *fabric, struct timer *timer)
{
	struct delivery *delivery = (struct delivery *)timer;
	const uint8_t *mad = delivery->packet.mad;
	struct host_port *host = host_at(fabric, view->ports[0].port);
	struct send *send = send_find(fabric, NULL, get64(mad + 8), mad[1]);
	struct message *message = NULL;

	if (send && send->expects_reply && send->agent->host == host) {
		struct agent *agent = send->agent;

		if (delivery->length) {
			message = message_from(fabric, agent, &delivery->packet,
					       delivery->bytes, delivery->length);
			send_finish(fabric, send);
			agent->deliver(agent, message);
		} else {
			send->retries = 0;
			send->acknowledged = send->segments;
			send_start_timer(fabric, send, 0);
		}
	}
	free(delivery);
}

void machine_deliver(const struct machine_mad *request, const void *bytes, size_t length,
		     int64_t after)
{
	struct fabric *fabric = &server->fabric;
	struct delivery *delivery;

	virtual_lock();
	delivery = calloc(1, sizeof(*delivery) + length);
	delivery->timer = (struct timer){.run = deliver, .drop = drop_own};
	delivery->packet.slid = request->dlid;
	delivery->packet.dlid = request->slid;
	delivery->packet.sl = request->sl;
	delivery->packet.pkey = DEFAULT_PKEY;
	delivery->packet.source_qp = request->qp;
	memcpy(delivery->packet.mad, request->bytes, MACHINE_MAD);
	delivery->length = length;
	if (length)
		memcpy(delivery->bytes, bytes, length);
	if (timer_set(fabric, &delivery->timer, fabric->now + (uint64_t)after * MICROSECOND))
		abort();
	virtual_unlock();
}

uint16_t machine_lid(const char *node)
{
	return server->fabric.ports[port_of(node)].lid;
}

uint64_t machine_guid(const char *node)
{
	return cable(&server->fabric, port_of(node))->guid;
}

void machine_set_counter(const char *node, unsigned port, unsigned counter, uint64_t value)
{
	struct fabric *fabric = &server->fabric;
	uint32_t found = graph_find(&fabric->graph, node);

	/* the simulator has a counter more, after the symbol errors */
	counter += counter > COUNT_SYMBOL_ERRORS;
	virtual_lock();
	counter_set(fabric, graph_port(&fabric->graph, found, port), (enum counter)counter,
		    value);
	virtual_unlock();
}

void machine_rule(const char *format, ...)
{
	struct rule_error error;
	char text[256];
	va_list arguments;
	int ret;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	virtual_lock();
	ret = fault_apply(&server->fabric, text, &error);
	virtual_unlock();
	if (ret)
		fail_msg("%s: %s", text, error.text);
}

/* --- sysfs and devices ---------------------------------------------------------- */

const char *fabric_path(const char *path, char real[512])
{
	if (strncmp(path, "/sys/class/infiniband", 21))
		return NULL;
	if (strstr(path, "counters/")) {
		virtual_lock();
		view_changed = true;
		view_write_counters(&server->fabric, view, false);
		virtual_unlock();
	}
	snprintf(real, 512, "%s%s", view->folder, path);
	return real;
}

const char *machine_path(const char *path)
{
	static char real[512];

	view_changed = true;
	return fabric_path(path, real);
}

struct host_port *fabric_device(const char *name)
{
	unsigned number;

	if (sscanf(name, "umad%u", &number) != 1 || number >= view->port_count)
		return NULL;
	return host_at(&server->fabric, view->ports[number].port);
}

/* --- start and end -------------------------------------------------------------- */

static void must(int error, const char *what)
{
	if (error)
		fail_msg("%s: %s", what, strerror(-error));
}

static void add_leaf(struct graph *graph, uint64_t guid, const char *name, unsigned number,
		     uint16_t lid)
{
	uint32_t node;

	must(graph_add(graph, NODE_CA, guid, name, 1, &node), name);
	must(graph_cable(graph, graph_port(graph, node, 1), graph_port(graph, 0, number), 4,
			 EDR),
	     name);
	graph->ports[graph_port(graph, node, 1)].lid = lid;
}

static void make_star(struct graph *graph, unsigned leaves)
{
	char name[16];
	uint32_t hub;

	must(graph_add(graph, NODE_SWITCH, 0x100, "switch", leaves + 2, &hub), "switch");
	graph->ports[graph_port(graph, hub, 0)].lid = SWITCH_LID;
	add_leaf(graph, 0x1000, MACHINE_HOST, 1, HOST_LID);
	for (unsigned i = 1; i <= leaves; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		add_leaf(graph, 0x10000 + 16 * i, name, i + 1, (uint16_t)(FIRST_LID + i - 1));
	}
	add_leaf(graph, 0x2000, "sm", leaves + 2, SM_LID);
}

static void port_changed(struct fabric *fabric, uint32_t port)
{
	view_changed = true;
	write_port(fabric, port);
}

static void device_changed(struct fabric *fabric, uint32_t node, bool present)
{
	view_changed = true;
	write_device(fabric, node, present);
}

/* A child process has the files of its parent. */
static void drop_view(void)
{
	if (folder[0] && getpid() == owner)
		remove_tree(folder);
	folder[0] = '\0';
	views_free(view);
	view = NULL;
}

/* Those of the test before, or new ones. */
static void make_view(const char *topology, const char *nodes)
{
	char why[256], name[sizeof(view_of)];

	snprintf(name, sizeof(name), "%s %s", topology, nodes);
	if (view_changed || strcmp(name, view_of))
		drop_view();
	if (!view) {
		if (!view_of[0])
			atexit(drop_view);
		owner = getpid();
		/* in memory, where files are written ten times as fast */
		snprintf(folder, sizeof(folder), "%s/machine-XXXXXX",
			 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
		if (!mkdtemp(folder))
			fail_msg("%s: %s", folder, strerror(errno));
		if (view_find(&server->fabric, &view, folder, nodes, &view, why))
			fail_msg("%s", why);
		memcpy(view_of, name, sizeof(name));
	}
	view_changed = false;
	server->views = view;
	write_port = server->fabric.port_changed;
	write_device = server->fabric.device_changed;
	server->fabric.port_changed = port_changed;
	server->fabric.device_changed = device_changed;
}

/* Descriptors of the process that are open. */
static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

void machine_start(const char *topology, const char *nodes)
{
	static const struct virtual_source source = {set_time, next, run, handles_revents};
	const struct server_options options = {.seed = 1, .topology = topology};
	struct topology_error error;
	struct graph graph;
	unsigned leaves;
	char why[256];

	open_fds = count_fds();
	graph_init(&graph);
	if (sscanf(topology, "star:%u", &leaves) == 1)
		make_star(&graph, leaves);
	else if (topology_load(&graph, topology, &error))
		fail_msg("%s", error.text);
	server = calloc(1, sizeof(*server));
	if (server_prepare(server, &graph, &options, why))
		fail_msg("%s", why);
	arrivals = calloc(server->fabric.graph.node_count, sizeof(*arrivals));
	on_arrival = NULL;
	server->fabric.arrived = arrived;
	server->fabric.now = 0;
	make_view(topology, nodes ? nodes : MACHINE_HOST);
	handles_begin();
	virtual_begin(&source, options.seed);
	run();
}

void machine_stop(void)
{
	unsigned threads = virtual_end();
	int left = handles_end();

	server->views = NULL;
	server_free(server);
	free(server);
	free(arrivals);
	server = NULL;
	if (threads || left)
		fail_msg("%u threads and %d handles are left", threads, left);
	assert_int_equal(count_fds(), open_fds);
}

int machine_setup(void)
{
	machine_start("star:8", NULL);
	return 0;
}

int machine_teardown(void)
{
	machine_stop();
	return 0;
}
