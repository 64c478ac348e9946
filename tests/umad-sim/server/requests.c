/* SPDX-License-Identifier: BSD-2-Clause */

/* Programs' requests to the fabric: attach to nodes, open devices, ioctls, commands. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fault_rules.h"
#include "server.h"
#include "workload.h"

#define MOST_EVENTS 1024

static void refuse(struct connection *connection, int error, const char *text)
{
	struct reply reply = {.error = error};

	connection_reply(connection, &reply, text, -1);
}

uint32_t server_first_node(const struct graph *graph)
{
	for (uint32_t node = 0; node < graph->node_count; node++)
		if (graph->nodes[node].type == NODE_CA)
			return node;
	return 0;
}

static void attach(struct connection *connection, const char *nodes)
{
	char first[16];
	struct server *server = connection->server;
	struct view *view;
	struct reply reply = {0};
	char why[256];

	if (!*nodes) {
		snprintf(first, sizeof(first), "#%u", server_first_node(&server->fabric.graph));
		nodes = first;
	}
	reply.error =
		view_find(&server->fabric, &server->views, server->folder, nodes, &view, why);
	if (!reply.error)
		reply.view = view->number;
	connection_reply(connection, &reply, reply.error == -ENOENT ? why : NULL, -1);
}

/* The end port of umad<number> or issm<number> in a view; NULL with errno set. */
static struct host_port *device(struct server *server, const struct request *request)
{
	const struct view *view = view_by_number(server->views, request->view);
	struct host_port *host;

	errno = ENOENT;
	if (!view || request->number >= view->port_count)
		return NULL;
	errno = ENOMEM;
	host = host_at(&server->fabric, view->ports[request->number].port);
	if (!host || host->present)
		return host;
	errno = ENXIO;
	return NULL;
}

