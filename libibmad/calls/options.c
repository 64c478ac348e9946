/* SPDX-License-Identifier: BSD-2-Clause */

#include "calls/options.h"

#include "base/export.h"
#include "base/report.h"

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

/* Windows and limits hold at once: sends the queued requests that they permit now. */
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
	int cancel_state;

	if (requests > UINT_MAX)
		return -EINVAL;
	if (port_enter(port, &cancel_state))
		return -ECANCELED;
	set_limit_unlocking(port, option, (unsigned)requests);
	port_leave(port, cancel_state);
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
