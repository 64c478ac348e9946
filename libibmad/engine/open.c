/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Opens and closes ports (both ports of a planarized device), registers agents; and the calls
 * without a port argument, which use madrpc_init()'s port.
 */

#include "base/export.h"
#include "base/report.h"
#include "engine/port.h"

#include <infiniband/mad_port.h>
#include <errno.h>
#include <stdlib.h>

/* The kernel numbers a handle's agents from 0 to 31. */
#define AGENTS_MAX 32

/* --- agents --------------------------------------------------------------------- */

int handle_register(const struct handle *handle, int mgmt_class, uint8_t rmpp_version,
		    long *methods, uint32_t oui)
{
	uint8_t bytes[3] = {(uint8_t)(oui >> 16), (uint8_t)(oui >> 8), (uint8_t)oui};

	if (methods && mad_is_vendor_range2(mgmt_class))
		return umad_register_oui(handle->fd, mgmt_class, rmpp_version, bytes, methods);
	return umad_register(handle->fd, mgmt_class, class_version(mgmt_class), rmpp_version,
			     methods);
}

/* Returns the agent, or -1 and errno. */
static int register_class_agent(const char *call, struct ibmad_port *port, int mgmt_class,
				uint8_t rmpp_version, long *methods, uint32_t oui)
{
	int agent = -1;

	if (!port || (methods ? mgmt_class < 0 || mgmt_class >= MGMT_CLASSES
			      : !is_known_class(mgmt_class)))
		errno = EINVAL;
	else
		agent = handle_register(&port->handle, mgmt_class, rmpp_version, methods, oui);
	if (agent < 0) {
		failure_refuse_call(MAD_FAILURE_REGISTER, mgmt_class, errno ? errno : EINVAL);
		return -1;
	}
	port->handle.rmpp[mgmt_class] = rmpp_version != 0;
	port->handle.agents[mgmt_class] = agent;
	if (ibdebug)
		report_debug(call, "class 0x%02x is agent %d on handle %d",
			     (unsigned)mgmt_class, agent, port->handle.fd);
	return agent;
}

EXPORT int mad_register_client_via(int mgmt, uint8_t rmpp_version, struct ibmad_port *srcport)
{
	int agent = register_class_agent("mad_register_client_via", srcport, mgmt, rmpp_version,
					 NULL, 0);

	return agent < 0 ? -1 : 0;
}

EXPORT int mad_register_server_via(int mgmt, uint8_t rmpp_version,
				   long method_mask[16 / sizeof(long)], uint32_t class_oui,
				   struct ibmad_port *srcport)
{
	long methods[16 / sizeof(long)];

	if (method_mask)
		memcpy(methods, method_mask, sizeof(methods));
	else
		memset(methods, 0xff, sizeof(methods));
	return register_class_agent("mad_register_server_via", srcport, mgmt, rmpp_version,
				    methods, class_oui);
}

EXPORT int mad_rpc_class_agent(struct ibmad_port *srcport, int cls)
{
	return srcport ? handle_agent(&srcport->handle, cls) : -1;
}

/* --- a port --------------------------------------------------------------------- */

/* secure_getenv(): set-uid programs ignore the environment. */
static void take_debug_level(void)
{
	const char *level = secure_getenv("LIBIBMAD_DEBUG_LEVEL");

	if (level)
		ibdebug = atoi(level);
}

static const char *port_name(const char *ca_name)
{
	return ca_name ? ca_name : "(any)";
}

/* Returns 0, or the 1-based position of the class that failed, with errno set. */
static int register_clients(struct ibmad_port *port, const int *classes, int count)
{
	for (int i = 0; i < count; i++)
		if (mad_register_client_via(
			    classes[i], classes[i] == IB_SA_CLASS ? RMPP_VERSION : 0, port) < 0)
			return i + 1;
	return 0;
}

/* Stores the failure, and sets errno. */
static struct ibmad_port *not_opened(int error)
{
	failure_refuse_call(MAD_FAILURE_OPEN, 0, error);
	return NULL;
}

