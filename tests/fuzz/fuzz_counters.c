/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Counters of a node that sends wrong data: the input has each response, and cancels readings.
 * Each reading ends once, with numbers that fit their fields, and totals never decrease.
 */
#include "fuzz_machine.h"

#include <errno.h>
#include <infiniband/mad_counters.h>

#define READINGS 16
#define LENGTH   300

static struct {
	struct mad_counters_tracker *tracker;
	struct mad_counters_node *node;
	struct input input;
	struct mad_counters_options options;
	uint64_t readings[READINGS]; /* 0: complete */
	bool cancelled[READINGS];
	unsigned begun, ended;
	uint64_t time_us;
} run;

/*
 * The node's response: with a status, of any length, and filled with one byte or from the
 * input.
 */
static enum machine_verdict respond(struct machine_mad *request, void *arg)
{
	uint8_t *mad = begin_response(request), shape = (uint8_t)take(&run.input, 1);
	size_t length = IB_MAD_SIZE;

	(void)arg;
	if (shape & 1)
		mad[5] = (uint8_t)take(&run.input, 1) & 0xfe; /* not BUSY: no retry */
	mad[5] &= 0xfc;                                       /* nor a redirection */
	if (shape & 2) {
		memset(mad + IB_PC_DATA_OFFS + 2, (uint8_t)take(&run.input, 1),
		       LENGTH - IB_PC_DATA_OFFS - 2);
		length = shape & 4 ? take(&run.input, 2) % LENGTH : IB_MAD_SIZE;
	} else {
		take_bytes(&run.input, mad + IB_PC_DATA_OFFS, shape & 4 ? 24 : 160);
	}
	machine_deliver(request, mad, length, 0);
	return MACHINE_DROP;
}

/* A condition that holds for each reading, for any response. */
static void judge(int error, const struct mad_counters *counters)
{
	uint64_t wanted = run.options.counters ? run.options.counters : MAD_COUNTERS_DEFAULT;
	const struct mad_counter_info *info;

	check(error <= 0);
	check(!(counters->present & ~(wanted & MAD_COUNTERS_ALL)));
	check(!(counters->at_maximum & ~counters->present));
	check(!(counters->extended & ~counters->present));
	check(error || counters->present);
	check((error == -EIO) == (counters->status != 0));
	check(counters->requests <= 6);
	for (unsigned i = 0; (info = mad_counters_info(i)); i++) {
		uint64_t value = mad_counters_value(counters, i, NULL);
		unsigned bits = counters->extended >> i & 1 ? 64 : info->bits;

		check(counters->present >> i & 1 || !value);
		if (bits && bits < 64)
			check(value <=
			      ((UINT64_C(1) << bits) - 1) * info->multiplier * info->fields);
	}
}

/* Passes the reading to the tracker, with a time from the input. */
static void track(const struct mad_counters *counters)
{
	struct mad_counters before = mad_counters_tracker_totals(run.tracker)->total;
	struct mad_counters reading = *counters;
	int events;

	run.time_us += take(&run.input, 2);
	reading.time_us = run.time_us;
	memset(reading.response_us, 0, sizeof(reading.response_us));
	events = mad_counters_tracker_add(run.tracker, &reading);
	check(counters->present ? events >= 0 && events < 256 : events == -EINVAL);
	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++) {
		check(mad_counters_value(&mad_counters_tracker_totals(run.tracker)->total, i,
					 NULL) >= mad_counters_value(&before, i, NULL));
		check(!(mad_counters_tracker_rate(run.tracker, i, MAD_RATE_LATEST) < 0));
		check(!(mad_counters_tracker_rate(run.tracker, i, MAD_RATE_MEAN) < 0));
	}
}

static void came(struct mad_async *engine, int error, const struct mad_counters *counters,
		 void *arg)
{
	uint64_t *reading = arg;

	check(engine == async && *reading);
	check(!run.cancelled[reading - run.readings] || error == -ECANCELED);
	*reading = 0;
	judge(error, counters);
	track(counters);
	run.ended++;
}

static void cancel(unsigned reading)
{
	/* a submission that failed has left its number, too */
	if (!mad_async_cancel(async, run.readings[reading]))
		run.cancelled[reading] = true;
}

static void step(void)
{
	static const ib_portid_t to = {.lid = 11};
	uint8_t shape = (uint8_t)take(&run.input, 1);
	unsigned number = shape & 4 ? (unsigned)take(&run.input, 1) : 1;
	struct mad_counters counters;

	let_arrive();
	run.options.node = shape & 8 ? run.node : NULL;
	switch (shape & 3) {
	case 0:
		if (run.begun < READINGS &&
		    !mad_counters_submit(async, &to, number, &run.options, came,
					 &run.readings[run.begun], &run.readings[run.begun]))
			run.begun++;
		break;
	case 1:
		judge(mad_counters_read(port, &to, number, &run.options, &counters,
					sizeof(counters)),
		      &counters);
		track(&counters);
		break;
	case 2:
		mad_counters_reset(port, &to, number, &run.options);
		break;
	default:
		if (shape & 16)
			cancel((unsigned)take(&run.input, 1) % READINGS);
		else
			check(mad_async_process(async) >= 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	memset(&run, 0, sizeof(run));
	run.input = (struct input){data, size};
	begin("star:1", NULL, respond);
	mad_rpc_set_timeout(port, 5);
	run.tracker = mad_counters_tracker_create((unsigned)take(&run.input, 1) & 1);
	run.node = mad_counters_node_create();
	/* of all readings, so that a callback knows which counters were requested */
	run.options.counters = take(&run.input, 5);
	run.options.basic = run.options.counters >> 39;
	for (int steps = 0; run.input.size && steps < 100; steps++)
		step();
	mad_counters_node_free(run.node);
	end();
	check(run.ended == run.begun);
	mad_counters_tracker_free(run.tracker);
	return 0;
}
