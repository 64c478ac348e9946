/* SPDX-License-Identifier: BSD-2-Clause */

/* The options of a port, and its handle. */

#include "base/export.h"
#include "calls/port.h"

#include <infiniband/mad_sa.h>
#include <errno.h>
#include <limits.h>

EXPORT int mad_rpc_portid(struct ibmad_port *srcport)
{
	return srcport ? srcport->core.link.fd : -1;
}

EXPORT void mad_rpc_set_retries(struct ibmad_port *port, int retries)
{
	if (port)
		port->core.options.retries = retries;
}

EXPORT void mad_rpc_set_timeout(struct ibmad_port *port, int timeout)
{
	if (port)
		port->core.options.timeout_ms = timeout;
}

EXPORT int mad_get_timeout(const struct ibmad_port *srcport, int override_ms)
{
	return override_ms ? override_ms
			   : options_timeout_ms(srcport ? &srcport->core.options : NULL);
}

EXPORT int mad_get_retries(const struct ibmad_port *srcport)
{
	return options_attempts(srcport ? &srcport->core.options : NULL);
}

EXPORT void smp_mkey_set(struct ibmad_port *srcport, uint64_t mkey)
{
	if (srcport)
		srcport->core.options.m_key = mkey;
}

EXPORT uint64_t smp_mkey_get(const struct ibmad_port *srcport)
{
	return srcport ? srcport->core.options.m_key : 0;
}

EXPORT void sa_key_set(struct ibmad_port *srcport, uint64_t sa_key)
{
	if (srcport)
		srcport->core.options.sa_key = sa_key;
}

EXPORT uint64_t sa_key_get(const struct ibmad_port *srcport)
{
	return srcport ? srcport->core.options.sa_key : 0;
}

EXPORT int mad_port_set_timeout(struct ibmad_port *port, int timeout_ms)
{
	if (!port || timeout_ms < 0)
		return -EINVAL;
	port->core.options.timeout_ms = timeout_ms;
	return 0;
}

EXPORT int mad_port_set_retries(struct ibmad_port *port, int retries)
{
	if (!port || retries < 0)
		return -EINVAL;
	port->core.options.retries = retries;
	return 0;
}

EXPORT int mad_port_set_sa_key(struct ibmad_port *port, uint64_t sa_key)
{
	if (!port)
		return -EINVAL;
	port->core.options.sa_key = sa_key;
	return 0;
}

EXPORT int mad_port_set_gid_index(struct ibmad_port *port, unsigned gid_index)
{
	if (!port || gid_index > UINT8_MAX)
		return -EINVAL;
	port->core.options.gid_index = gid_index;
	return 0;
}

EXPORT int mad_port_set_max_reply(struct ibmad_port *port, size_t bytes)
{
	if (!port || bytes < IB_MAD_SIZE)
		return -EINVAL;
	port->core.options.max_reply = bytes;
	return 0;
}

/* Queued requests go by a new limit at once. */
static void send_queued(struct ibmad_port *port, int cancel_state)
{
	scheduler_send(&port->scheduler, UINT_MAX);
	port_leave(port, cancel_state);
}

EXPORT int mad_port_set_window(struct ibmad_port *port, enum mad_window window,
			       unsigned requests)
{
	int cancel_state;

	if (!port || (unsigned)window >= FLOW_WINDOWS)
		return -EINVAL;
	cancel_state = port_enter(port);
	flow_fix_window(&port->core.transactions.flow, window, requests);
	core_windows_changed(&port->core);
	send_queued(port, cancel_state);
	return 0;
}

EXPORT int mad_port_set_destination_limit(struct ibmad_port *port, unsigned requests)
{
	int cancel_state;

	if (!port)
		return -EINVAL;
	cancel_state = port_enter(port);
	scheduler_set_limit(&port->scheduler, requests);
	send_queued(port, cancel_state);
	return 0;
}

EXPORT int mad_port_set_rate(struct ibmad_port *port, unsigned requests)
{
	int cancel_state;

	if (!port)
		return -EINVAL;
	cancel_state = port_enter(port);
	port->core.pace = (struct pace){.rate = requests};
	send_queued(port, cancel_state);
	return 0;
}
