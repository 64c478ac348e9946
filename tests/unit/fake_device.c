/* SPDX-License-Identifier: BSD-2-Clause */

/* The test's side of the fake devices: written packets, queued messages, faults. */

#include "fake_device_state.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* The upper half of a TID, which the kernel sets for an agent. */
#define UPPER_TID 0xa6e00000u

/* --- devices -------------------------------------------------------------------- */

struct fake_device *find_device(const char *name)
{
	for (int i = 0; i < fake.device_count; i++)
		if (!strcmp(fake.devices[i].name, name))
			return &fake.devices[i];
	return NULL;
}

struct fake_device *fake_device(const char *name)
{
	struct fake_device *device = find_device(name);

	if (device)
		return device;
	assert_true(fake.device_count < MAX_DEVICES);
	device = &fake.devices[fake.device_count++];
	snprintf(device->name, sizeof(device->name), "%s", name);
	device->unregistered = UINT32_MAX;
	return device;
}

void fake_first_handle(int number)
{
	fake.first_handle = number;
}

void close_handle(struct handle *handle)
{
	struct message *message;

	while ((message = handle->queue)) {
		handle->queue = message->next;
		__real_free(message);
	}
	fake.handles[handle->number] = NULL;
	fake.handle_count--;
	handle->device->opened--;
	close(handle->fd);
	__real_free(handle);
}

/* --- the queue ------------------------------------------------------------------ */

int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

