/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/port.h"

#include "calls/async.h"
#include "engine/defaults.h"
#include "base/export.h"
#include "engine/flow.h"
#include "mad/mgmt_class.h"
#include "base/report.h"
#include "engine/requests.h"
#include "engine/transaction.h"
#include "engine/wait.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_REPLY         (64u << 20)
#define DESTINATION_LIMIT 16

/* Where the windows begin. */
#define SMP_WINDOW_START 8
#define GMP_WINDOW_START 16

/* An answer that takes longer than other ones, and than this, may be lost (microseconds). */
#define RTT_FLOOR      4000
#define RTT_INITIAL    100000
#define SA_RTT_FLOOR   50000
#define SA_RTT_INITIAL 500000

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

/* --- life ----------------------------------------------------------------------- */

/* Nothing is under way. */
static void init_flow(struct ibmad_port *port)
{
	table_init(&port->table);
	requests_init(&port->requests);
	for (unsigned i = 0; i < PORT_WINDOWS; i++) {
		port->windows[i].under_way = 0;
		port->ready[i] = (struct queue){.last = &port->ready[i].first};
	}
}

/* And nothing is known of the fabric. */
static void init_judgement(struct ibmad_port *port)
{
	window_init(&port->windows[MAD_WINDOW_SMP], SMP_WINDOW_START, SMP_WINDOW_MAX);
	window_init(&port->windows[MAD_WINDOW_GMP], GMP_WINDOW_START, GMP_WINDOW_MAX);
	for (unsigned i = 0; i < PORT_WINDOWS; i++)
		port->rtts[i] = (struct rtt){.floor_us = RTT_FLOOR, .initial_us = RTT_INITIAL};
	port->rtts[SA_RTT] =
		(struct rtt){.floor_us = SA_RTT_FLOOR, .initial_us = SA_RTT_INITIAL};
}

static void init_lock(struct ibmad_port *port)
{
	pthread_mutex_init(&port->lock, NULL);
	pthread_cond_init(&port->unused, NULL);
}

static struct ibmad_port *port_new(const char *ca_name, int portnum)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct ibmad_port *port = calloc(1, sizeof(*port));

	if (!port)
		return NULL;
	port->ca_name = ca_name ? strdup(ca_name) : NULL;
	if (ca_name && !port->ca_name) {
		free(port);
		return NULL;
	}
	pthread_once(&once, watch_forks);
	port->portnum = portnum;
	port->max_reply = MAX_REPLY;
	port->destination_limit = DESTINATION_LIMIT;
	for (unsigned i = 0; i < MGMT_CLASSES; i++)
		port->agents[i] = -1;
	port->forks = forks;
	init_lock(port);
	init_judgement(port);
	init_flow(port);
	return port;
}

static void port_free(struct ibmad_port *port)
{
	requests_free(&port->requests);
	destinations_free(&port->destinations);
	deadlines_free(&port->deadlines);
	table_free(&port->table);
	pthread_cond_destroy(&port->unused);
	pthread_mutex_destroy(&port->lock);
	free(port->ca_name);
	free(port);
}

/*
 * In a child of fork(), where only the thread is that forked: what others waited for is not
 * under way here, and who held the lock is not here to give it back.
 */
static void start_anew(struct ibmad_port *port)
{
	/* what a thread of the parent was changing is better left alone, and lost */
	if (!pthread_mutex_trylock(&port->lock)) {
		table_free(&port->table);
		destinations_free(&port->destinations);
		requests_free(&port->requests);
		deadlines_free(&port->deadlines);
	}
	init_lock(port);
	port->users = 0;
	port->waiters = NULL;
	port->being_read = false;
	port->deadlines = (struct deadlines){0};
	port->destinations = (struct destinations){0};
	init_flow(port);
	port->inherited = true;
	port->requests_open = 0;
	engines_after_fork(port);
	port->forks = forks;
}

void port_enter(struct ibmad_port *port)
{
	if (port->forks != forks) {
		pthread_mutex_lock(&child_lock);
		if (port->forks != forks)
			start_anew(port);
		pthread_mutex_unlock(&child_lock);
	}
	port_lock(port);
	port->users++;
}

void port_leave(struct ibmad_port *port)
{
	engines_wake_for_work(port);
	port->users--;
	if (port->closing && !port->users)
		pthread_cond_broadcast(&port->unused);
	port_unlock(port);
}

