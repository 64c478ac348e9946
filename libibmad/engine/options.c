/* SPDX-License-Identifier: BSD-2-Clause */

/* What a port can be told. */

#include "engine/defaults.h"
#include "base/export.h"
#include "engine/port.h"

#include <infiniband/mad_sa.h>
#include <errno.h>

static const unsigned largest[PORT_WINDOWS] = {SMP_WINDOW_MAX, GMP_WINDOW_MAX};

EXPORT int mad_rpc_portid(struct ibmad_port *srcport)
{
	return srcport ? srcport->fd : -1;
}

EXPORT void mad_rpc_set_retries(struct ibmad_port *port, int retries)
{
	if (port)
		port->retries = retries;
}

EXPORT void mad_rpc_set_timeout(struct ibmad_port *port, int timeout)
{
	if (port)
		port->timeout_ms = timeout;
}

EXPORT int mad_get_timeout(const struct ibmad_port *srcport, int override_ms)
{
	if (override_ms)
		return override_ms;
	return srcport && srcport->timeout_ms ? srcport->timeout_ms : default_timeout_ms();
}

EXPORT int mad_get_retries(const struct ibmad_port *srcport)
{
	return srcport && srcport->retries > 0 ? srcport->retries : default_retries();
}

EXPORT void smp_mkey_set(struct ibmad_port *srcport, uint64_t mkey)
{
	if (srcport)
		srcport->m_key = mkey;
}

EXPORT uint64_t smp_mkey_get(const struct ibmad_port *srcport)
{
	return srcport ? srcport->m_key : 0;
}

EXPORT void sa_key_set(struct ibmad_port *srcport, uint64_t sa_key)
{
	if (srcport)
		srcport->sa_key = sa_key;
}

EXPORT uint64_t sa_key_get(const struct ibmad_port *srcport)
{
	return srcport ? srcport->sa_key : 0;
}

EXPORT int mad_port_set_timeout(struct ibmad_port *port, int timeout_ms)
{
	if (!port || timeout_ms < 0)
		return -EINVAL;
	port->timeout_ms = timeout_ms;
	return 0;
}

EXPORT int mad_port_set_retries(struct ibmad_port *port, int retries)
{
	if (!port || retries < 0)
		return -EINVAL;
	port->retries = retries;
	return 0;
}

EXPORT int mad_port_set_sa_key(struct ibmad_port *port, uint64_t sa_key)
{
	if (!port)
		return -EINVAL;
	port->sa_key = sa_key;
	return 0;
}

EXPORT int mad_port_set_gid_index(struct ibmad_port *port, unsigned gid_index)
{
	if (!port || gid_index > UINT8_MAX)
		return -EINVAL;
	port->gid_index = gid_index;
	return 0;
}

EXPORT int mad_port_set_max_reply(struct ibmad_port *port, size_t bytes)
{
	if (!port || bytes < IB_MAD_SIZE)
		return -EINVAL;
	port->max_reply = bytes;
	return 0;
}

EXPORT int mad_port_set_window(struct ibmad_port *port, enum mad_window window,
			       unsigned requests)
{
	if (!port || (unsigned)window >= PORT_WINDOWS)
		return -EINVAL;
	port_enter(port);
	window_fix(&port->windows[window], requests, largest[window]);
	port_leave(port);
	return 0;
}

EXPORT int mad_port_set_destination_limit(struct ibmad_port *port, unsigned requests)
{
	if (!port || !requests)
		return -EINVAL;
	port_enter(port);
	port->destination_limit = requests;
	port_leave(port);
	return 0;
}
