/* SPDX-License-Identifier: BSD-2-Clause */

/* Opens and closes ports: composes the layers. */

#include "calls/port.h"

#include "base/export.h"
#include "mad/layout.h"

#include <errno.h>
#include <stdlib.h>

/* --- forks ---------------------------------------------------------------------- */

static atomic_uint forks;
/* In a child, one thread brings a port up to date; none does that across a fork. */
static pthread_mutex_t child_lock = PTHREAD_MUTEX_INITIALIZER;

static void count_fork(void)
{
	forks++;
	pthread_mutex_init(&child_lock, NULL);
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, count_fork);
}

/* --- what the core tells -------------------------------------------------------- */

/* Whether a server has the message. The kernel tells messages apart by their agent. */
static bool is_served(struct ibmad_port *port, const uint8_t *umad, int length)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;

	list_for_each (entry, &port->servers) {
		struct port_server *server = list_entry(entry, struct port_server, all);

		if (server->agent >= 0 && (uint32_t)server->agent == header->agent_id)
			return server->ops->received(server, umad, length);
	}
	return false;
}

static void add_unclaimed(struct core *core, const uint8_t *umad, int length)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	struct ibmad_port *port = port_of_core(core);

	if (is_served(port, umad, length))
		return;
	if (inbox_add(&port->inbox, umad, length))
		reader_wake_receiver(&port->reader);
	else
		/* the timeout of a transmission that was given up is no response */
		core->dropped += !header->status;
}

/* This thread itself will send what may be sent now. */
static void tell_clients(struct core *core)
{
	struct list *clients = &port_of_core(core)->clients;

	list_for_each (entry, clients) {
		struct port_client *client = list_entry(entry, struct port_client, all);

		client->ops->changed(client);
	}
}

void port_tell_all(struct ibmad_port *port)
{
	int64_t opens;

	tell_clients(&port->core);
	if (scheduler_can_send(&port->scheduler)) {
		reader_wake_sender(&port->reader);
		return;
	}
	opens = scheduler_opens(&port->scheduler);
	if (opens != NEVER)
		reader_wake_for(&port->reader, opens);
}

/* In a child of fork() no thread waits until the first call, which resets the reader. */
void port_alert(struct ibmad_port *port)
{
	if (port->forks == forks)
		reader_alert(&port->reader);
}

static void fail(struct core *core)
{
	struct ibmad_port *port = port_of_core(core);

	scheduler_fail(&port->scheduler);
	list_for_each (entry, &port->servers) {
		struct port_server *server = list_entry(entry, struct port_server, all);

		server->ops->failed(server);
	}
	reader_wake_all(&port->reader);
	tell_clients(core);
}

static void take_news(struct core *core, struct transaction *transaction)
{
	scheduler_news(&port_of_core(core)->scheduler, transaction);
}

static const struct core_hooks hooks = {
	.unclaimed = add_unclaimed,
	.failed = fail,
	.progress = tell_clients,
	.news = take_news,
};

/* --- life ----------------------------------------------------------------------- */

static struct ibmad_port *port_new(const char *ca_name, int portnum)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct ibmad_port *port = calloc(1, sizeof(*port));
	struct link *link;

	if (!port)
		return NULL;
	link = &port->core.link;
	link->ca_name = ca_name ? strdup(ca_name) : NULL;
	if (ca_name && !link->ca_name) {
		free(port);
		return NULL;
	}
	pthread_once(&once, watch_forks);
	link->portnum = portnum;
	for (unsigned i = 0; i < MGMT_CLASSES; i++)
		link->agents[i] = -1;
	port->forks = forks;
	core_init(&port->core, &hooks);
	reader_init(&port->reader, &port->core);
	scheduler_init(&port->scheduler, &port->core);
	source_init(&port->blocking, 1);
	inbox_init(&port->inbox);
	pthread_cond_init(&port->unused, NULL);
	list_init(&port->clients);
	list_init(&port->servers);
	list_init(&port->retired);
	return port;
}

static void port_free(struct ibmad_port *port)
{
	struct list *entry;

	while ((entry = list_first(&port->retired))) {
		struct port_client *client = list_entry(entry, struct port_client, all);

		list_remove(entry);
		client->ops->free(client);
	}
	inbox_free(&port->inbox);
	scheduler_free(&port->scheduler);
	reader_free(&port->reader);
	core_free(&port->core);
	pthread_cond_destroy(&port->unused);
	free(port->core.link.ca_name);
	free(port);
}

/*
 * In a child of fork(), which has only the thread that forked: nothing that other threads
 * waited for is in flight here, and the thread that held the lock does not exist.
 */
static void start_anew(struct ibmad_port *port)
{
	bool intact = !pthread_mutex_trylock(&port->core.lock);

	/* what a thread of the parent was changing is left alone, and lost */
	if (intact) {
		table_free(&port->core.transactions.outstanding.table);
		scheduler_free(&port->scheduler);
		inbox_free(&port->inbox);
	}
	core_reset(&port->core);
	reader_reset(&port->reader);
	scheduler_reset(&port->scheduler);
	source_init(&port->blocking, 1);
	inbox_init(&port->inbox);
	pthread_cond_init(&port->unused, NULL);
	port->users = 0;
	port->inherited = true;
	list_for_each (entry, &port->servers) {
		struct port_server *server = list_entry(entry, struct port_server, all);

		server->ops->forked(server, intact);
	}
	list_for_each (entry, &port->clients) {
		struct port_client *client = list_entry(entry, struct port_client, all);

		client->ops->forked(client);
	}
	port->forks = forks;
}

