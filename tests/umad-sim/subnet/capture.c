/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The route of a packet is computed when it is sent. Its records are timers, so the file has
 * the packets in order of time. When its timer runs, a record still waits for all other due
 * timers: the node at the end of the link may drop the packet.
 */
#include "capture.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "classes.h"
#include "frame.h"
#include "pcapng.h"
#include "printable.h"
#include "timers.h"
#include "trace.h"

#define COMMENT_BYTES 160
#define QP0_LANE      15

struct record {
	struct timer timer;
	struct record *next; /* in the list of records to be written */
	struct capture *capture;
	uint32_t port;
	bool outbound;
	char comment[COMMENT_BYTES];
	struct packet packet;
};

struct capture {
	struct pcapng file;
	struct fabric *fabric;
	uint32_t port; /* NONE: all */
	uint32_t *
		interfaces; /* by port: the interface number in the file, plus 1; 0: none yet */
	uint64_t start;
	uint64_t latest; /* time of a record in the file */
	uint64_t count;  /* packets in the file */
	struct record *waiting, **last;
	struct timer timer; /* writes the list */
};

/* --- writing --------------------------------------------------------------------- */

static uint32_t interface_of(struct capture *capture, uint32_t port)
{
	const struct fabric *fabric = capture->fabric;
	char name[256];

	if (!capture->interfaces[port]) {
		snprintf(name, sizeof(name), "%s/%u",
			 hardware(fabric, cable(fabric, port)->node)->name,
			 cable(fabric, port)->number);
		make_printable(name);
		pcapng_add_interface(&capture->file, name, LINKTYPE_ERF);
		capture->interfaces[port] = capture->file.interfaces;
	}
	return capture->interfaces[port] - 1;
}

/*
 * While an SMP follows a directed route, both of its LIDs are the permissive LID (IBA 14.2.2).
 */
static uint16_t source_lid(const struct packet *packet)
{
	bool on_path = mad_class_of(packet->mad) == CLASS_DIRECTED_SMP &&
		       packet->dlid == PERMISSIVE_LID;

	return on_path ? PERMISSIVE_LID : packet->slid;
}

static size_t build(uint8_t frame[FRAME_BYTES], const struct packet *packet)
{
	struct frame_address address = {
		.slid = source_lid(packet),
		.dlid = packet->dlid,
		.pkey = packet->pkey,
		.sl = packet->sl,
		.vl = is_smp(packet->mad) ? QP0_LANE : 0,
		.source_qp = packet->source_qp,
		.qp = packet->qp,
		.qkey = packet->qkey,
		.psn = (uint32_t)packet->number & 0xffffff,
		.grh = packet->grh,
		.traffic_class = packet->traffic_class,
		.hop_limit = packet->hop_limit,
		.flow_label = packet->flow_label,
	};

	memcpy(address.sgid, packet->sgid, sizeof(address.sgid));
	memcpy(address.dgid, packet->dgid, sizeof(address.dgid));
	return frame_build(frame, &address, packet->mad);
}

/* When timers run late, a new record may be older than the last one in the file; it then gets
 * that record's time. */
static void add_record(struct capture *capture, const struct record *record)
{
	uint64_t time = capture->start + record->timer.at;
	uint8_t frame[ERF_HEADER + FRAME_BYTES];
	size_t length = build(frame + ERF_HEADER, &record->packet);
	struct pcapng_packet packet = {
		.interface = interface_of(capture, record->port),
		.frame = frame,
		.length = ERF_HEADER + length,
		.number = record->packet.number,
		.comment = record->comment,
		.outbound = record->outbound,
	};

	if (time > capture->latest)
		capture->latest = time;
	packet.time = capture->latest;
	frame_erf_header(frame, length, (int64_t)(packet.time / SECOND),
			 (uint32_t)(packet.time % SECOND));
	pcapng_add_packet(&capture->file, &packet);
}

/* error: 0 or a negative errno of output_write() */
static void tell(const struct capture *capture, int error)
{
	if (error)
		fprintf(stderr, "umad-sim: %s: %s; the capture ends after %llu packets\n",
			capture->file.output.name, strerror(-error),
			(unsigned long long)capture->count);
}

/* Writes what was added; all of it if the file is a regular one. */
static void write_file(struct capture *capture, uint64_t count)
{
	tell(capture, output_write(&capture->file.output));
	if (!capture->file.output.error)
		capture->count += count;
}

static void write_waiting(struct capture *capture)
{
	struct output *output = &capture->file.output;
	uint64_t count = 0;

	while (capture->waiting) {
		struct record *record = capture->waiting;

		capture->waiting = record->next;
		if (output_is_full(output)) {
			output_drop(output);
		} else if (!output->error) {
			add_record(capture, record);
			count++;
		}
		free(record);
	}
	capture->last = &capture->waiting;
	write_file(capture, count);
}

static void run_writing(struct fabric *fabric, struct timer *timer)
{
	(void)timer;
	write_waiting(fabric->capture);
}

/* --- records --------------------------------------------------------------------- */

static void append(struct record *record)
{
	struct capture *capture = record->capture;

	record->next = NULL;
	*capture->last = record;
	capture->last = &record->next;
}

