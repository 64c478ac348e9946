/* SPDX-License-Identifier: BSD-2-Clause */

#include "pcap_file.h"

#include <errno.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pcap/pcap.h>

#include "packet_frame.h"

#define FILE_HEADER      24
#define PACKET_HEADER    16
#define LENGTH_IN_HEADER 8 /* offset of the captured length */

/* The buffer is written once it has more bytes than this, and has space for another packet, so
 * that stdio never writes part of a packet. */
#define MOST_BUFFERED ((size_t)1 << 16)
#define BUFFER_BYTES  (MOST_BUFFERED + 4096)

/* File names as tcpdump(8) makes them: NAME, NAME1, NAME2 ...; with -W, NAME0 ... with leading
 * zeros. */
static void name_file(const struct pcap_file *file, char name[PATH_MAX])
{
	unsigned int number = file->files ? file->number % file->files : file->number;
	unsigned int most = file->files ? file->files - 1 : number;
	char digits[16];
	int length = snprintf(digits, sizeof(digits), "%u", most);

	for (int i = length - 1; i >= 0; i--, number /= 10)
		digits[i] = (char)('0' + number % 10);
	if (!file->files && !file->number)
		digits[0] = '\0';
	snprintf(name, PATH_MAX, "%s%s", file->name, digits);
}

static int complain(const char *name, int error)
{
	fprintf(stderr, "umad-capture: %s: %s\n", name, strerror(error));
	return -error;
}

/* Opens a named pipe for writing only, so that open() waits for its reader. */
static FILE *open_file(const char *name)
{
	struct stat status;
	bool is_pipe = !stat(name, &status) && S_ISFIFO(status.st_mode);

	return fopen(name, is_pipe ? "we" : "w+e");
}

static int open_next(struct pcap_file *file)
{
	bool is_stream = !strcmp(file->name, "-");
	char name[PATH_MAX];

	name_file(file, name);
	errno = 0;
	file->stream = is_stream ? fdopen(file->fd, "w") : open_file(name);
	if (!file->stream)
		return complain(name, errno);
	setvbuf(file->stream, file->buffer, _IOFBF, BUFFER_BYTES);
	__fsetlocking(file->stream, FSETLOCKING_BYCALLER); /* one thread uses the stream */
	file->dumper = pcap_dump_fopen(file->pcap, file->stream);
	if (!file->dumper) {
		fclose(file->stream);
		return complain(name, errno ? errno : EIO);
	}
	if (pcap_dump_flush(file->dumper))
		return complain(name, errno);
	file->bytes = file->written = FILE_HEADER;
	return 0;
}

int pcap_file_open(struct pcap_file *file)
{
	file->pcap = pcap_open_dead_with_tstamp_precision(LINKTYPE_ERF, 65535,
							  PCAP_TSTAMP_PRECISION_NANO);
	file->buffer = malloc(BUFFER_BYTES);
	if (!file->pcap || !file->buffer)
		return complain(file->name, ENOMEM);
	return open_next(file);
}

/* After a failed write, counts the bytes of complete frames in the file, by the lengths in the
 * frames' headers. */
static void count_whole_frames(struct pcap_file *file, uint64_t size)
{
	uint32_t length;

	while (file->pending &&
	       pread(fileno(file->stream), &length, sizeof(length),
		     (off_t)file->written + LENGTH_IN_HEADER) == sizeof(length) &&
	       file->written + PACKET_HEADER + length <= size) {
		file->written += PACKET_HEADER + length;
		file->pending--;
	}
}

/* After a failed write, cuts off an incomplete frame: tools reject files that have one. */
static void give_up(struct pcap_file *file, int error)
{
	bool is_stream = !strcmp(file->name, "-");
	char name[PATH_MAX];
	struct stat status;
	int fd = fileno(file->stream);

	name_file(file, name);
	fprintf(stderr, "umad-capture: %s: %s: the capture ends here\n", name, strerror(error));
	file->failed = true;
	__fpurge(file->stream); /* else exit(3) writes the rest */
	if (!is_stream && !fstat(fd, &status) && S_ISREG(status.st_mode)) {
		count_whole_frames(file, (uint64_t)status.st_size);
		if (ftruncate(fd, (off_t)file->written))
			fprintf(stderr, "umad-capture: %s: %s: the last packet is incomplete\n",
				name, strerror(errno));
	}
	file->lost += file->pending;
}

void pcap_file_flush(struct pcap_file *file)
{
	if (file->failed || file->bytes == file->written)
		return;
	errno = 0;
	if (pcap_dump_flush(file->dumper) || ferror(file->stream)) {
		give_up(file, errno ? errno : EIO);
		return;
	}
	file->written = file->bytes;
	file->pending = 0;
}

static void rotate(struct pcap_file *file)
{
	pcap_file_flush(file);
	if (file->failed)
		return;
	pcap_dump_close(file->dumper);
	file->dumper = NULL;
	file->number++;
	if (open_next(file))
		file->failed = true;
}

static void write_frame(struct pcap_file *file, const struct packet_record *record,
			const struct frame_address *address, const uint8_t mad[MAD_BYTES])
{
	uint8_t bytes[ERF_HEADER + FRAME_BYTES];
	size_t frame = frame_build(bytes + ERF_HEADER, address, mad);
	size_t length = ERF_HEADER + frame, in_file = PACKET_HEADER + length;
	struct pcap_pkthdr header = {
		.ts = {.tv_sec = (time_t)record->seconds,
		       .tv_usec = (suseconds_t)record->nanoseconds},
		.caplen = (uint32_t)length,
		.len = (uint32_t)length,
	};

	if (file->most && file->bytes + in_file > file->most && file->bytes > FILE_HEADER)
		rotate(file);
	else if (file->bytes - file->written + in_file > MOST_BUFFERED)
		pcap_file_flush(file);
	if (file->failed) {
		file->lost++;
		return;
	}
	frame_erf_header(bytes, frame, record->seconds, record->nanoseconds);
	pcap_dump((u_char *)file->dumper, &header, bytes);
	file->bytes += in_file;
	file->pending++;
}

void pcap_file_write(struct pcap_file *file, const struct packet_record *record)
{
	struct frame_address address = packet_address(record);
	uint8_t mad[MAD_BYTES];
	unsigned int count;

	/* a MAD returned by the kernel was not on the wire */
	if (record_status(record) || record->length < 24)
		return;
	count = frame_segments(record_mad(record), record->length);
	for (unsigned int number = 1; number <= count; number++) {
		frame_segment(mad, record_mad(record), record->length, number, record->sent);
		write_frame(file, record, &address, mad);
	}
}

void pcap_file_close(struct pcap_file *file)
{
	if (file->dumper)
		pcap_file_flush(file);
	if (file->dumper && !file->failed)
		pcap_dump_close(file->dumper);
	file->dumper = NULL;
	if (file->pcap)
		pcap_close(file->pcap);
	file->pcap = NULL;
}
