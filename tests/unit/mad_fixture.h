/* SPDX-License-Identifier: BSD-2-Clause */

/* A port on the fake device. A test checks the requests and sets the responses. */
#ifndef TESTS_UNIT_MAD_FIXTURE_H
#define TESTS_UNIT_MAD_FIXTURE_H

#include "fake_device.h"

#include <infiniband/mad.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The response to a request of that class and attribute; other requests get their data back. */
struct response {
	uint8_t mgmt_class;
	uint8_t attribute;
	uint16_t status;
	const void *data;
	size_t size;
};

#define MAX_ANSWERS 8

static struct {
	struct ibmad_port *port;
	struct response responses[MAX_ANSWERS];
	unsigned response_count;
	bool silent; /* no request has a response */
} fixture;

static inline size_t data_offset(uint8_t mgmt_class)
{
	return mgmt_class == IB_SA_CLASS ? IB_SA_DATA_OFFS : IB_SMP_DATA_OFFS;
}

static inline int respond_to_request(const struct device_packet *packet, void *arg)
{
	uint8_t mgmt_class = packet->mad[1];
	unsigned i;

	(void)arg;
	if (fixture.silent || packet->mad[3] & IB_MAD_RESPONSE)
		return 0;
	for (i = 0; i < fixture.response_count; i++) {
		const struct response *response = &fixture.responses[i];

		if (response->mgmt_class == mgmt_class &&
		    response->attribute == packet->mad[17]) {
			device_respond(packet, response->status, data_offset(mgmt_class),
				       response->data, response->size);
			return 0;
		}
	}
	device_respond(packet, 0, 0, NULL, 0);
	return 0;
}

static inline void respond_with(uint8_t mgmt_class, uint8_t attribute, uint16_t status,
				const void *data, size_t size)
{
	assert_true(fixture.response_count < MAX_ANSWERS);
	fixture.responses[fixture.response_count++] =
		(struct response){mgmt_class, attribute, status, data, size};
}

/* The numbers of agents are in this order. */
static inline int fixture_setup(void)
{
	int classes[] = {
		IB_SMI_CLASS,        IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS,
		IB_BOARD_MGMT_CLASS, IB_CC_CLASS,         0x0a,        0x33};

	memset(&fixture, 0, sizeof(fixture));
	if (device_setup())
		return -1;
	device_on_write(respond_to_request, NULL);
	fixture.port = mad_rpc_open_port(NULL, 0, classes, 8);
	if (!fixture.port)
		return -1;
	mad_rpc_set_timeout(fixture.port, 60000);
	errno = 0;
	return 0;
}

static inline int fixture_teardown(void)
{
	mad_rpc_close_port(fixture.port);
	return device_teardown();
}

/* No request has a response, and timeouts are short. */
static inline void be_silent(void)
{
	fixture.silent = true;
	mad_rpc_set_timeout(fixture.port, 5);
	mad_rpc_set_retries(fixture.port, 1);
}

/*
 * The n-th MAD written, as "offset:hex offset:hex ...", zeros elsewhere; the TID is not
 * compared.
 */
static inline void expect_mad(unsigned n, const char *bytes)
{
	const struct device_packet *packet = device_packet(n);
	uint8_t expected[IB_MAD_SIZE] = {0};
	unsigned byte;
	char *at;

	while (*bytes) {
		size_t offset = strtoul(bytes, &at, 10);

		assert_true(*at == ':');
		for (at++; sscanf(at, "%2x", &byte) == 1 && *at != ' '; at += 2) {
			assert_true(offset < sizeof(expected));
			expected[offset++] = (uint8_t)byte;
		}
		bytes = at + strspn(at, " ");
	}
	assert_int_equal(packet->length, IB_MAD_SIZE);
	memcpy(expected + 8, packet->mad + 8, 8);
	assert_memory_equal(packet->mad, expected, sizeof(expected));
}

/* The destination of the n-th MAD; no GRH, P_Key index 0. */
static inline void expect_address(unsigned n, uint32_t qp, uint32_t qkey, uint16_t lid,
				  uint8_t sl)
{
	const ib_mad_addr_t *to = &device_packet(n)->header.addr;

	assert_int_equal(be32toh(to->qpn), qp);
	assert_int_equal(be32toh(to->qkey), qkey);
	assert_int_equal(be16toh(to->lid), lid);
	assert_int_equal(to->sl, sl);
	assert_int_equal(to->grh_present, 0);
	assert_int_equal(to->pkey_index, 0);
}

/* The n-th MAD was sent with the agent of its class. */
static inline void expect_agent(unsigned n)
{
	const struct device_packet *packet = device_packet(n);

	assert_int_equal(packet->header.agent_id,
			 mad_rpc_class_agent(fixture.port, packet->mad[1]));
}

static inline void fill(uint8_t *data, size_t size, uint8_t first)
{
	while (size--)
		*data++ = first++;
}

#endif
