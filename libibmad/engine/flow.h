/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Asynchronous requests on their way to the device: first in, first out, as far as the
 * window of their kind and the limit of their destination let them.
 */
#ifndef LIBIBMAD_FLOW_H
#define LIBIBMAD_FLOW_H

#include "engine/transaction.h"

/* Locked, all of them. */

void flow_add(struct ibmad_port *port, struct transaction *transaction);
/* Whether flow_send() would send. */
bool flow_can_send(const struct ibmad_port *port);
/* Sends what may be sent; the lock is dropped meanwhile. */
void flow_send(struct ibmad_port *port);
/* Sees to those whose time is over; the lock is dropped meanwhile. */
void flow_expire(struct ibmad_port *port);

/* It is done, or given up: its destination has a place for another one. */
void flow_leave(struct ibmad_port *port, struct transaction *transaction);

/*
 * Finishes those that still wait, with an errno: one of them, all of an engine, or all, and
 * then those under way, too.
 */
void flow_cancel(struct ibmad_port *port, struct transaction *transaction, int error);
void flow_cancel_engine(struct ibmad_port *port, const struct mad_async *engine, int error);
void flow_cancel_all(struct ibmad_port *port, int error);

#endif
