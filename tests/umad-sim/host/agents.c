/* SPDX-License-Identifier: BSD-2-Clause */

/* Agents: which ones can be registered together, and which one receives a MAD. */
#include <errno.h>
#include <stdlib.h>

#include "hosts.h"

static bool is_sensible(const struct agent_rules *rules)
{
	bool directed_or_smp = rules->class == CLASS_SMP || rules->class == CLASS_DIRECTED_SMP;

	if (rules->qp > 1 || rules->oui >> 24)
		return false;
	if (rules->class == 0) /* no class: the agent can only send */
		return !rules->is_server && rules->rmpp_version <= 1 && !rules->user_rmpp;
	if (directed_or_smp != (rules->qp == 0))
		return false;
	if (rules->rmpp_version > 1 || (rules->rmpp_version && !class_has_rmpp(rules->class)))
		return false;
	if (rules->class >= 0x50 && rules->class != CLASS_DIRECTED_SMP)
		return false;
	return rules->class_version < 0x83 &&
	       (!class_is_range2(rules->class) || rules->oui != 0);
}

static bool same_service(const struct agent_rules *a, uint8_t class, uint8_t version,
			 uint32_t oui)
{
	return a->is_server && a->class == class && a->class_version == version &&
	       (!class_is_range2(class) || a->oui == oui);
}

static bool is_taken(const struct host_port *host, const struct agent_rules *rules)
{
	for (const struct agent *other = host->agents; other; other = other->next)
		if (same_service(&other->rules, rules->class, rules->class_version,
				 rules->oui) &&
		    ((other->rules.methods[0] & rules->methods[0]) ||
		     (other->rules.methods[1] & rules->methods[1])))
			return true;
	return false;
}

int agent_register(struct fabric *fabric, struct host_port *host,
		   const struct agent_rules *rules, struct agent **agent)
{
	if (!is_sensible(rules) || (rules->is_server && is_taken(host, rules)))
		return -EINVAL;
	*agent = calloc(1, sizeof(**agent));
	if (!*agent)
		return -ENOMEM;
	(*agent)->host = host;
	(*agent)->rules = *rules;
	(*agent)->tid_high = ++fabric->hosts->next_tid_high;
	(*agent)->next = host->agents;
	host->agents = *agent;
	return 0;
}

void agent_unregister(struct fabric *fabric, struct agent *agent)
{
	struct agent **link = &agent->host->agents;

	while (*link != agent)
		link = &(*link)->next;
	*link = agent->next;
	for (unsigned int i = 0; i < sizeof(fabric->hosts->table) / sizeof(struct send *);
	     i++) {
		struct send *send = fabric->hosts->table[i];

		while (send) {
			struct send *next = send->next;

			if (send->agent == agent)
				send_finish(fabric, send);
			send = next;
		}
	}
	rmpp_forget(fabric, agent);
	free(agent);
}

struct agent *agent_for(const struct host_port *host, const uint8_t *mad)
{
	unsigned int method = mad_method(mad);
	bool response = mad_is_response(mad);

	for (struct agent *agent = host->agents; agent; agent = agent->next) {
		if (response) {
			if (agent->tid_high == get32(mad + 8))
				return agent;
		} else if (agent->rules.methods[method / 64] >> method % 64 & 1 &&
			   agent->rules.class == mad[1] &&
			   same_service(&agent->rules, mad[1], mad[2],
					get32(mad + 36) & 0xffffff)) {
			/* in vendor range 2 an OUI follows a reserved byte */
			return agent;
		}
	}
	return NULL;
}