void port_fail(struct ibmad_port *port, int error)
{
	struct attempt *attempt;

	if (!port->gone)
		port->gone = error;
	while ((attempt = table_any(&port->table)))
		transaction_finish(port, transaction_of(attempt), port->gone);
	flow_cancel_all(port, port->gone);
	for (struct waiter *waiter = port->waiters; waiter; waiter = waiter->next)
		waiter_wake(waiter);
}

/* --- agents --------------------------------------------------------------------- */

int port_agent(const struct ibmad_port *port, int mgmt_class)
{
	return mgmt_class >= 0 && mgmt_class < MGMT_CLASSES ? port->agents[mgmt_class] : -1;
}

static int keep_agent(struct ibmad_port *port, int mgmt_class, uint8_t rmpp_version, int agent)
{
	if (agent < 0)
		return -1;
	port->rmpp[mgmt_class] = rmpp_version != 0;
	port->agents[mgmt_class] = agent;
	return agent;
}

static bool is_known_class(int mgmt_class)
{
	return (mgmt_class >= 0x01 && mgmt_class <= 0x4f) || mgmt_class == IB_SMI_DIRECT_CLASS;
}

EXPORT int mad_register_client_via(int mgmt, uint8_t rmpp_version, struct ibmad_port *srcport)
{
	int agent;

	if (!srcport || !is_known_class(mgmt)) {
		errno = EINVAL;
		return -1;
	}
	agent = umad_register(srcport->fd, mgmt, class_version(mgmt), rmpp_version, NULL);
	return keep_agent(srcport, mgmt, rmpp_version, agent) < 0 ? -1 : 0;
}

EXPORT int mad_register_server_via(int mgmt, uint8_t rmpp_version,
				   long method_mask[16 / sizeof(long)], uint32_t class_oui,
				   struct ibmad_port *srcport)
{
	uint8_t oui[3] = {(uint8_t)(class_oui >> 16), (uint8_t)(class_oui >> 8),
			  (uint8_t)class_oui};
	long mask[16 / sizeof(long)];
	int agent;

	if (!srcport || mgmt < 0 || mgmt >= MGMT_CLASSES) {
		errno = EINVAL;
		return -1;
	}
	if (method_mask)
		memcpy(mask, method_mask, sizeof(mask));
	else
		memset(mask, 0xff, sizeof(mask));
	if (mad_is_vendor_range2(mgmt))
		agent = umad_register_oui(srcport->fd, mgmt, rmpp_version, oui, mask);
	else
		agent = umad_register(srcport->fd, mgmt, class_version(mgmt), rmpp_version,
				      mask);
	return keep_agent(srcport, mgmt, rmpp_version, agent);
}

