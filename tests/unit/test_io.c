/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "test.h"

#include <infiniband/umad_ext.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

/* A buffer for one MAD, and bytes behind it that must not change. */
struct buffer {
	struct ib_user_mad umad;
	uint8_t mad[1024];
};

/* CLOCK_MONOTONIC of the library: each look at it takes a microsecond. */
static int64_t clock_ns;
static bool clock_stands;

int __wrap_clock_gettime(clockid_t id, struct timespec *now);
int __wrap___clock_gettime64(clockid_t id, struct timespec *now);

int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
	if (id != CLOCK_MONOTONIC)
		return timespec_get(now, TIME_UTC) == TIME_UTC ? 0 : -1;
	if (!clock_stands)
		clock_ns += 1000;
	now->tv_sec = (time_t)(clock_ns / 1000000000);
	now->tv_nsec = (long)(clock_ns % 1000000000);
	return 0;
}

/* clock_gettime() has this name where 32-bit systems have a 64-bit time. */
int __wrap___clock_gettime64(clockid_t id, struct timespec *now)
{
	return __wrap_clock_gettime(id, now);
}

static struct fake_device *device;
static struct buffer buffer;
static int fd, length;

static int setup(void)
{
	if (fake_setup())
		return -1;
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	fake_umad(0, "mlx5_0", 1);
	device = fake_device("umad0");
	memset(&buffer, 0, sizeof(buffer));
	length = 256;
	fd = umad_open_port("mlx5_0", 1);
	return fd < 0 ? -1 : 0;
}

static int teardown(void)
{
	umad_close_port(fd);
	return fake_teardown();
}

FIXTURE(setup, teardown);

/* The device receives a MAD of so many bytes, each of them fill. */
static void arrives(uint32_t agent, uint32_t status, size_t mad_size, uint8_t fill)
{
	struct ib_user_mad header = {.agent_id = agent, .status = status};
	static uint8_t mad[4096];

	memset(mad, fill, sizeof(mad));
	header.length = (uint32_t)(sizeof(header) + mad_size);
	device_queue(fd, &header, mad, mad_size);
}

/* --- sending -------------------------------------------------------------------- */

TEST(send_writes_header_and_mad_in_one_go)
{
	unsigned calls = fake_calls();

	memset(buffer.mad, 7, 256);
	assert_int_equal(umad_send(fd, 3, &buffer, 256, 1000, 2), 0);
	assert_int_equal(fake_calls(), calls + 1);
	assert_int_equal(device_packet(0)->length, 256);
	assert_memory_equal(&device_packet(0)->header, &buffer, 64 + 256);
	assert_int_equal(buffer.umad.agent_id, 3);
	assert_int_equal(buffer.umad.timeout_ms, 1000);
	assert_int_equal(buffer.umad.retries, 2);
}

TEST(send_without_end_waits_for_ever)
{
	assert_int_equal(umad_send(fd, 0, &buffer, 256, -1, 0), 0);
	assert_true(buffer.umad.timeout_ms == UINT32_MAX);
}

TEST(send_refuses_bad_arguments)
{
	assert_int_equal(umad_send(fd, -1, &buffer, 256, 0, 0), -EINVAL);
	assert_int_equal(umad_send(fd, 0, NULL, 256, 0, 0), -EINVAL);
	assert_fails(umad_send(fd, 0, &buffer, -1, 0, 0), EINVAL);
	assert_int_equal(umad_send(99, 0, &buffer, 256, 0, 0), -EINVAL);
	assert_int_equal(umad_send(-1, 0, &buffer, 256, 0, 0), -EINVAL);
	assert_int_equal(device_written(), 0);
}

