/* SPDX-License-Identifier: BSD-2-Clause */

/* A port: creation, freeing, entering and leaving, options. */

#include "base/export.h"
#include "base/report.h"
#include "engine/port.h"

#include <infiniband/mad_port.h>
#include <infiniband/mad_sa.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Memory for this many requests is kept when none is open. */
#define KEPT      1024
/* The default of MAD_PORT_MAX_RESPONSE, in bytes. */
#define MAX_REPLY (64u << 20)

/* --- life ----------------------------------------------------------------------- */

/*
 * Whether the handle is a kernel descriptor: a preloaded simulator's is not, and simulators
 * don't replace epoll_ctl().
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
	port->wake_fd = -1;
	pthread_mutex_init(&port->lock, NULL);
	pthread_cond_init(&port->idle, NULL);
	requests_init(&port->requests);
	queue_init(&port->queue, &port->requests.flow);
	source_init(&port->blocking, 1);
	inbox_init(&port->inbox);
	list_init(&port->servers);
	list_init(&port->engines);
	list_init(&port->loops);
	list_init(&port->retired);
	list_init(&port->waiters);
	for (unsigned i = 0; i < FLOW_WINDOWS; i++)
		port->traced_sizes[i] = port->requests.flow.windows[i].size;
	return port;
}

void port_open_wake_fd(struct ibmad_port *port)
{
	port->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void port_close_wake_fd(struct ibmad_port *port)
{
	int fd = port->wake_fd;

	/* first: a signal handler may call port_alert() */
	port->wake_fd = -1;
	if (fd >= 0)
		close(fd);
}

void port_begin(struct ibmad_port *port)
{
	port->handle.header_size = (unsigned)umad_size();
	port->has_descriptor = is_descriptor(port->handle.fd);
	if (port->has_descriptor)
		port_open_wake_fd(port);
}

void port_free(struct ibmad_port *port)
{
	struct list *entry;

	while ((entry = list_pop(&port->retired)))
		free(entry);
	inbox_free(&port->inbox);
	queue_free(&port->queue);
	tids_free(&port->requests.tids);
	port_close_wake_fd(port);
	pthread_cond_destroy(&port->idle);
	pthread_mutex_destroy(&port->lock);
	free(port->handle.ca_name);
	free(port);
}

void port_shrink(struct ibmad_port *port)
{
	struct tids *tids = &port->requests.tids;

	if (tids->bucket_count > KEPT && !tids->count)
		tids_free(tids);
	queue_shrink(&port->queue);
}

/* --- entering and leaving ------------------------------------------------------- */

/* Calls nest: a callback may call the library. */
static _Thread_local struct {
	unsigned depth;
	int cancel_state; /* before the outermost call */
} calls;

void call_begin(void)
{
	if (!calls.depth++)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &calls.cancel_state);
}

void call_end(void)
{
	if (!--calls.depth)
		pthread_setcancelstate(calls.cancel_state, NULL);
}

int port_enter(struct ibmad_port *port)
{
	call_begin();
	if (port->forks != port_forks)
		port_inherit(port);
	if (port->state == PORT_LOST) {
		call_end();
		return -ECANCELED;
	}
	port_lock(port);
	port->users++;
	return 0;
}

void port_leave(struct ibmad_port *port)
{
	bool unused;

	port_tell(port);
	if (!--port->users && port->state == PORT_CLOSING)
		pthread_cond_broadcast(&port->idle);
	unused = !port->users && port->state == PORT_CLOSED && list_is_empty(&port->engines) &&
		 list_is_empty(&port->servers);
	port_unlock(port);
	if (unused)
		port_free(port);
	call_end();
}

/* --- options -------------------------------------------------------------------- */

/* Process-wide defaults for options that are not set. */
static atomic_int process_timeout_ms = MAD_DEF_TIMEOUT_MS;
static atomic_int process_retries = MAD_DEF_RETRIES;

EXPORT int madrpc_set_retries(int count)
{
	if (count > 0)
		process_retries = count;
	return process_retries;
}

EXPORT int madrpc_set_timeout(int timeout)
{
	process_timeout_ms = timeout;
	return 0;
}

EXPORT int mad_get_timeout(const struct ibmad_port *srcport, int override_ms)
{
	int timeout_ms = override_ms;

	if (!timeout_ms && srcport)
		timeout_ms = srcport->options.timeout_ms;
	return timeout_ms ? timeout_ms : process_timeout_ms;
}