int port_enter(struct ibmad_port *port)
{
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	if (port->forks != forks) {
		pthread_mutex_lock(&child_lock);
		if (port->forks != forks)
			start_anew(port);
		pthread_mutex_unlock(&child_lock);
	}
	core_lock(&port->core);
	port->users++;
	return cancel_state;
}

void port_leave(struct ibmad_port *port, int cancel_state)
{
	port_tell_all(port);
	port->users--;
	if (port->closing && !port->users)
		pthread_cond_broadcast(&port->unused);
	core_unlock(&port->core);
	pthread_setcancelstate(cancel_state, NULL);
}

void port_release(struct ibmad_port *port)
{
	bool unused =
		port->closed && list_is_empty(&port->clients) && list_is_empty(&port->servers);

	core_unlock(&port->core);
	if (unused)
		port_free(port);
}

void port_leave_last(struct ibmad_port *port, int cancel_state)
{
	port_tell_all(port);
	port->users--;
	if (port->closing && !port->users)
		pthread_cond_broadcast(&port->unused);
	port_release(port);
	pthread_setcancelstate(cancel_state, NULL);
}

/* --- opening and closing -------------------------------------------------------- */

/* In programs that run with another's rights, the environment has no say. */
static void take_debug_level(void)
{
	const char *level = secure_getenv("LIBIBMAD_DEBUG_LEVEL");

	if (level)
		ibdebug = atoi(level);
}

/* 0, or the position, from 1 on, of the class that cannot be registered; errno has the cause.
 */
static int register_clients(struct ibmad_port *port, const int *classes, int count)
{
	uint8_t rmpp_version;

	for (int i = 0; i < count; i++) {
		rmpp_version = classes[i] == IB_SA_CLASS ? RMPP_VERSION : 0;
		if (!is_known_class(classes[i])) {
			errno = EINVAL;
			return i + 1;
		}
		if (mad_register_client_via(classes[i], rmpp_version, port) < 0) {
			if (!errno)
				errno = EINVAL;
			return i + 1;
		}
	}
	return 0;
}

const char *port_name(const char *ca_name)
{
	return ca_name ? ca_name : "(any)";
}

struct ibmad_port *port_open_any(const char *call, report_fn *tell, const char *ca_name,
				 int portnum, bool smi, const int *classes, int count)
{
	struct ibmad_port *port;
	int fd, error, refused;

	if (count >= MGMT_CLASSES) {
		errno = EINVAL;
		tell(call, "%d classes are too many", count);
		return NULL;
	}
	port = port_new(ca_name, portnum);
	take_debug_level();
	if (!port) {
		errno = ENOMEM;
		return NULL;
	}
	fd = smi ? umad_open_smi_port(ca_name, portnum) : umad_open_port(ca_name, portnum);
	if (fd < 0) {
		error = fd == -EIO && errno ? errno : -fd;
		port_free(port);
		errno = error;
		tell(call, "cannot open %s port %d", port_name(ca_name), portnum);
		return NULL;
	}
	port->core.link.fd = fd;
	refused = register_clients(port, classes, count);
	if (refused) {
		error = errno;
		umad_close_port(fd);
		port_free(port);
		errno = error;
		tell(call, "cannot register class %d on %s port %d", classes[refused - 1],
		     port_name(ca_name), portnum);
		return NULL;
	}
	reader_open(&port->reader);
	return port;
}

struct ibmad_port *port_open(const char *call, report_fn *tell, const char *ca_name,
			     int portnum, const int *classes, int count)
{
	if (count < 0 || (count && !classes)) {
		errno = EINVAL;
		return NULL;
	}
	return port_open_any(call, tell, ca_name, portnum, false, classes, count);
}

EXPORT struct ibmad_port *mad_rpc_open_port(char *dev_name, int dev_port, int *mgmt_classes,
					    int num_classes)
{
	return port_open("mad_rpc_open_port", report, dev_name, dev_port, mgmt_classes,
			 num_classes);
}

static void unregister_all(struct ibmad_port *port)
{
	const struct link *link = &port->core.link;

	for (int i = 0; i < MGMT_CLASSES && !port->inherited; i++)
		if (link->agents[i] >= 0)
			umad_unregister(link->fd, link->agents[i]);
	list_for_each (entry, &port->servers) {
		struct port_server *server = list_entry(entry, struct port_server, all);

		if (server->agent >= 0)
			umad_unregister(link->fd, server->agent);
		server->agent = -1;
	}
}

EXPORT void mad_rpc_close_port(struct ibmad_port *srcport)
{
	int cancel_state;

	if (!srcport)
		return;
	cancel_state = port_enter(srcport);
	srcport->closing = true;
	core_fail(&srcport->core, ECANCELED);
	srcport->users--;
	while (srcport->users)
		pthread_cond_wait(&srcport->unused, &srcport->core.lock);
	unregister_all(srcport);
	umad_close_port(srcport->core.link.fd);
	srcport->closed = true;
	port_release(srcport);
	pthread_setcancelstate(cancel_state, NULL);
}