/* The errno of a libibumad call that returned "ret". */
static int cause_of(int ret)
{
	return ret == -EIO && errno ? errno : -ret;
}

static struct ibmad_port *open_uncancelled(const char *call, report_fn *tell,
					   const char *ca_name, int portnum, bool smi,
					   const int *classes, int count)
{
	struct ibmad_port *port;
	int fd, error, refused;

	if (count >= MGMT_CLASSES) {
		not_opened(EINVAL);
		tell(call, "%d classes are too many", count);
		return NULL;
	}
	port = port_new(ca_name, portnum);
	take_debug_level();
	if (!port)
		return not_opened(ENOMEM);
	fd = smi ? umad_open_smi_port(ca_name, portnum) : umad_open_port(ca_name, portnum);
	if (fd < 0) {
		error = cause_of(fd);
		port_free(port);
		not_opened(error);
		tell(call, "cannot open %s port %d", port_name(ca_name), portnum);
		return NULL;
	}
	port->handle.fd = fd;
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
	port_begin(port);
	if (ibdebug)
		report_debug(call, "%s port %d is open, handle %d", port_name(ca_name), portnum,
			     fd);
	return port;
}

/* Not cancellable: that would leak descriptors. */
static struct ibmad_port *port_open(const char *call, report_fn *tell, const char *ca_name,
				    int portnum, bool smi, const int *classes, int count)
{
	struct ibmad_port *port;

	if (count < 0 || (count && !classes))
		return not_opened(EINVAL);
	call_begin();
	port = open_uncancelled(call, tell, ca_name, portnum, smi, classes, count);
	call_end();
	return port;
}

EXPORT struct ibmad_port *mad_rpc_open_port(char *dev_name, int dev_port, int *mgmt_classes,
					    int num_classes)
{
	return port_open("mad_rpc_open_port", report, dev_name, dev_port, false, mgmt_classes,
			 num_classes);
}

/* Registers every listed class that the port and the kernel permit. */
EXPORT int mad_port_open(const char *ca_name, int portnum, struct ibmad_port **port)
{
	static const int usual_classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS,
					    IB_SA_CLASS,  IB_PERFORMANCE_CLASS,
					    IB_CC_CLASS,  IB_BOARD_MGMT_CLASS};

	int error;

	if (!port) {
		not_opened(EINVAL);
		return -EINVAL;
	}
	call_begin();
	*port = port_open("mad_port_open", report, ca_name, portnum, false, NULL, 0);
	error = *port ? 0 : -errno;
	for (size_t i = 0; !error && i < sizeof(usual_classes) / sizeof(usual_classes[0]); i++)
		if (register_clients(*port, &usual_classes[i], 1))
			report("mad_port_open", "cannot register class 0x%02x on %s port %d",
			       (unsigned)usual_classes[i], port_name(ca_name), portnum);
	call_end();
	return error;
}

/* In a fork()ed child, a lost port leaks its memory: its lists may be half changed. */
EXPORT void mad_rpc_close_port(struct ibmad_port *srcport)
{
	bool inherited;

	if (!srcport)
		return;
	if (port_enter(srcport)) {
		umad_close_port(srcport->handle.fd);
		return;
	}
	inherited = srcport->state == PORT_INHERITED;
	port_fail(srcport, PORT_CLOSING, ECANCELED);
	srcport->users--;
	while (srcport->users)
		pthread_cond_wait(&srcport->idle, &srcport->lock);
	for (int i = 0; i < MGMT_CLASSES && !inherited; i++)
		if (srcport->handle.agents[i] >= 0)
			umad_unregister(srcport->handle.fd, srcport->handle.agents[i]);
	servers_unregister(srcport);
	umad_close_port(srcport->handle.fd);
	srcport->state = PORT_CLOSED;
	srcport->users++;
	port_leave(srcport);
}

/* --- a pair of ports ------------------------------------------------------------ */

static int select_classes(const int *classes, int count, bool smi, int *selected)
{
	int n = 0;

	for (int i = 0; i < count; i++)
		if (is_smp_class(classes[i]) == smi && n < MGMT_CLASSES)
			selected[n++] = classes[i];
	return n;
}

