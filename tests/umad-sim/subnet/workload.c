/* SPDX-License-Identifier: BSD-2-Clause */

/* Processors, which handle one request after the other, and their statistics. */
#include <stdlib.h>

#include "printable.h"
#include "workload.h"

#define NEVER (UINT64_MAX / 4) /* 146 years: times up to there can be added */

struct workload *workload_of(struct fabric *fabric, uint32_t node)
{
	struct workload **workload = &fabric->nodes[node].workload;

	if (!*workload)
		*workload = calloc(1, sizeof(**workload));
	return *workload;
}

struct processor *processor_of(struct fabric *fabric, uint32_t node, bool smp)
{
	struct workload *workload = workload_of(fabric, node);

	return workload ? &workload->processors[smp ? 0 : 1] : NULL;
}

void workload_free(struct workload *workload)
{
	free(workload);
}

/* How many requests are not completed, including the one being processed. */
static uint64_t present(const struct processor *processor, uint64_t now, uint64_t service)
{
	if (!service || processor->busy_until <= now)
		return 0;
	return (processor->busy_until - now + service - 1) / service;
}

bool processor_take(struct processor *processor, uint64_t now, uint64_t service,
		    uint32_t buffer, uint64_t *delay)
{
	uint64_t came = now > processor->last ? now : processor->last;
	uint64_t others = present(processor, came, service);

	processor->last = came;
	if (others > buffer || (service && processor->busy_until > NEVER)) {
		processor->dropped++;
		return false;
	}
	processor->taken++;
	*delay = 0;
	if (!service)
		return true;
	if (others > processor->longest)
		processor->longest = others < UINT32_MAX ? (uint32_t)others : UINT32_MAX;
	if (processor->busy_until < came)
		processor->busy_until = came;
	processor->busy_until += service;
	processor->service = service;
	*delay = processor->busy_until - now;
	return true;
}

/* --- the table ------------------------------------------------------------------ */

struct line {
	uint64_t sent;
	uint64_t sent_in_vain;
	struct {
		uint64_t received;
		uint64_t processed;
		uint64_t dropped;
		uint64_t longest;
	} processors[2];
};

static void add(struct line *line, const struct workload *workload, uint64_t now)
{
	line->sent += workload->sent;
	line->sent_in_vain += workload->sent_in_vain;
	for (unsigned int i = 0; i < 2; i++) {
		const struct processor *processor = &workload->processors[i];

		line->processors[i].received += processor->received;
		line->processors[i].processed +=
			processor->taken - present(processor, now, processor->service);
		line->processors[i].dropped += processor->dropped;
		if (processor->longest > line->processors[i].longest)
			line->processors[i].longest = processor->longest;
	}
}

static void print_line(const struct line *line, FILE *out)
{
	fprintf(out, "\t%llu\t%llu", (unsigned long long)line->sent,
		(unsigned long long)line->sent_in_vain);
	for (unsigned int i = 0; i < 2; i++)
		fprintf(out, "\t%llu\t%llu\t%llu\t%llu",
			(unsigned long long)line->processors[i].received,
			(unsigned long long)line->processors[i].processed,
			(unsigned long long)line->processors[i].dropped,
			(unsigned long long)line->processors[i].longest);
	putc('\n', out);
}

void workload_print(const struct fabric *fabric, FILE *out)
{
	struct line total = {0};

	fputs("node\tguid\tsent\tpath_dropped"
	      "\tsmp_received\tsmp_processed\tsmp_dropped\tsmp_longest"
	      "\tgmp_received\tgmp_processed\tgmp_dropped\tgmp_longest\n",
	      out);
	for (uint32_t node = 0; node < fabric->graph.node_count; node++) {
		const struct workload *workload = fabric->nodes[node].workload;
		struct line line = {0};
		char name[MAX_NAME + 1];

		if (!workload)
			continue;
		add(&line, workload, fabric->now);
		add(&total, workload, fabric->now);
		snprintf(name, sizeof(name), "%s", hardware(fabric, node)->name);
		make_printable(name); /* keeps it in one column */
		fprintf(out, "%s\t0x%016llx", name,
			(unsigned long long)hardware(fabric, node)->guid);
		print_line(&line, out);
	}
	fputs("total\t-", out);
	print_line(&total, out);
}
