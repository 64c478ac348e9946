/* SPDX-License-Identifier: BSD-2-Clause */

/* The built-in SA on its port. It is an agent like that of a program, so that RMPP carries its
 * tables and the port has only one server of the class. */
#ifndef FABRIC_ADMINISTRATION_H
#define FABRIC_ADMINISTRATION_H

#include "hosts.h"

struct administration;

/* Starts the SA on fabric->sm_port; NULL without memory. */
struct administration *administration_start(struct fabric *fabric);
/* An end port came into service or left it: sends Reports to those who subscribed. */
void administration_notice(struct administration *administration, uint32_t port,
			   bool in_service);

void administration_stop(struct administration *administration);

#endif