EXPORT int mad_get_retries(const struct ibmad_port *srcport)
{
	int retries = srcport ? srcport->options.retries : 0;

	return retries > 0 ? retries : process_retries;
}

uint64_t options_sa_key(const struct ibmad_port *port)
{
	return port ? port->options.sa_key : 0;
}

uint64_t options_m_key(const struct ibmad_port *port)
{
	return port ? port->options.m_key : 0;
}

struct request_settings options_for_request(const struct ibmad_port *port, int mgmt_class)
{
	return (struct request_settings){
		.agent = handle_agent(&port->handle, mgmt_class),
		.rmpp = port->handle.rmpp[mgmt_class],
		.gid_index = port->options.gid_index,
		.timeout_ms = mad_get_timeout(port, 0),
		.attempts = mad_get_retries(port),
	};
}

EXPORT int mad_rpc_portid(struct ibmad_port *srcport)
{
	return srcport ? srcport->handle.fd : -1;
}

EXPORT void mad_rpc_set_retries(struct ibmad_port *port, int retries)
{
	if (port)
		port->options.retries = retries;
}

EXPORT void mad_rpc_set_timeout(struct ibmad_port *port, int timeout)
{
	if (port)
		port->options.timeout_ms = timeout;
}

EXPORT void smp_mkey_set(struct ibmad_port *srcport, uint64_t mkey)
{
	if (srcport)
		srcport->options.m_key = mkey;
}

EXPORT uint64_t smp_mkey_get(const struct ibmad_port *srcport)
{
	return options_m_key(srcport);
}

/* Takes effect at once: sends queued requests that now fit. */
static void set_limit_unlocking(struct ibmad_port *port, enum mad_port_option option,
				unsigned requests)
{
	if (option == MAD_PORT_DESTINATION_LIMIT) {
		queue_set_limit(&port->queue, requests);
	} else if (option == MAD_PORT_RATE) {
		port->queue.pace = (struct pace){.rate = requests};
	} else {
		flow_fix_window(&port->requests.flow,
				option == MAD_PORT_SMP_WINDOW ? MAD_WINDOW_SMP : MAD_WINDOW_GMP,
				requests);
		port_trace_windows(port);
	}
	port->options.limits[option] = requests;
	port_send_unlocking(port, UINT_MAX);
}

static int set_limit(struct ibmad_port *port, enum mad_port_option option, uint64_t requests)
{
	if (requests > UINT_MAX)
		return -EINVAL;
	if (port_enter(port))
		return -ECANCELED;
	set_limit_unlocking(port, option, (unsigned)requests);
	port_leave(port);
	return 0;
}

EXPORT int mad_port_set(struct ibmad_port *port, enum mad_port_option option, uint64_t value)
{
	if (!port)
		return failure_of_call(0, -EINVAL);
	switch (option) {
	case MAD_PORT_SA_KEY:
		port->options.sa_key = value;
		return 0;
	case MAD_PORT_GID_INDEX:
		if (value > UINT8_MAX)
			return failure_of_call(0, -EINVAL);
		port->options.gid_index = (unsigned)value;
		return 0;
	case MAD_PORT_MAX_RESPONSE:
		if (value < IB_MAD_SIZE || value > SIZE_MAX)
			return failure_of_call(0, -EINVAL);
		port->options.max_reply = (size_t)value;
		return 0;
	case MAD_PORT_SMP_WINDOW:
	case MAD_PORT_GMP_WINDOW:
	case MAD_PORT_DESTINATION_LIMIT:
	case MAD_PORT_RATE:
		return failure_of_call(0, set_limit(port, option, value));
	}
	return failure_of_call(0, -EINVAL);
}

EXPORT int mad_port_get(const struct ibmad_port *port, enum mad_port_option option,
			uint64_t *value)
{
	if (!port || !value)
		return failure_of_call(0, -EINVAL);
	switch (option) {
	case MAD_PORT_SA_KEY:
		*value = port->options.sa_key;
		return 0;
	case MAD_PORT_GID_INDEX:
		*value = port->options.gid_index;
		return 0;
	case MAD_PORT_MAX_RESPONSE:
		*value = port->options.max_reply;
		return 0;
	case MAD_PORT_SMP_WINDOW:
	case MAD_PORT_GMP_WINDOW:
	case MAD_PORT_DESTINATION_LIMIT:
	case MAD_PORT_RATE:
		*value = port->options.limits[option];
		return 0;
	}
	return failure_of_call(0, -EINVAL);
}
