/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "kept_log.h"
#include "packet.h"
#include "test.h"

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

/* The last call of the packet hook, and the number of calls. */
static struct {
	struct umad_packet_info packet;
	uint8_t mad[1024];
	struct ib_user_mad umad;
	void *user;
	int calls;
} heard;

static int setup(void)
{
	if (fake_setup())
		return -1;
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	fake_umad(0, "mlx5_0", 1);
	device = fake_device("umad0");
	memset(&buffer, 0, sizeof(buffer));
	memset(&heard, 0, sizeof(heard));
	length = 256;
	clock_stands = false;
	fd = umad_open_port("mlx5_0", 1);
	return fd < 0 ? -1 : 0;
}

static int teardown(void)
{
	umad_set_packet_hook(NULL, NULL);
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

static int send_mad(int agent, int mad_length)
{
	return umad_send(fd, agent, &buffer, mad_length, 1000, 2);
}

static int receive(int timeout_ms)
{
	return umad_recv(fd, &buffer, &length, timeout_ms);
}

#define assert_io_error(call, error) assert_errno(assert_int_equal(call, -EIO), error)

/* --- packets -------------------------------------------------------------------- */

/* The first test of the program. */
PLAIN_TEST(the_header_is_56_bytes_until_a_port_says_otherwise)
{
	assert_int_equal(umad_size(), 56);
	assert_ptr_equal(umad_get_mad(&buffer), (char *)&buffer + 56);
	packet_set_layout(true);
	assert_int_equal(umad_size(), 64);
	assert_ptr_equal(umad_get_mad(&buffer), buffer.mad);
}

TEST(an_address_is_stored_in_network_order)
{
	const ib_mad_addr_t first = {.lid = htobe16(0x1234),
				     .qpn = htobe32(1),
				     .sl = 5,
				     .qkey = htobe32(0x80010000)},
			    second = {.lid = 7, .qpn = 8, .sl = 9, .qkey = 10};

	assert_int_equal(umad_set_addr(&buffer, 0x1234, 1, 5, (int)0x80010000), 0);
	assert_memory_equal(umad_get_mad_addr(&buffer), &first, sizeof(first));
	assert_int_equal(umad_set_addr_net(&buffer, 7, 8, 9, 10), 0);
	assert_memory_equal(&buffer.umad.addr, &second, sizeof(second));
}

TEST(a_grh_is_copied_whole)
{
	ib_mad_addr_t grh = {.gid_index = 3,
			     .hop_limit = 64,
			     .traffic_class = 7,
			     .gid = {0xfe, 0x80, 1},
			     .flow_label = 0x12345},
		      wanted = grh;
	int (*const set_grh[])(void *, void *) = {umad_set_grh_net, umad_set_grh};

	wanted.grh_present = 1;
	for (int i = 0; i < 2; i++) {
		memset(&buffer, 0, sizeof(buffer));
		assert_int_equal(set_grh[i](&buffer, &grh), 0);
		assert_memory_equal(&buffer.umad.addr, &wanted, sizeof(wanted));
		assert_int_equal(set_grh[i](&buffer, NULL), 0);
		assert_int_equal(buffer.umad.addr.grh_present, 0);
		wanted.flow_label = htobe32(0x12345);
	}
	/* the buffer's own address */
	buffer.umad.addr = grh;
	assert_int_equal(umad_set_grh(&buffer, &buffer.umad.addr), 0);
	assert_memory_equal(&buffer.umad.addr, &wanted, sizeof(wanted));
}

TEST(a_pkey_index_goes_both_ways_unless_the_layout_is_old)
{
	struct buffer before;

	assert_int_equal(umad_get_pkey(&buffer), 0);
	assert_int_equal(umad_set_pkey(&buffer, 65535), 0);
	assert_fails(umad_set_pkey(&buffer, 65536), EINVAL);
	assert_fails(umad_set_pkey(&buffer, -1), EINVAL);
	assert_int_equal(umad_get_pkey(&buffer), 65535);
	/* the MAD is where the index would be */
	memset(&buffer, 0xa5, sizeof(buffer));
	before = buffer;
	packet_set_layout(false);
	assert_int_equal(umad_set_pkey(&buffer, 0), 0);
	assert_fails(umad_set_pkey(&buffer, 1), EOPNOTSUPP);
	assert_int_equal(umad_get_pkey(&buffer), 0);
	assert_memory_equal(&buffer, &before, sizeof(buffer));
	packet_set_layout(true);
}

TEST(memory_is_zeroed_and_null_is_refused)
{
	static const uint8_t zeros[300];
	ib_mad_addr_t grh = {.flow_label = 1};
	void *buffers = umad_alloc(3, 100);

	assert_null(umad_get_mad(NULL));
	assert_null(umad_get_mad_addr(NULL));
	assert_null(umad_alloc(-1, 100));
	assert_memory_equal(buffers, zeros, sizeof(zeros));
	umad_free(buffers);
	umad_free(NULL);
	assert_fails(umad_status(NULL), EINVAL);
	assert_fails(umad_set_addr(NULL, 0, 0, 0, 0), EINVAL);
	assert_fails(umad_set_addr_net(NULL, 0, 0, 0, 0), EINVAL);
	assert_fails(umad_set_grh(NULL, NULL), EINVAL);
	assert_fails(umad_set_grh(NULL, &grh), EINVAL);
	assert_fails(umad_set_grh_net(NULL, NULL), EINVAL);
	assert_fails(umad_set_pkey(NULL, 0), EINVAL);
	assert_fails(umad_get_pkey(NULL), EINVAL);
}

/* --- sending and receiving; tests/conformance has what usually happens ------------- */

TEST(bad_arguments_are_refused)
{
	arrives(1, 0, 256, 1);
	assert_fails(send_mad(-1, 256), EINVAL);
	assert_fails(umad_send(fd, 0, NULL, 256, 0, 0), EINVAL);
	assert_fails(send_mad(0, -1), EINVAL);
	assert_fails(umad_send(99, 0, &buffer, 256, 0, 0), EINVAL);
	assert_fails(umad_send(-1, 0, &buffer, 256, 0, 0), EINVAL);
	assert_int_equal(device_written(), 0);
	assert_fails(umad_recv(fd, NULL, &length, 0), EINVAL);
	assert_fails(umad_recv(fd, &buffer, NULL, 0), EINVAL);
	assert_fails(umad_recv(-1, &buffer, &length, 0), EINVAL);
	for (int timeout = -1; timeout <= 1; timeout++)
		assert_fails(umad_recv(99, &buffer, &length, timeout), EINVAL);
	assert_int_equal(length, 256);
	length = 255;
	assert_fails(receive(0), EINVAL);
	length = -1;
	assert_fails(receive(0), EINVAL);
	assert_fails(umad_poll(99, 0), EINVAL);
	assert_fails(umad_poll(-1, 0), EINVAL);
	assert_fails(umad_poll_with(-1, 77, 0), EINVAL);
	assert_fails(umad_poll_with(fd, -1, 0), EINVAL);
	assert_fails(umad_poll_with(99, 77, 0), EINVAL);
	assert_int_equal(device->polls, 0);
}

/* The state of a process with a closed standard input. */
TEST(a_handle_may_have_number_0)
{
	umad_close_port(fd);
	fake_first_handle(0);
	fd = umad_open_port("mlx5_0", 1);
	assert_int_equal(fd, 0);
	assert_int_equal(umad_get_fd(fd), 0);
	assert_int_equal(send_mad(3, 256), 0);
	assert_int_equal(umad_poll(fd, 5), -ETIMEDOUT);
	assert_int_equal(umad_poll_with(fd, 0, 5), -ETIMEDOUT);
	arrives(4, 0, 256, 1);
	assert_int_equal(receive(5), 4);
}

TEST(recv_waits_as_long_as_it_is_told_and_no_longer_than_until_a_signal)
{
	assert_fails(receive(0), EWOULDBLOCK);
	assert_int_equal(device->polls, 0);
	assert_fails(receive(1234), ETIMEDOUT);
	assert_int_equal(device->polls, 1);
	assert_int_equal(device->last_timeout, 1234);
	assert_int_equal(length, 256);
	arrives(1, 0, 256, 1);
	device->poll_result = -EINTR;
	assert_io_error(receive(1000), EINTR);
	/* and no message is lost */
	device->poll_result = 0;
	assert_int_equal(receive(-5), 1);
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
	static const int timeouts[] = {60000, 1, -1};

	clock_stands = true;
	device->on_poll = announce_falsely;
	for (size_t i = 0; i < sizeof(timeouts) / sizeof(*timeouts); i++) {
		device->polls = 0;
		assert_int_equal(receive(timeouts[i]), 4);
		assert_int_equal(device->polls, 3);
		assert_int_equal(device->last_timeout, timeouts[i]);
	}
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

/* Milliseconds that have begun count whole. */
TEST(each_wait_has_the_rest_of_the_time)
{
	device->on_poll = take_a_while;
	clock_ns = 5999999999;
	clock_stands = true;
	assert_fails(receive(1300), ETIMEDOUT);
	assert_int_equal(device->polls, 5);
	/* messages that others take do not stretch the time */
	device->on_poll = NULL;
	device->poll_result = POLLIN;
	clock_stands = false;
	for (int ms = 1; ms <= 2; ms++)
		assert_fails(receive(ms), ETIMEDOUT);
}

TEST(what_a_device_cannot_have_read_is_not_believed)
{
	static const long results[] = {0, 1, 63, 64 + 257, LONG_MAX, -EPERM, -EINVAL, -EFAULT};
	static const uint32_t lengths[] = {0, 64, 64 + 256, UINT32_MAX};

	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++) {
		device_read_result(fd, results[i]);
		assert_io_error(receive(0), results[i] < 0 ? -results[i] : EIO);
		assert_int_equal(length, 256);
	}
	/* a header without a MAD */
	buffer.umad.agent_id = 3;
	device_read_result(fd, 64);
	assert_int_equal(receive(0), 3);
	assert_int_equal(length, 0);
	length = 256;
	/* the length of a message that did not fit */
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		buffer.umad.length = lengths[i];
		device_read_result(fd, -ENOSPC);
		assert_fails(receive(0), EIO);
		assert_int_equal(length, 256);
	}
	/* an agent that no int can hold */
	arrives(0x80000000, 0, 256, 1);
	assert_fails(receive(0), EIO);
	arrives(INT_MAX, 0, 256, 1);
	assert_int_equal(receive(0), INT_MAX);
}

