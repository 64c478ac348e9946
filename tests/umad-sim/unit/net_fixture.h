/* SPDX-License-Identifier: BSD-2-Clause */

/* A fabric of a topology with a running built-in manager, to test routes. */
#ifndef FABRIC_NET_FIXTURE_H
#define FABRIC_NET_FIXTURE_H

#include "subnet_fixture.h"

#include "manager.h"
#include "sa_agent.h"
#include "topology.h"

#define MOST_HOPS 64

struct net {
	struct fabric fabric;
	struct sa_agent *sa_agent;
};

static inline struct net *new_net(const char *spec, const char *rule)
{
	struct net *net = (struct net *)calloc(1, sizeof(*net));
	struct topology_error error = {""};
	struct rule_error why;
	struct graph graph;
	uint32_t sm_port = NONE;

	assert_non_null(net);
	graph_init(&graph);
	if (topology_load(&graph, spec, &error))
		fail_msg("%s", error.text);
	start_fabric(&net->fabric, &graph, 7, true);
	for (uint32_t port = 0; port < net->fabric.graph.port_count; port++)
		if (hardware(&net->fabric, cable(&net->fabric, port)->node)->type == NODE_CA &&
		    cable(&net->fabric, port)->peer != NONE)
			sm_port = port;
	assert_int_equal(bring_up(&net->fabric, sm_port), 0);
	net->sa_agent = sa_agent_start(&net->fabric);
	assert_non_null(net->sa_agent);
	if (rule && fault_apply(&net->fabric, rule, &why))
		fail_msg("%s: %s", rule, why.text);
	assert_int_equal(manager_start(&net->fabric), 0);
	return net;
}

static inline void free_net(struct net *net)
{
	manager_stop(&net->fabric);
	sa_agent_stop(net->sa_agent);
	stop_fabric(&net->fabric);
	free(net);
}

static inline void tell(struct net *net, const char *rule)
{
	struct rule_error error;

	if (fault_apply(&net->fabric, rule, &error))
		fail_msg("%s: %s", rule, error.text);
}

static inline bool is_host(const struct fabric *fabric, uint32_t port)
{
	return fabric->ports[port].lid && end_port(fabric, port) == port &&
	       hardware(fabric, cable(fabric, port)->node)->type == NODE_CA;
}

#endif