TEST(send_tells_what_the_kernel_refused)
{
	device->write_error = EINVAL;
	assert_errno(assert_int_equal(umad_send(fd, 0, &buffer, 256, 0, 0), -EIO), EINVAL);
	/* -EPERM is -1 */
	device->write_error = EPERM;
	assert_errno(assert_int_equal(umad_send(fd, 0, &buffer, 256, 0, 0), -EIO), EPERM);
	device->write_error = 0;
	device->gone = true;
	assert_fails(umad_send(fd, 0, &buffer, 256, 0, 0), EIO);
}

TEST(a_packet_that_was_taken_in_part_is_an_error)
{
	device->short_write = true;
	assert_fails(umad_send(fd, 0, &buffer, 256, 0, 0), EIO);
}

TEST(the_old_layout_is_sent_and_received_8_bytes_shorter)
{
	struct ib_user_mad header = {.agent_id = 2};
	int old;

	device->no_pkey = true;
	old = umad_open_port("mlx5_0", 1);
	memset(umad_get_mad(&buffer), 9, 256);
	assert_int_equal(umad_send(old, 1, &buffer, 256, 0, 0), 0);
	assert_int_equal(device_packet(0)->length, 256);
	assert_int_equal(device_packet(0)->mad[0], 9);
	device_queue(old, &header, buffer.mad, 256);
	assert_int_equal(umad_recv(old, &buffer, &length, 0), 2);
	assert_int_equal(length, 256);
	umad_close_port(old);
}

/* The state of a process with a closed standard input. */
TEST(a_handle_may_have_number_0)
{
	umad_close_port(fd);
	fake_first_handle(0);
	fd = umad_open_port("mlx5_0", 1);
	assert_int_equal(fd, 0);
	assert_int_equal(umad_get_fd(fd), 0);
	assert_int_equal(umad_send(fd, 3, &buffer, 256, 0, 0), 0);
	assert_int_equal(umad_poll(fd, 5), -ETIMEDOUT);
	assert_int_equal(umad_poll_with(fd, 0, 5), -ETIMEDOUT);
	arrives(4, 0, 256, 1);
	assert_int_equal(umad_recv(fd, &buffer, &length, 5), 4);
}

/* --- receiving ------------------------------------------------------------------ */

TEST(recv_gives_agent_length_and_mad)
{
	arrives(5, 0, 256, 0xab);
	assert_int_equal(umad_recv(fd, &buffer, &length, 0), 5);
	assert_int_equal(length, 256);
	assert_int_equal(umad_status(&buffer), 0);
	assert_int_equal(buffer.mad[0], 0xab);
	assert_int_equal(buffer.mad[255], 0xab);
	assert_int_equal(buffer.mad[256], 0);
}

TEST(a_request_without_a_response_comes_back)
{
	arrives(1, ETIMEDOUT, 24, 1);
	assert_int_equal(umad_recv(fd, &buffer, &length, 100), 1);
	assert_int_equal(length, 24);
	assert_int_equal(umad_status(&buffer), 110);
}

TEST(recv_keeps_a_message_that_did_not_fit)
{
	arrives(1, 0, 1000, 7);
	assert_fails(umad_recv(fd, &buffer, &length, 0), ENOSPC);
	assert_int_equal(length, 1000);
	assert_int_equal(buffer.mad[256], 0);
	assert_int_equal(umad_recv(fd, &buffer, &length, 0), 1);
	assert_int_equal(length, 1000);
	assert_int_equal(buffer.mad[999], 7);
}

TEST(recv_with_nothing_there_says_so)
{
	assert_fails(umad_recv(fd, &buffer, &length, 0), EWOULDBLOCK);
	assert_int_equal(device->polls, 0);
	assert_int_equal(length, 256);
}

TEST(recv_waits_its_time_and_then_says_so)
{
	assert_fails(umad_recv(fd, &buffer, &length, 1234), ETIMEDOUT);
	assert_int_equal(device->polls, 1);
	assert_int_equal(device->last_timeout, 1234);
}

TEST(recv_without_end_polls_without_end)
{
	arrives(1, 0, 256, 1);
	assert_int_equal(umad_recv(fd, &buffer, &length, -5), 1);
	assert_true(device->last_timeout < 0);
}

