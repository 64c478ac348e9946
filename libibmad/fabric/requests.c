/* SPDX-License-Identifier: BSD-2-Clause */

/* The requests of a discovery on its engine. */

#include "fabric/discovery.h"

#include "engine/timers.h"

#include <errno.h>

#define PROGRESS_INTERVAL_US 100000

void requests_tell_progress(struct discovery *discovery)
{
	if (!discovery->options.progress)
		return;
	discovery->has_news = false;
	discovery->progress.nodes = discovery->fabric->node_count;
	discovery->progress.ports = discovery->fabric->port_count;
	discovery->progress.problems = discovery->fabric->problem_count;
	discovery->options.progress(&discovery->progress, discovery->options.progress_arg);
}

void requests_tell_news(struct discovery *discovery)
{
	int64_t now;

	if (!discovery->options.progress || !discovery->has_news)
		return;
	now = clock_us();
	if (now < discovery->next_progress_us)
		return;
	discovery->next_progress_us = now + PROGRESS_INTERVAL_US;
	requests_tell_progress(discovery);
}

bool request_is_refusal(const struct discovery_request *request, const struct mad_reply *reply)
{
	return reply->error == -EIO && reply->status &&
	       request->attribute == IB_ATTR_MLNX_EXT_PORT_INFO;
}

static void request_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct discovery_request *request = arg;
	struct discovery *discovery = request->discovery;
	int error = reply->error;

	(void)async;
	if (!error && reply->data_size < IB_SMP_DATA_SIZE)
		error = -EBADMSG;
	list_remove(&request->entry);
	list_remove(&request->group);
	if (limits_ends_all(error) && !request->given_up)
		discovery_abort(discovery, limits_ends_all(error));
	request->came(discovery, request, error, reply);
	list_add_first(&discovery->free, &request->entry);
	discovery->has_news = true;
	if (--discovery->progress.in_flight == 0)
		discovery_complete(discovery);
	else
		requests_tell_news(discovery);
}

static struct discovery_request *get_request(struct discovery *discovery)
{
	struct list *entry = list_pop(&discovery->free);

	if (entry)
		return list_entry(entry, struct discovery_request, entry);
	return malloc(sizeof(struct discovery_request));
}

static int submit(struct discovery *discovery, struct discovery_request *request,
		  const ib_dr_path_t *route)
{
	const ib_rpc_t rpc = {
		.mgtclass = IB_SMI_DIRECT_CLASS,
		.method = IB_MAD_METHOD_GET,
		.attr = {.id = request->attribute, .mod = request->modifier},
		.dataoffs = IB_SMP_DATA_OFFS,
		.mkey = discovery->options.m_key,
		.timeout = discovery->options.timeout_ms,
	};
	ib_portid_t to = discovery->base;

	to.drpath = *route;
	if (to.lid || to.drpath.cnt)
		discovery->limits.is_local = false;
	return mad_async_submit(discovery->async, &rpc, &to, NULL, 0, request_came, request,
				&request->id);
}

bool request_submit(struct discovery *discovery, struct list *group, const ib_dr_path_t *route,
		    unsigned attribute, unsigned modifier, discovery_fn *came, void *subject)
{
	struct discovery_request *request;
	int ret;

	if (discovery->error)
		return false;
	request = get_request(discovery);
	if (!request) {
		discovery_abort(discovery, -ENOMEM);
		return false;
	}
	*request = (struct discovery_request){.discovery = discovery,
					      .came = came,
					      .subject = subject,
					      .attribute = (uint16_t)attribute,
					      .modifier = (uint8_t)modifier};
	list_add_last(&discovery->requests, &request->entry);
	if (group)
		list_add_last(group, &request->group);
	else
		list_init(&request->group);
	discovery->progress.requests++;
	discovery->progress.in_flight++;
	ret = submit(discovery, request, route);
	if (!ret)
		return true;
	list_remove(&request->entry);
	list_remove(&request->group);
	list_add_first(&discovery->free, &request->entry);
	discovery->progress.requests--;
	discovery->progress.in_flight--;
	discovery_abort(discovery, limits_ends_all(ret) ? limits_ends_all(ret) : ret);
	return false;
}

void requests_give_up(struct discovery *discovery, struct list *group)
{
	list_for_each (entry, group) {
		struct discovery_request *request =
			list_entry(entry, struct discovery_request, group);

		request->given_up = true;
		mad_async_cancel(discovery->async, request->id);
	}
}

struct mad_fabric_problem request_problem(enum mad_fabric_problem_kind kind,
					  const struct discovery_request *request, int error,
					  const struct mad_reply *reply)
{
	return (struct mad_fabric_problem){.kind = kind,
					   .attribute = request->attribute,
					   .modifier = request->modifier,
					   .count = 1,
					   .error = error,
					   .status = error == -EIO ? reply->status : 0};
}

void requests_cancel(struct discovery *discovery)
{
	list_for_each (entry, &discovery->requests)
		mad_async_cancel(discovery->async,
				 list_entry(entry, struct discovery_request, entry)->id);
}

void discovery_abort(struct discovery *discovery, int error)
{
	discovery->no_memory |= error == -ENOMEM;
	if (discovery->error)
		return;
	discovery->error = error;
	requests_cancel(discovery);
}

void requests_free(struct discovery *discovery)
{
	struct list *entry;

	while ((entry = list_pop(&discovery->free)))
		free(list_entry(entry, struct discovery_request, entry));
}