void server_catch_up(struct server *server)
{
	static struct epoll_event events[MOST_EVENTS];
	bool progress;
	int count;

	do {
		count = epoll_wait(server->epoll, events, MOST_EVENTS, 0);
		progress = false;
		for (int i = 0; i < count; i++) {
			struct connection *other = events[i].data.ptr;

			if (!other || other->closed || other->kind == CONNECTION_NEW ||
			    !(events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
				continue;
			progress = true;
			if (!connection_read(other))
				connection_close(other);
		}
	} while (count == MOST_EVENTS && progress);
}

static bool open_umad(struct connection *connection, const struct request *request)
{
	struct host_port *host = device(connection->server, request);
	struct reply reply = {0};

	if (!host) {
		refuse(connection, -errno, NULL);
		return false;
	}
	reply.error = connection_become_umad(connection, host);
	reply.handle = connection->key;
	connection_reply(connection, &reply, NULL, reply.error ? -1 : connection->shared_fd);
	return reply.error == 0;
}

static bool open_issm(struct connection *connection, const struct request *request)
{
	struct host_port *host = device(connection->server, request);

	if (!host) {
		refuse(connection, -errno, NULL);
		return false;
	}
	if (request->nonblock && issm_is_held(connection->server, host)) {
		refuse(connection, -EAGAIN, NULL);
		return false;
	}
	connection_become_issm(connection, host);
	return true;
}

static void control(struct connection *connection, const struct request *request)
{
	struct connection *device = connection_by_key(connection->server, request->handle);
	struct reply reply = {.error = -EBADF};

	memcpy(reply.argument, request->argument, sizeof(reply.argument));
	if (device)
		reply.error = handle_ioctl(device->handle, request->code, reply.argument);
	connection_reply(connection, &reply, NULL, -1);
}

static void share(struct connection *connection, const struct request *request)
{
	struct connection *device = connection_by_key(connection->server, request->handle);
	struct reply reply = {.error = device ? 0 : -EBADF, .handle = request->handle};

	connection_reply(connection, &reply, NULL, device ? device->shared_fd : -1);
}

/* Half the queue of a netlink socket: the kernel doubles the value. Fixed, so that all machines
 * behave the same. */
#define UEVENTS_QUEUE 106496

static bool open_uevents(struct connection *connection, const struct request *request)
{
	int queue = UEVENTS_QUEUE;

	setsockopt(connection->fd, SOL_SOCKET, SO_SNDBUF, &queue, sizeof(queue));
	connection->view = view_by_number(connection->server->views, request->view);
	refuse(connection, connection->view ? 0 : -ENOENT, NULL);
	if (connection->view)
		connection->kind = CONNECTION_UEVENTS;
	return connection->view != NULL;
}

static void refresh(struct connection *connection, const struct request *request)
{
	struct view *view = view_by_number(connection->server->views, request->view);

	if (view)
		view_write_counters(&connection->server->fabric, view, false);
	refuse(connection, view ? 0 : -ENOENT, NULL);
}

static void describe(const struct server *server, char *text, size_t size)
{
	unsigned int handles = 0;

	for (const struct connection *other = server->connections; other; other = other->next)
		handles += other->kind == CONNECTION_UMAD && !other->closed;
	snprintf(text, size, "seed %llu, %u nodes, %u handles open, %.3f s",
		 (unsigned long long)server->fabric.seed, server->fabric.graph.node_count,
		 handles, (double)server->fabric.now / (double)SECOND);
}

/* In a file, because the text of a reply is short. */
static void tell_statistics(struct connection *connection)
{
	struct reply reply = {0};
	int fd = memfd_create("umad-sim-statistics", MFD_CLOEXEC);
	int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *file = copy < 0 ? NULL : fdopen(copy, "w");

	if (file)
		workload_print(&connection->server->fabric, file);
	if (!file || ferror(file) | fclose(file))
		reply.error = -errno;
	connection_reply(connection, &reply, NULL, reply.error ? -1 : fd);
	if (!file && copy >= 0)
		close(copy);
	if (fd >= 0)
		close(fd);
}

static void command(struct connection *connection, const char *text)
{
	struct server *server = connection->server;
	struct rule_error why = {0};
	int error = 0;

	if (strcmp(text, "statistics") == 0) {
		tell_statistics(connection);
		return;
	}
	if (strcmp(text, "status") == 0)
		describe(server, why.text, sizeof(why.text));
	else if (strcmp(text, "stop") == 0)
		server->stop = true;
	else
		error = fault_command(&server->fabric, text, &why);
	refuse(connection, error, why.text);
}

void server_request(struct connection *connection, const void *bytes, size_t length)
{
	const struct request *request = bytes;
	char text[LONGEST_TEXT + 1];
	size_t text_length;
	bool stays = false;

	if (length < sizeof(*request) || request->magic != PROTOCOL_MAGIC) {
		refuse(connection, -EPROTO, "the fabric runs another version of umad-sim");
		connection_close(connection);
		return;
	}
	text_length = length - sizeof(*request);
	if (text_length > LONGEST_TEXT)
		text_length = LONGEST_TEXT;
	memcpy(text, request->text, text_length);
	text[text_length] = '\0';
	server_catch_up(connection->server);
	switch (request->kind) {
	case REQUEST_ATTACH:
		attach(connection, text);
		break;
	case REQUEST_OPEN_UMAD:
		stays = open_umad(connection, request);
		break;
	case REQUEST_OPEN_ISSM:
		stays = open_issm(connection, request);
		break;
	case REQUEST_SHARE:
		share(connection, request);
		break;
	case REQUEST_IOCTL:
		control(connection, request);
		break;
	case REQUEST_REFRESH:
		refresh(connection, request);
		break;
	case REQUEST_COMMAND:
		command(connection, text);
		break;
	case REQUEST_UEVENTS:
		stays = open_uevents(connection, request);
		break;
	case REQUEST_OWN:
		connection->kind = CONNECTION_OWNER;
		refuse(connection, 0, NULL);
		stays = true;
		break;
	case REQUEST_BEGIN:
		refuse(connection, fault_begin(&connection->server->fabric), NULL);
		break;
	default:
		refuse(connection, -ENOSYS, NULL);
	}
	if (!stays)
		connection_close(connection);
}