void arm(struct handle *handle)
{
	struct itimerspec when = {0};
	int64_t ns = 0, now;

	if (fake.manual)
		return;
	now = now_ns();
	if (handle->queue)
		ns = handle->queue->ready_ns;
	if (handle->device->gone || handle->raw_read)
		ns = 1;
	/* setting the timer takes time: an expired timer is not set again */
	if (ns && ns <= now && handle->expires_ns && handle->expires_ns <= now)
		return;
	if (ns == handle->expires_ns)
		return;
	handle->expires_ns = ns;
	when.it_value.tv_sec = (time_t)(ns / 1000000000);
	when.it_value.tv_nsec = (long)(ns % 1000000000);
	timerfd_settime(handle->fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void enqueue(int fd, const struct ib_user_mad *header, const void *mad, size_t length)
{
	struct handle *handle = fake.handles[fd];
	struct message *message, *before;

	if (!handle)
		return;
	message = __real_malloc(sizeof(*message) + length);
	message->ready_ns = fake.manual ? 0 : now_ns() + fake.delay_us * 1000LL;
	message->header = *header;
	message->length = length;
	if (length)
		memcpy(message->mad, mad, length);
	/* few messages are queued behind it */
	for (before = handle->last; before; before = before->previous)
		if (before->ready_ns <= message->ready_ns)
			break;
	message->previous = before;
	message->next = before ? before->next : handle->queue;
	*(before ? &before->next : &handle->queue) = message;
	*(message->next ? &message->next->previous : &handle->last) = message;
	arm(handle);
}

void device_queue(int fd, const struct ib_user_mad *header, const void *mad, size_t length)
{
	lock();
	enqueue(fd, header, mad, length);
	unlock();
}

void device_delay(unsigned microseconds)
{
	lock();
	fake.delay_us = microseconds;
	unlock();
}

/*
 * Whether a request waits for the response to this one; it then waits no longer. With the
 * kernel's rule this may be a later packet with the same TID.
 */
static bool take_in_flight(const struct device_packet *request)
{
	bool found = false;

	if (fake.forget_packets)
		return true;
	for (unsigned i = fake.packet_count; i-- > 0 && !found;) {
		struct device_packet *packet = fake.packets[i];

		found = fake.hold_tids ? packet->in_flight && same_transaction(packet, request)
				       : packet == request;
		packet->in_flight &= !found;
	}
	return found;
}

void device_reply(const struct device_packet *request, const void *mad, size_t length)
{
	struct ib_user_mad header = {.agent_id = request->header.agent_id};

	header.addr = request->header.addr;
	header.addr.qkey = 0;
	lock();
	if (take_in_flight(request))
		enqueue(request->fd, &header, mad, length);
	unlock();
}

void device_time_out(const struct device_packet *request)
{
	struct ib_user_mad header = request->header;
	uint8_t mad[ONE_MAD];

	device_copy_mad(request, mad);
	header.status = ETIMEDOUT;
	lock();
	if (take_in_flight(request))
		enqueue(request->fd, &header, mad, 24);
	unlock();
}

uint32_t upper_tid(const struct device_packet *request)
{
	return UPPER_TID | (uint32_t)request->fd * MAX_AGENTS | request->header.agent_id;
}

void device_copy_mad(const struct device_packet *request, uint8_t mad[ONE_MAD])
{
	uint32_t upper = htobe32(upper_tid(request));

	memset(mad, 0, ONE_MAD);
	memcpy(mad, request->mad, request->length < ONE_MAD ? request->length : ONE_MAD);
	memcpy(mad + 8, &upper, sizeof(upper));
}

void device_respond(const struct device_packet *request, uint16_t status, size_t offset,
		    const void *data, size_t size)
{
	bool directed = request->mad[1] == 0x81;
	uint8_t mad[ONE_MAD];
	uint16_t field = htobe16((uint16_t)(status | (directed ? 0x8000 : 0)));

	device_copy_mad(request, mad);
	mad[3] = mad[3] == 0x02 ? 0x81 : mad[3] | 0x80; /* Set, too, has a GetResp */
	memcpy(mad + 4, &field, sizeof(field));
	if (size)
		memcpy(mad + offset, data, size);
	device_reply(request, mad, sizeof(mad));
}

void device_hold_polls(bool on)
{
	lock();
	fake.hold_polls = on;
	pthread_cond_broadcast(&fake.polls_go);
	unlock();
}

/* --- faults and counts ---------------------------------------------------------- */

void device_on_write(device_write_fn *hook, void *arg)
{
	lock();
	fake.on_write = hook;
	fake.on_write_arg = arg;
	unlock();
}

void device_forget_packets(void)
{
	lock();
	fake.forget_packets = true;
	unlock();
}

void device_hold_tids(bool on)
{
	lock();
	fake.hold_tids = on;
	unlock();
}

void device_fail(enum device_call call, unsigned n, int error)
{
	lock();
	fake.calls[call].fail_in = n;
	fake.calls[call].error = error;
	fake.failed = false;
	unlock();
}

void device_read_result(int fd, long result)
{
	lock();
	fake.handles[fd]->raw_read = true;
	fake.handles[fd]->raw_result = result;
	arm(fake.handles[fd]);
	unlock();
}

void device_remove(void)
{
	int fd;

	lock();
	for (int i = 0; i < fake.device_count; i++)
		fake.devices[i].gone = true;
	for (fd = 0; fd < MAX_FD; fd++)
		if (fake.handles[fd])
			arm(fake.handles[fd]);
	unlock();
}

void device_high_handles(void)
{
	lock();
	fake.first_handle = FIRST_HIGH;
	unlock();
}

void device_old_kernel(void)
{
	lock();
	for (int i = 0; i < fake.device_count; i++)
		fake.devices[i].no_pkey = true;
	unlock();
}

unsigned device_written(void)
{
	unsigned count;

	lock();
	count = fake.packet_count;
	unlock();
	return count;
}

const struct device_packet *device_packet(unsigned n)
{
	const struct device_packet *packet;

	lock();
	packet = n < fake.packet_count ? fake.packets[n] : NULL;
	unlock();
	assert_non_null(packet);
	return packet;
}

bool device_wait_written(unsigned count, int timeout_ms)
{
	int64_t end_ns = now_ns() + timeout_ms * 1000000LL;
	struct timespec end = {(time_t)(end_ns / 1000000000), (long)(end_ns % 1000000000)};
	bool there;
	int err = 0;

	lock();
	while (!err && fake.packet_count < count)
		err = pthread_cond_timedwait(&fake.written, &fake.lock, &end);
	there = fake.packet_count >= count;
	unlock();
	return there;
}

int device_handles(void)
{
	int count;

	lock();
	count = fake.handle_count;
	unlock();
	return count;
}

int device_fd(void)
{
	int fd;

	lock();
	fd = fake.last_fd;
	unlock();
	return fd;
}

struct device_agent device_agent(int fd, unsigned id)
{
	struct device_agent agent = {0};

	lock();
	if (fake.handles[fd] && id < MAX_AGENTS)
		agent = fake.handles[fd]->agents[id];
	unlock();
	return agent;
}

unsigned device_calls(enum device_call call)
{
	unsigned count;

	lock();
	count = fake.calls[call].calls;
	unlock();
	return count;
}

int device_poll_timeout(void)
{
	int timeout;

	lock();
	timeout = fake.poll_timeout;
	unlock();
	return timeout;
}
