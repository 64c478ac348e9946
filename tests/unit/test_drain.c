/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * No memory for a message of more than one MAD, nor for reading and dropping it: it blocks the
 * queue until memory is free. Only this message is lost.
 */

#define MANY 3
#include "async_fixture.h"
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define LONG      5000
#define VERY_LONG 2500000
#define MAX       1000
#define FAILURES  10
/* The library retries after so many milliseconds. */
#define PAUSE_MS  10
/* Each try calls the device a few times, also before and after. */
#define CALLS     (8 * (FAILURES + 2))

/* The number of calls that fail from now on, one for each try to read and drop a message. */
static atomic_int failures;
/* The size of mapped memory that is shared, and where the next part of it belongs. */
static size_t shared;
static uint8_t *next_part;
/* The number of the shared part that cannot be mapped; 0: none. */
static unsigned fail_part;
/* Called before a message is read and dropped. */
static void (*before_drain)(void);

void *__wrap_mmap(void *start, size_t size, int protection, int flags, int fd, long offset);
void *__wrap_mmap64(void *start, size_t size, int protection, int flags, int fd, off_t offset);
void *__real_mmap(void *start, size_t size, int protection, int flags, int fd, long offset);

void *__wrap_mmap(void *start, size_t size, int protection, int flags, int fd, long offset)
{
	if (failures > 0) {
		failures--;
		errno = ENOMEM;
		return MAP_FAILED;
	}
	if (flags & MAP_SHARED && fail_part && !--fail_part) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	if (flags & MAP_SHARED) {
		assert_ptr_equal(start, next_part);
		next_part += size;
		shared += size;
		return __real_mmap(start, size, protection, flags, fd, offset);
	}
	if (before_drain)
		before_drain();
	return next_part = __real_mmap(start, size, protection, flags, fd, offset);
}

/* mmap() has this name with 64-bit file offsets. */
void *__wrap_mmap64(void *start, size_t size, int protection, int flags, int fd, off_t offset)
{
	return __wrap_mmap(start, size, protection, flags, fd, (long)offset);
}

/* Responds to a GetTable with a long message, and to all other requests at once. */
static int respond_tables_at_length(const struct device_packet *packet, void *arg)
{
	if (packet->mad[3] != IB_MAD_METHOD_GET_TABLE)
		return echo(packet, arg);
	respond_long(packet, LONG, 1);
	return 0;
}

static int setup(void)
{
	if (async_setup())
		return -1;
	failures = 0;
	fail_part = 0;
	shared = 0;
	before_drain = NULL;
	device_on_write(respond_tables_at_length, NULL);
	mad_port_set(port, MAD_PORT_MAX_RESPONSE, MAX);
	return 0;
}

FIXTURE(setup, async_teardown);

static int ask_at_length(void)
{
	struct mad_message message;
	ib_rpc_t rpc = table_request();
	ib_portid_t to = to_lid(1);
	int ret = mad_rpc_message(port, &rpc, &to, NULL, 0, &message);

	mad_message_free(&message);
	return ret;
}

static void expect_port_to_live(void)
{
	uint8_t data[IB_PC_DATA_SZ] = {7};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);

	assert_non_null(mad_rpc(port, &rpc, &to, data, data));
	assert_int_equal(data[0], 7);
}

static unsigned reads_and_polls(void)
{
	return device_calls(DEVICE_READ) + device_calls(DEVICE_POLL);
}

/* The least time that the library's pauses between tries take. */
static void expect_pauses(int64_t start, unsigned calls_before)
{
	assert_int_equal(failures, 0);
	assert_true(now_ms() - start >= (FAILURES - 1) * PAUSE_MS);
	assert_in_range(reads_and_polls() - calls_before, FAILURES, CALLS);
}

TEST(a_message_that_cannot_be_read_away_is_lost_alone)
{
	for (int i = 0; i < 3; i++) {
		failures = i;
		assert_int_equal(ask_at_length(), -EMSGSIZE);
		expect_port_to_live();
		assert_int_equal(failures, 0);
	}
}

static unsigned open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

TEST(to_read_a_message_away_leaves_no_descriptor_open)
{
	unsigned before;

	assert_int_equal(ask_at_length(), -EMSGSIZE);
	before = open_descriptors();
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask_at_length(), -EMSGSIZE);
	assert_int_equal(open_descriptors(), before);
}

