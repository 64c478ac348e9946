/* SPDX-License-Identifier: BSD-2-Clause */

/* A node with counters on the fake device, for tests of readings. */
#ifndef TESTS_COUNTERS_FIXTURE_H
#define TESTS_COUNTERS_FIXTURE_H

#include "late_responses.h"
#include "mad_fixture.h"

#include <infiniband/mad_counters.h>
#include <infiniband/mad_errors.h>
#include <infiniband/mad_fields.h>

#define LID  8
#define PORT 3

/* The node that responds: its capabilities, the attributes that it rejects, its counters. */
static struct {
	unsigned capabilities, capabilities2;
	uint16_t status[256]; /* by attribute */
	uint8_t data[256][IB_PC_DATA_SZ];
	size_t length;       /* of responses, if it is not 0 */
	int other_port;      /* the PortSelect of responses, if it is not 0 */
	unsigned silent;     /* the attribute without a response; or 0 */
	unsigned count[256]; /* requests by attribute */
	bool hold;           /* no response to ClassPortInfo before release_held() */
	const struct device_packet *held[8];
	unsigned held_count;
} node;

static void respond(const struct device_packet *packet)
{
	unsigned attribute = packet->mad[17];
	uint8_t data[IB_PC_DATA_SZ];

	memcpy(data, node.data[attribute], sizeof(data));
	if (attribute == CLASS_PORT_INFO) {
		mad_set_field(data, 0, IB_CPI_CAPMASK_F, node.capabilities);
		mad_set_field(data, 0, IB_CPI_CAPMASK2_F, node.capabilities2);
	} else {
		data[1] = node.other_port ? (uint8_t)node.other_port : packet->mad[65];
	}
	if (node.length) {
		uint8_t mad[IB_MAD_SIZE];

		device_copy_mad(packet, mad);
		mad[3] |= IB_MAD_RESPONSE;
		device_reply(packet, mad, node.length);
		return;
	}
	device_respond(packet, node.status[attribute], IB_PC_DATA_OFFS, data, sizeof(data));
}

static int on_write(const struct device_packet *packet, void *arg)
{
	unsigned attribute = packet->mad[17];

	(void)arg;
	node.count[attribute]++;
	if (attribute == CLASS_PORT_INFO && node.hold) {
		assert_true(node.held_count < 8);
		node.held[node.held_count++] = packet;
		return 0;
	}
	if (attribute != node.silent || !node.silent)
		respond(packet);
	return 0;
}

static inline void release_held(void)
{
	node.hold = false;
	for (unsigned i = 0; i < node.held_count; i++)
		respond(node.held[i]);
	node.held_count = 0;
}

/* No response is late: a test that does not run for a while sends no request again. */
static inline int setup(void)
{
	int ret = fixture_setup();

	if (!ret)
		set_late_after(60000000);
	memset(&node, 0, sizeof(node));
	device_on_write(on_write, NULL);
	return ret;
}

static const ib_portid_t to = {.lid = LID};

static inline void put(unsigned attribute, enum MAD_FIELDS field, uint64_t value)
{
	mad_set_field64(node.data[attribute], 0, field, value);
}

#define BASIC        IB_GSI_PORT_COUNTERS
#define EXTENDED     IB_GSI_PORT_COUNTERS_EXT
#define RCV_DETAILS  IB_GSI_PORT_RCV_ERROR_DETAILS
#define XMIT_DETAILS IB_GSI_PORT_XMIT_DISCARD_DETAILS
#define SPEEDS       IB_GSI_PORT_EXT_SPEEDS_COUNTERS

#define BASIC_COUNTERS \
	(UINT64_C(0xf) | (MAD_COUNTERS_ERRORS & ~MAD_COUNTER_BIT(MAD_COUNTER_QP1_DROPPED)))

/* A reading that succeeds with so many requests. */
static inline struct mad_counters read_with(const struct mad_counters_options *options,
					    unsigned requests)
{
	const struct mad_failure failure = *mad_last_failure();
	unsigned before = device_written();
	struct mad_counters counters;

	memset(&counters, 0xff, sizeof(counters));
	assert_int_equal(mad_counters_read(fixture.port, &to, PORT, options, &counters,
					   sizeof(counters)),
			 0);
	/* a call that succeeds does not change it, although the node refused requests */
	assert_memory_equal(mad_last_failure(), &failure, sizeof(failure));
	assert_int_equal(device_written() - before, requests);
	assert_int_equal(counters.requests, requests);
	assert_int_equal(counters.size, sizeof(counters));
	assert_int_equal(counters.port, PORT);
	assert_int_equal(counters.status, 0);
	assert_true(counters.time_us > 0);
	return counters;
}

/* The outcome of a reading on an engine. */
struct result {
	int calls, error;
	struct mad_counters counters;
};

static inline void came(struct mad_async *async, int error, const struct mad_counters *counters,
			void *arg)
{
	struct result *result = arg;

	(void)async;
	result->calls++;
	result->error = error;
	result->counters = *counters;
	if (error)
		assert_int_equal(mad_last_failure()->error, error);
}

#endif
