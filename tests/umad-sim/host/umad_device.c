/* SPDX-License-Identifier: BSD-2-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "umad_device.h"

struct handle *handle_open(struct fabric *fabric, struct host_port *host)
{
	struct handle *handle = calloc(1, sizeof(*handle));

	if (!handle)
		return NULL;
	handle->fabric = fabric;
	handle->host = host;
	handle->queue_end = &handle->queue;
	handle->next = host->handles;
	host->handles = handle;
	return handle;
}

static void unregister(struct handle *handle, uint32_t id)
{
	struct agent *agent = handle->agents[id];

	handle->agents[id] = NULL;
	atomic_store(&handle->shared->agents[id], 0);
	agent_unregister(handle->fabric, agent);
}

static void unregister_all(struct handle *handle)
{
	for (uint32_t id = 0; id < AGENTS_PER_HANDLE; id++)
		if (handle->agents[id])
			unregister(handle, id);
}

static void empty_queue(struct handle *handle)
{
	while (handle->queue) {
		struct message *next = handle->queue->next;

		free(handle->queue);
		handle->queue = next;
	}
	handle->queue_end = &handle->queue;
	handle->queued = 0;
}

void handle_close(struct handle *handle)
{
	struct handle **link = &handle->host->handles;

	unregister_all(handle);
	empty_queue(handle);
	while (*link != handle)
		link = &(*link)->next;
	*link = handle->next;
	free(handle);
}

void handle_queue(struct handle *handle, struct message *message)
{
	if (handle->queued == MOST_QUEUED) {
		free(message);
		return;
	}
	handle->queued++;
	message->next = NULL;
	*handle->queue_end = message;
	handle->queue_end = &message->next;
	handle->readable(handle);
}

static void deliver(struct agent *agent, struct message *message)
{
	message->header.id = agent->id;
	handle_queue(agent->owner, message);
}

static void complete(struct agent *agent, uint64_t tid, uint8_t class)
{
	struct handle *handle = agent->owner;

	transaction_leave(handle->shared, transaction_key(agent->id, class, (uint32_t)tid));
}

static int register_agent(struct handle *handle, const struct agent_rules *rules, uint32_t *id)
{
	struct agent *agent;
	uint32_t free_id = 0;
	int error;

	while (free_id < AGENTS_PER_HANDLE && handle->agents[free_id])
		free_id++;
	if (free_id == AGENTS_PER_HANDLE)
		return -ENOMEM;
	error = agent_register(handle->fabric, handle->host, rules, &agent);
	if (error)
		return error;
	agent->id = free_id;
	agent->owner = handle;
	agent->reassembled = &handle->reassembled;
	agent->deliver = deliver;
	agent->complete = complete;
	handle->agents[free_id] = agent;
	atomic_store(&handle->shared->used, 1);
	atomic_store(&handle->shared->agents[free_id], rules->rmpp_version && !rules->user_rmpp
							       ? AGENT_REGISTERED | AGENT_RMPP
							       : AGENT_REGISTERED);
	*id = free_id;
	return 0;
}

static bool is_server(const struct agent_rules *rules)
{
	return rules->methods[0] || rules->methods[1];
}

static int register_old(struct handle *handle, uint8_t *argument)
{
	struct ib_user_mad_reg_req request;
	struct agent_rules rules = {0};
	int error;

	memcpy(&request, argument, sizeof(request));
	rules.class = request.mgmt_class;
	rules.class_version = request.mgmt_class_version;
	rules.rmpp_version = request.rmpp_version;
	rules.qp = request.qpn;
	rules.oui =
		(uint32_t)request.oui[0] << 16 | (uint32_t)request.oui[1] << 8 | request.oui[2];
	if (rules.class)
		memcpy(rules.methods, request.method_mask, sizeof(rules.methods));
	rules.is_server = is_server(&rules);
	error = register_agent(handle, &rules, &request.id);
	memcpy(argument, &request, sizeof(request));
	return error;
}

static int register_new(struct handle *handle, uint8_t *argument)
{
	struct ib_user_mad_reg_req2 request;
	struct agent_rules rules = {0};
	bool first = !atomic_load(&handle->shared->used);
	int error;

	memcpy(&request, argument, sizeof(request));
	if (request.qpn > 1 || request.oui >> 24)
		return -EINVAL;
	if (request.flags & ~(uint32_t)IB_USER_MAD_REG_FLAGS_CAP) {
		request.flags = IB_USER_MAD_REG_FLAGS_CAP;
		memcpy(argument, &request, sizeof(request));
		return -EINVAL;
	}
	rules.class = request.mgmt_class;
	rules.class_version = request.mgmt_class_version;
	rules.rmpp_version = request.rmpp_version;
	rules.user_rmpp = (request.flags & IB_USER_MAD_USER_RMPP) != 0;
	rules.qp = (uint8_t)request.qpn;
	rules.oui = request.oui;
	if (rules.class)
		memcpy(rules.methods, request.method_mask, sizeof(rules.methods));
	rules.is_server = is_server(&rules);
	error = register_agent(handle, &rules, &request.id);
	if (!error && first)
		atomic_store(&handle->shared->pkey_layout, 1);
	memcpy(argument, &request, sizeof(request));
	return error;
}

static int unregister_one(struct handle *handle, const uint8_t *argument)
{
	uint32_t id;

	memcpy(&id, argument, sizeof(id));
	if (id >= AGENTS_PER_HANDLE || !handle->agents[id])
		return -EINVAL;
	unregister(handle, id);
	return 0;
}

int handle_ioctl(struct handle *handle, uint32_t code, uint8_t argument[ARGUMENT_BYTES])
{
	bool present = !handle->gone;

	switch (code) {
	case IB_USER_MAD_REGISTER_AGENT:
		return present ? register_old(handle, argument) : -EPIPE;
	case IB_USER_MAD_REGISTER_AGENT2:
		return present ? register_new(handle, argument) : -EPIPE;
	case IB_USER_MAD_UNREGISTER_AGENT:
		return unregister_one(handle, argument);
	case IB_USER_MAD_ENABLE_PKEY:
		if (atomic_load(&handle->shared->used))
			return -EINVAL;
		atomic_store(&handle->shared->pkey_layout, 1);
		return 0;
	default:
		return -ENOTTY;
	}
}

int handle_write(struct handle *handle, const uint8_t *bytes, size_t length)
{
	size_t header_bytes =
		atomic_load(&handle->shared->pkey_layout) ? HEADER_BYTES : OLD_HEADER_BYTES;
	struct ib_user_mad_hdr header = {0};

	memcpy(&header, bytes, header_bytes);
	if (handle->gone || header.id >= AGENTS_PER_HANDLE || !handle->agents[header.id])
		return -EIO;
	return host_send(handle->fabric, handle->agents[header.id], &header,
			 bytes + header_bytes, length - header_bytes);
}

struct message *handle_take(struct handle *handle, size_t *header_bytes)
{
	struct message *message = handle->queue;

	if (!message)
		return NULL;
	handle->queue = message->next;
	handle->queued--;
	if (!handle->queue)
		handle->queue_end = &handle->queue;
	*header_bytes =
		atomic_load(&handle->shared->pkey_layout) ? HEADER_BYTES : OLD_HEADER_BYTES;
	/* a timed-out request comes back with the program's header unchanged; other messages
	 * have their length in the header */
	if (!message->header.status)
		message->header.length = (uint32_t)(*header_bytes + message->length);
	return message;
}

void host_remove(struct host_port *host)
{
	host->present = false;
	for (struct handle *handle = host->handles; handle; handle = handle->next) {
		unregister_all(handle);
		empty_queue(handle);
		handle->gone = true;
		atomic_store(&handle->shared->gone, 1);
		handle->removed(handle);
	}
}

void host_add(struct host_port *host)
{
	host->present = true;
}
