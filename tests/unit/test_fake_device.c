/* SPDX-License-Identifier: BSD-2-Clause */

/* The fake device works like the kernel, as far as other tests depend on it. */

#include "fake_device.h"
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define SA 0x03

static struct {
	struct ib_user_mad umad;
	uint8_t mad[1024];
} buffer;

static int fd, agent;

static int setup(void)
{
	if (device_setup())
		return -1;
	memset(&buffer, 0, sizeof(buffer));
	fd = umad_open_port(NULL, 0);
	agent = umad_register(fd, SA, 2, 1, NULL);
	return fd < 0 || agent < 0 ? -1 : 0;
}

static int teardown(void)
{
	if (umad_close_port(fd))
		return -1;
	return device_teardown();
}

FIXTURE(setup, teardown);

/* Sends a Get with that TID and returns the written packet. */
static const struct device_packet *ask(uint32_t tid)
{
	const uint8_t header[] = {1, SA, 2, 1};

	memset(buffer.mad, 0, 256);
	memcpy(buffer.mad, header, sizeof(header));
	tid = htobe32(tid);
	memcpy(buffer.mad + 12, &tid, sizeof(tid));
	umad_set_addr(&buffer, 7, 1, 0, 0x1234);
	if (umad_send(fd, agent, &buffer, 256, 100, 0))
		return NULL;
	return device_packet(device_written() - 1);
}

static int receive(int *length, int timeout_ms)
{
	*length = 256;
	return umad_recv(fd, &buffer, length, timeout_ms);
}

TEST(what_was_written_can_be_seen)
{
	const struct device_packet *packet = ask(5);

	assert_int_equal(device_written(), 1);
	assert_int_equal(packet->fd, fd);
	assert_int_equal(packet->length, 256);
	assert_int_equal(packet->header.timeout_ms, 100);
	assert_int_equal(be16toh(packet->header.addr.lid), 7);
	assert_memory_equal(packet->mad, buffer.mad, 256);
}

TEST(a_response_comes_from_where_the_request_went)
{
	int length;

	device_respond(ask(5), 0x000c, 64, "abc", 3);
	assert_int_equal(receive(&length, 1000), agent);
	assert_int_equal(length, 256);
	assert_int_equal(buffer.umad.length, 64 + 256);
	assert_int_equal(be16toh(buffer.umad.addr.lid), 7);
	assert_int_equal(buffer.umad.addr.qkey, 0);
	assert_int_equal(buffer.mad[3], 0x81);
	assert_int_equal(buffer.mad[5], 0x0c);
	assert_int_equal(buffer.mad[15], 5);
	assert_int_not_equal(buffer.mad[8], 0);
	assert_memory_equal(buffer.mad + 64, "abc", 4);
}

TEST(a_request_that_times_out_comes_back)
{
	int length;

	device_time_out(ask(6));
	assert_int_equal(receive(&length, 1000), agent);
	assert_int_equal(length, 24);
	assert_int_equal(umad_status(&buffer), ETIMEDOUT);
	assert_int_equal(buffer.mad[15], 6);
}

TEST(a_message_that_does_not_fit_stays)
{
	uint8_t mad[700] = {1, SA, 2, 0x92};
	int length;

	mad[699] = 9;
	device_reply(ask(7), mad, sizeof(mad));
	assert_int_equal(receive(&length, 0), -ENOSPC);
	assert_int_equal(length, 700);
	length = 700;
	assert_int_equal(umad_recv(fd, &buffer, &length, 0), agent);
	assert_int_equal(buffer.mad[699], 9);
	assert_int_equal(receive(&length, 0), -EWOULDBLOCK);
}

TEST(held_transactions_are_refused_and_late_responses_dropped)
{
	const struct device_packet *packet;
	int length;

	device_hold_tids(true);
	packet = ask(8);
	assert_non_null(packet);
	assert_fails_null(ask(8), EINVAL);
	assert_non_null(ask(9));
	device_time_out(packet);
	device_respond(packet, 0, 0, NULL, 0);
	assert_int_equal(receive(&length, 1000), agent);
	assert_int_equal(umad_status(&buffer), ETIMEDOUT);
	assert_int_equal(receive(&length, 0), -EWOULDBLOCK);
	assert_non_null(ask(8));
}

static int respond_at_once(const struct device_packet *packet, void *arg)
{
	++*(int *)arg;
	device_respond(packet, 0, 0, NULL, 0);
	return packet->mad[15] == 1 ? -ENOBUFS : 0;
}