TEST(packets_are_logged_at_the_highest_level)
{
	for (int level = 0; level <= 2; level++) {
		keep_log(level);
		device->write_error = 0;
		device->overwritten = true;
		umad_set_addr(&buffer, 5, 1, 2, 0);
		assert_int_equal(send_mad(3, 256), 0);
		if (level == 2) {
			/* of the MAD as it was written */
			assert_non_null(strstr(kept.text, "agent 3 "));
			assert_non_null(strstr(kept.text, "lid 5:"));
		}
		device->write_error = EINVAL;
		assert_io_error(send_mad(0, 256), EINVAL);
		arrives(1, 0, 256, 1);
		assert_int_equal(receive(0), 1);
		assert_int_equal(kept.count, level < 2 ? 0 : 3);
		assert_true(!kept.count || kept.level == UMAD_LOG_DEBUG);
		end_log();
	}
}

/* --- the packet hook ------------------------------------------------------------ */

static void hear(const struct umad_packet_info *packet, void *user)
{
	heard.packet = *packet;
	memcpy(&heard.umad, packet->umad, umad_size());
	memcpy(heard.mad, packet->mad, (size_t)packet->length);
	heard.user = user;
	heard.calls++;
	errno = EXDEV;
}

/* CLOCK_REALTIME in ns. */
static int64_t real_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void heard_of(enum umad_packet_direction direction, int agent, int mad_length,
		     uint8_t fill, int64_t after)
{
	uint8_t mad[1024];

	memset(mad, fill, sizeof(mad));
	assert_int_equal(heard.packet.direction, direction);
	assert_int_equal(heard.packet.portid, fd);
	assert_int_equal(heard.packet.agentid, agent);
	assert_int_equal(heard.packet.length, mad_length);
	assert_memory_equal(heard.mad, mad, (size_t)mad_length);
	assert_true(heard.packet.time >= after && heard.packet.time <= real_time());
}

