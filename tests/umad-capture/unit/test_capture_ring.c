/* SPDX-License-Identifier: BSD-2-Clause */

/* The ring for packets, and the order in which packets leave it. */
#include "capture_fixture.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "order.h"

#define SMALL 4096 /* bytes of a ring */

struct test_ring {
	struct ring *ring;
	int fd;
	uint8_t mad[1024];
};

static struct test_ring *setup(void)
{
	static struct test_ring test;

	memset(&test, 0, sizeof(test));
	test.fd = ring_create(&test.ring, SMALL);
	return test.fd < 0 ? NULL : &test;
}

static void teardown(struct test_ring *test)
{
	ring_close(test->ring);
	close(test->fd);
}

#define RING_TEST(name) TEST_ON(name, struct test_ring *test, setup, teardown)

static void put(struct ring *ring, uint8_t *mad, uint32_t length, uint32_t number)
{
	struct packet_record record = {.length = length, .nanoseconds = number};

	memset(mad, (int)number, length);
	ring_put(ring, &record, mad);
}

/* The next packet is complete, and is this one. */
static void expect(struct ring *ring, uint32_t length, uint32_t number)
{
	struct packet_record *record = ring_take(ring);

	assert_non_null(record);
	assert_int_equal(record->length, length);
	assert_int_equal(record->nanoseconds, number);
	for (uint32_t i = 0; i < length; i++)
		assert_int_equal(record_mad(record)[i], (uint8_t)number);
	free(record);
}

RING_TEST(no_program_can_change_the_size_of_the_file)
{
	assert_int_equal(ftruncate(test->fd, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(test->fd, 1 << 20), -1);
}

RING_TEST(packets_come_out_as_they_went_in)
{
	/* often enough to reach the end of the ring at every offset */
	for (uint32_t i = 0; i < 3000; i++) {
		uint32_t length = 24 + i % 1000;

		put(test->ring, test->mad, length, i);
		put(test->ring, test->mad, 256, i + 1);
		expect(test->ring, length, i);
		expect(test->ring, 256, i + 1);
		assert_null(ring_take(test->ring));
	}
	assert_int_equal(test->ring->left_out, 0);
}

RING_TEST(a_mad_keeps_its_last_zeros)
{
	for (uint32_t i = 0; i < 3000; i++) {
		struct packet_record record = {.length = 24 + i % 300}, *taken;
		uint32_t zeros = i * 7 % (record.length + 1);

		memset(test->mad, 0xa5, record.length);
		memset(test->mad + record.length - zeros, 0, zeros);
		ring_put(test->ring, &record, test->mad);
		taken = ring_take(test->ring);
		assert_non_null(taken);
		assert_int_equal(taken->length, record.length);
		assert_true(taken->size >= sizeof(record) + record.length);
		assert_memory_equal(record_mad(taken), test->mad, record.length);
		free(taken);
	}
	assert_int_equal(test->ring->left_out, 0);
}

RING_TEST(a_packet_without_room_is_counted_and_left_out)
{
	uint32_t room = SMALL / (sizeof(struct packet_record) + 256);

	/* bytes other than zero: zeros are not stored */
	for (uint32_t i = 1; i <= room + 5; i++)
		put(test->ring, test->mad, 256, i);
	assert_int_equal(test->ring->left_out, 5);
	for (uint32_t i = 1; i <= room; i++)
		expect(test->ring, 256, i);
	assert_null(ring_take(test->ring));
	put(test->ring, test->mad, 256, 99);
	expect(test->ring, 256, 99);
}

RING_TEST(a_packet_larger_than_the_ring_is_left_out)
{
	static uint8_t large[SMALL];

	put(test->ring, large, SMALL, 1);
	assert_int_equal(test->ring->left_out, 1);
	assert_null(ring_take(test->ring));
}

RING_TEST(another_process_finds_the_ring_by_its_path)
{
	struct ring *again;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), test->fd);
	again = ring_open(path);
	assert_non_null(again);
	put(again, test->mad, 100, 3);
	ring_close(again);
	expect(test->ring, 100, 3);
	assert_null(ring_open("/dev/null"));
	assert_null(ring_open("/no/such/file"));
	assert_null(ring_open("/bin/sh"));
}

static void *put_for_ever(void *context)
{
	struct ring *ring = context;
	uint8_t mad[256];

	for (uint32_t i = 0;; i++)
		put(ring, mad, 256, i);
	return NULL;
}

static void take_all(struct ring *ring, unsigned int *count)
{
	struct packet_record *record;

	while ((record = ring_take(ring))) {
		for (uint32_t i = 0; i < record->length; i++)
			assert_int_equal(record_mad(record)[i], (uint8_t)record->nanoseconds);
		assert_int_equal(record->length, 256);
		free(record);
		++*count;
	}
}

