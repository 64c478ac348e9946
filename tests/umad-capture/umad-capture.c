/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * umad-capture: runs a program with libumad-capture.so preloaded. The library copies the MADs
 * that the program sends and receives into a ring in shared memory; umad-capture reads the ring
 * and writes the capture. If umad-capture is slow, it does not slow the program down: the ring
 * fills up, and packets that do not fit are counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "capture_options.h"
#include "child.h"
#include "order.h"
#include "pcap_file.h"
#include "ring.h"
#include "slowest.h"

#define HELD_BACK   10 /* ms to hold a packet, in case one with an earlier time arrives */
#define MOST_HELD   RING_BYTES /* bytes of held packets */
/* ns between two reads of the ring; with short pauses it is nearly empty and uses few of its
 * pages */
#define SHORT_PAUSE 1000000L
#define LONG_PAUSE  8000000L /* while the program sends and receives nothing */
#define READ_CLOCK  64       /* packets between two reads of the clock */

static const struct preload preload = {
	.self = "umad-capture",
	.library = "libumad-capture.so",
	.from_program = CAPTURE_FROM_PROGRAM,
	.ready = ENV_CAPTURE_READY,
	.otherwise = "its MADs were not captured",
};

struct capture {
	struct capture_options options;
	struct ring *ring;
	struct order order;
	struct pcap_file file;
	struct summary summary;
	struct slowest slowest;
	uint64_t lost;            /* packets dropped on OOM */
	uint64_t seen, selected;  /* packets, and those selected by the filter */
	bool has_standard_output; /* false: it was closed */
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void write_packet(struct capture *capture, const struct packet_record *record)
{
	struct summary_exchange exchange = summary_note(&capture->summary, record);
	bool wanted = !capture->options.filter ||
		      filter_match(capture->options.filter, record, exchange.round_trip);

	capture->seen++;
	capture->selected += wanted;
	if (!wanted)
		return;
	if (capture->options.file)
		pcap_file_write(&capture->file, record);
	if (capture->options.summary)
		summary_print(stderr, record, &exchange);
	if (capture->options.slowest && slowest_note(&capture->slowest, record, &exchange))
		capture->lost++;
}

/* Writes the held packets that arrived by then. */
static void write_until(struct capture *capture, int64_t until)
{
	struct packet_record *record;

	while ((record = order_take(&capture->order, until))) {
		write_packet(capture, record);
		free(record);
	}
	if (capture->options.file)
		pcap_file_flush(&capture->file);
}

/*
 * Takes the packets in the ring, and writes those held long enough. Returns how many it took.
 */
static unsigned int drain(struct capture *capture, int64_t held_back)
{
	struct packet_record *record;
	unsigned int count = 0;
	int64_t now = 0;

	while ((record = ring_take(capture->ring))) {
		if (count++ % READ_CLOCK == 0)
			now = now_ms();
		if (order_put(&capture->order, record, now)) {
			capture->lost++;
			free(record);
		}
		if (capture->order.bytes > MOST_HELD)
			write_until(capture, INT64_MAX - 1);
	}
	write_until(capture, held_back < 0 ? INT64_MAX - 1 : now_ms() - held_back);
	return count;
}

/* Writes packets until the program has ended. Returns its exit status. */
static int run(struct capture *capture, pid_t child)
{
	struct timespec pause = {.tv_nsec = SHORT_PAUSE};
	sigset_t ended;
	int status;
	pid_t got;

	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ended, NULL);
	while (!(got = waitpid(child, &status, WNOHANG)) || (got < 0 && errno == EINTR)) {
		if (drain(capture, HELD_BACK))
			pause.tv_nsec = SHORT_PAUSE;
		else if (pause.tv_nsec < LONG_PAUSE)
			pause.tv_nsec *= 2;
		sigtimedwait(&ended, NULL, &pause);
	}
	drain(capture, -1);
	if (got == child)
		return child_status(status);
	fprintf(stderr, "umad-capture: waitpid: %s\n", strerror(errno));
	return STATUS_FAILED;
}