TEST(the_hook_is_told_of_mads_as_they_were_written_and_received)
{
	static const int lengths[] = {24, 256, 257, 1024};
	int64_t before = real_time();

	umad_set_packet_hook(hear, &buffer);
	/* another thread received the response, and the program reuses the memory */
	device->overwritten = true;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		memset(&buffer, 7, sizeof(buffer));
		errno = EDOM;
		assert_int_equal(send_mad(3, lengths[i]), 0);
		assert_int_equal(errno, EDOM);
		assert_int_equal(buffer.mad[0], 0xee);
		assert_ptr_equal(heard.user, &buffer);
		heard_of(UMAD_PACKET_SENT, 3, lengths[i], 7, before);
		assert_memory_equal(&heard.umad, &device_packet((unsigned)i)->header,
				    sizeof(heard.umad));
		assert_int_equal(heard.umad.timeout_ms, 1000);
		assert_int_equal(heard.calls, i + 1);
	}
	length = 512;
	arrives(4, ETIMEDOUT, 512, 9);
	assert_int_equal(receive(0), 4);
	heard_of(UMAD_PACKET_RECEIVED, 4, 512, 9, before);
	assert_int_equal(heard.umad.status, ETIMEDOUT);
	assert_int_equal(umad_status(&buffer), ETIMEDOUT);
	assert_int_equal(heard.calls, 5);
}

