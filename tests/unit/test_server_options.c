/* SPDX-License-Identifier: BSD-2-Clause */

/* Servers on an engine: their options, and the errors of mad_server_start(). */

#include "request_server_fixture.h"
#include "test.h"

FIXTURE(server_setup, async_teardown);

/* The result of a start with these options; the server is stopped again. */
static int try(struct mad_server_options options)
{
	struct mad_server *started = NULL;
	int ret = mad_server_start(async, &options, hold, NULL, &started);

	assert_int_equal(!started, ret != 0);
	mad_server_stop(started);
	return ret;
}

static struct mad_server_options options_of(int mgmt_class)
{
	return (struct mad_server_options){
		.mgmt_class = mgmt_class,
		.oui = mgmt_class >= 0x30 && mgmt_class <= 0x4f ? 0x123456 : 0,
		.methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_GET)},
	};
}

/* The offset of the data in a request of a class. */
static size_t offset_in(struct mad_server_options options)
{
	struct coming coming = request_of((uint8_t)options.mgmt_class, IB_MAD_METHOD_GET);
	struct mad_server *started = start(options, hold, NULL);
	size_t offset;

	coming.oui = options.oui;
	count = 0;
	come(coming);
	process();
	assert_int_equal(count, 1);
	offset = (size_t)(held[0]->data - held[0]->mad);
	assert_int_equal(held[0]->data_size, IB_MAD_SIZE - offset);
	mad_request_free(held[0]);
	mad_server_stop(started);
	return offset;
}

TEST(without_an_option_data_begin_at_the_offset_of_the_class)
{
	const struct {
		int mgmt_class;
		size_t offset;
	} classes[] = {{IB_SA_CLASS, 56}, {0x30, 40},         {0x4f, 40},
		       {0x09, 24},        {0x0f, 24},         {0x10, 64},
		       {0x08, 64},        {IB_SMI_CLASS, 64}, {IB_PERFORMANCE_CLASS, 64}};
	struct mad_server_options options = options_of(IB_SA_CLASS);

	for (unsigned i = 0; i < sizeof(classes) / sizeof(*classes); i++)
		assert_int_equal(offset_in(options_of(classes[i].mgmt_class)),
				 classes[i].offset);
	options.data_offset = 100;
	assert_int_equal(offset_in(options), 100);
}

/* Data begin after the headers that the library writes, and at offset 192 at the latest. */
TEST(data_cannot_begin_inside_the_headers)
{
	struct {
		int mgmt_class;
		unsigned rmpp_version, least;
	} cases[] = {{IB_PERFORMANCE_CLASS, 0, 24}, {IB_SA_CLASS, 0, 24}, {IB_SA_CLASS, 1, 36},
		     {IB_DEVICE_MGMT_CLASS, 1, 36}, {0x33, 0, 40},        {0x33, 1, 40}};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct mad_server_options options = options_of(cases[i].mgmt_class);

		options.rmpp_version = cases[i].rmpp_version;
		options.data_offset = cases[i].least - 1;
		assert_int_equal(try(options), -EINVAL);
		options.data_offset = cases[i].least;
		assert_int_equal(try(options), 0);
		options.data_offset = 192;
		assert_int_equal(try(options), 0);
		options.data_offset = 193;
		assert_int_equal(try(options), -EINVAL);
		options.data_offset = 0;
		assert_int_equal(try(options), 0);
	}
}

/* IBA 13.6.2 */
TEST(an_rmpp_version_needs_a_class_with_rmpp)
{
	const int with[] = {IB_SA_CLASS, IB_DEVICE_MGMT_CLASS, 0x10, 0x12, 0x30, 0x4f};
	const int without[] = {IB_SMI_CLASS,
			       IB_SMI_DIRECT_CLASS,
			       IB_PERFORMANCE_CLASS,
			       0x05,
			       0x07,
			       0x09,
			       0x0f,
			       0x11,
			       0x13,
			       0x20};
	struct mad_server_options options;
	uint32_t id;

	for (unsigned i = 0; i < sizeof(with) / sizeof(*with); i++) {
		options = options_of(with[i]);
		options.rmpp_version = 2;
		assert_int_equal(try(options), -EINVAL);
		options.rmpp_version = 1;
		assert_int_equal(try(options), 0);
	}
	for (unsigned i = 0; i < sizeof(without) / sizeof(*without); i++) {
		options = options_of(without[i]);
		options.rmpp_version = 1;
		assert_int_equal(try(options), -EINVAL);
		options.rmpp_version = 0;
		assert_int_equal(try(options), 0);
	}
	/* the kernel gets the RMPP version, too */
	options = options_of(IB_DEVICE_MGMT_CLASS);
	options.rmpp_version = 1;
	start(options, hold, NULL);
	id = agent_of(IB_DEVICE_MGMT_CLASS, 0, IB_MAD_METHOD_GET);
	assert_int_equal(device_agent(device_fd(), id).rmpp_version, 1);
	assert_int_equal(device_agent(device_fd(), id).class_version, 1);
	id = agent_of(PING_CLASS, PING_OUI, IB_MAD_METHOD_GET);
	assert_int_equal(device_agent(device_fd(), id).rmpp_version, 1);
}

