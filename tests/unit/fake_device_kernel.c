/* SPDX-License-Identifier: BSD-2-Clause */

/* The library's side of the fake devices: the seam of system calls. */

#include "fake_device_state.h"
#include "kernel_abi.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define DEV_DIR    "/dev/infiniband/"
#define OLD_HEADER 56
#define RESPONSE   0x80 /* in the method */

static struct handle *handle_of(int fd)
{
	return fd >= 0 && fd < MAX_FD ? fake.handles[fd] : NULL;
}

/* --- agents --------------------------------------------------------------------- */

static bool is_range2(uint8_t mgmt_class)
{
	return mgmt_class >= 0x30 && mgmt_class <= 0x4f;
}

static bool is_smp(uint8_t mgmt_class)
{
	return mgmt_class == 0x01 || mgmt_class == 0x81;
}

static bool has_rmpp(uint8_t mgmt_class)
{
	return mgmt_class == 0x03 || mgmt_class == 0x06 || mgmt_class == 0x10 ||
	       mgmt_class == 0x12 || is_range2(mgmt_class);
}

/* Whether both agents would receive the same requests. */
static bool clash(const struct device_agent *a, const struct device_agent *b)
{
	return b->registered && a->mgmt_class == b->mgmt_class &&
	       a->class_version == b->class_version &&
	       (!is_range2(a->mgmt_class) || a->oui == b->oui) &&
	       ((a->methods[0] & b->methods[0]) || (a->methods[1] & b->methods[1]));
}

static bool is_taken(const struct fake_device *device, const struct device_agent *agent)
{
	int fd, id;

	for (fd = 0; fd < MAX_FD; fd++)
		for (id = 0;
		     fake.handles[fd] && fake.handles[fd]->device == device && id < MAX_AGENTS;
		     id++)
			if (clash(agent, &fake.handles[fd]->agents[id]))
				return true;
	return false;
}

static int add_agent(struct handle *handle, const struct device_agent *agent, uint8_t qpn,
		     uint32_t *id)
{
	bool serves = agent->methods[0] || agent->methods[1];

	if (qpn != !is_smp(agent->mgmt_class) ||
	    (agent->mgmt_class >= 0x50 && agent->mgmt_class != 0x81) ||
	    agent->rmpp_version > 1 || (agent->rmpp_version && !has_rmpp(agent->mgmt_class)) ||
	    agent->oui > 0xffffff || (serves && is_range2(agent->mgmt_class) && !agent->oui) ||
	    is_taken(handle->device, agent))
		return -EINVAL;
	for (*id = 0; handle->agents[*id].registered; ++*id)
		if (*id == MAX_AGENTS - 1)
			return -ENOMEM;
	handle->agents[*id] = *agent;
	handle->used = true;
	return 0;
}

static int register1(struct handle *handle, struct ib_user_mad_reg_req *req)
{
	struct device_agent agent = {
		.registered = true,
		.mgmt_class = req->mgmt_class,
		.class_version = req->mgmt_class_version,
		.rmpp_version = req->rmpp_version,
		.oui = (uint32_t)(req->oui[0] << 16 | req->oui[1] << 8 | req->oui[2]),
	};

	memcpy(agent.methods, req->method_mask, sizeof(agent.methods));
	return add_agent(handle, &agent, req->qpn, &req->id);
}

static int register2(struct handle *handle, struct ib_user_mad_reg_req2 *req)
{
	struct device_agent agent = {
		.registered = true,
		.mgmt_class = req->mgmt_class,
		.class_version = (uint8_t)req->mgmt_class_version,
		.rmpp_version = req->rmpp_version,
		.oui = req->oui,
		.methods = {req->method_mask[0], req->method_mask[1]},
	};

	return add_agent(handle, &agent, (uint8_t)req->qpn, &req->id);
}

static int register_on(struct handle *handle, unsigned long request, void *arg, size_t size)
{
	struct fake_device *device = handle->device;

	memcpy(device->registered, arg, size);
	device->registered_by = request;
	if (device->register_error)
		return -device->register_error;
	if (!fake.manual)
		return request == IB_USER_MAD_REGISTER_AGENT ? register1(handle, arg)
							     : register2(handle, arg);
	/* both structures begin with the id */
	memcpy(arg, &device->next_id, sizeof(device->next_id));
	device->next_id++;
	return 0;
}