TEST(a_hook_responds_while_the_request_is_written)
{
	int length, calls = 0;

	device_on_write(respond_at_once, &calls);
	assert_non_null(ask(2));
	assert_int_equal(receive(&length, 0), agent);
	assert_fails_null(ask(1), ENOBUFS);
	assert_int_equal(calls, 2);
}

static long long now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

TEST(a_delayed_response_is_not_there_before_its_time)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};
	const struct device_packet *packet = ask(3);
	long long begin = now_us();
	int length;

	device_delay(20000);
	device_respond(packet, 0, 0, NULL, 0);
	assert_int_equal(receive(&length, 60000), agent);
	assert_true(now_us() - begin >= 20000);
	/* the handle becomes readable */
	device_respond(packet, 0, 0, NULL, 0);
	assert_int_equal(poll(&pollfd, 1, 60000), 1);
	assert_true(now_us() - begin >= 40000);
	/* an earlier message overtakes it */
	device_delay(10000000);
	device_time_out(packet);
	device_delay(0);
	device_respond(packet, 0, 0, NULL, 0);
	assert_int_equal(receive(&length, 0), agent);
	assert_int_equal(receive(&length, 0), agent);
	assert_int_equal(length, 256);
	assert_int_equal(receive(&length, 0), -EWOULDBLOCK);
}

TEST(a_wait_runs_out)
{
	long long begin = now_us();
	int length;

	assert_int_equal(receive(&length, 20), -ETIMEDOUT);
	assert_true(now_us() - begin >= 20000);
	assert_false(device_wait_written(1, 10));
}

static void *remove_device(void *arg)
{
	device_remove();
	return arg;
}

TEST(removal_wakes_who_waits)
{
	pthread_t thread;
	int length;

	assert_int_equal(pthread_create(&thread, NULL, remove_device, NULL), 0);
	assert_int_equal(receive(&length, -1), -EIO);
	pthread_join(thread, NULL);
	assert_fails_null(ask(1), EIO);
	assert_int_equal(umad_register(fd, SA, 2, 0, NULL), -EPERM);
	assert_int_equal(errno, EPIPE);
}

TEST(calls_fail_when_they_are_told_to)
{
	int length;

	device_fail(DEVICE_WRITE, 2, ENOMEM);
	assert_non_null(ask(1));
	assert_fails_null(ask(2), ENOMEM);
	assert_non_null(ask(3));
	assert_int_equal(device_calls(DEVICE_WRITE), 3);
	device_read_result(fd, 10);
	assert_int_equal(receive(&length, 1000), -EIO);
	assert_int_equal(receive(&length, 0), -EWOULDBLOCK);
}

TEST(agents_are_registered_as_the_kernel_does)
{
	long methods[16 / sizeof(long)] = {1 << 1};
	int first = umad_register(fd, 0x04, 1, 0, NULL), i;

	assert_int_equal(first, agent + 1);
	assert_int_equal(device_agent(fd, (unsigned)agent).rmpp_version, 1);
	assert_int_equal(umad_register(fd, 0x04, 1, 1, NULL), -EPERM);
	assert_int_equal(umad_register(fd, 0x04, 1, 0, methods), first + 1);
	assert_int_equal(umad_register(fd, 0x04, 1, 0, methods), -EPERM);
	assert_int_equal(umad_register(fd, 0x50, 1, 0, NULL), -EPERM);
	assert_int_equal(umad_register(fd, 0x81, 1, 0, NULL), first + 2);
	assert_int_equal(umad_unregister(fd, first), 0);
	assert_int_equal(umad_unregister(fd, first), -EINVAL);
	assert_int_equal(umad_register(fd, 0x05, 1, 0, NULL), first);
	for (i = 4; i < 32; i++)
		assert_int_equal(umad_register(fd, 0x05, 1, 0, NULL), i);
	assert_int_equal(umad_register(fd, 0x05, 1, 0, NULL), -EPERM);
	assert_int_equal(errno, ENOMEM);
}

TEST(the_port_is_there_to_be_found)
{
	umad_port_t port;

	assert_int_equal(umad_get_port(NULL, 0, &port), 0);
	assert_string_equal(port.ca_name, "mlx5_0");
	assert_int_equal(port.base_lid, 0x2b);
	assert_int_equal(port.pkeys_size, 2);
	umad_release_port(&port);
	device_file("/sys/class/infiniband/mlx5_0/ports/1/lid", "0x99\n");
	assert_int_equal(umad_get_port(NULL, 0, &port), 0);
	assert_int_equal(port.base_lid, 0x99);
	umad_release_port(&port);
	device_fail_malloc(1);
	assert_int_equal(umad_get_port(NULL, 0, &port), -ENOMEM);
}