EXPORT int mad_rpc_class_agent(struct ibmad_port *srcport, int cls)
{
	return srcport ? port_agent(srcport, cls) : -1;
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

static const char *name_of(const char *ca_name)
{
	return ca_name ? ca_name : "(any)";
}

/* Opens a port, for SMPs or as mad_rpc_open_port(), and registers a client for each class. */
static struct ibmad_port *open_port(const char *call, report_fn *tell, const char *ca_name,
				    int portnum, bool smi, const int *classes, int count)
{
	struct ibmad_port *port;
	int error, refused;

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
	port->fd =
		smi ? umad_open_smi_port(ca_name, portnum) : umad_open_port(ca_name, portnum);
	if (port->fd < 0) {
		error = port->fd == -EIO && errno ? errno : -port->fd;
		port_free(port);
		errno = error;
		tell(call, "cannot open %s port %d", name_of(ca_name), portnum);
		return NULL;
	}
	refused = register_clients(port, classes, count);
	if (refused) {
		error = errno;
		umad_close_port(port->fd);
		port_free(port);
		errno = error;
		tell(call, "cannot register class %d on %s port %d", classes[refused - 1],
		     name_of(ca_name), portnum);
		return NULL;
	}
	return port;
}

struct ibmad_port *port_open(const char *call, report_fn *tell, const char *ca_name,
			     int portnum, const int *classes, int count)
{
	if (count < 0 || (count && !classes)) {
		errno = EINVAL;
		return NULL;
	}
	return open_port(call, tell, ca_name, portnum, false, classes, count);
}

EXPORT struct ibmad_port *mad_rpc_open_port(char *dev_name, int dev_port, int *mgmt_classes,
					    int num_classes)
{
	return port_open("mad_rpc_open_port", report, dev_name, dev_port, mgmt_classes,
			 num_classes);
}

EXPORT void mad_rpc_close_port(struct ibmad_port *srcport)
{
	if (!srcport)
		return;
	port_enter(srcport);
	srcport->closing = true;
	port_fail(srcport, ECANCELED);
	srcport->users--;
	while (srcport->users)
		pthread_cond_wait(&srcport->unused, &srcport->lock);
	for (int i = 0; i < MGMT_CLASSES && !srcport->inherited; i++)
		if (srcport->agents[i] >= 0)
			umad_unregister(srcport->fd, srcport->agents[i]);
	umad_close_port(srcport->fd);
	srcport->closed = true;
	port_release(srcport);
}

void port_release(struct ibmad_port *port)
{
	bool unused = port->closed && !port->engines;

	port_unlock(port);
	if (unused)
		port_free(port);
}

/* --- planarized devices --------------------------------------------------------- */

static int select_classes(const int *classes, int count, bool smi, int *selected)
{
	int n = 0;

	for (int i = 0; i < count; i++)
		if (is_smp_class(classes[i]) == smi && n < MGMT_CLASSES)
			selected[n++] = classes[i];
	return n;
}

static void name_item(ibmad_ports_item_t *item, struct ibmad_port *port, const char *name)
{
	item->port = port;
	snprintf(item->ca_name, sizeof(item->ca_name), "%s", name);
}

/* Both kinds of classes on one port. */
static int open_one(struct ibmad_ports_pair *pair, const struct umad_ca_pair *names,
		    const int *classes, int count)
{
	struct ibmad_port *port =
		open_port("mad_rpc_open_port2", report, names->gsi_name,
			  (int)names->gsi_preferred_port, false, classes, count);

	if (!port)
		return -1;
	name_item(&pair->gsi, port, names->gsi_name);
	name_item(&pair->smi, port, names->gsi_name);
	return 0;
}

static int open_both(struct ibmad_ports_pair *pair, const struct umad_ca_pair *names,
		     const int *classes, int count)
{
	int selected[MGMT_CLASSES] = {0}, n = select_classes(classes, count, true, selected),
	    error;
	struct ibmad_port *smi, *gsi;

	smi = open_port("mad_rpc_open_port2", report, names->smi_name,
			(int)names->smi_preferred_port, true, selected, n);
	if (!smi)
		return -1;
	n = select_classes(classes, count, false, selected);
	gsi = open_port("mad_rpc_open_port2", report, names->gsi_name,
			(int)names->gsi_preferred_port, false, selected, n);
	if (!gsi) {
		error = errno;
		mad_rpc_close_port(smi);
		errno = error;
		return -1;
	}
	name_item(&pair->smi, smi, names->smi_name);
	name_item(&pair->gsi, gsi, names->gsi_name);
	return 0;
}

/* 0 or a negative errno. */
static int find_pair(const char *ca_name, int portnum, unsigned enforce_smi,
		     struct umad_ca_pair *names)
{
	int ret, fd;

	if (portnum < 0 || portnum > UINT8_MAX)
		return -ENODEV;
	ret = umad_get_smi_gsi_pair_by_ca_name(ca_name, (uint8_t)portnum, names, enforce_smi);
	if (!ret)
		return 0;
	/* libibumad reports why the port cannot be opened */
	fd = umad_open_port(ca_name, portnum);
	if (fd >= 0)
		umad_close_port(fd);
	return ret < 0 ? ret : -ENODEV;
}

EXPORT struct ibmad_ports_pair *mad_rpc_open_port2(char *dev_name, int dev_port,
						   int *mgmt_classes, int num_classes,
						   unsigned enforce_smi)
{
	struct umad_ca_pair names = {0};
	struct ibmad_ports_pair *pair;
	int ret;

	if (num_classes < 0 || (num_classes && !mgmt_classes)) {
		errno = EINVAL;
		return NULL;
	}
	ret = find_pair(dev_name, dev_port, enforce_smi, &names);
	if (ret) {
		errno = -ret;
		report("mad_rpc_open_port2", "cannot open %s port %d", name_of(dev_name),
		       dev_port);
		return NULL;
	}
	pair = calloc(1, sizeof(*pair));
	if (!pair)
		return NULL;
	if (names.smi_name[0] && strcmp(names.smi_name, names.gsi_name))
		ret = open_both(pair, &names, mgmt_classes, num_classes);
	else
		ret = open_one(pair, &names, mgmt_classes, num_classes);
	if (ret) {
		ret = errno;
		free(pair);
		errno = ret;
		return NULL;
	}
	return pair;
}

EXPORT void mad_rpc_close_port2(struct ibmad_ports_pair *srcport)
{
	if (!srcport)
		return;
	if (srcport->smi.port != srcport->gsi.port)
		mad_rpc_close_port(srcport->smi.port);
	mad_rpc_close_port(srcport->gsi.port);
	free(srcport);
}