TEST(a_call_that_fails_tells_why_and_calls_no_hook)
{
	umad_set_packet_hook(hear, NULL);
	device->write_error = EINVAL;
	assert_io_error(send_mad(0, 256), EINVAL);
	/* -EPERM is -1 */
	device->write_error = EPERM;
	assert_io_error(send_mad(0, 256), EPERM);
	device->write_error = 0;
	device->short_write = true;
	assert_io_error(send_mad(0, 256), EIO);
	device->short_write = false;
	assert_fails(send_mad(-1, 256), EINVAL);
	assert_fails(receive(0), EWOULDBLOCK);
	arrives(1, 0, 512, 1);
	assert_fails(receive(0), ENOSPC);
	assert_int_equal(heard.calls, 0);
	umad_set_packet_hook(NULL, NULL);
	assert_int_equal(send_mad(0, 256), 0);
	assert_int_equal(receive(0), 1);
	assert_int_equal(heard.calls, 0);
	device->gone = true;
	assert_fails(send_mad(0, 256), EIO);
}

/* A hook sends and replaces the hook: no lock is held. */
static void send_another(const struct umad_packet_info *packet, void *user)
{
	static struct buffer other;

	(void)user;
	umad_set_packet_hook(hear, NULL);
	assert_int_equal(umad_send(packet->portid, 9, &other, 256, 0, 0), 0);
}

TEST(a_hook_may_call_the_library)
{
	umad_set_packet_hook(send_another, NULL);
	assert_int_equal(send_mad(3, 256), 0);
	assert_int_equal(heard.calls, 1);
	assert_int_equal(heard.packet.agentid, 9);
}

/* Hooks that a thread sets, each with an argument of its own. */

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

static void ignore_message(enum umad_log_level level, const char *text, void *user)
{
	(void)level;
	(void)text;
	assert_null(user);
}