static int open_item(ibmad_ports_item_t *item, const char *name, uint32_t portnum, bool smi,
		     const int *classes, int count)
{
	item->port = port_open("mad_rpc_open_port2", report, name, (int)portnum, smi, classes,
			       count);
	snprintf(item->ca_name, sizeof(item->ca_name), "%s", name);
	return item->port ? 0 : -1;
}

/* Planarized devices use separate ports for SMPs and GMPs; others use one. */
static int open_pair(struct ibmad_ports_pair *pair, const struct umad_ca_pair *names,
		     const int *classes, int count)
{
	int selected[MGMT_CLASSES] = {0}, n, error;

	if (!names->smi_name[0] || !strcmp(names->smi_name, names->gsi_name)) {
		if (open_item(&pair->gsi, names->gsi_name, names->gsi_preferred_port, false,
			      classes, count))
			return -1;
		pair->smi = pair->gsi;
		return 0;
	}
	n = select_classes(classes, count, true, selected);
	if (open_item(&pair->smi, names->smi_name, names->smi_preferred_port, true, selected,
		      n))
		return -1;
	n = select_classes(classes, count, false, selected);
	if (open_item(&pair->gsi, names->gsi_name, names->gsi_preferred_port, false, selected,
		      n)) {
		error = errno;
		mad_rpc_close_port(pair->smi.port);
		errno = error;
		return -1;
	}
	return 0;
}

/* Returns 0 or an errno. A port in no pair, e.g. RoCE, has no device for SMPs. */
static int find_pair(const char *ca_name, int portnum, unsigned enforce_smi,
		     struct umad_ca_pair *names)
{
	umad_port_t port;
	int ret, fd, error;

	if (portnum < 0 || portnum > UINT8_MAX)
		return ENODEV;
	ret = umad_get_smi_gsi_pair_by_ca_name(ca_name, (uint8_t)portnum, names, enforce_smi);
	if (!ret)
		return 0;
	error = ret < 0 ? cause_of(ret) : ENODEV;
	if (!umad_get_port(ca_name, portnum, &port)) {
		snprintf(names->gsi_name, sizeof(names->gsi_name), "%s", port.ca_name);
		names->gsi_preferred_port = (uint32_t)port.portnum;
		umad_release_port(&port);
		if (!enforce_smi && ret == -ENODEV)
			return 0;
	}
	/* libibumad reports why it failed */
	fd = umad_open_port(ca_name, portnum);
	if (fd >= 0)
		umad_close_port(fd);
	return error;
}

static struct ibmad_ports_pair *open_port2_uncancelled(const char *dev_name, int dev_port,
						       const int *mgmt_classes, int num_classes,
						       unsigned enforce_smi)
{
	struct umad_ca_pair names = {0};
	struct ibmad_ports_pair *pair;
	int ret;

	if (num_classes < 0 || (num_classes && !mgmt_classes)) {
		not_opened(EINVAL);
		return NULL;
	}
	ret = find_pair(dev_name, dev_port, enforce_smi, &names);
	if (ret) {
		not_opened(ret);
		report("mad_rpc_open_port2", "cannot open %s port %d", port_name(dev_name),
		       dev_port);
		return NULL;
	}
	pair = calloc(1, sizeof(*pair));
	if (!pair) {
		not_opened(ENOMEM);
		return NULL;
	}
	if (ibdebug)
		report_debug("mad_rpc_open_port2", "SMI %s port %u, GSI %s port %u",
			     names.smi_name[0] ? names.smi_name : "(none)",
			     names.smi_preferred_port, names.gsi_name,
			     names.gsi_preferred_port);
	if (open_pair(pair, &names, mgmt_classes, num_classes)) {
		ret = errno;
		free(pair);
		errno = ret;
		return NULL;
	}
	return pair;
}

