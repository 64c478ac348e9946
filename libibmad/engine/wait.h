/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Threads that wait for something of a port. One of them leads: it reads the device and
 * hands the others what is theirs; when it has its own it leaves, and another one leads.
 * No thread is needed for that, and one that is alone writes, polls and reads once.
 */
#ifndef LIBIBMAD_WAIT_H
#define LIBIBMAD_WAIT_H

#include "engine/port.h"

struct waiter {
	pthread_cond_t changed; /* while following */
	struct waiter *next;
	struct waiter **link;
	bool following; /* another thread leads, and this one sleeps */
	bool woken;
	bool interrupted; /* by a signal, while it led */
	bool receiving;   /* requests */
};

/* Locked, all of them. */

void wait_begin(struct ibmad_port *port, struct waiter *waiter);
void wait_end(struct ibmad_port *port, struct waiter *waiter);

/*
 * Waits till something has come, the waiter is woken, or until then, now being what the
 * clock says; the lock is dropped meanwhile. It may return early: look, and wait again.
 */
void wait_step(struct ibmad_port *port, struct waiter *waiter, int64_t until, int64_t now);

/* Has one of the followers lead, if no thread does. */
void wait_pass(struct ibmad_port *port);

void waiter_wake(struct waiter *waiter);

#endif
