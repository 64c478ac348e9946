/* SPDX-License-Identifier: BSD-2-Clause */

/* The port of a test, the outcomes of its requests, and what an engine counts. */
#ifndef TESTS_MACHINE_OUTCOME_H
#define TESTS_MACHINE_OUTCOME_H

#include "machine.h"
#include "test.h"

#include <infiniband/mad_async.h>

static struct ibmad_port *port __attribute__((unused));

/* What a request's callback was told. */
struct outcome {
	unsigned calls;
	int error;
	unsigned status, transmissions, rtt_us, elapsed_ms;
	size_t length, data_size;
	uint64_t guid; /* of NodeInfo */
	int64_t at;
};

static inline uint64_t guid_of(const uint8_t *info)
{
	uint64_t guid = 0;

	for (int i = 0; i < 8; i++)
		guid = guid << 8 | info[20 + i];
	return guid;
}

static inline void note(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct outcome *outcome = arg;

	(void)engine;
	*outcome = (struct outcome){
		.calls = outcome->calls + 1,
		.error = reply->error,
		.status = reply->status,
		.transmissions = reply->transmissions,
		.rtt_us = reply->rtt_us,
		.elapsed_ms = reply->elapsed_ms,
		.length = reply->length,
		.data_size = reply->data_size,
		.guid = reply->data_size >= IB_SMP_DATA_SIZE ? guid_of(reply->data) : 0,
		.at = machine_us(),
	};
}

static inline struct mad_async_stats stats_of(struct mad_async *engine)
{
	struct mad_async_stats stats;

	assert_int_equal(mad_async_get_stats(engine, &stats, sizeof(stats)), 0);
	assert_int_equal(stats.submitted - stats.completed, stats.in_flight + stats.queued);
	return stats;
}

#endif