EXPORT struct ibmad_ports_pair *mad_rpc_open_port2(char *dev_name, int dev_port,
						   int *mgmt_classes, int num_classes,
						   unsigned enforce_smi)
{
	struct ibmad_ports_pair *pair;

	call_begin();
	pair = open_port2_uncancelled(dev_name, dev_port, mgmt_classes, num_classes,
				      enforce_smi);
	call_end();
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

/* --- the port of the process ------------------------------------------------------ */

static struct ibmad_port *_Atomic process_port;

EXPORT void madrpc_init(char *dev_name, int dev_port, int *mgmt_classes, int num_classes)
{
	struct ibmad_port *port = port_open("madrpc_init", report_and_exit, dev_name, dev_port,
					    false, mgmt_classes, num_classes);

	if (!port) /* port_open() has not reported this */
		report_and_exit("madrpc_init", "cannot open %s port %d", port_name(dev_name),
				dev_port);
	mad_rpc_close_port(atomic_exchange(&process_port, port));
}

EXPORT int madrpc_portid(void)
{
	return mad_rpc_portid(process_port);
}

EXPORT int mad_register_client(int mgmt, uint8_t rmpp_version)
{
	return mad_register_client_via(mgmt, rmpp_version, process_port);
}

EXPORT int mad_register_server(int mgmt, uint8_t rmpp_version,
			       long method_mask[16 / sizeof(long)], uint32_t class_oui)
{
	return mad_register_server_via(mgmt, rmpp_version, method_mask, class_oui,
				       process_port);
}

EXPORT int mad_class_agent(int mgmt)
{
	return mad_rpc_class_agent(process_port, mgmt);
}

EXPORT int mad_agent_class(int agent)
{
	int mgmt_class;

	if (agent < 0 || agent >= AGENTS_MAX)
		return -1;
	for (mgmt_class = 1; mgmt_class < MGMT_CLASSES; mgmt_class++)
		if (mad_rpc_class_agent(process_port, mgmt_class) == agent)
			return mgmt_class;
	return 0;
}

/* --- requests and responses ------------------------------------------------------- */

EXPORT void *madrpc(ib_rpc_t *rpc, ib_portid_t *dport, void *payload, void *rcvdata)
{
	return mad_rpc(process_port, rpc, dport, payload, rcvdata);
}

EXPORT void *madrpc_rmpp(ib_rpc_t *rpc, ib_portid_t *dport, ib_rmpp_hdr_t *rmpp, void *data)
{
	return mad_rpc_rmpp(process_port, rpc, dport, rmpp, data);
}

EXPORT int mad_send(ib_rpc_t *rpc, ib_portid_t *dport, ib_rmpp_hdr_t *rmpp, void *data)
{
	return mad_send_via(rpc, dport, rmpp, data, process_port);
}

EXPORT void *mad_receive(void *umad, int timeout)
{
	return mad_receive_via(umad, timeout, process_port);
}

EXPORT int mad_respond(void *umad, ib_portid_t *portid, uint32_t rstatus)
{
	return mad_respond_via(umad, portid, rstatus, process_port);
}

/* --- locking -------------------------------------------------------------------- */

/*
 * madrpc_lock()'s lock. Any thread may unlock it; unlocking it when free is a no-op. A thread
 * that waits for the gate, or holds it in a safe_ call, is not cancellable, because nobody else
 * would unlock it.
 */
static struct {
	pthread_mutex_t mutex;
	pthread_cond_t unlocked;
	bool locked;
} gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .unlocked = PTHREAD_COND_INITIALIZER};

/* A fork()ed child lacks the thread that held the gate. */
static void unlock_in_child(void)
{
	pthread_mutex_init(&gate.mutex, NULL);
	pthread_cond_init(&gate.unlocked, NULL);
	gate.locked = false;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, unlock_in_child);
}

/* Disables cancellation until unlock_gate(). */
static void lock_gate(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	call_begin();
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&gate.mutex);
	while (gate.locked)
		pthread_cond_wait(&gate.unlocked, &gate.mutex);
	gate.locked = true;
	pthread_mutex_unlock(&gate.mutex);
}

static void unlock_gate(void)
{
	pthread_mutex_lock(&gate.mutex);
	gate.locked = false;
	pthread_cond_signal(&gate.unlocked);
	pthread_mutex_unlock(&gate.mutex);
	call_end();
}

