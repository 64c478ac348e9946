/* SPDX-License-Identifier: BSD-2-Clause */

/* What happened to each packet, and where. */
#include <errno.h>
#include <stdlib.h>

#include "classes.h"
#include "printable.h"
#include "rmpp.h"
#include "trace.h"

struct trace {
	FILE *out;
	uint64_t packets;
};

int trace_to(struct fabric *fabric, FILE *out)
{
	if (!fabric->trace)
		fabric->trace = calloc(1, sizeof(*fabric->trace));
	if (!fabric->trace)
		return -ENOMEM;
	fabric->trace->out = out;
	return 0;
}

void trace_free(struct fabric *fabric)
{
	free(fabric->trace);
	fabric->trace = NULL;
}

uint64_t trace_number(struct fabric *fabric)
{
	return fabric->trace ? ++fabric->trace->packets : 0;
}

/* Which part of an RMPP message a packet is. */
static void trace_rmpp(FILE *out, const uint8_t *mad)
{
	if (!class_has_rmpp(mad[1]) || !(mad[RMPP_FLAGS] & RMPP_ACTIVE))
		return;
	if (mad[RMPP_TYPE] == RMPP_DATA)
		fprintf(out, " segment %u", get32(mad + RMPP_SEGMENT));
	else if (mad[RMPP_TYPE] == RMPP_ACK)
		fprintf(out, " ACK %u window %u", get32(mad + RMPP_SEGMENT),
			get32(mad + RMPP_PAYLOAD));
	else if (mad[RMPP_TYPE] == RMPP_STOP || mad[RMPP_TYPE] == RMPP_ABORT)
		fprintf(out, " %s status %u", mad[RMPP_TYPE] == RMPP_STOP ? "STOP" : "ABORT",
			mad[RMPP_STATUS]);
}

void trace_packet(const struct fabric *fabric, const struct packet *packet, uint32_t port,
		  const char *what)
{
	char name[MAX_NAME + 1];

	if (!fabric->trace || !fabric->trace->out)
		return;
	snprintf(name, sizeof(name), "%s", hardware(fabric, cable(fabric, port)->node)->name);
	make_printable(name);
	fprintf(fabric->trace->out,
		"%llu %s at %s/%u: class 0x%02x method 0x%02x attribute 0x%04x modifier 0x%x "
		"QP%u",
		(unsigned long long)packet->number, what, name, cable(fabric, port)->number,
		mad_class_of(packet->mad), mad_method(packet->mad), mad_attribute(packet->mad),
		mad_modifier(packet->mad), packet->qp);
	trace_rmpp(fabric->trace->out, packet->mad);
	fputc('\n', fabric->trace->out);
	fflush(fabric->trace->out);
}