/* At any moment of its work. */
/* qemu-user has no robust mutexes: nothing would release the lock of a killed program. */
static bool has_robust_mutexes(void)
{
	void *head;
	size_t size;

	return !syscall(SYS_get_robust_list, 0, &head, &size);
}

RING_TEST(a_program_that_is_killed_does_not_block_others)
{
	unsigned int count = 0, before;

	if (!has_robust_mutexes())
		skip();
	for (unsigned int i = 0; i < 200; i++) {
		pid_t child = fork();

		if (!child) {
			alarm(60);
			put_for_ever(test->ring);
		}
		assert_true(child > 0);
		before = count;
		while (count < before + 20)
			take_all(test->ring, &count);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, NULL, 0), child);
		take_all(test->ring, &count);
		put(test->ring, test->mad, 256, i);
		expect(test->ring, 256, i);
	}
}

static void *put_some(void *context)
{
	struct ring *ring = context;
	uint8_t mad[256];

	for (uint32_t i = 0; i < 2000; i++)
		put(ring, mad, 256, i);
	return NULL;
}

RING_TEST(threads_lose_nothing_that_is_not_counted)
{
	pthread_t threads[4];
	unsigned int count = 0;

	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, put_some, test->ring), 0);
	while (count + atomic_load(&test->ring->left_out) < 8000)
		take_all(test->ring, &count);
	for (unsigned int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	take_all(test->ring, &count);
	assert_int_equal(count + test->ring->left_out, 8000);
}

/* A program has written to the ring's memory by mistake. */
RING_TEST(nonsense_in_the_ring_is_skipped)
{
	static const uint32_t sizes[] = {0, 8, 24, 100, 4096, 0xfffffff8};

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t at = test->ring->head % SMALL;

		put(test->ring, test->mad, 256, i);
		put(test->ring, test->mad, 256, i);
		memcpy(test->ring->data + at, &sizes[i], sizeof(sizes[i]));
		assert_null(ring_take(test->ring));
		assert_int_equal(test->ring->left_out, i + 1);
		put(test->ring, test->mad, 24, i);
		expect(test->ring, 24, i);
	}
	test->ring->head += 5ULL * SMALL;
	assert_null(ring_take(test->ring));
	put(test->ring, test->mad, 24, 1);
	expect(test->ring, 24, 1);
}

/* --- order ---------------------------------------------------------------------- */

static void hold(struct order *order, int64_t seconds, uint32_t nanoseconds, int32_t name,
		 int64_t arrived)
{
	struct packet_record *record = calloc(1, sizeof(*record));

	record->size = sizeof(*record);
	record->seconds = seconds;
	record->nanoseconds = nanoseconds;
	record->process = name;
	assert_int_equal(order_put(order, record, arrived), 0);
}

static void expect_packet(struct order *order, int64_t until, int32_t name)
{
	struct packet_record *record = order_take(order, until);

	assert_non_null(record);
	assert_int_equal(record->process, name);
	free(record);
}

TEST(packets_leave_in_the_order_of_their_times)
{
	struct order order = {0};

	hold(&order, 2, 5, 3, 100);
	hold(&order, 2, 4, 2, 100);
	hold(&order, 3, 0, 5, 100);
	hold(&order, 1, 9, 1, 101);
	hold(&order, 2, 5, 4, 101); /* the same time: in the order of arrival */
	for (int32_t name = 1; name <= 5; name++)
		expect_packet(&order, 101, name);
	assert_null(order_take(&order, INT64_MAX));
	assert_int_equal(order.bytes, 0);
	order_free(&order);
}

TEST(a_packet_waits_for_earlier_ones)
{
	struct order order = {0};

	hold(&order, 2, 0, 2, 100);
	assert_null(order_take(&order, 99));
	hold(&order, 1, 0, 1, 105);
	assert_null(order_take(&order, 104));
	expect_packet(&order, 105, 1);
	expect_packet(&order, 105, 2);
	order_free(&order);
}

TEST(many_packets_are_sorted)
{
	struct order order = {0};
	uint32_t last = 0, next = 1;

	for (unsigned int i = 0; i < 5000; i++) {
		next = next * 1664525 + 1013904223;
		hold(&order, 0, next >> 2, 0, 0);
	}
	for (unsigned int i = 0; i < 4000; i++) {
		struct packet_record *record = order_take(&order, 0);

		assert_true(record->nanoseconds >= last);
		last = record->nanoseconds;
		free(record);
	}
	order_free(&order); /* with the packets that are left */
}
