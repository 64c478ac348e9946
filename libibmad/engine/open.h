/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef LIBIBMAD_OPEN_H
#define LIBIBMAD_OPEN_H

#include "base/report.h"
#include "engine/port.h"

/* mad_rpc_open_port() for the public function "call". Reports a failure by "tell". */
struct ibmad_port *port_open(const char *call, report_fn *tell, const char *ca_name,
			     int portnum, const int *classes, int count);

#endif
