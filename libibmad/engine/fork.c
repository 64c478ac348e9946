/* SPDX-License-Identifier: BSD-2-Clause */

/* A port in a fork()ed child. mad.h and mad_async.h say what a child may do. */

#include "engine/async.h"

#include <errno.h>

atomic_uint port_forks;
/* For port_inherit(); count_fork() reinitializes it in each child. */
static pthread_mutex_t child_lock = PTHREAD_MUTEX_INITIALIZER;

static void count_fork(void)
{
	port_forks++;
	pthread_mutex_init(&child_lock, NULL);
}

static void install_fork_handler(void)
{
	pthread_atfork(NULL, NULL, count_fork);
}

void port_watch_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install_fork_handler);
}

/*
 * A fork()ed child has only the forking thread. Responses to requests in flight are for the
 * parent. If another thread of the parent was in a call, the port may be half changed, so it is
 * lost.
 */
static void become_inherited(struct ibmad_port *port)
{
	unsigned own = 0; /* this thread's calls: it forked in a callback */
	struct list *entry;
	bool lost;

	list_for_each (engine, &port->engines)
		own += engine_is_processor(list_entry(engine, struct mad_async, all));
	lost = port->users > own || pthread_mutex_trylock(&port->lock);
	port->forks = port_forks;
	/* the parent's eventfd would wake the parent */
	port_close_wake_fd(port);
	if (lost) {
		port->state = PORT_LOST;
		return;
	}
	port->state = PORT_INHERITED;
	while ((entry = list_pop(&port->loops)))
		alarm_close(&list_entry(entry, struct mad_async, loop)->alarm);
	port->leader = NULL;
	port->lead = LEAD_WORKING;
	port->reading = false;
	port->alerted = false;
	port_begin(port);
	port_cancel_all(port, ECANCELED);
	flow_reset(&port->requests.flow);
	servers_inherit(port);
	inbox_free(&port->inbox);
	port_unlock(port);
}

void port_inherit(struct ibmad_port *port)
{
	pthread_mutex_lock(&child_lock);
	if (port->forks != port_forks)
		become_inherited(port);
	pthread_mutex_unlock(&child_lock);
}
