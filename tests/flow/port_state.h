/* SPDX-License-Identifier: BSD-2-Clause */

/* The state of a port that the judge waits for, and that no public call tells. */
#ifndef TESTS_FLOW_PORT_STATE_H
#define TESTS_FLOW_PORT_STATE_H

#include <infiniband/mad_async.h>

/*
 * Milliseconds until mad_async_process() has something to do without a message, 0: at once, -1:
 * never; or the error with which the port failed, after the last callback.
 */
int timeout_ms_of(struct mad_async *async);

#endif