/* The caller may be cancelled while holding the gate. */
EXPORT void madrpc_lock(void)
{
	lock_gate();
	call_end();
}

EXPORT void madrpc_unlock(void)
{
	call_begin();
	unlock_gate();
}

/* --- management classes --------------------------------------------------------- */

EXPORT uint8_t *smp_query(void *buf, ib_portid_t *id, unsigned attrid, unsigned mod,
			  unsigned timeout)
{
	return smp_query_via(buf, id, attrid, mod, timeout, process_port);
}

EXPORT uint8_t *smp_set(void *buf, ib_portid_t *id, unsigned attrid, unsigned mod,
			unsigned timeout)
{
	return smp_set_via(buf, id, attrid, mod, timeout, process_port);
}

EXPORT uint8_t *sa_call(void *rcvbuf, ib_portid_t *portid, ib_sa_call_t *sa, unsigned timeout)
{
	return sa_rpc_call(process_port, rcvbuf, portid, sa, timeout);
}

EXPORT uint8_t *safe_smp_query(void *rcvbuf, ib_portid_t *portid, unsigned attrid, unsigned mod,
			       unsigned timeout)
{
	uint8_t *response;

	lock_gate();
	response = smp_query_via(rcvbuf, portid, attrid, mod, timeout, process_port);
	unlock_gate();
	return response;
}

EXPORT uint8_t *safe_smp_set(void *rcvbuf, ib_portid_t *portid, unsigned attrid, unsigned mod,
			     unsigned timeout)
{
	uint8_t *response;

	lock_gate();
	response = smp_set_via(rcvbuf, portid, attrid, mod, timeout, process_port);
	unlock_gate();
	return response;
}

EXPORT uint8_t *safe_sa_call(void *rcvbuf, ib_portid_t *portid, ib_sa_call_t *sa,
			     unsigned timeout)
{
	uint8_t *response;

	lock_gate();
	response = sa_rpc_call(process_port, rcvbuf, portid, sa, timeout);
	unlock_gate();
	return response;
}

EXPORT int ib_path_query(ibmad_gid_t srcgid, ibmad_gid_t destgid, ib_portid_t *sm_id, void *buf)
{
	return ib_path_query_via(process_port, srcgid, destgid, sm_id, buf);
}

EXPORT uint8_t *port_performance_query(void *rcvbuf, ib_portid_t *dport, int portnum,
				       unsigned timeout)
{
	return pma_query_via(rcvbuf, dport, portnum, timeout, IB_GSI_PORT_COUNTERS,
			     process_port);
}

EXPORT uint8_t *port_performance_reset(void *rcvbuf, ib_portid_t *dport, int portnum,
				       unsigned mask, unsigned timeout)
{
	return performance_reset_via(rcvbuf, dport, portnum, mask, timeout,
				     IB_GSI_PORT_COUNTERS, process_port);
}

EXPORT uint8_t *ib_vendor_call(void *data, ib_portid_t *portid, ib_vendor_call_t *call)
{
	return ib_vendor_call_via(data, portid, call, process_port);
}

/* --- addresses ------------------------------------------------------------------ */

EXPORT int ib_resolve_smlid(ib_portid_t *sm_id, int timeout)
{
	return ib_resolve_smlid_via(sm_id, timeout, process_port);
}

EXPORT int ib_resolve_guid(ib_portid_t *portid, uint64_t *guid, ib_portid_t *sm_id, int timeout)
{
	return ib_resolve_guid_via(portid, guid, sm_id, timeout, process_port);
}

EXPORT int ib_resolve_portid_str(ib_portid_t *portid, char *addr_str, enum MAD_DEST dest,
				 ib_portid_t *sm_id)
{
	return ib_resolve_portid_str_via(portid, addr_str, dest, sm_id, process_port);
}

EXPORT int ib_resolve_self(ib_portid_t *portid, int *portnum, ibmad_gid_t *gid)
{
	return ib_resolve_self_via(portid, portnum, gid, process_port);
}