static int register2_on(struct handle *handle, struct ib_user_mad_reg_req2 *req)
{
	if (req->flags & ~(uint32_t)IB_USER_MAD_REG_FLAGS_CAP) {
		req->flags = IB_USER_MAD_REG_FLAGS_CAP;
		return -EINVAL;
	}
	if (!handle->used)
		handle->pkey_index = true;
	return register_on(handle, IB_USER_MAD_REGISTER_AGENT2, req, sizeof(*req));
}

/* Requests in flight are removed with their agent. */
static int unregister(struct handle *handle, uint32_t id)
{
	unsigned i;

	handle->device->unregistered = id;
	if (fake.manual)
		return id < handle->device->next_id ? 0 : -EINVAL;
	if (id >= MAX_AGENTS || !handle->agents[id].registered)
		return -EINVAL;
	handle->agents[id].registered = false;
	for (i = 0; i < fake.packet_count; i++)
		if (fake.packets[i]->fd == handle->number &&
		    fake.packets[i]->header.agent_id == id)
			fake.packets[i]->in_flight = false;
	return 0;
}

static int control(struct handle *handle, unsigned long request, void *arg)
{
	if (handle->device->gone)
		return request == IB_USER_MAD_UNREGISTER_AGENT ? -EINVAL : -EPIPE;
	if (handle->device->no_pkey && request != IB_USER_MAD_REGISTER_AGENT &&
	    request != IB_USER_MAD_UNREGISTER_AGENT)
		return -ENOTTY;
	switch (request) {
	case IB_USER_MAD_ENABLE_PKEY:
		if (handle->used)
			return -EINVAL;
		handle->pkey_index = true;
		return 0;
	case IB_USER_MAD_REGISTER_AGENT:
		return register_on(handle, request, arg, sizeof(struct ib_user_mad_reg_req));
	case IB_USER_MAD_REGISTER_AGENT2:
		return register2_on(handle, arg);
	case IB_USER_MAD_UNREGISTER_AGENT:
		return unregister(handle, *(uint32_t *)arg);
	}
	return -ENOTTY;
}

/* --- reading and writing -------------------------------------------------------- */

static size_t header_size(const struct handle *handle)
{
	return handle->pkey_index ? sizeof(struct ib_user_mad) : OLD_HEADER;
}

static ssize_t read_message(struct handle *handle, uint8_t *buf, size_t size)
{
	size_t header = header_size(handle), length;
	struct message *message = handle->queue;

	if (handle->raw_read) {
		handle->raw_read = false;
		return handle->raw_result;
	}
	if (handle->device->gone)
		return -EIO;
	if (size < header)
		return -EINVAL;
	if (!message || (message->ready_ns && message->ready_ns > now_ns()))
		return -EAGAIN;
	length = message->length;
	if (!message->header.length)
		message->header.length = (uint32_t)(header + length);
	if (size < header + length && (length <= ONE_MAD || size < header + ONE_MAD))
		return -EINVAL;
	memcpy(buf, &message->header, header);
	if (size < header + length) {
		memcpy(buf + header, message->mad, ONE_MAD);
		return -ENOSPC;
	}
	if (length)
		memcpy(buf + header, message->mad, length);
	handle->queue = message->next;
	*(message->next ? &message->next->previous : &handle->last) = NULL;
	__real_free(message);
	return (ssize_t)(header + length);
}

static ssize_t read_handle(struct handle *handle, void *buf, size_t size)
{
	ssize_t got = begin_call(DEVICE_READ);

	if (!got)
		got = read_message(handle, buf, size);
	arm(handle);
	return got;
}

/* The offset of a class's data; a shorter MAD is not valid. */
static size_t least_length(uint8_t mgmt_class)
{
	return mgmt_class == 0x03 ? 56 : is_range2(mgmt_class) ? 40 : 36;
}

bool same_transaction(const struct device_packet *a, const struct device_packet *b)
{
	return a->fd == b->fd && a->header.agent_id == b->header.agent_id &&
	       a->mad[1] == b->mad[1] && !memcmp(a->mad + 12, b->mad + 12, 4);
}