static void run_record(struct fabric *fabric, struct timer *timer)
{
	struct record *record = (struct record *)timer;
	bool first = !fabric->capture->waiting;

	append(record);
	/* all due timers run before the record is written, including the packet's arrival */
	if (first && timer_set(fabric, &fabric->capture->timer, fabric->now))
		write_waiting(fabric->capture);
}

/* The fabric ends. The trace has the packet as sent, so the capture must have it, too. */
static void drop_record(struct timer *timer)
{
	append((struct record *)timer);
}

static struct record *record_packet(struct fabric *fabric, const struct packet *packet,
				    uint32_t port, bool outbound, uint64_t at)
{
	struct capture *capture = fabric->capture;
	struct record *record = capture->file.output.error ? NULL : malloc(sizeof(*record));

	if (!record)
		return NULL;
	*record = (struct record){
		.timer = {.run = run_record, .drop = drop_record},
		.capture = capture,
		.port = port,
		.outbound = outbound,
		.packet = *packet,
	};
	if (timer_set(fabric, &record->timer, at)) {
		free(record);
		return NULL;
	}
	return record;
}

struct record *capture_leaves(struct fabric *fabric, const struct packet *packet, uint32_t port,
			      bool lost, uint64_t at, struct record *previous)
{
	const struct capture *capture = fabric->capture;
	bool here = capture && (capture->port == port || (capture->port == NONE && lost));
	struct record *record = here ? record_packet(fabric, packet, port, true, at) : NULL;

	return record ? record : previous;
}

struct record *capture_comes(struct fabric *fabric, const struct packet *packet, uint32_t port,
			     uint64_t at, struct record *previous)
{
	const struct capture *capture = fabric->capture;
	bool here = capture && (capture->port == port || capture->port == NONE);
	struct record *record = here ? record_packet(fabric, packet, port, false, at) : NULL;

	return record ? record : previous;
}

void capture_note(const struct fabric *fabric, struct record *record, uint32_t port,
		  const char *what)
{
	size_t used;

	if (!record)
		return;
	used = strlen(record->comment);
	snprintf(record->comment + used, sizeof(record->comment) - used, "%s%s at %.64s/%u",
		 used ? ", " : "", what, hardware(fabric, cable(fabric, port)->node)->name,
		 cable(fabric, port)->number);
	make_printable(record->comment);
}

void capture_note_arrived(const struct fabric *fabric, const struct packet *packet,
			  uint32_t port, const char *what)
{
	struct record *record = fabric->capture ? fabric->capture->waiting : NULL;
	struct record *latest = NULL;

	for (; record; record = record->next)
		if (record->packet.number == packet->number)
			latest = record;
	capture_note(fabric, latest, port, what);
}

/* --- start and end ----------------------------------------------------------------- */

int capture_port(const struct fabric *fabric, const char *text, uint32_t *port, char *why)
{
	const char *slash = strrchr(text, '/');
	char *name = slash ? strndup(text, (size_t)(slash - text)) : NULL, *end = NULL;
	uint32_t node = name ? graph_find(&fabric->graph, name) : NONE;
	unsigned long number = slash ? strtoul(slash + 1, &end, 10) : 0;
	bool is_number = slash && isdigit((unsigned char)slash[1]) && !*end;

	free(name);
	*port = NONE;
	if (!is_number) {
		snprintf(why, 256, "\"%.100s\" is not NODE/PORT", text);
		return -EINVAL;
	}
	if (node == NONE) {
		snprintf(why, 256, "no node \"%.*s\"",
			 (int)(slash - text > 100 ? 100 : slash - text), text);
		return -EINVAL;
	}
	if (number > 0 && number <= hardware(fabric, node)->port_count)
		*port = graph_port(&fabric->graph, node, (unsigned int)number);
	if (*port == NONE) {
		snprintf(why, 256, "%.100s has ports 1 to %u", hardware(fabric, node)->name,
			 hardware(fabric, node)->port_count);
		return -EINVAL;
	}
	return 0;
}

int capture_to(struct fabric *fabric, const char *name, uint32_t port, uint64_t start)
{
	struct capture *capture = calloc(1, sizeof(*capture));
	int error;

	if (!capture)
		return -ENOMEM;
	capture->fabric = fabric;
	capture->port = port;
	capture->start = start;
	capture->last = &capture->waiting;
	capture->timer.run = run_writing;
	capture->interfaces = calloc(fabric->graph.port_count + 1UL, sizeof(uint32_t));
	/* the trace counts the packets */
	error = fabric->trace ? 0 : trace_to(fabric, NULL);
	if (!error && !capture->interfaces)
		error = -ENOMEM;
	capture->file.output.fd = -1;
	if (!error)
		error = pcapng_open(&capture->file, name, "umad-sim");
	fabric->capture = capture;
	if (error)
		capture_free(fabric);
	return error;
}

bool capture_flush(struct fabric *fabric)
{
	if (!fabric->capture || !output_is_behind(&fabric->capture->file.output))
		return false;
	write_file(fabric->capture, 0);
	return output_is_behind(&fabric->capture->file.output);
}

void capture_free(struct fabric *fabric)
{
	struct capture *capture = fabric->capture;

	if (!capture)
		return;
	write_waiting(capture);
	tell(capture, output_finish(&capture->file.output));
	output_close(&capture->file.output);
	free(capture->interfaces);
	free(capture);
	fabric->capture = NULL;
}
