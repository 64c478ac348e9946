/* SPDX-License-Identifier: BSD-2-Clause */

#include "port/port.h"

#include "base/export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Memory for this number of requests stays allocated when no request is open. */
#define KEPT      1024
/* The default of MAD_PORT_MAX_RESPONSE, in bytes. */
#define MAX_REPLY (64u << 20)

/* --- life ----------------------------------------------------------------------- */

/*
 * Whether a handle is a descriptor of the kernel. That of a preloaded simulator is not, and
 * simulators do not replace epoll_ctl().
 */
static bool is_descriptor(int handle)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	bool known = epoll < 0 || !epoll_ctl(epoll, EPOLL_CTL_ADD, handle, &event);

	if (epoll >= 0)
		close(epoll);
	return known;
}

struct ibmad_port *port_new(const char *ca_name, int portnum)
{
	struct ibmad_port *port = calloc(1, sizeof(*port));

	if (!port)
		return NULL;
	port->handle.ca_name = ca_name ? strdup(ca_name) : NULL;
	if (ca_name && !port->handle.ca_name) {
		free(port);
		return NULL;
	}
	port_watch_forks();
	port->handle.portnum = portnum;
	for (unsigned i = 0; i < MGMT_CLASSES; i++)
		port->handle.agents[i] = -1;
	port->forks = port_forks;
	port->options.max_reply = MAX_REPLY;
	pthread_mutex_init(&port->lock, NULL);
	pthread_cond_init(&port->unused, NULL);
	requests_init(&port->requests);
	queue_init(&port->queue, &port->requests.flow);
	source_init(&port->blocking, 1);
	waiters_init(&port->waiters);
	inbox_init(&port->inbox);
	list_init(&port->servers);
	list_init(&port->listeners);
	list_init(&port->retired);
	for (unsigned i = 0; i < FLOW_WINDOWS; i++)
		port->traced_sizes[i] = port->requests.flow.windows[i].size;
	return port;
}

void port_begin(struct ibmad_port *port)
{
	port->handle.header_size = (unsigned)umad_size();
	port->has_descriptor = is_descriptor(port->handle.fd);
	if (port->has_descriptor)
		waiters_open(&port->waiters);
}

void port_free(struct ibmad_port *port)
{
	struct list *entry;

	while ((entry = list_pop(&port->retired)))
		free(entry);
	inbox_free(&port->inbox);
	queue_free(&port->queue);
	timers_release(&port->timers);
	tids_free(&port->requests.tids);
	waiters_free(&port->waiters);
	pthread_cond_destroy(&port->unused);
	pthread_mutex_destroy(&port->lock);
	free(port->handle.ca_name);
	free(port);
}

void port_shrink(struct ibmad_port *port)
{
	struct tids *tids = &port->requests.tids;

	if (port->timers.room > KEPT)
		timers_release(&port->timers);
	if (tids->bucket_count > KEPT && !tids->count)
		tids_free(tids);
	queue_shrink(&port->queue);
}

/* --- telling others ------------------------------------------------------------- */

struct port_work port_work(const struct ibmad_port *port)
{
	return (struct port_work){
		.now = queue_is_ready(&port->queue),
		.next = port_next(port),
		.gone = port->gone != 0,
	};
}

void port_tell_others(struct ibmad_port *port)
{
	int64_t opens;

	if (port->watcher)
		port_update_alarm(port, port->watcher, false);
	if (list_is_empty(&port->waiters.all))
		return;
	if (queue_is_ready(&port->queue)) {
		waiters_wake_sender(&port->waiters);
		return;
	}
	opens = queue_opens(&port->queue);
	if (opens != NEVER)
		waiters_wake_for(&port->waiters, opens);
}

void port_update_alarm(struct ibmad_port *port, struct listener *listener, bool due)
{
	struct port_work work = port_work(port);

	listener_update(listener, &port->waiters, &work, due);
}

void port_tell_all_engines(struct ibmad_port *port)
{
	list_for_each (entry, &port->listeners)
		port_tell_engine(port, listener_at(entry), false);
}

void port_alert(struct ibmad_port *port)
{
	/* in a child of fork() no thread waits until the first call */
	if (port->forks == port_forks)
		waiters_alert(&port->waiters);
}

/* An event loop with a poll_fd, other than a given one; NULL: none. */
static struct listener *find_loop(struct ibmad_port *port, const struct listener *other)
{
	list_for_each (entry, &port->listeners)
		if (listener_at(entry) != other && listener_at(entry)->alarm.poll_fd >= 0)
			return listener_at(entry);
	return NULL;
}

void port_set_watcher(struct ibmad_port *port, struct listener *listener)
{
	struct listener *before = port->watcher;

	if (!listener)
		listener = find_loop(port, before);
	/* after the port is closed, the number of the handle may be that of another file */
	if (listener == before || port->closed)
		return;
	port->watcher = listener;
	if (before) {
		listener_watch(before, port->handle.fd, false);
		/* its thread may be in a callback, and wait for messages after that */
		listener_begin(before);
		port_tell_engine(port, before, false);
	}
	if (listener) {
		listener_watch(listener, port->handle.fd, true);
		port_tell_engine(port, listener, false);
	}
}

/* --- entering and leaving ------------------------------------------------------- */

void port_release(struct ibmad_port *port)
{
	bool unused = port->closed && list_is_empty(&port->listeners) &&
		      list_is_empty(&port->servers);

	port_unlock(port);
	if (unused)
		port_free(port);
}

void port_leave_last(struct ibmad_port *port, int cancel_state)
{
	port_end_use(port);
	port_release(port);
	pthread_setcancelstate(cancel_state, NULL);
}
