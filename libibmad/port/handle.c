/* SPDX-License-Identifier: BSD-2-Clause */

#include "port/handle.h"

#include "base/export.h"

#include <sys/mman.h>
#include <unistd.h>

/* A message that is dropped is read into this memory, which is mapped several times. */
#define DRAIN_SIZE (1 << 20)

/* The retries of a response, which has no timeout. */
#define ACK_RETRIES 4

/* The errno of a failed umad_send(). EIO may mean that the device is gone: poll(2) tells. */
static int send_error(const struct handle *handle, int ret)
{
	int error = ret == -EIO ? errno : -ret;

	if (error == EIO && umad_poll(handle->fd, 0) == -EIO && errno != EINTR)
		return ENODEV;
	return error;
}

RARE int handle_write_failed(const struct handle *handle, uint8_t *umad, int length,
			     int kernel_ms, int retries, int ret)
{
	int agent = (int)((struct ib_user_mad *)(void *)umad)->agent_id;

	while (ret == -EIO && errno == EINTR)
		ret = umad_send(handle->fd, agent, umad, length, kernel_ms, retries);
	return ret ? send_error(handle, ret) : 0;
}

/* The kernel waits for no response: the timeout is 0. */
int handle_respond(const struct handle *handle, uint8_t *umad, int length, bool by_rmpp)
{
	return handle_write(handle, umad, umad_get_mad(umad), length, 0,
			    by_rmpp ? ACK_RETRIES : 0);
}

enum handle_result handle_receive_failed(const struct handle *handle, uint8_t *umad,
					 int *length, int ret)
{
	while (ret == -EIO && errno == EINTR)
		ret = umad_recv(handle->fd, umad, length, 0);
	if (ret >= 0) {
		report_packet("receive\n", umad + handle->header_size, *length);
		return HANDLE_MESSAGE;
	}
	if (ret == -EWOULDBLOCK)
		return HANDLE_NONE;
	return ret == -ENOSPC ? HANDLE_TOO_LONG : HANDLE_GONE;
}

/* An address range of "size" bytes. With a memfd, each DRAIN_SIZE of it is the same memory. */
static void *map_drain(size_t size)
{
	int fd = memfd_create("umad-drain", MFD_CLOEXEC);
	uint8_t *range = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (fd >= 0 && ftruncate(fd, DRAIN_SIZE)) {
		close(fd);
		fd = -1;
	}
	for (size_t at = 0; fd >= 0 && range != MAP_FAILED && at < size; at += DRAIN_SIZE)
		if (mmap(range + at, DRAIN_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			 fd, 0) == MAP_FAILED) {
			munmap(range, size);
			range = MAP_FAILED;
		}
	if (fd >= 0)
		close(fd);
	return range;
}

enum handle_result handle_drain(const struct handle *handle, int length)
{
	size_t size = (umad_size() + (size_t)length + DRAIN_SIZE - 1) / DRAIN_SIZE * DRAIN_SIZE;
	void *range = map_drain(size);
	int ret;

	if (range == MAP_FAILED)
		return HANDLE_TOO_LONG;
	do {
		ret = umad_recv(handle->fd, range, &length, 0);
	} while (ret == -EIO && errno == EINTR);
	munmap(range, size);
	if (ret == -EWOULDBLOCK)
		return HANDLE_NONE;
	return ret < 0 && ret != -ENOSPC ? HANDLE_GONE : HANDLE_MESSAGE;
}
