/* SPDX-License-Identifier: BSD-2-Clause */

/* The options of a port; an option that is not set has the value of the process. */
#ifndef LIBIBMAD_OPTIONS_H
#define LIBIBMAD_OPTIONS_H

#include "port/port.h"

/* The settings of a request on the port. The caller may then set by_rmpp and chosen. */
struct request_settings options_for_request(const struct ibmad_port *port, int mgmt_class);

#endif
