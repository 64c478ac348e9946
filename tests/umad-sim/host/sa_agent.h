/* SPDX-License-Identifier: BSD-2-Clause */

/* The built-in SA on its port. It is an agent like that of a program, so that RMPP carries its
 * tables and the port has only one server of the class. */
#ifndef FABRIC_SA_AGENT_H
#define FABRIC_SA_AGENT_H

#include "hosts.h"

struct sa_agent;

/* Starts the SA on fabric->sm_port; NULL without memory. */
struct sa_agent *sa_agent_start(struct fabric *fabric);
/* An end port came into service or left it: sends Reports to those who subscribed. */
void sa_agent_notice(struct sa_agent *sa_agent, uint32_t port, bool in_service);

/* As if the SA was restarted. */
void sa_agent_forget(struct sa_agent *sa_agent);

void sa_agent_stop(struct sa_agent *sa_agent);

#endif