/* Another thread is faster: poll reports the message to both threads, and one finds it gone. */
static void announce_falsely(struct fake_device *polled)
{
	polled->poll_result = polled->polls < 3 ? POLLIN : 0;
	if (polled->polls == 3)
		arrives(4, 0, 256, 1);
}

TEST(a_message_that_another_thread_took_does_not_end_the_wait)
{
	device->on_poll = announce_falsely;
	assert_int_equal(umad_recv(fd, &buffer, &length, 60000), 4);
	assert_int_equal(device->polls, 3);
	/* the rest of the time, not the whole time again */
	assert_in_range(device->last_timeout, 1, 60000);
	device->polls = 0;
	assert_int_equal(umad_recv(fd, &buffer, &length, -1), 4);
}

static void take_a_while(struct fake_device *polled)
{
	const int timeouts[] = {1300, 1300, 1299, 500, 1};
	const int passed_ns[] = {1, 999999, 799000000, 499999999, 1};

	assert_in_range(polled->polls, 1, 5);
	assert_int_equal(polled->last_timeout, timeouts[polled->polls - 1]);
	clock_ns += passed_ns[polled->polls - 1];
	polled->poll_result = POLLIN;
}

/* A wait of a millisecond, too, goes on after a message that another thread took. */
TEST(a_wait_of_a_millisecond_continues_after_a_message_for_another_thread)
{
	int ret;

	device->on_poll = announce_falsely;
	clock_stands = true;
	ret = umad_recv(fd, &buffer, &length, 1);
	clock_stands = false;
	assert_int_equal(ret, 4);
	assert_int_equal(device->polls, 3);
	assert_int_equal(device->last_timeout, 1);
}

/* Milliseconds that have begun count whole. */
TEST(each_wait_has_the_rest_of_the_time)
{
	int ret;

	device->on_poll = take_a_while;
	clock_ns = 5999999999;
	clock_stands = true;
	ret = umad_recv(fd, &buffer, &length, 1300);
	clock_stands = false;
	assert_int_equal(ret, -ETIMEDOUT);
	assert_int_equal(device->polls, 5);
}

static void announce_for_ever(struct fake_device *polled)
{
	polled->poll_result = POLLIN;
}

TEST(stolen_messages_do_not_stretch_the_time)
{
	device->on_poll = announce_for_ever;
	for (int ms = 1; ms <= 2; ms++) {
		assert_fails(umad_recv(fd, &buffer, &length, ms), ETIMEDOUT);
	}
}

TEST(a_signal_ends_the_wait)
{
	arrives(1, 0, 256, 1);
	device->poll_result = -EINTR;
	assert_errno(assert_int_equal(umad_recv(fd, &buffer, &length, 1000), -EIO), EINTR);
	assert_errno(assert_int_equal(umad_poll(fd, 1000), -EIO), EINTR);
	/* and no message is lost */
	device->poll_result = 0;
	assert_int_equal(umad_recv(fd, &buffer, &length, 1000), 1);
}

TEST(recv_refuses_bad_arguments)
{
	length = 255;
	arrives(1, 0, 256, 1);
	assert_fails(umad_recv(fd, &buffer, &length, 0), EINVAL);
	length = -1;
	assert_int_equal(umad_recv(fd, &buffer, &length, 0), -EINVAL);
	length = 256;
	assert_int_equal(umad_recv(fd, NULL, &length, 0), -EINVAL);
	assert_int_equal(umad_recv(fd, &buffer, NULL, 0), -EINVAL);
	assert_int_equal(umad_recv(-1, &buffer, &length, 0), -EINVAL);
	assert_int_equal(umad_recv(99, &buffer, &length, 0), -EINVAL);
	assert_int_equal(umad_recv(99, &buffer, &length, 1), -EINVAL);
	assert_int_equal(umad_recv(99, &buffer, &length, -1), -EINVAL);
	assert_int_equal(length, 256);
}

