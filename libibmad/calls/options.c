/* SPDX-License-Identifier: BSD-2-Clause */

#include "calls/options.h"

#include "base/export.h"

#include <infiniband/mad_sa.h>
#include <errno.h>
#include <limits.h>

/* --- of the process ------------------------------------------------------------- */

atomic_int process_timeout_ms = MAD_DEF_TIMEOUT_MS;
atomic_int process_retries = MAD_DEF_RETRIES;

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
	if (override_ms)
		return override_ms;
	return srcport ? options_timeout(srcport) : process_timeout_ms;
}

EXPORT int mad_get_retries(const struct ibmad_port *srcport)
{
	return srcport ? options_attempts(srcport) : process_retries;
}

/* --- of a port ------------------------------------------------------------------ */

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

EXPORT int mad_port_set_timeout(struct ibmad_port *port, int timeout_ms)
{
	if (!port || timeout_ms < 0)
		return -EINVAL;
	port->options.timeout_ms = timeout_ms;
	return 0;
}

EXPORT int mad_port_set_retries(struct ibmad_port *port, int retries)
{
	if (!port || retries < 0)
		return -EINVAL;
	port->options.retries = retries;
	return 0;
}

EXPORT int mad_port_set_sa_key(struct ibmad_port *port, uint64_t sa_key)
{
	if (!port)
		return -EINVAL;
	port->options.sa_key = sa_key;
	return 0;
}

EXPORT uint64_t mad_port_get_sa_key(const struct ibmad_port *port)
{
	return port ? port->options.sa_key : 0;
}

EXPORT int mad_port_set_gid_index(struct ibmad_port *port, unsigned gid_index)
{
	if (!port || gid_index > UINT8_MAX)
		return -EINVAL;
	port->options.gid_index = gid_index;
	return 0;
}

EXPORT int mad_port_set_max_reply(struct ibmad_port *port, size_t bytes)
{
	if (!port || bytes < IB_MAD_SIZE)
		return -EINVAL;
	port->options.max_reply = bytes;
	return 0;
}

/* A new limit holds at once: sends the queued requests that it permits. */
static void send_queued_and_leave(struct ibmad_port *port, int cancel_state)
{
	port_send_unlocking(port, UINT_MAX);
	port_leave(port, cancel_state);
}

EXPORT int mad_port_set_window(struct ibmad_port *port, enum mad_window window,
			       unsigned requests)
{
	int cancel_state;

	if (!port || (unsigned)window >= FLOW_WINDOWS)
		return -EINVAL;
	if (port_enter(port, &cancel_state))
		return -ECANCELED;
	flow_fix_window(&port->requests.flow, window, requests);
	port_trace_windows(port);
	send_queued_and_leave(port, cancel_state);
	return 0;
}

EXPORT int mad_port_set_destination_limit(struct ibmad_port *port, unsigned requests)
{
	int cancel_state;

	if (!port)
		return -EINVAL;
	if (port_enter(port, &cancel_state))
		return -ECANCELED;
	queue_set_limit(&port->queue, requests);
	send_queued_and_leave(port, cancel_state);
	return 0;
}

EXPORT int mad_port_set_rate(struct ibmad_port *port, unsigned requests)
{
	int cancel_state;

	if (!port)
		return -EINVAL;
	if (port_enter(port, &cancel_state))
		return -ECANCELED;
	port->queue.pace = (struct pace){.rate = requests};
	send_queued_and_leave(port, cancel_state);
	return 0;
}
