/* SPDX-License-Identifier: BSD-2-Clause */

/* The options of a port, and what holds in their place: those of the process. */
#ifndef LIBIBMAD_OPTIONS_H
#define LIBIBMAD_OPTIONS_H

#include "port/port.h"

/* How a request on the port is made. The caller may set by_rmpp and chosen. */
struct request_settings options_for_request(const struct ibmad_port *port, int mgmt_class);

#endif