TEST(a_device_that_has_gone_is_an_io_error)
{
	device->gone = true;
	assert_fails(umad_recv(fd, &buffer, &length, 0), EIO);
	assert_int_equal(umad_recv(fd, &buffer, &length, 1000), -EIO);
	assert_int_equal(umad_recv(fd, &buffer, &length, -1), -EIO);
}

TEST(what_a_device_cannot_have_read_is_not_believed)
{
	static const long results[] = {0, 1, 63, 64 + 257, LONG_MAX, -EPERM, -EINVAL, -EFAULT};

	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++) {
		device_read_result(fd, results[i]);
		assert_int_equal(umad_recv(fd, &buffer, &length, 0), -EIO);
		assert_int_equal(errno, results[i] < 0 ? -results[i] : EIO);
		assert_int_equal(length, 256);
	}
}

TEST(an_agent_that_no_int_can_hold_is_not_believed)
{
	arrives(0x80000000, 0, 256, 1);
	assert_int_equal(umad_recv(fd, &buffer, &length, 0), -EIO);
	arrives(INT_MAX, 0, 256, 1);
	assert_int_equal(umad_recv(fd, &buffer, &length, 0), INT_MAX);
}

TEST(a_length_that_makes_no_sense_is_not_believed)
{
	static const uint32_t lengths[] = {0, 64, 64 + 256, UINT32_MAX};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		buffer.umad.length = lengths[i];
		device_read_result(fd, -ENOSPC);
		assert_int_equal(umad_recv(fd, &buffer, &length, 0), -EIO);
		assert_int_equal(length, 256);
	}
}

TEST(a_header_without_mad_is_a_message_of_no_length)
{
	device_read_result(fd, 64);
	assert_int_equal(umad_recv(fd, &buffer, &length, 0), 0);
	assert_int_equal(length, 0);
}

/* The number of messages of each level. */
static int said[3];

static void count_messages(enum umad_log_level level, const char *text, void *user)
{
	(void)text;
	(void)user;
	said[level]++;
}

TEST(packets_are_logged_at_the_highest_level)
{
	memset(said, 0, sizeof(said));
	umad_set_log_hook(count_messages, NULL);
	for (int level = 0; level <= 2; level++) {
		umad_debug(level);
		device->write_error = 0;
		assert_int_equal(umad_send(fd, 0, &buffer, 256, 0, 0), 0);
		device->write_error = EINVAL;
		assert_int_equal(umad_send(fd, 0, &buffer, 256, 0, 0), -EIO);
		assert_int_equal(errno, EINVAL);
		arrives(1, 0, 256, 1);
		assert_int_equal(umad_recv(fd, &buffer, &length, 0), 1);
		assert_int_equal(said[UMAD_LOG_DEBUG], level < 2 ? 0 : 3);
	}
	assert_int_equal(said[UMAD_LOG_WARNING] + said[UMAD_LOG_INFO], 0);
	umad_debug(0);
	umad_set_log_hook(NULL, NULL);
}

/* --- the packet hook ------------------------------------------------------------ */

/* The last call of the hook, and the number of calls. */
static struct umad_packet_info heard;
static uint8_t heard_mad[1024];
static struct ib_user_mad heard_umad;
static long heard_offset; /* the offset of the MAD from the header */
static int hook_calls;
static void *hook_user;

static void hear(const struct umad_packet_info *packet, void *user)
{
	heard = *packet;
	memcpy(&heard_umad, packet->umad, umad_size());
	heard_offset = (const uint8_t *)packet->mad - (const uint8_t *)packet->umad;
	memcpy(heard_mad, packet->mad, (size_t)packet->length);
	hook_user = user;
	hook_calls++;
	errno = EXDEV;
}