/* The file of the drain cannot have its size. */
TEST(a_message_is_read_away_without_a_file)
{
	struct rlimit limit, none = {0};
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
	uint8_t data[IB_PC_DATA_SZ] = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);
	bool lives;
	int err;

	rpc.timeout = 5000;
	mad_rpc_set_retries(port, 1);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	none.rlim_max = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	err = ask_at_length();
	lives = mad_rpc(port, &rpc, &to, data, data);
	setrlimit(RLIMIT_FSIZE, &limit);
	signal(SIGXFSZ, handler);
	assert_int_equal(err, -EMSGSIZE);
	assert_true(lives);
}

/* The number of mapped ranges that a drain has left behind. */
static unsigned ranges_left(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned count = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "umad-drain") != NULL;
	fclose(maps);
	return count;
}

/* The state of a process with a closed standard input. */
TEST(the_file_of_a_drain_may_have_number_0)
{
	int copy = dup(0), ret;

	assert_int_equal(ask_at_length(), -EMSGSIZE); /* what stays open is open */
	shared = 0;
	close(0);
	ret = ask_at_length();
	assert_int_equal(fcntl(0, F_GETFD), -1);
	assert_int_equal(dup2(copy, 0), 0);
	close(copy);
	assert_int_equal(ret, -EMSGSIZE);
	assert_true(shared >= LONG);
}

static int respond_tables_very_long(const struct device_packet *packet, void *arg)
{
	if (packet->mad[3] != IB_MAD_METHOD_GET_TABLE)
		return echo(packet, arg);
	respond_long(packet, VERY_LONG, 1);
	return 0;
}

/* The whole address range maps the same pages. */
TEST(to_read_a_long_message_away_takes_little_memory)
{
	device_on_write(respond_tables_very_long, NULL);
	assert_int_equal(ask_at_length(), -EMSGSIZE);
	expect_port_to_live();
	assert_in_range(shared, VERY_LONG, VERY_LONG + (1 << 20));
	assert_int_equal(ranges_left(), 0);
}

TEST(if_a_part_cannot_be_mapped_the_parts_before_are_unmapped)
{
	device_on_write(respond_tables_very_long, NULL);
	fail_part = 2;
	assert_int_equal(ask_at_length(), -EMSGSIZE);
	assert_int_equal(fail_part, 0);
	expect_port_to_live();
	assert_int_equal(ranges_left(), 0);
}

static size_t response_length;

static int respond_tables_of_length(const struct device_packet *packet, void *arg)
{
	if (packet->mad[3] != IB_MAD_METHOD_GET_TABLE)
		return echo(packet, arg);
	respond_long(packet, response_length, 1);
	return 0;
}

/* With its header, a message fills two parts, or a byte more or less. */
TEST(a_message_has_as_many_parts_as_it_needs)
{
	const size_t part = 1 << 20;

	device_on_write(respond_tables_of_length, NULL);
	for (size_t i = 0; i < 3; i++) {
		response_length = 2 * part - umad_size() - 1 + i;
		shared = 0;
		assert_int_equal(ask_at_length(), -EMSGSIZE);
		expect_port_to_live();
		assert_int_equal(shared, (i < 2 ? 2 : 3) * part);
	}
}

/* 0 is the number of an agent, too. */
TEST(a_long_message_for_the_first_agent_is_read_away)
{
	struct ib_user_mad header = {.agent_id = 0};
	uint8_t mad[LONG] = {1, IB_SMI_CLASS, 1, IB_MAD_METHOD_GET};

	device_queue(device_fd(), &header, mad, sizeof(mad));
	expect_port_to_live();
	assert_int_equal(stats_of(async).dropped, 1);
}

static void read_message(void)
{
	static uint8_t message[LONG + 100];
	int length = LONG;

	before_drain = NULL;
	assert_true(umad_recv(device_fd(), message, &length, 0) >= 0);
}

TEST(a_message_that_another_process_reads_first_is_no_error)
{
	before_drain = read_message;
	assert_int_equal(ask_at_length(), -EMSGSIZE);
	assert_null(before_drain);
	expect_port_to_live();
}

static void interrupt_read(void)
{
	before_drain = NULL;
	device_fail(DEVICE_READ, 1, EINTR);
}

TEST(a_signal_does_not_keep_a_message_from_being_read_away)
{
	unsigned polls;

	assert_int_equal(ask_at_length(), -EMSGSIZE); /* the destination is known */
	before_drain = interrupt_read;
	polls = device_calls(DEVICE_POLL);
	assert_int_equal(ask_at_length(), -EMSGSIZE);
	assert_null(before_drain);
	assert_int_equal(device_calls(DEVICE_POLL), polls + 1);
	expect_port_to_live();
	assert_int_equal(device_calls(DEVICE_POLL), polls + 2);
}

static void fail_to_read(void)
{
	before_drain = NULL;
	device_fail(DEVICE_READ, 1, EIO);
}

