/* SPDX-License-Identifier: BSD-2-Clause */

/* The umad devices of the fake machine, and the seam of system calls but for sys_list(). */

#include "fake_state.h"
#include "kernel_abi.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define DEV_DIR      "/dev/infiniband/"
#define OLD_HEADER   56
#define ONE_MAD      256
#define MOST_HANDLES 2048
#define FIRST_HANDLE 1024 /* no descriptor, as with simulators */
#define MOST_DEVICES 64

struct message {
	struct message *next;
	struct ib_user_mad header;
	size_t length;
	uint8_t mad[];
};

struct handle {
	struct fake_device *device;
	bool pkey_index;
	struct message *queue;
	bool has_result;
	ssize_t result; /* of the next read */
};

static struct fake_device devices[MOST_DEVICES];
static int device_count, first_handle;
static struct handle *handles[MOST_HANDLES];
static struct device_packet **packets;
static unsigned packet_count;

/* --- the test's side ------------------------------------------------------------- */

static struct fake_device *find_device(const char *name)
{
	for (int i = 0; i < device_count; i++)
		if (!strcmp(devices[i].name, name))
			return &devices[i];
	return NULL;
}

struct fake_device *fake_device(const char *name)
{
	struct fake_device *device = find_device(name);

	if (device)
		return device;
	assert_true(device_count < MOST_DEVICES);
	device = &devices[device_count++];
	memset(device, 0, sizeof(*device));
	snprintf(device->name, sizeof(device->name), "%s", name);
	device->unregistered = UINT32_MAX;
	return device;
}

void fake_first_handle(int number)
{
	first_handle = number;
}

void device_queue(int fd, const struct ib_user_mad *header, const void *mad, size_t length)
{
	struct message *message = __real_calloc(1, sizeof(*message) + length);
	struct message **end = &handles[fd]->queue;

	message->header = *header;
	message->length = length;
	memcpy(message->mad, mad, length);
	while (*end)
		end = &(*end)->next;
	*end = message;
}

void device_read_result(int fd, long result)
{
	handles[fd]->has_result = true;
	handles[fd]->result = result;
}

unsigned device_written(void)
{
	return packet_count;
}

const struct device_packet *device_packet(unsigned n)
{
	assert_true(n < packet_count);
	return packets[n];
}

static void close_handle(int fd)
{
	struct message *message;

	while ((message = handles[fd]->queue)) {
		handles[fd]->queue = message->next;
		__real_free(message);
	}
	handles[fd]->device->opened--;
	__real_free(handles[fd]);
	handles[fd] = NULL;
}

void devices_begin(void)
{
	device_count = 0;
	first_handle = FIRST_HANDLE;
	packets = NULL;
	packet_count = 0;
}

int devices_end(void)
{
	int left = 0;

	for (int fd = 0; fd < MOST_HANDLES; fd++)
		if (handles[fd]) {
			close_handle(fd);
			left++;
		}
	for (unsigned i = 0; i < packet_count; i++)
		__real_free(packets[i]);
	__real_free(packets);
	return left;
}

/* --- the library's side, with the lock ------------------------------------------- */

static struct handle *handle_of(int fd)
{
	return fd >= 0 && fd < MOST_HANDLES ? handles[fd] : NULL;
}

static int open_handle(const char *name, int flags)
{
	struct fake_device *device = find_device(name);
	int fd = first_handle;

	if (!device)
		return -ENOENT;
	device->open_flags = flags;
	if (device->open_error || device->gone)
		return device->open_error ? -device->open_error : -ENXIO;
	while (handles[fd])
		fd++;
	handles[fd] = __real_calloc(1, sizeof(*handles[fd]));
	handles[fd]->device = device;
	device->opened++;
	return fd;
}

/* Both structures begin with the id. */
static int register_on(struct fake_device *device, unsigned long request, void *arg,
		       size_t size)
{
	memcpy(device->registered, arg, size);
	device->registered_by = request;
	if (device->register_error)
		return -device->register_error;
	memcpy(arg, &device->next_id, sizeof(device->next_id));
	device->next_id++;
	return 0;
}

static int control(struct handle *handle, unsigned long request, void *arg)
{
	struct fake_device *device = handle->device;
	struct ib_user_mad_reg_req2 *req2 = arg;

	if (device->gone)
		return request == IB_USER_MAD_UNREGISTER_AGENT ? -EINVAL : -EPIPE;
	switch (request) {
	case IB_USER_MAD_REGISTER_AGENT:
		return register_on(device, request, arg, sizeof(struct ib_user_mad_reg_req));
	case IB_USER_MAD_UNREGISTER_AGENT:
		device->unregistered = *(uint32_t *)arg;
		return device->unregistered < device->next_id ? 0 : -EINVAL;
	case IB_USER_MAD_ENABLE_PKEY:
		handle->pkey_index |= !device->no_pkey;
		return device->no_pkey ? -ENOTTY : 0;
	}
	if (request != IB_USER_MAD_REGISTER_AGENT2 || device->no_pkey)
		return -ENOTTY;
	if (req2->flags & ~(uint32_t)IB_USER_MAD_REG_FLAGS_CAP) {
		req2->flags = IB_USER_MAD_REG_FLAGS_CAP;
		return -EINVAL;
	}
	return register_on(device, request, req2, sizeof(*req2));
}

