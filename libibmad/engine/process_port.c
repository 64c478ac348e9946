/* SPDX-License-Identifier: BSD-2-Clause */

/* The calls without a port argument: they use the port that madrpc_init() opened. */

#include "base/export.h"
#include "engine/open.h"
#include "engine/rpc.h"

#include <infiniband/mad.h>
#include <errno.h>
#include <pthread.h>

/* The kernel numbers the agents of a handle from 0 to 31. */
#define AGENTS_MAX 32

static struct ibmad_port *_Atomic process_port;

/* --- life ----------------------------------------------------------------------- */

EXPORT void madrpc_init(char *dev_name, int dev_port, int *mgmt_classes, int num_classes)
{
	struct ibmad_port *port = port_open("madrpc_init", report_and_exit, dev_name, dev_port,
					    mgmt_classes, num_classes);

	if (!port) /* port_open() has not reported it */
		report_and_exit("madrpc_init", "cannot open %s port %d",
				dev_name ? dev_name : "(any)", dev_port);
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

/* --- saving a response ---------------------------------------------------------- */

static struct {
	pthread_mutex_t lock; /* of the members below */
	void *buffer;         /* NULL: no response is to be saved */
	size_t size;
} saving = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void save_response(const uint8_t *mad, size_t length)
{
	pthread_mutex_lock(&saving.lock);
	/* another thread's response may have come first */
	if (saving.buffer)
		memcpy(saving.buffer, mad, length < saving.size ? length : saving.size);
	saving.buffer = NULL;
	rpc_on_response(NULL);
	pthread_mutex_unlock(&saving.lock);
}

EXPORT void madrpc_save_mad(void *madbuf, int len)
{
	pthread_mutex_lock(&saving.lock);
	saving.buffer = len > 0 ? madbuf : NULL;
	saving.size = len > 0 ? (size_t)len : 0;
	rpc_on_response(saving.buffer ? save_response : NULL);
	pthread_mutex_unlock(&saving.lock);
}

/* --- locking -------------------------------------------------------------------- */

/*
 * The lock of madrpc_lock(). Any thread may unlock it; if it is not locked, nothing changes. A
 * thread that waits for the gate, or holds it in a safe_ call, cannot be cancelled, because no
 * other thread would unlock the mutex or the gate.
 */
static struct {
	pthread_mutex_t mutex;
	pthread_cond_t unlocked;
	bool locked;
} gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .unlocked = PTHREAD_COND_INITIALIZER};

/* In a child of fork(), the thread that held the gate does not exist. */
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

/* Returns the state of cancellation for unlock_gate(). */
static int lock_gate(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&gate.mutex);
	while (gate.locked)
		pthread_cond_wait(&gate.unlocked, &gate.mutex);
	gate.locked = true;
	pthread_mutex_unlock(&gate.mutex);
	return cancel_state;
}

static void unlock_gate(int cancel_state)
{
	pthread_mutex_lock(&gate.mutex);
	gate.locked = false;
	pthread_cond_signal(&gate.unlocked);
	pthread_mutex_unlock(&gate.mutex);
	pthread_setcancelstate(cancel_state, NULL);
}

EXPORT void madrpc_lock(void)
{
	pthread_setcancelstate(lock_gate(), NULL);
}

EXPORT void madrpc_unlock(void)
{
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	unlock_gate(cancel_state);
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
	int cancel_state = lock_gate();
	uint8_t *response;

	response = smp_query_via(rcvbuf, portid, attrid, mod, timeout, process_port);
	unlock_gate(cancel_state);
	return response;
}

EXPORT uint8_t *safe_smp_set(void *rcvbuf, ib_portid_t *portid, unsigned attrid, unsigned mod,
			     unsigned timeout)
{
	int cancel_state = lock_gate();
	uint8_t *response;

	response = smp_set_via(rcvbuf, portid, attrid, mod, timeout, process_port);
	unlock_gate(cancel_state);
	return response;
}

EXPORT uint8_t *safe_sa_call(void *rcvbuf, ib_portid_t *portid, ib_sa_call_t *sa,
			     unsigned timeout)
{
	int cancel_state = lock_gate();
	uint8_t *response;

	response = sa_rpc_call(process_port, rcvbuf, portid, sa, timeout);
	unlock_gate(cancel_state);
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