TEST(a_device_that_cannot_be_read_any_more_is_gone)
{
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(1);

	before_drain = fail_to_read;
	assert_int_equal(ask_at_length(), -EMSGSIZE);
	assert_null(before_drain);
	assert_fails_null(mad_rpc(port, &rpc, &to, NULL, NULL), ENODEV);
}

TEST(a_message_that_there_is_no_memory_for_is_lost_alone)
{
	mad_port_set(port, MAD_PORT_MAX_RESPONSE, LONG);
	assert_int_equal(ask_at_length(), 0); /* the destination is known */
	failures = 1;
	device_fail_malloc(1);
	assert_int_equal(ask_at_length(), -ENOMEM);
	expect_port_to_live();
	assert_int_equal(ask_at_length(), 0);
}

TEST(a_blocking_call_pauses_while_there_is_no_memory)
{
	unsigned before = reads_and_polls();
	int64_t start = now_ms();

	failures = FAILURES;
	assert_int_equal(ask_at_length(), -EMSGSIZE);
	expect_port_to_live();
	expect_pauses(start, before);
}

/* Timers are checked nevertheless. */
TEST(a_blocking_call_ends_in_time_while_there_is_no_memory)
{
	uint8_t data[IB_PC_DATA_SZ] = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);
	unsigned before = reads_and_polls();
	int64_t start = now_ms();

	failures = INT32_MAX;
	mad_rpc_set_retries(port, 1);
	assert_int_equal(ask_at_length(), -EMSGSIZE);
	rpc.timeout = 100;
	assert_fails_null(mad_rpc(port, &rpc, &to, data, data), ETIMEDOUT);
	assert_true(now_ms() - start >= 100);
	/* a slow machine has time for more tries */
	assert_in_range(reads_and_polls() - before, 1,
			8 * (unsigned)((now_ms() - start) / PAUSE_MS + 2));
	failures = 0;
	expect_port_to_live();
}

TEST(an_engine_pauses_while_there_is_no_memory)
{
	unsigned before = reads_and_polls();
	int64_t start = now_ms();

	failures = FAILURES;
	submit(async, table_request(), 1, &outcomes[0], NULL);
	submit(async, set_request(), 2, &outcomes[1], NULL);
	submit(async, get_request(), 3, &outcomes[2], NULL);
	assert_int_equal(mad_async_wait(async, -1), 3);
	assert_int_equal(outcomes[0].error, -EMSGSIZE);
	assert_int_equal(outcomes[1].error, 0);
	assert_int_equal(outcomes[2].error, 0);
	expect_pauses(start, before);
	/* the outcome of the message is known */
	assert_int_equal(stats_of(async).dropped, 0);
}

TEST(process_calls_no_device_while_there_is_no_memory)
{
	struct pollfd handle = {.fd = mad_async_poll_fd(async), .events = POLLIN};
	unsigned before = reads_and_polls();
	int64_t start = now_ms();
	int count = 0, ret;

	failures = FAILURES;
	submit(async, table_request(), 1, &outcomes[0], NULL);
	submit(async, set_request(), 2, &outcomes[1], NULL);
	while (count < 2) {
		assert_int_not_equal(poll(&handle, 1, -1), -1);
		ret = mad_async_process(async);
		assert_true(ret >= 0);
		count += ret;
	}
	assert_int_equal(outcomes[0].error, -EMSGSIZE);
	assert_int_equal(outcomes[1].error, 0);
	expect_pauses(start, before);
}

static void *block(void *arg)
{
	(void)arg;
	expect_port_to_live();
	return NULL;
}

/* Each of them would retry. */
TEST(threads_pause_while_there_is_no_memory)
{
	unsigned before = reads_and_polls();
	int64_t start = now_ms();
	pthread_t threads[3];

	failures = FAILURES;
	assert_int_equal(ask_at_length(), -EMSGSIZE);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, block, NULL), 0);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	expect_pauses(start, before);
}

TEST(a_message_that_nobody_waits_for_is_dropped_once)
{
	uint8_t mad[LONG] = {0};
	struct ib_user_mad header = {0};

	expect_port_to_live();
	header.agent_id = device_packet(0)->header.agent_id;
	device_copy_mad(device_packet(0), mad);
	mad[3] |= IB_MAD_RESPONSE;
	mad[12] ^= 0x40;
	failures = FAILURES;
	device_queue(device_packet(0)->fd, &header, mad, sizeof(mad));
	expect_port_to_live();
	assert_int_equal(failures, 0);
	assert_int_equal(stats_of(async).dropped, 1);
}
