/* SPDX-License-Identifier: BSD-2-Clause */

/* When a response is late, of a port whose round trips are not known yet. */
#ifndef TESTS_UNIT_LATE_RESPONSES_H
#define TESTS_UNIT_LATE_RESPONSES_H

#include "calls/port.h"

static inline void set_late_after(struct ibmad_port *port, uint32_t microseconds)
{
	for (unsigned i = 0; i < RTT_KINDS; i++) {
		port->core.transactions.rtts[i].floor_us = microseconds;
		port->core.transactions.rtts[i].initial_us = microseconds;
	}
}

#endif