/* Reports what is missing from the capture. */
static void tell_losses(struct capture *capture, enum child_report report)
{
	uint64_t left_out = atomic_load(&capture->ring->left_out) + capture->lost;

	if (left_out)
		fprintf(stderr, "umad-capture: %" PRIu64 " MADs are missing from the capture\n",
			left_out);
	if (capture->file.lost)
		fprintf(stderr, "umad-capture: %" PRIu64 " packets could not be written\n",
			capture->file.lost);
	if (capture->seen && !capture->selected)
		fprintf(stderr, "umad-capture: the filter selected none of %" PRIu64 " MADs\n",
			capture->seen);
	if (report == CHILD_LOADED && !atomic_load(&capture->ring->programs))
		fprintf(stderr,
			"umad-capture: %s did not use libibumad.so.3: nothing was captured\n",
			capture->options.program[0]);
}

/* Moves the capture's standard output to a separate descriptor. The program's standard output
 * goes to standard error, to keep its text out of the capture. */
static int open_output(struct capture *capture)
{
	struct pcap_file *file = &capture->file;

	file->name = capture->options.file;
	file->most = capture->options.most;
	file->files = capture->options.files;
	if (!file->name)
		return 0;
	if (!strcmp(file->name, "-")) {
		errno = EBADF;
		file->fd = -1;
		if (capture->has_standard_output)
			file->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		if (file->fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
			fprintf(stderr, "umad-capture: standard output: %s\n", strerror(errno));
			return -errno;
		}
	}
	return pcap_file_open(file);
}

/* Creates the ring and passes its path to the programs. */
static int open_ring(struct capture *capture)
{
	char path[64];
	int fd = ring_create(&capture->ring, RING_BYTES);

	if (fd < 0) {
		fprintf(stderr, "umad-capture: cannot create shared memory: %s\n",
			strerror(-fd));
		return fd;
	}
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	return setenv(ENV_RING, path, 1) ? -errno : 0;
}

/* Whether there is no executable of that name. Only for a message before a file is overwritten;
 * execvp(3) decides what is executed. */
static bool is_missing(const char *name)
{
	const char *folders = getenv("PATH");
	char path[PATH_MAX];

	if (strchr(name, '/'))
		return access(name, X_OK) != 0;
	for (const char *folder = folders ? folders : "/bin:/usr/bin";; folder++) {
		int length = (int)strcspn(folder, ":");

		if (snprintf(path, sizeof(path), "%.*s%s%s", length, folder, length ? "/" : "",
			     name) < (int)sizeof(path) &&
		    !access(path, X_OK))
			return false;
		folder += length;
		if (!*folder)
			return true;
	}
}

/* Reports a missing program, before a file is overwritten for it. */
static int find(const char *name)
{
	int error;

	if (!is_missing(name))
		return 0;
	error = strchr(name, '/') ? errno : ENOENT;
	fprintf(stderr, "umad-capture: %s: %s\n", name, strerror(error));
	return error == ENOENT ? 127 : 126;
}

static int start(struct capture *capture, char **arguments)
{
	enum child_report report;
	int ready, status;
	pid_t child;

	status = find(arguments[0]);
	if (!status)
		status = child_preload(&preload, NULL);
	if (status)
		return status;
	if (open_ring(capture) || open_output(capture))
		return STATUS_FAILED;
	if (summary_init(&capture->summary) ||
	    slowest_init(&capture->slowest, capture->options.slowest)) {
		fputs("umad-capture: out of memory\n", stderr);
		return STATUS_FAILED;
	}
	status = child_start(&preload, arguments, &child, &ready);
	if (status)
		return status;
	report = child_heard(ready);
	status = run(capture, child);
	slowest_print(stderr, &capture->slowest);
	tell_losses(capture, report);
	return child_judge(&preload, arguments[0], report, status);
}

int main(int argc, char **argv)
{
	static struct capture capture;
	int status;

	capture.has_standard_output = fcntl(STDOUT_FILENO, F_GETFD) >= 0;
	child_prepare();
	/* if the capture cannot be written, end with a message */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	/* write whole lines, because the program prints there, too */
	setvbuf(stderr, NULL, _IOLBF, BUFSIZ);
	read_capture_options(argc, argv, &capture.options);
	status = start(&capture, capture.options.program);
	pcap_file_close(&capture.file);
	summary_free(&capture.summary);
	slowest_free(&capture.slowest);
	order_free(&capture.order);
	filter_free(capture.options.filter);
	return status;
}
