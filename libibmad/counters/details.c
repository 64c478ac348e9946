/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads the counters of lanes and VLs, and the tick of PortXmitWait. */

#include "base/export.h"
#include "base/report.h"
#include "counters/reading.h"
#include "port/timers.h"

#include <infiniband/mad_fields.h>
#include <infiniband/mad_link.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define ALL_GROUPS 31u
#define DATA_UNIT  4 /* bytes of PortVLOpData */

struct details_reading {
	struct reading reading; /* of the port; it reads nothing itself */
	struct mad_counters_details details;
	ib_portid_t dport;
	unsigned left;  /* groups to be read */
	unsigned group; /* that is being read */
	mad_counters_details_fn *callback;
	void *arg;
};

static unsigned attribute_of(unsigned group)
{
	switch (group) {
	case MAD_COUNTERS_LANES:
		return IB_GSI_PORT_EXT_SPEEDS_COUNTERS;
	case MAD_COUNTERS_VL_PACKETS:
		return IB_GSI_PORT_PORT_VL_OP_PACKETS;
	case MAD_COUNTERS_VL_DATA:
		return IB_GSI_PORT_PORT_VL_OP_DATA;
	case MAD_COUNTERS_VL_XMIT_WAIT:
		return IB_GSI_PORT_PORT_VL_XMIT_WAIT_COUNTERS;
	default:
		return IB_GSI_PORT_SAMPLES_CONTROL;
	}
}

static uint32_t read_nth(const uint8_t *data, enum MAD_FIELDS first, unsigned number)
{
	return mad_read_field(data, 0, first + number);
}

static void read_lanes(const uint8_t *data, struct mad_counters_details *details)
{
	for (unsigned i = 0; i < MAD_COUNTERS_LANE_COUNT; i++)
		details->lanes[i] = (struct mad_lane_counters){
			.error_detections = read_nth(data, IB_PESC_ERR_DET_CTR_LANE0_F, i),
			.fec_corrected_blocks =
				read_nth(data, IB_PESC_FEC_CORR_BLOCK_CTR_LANE0_F, i),
			.fec_uncorrectable_blocks =
				read_nth(data, IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE0_F, i),
		};
}

static void read_group(unsigned group, const uint8_t *data,
		       struct mad_counters_details *details)
{
	if (group == MAD_COUNTERS_LANES)
		read_lanes(data, details);
	if (group == MAD_COUNTERS_TICK)
		details->tick = (uint8_t)mad_read_field(data, 0, IB_PSC_TICK_F);
	for (unsigned i = 0; i < MAD_COUNTERS_VL_COUNT; i++) {
		struct mad_vl_counters *vl = &details->vls[i];

		if (group == MAD_COUNTERS_VL_PACKETS)
			vl->rcv_packets = read_nth(data, IB_PC_PORT_VL_OP_PACKETS0_F, i);
		else if (group == MAD_COUNTERS_VL_DATA)
			vl->rcv_bytes = (uint64_t)DATA_UNIT *
					read_nth(data, IB_PC_PORT_VL_OP_DATA0_F, i);
		else if (group == MAD_COUNTERS_VL_XMIT_WAIT)
			vl->xmit_wait_ticks = read_nth(data, IB_PC_PORT_VL_XMIT_WAIT0_F, i);
	}
}

/* Reads a response. Returns 0, or the error with which the reading completes. */
static int take(struct details_reading *pending, const struct mad_outcome *outcome)
{
	struct mad_counters_details *details = &pending->details;

	details->requests++;
	if (outcome_is_refusal(outcome))
		return 0;
	if (outcome->error == -EIO)
		details->status = outcome->status;
	if (outcome->error)
		return outcome->error;
	if (outcome->size < IB_PC_DATA_SZ)
		return -EBADMSG;
	read_group(pending->group, outcome->data, details);
	details->present |= pending->group;
	details->time_us = (uint64_t)clock_us();
	return 0;
}

static mad_async_fn group_came;

static int submit_next(struct mad_async *async, struct details_reading *pending)
{
	uint8_t data[IB_PC_DATA_SZ];
	ib_rpc_t rpc;

	pending->group = pending->left & -pending->left;
	pending->left &= ~pending->group;
	rpc = reading_request(&pending->reading, attribute_of(pending->group), data);
	return mad_async_submit(async, &rpc, &pending->dport, data, sizeof(data), group_came,
				pending, NULL);
}

static void group_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	const struct mad_outcome outcome = outcome_of(reply);
	struct details_reading *pending = arg;
	int error = take(pending, &outcome);

	if (!error && pending->left) {
		error = submit_next(async, pending);
		if (!error)
			return;
	}
	if (!error && !pending->details.present)
		error = -EOPNOTSUPP;
	pending->callback(async, error, &pending->details, pending->arg);
	free(pending);
}

EXPORT int mad_counters_submit_details(struct mad_async *async, const ib_portid_t *dport,
				       unsigned port_number, unsigned wanted, int timeout_ms,
				       mad_counters_details_fn *callback, void *arg)
{
	const struct mad_counters_options options = {.timeout_ms = timeout_ms};
	struct details_reading *pending;
	int error;

	if (!async || !callback || !wanted || wanted & ~ALL_GROUPS ||
	    !reading_is_valid(dport, port_number, &options))
		return -EINVAL;
	pending = calloc(1, sizeof(*pending));
	if (!pending)
		return -ENOMEM;
	reading_init(&pending->reading, port_number, &options);
	pending->details.port = (uint8_t)port_number;
	pending->dport = *dport;
	pending->left = wanted;
	pending->callback = callback;
	pending->arg = arg;
	error = submit_next(async, pending);
	if (error)
		free(pending);
	return error;
}

struct result {
	int error;
	struct mad_counters_details *details;
};

static void keep_result(struct mad_async *async, int error,
			const struct mad_counters_details *details, void *arg)
{
	struct result *result = arg;

	(void)async;
	result->error = error;
	*result->details = *details;
}

static int fail(int error)
{
	const struct mad_failure failure = {.error = error,
					    .mgmt_class = IB_PERFORMANCE_CLASS,
					    .method = IB_MAD_METHOD_GET,
					    .kind = MAD_FAILURE_OTHER};

	if (error)
		failure_store(&failure);
	return error;
}

EXPORT int mad_counters_read_details(struct ibmad_port *port, const ib_portid_t *dport,
				     unsigned port_number, unsigned wanted, int timeout_ms,
				     struct mad_counters_details *details)
{
	struct result result = {.details = details};
	struct mad_async *async;
	int error;

	if (details)
		*details = (struct mad_counters_details){.port = (uint8_t)port_number};
	if (!port || !details)
		return fail(-EINVAL);
	async = mad_async_create(port);
	if (!async)
		return -errno;
	error = mad_counters_submit_details(async, dport, port_number, wanted, timeout_ms,
					    keep_result, &result);
	if (!error)
		mad_async_wait(async, -1);
	mad_async_free(async); /* calls back the request in flight if the device is gone */
	return fail(error ? error : result.error);
}

/* --- the tick --------------------------------------------------------------------- */

EXPORT double mad_counters_tick_ns(unsigned tick, unsigned speed)
{
	static const double symbol_ns[] = {
		[MAD_SPEED_SDR] = 4, [MAD_SPEED_DDR] = 2, [MAD_SPEED_QDR] = 1};

	if (speed >= sizeof(symbol_ns) / sizeof(*symbol_ns) || !(symbol_ns[speed] > 0))
		return (double)NAN;
	return (tick + 1) * symbol_ns[speed];
}
