/* SPDX-License-Identifier: BSD-2-Clause */

/* The account of requests and MADs. */

#include "account.h"

#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODIFIER_OFFS 20 /* of the attribute modifier in a MAD */
#define NO_REQUEST    UINT32_MAX
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

static struct {
	struct fabric fabric;
	unsigned hosts;
	struct request *requests; /* those of the first host, then of the next one */
	unsigned submitted[MOST_HOSTS], completed[MOST_HOSTS];
	unsigned living, living_done, responded, wanted;
	unsigned host_living[MOST_HOSTS];
	uint32_t *at_node; /* the request that was sent last to each node */
	bool *dead;        /* or always BUSY */
	/* the last element counts what is later than all intervals */
	unsigned responses[INTERVALS + 1], written[INTERVALS + 1];
	struct result result;
	bool closed;
} account;

void account_violation(const char *format, ...)
{
	va_list arguments;

	if (*account.result.broken)
		return;
	va_start(arguments, format);
	vsnprintf(account.result.broken, sizeof(account.result.broken), format, arguments);
	va_end(arguments);
}

const char *account_broken(void)
{
	return *account.result.broken ? account.result.broken : NULL;
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

static void count_living(void)
{
	const struct fabric *fabric = &account.fabric;
	unsigned living = 0;

	for (unsigned i = 0; i < fabric->nodes; i++) {
		struct node_facts facts = fabric_node(fabric, i);

		account.dead[i] = facts.dead || facts.busy;
	}
	for (unsigned i = 0; i < fabric->requests; i++)
		living += !account.dead[i % fabric->nodes];
	account.living = living * account.hosts;
	/* 99 %, rounded up */
	account.wanted = account.living - account.living / 100;
}

void account_start(const struct fabric *fabric)
{
	memset(&account, 0, sizeof(account));
	account.fabric = *fabric;
	account.hosts = fabric->hosts ? fabric->hosts : 1;
	account.requests =
		calloc((size_t)fabric->requests * account.hosts, sizeof(*account.requests));
	account.at_node = malloc(fabric->nodes * sizeof(*account.at_node));
	account.dead = calloc(fabric->nodes, sizeof(*account.dead));
	if (!account.requests || !account.at_node || !account.dead)
		abort();
	memset(account.at_node, 0xff, fabric->nodes * sizeof(*account.at_node));
	count_living();
}

bool account_can_submit(unsigned host)
{
	const struct fabric *fabric = &account.fabric;

	return account.submitted[host] < fabric->requests &&
	       (fabric->until_ms <= 0 || (double)model_now() < fabric->until_ms * MS);
}

uint32_t account_submit(unsigned host, unsigned *node)
{
	unsigned number = account.submitted[host]++;
	uint32_t request = host * account.fabric.requests + number;

	*node = number % account.fabric.nodes;
	account.requests[request].node = *node;
	account.requests[request].submitted = true;
	account.result.requests++;
	return request;
}

static void complete_living(unsigned host, bool responded)
{
	struct result *result = &account.result;

	account.living_done++;
	result->tall = result->host_tall[host] = seconds();
	if (responded) {
		account.responses[interval_now()]++;
		if (++account.responded == account.wanted)
			result->t99 = seconds();
	} else {
		result->failed++;
	}
}

/*
 * As mad_async.h states: attempts and their timeout, a seventh more, and 20 ms for each
 * attempt.
 */
static void check_end(const struct request *request, uint32_t number)
{
	int64_t timeout = account.fabric.timeout_ms * MS, ends = request->sent_at + CALLS_BACK;

	ends += account.fabric.attempts * (timeout + timeout / 7 + 20 * MS);
	if (request->sent && model_now() > ends)
		account_violation("request %u ended %.3f s after its first transmission",
				  number, (double)(model_now() - request->sent_at) * 1e-9);
}

void account_complete(uint32_t number, bool responded)
{
	struct request *request = &account.requests[number];
	unsigned host = number / account.fabric.requests;

	if (!request->submitted || request->complete) {
		account_violation("request %u was called back twice", number);
		return;
	}
	if (responded && !request->read)
		account_violation("request %u has a response that the device did not deliver",
				  number);
	request->complete = true;
	check_end(request, number);
	account.completed[host]++;
	account.result.end = seconds();
	if (!account.dead[request->node])
		complete_living(host, responded);
	else
		account.result.failed_dead++;
}

unsigned account_open(unsigned host)
{
	return account.submitted[host] - account.completed[host];
}

bool account_is_finished(void)
{
	for (unsigned i = 0; i < account.hosts; i++)
		if (account_open(i) || account_can_submit(i))
			return false;
	return true;
}

bool account_living_are_complete(void)
{
	return account.living_done >= account.living;
}

void account_close(void)
{
	account.closed = true;
}

/* --- MADs ----------------------------------------------------------------------- */

/* A request is at its node until its response is read, or until its attempts are over. */
static bool is_at_node(uint32_t number)
{
	const struct request *request = &account.requests[number];
	int64_t attempts = (int64_t)account.fabric.attempts * account.fabric.timeout_ms * MS;

	return !request->read && !request->complete &&
	       model_now() < request->sent_at + attempts;
}

static void note_first(struct request *request, uint32_t number)
{
	uint32_t *at_node = &account.at_node[request->node];

	request->sent_at = model_now();
	if (*at_node != NO_REQUEST && is_at_node(*at_node))
		account.result.crowded++;
	*at_node = number;
}

static struct request *check_written(const struct packet *packet, uint32_t number)
{
	struct request *request = &account.requests[number];

	if (number >= account.fabric.requests * account.hosts || !request->submitted ||
	    request->node != packet->node) {
		account_violation("a MAD was written that belongs to no request");
		return NULL;
	}
	if (account.closed)
		account_violation("a MAD of request %u was written after the end", number);
	else if (request->complete)
		account_violation("a MAD of request %u was written after its completion",
				  number);
	if (request->sent >= 2 * account.fabric.attempts &&
	    request->node >= account.fabric.busy_first)
		account_violation("request %u was sent more than %u times", number,
				  2 * account.fabric.attempts);
	return request;
}

static uint64_t packet_random(const struct packet *packet)
{
	uint64_t random = account.fabric.seed;

	random = random_next(&random) + packet->request;
	random = random_next(&random) + packet->transmission;
	return random_next(&random);
}

void account_written(struct packet *packet)
{
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
	packet->random = packet_random(packet);
	if (!packet->transmission)
		note_first(request, number);
	account.result.transmissions++;
	account.written[interval_now()]++;
}

void account_read(const struct packet *packet)
{
	if (!packet->timed_out)
		account.requests[packet->request].read = true;
}

void account_lost(const struct packet *packet, enum fate fate)
{
	struct result *result = &account.result;

	if (packet->transmission < FATE_BITS)
		account.requests[packet->request].bad |= 1u << packet->transmission;
	if (fate == LOST_BY_LINK)
		result->lost++;
	else if (fate == LOST_TO_DEAD)
		result->to_dead++;
	else
		result->dropped++;
}

void account_arrived(const struct packet *packet)
{
	(void)packet;
}

/* The transmissions after the first one that was neither dropped nor lost. */
static unsigned extra_of(const struct request *request)
{
	unsigned first =
		request->bad == UINT32_MAX ? FATE_BITS : (unsigned)__builtin_ctz(~request->bad);

	return request->sent > first + 1 ? request->sent - first - 1 : 0;
}

/* --- figures -------------------------------------------------------------------- */

void account_figures(struct result *result)
{
	unsigned all = account.fabric.requests * account.hosts;

	account.result.extra = 0;
	for (unsigned i = 0; i < all; i++)
		account.result.extra += extra_of(&account.requests[i]);
	*result = account.result;
	/* fewer than 99 % may have a response */
	if (result->t99 <= 0 && account_living_are_complete())
		result->t99 = result->tall;
}

unsigned account_responses(unsigned interval)
{
	return interval < INTERVALS ? account.responses[interval] : 0;
}

unsigned account_written_in(unsigned interval)
{
	return interval < INTERVALS ? account.written[interval] : 0;
}

void account_end(void)
{
	free(account.requests);
	free(account.at_node);
	free(account.dead);
	memset(&account, 0, sizeof(account));
}
