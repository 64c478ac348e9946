/* SPDX-License-Identifier: BSD-2-Clause */

/* What the rest of the library tells the asynchronous engines. */
#ifndef LIBIBMAD_ASYNC_H
#define LIBIBMAD_ASYNC_H

#include "engine/port.h"

/* Locked, all of them. */

/* A request is done: it is called back in the engine's next mad_async_process(). */
void engine_deliver(struct mad_async *engine, struct transaction *transaction);
/* A timer of one of its requests has been set. */
void engine_timer_set(struct mad_async *engine, int64_t at);

/* It is about to be sent, the first time or again; it was answered BUSY. */
void engine_count_sent(struct mad_async *engine, const struct transaction *transaction);
void engine_count_busy(struct mad_async *engine);

/* Of all a port's: something may be sent now; the process has forked. */
void engines_wake_for_work(struct ibmad_port *port);
void engines_after_fork(struct ibmad_port *port);

#endif
