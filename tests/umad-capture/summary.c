/* SPDX-License-Identifier: BSD-2-Clause */

#include "summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <arpa/inet.h>
#include <endian.h>

#include <infiniband/umad_str.h>

#include "attribute_name.h"
#include "classes.h"
#include "packet_frame.h"
#include "rmpp.h"

#define HOP_COUNT    7
#define INITIAL_PATH 128
#define LONGEST_PATH 63

int summary_init(struct summary *summary)
{
	summary->requests = calloc(SUMMARY_REQUESTS, sizeof(*summary->requests));
	return summary->requests ? 0 : -ENOMEM;
}

void summary_free(struct summary *summary)
{
	free(summary->requests);
	summary->requests = NULL;
}

/* The kernel changes the upper half of a TID. */
static uint64_t key_of(const struct packet_record *record, const uint8_t *mad)
{
	uint64_t key = (uint64_t)get32(mad + 12) << 32 |
		       (uint64_t)(uint32_t)record->process << 8 | mad_class_of(mad);

	return key ^ (uint64_t)(uint32_t)record->portid << 40 ^ 1ULL << 63;
}

static void remember(struct summary_request *request, uint64_t key, int64_t time,
		     const uint8_t *mad)
{
	request->key = key;
	request->sent = time;
	request->hops = mad[HOP_COUNT] <= LONGEST_PATH ? mad[HOP_COUNT] : LONGEST_PATH;
	memcpy(request->path, mad + INITIAL_PATH, sizeof(request->path));
}

struct summary_exchange summary_note(struct summary *summary,
				     const struct packet_record *record)
{
	int64_t time = record->seconds * 1000000000LL + record->nanoseconds;
	struct summary_exchange exchange = {.round_trip = -1};
	struct summary_request *request;
	uint8_t mad[MAD_BYTES];
	uint64_t key;

	record_beginning(record, mad);
	key = key_of(record, mad);
	request = &summary->requests[key * 0x9e3779b97f4a7c15ULL >> 48];
	_Static_assert(SUMMARY_REQUESTS == 1 << 16, "16 bits of the hash");
	if (record->sent) {
		if (!mad_is_response(mad))
			remember(request, key, time, mad);
		return exchange;
	}
	if (request->key != key || (!mad_is_response(mad) && !record_status(record)))
		return exchange;
	request->key = 0;
	exchange.round_trip = time - request->sent;
	exchange.hops = request->hops;
	memcpy(exchange.path, request->path, sizeof(exchange.path));
	return exchange;
}

static void print_time(FILE *out, const struct packet_record *record)
{
	time_t seconds = (time_t)record->seconds;
	struct tm local;
	char text[16] = "";

	if (localtime_r(&seconds, &local))
		strftime(text, sizeof(text), "%H:%M:%S", &local);
	fprintf(out, "%s.%09u", text, record->nanoseconds);
}

static void print_path(FILE *out, const uint8_t *path, unsigned int hops)
{
	fputs("dr 0", out);
	for (unsigned int hop = 1; hop <= hops && hop <= LONGEST_PATH; hop++)
		fprintf(out, ",%u", path[hop]);
}

static void print_address(FILE *out, const struct packet_record *record, const uint8_t *mad,
			  const struct summary_exchange *exchange)
{
	struct frame_address address = packet_address(record);
	unsigned int lid = record->sent ? address.dlid : address.slid;
	char gid[INET6_ADDRSTRLEN];
	bool directed = mad_class_of(mad) == CLASS_DIRECTED_SMP;

	if (!directed || lid != 0xffff)
		fprintf(out, "lid %u", lid);
	if (directed && lid != 0xffff)
		fputc(' ', out);
	if (directed && record_status(record) && exchange->round_trip >= 0)
		print_path(out, exchange->path, exchange->hops);
	else if (directed)
		print_path(out, mad + INITIAL_PATH, mad[HOP_COUNT]);
	if (address.grh)
		fprintf(out, " gid %s",
			inet_ntop(AF_INET6, record->sent ? address.dgid : address.sgid, gid,
				  sizeof(gid)));
}

/* A text of libibumad without its blanks, or the number if there is no text. */
static void print_name(FILE *out, const char *text, unsigned int number, int digits)
{
	if (text[0] == '<') {
		fprintf(out, " 0x%0*x", digits, number);
		return;
	}
	fputc(' ', out);
	for (; *text; text++)
		if (*text != ' ')
			fputc(*text, out);
}

static void print_what(FILE *out, const uint8_t *mad)
{
	uint8_t class = mad[1];
	const char *text = umad_class_str(class);

	print_name(out, text, class, 2);
	if (!strcmp(text, "Vendor") || !strcmp(text, "Application"))
		fprintf(out, ":0x%02x", class);
	if (class_is_range2(class))
		fprintf(out, " oui 0x%06x", get32(mad + 36) & 0xffffff);
	print_name(out, umad_method_str(class, mad[3]), mad[3], 2);
	print_name(out, attribute_name(class, (uint16_t)mad_attribute(mad)), mad_attribute(mad),
		   4);
	fprintf(out, " mod 0x%x", mad_modifier(mad));
}

static void print_rmpp(FILE *out, const struct packet_record *record, const uint8_t *mad)
{
	static const char *const types[] = {"", "data", "ack", "stop", "abort"};
	unsigned int type = mad[RMPP_TYPE];

	if (!class_has_rmpp(mad[1]) || !(mad[RMPP_FLAGS] & RMPP_ACTIVE))
		return;
	if (record->length > MAD_BYTES)
		fprintf(out, " %u bytes", record->length);
	else if (type && type < sizeof(types) / sizeof(types[0]))
		fprintf(out, " rmpp %s", types[type]);
}

static void print_status(FILE *out, const struct packet_record *record, const uint8_t *mad)
{
	unsigned int status = get16(mad + 4);
	unsigned int kernel = record_status(record);

	if (mad_class_of(mad) == CLASS_DIRECTED_SMP)
		status &= 0x7fff; /* without the direction bit */
	if (kernel)
		fprintf(out, " %s", kernel == ETIMEDOUT ? "timeout" : strerror((int)kernel));
	else if (status)
		fprintf(out, " status 0x%04x (%s)", status,
			mad_class_of(mad) == CLASS_SA && status >> 8
				? umad_sa_mad_status_str(htobe16((uint16_t)status))
				: umad_common_mad_status_str(htobe16((uint16_t)status)));
	else if (mad_is_response(mad))
		fputs(" ok", out);
}

void summary_print_duration(FILE *out, int64_t ns)
{
	if (ns < 1000000)
		fprintf(out, "%.1f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		fprintf(out, "%.2f ms", (double)ns / 1e6);
	else
		fprintf(out, "%.2f s", (double)ns / 1e9);
}

void summary_print(FILE *out, const struct packet_record *record,
		   const struct summary_exchange *exchange)
{
	uint8_t mad[MAD_BYTES];

	record_beginning(record, mad);
	print_time(out, record);
	fputs(record->sent ? " > " : " < ", out);
	print_address(out, record, mad, exchange);
	print_what(out, mad);
	print_rmpp(out, record, mad);
	print_status(out, record, mad);
	if (exchange->round_trip >= 0) {
		fputc(' ', out);
		summary_print_duration(out, exchange->round_trip);
	}
	fputc('\n', out);
}