/* CLOCK_REALTIME in ns. */
static int64_t real_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int setup_hook(void)
{
	memset(&heard, 0, sizeof(heard));
	hook_calls = 0;
	return setup();
}

static int teardown_hook(void)
{
	umad_set_packet_hook(NULL, NULL);
	return teardown();
}

#define HOOK_TEST(name) TEST_WITH(name, setup_hook, teardown_hook)

HOOK_TEST(the_hook_is_told_of_a_mad_that_was_sent)
{
	int64_t before;

	umad_set_packet_hook(hear, &buffer);
	memset(buffer.mad, 7, 300);
	umad_set_addr(&buffer, 5, 1, 2, 0);
	before = real_time();
	errno = EDOM;
	assert_int_equal(umad_send(fd, 3, &buffer, 300, 1000, 2), 0);
	assert_int_equal(errno, EDOM);
	assert_int_equal(hook_calls, 1);
	assert_ptr_equal(hook_user, &buffer);
	assert_int_equal(heard.direction, UMAD_PACKET_SENT);
	assert_int_equal(heard.portid, fd);
	assert_int_equal(heard.agentid, 3);
	assert_int_equal(heard.length, 300);
	assert_memory_equal(&heard_umad, &buffer.umad, sizeof(heard_umad));
	assert_memory_equal(heard_mad, buffer.mad, 300);
	assert_true(heard.time >= before);
	assert_true(heard.time <= real_time());
}

/* Another thread received the response, and the program reuses the memory. */
HOOK_TEST(the_hook_is_told_of_the_mad_as_it_was_written)
{
	static const int lengths[] = {24, 256, 257, 1024};
	uint8_t mad[1024];

	umad_set_packet_hook(hear, NULL);
	device->overwritten = true;
	memset(mad, 7, sizeof(mad));
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		memset(&buffer, 7, sizeof(buffer));
		assert_int_equal(umad_send(fd, 3, &buffer, lengths[i], 1000, 2), 0);
		assert_int_equal(buffer.mad[0], 0xee);
		assert_int_equal(heard.agentid, 3);
		assert_int_equal(heard.length, lengths[i]);
		assert_int_equal(heard_umad.timeout_ms, 1000);
		assert_int_equal(heard_umad.addr.lid, 0x0707);
		assert_memory_equal(heard_mad, mad, (size_t)lengths[i]);
	}
}

static char last_message[200];

static void keep_message(enum umad_log_level level, const char *text, void *user)
{
	(void)level;
	(void)user;
	snprintf(last_message, sizeof(last_message), "%s", text);
}

TEST(the_log_is_told_of_the_mad_as_it_was_written)
{
	umad_set_log_hook(keep_message, NULL);
	umad_debug(2);
	device->overwritten = true;
	umad_set_addr(&buffer, 5, 1, 2, 0);
	assert_int_equal(umad_send(fd, 3, &buffer, 256, 0, 0), 0);
	assert_non_null(strstr(last_message, "agent 3 "));
	assert_non_null(strstr(last_message, "lid 5:"));
	umad_debug(0);
	umad_set_log_hook(NULL, NULL);
}

HOOK_TEST(the_hook_is_told_of_a_mad_that_was_received)
{
	int64_t before = real_time();

	length = 512;
	umad_set_packet_hook(hear, NULL);
	arrives(4, 0, 512, 9);
	assert_int_equal(umad_recv(fd, &buffer, &length, 0), 4);
	assert_int_equal(hook_calls, 1);
	assert_null(hook_user);
	assert_int_equal(heard.direction, UMAD_PACKET_RECEIVED);
	assert_int_equal(heard.portid, fd);
	assert_int_equal(heard.agentid, 4);
	assert_int_equal(heard.length, 512);
	assert_int_equal(heard_mad[511], 9);
	assert_int_equal(heard_umad.status, 0);
	assert_true(heard.time >= before);
	assert_true(heard.time <= real_time());
}

