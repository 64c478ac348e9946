/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The built-in subnet administration on its port: an agent as any program's would be, so that
 * its tables go through RMPP and its port has one server of the class.
 */
#ifndef FABRIC_ADMINISTRATION_H
#define FABRIC_ADMINISTRATION_H

#include "hosts.h"

struct administration;

/* Starts it on fabric->sm_port; NULL without memory. */
struct administration *administration_start(struct fabric *fabric);
/* An end port came into service or left it: who subscribed to that hears of it. */
void administration_notice(struct administration *administration, uint32_t port,
			   bool in_service);

void administration_stop(struct administration *administration);

#endif
