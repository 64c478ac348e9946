/* SPDX-License-Identifier: BSD-2-Clause */

#include "port/handle.h"

#include "base/export.h"
#include "base/report.h"
#include "mad/layout.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* A message that is dropped is read into this memory, which is mapped several times. */
#define DRAIN_SIZE (1 << 20)

/*
 * How long the kernel waits for the acknowledgement of segments, or the request's timeout if
 * that is shorter. Then the kernel retransmits them, as often as the message has retries.
 */
#define ACK_MS      2000
/* The retries of a response, which has no timeout. */
#define ACK_RETRIES 4

/* The errno of a failed umad_send(). EIO may mean that the device is gone: poll(2) tells. */
static RARE int send_error(const struct handle *handle, int ret)
{
	int error = ret == -EIO ? errno : -ret;

	if (error == EIO && umad_poll(handle->fd, 0) == -EIO && errno != EINTR)
		return ENODEV;
	return error;
}

static inline int write_mad(const struct handle *handle, uint8_t *umad, const uint8_t *mad,
			    int length, int kernel_ms, int retries)
{
	int agent = (int)((struct ib_user_mad *)(void *)umad)->agent_id, ret;

	report_packet("send\n", mad, length);
	do {
		ret = umad_send(handle->fd, agent, umad, length, kernel_ms, retries);
	} while (ret == -EIO && errno == EINTR);
	return ret ? send_error(handle, ret) : 0;
}

static bool is_sent_by_rmpp(const struct handle *handle, const uint8_t *mad)
{
	return handle->rmpp[mad[1]] && mad[RMPP_VERSION_OFFS] == RMPP_VERSION &&
	       mad[RMPP_FLAGS_OFFS] & IB_RMPP_FLAG_ACTIVE;
}

/*
 * The library retransmits a request of one MAD. The kernel retransmits the segments of a longer
 * request until the timeout, because only the kernel knows which segments are lost.
 */
int handle_send(const struct handle *handle, uint8_t *umad, int length, int kernel_ms)
{
	const uint8_t *mad = umad + handle->header_size;
	bool by_rmpp = is_sent_by_rmpp(handle, mad);

	return write_mad(handle, umad, mad, length, kernel_ms,
			 by_rmpp ? (kernel_ms - 1) / ACK_MS : 0);
}

/* The kernel waits for no response: the timeout is 0. */
int handle_respond(const struct handle *handle, uint8_t *umad, int length, bool by_rmpp)
{
	return write_mad(handle, umad, umad_get_mad(umad), length, 0,
			 by_rmpp ? ACK_RETRIES : 0);
}

enum handle_result handle_receive(const struct handle *handle, void *umad, int *length)
{
	int ret;

	do {
		ret = umad_recv(handle->fd, umad, length, 0);
	} while (ret == -EIO && errno == EINTR);
	if (ret >= 0) {
		if (ibdebug > 1)
			report_packet("receive\n", umad_get_mad(umad), *length);
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