HOOK_TEST(the_hook_gets_a_request_without_a_response)
{
	umad_set_packet_hook(hear, NULL);
	arrives(0, ETIMEDOUT, 256, 1);
	assert_int_equal(umad_recv(fd, &buffer, &length, 0), 0);
	assert_int_equal(heard.direction, UMAD_PACKET_RECEIVED);
	assert_int_equal(heard_umad.status, ETIMEDOUT);
}

HOOK_TEST(the_hook_is_not_called_for_a_call_that_fails)
{
	umad_set_packet_hook(hear, NULL);
	device->write_error = EINVAL;
	assert_int_equal(umad_send(fd, 0, &buffer, 256, 0, 0), -EIO);
	device->write_error = 0;
	device->short_write = true;
	assert_int_equal(umad_send(fd, 0, &buffer, 256, 0, 0), -EIO);
	assert_int_equal(umad_send(fd, -1, &buffer, 256, 0, 0), -EINVAL);
	assert_int_equal(umad_recv(fd, &buffer, &length, 0), -EWOULDBLOCK);
	arrives(1, 0, 512, 1);
	assert_int_equal(umad_recv(fd, &buffer, &length, 0), -ENOSPC);
	assert_int_equal(hook_calls, 0);
	/* the message is still queued */
	assert_int_equal(length, 512);
	assert_int_equal(umad_recv(fd, &buffer, &length, 0), 1);
	assert_int_equal(hook_calls, 1);
}

HOOK_TEST(a_hook_that_was_removed_is_not_called)
{
	umad_set_packet_hook(hear, NULL);
	umad_set_packet_hook(NULL, NULL);
	assert_int_equal(umad_send(fd, 0, &buffer, 256, 0, 0), 0);
	assert_int_equal(hook_calls, 0);
}

HOOK_TEST(the_hook_finds_the_mad_behind_a_header_of_the_old_layout)
{
	int handle;

	umad_close_port(fd);
	device->no_pkey = true;
	handle = umad_open_port("mlx5_0", 1);
	umad_set_packet_hook(hear, NULL);
	assert_int_equal(umad_send(handle, 0, &buffer, 256, 0, 0), 0);
	assert_int_equal(heard_offset, 56);
	umad_close_port(handle);
	device->no_pkey = false;
	fd = umad_open_port("mlx5_0", 1);
	assert_int_equal(umad_size(), 64);
}

/* A hook sends and replaces the hook: no lock is held. */
static void send_another(const struct umad_packet_info *packet, void *user)
{
	static struct buffer other;

	(void)user;
	umad_set_packet_hook(hear, NULL);
	assert_int_equal(umad_send(packet->portid, 9, &other, 256, 0, 0), 0);
}

HOOK_TEST(a_hook_may_call_the_library)
{
	umad_set_packet_hook(send_another, NULL);
	assert_int_equal(umad_send(fd, 3, &buffer, 256, 0, 0), 0);
	assert_int_equal(hook_calls, 1);
	assert_int_equal(heard.agentid, 9);
}

static void ignore_packet(const struct umad_packet_info *packet, void *user)
{
	(void)packet;
	assert_null(user);
}

static void count_packet(const struct umad_packet_info *packet, void *user)
{
	(void)packet;
	atomic_fetch_add((atomic_int *)user, 1);
}

struct hooks_of_a_thread {
	atomic_bool done;
	atomic_int counted;
};

static void *set_packet_hooks(void *arg)
{
	struct hooks_of_a_thread *hooks = arg;

	while (!atomic_load(&hooks->done)) {
		umad_set_packet_hook(ignore_packet, NULL);
		umad_set_packet_hook(count_packet, &hooks->counted);
	}
	return NULL;
}