static bool is_held(const struct device_packet *packet)
{
	unsigned i;

	if (!fake.hold_tids || packet->mad[3] & RESPONSE)
		return false;
	for (i = 0; i < fake.packet_count; i++)
		if (fake.packets[i]->in_flight && same_transaction(fake.packets[i], packet))
			return true;
	return false;
}

static int refusal(const struct handle *handle, const struct device_packet *packet)
{
	uint32_t agent = packet->header.agent_id;

	if (handle->device->gone)
		return -EIO;
	if (fake.manual)
		return -handle->device->write_error;
	if (packet->length < 36 || agent >= MAX_AGENTS)
		return -EINVAL;
	if (!handle->agents[agent].registered)
		return -EIO;
	if (packet->length < least_length(packet->mad[1]))
		return -EINVAL;
	if (packet->length > ONE_MAD &&
	    !(handle->agents[agent].rmpp_version && packet->mad[26] & 1))
		return -EINVAL;
	return is_held(packet) ? -EINVAL : 0;
}

static void record(struct device_packet *packet)
{
	fake.packets =
		__real_realloc(fake.packets, (fake.packet_count + 1) * sizeof(*fake.packets));
	fake.packets[fake.packet_count++] = packet;
	pthread_cond_broadcast(&fake.written);
}

static struct device_packet *make_packet(const struct handle *handle, const uint8_t *buf,
					 size_t size)
{
	size_t header = header_size(handle), length = size - header;
	struct device_packet *packet = __real_calloc(1, sizeof(*packet) + length);

	packet->fd = handle->number;
	packet->length = length;
	memcpy(&packet->header, buf, header);
	memcpy(packet->mad, buf + header, length);
	packet->in_flight =
		length > 3 && !(packet->mad[3] & RESPONSE) && packet->header.timeout_ms;
	return packet;
}

/* The lock is held; it is released for the hook. */
static ssize_t write_handle(struct handle *handle, const uint8_t *buf, size_t size)
{
	const struct fake_device *device = handle->device;
	struct device_packet *packet;
	bool keep = !fake.forget_packets;
	device_write_fn *hook = fake.on_write;
	void *arg = fake.on_write_arg;
	int err = begin_call(DEVICE_WRITE);

	if (err)
		return err;
	if (size < header_size(handle))
		return -EINVAL;
	packet = make_packet(handle, buf, size);
	err = refusal(handle, packet);
	if (err) {
		__real_free(packet);
		return err;
	}
	if (keep)
		record(packet);
	unlock();
	err = hook ? hook(packet, arg) : 0;
	lock();
	if (err)
		packet->in_flight = false;
	if (!keep)
		__real_free(packet);
	/* the program reuses its memory */
	if (device->overwritten)
		memset((void *)(uintptr_t)buf, 0xee, size);
	return err ? err : (ssize_t)size - device->short_write;
}

/* --- the seam ------------------------------------------------------------------- */

/* The handle of a descriptor; -1: there is none left. */
static int choose_number(int fd)
{
	int number = fake.first_handle;

	if (number < 0)
		return fd < MAX_FD ? fd : -1;
	while (number < MAX_FD && fake.handles[number])
		number++;
	return number < MAX_FD ? number : -1;
}

static int open_handle(const char *name, int flags)
{
	struct fake_device *device = find_device(name);
	struct handle *handle;

	if (!device)
		return -ENOENT;
	device->open_flags = flags;
	if (device->open_error || device->gone)
		return device->open_error ? -device->open_error : -ENXIO;
	handle = __real_calloc(1, sizeof(*handle));
	handle->device = device;
	handle->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	handle->number = handle->fd < 0 ? -1 : choose_number(handle->fd);
	if (handle->number < 0) {
		close(handle->fd);
		__real_free(handle);
		return -EMFILE;
	}
	fake.handles[handle->number] = handle;
	fake.handle_count++;
	device->opened++;
	fake.last_fd = handle->number;
	return handle->number;
}

