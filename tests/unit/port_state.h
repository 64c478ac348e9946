/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The state of a port that a test waits for, and that no public call tells. No other test names
 * a member of a port.
 */
#ifndef TESTS_UNIT_PORT_STATE_H
#define TESTS_UNIT_PORT_STATE_H

#include "flow/flow.h"

#include <infiniband/mad_async.h>
#include <pthread.h>
#include <stdbool.h>

/*
 * Milliseconds until mad_async_process() has something to do without a message, 0: at once, -1:
 * never; or the error with which the port failed, after the last callback.
 */
int timeout_ms_of(struct mad_async *async);
/* Calls that have not returned. */
unsigned calls_in_progress(struct ibmad_port *of);
/* Threads that sleep until another one wakes them, and one that polls. */
unsigned threads_waiting(struct ibmad_port *of);
/* Whether a response to any request is expected. */
bool responses_expected(struct ibmad_port *of);
/* Another thread reads messages, or no thread does. */
void hold_reading(struct ibmad_port *of, bool reading);
/* Reads messages, and does nothing else. */
void read_messages(struct ibmad_port *of, unsigned most);
/* A window of a fixed size. mad_port_set() would also send what may be sent then. */
void fix_window_only(struct ibmad_port *of, enum mad_window window, unsigned size);
/* New SMPs of an engine that the queue has not looked at. */
unsigned new_smps(const struct mad_async *async);

#endif