/* Whatever a thread of the parent was doing. */
HOOK_TEST(packet_hooks_may_be_set_while_packets_are_sent_and_children_start)
{
	struct hooks_of_a_thread hooks = {false, 0};
	pthread_t thread;
	int status;
	pid_t child;

	assert_int_equal(pthread_create(&thread, NULL, set_packet_hooks, &hooks), 0);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(umad_send(fd, 0, &buffer, 256, 0, 0), 0);
		child = fork();
		if (!child) {
			alarm(60);
			_exit(umad_send(fd, 0, &buffer, 256, 0, 0) ? 1 : 0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	atomic_store(&hooks.done, true);
	pthread_join(thread, NULL);
	assert_in_range(atomic_load(&hooks.counted), 0, 50);
}

/* --- polling -------------------------------------------------------------------- */

TEST(poll_tells_what_is_there)
{
	assert_fails(umad_poll(fd, 10), ETIMEDOUT);
	assert_int_equal(device->last_timeout, 10);
	arrives(1, 0, 256, 1);
	assert_int_equal(umad_poll(fd, 10), 0);
	/* remaining data come before the error of a removed device */
	device->poll_result = POLLIN | POLLERR;
	assert_int_equal(umad_poll(fd, 10), 0);
}

TEST(poll_tells_a_closed_handle_from_a_device_that_has_gone)
{
	assert_int_equal(umad_poll(99, 0), -EINVAL);
	assert_fails(umad_poll(-1, 0), EINVAL);
	device->gone = true;
	assert_fails(umad_poll(fd, -1), EIO);
	device->poll_result = -ENOMEM;
	assert_errno(assert_int_equal(umad_poll(fd, -1), -EIO), ENOMEM);
}

/* --- polling a second descriptor ------------------------------------------------ */

#define OTHER 77

TEST(a_wait_ends_when_the_second_descriptor_is_ready)
{
	device->other_revents = POLLIN;
	assert_int_equal(umad_poll_with(fd, OTHER, 10), 1);
	assert_int_equal(device->last_other, OTHER);
	assert_int_equal(device->last_timeout, 10);
	/* any event of the second descriptor */
	device->other_revents = POLLHUP;
	assert_int_equal(umad_poll_with(fd, OTHER, 10), 1);
	device->other_revents = POLLERR;
	assert_int_equal(umad_poll_with(fd, OTHER, 10), 1);
}

TEST(a_message_comes_before_the_second_descriptor)
{
	arrives(1, 0, 256, 1);
	assert_int_equal(umad_poll_with(fd, OTHER, -1), 0);
	assert_true(device->last_timeout < 0);
	device->other_revents = POLLIN;
	assert_int_equal(umad_poll_with(fd, OTHER, -1), 0);
	device->other_revents = POLLNVAL;
	assert_int_equal(umad_poll_with(fd, OTHER, -1), 0);
}

TEST(a_wait_for_two_descriptors_has_an_end)
{
	assert_fails(umad_poll_with(fd, OTHER, 10), ETIMEDOUT);
	assert_int_equal(device->polls, 1);
}

TEST(a_wait_for_two_descriptors_tells_what_failed)
{
	assert_fails(umad_poll_with(-1, OTHER, 0), EINVAL);
	assert_int_equal(umad_poll_with(fd, -1, 0), -EINVAL);
	assert_int_equal(umad_poll_with(99, OTHER, 0), -EINVAL);
	assert_int_equal(device->polls, 0);
	device->other_revents = POLLNVAL;
	assert_fails(umad_poll_with(fd, OTHER, 0), EINVAL);

	/* the removal of the device is reported, whatever the second descriptor has */
	device->other_revents = POLLIN;
	device->gone = true;
	assert_fails(umad_poll_with(fd, OTHER, -1), EIO);
	device->poll_result = -EINTR;
	assert_errno(assert_int_equal(umad_poll_with(fd, OTHER, -1), -EIO), EINTR);
	device->poll_result = -ENOMEM;
	assert_errno(assert_int_equal(umad_poll_with(fd, OTHER, -1), -EIO), ENOMEM);
}