/* Any of 128 methods, alone and with others. */
TEST(a_server_is_registered_for_its_methods)
{
	struct mad_server_options options = options_of(VENDOR_CLASS);
	const uint64_t pairs[][2] = {
		{1, 0},
		{UINT64_C(1) << 63, 0},
		{0, 1},
		{0, UINT64_C(1) << 63},
		{UINT64_C(0x123456789abcdef0), UINT64_C(0x0fedcba987654321)}};
	struct device_agent agent;

	for (unsigned i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		memcpy(options.methods, pairs[i], sizeof(options.methods));
		assert_int_equal(try(options), 0);
		agent = device_agent(device_fd(), 7); /* after six clients and the server */
		assert_int_equal(agent.mgmt_class, VENDOR_CLASS);
		assert_true(agent.methods[0] == pairs[i][0]);
		assert_true(agent.methods[1] == pairs[i][1]);
	}
	options = options_of(0x33);
	options.oui = 0xffffff;
	assert_int_equal(try(options), 0);
	agent = device_agent(device_fd(), 7);
	assert_int_equal(agent.oui, 0xffffff);
	assert_int_equal(agent.methods[0], 1 << IB_MAD_METHOD_GET);
	assert_int_equal(agent.rmpp_version, 0);
	options.oui = 0x123456;
	assert_int_equal(try(options), 0);
	assert_int_equal(device_agent(device_fd(), 7).oui, 0x123456);
}

TEST(options_out_of_range_fail_with_einval)
{
	struct mad_server_options options = options_of(VENDOR_CLASS);

	options.limit = 65536;
	assert_int_equal(try(options), 0);
	options.limit = 65537;
	assert_int_equal(try(options), -EINVAL);
	options.limit = 1;
	assert_int_equal(try(options), 0);
	for (unsigned i = 0; i < 4; i++) {
		options.reserved[i] = 1;
		assert_int_equal(try(options), -EINVAL);
		options.reserved[i] = 0;
	}
	options.oui = 0x123456; /* of vendor range 2 alone */
	assert_int_equal(try(options), -EINVAL);
	options = options_of(0x33);
	options.oui = 0x1000000;
	assert_int_equal(try(options), -EINVAL);
	options.oui = 0;
	assert_int_equal(try(options), -EINVAL);
	assert_int_equal(try(options_of(0)), -EINVAL);
	assert_int_equal(try(options_of(0x50)), -EINVAL);
	assert_int_equal(try(options_of(256)), -EINVAL);
	assert_int_equal(try(options_of(-1)), -EINVAL);
}

TEST(a_start_fails_with_the_error_of_its_registration)
{
	const struct {
		int of_kernel, of_call;
	} errors[] = {{EINVAL, -EADDRINUSE},
		      {EPIPE, -ENODEV},
		      {ENOMEM, -ENOMEM},
		      {EPROTONOSUPPORT, -EPROTONOSUPPORT}};

	for (unsigned i = 0; i < 4; i++) {
		device_fail(DEVICE_IOCTL, 1, errors[i].of_kernel);
		assert_int_equal(try(options_of(VENDOR_CLASS)), errors[i].of_call);
		device_fail(DEVICE_IOCTL, 1, errors[i].of_kernel);
		assert_int_equal(try(options_of(0x33)), errors[i].of_call);
	}
	assert_int_equal(try(options_of(VENDOR_CLASS)), 0);
}

TEST(a_server_that_cannot_be_started_says_why)
{
	struct mad_server_options options = ping_options();
	struct mad_server *none = server;

	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EADDRINUSE);
	assert_null(none);
	options.oui = 0x123456;
	assert_int_equal(mad_server_start(NULL, &options, hold, NULL, &none), -EINVAL);
	assert_int_equal(mad_server_start(async, NULL, hold, NULL, &none), -EINVAL);
	assert_int_equal(mad_server_start(async, &options, NULL, NULL, &none), -EINVAL);
	assert_int_equal(mad_server_start(async, &options, hold, NULL, NULL), -EINVAL);
	device_fail_malloc(1);
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -ENOMEM);
	device_fail_malloc(0);
	device_fail(DEVICE_IOCTL, 1, ENOMEM);
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -ENOMEM);
	device_fail(DEVICE_IOCTL, 0, 0);
	options.limit = 65537;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.limit = 0;
	options.oui = 0;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.oui = 0x1234567;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.oui = 0x123456;
	options.data_offset = 39; /* the OUI is there */
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.data_offset = 0;
	options.reserved[3] = 1;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.reserved[3] = 0;
	options.methods[0] = 0;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.methods[0] = 2;
	options.mgmt_class = 0x50;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.mgmt_class = IB_PERFORMANCE_CLASS;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.oui = 0;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.rmpp_version = 0;
	options.data_offset = 23;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.data_offset = 0;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), 0);
	options.mgmt_class = IB_DEVICE_MGMT_CLASS;
	options.rmpp_version = 1;
	options.data_offset = 35; /* the RMPP header is there */
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.data_offset = 0;
	device_remove();
	while (mad_async_process(async) >= 0)
		;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -ENODEV);
}
