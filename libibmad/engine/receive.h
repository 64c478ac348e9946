/* SPDX-License-Identifier: BSD-2-Clause */

/* One message from the device, of whatever length. */
#ifndef LIBIBMAD_RECEIVE_H
#define LIBIBMAD_RECEIVE_H

#include "engine/port.h"

/*
 * Locked, and port->being_read is the caller's; the lock is dropped while it reads.
 * Returns whether a message was there. A device that has gone fails the port.
 */
bool receive_message(struct ibmad_port *port);
/* The same; the lock is not held before, but after. */
bool receive_unlocked(struct ibmad_port *port);

#endif