static size_t header_size(const struct handle *handle)
{
	return handle->pkey_index ? sizeof(struct ib_user_mad) : OLD_HEADER;
}

static ssize_t read_message(struct handle *handle, uint8_t *buf, size_t size)
{
	size_t header = header_size(handle);
	struct message *message = handle->queue;

	if (handle->has_result) {
		handle->has_result = false;
		return handle->result;
	}
	if (handle->device->gone)
		return -EIO;
	if (!message)
		return -EAGAIN;
	if (size < header + (message->length < ONE_MAD ? message->length : ONE_MAD))
		return -EINVAL;
	memcpy(buf, &message->header, header);
	if (size < header + message->length) {
		memcpy(buf + header, message->mad, ONE_MAD);
		return -ENOSPC;
	}
	memcpy(buf + header, message->mad, message->length);
	size = header + message->length;
	handle->queue = message->next;
	__real_free(message);
	return (ssize_t)size;
}

static ssize_t write_message(const struct handle *handle, const uint8_t *buf, size_t size)
{
	const struct fake_device *device = handle->device;
	size_t header = header_size(handle);
	struct device_packet *packet;

	if (device->gone || device->write_error)
		return device->gone ? -EIO : -device->write_error;
	packet = __real_calloc(1, sizeof(*packet) + size - header);
	packet->length = size - header;
	memcpy(&packet->header, buf, header);
	memcpy(packet->mad, buf + header, packet->length);
	packets = __real_realloc(packets, (packet_count + 1) * sizeof(*packets));
	packets[packet_count++] = packet;
	/* the program reuses its memory */
	if (device->overwritten)
		memset((void *)(uintptr_t)buf, 0xee, size);
	return (ssize_t)size - device->short_write;
}

/* --- the seam -------------------------------------------------------------------- */

/* Takes the lock. An error, negative, is that of the fault. */
static struct handle *enter(int fd, ssize_t *error)
{
	pthread_mutex_lock(&fake_lock);
	*error = begin_call();
	return handle_of(fd);
}

static ssize_t leave(ssize_t result)
{
	pthread_mutex_unlock(&fake_lock);
	return result;
}

int sys_open(const char *path, int flags)
{
	bool is_device = !strncmp(path, DEV_DIR, strlen(DEV_DIR));
	ssize_t err;

	enter(-1, &err);
	leave(0);
	if (err)
		return (int)err;
	before_open(path);
	pthread_mutex_lock(&fake_lock);
	return (int)leave(is_device ? open_handle(path + strlen(DEV_DIR), flags)
				    : open_file(path, flags));
}

int sys_close(int fd)
{
	int err = 0;

	pthread_mutex_lock(&fake_lock);
	if (handle_of(fd))
		close_handle(fd);
	else
		err = close_file(fd);
	return (int)leave(err);
}

int sys_ioctl(int fd, unsigned long request, void *arg)
{
	ssize_t err;
	struct handle *handle = enter(fd, &err);

	if (!err)
		err = handle ? control(handle, request, arg) : -EBADF;
	return (int)leave(err);
}

ssize_t sys_read(int fd, void *buf, size_t size)
{
	ssize_t got;
	struct handle *handle = enter(fd, &got);

	if (!got)
		got = handle ? read_message(handle, buf, size) : read_file(fd, buf, size);
	return leave(got);
}

ssize_t sys_write(int fd, const void *buf, size_t size)
{
	ssize_t written;
	struct handle *handle = enter(fd, &written);

	if (!written)
		written = handle ? write_message(handle, buf, size) : -EBADF;
	return leave(written);
}

/* Does not wait. */
static int poll_handle(int fd, int other, int timeout_ms, int *other_revents)
{
	ssize_t err;
	struct handle *handle = enter(fd, &err);
	struct fake_device *device;

	leave(0);
	/* the kernel ignores it, and poll would wait for ever */
	assert_true(fd >= 0);
	*other_revents = 0;
	if (!handle || err)
		return handle ? (int)err : POLLNVAL;
	device = handle->device;
	device->polls++;
	device->last_other = other;
	device->last_timeout = timeout_ms;
	if (device->on_poll)
		device->on_poll(device);
	if (device->poll_result >= 0)
		*other_revents = device->other_revents;
	if (device->poll_result || device->gone)
		return device->poll_result ? device->poll_result : POLLERR;
	return handle->queue || handle->has_result ? POLLIN : 0;
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
