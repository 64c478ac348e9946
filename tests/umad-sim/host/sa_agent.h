/* SPDX-License-Identifier: BSD-2-Clause */

/* The built-in SA on its port. It is an agent like a program's, so RMPP carries its tables, and
 * no program can serve the class on the same port. */
#ifndef FABRIC_SA_AGENT_H
#define FABRIC_SA_AGENT_H

#include "hosts.h"

struct sa_agent;

/* Starts the SA on fabric->sm_port; NULL on OOM. */
struct sa_agent *sa_agent_start(struct fabric *fabric);
/* Sends Reports to the subscribers when an end port comes into service or goes out of it. */
void sa_agent_notice(struct sa_agent *sa_agent, uint32_t port, bool in_service);

/* Forgets everything, as a restarted SA does. */
void sa_agent_forget(struct sa_agent *sa_agent);

void sa_agent_stop(struct sa_agent *sa_agent);

#endif