static void count_message(enum umad_log_level level, const char *text, void *user)
{
	(void)text;
	assert_int_equal(level, UMAD_LOG_DEBUG);
	atomic_fetch_add((atomic_int *)user, 1);
}

static struct {
	atomic_bool done;
	atomic_int packets, messages;
} counted;

static void *set_hooks(void *arg)
{
	while (!atomic_load(&counted.done)) {
		umad_set_packet_hook(ignore_packet, NULL);
		umad_set_log_hook(ignore_message, NULL);
		umad_set_packet_hook(count_packet, &counted.packets);
		umad_set_log_hook(count_message, &counted.messages);
	}
	return arg;
}

/* Whatever the thread is doing when a child starts. */
TEST(hooks_may_be_set_while_packets_are_sent_and_children_start)
{
	pthread_t thread;
	int status;
	pid_t child;

	umad_set_log_hook(ignore_message, NULL);
	umad_debug(2);
	assert_int_equal(pthread_create(&thread, NULL, set_hooks, NULL), 0);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(umad_send(fd, 0, &buffer, 256, 0, 0), 0);
		child = fork();
		if (!child) {
			alarm(60);
			_exit(umad_send(fd, 0, &buffer, 256, 0, 0) ? 1 : 0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	atomic_store(&counted.done, true);
	pthread_join(thread, NULL);
	end_log();
	assert_in_range(atomic_load(&counted.packets), 0, 100);
	assert_in_range(atomic_load(&counted.messages), 0, 100);
}

/* --- polling -------------------------------------------------------------------- */

#define OTHER 77

/* What umad_poll(), and umad_poll_with() a second descriptor, return. */
static const struct poll_row {
	const char *behaviour;
	bool message, gone;
	int poll_result, other_revents;
	int alone, both, error; /* the errno of both, if it is -EIO */
} poll_rows[] = {
	{"a poll has an end", 0, 0, 0, 0, -ETIMEDOUT, -ETIMEDOUT, 0},
	{"a message is there", 1, 0, 0, 0, 0, 0, 0},
	{"remaining data come before the error of a removed device", 1, 0, POLLIN | POLLERR, 0,
	 0, 0, 0},
	{"a device that has gone is an error", 0, 1, 0, 0, -EIO, -EIO, EIO},
	{"a signal ends a poll", 0, 0, -EINTR, 0, -EIO, -EIO, EINTR},
	{"the second descriptor is readable", 0, 0, 0, POLLIN, -ETIMEDOUT, 1, 0},
	{"the second descriptor hung up", 0, 0, 0, POLLHUP, -ETIMEDOUT, 1, 0},
	{"the second descriptor has an error", 0, 0, 0, POLLERR, -ETIMEDOUT, 1, 0},
	{"the second descriptor is not open", 0, 0, 0, POLLNVAL, -ETIMEDOUT, -EINVAL, 0},
	{"a message comes before the second descriptor", 1, 0, 0, POLLIN, 0, 0, 0},
	{"a message comes before a wrong descriptor", 1, 0, 0, POLLNVAL, 0, 0, 0},
	{"a removal is told whatever the second descriptor has", 0, 1, 0, POLLIN, -EIO, -EIO,
	 EIO},
};

static void run_poll(const struct poll_row *row)
{
	int timeout = row->message ? -1 : 10;

	if (row->message)
		arrives(1, 0, 256, 1);
	device->gone = row->gone;
	device->poll_result = row->poll_result;
	device->other_revents = row->other_revents;
	for (int both = 0; both < 2; both++) {
		int wanted = both ? row->both : row->alone;

		errno = 0;
		assert_int_equal(both ? umad_poll_with(fd, OTHER, timeout)
				      : umad_poll(fd, timeout),
				 wanted);
		assert_int_equal(errno, wanted == -EIO ? row->error : wanted < 0 ? -wanted : 0);
		assert_int_equal(device->polls, both + 1);
		assert_int_equal(device->last_timeout, timeout);
	}
	assert_int_equal(device->last_other, OTHER);
}

TEST_ROWS(run_poll, poll_rows);