int sys_open(const char *path, int flags)
{
	bool is_device = !strncmp(path, DEV_DIR, strlen(DEV_DIR));
	int fd;

	lock();
	fd = begin_call(is_device ? DEVICE_OPEN : DEVICE_FILES);
	unlock();
	if (fd)
		return fd;
	if (fake.before_open)
		fake.before_open(path);
	lock();
	fd = is_device ? open_handle(path + strlen(DEV_DIR), flags) : open_file(path, flags);
	unlock();
	return fd;
}

int sys_close(int fd)
{
	struct handle *handle;
	int err = 0;

	lock();
	/* a close that fails has closed the descriptor: it is not a fault here */
	fake.calls[DEVICE_CALLS].calls++;
	handle = handle_of(fd);
	if (handle)
		close_handle(handle);
	else
		err = close_file(fd);
	unlock();
	return err;
}

int sys_ioctl(int fd, unsigned long request, void *arg)
{
	struct handle *handle;
	int err;

	lock();
	handle = handle_of(fd);
	err = handle ? begin_call(DEVICE_IOCTL) : -EBADF;
	if (!err)
		err = control(handle, request, arg);
	unlock();
	return err;
}

ssize_t sys_read(int fd, void *buf, size_t size)
{
	struct handle *handle;
	ssize_t got;

	lock();
	handle = handle_of(fd);
	got = handle ? read_handle(handle, buf, size) : begin_call(DEVICE_FILES);
	if (!handle && !got)
		got = read_file(fd, buf, size);
	unlock();
	return got;
}

ssize_t sys_write(int fd, const void *buf, size_t size)
{
	struct handle *handle;
	ssize_t written;

	lock();
	handle = handle_of(fd);
	written = handle ? write_handle(handle, buf, size) : -EBADF;
	unlock();
	return written;
}

/* The result of polling a manual device, which does not wait. */
static int poll_manual(const struct handle *handle, int *other_revents)
{
	const struct fake_device *device = handle->device;

	if (device->poll_result < 0)
		return device->poll_result;
	*other_revents = device->other_revents;
	if (device->poll_result || device->gone)
		return device->poll_result ? device->poll_result : POLLERR;
	return handle->queue || handle->raw_read ? POLLIN : 0;
}

/* Waits for two descriptors as the kernel does. */
static int wait_for(struct pollfd fds[2], int timeout_ms, const struct fake_device *device)
{
	int err = poll(fds, 2, timeout_ms);
	bool gone;

	err = err < 0 ? -errno : err;
	lock();
	while (fake.hold_polls)
		pthread_cond_wait(&fake.polls_go, &fake.lock);
	gone = device->gone;
	unlock();
	if (err > 0 && gone)
		fds[0].revents = POLLERR;
	return err;
}

static int poll_handle(int fd, int other, int timeout_ms, int *other_revents)
{
	struct pollfd fds[2] = {{.events = POLLIN}, {.fd = other, .events = POLLIN}};
	struct fake_device *device;
	struct handle *handle;
	int err;

	*other_revents = 0;
	/* the kernel ignores it, and poll would wait for ever */
	assert_true(fd >= 0);
	lock();
	handle = handle_of(fd);
	err = handle ? begin_call(DEVICE_POLL) : 0;
	device = handle ? handle->device : NULL;
	fake.poll_timeout = timeout_ms;
	if (handle && !err) {
		fds[0].fd = handle->fd;
		device->polls++;
		device->last_other = other;
		device->last_timeout = timeout_ms;
	}
	unlock();
	if (!handle || err)
		return handle ? err : POLLNVAL;
	if (device->on_poll)
		device->on_poll(device);
	if (fake.manual)
		return poll_manual(handle, other_revents);
	err = wait_for(fds, timeout_ms, device);
	if (err <= 0)
		return err;
	*other_revents = fds[1].revents;
	return fds[0].revents;
}

int sys_poll_both(int fd, int other, int timeout_ms, int *other_revents)
{
	assert_true(other >= 0);
	return poll_handle(fd, other, timeout_ms, other_revents);
}

int sys_poll(int fd, int timeout_ms)
{
	int other_revents;

	/* poll(2) ignores a negative descriptor */
	return poll_handle(fd, -1, timeout_ms, &other_revents);
}
