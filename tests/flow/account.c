/* SPDX-License-Identifier: BSD-2-Clause */

/* The account of requests and MADs. */

#include "model.h"

#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODIFIER_OFFS 20 /* of the attribute modifier in a MAD */
#define FATE_BITS     32
/* From the end of a request until the engine calls back. */
#define CALLS_BACK    (20 * MS)

struct request {
	int64_t sent_at; /* the first transmission */
	uint32_t node;
	uint32_t bad;  /* a bit for each transmission that was dropped or lost */
	uint16_t sent; /* transmissions */
	bool submitted, complete;
	bool read; /* a response */
};

struct tally tally;

static struct {
	struct fabric fabric;
	unsigned all;             /* requests of all hosts */
	struct request *requests; /* those of the first host, then of the next one */
	unsigned submitted[MOST_HOSTS], completed[MOST_HOSTS];
	unsigned responded, wanted;
	bool *dead; /* or always BUSY */
} state;

void account_violation(const char *format, ...)
{
	va_list arguments;

	if (*tally.result.broken)
		return;
	va_start(arguments, format);
	vsnprintf(tally.result.broken, sizeof(tally.result.broken), format, arguments);
	va_end(arguments);
}

static double seconds(void)
{
	return (double)model_now() * 1e-9;
}

static unsigned interval_now(void)
{
	int64_t interval = model_now() / INTERVAL;

	return interval < INTERVALS ? (unsigned)interval : INTERVALS;
}

/* --- requests ------------------------------------------------------------------- */

void account_start(const struct fabric *fabric)
{
	memset(&tally, 0, sizeof(tally));
	memset(&state, 0, sizeof(state));
	state.fabric = *fabric;
	state.all = fabric->requests * host_count(fabric);
	state.requests = calloc(state.all, sizeof(*state.requests));
	state.dead = calloc(fabric->nodes, sizeof(*state.dead));
	if (!state.requests || !state.dead)
		abort();
	for (unsigned i = 0; i < fabric->nodes; i++) {
		struct node_facts facts = fabric_node(fabric, i);

		state.dead[i] = facts.dead || facts.busy;
	}
	for (unsigned i = 0; i < fabric->requests; i++)
		tally.living_left += !state.dead[i % fabric->nodes] * host_count(fabric);
	/* 99 %, rounded up */
	state.wanted = tally.living_left - tally.living_left / 100;
}

bool account_can_submit(unsigned host)
{
	const struct fabric *fabric = &state.fabric;

	return state.submitted[host] < fabric->requests &&
	       (fabric->until_ms <= 0 || (double)model_now() < fabric->until_ms * MS);
}

uint32_t account_submit(unsigned host, unsigned *node)
{
	unsigned number = state.submitted[host]++;
	uint32_t request = host * state.fabric.requests + number;

	*node = number % state.fabric.nodes;
	state.requests[request].node = *node;
	state.requests[request].submitted = true;
	tally.result.requests++;
	return request;
}

void account_complete(uint32_t number, bool responded)
{
	struct request *request = &state.requests[number];
	unsigned host = number / state.fabric.requests;
	struct result *result = &tally.result;
	int64_t timeout = state.fabric.timeout_ms * MS, ends = request->sent_at + CALLS_BACK;

	if (!request->submitted || request->complete) {
		account_violation("request %u was called back twice", number);
		return;
	}
	if (responded && !request->read)
		account_violation("request %u has a response that the device did not deliver",
				  number);
	/*
	 * As mad_async.h states: attempts and their timeout, a seventh more, and 20 ms for each
	 * attempt.
	 */
	ends += state.fabric.attempts * (timeout + timeout / 7 + 20 * MS);
	if (request->sent && model_now() > ends)
		account_violation("request %u ended %.3f s after its first transmission",
				  number, (double)(model_now() - request->sent_at) * 1e-9);
	request->complete = true;
	state.completed[host]++;
	result->end = seconds();
	if (state.dead[request->node])
		return;
	tally.living_left--;
	result->tall = result->host_tall[host] = seconds();
	tally.responses[interval_now()] += responded;
	if (responded && ++state.responded == state.wanted)
		result->t99 = seconds();
}

unsigned account_open(unsigned host)
{
	return state.submitted[host] - state.completed[host];
}

bool account_is_finished(void)
{
	for (unsigned i = 0; i < host_count(&state.fabric); i++)
		if (account_open(i) || account_can_submit(i))
			return false;
	return true;
}

/* --- MADs ----------------------------------------------------------------------- */

static struct request *check_written(const struct packet *packet, uint32_t number)
{
	struct request *request = &state.requests[number];

	if (number >= state.all || !request->submitted || request->node != packet->node) {
		account_violation("a MAD was written that belongs to no request");
		return NULL;
	}
	if (tally.closed)
		account_violation("a MAD of request %u was written after the end", number);
	else if (request->complete)
		account_violation("a MAD of request %u was written after its completion",
				  number);
	if (request->sent >= 2 * state.fabric.attempts &&
	    request->node >= state.fabric.busy_first)
		account_violation("request %u was sent more than %u times", number,
				  2 * state.fabric.attempts);
	return request;
}

void account_written(struct packet *packet)
{
	uint64_t random = state.fabric.seed;
	struct request *request;
	uint32_t number;

	memcpy(&number, packet->mad + MODIFIER_OFFS, sizeof(number));
	number = be32toh(number);
	request = check_written(packet, number);
	if (!request) {
		/* the model needs a node that exists */
		packet->node = 0;
		packet->request = 0;
		return;
	}
	packet->request = number;
	packet->transmission = request->sent++;
	random = random_next(&random) + packet->request;
	random = random_next(&random) + packet->transmission;
	packet->random = random_next(&random);
	if (!packet->transmission)
		request->sent_at = model_now();
	tally.result.transmissions++;
	tally.written[interval_now()]++;
}

void account_read(const struct packet *packet)
{
	if (!packet->timed_out)
		state.requests[packet->request].read = true;
}

void account_lost(const struct packet *packet, enum fate fate)
{
	if (packet->transmission < FATE_BITS)
		state.requests[packet->request].bad |= 1u << packet->transmission;
	tally.result.dropped += fate == DROPPED;
}

void account_end(struct result *result)
{
	for (unsigned i = 0; i < state.all; i++) {
		const struct request *request = &state.requests[i];
		unsigned first = 0; /* transmission that was neither dropped nor lost */

		while (first < FATE_BITS && request->bad & 1u << first)
			first++;
		if (request->sent > first + 1)
			tally.result.extra += request->sent - first - 1;
	}
	*result = tally.result;
	/* fewer than 99 % may have a response */
	if (result->t99 <= 0 && !tally.living_left)
		result->t99 = result->tall;
	free(state.requests);
	free(state.dead);
}
