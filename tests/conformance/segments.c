/* SPDX-License-Identifier: BSD-2-Clause */

/* readv() and writev(): each segment is a read() or write() of its own. */
#include "check.h"
#include "mads.h"

#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST_SEGMENTS 1024

static int from, to;                         /* descriptors of the two ports */
static int requester_agent, responder_agent; /* agents on the two descriptors */
static uint8_t *umad, *second;
static size_t length; /* of a MAD with its header */

static void opened(void)
{
	from = open_port(&here);
	to = open_port(&there);
	requester_agent = client(from, 0);
	responder_agent = server(to, METHOD_ANY, 0);
	umad = new_umad(MAD + 1);
	second = new_umad(MAD + 1);
	length = umad_size() + MAD;
}

/* read() and write() on the second port wait. */
static void wait_for_mads(void)
{
	int flags = fcntl(to, F_GETFL);

	expect(flags >= 0);
	expect_equal(fcntl(to, F_SETFL, flags & ~O_NONBLOCK), 0);
}

static void make_request(uint8_t *request, uint32_t tid)
{
	uint32_t agent = (uint32_t)requester_agent;

	set_mad(request, METHOD_ANY, tid);
	set_destination(request, &there);
	memcpy(request, &agent, sizeof(agent));
}

static void ask(uint32_t tid)
{
	make_request(umad, tid);
	expect_equal(write(from, umad, length), length);
}

static void receive(uint32_t tid)
{
	expect_equal(receive_mad(to, umad, MAD, responder_agent), MAD);
	expect_equal(tid_of(umad), tid);
}

static ssize_t read_two(size_t first_bytes, size_t second_bytes)
{
	struct iovec parts[] = {{umad, first_bytes}, {second, second_bytes}};

	memset(umad, 0, length);
	memset(second, 0, length);
	return readv(to, parts, 2);
}

static ssize_t write_two(size_t first_bytes, size_t second_bytes)
{
	struct iovec parts[] = {{umad, first_bytes}, {second, second_bytes}};

	return writev(from, parts, 2);
}

static void readv_reads_a_mad_into_each_segment(void)
{
	opened();
	ask(1);
	ask(2);
	wait_for_mads();
	expect_equal(read_two(length, length), 2 * length);
	expect_equal(tid_of(umad) + tid_of(second), 3);
	expect_equal(method_of(umad), METHOD_ANY);
	expect_equal(method_of(second), METHOD_ANY);
}

static void a_first_segment_that_is_too_small_keeps_the_mad(void)
{
	opened();
	ask(3);
	wait_for_mads();
	expect_errno(read_two(umad_size(), MAD), EINVAL);
	expect_errno(read_two(length - 1, length), EINVAL);
	expect_errno(read_two(0, length), EINVAL);
	receive(3);
}

static void a_second_segment_that_is_too_small_keeps_its_mad(void)
{
	uint32_t first;

	opened();
	ask(4);
	ask(5);
	wait_for_mads();
	expect_equal(read_two(length, length - 1), length);
	first = tid_of(umad);
	expect_equal(tid_of(second), 0);
	receive(9 - first);
}

static void a_segment_that_is_not_filled_is_the_last_one(void)
{
	opened();
	ask(6);
	wait_for_mads(); /* for the second segment, it would wait without end */
	expect_equal(read_two(length + 1, length), length);
	expect_equal(tid_of(umad), 6);
}

static void readv_ends_where_there_are_no_more_mads(void)
{
	opened();
	ask(7);
	wait_for_mads();
	expect_errno(read_two(length - 1, length), EINVAL); /* the MAD is there now */
	expect_equal(fcntl(to, F_SETFL, O_NONBLOCK), 0);
	expect_equal(read_two(length, length), length);
	expect_equal(tid_of(umad), 7);
	expect_errno(read_two(length, length), EAGAIN);
}

