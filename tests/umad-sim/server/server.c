/* SPDX-License-Identifier: BSD-2-Clause */

/* The fabric's process: start, main loop, end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "faults.h"
#include "manager.h"
#include "printable.h"
#include "routes.h"
#include "sa_agent.h"
#include "server.h"
#include "setup.h"

#define TIMERS_A_ROUND 4096
#define REPAIR_PERIOD  (200 * MILLISECOND) /* while the disk is full */
#define FLUSH_PERIOD   (10 * MILLISECOND)  /* while a pipe is full */
#define HOUR           (3600 * SECOND)

static uint64_t clock_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

void server_tell_time(struct server *server)
{
	server->fabric.now = clock_now() - server->start;
}

static void port_was_changed(struct fabric *fabric, uint32_t port)
{
	views_port_changed(fabric, server_of(fabric)->views, port);
	kernel_devices_port_changed(server_of(fabric), port);
}

static void service_was_changed(struct fabric *fabric, uint32_t port, bool in_service)
{
	struct sa_agent *sa_agent = server_of(fabric)->sa_agent;

	if (sa_agent)
		sa_agent_notice(sa_agent, port, in_service);
}

static void sa_was_restarted(struct fabric *fabric)
{
	struct sa_agent *sa_agent = server_of(fabric)->sa_agent;

	if (sa_agent)
		sa_agent_forget(sa_agent);
}

static void device_was_changed(struct fabric *fabric, uint32_t node, bool present)
{
	const struct graph_node *hw = hardware(fabric, node);

	if (!present)
		views_device_changed(server_of(fabric)->views, node, false);
	for (uint32_t port = hw->first_port; port <= hw->first_port + hw->port_count; port++) {
		struct host_port *host = fabric->hosts->by_port[port];

		if (!host)
			continue;
		if (present) {
			host_add(host);
		} else {
			host_remove(host);
			connections_lose_issm(server_of(fabric), host);
		}
	}
	if (present)
		views_device_changed(server_of(fabric)->views, node, true);
	uevents_device_changed(server_of(fabric), node, present);
	kernel_devices_node_changed(server_of(fabric), node, present);
}

/* Chooses the SM's port: the given one, or else the last CA with a link. */
static int choose_sm_port(const struct fabric *fabric, const struct server_options *options,
			  uint32_t *port, char *why)
{
	const struct graph *graph = &fabric->graph;
	const char *spec = options->sm;
	uint32_t node = spec ? graph_find(graph, spec) : NONE;

	*port = NONE;
	if (spec && node == NONE) {
		snprintf(why, 256, "no node \"%.100s\" for the subnet manager", spec);
		return -ENOENT;
	}
	for (uint32_t i = 0; i < graph->port_count; i++) {
		const struct graph_port *end = &graph->ports[i];
		bool of_switch = graph->nodes[end->node].type == NODE_SWITCH;

		if (spec ? end->node == node &&
				    (of_switch ? end->number == 0 : end->peer != NONE)
			 : !of_switch && end->peer != NONE && end->number != 0)
			*port = i;
		if (spec && *port != NONE)
			break;
	}
	for (uint32_t i = 0; *port == NONE && !spec && i < graph->port_count; i++)
		if (graph->nodes[graph->ports[i].node].type == NODE_SWITCH)
			*port = i; /* the fabric has no CA */
	if (*port == NONE && spec)
		snprintf(why, 256, "the subnet manager cannot be on \"%.100s\": no cable",
			 spec);
	else if (*port == NONE)
		snprintf(why, 256,
			 "%.100s: no port for the subnet manager: no CA has a cable, and there "
			 "is no switch (--bare runs without one)",
			 options->topology);
	if (*port == NONE)
		return -ENOENT;
	return 0;
}

/* Reports LIDs of the topology that the SM could not assign to their ports. */
static void tell_lids(const struct fabric *fabric)
{
	unsigned int count = 0;

	for (uint32_t port = 0; port < fabric->graph.port_count; port++)
		count += cable(fabric, port)->lid && fabric->ports[port].lid &&
			 fabric->ports[port].lid != cable(fabric, port)->lid;
	if (count)
		fprintf(stderr,
			"umad-sim: %u ports did not get their LID from the topology: another "
			"port has it, or it does not suit the LMC\n",
			count);
}

