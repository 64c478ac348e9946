/* SPDX-License-Identifier: BSD-2-Clause */

/* The options of a port; an option that is not set has the value of the process. */
#ifndef LIBIBMAD_OPTIONS_H
#define LIBIBMAD_OPTIONS_H

#include "port/port.h"

/* Those of the process. */
extern __attribute__((visibility("hidden"))) atomic_int process_timeout_ms, process_retries;

static inline int options_timeout(const struct ibmad_port *port)
{
	int timeout_ms = port->options.timeout_ms;

	return timeout_ms ? timeout_ms : process_timeout_ms;
}

static inline int options_attempts(const struct ibmad_port *port)
{
	int retries = port->options.retries;

	return retries > 0 ? retries : process_retries;
}

/* The SM_Key of requests to the SA; 0 without a port. */
static inline uint64_t options_sa_key(const struct ibmad_port *port)
{
	return port ? port->options.sa_key : 0;
}

/* The M_Key of SMPs on the port; 0 without a port. */
static inline uint64_t options_m_key(const struct ibmad_port *port)
{
	return port ? port->options.m_key : 0;
}

/* The settings of a request on the port. The caller may then set by_rmpp. */
static inline struct request_settings options_for_request(const struct ibmad_port *port,
							  int mgmt_class)
{
	return (struct request_settings){
		.agent = handle_agent(&port->handle, mgmt_class),
		.rmpp = port->handle.rmpp[mgmt_class],
		.gid_index = port->options.gid_index,
		.timeout_ms = options_timeout(port),
		.attempts = options_attempts(port),
	};
}

#endif
