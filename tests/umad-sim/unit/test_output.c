/* SPDX-License-Identifier: BSD-2-Clause */

/* Files that the fabric writes, with readers that are slow, stand still or end. */
#include "output.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE 100

static char folder[] = "/tmp/output-XXXXXX";
static char name[64];

/* The reader's end of a pipe, whose other end the output has. */
static int open_pipe(struct output *output)
{
	int reader;

	assert_int_equal(mkfifo(name, 0600), 0);
	reader = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(reader >= 0);
	assert_int_equal(output_open(output, name, &output_lines), 0);
	return reader;
}

static void end(int reader)
{
	close(reader);
	assert_int_equal(unlink(name), 0);
}

/* A line of LINE bytes with a number. */
static void add_line(struct output *output, unsigned int number)
{
	char line[LINE + 1];
	uint8_t *space = output_add(output, LINE);

	assert_non_null(space);
	snprintf(line, sizeof(line), "%-*u", LINE - 1, number);
	line[LINE - 1] = '\n';
	memcpy(space, line, LINE);
}

/* Reads what the pipe has. Returns the number of lines, which are whole and begin at a number.
 */
static unsigned int read_lines(int reader, unsigned int number)
{
	char line[LINE];
	unsigned int count = 0;
	ssize_t length;

	while ((length = read(reader, line, LINE)) > 0) {
		assert_int_equal(length, LINE);
		assert_int_equal(line[LINE - 1], '\n');
		assert_int_equal(atoi(line), number + count);
		count++;
	}
	return count;
}

TEST(a_regular_file_has_all_after_each_write)
{
	struct output output;
	struct stat status;

	assert_int_equal(output_open(&output, name, &output_lines), 0);
	for (unsigned int i = 1; i <= 1000; i++) {
		add_line(&output, i);
		assert_int_equal(output_write(&output), 0);
		assert_false(output_is_behind(&output));
		assert_int_equal(stat(name, &status), 0);
		assert_int_equal(status.st_size, i * LINE);
	}
	output_close(&output);
	assert_int_equal(unlink(name), 0);
}

TEST(a_pipe_that_is_full_gets_the_rest_when_it_is_read)
{
	struct output output;
	int reader = open_pipe(&output);
	unsigned int seen = 0;

	for (unsigned int i = 0; i < 10000; i++) {
		add_line(&output, i);
		assert_int_equal(output_write(&output), 0);
	}
	assert_true(output_is_behind(&output));
	assert_false(output_is_full(&output));
	while (output_is_behind(&output)) {
		unsigned int more = read_lines(reader, seen);

		assert_true(more > 0);
		seen += more;
		assert_int_equal(output_write(&output), 0);
	}
	seen += read_lines(reader, seen);
	assert_int_equal(seen, 10000);
	output_close(&output);
	end(reader);
}

TEST(lines_are_whole_although_the_buffer_moves)
{
	struct output output;
	int reader = open_pipe(&output);
	unsigned int added = 0, seen = 0;

	srand(1);
	for (unsigned int round = 0; round < 300; round++) {
		for (int i = rand() % 1000; i > 0; i--)
			add_line(&output, added++);
		assert_int_equal(output_write(&output), 0);
		if (rand() % 3)
			seen += read_lines(reader, seen);
	}
	while (output_is_behind(&output)) {
		seen += read_lines(reader, seen);
		assert_int_equal(output_write(&output), 0);
	}
	seen += read_lines(reader, seen);
	assert_int_equal(seen, added);
	assert_int_equal(output.dropped, 0);
	output_close(&output);
	end(reader);
}

TEST(beyond_the_limit_lines_are_dropped_until_the_pipe_is_read)
{
	struct output output;
	int reader = open_pipe(&output);
	unsigned int added = 0, seen = 0;

	while (!output_is_full(&output))
		add_line(&output, added++);
	assert_int_equal(output_write(&output), 0);
	while (!output_is_full(&output))
		add_line(&output, added++);
	assert_in_range(added, OUTPUT_LIMIT / LINE, OUTPUT_LIMIT / LINE + 65536 / LINE + 1);
	output_drop(&output);
	output_drop(&output);
	assert_int_equal(output.dropped, 2);
	while (output_is_behind(&output)) {
		seen += read_lines(reader, seen);
		assert_int_equal(output_write(&output), 0);
	}
	assert_false(output_is_full(&output));
	seen += read_lines(reader, seen);
	assert_int_equal(seen, added);
	output_close(&output);
	end(reader);
}

TEST(the_end_does_not_wait_for_ever_and_the_pipe_has_whole_lines)
{
	struct output output;
	int reader = open_pipe(&output);

	for (unsigned int i = 0; i < 10000; i++)
		add_line(&output, i);
	output_close(&output);
	assert_in_range(read_lines(reader, 0), PIPE_BUF / LINE, 9999);
	end(reader);
}

static void on_signal(int number)
{
	(void)number;
}

/* As the fabric does: blocks a signal that is handled only while the process waits. */
static void expect_signal(sigset_t *before)
{
	struct sigaction action = {.sa_handler = on_signal};
	sigset_t blocked;

	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, before), 0);
	assert_int_equal(raise(SIGUSR1), 0);
}

TEST(a_signal_ends_the_wait_for_a_reader)
{
	struct output output;
	sigset_t before;

	assert_int_equal(mkfifo(name, 0600), 0);
	expect_signal(&before);
	assert_int_equal(output_open(&output, name, &output_lines), -EINTR);
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
	assert_int_equal(output.fd, -1);
	assert_int_equal(unlink(name), 0);
}

TEST(a_reader_that_ends_is_an_error_once)
{
	struct output output;
	int reader = open_pipe(&output);

	close(reader);
	add_line(&output, 1);
	assert_int_equal(output_write(&output), -EPIPE);
	assert_null(output_add(&output, LINE));
	assert_int_equal(output_write(&output), 0);
	assert_false(output_is_behind(&output));
	output_close(&output);
	assert_int_equal(unlink(name), 0);
}

TEST(a_file_that_cannot_be_made_is_an_error)
{
	struct output output;

	assert_int_equal(output_open(&output, "/nowhere/file", &output_lines), -ENOENT);
	assert_int_equal(output.fd, -1);
	output_close(&output);
}

static int make_folder(void)
{
	if (!mkdtemp(folder))
		return -1;
	snprintf(name, sizeof(name), "%s/file", folder);
	return 0;
}

static int remove_folder(void)
{
	return rmdir(folder);
}

GROUP(make_folder, remove_folder);