static int init_fabric(struct server *server, struct graph *graph,
		       const struct server_options *options, char *why)
{
	struct fabric *fabric = &server->fabric;
	uint32_t sm_port;
	uint32_t without;
	int error = fabric_init(fabric, graph, options->seed);

	if (error || (error = timers_init(fabric)) || (error = faults_init(fabric)) ||
	    (error = hosts_init(fabric)) || (error = routes_init(fabric, !options->bare)))
		return error;
	fabric->load = options->load;
	fabric->errors = options->errors;
	fabric->port_changed = port_was_changed;
	fabric->service_changed = service_was_changed;
	fabric->device_changed = device_was_changed;
	fabric->sa_forgets = sa_was_restarted;
	error = outputs_open(server, options, why);
	if (error)
		return error;
	if (options->bare)
		return 0;
	error = choose_sm_port(fabric, options, &sm_port, why);
	if (error)
		return error;
	without = bring_up(fabric, sm_port);
	if (without)
		fprintf(stderr, "umad-sim: %u ports have no LID: a subnet has only %u\n",
			without, LID_COUNT - 1);
	tell_lids(fabric);
	server->sa_agent = sa_agent_start(fabric);
	return server->sa_agent ? 0 : -ENOMEM;
}

/* Returns a socket that listens at the address, or a negative errno. */
static int listen_at(const struct sockaddr_un *address)
{
	int error, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (!bind(fd, (const struct sockaddr *)address, sizeof(*address)) && !listen(fd, 1024))
		return fd;
	error = errno;
	close(fd);
	return -error;
}

static int open_socket(struct server *server)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct epoll_event event = {.events = EPOLLIN};
	int length = snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s",
			      server->folder, SOCKET_NAME);

	if (length >= (int)sizeof(address.sun_path))
		return -ENAMETOOLONG;
	server->listener = listen_at(&address);
	if (server->listener < 0)
		return server->listener;
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll < 0 ||
	    epoll_ctl(server->epoll, EPOLL_CTL_ADD, server->listener, &event))
		return -errno;
	return 0;
}

/* Raises the limit as far as possible: each handle needs two descriptors. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int server_prepare(struct server *server, struct graph *graph,
		   const struct server_options *options, char *why)
{
	int error;

	*server = (struct server){.listener = -1,
				  .epoll = -1,
				  .spare = -1,
				  .trace_output.fd = -1,
				  .stats.fd = -1};
	server->start = clock_now();
	why[0] = '\0';
	error = init_fabric(server, graph, options, why);
	if (error && !why[0])
		snprintf(why, 256, "%s", strerror(-error));
	make_printable(why);
	return error;
}

int server_init(struct server *server, struct graph *graph,
		const struct server_options *options, const char *folder, char *why)
{
	int error = server_prepare(server, graph, options, why);

	raise_limit();
	signal(SIGXFSZ, SIG_IGN); /* at a file-size limit, write() fails instead */
	server->folder = folder;
	server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (!error)
		error = open_socket(server);
	if (error && !why[0])
		snprintf(why, 256, "%s", strerror(-error));
	return error;
}

void server_disconnect(struct server *server)
{
	if (server->closed)
		return;
	server->closed = true;
	server->fabric.port_changed = NULL;
	outputs_write_stats(server);
	kernel_devices_free(server);
	for (struct connection *each = server->connections; each; each = each->next)
		connection_close(each);
	connections_settle(server);
	if (server->listener >= 0)
		close(server->listener);
	server->listener = -1;
}

void server_free(struct server *server)
{
	server_disconnect(server);
	server->fabric.service_changed = NULL;
	server->fabric.sa_forgets = NULL;
	manager_stop(&server->fabric);
	if (server->sa_agent)
		sa_agent_stop(server->sa_agent);
	if (server->epoll >= 0)
		close(server->epoll);
	if (server->spare >= 0)
		close(server->spare);
	views_free(server->views);
	hosts_free(&server->fabric);
	faults_free(&server->fabric);
	timers_free(&server->fabric);
	outputs_close(server);
	fabric_free(&server->fabric);
}