static void writev_writes_a_mad_from_each_segment(void)
{
	opened();
	make_request(umad, 8);
	make_request(second, 9);
	expect_equal(write_two(length, length), 2 * length);
	wait_for_mads();
	expect_equal(read_two(length, length), 2 * length);
	expect_equal(tid_of(umad) + tid_of(second), 17);
}

static void writev_does_not_join_segments(void)
{
	struct iovec parts[2];

	opened();
	make_request(umad, 10);
	parts[0] = (struct iovec){umad, umad_size()};
	parts[1] = (struct iovec){umad + umad_size(), MAD};
	expect_errno(writev(from, parts, 2), EINVAL);
	parts[0].iov_len = 0;
	expect_errno(writev(from, parts, 2), EINVAL);
	ask(11);
	receive(11);
}

static void writev_ends_at_a_segment_that_is_refused(void)
{
	opened();
	make_request(umad, 12);
	make_request(second, 13);
	expect_equal(write_two(length, length + 1), length);
	receive(12);
	make_request(umad, 14);
	make_request(second, 15);
	expect_errno(write_two(length + 1, length), EINVAL);
	ask(16);
	receive(16);
}

static void no_segment_and_no_bytes_are_nothing(void)
{
	static struct iovec parts[MOST_SEGMENTS + 1];
	int fd = open_port(&here);

	expect_equal(readv(fd, parts, 0), 0);
	expect_equal(writev(fd, parts, 0), 0);
	expect_equal(readv(fd, parts, MOST_SEGMENTS), 0);
	expect_equal(writev(fd, parts, MOST_SEGMENTS), 0);
	expect_errno(readv(fd, parts, MOST_SEGMENTS + 1), EINVAL);
	expect_errno(writev(fd, parts, MOST_SEGMENTS + 1), EINVAL);
}

static void segments_have_no_position(void)
{
	struct iovec part;

	opened();
	part = (struct iovec){umad, length};
	expect_errno(preadv(to, &part, 1, 0), ESPIPE);
	expect_errno(pwritev(from, &part, 1, 0), ESPIPE);
	make_request(umad, 18);
	expect_equal(pwritev2(from, &part, 1, -1, 0), length);
	wait_for_mads();
	memset(umad, 0, length);
	expect_equal(preadv2(to, &part, 1, -1, 0), length);
	expect_equal(tid_of(umad), 18);
	expect_errno(preadv2(to, &part, 1, -1, RWF_NOWAIT), EOPNOTSUPP);
	expect_errno(pwritev2(from, &part, 1, -1, RWF_SYNC), EOPNOTSUPP);
}

static void segments_need_the_access_of_the_handle(void)
{
	struct iovec part;
	int fd;

	opened();
	part = (struct iovec){umad, length};
	fd = open_device(&here, "umad", O_RDONLY | O_NONBLOCK);
	expect_errno(writev(fd, &part, 1), EBADF);
	expect_errno(readv(fd, &part, 1), EAGAIN);
	expect_equal(close(fd), 0);
	fd = open_device(&here, "umad", O_WRONLY | O_NONBLOCK);
	expect_errno(readv(fd, &part, 1), EBADF);
	expect_errno(writev(fd, &part, 1), EIO); /* it has no agent */
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(readv_reads_a_mad_into_each_segment),
		CHECK(a_first_segment_that_is_too_small_keeps_the_mad),
		CHECK(a_second_segment_that_is_too_small_keeps_its_mad),
		CHECK(a_segment_that_is_not_filled_is_the_last_one),
		CHECK(readv_ends_where_there_are_no_more_mads),
		CHECK(writev_writes_a_mad_from_each_segment),
		CHECK(writev_does_not_join_segments),
		CHECK(writev_ends_at_a_segment_that_is_refused),
		CHECK_ALONE(no_segment_and_no_bytes_are_nothing),
		CHECK(segments_have_no_position),
		CHECK(segments_need_the_access_of_the_handle),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
