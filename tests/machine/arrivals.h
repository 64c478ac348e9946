/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The MADs that arrive at nodes, those of the host left out: they are recorded, and a test may
 * handle some. arrivals_begin() after machine_start().
 */
#ifndef TESTS_MACHINE_ARRIVALS_H
#define TESTS_MACHINE_ARRIVALS_H

#include "children.h"
#include "machine.h"
#include "test.h"

#include <infiniband/mad.h>

#define ARRIVALS_MAX 32768

struct arrival {
	char node[8];
	uint8_t mad[MACHINE_MAD];
	uint16_t slid, dlid;
	uint8_t sl;
	uint32_t qp;
	int64_t us;
};

static struct arrival arrivals[ARRIVALS_MAX];
static unsigned arrival_count;
/* What a test does with a MAD, at the host, too; NULL: nothing. */
static machine_arrival_fn *on_mad;
static void *on_mad_arg;

static inline enum machine_verdict note_arrival(struct machine_mad *mad, void *arg)
{
	struct arrival *arrival = &arrivals[arrival_count % ARRIVALS_MAX];

	(void)arg;
	if (!mad->at_host) {
		snprintf(arrival->node, sizeof(arrival->node), "%s", mad->node);
		memcpy(arrival->mad, mad->bytes, MACHINE_MAD);
		arrival->slid = mad->slid;
		arrival->dlid = mad->dlid;
		arrival->sl = mad->sl;
		arrival->qp = mad->qp;
		arrival->us = mad->us;
		arrival_count++;
	}
	return on_mad ? on_mad(mad, on_mad_arg) : MACHINE_PASS;
}

static inline void arrivals_begin(void)
{
	arrival_count = 0;
	on_mad = NULL;
	machine_on_arrival(note_arrival, NULL);
}

static inline void handle_mads(machine_arrival_fn *function, void *arg)
{
	on_mad_arg = arg;
	on_mad = function;
}

static inline const struct arrival *last_arrival(void)
{
	assert_true(arrival_count > 0);
	return &arrivals[(arrival_count - 1) % ARRIVALS_MAX];
}

/* Those with a class and a method; -1: any. */
static inline unsigned count_arrivals(int mgmt_class, int method)
{
	unsigned count = 0;

	for (unsigned i = 0; i < arrival_count; i++)
		count += (mgmt_class < 0 || arrivals[i].mad[1] == mgmt_class) &&
			 (method < 0 || arrivals[i].mad[3] == method);
	return count;
}

/* A MAD from "offset:hex offset:hex ...", zeros elsewhere. */
static inline void make_mad(uint8_t mad[IB_MAD_SIZE], const char *bytes)
{
	unsigned byte;
	char *at;

	memset(mad, 0, IB_MAD_SIZE);
	while (*bytes) {
		size_t offset = strtoul(bytes, &at, 10);

		for (at++; sscanf(at, "%2x", &byte) == 1 && *at != ' '; at += 2)
			mad[offset++] = (uint8_t)byte;
		bytes = at + strspn(at, " ");
	}
}

/* The whole MAD; its TID is not compared. */
static inline void expect_mad(const uint8_t *mad, const char *bytes)
{
	uint8_t expected[IB_MAD_SIZE];

	make_mad(expected, bytes);
	memcpy(expected + 8, mad + 8, 8);
	assert_memory_equal(mad, expected, sizeof(expected));
}

#endif