/* Without a descriptor to accept a connection, uses the spare one to reply EMFILE. Otherwise
 * the program's open() would block, and the listening socket would stay ready. */
static bool turn_away(struct server *server)
{
	struct reply reply = {.error = -EMFILE};
	int fd;

	if (server->spare < 0)
		return false;
	close(server->spare);
	fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		send(fd, &reply, sizeof(reply), MSG_DONTWAIT | MSG_NOSIGNAL);
		close(fd);
	}
	server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd >= 0;
}

static void accept_all(struct server *server)
{
	for (;;) {
		int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
			server_catch_up(server); /* closed handles may have freed descriptors */
			fd = accept4(server->listener, NULL, NULL,
				     SOCK_CLOEXEC | SOCK_NONBLOCK);
			if (fd < 0 && turn_away(server))
				continue;
		}
		if (fd < 0)
			return;
		if (!connection_add(server, fd))
			close(fd);
	}
}

static void handle_event(struct server *server, const struct epoll_event *event)
{
	struct connection *connection = event->data.ptr;

	if (!connection) {
		accept_all(server);
		return;
	}
	if (connection->closed)
		return;
	if (event->events & EPOLLOUT && connection->kind == CONNECTION_UMAD)
		connection_flush(connection);
	if (event->events & EPOLLOUT && connection->kind == CONNECTION_UEVENTS)
		uevents_flush(connection);
	if (event->events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !connection_read(connection))
		connection_close(connection);
}

/* Reports view files that could not be written, once, and retries from time to time. Returns
 * when the next timer runs. */
static uint64_t repair_views(struct server *server, uint64_t next)
{
	const struct view *view = views_incomplete(server->views);
	uint64_t now = server->fabric.now;

	if (!view)
		return next;
	if (!server->told_missing)
		fprintf(stderr,
			"umad-sim: %s: %s: programs do not see files that cannot be "
			"written; umad-sim keeps trying\n",
			view->folder, strerror(-view->error));
	server->told_missing = true;
	if (now >= server->repair_at) {
		views_repair(&server->fabric, server->views);
		server->repair_at = now + REPAIR_PERIOD;
	}
	return next < server->repair_at ? next : server->repair_at;
}

static int wait_for_events(struct server *server, struct epoll_event *events, int room)
{
	uint64_t next = timers_next(&server->fabric);
	uint64_t delay;
	struct pollfd pollfd = {.fd = server->epoll, .events = POLLIN};
	struct timespec rest;
	sigset_t none;
	int count, milliseconds = -1;

	sigemptyset(
		&none); /* signals that end the process are only unblocked during the wait */
	server_tell_time(server);
	next = repair_views(server, next);
	if (outputs_flush(server) && next > server->fabric.now + FLUSH_PERIOD)
		next = server->fabric.now + FLUSH_PERIOD;
	delay = next > server->fabric.now ? next - server->fabric.now : 0;
	if (next != UINT64_MAX)
		milliseconds = (int)(delay < HOUR ? delay / MILLISECOND : HOUR / MILLISECOND);
	count = epoll_pwait(server->epoll, events, room, milliseconds, &none);
	if (count || milliseconds || !delay)
		return count;
	/* less than a millisecond left; epoll_pwait2() needs Linux 5.11 */
	rest = (struct timespec){.tv_nsec = (long)delay};
	if (ppoll(&pollfd, 1, &rest, &none) < 0)
		return -1;
	return epoll_pwait(server->epoll, events, room, 0, &none);
}

int server_round(struct server *server, bool wait)
{
	struct epoll_event events[64];
	int count = wait ? wait_for_events(server, events, 64)
			 : epoll_wait(server->epoll, events, 64, 0);

	if (count < 0 && errno != EINTR)
		return -errno;
	server_tell_time(server);
	for (int i = 0; i < count; i++)
		handle_event(server, &events[i]);
	timers_run(&server->fabric, TIMERS_A_ROUND);
	connections_settle(server);
	return 0;
}

int server_run(struct server *server)
{
	int error = 0;

	/* the rules from the command line apply now */
	if (server->sa_agent)
		error = manager_start(&server->fabric);
	while (!server->stop && !error)
		error = server_round(server, true);
	return error;
}
